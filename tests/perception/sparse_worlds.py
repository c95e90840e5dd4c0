"""The suite's world of sparse telemetry put before a recogniser, as a service would, without HTTP and waiting."""

from typing import Any

import numpy as np

from kuayu.perception.recognition import SIGNALS, STATES, Population, Telemetry
from kuayu_conformance.checks.metrics.states import shown_rightly
from kuayu_conformance.checks.metrics.timeline import Clock, Timeline
from kuayu_conformance.findings import Figure
from kuayu_conformance.streams import StreamEvent
from kuayu_conformance.testbed.sparse import Scale, World

HEALTH = {"healthy": 0, "degraded": 1, "unknown": 2, "faulty": 3, "offline": 4}
SUMMED = frozenset({
    "power", "accelerator_memory_used", "scale_out_transmit_flow", "scale_out_receive_flow", "storage_read_flow",
    "faults",
})  # fmt: skip
BEGIN = 1_000_000.0


class Stream:
    """Changes of states as the stream of a graph tells them."""

    def __init__(self, world: World) -> None:
        self._shown: dict[str, str] = {}
        self._site = {body["id"]: body["domain"] for body in world.nodes}
        self._events: list[StreamEvent] = []

    def tell(self, at: float, states: dict[str, str]) -> None:
        """What is shown ``at`` seconds after the beginning."""
        import json

        new = {name: state for name, state in states.items() if self._shown.get(name) != state}
        self._shown |= new
        rows = [{"id": name, "domain": self._site[name], "state": state} for name, state in new.items()]
        body = {"domains": [], "nodes": rows, "links": [], "gone": []}
        self._events.append(StreamEvent(BEGIN + at, "e:1", "change", json.dumps(body)))

    def figure(self, world: World) -> Figure:
        """MET-024 of what was told."""
        nothing: dict[str, list[Any]] = {"domains": [], "nodes": [], "links": []}
        return shown_rightly(world, Timeline(nothing, self._events), Clock(BEGIN))


def recognised(kind: Any, scale: Scale, seed: str) -> Figure:
    """MET-024 of a recogniser that is asked once a second."""
    world = World(scale, seed, str)
    row = {body["id"]: place for place, body in enumerate(world.nodes)}
    sites = {body["id"]: place for place, body in enumerate(world.domains)}
    urn = {body.get("compute_identifier"): row[body["id"]] for body in world.nodes}
    pairs = [(urn[member], place) for place, body in enumerate(world.families) for member in body["members"]]
    member, family = np.array(pairs, np.intp).reshape(-1, 2).T
    domain = np.array([sites[body["domain"]] for body in world.nodes])
    devices = np.array([len(body["devices"]) for body in world.nodes])
    recogniser = kind(Population(domain, len(sites), member, family, len(world.families), devices))
    values = np.full((len(row), len(SIGNALS)), np.nan)
    observed, arrived = np.full(len(row), np.nan), np.full(len(row), np.nan)
    stream = Stream(world)
    for second in range(scale.total + 1):
        fresh = np.zeros(len(row), bool)
        parts: dict[tuple[int, str], list[float]] = {}
        for delivery in world.deliveries(second):
            for at, sample in delivery.samples:
                place = row[sample["subject"]]
                observed[place], arrived[place], fresh[place] = at, second, True
                for name in sample.keys() & {*SIGNALS, "health_state"}:
                    value = HEALTH[sample[name]] if name == "health_state" else sample[name]
                    parts.setdefault((place, name), []).append(float(value))
        for (place, name), each in parts.items():
            values[place, SIGNALS.index(name)] = sum(each) if name in SUMMED else sum(each) / len(each)
        found = recogniser.update(Telemetry(float(second), values.copy(), observed.copy(), arrived.copy(), fresh))
        stream.tell(second, {name: STATES[found.state[place]] for name, place in row.items()})
    return stream.figure(world)
