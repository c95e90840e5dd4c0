"""Jobs that give way to replicas of serving jobs, and take back what these need no longer."""

from dataclasses import replace
from typing import Any

import pytest
from jobs.federations import allocation, before, federation, job, node, placed, running

from kuayu.jobs.decisions import JobStep, JobVerb, decide, record, replay
from kuayu.jobs.federation import FederationSnapshot, scheduling_state
from kuayu.jobs.progress import GAVE_WAY

KIND = next(iter(scheduling_state(federation(node("a1", "a"))).document["accelerators"]))["id"]
LONG = {"expected": 360_000.0, "low": 300_000.0, "high": 420_000.0, "coverage": 0.8}


def steps_of(snapshot: FederationSnapshot) -> dict[str, JobStep]:
    assert replay(record(snapshot)) == decide(snapshot)
    return {step.job: step for step in decide(snapshot).steps}


def training(name: str, held: int, least: int = 1, most: int = 8, **members: Any) -> Any:
    """A job of days that a decision interrupted a minute ago, so that nothing but a replica moves it."""
    told = {
        "devices": {"minimum": least, "maximum": most},
        "duration": LONG,
        "checkpoint": "file:///ckpt",
        "step": 120,
        "checkpoint_step": 100,
        **members,
    }
    entry = running(name, placed(("a", KIND, {"a1": held})), since=50.0, **told)
    reason = members.get("interrupted", f"{GAVE_WAY}shrunk")
    entry["transitions"] = [
        {"state": "restarting", "at": before(60.0), "attempt": 1, "reason": reason},
        *entry["transitions"],
    ]
    entry.pop("interrupted", None)
    return entry


def replica(name: str = "chat.1", devices: int = 1, **members: Any) -> Any:
    """A replica that waits."""
    wanted = {"devices": {"minimum": devices, "maximum": devices}, "priority": 5, "replica_of": "chat"}
    entry = job(name, devices, **{**wanted, **members})
    del entry["duration"]
    return entry


def beside(*entries: Any, waiting: Any = (), devices: int = 8, **members: Any) -> FederationSnapshot:
    """A federation of one node in which jobs run."""
    here = max(1, sum("replica_of" in entry for entry in [*entries, *waiting]))
    serving = {
        "job": {**job("chat", 1), "serving": {"minimum": here, "maximum": 9, "rate": 10.0}, "state": "running"},
        "loads": [],
        "last": None,
        "announced": [],
        "replicas": [
            {"id": entry["id"], "state": entry["state"], "added_at": before(5.0), "leaving": False}
            for entry in [*entries, *waiting]
            if "replica_of" in entry
        ]
        or [{"id": "chat.0", "state": "running", "added_at": before(5.0), "leaving": False}],
        "ended_at": None,
        "serial": 1,
    }
    return federation(
        node("a1", "a", devices),
        active=list(entries),
        waiting=list(waiting),
        allocations=[allocation(f"{entry['id']}.1.1", entry["id"], entry["placement"]) for entry in entries],
        serving=[serving],
        **members,
    )


def test_a_job_shrinks_for_a_replica_by_as_many_as_it_lacks_though_it_was_just_interrupted() -> None:
    steps = steps_of(beside(training("long", 7), waiting=[replica(devices=3)]))
    assert steps["long"].verb is JobVerb.RESIZE
    assert steps["long"].resize == {"devices": 5, "before": 7, "beneficiary": "chat.1"}
    assert steps["long"].reason.startswith(f"{GAVE_WAY}shrunk to 5 to make room for chat.1, which chat needs now.")
    assert "Room is made: long gives up 2 of 7 devices." in steps["chat.1"].reason


def test_who_has_the_lowest_priority_shrinks_first_and_of_these_who_came_last() -> None:
    first = training("first", 2, submitted_at=before(900.0))
    second = training("second", 2, submitted_at=before(800.0))
    above = training("above", 4, priority=1)
    steps = steps_of(beside(first, second, above, waiting=[replica(devices=1)]))
    assert "first" not in steps
    assert "above" not in steps
    assert steps["second"].resize == {"devices": 1, "before": 2, "beneficiary": "chat.1"}


def test_jobs_are_stopped_only_where_shrinking_does_not_do() -> None:
    rigid, elastic = training("rigid", 4, least=4, most=4), training("elastic", 4, least=2)
    two = steps_of(beside(rigid, elastic, waiting=[replica(devices=2)]))
    assert "rigid" not in two
    assert two["elastic"].verb is JobVerb.RESIZE
    four = steps_of(beside(rigid, elastic, waiting=[replica(devices=4)]))
    verbs = {name: four[name].verb for name in ("rigid", "elastic") if name in four}
    assert JobVerb.STOP in verbs.values()
    [stopped] = [step for step in four.values() if step.verb is JobVerb.STOP]
    assert stopped.reason.startswith(f"{GAVE_WAY}stopped to make room for chat.1")


def test_several_replicas_are_made_room_for_together() -> None:
    waiting = [replica(f"chat.{number}", 2) for number in range(1, 4)]
    steps = steps_of(beside(training("long", 8), waiting=waiting))
    assert steps["long"].resize == {"devices": 2, "before": 8, "beneficiary": "chat.1"}


@pytest.mark.parametrize("priority", [5, 6])
def test_nobody_of_the_same_or_a_higher_priority_gives_way(priority: int) -> None:
    steps = steps_of(beside(training("long", 8, priority=priority), waiting=[replica()]))
    assert "long" not in steps
    assert steps["chat.1"].verb is JobVerb.DECIDE


def test_nor_does_scheduling_take_from_them_what_a_replica_would_make_more_of() -> None:
    entry = training("long", 8, priority=5)
    entry["transitions"] = entry["transitions"][1:]
    entry["transitions"][-1]["at"] = before(7200.0)
    short = {"expected": 600.0, "low": 500.0, "high": 720.0, "coverage": 0.8}
    other = job("other", 3, duration=short, priority=5)
    assert "long" in steps_of(beside(entry, waiting=[other]))
    steps = steps_of(beside(entry, waiting=[replica(devices=3) | {"duration": short}]))
    assert "long" not in steps


@pytest.mark.parametrize("missing", ["checkpoint", "checkpoint_step"])
def test_who_would_begin_anew_does_not_give_way(missing: str) -> None:
    entry = {name: value for name, value in training("long", 8).items() if name != missing}
    assert "long" not in steps_of(beside(entry, waiting=[replica()]))


def test_replicas_do_not_give_way_to_each_other() -> None:
    other = training("mail.1", 8, replica_of="mail", priority=-5)
    assert "mail.1" not in steps_of(beside(other, waiting=[replica()]))


def test_nobody_gives_way_in_vain() -> None:
    steps = steps_of(beside(training("long", 4), training("above", 4, priority=9), waiting=[replica(devices=5)]))
    assert "long" not in steps


def test_nobody_gives_way_twice_while_room_is_being_made() -> None:
    entry = training("long", 8) | {
        "state": "restarting",
        "resize": {"devices": 6, "before": 8, "beneficiary": "chat.1"},
    }
    other = training("other", 4)
    snapshot = beside(entry, other, waiting=[replica(devices=2)], devices=12)
    assert "other" not in steps_of(snapshot)


def test_nobody_gives_way_where_somebody_else_would_take_the_devices() -> None:
    ahead = job("ahead", 8, priority=7)
    assert "long" not in steps_of(beside(training("long", 8, priority=4), waiting=[ahead, replica()])) or (
        steps_of(beside(training("long", 8, priority=4), waiting=[ahead, replica()]))["long"].resize is None
    )


@pytest.mark.parametrize("ahead", [job("ahead", 1, priority=9, domains=["b"]), job("ahead", 100_000, priority=9)])
def test_a_job_that_could_not_run_there_keeps_nobody_from_giving_way_or_taking_back(ahead: Any) -> None:
    steps = steps_of(beside(training("long", 8, priority=4), waiting=[ahead, replica()]))
    assert steps["long"].resize == {"devices": 7, "before": 8, "beneficiary": "chat.1"}
    assert steps_of(beside(training("long", 5), waiting=[ahead]))["long"].resize == {"devices": 8, "before": 5}


def test_who_gave_way_grows_again_when_devices_are_free_and_nobody_waits() -> None:
    steps = steps_of(beside(training("long", 5)))
    assert steps["long"].resize == {"devices": 8, "before": 5}
    assert "takes back" in steps["long"].reason
    assert steps["long"].reason.startswith(GAVE_WAY)
    waiting = [job("other", 8, duration=LONG)]
    assert "long" not in steps_of(beside(training("long", 5), waiting=waiting))


def test_who_was_interrupted_for_something_else_takes_nothing_back() -> None:
    entry = training("long", 5, interrupted="Interrupted by a decision: shrunk to 5 to make room for short.")
    assert "long" not in steps_of(beside(entry))


def test_replicas_are_added_as_load_asks_for_and_called_off_when_it_does_not() -> None:
    snapshot = beside(training("long", 8))
    view = dict(snapshot.serving[0])
    need: Any = {"minimum": 2, "maximum": 9, "rate": 10.0}
    view["job"] = {**view["job"], "serving": need}
    steps = steps_of(replace(snapshot, serving=[view]))
    assert (steps["chat"].verb, steps["chat"].add, steps["chat"].serial) == (JobVerb.SERVE, 1, 1)
    assert steps["chat"].replicas is not None
    assert (steps["chat"].replicas["wanted"], steps["chat"].replicas["jobs"]) == (2, ["chat.0"])
    view["job"] = {**view["job"], "serving": need, "cancelling": True}
    steps = steps_of(replace(snapshot, serving=[view]))
    assert steps["chat.0"].verb is JobVerb.CANCEL
    assert "chat" not in steps
    steps = steps_of(replace(snapshot, serving=[view | {"replicas": []}]))
    assert (steps["chat"].verb, steps["chat"].add) == (JobVerb.SERVE, 0)
