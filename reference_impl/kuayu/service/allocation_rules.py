"""Rules of allocations: a two-phase reservation over several domains, without I/O and without a clock.

1. What domains are asked to do for an allocation, and what they hold together in the end.
2. An allocation as it stands: what is asked, what was answered, and what follows about who may hold it.
3. What becomes of an allocation: two phases over its domains. Every function takes an allocation as it stands and
   gives it as it stands afterwards; nothing here reads a clock, a network or a database. First every domain of a
   placement promises its share (prepare). Once all have and its turn has come, all take it (commit). If one does not,
   or does not answer in time, all let go (abort) and the next alternative is tried; an alternative begins only when
   all have let go or had the time to. A domain that was away finds the abort when it is back. Whoever was asked to
   commit may run the job until it says that it has let go, however long it is away. So for that an alternative waits
   without end, and so does the turn of any other allocation of the same job (RES-011).
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

from kuayu_schemas.models import ActionKind, ActionOutcome, ActionPhase, AllocationPhase

if TYPE_CHECKING:
    from kuayu_schemas import documents

DEFAULT_PATIENCE_SECONDS = 10.0
"""Seconds that a domain has to answer where an allocation does not say."""

SHOWN_NAME_CHARACTERS = 64
"""Characters of an allocation's name that names of its actions begin with, for whoever reads logs."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that a domain is asked to do, or was.

    Attributes:
        attempt: For which placement: 0 is the first choice, then the alternatives in turn.
        body: The action, as the domain is shown it.
        open: Whether it is shown; it is until it is answered, or until it is overtaken by an abort.
        outcome: How it ended; None until the domain has answered. Also what was overtaken may be answered late.
        nodes: Nodes that the domain named; None where it named none.
    """

    attempt: int
    body: "documents.Action"
    open: bool = True
    outcome: ActionOutcome | None = None
    nodes: "tuple[documents.NodeShare, ...] | None" = None

    @property
    def action(self) -> str:
        """Name of the action that it is a step of."""
        return self.body["id"]

    @property
    def key(self) -> tuple[str, ActionPhase]:
        """What no other step of the allocation has."""
        return self.action, self.phase

    @property
    def kind(self) -> ActionKind:
        """What is to be done."""
        return ActionKind(self.body["kind"])

    @property
    def phase(self) -> ActionPhase:
        """Step of the contract."""
        return ActionPhase(self.body["phase"])

    @property
    def lets_go(self) -> bool:
        """Whether a domain lets go by it."""
        return self.phase is ActionPhase.abort or self.kind is ActionKind.release

    @property
    def about(self) -> str:
        """Action by which was reserved what it is about."""
        return self.body.get("reservation", self.action)

    @property
    def domain(self) -> str:
        """Who carries it out."""
        return self.body["domain"]

    def fits_on(self, nodes: "tuple[documents.NodeShare, ...] | None") -> bool:
        """Whether nodes have as many devices as are to be held; they do where none are named."""
        wanted = self.kind is ActionKind.reserve and bool(nodes)
        return not wanted or sum(node["devices"] for node in nodes or ()) == self.body["devices"]


def placements(spec: "documents.Allocation") -> "list[documents.JobPlacement]":
    """Placements of an allocation in the order in which they are tried."""
    return [spec["placement"], *spec.get("alternatives", ())]


def domains(spec: "documents.Allocation") -> frozenset[str]:
    """Domains of all placements of an allocation."""
    return frozenset(share["domain"] for placement in placements(spec) for share in placement["shares"])


def patience(spec: "documents.Allocation") -> float:
    """Seconds that a domain has to answer, and that its promise holds."""
    return float(spec.get("patience", DEFAULT_PATIENCE_SECONDS))


def reserve(spec: "documents.Allocation", created: int, attempt: int) -> Iterator[Step]:
    """Ask every domain of a placement to promise its share.

    Args:
        spec: The allocation.
        created: When it was first written, in milliseconds. An allocation that has the name of one that was forgotten
            must not get answers that were given to the other.
        attempt: Which of its placements.
    """
    tried = placements(spec)
    for share in tried[attempt]["shares"]:
        cause = f"allocation {spec['id']}, placement {attempt + 1} of {len(tried)}: {_words(share)}"
        name = _name(spec, f"{created}.{attempt}", share["domain"])
        body = _action(spec, share, name, ActionKind.reserve, ActionPhase.prepare, cause)
        body["expires_after"] = patience(spec)
        if "lease" in spec:
            body["lease"] = spec["lease"]
        yield Step(attempt, body)


def following(step: Step, phase: ActionPhase) -> Step:
    """The next step of the same action."""
    body = {name: value for name, value in step.body.items() if name != "expires_after"}
    return Step(step.attempt, cast("documents.Action", body | {"phase": phase.value}))


def release(spec: "documents.Allocation", created: int, attempt: int, holdings: Mapping[str, Any]) -> Iterator[Step]:
    """Ask every domain to give back what is held there.

    Args:
        spec: The allocation.
        created: As for :func:`reserve`.
        attempt: Which of its placements is held.
        holdings: The placement, as :func:`held_in` says it.
    """
    for share in holdings["shares"]:
        cause = f"allocation {spec['id']} was withdrawn: {_words(share)}"
        name = _name(spec, f"{created}.release", share["domain"])
        body = _action(spec, share, name, ActionKind.release, ActionPhase.commit, cause)
        body["reservation"] = _name(spec, f"{created}.{attempt}", share["domain"])
        yield Step(attempt, body)


def held_in(
    placement: "documents.JobPlacement", named: "Mapping[str, tuple[documents.NodeShare, ...] | None]"
) -> dict[str, Any]:
    """What is held of a placement once it is committed, class JobPlacement: rules of jobs read it as plain JSON.

    Args:
        placement: What was asked for.
        named: Nodes that each domain named; None where it named none, and is where it was asked to be.
    """
    shares: list[documents.DomainShare] = [
        {**share, "nodes": list(nodes)} if (nodes := named.get(share["domain"])) else share
        for share in placement["shares"]
    ]
    return {**placement, "shares": shares}


def _name(spec: "documents.Allocation", attempt: str, domain: str) -> str:
    """Name of an action: the same for an allocation, what is tried of it, and a domain."""
    whole = f"{spec['id']}\0{attempt}\0{domain}".encode()
    return f"{spec['id'][:SHOWN_NAME_CHARACTERS]}.{hashlib.sha256(whole).hexdigest()[:24]}"


def _action(
    spec: "documents.Allocation",
    share: "documents.DomainShare",
    name: str,
    kind: ActionKind,
    phase: ActionPhase,
    cause: str,
) -> "documents.Action":
    action: documents.Action = {
        "id": name,
        "kind": kind.value,
        "phase": phase.value,
        "revision": spec["revision"],
        "job": spec["job"],
        "domain": share["domain"],
        "accelerator": share["accelerator"],
        "devices": share["devices"],
        "cause": cause,
    }
    return {**action, "nodes": share["nodes"]} if "nodes" in share else action


def _words(share: "documents.DomainShare") -> str:
    return f"{share['devices']} of {share['accelerator']}"


FINISHED = frozenset({AllocationPhase.refused, AllocationPhase.released})
"""Phases that lead nowhere else."""


MAYBE_HELD = frozenset(AllocationPhase) - FINISHED - {AllocationPhase.preparing, AllocationPhase.unknown}
"""Phases in which domains may hold something for good."""


@dataclass(frozen=True, slots=True)
class AllocationStanding:
    """An allocation as it stands.

    Attributes:
        spec: What is wanted.
        created: When it was first written, in milliseconds.
        phase: Where it stands.
        steps: What domains were asked to do, attempt by attempt.
        attempt: Which of its placements is being tried or held.
        deadline: Until when answers are waited for, in milliseconds; None where nothing depends on time.
        withdrawn: Whether nobody wants it any more, so that no alternative is tried.
        reason: Why it stands so, in words.
        holding: What is held, class JobPlacement; None unless all of it was committed.
    """

    spec: "documents.Allocation"
    created: int
    phase: AllocationPhase
    steps: tuple[Step, ...] = ()
    attempt: int = 0
    deadline: int | None = None
    withdrawn: bool = False
    reason: str | None = None
    holding: dict[str, Any] | None = None

    @property
    def may_be_held(self) -> bool:
        """Whether a domain may run the job: it was asked to commit, and has not said since that it let go.

        Nothing else is known of a domain that cannot be heard; it goes on as long as it likes.
        """
        return any(True for _ in self.maybe_held())

    def maybe_held(self) -> Iterator[Step]:
        """Commits by which a domain may run the job."""
        gone = {step.about for step in self.steps if step.lets_go and step.outcome is not None}
        for step in self.steps:
            if step.kind is ActionKind.reserve and step.phase is ActionPhase.commit and step.action not in gone:
                yield step

    @property
    def ready(self) -> bool:
        """Whether all domains have promised, so that it waits for its turn to commit."""
        promised = not self.unanswered(ActionPhase.prepare, ActionKind.reserve)
        return self.phase is AllocationPhase.preparing and promised and not self.may_be_held

    def current(self, phase: ActionPhase) -> list[Step]:
        """Steps of a phase of the reservation that is being tried or held."""
        return [step for step in self._of_attempt(ActionKind.reserve) if step.phase is phase]

    def unanswered(self, phase: ActionPhase, kind: ActionKind) -> bool:
        """Whether a step of a phase has not been answered, in the present attempt."""
        return any(step.phase is phase and step.outcome is None for step in self._of_attempt(kind))

    def step(self, action: str, phase: ActionPhase) -> Step | None:
        """A step by what no other has, or None."""
        return next((step for step in self.steps if step.key == (action, phase)), None)

    def with_steps(self, steps: Iterable[Step]) -> Self:
        """The allocation with steps added, or put in the place of what they were."""
        existing = {step.key: step for step in self.steps} | {step.key: step for step in steps}
        return replace(self, steps=tuple(existing.values()))

    def _of_attempt(self, kind: ActionKind) -> Iterator[Step]:
        return (step for step in self.steps if step.attempt == self.attempt and step.kind is kind)


GRANTS = {ActionPhase.prepare: ActionOutcome.prepared, ActionPhase.commit: ActionOutcome.committed}
"""How a step ends after which a domain holds something."""

SUCCESSES = {**GRANTS, ActionPhase.abort: ActionOutcome.aborted}
"""How a step ends that goes well, and no other step."""

MAX_REASON_CHARACTERS = 2000
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
        nodes: Nodes that it named; None where it named none.
        why: Why it was refused, in words; None where it did not say.
    """

    action: str
    phase: ActionPhase
    outcome: ActionOutcome
    nodes: "tuple[documents.NodeShare, ...] | None" = None
    why: str | None = None


def begin(spec: Mapping[str, Any], now: int, created: int | None = None) -> AllocationStanding:
    """A new allocation: promises of its first choice are asked for.

    Args:
        spec: The allocation, class Allocation.
        now: By the clock that deadlines are kept by.
        created: What the clock on the wall shows, where that is another one.
    """
    allocation = cast("documents.Allocation", spec)
    created = now if created is None else created
    return _preparing(AllocationStanding(allocation, created, AllocationPhase.preparing), 0, now)


def take_result(standing: AllocationStanding, result: Result, now: int) -> AllocationStanding:
    """A domain has answered at ``now``.

    The first answer to a step counts; another one changes nothing. Whoever grants what is not wanted any more is told
    once more to let go, also where it said before that it had.

    Raises:
        NotAskedError: The domain was not asked for that.
        MisfitError: The step cannot end so, or not on these nodes.
    """
    standing = expire(standing, now)
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
        return lapse(standing, [step.domain], now)
    if step.outcome is None:
        done = replace(step, open=False, outcome=result.outcome, nodes=result.nodes)
        standing = standing.with_steps([done])
    abort = standing.step(result.action, ActionPhase.abort)
    if abort is None:
        return _advanced(standing, result.why, now)
    if result.outcome in GRANTS.values():
        return standing if abort.open else standing.with_steps([following(abort, ActionPhase.abort)])
    return _advanced(standing, result.why, now)


def expire(standing: AllocationStanding, now: int) -> AllocationStanding:
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


def withdraw(standing: AllocationStanding, now: int) -> AllocationStanding:
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


def lapse(standing: AllocationStanding, domains: Collection[str], now: int) -> AllocationStanding:
    """Domains have let go by themselves, as where their leases are over; what they held is whole no more."""
    lost = [step for step in standing.maybe_held() if step.domain in domains]
    if not lost:
        return standing
    lost_domains = sorted({step.domain for step in lost if step.attempt == standing.attempt})
    cause = f"{', '.join(lost_domains)} let go without being asked"
    match standing.phase:
        case AllocationPhase.committing if lost_domains:
            standing = _aborting(standing, cause, now)
        case AllocationPhase.committed if lost_domains:
            standing = _releasing(standing, cause)
    gone = {step.action for step in lost}
    done = [
        replace(step, open=False, outcome=ActionOutcome.expired)
        for step in standing.steps
        if step.lets_go and step.about in gone and step.outcome is None
    ]
    return _advanced(standing.with_steps(done), None, now)


def resume(standing: AllocationStanding, now: int) -> AllocationStanding:
    """The service was away until ``now``. Domains could not answer meanwhile, so they get their time anew.

    No more either: where the deadline is further away than that, the clock was set back since.
    """
    if standing.deadline is None:
        return standing
    return replace(standing, deadline=_in_time(standing, now))


def begin_commit(standing: AllocationStanding, now: int) -> AllocationStanding:
    """All domains are to take what they have promised.

    Only for one that is ready, while no other of its job may be held.
    """
    request = [following(step, ActionPhase.commit) for step in standing.current(ActionPhase.prepare)]
    taking = replace(standing, phase=AllocationPhase.committing, deadline=_in_time(standing, now))
    return taking.with_steps(request)


def _advanced(standing: AllocationStanding, why: str | None, now: int) -> AllocationStanding:
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
            return replace(standing, phase=AllocationPhase.released, holding=None)
        case _:
            return standing


def _preparing(standing: AllocationStanding, attempt: int, now: int) -> AllocationStanding:
    trying = replace(standing, phase=AllocationPhase.preparing, attempt=attempt, deadline=_in_time(standing, now))
    return trying.with_steps(reserve(standing.spec, standing.created, attempt))


def _committed(standing: AllocationStanding) -> AllocationStanding:
    named = {step.domain: step.nodes for step in standing.current(ActionPhase.prepare)}
    named |= {step.domain: step.nodes for step in standing.current(ActionPhase.commit) if step.nodes}
    existing = held_in(placements(standing.spec)[standing.attempt], named)
    return replace(standing, phase=AllocationPhase.committed, deadline=None, holding=existing)


def _aborting(standing: AllocationStanding, cause: str, now: int) -> AllocationStanding:
    """Have everyone let go who was asked, also whoever has not answered or has refused."""
    request = standing.current(ActionPhase.prepare)
    overtaken = [
        replace(step, open=False) for step in (*request, *standing.current(ActionPhase.commit)) if step.outcome is None
    ]
    letting_go = replace(
        standing,
        phase=AllocationPhase.aborting,
        deadline=_in_time(standing, now),
        reason=_reason(standing, cause),
    )
    return letting_go.with_steps([*overtaken, *(following(step, ActionPhase.abort) for step in request)])


def _releasing(standing: AllocationStanding, cause: str) -> AllocationStanding:
    """Have everyone give back what is held."""
    assert standing.holding is not None
    request = release(standing.spec, standing.created, standing.attempt, standing.holding)
    return replace(standing, phase=AllocationPhase.releasing, reason=cause).with_steps(request)


def _next(standing: AllocationStanding, now: int) -> AllocationStanding:
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


def _in_time(standing: AllocationStanding, now: int) -> int:
    return now + round(patience(standing.spec) * 1000)


def _refusal(step: Step, why: str | None) -> str:
    assert step.outcome is not None
    return f"{step.domain} answered {step.phase.value} with {step.outcome.value}" + (f" ({why})" if why else "")


def _reason(standing: AllocationStanding, cause: str) -> str:
    """All that has gone wrong so far, the newest last."""
    return "; ".join(filter(None, (standing.reason, cause)))[-MAX_REASON_CHARACTERS:]
