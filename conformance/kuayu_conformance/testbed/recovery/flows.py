"""What travels at the same time, and how fast: stores, links and jobs' nodes are shared evenly.

Copies of checkpoints have ``share`` of a store or a link among them, and recoveries the rest while there are any, or
all of it. What is shared is shared by number, and each goes at the speed of the narrowest that it needs: what that
leaves over elsewhere is left.
"""

from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass
from math import inf

from kuayu_conformance.testbed.recovery.links import INTERVAL_S, PAST
from kuayu_conformance.testbed.recovery.world import World

Way = tuple[str, int, int]
"""Store, link or nodes; of which domain or job; to which domain, where it is a link."""
STORE, LINK, NODES = "store", "link", "nodes"
BITS = 8.0
_WHOLE = 1e-9


@dataclass(slots=True, eq=False)
class Flow:
    """Something that travels.

    Attributes:
        ways: All that it needs.
        size: Bits of each part.
        done: What happens when it is there.
        copy: Whether it is a copy of a checkpoint.
        parts: How many like it travel side by side, each with a share of its own.
        left: Bits of each part that are not there.
        speed: Bit/s of each part.
    """

    ways: tuple[Way, ...]
    size: float
    done: Callable[[], None]
    copy: bool = False
    parts: int = 1
    left: float = 0.0
    speed: float = 0.0

    def __post_init__(self) -> None:
        """Nothing of it is there."""
        self.left = self.size


class Flows:
    """All that is under way.

    Args:
        world: Where.
        away: Domains to and from which links carry nothing.
    """

    def __init__(self, world: World, away: Container[int]) -> None:
        self._world, self._away = world, away
        self._links = world.links.carried.tolist()
        self.under_way: list[Flow] = []
        self._ends = inf

    def start(self, flow: Flow, now: float) -> None:
        """Let something travel."""
        self.under_way.append(flow)
        self.share(now)

    def stop(self, flow: Flow, now: float) -> None:
        """Give it up."""
        if flow in self.under_way:
            self.under_way.remove(flow)
            self.share(now)

    def next(self, now: float) -> float:
        """When something is there, or bandwidths change."""
        changes = (int(now / INTERVAL_S) + 1) * float(INTERVAL_S) if self.under_way else inf
        return min(self._ends, changes)

    def travel(self, now: float, then: float) -> list[Flow]:
        """Let time pass, no longer than until the next change; what is there then has gone."""
        finished = []
        for flow in self.under_way:
            flow.left -= flow.speed * (then - now)
            if flow.left <= _WHOLE * flow.size:
                finished.append(flow)
        if finished or int(then / INTERVAL_S) != int(now / INTERVAL_S):
            self.under_way = [flow for flow in self.under_way if flow not in finished]
            self.share(then)
        return finished

    def share(self, now: float) -> None:
        """Share all bandwidths anew."""
        copies, others = Counter[Way](), Counter[Way]()
        for flow in self.under_way:
            counts = copies if flow.copy else others
            for way in flow.ways:
                counts[way] += flow.parts
        share, wholes = self._world.share, {way: self._bandwidth(way, now) for way in copies.keys() | others.keys()}
        of_copies = {way: share * wholes[way] / count for way, count in copies.items()}
        of_others = {
            way: (wholes[way] * (1.0 - share) if way in copies else wholes[way]) / count
            for way, count in others.items()
        }
        self._ends = inf
        for flow in self.under_way:
            parts = of_copies if flow.copy else of_others
            flow.speed = min(map(parts.__getitem__, flow.ways))
            if flow.speed > 0.0:
                self._ends = min(self._ends, now + flow.left / flow.speed)

    def _bandwidth(self, way: Way, now: float) -> float:
        kind, which, other = way
        if kind == NODES:
            return self._world.jobs[which].node_bandwidth
        if kind == STORE:
            return self._world.domains[which].store_bandwidth
        if which in self._away or other in self._away:
            return 0.0
        row = min(PAST + int(now / INTERVAL_S), len(self._links) - 1)
        return float(self._links[row][which][other])


def ways(store: int, begin: int, end: int) -> tuple[Way, ...]:
    """What a state needs that goes from or to a store, between two domains or within one."""
    store_way: Way = (STORE, store, -1)
    return (store_way,) if begin == end else (store_way, (LINK, begin, end))
