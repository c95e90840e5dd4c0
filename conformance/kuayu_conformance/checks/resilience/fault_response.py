"""Three domains beat for a minute, fall silent, fail and come back: RES-017 to RES-023.

What is played is one script (:mod:`kuayu_conformance.checks.resilience.fault_player`); faults and actions are looked at
every second, and followed as a stream from the first beat on.

1. What is to be told, what is not, and what is to be cleared: RES-017, RES-018, RES-020 and RES-022.
2. Changes of faults as events and as listings: RES-023.
3. Fences and releases: RES-019.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import Any
from urllib.parse import parse_qs

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.resilience import fault_player as script
from kuayu_conformance.checks.resilience.fault_player import (
    NAMED,
    Action,
    Fault,
    FaultListing,
    FaultRun,
    FaultSighting,
    Player,
    Reply,
    judge_batches,
)
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Finding, answered, holds
from kuayu_conformance.streams import StreamEvent
from kuayu_schemas import schema

SLACK = 1.5
"""Seconds between two looks, at most: what came in time is seen that much later."""

DEAD, FAILING, UNREACHABLE, HUNG = "node_dead", "node_failing", "domain_unreachable", "job_hung"


def judge_faults(o: FaultRun) -> Iterator[Finding]:
    """Each fault by its kind and what it is about."""
    yield from _silent_domain(o)
    yield from _over(o)
    yield from _old_beats(o)
    yield from _no_longer_watched(o)


def _silent_domain(o: FaultRun) -> Iterator[Finding]:
    silent = o.about(UNREACHABLE, "domain", script.SILENT)
    yield _sightings(o, "RES-017", silent, script.WARM, "a domain of which nothing comes is told to be unreachable")
    for number in range(5):
        label = f"{script.SILENT}{number}"
        yield _never(
            o, "RES-017", o.about(DEAD, "node", label), f"node {label} of it, which comes back, is not told dead"
        )
    dead = o.about(DEAD, "node", script.LOST)
    yield _sightings(
        o, "RES-017", dead, script.HEARD, "a node that does not come back with its domain is told dead then"
    )


def _over(o: FaultRun) -> Iterator[Finding]:
    returned = o.about(DEAD, "node", script.RETURNS)
    yield _sightings(o, "RES-018", returned, script.WARM + 1.5, "a node that dies is told dead")
    yield _cleared(o, "RES-018", returned, script.BACK, "the fault of a node that beats again is cleared")
    failing = o.about(FAILING, "node", script.FAILS)
    yield _sightings(
        o, "RES-018", failing, script.WARM, "a node is told to fail of whose device the log tells a grave fault"
    )
    yield _cleared(o, "RES-018", failing, script.BACK, "the fault of a failing node that was started anew is cleared")
    hung = o.about(HUNG, "job", script.HANGING)
    yield _sightings(
        o, "RES-018", hung, script.HUNG, "a job that makes no more steps is told to hang", since=script.HANGS
    )
    yield _cleared(o, "RES-018", hung, script.GOES_ON, "the fault of a job that makes steps again is cleared")
    flaps = o.about(DEAD, "node", script.FLAPS)
    expected = "faults about a node that comes and goes for 25 s are one at most"
    yield holds("RES-018", len(flaps) <= 1, expected, _shown(o, flaps), _answer(flaps))
    if flaps:
        expected = "the fault of a node that came and went is cleared"
        yield _cleared(o, "RES-018", flaps, script.LAST_RETURN, expected, before=True)


def _old_beats(o: FaultRun) -> Iterator[Finding]:
    dead = o.about(DEAD, "node", script.DIES)
    yield _sightings(o, "RES-020", dead, script.WARM, "a node is told dead whose old beats come again and again")
    early = [entry for entry in dead if entry.cleared < inf]
    yield holds("RES-020", not early, "its fault is not cleared by them", _shown(o, early), _answer(early))
    anew = o.about(DEAD, "node", script.RESTARTS)
    yield _never(
        o, "RES-020", anew, "a node that goes on with lower numbers, since it was started anew, is not told dead"
    )


def _no_longer_watched(o: FaultRun) -> Iterator[Finding]:
    name = o.names[script.DELETED]
    sightings = [item for item in o.sightings.values() if item.fault.get("node") == name]
    yield _never(o, "RES-022", sightings, "nothing is told of a node that was deleted while it beat")
    job = o.names[script.ENDING]
    sightings = [entry for entry in o.sightings.values() if entry.fault.get("job") == job]
    yield _never(o, "RES-022", sightings, "nothing is told of a job whose ranks have ended")
    buried = o.about(DEAD, "node", script.BURIED)
    deleted = script.COURSES[script.BURIED].deleted
    yield _sightings(o, "RES-022", buried, script.WARM + 3, "a node that dies is told dead")
    yield _cleared(o, "RES-022", buried, deleted, "the fault of a node that was deleted is cleared", within=script.TOLD)


def _sightings(
    o: FaultRun, requirement: str, sightings: Sequence[FaultSighting], begin: float, what: str, *, since: float = inf
) -> Claim:
    """Told in time, and not before there was anything to tell, which is at ``since`` where that is before ``begin``."""
    earliest, latest = o.clock.at(min(begin, since)), o.clock.at(begin + script.TOLD) + SLACK
    met = bool(sightings) and earliest <= sightings[0].told_at <= latest
    return holds(requirement, met, f"{what}, within {script.TOLD:.0f} s", _shown(o, sightings), _answer(sightings))


def _cleared(
    o: FaultRun,
    requirement: str,
    sightings: Sequence[FaultSighting],
    over: float,
    what: str,
    *,
    within: float = script.CLEARED,
    before: bool = False,
) -> Claim:
    """Cleared in time, and not before it was over unless that may be."""
    earliest, latest = -inf if before else o.clock.at(over), o.clock.at(over + within) + SLACK
    met = bool(sightings) and all(earliest <= entry.cleared <= latest for entry in sightings)
    return holds(requirement, met, f"{what}, within {within:.0f} s", _shown(o, sightings), _answer(sightings))


def _never(o: FaultRun, requirement: str, sightings: Sequence[FaultSighting], what: str) -> Claim:
    return holds(requirement, not sightings, what, _shown(o, sightings), _answer(sightings))


def _shown(o: FaultRun, sightings: Sequence[FaultSighting]) -> str:
    """When faults were seen to be told and cleared, in seconds of what was played."""
    begin = o.clock.at(0.0)
    rows = (
        f"{entry.fault.get('kind')} told at {entry.told_at - begin:.1f} s"
        + (f", cleared at {entry.cleared - begin:.1f} s" if entry.cleared < inf else ", open")
        for entry in sightings
    )
    return "; ".join(rows) or "none"


def _answer(sightings: Sequence[FaultSighting]) -> Answer | None:
    return sightings[0].answer if sightings else None


def judge_changes(o: FaultRun) -> Iterator[Finding]:
    """Events are whole and in order, come again to who resumes, and lead to what is listed."""
    for stream in o.streams:
        yield answered("RES-023", stream.opening, 200, "the stream of faults is opened")
    yield holds("RES-023", bool(o.events), "changes of faults come as events", f"{len(o.events)} events")
    odd = [fault for event in o.events for fault in _odd(event)]
    yield holds(
        "RES-023", not odd, "each is of the type fault, valid, and has its revision as identifier", odd[:3] or "so"
    )
    numbers = [_number(event.json) for event in o.events]
    falls = [f"{before} before {after}" for before, after in pairwise(numbers) if not before < after]
    yield holds("RES-023", not falls, "revisions rise", falls[:3] or "so")
    yield from _resumed(o)
    for listed in o.listed:
        yield from _as_told(o, listed)


def _odd(event: StreamEvent) -> Iterator[str]:
    revision = event.json.get("revision") if isinstance(event.json, dict) else None
    stated = "{}:{}".format(revision.get("epoch"), revision.get("number")) if isinstance(revision, dict) else ""
    if event.kind != "fault" or event.id != stated:
        yield f"type {event.kind}, identifier {event.id}, revision {stated or 'none'}"
    for error in schema.errors("Fault", event.json, reader=True):
        yield f"{event.id}: {error.pointer} {error.detail}"


def _number(fault: Any) -> int:
    revision = fault.get("revision") if isinstance(fault, dict) else None
    number = revision.get("number") if isinstance(revision, dict) else None
    return number if isinstance(number, int) else -1


def _resumed(o: FaultRun) -> Iterator[Finding]:
    assert o.resumed is not None
    yield answered("RES-023", o.resumed.opening, 200, "a stream is opened behind an event that was given")
    ids = [event.id for event in o.events]
    rest = [(event.id, event.data) for event in o.events[ids.index(o.behind) + 1 :]] if o.behind in ids else []
    again = [(event.id, event.data) for event in o.resumed.events][: len(rest)]
    expected = f"it gives the {len(rest)} events after that one again, and first"
    observed = "it does" if again == rest else f"{len(again)} events, the first of them {again[:1]} and not {rest[:1]}"
    yield holds("RES-023", again == rest, expected, observed, o.resumed.opening)


def _as_told(o: FaultRun, listed: FaultListing) -> Iterator[Finding]:
    """A listing shows what the last event of each fault has told, as of its revision."""
    first = listed.pages[0]
    for page in listed.pages:
        yield answered("RES-023", page, 200, "faults are listed")
    revision = first.at("revision")
    same = all(page.at("revision") == revision for page in listed.pages)
    yield holds("RES-023", same, "all pages of a listing are of one revision", "so" if same else "they are not", first)
    most = max(len(page.items("items")) for page in listed.pages)
    expected = f"a page has {listed.limit} faults at most"
    yield holds("RES-023", most <= listed.limit, expected, f"{most}", first)
    last: dict[str, Fault] = {}
    for event in o.events:
        if isinstance(event.json, dict) and _number(event.json) <= _number({"revision": revision}):
            last[str(event.json.get("id"))] = event.json
    wanted = [fault for _, fault in sorted(last.items()) if o.ours(fault) and _matches(fault, listed.query)]
    # Those of others that use the same tenant are not looked at, but where they must not be listed at all.
    faults = [fault for fault in listed.faults if o.ours(fault)]
    strange = [fault for fault in listed.faults if not _matches(fault, listed.query)]
    expected = f"faults listed by {listed.query} in pages of {listed.limit} equal their last events"
    met = faults == wanted and not strange
    yield holds("RES-023", met, expected, _differing(faults, wanted, strange), first)


def _matches(fault: Fault, query: str) -> bool:
    return all(fault.get(member) == values[0] for member, values in parse_qs(query).items())


def _differing(faults: Sequence[Fault], wanted: Sequence[Fault], strange: Sequence[Fault]) -> str:
    if strange:
        return f"others are listed: {strange[0]}"
    for listed, expected_fault in zip(faults, wanted, strict=False):
        if listed != expected_fault:
            return f"listed {listed}, told {expected_fault}"
    return f"{len(faults)} listed, {len(wanted)} told"


FENCED = ("node_dead", "node_failing")


def judge_actions(o: FaultRun) -> Iterator[Finding]:
    """One fence for each fault of a node, one release where it was cleared, and answers that end them."""
    actions = list(o.actions())
    gone = {o.names[label] for label, course in script.COURSES.items() if course.deleted < inf}
    for sighting in o.sightings.values():
        if sighting.fault.get("kind") in FENCED and sighting.fault.get("node") not in gone:
            yield from _fenced(sighting, actions)
    yield from _seen(o, actions)
    for reply in o.replies:
        yield from _replied(o, reply)


def _fenced(sighting: FaultSighting, requested: list[tuple[str, Action]]) -> Iterator[Finding]:
    """Of one fault: its fence, to the domain of its node, and its release."""
    fault = sighting.fault
    what = f"{fault.get('kind')} of {fault.get('node')}"
    of_it = [(domain, action) for domain, action in requested if action.get("id") in (fault.get("actions") or ())]
    fences = [
        (domain, action.get("phase"), action.get("nodes")) for domain, action in of_it if action.get("kind") == "fence"
    ]
    wanted = [(fault.get("domain"), "commit", [{"node": fault.get("node"), "devices": script.DEVICES}])]
    expected = f"{what}: its domain is asked once, and committed at once, to fence it"
    yield holds("RES-019", fences == wanted, expected, fences or "no fence", sighting.answer)
    if fault.get("state") != "cleared":
        return
    names = {action.get("id") for _, action in of_it if action.get("kind") == "fence"}
    releases = [
        (domain, action.get("phase"), action.get("reservation") in names)
        for domain, action in of_it
        if action.get("kind") == "release"
    ]
    expected = f"{what}, cleared: the domain is asked once to release the fence, which is named"
    yield holds(
        "RES-019", releases == [(fault.get("domain"), "commit", True)], expected, releases or "none", sighting.answer
    )


def _seen(o: FaultRun, requested: list[tuple[str, Action]]) -> Iterator[Finding]:
    """That there was something to judge: a release after each kind of fault."""
    for kind, label in (("node_dead", script.RETURNS), ("node_failing", script.FAILS)):
        actions = {name for entry in o.about(kind, "node", label) for name in entry.fault.get("actions") or ()}
        kinds = sorted(str(action.get("kind")) for _, action in requested if action.get("id") in actions)
        expected = f"a node that was {kind.removeprefix('node_')} and came back is fenced and released"
        yield holds("RES-019", kinds == ["fence", "release"], expected, kinds or "nothing was asked")


def _replied(o: FaultRun, reply: Reply) -> Iterator[Finding]:
    """It is there until it is answered and not afterwards; what comes back is its fault."""
    yield answered("RES-019", reply.answer, 200, f"the result {reply.outcome} of an action is taken")
    names = reply.answer.items("actions")
    expected = "a result is answered with the fault because of which was asked"
    yield holds("RES-019", reply.action in names, expected, reply.answer.brief, reply.answer)
    ends = [entry.instant for entry in o.replies if entry.action == reply.action and entry.outcome != "unknown"]
    first = next((look.instant for look in o.looks if reply.action in look.open_actions), 0.0)
    if reply.outcome == "unknown":
        until = min(ends, default=o.looks[-1].instant)
        remote = [reply.action in look.open_actions for look in o.looks if first <= look.instant < until]
        expected = "an action whose outcome is unknown stays open"
        yield holds("RES-019", all(remote) and len(remote) > 1, expected, f"in {sum(remote)} of {len(remote)} looks")
        return
    before = [reply.action in look.open_actions for look in o.looks if first <= look.instant < reply.instant]
    after = [reply.action in look.open_actions for look in o.looks if look.instant > reply.instant]
    expected = "an action can be fetched until it is answered, and not afterwards"
    observed = f"in {sum(before)} of {len(before)} looks before, in {sum(after)} of {len(after)} after"
    yield holds("RES-019", all(before) and not any(after), expected, observed, reply.answer)


def observe(episode: Episode) -> FaultRun:
    """Play the script.

    Raises:
        SetUpFailure: Domains or nodes were refused.
        NotTestable: Beats could not be sent in time.
    """
    return Player(episode).play()


def judge(o: FaultRun) -> Iterator[Finding]:
    """Each requirement by what was seen of it."""
    yield from judge_batches(o.batches, failing=bool(o.about(FAILING, "node", NAMED)))
    if o.refused is not None:
        for requirement in ("RES-017", "RES-018", "RES-019", "RES-020", "RES-022", "RES-023"):
            yield answered(requirement, o.refused, (200, 204), "what is played is taken")
        return
    yield from judge_faults(o)
    yield from judge_actions(o)
    yield from judge_changes(o)


CHECK = Check(
    "res_watching",
    ("RES-017", "RES-018", "RES-019", "RES-020", "RES-021", "RES-022", "RES-023"),
    observe,
    judge,
    recorded_times=True,
    background=True,
)
