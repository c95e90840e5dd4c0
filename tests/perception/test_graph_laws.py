"""Laws of the resource graph: whatever changes, snapshots, changes and patches agree in every narrower view."""

import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu.perception.graph import (
    DOMAIN,
    LINK,
    MEMBERS,
    NODE,
    NOTHING,
    STATES,
    WHOLE,
    Change,
    ChangeLog,
    Graph,
    Hierarchy,
    LinkTracker,
    Name,
    Narrowing,
    NodeVerdict,
    Vertex,
    canonical_vertex,
    domain_vertex,
    number,
    patch,
)
from kuayu_schemas import schema

AT = "2026-01-01T00:00:00.000Z"
DOMAINS = ("a", "b", "c")

names = st.sampled_from(["n1", "n2", "n3", "n4", "n5", "n6"])
domains = st.sampled_from(DOMAINS)
narrowings = st.builds(Narrowing, st.booleans(), st.none() | domains)
Step = tuple[Any, ...]
steps = st.one_of(
    st.tuples(st.just("put domain"), domains),
    st.tuples(st.just("put node"), names, domains, st.integers(0, 8)),
    st.tuples(st.just("drop node"), names),
    st.tuples(st.just("see"), names, st.integers(0, 6)),
    st.tuples(st.just("summarise"), domains, st.booleans(), st.none() | st.floats(0, 1)),
    st.tuples(st.just("put link"), names, domains, domains),
    st.tuples(st.just("drop link"), names),
    st.tuples(st.just("measure"), names, st.none() | st.floats(0, 1e12), st.none() | st.floats(0, 1)),
    st.tuples(st.just("drop domain"), domains),
)


class World:
    """A graph that is changed as the service changes it, and what a service must not be asked for is left out."""

    def __init__(self) -> None:
        self.hierarchy = Hierarchy()
        self.links = LinkTracker()
        self.graph = Graph()
        self.log = ChangeLog(10_000, 1 << 30)
        self.nodes: dict[str, tuple[str, int, int]] = {}
        self.ends: dict[str, tuple[str, str]] = {}
        self.domains: set[str] = set()
        self.clock = 0.0

    def take(self, step: Step) -> None:
        """Carry a step out and publish."""
        self.clock += 1.0
        match step:
            case ("put domain", name):
                self.domains.add(name)
                self.hierarchy.put_domain(name)
            case ("put node", name, domain, devices) if domain in self.domains:
                state = self.nodes.get(name, ("", 0, STATES.index("unknown")))[2]
                self.nodes[name] = (domain, devices, state)
                self.hierarchy.put_node(name, domain, devices, AT)
            case ("drop node", name):
                self.nodes.pop(name, None)
                self.hierarchy.drop_node(name)
            case ("see", name, state) if name in self.nodes:
                self.nodes[name] = (*self.nodes[name][:2], state)
                self.hierarchy.see(name, NodeVerdict(state, 0.5, "told"), AT)
            case ("summarise", name, reachable, mean) if name in self.domains:
                self.hierarchy.summarise(name, reachable=reachable, utilisation=mean, now=self.clock)
            case ("put link", name, source, destination) if {source, destination} <= self.domains:
                self.ends[name] = (source, destination)
                self.links.put(name, source, destination, 1e10)
            case ("drop link", name):
                self.ends.pop(name, None)
                self.links.drop(name)
            case ("measure", name, bandwidth, loss) if name in self.ends:
                self.links.measure(name, (bandwidth, None, loss), self.clock, self.clock)
            case ("drop domain", name) if not self._used(name):
                self.domains.discard(name)
                self.hierarchy.drop_domain(name)
        self.publish()

    def publish(self) -> None:
        """Publish what has changed."""
        nodes, gone = self.hierarchy.changed()
        links, gone_links = self.links.changed(self.clock)
        if made := self.graph.apply(nodes | links, [*gone, *gone_links]):
            self.log.append(Change(self.log.number + 1, AT, made))

    def _used(self, name: str) -> bool:
        ends = {end for ends in self.ends.values() for end in ends}
        return name in ends or any(domain == name for domain, _, _ in self.nodes.values())


def document(world: World, narrowing: Narrowing = WHOLE) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(world.graph.view(narrowing).body())
    return found


def applied(snapshot: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """What a reader makes of a snapshot and a change."""
    result: dict[str, Any] = {}
    for kind, member in MEMBERS.items():
        held = {vertex["id"]: vertex for vertex in snapshot[member]}
        for vertex in change["gone"]:
            if vertex["kind"] == kind:
                del held[vertex["id"]]
        held.update({vertex["id"]: vertex for vertex in change[member]})
        result[member] = [held[name] for name in sorted(held)]
    return result


@given(st.lists(steps, max_size=20), st.lists(steps, max_size=20), narrowings)
def test_a_snapshot_and_the_changes_after_it_are_the_later_snapshot(
    early: list[Step], late: list[Step], narrowing: Narrowing
) -> None:
    world = World()
    for step in early:
        world.take(step)
    held, number_then = document(world, narrowing), world.log.number
    for step in late:
        world.take(step)
    for change in world.log.since(number_then) or []:
        data = change.data("epoch", narrowing)
        if data is None:
            continue
        told = json.loads(data)
        assert schema.errors("GraphChange", told) == []
        assert any(told[member] for member in (*MEMBERS.values(), "gone"))
        assert told["revision"] == {"epoch": "epoch", "number": change.number}
        held = applied(held, told)
    assert held == document(world, narrowing)


@given(st.lists(steps, max_size=20), st.lists(steps, max_size=20), narrowings, narrowings)
def test_a_patch_leads_from_any_snapshot_to_any_other_and_states_their_digests(
    early: list[Step], late: list[Step], first: Narrowing, second: Narrowing
) -> None:
    world = World()
    for step in early:
        world.take(step)
    base, held = world.graph.view(first), document(world, first)
    for step in late:
        world.take(step)
    target = world.graph.view(second)
    made = json.loads(patch(base, target))
    assert schema.errors("Patch", made) == []
    assert (made["base"], made["result"]) == (schema.digest(held), schema.digest(document(world, second)))
    assert jsonpatch.apply_patch(held, made["operations"]) == document(world, second)


@given(st.lists(steps, max_size=40))
def test_domains_count_their_nodes_and_narrower_views_are_parts_of_the_whole(taken: list[Step]) -> None:
    world = World()
    for step in taken:
        world.take(step)
    whole = document(world)
    assert {vertex["id"] for vertex in whole["domains"]} == world.domains
    assert {vertex["id"]: STATES.index(vertex["state"]) for vertex in whole["nodes"]} == {
        name: state for name, (_, _, state) in world.nodes.items()
    }
    assert {vertex["id"]: (vertex["source"], vertex["destination"]) for vertex in whole["links"]} == world.ends
    for vertex in whole["domains"]:
        members = [node for node in whole["nodes"] if node["domain"] == vertex["id"]]
        assert vertex["devices"] == sum(node["devices"] for node in members)
        for state in STATES:
            assert vertex["nodes"][state] == sum(node["state"] == state for node in members)
    for name in world.domains:
        part = document(world, Narrowing(domain=name))
        assert part["domains"] == [vertex for vertex in whole["domains"] if vertex["id"] == name]
        assert part["nodes"] == [vertex for vertex in whole["nodes"] if vertex["domain"] == name]
        assert part["links"] == [link for link in whole["links"] if name in (link["source"], link["destination"])]
    assert document(world, Narrowing(nodes=False)) == whole | {"nodes": []}


@given(st.lists(steps, max_size=30))
def test_what_is_held_is_the_canonical_form(taken: list[Step]) -> None:
    world = World()
    for step in taken:
        world.take(step)
    for narrowing in (WHOLE, Narrowing(nodes=False), Narrowing(domain="a")):
        view = world.graph.view(narrowing)
        assert view.body() == schema.canonical(json.loads(view.body()))
        assert view.digest == schema.digest(json.loads(view.body()))


@given(
    st.dictionaries(
        st.sampled_from(["id", "because", "packet_loss", "round_trip_time", "devices"]),
        st.text() | st.integers(0, (1 << 53) - 1) | st.floats(allow_nan=False, allow_infinity=False).map(number),
    )
)
def test_any_vertex_is_written_as_rfc_8785_has_it(vertex: dict[str, Any]) -> None:
    assert canonical_vertex(vertex) == schema.canonical(vertex)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, 1e-5, 5e-324, 123456.789, 1e15, 2.0**53, 1e21, 1e22, 1.7e308])
def test_awkward_numbers_are_written_as_rfc_8785_has_them(value: float) -> None:
    assert canonical_vertex({"round_trip_time": number(value)}) == schema.canonical({"round_trip_time": value})


def test_a_node_that_goes_over_to_another_domain_is_gone_from_its_former_one() -> None:
    world = World()
    for step in (("put domain", "a"), ("put domain", "b"), ("put node", "n1", "a", 2), ("put node", "n1", "b", 2)):
        world.take(step)
    (change,) = world.log.since(3) or []
    former = json.loads(change.data("e", Narrowing(domain="a")) or b"")
    assert former["gone"] == [{"kind": "node", "id": "n1"}]
    assert [vertex["nodes"]["unknown"] for vertex in former["domains"]] == [0]
    now = json.loads(change.data("e", Narrowing(domain="b")) or b"")
    assert [vertex["id"] for vertex in now["nodes"]] == ["n1"]
    assert now["gone"] == []
    only_domains = json.loads(change.data("e", Narrowing(nodes=False)) or b"")
    assert (only_domains["nodes"], only_domains["gone"]) == ([], [])
    assert change.data("e", Narrowing(domain="c")) is None


def test_a_log_gives_what_it_holds_and_nothing_else() -> None:
    log = ChangeLog(max_changes=3, max_bytes=1 << 20)
    assert log.since(0) == []
    for count in range(1, 6):
        log.append(Change(count, AT, ()))
    assert [change.number for change in log.since(2) or []] == [3, 4, 5]
    assert log.since(5) == []
    assert log.since(1) is None
    assert log.since(6) is None


def test_a_log_is_bounded_by_bytes_too_and_keeps_the_newest() -> None:
    graph, log = Graph(), ChangeLog(max_changes=100, max_bytes=2_000)
    for count in range(1, 11):
        come: dict[Name, Vertex] = {(NODE, "n"): Vertex(b"x" * 300 * count, ("a",))}
        log.append(Change(count, AT, graph.apply(come)))
    assert [change.number for change in log.since(9) or []] == [10]
    assert log.since(8) is None


def test_a_vertex_that_stands_as_it_stood_is_no_step() -> None:
    graph = Graph()
    vertex: dict[Name, Vertex] = {(DOMAIN, "a"): Vertex(b"{}", ("a",))}
    assert len(graph.apply(vertex)) == 1
    assert graph.apply(vertex) == ()
    assert graph.apply({}, [(LINK, "never"), (NODE, "never")]) == ()


def test_utilisation_is_shown_when_it_has_moved_or_after_a_while() -> None:
    hierarchy = Hierarchy()
    hierarchy.put_domain("a")

    def shown(mean: float | None, now: float) -> Any:
        hierarchy.summarise("a", reachable=True, utilisation=mean, now=now)
        come, _ = hierarchy.changed()
        return [json.loads(vertex.written).get("accelerator_utilisation") for vertex in come.values()]

    assert shown(0.5, 0.0) == [0.5]
    assert shown(0.504, 1.0) == []
    assert shown(0.53, 2.0) == []
    assert shown(0.56, 3.0) == [0.56]
    assert shown(0.53, 12.9) == []
    assert shown(0.53, 13.0) == [0.53]
    assert shown(0.53, 99.0) == []
    assert shown(None, 99.5) == [None]
    assert hierarchy.changed() == ({}, [])


def test_since_is_when_the_state_came_and_outlives_a_changed_registration() -> None:
    hierarchy = Hierarchy()
    hierarchy.put_domain("a")
    hierarchy.put_node("n", "a", 1, "2026-01-01T00:00:00.000Z")
    hierarchy.see("n", NodeVerdict(1, 0.7, "works"), "2026-01-01T00:00:01.000Z")
    hierarchy.see("n", NodeVerdict(1, 0.9, "works"), "2026-01-01T00:00:02.000Z")
    hierarchy.put_node("n", "a", 8, "2026-01-01T00:00:03.000Z")
    come, _ = hierarchy.changed()
    vertex = json.loads(come[NODE, "n"].written)
    assert (vertex["since"], vertex["state"]) == ("2026-01-01T00:00:01.000Z", "busy")
    assert (vertex["confidence"], vertex["devices"]) == (0.9, 8)


def link_vertices(tracker: LinkTracker, now: float) -> list[Any]:
    come, _ = tracker.changed(now)
    return [json.loads(vertex.written) for vertex in come.values()]


def test_a_link_is_as_the_clause_says() -> None:
    tracker = LinkTracker()
    tracker.put("l", "a", "b", 10e9)
    (vertex,) = link_vertices(tracker, 0.0)
    assert (vertex["state"], vertex["provenance"]) == ("unknown", "unknown")
    cases = [
        ((9e9, 0.01, 0.0), "up"),
        ((9e9, 0.01, 0.1), "degraded"),
        ((9e9, 0.01, 1.0), "down"),
        ((4.9e9, 0.01, 0.0), "degraded"),
        ((5e9, 0.01, 0.0), "up"),
        ((None, 0.01, None), "up"),
        ((None, None, 1.0), "down"),
        (NOTHING, "unknown"),
    ]
    for at, (measured, state) in enumerate(cases, 1):
        tracker.measure("l", measured, float(at), float(at))
        (vertex,) = link_vertices(tracker, float(at))
        assert vertex["state"] == state
        assert vertex["provenance"] == ("unknown" if measured == NOTHING else "measured")
        stated = dict(zip(("inter_domain_bandwidth", "round_trip_time", "packet_loss"), measured, strict=True))
        assert {name: vertex.get(name) for name in stated} == stated


def test_a_link_without_a_capacity_is_measured_by_what_it_usually_offers() -> None:
    tracker = LinkTracker()
    tracker.put("l", "a", "b", None)
    for at in range(4):
        tracker.measure("l", (8e9, None, None), float(at), float(at))
    assert link_vertices(tracker, 4.0)[0]["state"] == "up"
    for at in range(5, 605):  # a slump of ten minutes is not usual yet
        tracker.measure("l", (3e9, None, None), float(at), float(at))
        assert all(vertex["state"] == "degraded" for vertex in link_vertices(tracker, float(at)))
    tracker.measure("l", (7e9, None, None), 700.0, 700.0)
    assert link_vertices(tracker, 700.0)[0]["state"] == "up"


def test_small_moves_of_a_link_wait_and_what_was_estimated_says_so() -> None:
    tracker = LinkTracker()
    tracker.put("l", "a", "b", None)
    tracker.estimate("l", 1e9, 0.02, 0.0)
    (vertex,) = link_vertices(tracker, 0.0)
    assert (vertex["provenance"], vertex["state"], vertex["round_trip_time"]) == ("estimated", "unknown", 0.02)
    tracker.measure("l", (1e9, 0.02, None), 1.0, 1.0)
    assert link_vertices(tracker, 1.0)[0]["provenance"] == "measured"
    tracker.measure("l", (1.01e9, 0.02, None), 2.0, 2.0)
    assert link_vertices(tracker, 2.0) == []
    assert link_vertices(tracker, 6.0)[0]["inter_domain_bandwidth"] == 1.01e9
    tracker.measure("l", (1.2e9, 0.02, None), 7.0, 7.0)
    assert link_vertices(tracker, 7.0)[0]["inter_domain_bandwidth"] == 1.2e9


def test_vertices_keep_to_the_published_schema() -> None:
    vertex = domain_vertex("a", [1, 2, 3, 4, 5, 6, 7], 9, reachable=False, utilisation=0.25)
    assert schema.errors("DomainVertex", vertex) == []
    world = World()
    for step in (
        ("put domain", "a"),
        ("put domain", "b"),
        ("put node", "n1", "a", 2),
        ("see", "n1", 3),
        ("put link", "l", "a", "b"),
        ("measure", "l", 1e9, 0.5),
    ):
        world.take(step)
    whole = document(world)
    graph = {"digest": schema.digest(whole), "revision": {"epoch": "e", "number": 6}, "taken_at": AT}
    assert schema.errors("ResourceGraph", graph | whole) == []
