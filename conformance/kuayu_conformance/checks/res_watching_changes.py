"""Changes of faults as events and as listings: RES-023."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs

from kuayu_conformance.checks.res_watching_seen import Fault, Listed, Observed
from kuayu_conformance.findings import Finding, answered, holds
from kuayu_conformance.streams import StreamEvent
from kuayu_schemas import schema


def judge_changes(o: Observed) -> Iterator[Finding]:
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


def _resumed(o: Observed) -> Iterator[Finding]:
    assert o.resumed is not None
    yield answered("RES-023", o.resumed.opening, 200, "a stream is opened behind an event that was given")
    ids = [event.id for event in o.events]
    rest = [(event.id, event.data) for event in o.events[ids.index(o.behind) + 1 :]] if o.behind in ids else []
    again = [(event.id, event.data) for event in o.resumed.events][: len(rest)]
    expected = f"it gives the {len(rest)} events after that one again, and first"
    found = "it does" if again == rest else f"{len(again)} events, the first of them {again[:1]} and not {rest[:1]}"
    yield holds("RES-023", again == rest, expected, found, o.resumed.opening)


def _as_told(o: Observed, listed: Listed) -> Iterator[Finding]:
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
    found = [fault for fault in listed.faults if o.ours(fault)]
    strange = [fault for fault in listed.faults if not _matches(fault, listed.query)]
    expected = f"faults listed by {listed.query} in pages of {listed.limit} equal their last events"
    met = found == wanted and not strange
    yield holds("RES-023", met, expected, _differing(found, wanted, strange), first)


def _matches(fault: Fault, query: str) -> bool:
    return all(fault.get(member) == values[0] for member, values in parse_qs(query).items())


def _differing(found: Sequence[Fault], wanted: Sequence[Fault], strange: Sequence[Fault]) -> str:
    if strange:
        return f"others are listed: {strange[0]}"
    for listed, told in zip(found, wanted, strict=False):
        if listed != told:
            return f"listed {listed}, told {told}"
    return f"{len(found)} listed, {len(wanted)} told"
