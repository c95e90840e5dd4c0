"""What accounts have used, who goes first by it, and whose jobs a quota holds."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobs.federations import Json, allocation, federation, job, node, placed, running

from kuayu.jobs.decisions import JobStep, JobVerb, decide, record, replay
from kuayu.jobs.fair_share import accrued, decayed, in_turn
from kuayu.jobs.federation import FederationSnapshot, scheduling_state
from kuayu_schemas import schema

A = "nvidia-a100-sxm4-80gb"
WEEK = 604_800.0


def account(name: str, used: float = 0.0, weight: float = 1.0, **members: float) -> Json:
    made: Json = {"id": name, "used": used, "weight": weight, **members}
    assert schema.errors("Account", made) == []
    return made


def step_of(snapshot: FederationSnapshot, name: str) -> JobStep:
    return next(step for step in decide(snapshot).steps if step.job == name)


def started(snapshot: FederationSnapshot) -> set[str]:
    return {step.job for step in decide(snapshot).steps if step.verb is JobVerb.PLACE}


def test_what_was_used_counts_half_after_each_half_life_and_nearly_all_before() -> None:
    assert decayed(8.0, 0.0, WEEK) == 8.0
    assert decayed(8.0, WEEK, WEEK) == 4.0
    assert decayed(8.0, 3 * WEEK, WEEK) == 1.0
    assert accrued(4.0, 3600.0, WEEK) == pytest.approx(4.0, rel=0.003)
    assert accrued(4.0, 1e9, WEEK) == pytest.approx(4.0 * WEEK / log(2.0) / 3600.0)


@given(st.floats(0.1, 1e4), st.lists(st.floats(0.0, 1e6), min_size=1, max_size=8), st.floats(1.0, 1e7))
def test_what_is_counted_in_parts_is_what_is_counted_at_once(devices: float, parts: list[float], half: float) -> None:
    """So a restart, or an attempt that ends, changes nothing of what an account has used."""
    used = 0.0
    for seconds in parts:
        used = decayed(used, seconds, half) + accrued(devices, seconds, half)
    assert used == pytest.approx(accrued(devices, sum(parts), half), rel=1e-9, abs=1e-12)


def test_accounts_take_turns_by_what_they_have_used_and_by_what_their_jobs_before_will_use() -> None:
    queues = {"red": [(0, 1, "r1"), (0, 2, "r2"), (0, 3, "r3")], "blue": [(0, 4, "b1"), (0, 5, "b2"), (0, 6, "b3")]}
    assert list(in_turn(queues, {}, lambda _: 1.0)) == ["r1", "b1", "r2", "b2", "r3", "b3"]
    accounts = {"red": account("red", used=1.5), "blue": account("blue")}
    assert list(in_turn(queues, accounts, lambda _: 1.0)) == ["b1", "b2", "r1", "b3", "r2", "r3"]
    accounts = {"red": account("red", weight=2.0), "blue": account("blue")}
    assert list(in_turn(queues, accounts, lambda _: 1.0)) == ["r1", "b1", "r2", "r3", "b2", "b3"]


def test_a_job_of_higher_priority_goes_first_whatever_its_account_has_used() -> None:
    queues = {"red": [(-5, 9, "urgent"), (0, 1, "r")], "blue": [(0, 4, "b")]}
    accounts = {"red": account("red", used=100.0), "blue": account("blue")}
    assert list(in_turn(queues, accounts, lambda _: 1.0)) == ["urgent", "b", "r"]


def test_of_two_jobs_that_ask_for_the_same_that_one_starts_whose_account_has_used_less() -> None:
    waiting = [job("early", account="red", age=100.0), job("late", account="blue", age=10.0)]
    one = node("n", "a")
    assert started(federation(one, waiting=waiting)) == {"early"}
    used = [account("blue", 1.0), account("red", 2.0)]
    assert started(federation(one, waiting=waiting, accounts=used)) == {"late"}
    weighed = [account("blue", 1.0), account("red", 2.0, weight=4.0)]
    assert started(federation(one, waiting=waiting, accounts=weighed)) == {"early"}
    urgent = [job("early", account="red", age=100.0, priority=1), waiting[1]]
    assert started(federation(one, waiting=urgent, accounts=used)) == {"early"}


def test_who_has_waited_too_long_goes_first_all_the_same() -> None:
    """Ten times its own length: whoever was submitted later may not overtake it any more."""
    waiting = [job("early", account="red", age=36_000.0), job("late", account="blue", age=10.0)]
    used = [account("blue"), account("red", 1000.0)]
    assert started(federation(node("n", "a"), waiting=waiting, accounts=used)) == {"early"}


def test_in_one_pass_free_devices_go_to_accounts_in_turn() -> None:
    waiting = [job(f"r{n}", account="red", age=100.0 - n) for n in range(4)]
    waiting += [job(f"b{n}", account="blue", age=10.0 - n) for n in range(4)]
    nodes = [node(f"n{n}", "a") for n in range(4)]
    snapshot = federation(*nodes, waiting=waiting, accounts=[account("blue"), account("red", 0.5)])
    assert started(snapshot) == {"b0", "b1", "r0", "r1"}
    assert replay(record(snapshot)) == decide(snapshot)


def test_the_state_names_accounts_only_where_jobs_of_several_wait() -> None:
    one = scheduling_state(federation(node("n", "a"), waiting=[job("j", account="red")])).document
    assert "accounts" not in one
    assert one["waiting"][0]["spec"]["account"] == "red"
    waiting = [job("j", account="red"), job("k")]
    both = scheduling_state(federation(node("n", "a"), waiting=waiting, accounts=[account("red", 2.0)])).document
    assert both["accounts"] == [
        {"id": "default", "used": 0.0, "weight": 1.0},
        {"id": "red", "used": 2.0, "weight": 1.0},
    ]
    assert schema.errors("SchedulingState", both) == []


def test_a_job_is_held_while_its_account_has_used_its_quota_and_others_start() -> None:
    waiting = [job("r", account="red"), job("b", account="blue")]
    used = [account("blue", 9.0, quota=10.0), account("red", 10.0, quota=10.0)]
    snapshot = federation(node("n", "a"), node("m", "a"), waiting=waiting, accounts=used)
    held = step_of(snapshot, "r")
    assert held.verb is JobVerb.HOLD
    assert held.reason.startswith("Its account red has used 10 h of reference devices, and its quota is 10 h.")
    assert held.decision is not None
    assert held.decision["verb"] == "wait"
    assert step_of(snapshot, "b").verb is JobVerb.PLACE


def test_a_job_is_queued_again_when_its_account_has_used_less_and_not_before() -> None:
    held = job("r", account="red", state="held", reason="Its account red has used 10 h of reference devices.")
    more = federation(node("n", "a"), held=[held], accounts=[account("red", 10.0, quota=10.0)])
    assert decide(more).steps == ()
    less = federation(node("n", "a"), held=[held], accounts=[account("red", 9.9, quota=10.0)])
    assert step_of(less, "r").verb is JobVerb.RELEASE


def test_a_quota_stops_nothing_that_runs() -> None:
    where = placed(("a", A, {"n": 8}))
    active = [running("r", where, account="red", allocation="al")]
    snapshot = federation(
        node("n", "a"), active=active, allocations=[allocation("al", "r", where)], accounts=[account("red", 5, quota=1)]
    )
    assert decide(snapshot).steps == ()
