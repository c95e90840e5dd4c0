"""Rules of jobs: from submission to the end (clause Jobs), without I/O and without a clock.

1. What domains are asked to do for the runs of a job: to start one, and to stop it.
2. A job as it stands: where it is, which attempt is under way, and how the runs of that attempt are.
3. What becomes of a job, from its submission to its end (clause Jobs). Every function takes a job as it stands and
   gives it as it stands afterwards, after one change of its state at most; nothing here reads a clock, a network or a
   database. Whoever keeps the job carries out what follows from it: domains are shown its open orders, and an
   allocation that is to be let go (``withdrawing``) is withdrawn.

   1. An attempt counts, and gets its number, when its allocation is committed; before that nothing was started.
   2. The job runs when all runs of the attempt do. An attempt ends when all have ended well (verdict succeeded), when
      one has failed by what it runs (failed), or when one was lost or the job is stopped (lost). What came first
      counts, but that a loss is known later than the failures that it led to: a lost node fails the others of its
      attempt.
   3. Every domain that was asked to start a run and has not said that it is over is asked to stop it. When all are
      over, the allocation is let go; when that holds nothing any more, the job goes on to its next state.
   4. Where an allocation holds nothing any more though runs were not heard of, leases were over: the job goes on, and
      domains find what they were asked when they are back.
   5. A job that is called off keeps its state until nothing is held.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from kuayu_schemas.models import ActionKind, ActionOutcome, ActionPhase, AllocationPhase, JobState, RunState

Json = dict[str, Any]

DEFAULT_GRACE = 10.0
"""Seconds that processes have to end where a job does not say."""

SHOWN_NAME_CHARACTERS = 40
"""Characters of a job's name that names of its actions begin with, for whoever reads logs."""

SHOWN_JOB_CHARACTERS = 80
"""Characters of a job's name that names of its allocations begin with."""


@dataclass(frozen=True, slots=True)
class Order:
    """An action that a domain is asked for, or was. Both kinds are committed at once.

    Attributes:
        body: Class Action, as the domain is shown it.
        open: Whether it is shown; it is until it is answered, or until it is overtaken.
        outcome: How it ended; None until the domain has answered. Also what was overtaken may be answered late.
    """

    body: Mapping[str, Any]
    open: bool = True
    outcome: ActionOutcome | None = None

    @property
    def action(self) -> str:
        """Name of the action."""
        return str(self.body["id"])

    @property
    def domain(self) -> str:
        """Who carries it out."""
        return str(self.body["domain"])

    @property
    def kind(self) -> ActionKind:
        """What is to be done."""
        return ActionKind(self.body["kind"])


def starts(
    spec: Mapping[str, Any],
    submitted: int,
    attempt: int,
    holdings: Mapping[str, Any],
    reservations: Mapping[str, str],
    revision: Mapping[str, Any],
    step: int,
) -> Iterator[Order]:
    """Ask every domain in which a job holds devices to start its run.

    Args:
        spec: Class JobRequest.
        submitted: When it was submitted, in milliseconds. A job that has the name of one that was forgotten must not
            get answers that were given to the other.
        attempt: Which attempt, from one.
        holdings: Class JobPlacement.
        reservations: For each domain, the action by which the devices were reserved there.
        revision: Class Revision that the placement was decided on.
        step: Last step of which a checkpoint was reported; zero where there is none.
    """
    run: Json = {
        "attempt": attempt,
        "workload": spec["workload"],
        "shares": holdings["shares"],
        "split_mode": holdings["split_mode"],
        "step": step,
        "grace": spec.get("grace", DEFAULT_GRACE),
    }
    if "sync_period" in holdings:
        run["sync_period"] = holdings["sync_period"]
    if "checkpoint" in spec:
        run["checkpoint"] = spec["checkpoint"]
    for share in holdings["shares"]:
        body = _action(spec, submitted, attempt, share["domain"], ActionKind.start, revision)
        body |= {name: share[name] for name in ("accelerator", "devices", "nodes") if name in share}
        body["reservation"] = reservations[share["domain"]]
        body["run"] = run
        body["cause"] = f"job {spec['id']}, attempt {attempt}: {share['devices']} of {share['accelerator']}"
        yield Order(body)


def stop(
    spec: Mapping[str, Any], submitted: int, attempt: int, domain: str, revision: Mapping[str, Any], cause: str
) -> Order:
    """Ask a domain to end its run of an attempt; ``cause`` says why."""
    body = _action(spec, submitted, attempt, domain, ActionKind.stop, revision)
    return Order(body | {"attempt": attempt, "cause": cause})


def allocation_name(spec: Mapping[str, Any], submitted: int, attempt: int, number: int) -> str:
    """Name of an allocation of a job: the same for the job, the attempt, and the how-manieth allocation it is."""
    name = str(spec["id"])
    digest = hashlib.sha256(f"{name}\0{submitted}".encode()).hexdigest()[:8]
    return f"{name[:SHOWN_JOB_CHARACTERS]}.{attempt}.{number}-{digest}"


def _action(
    spec: Mapping[str, Any], submitted: int, attempt: int, domain: str, kind: ActionKind, revision: Mapping[str, Any]
) -> Json:
    name = str(spec["id"])
    digest = hashlib.sha256(f"{name}\0{submitted}\0{attempt}\0{domain}".encode()).hexdigest()[:16]
    return {
        "id": f"{name[:SHOWN_NAME_CHARACTERS]}.{attempt}.{digest}.{kind.value}",
        "kind": kind.value,
        "phase": ActionPhase.commit.value,
        "revision": revision,
        "job": name,
        "domain": domain,
    }


ENDED = frozenset({JobState.succeeded, JobState.failed, JobState.cancelled})
"""States that last."""

WAITING = frozenset({JobState.queued, JobState.held})
"""States in which no attempt is under way."""

RUN_ENDED = frozenset({RunState.succeeded, RunState.failed, RunState.stopped})
"""States of a run of which nothing runs any more."""

DEFAULT_RETRIES = 3
"""How often a job is started again after it failed by its own fault, where it does not say."""

MAX_TRANSITIONS = 100
"""Changes of state that a record shows; the model allows a thousand, and every version of a job holds them."""


class Verdict(StrEnum):
    """How an attempt ends, once that is settled."""

    SUCCEEDED = "succeeded"
    """All its runs have ended as they should."""
    FAILED = "failed"
    """A run has failed by what it runs, which counts against the job's retries."""
    LOST = "lost"
    """It was lost or stopped, which counts against nothing."""


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of state; its attributes are those of class JobTransition, ``instant`` (its ``at``) in milliseconds."""

    state: JobState
    instant: int
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class Run:
    """What a domain does for an attempt.

    Attributes:
        start: By what it was asked to start.
        stop: By what it was asked to stop; None where it was not.
        state: As the domain reported it last; None before the first report.
        report: The last report, class RunReport; None before the first.
        over: Whether nothing of it runs or will run, as its domain says.
    """

    start: Order
    stop: Order | None = None
    state: RunState | None = None
    report: Json | None = None
    over: bool = False

    @property
    def domain(self) -> str:
        """Whose it is."""
        return self.start.domain

    @property
    def ran(self) -> bool:
        """Whether all its processes run, or have run and ended well."""
        return self.state in {RunState.running, RunState.succeeded}


@dataclass(frozen=True, slots=True)
class JobStanding:
    """A job as it stands.

    Attributes:
        spec: What is to run, class JobRequest.
        submitted: When it was submitted, in milliseconds.
        state: Where it stands.
        reason: Why it stands so.
        since: When it came into that state, in milliseconds.
        transitions: Its last changes of state, the oldest first.
        begun: Attempts so far of which the allocation was committed; what is asked of domains bears this number.
        tries: Allocations that were made for it so far.
        failures: Attempts that failed by its own fault.
        setbacks: Placements in a row that came to nothing before the job ran. Who places it again may wait longer each
            time.
        allocation: Allocation of the attempt that is under way; None while none is.
        revision: Class Revision that this was decided on.
        weights: Compute index of accelerators by domain, where the attempt may run; one where it is not stated.
        holding: What the attempt holds, class JobPlacement; None unless its allocation was committed.
        held_since: Since when, in milliseconds.
        used: Device-milliseconds that former attempts have held, weighted by compute index.
        started: When it ran first, in milliseconds.
        ended: When it had ended, in milliseconds.
        step: Last step that was reported.
        checkpoint_step: Last step of which a checkpoint was reported.
        deadline: Until when its runs are to run, by the clock of deadlines, in milliseconds; None unless it starts.
        verdict: How the attempt ends; None while it goes on.
        cancelling: Whether the job is being called off.
        withdrawing: Whether its allocation is to be let go.
        resize: Class JobResize, from when it was decided until an attempt has its devices; None otherwise.
        beneficiary: Job that it makes room for, from when it was stopped for that until it is placed anew; None else.
        serving: Of a serving job what :mod:`kuayu.service.job_commands` keeps with it; None of others.
        runs: Runs of the attempt that is under way, in the order of ranks; none unless its allocation was committed.
    """

    spec: Mapping[str, Any]
    submitted: int
    state: JobState
    reason: str
    since: int
    transitions: tuple[Transition, ...] = ()
    begun: int = 0
    tries: int = 0
    failures: int = 0
    setbacks: int = 0
    allocation: str | None = None
    revision: Mapping[str, Any] | None = None
    weights: Mapping[str, Mapping[str, float]] | None = None
    holding: Json | None = None
    held_since: int | None = None
    used: float = 0.0
    started: int | None = None
    ended: int | None = None
    step: int | None = None
    checkpoint_step: int | None = None
    deadline: int | None = None
    verdict: Verdict | None = None
    cancelling: bool = False
    withdrawing: bool = False
    resize: Json | None = None
    beneficiary: str | None = None
    serving: Json | None = None
    runs: tuple[Run, ...] = ()

    @property
    def name(self) -> str:
        """Name of the job."""
        return str(self.spec["id"])

    @property
    def active(self) -> bool:
        """Whether domains were asked to start its runs, and something of that may still be held."""
        return self.held_since is not None

    @property
    def attempt(self) -> int:
        """Which attempt is under way, or was the last; zero before the first."""
        return self.begun + (self.allocation is not None and not self.active)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state in ENDED

    @property
    def ending(self) -> bool:
        """Whether the attempt that is under way is to end."""
        return self.cancelling or self.verdict is not None

    @property
    def retries(self) -> int:
        """How often it is started again after it failed by its own fault."""
        return int(self.spec.get("retries", DEFAULT_RETRIES))

    def run(self, domain: str) -> Run | None:
        """The run of a domain in the last attempt, or None."""
        return next((run for run in self.runs if run.domain == domain), None)

    def with_runs(self, runs: Iterable[Run]) -> Self:
        """The job with runs in the place of what they were."""
        changed = {run.domain: run for run in runs}
        return replace(self, runs=tuple(changed.get(run.domain, run) for run in self.runs))

    def rate(self) -> float:
        """Reference devices that it holds: devices, each weighted by its compute index."""
        weights = self.weights or {}
        shares = self.holding["shares"] if self.holding else ()
        total = 0.0
        for share in shares:
            total += share["devices"] * weights.get(share["domain"], {}).get(share["accelerator"], 1.0)
        return total

    def used_until(self, now: int) -> float:
        """Device-milliseconds that it has held by an instant, weighted by compute index."""
        return self.used + (0.0 if self.held_since is None else self.rate() * max(0, now - self.held_since))


MAX_REASON_CHARACTERS = 2000
"""Characters of a reason at most."""

PROGRESS = ("step", "checkpoint_step")
"""Members of a report that hold until another report states them."""

NOT_STARTED = frozenset({ActionOutcome.refused, ActionOutcome.failed, ActionOutcome.expired})
"""How an order to start ends after which nothing of the run runs or will run."""


@dataclass(frozen=True, slots=True)
class AllocationView:
    """How the allocation of an attempt stands.

    Attributes:
        name: Which.
        phase: Where it stands.
        holding: What is held, class JobPlacement; None unless it is committed.
        reservations: For each domain, the action by which its devices were reserved.
        reason: Why it stands so.
    """

    name: str
    phase: AllocationPhase
    holding: Json | None = None
    reservations: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None


def submit(spec: Mapping[str, Any], now: int) -> JobStanding:
    """A new job, class JobRequest: it waits for devices."""
    reason = "it was submitted, and waits for devices"
    first = Transition(JobState.queued, now, 0, reason)
    return JobStanding(spec, now, JobState.queued, reason, now, (first,))


def hold(standing: JobStanding, reason: str, now: int) -> JobStanding:
    """It is not considered until what holds it is over; only a job that waits can be held."""
    waits = standing.state in WAITING
    return _enter(standing, JobState.held, reason, now) if waits else standing


def unhold(standing: JobStanding, reason: str, now: int) -> JobStanding:
    """What held it is over."""
    return _enter(standing, JobState.queued, reason, now) if standing.state is JobState.held else standing


def place(
    standing: JobStanding,
    allocation: str,
    tries: int,
    revision: Mapping[str, Any],
    weights: Mapping[str, Mapping[str, float]],
    reason: str,
    deadline: int,
    now: int,
) -> JobStanding:
    """It was decided where it is to run, and devices are asked for; only for a job that is queued.

    Args:
        standing: The job.
        allocation: Name of the allocation that asks for them.
        tries: How many allocations that makes.
        revision: Class Revision that this was decided on.
        weights: Compute index of accelerators by domain.
        reason: Why, or what is asked for.
        deadline: Until when its runs are to run.
        now: On the wall.
    """
    assert standing.state is JobState.queued
    assert standing.allocation is None
    request = replace(
        standing,
        allocation=allocation,
        tries=tries,
        revision=revision,
        weights=weights,
        deadline=deadline,
        verdict=None,
        withdrawing=False,
        beneficiary=None,
        runs=(),
    )
    return _enter(request, JobState.starting, reason, now)


def follow_allocation(standing: JobStanding, allocation: AllocationView, now: int) -> JobStanding:
    """The allocation of the attempt has changed. To be called again until nothing changes any more."""
    if standing.allocation != allocation.name:
        return standing
    match allocation.phase:
        case AllocationPhase.committed if not standing.active and not standing.ending:
            return _begin(standing, allocation, now)
        case AllocationPhase.releasing if standing.active and not standing.withdrawing:
            return _lose_allocation(standing, allocation, now)
        case AllocationPhase.refused | AllocationPhase.released:
            if standing.active and not standing.ending:
                return _lose_allocation(standing, allocation, now)
            return _settle(standing, allocation.reason, now)
        case _:
            return standing


def take_start_answer(
    standing: JobStanding, domain: str, outcome: ActionOutcome, why: str | None, now: int
) -> JobStanding:
    """A domain has answered that it was asked to start its run of the last attempt; the first answer counts."""
    run = standing.run(domain)
    if run is None or outcome is ActionOutcome.unknown or run.start.outcome is not None:
        return standing
    was_over, not_started = run.over, outcome in NOT_STARTED
    answered = replace(run, start=replace(run.start, open=False, outcome=outcome))
    standing = standing.with_runs([_close(answered) if not_started else answered])
    if not_started and not was_over and not standing.ending:
        words = f"{domain} answered the start with {outcome.value}" + (f" ({why})" if why else "")
        verdict = Verdict.FAILED if outcome is ActionOutcome.failed else Verdict.LOST
        return _end_attempt(standing, verdict, words, now)
    return _advance(standing, now)


def take_stop_answer(standing: JobStanding, domain: str, outcome: ActionOutcome, now: int) -> JobStanding:
    """A domain has answered that it was asked to stop its run of the last attempt.

    Only that it was carried out settles anything: what could not be stopped may be alive, and stays asked for.
    """
    run = standing.run(domain)
    if run is None or run.stop is None or outcome is not ActionOutcome.committed:
        return standing
    answered = _close(replace(run, stop=replace(run.stop, open=False, outcome=outcome)))
    if answered.state not in RUN_ENDED:
        answered = replace(answered, state=RunState.stopped)
    return _advance(standing.with_runs([answered]), now)


def take_report(standing: JobStanding, report: Json, now: int) -> JobStanding:
    """A domain has reported on its run of the last attempt, class RunReport.

    The report of an end is the last that counts, and none does once the attempt holds nothing any more.
    """
    run = standing.run(report["domain"])
    if run is None or run.over:
        return standing
    state = RunState(report["state"])
    known = {name: run.report[name] for name in PROGRESS if name in run.report} if run.report else {}
    changed = replace(run, report=known | report, state=run.state if state is RunState.unknown else state)
    if state in RUN_ENDED:
        changed = _close(changed)
    standing = _note_progress(standing.with_runs([changed]))
    if state is RunState.failed and not standing.ending:
        verdict = Verdict.FAILED if report.get("own_fault", True) else Verdict.LOST
        return _end_attempt(standing, verdict, _failure(report), now)
    if state is RunState.stopped and run.stop is None and not standing.ending:
        return _end_attempt(standing, Verdict.LOST, _words(f"{run.domain} stopped its run", report.get("reason")), now)
    return _advance(standing, now)


def lose(standing: JobStanding, attempt: int, reason: str, now: int) -> JobStanding:
    """Something that an attempt needs is gone, as a node or a domain is. That is not the job's own fault."""
    if not standing.active or standing.begun != attempt or standing.cancelling:
        return standing
    if standing.verdict is Verdict.FAILED:  # by what was lost, which is known only now
        return _explain(replace(standing, verdict=Verdict.LOST), reason)
    return standing if standing.ending else _end_attempt(standing, Verdict.LOST, reason, now)


def preempt(standing: JobStanding, reason: str, now: int, beneficiary: str | None = None) -> JobStanding:
    """It is to end where it runs, and to wait for other devices: behind the job that it makes room for, if for any.

    That is not its own fault.
    """
    if standing.allocation is None or standing.ending:
        return standing
    return _end_attempt(replace(standing, beneficiary=beneficiary), Verdict.LOST, reason, now)


def resize(standing: JobStanding, attempt: int, size: Json, reason: str, now: int) -> JobStanding:
    """It is to go on with another number of devices, class JobResize; only while that attempt runs undisturbed."""
    if standing.state is not JobState.running or standing.ending or standing.begun != attempt:
        return standing
    return _end_attempt(replace(standing, resize=size), Verdict.LOST, reason, now)


def expire(standing: JobStanding, now: int, stamp: int) -> JobStanding:
    """Time has passed: where a job should run by ``now`` and does not, the attempt is given up, at ``stamp``."""
    if standing.deadline is None or now < standing.deadline:
        return standing
    late = [run.domain for run in standing.runs if not run.ran]
    words = f"its run did not run in time in {', '.join(late)}" if late else "its devices could not be had in time"
    return preempt(standing, words, stamp)


def cancel(standing: JobStanding, now: int) -> JobStanding:
    """Nobody wants it any more. What has ended, or has only to give back its devices, stays as it is."""
    if standing.over or standing.cancelling or standing.verdict is Verdict.SUCCEEDED:
        return standing
    if "serving" in standing.spec:
        return _explain(replace(standing, cancelling=True), "it was called off; its replicas are being stopped")
    if standing.allocation is None:
        return _enter(replace(standing, ended=now), JobState.cancelled, "it was called off before it ran", now)
    words = "it was called off; " + ("its runs are being stopped" if standing.active else "devices are let go")
    return _stop_runs(_explain(replace(standing, cancelling=True), words), now)


def serve(standing: JobStanding, serving: Json, *, running: bool, reason: str, now: int) -> JobStanding:
    """The replicas of a serving job have changed: it runs while one of them does, and waits otherwise."""
    if standing.over or standing.cancelling:
        return standing
    state = JobState.running if running else JobState.queued
    started = now if running and standing.started is None else standing.started
    return _enter(replace(standing, serving=serving, started=started), state, reason, now)


def end_serving(standing: JobStanding, now: int) -> JobStanding:
    """A serving job that was called off has no replica any more."""
    if standing.over or not standing.cancelling:
        return standing
    words = "it was called off, and none of its replicas is left"
    return _enter(replace(standing, cancelling=False, ended=now), JobState.cancelled, words, now)


def _begin(standing: JobStanding, allocation: AllocationView, now: int) -> JobStanding:
    """Its devices are held everywhere: an attempt begins, and all domains are asked to start its runs."""
    assert allocation.holding is not None
    assert standing.revision is not None
    attempt, existing = standing.begun + 1, allocation.holding
    orders = starts(
        standing.spec,
        standing.submitted,
        attempt,
        existing,
        allocation.reservations,
        standing.revision,
        standing.checkpoint_step or 0,
    )
    domains = ", ".join(share["domain"] for share in existing["shares"])
    begun = replace(
        standing, begun=attempt, holding=existing, held_since=now, resize=None, runs=tuple(map(Run, orders))
    )
    return _explain(begun, f"devices are held in {domains}, where its runs are being started")


def _lose_allocation(standing: JobStanding, allocation: AllocationView, now: int) -> JobStanding:
    """The allocation was let go though the attempt goes on, as where a lease is over."""
    words = _words("its devices were let go", allocation.reason)
    if standing.ending:
        return lose(standing, standing.begun, words, now)
    return _end_attempt(standing, Verdict.LOST, words, now)


def _end_attempt(standing: JobStanding, verdict: Verdict, reason: str, now: int) -> JobStanding:
    """An attempt is to end otherwise than it should."""
    return _stop_runs(_enter(replace(standing, verdict=verdict), JobState.restarting, reason, now), now)


def _stop_runs(standing: JobStanding, now: int) -> JobStanding:
    """Have every domain stop that may run something; a start that nobody has answered is overtaken by that."""
    assert standing.revision is not None
    request = [
        replace(
            run,
            start=replace(run.start, open=False),
            stop=stop(
                *(standing.spec, standing.submitted, standing.begun, run.domain),
                standing.revision,
                f"job {standing.name}, attempt {standing.begun}: {standing.reason}"[:MAX_REASON_CHARACTERS],
            ),
        )
        for run in standing.runs
        if not run.over and run.stop is None
    ]
    return _advance(replace(standing.with_runs(request), deadline=None), now)


def _advance(standing: JobStanding, now: int) -> JobStanding:
    """Go on where all runs are there, or all are over."""
    if standing.allocation is None:
        return standing
    if standing.ending:
        over = all(run.over for run in standing.runs)
        return replace(standing, withdrawing=True) if over else standing
    if not standing.runs or not all(run.ran for run in standing.runs):
        return standing
    if standing.state is JobState.starting:
        first = now if standing.started is None else standing.started
        ready = replace(standing, deadline=None, setbacks=0, started=first)
        standing = _enter(ready, JobState.running, f"it runs in {_domains(standing)}", now)
    if not all(run.over for run in standing.runs):
        return standing
    succeeded = replace(standing, verdict=Verdict.SUCCEEDED, withdrawing=True)
    return _explain(succeeded, "all its runs have ended well; its devices are being given back")


def _settle(standing: JobStanding, why: str | None, now: int) -> JobStanding:
    """The attempt holds nothing any more."""
    ran = standing.active and any(
        change.state is JobState.running and change.attempt == standing.begun for change in standing.transitions
    )
    verdict, failures = standing.verdict, standing.failures + (standing.verdict is Verdict.FAILED)
    free = replace(
        standing,
        allocation=None,
        holding=None,
        held_since=None,
        weights=None,
        used=standing.used_until(now),
        deadline=None,
        verdict=None,
        cancelling=False,
        withdrawing=False,
        runs=(),
    )
    if standing.cancelling:
        words = "it was called off, and nothing of it is held any more"
        return _enter(replace(free, ended=now), JobState.cancelled, words, now)
    if verdict is Verdict.SUCCEEDED:
        return _enter(replace(free, ended=now), JobState.succeeded, f"it ran well in {_domains(standing)}", now)
    if verdict is Verdict.FAILED and failures > standing.retries:
        given_up = replace(free, failures=failures, ended=now)
        words = f"{standing.reason}; it has failed {_times(failures)}, and is not tried again"
        return _enter(given_up, JobState.failed, words, now)
    again = replace(free, failures=failures, setbacks=0 if ran else standing.setbacks + 1)
    if verdict is Verdict.FAILED:
        words = f"{standing.reason}; it waits to be started again, retry {failures} of {standing.retries}"
    elif verdict is Verdict.LOST:
        words = f"{standing.reason}; it waits to be started again"
    else:
        words = _words("its devices could not be had", why)
    return _enter(again, JobState.queued, words, now)


def _enter(standing: JobStanding, state: JobState, reason: str, now: int) -> JobStanding:
    """The job in a state, for a reason; a change of state is noted."""
    standing = _explain(standing, reason)
    if standing.state is state:
        return standing
    change = Transition(state, now, standing.attempt, standing.reason)
    noted = (*standing.transitions, change)[-MAX_TRANSITIONS:]
    size = None if state in ENDED else standing.resize
    return replace(standing, state=state, since=now, transitions=noted, resize=size)


def _explain(standing: JobStanding, reason: str) -> JobStanding:
    return replace(standing, reason=reason[:MAX_REASON_CHARACTERS])


def _close(run: Run) -> Run:
    """A run of which nothing runs or will run: nothing more is asked of its domain."""
    ended = None if run.stop is None else replace(run.stop, open=False)
    return replace(run, over=True, start=replace(run.start, open=False), stop=ended)


def _note_progress(standing: JobStanding) -> JobStanding:
    """The job with the steps that the runs of the attempt have reported last; the furthest of them counts."""
    reports = [run.report for run in standing.runs if run.report is not None]
    steps = [report["step"] for report in reports if "step" in report]
    checkpoints = [report["checkpoint_step"] for report in reports if "checkpoint_step" in report]
    return replace(
        standing,
        step=max(steps, default=standing.step),
        checkpoint_step=max(checkpoints, default=standing.checkpoint_step),
    )


def _failure(report: Json) -> str:
    code = f" with exit code {report['exit_code']}" if "exit_code" in report else ""
    return _words(f"its run in {report['domain']} failed{code}", report.get("reason"))


def _words(what: str, why: str | None) -> str:
    return f"{what} ({why})" if why else what


def _domains(standing: JobStanding) -> str:
    return ", ".join(run.domain for run in standing.runs)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
