"""Adjustments of running jobs over HTTP: pure, and closed to what does not hold together."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from service.conftest import JsonObject, Service, problem

from kuayu.client import Client, RefusedError
from kuayu.resilience import adjustment_planner
from kuayu.service import computations
from kuayu_schemas import schema
from kuayu_schemas.models import AdjustmentRequest, TriggerKind

EXAMPLES = Path(__file__).parents[2] / "spec" / "examples"
ADJUSTMENTS = "/v1/adjustments"
ANSWERS = {ADJUSTMENTS: "Adjustment"}
FILES = {ADJUSTMENTS: "AdjustmentRequest/valid/load-has-risen.json"}

Change = Callable[[JsonObject], object]


def asked(change: Change = lambda _: None) -> JsonObject:
    """The example of a request, changed."""
    request: JsonObject = json.loads((EXAMPLES / FILES[ADJUSTMENTS]).read_text("utf-8"))
    change(request)
    return request


def read(request: JsonObject) -> AdjustmentRequest:
    return AdjustmentRequest.model_validate_json(json.dumps(request))


def test_an_answer_keeps_to_the_schema_echoes_the_revision_and_is_given_again(shared: Service) -> None:
    first, again = (shared.client.post(ADJUSTMENTS, json=asked()).raise_for_status() for _ in range(2))
    assert schema.errors("Adjustment", first.json()) == []
    assert first.json()["revision"] == asked()["revision"]
    assert first.content == again.content
    assert first.headers["content-type"] == "application/json"


def test_the_client_asks_for_it(shared: Service) -> None:
    with Client(shared.url) as client:
        made = client.adjust(read(asked()))
        assert [(each.kind, each.domain, each.before, each.now) for each in made.triggers] == [
            (TriggerKind.load, "d-east", 0.4, 0.6)
        ]
        first, second = made.jobs
        assert [each.parts for each in first.changes] == [[38, 62]]
        assert first.expected_rate > 1.2 * first.rate
        assert (second.job, second.changes) == ("j-2", [])
        with pytest.raises(RefusedError) as refused:
            client.adjust(read(asked(lambda request: request["jobs"].append(request["jobs"][0]))))
        assert refused.value.name == "invalid-body"


@pytest.mark.parametrize(
    ("change", "called", "pointer"),
    [
        (lambda request: request["domains"].append(request["domains"][0]), "invalid-body", "/domains/2/id"),
        (lambda request: request["links"].append(request["links"][0]), "invalid-body", "/links/2/target"),
        (lambda request: request["links"].pop(), "invalid-body", "/jobs/0/shares/0/domain"),
        (lambda request: request["links"][0].update(target="d"), "unknown-reference", "/links/0/target"),
        (lambda request: request["jobs"][1].update(id="j-1"), "invalid-body", "/jobs/1/id"),
        (lambda request: request["jobs"][0].update(order=["d-east", "d"]), "unknown-reference", "/jobs/0/order/1"),
        (lambda request: request["jobs"][0].update(order=["d-east"]), "invalid-body", "/jobs/0/order"),
        (lambda request: request["jobs"][0].update(period=4), "invalid-body", "/jobs/0/period"),
        (
            lambda request: request["jobs"][1]["shares"][0].update(domain="d"),
            "unknown-reference",
            "/jobs/1/shares/0/domain",
        ),
        (
            lambda request: request["jobs"][0]["planned"][0].update(parts=[44, 57]),
            "invalid-body",
            "/jobs/0/planned/0/parts",
        ),
    ],
)
def test_what_does_not_hold_together_is_refused_at_its_place(
    shared: Service, change: Change, called: str, pointer: str
) -> None:
    refused = shared.client.post(ADJUSTMENTS, json=asked(change))
    assert problem(refused) == called
    assert refused.json()["errors"][0]["pointer"] == pointer


def test_more_than_the_service_takes_on_is_refused_with_what_to_ask_for(shared: Service) -> None:
    def endless(request: JsonObject) -> None:
        names = [f"d-{number}" for number in range(64)]
        job, link = request["jobs"][0], request["links"][0] | {"latencies": [0.02]}
        request["domains"] = [{"id": name, "level": 0, "loads": [0]} for name in names]
        request["links"] = [link | {"source": one, "target": other} for one in names for other in names if one != other]
        job |= {"shares": [job["shares"][0] | {"domain": name} for name in names], "order": names, "planned": []}
        request["jobs"] = [job | {"id": f"j-{number}"} for number in range(adjustment_planner.MAX_PAIRS // 64**2 + 1)]

    refused = shared.client.post(ADJUSTMENTS, json=asked(endless))
    assert problem(refused) == "invalid-body"
    assert "ask for fewer jobs at once" in refused.json()["errors"][0]["detail"]


def test_a_worker_answers_as_the_service_does(shared: Service) -> None:
    decided = computations.plan_adjustments(json.dumps(asked()).encode())
    assert decided.status == 200
    assert decided.body == shared.client.post(ADJUSTMENTS, json=asked()).content


def test_the_metrics_tell_of_what_has_changed(shared: Service) -> None:
    slower = asked(lambda request: request["links"][0].update(latencies=[0.09] * 6))
    for request in (asked(), slower):
        shared.client.post(ADJUSTMENTS, json=request).raise_for_status()
    page = shared.client.get("/metrics").text
    for kind in ("load", "latency"):
        assert f'kuayu_adjustments_total{{kind="{kind}"}}' in page
    assert 'kuayu_decision_seconds_count{operation="planAdjustments"}' in page
