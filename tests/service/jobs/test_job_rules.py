"""The rules of jobs: small stories by hand, and what holds whatever domains, users and schedulers do."""

import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kuayu.service import job_rules
from kuayu.service.job_rules import RUN_ENDED, AllocationView, JobStanding, Order, allocation_name
from kuayu.service.job_store import JobRecord
from kuayu.service.storage.resources import Revision
from kuayu_schemas import schema
from kuayu_schemas.models import ActionKind, ActionOutcome, AllocationPhase, JobState, RunState

REVISION = {"epoch": "e", "number": 4}
PATIENCE_MS = 600_000
RETRIES = 2

COMMITTED, REFUSED, FAILED = ActionOutcome.committed, ActionOutcome.refused, ActionOutcome.failed

PATHS: dict[str, set[str]] = {
    "queued": {"starting", "held", "cancelled"},
    "held": {"queued", "cancelled"},
    "starting": {"running", "restarting", "queued", "cancelled"},
    "running": {"restarting", "succeeded", "cancelled"},
    "restarting": {"queued", "failed", "cancelled"},
    "succeeded": set(),
    "failed": set(),
    "cancelled": set(),
}
"""What may follow each state."""


def request(name: str = "train", **members: Any) -> dict[str, Any]:
    return {
        "id": name,
        "workload": {"command": ["python", "train.py"]},
        "devices": {"minimum": 2, "maximum": 4},
        "retries": RETRIES,
        **members,
    }


def placement(*domains: str, devices: int = 2) -> dict[str, Any]:
    shares = [{"domain": domain, "accelerator": "a800", "devices": devices} for domain in domains]
    return {"shares": shares, "split_mode": "none" if len(domains) == 1 else "synchronous"}


def place(standing: JobStanding, now: int = 0, weights: dict[str, dict[str, float]] | None = None) -> JobStanding:
    """A scheduler has decided; devices are asked for."""
    name = allocation_name(standing.spec, standing.submitted, standing.begun + 1, standing.tries + 1)
    return job_rules.place(
        *(standing, name, standing.tries + 1, REVISION, weights or {}, "it fits"), deadline=now + PATIENCE_MS, now=now
    )


def hear(
    standing: JobStanding, phase: AllocationPhase, *domains: str, now: int = 0, reason: str | None = None
) -> JobStanding:
    """The job hears of its allocation until nothing changes any more, each time after one change of state at most."""
    assert standing.allocation is not None
    held = placement(*domains) if domains else None
    view = AllocationView(
        standing.allocation, phase, held, {domain: f"reserved-{domain}" for domain in domains}, reason
    )
    while True:
        after = job_rules.follow_allocation(standing, view, now)
        if after == standing:
            return standing
        assert len(after.transitions) - len(standing.transitions) <= 1
        standing = after


def begun(*domains: str, **members: Any) -> JobStanding:
    """A job of which the first attempt holds its devices."""
    return hear(place(job_rules.submit(request(**members), 0)), AllocationPhase.committed, *domains)


def report(standing: JobStanding, domain: str, state: str, now: int = 1, **members: Any) -> JobStanding:
    body = {
        "job": standing.name,
        "attempt": standing.begun,
        "domain": domain,
        "state": state,
        "at": "2026-01-01T00:00:00Z",
        **members,
    }
    assert schema.errors("RunReport", body) == []
    return job_rules.take_report(standing, body, now)


def running(*domains: str, **members: Any) -> JobStanding:
    """A job that runs."""
    standing = begun(*domains, **members)
    for domain in domains:
        standing = report(job_rules.take_start_answer(standing, domain, COMMITTED, None, 1), domain, "running")
    assert standing.state is JobState.running
    return standing


def released(standing: JobStanding, now: int = 2) -> JobStanding:
    return hear(standing, AllocationPhase.released, now=now)


def open_orders(standing: JobStanding) -> list[Order]:
    return [order for run in standing.runs for order in (run.start, run.stop) if order is not None and order.open]


def asked(standing: JobStanding) -> set[tuple[str, str]]:
    """Domain and kind of what is asked."""
    return {(order.domain, order.kind.value) for order in open_orders(standing)}


def wire(standing: JobStanding) -> dict[str, Any]:
    return JobRecord(standing, Revision("e", 1), standing.since).to_wire()


def test_a_job_is_placed_started_runs_in_all_domains_and_succeeds() -> None:
    standing = place(job_rules.submit(request(checkpoint="file:///ckpt"), 0))
    assert (standing.state, standing.attempt, standing.begun) == (JobState.starting, 1, 0)
    assert not open_orders(standing)  # nothing is started before it is held
    standing = hear(standing, AllocationPhase.committed, "x", "y")
    assert asked(standing) == {("x", "start"), ("y", "start")}
    start = standing.runs[0].start.body
    assert start["reservation"] == "reserved-x"
    assert [share["domain"] for share in start["run"]["shares"]] == ["x", "y"]
    assert (start["run"]["attempt"], start["run"]["step"], start["run"]["checkpoint"]) == (1, 0, "file:///ckpt")
    standing = report(standing, "y", "running")  # before its answer
    standing = job_rules.take_start_answer(standing, "y", COMMITTED, None, 1)
    assert standing.state is JobState.starting
    standing = report(job_rules.take_start_answer(standing, "x", COMMITTED, None, 1), "x", "running", step=3)
    assert (standing.state, standing.started, standing.step, standing.deadline) == (JobState.running, 1, 3, None)
    standing = report(standing, "x", "succeeded", exit_code=0)
    assert not standing.withdrawing
    standing = report(standing, "y", "succeeded")
    assert (standing.state, standing.withdrawing) == (JobState.running, True)  # its devices are still held
    standing = released(standing)
    assert (standing.state, standing.ended, standing.allocation) == (JobState.succeeded, 2, None)
    assert "placement" not in wire(standing)


def test_actions_keep_to_the_schema_and_names_differ_by_attempt_domain_and_kind() -> None:
    standing = job_rules.preempt(begun("x", "y", name="j" * 128), "others need them", 2)
    orders = [order for run in standing.runs for order in (run.start, run.stop) if order is not None]
    assert all(schema.errors("Action", dict(order.body)) == [] for order in orders)
    assert len({order.action for order in orders}) == 4
    assert {order.body["attempt"] for order in orders if order.kind is ActionKind.stop} == {1}
    again = job_rules.submit(request("j" * 128), 9)  # of the same name, after the other was forgotten
    later = hear(place(again), AllocationPhase.committed, "x")
    assert later.runs[0].start.action not in {order.action for order in orders}


def test_a_run_that_fails_has_the_others_stopped_and_the_job_started_again_from_its_checkpoint() -> None:
    standing = report(running("x", "y"), "y", "running", step=40, checkpoint_step=30)
    standing = report(standing, "x", "failed", exit_code=1, reason="out of memory")
    assert (standing.state, standing.reason) == (
        JobState.restarting,
        "its run in x failed with exit code 1 (out of memory)",
    )
    assert asked(standing) == {("y", "stop")}
    assert not standing.withdrawing  # y may still run
    assert job_rules.take_stop_answer(standing, "y", FAILED, 2) == standing  # and does, for all that is known
    standing = job_rules.take_stop_answer(standing, "y", COMMITTED, 2)
    assert standing.withdrawing
    standing = released(standing)
    assert (standing.state, standing.failures, standing.checkpoint_step) == (JobState.queued, 1, 30)
    assert "retry 1 of 2" in standing.reason
    standing = hear(place(standing), AllocationPhase.committed, "z")
    assert (standing.attempt, standing.runs[0].start.body["run"]["step"]) == (2, 30)


def test_a_job_has_failed_when_it_failed_once_more_than_it_may_be_retried() -> None:
    standing = job_rules.submit(request(), 0)
    for number in range(RETRIES + 1):
        assert standing.state is JobState.queued
        standing = hear(place(standing), AllocationPhase.committed, "x")
        assert standing.attempt == number + 1
        standing = released(report(standing, "x", "failed", exit_code=2))
    assert (standing.state, standing.failures, standing.ended) == (JobState.failed, RETRIES + 1, 2)
    assert wire(standing)["ended_at"] == "1970-01-01T00:00:00.002Z"


def test_what_is_not_its_own_fault_does_not_count() -> None:
    standing = running("x")
    ends: list[Callable[[JobStanding], JobStanding]] = [
        lambda each: report(each, "x", "failed", own_fault=False),
        lambda each: report(each, "x", "stopped", reason="maintenance"),
        lambda each: job_rules.take_start_answer(each, "x", REFUSED, "full", 3),
        lambda each: job_rules.take_stop_answer(
            job_rules.lose(each, each.begun, "node n is dead", 3), "x", COMMITTED, 3
        ),
        lambda each: job_rules.take_stop_answer(job_rules.preempt(each, "others go first", 3), "x", COMMITTED, 3),
    ]
    for end in ends:
        standing = released(end(standing))
        assert (standing.state, standing.failures) == (JobState.queued, 0)
        standing = hear(place(standing), AllocationPhase.committed, "x")


def test_a_loss_that_is_known_later_than_the_failure_it_led_to_takes_the_blame() -> None:
    standing = report(running("x", "y"), "y", "failed", exit_code=1)
    standing = job_rules.lose(standing, 1, "node n of x is dead", 2)
    standing = released(job_rules.take_stop_answer(standing, "x", COMMITTED, 3))
    assert (standing.state, standing.failures) == (JobState.queued, 0)
    assert standing.reason.startswith("node n of x is dead")


def test_domains_that_refuse_devices_leave_the_number_of_the_attempt_as_it_was() -> None:
    first = place(job_rules.submit(request(), 0))
    standing = hear(first, AllocationPhase.refused, reason="x answered prepare with refused (full)")
    assert (standing.state, standing.attempt, standing.setbacks) == (JobState.queued, 0, 1)
    assert standing.reason == "its devices could not be had (x answered prepare with refused (full))"
    again = place(standing)
    assert (again.attempt, again.allocation != first.allocation) == (1, True)
    assert hear(again, AllocationPhase.committed, "x").begun == 1


def test_devices_that_are_let_go_of_by_themselves_take_the_attempt_with_them() -> None:
    standing = hear(running("x", "y"), AllocationPhase.releasing, reason="x let go without being asked")
    assert standing.state is JobState.restarting
    assert asked(standing) == {("x", "stop"), ("y", "stop")}
    assert standing.reason == "its devices were let go (x let go without being asked)"
    standing = released(standing)  # x is silent for good, and its lease is over
    assert (standing.state, standing.failures) == (JobState.queued, 0)


def test_a_job_is_cancelled_at_once_where_nothing_is_held_and_otherwise_when_nothing_is() -> None:
    waiting = job_rules.submit(request(), 0)
    assert job_rules.cancel(waiting, 1).state is JobState.cancelled
    assert job_rules.cancel(job_rules.hold(waiting, "budget", 1), 2).state is JobState.cancelled
    reserving = job_rules.cancel(place(waiting), 1)
    assert (reserving.state, reserving.cancelling, reserving.withdrawing) == (JobState.starting, True, True)
    assert hear(reserving, AllocationPhase.refused).state is JobState.cancelled
    standing = job_rules.cancel(running("x", "y"), 2)
    assert (standing.state, asked(standing)) == (JobState.running, {("x", "stop"), ("y", "stop")})
    assert wire(standing)["cancelling"] is True
    standing = report(standing, "x", "stopped")
    assert not standing.withdrawing
    standing = job_rules.take_stop_answer(standing, "y", COMMITTED, 3)
    assert (standing.state, standing.withdrawing) == (JobState.running, True)
    assert released(standing).state is JobState.cancelled
    assert "cancelling" not in wire(released(standing))


def test_one_that_has_ended_or_only_gives_back_its_devices_is_not_called_off() -> None:
    standing = report(running("x"), "x", "succeeded")
    assert job_rules.cancel(standing, 2) == standing
    done = released(standing)
    assert job_rules.cancel(done, 3) == done


def test_an_attempt_that_does_not_run_in_time_is_given_up() -> None:
    standing = job_rules.take_start_answer(begun("x", "y"), "x", COMMITTED, None, 1)
    standing = report(standing, "x", "running")
    assert job_rules.expire(standing, PATIENCE_MS - 1, 5) == standing
    standing = job_rules.expire(standing, PATIENCE_MS, 5)
    assert (standing.state, standing.reason) == (JobState.restarting, "its run did not run in time in y")
    assert asked(standing) == {("x", "stop"), ("y", "stop")}  # the start that y has not heard of is overtaken


def test_device_hours_count_devices_by_their_index_while_they_are_held() -> None:
    weights = {"x": {"a800": 0.5}}
    standing = place(job_rules.submit(request(), 0), weights=weights)
    standing = hear(standing, AllocationPhase.committed, "x", "y", now=1_000)
    hour = 3_600_000
    assert standing.used_until(1_000 + hour) == 3.0 * hour  # two devices of half an index, and two of one
    standing = job_rules.preempt(standing, "others go first", 2_000)
    standing = released(
        job_rules.take_stop_answer(job_rules.take_stop_answer(standing, "x", COMMITTED, 3), "y", COMMITTED, 3),
        now=1_000 + hour,
    )
    assert wire(standing)["device_hours"] == 3.0


def test_a_job_that_is_resized_stops_and_tells_its_size_until_it_has_the_devices() -> None:
    standing = report(running("x"), "x", "running", step=40, checkpoint_step=30)
    size = {"devices": 4, "before": 2}
    assert job_rules.resize(standing, 2, size, "grown to 4", 2) == standing  # decided about another attempt
    standing = job_rules.resize(standing, 1, size, "grown to 4", 2)
    assert (standing.state, asked(standing), standing.resize) == (JobState.restarting, {("x", "stop")}, size)
    assert job_rules.resize(standing, 1, {"devices": 1, "before": 2}, "shrunk to 1", 2) == standing
    standing = released(job_rules.take_stop_answer(standing, "x", COMMITTED, 2))
    assert (standing.state, standing.failures, standing.resize) == (JobState.queued, 0, size)
    assert wire(standing)["resize"] == size
    standing = place(standing)
    assert standing.resize == size
    standing = hear(standing, AllocationPhase.committed, "x")
    assert (standing.runs[0].start.body["run"]["step"], standing.resize) == (30, None)


def test_a_job_that_is_called_off_while_it_is_resized_is_not_resized_any_more() -> None:
    standing = job_rules.resize(running("x"), 1, {"devices": 4, "before": 2}, "grown to 4", 2)
    waiting = released(job_rules.take_stop_answer(standing, "x", COMMITTED, 2))
    for called_off in (
        released(job_rules.take_stop_answer(job_rules.cancel(standing, 3), "x", COMMITTED, 3)),
        job_rules.cancel(waiting, 3),
    ):
        assert (called_off.state, called_off.resize) == (JobState.cancelled, None)


def test_a_job_that_makes_room_knows_for_whom_until_it_is_placed_anew() -> None:
    standing = job_rules.preempt(running("x"), "others need them", 2, "other")
    assert job_rules.preempt(standing, "and others", 2, "another").beneficiary == "other"
    standing = released(job_rules.take_stop_answer(standing, "x", COMMITTED, 2))
    assert (standing.state, standing.beneficiary) == (JobState.queued, "other")
    assert place(standing).beneficiary is None


def test_a_job_that_is_held_is_not_placed_until_that_is_over() -> None:
    standing = job_rules.hold(job_rules.submit(request(), 0), "its budget is spent", 1)
    assert (standing.state, standing.reason) == (JobState.held, "its budget is spent")
    assert job_rules.unhold(standing, "there is money again", 2).state is JobState.queued
    begun_one = begun("x")
    assert job_rules.hold(begun_one, "its budget is spent", 1) == begun_one


class World:
    """A job, its allocation and what domains really do; every message may come late, twice, or not at all."""

    def __init__(self) -> None:
        self.now = 0
        self.standing = job_rules.submit(request(), 0)
        self.phase: AllocationPhase | None = None
        self.alive: set[tuple[int, str]] = set()
        self.said: list[dict[str, Any]] = []

    def step(self, choice: int) -> None:
        """One of the things that can happen now happens; the choice says which, and how."""
        self.now += 1_000
        events = self.events()
        number = choice % sum(weight for weight, _ in events)
        for weight, event in events:
            if number < weight:
                event(choice // 7)
                break
            number -= weight
        self.check()

    def events(self) -> list[tuple[int, Callable[[int], None]]]:
        """What can happen now, and how often it does."""
        found: list[tuple[int, Callable[[int], None]]] = [(1, self.disturb)]
        if self.standing.allocation is None:
            found.append((2, self.hold))
        if self.standing.state is JobState.queued:
            found.append((8, self.decide))
        if self.phase is AllocationPhase.preparing:
            found.append((8, self.reserve))
        if self.phase in {AllocationPhase.aborting, AllocationPhase.releasing}:
            found.append((4, self.let_go))
        if open_orders(self.standing):
            found.append((8, self.carry_out))
        if self.alive:
            found.append((8, self.happen))
        if self.said:
            found.append((2, self.repeat))
        return found

    def decide(self, _: int) -> None:
        """A scheduler decides where the job is to run."""
        assert self.phase is None
        assert not self.alive  # nothing of an attempt before may run
        self.change(place(self.standing, self.now))
        self.phase = AllocationPhase.preparing

    def hold(self, choice: int) -> None:
        """Something holds the job, or is over."""
        change = job_rules.hold if choice % 2 == 0 else job_rules.unhold
        self.change(change(self.standing, "a budget", self.now))

    def reserve(self, choice: int) -> None:
        """Domains answer that devices are reserved, or are not to be had."""
        self.set_phase(AllocationPhase.refused if choice % 8 == 0 else AllocationPhase.committed)

    def let_go(self, _: int) -> None:
        """All domains have given back what they held; nothing runs there any more."""
        self.alive.clear()
        aborted = self.phase is AllocationPhase.aborting
        self.set_phase(AllocationPhase.refused if aborted else AllocationPhase.released)

    def carry_out(self, choice: int) -> None:
        """A domain does what it is shown, or does not, and says so."""
        orders = sorted(open_orders(self.standing), key=lambda each: each.action)
        order = orders[choice % len(orders)]
        outcome = (REFUSED, FAILED, ActionOutcome.unknown, *[COMMITTED] * 9)[choice % 12]
        run = (self.standing.begun, order.domain)
        if order.kind is ActionKind.start:
            if outcome is COMMITTED:
                self.alive.add(run)
            after = job_rules.take_start_answer(self.standing, order.domain, outcome, None, self.now)
        else:
            if outcome is COMMITTED:
                self.alive.discard(run)
            after = job_rules.take_stop_answer(self.standing, order.domain, outcome, self.now)
        self.change(after)

    def happen(self, choice: int) -> None:
        """Something becomes of a run, of which the service hears at once, or later."""
        run = sorted(self.alive)[choice % len(self.alive)]
        state = ("failed", "stopped", "unknown", *["succeeded"] * 3, *["running"] * 6)[choice % 12]
        if RunState(state) in RUN_ENDED:
            self.alive.discard(run)
        own_fault = choice % 5 > 0
        self.said.append({"job": "train", "attempt": run[0], "domain": run[1], "state": state, "own_fault": own_fault})
        if choice % 11:
            self.hear(self.said[-1])

    def repeat(self, choice: int) -> None:
        """A report comes for the second time, or long after."""
        self.hear(self.said[choice % len(self.said)])

    def disturb(self, choice: int) -> None:
        """Something comes between."""
        standing = self.standing
        match choice % 9:
            case 0 | 1:
                self.change(job_rules.lose(standing, standing.begun - choice % 9, "a node is dead", self.now))
            case 2:
                self.change(job_rules.preempt(standing, "others go first", self.now))
            case 7:
                size = {"devices": 4, "before": 2}
                self.change(job_rules.resize(standing, standing.begun, size, "grown to 4", self.now))
            case 3:
                self.now += PATIENCE_MS
                self.change(job_rules.expire(standing, self.now, self.now))
            case 4:
                self.change(job_rules.cancel(standing, self.now))
            case number if self.phase is AllocationPhase.committed and number < 7:
                # A lease is over: that domain has ended what it ran, and lets go; the other may be silent as well.
                gone = {5: {"x"}, 6: {"x", "y"}}[number]
                self.alive = {run for run in self.alive if run[1] not in gone}
                self.set_phase(AllocationPhase.releasing if number == 5 else AllocationPhase.released)

    def hear(self, body: dict[str, Any]) -> None:
        """The service takes a report, where it is one of the attempt that is under way."""
        if body["attempt"] == self.standing.begun and self.standing.active:
            self.change(job_rules.take_report(self.standing, body, self.now))

    def change(self, after: JobStanding) -> None:
        """Keep what became of the job, and let its allocation go where that follows."""
        before, self.standing = self.standing, after
        added = len(after.transitions) - len(before.transitions)
        assert added <= 1
        assert (added == 1) == (after.state is not before.state)
        assert after.used_until(self.now) >= before.used_until(self.now)
        if before.over:
            assert after == before
        for run in before.runs:
            now = after.run(run.domain)
            assert not run.over or now is None or (now.over, now.state) == (True, run.state)
        if after.withdrawing and not before.withdrawing:
            assert not self.alive  # nothing of it is used any more
            if self.phase is AllocationPhase.preparing:
                self.phase = AllocationPhase.aborting
            elif self.phase is AllocationPhase.committed:
                self.set_phase(AllocationPhase.releasing)

    def set_phase(self, phase: AllocationPhase) -> None:
        """The allocation comes into a phase, and the job hears of it."""
        self.phase = phase
        domains = ("x", "y") if phase is AllocationPhase.committed else ()
        held = placement(*domains) if domains else None
        reservations = {domain: f"reserved-{domain}" for domain in domains}
        while (name := self.standing.allocation) is not None:
            view = AllocationView(name, phase, held, reservations, "so it is")
            after = job_rules.follow_allocation(self.standing, view, self.now)
            if after == self.standing:
                break
            self.change(after)
        if self.standing.allocation is None:
            self.phase = None

    def check(self) -> None:
        """What always holds."""
        standing = self.standing
        # JOB-004, JOB-005: only one attempt runs, on what is held for it
        assert {attempt for attempt, _ in self.alive} <= {standing.begun}
        assert standing.active or not self.alive
        if standing.active:
            assert self.phase in {AllocationPhase.committed, AllocationPhase.releasing}
        for order in open_orders(standing):
            assert standing.active
            assert order.kind is ActionKind.stop or not standing.ending
        # JOB-003: every change of state has a reason, and a way
        states = [change.state.value for change in standing.transitions]
        assert standing.reason
        assert all(change.reason for change in standing.transitions)
        assert standing.transitions[-1].state is standing.state
        assert all(after in PATHS[before] for before, after in pairwise(states))
        # JOB-007: failures are bounded, and counted to the end
        assert standing.failures <= RETRIES + (standing.state is JobState.failed)
        assert standing.state is not JobState.failed or standing.failures == RETRIES + 1
        # JOB-008: what has ended holds nothing, and whoever may run what is to end is asked to stop it
        if standing.over:
            assert self.phase is None
            assert not self.alive
            assert standing.ended is not None
        if standing.ending:
            assert all(run.over or (run.stop is not None and run.stop.open) for run in standing.runs)

    def finish(self) -> None:
        """Called off, with domains that answer, it always comes to an end."""
        self.change(job_rules.cancel(self.standing, self.now))
        for _ in range(20):
            if self.standing.over:
                return
            for order in open_orders(self.standing):
                self.alive.discard((self.standing.begun, order.domain))
                self.change(job_rules.take_stop_answer(self.standing, order.domain, COMMITTED, self.now))
            if self.phase is not None:
                self.let_go(0)
            self.check()
        raise AssertionError(self.standing)


@given(st.binary(min_size=160, max_size=160))
@settings(max_examples=150, deadline=None, derandomize=True, phases=[Phase.generate, Phase.shrink])
def test_whatever_comes_between_nothing_runs_twice_or_beside_what_is_held(choices: bytes) -> None:
    world = World()
    for first, second in zip(choices[::2], choices[1::2], strict=True):
        world.step(first << 8 | second)
    assert schema.errors("JobRecord", wire(world.standing)) == []
    world.finish()
    assert schema.errors("JobRecord", wire(world.standing)) == []


def test_the_walks_of_the_test_above_come_through_all_states() -> None:
    seen: Counter[tuple[str, str]] = Counter()
    chance = random.Random(7)
    for _ in range(200):
        world = World()
        for _ in range(80):
            world.step(chance.randrange(1 << 16))
        world.finish()
        seen.update(pairwise(change.state.value for change in world.standing.transitions))
    assert set(seen) == {(before, after) for before, later in PATHS.items() for after in later}
