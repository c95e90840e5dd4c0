"""Seats of one gang on the nodes of one pool: near, scattered, more or fewer of them, and how far apart they are."""

from collections.abc import Iterable

import numpy as np

from kuayu.scheduling.scene import NOWHERE, Counts, Nodes, Numbers

Seats = tuple[tuple[int, int], ...]
"""Numbers of nodes within their pool, each with how many of its devices; in the order of the nodes."""

SAME_SWITCH, OTHER_SWITCH = 1.0, 2.0
"""Hops between two devices on different nodes."""


class Room:
    """Nodes of one pool, and what is free on them.

    Attributes:
        names: Of the nodes.
        free: Devices, by node.
        switch: Number of the switch, by node; one of which no switch is told is near to none, and has its own.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.names = nodes.names
        self.free: Counts = np.minimum(nodes.free, nodes.devices)
        alone = nodes.switch == NOWHERE
        named = int(nodes.switch.max(initial=NOWHERE)) + 1
        switch = np.where(alone, named + np.cumsum(alone), nodes.switch)
        _, self.switch = np.unique(switch, return_inverse=True)
        self._switches = int(self.switch.max(initial=-1)) + 1

    def take(self, seats: Seats) -> Seats:
        """Give out the named devices."""
        for node, devices in seats:
            self.free[node] -= devices
        return seats

    def give_back(self, seats: Seats) -> None:
        """The named devices are free again."""
        for node, devices in seats:
            self.free[node] += devices

    def near(self, devices: int) -> Seats:
        """The nearest seats for so many devices as are free: one node, else one switch, else few switches."""
        enough = np.flatnonzero(self.free >= devices)
        by_switch = self._free_by_switch()
        if len(enough):
            # the tightest node, of these the one on the switch that is fullest already
            best = np.lexsort((by_switch[self.switch[enough]], self.free[enough]))[0]
            return ((int(enough[best]), devices),)
        groups = self._groups()
        able = np.flatnonzero(by_switch >= devices)
        if len(able):
            needed = np.array([np.searchsorted(np.cumsum(self.free[groups[one]]), devices) for one in able])
            one = int(able[np.lexsort((by_switch[able], needed))[0]])
            return self._on(groups[one], devices)
        # the emptiest switches whole, and the tightest that holds the rest
        seats: list[tuple[int, int]] = []
        while devices:
            enough = np.flatnonzero(by_switch >= devices)
            one = int(enough[np.argmin(by_switch[enough])] if len(enough) else np.argmax(by_switch))
            given = min(devices, int(by_switch[one]))
            seats.extend(self._on(groups[one], given))
            by_switch[one] = 0
            devices -= given
        return tuple(sorted(seats))

    def scattered(self, devices: int) -> Seats:
        """The smallest pieces that make up so many devices as are free, of these those on the fullest switches."""
        order = np.lexsort((self._free_by_switch()[self.switch], self.free))
        return filled(((node, int(self.free[node])) for node in order.tolist()), devices)

    def resized(self, devices: int, held: Seats) -> Seats | None:
        """Other seats for a gang that holds some, which counts as taken; none where not as many are free.

        One that grows keeps its seats and is given more on its own nodes and switches first; one that shrinks gives
        back those on nodes where it has least.
        """
        more = devices - sum(count for _, count in held)
        if more <= 0:
            return filled(sorted(held, key=lambda seat: -seat[1]), devices)
        if more > int(self.free.sum()):
            return None
        nodes = [node for node, _ in held]
        strange = ~np.isin(self.switch, self.switch[nodes])
        other = np.ones(len(self.free), dtype=np.bool_)
        other[nodes] = False
        order = np.lexsort((-self.free, strange, other))
        together = dict(held)
        for node, count in filled(((node, int(self.free[node])) for node in order.tolist()), more):
            together[node] = together.get(node, 0) + count
        return tuple(sorted(together.items()))

    def distance(self, seats: Seats) -> float:
        """Mean hops between two devices of a gang; nought for one device."""
        counts = np.array([devices for _, devices in seats], dtype=np.float64)
        total = counts.sum()
        if total <= 1.0:
            return 0.0
        on_switch = np.bincount(self.switch[[node for node, _ in seats]], weights=counts)
        same_node, same_switch = (counts**2).sum(), (on_switch**2).sum()
        hops = SAME_SWITCH * (same_switch - same_node) + OTHER_SWITCH * (total**2 - same_switch)
        return float(hops / (total * (total - 1.0)))

    def _on(self, nodes: Numbers, devices: int) -> Seats:
        """As few as will do of some nodes, which begin with the emptiest; the rest on the tightest that holds it."""
        seats: list[tuple[int, int]] = []
        free = self.free[nodes].tolist()
        for place, (node, there) in enumerate(zip(nodes.tolist(), free, strict=True)):
            if there >= devices:
                tightest = min(each for each in free[place:] if each >= devices)
                seats.append((int(nodes[free.index(tightest, place)]), devices))
                break
            seats.append((node, there))
            devices -= there
        return tuple(sorted(seats))

    def _free_by_switch(self) -> Counts:
        return np.bincount(self.switch, weights=self.free, minlength=self._switches).astype(np.int64)

    def _groups(self) -> list[Numbers]:
        """Nodes by switch, the emptiest first."""
        order = np.lexsort((-self.free, self.switch))
        return np.split(order, np.searchsorted(self.switch[order], np.arange(1, self._switches)))


def filled(places: Iterable[tuple[int, int]], devices: int) -> Seats:
    """So many devices of nodes with so many each, in their order."""
    seats: list[tuple[int, int]] = []
    for node, there in places:
        given = min(there, devices)
        if given > 0:
            seats.append((node, given))
            devices -= given
        if not devices:
            break
    return tuple(sorted(seats))
