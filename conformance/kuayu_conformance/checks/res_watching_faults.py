"""What is to be told, what is not, and what is to be cleared: RES-017, RES-018, RES-020 and RES-022."""

from collections.abc import Iterator, Sequence
from math import inf

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks import res_watching_script as script
from kuayu_conformance.checks.res_watching_seen import Observed, Told
from kuayu_conformance.findings import Claim, Finding, holds

SLACK = 1.5
"""Seconds between two looks, at most: what came in time is seen that much later."""

DEAD, FAILING, UNREACHABLE, HUNG = "node_dead", "node_failing", "domain_unreachable", "job_hung"


def judge_faults(o: Observed) -> Iterator[Finding]:
    """Each fault by its kind and what it is about."""
    yield from _silent_domain(o)
    yield from _over(o)
    yield from _old_beats(o)
    yield from _no_longer_watched(o)


def _silent_domain(o: Observed) -> Iterator[Finding]:
    silent = o.about(UNREACHABLE, "domain", script.SILENT)
    yield _told(o, "RES-017", silent, script.WARM, "a domain of which nothing comes is told to be unreachable")
    for number in range(5):
        label = f"{script.SILENT}{number}"
        yield _never(
            o, "RES-017", o.about(DEAD, "node", label), f"node {label} of it, which comes back, is not told dead"
        )
    dead = o.about(DEAD, "node", script.LOST)
    yield _told(o, "RES-017", dead, script.HEARD, "a node that does not come back with its domain is told dead then")


def _over(o: Observed) -> Iterator[Finding]:
    returned = o.about(DEAD, "node", script.RETURNS)
    yield _told(o, "RES-018", returned, script.WARM + 1.5, "a node that dies is told dead")
    yield _cleared(o, "RES-018", returned, script.BACK, "the fault of a node that beats again is cleared")
    failing = o.about(FAILING, "node", script.FAILS)
    yield _told(
        o, "RES-018", failing, script.WARM, "a node is told to fail of whose device the log tells a grave fault"
    )
    yield _cleared(o, "RES-018", failing, script.BACK, "the fault of a failing node that was started anew is cleared")
    hung = o.about(HUNG, "job", script.HANGING)
    yield _told(o, "RES-018", hung, script.HUNG, "a job that makes no more steps is told to hang", since=script.HANGS)
    yield _cleared(o, "RES-018", hung, script.GOES_ON, "the fault of a job that makes steps again is cleared")
    flaps = o.about(DEAD, "node", script.FLAPS)
    expected = "faults about a node that comes and goes for 25 s are one at most"
    yield holds("RES-018", len(flaps) <= 1, expected, _shown(o, flaps), _answer(flaps))
    if flaps:
        expected = "the fault of a node that came and went is cleared"
        yield _cleared(o, "RES-018", flaps, script.LAST_RETURN, expected, before=True)


def _old_beats(o: Observed) -> Iterator[Finding]:
    dead = o.about(DEAD, "node", script.DIES)
    yield _told(o, "RES-020", dead, script.WARM, "a node is told dead whose old beats come again and again")
    early = [each for each in dead if each.cleared < inf]
    yield holds("RES-020", not early, "its fault is not cleared by them", _shown(o, early), _answer(early))
    anew = o.about(DEAD, "node", script.RESTARTS)
    yield _never(
        o, "RES-020", anew, "a node that goes on with lower numbers, since it was started anew, is not told dead"
    )


def _no_longer_watched(o: Observed) -> Iterator[Finding]:
    name = o.names[script.DELETED]
    told = [each for each in o.told.values() if each.fault.get("node") == name]
    yield _never(o, "RES-022", told, "nothing is told of a node that was deleted while it beat")
    job = o.names[script.ENDING]
    told = [each for each in o.told.values() if each.fault.get("job") == job]
    yield _never(o, "RES-022", told, "nothing is told of a job whose ranks have ended")
    buried = o.about(DEAD, "node", script.BURIED)
    deleted = script.COURSES[script.BURIED].deleted
    yield _told(o, "RES-022", buried, script.WARM + 3, "a node that dies is told dead")
    yield _cleared(o, "RES-022", buried, deleted, "the fault of a node that was deleted is cleared", within=script.TOLD)


def _told(
    o: Observed, requirement: str, found: Sequence[Told], begin: float, what: str, *, since: float = inf
) -> Claim:
    """Told in time, and not before there was anything to tell, which is at ``since`` where that is before ``begin``."""
    earliest, latest = o.clock.at(min(begin, since)), o.clock.at(begin + script.TOLD) + SLACK
    met = bool(found) and earliest <= found[0].told <= latest
    return holds(requirement, met, f"{what}, within {script.TOLD:.0f} s", _shown(o, found), _answer(found))


def _cleared(
    o: Observed,
    requirement: str,
    found: Sequence[Told],
    over: float,
    what: str,
    *,
    within: float = script.CLEARED,
    before: bool = False,
) -> Claim:
    """Cleared in time, and not before it was over unless that may be."""
    earliest, latest = -inf if before else o.clock.at(over), o.clock.at(over + within) + SLACK
    met = bool(found) and all(earliest <= each.cleared <= latest for each in found)
    return holds(requirement, met, f"{what}, within {within:.0f} s", _shown(o, found), _answer(found))


def _never(o: Observed, requirement: str, found: Sequence[Told], what: str) -> Claim:
    return holds(requirement, not found, what, _shown(o, found), _answer(found))


def _shown(o: Observed, found: Sequence[Told]) -> str:
    """When faults were seen to be told and cleared, in seconds of what was played."""
    begin = o.clock.at(0.0)
    rows = (
        f"{each.fault.get('kind')} told at {each.told - begin:.1f} s"
        + (f", cleared at {each.cleared - begin:.1f} s" if each.cleared < inf else ", open")
        for each in found
    )
    return "; ".join(rows) or "none"


def _answer(found: Sequence[Told]) -> Answer | None:
    return found[0].answer if found else None
