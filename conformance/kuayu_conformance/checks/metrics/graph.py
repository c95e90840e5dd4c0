"""The graph holds what is registered (MET-017), and says how the quality of links came about (MET-023)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.graphs import Graph, Vertex, digest_of, document, graph_of, only, read, wait_until
from kuayu_conformance.checks.kit.resources import device, domain, node, post, sample
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.findings import Finding, answered, holds, lacks

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
        yield holds("MET-017", met, expected, _size(graph), answer)
        if "detail" in query:
            yield holds("MET-017", not graph["nodes"], f"with {query} no nodes are given", _size(graph), answer)
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


def _size(graph: Graph) -> str:
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


CHECK = Check("met_graph", ("MET-017", "MET-023"), observe, judge, recorded_times=True)
