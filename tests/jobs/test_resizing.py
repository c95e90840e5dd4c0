"""Running jobs that are given more devices, or fewer, from a snapshot to the step that follows."""

from dataclasses import replace
from typing import Any

import pytest
from jobs.federations import allocation, before, federation, job, link, node, placed, running

from kuayu.jobs.decisions import (
    BrokenInvariantError,
    JobStep,
    JobVerb,
    check,
    decide,
    record,
    replay,
)
from kuayu.jobs.federation import FederationSnapshot, scheduling_state
from kuayu.jobs.progress import INTERRUPTED, interrupted_at, work_of
from kuayu.jobs.specification import specifications

A = "nvidia-a100-sxm4-80gb"
LONG = {"expected": 360_000.0, "low": 300_000.0, "high": 420_000.0, "coverage": 0.8}
SHORT = {"expected": 600.0, "low": 500.0, "high": 720.0, "coverage": 0.8}


def steps_of(snapshot: FederationSnapshot) -> dict[str, JobStep]:
    return {step.job: step for step in decide(snapshot).steps}


def elastic(held: int, least: int = 1, most: int = 16, **members: Any) -> Any:
    """A job of days that runs on some devices of a node with eight, and has written a checkpoint."""
    told = {
        "devices": {"minimum": least, "maximum": most},
        "duration": LONG,
        "checkpoint": "file:///ckpt",
        "step": 120,
        "checkpoint_step": 100,
        **members,
    }
    return running("long", placed(("a", KIND, {"a1": held})), since=7200.0, **told)


def beside(entry: Any, *nodes: Any, **members: Any) -> FederationSnapshot:
    """A federation in which a job runs."""
    return federation(
        *(nodes or (node("a1", "a"),)),
        active=[entry],
        allocations=[allocation("long.1.1", "long", entry["placement"])],
        **members,
    )


KIND = next(iter(scheduling_state(federation(node("a1", "a"))).document["accelerators"]))["id"]


def test_a_job_is_grown_to_what_is_free_where_nobody_waits() -> None:
    step = steps_of(beside(elastic(4), node("a1", "a"), node("a2", "a")))["long"]
    assert step.verb is JobVerb.RESIZE
    assert step.resize == {"devices": 16, "before": 4}
    assert step.reason.startswith(f"{INTERRUPTED}grown to 16 of at most 16. ")


def test_a_job_is_grown_to_its_most_and_by_its_step() -> None:
    most = steps_of(beside(elastic(2, most=5)))["long"]
    assert most.resize == {"devices": 5, "before": 2}
    devices = {"minimum": 2, "maximum": 16, "step": 4}
    stepped = steps_of(beside(elastic(2, devices=devices)))["long"]
    assert stepped.resize == {"devices": 6, "before": 2}


def test_who_waits_for_devices_gets_them_before_a_running_job_is_grown() -> None:
    waiting = [job("waits", 4, duration=LONG)]
    steps = steps_of(beside(elastic(4), waiting=waiting))
    assert steps["waits"].verb is JobVerb.PLACE
    assert "long" not in steps


def test_a_job_is_shrunk_for_one_that_waits_and_by_no_more_than_that_needs() -> None:
    step = steps_of(beside(elastic(8), waiting=[job("waits", 3, duration=SHORT)]))["long"]
    assert step.verb is JobVerb.RESIZE
    assert step.resize == {"devices": 5, "before": 8, "beneficiary": "waits"}
    assert step.reason.startswith(f"{INTERRUPTED}shrunk to 5 to make room for waits. ")


def test_a_job_is_not_shrunk_below_its_least() -> None:
    steps = steps_of(beside(elastic(8, least=6), waiting=[job("waits", 3, duration=SHORT)]))
    assert "long" not in steps
    assert steps["waits"].verb is JobVerb.DECIDE


@pytest.mark.parametrize("missing", ["checkpoint", "checkpoint_step"])
def test_a_job_that_would_begin_anew_is_not_resized(missing: str) -> None:
    entry = {name: value for name, value in elastic(8).items() if name != missing}
    assert "long" not in steps_of(beside(entry, waiting=[job("waits", 3, duration=SHORT)]))
    small = {name: value for name, value in elastic(2).items() if name != missing}
    assert "long" not in steps_of(beside(small))


def test_a_job_without_a_reported_checkpoint_makes_room_for_one_of_higher_priority() -> None:
    entry = {name: value for name, value in elastic(8, priority=-1).items() if name != "checkpoint_step"}
    step = steps_of(beside(entry, waiting=[job("waits", 3, duration=SHORT, priority=1)]))["long"]
    assert step.resize == {"devices": 5, "before": 8, "beneficiary": "waits"}


@pytest.mark.parametrize(("seconds", "resized"), [(1790.0, False), (1810.0, True)])
def test_a_job_is_left_alone_for_half_an_hour_after_an_interruption(seconds: float, resized: bool) -> None:
    entry = elastic(4)
    told = {"state": "restarting", "at": before(seconds), "attempt": 1, "reason": f"{INTERRUPTED}grown to 4"}
    entry["transitions"] = [told, *entry["transitions"]]
    assert interrupted_at(entry) == before(seconds)
    assert ("long" in steps_of(beside(entry))) is resized


def resized(devices: int, held: int, **members: Any) -> Any:
    """The job as it waits after it was stopped for a resize."""
    entry = elastic(held, **members)
    for name in ("allocation", "placement"):
        del entry[name]
    return entry | {"state": "queued", "resize": {"devices": devices, "before": held, "beneficiary": "waits"}}


def test_what_a_job_gave_up_goes_to_the_one_that_it_was_given_up_for() -> None:
    waiting = [resized(5, 8), job("waits", 3, duration=SHORT)]
    steps = steps_of(federation(node("a1", "a"), waiting=waiting))
    assert {name: step.verb for name, step in steps.items()} == {"long": JobVerb.PLACE, "waits": JobVerb.PLACE}
    sizes = {name: sum(share["devices"] for share in step.placement["shares"]) for name, step in steps.items()}
    assert sizes == {"long": 5, "waits": 3}


def test_the_work_of_a_job_is_the_same_after_a_resize() -> None:
    plain = {name: value for name, value in resized(5, 8).items() if name != "resize"}
    [whole] = specifications([plain], {"a"})
    [sized] = specifications([resized(5, 8)], {"a"})
    assert sized["devices"] == {"minimum": 1, "maximum": 5, "requested": 5}
    assert work_of(sized) == pytest.approx(work_of(whole))


def test_a_resize_out_of_limits_or_of_what_is_not_free_is_not_carried_out() -> None:
    snapshot = beside(elastic(4, most=6))
    state, result = scheduling_state(snapshot), decide(snapshot)
    check(result, snapshot, state)
    [step] = result.steps
    assert step.resize == {"devices": 6, "before": 4}
    for size, words in ((7, "is resized"), (4, "is resized"), (0, "is resized")):
        wrong = replace(result, steps=(replace(step, resize={"devices": size, "before": 4}),))
        with pytest.raises(BrokenInvariantError, match=words):
            check(wrong, snapshot, state)
    full = beside(elastic(4, most=16))
    grown = replace(result, steps=(replace(step, resize={"devices": 16, "before": 4}),))
    with pytest.raises(BrokenInvariantError, match="which are not free"):
        check(grown, full, scheduling_state(full))


def test_a_pass_with_a_resize_is_made_again_from_its_record() -> None:
    links = [link("a", "b"), link("b", "a")]
    waiting = [job("waits", 3, duration=SHORT)]
    snapshot = beside(elastic(8), node("a1", "a"), node("b1", "b", 2), links=links, waiting=waiting)
    assert replay(record(snapshot)) == decide(snapshot)
