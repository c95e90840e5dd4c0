"""Shard plans and collectives over HTTP: pure, and closed to what does not hold together."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from service.conftest import JsonObject, Service, problem

from kuayu.client import Client, RefusedError
from kuayu.service import computations
from kuayu_schemas import schema
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import CollectiveKind, CollectiveRequest, ShardPlanRequest

EXAMPLES = Path(__file__).parents[2] / "spec" / "examples"
SHARDS, COLLECTIVES = "/v1/shard-plans", "/v1/collectives"
ANSWERS = {SHARDS: "ShardPlan", COLLECTIVES: "CollectiveChoice"}
FILES = {
    SHARDS: "ShardPlanRequest/valid/two-streams.json",
    COLLECTIVES: "CollectiveRequest/valid/three-domains.json",
}
WORKERS = {SHARDS: computations.plan_shards, COLLECTIVES: computations.choose_collective}

Change = Callable[[JsonObject], object]


def asked(path: str, change: Change = lambda _: None) -> JsonObject:
    """The example of an operation's request, changed."""
    request: JsonObject = json.loads((EXAMPLES / FILES[path]).read_text("utf-8"))
    change(request)
    return request


def read(model: type[KuayuModel], request: JsonObject) -> Any:
    return model.model_validate_json(json.dumps(request))


@pytest.mark.parametrize("path", ANSWERS)
def test_an_answer_keeps_to_the_schema_echoes_the_revision_and_is_given_again(shared: Service, path: str) -> None:
    first, again = (shared.client.post(path, json=asked(path)).raise_for_status() for _ in range(2))
    assert schema.errors(ANSWERS[path], first.json()) == []
    assert first.json()["revision"] == asked(path)["revision"]
    assert first.content == again.content
    assert first.headers["content-type"] == "application/json"


def test_the_client_asks_for_both(shared: Service) -> None:
    with Client(shared.url) as client:
        plan = client.shard_plan(read(ShardPlanRequest, asked(SHARDS)))
        assert [each.stream for each in plan.streams] == ["j-1", "j-2"]
        assert {each.source for each in plan.shards} == {"d-east"}
        choice = client.collective(read(CollectiveRequest, asked(COLLECTIVES)))
        assert choice.collective is CollectiveKind.low_communication
        assert len(choice.candidates) == 7
        twice = asked(SHARDS, lambda request: request["streams"].append(request["streams"][0]))
        with pytest.raises(RefusedError) as refused:
            client.shard_plan(read(ShardPlanRequest, twice))
        assert refused.value.name == "invalid-body"


@pytest.mark.parametrize(
    ("path", "change", "called", "pointer"),
    [
        (SHARDS, lambda request: request["streams"][1].update(id="j-1"), "invalid-body", "/streams/1/id"),
        (SHARDS, lambda request: request["rooms"].append(request["rooms"][0]), "invalid-body", "/rooms/1/domain"),
        (SHARDS, lambda request: request["links"].append(request["links"][0]), "invalid-body", "/links/2/target"),
        (
            SHARDS,
            lambda request: request["streams"][0]["transfers"][0].update(source="d-none"),
            "unknown-reference",
            "/streams/0/transfers/0/source",
        ),
        (SHARDS, lambda request: request.update(horizon=1e30), "invalid-body", "/horizon"),
        (COLLECTIVES, lambda request: request["domains"].append("d-east"), "invalid-body", "/domains/3"),
        (COLLECTIVES, lambda request: request["links"].pop(), "invalid-body", "/links"),
        (COLLECTIVES, lambda request: request["links"][0].update(source="d"), "unknown-reference", "/links/0/source"),
        (COLLECTIVES, lambda request: request["in_use"].update(collective="ring"), "invalid-body", "/in_use/period"),
        (COLLECTIVES, lambda request: request["in_use"]["order"].pop(), "invalid-body", "/in_use/order"),
    ],
)
def test_what_does_not_hold_together_is_refused_at_its_place(
    shared: Service, path: str, change: Change, called: str, pointer: str
) -> None:
    refused = shared.client.post(path, json=asked(path, change))
    assert problem(refused) == called
    assert refused.json()["errors"][0]["pointer"] == pointer


def test_more_than_the_service_takes_on_is_refused_with_what_to_ask_for(shared: Service) -> None:
    def endless(request: JsonObject) -> None:
        request["horizon"] = 1e12
        for stream in request["streams"]:
            stream["remote_steps"] = 9 * 10**15

    refused = shared.client.post(SHARDS, json=asked(SHARDS, endless))
    assert problem(refused) == "invalid-body"
    assert "ask for a shorter horizon" in refused.json()["errors"][0]["detail"]


@pytest.mark.parametrize("path", ANSWERS)
def test_a_worker_answers_as_the_service_does(shared: Service, path: str) -> None:
    decided = WORKERS[path](json.dumps(asked(path)).encode())
    assert decided.status == 200
    assert decided.body == shared.client.post(path, json=asked(path)).content


def test_the_metrics_tell_of_transfers(shared: Service) -> None:
    for path in ANSWERS:
        shared.client.post(path, json=asked(path)).raise_for_status()
    page = shared.client.get("/metrics").text
    assert 'kuayu_collective_choices_total{collective="low_communication",switched="false"}' in page
    for operation in ("planShards", "chooseCollective"):
        assert f'kuayu_decision_seconds_count{{operation="{operation}"}}' in page
