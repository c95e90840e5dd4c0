"""Which nodes of its pools a job is given: who communicates much sits near, who does not takes the scattered rest.

Between two devices of a job lie no hops on one node, one on nodes of one leaf switch, two otherwise.

1. What a job says of nodes is kept: so many devices on each, all on one node, all on one leaf switch.
2. A gang that a node has room for is not cut: what its devices send each other inside a node is told nobody. Of several
   such nodes it takes the tightest, so that large pieces stay whole.
3. A batch is packed at once: those that communicate most choose first. Each takes as few switches as will do, of these
   as few nodes, and of these the room that fits best. A gang that hardly communicates loses nothing by lying far apart;
   it takes the smallest pieces, which are of no use to anybody else.
4. Nodes that are kept for somebody who waits are given to those alone who come before it, or will have left them when
   it is to have them.

Placing by network distance: M. Amaral et al., "Topology-aware GPU scheduling for learning workloads in cloud
environments", SC 2017. Fragments: Q. Weng et al., "Beware of fragmentation", USENIX ATC 2023.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from kuayu.scheduling.state import (
    ANYWHERE,
    NOWHERE,
    ONE_NODE,
    ONE_SWITCH,
    Counts,
    Flags,
    Nodes,
    Numbers,
    Snapshot,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

NodeAssignment = tuple[tuple[int, int], ...]
"""Numbers of nodes within their pool, each with how many of its devices; in the order of the nodes."""

LIGHT = 1.25e8
"""Bytes a second between nodes below which distance does not matter: a hundredth of what a port of 100 Gbit/s sends."""

_UNLIMITED = np.iinfo(np.int64).max

SAME_SWITCH, OTHER_SWITCH = 1.0, 2.0
"""Hops between two devices on different nodes."""


@dataclass(frozen=True, slots=True)
class NodeReservation:
    """Nodes that are kept for a job that waits.

    Attributes:
        pool: Number of the pool.
        nodes: Numbers of nodes within it.
        devices: How many on each.
        start: Seconds until the job is to have them.
        rank: How many were tried before it.
    """

    pool: int
    nodes: Numbers
    devices: Counts
    start: float
    rank: int


class FreeNodes:
    """Nodes of one pool, and what is free on them.

    Attributes:
        names: Of the nodes.
        free: Devices, by node.
        switch: Number of the switch, by node; one of which no switch is told is near to none, and has its own.
        reservations: What is kept for whom.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.names = nodes.names
        self.free: Counts = np.minimum(nodes.free, nodes.devices)
        alone = nodes.switch == NOWHERE
        named = int(nodes.switch.max(initial=NOWHERE)) + 1
        switch = np.where(alone, named + np.cumsum(alone), nodes.switch)
        _, self.switch = np.unique(switch, return_inverse=True)
        self._switches = int(self.switch.max(initial=-1)) + 1
        self.reservations: list[NodeReservation] = []

    def open_to(self, gang: "Gang", rank: float = inf) -> "FreeNodes":
        """Nodes as a gang may use them, whatever is reserved for those who were tried before a rank."""
        reservations = [
            reservation
            for reservation in self.reservations
            if reservation.start < gang.seconds and reservation.rank < rank
        ]
        if not reservations:
            return self
        others = copy(self)
        others.free = self.free.copy()
        for reservation in reservations:
            others.free[reservation.nodes] -= reservation.devices
        others.free = np.maximum(others.free, 0)
        return others

    def fitting(self, gang: "Gang") -> NodeAssignment | None:
        """Seats for a gang as it needs them, on what is reserved for those who come after it only if it has to be."""
        assignment = self.open_to(gang).assigned(gang)
        if assignment is None and self.reservations and gang.rank < inf:
            assignment = self.open_to(gang, gang.rank).assigned(gang)
        return assignment

    def take(self, assignment: NodeAssignment) -> NodeAssignment:
        """Give out the named devices."""
        for node, devices in assignment:
            self.free[node] -= devices
        return assignment

    def give_back(self, assignment: NodeAssignment) -> None:
        """The named devices are free again."""
        for node, devices in assignment:
            self.free[node] += devices

    def near(self, devices: int) -> NodeAssignment:
        """The nearest assignment of so many devices as are free: one node, else one switch, else few switches."""
        if whole := self.whole(devices):
            return whole
        by_switch, groups = self._free_by_switch(), self._groups()
        able = np.flatnonzero(by_switch >= devices)
        if len(able):
            needed = np.array([np.searchsorted(np.cumsum(self.free[groups[one]]), devices) for one in able])
            one = int(able[np.lexsort((by_switch[able], needed))[0]])
            return self._on(groups[one], devices)
        # the emptiest switches whole, and the tightest that holds the rest
        assignment: list[tuple[int, int]] = []
        while devices:
            enough = np.flatnonzero(by_switch >= devices)
            one = int(enough[np.argmin(by_switch[enough])] if len(enough) else np.argmax(by_switch))
            given = min(devices, int(by_switch[one]))
            assignment.extend(self._on(groups[one], given))
            by_switch[one] = 0
            devices -= given
        return tuple(sorted(assignment))

    def whole(self, devices: int) -> NodeAssignment:
        """So many devices of one node: the tightest, of these one on the switch that is fullest; empty without any."""
        fitting = np.where(self.free >= devices, self.free, _UNLIMITED)
        node = int(fitting.argmin())
        tightest = int(fitting[node])
        if tightest == _UNLIMITED:
            return ()
        (same,) = (fitting == tightest).nonzero()
        if len(same) > 1:
            node = int(same[self._free_by_switch()[self.switch[same]].argmin()])
        return ((node, devices),)

    def portions(self, devices: int, per_node: int, *, one_switch: bool) -> NodeAssignment | None:
        """Seats with so many devices on each node, on as few switches as will do; none where there are none.

        Args:
            devices: All of them.
            per_node: Of them on each node.
            one_switch: Whether all nodes have to hang on one switch.
        """
        count, rest = divmod(devices, per_node)
        able = np.flatnonzero(self.free >= per_node)
        if rest or count > len(able):
            return None
        on_switch = np.bincount(self.switch[able], minlength=self._switches)
        enough = on_switch >= count
        if enough.any():
            chosen = able[self.switch[able] == np.where(enough, on_switch, len(able) + 1).argmin()]
        elif one_switch:
            return None
        else:
            chosen = able[np.argsort(-on_switch[self.switch[able]], kind="stable")]
        # of the last switch, or the only one, the tightest nodes
        order = np.lexsort((self.free[chosen], self.switch[chosen], -on_switch[self.switch[chosen]]))[:count]
        return tuple(sorted((int(node), per_node) for node in chosen[order]))

    def assigned(self, gang: "Gang") -> NodeAssignment | None:
        """Seats for a gang as it needs them; none where no nodes have them so."""
        if gang.devices > int(self.free.sum()):
            return None
        one_node = gang.within == ONE_NODE
        if gang.per_node and not one_node:
            return self.portions(gang.devices, gang.per_node, one_switch=gang.within == ONE_SWITCH)
        if one_node and gang.devices != (gang.per_node or gang.devices):
            return None
        if whole := self.whole(gang.devices):
            return whole
        if one_node:
            return None
        if gang.within == ONE_SWITCH and self._free_by_switch().max(initial=0) < gang.devices:
            return None
        near = gang.traffic >= LIGHT or gang.within == ONE_SWITCH
        return self.near(gang.devices) if near else self.scattered(gang.devices)

    def fulfils(self, gang: "Gang", assignment: NodeAssignment) -> bool:
        """Whether an assignment is such as a gang needs."""
        nodes = [node for node, _ in assignment]
        return (
            (not gang.per_node or all(devices == gang.per_node for _, devices in assignment))
            and (gang.within != ONE_NODE or len(nodes) <= 1)
            and (gang.within != ONE_SWITCH or len(np.unique(self.switch[nodes])) <= 1)
        )

    def scattered(self, devices: int) -> NodeAssignment:
        """The smallest pieces that make up so many devices as are free, of these those on the fullest switches."""
        order = np.lexsort((self._free_by_switch()[self.switch], self.free))
        return filled(((node, int(self.free[node])) for node in order.tolist()), devices)

    def resized(self, devices: int, assignment: NodeAssignment, per_node: int = 0) -> NodeAssignment | None:
        """Another assignment for a gang that has one, which counts as taken; none where not as many are free.

        One that grows keeps its devices and is given more on its own nodes and switches first, or so many on each of
        some others where that is said; one that shrinks gives back those on nodes where it has least.
        """
        more = devices - sum(count for _, count in assignment)
        if more <= 0:
            return filled(sorted(assignment, key=lambda part: -part[1]), devices)
        if more > int(self.free.sum()):
            return None
        nodes = [node for node, _ in assignment]
        strange = ~np.isin(self.switch, self.switch[nodes])
        other = np.ones(len(self.free), dtype=np.bool_)
        other[nodes] = False
        order = np.lexsort((-self.free, strange, other))
        if per_node:
            order = order[other[order] & (self.free[order] >= per_node)]
        together = dict(assignment)
        for node, count in filled(((node, per_node or int(self.free[node])) for node in order.tolist()), more):
            together[node] = together.get(node, 0) + count
        return tuple(sorted(together.items())) if sum(together.values()) == devices else None

    def distance(self, assignment: NodeAssignment) -> float:
        """Mean hops between two devices of a gang; zero for one device."""
        counts = np.array([devices for _, devices in assignment], dtype=np.float64)
        total = counts.sum()
        if total <= 1.0:
            return 0.0
        on_switch = np.bincount(self.switch[[node for node, _ in assignment]], weights=counts)
        same_node, same_switch = (counts**2).sum(), (on_switch**2).sum()
        hops = SAME_SWITCH * (same_switch - same_node) + OTHER_SWITCH * (total**2 - same_switch)
        return float(hops / (total * (total - 1.0)))

    def _on(self, nodes: Numbers, devices: int) -> NodeAssignment:
        """As few as will do of some nodes, which begin with the emptiest; the rest on the tightest that holds it."""
        assignment: list[tuple[int, int]] = []
        free = self.free[nodes].tolist()
        for place, (node, available) in enumerate(zip(nodes.tolist(), free, strict=True)):
            if available >= devices:
                tightest = min(size for size in free[place:] if size >= devices)
                assignment.append((int(nodes[free.index(tightest, place)]), devices))
                break
            assignment.append((node, available))
            devices -= available
        return tuple(sorted(assignment))

    def _free_by_switch(self) -> Counts:
        return np.bincount(self.switch, weights=self.free, minlength=self._switches).astype(np.int64)

    def _groups(self) -> list[Numbers]:
        """Nodes by switch, the emptiest first."""
        order = np.lexsort((-self.free, self.switch))
        return np.split(order, np.searchsorted(self.switch[order], np.arange(1, self._switches)))


def filled(places: Iterable[tuple[int, int]], devices: int) -> NodeAssignment:
    """So many devices of nodes with so many each, in their order."""
    assignment: list[tuple[int, int]] = []
    for node, free in places:
        given = min(free, devices)
        if given > 0:
            assignment.append((node, given))
            devices -= given
        if not devices:
            break
    return tuple(sorted(assignment))


@dataclass(frozen=True, slots=True)
class Gang:
    """Devices of one pool that a job is given at once.

    Attributes:
        pool: Number of the pool.
        devices: How many.
        traffic: Bytes a second that its devices send each other.
        per_node: Devices that it needs on each node; zero where it does not matter.
        within: How near to each other all of them have to lie, by ``SCOPES``.
        seconds: For how long it holds them; infinite where nobody says.
        rank: How many are tried before it; infinite for one that comes after all.
    """

    pool: int
    devices: int
    traffic: float = 0.0
    per_node: int = 0
    within: int = ANYWHERE
    seconds: float = inf
    rank: float = inf

    @property
    def particular(self) -> bool:
        """Whether it needs something of nodes."""
        return bool(self.per_node) or self.within != ANYWHERE


def gang_of(snapshot: Snapshot, job: int, pool: int, devices: int, seconds: float = inf, rank: float = inf) -> Gang:
    """Devices of a pool for a job, with what it sends and what it needs of nodes; the rest as :class:`Gang` has it."""
    jobs = snapshot.jobs
    return Gang(pool, devices, traffic(snapshot, job), int(jobs.per_node[job]), int(jobs.within[job]), seconds, rank)


def shaped(snapshot: Snapshot, job: Numbers, pools: Numbers, devices: Counts) -> Flags:
    """Whether nodes of pools could hold devices as jobs need them, were all of them free.

    Args:
        snapshot: Its pools and jobs.
        job: Numbers, by row.
        pools: (rows, pools); nowhere where there are fewer.
        devices: Of each pool, (rows, pools).
    """
    per_node, alone = snapshot.jobs.per_node[job, None], snapshot.jobs.within[job, None] == ONE_NODE
    node_size = np.where(pools >= 0, snapshot.pools.per_node[pools], np.iinfo(np.int64).max)
    able = ~alone | (devices <= np.where(per_node > 0, np.minimum(per_node, node_size), node_size))
    able &= (per_node == 0) | (devices % np.maximum(per_node, 1) == 0) & (per_node <= node_size)
    fits: Flags = able.all(axis=1)
    return fits


class NodeAllocator:
    """Nodes of pools, and what is free on them while a batch is given out.

    Args:
        pools: Nodes by pool; none where they are not told.
    """

    def __init__(self, pools: Sequence[Nodes | None]) -> None:
        self._nodes = pools
        self._by_pool: dict[int, FreeNodes] = {}
        self._numbers: dict[int, dict[str, int]] = {}

    def knows_nodes(self, pool: int) -> bool:
        """Whether the nodes of a pool are known."""
        return self._nodes[pool] is not None

    def free(self, pool: int) -> int:
        """Devices that are free on the nodes of a pool, which are told."""
        return int(self.nodes_of(pool).free.sum())

    def take(self, pool: int, assignment: NodeAssignment) -> None:
        """Give out the named devices."""
        self.nodes_of(pool).take(assignment)

    def reserve(self, reservation: NodeReservation) -> None:
        """Somebody who waits is to have some nodes."""
        self.nodes_of(reservation.pool).reservations.append(reservation)

    def give_back(self, pool: int, assignment: NodeAssignment) -> None:
        """The named devices are free again."""
        self.nodes_of(pool).give_back(assignment)

    def pack(self, gangs: Sequence[Gang]) -> tuple[NodeAssignment | None, ...]:
        """Give out devices to a batch.

        Returns:
            By gang its assignment, which is taken from now on: none named where the nodes of the pool are not told, and
            None where not as many devices are free once those earlier in the batch have theirs.
        """
        assignments: list[NodeAssignment | None] = [() if not self.knows_nodes(gang.pool) else None for gang in gangs]
        for pool in dict.fromkeys(gang.pool for gang in gangs if self.knows_nodes(gang.pool)):
            own = {number: gang for number, gang in enumerate(gangs) if gang.pool == pool}
            for number, assignment in _packed(self.nodes_of(pool), own).items():
                assignments[number] = assignment
        return tuple(assignments)

    def resize(self, gang: Gang, current: NodeAssignment) -> NodeAssignment | None:
        """Give a gang that has an assignment as many devices as it is to have now.

        One that grows keeps its devices and is given more on its own nodes and switches first; one that shrinks is to
        give back those on nodes where it has least. None, and nothing changes, where not as many are free.
        """
        free_nodes = self.nodes_of(gang.pool)
        assignment = free_nodes.open_to(gang).resized(gang.devices, current, gang.per_node)
        if assignment is not None and not free_nodes.fulfils(gang, assignment):
            return None
        if assignment is not None:
            # what a job gives back is not free before it has written its checkpoint
            before = dict(current)
            free_nodes.take(tuple((node, max(devices - before.get(node, 0), 0)) for node, devices in assignment))
        return assignment

    def fitting(self, gang: Gang) -> NodeAssignment | None:
        """An assignment as a gang needs it, if there is one; where nodes are not told, nobody can say no."""
        return self.nodes_of(gang.pool).fitting(gang) if self.knows_nodes(gang.pool) else ()

    def allows(self, gang: Gang) -> bool:
        """Whether there is one."""
        return self.fitting(gang) is not None

    def distance(self, pool: int, assignment: NodeAssignment) -> float:
        """Mean hops between two devices of a gang, from zero to two; zero for one device."""
        return self.nodes_of(pool).distance(assignment)

    def assignment(self, pool: int, nodes: "Iterable[documents.NodeShare]") -> NodeAssignment:
        """The assignment that shares of nodes name.

        Raises:
            KeyError: The pool has no such node.
        """
        names = self.nodes_of(pool).names
        numbers = self._numbers.setdefault(pool, {}) or {name: number for number, name in enumerate(names)}
        self._numbers[pool] = numbers
        return tuple(sorted((numbers[share["node"]], int(share["devices"])) for share in nodes))

    def named(self, pool: int, assignment: NodeAssignment) -> "list[documents.NodeShare]":
        """An assignment with the names of its nodes."""
        names = self.nodes_of(pool).names
        return [{"node": names[node], "devices": devices} for node, devices in assignment]

    def nodes_of(self, pool: int) -> FreeNodes:
        """Made when it is first asked for, since most decisions touch few pools.

        Raises:
            ValueError: The nodes of the pool are not told.
        """
        if pool not in self._by_pool:
            nodes = self._nodes[pool]
            if nodes is None:
                raise ValueError(f"the nodes of pool {pool} are not told")
            self._by_pool[pool] = FreeNodes(nodes)
        return self._by_pool[pool]


def pack(snapshot: Snapshot, gangs: Sequence[Gang]) -> tuple[NodeAssignment | None, ...]:
    """Give the free devices of a snapshot to a batch, as :meth:`NodeAllocator.pack` does."""
    return NodeAllocator(snapshot.pools.nodes).pack(gangs)


def traffic(snapshot: Snapshot, job: int) -> float:
    """Bytes a second that the nodes of a job send each other.

    At each step replicas sum up what they exchange, twice of which passes each of them, and send on what crosses a cut.
    """
    jobs = snapshot.jobs
    step = float(jobs.step_time[job])
    return (2.0 * float(jobs.exchange[job]) + float(jobs.boundary[job])) / step if step > 0.0 else 0.0


def _precedence(gang: Gang) -> tuple[bool, float]:
    """Those that need something of nodes come first, as they were tried."""
    return not gang.particular, gang.rank if gang.particular else 0.0


def _packed(free_nodes: FreeNodes, gangs: Mapping[int, Gang]) -> dict[int, NodeAssignment]:
    """Assignments of gangs of one pool; those that do not fit are missing."""
    left = int(free_nodes.free.sum())
    heavy: list[int] = []
    light: list[int] = []
    for number, gang in gangs.items():
        if gang.devices <= left:
            left -= gang.devices
            (heavy if gang.traffic >= LIGHT else light).append(number)
    heavy.sort(key=lambda number: (-gangs[number].traffic, -gangs[number].devices))
    # of those that hardly communicate, the ones that do least take the worst
    light.sort(key=lambda number: (gangs[number].traffic, gangs[number].devices))
    assignments: dict[int, NodeAssignment] = {}
    # those that need something of nodes come before those that may lie anywhere
    for number in sorted((*heavy, *light), key=lambda number: _precedence(gangs[number])):
        gang = gangs[number]
        if (assignment := free_nodes.fitting(gang)) is not None:
            assignments[number] = free_nodes.take(assignment)
    by_size: dict[int, list[int]] = {}
    for number in (*heavy, *reversed(light)):
        if number in assignments and not gangs[number].particular:
            by_size.setdefault(gangs[number].devices, []).append(number)
    # of gangs of one size, the one that communicates more gets the nearer of their assignments
    for size, same in by_size.items():
        if size > 1 and len(same) > 1 and not free_nodes.reservations:
            assignments.update(
                zip(same, sorted((assignments[number] for number in same), key=free_nodes.distance), strict=True)
            )
    return assignments
