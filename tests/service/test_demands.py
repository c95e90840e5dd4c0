"""Demands of trainings, layouts and sizes of tasks over HTTP: pure, and closed to what does not hold together."""

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
from kuayu_schemas.models import LayoutRequest, SizingRequest, TrainingDemandRequest

EXAMPLES = Path(__file__).parents[2] / "spec" / "examples"
DEMANDS, LAYOUTS, SIZES = "/v1/training-demands", "/v1/layouts", "/v1/task-sizes"
ANSWERS = {DEMANDS: "TrainingDemandReport", LAYOUTS: "LayoutReport", SIZES: "SizingReport"}
FILES = {
    DEMANDS: "TrainingDemandRequest/valid/one-run-and-two-phases.json",
    LAYOUTS: "LayoutRequest/valid/on-64-accelerators.json",
    SIZES: "SizingRequest/valid/two-records-and-a-task.json",
}

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


def test_the_client_asks_for_all_three(shared: Service) -> None:
    with Client(shared.url) as client:
        (demand,) = client.training_demands(read(TrainingDemandRequest, asked(DEMANDS))).demands
        assert demand.fits
        assert demand.segments
        assert len(demand.phases or ()) == 2
        assert len(client.layouts(read(LayoutRequest, asked(LAYOUTS))).layouts) == 3
        assert [each.task for each in client.task_sizes(read(SizingRequest, asked(SIZES))).tasks] == ["t-1"]
        with pytest.raises(RefusedError) as refused:
            client.layouts(read(LayoutRequest, asked(LAYOUTS, lambda request: request.update(kind="h-2"))))
        assert refused.value.name == "unknown-reference"


def test_a_training_that_cannot_run_is_an_answer(shared: Service) -> None:
    body = asked(DEMANDS, lambda request: request["cases"][0]["strategy"].update(global_batch=100))
    (told,) = shared.client.post(DEMANDS, json=body).raise_for_status().json()["demands"]
    assert not told["fits"]
    assert told["obstacles"]


@pytest.mark.parametrize(
    ("path", "change", "kind", "pointer"),
    [
        (DEMANDS, lambda request: request["cases"][0].update(hardware="x"), "unknown-reference", "/cases/0/hardware"),
        (DEMANDS, lambda request: request["runs"][0].update(hardware="x"), "unknown-reference", "/runs/0/hardware"),
        (LAYOUTS, lambda request: request.update(kind="x"), "unknown-reference", "/kind"),
        (DEMANDS, lambda request: request["cases"].append(request["cases"][0]), "invalid-body", "/cases/1/id"),
        (LAYOUTS, lambda request: request["hardware"].append(request["hardware"][0]), "invalid-body", "/hardware/1/id"),
        (SIZES, lambda request: request["tasks"].append(request["tasks"][0]), "invalid-body", "/tasks/1/id"),
        (
            DEMANDS,
            lambda request: request["cases"][0]["model"].update(experts=2, experts_per_token=4),
            "invalid-body",
            "/cases/0/model/experts_per_token",
        ),
        (LAYOUTS, lambda request: request["model"].update(layers=0), "invalid-body", "/model/layers"),
    ],
)
def test_what_does_not_hold_together_is_refused_at_its_place(
    shared: Service, path: str, change: Change, kind: str, pointer: str
) -> None:
    refused = shared.client.post(path, json=asked(path, change))
    assert problem(refused) == kind
    assert [place["pointer"] for place in refused.json()["errors"]] == [pointer]
    assert refused.status_code == 422


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (DEMANDS, lambda request: request["cases"][0].update(phases=[{"phase": "warm_up", "steps": 1}] * 100)),
        (LAYOUTS, lambda request: request.update(runs=asked(DEMANDS)["runs"] * 100)),
        (SIZES, lambda request: request["history"].extend(_kinds(request["history"][0], 100))),
    ],
)
def test_more_than_the_service_takes_on_is_refused_with_what_to_name_fewer_of(
    monkeypatch: pytest.MonkeyPatch, path: str, change: Change
) -> None:
    for limit in ("MAX_TRAININGS", "MAX_KINDS"):
        monkeypatch.setattr(computations, limit, 50)
    decide = {
        DEMANDS: computations.demand_trainings,
        LAYOUTS: computations.rank_layouts,
        SIZES: computations.size_tasks,
    }[path]
    refused = decide(json.dumps(asked(path, change)).encode())
    assert refused.status == 422
    assert "name fewer" in json.loads(refused.body)["detail"]
    assert decide(json.dumps(asked(path)).encode()).status == 200


def _kinds(record: JsonObject, number: int) -> list[JsonObject]:
    return [record | {"kind": f"kind-{place}"} for place in range(number)]


def test_the_metrics_tell_of_demands(shared: Service) -> None:
    for path in ANSWERS:
        shared.client.post(path, json=asked(path)).raise_for_status()
    page = shared.client.get("/metrics").text
    assert 'kuayu_training_demands_total{outcome="fits"}' in page
    assert 'kuayu_sized_tasks_total{outcome="' in page
    for operation in ("demandTrainings", "rankLayouts", "sizeTasks"):
        assert f'kuayu_decision_seconds_count{{operation="{operation}"}}' in page


@pytest.mark.parametrize("path", ANSWERS)
def test_only_json_is_taken(path: str, shared: Service) -> None:
    text, json_type = {"Content-Type": "text/plain"}, {"Content-Type": "application/json"}
    assert problem(shared.client.post(path, content=b"{}", headers=text)) == "unsupported-media-type"
    assert problem(shared.client.post(path, content=b"{", headers=json_type)) == "malformed-json"


def test_tenants_show_their_tokens(start_service: Callable[..., Service]) -> None:
    service = start_service("--token", "blue=one")
    assert problem(service.client.post(LAYOUTS, json=asked(LAYOUTS))) == "unauthorised"
    with service.as_tenant("one") as blue:
        assert blue.post(LAYOUTS, json=asked(LAYOUTS)).status_code == 200
