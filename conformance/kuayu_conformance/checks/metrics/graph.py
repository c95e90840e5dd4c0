"""The resource graph: what it holds, how it changes, and identifiers that lead through it (MET-007, 017, 018 and 023).

1. The graph holds what is registered (MET-017), and says how the quality of links came about (MET-023).
2. A snapshot and the changes that follow lead to the later snapshots (MET-018).
3. Compute identifiers lead from services to nodes and back (MET-007).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.graphs import (
    Graph,
    Vertex,
    applied,
    difference,
    digest_of,
    document,
    gone_of,
    graph_of,
    identifier_of,
    only,
    read,
    revision_of,
    wait_until,
)
from kuayu_conformance.checks.kit.requests import device, domain, node, post, sample
from kuayu_conformance.episode import Episode, Stream, instant
from kuayu_conformance.findings import Finding, answered, holds, lacks
from kuayu_conformance.streams import StreamEvent

CAPACITY = 10e9
"""Registered capacity of the links, bit/s."""

LOOKS = 5
"""Times that the graph is read whole and in part, at most, until it has stood still meanwhile."""

STATES = ("idle", "busy", "degraded", "straggling", "faulty", "offline", "unknown")
QUALITY = ("inter_domain_bandwidth", "round_trip_time", "packet_loss")

REPORTED: tuple[tuple[str, Mapping[str, float], str], ...] = (
    ("a whole link", {"inter_domain_bandwidth": 9e9, "round_trip_time": 0.02, "packet_loss": 0.0}, "up"),
    (
        "a tenth and more lost",
        {"inter_domain_bandwidth": 9e9, "round_trip_time": 0.02, "packet_loss": 0.125},
        "degraded",
    ),
    (
        "less than half the capacity",
        {"inter_domain_bandwidth": 4e9, "round_trip_time": 0.02, "packet_loss": 0.0},
        "degraded",
    ),
    ("everything lost", {"inter_domain_bandwidth": 0.0, "round_trip_time": 0.02, "packet_loss": 1.0}, "down"),
    ("a whole link again", {"inter_domain_bandwidth": 9e9, "round_trip_time": 0.03, "packet_loss": 0.0}, "up"),
)
"""What is reported of the measured link, one after another, and the state that it leads to."""


@dataclass(frozen=True)
class Look:
    """The graph as it was read whole, for domains only, for one domain, and for one domain without its nodes.

    ``before`` are whole graphs that had moved before they were read in part: each has to agree with itself.
    """

    wanted: Mapping[str, frozenset[str]]
    before: tuple[Answer, ...]
    whole: Answer
    domains: Answer
    one: Answer
    both: Answer


@dataclass(frozen=True)
class GraphLooks:
    """Looks at the graph after each change of what is registered, and at links after each report."""

    names: frozenset[str]
    first: str
    second: str
    moved: str
    looks: tuple[Look, ...]
    links: tuple[tuple[str, Mapping[str, float], str, Answer], ...]
    measured: str
    unmeasured: str
    foreign: Answer | None
    absent: Answer
    odd: Answer


def observe(episode: Episode) -> GraphLooks:
    """Register, move and delete resources of our own, then report on one of two links."""
    first, second = domain(episode, "a"), domain(episode, "b")
    nodes = [
        node(episode, site, f"{letter}{i}", names=("0", "1"))
        for letter, site in zip("ab", (first, second), strict=True)
        for i in range(3)
    ]
    outbound, inbound = _link(episode, first, second, "ab"), _link(episode, second, first, "ba")
    names = frozenset((first, second, *nodes, outbound, inbound))
    whole = {"domains": frozenset({first, second}), "nodes": frozenset(nodes), "links": frozenset({outbound, inbound})}
    looks = [_look(episode, first, whole, names)]

    moved = nodes[2]
    body = {"id": moved, "domain": second, "devices": [device("0")]}
    episode.set_up("PUT", f"/v1/nodes/{moved}", body)
    wait_until(episode, "", lambda graph: graph["nodes"].get(moved, {}).get("domain") == second)
    looks.append(_look(episode, first, whole, names))

    for path in (f"nodes/{nodes[0]}", f"links/{inbound}"):
        episode.set_up("DELETE", f"/v1/{path}")
    left = whole | {"nodes": frozenset(nodes[1:]), "links": frozenset({outbound})}
    looks.append(_look(episode, first, left, names))
    inbound = _link(episode, second, first, "ba")
    looks.append(_look(episode, first, left | {"links": frozenset({outbound, inbound})}, names))

    links = tuple((what, values, state, _report(episode, outbound, values, state)) for what, values, state in REPORTED)
    foreign = read(episode, tenant="other") if episode.settings.other_tenant else None
    return GraphLooks(
        names,
        first,
        second,
        moved,
        tuple(looks),
        links,
        outbound,
        inbound,
        foreign,
        read(episode, f"?domain={episode.name_of('nowhere')}"),
        read(episode, "?detail=atoms"),
    )


def _link(episode: Episode, source: str, destination: str, label: str) -> str:
    identifier = episode.name_of(label)
    body = {"id": identifier, "source": source, "destination": destination, "capacity": CAPACITY, "medium": "leased"}
    episode.set_up("PUT", f"/v1/links/{identifier}", body)
    return identifier


def _look(episode: Episode, site: str, wanted: Mapping[str, frozenset[str]], names: frozenset[str]) -> Look:
    def shown(graph: Graph) -> bool:
        ours = only(graph, names)
        return all(ours[part].keys() == wanted[part] for part in wanted)

    queries = ("detail=domains", f"domain={site}", f"domain={site}&detail=domains")
    wholes: list[Answer] = []
    for _ in range(LOOKS):
        wholes.append(whole := wait_until(episode, "", shown))
        narrower = [read(episode, f"?{query}") for query in queries]
        if _ours(read(episode), names) == _ours(whole, names):
            break  # nothing has moved in between: states of nodes may, as their telemetry is awaited
    return Look(wanted, tuple(wholes[:-1]), whole, *narrower)


def _ours(answer: Answer, names: frozenset[str]) -> Graph:
    return _without_quality(only(graph_of(answer.json), names))


def _report(episode: Episode, link: str, values: Mapping[str, float], state: str) -> Answer:
    post(episode, [sample(link, instant(episode.now()), kind="link", **values)])

    def shown(graph: Graph) -> bool:
        row = graph["links"].get(link, {})
        return row.get("state") == state and all(row.get(name) == value for name, value in values.items())

    return wait_until(episode, "", shown)


def judge(o: GraphLooks) -> Iterator[Finding]:
    """What is shown is what is registered, however narrow the look."""
    for look in o.looks:
        yield from _judge_look(o, look)
    devices = graph_of(o.looks[1].whole.json)["nodes"].get(o.moved, {}).get("devices")
    expected = "a node that was registered anew stands there as it is now"
    yield holds("MET-017", devices == 1, expected, f"{devices} devices", o.looks[1].whole)
    if o.foreign is not None:
        seen = _names(only(graph_of(o.foreign.json), o.names))
        yield lacks("MET-017", o.foreign, sorted(seen)[:3], "another tenant's graph has none of it")
    yield answered("MET-017", o.absent, 404, "the graph of a domain that is not registered", problem="not-found")
    yield answered("MET-017", o.odd, 400, "a detail that the clause does not know", problem="invalid-parameter")
    yield from _judge_links(o)


def _judge_look(o: GraphLooks, look: Look) -> Iterator[Finding]:
    whole = only(graph_of(look.whole.json), o.names)
    for part, wanted in look.wanted.items():
        expected = f"the graph holds the registered {part}, no more and no fewer"
        yield holds("MET-017", whole[part].keys() == wanted, expected, sorted(whole[part]), look.whole)
    for answer in (*look.before, look.whole):
        graph = only(graph_of(answer.json), o.names)
        for site, vertex in graph["domains"].items():
            yield from _judge_domain(vertex, [n for n in graph["nodes"].values() if n.get("domain") == site], answer)
    for query, answer, part_of_it in _narrower(o, look, whole):
        graph = graph_of(answer.json)
        expected = f"with {query} the graph is that part of the whole one"
        alone = "domain=" not in query or not _names(graph) - o.names
        met = _without_quality(only(graph, o.names)) == _without_quality(part_of_it) and alone
        yield holds("MET-017", met, expected, _sizes(graph), answer)
        if "detail" in query:
            yield holds("MET-017", not graph["nodes"], f"with {query} no nodes are given", _sizes(graph), answer)
    for answer in (look.whole, look.domains, look.one, look.both):
        yield answered("MET-017", answer, 200, "the graph is given")
        computed = digest_of(document(answer))
        yield holds("MET-017", answer.at("digest") == computed, "its digest is that of its members", computed, answer)
        ordered = all(_in_order(answer.items(part)) for part in look.wanted)
        observed = "in order" if ordered else "not"
        yield holds("MET-017", ordered, "vertices stand in order of identifier", observed, answer)


def _judge_domain(vertex: Mapping[str, Any], nodes: list[Vertex], answer: Answer) -> Iterator[Finding]:
    counts = {state: sum(row.get("state") == state for row in nodes) for state in STATES}
    observed = vertex.get("nodes")
    yield holds("MET-017", observed == counts, f"a domain's nodes are counted by state: {counts}", observed, answer)
    stated = [row.get("devices") for row in nodes]
    devices = sum(count for count in stated if isinstance(count, int))
    observed = vertex.get("devices")
    yield holds(
        "MET-017", observed == devices, f"a domain's devices are those of its nodes: {devices}", observed, answer
    )


def _narrower(o: GraphLooks, look: Look, whole: Graph) -> Iterator[tuple[str, Answer, Graph]]:
    """Each narrower look, with the part of the whole graph that it must be."""
    own = {name: row for name, row in whole["domains"].items() if name == o.first}
    nodes = {name: row for name, row in whole["nodes"].items() if row.get("domain") == o.first}
    links = {n: row for n, row in whole["links"].items() if o.first in {row.get("source"), row.get("destination")}}
    yield "detail=domains", look.domains, whole | {"nodes": {}}
    yield "domain=ID", look.one, {"domains": own, "nodes": nodes, "links": links}
    yield "domain=ID&detail=domains", look.both, {"domains": own, "nodes": {}, "links": links}


def _without_quality(graph: Graph) -> Graph:
    """The graph without what was estimated, which may move from one look to the next with what others measure."""
    links = {
        name: {key: row.get(key) for key in ("id", "source", "destination", "provenance")}
        if row.get("provenance") == "estimated"
        else row
        for name, row in graph["links"].items()
    }
    return graph | {"links": links}


def _in_order(rows: list[Any]) -> bool:
    names = [str(row.get("id")) for row in rows if isinstance(row, dict)]
    return names == sorted(names)


def _names(graph: Graph) -> set[str]:
    return {name for rows in graph.values() for name in rows}


def _sizes(graph: Graph) -> str:
    return ", ".join(f"{len(rows)} {part}" for part, rows in graph.items())


def _judge_links(o: GraphLooks) -> Iterator[Finding]:
    for what, values, state, answer in o.links:
        row = graph_of(answer.json)["links"].get(o.measured, {})
        expected = f"{what} is shown as {state}, measured, with what was reported"
        reported = {name: row.get(name) for name in ("state", "provenance", *values)}
        met = reported == {"state": state, "provenance": "measured", **values}
        yield holds("MET-023", met, expected, reported, answer)
        other = graph_of(answer.json)["links"].get(o.unmeasured, {})
        states_any = any(other.get(name) is not None for name in QUALITY)
        allowed = {"estimated"} if states_any else {"estimated", "registered", "unknown"}
        expected = "a link that nobody has measured states nothing, or an estimate that is marked as one"
        observed = f"{other.get('provenance')}, {sorted(name for name in QUALITY if name in other)}"
        yield holds("MET-023", other.get("provenance") in allowed, expected, observed, answer)


CHECK = Check(
    "met_graph",
    ("MET-017", "MET-023"),
    observe,
    judge,
    recorded_times=True,
    summary="The graph holds what is registered (MET-017), and says how the quality of links came about (MET-023).",
)


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


def observe_changes(episode: Episode) -> GraphChanges:
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


def judge_changes(o: GraphChanges) -> Iterator[Finding]:
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
    empty = [event.id for event in events if not _change_count(event)]
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


def _change_count(event: StreamEvent) -> int:
    return sum(map(len, graph_of(event.json).values())) + len(gone_of(event.json))


CHANGES_CHECK = Check(
    "met_changes",
    ("MET-018",),
    observe_changes,
    judge_changes,
    recorded_times=True,
    summary="A snapshot and the changes that follow lead to the later snapshots (MET-018).",
)


@dataclass(frozen=True)
class Resolutions:
    """Resolutions of a service with two families over three nodes, one of them in both, and one that is not there."""

    urns: dict[str, str]
    nodes: dict[str, str]
    resolutions: dict[str, Answer]
    wrong_tier: Answer
    nothing: Answer
    after: Answer


def observe_identifiers(episode: Episode) -> Resolutions:
    """Build a small hierarchy, resolve it at every tier, then take a node away."""
    site = domain(episode)
    urns = {label: episode.urn_of("node", label) for label in ("n1", "n2", "n3", "absent")}
    nodes = {label: node(episode, site, label, compute_identifier=urns[label]) for label in ("n1", "n2", "n3")}
    urns |= {label: episode.urn_of("family", label) for label in ("f1", "f2")}
    urns["s"] = episode.urn_of("service", "s")
    members = {"f1": ("n1", "n2"), "f2": ("n2", "n3", "absent"), "s": ("f1", "f2")}
    for label, parts in members.items():
        body = {"urn": urns[label], "members": [urns[part] for part in parts]}
        episode.set_up("PUT", f"/v1/compute-identifiers/{urns[label]}", body)

    def resolve(label: str) -> Answer:
        return episode.ask("GET", f"/v1/compute-identifiers/{urns[label]}/resolution")

    resolutions = {label: resolve(label) for label in ("s", "f1", "f2", "n1", "n2")}
    skipping = {"urn": episode.urn_of("service", "skips"), "members": [urns["n1"]]}
    wrong_tier = episode.ask("PUT", f"/v1/compute-identifiers/{skipping['urn']}", skipping)
    nothing = episode.ask("GET", f"/v1/compute-identifiers/{episode.urn_of('family', 'nothing')}/resolution")
    episode.set_up("DELETE", f"/v1/nodes/{nodes['n1']}")
    return Resolutions(urns, nodes, resolutions, wrong_tier, nothing, resolve("s"))


def judge_identifiers(o: Resolutions) -> Iterator[Finding]:
    """Each resolution holds all that lies below and above, in order."""
    expected = {
        "s": (("s",), ("f1", "f2"), ("n1", "n2", "n3"), ("absent",)),
        "f1": (("s",), ("f1",), ("n1", "n2"), ()),
        "f2": (("s",), ("f2",), ("n2", "n3"), ("absent",)),
        "n1": (("s",), ("f1",), ("n1",), ()),
        "n2": (("s",), ("f1", "f2"), ("n2",), ()),
    }
    for label, (services, families, nodes, unresolved) in expected.items():
        yield from _resolved(o, label, o.resolutions[label], services, families, nodes, unresolved)
    yield answered("MET-007", o.wrong_tier, 422, "a service whose member is no family", problem="invalid-body")
    yield answered("MET-007", o.nothing, 404, "an identifier of which nothing is known", problem="not-found")
    yield from _resolved(o, "s", o.after, ("s",), ("f1", "f2"), ("n2", "n3"), ("absent", "n1"))


def _resolved(
    o: Resolutions,
    label: str,
    answer: Answer,
    services: tuple[str, ...],
    families: tuple[str, ...],
    nodes: tuple[str, ...],
    unresolved: tuple[str, ...],
) -> Iterator[Finding]:
    yield answered("MET-007", answer, 200, f"{o.urns[label]} resolves")
    wanted = {
        "services": sorted(o.urns[x] for x in services),
        "families": sorted(o.urns[x] for x in families),
        "nodes": sorted(o.nodes[x] for x in nodes),
        "unresolved": sorted(o.urns[x] for x in unresolved),
    }
    for member, names in wanted.items():
        observed = answer.at(member)
        yield holds("MET-007", observed == names, f"{o.urns[label]}: {member} are {names}", observed, answer)


IDENTIFIERS_CHECK = Check(
    "met_identifiers",
    ("MET-007",),
    observe_identifiers,
    judge_identifiers,
    summary="Compute identifiers lead from services to nodes and back (MET-007).",
)
