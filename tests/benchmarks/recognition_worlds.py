"""Worlds that the benchmark of recognition plays: the training generator's held-out region, and the suite's."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kuayu.perception.recognition import SIGNALS, STATES, Population, Telemetry
from kuayu_training.fleet import CAUSES, HELD_OUT
from kuayu_training.telemetry import World

HEALTH = {"healthy": 0, "degraded": 1, "unknown": 2, "faulty": 3, "offline": 4}
SUMMED = [SIGNALS.index(name) for name in (
    "power", "accelerator_memory_used", "scale_out_transmit_flow", "scale_out_receive_flow", "storage_read_flow",
    "faults",
)]  # fmt: skip
ALIVE = 300.0


@dataclass(frozen=True)
class Second:
    """One second: telemetry, truth, cause, whether each node is judged, and where rows were before if they moved."""

    telemetry: Any
    truth: Any
    cause: Any
    judged: Any
    origin: Any


class OwnWorld:
    """The held-out region of the training generator, one sample a second."""

    causes = CAUSES

    def __init__(self, seed: int, domains: int, nodes: int, warm_up: int, seconds: int) -> None:
        sizes = [nodes // domains + (place < nodes % domains) for place in range(domains)]
        self._world = World(7_000_000 + seed, HELD_OUT, sizes, period=1)
        self._seconds = warm_up + seconds
        self.population = self._world.population

    def play(self) -> Iterator[Second]:
        """All seconds."""
        for _ in range(self._seconds):
            moment = self._world.step()
            judged = moment.truth < STATES.index("unknown")
            yield Second(moment.telemetry, moment.truth, moment.cause, judged, None)


class JudgesWorld:
    """The world of the suite, put together as a service would: newest values, devices summed or averaged."""

    def __init__(self, seed: int, domains: int, nodes: int, warm_up: int, seconds: int) -> None:
        from kuayu_conformance.testbed.telemetry import Scale
        from kuayu_conformance.testbed.telemetry import World as Judge

        scale = Scale(domains=domains, nodes=nodes, warm_up=warm_up, seconds=seconds, churn=0.01)
        self._world = Judge(scale, str(seed), lambda label: label)
        self._last = warm_up + seconds
        self._bodies: list[dict[str, Any]] = []
        self._add(list(self._world.nodes))
        self._causes = {"none": 0}
        self.causes: tuple[str, ...] = ("none",)
        for incident in self._world.incidents:
            self._causes.setdefault(incident.cause, len(self._causes))
        self.causes = tuple(self._causes)

    def _add(self, bodies: list[dict[str, Any]]) -> None:
        """Register nodes after those that there are."""
        self._bodies += bodies
        self._row = {body["id"]: row for row, body in enumerate(self._bodies)}
        domain = {body["id"]: place for place, body in enumerate(self._world.domains)}
        urn = {body.get("compute_identifier"): row for row, body in enumerate(self._bodies)}
        pairs = [
            (urn[member], place)
            for place, family in enumerate(self._world.families)
            for member in family["members"]
            if member in urn
        ]
        of = np.array([domain[body["domain"]] for body in self._bodies])
        devices = np.array([len(body.get("devices", ())) for body in self._bodies])
        member, family = np.array(pairs, np.intp).reshape(-1, 2).T
        self.population = Population(of, len(domain), member, family, len(self._world.families), devices)
        self._device = {
            (body["id"], device["id"]): len(self._bodies) + place
            for place, (body, device) in enumerate(
                (body, device) for body in self._bodies for device in body.get("devices", ())
            )
        }
        of_device = [self._row[name] for name, _ in self._device]
        self._node_of = np.array([*range(len(self._bodies)), *of_device])

    def play(self) -> Iterator[Second]:
        """All seconds; rows of nodes that join are put at the end."""
        late = list(self._world.late_nodes)
        values, observed, arrived, gap = self._blank()
        cause = np.zeros(len(self._bodies), np.intp)
        incidents = sorted(self._world.incidents, key=lambda each: each.onset)
        place = 0
        for second in range(self._last):
            origin = None
            joining = [body for at, body in late if at == second]
            if joining:
                before, devices = len(self._bodies), dict(self._device)
                held = (values, observed, arrived, gap)
                self._add(joining)
                origin = np.r_[np.arange(before), np.full(len(joining), -1)]
                values, observed, arrived, gap = self._blank()
                rows = [*range(before), *devices.values()]
                now = [*range(before), *(self._device[key] for key in devices)]
                for new, old in zip((values, observed, arrived, gap), held, strict=True):
                    new[now] = old[rows]
                cause = np.r_[cause, np.zeros(len(joining), np.intp)]
            before_node = self._newest(observed)
            for delivery in self._world.deliveries(second):
                for instant, sample in delivery.samples:
                    self._take(second, float(instant), sample, (values, observed, arrived, gap))
            while place < len(incidents) and incidents[place].onset < second + 1:
                at = incidents[place]
                if at.node in self._row:
                    cause[self._row[at.node]] = self._causes[at.cause]
                place += 1
            telemetry = self._telemetry(second + 1.0, values, observed, arrived, gap, before_node)
            yield Second(telemetry, self._truth(second), cause.copy(), self._judged(second), origin)

    def _blank(self) -> tuple[Any, Any, Any, Any]:
        rows = len(self._node_of)
        return np.full((rows, len(SIGNALS)), np.nan), *(np.full(rows, np.nan) for _ in range(3))

    def _take(self, second: int, instant: float, sample: dict[str, Any], held: tuple[Any, Any, Any, Any]) -> None:
        """Take a sample in; an older one counts as an arrival only."""
        values, observed, arrived, gap = held
        name = sample["subject"]
        row = self._device.get((name, sample["device"])) if "device" in sample else self._row.get(name)
        if row is None:
            return
        arrived[row] = second + 1.0
        if observed[row] >= instant:
            return
        step = instant - observed[row]
        if step == step:  # noqa: PLR0124 - false for NaN
            gap[row] = step if gap[row] != gap[row] else gap[row] + 0.1 * (min(step, 4 * gap[row]) - gap[row])
        observed[row] = instant
        for place, signal in enumerate(SIGNALS):
            value = sample.get(signal)
            if value is not None:
                values[row, place] = HEALTH[value] if signal == "health_state" else value

    def _newest(self, observed: Any) -> Any:
        """Newest instant of each node and its devices."""
        found = np.full(len(self._bodies), -np.inf)
        np.maximum.at(found, self._node_of, np.nan_to_num(observed, nan=-np.inf))
        return np.where(np.isinf(found), np.nan, found)

    def _telemetry(self, now: float, values: Any, observed: Any, arrived: Any, gap: Any, before: Any) -> Telemetry:
        """Newest values of the nodes, put together from their devices where they do not state their own."""
        nodes = len(self._bodies)
        alive = now - observed < ALIVE
        # a device lies behind its node, not behind the clock on the wall: that of its host may be wrong
        near = self._newest(observed)[self._node_of] - observed <= 3 * np.nan_to_num(gap, nan=60.0) + 1
        of, parts = self._node_of[nodes:], np.where(alive[nodes:, None] & near[nodes:, None], values[nodes:], np.nan)
        known = ~np.isnan(parts)
        count = np.zeros((nodes, len(SIGNALS)))
        total = np.zeros((nodes, len(SIGNALS)))
        np.add.at(count, of, known)
        np.add.at(total, of, np.nan_to_num(parts))
        whole = np.where(count > 0, total, np.nan)
        ratios = [place for place in range(len(SIGNALS)) if place not in SUMMED]
        whole[:, ratios] /= np.maximum(count[:, ratios], 1)
        made = np.where(np.isnan(values[:nodes]), whole, values[:nodes])
        here = np.bincount(of, alive[nodes:] & near[nodes:], nodes)
        reporting = np.bincount(of, ~np.isnan(observed[nodes:]), nodes) > 0
        made[:, SIGNALS.index("device_share")] = np.where(
            reporting, here / np.maximum(self.population.devices, 1), np.nan
        )
        newest, last = self._newest(observed), self._newest(arrived)
        fresh = ~np.isnan(newest) & ~(newest <= before)
        return Telemetry(now, made, newest, last, fresh)

    def _truth(self, second: int) -> Any:
        """Truth of the nodes that are registered, in order of rows."""
        truth = self._world.truth(second)
        names = [truth[body["id"]] for body in self._bodies] if isinstance(truth, dict) else list(truth)
        return np.array([STATES.index(str(name)) for name in names[: len(self._bodies)]])

    def _judged(self, second: int) -> Any:
        """Whether each node's domain can be reached, and could for some seconds."""
        domain = {body["id"]: place for place, body in enumerate(self._world.domains)}
        judged = np.ones(len(self._bodies), bool)
        for partition in self._world.partitions:
            if partition.since - 1 <= second < partition.until + 10:
                judged &= self.population.domain != domain[partition.domain]
        return judged
