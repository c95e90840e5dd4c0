"""What scheduling asks of a job, and how far a job has come."""

from typing import Any

import pytest
from jobs.federations import NOW, Json, before, job, placed, running

from kuayu.demand.demand_report import demand
from kuayu.jobs import progress
from kuayu.jobs.progress import INTERRUPTED, futile_starts, interrupted_at, rests_until, was_refused
from kuayu.jobs.specification import CONFINED, UNKNOWN_DURATION, contradiction, duration_of, is_guessed, specifications
from kuayu_schemas import schema

MODEL = {"layers": 24, "hidden": 2048, "heads": 16, "sequence": 2048, "vocabulary": 50000}
STRATEGY = {"data": 8, "tensor": 1, "pipeline": 1, "micro_batch": 1, "global_batch": 64}


def training(steps: int = 1000, **model: int) -> Json:
    return {"model": MODEL | model, "strategy": dict(STRATEGY), "steps": steps}


def untold(name: str = "j", count: int = 8, **members: Any) -> Json:
    """A job that says nothing of how long it takes."""
    told = job(name, count, **members)
    del told["duration"]
    return told


def history(*changes: tuple[str, float, str]) -> Json:
    """A job with these changes of state: state, seconds ago, reason."""
    listed = [{"state": state, "at": before(age), "attempt": 1, "reason": why} for state, age, why in changes]
    return job("j") | {"transitions": listed, "state": changes[-1][0], "reason": changes[-1][2]}


def test_a_specification_is_what_was_submitted_and_valid() -> None:
    told = job(
        "j",
        kind="fine_tuning",
        priority=3,
        deadline="2026-02-01T00:00:00Z",
        device_kinds=["gpu"],
        memory_per_device=40e9,
        nodes={"within": "switch"},
        links={"bandwidth": 1e9},
        split_modes=["none", "synchronous"],
        communication={"step_time": 1.0, "exchange": 1e9, "boundary": 1e8, "checkpoint_size": 1e9},
        data=[{"id": "corpus", "size": 1e12, "domains": ["here", "gone"]}],
    )
    [spec] = specifications([told], {"here", "there"})
    assert schema.errors("JobSpec", spec) == []
    same = ("id", "kind", "priority", "deadline", "device_kinds", "memory_per_device", "nodes", "links", "split_modes")
    assert {name: spec[name] for name in same} == {name: told[name] for name in same}
    assert spec["data"] == [{"id": "corpus", "size": 1e12, "domains": ["here"]}]
    assert "workload" not in spec


def test_a_job_that_says_nothing_is_not_spread_and_takes_as_long_as_anything() -> None:
    told = untold()
    [spec] = specifications([told], set())
    assert spec["split_modes"] == ["none"]
    assert spec["duration"] == UNKNOWN_DURATION
    assert is_guessed(told)


def test_the_duration_of_a_training_follows_from_the_demand_law() -> None:
    """Twice the steps take twice as long, a larger model longer, and half the devices twice as long."""
    once = duration_of(untold(training=training()))
    assert not is_guessed(untold(training=training()))
    assert schema.errors("Estimate", once) == []
    assert once["low"] < once["expected"] < once["high"]
    assert duration_of(untold(training=training(2000)))["expected"] == pytest.approx(2 * once["expected"])
    assert duration_of(untold(training=training(hidden=4096)))["expected"] > 2 * once["expected"]
    assert duration_of(untold(count=4, training=training()))["expected"] == pytest.approx(2 * once["expected"])


def test_that_duration_is_the_laws_own_on_an_a100() -> None:
    hardware = {
        "id": "a100",
        "peak_matrix_throughput": {"bf16": 312e12},
        "sustained_matrix_throughput": {"bf16": 312e12 * 0.869},
        "accelerator_memory_capacity": 85.1e9,
        "accelerator_memory_bandwidth": 2039e9,
        "multiprocessors": 108,
        "devices_per_node": 8,
        "node_bandwidth": 300e9,
        "domain_bandwidth": 25e9,
    }
    case = {"id": "c", "model": MODEL, "strategy": STRATEGY, "hardware": "a100"}
    report = demand({"revision": {"epoch": "e", "number": 0}, "hardware": [hardware], "cases": [case]})
    [told] = report["demands"]
    assert duration_of(untold(training=training(10)))["expected"] == pytest.approx(10 * told["step_time"]["expected"])


def test_a_training_that_the_law_refuses_is_guessed_and_harms_no_other() -> None:
    impossible = training()
    impossible["model"]["key_value_heads"] = 5  # does not divide the 16 heads
    specs = specifications(
        [untold("a", training=training(7)), untold("b", training=impossible), untold("c", training=training(9))], set()
    )
    assert specs[1]["duration"] == UNKNOWN_DURATION
    assert specs[0]["duration"]["expected"] / 7 == pytest.approx(specs[2]["duration"]["expected"] / 9)


def test_a_job_that_names_domains_reads_something_that_may_not_leave_them() -> None:
    named = [job("a", domains=["x", "y"]), job("b", domains=["y", "x"]), job("c", domains=["z", "nowhere"])]
    first, second, third = specifications(named, {"x", "y", "z"})
    [artefact] = first["data"]
    assert artefact["pinned"] is True
    assert artefact["domains"] == ["x", "y"]
    assert artefact["id"].startswith(CONFINED)
    assert second["data"] == first["data"]
    assert third["data"][0]["domains"] == ["z"]
    assert third["data"][0]["id"] != artefact["id"]  # or a copy that comes for one would set the other free


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        ({"minimum": 8, "maximum": 4}, "at least 8"),
        ({"minimum": 2, "maximum": 4, "requested": 8}, "8 devices"),
        ({"minimum": 0, "maximum": 0}, "no device"),
        ({"minimum": 0, "maximum": 8, "requested": 0}, "no device"),
    ],
)
def test_devices_that_contradict_each_other_are_found(devices: Json, words: str) -> None:
    assert words in (contradiction(job("j", devices=devices)) or "")
    assert contradiction(job("j")) is None


@pytest.mark.parametrize(("low", "high"), [(3601, 7200), (10, 3599), (7200, 10)])
def test_a_duration_outside_of_its_interval_is_found(low: float, high: float) -> None:
    duration = {"expected": 3600.0, "low": low, "high": high, "coverage": 0.9}
    assert "between both ends" in (contradiction(job("j", duration=duration)) or "")


def test_work_done_is_the_share_of_the_steps_and_of_one_that_waits_what_a_checkpoint_holds() -> None:
    [spec] = specifications([job("j")], set())
    told = job("j", training=training(1000), step=500, checkpoint_step=400, checkpoint="file:///ckpt")
    assert progress.work_of(spec) == 8 * 3600
    assert progress.done_waiting(told, spec) == pytest.approx(0.4 * 8 * 3600)
    assert progress.done_running(told, spec, NOW, 8.0) == pytest.approx(0.5 * 8 * 3600)
    del told["checkpoint"]  # every attempt begins anew
    assert progress.done_waiting(told, spec) == 0.0


def test_a_job_that_tells_no_steps_is_taken_to_go_as_on_paper_from_when_it_ran() -> None:
    [spec] = specifications([job("j")], set())
    told = running("j", placed(("x", "a", {"n": 8})), since=100.0)
    assert progress.done_running(told, spec, NOW, 8.0) == pytest.approx(800.0)
    assert progress.rate_running(told, spec, None, 8.0) == 8.0
    assert progress.rate_running(told | {"step": 3}, spec, None, 8.0) == 8.0  # it does not say how many it takes
    assert progress.rate_running(told | {"step": 3, "training": {"steps": 10}}, spec, None, 8.0) is None
    stepping = told | {"step": 30, "training": training(1000)}
    assert progress.rate_running(stepping, spec, 0.5, 8.0) == pytest.approx(0.5 / 1000 * 8 * 3600)


def test_a_job_is_tried_again_at_once_and_then_more_and_more_seldom() -> None:
    first = history(
        ("queued", 100, ""), ("starting", 90, ""), ("running", 80, ""), ("restarting", 70, ""), ("queued", 60, "")
    )
    assert futile_starts(first) == 1
    assert rests_until(first) is None
    cycle = [("starting", "x"), ("queued", "its devices could not be had")]
    changes = [("queued", 100.0, ""), *((state, 50.0, why) for state, why in cycle * 4)]
    again = history(*changes)
    assert futile_starts(again) == 4
    assert rests_until(again) == progress.instant_after(before(50.0), 8.0)


def test_having_run_for_a_minute_wipes_what_was_before() -> None:
    told = history(
        *(("queued", 500, ""), ("starting", 490, ""), ("queued", 480, ""), ("starting", 470, "")),
        *(("queued", 460, ""), ("starting", 450, ""), ("running", 440, ""), ("restarting", 60, ""), ("queued", 50, "")),
    )
    assert futile_starts(told) == 1


def test_who_was_interrupted_by_a_decision_does_not_rest_for_it_and_it_is_known_when_that_was() -> None:
    told = history(
        *(("queued", 100, ""), ("starting", 95, ""), ("running", 90, "")),
        *(("restarting", 80, f"{INTERRUPTED}it makes room"), ("queued", 70, f"{INTERRUPTED}it makes room; it waits")),
    )
    assert futile_starts(told) == 0
    assert interrupted_at(told) == before(80)
    assert interrupted_at(job("j")) is None


def test_who_came_back_from_starting_lately_was_refused() -> None:
    told = history(("queued", 100, ""), ("starting", 30, ""), ("queued", 20, "its devices could not be had"))
    assert was_refused(told, NOW, 60.0)
    assert not was_refused(told, NOW, 10.0)
    assert not was_refused(job("j"), NOW, 60.0)
