"""What jobs need of nodes: whether nodes have it free, when they will, and which are kept for whom.

1. A gang that needs so many devices on each node, or all on one node, takes nodes one by one; one that needs to be on
   one leaf switch and says nothing of nodes takes what hangs on a switch as a whole. Both are *units* here.
2. A unit is ready once enough of it is free; jobs on it are expected to end as :func:`.availability.ends` says. Devices
   that are neither free nor held are being given back by a job that goes elsewhere, or are held by one that does not
   say on which nodes.
3. Units that a job waits for are kept for it: whoever would hold devices of them at that time goes elsewhere. So a job
   that needs a whole node does not wait for ever while small ones come and go. (D. Lifka, "The ANL/IBM SP scheduling
   system", JSSPP 1995, has it for devices.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from kuayu.scheduling.availability import UNTOLD
from kuayu.scheduling.candidates import Candidates
from kuayu.scheduling.node_allocator import FreeNodes, Gang, NodeAllocator, NodeReservation, gang_of
from kuayu.scheduling.state import ONE_NODE, ONE_SWITCH, Counts, Flags, Floats, Numbers, Snapshot

NodeNeed = tuple[int, int, int, int]
"""Pool, devices, of these on each node or zero, and how near to each other, by ``SCOPES``."""

_Entries = tuple[Numbers, Counts, Floats]
"""Devices of nodes, and when they will be free: number of the node, how many, seconds."""

NO_NODES: Numbers = np.zeros(0, dtype=np.intp)
NO_DEVICES: Counts = np.zeros(0, dtype=np.int64)

MAX_UNITS, UNITS_PER_NEEDED, MAX_GROUPS = 32, 4, 8
"""Nodes, or switches, of which is found what it costs to clear them: so many, or so many for each that is needed; of
nodes that have to hang on one switch, those of so many switches."""


@dataclass(frozen=True, slots=True)
class Units:
    """How a gang could lie on the nodes of its pool.

    Attributes:
        unit: Number of the unit, by node.
        free: Devices, by unit, those left out that are reserved.
        group: Of units that have to be taken together: all are of one group.
        needed: Devices that are needed of a unit.
        count: Units that are needed.
    """

    unit: Numbers
    free: Counts
    group: Numbers
    needed: int
    count: int

    @classmethod
    def of(cls, need: NodeNeed, nodes: FreeNodes) -> "Units":
        """Units for what is needed of the nodes of a pool."""
        _, devices, per_node, within = need
        one_switch = within == ONE_SWITCH
        unit = nodes.switch if one_switch and not per_node else np.arange(len(nodes.free))
        needed = per_node if per_node and within != ONE_NODE else devices
        total = int(unit.max(initial=-1)) + 1
        free = np.bincount(unit, nodes.open_to(_gang(need)).free, total).astype(np.int64)
        group = nodes.switch if one_switch and per_node else np.zeros(total, dtype=np.intp)
        return cls(unit, free, group, needed, devices // needed)

    def best(self, cost: Floats, total: Callable[[Floats], float]) -> Numbers | None:
        """As many units as are needed, those that cost least together; none where not as many can be had.

        Args:
            cost: By unit; infinite where it cannot be had.
            total: What several cost together.
        """
        cheapest, least = None, inf
        order = np.argsort(cost, kind="stable")
        for group in np.unique(self.group).tolist():
            own = order[self.group[order] == group][: self.count]
            if len(own) == self.count and (together := total(cost[own])) < least:
                cheapest, least = own, together
        return cheapest

    def shortlist(self, missing: Floats) -> Numbers:
        """Units of which it is worth while to find what it costs to clear them: those that lack least, of few groups.

        Args:
            missing: Devices that each lacks; infinite where it cannot have them.
        """
        shortlists: list[tuple[float, Numbers]] = []
        order = np.argsort(missing, kind="stable")
        order = order[np.isfinite(missing[order])]
        for group in np.unique(self.group).tolist():
            own = order[self.group[order] == group][: max(MAX_UNITS, UNITS_PER_NEEDED * self.count)]
            if len(own) >= self.count:
                shortlists.append((float(missing[own[: self.count]].sum()), own))
        nearest = sorted(shortlists, key=lambda shortlist: shortlist[0])[:MAX_GROUPS]
        return np.concatenate([NO_NODES, *(own for _, own in nearest)])

    def spare(self, free: Counts, gives: dict[int, dict[int, int]]) -> Numbers:
        """Units that suffice once devices are given up; who need not give up any for that is left out, the last first.

        Args:
            free: Devices that are free in any case, by unit.
            gives: Devices that somebody gives up, by unit; with all of them units suffice.
        """
        free = free.copy()
        for parts in gives.values():
            for unit, freed in parts.items():
                free[unit] += freed
        sufficient = self._enough(free)
        for somebody in reversed([*gives]):
            without = free.copy()
            for unit, freed in gives[somebody].items():
                without[unit] -= freed
            if (spared := self._enough(without)) is not None:
                sufficient, free = spared, without
                del gives[somebody]
        assert sufficient is not None
        return sufficient

    def _enough(self, free: Counts) -> Numbers | None:
        """Units with as much free as is needed, the tightest; none where there are not as many."""
        cost = np.where(free >= self.needed, free.astype(np.float64), inf)
        return self.best(cost, lambda costs: float(costs.sum()))


@dataclass(frozen=True, slots=True)
class UnitOccupancy:
    """What running jobs hold of units, by unit and job; ascending by unit.

    Attributes:
        unit: Number of the unit.
        job: Number of the job.
        devices: How many it holds of it.
    """

    unit: Numbers
    job: Numbers
    devices: Counts


@dataclass(frozen=True, slots=True)
class NodeWait:
    """When nodes will have what a gang needs.

    Attributes:
        seconds: Until then; infinite where nothing says when.
        nodes: Which; none where that is so, or where it does not matter.
    """

    seconds: float
    nodes: Numbers


NO_WAIT, NEVER = NodeWait(0.0, NO_NODES), NodeWait(inf, NO_NODES)


class NodeCapacity:
    """Whether and when nodes have free what jobs need of them, while an epoch is being decided.

    Attributes:
        particular: Whether a job needs something of nodes, by job.
        reservations: Nodes that are kept for jobs that wait.

    Args:
        snapshot: Nodes, and who holds them.
        ends: Seconds until each running job is expected to give its devices back.
    """

    def __init__(self, snapshot: Snapshot, ends: Floats) -> None:
        self._snapshot, self._ends, self._allocator = snapshot, ends, NodeAllocator(snapshot.pools.nodes)
        self._waits: dict[int, dict[NodeNeed, NodeWait]] = {}
        self._fits: dict[int, dict[NodeNeed, bool]] = {}
        self._starts: dict[int, list[_Entries]] = {}
        self._reserved: dict[int, list[float]] = {}
        self._elsewhere: dict[int, int] = {}
        self.particular: list[bool] = snapshot.jobs.particular.tolist()
        self.reservations: list[NodeReservation] = []

    def admits(self, now: Flags, candidates: Candidates, job_rows: slice, seconds: Floats) -> Flags:
        """Which candidates of a job can start now, by what it needs of nodes too.

        Args:
            now: Which could start as far as devices of pools go.
            candidates: All.
            job_rows: Rows of the job.
            seconds: For how long each would hold its devices, by row.
        """
        particular = self.particular[candidates.job[job_rows.start]]
        if not particular and not self.reservations:
            return now
        admitted = now.copy()
        for place in np.flatnonzero(now).tolist():
            row = job_rows.start + place
            is_free = self._is_free if particular else self._is_open
            admitted[place] = all(is_free(need, float(seconds[row])) for need in self._needs(candidates, row))
        return admitted

    def prolong(self, waits: Floats, now: Flags, candidates: Candidates, job_rows: slice, seconds: Floats) -> None:
        """Have candidates of a job wait until nodes have what it needs of them, or are reserved for nobody any more.

        Args:
            waits: Seconds until each can start, as far as devices of pools go; changed.
            now: Which can start now.
            candidates: All.
            job_rows: Rows of the job.
            seconds: For how long each would hold its devices, by row.
        """
        particular = self.particular[candidates.job[job_rows.start]]
        if not particular and not self.reservations:
            return
        for place in np.flatnonzero(~now).tolist():
            row = job_rows.start + place
            for need in self._needs(candidates, row):
                if particular:
                    waits[place] = max(waits[place], self._wait(need).seconds)
                elif not self._is_open(need, float(seconds[row])):
                    waits[place] = max(waits[place], min(self._reserved[need[0]]))

    def knows_nodes(self, pool: int) -> bool:
        """Whether the nodes of a pool are known."""
        return self._allocator.knows_nodes(pool)

    def units(self, job: int, pool: int, devices: int) -> Units:
        """How devices for a job could lie on the nodes of a pool, which are told."""
        return Units.of(self._need(job, pool, devices), self._allocator.nodes_of(pool))

    def occupancy(self, pool: int, units: Units) -> UnitOccupancy:
        """What running jobs hold of the units of a pool, but for nodes that are reserved."""
        node, job, devices = self._occupied(pool)
        open_nodes = np.ones(len(units.unit), dtype=np.bool_)
        for reservation in self._allocator.nodes_of(pool).reservations:
            open_nodes[reservation.nodes[reservation.devices > 0]] = False
        node, job, devices = (column[open_nodes[node]] for column in (node, job, devices))
        unit, jobs = units.unit[node], len(self._snapshot.jobs)
        pairs, place = np.unique(unit * jobs + job, return_inverse=True)
        return UnitOccupancy(pairs // jobs, pairs % jobs, np.bincount(place, devices, len(pairs)).astype(np.int64))

    def holds(self, job: int, pool: int, devices: int) -> bool:
        """Whether nodes of a pool have free what a running job needs to go on there."""
        return self._allocator.allows(gang_of(self._snapshot, job, pool, devices))

    def coming(self, pool: int, units: Units) -> Counts:
        """Devices of units that jobs which go elsewhere are giving back, by unit; not of nodes that are reserved."""
        node, devices, until = self._hidden(pool)
        reserved = [reservation.nodes for reservation in self._allocator.nodes_of(pool).reservations]
        going = (until <= UNTOLD) & ~np.isin(node, np.concatenate([NO_NODES, *reserved]))
        coming: Counts = np.bincount(units.unit[node[going]], devices[going], len(units.free)).astype(np.int64)
        return coming

    def take(self, candidates: Candidates, row: int, seconds: float) -> None:
        """A job starts now, for so long; where it needs something of nodes, others find those taken.

        Where it does not, it is not known on which nodes it will be.
        """
        particular = self.particular[candidates.job[row]]
        for need in self._needs(candidates, row):
            pool, devices, _, _ = need
            if not particular:
                self._elsewhere[pool] = self._elsewhere.get(pool, 0) + devices
            elif assignment := self._allocator.fitting(_gang(need, seconds)):
                self._allocator.take(pool, assignment)
                node, counts = np.array(assignment, dtype=np.int64).T
                entries = node.astype(np.intp), counts, np.full(len(node), seconds)
                self._starts.setdefault(pool, []).append(entries)
                self._changed(pool)

    def reserve(
        self, candidates: Candidates, row: int, start: float, seconds: float, rank: int, nodes: Numbers | None
    ) -> None:
        """Keep the nodes that a job waits for, where it needs something of nodes.

        Args:
            candidates: All.
            row: Of the candidate that it waits for.
            start: Seconds until it is to have them.
            seconds: For how long.
            rank: How many were tried before it.
            nodes: Which, where others are preempted for it; those that are ready first where this is None.
        """
        if not self.particular[candidates.job[row]]:
            return
        for need in self._needs(candidates, row):
            chosen = self._wait(need).nodes if nodes is None else nodes
            if len(chosen):
                devices = self._portions(need, chosen)
                self.reservations.append(NodeReservation(need[0], chosen, devices, start, rank))
                self._allocator.reserve(self.reservations[-1])
                self._reserved.setdefault(need[0], []).append(start + seconds)
                self._changed(need[0])

    def _portions(self, need: NodeNeed, nodes: Numbers) -> Counts:
        """Devices of each node that are reserved; of those on a switch the emptiest, until there are enough."""
        pool, devices, per_node, within = need
        if per_node or within != ONE_SWITCH:
            return np.full(len(nodes), devices // len(nodes), dtype=np.int64)
        known = self._snapshot.pools.nodes[pool]
        assert known is not None
        order = np.argsort(-self._allocator.nodes_of(pool).free[nodes], kind="stable")
        size = known.devices[nodes[order]]
        portions = np.zeros(len(nodes), dtype=np.int64)
        portions[order] = np.clip(devices - np.cumsum(size) + size, 0, size)
        return portions

    def _changed(self, pool: int) -> None:
        """What was found of a pool no longer holds."""
        self._waits.pop(pool, None)
        self._fits.pop(pool, None)

    def _is_open(self, need: NodeNeed, seconds: float) -> bool:
        """Whether as many devices are free on nodes that nobody keeps for then, beside those who start now."""
        pool, devices, _, _ = need
        if not self._allocator.knows_nodes(pool):
            return True
        nodes = self._allocator.nodes_of(pool)
        free = int(nodes.open_to(_gang(need, seconds)).free.sum())
        return not nodes.reservations or devices <= free - self._elsewhere.get(pool, 0)

    def _is_free(self, need: NodeNeed, seconds: float) -> bool:
        """Whether nodes have it free for so long."""
        if self.reservations:
            return self._allocator.allows(_gang(need, seconds))
        fits = self._fits.setdefault(need[0], {})
        if need not in fits:
            fits[need] = self._allocator.allows(_gang(need))
        return fits[need]

    def _wait(self, need: NodeNeed) -> NodeWait:
        """When nodes will have it; at once where they are not told."""
        if not self._allocator.knows_nodes(need[0]):
            return NO_WAIT
        waits = self._waits.setdefault(need[0], {})
        if need not in waits:
            waits[need] = self._computed(need)
        return waits[need]

    def _computed(self, need: NodeNeed) -> NodeWait:
        """The same of nodes that are told: by what is free on them, what jobs give back, and what is reserved."""
        pool = need[0]
        nodes = self._allocator.nodes_of(pool)
        # what is free, or comes free, on nodes that are reserved is somebody else's until then
        reserved = np.zeros(len(nodes.free))
        for reservation, until in zip(nodes.reservations, self._reserved.get(pool, ()), strict=True):
            own = reservation.nodes[reservation.devices > 0]
            reserved[own] = np.maximum(reserved[own], until)
        node, job, devices = self._occupied(pool)
        locked = nodes.free - nodes.open_to(_gang(need)).free
        entries: list[_Entries] = [
            (node, devices, np.maximum(self._ends[job - self._snapshot.waiting], reserved[node])),
            (np.flatnonzero(locked), locked[locked > 0], reserved[locked > 0]),
            self._hidden(pool),
            *self._starts.get(pool, ()),
        ]
        units = Units.of(need, nodes)
        ready = _ready(units, *(np.concatenate(column) for column in zip(*entries, strict=True)))
        chosen = units.best(ready, lambda cost: float(cost.max()))
        if chosen is None:
            return NEVER
        return NodeWait(float(ready[chosen].max()), np.flatnonzero(np.isin(units.unit, chosen)))

    def _hidden(self, pool: int) -> _Entries:
        """Devices of nodes that are neither free nor known to be held, and when they will be free."""
        nodes, holdings = self._snapshot.pools.nodes[pool], self._snapshot.holdings
        if nodes is None or holdings.nodes is None:
            return NO_NODES, NO_DEVICES, np.zeros(0)
        node, _, devices = self._occupied(pool)
        hidden = np.maximum(nodes.devices - nodes.free, 0)
        hidden = np.maximum(hidden - np.bincount(node, devices, len(hidden)).astype(np.int64), 0)
        named = np.bincount(holdings.nodes.share, holdings.nodes.devices, len(holdings.pool))
        holder = holdings.holder[(holdings.pool == pool) & (named < holdings.devices)] - self._snapshot.waiting
        going = (holdings.ready > 0.0) & (self._snapshot.jobs.done[self._snapshot.waiting :] > 0.0)
        # more than these give back is held by somebody else
        given_back = int(holdings.devices[going[holdings.holder - self._snapshot.waiting]].sum())
        until = UNTOLD if 0 < int(hidden.sum()) <= given_back else inf
        if len(holder):
            until = float(self._ends[holder].max())
        (node,) = hidden.nonzero()
        return node, hidden[node], np.full(len(node), until)

    def _need(self, job: int, pool: int, devices: int) -> NodeNeed:
        jobs = self._snapshot.jobs
        return pool, devices, int(jobs.per_node[job]), int(jobs.within[job])

    def _needs(self, candidates: Candidates, row: int) -> list[NodeNeed]:
        """What a candidate needs, pool by pool."""
        shares = zip(candidates.pools[row].tolist(), candidates.devices[row].tolist(), strict=True)
        return [self._need(int(candidates.job[row]), *share) for share in shares if share[1] > 0]

    def _occupied(self, pool: int) -> tuple[Numbers, Numbers, Counts]:
        """Node, job and devices of what is held of the nodes of a pool."""
        nodes, pools, jobs, devices = self._occupancy
        own = slice(*np.searchsorted(pools, [pool, pool + 1]).tolist())
        return nodes[own], jobs[own], devices[own]

    @cached_property
    def _occupancy(self) -> tuple[Numbers, Numbers, Numbers, Counts]:
        """Node, pool, job and devices of all that is held of nodes, ascending by pool."""
        holdings, occupancy = self._snapshot.holdings, self._snapshot.holdings.nodes
        if occupancy is None:
            return NO_NODES, NO_NODES, NO_NODES, NO_DEVICES
        order = np.argsort(holdings.pool[occupancy.share], kind="stable")
        share = occupancy.share[order]
        return occupancy.node[order], holdings.pool[share], holdings.holder[share], occupancy.devices[order]


def _gang(need: NodeNeed, seconds: float = inf) -> Gang:
    pool, devices, per_node, within = need
    return Gang(pool, devices, per_node=per_node, within=within, seconds=seconds)


def _ready(units: Units, node: Numbers, devices: Counts, until: Floats) -> Floats:
    """Seconds until each unit has as many devices free as are needed of it; infinite where nothing says when."""
    ready = np.where(units.free >= units.needed, 0.0, inf)
    order = np.lexsort((until, units.unit[node]))
    unit, given_back = units.unit[node][order], np.cumsum(devices[order])
    first = np.searchsorted(unit, unit)
    before = np.where(first > 0, given_back[first - 1], 0)
    enough = units.free[unit] + given_back - before >= units.needed
    np.minimum.at(ready, unit[enough], until[order][enough])
    return ready
