"""Small cases of demand and of sizes, worked by hand, told to the minimal server over HTTP."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from minimal_server.client import SCHEMAS, Client, start, stop
from minimal_server.validator import Validator

REVISION = {"epoch": "world", "number": 7}
MODEL = {"layers": 2, "hidden": 8, "heads": 2, "sequence": 4, "vocabulary": 16}
STRATEGY = {"data": 2, "tensor": 1, "pipeline": 1, "micro_batch": 1, "global_batch": 4}
HARDWARE = {
    "id": "fast",
    "peak_matrix_throughput": {"bf16": 1e15},
    "accelerator_memory_capacity": 8e10,
    "accelerator_memory_bandwidth": 3e12,
    "devices_per_node": 8,
    "node_bandwidth": 4e11,
    "domain_bandwidth": 5e10,
}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    client = start()
    yield client
    stop(client)


def asked(client: Client, path: str, report: str, body: Any) -> Any:
    """An answer, which the published schema takes for what it should be."""
    status, answer, _ = client.ask("POST", path, {"revision": REVISION, **body})
    assert status == 200, answer
    validator = Validator(json.loads((SCHEMAS / "kuayu.schema.json").read_text("utf-8")))
    assert validator.errors(report, answer) == []
    assert answer["revision"] == REVISION
    return answer


def demand(client: Client, model: Any = MODEL, strategy: Any = STRATEGY, **members: Any) -> Any:
    case = {"id": "one", "model": model, "strategy": strategy, "hardware": "fast", **members}
    body = {"hardware": [HARDWARE], "cases": [case], "profiles": True}
    return asked(client, "/v1/training-demands", "TrainingDemandReport", body)["demands"][0]


def test_parameters_and_work_are_counted_by_hand(client: Client) -> None:
    """A layer has 4·8·8 of attention and 2·8·32 behind it; a token looks at 4 others, twice, with 8 numbers."""
    told = demand(client)
    layers, table = 2 * (4 * 64 + 2 * 256), 16 * 8
    assert told["parameters"] == told["active_parameters"] == layers + table
    tokens, scores = 4 * 4, 2 * 4 * 16
    assert told["work"] == 6 * tokens * (layers + table + scores)
    again = demand(client, strategy={**STRATEGY, "recomputation": "full"})
    assert again["executed_work"] - again["work"] == 2 * tokens * (layers + scores)
    assert told["devices"] == 2


def test_experts_and_compressed_attention_are_counted_by_hand(client: Client) -> None:
    sparse = {**MODEL, "experts": 4, "experts_per_token": 2, "gated": True, "tied": False, "dense_layers": 1}
    told = demand(client, sparse)
    expert, router, table = 3 * 8 * 32, 8 * 4, 16 * 8
    assert told["parameters"] == 2 * 256 + expert + 4 * expert + router + 2 * table
    assert told["active_parameters"] == 2 * 256 + expert + 2 * expert + router + table
    latent = {**MODEL, "latent": {"query_rank": 3, "value_rank": 5, "rotary_width": 2}}
    attention = 3 * (8 + 2 * (4 + 2)) + 8 * (5 + 2) + 5 * 2 * 2 * 4 + 8 * 8
    assert demand(client, latent)["parameters"] == 2 * (attention + 2 * 256) + table


def test_parts_make_the_whole(client: Client) -> None:
    strategy = {**STRATEGY, "tensor": 2, "pipeline": 2, "global_batch": 16}
    told = demand(client, strategy=strategy)
    assert sum(part["size"] for part in told["memory_parts"]) == pytest.approx(told["memory"])
    ends = [part["begin"] + part["duration"] for part in told["segments"]]
    assert [part["begin"] for part in told["segments"]] == pytest.approx([0.0, *ends[:-1]])
    assert ends[-1] == pytest.approx(told["step_time"]["expected"])
    assert {row["dimension"] for row in told["traffic"]} == {"data", "tensor", "pipeline"}
    carried = sum(flow["flow"] * part["duration"] for part in told["segments"] for flow in part["traffic"])
    assert carried == pytest.approx(sum(row["size"] for row in told["traffic"]))


def test_what_cannot_run_is_an_answer(client: Client) -> None:
    told = demand(client, strategy={**STRATEGY, "tensor": 4, "global_batch": 3})
    assert not told["fits"]
    assert len(told["obstacles"]) == 2


def test_efficiency_is_the_median_of_what_was_measured(client: Client) -> None:
    large = {**MODEL, "layers": 24, "hidden": 2048, "heads": 16, "sequence": 2048, "vocabulary": 32000}
    case = {"id": "one", "model": large, "strategy": STRATEGY, "hardware": "fast"}
    run = {"source": "paper", "model": large, "strategy": STRATEGY, "hardware": "fast"}
    runs = [{**run, "step_time": seconds} for seconds in (0.9, 0.5, 0.7)]
    body = {"hardware": [HARDWARE], "cases": [case], "runs": runs, "coverage": 0.8}
    report = asked(client, "/v1/training-demands", "TrainingDemandReport", body)
    assert report["method"]["runs"] == 3
    time = report["demands"][0]["step_time"]
    assert time["expected"] == pytest.approx(0.7, rel=1e-3)
    assert time["low"] < 0.7 < time["high"]
    assert time["coverage"] == 0.8


def test_a_phase_uses_as_many_replicas_as_have_micro_batches(client: Client) -> None:
    strategy = {**STRATEGY, "data": 8, "micro_batch": 2, "global_batch": 32}
    phases = [
        {"phase": "warm_up", "steps": 10, "global_batch": 7},
        {"phase": "fast_convergence", "steps": 20},
        {"phase": "stable_convergence", "steps": 30, "global_batch": 1},
    ]
    told = demand(client, strategy=strategy, phases=phases)
    assert [row["devices"] for row in told["phases"]] == [3, 8, 1]
    assert told["phases"][1]["step_time"] == pytest.approx(told["step_time"]["expected"])
    assert told["phases"][1]["work"] == pytest.approx(20 * told["work"])
    assert [row["duration"] / row["step_time"] for row in told["phases"]] == pytest.approx([10, 20, 30])


def test_layouts_are_the_quickest_that_can_run_and_are_what_their_demand_says(client: Client) -> None:
    body = {"hardware": [HARDWARE], "model": MODEL, "kind": "fast", "devices": 4, "global_batch": 8}
    report = asked(client, "/v1/layouts", "LayoutReport", body)
    times = [row["step_time"]["expected"] for row in report["layouts"]]
    assert times == sorted(times)
    assert len(times) == min(10, report["feasible"])
    best = report["layouts"][0]
    told = demand(client, strategy=best["strategy"])
    assert (told["step_time"]["expected"], told["memory"]) == (times[0], best["memory"])
    tight = {**body, "hardware": [{**HARDWARE, "accelerator_memory_capacity": 1e6}]}
    assert asked(client, "/v1/layouts", "LayoutReport", tight)["layouts"] == []


def test_tasks_are_given_what_their_kind_needed_and_no_more_than_they_ask_for(client: Client) -> None:
    given = {"devices": 1.0, "cores": 10.0, "memory": 1e10}
    records = [
        {
            "kind": "seen",
            "requested": given,
            "used": {"devices": 0.5, "cores": 2.0 + number / 100, "memory": 2e9},
            "peak": {"devices": 1.0, "cores": 9.0, "memory": 4e9},
            "duration": 100.0,
        }
        for number in range(40)
    ]
    tasks = [{"id": "a", "kind": "seen", "requested": given}, {"id": "b", "kind": "new", "requested": given}]
    body = {"history": records, "tasks": tasks, "slow_down": 0.0}
    report = asked(client, "/v1/task-sizes", "SizingReport", body)
    size, same = report["tasks"]
    assert size["recommended"] == {
        "devices": pytest.approx(0.55),
        "cores": pytest.approx(1.1 * 2.39),
        "memory": pytest.approx(1.05 * 4e9),
    }
    assert size["slow_down"] == 0.0
    assert size["duration"]["expected"] == 100.0
    assert same["recommended"] == given
    assert "duration" not in same
    assert [(row["kind"], row["records"]) for row in report["importance"]] == [("seen", 40)]


def test_importance_is_of_what_durations_follow_from(client: Client) -> None:
    given = {"devices": 1.0, "cores": 10.0, "memory": 1e10}
    records = [
        {
            "kind": "k",
            "requested": given,
            "used": {"devices": 0.1 + number * 7 % 11 / 20, "cores": 1.0 + number * 5 % 13, "memory": 1e9},
            "duration": 1000.0 / (1.0 + number * 5 % 13),
        }
        for number in range(100)
    ]
    body = {"history": records, "tasks": [{"id": "a", "kind": "k", "requested": given}]}
    (row,) = asked(client, "/v1/task-sizes", "SizingReport", body)["importance"]
    assert row["cores"] > 0.5
    assert abs(row["devices"]) < 0.1
    assert row["error"] < 0.05


@pytest.mark.parametrize(
    ("changes", "problem", "pointer"),
    [
        ({"hardware": [HARDWARE, HARDWARE]}, "invalid-body", "/hardware/1/id"),
        ({"cases": [{"id": "one", "hardware": "slow"}]}, "unknown-reference", "/cases/0/hardware"),
        ({"cases": [{"id": "one"}, {"id": "one"}]}, "invalid-body", "/cases/1/id"),
        (
            {"cases": [{"id": "one", "model": {"experts_per_token": 2}}]},
            "invalid-body",
            "/cases/0/model/experts_per_token",
        ),
    ],
)
def test_names_are_given_once_and_refer_to_what_is_there(
    client: Client, changes: Any, problem: str, pointer: str
) -> None:
    case = {"model": MODEL, "strategy": STRATEGY, "hardware": "fast"}
    cases = [
        {**case, **row, "model": {**MODEL, **row.get("model", {})}} for row in changes.get("cases", [{"id": "one"}])
    ]
    body = {"revision": REVISION, "hardware": changes.get("hardware", [HARDWARE]), "cases": cases}
    status, answer, _ = client.ask("POST", "/v1/training-demands", body)
    assert (status, answer["type"]) == (422, f"urn:kuayu:problem:{problem}")
    assert [error["pointer"] for error in answer["errors"]] == [pointer]
