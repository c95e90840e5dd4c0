"""Backup plans and failover plans over HTTP: pure, and closed to what does not hold together."""

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
from kuayu_schemas.models import BackupRequest, FailoverRequest, RecoveryStrategy

EXAMPLES = Path(__file__).parents[2] / "spec" / "examples"
BACKUPS, FAILOVERS = "/v1/backup-plans", "/v1/failover-plans"
ANSWERS = {BACKUPS: "BackupPlan", FAILOVERS: "FailoverPlan"}
FILES = {
    BACKUPS: "BackupRequest/valid/two-domains.json",
    FAILOVERS: "FailoverRequest/valid/node-failed-and-domain-cut-off.json",
}
WORKERS = {BACKUPS: computations.plan_backups, FAILOVERS: computations.plan_failover}

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
        held = client.backup_plan(read(BackupRequest, asked(BACKUPS)))
        assert [(each.domain, each.spares) for each in held.pools] == [("d-east", 2), ("d-west", 1)]
        assert {(each.job, each.domain) for each in held.copies} >= {("j-1", "d-east"), ("j-1", "d-west")}
        plan = client.failover_plan(read(FailoverRequest, asked(FAILOVERS)))
        assert [each.strategy for each in plan.recoveries] == [RecoveryStrategy.replace, RecoveryStrategy.restore]
        assert [each.after for each in plan.recoveries] == [0.0, 42.5]
        twice = asked(FAILOVERS, lambda request: request["jobs"].append(request["jobs"][0]))
        with pytest.raises(RefusedError) as refused:
            client.failover_plan(read(FailoverRequest, twice))
        assert refused.value.name == "invalid-body"


@pytest.mark.parametrize(
    ("path", "change", "called", "pointer"),
    [
        (BACKUPS, lambda request: request["domains"][1].update(id="d-east"), "invalid-body", "/domains/1/id"),
        (BACKUPS, lambda request: request["stores"].append(request["stores"][0]), "invalid-body", "/stores/2/domain"),
        (BACKUPS, lambda request: request["links"].append(request["links"][0]), "invalid-body", "/links/2/target"),
        (BACKUPS, lambda request: request["jobs"][1].update(id="j-1"), "invalid-body", "/jobs/1/id"),
        (BACKUPS, lambda request: request["jobs"][1].update(domain="d"), "unknown-reference", "/jobs/1/domain"),
        (
            BACKUPS,
            lambda request: request["jobs"][1].update(least_replicas=2),
            "invalid-body",
            "/jobs/1/least_replicas",
        ),
        (FAILOVERS, lambda request: request["nodes"][8].update(id="n-1"), "invalid-body", "/nodes/8/id"),
        (FAILOVERS, lambda request: request["stores"].pop(), "unknown-reference", "/jobs/0/copies/1/domain"),
        (FAILOVERS, lambda request: request["nodes"][0].update(fenced_in=1), "invalid-body", "/nodes/0/fenced_in"),
        (FAILOVERS, lambda request: request["nodes"][0].pop("replica"), "invalid-body", "/nodes/0/job"),
        (FAILOVERS, lambda request: request["nodes"][0].update(domain="d-west"), "invalid-body", "/nodes/0/domain"),
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
        link, job = request["links"][0], request["jobs"][0]
        request["links"] = [link | {"target": f"d-{number}"} for number in range(400)]
        request["jobs"] = [job | {"id": f"j-{number}"} for number in range(1000)]

    refused = shared.client.post(BACKUPS, json=asked(BACKUPS, endless))
    assert problem(refused) == "invalid-body"
    assert "ask for fewer jobs at once" in refused.json()["errors"][0]["detail"]


@pytest.mark.parametrize("path", ANSWERS)
def test_a_worker_answers_as_the_service_does(shared: Service, path: str) -> None:
    decided = WORKERS[path](json.dumps(asked(path)).encode())
    assert decided.status == 200
    assert decided.body == shared.client.post(path, json=asked(path)).content


def test_the_metrics_tell_of_recoveries(shared: Service) -> None:
    for path in ANSWERS:
        shared.client.post(path, json=asked(path)).raise_for_status()
    page = shared.client.get("/metrics").text
    for strategy in ("replace", "restore"):
        assert f'kuayu_recoveries_total{{strategy="{strategy}"}}' in page
    for operation in ("planBackups", "planFailover"):
        assert f'kuayu_decision_seconds_count{{operation="{operation}"}}' in page
