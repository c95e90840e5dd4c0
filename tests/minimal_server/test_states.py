"""Stories of the states of nodes, told to a minimal server whose clock is ours."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from typing_extensions import override

from kuayu_conformance.checks.metrics.states import delays_of_states, right_states, shown_rightly
from kuayu_conformance.checks.metrics.timeline import Clock, Timeline
from kuayu_conformance.streams import StreamEvent
from kuayu_conformance.testbed import sparse
from kuayu_conformance.testbed.telemetry import Scale, World
from minimal_server.client import SCHEMAS
from minimal_server.core import Tenant, instant
from minimal_server.graph import Scope
from minimal_server.service import MinimalServer

BEGIN = 1_800_000_000_000
GIB = 1 << 30
WORKS = {"accelerator_utilisation": 0.98, "accelerator_memory_used": 40 * GIB, "power": 600.0, "allocatable_share": 1}
RESTS = {"accelerator_utilisation": 0.0, "accelerator_memory_used": 0, "power": 70.0, "allocatable_share": 1}


class Played(MinimalServer):
    """A minimal server whose clock stands until it is moved."""

    now = BEGIN

    @override
    def read_clock(self) -> int:
        return self.now

    @property
    def only(self) -> Tenant:
        """Its tenant."""
        return self.tenant("")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask in-process; the answer's body."""
        answer = self.answer(method, path, {"content-type": "application/json"}, json.dumps(body).encode())
        assert answer.status < 300, answer.body
        return answer.body

    def at(self, second: float) -> None:
        """Move the clock."""
        self.now = BEGIN + round(1000 * second)

    def look(self) -> None:
        """Look what has changed, as is done from time to time."""
        with self.lock:
            self.moment = self.now
            self.recognise(self.only)
            self.refresh(self.only)

    def send(self, late: float = 0.0, **nodes: Mapping[str, Any]) -> None:
        """Samples of some nodes, observed a while ago."""
        seen = {"subject_kind": "node", "observed_at": instant(self.now - round(1000 * late))}
        samples = [{"subject": name, **seen, **measures} for name, measures in nodes.items()]
        self.ask("POST", "/v1/samples", {"mode": "atomic", "samples": samples})

    def shows(self, node: str) -> str:
        """State that the graph shows of a node."""
        self.look()
        return str(self.graph(self.only).vertices["nodes"][node]["state"])


@pytest.fixture
def service() -> Played:
    service = Played(SCHEMAS, {})
    device = {"id": "0", "kind": "gpu", "vendor": "v", "model": "m", "memory_capacity": 80 * GIB, "power_limit": 700}
    service.ask("PUT", "/v1/domains/d", {"id": "d"})
    for name in ("a", "b", "c"):
        urn = f"urn:kuayu:node:test:{name}"
        node = {"id": name, "domain": "d", "devices": [device], "compute_identifier": urn}
        service.ask("PUT", f"/v1/nodes/{name}", node)
    return service


def seconds(service: Played, since: int, until: int) -> Iterator[int]:
    for second in range(since, until):
        service.at(second)
        yield second


def test_a_node_is_unknown_before_its_first_sample_then_idle_or_busy(service: Played) -> None:
    assert service.shows("a") == "unknown"
    service.send(a=WORKS, b=RESTS)
    assert [service.shows(name) for name in ("a", "b", "c")] == ["busy", "idle", "unknown"]


def test_a_silent_node_is_offline_and_one_that_is_late_is_not(service: Played) -> None:
    for _ in seconds(service, 0, 12):
        service.send(a=WORKS)
    for second in seconds(service, 12, 40):
        service.send(a=WORKS)
        if second % 4 == 0:
            for late in (3, 2, 1, 0):
                service.send(late=late, b=WORKS)
        if second < 20:
            service.send(c=WORKS)
        assert service.shows("b") in {"busy", "unknown"}
        assert service.shows("c") == ("busy" if second < 24 else "offline") or second in {24, 25}


def test_a_domain_that_is_not_heard_is_cut_off_and_nobody_in_it_is_dead(service: Played) -> None:
    for _ in seconds(service, 0, 10):
        service.send(a=WORKS, b=RESTS)
    for _ in seconds(service, 10, 40):
        assert service.shows("a") in {"busy", "unknown"}
    domain = service.graph(service.only).vertices["domains"]["d"]
    assert (domain["reachable"], domain["nodes"]["unknown"], service.shows("b")) == (False, 3, "unknown")
    service.send(a=WORKS, b=RESTS)
    assert [service.shows("a"), service.shows("b")] == ["busy", "idle"]
    assert service.graph(service.only).vertices["domains"]["d"]["reachable"]


def test_what_is_reported_counts_before_what_is_recognised_while_it_lives(service: Played) -> None:
    service.send(
        a={**WORKS, "health_state": "faulty"}, b={"health_state": "offline"}, c={**WORKS, "health_state": "healthy"}
    )
    assert [service.shows(name) for name in ("a", "b", "c")] == ["faulty", "offline", "busy"]
    for _ in seconds(service, 299, 302):
        service.send(a=WORKS)
    assert service.shows("a") == "busy"


def test_a_job_that_stops_with_a_fault_hangs_until_it_goes_on_and_without_one_it_rests(service: Played) -> None:
    rests = {**WORKS, "accelerator_utilisation": 0.0, "power": 100.0}
    for second in seconds(service, 0, 30):
        works = second < 4 or second >= 24
        service.send(a=WORKS if works else {**rests, "faults": float(second == 4)}, b=WORKS if works else rests)
        if second not in {4, 5, 24}:
            assert service.shows("a") == ("busy" if works else "faulty")
        assert service.shows("b") in {"busy", "idle"}
        if 10 < second < 24:
            assert service.shows("b") == "idle"


def test_of_a_family_that_becomes_slower_the_one_that_differs_straggles(service: Played) -> None:
    family = {"urn": "urn:kuayu:family:test:f", "members": [f"urn:kuayu:node:test:{name}" for name in "abc"]}
    service.ask("PUT", f"/v1/compute-identifiers/{family['urn']}", family)
    usual = {**WORKS, "accelerator_utilisation": 1.0, "matrix_pipe_activity": 0.3, "memory_bandwidth_utilisation": 0.4}
    waiting = {**usual, "matrix_pipe_activity": 0.18, "memory_bandwidth_utilisation": 0.24, "power": 420.0}
    throttled = {**usual, "memory_bandwidth_utilisation": 0.24, "power": 330.0}
    for second in seconds(service, 0, 40):
        slow = 20 <= second < 30
        service.send(a=waiting if slow else usual, b=throttled if slow else usual, c=waiting if slow else usual)
        shown = [service.shows(name) for name in "abc"]
        if not (20 <= second < 25 or 30 <= second < 35):
            assert shown == ["busy", "straggling" if slow else "busy", "busy"]


def test_memory_that_was_held_before_without_work_is_no_hang(service: Played) -> None:
    rests = {**WORKS, "accelerator_utilisation": 0.0, "power": 100.0}
    shown = []
    for second in seconds(service, 0, 80):
        working = 10 <= second < 20 or 40 <= second < 50
        service.send(a=WORKS if working else rests, b=rests, c={"power": 72.0})
        shown.append([service.shows(name) for name in "abc"])
    assert {state for _, state, _ in shown[8:]} == {"idle"}
    assert {state for _, _, state in shown} == {"unknown"}
    assert {state for state, _, _ in shown[60:]} == {"idle"}


@pytest.mark.slow
def test_the_worlds_of_the_suite_are_recognised() -> None:
    """Played at its own clock, without HTTP between; the figures are those of the check."""
    world = World(Scale(domains=3, nodes=300, warm_up=12, seconds=60), "a test of the minimal server", str)
    service = Played(SCHEMAS, {})
    bodies = {"domains": world.domains, "nodes": world.nodes, "links": world.links}
    snapshot = _register(service, bodies, world.families)
    events = list(_play(service, world, world.scale.total, world.late_nodes))
    timeline, clock = Timeline(snapshot, events), Clock(BEGIN / 1000)
    assert right_states(world, timeline, clock).estimate > 0.9
    assert delays_of_states(world, timeline, clock).estimate < 10


@pytest.mark.slow
def test_sparse_telemetry_raises_no_false_alarm() -> None:
    """The same for nodes that send any part of their measures."""
    world = sparse.World(
        sparse.Scale(healthy=160, faulty=160, warm_up=48, seconds=62), "a test of the minimal server", str
    )
    service = Played(SCHEMAS, {})
    snapshot = _register(service, {"domains": world.domains, "nodes": world.nodes}, world.families)
    events = list(_play(service, world, world.scale.total))
    found = shown_rightly(world, Timeline(snapshot, events), Clock(BEGIN / 1000))
    assert found.estimate == 1, [miss.found for miss in found.misses]


def _register(service: Played, bodies: Mapping[str, Any], families: Any = ()) -> dict[str, list[Any]]:
    """Register what a world consists of; the graph with nothing sent yet."""
    for kind, rows in bodies.items():
        for body in rows:
            service.ask("PUT", f"/v1/{kind}/{body['id']}", body)
    for body in families:
        service.ask("PUT", f"/v1/compute-identifiers/{body['urn']}", body)
    service.look()
    return {part: list(rows.values()) for part, rows in service.graph(service.only).vertices.items()}


def _play(service: Played, world: Any, total: int, late: Any = ()) -> Iterator[StreamEvent]:
    joining = defaultdict(list)
    for when, body in late:
        joining[when].append(body)
    told = service.graph(service.only).number
    for half in range(2 * total + 20):
        second, is_whole = half // 2, half % 2 == 0
        service.at(half / 2 + 0.1)
        for body in joining.pop(second, []):
            service.ask("PUT", f"/v1/nodes/{body['id']}", body)
        for delivery in world.deliveries(second) if is_whole else ():
            samples = [{**body, "observed_at": instant(BEGIN + round(1000 * seen))} for seen, body in delivery.samples]
            for begin in range(0, len(samples), 1000):
                service.ask("POST", "/v1/samples", {"mode": "atomic", "samples": samples[begin : begin + 1000]})
        service.look()
        for change in service.graph(service.only).changes:
            if change.number > told:
                told = change.number
                narrowed = service.narrowed(change, Scope(domains_only=False, domain=None))
                yield StreamEvent(service.now / 1000, "", "change", json.dumps(narrowed))
