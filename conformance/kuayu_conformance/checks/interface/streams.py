"""Streams resume where they were broken off, and say where they cannot (COM-023, COM-024)."""

from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.graphs import events_until, identifier_of, read, removes, revision_of, wait_until
from kuayu_conformance.checks.kit.resources import domain, node, post, sample
from kuayu_conformance.episode import Episode, Stream, instant
from kuayu_conformance.findings import Finding, answered, holds
from kuayu_conformance.streams import MEDIA_TYPE, StreamEvent
from kuayu_schemas import schema

CHANGES = 24
"""Changes that are made while streams are broken off."""

SETTLE = 5.0
"""Seconds that a resumed stream has for events that an unbroken one has shown already."""


@dataclass(frozen=True)
class Resumptions:
    """Resumptions of a stream that cannot be: behind an event of another epoch, one that never was, and none at all."""

    stream: str
    foreign: Answer
    future: Answer
    malformed: Answer


@dataclass(frozen=True)
class StreamPieces:
    """An unbroken stream, the pieces of one that was broken off again and again, and resumptions that cannot be."""

    snapshot: Answer
    unbroken: Stream
    pieces: tuple[Stream, ...]
    late: Stream
    last: str
    refused: tuple[Resumptions, ...]


def observe(episode: Episode) -> StreamPieces:
    """Change nodes of a domain of our own while a stream of it is broken off and resumed at random times."""
    site = domain(episode)
    query = f"?domain={site}"
    snapshot = wait_until(episode, query, lambda graph: site in graph["domains"])
    begin = identifier_of(snapshot.at("revision"))
    path = f"/v1/graph/events{query}"
    unbroken = episode.follow(path, after=begin)
    pieces, after = [episode.follow(path, after=begin)], begin
    names: list[str] = []
    for number in range(CHANGES):
        _change(episode, site, names, number)
        events = pieces[-1].take(episode.random.uniform(0.05, 0.5), at_least=1000)
        after = events[-1].id if events else after
        if episode.random.random() < 0.5:  # broken off after about every other change
            pieces[-1].hang_up()
            pieces.append(episode.follow(path, after=after))
    last = node(episode, site, "last")
    events_until(episode, unbroken, lambda event: f'"{last}"' in event.data)
    episode.set_up("DELETE", f"/v1/nodes/{last}")
    events_until(episode, unbroken, lambda event: removes(event, "node", last))
    for _ in range(round(SETTLE / 0.25)):
        if _shown(pieces[-1].events, last):
            break
        pieces[-1].take(0.25)
    late = episode.follow(path, after=begin)
    for _ in range(round(SETTLE / 0.25)):
        if _shown(late.events, last):
            break
        late.take(0.25)
    for stream in (unbroken, pieces[-1], late):
        stream.hang_up()
    refused = [_refused(episode, path, read(episode, query))]
    if episode.settings.asks("GET /v1/faults/events", "RES"):
        refused.append(_refused(episode, "/v1/faults/events", episode.ask("GET", "/v1/faults?limit=1")))
    if episode.settings.asks("GET /v1/jobs/events", "JOB"):
        refused.append(_refused(episode, "/v1/jobs/events", episode.ask("GET", "/v1/jobs?limit=1")))
    return StreamPieces(snapshot, unbroken, tuple(pieces), late, last, tuple(refused))


def _refused(episode: Episode, path: str, present: Answer) -> Resumptions:
    """Resume a stream where it cannot be, near the revision of what shows the present state."""
    epoch, number = revision_of(present.at("revision"))
    streams = [
        episode.follow(path, after=identifier)
        for identifier in (f"{epoch}x:{number}", f"{epoch}:{number + 1_000_000}", "no revision")
    ]
    for stream in streams:
        stream.hang_up()
    return Resumptions(path.partition("?")[0], *(stream.opening for stream in streams))


def _change(episode: Episode, site: str, names: list[str], number: int) -> None:
    """One change that needs no recognition: a node comes, one goes, one is reported faulty."""
    match number % 3:
        case 0:
            names.append(node(episode, site, f"n{number}"))
        case 1:
            reported = sample(names[-1], instant(episode.now()), health_state="faulty")
            post(episode, [reported])
        case _ if number % 2:
            episode.set_up("DELETE", f"/v1/nodes/{names.pop()}")


def _until_last(events: tuple[StreamEvent, ...], last: str) -> tuple[StreamEvent, ...]:
    """Events up to the one that takes the last node away; what comes later comes by itself."""
    end = next((number for number, event in enumerate(events, start=1) if removes(event, "node", last)), len(events))
    return events[:end]


def _shown(events: tuple[StreamEvent, ...], last: str) -> bool:
    return any(removes(event, "node", last) for event in events)


def judge(o: StreamPieces) -> Iterator[Finding]:
    """The pieces put together are the unbroken stream, event for event."""
    for stream in (o.unbroken, *o.pieces, o.late):
        opening = stream.opening
        yield answered("COM-023", opening, 200, "a stream is opened behind an event that the service has given")
        media_type = opening.media_type
        yield holds(
            "COM-023", media_type == MEDIA_TYPE, f"its media type is {MEDIA_TYPE}", media_type or "none", opening
        )
    whole = _until_last(o.unbroken.events, o.last)
    shown = _shown(whole, o.last)
    yield holds("COM-023", shown, "the unbroken stream shows the last change", f"{len(whole)} events", o.snapshot)
    yield from _well_formed(o, whole)
    together = tuple(event for piece in o.pieces for event in piece.events)
    rows = (("broken off and resumed", together), ("opened when all was over", o.late.events))
    for named, events in ((name, _until_last(row, o.last)) for name, row in rows):
        expected = f"a stream that is {named} gives the events of the unbroken one, none missing and none twice"
        yield holds("COM-023", _payloads(events) == _payloads(whole), expected, _differing(events, whole), o.snapshot)
    for entry in o.refused:
        for answer, what in (
            (entry.foreign, "an event of an epoch that the service does not know is no longer held"),
            (entry.future, "an event that never was is not held either"),
        ):
            yield answered("COM-024", answer, 410, f"{entry.stream}: {what}", problem="revision-expired")
        because = f"{entry.stream}: what is no revision is a malformed parameter"
        yield answered("COM-024", entry.malformed, 400, because, problem="invalid-parameter")


def _well_formed(o: StreamPieces, whole: tuple[StreamEvent, ...]) -> Iterator[Finding]:
    broken = [
        error.pointer + " " + error.detail
        for event in whole
        for error in schema.errors("GraphChange", event.json, reader=True)
    ]
    yield holds("COM-023", not broken, "the data of each event is valid", broken[:3] or "valid", o.snapshot)
    named = [event.id for event in whole]
    meant = [identifier_of(event.json.get("revision") if isinstance(event.json, dict) else None) for event in whole]
    yield holds("COM-023", named == meant, "the identifier of each event is its revision", named[:3], o.snapshot)
    kinds = sorted({event.kind for event in whole})
    yield holds("COM-023", kinds == ["change"], "each event is of the type change", kinds, o.snapshot)


def _payloads(events: tuple[StreamEvent, ...]) -> list[tuple[str, object]]:
    return [(event.id, event.json) for event in events]


def _differing(events: tuple[StreamEvent, ...], whole: tuple[StreamEvent, ...]) -> str:
    ours, theirs = [event.id for event in events], [event.id for event in whole]
    missing = [name for name in theirs if name not in ours]
    twice = [name for name in dict.fromkeys(ours) if ours.count(name) > 1]
    others = [name for name in ours if name not in theirs]
    return f"{len(ours)} of {len(theirs)} events; missing {missing[:3]}, twice {twice[:3]}, others {others[:3]}"


CHECK = Check("com_streams", ("COM-023", "COM-024"), observe, judge, recorded_times=True)
