"""Compute indices and probe plans over HTTP: pure, closed to wrong names, and out of the way of ingest."""

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from service.conftest import PATIENCE, JsonObject, Service, StartService, instant, problem

from kuayu.client import Client, RefusedError
from kuayu.service.concurrency import WorkerPool
from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException
from kuayu_schemas import schema
from kuayu_schemas.models import Corpus, CorpusCell, IndexRequest, ProbePlanRequest, Revision

REVISION = {"epoch": "state-of-yesterday", "number": 17}
INDICES, PLANS = "/v1/compute-indices", "/v1/probe-plans"

Change = Callable[[JsonObject], object]


def make_corpus(devices: int = 5, tasks: int = 4, left_out: int = 2) -> JsonObject:
    """Devices that differ in matrix work and memory, and tasks that ask for both in different shares.

    The last device was measured on all tasks but so many, the others on all.
    """
    matrix = [1e14 * (1 + number) for number in range(devices)]
    memory = [1e12 * (1 + number * number % 7 / 3) for number in range(devices)]
    measured = [
        (device, task)
        for device in range(devices)
        for task in range(tasks)
        if device < devices - 1 or task < tasks - left_out
    ]
    return {
        "devices": [
            {
                "id": f"device-{number}",
                "stack": f"driver {number}",
                "measured_at": "2025-06-01T00:00:00.000Z",
                "peak_matrix_throughput": {"fp16": matrix[number], "fp32": matrix[number] / 8},
                "accelerator_memory_bandwidth": memory[number],
                "accelerator_memory_capacity": 8e10,
                "power": 300 + 50 * number,
            }
            for number in range(devices)
        ],
        "tasks": [{"id": f"task-{number}", "precisions": ["fp16", "fp32"]} for number in range(tasks)],
        "measurements": [
            {
                "device": f"device-{device}",
                "task": f"task-{task}",
                "throughput": 1e3 / ((1 + task) * 1e14 / matrix[device] + (tasks - task) * 1e12 / memory[device]),
            }
            for device, task in measured
        ],
    }


def index_request(**members: Any) -> JsonObject:
    return {"revision": REVISION, "corpus": make_corpus(), "reference": "device-0", **members}


def plan_request(**members: Any) -> JsonObject:
    cells = [{"device": "device-4", "task": f"task-{number}"} for number in (2, 3)]
    return {
        "revision": REVISION,
        "corpus": make_corpus(),
        "candidates": cells,
        "targets": cells,
        "probes": 2,
        **members,
    }


REQUESTS = {INDICES: index_request, PLANS: plan_request}


def answered(service: Service, path: str, request: JsonObject) -> JsonObject:
    body: JsonObject = service.client.post(path, json=request).raise_for_status().json()
    return body


def throughput(corpus: JsonObject, device: str, task: str) -> float:
    return next(
        float(each["throughput"]) for each in corpus["measurements"] if (each["device"], each["task"]) == (device, task)
    )


def test_the_index_of_what_was_measured_is_the_ratio_of_throughputs(shared: Service) -> None:
    request = index_request(explain=True)
    report = answered(shared, INDICES, request)
    assert schema.errors("IndexReport", report) == []
    assert report["revision"] == REVISION
    assert [(each["device"], each["task"]) for each in report["indices"]] == [
        (f"device-{device}", f"task-{task}") for device in range(5) for task in range(4)
    ]
    measured = [each for each in report["indices"] if each["basis"] == "measured"]
    assert len(measured) == 18
    for each in measured:
        mine, other = (throughput(request["corpus"], device, each["task"]) for device in (each["device"], "device-0"))
        assert each["value"] == pytest.approx(mine / other)
    assert all(each["stack"] == each["device"].replace("device-", "driver ") for each in report["indices"])
    assert all("explanation" in each for each in report["indices"])


def test_only_what_is_asked_for_is_told_in_that_order(shared: Service) -> None:
    group = {"id": "node", "members": [{"device": "device-1", "count": 8}]}
    request = index_request(devices=["device-3", "device-1"], tasks=["task-2"], groups=[group])
    report = answered(shared, INDICES, request)
    assert [each["device"] for each in report["indices"]] == ["device-3", "device-1"]
    assert all("explanation" not in each for each in report["indices"])
    [whole] = report["groups"]
    assert (whole["group"], whole["task"], whole["devices"]) == ("node", "task-2", 8)
    assert whole["independent"] == pytest.approx(8 * report["indices"][1]["value"])


def test_a_plan_names_candidates_and_gains_by_each(shared: Service) -> None:
    request = plan_request()
    plan = answered(shared, PLANS, request)
    assert schema.errors("ProbePlan", plan) == []
    assert plan["revision"] == REVISION
    cells = [{"device": probe["device"], "task": probe["task"]} for probe in plan["probes"]]
    assert 1 <= len(cells) <= 2
    assert all(cell in request["candidates"] for cell in cells)
    assert plan["probes"][-1]["half_width"] <= plan["without"]


def pointers(refused: httpx.Response) -> set[str]:
    body = refused.json()
    assert schema.errors("Problem", body) == []
    assert all(place["detail"] for place in body["errors"])
    return {place["pointer"] for place in body["errors"]}


@pytest.mark.parametrize(
    ("path", "change", "places"),
    [
        (INDICES, lambda asked: asked.update(reference="nobody"), {"/reference"}),
        (
            INDICES,
            lambda asked: asked.update(devices=["device-0", "nobody"], tasks=["nothing", "task-0"]),
            {"/devices/1", "/tasks/0"},
        ),
        (
            INDICES,
            lambda asked: asked["corpus"]["measurements"][3].update(device="nobody", task="nothing"),
            {"/corpus/measurements/3/device", "/corpus/measurements/3/task"},
        ),
        (
            INDICES,
            lambda asked: asked.update(
                groups=[
                    {"id": "a", "members": [{"group": "b", "count": 1}, {"device": "nobody", "count": 1}]},
                    {"id": "b", "members": [{"device": "device-0", "count": 1}]},
                ]
            ),
            {"/groups/0/members/0/group", "/groups/0/members/1/device"},
        ),
        (
            PLANS,
            lambda asked: asked.update(
                candidates=[{"device": "device-4", "task": "nothing"}], targets=[{"device": "nobody", "task": "task-0"}]
            ),
            {"/candidates/0/task", "/targets/0/device"},
        ),
    ],
)
def test_every_name_that_the_corpus_does_not_hold_is_pointed_to(
    shared: Service, path: str, change: Change, places: set[str]
) -> None:
    request = REQUESTS[path]()
    change(request)
    refused = shared.client.post(path, json=request)
    assert problem(refused) == "unknown-reference"
    assert pointers(refused) == places


@pytest.mark.parametrize(
    ("path", "change", "place"),
    [
        (INDICES, lambda asked: asked["corpus"]["devices"].append(asked["corpus"]["devices"][0]), "/corpus/devices/5"),
        (PLANS, lambda asked: asked["corpus"]["tasks"].insert(1, asked["corpus"]["tasks"][0]), "/corpus/tasks/1"),
        (
            INDICES,
            lambda asked: asked.update(groups=[{"id": "a", "members": [{"device": "device-0", "count": 1}]}] * 2),
            "/groups/1",
        ),
    ],
)
def test_a_name_that_stands_twice_is_pointed_to(shared: Service, path: str, change: Change, place: str) -> None:
    request = REQUESTS[path]()
    change(request)
    refused = shared.client.post(path, json=request)
    assert problem(refused) == "invalid-body"
    assert {pointer.removesuffix("/id") for pointer in pointers(refused)} == {place}


@pytest.mark.parametrize("path", REQUESTS)
def test_bodies_are_read_as_strictly_as_elsewhere(shared: Service, path: str) -> None:
    post = partial(shared.client.post, path)
    request = REQUESTS[path]()
    broken = shared.client.post(path, json=request | {"since": 1, "revision": {"epoch": "e", "number": -1}})
    assert problem(broken) == "invalid-body"
    assert pointers(broken) == {"/since", "/revision/number"}
    no_such_day = deepcopy(request)
    no_such_day["corpus"]["devices"][1]["measured_at"] = "2025-02-30T00:00:00Z"
    assert pointers(post(json=no_such_day)) == {"/corpus/devices/1/measured_at"}
    json_type = {"Content-Type": "application/json"}
    assert problem(post(content=b'{"revision": 1, "revision": 1}', headers=json_type)) == "malformed-json"
    assert problem(post(content=b"{", headers=json_type)) == "malformed-json"
    assert problem(post(content=b"{}", headers={"Content-Type": "text/plain"})) == "unsupported-media-type"
    assert problem(post(content=b" " * (16 * 1024 * 1024 + 1), headers=json_type)) == "payload-too-large"
    assert problem(post(json=request, params={"fast": "1"})) == "invalid-parameter"
    assert shared.client.get(path).headers["Allow"] == "POST"


def test_an_answer_without_bounds_is_not_begun(shared: Service) -> None:
    refused = shared.client.post(INDICES, json=index_request(devices=["device-0"] * 25_001))
    assert problem(refused) == "invalid-body"
    assert "100004 indices" in refused.json()["detail"]


def spread_over(devices: int, tasks: int) -> JsonObject:
    """A corpus in which every device was measured on every task, and in part twice."""
    pairs = [(device, task) for device in range(devices) for task in range(tasks)]
    return {
        "devices": [{"id": f"device-{number}", "stack": "s"} for number in range(devices)],
        "tasks": [{"id": f"task-{number}", "precisions": ["fp32"]} for number in range(tasks)],
        "measurements": [
            {"device": f"device-{device}", "task": f"task-{task}", "throughput": 1.0}
            for device, task in [*pairs, pairs[0]]
        ],
    }


@pytest.mark.parametrize(
    ("path", "members", "words"),
    [
        (INDICES, {"corpus": spread_over(1, 201)}, "201 measured tasks, where 200 are the most"),
        (PLANS, {"corpus": spread_over(1, 201)}, "201 measured tasks"),
        (INDICES, {"corpus": spread_over(201, 100), "tasks": ["task-0"]}, "20100 measured pairs of device and task"),
        (
            INDICES,
            {
                "tasks": ["task-0"] * 501,
                "groups": [
                    {"id": f"g-{number}", "members": [{"device": "device-0", "count": 1}] * 1000} for number in range(2)
                ],
            },
            "1002000 members of groups",
        ),
        (
            PLANS,
            {
                "candidates": [{"device": "device-4", "task": "task-2"}] * 1001,
                "targets": [{"device": "device-4", "task": "task-3"}] * 1000,
                "probes": 10,
            },
            "10010000 steps",
        ),
    ],
)
def test_work_without_bounds_is_not_begun(shared: Service, path: str, members: JsonObject, words: str) -> None:
    refused = shared.client.post(path, json=REQUESTS[path](**members))
    assert problem(refused) == "invalid-body"
    assert pointers(refused) == {""}
    assert words in refused.json()["detail"]


def test_without_a_token_nothing_is_computed(start_service: StartService, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("red=secret-of-red\n", encoding="utf-8")
    service = start_service("--token-file", str(tokens))
    for path, request in REQUESTS.items():
        assert problem(service.client.post(path, json=request())) == "unauthorised"
        assert problem(service.client.post(path, content=b"{")) == "unauthorised"
        with service.as_tenant("secret-of-red") as red:
            assert red.post(path, json=request()).status_code == 200


def test_another_service_at_another_time_answers_the_same(
    shared: Service, start_service: StartService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "20261121")
    other = start_service()
    asked = [(INDICES, index_request(explain=True)), (PLANS, plan_request()), (INDICES, index_request(coverage=0.5))]
    first = [answered(shared, *each) for each in asked]
    shared.register(node="in-between")
    assert [answered(shared, *each) for each in reversed(asked)] == first[::-1]
    assert [answered(other, *each) for each in reversed(asked)] == first[::-1]


def test_nothing_is_kept_of_a_request(shared: Service) -> None:
    before = shared.client.get("/v1/conformance").json()["revision"]
    answered(shared, INDICES, index_request())
    assert shared.client.get("/v1/conformance").json()["revision"] == before
    assert shared.client.get("/v1/nodes/device-0").status_code == 404


def test_samples_are_taken_while_indices_are_computed(shared: Service) -> None:
    shared.register(node="busy")
    request = index_request(corpus=make_corpus(devices=60, tasks=20), explain=True)
    expected = answered(shared, INDICES, request)

    def send(number: int) -> int:
        sample = {"subject": "busy", "subject_kind": "node", "observed_at": instant(-number), "power": number}
        return int(shared.send(sample).raise_for_status().json()["accepted"])

    with ThreadPoolExecutor(8) as threads:
        reports = [threads.submit(answered, shared, INDICES, request) for _ in range(6)]
        assert list(threads.map(send, range(40))) == [1] * 40
        assert all(report.result() == expected for report in reports)
    assert len(shared.samples("busy")) == 40


def test_the_metrics_tell_what_indices_rest_on(shared: Service) -> None:
    answered(shared, INDICES, index_request(tasks=["task-0"]))
    page = shared.client.get("/metrics").text
    assert 'kuayu_indices_total{basis="measured",outcome="given"}' in page
    assert 'kuayu_decision_seconds_count{operation="computeIndices"}' in page
    assert "kuayu_decisions_waiting 0.0" in page
    assert 'kuayu_requests_total{method="POST",route="/v1/compute-indices",status="200"}' in page


def test_too_many_at_once_are_turned_away_and_the_others_answered(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    metrics = Metrics()

    async def story() -> list[bytes]:
        decisions = WorkerPool(workers=1, max_waiting=1, metrics=metrics)
        try:
            # Whoever reads the gate waits until somebody opens it.
            asked = [asyncio.create_task(decisions.compute("x", Path.read_bytes, gate)) for _ in range(2)]
            await asyncio.sleep(0)
            assert b"kuayu_decisions_waiting 1.0" in metrics.page()
            with pytest.raises(ProblemException, match="overloaded") as refused:
                await decisions.compute("x", Path.read_bytes, gate)
            assert refused.value.retry_after
            answers = []
            for each in asked:
                await asyncio.to_thread(gate.write_bytes, b"decided")
                answers.append(await each)
            return answers
        finally:
            decisions.close()

    assert asyncio.run(story()) == [b"decided", b"decided"]
    assert b'kuayu_decision_seconds_count{operation="x"} 2.0' in metrics.page()


def test_who_leaves_is_counted_until_the_worker_is_done(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    metrics = Metrics()

    async def story() -> int:
        decisions = WorkerPool(workers=1, max_waiting=1, metrics=metrics)
        try:
            left = asyncio.create_task(decisions.compute("x", Path.read_bytes, gate))
            # The gate opens for us once the worker stands at it.
            with await asyncio.to_thread(gate.open, "wb"):
                left.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await left
                next_one = asyncio.create_task(decisions.compute("x", abs, -3))
                await asyncio.sleep(0)
                assert b"kuayu_decisions_waiting 1.0" in metrics.page()
                with pytest.raises(ProblemException, match="overloaded"):
                    await decisions.compute("x", abs, -4)
            return await next_one
        finally:
            decisions.close()

    assert asyncio.run(story()) == 3
    assert b"kuayu_decisions_waiting 0.0" in metrics.page()


def test_a_worker_that_dies_takes_one_request_with_it() -> None:
    async def story() -> int:
        decisions = WorkerPool(workers=2, max_waiting=1, metrics=Metrics())
        try:
            both = [asyncio.create_task(decisions.compute("x", time.sleep, 0.1)) for _ in range(2)]
            await asyncio.gather(*both)
            workers = [psutil.Process(each.pid) for each in multiprocessing.active_children()]
            assert len(workers) == 2
            with pytest.raises(ProblemException, match="overloaded") as refused:
                await decisions.compute("x", os.abort)
            assert refused.value.retry_after
            assert psutil.wait_procs(workers, timeout=PATIENCE)[1] == [], "the other belongs to nobody now"
            return await decisions.compute("x", abs, -3)
        finally:
            decisions.close()

    assert asyncio.run(story()) == 3


def test_a_service_that_ends_does_not_wait_for_its_workers() -> None:
    async def story() -> None:
        decisions = WorkerPool(workers=1, max_waiting=1, metrics=Metrics())
        await decisions.compute("x", abs, -3)
        asked = asyncio.create_task(decisions.compute("x", time.sleep, PATIENCE))
        await asyncio.sleep(0.2)
        decisions.close()
        with pytest.raises(ProblemException, match="overloaded"):
            await asked

    asyncio.run(story())


def test_workers_leave_it_to_the_service_when_to_stop() -> None:
    async def story() -> tuple[int, int]:
        decisions = WorkerPool(workers=1, max_waiting=1, metrics=Metrics())
        try:
            before = await decisions.compute("x", os.getpid)
            for stop in (signal.SIGINT, signal.SIGTERM):
                os.kill(before, stop)
            return before, await decisions.compute("x", os.getpid)
        finally:
            decisions.close()

    before, after = asyncio.run(story())
    assert before == after


@pytest.mark.parametrize("spawns", [True, False])
def test_workers_end_with_a_service_that_was_killed(start_service: StartService, spawns: bool) -> None:
    """Whether they are its own, or forked from what tests have prepared (``commands.WorkerContext``)."""
    service = start_service(spawns=spawns)
    before = set(psutil.Process().children(recursive=True))
    answered(service, INDICES, index_request())
    workers = set(psutil.Process().children(recursive=True)) - before
    assert workers
    service.stop(signal.SIGKILL)
    _, alive = psutil.wait_procs(list(workers), timeout=PATIENCE)
    assert alive == []


def test_the_client_asks_in_the_models_terms(shared: Service) -> None:
    corpus = Corpus.model_validate(make_corpus())
    revision = Revision(epoch="e", number=1)
    cell = CorpusCell(device="device-4", task="task-2")
    with Client(shared.url) as client:
        report = client.compute_indices(IndexRequest(revision=revision, corpus=corpus, reference="device-1"))
        assert all(each.value == pytest.approx(1) for each in report.indices if each.device == "device-1")
        plan = client.probe_plan(
            ProbePlanRequest(revision=revision, corpus=corpus, candidates=[cell], targets=[cell], probes=1)
        )
        assert (plan.probes[0].device, plan.probes[0].task) == ("device-4", "task-2")
        with pytest.raises(RefusedError) as refused:
            client.compute_indices(IndexRequest(revision=revision, corpus=corpus, reference="nobody"))
    assert refused.value.name == "unknown-reference"
    assert "/reference" in refused.value.cause
