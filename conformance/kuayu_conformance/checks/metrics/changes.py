"""A snapshot and the changes that follow lead to the later snapshots (MET-018)."""

from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.graphs import (
    Graph,
    applied,
    difference,
    gone_of,
    graph_of,
    identifier_of,
    read,
    revision_of,
    wait_until,
)
from kuayu_conformance.checks.kit.resources import domain, node, post, sample
from kuayu_conformance.episode import Episode, Stream, instant
from kuayu_conformance.findings import Finding, answered, holds
from kuayu_conformance.streams import StreamEvent

TURNS = 12
"""Changes of the suite's own."""

SNAPSHOTS = (4, 8, 12)
"""Turns after which snapshots are taken."""

QUIET = 3.0
"""Seconds without any event after which a stream is taken to have told all that it has to tell."""


@dataclass(frozen=True)
class StreamView:
    """A snapshot, the stream from its revision, and snapshots that were taken meanwhile, all of one narrowness."""

    narrowing: str
    first: Answer
    stream: Stream
    later: tuple[Answer, ...]


@dataclass(frozen=True)
class GraphChanges:
    """The same changes seen whole, for domains only, and for one domain; and what is the suite's own."""

    followed: tuple[StreamView, ...]
    names: frozenset[str]


def observe(episode: Episode) -> GraphChanges:
    """Follow three streams while nodes and links of our own come, change and go."""
    site, other = domain(episode, "a"), domain(episode, "b")
    wait_until(episode, "", lambda graph: {site, other} <= graph["domains"].keys())
    queries = ("", "?detail=domains", f"?domain={site}")
    firsts = [read(episode, query) for query in queries]
    streams = [
        episode.follow(f"/v1/graph/events{query}", after=identifier_of(first.at("revision")))
        for query, first in zip(queries, firsts, strict=True)
    ]
    later: list[list[Answer]] = [[] for _ in queries]
    names: list[str] = []
    for round_number in range(1, TURNS + 1):
        _change(episode, (site, other), names, round_number)
        episode.sleep(episode.random.uniform(0.1, 0.8))
        if round_number in SNAPSHOTS:
            for query, taken in zip(queries, later, strict=True):
                taken.append(read(episode, query))
    for stream, taken in zip(streams, later, strict=True):
        last = max(revision_of(answer.at("revision"))[1] for answer in taken)
        until = episode.now() + episode.patience
        while not any(_number(event) >= last for event in stream.events) and episode.now() < until:
            if not stream.take(QUIET):
                break
        stream.hang_up()
    rows = zip(queries, firsts, streams, map(tuple, later), strict=True)
    return GraphChanges(tuple(StreamView(*row) for row in rows), frozenset({site, other, *names}))


def _change(episode: Episode, sites: tuple[str, str], names: list[str], round_number: int) -> None:
    now = instant(episode.now())
    match round_number % 6:
        case 1 | 2:
            names.append(node(episode, sites[round_number % 2], f"n{round_number}", names=("0",)))
        case 3:
            post(
                episode,
                [sample(names[-1], now, health_state="faulty"), sample(names[0], now, accelerator_utilisation=0.9)],
            )
        case 4:
            link = episode.name_of(f"l{round_number}")
            body = {"id": link, "source": sites[0], "destination": sites[1]}
            episode.set_up("PUT", f"/v1/links/{link}", body)
            post(episode, [sample(link, now, kind="link", packet_loss=1.0)])
        case 5:
            body = {"id": names[-1], "domain": sites[round_number % 4 // 2], "label": f"moved in turn {round_number}"}
            episode.set_up("PUT", f"/v1/nodes/{names[-1]}", body)
        case _:
            episode.set_up("DELETE", f"/v1/nodes/{names.pop(0)}")


def judge(o: GraphChanges) -> Iterator[Finding]:
    """Whatever the narrowness, no change is needed that the stream does not hold."""
    for followed in o.followed:
        yield from _judge(followed, o.names)


def _judge(followed: StreamView, names: frozenset[str]) -> Iterator[Finding]:
    what = f"?{followed.narrowing.lstrip('?')}" if followed.narrowing else "the whole graph"
    yield answered("MET-018", followed.first, 200, f"a snapshot of {what}")
    yield answered("MET-018", followed.stream.opening, 200, f"the stream of {what} from the snapshot's revision")
    events = followed.stream.events
    numbers = [_number(event) for event in events]
    _, begin = revision_of(followed.first.at("revision"))
    rising = all(a < b for a, b in zip([begin, *numbers], numbers, strict=False))
    expected = "each change has a greater revision than the one before"
    yield holds("MET-018", rising, expected, numbers[:20], followed.first)
    empty = [event.id for event in events if not _size(event)]
    yield holds("MET-018", not empty, "no change is empty", empty[:3] or f"{len(events)} changes", followed.first)
    graph, taken = graph_of(followed.first.json), 0
    for snapshot in followed.later:
        _, until = revision_of(snapshot.at("revision"))
        while taken < len(events) and numbers[taken] <= until:
            graph = applied(graph, events[taken].json)
            taken += 1
        wanted: Graph = graph_of(snapshot.json)
        expected = f"{taken} changes lead from the first snapshot of {what} to the one at revision {until}"
        observed = difference(graph, wanted) or "they do"
        yield holds("MET-018", graph == wanted, expected, observed, snapshot)
    changed = len({name for event in events for part in graph_of(event.json).values() for name in part} & names)
    expected = "the changes of the suite's own show in the stream"
    yield holds("MET-018", bool(changed), expected, f"{changed} vertices changed", followed.first)


def _number(event: StreamEvent) -> int:
    body = event.json
    return revision_of(body.get("revision") if isinstance(body, dict) else None)[1]


def _size(event: StreamEvent) -> int:
    return sum(map(len, graph_of(event.json).values())) + len(gone_of(event.json))


CHECK = Check("met_changes", ("MET-018",), observe, judge, recorded_times=True)
