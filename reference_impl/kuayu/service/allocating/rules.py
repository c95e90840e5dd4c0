"""What becomes of an allocation: two phases over its domains.

Every function takes an allocation as it stands and gives it as it stands afterwards; nothing here reads a clock, a
network or a database. First every domain of a placement promises its share (prepare). Once all have and its turn has
come, all take it (commit). If one does not, or does not answer in time, all let go (abort) and the next alternative is
tried; an alternative begins only when all have let go or had the time to. A domain that was away finds the abort when
it is back.

Whoever was asked to commit may run the job until it says that it has let go, however long it is away. So for that an
alternative waits without end, and so does the turn of any other allocation of the same job (RES-011).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kuayu.service.allocating.standing import Standing
from kuayu.service.allocating.steps import Json, Step, following, held_in, patience, placements, release, reserve
from kuayu_schemas.models import ActionKind, ActionOutcome, ActionPhase, AllocationPhase

GRANTS = {ActionPhase.prepare: ActionOutcome.prepared, ActionPhase.commit: ActionOutcome.committed}
"""How a step ends after which a domain holds something."""

SUCCESSES = {**GRANTS, ActionPhase.abort: ActionOutcome.aborted}
"""How a step ends that goes well, and no other step."""

MOST_WORDS = 2000
"""Characters of a reason at most."""


class NotAskedError(LookupError):
    """A result is about a step that the domain was not asked for."""


class MisfitError(ValueError):
    """A result cannot be that of the step: no commit ends prepared.

    Args:
        member: Which member of class ActionResult does not fit.
        detail: Why, in words.
    """

    def __init__(self, member: str, detail: str) -> None:
        super().__init__(detail)
        self.member = member


@dataclass(frozen=True, slots=True)
class Result:
    """What a domain says of a step.

    Attributes:
        action: Name of the action.
        phase: The step.
        outcome: How it ended.
        nodes: Nodes that it named, each of class NodeShare; None where it named none.
        why: Why it was refused, in words; None where it did not say.
    """

    action: str
    phase: ActionPhase
    outcome: ActionOutcome
    nodes: tuple[Json, ...] | None = None
    why: str | None = None


def begun(spec: Mapping[str, Any], now: int, created: int | None = None) -> Standing:
    """A new allocation: promises of its first choice are asked for.

    Args:
        spec: Class Allocation.
        now: By the clock that deadlines are kept by.
        created: What the clock on the wall shows, where that is another one.
    """
    return _preparing(Standing(spec, now if created is None else created, AllocationPhase.preparing), 0, now)


def answered(standing: Standing, result: Result, now: int) -> Standing:
    """A domain has answered at ``now``.

    The first answer to a step counts; another one changes nothing. Whoever grants what is not wanted any more is told
    once more to let go, also where it said before that it had.

    Raises:
        NotAskedError: The domain was not asked for that.
        MisfitError: The step cannot end so, or not on these nodes.
    """
    standing = expired(standing, now)
    step = standing.step(result.action, result.phase)
    if step is None:
        raise NotAskedError
    if result.outcome in SUCCESSES.values() and result.outcome is not SUCCESSES[result.phase]:
        raise MisfitError("outcome", f"the phase {result.phase.value} does not end {result.outcome.value}")
    if result.outcome in GRANTS.values() and not step.fits_on(result.nodes):
        raise MisfitError("nodes", f"these nodes do not have the {step.body['devices']} devices that were asked for")
    if result.outcome in _unsettling(step) or result.outcome is step.outcome:
        return standing
    if result.outcome is ActionOutcome.expired and step.outcome is ActionOutcome.committed:
        return lapsed(standing, [step.domain], now)
    if step.outcome is None:
        done = replace(step, open=False, outcome=result.outcome, nodes=result.nodes)
        standing = standing.with_steps([done])
    abort = standing.step(result.action, ActionPhase.abort)
    if abort is None:
        return _advanced(standing, result.why, now)
    if result.outcome in GRANTS.values():
        return standing if abort.open else standing.with_steps([following(abort, ActionPhase.abort)])
    return _advanced(standing, result.why, now)


def expired(standing: Standing, now: int) -> Standing:
    """Time has passed: what had to be answered by ``now`` and was not is given up."""
    if standing.deadline is None or now < standing.deadline:
        return standing
    if standing.phase is AllocationPhase.aborting:
        return _advanced(replace(standing, deadline=None), None, now)
    phase = _phase_of_steps(standing.phase)
    silent = [step.domain for step in standing.current(phase) if step.outcome is None]
    seconds = f"{patience(standing.spec):g} s"
    if not silent:
        return _aborting(standing, f"devices of the same job were not let go of within {seconds}", now)
    return _aborting(standing, f"{', '.join(silent)} did not answer {phase.value} within {seconds}", now)


def withdrawn(standing: Standing, now: int) -> Standing:
    """Nobody wants the allocation any more."""
    match standing.phase:
        case AllocationPhase.preparing | AllocationPhase.committing:
            return _aborting(replace(standing, withdrawn=True), "it was withdrawn", now)
        case AllocationPhase.aborting if not standing.withdrawn:
            return replace(standing, withdrawn=True, reason=_reason(standing, "it was withdrawn"))
        case AllocationPhase.committed:
            return _releasing(replace(standing, withdrawn=True), "it was withdrawn")
        case _:
            return standing


def lapsed(standing: Standing, domains: Collection[str], now: int) -> Standing:
    """Domains have let go by themselves, as where their leases are over; what they held is whole no more."""
    lost = [step for step in standing.maybe_held() if step.domain in domains]
    if not lost:
        return standing
    at = sorted({step.domain for step in lost if step.attempt == standing.attempt})
    trouble = f"{', '.join(at)} let go without being asked"
    match standing.phase:
        case AllocationPhase.committing if at:
            standing = _aborting(standing, trouble, now)
        case AllocationPhase.committed if at:
            standing = _releasing(standing, trouble)
    gone = {step.action for step in lost}
    done = [
        replace(step, open=False, outcome=ActionOutcome.expired)
        for step in standing.steps
        if step.lets_go and step.about in gone and step.outcome is None
    ]
    return _advanced(standing.with_steps(done), None, now)


def resumed(standing: Standing, now: int) -> Standing:
    """The service was away until ``now``. Domains could not answer meanwhile, so they get their time anew.

    No more either: where the deadline is further away than that, the clock was set back since.
    """
    if standing.deadline is None:
        return standing
    return replace(standing, deadline=_in_time(standing, now))


def committing(standing: Standing, now: int) -> Standing:
    """All domains are to take what they have promised.

    Only for one that is ready, while no other of its job may be held.
    """
    asked = [following(step, ActionPhase.commit) for step in standing.current(ActionPhase.prepare)]
    taking = replace(standing, phase=AllocationPhase.committing, deadline=_in_time(standing, now))
    return taking.with_steps(asked)


def _advanced(standing: Standing, why: str | None, now: int) -> Standing:
    """Go on where all answers of a phase are there, or one of them settles it."""
    match standing.phase:
        case AllocationPhase.preparing | AllocationPhase.committing:
            phase = _phase_of_steps(standing.phase)
            steps = standing.current(phase)
            for step in steps:
                if step.outcome not in {None, GRANTS[phase]}:
                    return _aborting(standing, _refusal(step, why), now)
            if phase is ActionPhase.prepare or any(step.outcome is None for step in steps):
                return standing
            return _committed(standing)
        case AllocationPhase.aborting if not standing.may_be_held:
            waiting = standing.deadline is not None
            if waiting and standing.unanswered(ActionPhase.abort, ActionKind.reserve):
                return standing
            return _next(standing, now)
        case AllocationPhase.releasing if not standing.unanswered(ActionPhase.commit, ActionKind.release):
            return replace(standing, phase=AllocationPhase.released, held=None)
        case _:
            return standing


def _preparing(standing: Standing, attempt: int, now: int) -> Standing:
    trying = replace(standing, phase=AllocationPhase.preparing, attempt=attempt, deadline=_in_time(standing, now))
    return trying.with_steps(reserve(standing.spec, standing.created, attempt))


def _committed(standing: Standing) -> Standing:
    named = {step.domain: step.nodes for step in standing.current(ActionPhase.prepare)}
    named |= {step.domain: step.nodes for step in standing.current(ActionPhase.commit) if step.nodes}
    held = held_in(placements(standing.spec)[standing.attempt], named)
    return replace(standing, phase=AllocationPhase.committed, deadline=None, held=held)


def _aborting(standing: Standing, trouble: str, now: int) -> Standing:
    """Have everyone let go who was asked, also whoever has not answered or has refused."""
    asked = standing.current(ActionPhase.prepare)
    overtaken = [
        replace(step, open=False) for step in (*asked, *standing.current(ActionPhase.commit)) if step.outcome is None
    ]
    letting_go = replace(
        standing,
        phase=AllocationPhase.aborting,
        deadline=_in_time(standing, now),
        reason=_reason(standing, trouble),
    )
    return letting_go.with_steps([*overtaken, *(following(step, ActionPhase.abort) for step in asked)])


def _releasing(standing: Standing, trouble: str) -> Standing:
    """Have everyone give back what is held."""
    assert standing.held is not None
    asked = release(standing.spec, standing.created, standing.attempt, standing.held)
    return replace(standing, phase=AllocationPhase.releasing, reason=trouble).with_steps(asked)


def _next(standing: Standing, now: int) -> Standing:
    """Try the next alternative, or give up. Aborts that are not answered stay open."""
    following_attempt = standing.attempt + 1
    if standing.withdrawn or following_attempt == len(placements(standing.spec)):
        return replace(standing, phase=AllocationPhase.refused, deadline=None)
    return _preparing(standing, following_attempt, now)


def _unsettling(step: Step) -> frozenset[ActionOutcome]:
    """Outcomes after which a domain is asked again: who could not let go still has to."""
    return frozenset({ActionOutcome.unknown, ActionOutcome.failed} if step.lets_go else {ActionOutcome.unknown})


def _phase_of_steps(phase: AllocationPhase) -> ActionPhase:
    return ActionPhase.prepare if phase is AllocationPhase.preparing else ActionPhase.commit


def _in_time(standing: Standing, now: int) -> int:
    return now + round(patience(standing.spec) * 1000)


def _refusal(step: Step, why: str | None) -> str:
    assert step.outcome is not None
    return f"{step.domain} answered {step.phase.value} with {step.outcome.value}" + (f" ({why})" if why else "")


def _reason(standing: Standing, trouble: str) -> str:
    """All that has gone wrong so far, the newest last."""
    return "; ".join(filter(None, (standing.reason, trouble)))[-MOST_WORDS:]
