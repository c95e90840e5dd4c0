"""What was told and what was so: which faults were recognised, which telling was wrong, and how long it all took."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from kuayu_conformance.checks.res_detection_player import RESPONSES, Response
from kuayu_conformance.checks.states_timeline import Clock
from kuayu_conformance.streams import StreamEvent
from kuayu_conformance.testbed.heartbeats import Incident, World
from kuayu_conformance.testbed.heartbeats.values import KINDS, TOLD, subject_of

NEVER = 3600.0
"""Seconds that stand for a time without end."""


@dataclass(frozen=True)
class Telling:
    """A fault as it was told.

    Attributes:
        fault: Its identifier.
        subject: Its kind and what it is about.
        at: Unix time at which the event had come.
        cleared: When the event had come that it is over; infinite where none has.
    """

    fault: str
    subject: tuple[str, ...]
    at: float
    cleared: float


@dataclass(frozen=True)
class Outcome:
    """What became of an incident.

    Attributes:
        incident: The incident.
        telling: How it was told; None where it was not.
        told_s: Seconds from its begin until then; nought where that was earlier, infinite for never.
        responded_s: Seconds from its begin until all actions could be fetched, likewise; infinite after ``TOLD`` s.
            None where nothing has to be done.
        acting_s: Seconds from the telling until then; None where there is no such time.
    """

    incident: Incident
    telling: Telling | None
    told_s: float
    responded_s: float | None
    acting_s: float | None = None


@dataclass(frozen=True)
class Account:
    """Everything that is to be said of a played world.

    Attributes:
        outcomes: Of all incidents that have to be told, in the order in which they begin.
        wrong: What was told and was not so.
        repeated: How many faults were told once more while they lasted.
    """

    outcomes: tuple[Outcome, ...]
    wrong: tuple[Telling, ...]
    repeated: int


def tellings(events: Iterable[StreamEvent]) -> list[Telling]:
    """Faults in the order in which they were told open, each once."""
    at: dict[str, tuple[tuple[str, ...], float]] = {}
    cleared: dict[str, float] = {}
    for event in events:
        fault = event.json if isinstance(event.json, dict) else {}
        name, kind, state = str(fault.get("id")), str(fault.get("kind")), fault.get("state")
        if kind in KINDS and state == "open":
            at.setdefault(name, (subject_of(kind, fault), event.at))
        elif state == "cleared":
            cleared.setdefault(name, event.at)
    return [Telling(name, subject, when, cleared.get(name, inf)) for name, (subject, when) in at.items()]


def account(world: World, clock: Clock, told: Sequence[Telling], responses: Sequence[Response]) -> Account:
    """Hold what was told against the truth.

    A fault is recognised by what was told of it until its deadline, and still held when it began; not by what was told
    of another one before it. What is told at a time at which it is not so, nor comes to be so, is wrong.
    """
    # What others do who use the same tenant is told as well, rightly or not. What is told of nothing is wrong.
    ours = {str(None), *(str(body["id"]) for body in (*world.domains, *world.nodes)), *(job.name for job in world.jobs)}
    told = [each for each in told if each.subject[1] in ours]
    of: dict[tuple[str, ...], list[Telling]] = defaultdict(list)
    for each in told:
        of[each.subject].append(each)
    fetched = _earliest(responses)
    spans: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    outcomes, repeated = [], 0
    for incident in world.incidents:
        since, begin, end = clock.at(incident.since), clock.at(incident.at), _end(incident, clock)
        before = max((over for _, over in spans[incident.subject]), default=-inf)
        spans[incident.subject].append((since, end))
        if incident.demanded:
            its = [each for each in of[incident.subject] if before < each.at <= end and each.cleared > begin]
            repeated += max(0, len(its) - 1)
            outcomes.append(_outcome(incident, begin, its, fetched))
    wrong = [each for each in told if not any(since <= each.at <= end for since, end in spans[each.subject])]
    return Account(tuple(outcomes), tuple(wrong), repeated)


def _end(incident: Incident, clock: Clock) -> float:
    return inf if incident.deadline == inf else clock.at(incident.deadline)


def _earliest(responses: Sequence[Response]) -> dict[tuple[str, str], float]:
    """When the action of a fault could be fetched first, by fault and domain."""
    found: dict[tuple[str, str], float] = {}
    for each in responses:
        found[each.fault, each.domain] = min(each.at, found.get((each.fault, each.domain), inf))
    return found


def _outcome(
    incident: Incident, begin: float, its: Sequence[Telling], fetched: dict[tuple[str, str], float]
) -> Outcome:
    telling = its[0] if its else None
    told_s = inf if telling is None else max(0.0, telling.at - begin)
    if incident.kind not in RESPONSES:
        return Outcome(incident, telling, told_s, None)
    ready = [max(fetched.get((each.fault, domain), inf) for domain in incident.asked) for each in its]
    at = min(ready, default=inf)
    if telling is None or at > begin + TOLD:
        return Outcome(incident, telling, told_s, inf)
    return Outcome(incident, telling, told_s, max(0.0, at - begin), max(0.0, at - telling.at))
