"""Streams, listings and patches lead to one state (COM-012, COM-023, COM-024, MET-019).

1. A stream resumes where it was broken off, and says where it cannot (COM-023, COM-024).
2. A listing shows one revision from the first page to the last (COM-012).
3. Patches lead from a snapshot that was given to the present graph (MET-019).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any
from urllib.parse import quote

import jsonpatch

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.graphs import (
    PARTS,
    difference,
    digest_of,
    document,
    events_until,
    graph_of,
    identifier_of,
    only,
    read,
    removes,
    revision_of,
    wait_until,
)
from kuayu_conformance.checks.kit.requests import domain, failing, faults_of, node, pages, post, read_samples, sample
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
        _change_nodes(episode, site, names, number)
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


def _change_nodes(episode: Episode, site: str, names: list[str], number: int) -> None:
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


CHECK = Check(
    "com_streams",
    ("COM-023", "COM-024"),
    observe,
    judge,
    recorded_times=True,
    summary="Streams resume where they were broken off, and say where they cannot (COM-023, COM-024).",
)


NODES, PAGE = 7, 3
FAILING = 4


@dataclass(frozen=True)
class Faults:
    """Pages of faults of which some were cleared after the first page, by the deletion of their nodes.

    Attributes:
        open: Faults that were open before the first page.
        pages: The listing, a fault on each page.
        foreign: Answer to the cursor of the listing, given to another one.
    """

    open: Answer
    pages: tuple[Answer, ...]
    foreign: Answer


@dataclass(frozen=True)
class ListingPages:
    """Pages of a listing that was changed after its first page, and of a series that grew after its first page.

    ``faults`` is None where the target does not declare to tell any.
    """

    names: tuple[str, ...]
    pages: tuple[Answer, ...]
    fresh: Answer
    foreign: Answer
    series: tuple[Answer, ...]
    instants: tuple[str, ...]
    faults: Faults | None


def observe_paging(episode: Episode) -> ListingPages:
    """List nodes page by page while one is deleted, one is made and one is changed; likewise samples."""
    site = domain(episode)
    names = tuple(node(episode, site, f"n{i}", label="before") for i in range(NODES))
    listing = f"/v1/nodes?domain={site}&limit={PAGE}"
    listed = [episode.ask("GET", listing)]
    episode.set_up("DELETE", f"/v1/nodes/{names[-1]}")
    node(episode, site, "n5a", label="between")
    episode.set_up("PUT", f"/v1/nodes/{names[4]}", {"id": names[4], "domain": site, "label": "after"})
    listed += list(pages(episode, listing, listed[0]))[1:]
    fresh = episode.ask("GET", f"/v1/nodes?domain={site}")
    foreign = episode.ask("GET", f"/v1/links?cursor={quote(str(listed[0].at('next_cursor')), safe='')}")

    now = episode.now()
    instants = tuple(instant(now - 60 + i) for i in range(NODES))
    post(episode, [sample(names[0], when, power=1.0) for when in instants])
    query = f"&limit={PAGE}"
    series = [read_samples(episode, names[0], query=query)]
    late = [sample(names[0], instant(now - 60 + i + 0.5), power=2.0) for i in range(NODES)]
    post(episode, late)
    series += list(pages(episode, f"/v1/samples?subject={names[0]}&subject_kind=node{query}", series[0]))[1:]
    faults = _faults(episode) if episode.settings.asks("POST /v1/heartbeats", "RES") else None
    return ListingPages(names, tuple(listed), fresh, foreign, tuple(series), instants, faults)


def _faults(episode: Episode) -> Faults:
    """List faults page by page while some of them are cleared."""
    site = domain(episode, "faults")
    names = [node(episode, site, f"f{i}", names=["0"]) for i in range(FAILING)]
    failing(episode, names)
    begun = faults_of(episode, site, "open", FAILING)
    listing = f"/v1/faults?domain={site}&limit=1"
    first = episode.ask("GET", listing)
    for name in names:
        if name != first.at("items", 0, "node"):
            episode.set_up("DELETE", f"/v1/nodes/{name}")
    faults_of(episode, site, "cleared", FAILING - 1)
    cursor = quote(str(first.at("next_cursor")), safe="")
    foreign = episode.ask("GET", f"/v1/faults?domain={site}&state=open&cursor={cursor}")
    return Faults(begun, tuple(pages(episode, listing, first)), foreign)


def judge_paging(o: ListingPages) -> Iterator[Finding]:
    """The pages together are the listing as it stood at the first; a new listing shows the changes."""
    for answer in o.pages:
        yield answered("COM-012", answer, 200, "each page is answered")
    items = [item for answer in o.pages for item in answer.items("items")]
    names = [_member(item, "id") for item in items]
    last = o.pages[-1]
    yield holds("COM-012", names == sorted(o.names), "the pages hold each node of the first revision once", names, last)
    labels = {_member(item, "label") for item in items}
    yield holds("COM-012", labels == {"before"}, "they show each node as it was at the first page", labels, last)
    revisions = {str(answer.at("revision")) for answer in o.pages}
    yield holds("COM-012", len(revisions) == 1, "each page names the same revision", revisions, last)
    sizes = [len(answer.items("items")) for answer in o.pages]
    yield holds("COM-012", all(size <= PAGE for size in sizes), f"no page holds more than {PAGE}", sizes, last)
    now = {_member(item, "label") for item in o.fresh.items("items")}
    yield holds("COM-012", now == {"before", "between", "after"}, "a new listing shows the changes", now, o.fresh)
    yield answered("COM-012", o.foreign, 400, "the cursor of another listing", problem="invalid-cursor")
    seen = [_member(item, "observed_at") for answer in o.series for item in answer.items("items")]
    expected = "the pages of a series hold what had been received at the first"
    yield holds("COM-012", seen == list(o.instants), expected, f"{len(seen)} samples", o.series[-1])
    if o.faults:
        yield from _judge_faults(o.faults)


def _judge_faults(o: Faults) -> Iterator[Finding]:
    """That faults are told and cleared is a matter of other requirements; here it is how they are listed."""
    for answer in o.pages:
        yield answered("COM-012", answer, 200, "each page of faults is answered")
    items = [item for answer in o.pages for item in answer.items("items")]
    names, last = [str(_member(item, "id")) for item in items], o.pages[-1]
    begun = {str(_member(item, "id")) for item in o.open.items("items")}
    missing = begun - set(names)
    yield holds("COM-012", not missing, "the pages hold each fault that was open before the first", missing, last)
    in_order = names == sorted(set(names))
    yield holds("COM-012", in_order, "they hold each fault once, in order of identifier", names, last)
    states = {str(_member(item, "state")) for item in items}
    expected = "they show each fault as it was at the first page"
    yield holds("COM-012", states <= {"open"}, expected, states, last)
    revisions = {str(answer.at("revision")) for answer in o.pages}
    yield holds("COM-012", len(revisions) == 1, "each page of faults names the same revision", revisions, last)
    sizes = [len(answer.items("items")) for answer in o.pages]
    yield holds("COM-012", all(size <= 1 for size in sizes), "no page of faults holds more than 1", sizes, last)
    if len(begun) > 1:
        because = "the cursor of a listing of faults, given to one of other states"
        yield answered("COM-012", o.foreign, 400, because, problem="invalid-cursor")


def _member(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, dict) else None


PAGING_CHECK = Check(
    "com_paging",
    ("COM-012",),
    observe_paging,
    judge_paging,
    summary="Listings show one revision from the first page to the last (COM-012).",
)


TURNS = 4
"""Kinds of change between a snapshot and its patch."""


@dataclass(frozen=True)
class Step:
    """A snapshot, the patch that was asked for once something had changed, and a snapshot after it."""

    narrowing: str
    quiet: bool
    before: Answer
    patch: Answer
    after: Answer


@dataclass(frozen=True)
class GraphPatches:
    """Patches of graphs that changed and of one that did not."""

    names: frozenset[str]
    steps: tuple[Step, ...]


def observe_patches(episode: Episode) -> GraphPatches:
    """Take snapshots of three narrownesses, change a domain of our own, and ask for the patches."""
    site = domain(episode)
    names = [node(episode, site, f"n{i}") for i in range(4)]
    mine = f"domain={site}"
    wait_until(episode, f"?{mine}", lambda graph: set(names) <= graph["nodes"].keys())
    steps: list[Step] = []
    for round_number, narrowing in product(range(TURNS), (mine, f"{mine}&detail=domains", "", "detail=domains")):
        before = read(episode, _query(narrowing))
        _change_graph(episode, site, names, round_number)
        base = quote(str(before.at("digest"))[:200], safe="")
        patch = episode.ask("GET", f"/v1/graph/patch?base={base}{'&' * bool(narrowing)}{narrowing}")
        steps.append(Step(narrowing, narrowing.startswith(mine), before, patch, read(episode, _query(narrowing))))
    return GraphPatches(frozenset({site, *names}), tuple(steps))


def _query(narrowing: str) -> str:
    return f"?{narrowing}" if narrowing else ""


def _change_graph(episode: Episode, site: str, names: list[str], round_number: int) -> None:
    """Nothing at first; then nodes come before and behind others; then some go; then a state changes."""
    mine = f"?domain={site}"
    match round_number:
        case 1:
            added = [node(episode, site, f"{place}{len(names)}") for place in ("a", "z")]
            names += added
            wait_until(episode, mine, lambda graph: set(added) <= graph["nodes"].keys())
        case 2:
            gone = [names.pop(1), names.pop(-1)]
            for name in gone:
                episode.set_up("DELETE", f"/v1/nodes/{name}")
            wait_until(episode, mine, lambda graph: not set(gone) & graph["nodes"].keys())
        case 3:
            state = "offline" if len(names) % 2 else "faulty"
            post(episode, [sample(names[0], instant(episode.now()), health_state=state)])
            wait_until(episode, mine, lambda graph: graph["nodes"].get(names[0], {}).get("state") == state)


def judge_patches(o: GraphPatches) -> Iterator[Finding]:
    """Each patch leads to the digest that it states; where nobody else changes anything, to the next snapshot's."""
    for step in o.steps:
        what = f"?{step.narrowing}" if step.narrowing else "the whole graph"
        yield answered("MET-019", step.patch, 200, f"a patch from the snapshot of {what} that was just given")
        base = step.patch.at("base")
        yield holds("MET-019", base == step.before.at("digest"), "the patch names its base", base, step.patch)
        patched_graph = _patched_document(step)
        stated = step.patch.at("result")
        expected = f"applied to its base (of {what}), the patch leads to the digest that it states"
        observed = patched_graph if isinstance(patched_graph, str) else digest_of(patched_graph)
        yield holds("MET-019", observed == stated, expected, observed, step.patch)
        if step.quiet:
            expected = f"the digest is that of the snapshot of {what} that is taken next"
            yield holds("MET-019", stated == step.after.at("digest"), expected, step.after.at("digest"), step.patch)
        ours = only(graph_of(patched_graph), o.names)
        theirs = only(graph_of(step.after.json), o.names)
        expected = f"what it leads to (of {what}) holds the suite's own as the next snapshot does"
        yield holds("MET-019", ours == theirs, expected, difference(ours, theirs) or "it does", step.patch)


def _patched_document(step: Step) -> Any:
    """What the patch makes of its base, or in words why it makes nothing of it."""
    try:
        patched = jsonpatch.apply_patch(document(step.before), step.patch.items("operations"))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, KeyError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return {part: patched.get(part) for part in PARTS} if isinstance(patched, dict) else "no object"


PATCHES_CHECK = Check(
    "com_patches",
    ("MET-019",),
    observe_patches,
    judge_patches,
    recorded_times=True,
    summary="Patches lead from a snapshot that was given to the present graph (MET-019).",
)
