"""Fences and releases: RES-019."""

from collections.abc import Iterator
from math import inf

from kuayu_conformance.checks import res_watching_script as script
from kuayu_conformance.checks.res_watching_seen import Action, Observed, Reply, Told
from kuayu_conformance.findings import Finding, answered, holds

FENCED = ("node_dead", "node_failing")


def judge_actions(o: Observed) -> Iterator[Finding]:
    """One fence for each fault of a node, one release where it was cleared, and answers that end them."""
    asked = list(o.actions())
    gone = {o.names[label] for label, course in script.COURSES.items() if course.deleted < inf}
    for told in o.told.values():
        if told.fault.get("kind") in FENCED and told.fault.get("node") not in gone:
            yield from _fenced(told, asked)
    yield from _seen(o, asked)
    for reply in o.replies:
        yield from _replied(o, reply)


def _fenced(told: Told, asked: list[tuple[str, Action]]) -> Iterator[Finding]:
    """Of one fault: its fence, to the domain of its node, and its release."""
    fault = told.fault
    what = f"{fault.get('kind')} of {fault.get('node')}"
    of_it = [(domain, action) for domain, action in asked if action.get("id") in (fault.get("actions") or ())]
    fences = [
        (domain, action.get("phase"), action.get("nodes")) for domain, action in of_it if action.get("kind") == "fence"
    ]
    wanted = [(fault.get("domain"), "commit", [{"node": fault.get("node"), "devices": script.DEVICES}])]
    expected = f"{what}: its domain is asked once, and committed at once, to fence it"
    yield holds("RES-019", fences == wanted, expected, fences or "no fence", told.answer)
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
        "RES-019", releases == [(fault.get("domain"), "commit", True)], expected, releases or "none", told.answer
    )


def _seen(o: Observed, asked: list[tuple[str, Action]]) -> Iterator[Finding]:
    """That there was something to judge: a release after each kind of fault."""
    for kind, label in (("node_dead", script.RETURNS), ("node_failing", script.FAILS)):
        actions = {name for each in o.about(kind, "node", label) for name in each.fault.get("actions") or ()}
        kinds = sorted(str(action.get("kind")) for _, action in asked if action.get("id") in actions)
        expected = f"a node that was {kind.removeprefix('node_')} and came back is fenced and released"
        yield holds("RES-019", kinds == ["fence", "release"], expected, kinds or "nothing was asked")


def _replied(o: Observed, reply: Reply) -> Iterator[Finding]:
    """It is there until it is answered and not afterwards; what comes back is its fault."""
    yield answered("RES-019", reply.answer, 200, f"the result {reply.outcome} of an action is taken")
    names = reply.answer.items("actions")
    expected = "a result is answered with the fault because of which was asked"
    yield holds("RES-019", reply.action in names, expected, reply.answer.brief, reply.answer)
    ends = [each.at for each in o.replies if each.action == reply.action and each.outcome != "unknown"]
    first = next((look.at for look in o.looks if reply.action in look.open_actions), 0.0)
    if reply.outcome == "unknown":
        until = min(ends, default=o.looks[-1].at)
        there = [reply.action in look.open_actions for look in o.looks if first <= look.at < until]
        expected = "an action whose outcome is unknown stays open"
        yield holds("RES-019", all(there) and len(there) > 1, expected, f"in {sum(there)} of {len(there)} looks")
        return
    before = [reply.action in look.open_actions for look in o.looks if first <= look.at < reply.at]
    after = [reply.action in look.open_actions for look in o.looks if look.at > reply.at]
    expected = "an action can be fetched until it is answered, and not afterwards"
    found = f"in {sum(before)} of {len(before)} looks before, in {sum(after)} of {len(after)} after"
    yield holds("RES-019", all(before) and not any(after), expected, found, reply.answer)
