"""A window of collectives carried out: what is asked, what is chosen, and the steps that are made.

Beside it stand fixed baselines, each in the order that was quickest by the first measurement, one of them the way that
was quickest then, and one who always has the quickest way in its quickest order, for nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kuayu_conformance.testbed.transfers.collectives import WAYS, Floats, Way, best, rate
from kuayu_conformance.testbed.transfers.collectives_world import INTERVAL, SWITCH, World

if TYPE_CHECKING:
    from kuayu_schemas import documents


@dataclass(frozen=True)
class InUse:
    """What replicas use.

    Attributes:
        way: How they exchange.
        order: Domains in the order of the ring, as numbers.
        since: Interval of the window in which it came into use.
    """

    way: Way
    order: tuple[int, ...]
    since: int

    def is_like(self, way: Way, order: Sequence[int]) -> bool:
        """Whether that is no other way or order, wherever the ring begins."""
        return self.way == way and turned(self.order) == turned(order)


def turned(order: Sequence[int]) -> tuple[int, ...]:
    """The same ring, begun with its least domain."""
    first = order.index(min(order))
    return (*order[first:], *order[:first])


@dataclass(eq=False)
class Course:
    """What becomes of a window, interval by interval.

    Attributes:
        world: The window.
        in_use: What is in use; nothing before the first choice.
        rates: Steps a second in each interval that is over, without what switches cost.
        paused: Share of each of them that went to switches.
        switches: How many there were.
        changes: Those to another collective or period, not only to another order.
    """

    world: World
    in_use: InUse | None = None
    rates: list[float] = field(default_factory=list)
    paused: list[float] = field(default_factory=list)
    switches: int = 0
    changes: int = 0
    _waits: float = 0.0

    @property
    def row(self) -> int:
        """Number of the interval that comes next."""
        return len(self.rates)

    @property
    def steps(self) -> float:
        """Steps that were made."""
        return INTERVAL * float(np.array(self.rates) @ (1.0 - np.array(self.paused)))

    def request(self, revision: "documents.Revision") -> "documents.CollectiveRequest":
        """What is asked before the next interval."""
        setting, names, past = self.world.setting, self.world.domains, self.world.seen(self.row)
        links: list[documents.MeasuredLink] = [
            {
                "source": names[one],
                "target": names[other],
                "latency": float(setting.latency[one, other]),
                "bandwidths": past[:, one, other].astype(np.int64).tolist(),
            }
            for one in range(len(names))
            for other in range(len(names))
            if one != other
        ]
        body: documents.CollectiveRequest = {
            "revision": revision,
            "interval": INTERVAL,
            "domains": list(names),
            "links": links,
            "nodes": setting.nodes,
            "node_bandwidth": setting.node_bandwidth,
            "node_latency": setting.node_latency,
            "exchange": setting.exchange,
            "step_time": setting.step_time,
            "switch_time": SWITCH,
        }
        return body if self.in_use is None else {**body, "in_use": self._told(self.in_use)}

    def _told(self, used: InUse) -> "documents.CollectiveInUse":
        order = [self.world.domains[place] for place in used.order]
        since = INTERVAL * (self.row - used.since)
        return {"collective": used.way.collective, "period": used.way.period, "order": order, "since": since}

    def go_on(self, way: Way | None, order: Sequence[int] = ()) -> None:
        """Let an interval pass, with what was chosen, or with what is in use where nothing was."""
        if way is not None and (self.in_use is None or not self.in_use.is_like(way, order)):
            if self.in_use is not None:
                self._waits += SWITCH
                self.switches += 1
                self.changes += way != self.in_use.way
            self.in_use = InUse(way, tuple(order), self.row)
        lost = min(INTERVAL, self._waits)
        self._waits -= lost
        self.paused.append(lost / INTERVAL)
        carried = self.world.window[self.row : self.row + 1]
        used = self.in_use
        self.rates.append(float(rate(self.world.setting, carried, used.way, used.order)[0]) if used else 0.0)


def follow(world: World, choose: "Callable[[documents.CollectiveRequest], documents.CollectiveChoice]") -> Course:
    """A window under somebody whose answers are whole."""
    course = Course(world)
    for row in range(world.count):
        answer = choose(course.request({"epoch": "window", "number": row}))
        order = [world.domains.index(name) for name in answer["order"]]
        course.go_on(Way(answer["collective"], answer["period"]), order)
    return course


@dataclass(frozen=True, eq=False)
class Baselines:
    """What others do in the same window.

    Attributes:
        fixed: Steps a second of each of the ways, ``(count, ways)``.
        quickest: Of one who always has the quickest, ``(count,)``.
        first: Place of the way that was quickest by the first measurement.
    """

    fixed: Floats
    quickest: Floats
    first: int

    @property
    def shares(self) -> Floats:
        """Steps of the fixed ones in parts of those of the quickest, ``(ways,)``."""
        shares: Floats = self.fixed.sum(axis=0) / self.quickest.sum()
        return shares

    @property
    def most(self) -> float:
        """Steps of the quickest."""
        return INTERVAL * float(self.quickest.sum())


def baselines(world: World) -> Baselines:
    """Play the others."""
    setting, measured = world.setting, world.seen(0)[-1:]
    begun = [best(setting, measured, way) for way in WAYS]
    orders = [tuple(order[0].tolist()) for _, order in begun]
    fixed = [rate(setting, world.window, way, order) for way, order in zip(WAYS, orders, strict=True)]
    quickest = np.max([best(setting, world.window, way)[0] for way in WAYS], axis=0)
    return Baselines(np.stack(fixed, axis=1), quickest, int(np.argmax([rates[0] for rates, _ in begun])))
