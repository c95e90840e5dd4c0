"""Running jobs that are stopped, migrated, scaled up or down, for a job that waits or for their own sake.

1. *Preemption.* The sum of periods is least where the jobs that will be through first have the fastest devices, and
   others go on beside them: T. Gonzalez, "Optimal mean finish time preemptive schedules", TR 220, Pennsylvania State
   University, 1977. A long job need not be kept off fast devices while nobody else wants them: it is preempted when
   somebody does. It gives up no more devices than are needed.
2. *Priority.* What jobs of lower priority lose counts a tenth for each priority that lies between, so that those of the
   lowest make room first; they are preempted however little they have before them, and are stopped where nothing less
   will do. Jobs of the same priority are never stopped for each other, and none is preempted for one of lower priority
   (JOB-016).
3. *Migration and scale-up.* Whoever started on slow devices, or on few, need not stay there once better ones are free
   and nobody who waits takes them. It is interrupted only if that is little beside what it has before it, and if it
   ends clearly sooner, what it costs included.
4. *Scale-down.* A job that asked for more than it uses goes on with as many devices as it keeps busy, where others wait
   for devices of its pool; once, and only if the interruption is little beside what others gain.
5. *Nodes.* For a job that needs something of nodes, those make room who sit on the nodes that it can have most cheaply;
   on fewer devices goes on only who sits on one of them alone. Nobody is told to go where nodes have no place for it.
6. *Interruption budget.* Whoever was interrupted is left alone for half an hour, whatever for, and until the next
   interruption takes no more than a twentieth of the time since: so nobody is interrupted more than twice an hour, and
   all interruptions of a job together take no more than a twentieth of its time, the first apart.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

import numpy as np

from kuayu.scheduling.attempts import Attempt, EpochResult, Migration
from kuayu.scheduling.availability import EPOCH, Availability, paces
from kuayu.scheduling.candidates import MONEY, Candidates
from kuayu.scheduling.node_capacity import NodeCapacity, Units
from kuayu.scheduling.scoring import BEGINS, CROWD, RUNS, WAITS, Scoring
from kuayu.scheduling.state import NONE, NOWHERE, Counts, Flags, Floats, Numbers, Snapshot
from kuayu.scheduling.throughput import BITS, STARTING, STORAGE, UtilisationPrior, restart, saving


@dataclass(frozen=True, slots=True)
class VictimOptions:
    """How running jobs could be preempted, by row.

    Attributes:
        row: Of the job among those that can be changed.
        was: Pool where it is.
        pool: Pool where it would go on.
        devices: On how many; none where it is stopped.
        freed: Devices that it gives up.
        left: Seconds that it has before it where it is.
        saves: Seconds until it gives them up.
        pause: Seconds for which it is interrupted, these included.
        slower: Share of its speed that it loses.
        cost: Seconds that the change counts, money included.
    """

    row: Numbers
    was: Numbers
    pool: Numbers
    devices: Counts
    freed: Counts
    left: Floats
    saves: Floats
    pause: Floats
    slower: Floats
    cost: Floats


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """Options of one pool that may be open to jobs of one priority, side by side.

    Attributes:
        option: Rows of the options, ascending.
        left: Seconds that the job has before it; infinite where it is preempted however little that is.
        row: And the others as in :class:`VictimOptions`.
        pool: Likewise.
        devices: Likewise.
        freed: Likewise.
        stays: Whether it goes on in its pool, or nowhere.
        shrinks: Whether it goes on in its pool on fewer devices.
        slower: Likewise.
        cost: Likewise.
        device_value: Of the pool where it goes on.
        weight: What a second counts that it loses.
    """

    option: Numbers
    left: Floats
    row: Numbers
    pool: Numbers
    devices: Counts
    freed: Counts
    stays: Flags
    shrinks: Flags
    slower: Floats
    cost: Floats
    device_value: Floats
    weight: Floats


@dataclass(frozen=True, slots=True)
class VictimSet:
    """Which jobs are preempted, and what it costs.

    Attributes:
        options: Rows of the options.
        devices: On how many devices each goes on: what is not needed of an option is not taken.
        start: Seconds until the devices are free.
        lost: Seconds that those who are preempted lose.
        nodes: Nodes that become free so, where that matters.
    """

    options: list[int]
    devices: list[int]
    start: float
    lost: float
    nodes: Numbers | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What changes lead to, by row.

    Attributes:
        speed: Speed then over speed now.
        saves: Seconds until the checkpoint is written and the devices are given back.
        pause: Seconds without steps, these included; infinite where the job cannot go.
        money: For data and checkpoint.
    """

    speed: Floats
    saves: Floats
    pause: Floats
    money: Floats


@dataclass(frozen=True, slots=True)
class UnitOptions:
    """What options give up of nodes, or of what hangs on a switch; ascending by unit.

    Attributes:
        unit: Number of the unit.
        option: Row of the option.
        freed: Devices of the unit that it gives up.
        most: The most that its job can give up of the unit, at one of its options, zero at the others.
    """

    unit: Numbers
    option: Numbers
    freed: Counts
    most: Counts

    def by_loss(self, lost: Floats, missing: Counts) -> "UnitOptions":
        """The same, those of a unit first that lose least for a device.

        Args:
            lost: Seconds that options count.
            missing: Devices that are needed of each unit.
        """
        useful = np.maximum(np.minimum(self.freed, missing[self.unit]), 1)
        order = np.lexsort((lost / useful, self.unit))
        return UnitOptions(self.unit[order], self.option[order], self.freed[order], self.most[order])

    def of(self, unit: int) -> dict[int, int]:
        """Options by which devices of a unit are given up, in their order, and how many."""
        own = slice(*np.searchsorted(self.unit, [unit, unit + 1]).tolist())
        return dict(zip(self.option[own].tolist(), self.freed[own].tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class _Selection:
    """Options that are chosen together, in their order: their rows, the rows of their jobs, what they take of pools."""

    options: list[int] = field(default_factory=list)
    rows: set[int] = field(default_factory=set)
    used: dict[int, int] = field(default_factory=dict)


class ChangeableJobs:
    """Running jobs that can be changed: undisturbed, in one pool, and known in what they keep busy.

    Attributes:
        job: Numbers of these jobs.
        pool: Where each is.
        devices: How many it holds.
        bought: Number of the way of buying them.
        left: Seconds that it has before it where it is.
        undisturbed: Seconds since it was interrupted last.

    Args:
        snapshot: Its running jobs.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        shares = _undisturbed(snapshot)
        holdings = snapshot.holdings
        self.job, self.pool = holdings.holder[shares], holdings.pool[shares]
        self.devices, self.bought = holdings.devices[shares], holdings.purchase[shares]
        self.left: Floats = snapshot.jobs.left[self.job] / holdings.rate[self.job - snapshot.waiting]
        self.undisturbed: Floats = holdings.undisturbed[self.job - snapshot.waiting]

    @cached_property
    def _utilisation_prior(self) -> UtilisationPrior:
        return UtilisationPrior(self._snapshot)

    @cached_property
    def paces(self) -> Floats:
        """Share of their speed on paper that jobs have in practice, by domain."""
        return paces(self._snapshot)

    @cached_property
    def fastest(self) -> Floats:
        """Speed of each on as many devices as are of use to it over its speed now, of those where it is."""
        most = self._snapshot.jobs.maximum[self.job].astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            speed: Floats = self.longer / self._utilisation_prior.longer(self.job, most)
        return speed

    @cached_property
    def longer(self) -> Floats:
        """How many times as long each takes on the devices that it holds as on those that it asked for."""
        return self._utilisation_prior.longer(self.job, self.devices.astype(np.float64))

    def speeds(self, row: Numbers, pool: Numbers, devices: Counts) -> Floats:
        """Speed of jobs on devices of a pool over their speed now, by row."""
        snapshot, pools = self._snapshot, self._snapshot.pools
        job, was, target = self.job[row], self.pool[row], pools.domain[pool]
        with np.errstate(divide="ignore", invalid="ignore"):
            speed = self.longer[row] / self._utilisation_prior.longer(job, devices.astype(np.float64))
            speed *= snapshot.job_index[job, pools.accelerator[pool]] / snapshot.job_index[job, pools.accelerator[was]]
        speed *= self.paces[target] / self.paces[pools.domain[was]]
        return speed

    def change(self, row: Numbers, pool: Numbers, devices: Counts) -> Change:
        """What it means for jobs to go on so.

        Args:
            row: Of the job among these.
            pool: Where it goes on.
            devices: On how many; none where it is stopped, to go on one day on as many as it has.
        """
        snapshot, jobs, pools, paths = self._snapshot, self._snapshot.jobs, self._snapshot.pools, self._snapshot.paths
        job, was, has = self.job[row], self.pool[row], self.devices[row].astype(np.float64)
        source, target, stopped = pools.domain[was], pools.domain[pool], devices == 0
        then = np.where(stopped, has, devices)
        size, stays = jobs.checkpoint[job], was == pool
        sent = (source != target) & (size > 0.0)
        staging, paid = (np.where(stays, 0.0, per_domain[job, target]) for per_domain in snapshot.data_staging)
        with np.errstate(divide="ignore", invalid="ignore"):
            speed = self.longer[row] / self._utilisation_prior.longer(job, then)
            speed *= snapshot.job_index[job, pools.accelerator[pool]] / snapshot.job_index[job, pools.accelerator[was]]
            moving = np.where(sent, size * BITS / paths.available[source, target], 0.0)
            money = np.where(sent, size * BITS * paths.tariff[source, target], 0.0)
        saves = saving(size, has)
        pause = saves + moving + staging + restart(size, then)
        speed *= np.where(stopped, 0.0, self.paces[target] / self.paces[source])
        return Change(speed, saves, pause, money + paid)


def _undisturbed(snapshot: Snapshot) -> Numbers:
    """Shares of jobs that run undisturbed in one pool, and of which it is known what they keep busy."""
    jobs, holdings = snapshot.jobs, snapshot.holdings
    place = holdings.holder - snapshot.waiting
    shares: Numbers = np.flatnonzero(
        (np.bincount(place, minlength=len(jobs) - snapshot.waiting)[place] == 1)
        & (holdings.mode[place] == NONE)
        & (holdings.ready[place] == 0.0)
        & (holdings.rate[place] > 0.0)
        & ~holdings.saving[place]
        & jobs.measured[holdings.holder]
        & snapshot.reachable[snapshot.pools.domain[holdings.pool]]
    )
    return shares


MIN_UNDISTURBED_SECONDS = 1800.0
"""Seconds for which a job is left alone after an interruption."""
MAX_PAUSE_PER_UNDISTURBED = 0.05
"""Seconds that an interruption may take, for each since the last one."""


def bearable(undisturbed: Floats, pause: Floats | float) -> Flags:
    """Whether jobs may be interrupted for so many seconds, so long after the last time."""
    flags: Flags = (undisturbed >= MIN_UNDISTURBED_SECONDS) & (pause <= MAX_PAUSE_PER_UNDISTURBED * undisturbed)
    return flags


MAX_PAUSE_SHARE = 0.02
"""Share of what a job has before it that its interruption may take."""
MAX_SAVING_SECONDS = 600.0
"""Seconds in which its checkpoint has to be written: so long somebody waits for its devices."""
MIN_REMAINING_RATIO = 2.0
"""A job is preempted only for one that holds the devices for less than what it has before it, by this factor."""
PAUSE_WEIGHT = 3.0
"""Seconds that a second of interruption counts."""
LOWER_PRIORITY_WEIGHT = 0.1
"""What a second counts that a job loses for one of the next higher priority; of two above, the square of it."""
MAX_PRIORITIES = 16
"""Priorities between, beyond which what is lost counts no less."""
PRIORITY_WEIGHTS: Floats = np.cumprod(np.array([1.0, *[LOWER_PRIORITY_WEIGHT] * MAX_PRIORITIES]))
"""What a second counts by how many priorities lie between; multiplied step by step, as the compiled rule does."""
INTERRUPTION_SECONDS = 3600.0
"""Seconds that an interruption counts beside: it may be in vain, and SCH-008 lets a job move once in ten hours."""
MIN_SCORE_GAIN = 0.02
"""By how much less a score has to be for others to be interrupted."""

MAX_TRIES = 64
"""Candidates of an epoch for which victims are looked for."""


class Preemption:
    """Preempts jobs where that gains more than it costs.

    Attributes:
        migrations: Jobs that have been preempted, and what they go on with.
        cleared: Nodes that become free so, by the number of the job that needs them.

    Args:
        snapshot: Its running jobs.
        availability: What is free; those who are preempted take from it.
        node_capacity: What is free on nodes.
    """

    def __init__(self, snapshot: Snapshot, availability: Availability, node_capacity: NodeCapacity) -> None:
        self._snapshot, self._availability, self._node_capacity = snapshot, availability, node_capacity
        self.migrations: list[Migration] = []
        self.cleared: dict[int, Numbers] = {}
        self._tries = MAX_TRIES
        self._blocks: dict[tuple[int, int], PoolOptions] = {}

    def better(
        self, attempt: Attempt, job_rows: slice, candidates: Candidates, scoring: Scoring, delay: float
    ) -> int | None:
        """A candidate that is better than the chosen one and starts by preempting others; it preempts them.

        Args:
            attempt: Of the job that is looked at; waits, crowd and score of the candidate are brought up to date.
            job_rows: Rows of the job.
            candidates: All.
            scoring: Scores them.
            delay: Jobs that a device second delays.

        Returns:
            Place of the candidate in the attempt, or none.
        """
        if self._tries <= 0:
            return None
        least = inf
        if attempt.chosen is not None:
            least = float(attempt.scores[attempt.chosen])
            least -= MIN_SCORE_GAIN * abs(least)
        optimistic_bounds = scoring.optimistic_bounds(job_rows, EPOCH, INTERRUPTION_SECONDS)
        promising = optimistic_bounds < least
        if not promising.any():
            return None
        (hopeful,) = (np.greater(promising, attempt.now) & (candidates.mode[job_rows] == NONE)).nonzero()
        if not len(hopeful):
            return None
        seconds = attempt.features[:, BEGINS] + attempt.features[:, RUNS]
        best: tuple[int, VictimSet] | None = None
        for place in hopeful[np.argsort(optimistic_bounds[hopeful], kind="stable")].tolist():
            if optimistic_bounds[place] >= least:
                break
            row = attempt.rows[place]
            self._tries -= 1
            pool, devices = int(candidates.pools[row, 0]), int(candidates.devices[row, 0])
            victims = self._victims(attempt.job, pool, devices, float(seconds[place]), delay)
            if victims is None:
                continue
            features = attempt.features[place : place + 1].copy()
            features[0, WAITS] = victims.start
            features[0, CROWD] += victims.lost
            score = float(scoring.anew(features)[0])
            if score < least:
                least, best = score, (place, victims)
        if best is None:
            return None
        place, victims = best
        attempt.features[place, WAITS] = victims.start
        attempt.features[place, CROWD] += victims.lost
        attempt.scores[place] = least
        self._make(victims, attempt.job)
        return place

    def _victims(self, job: int, pool: int, devices: int, seconds: float, delay: float) -> VictimSet | None:
        """The cheapest way for a job to have devices of a pool for so long, on nodes as it needs them."""
        by_node = self._node_capacity.particular[job] and self._node_capacity.knows_nodes(pool)
        return (self.victims_on_nodes if by_node else self.victims)(job, pool, devices, seconds, delay)

    def victims(self, job: int, pool: int, devices: int, seconds: float, delay: float) -> VictimSet | None:
        """The cheapest way for a job to have devices of a pool for so long, if it needs others to be preempted.

        Each loses what it does less of while the devices are held, since it may come back after that. Nobody makes
        room for a job of lower priority, or is stopped for one that has no higher.
        """
        more = devices - int(self._availability.free[pool])
        if more <= 0:
            return None
        block, place = self._able(job, pool, seconds)
        # of what a job gives up where it stays, no more is taken than is needed
        option, freed = block.option.take(place), block.freed.take(place)
        part = np.where(block.shrinks.take(place), np.minimum(more / freed, 1.0), 1.0)
        lost = _loss(block, place, part, seconds, delay)
        order = option[np.argsort(lost / np.minimum(freed, more), kind="stable")].tolist()
        selection = _Selection()
        if self._choose(order, self._options.freed.item, more, selection) < more:
            # what one job does for little may keep it from doing what is needed; others of its priority are not stopped
            selection, order = _Selection(), self._largest(order, self._options.freed.item)
            lower = bool((block.weight.take(place) < 1.0).any())
            if not lower or self._choose(order, self._options.freed.item, more, selection) < more:
                return None
        gives = {option: {pool: int(self._options.freed[option])} for option in selection.options}
        return self._victim_set(job, self._trimmed(gives, {pool: more}), seconds, delay)

    def victims_on_nodes(self, job: int, pool: int, devices: int, seconds: float, delay: float) -> VictimSet | None:
        """The same for a job that needs something of the nodes of the pool, which are told."""
        units = self._node_capacity.units(job, pool, devices)
        free = units.free + self._node_capacity.coming(pool, units) + self._left_behind(pool, units)
        missing = np.maximum(units.needed - free, 0)
        block, place = self._able(job, pool, seconds)
        lost = np.full(len(self._options.row), inf)
        lost[block.option[place]] = _loss(block, place, 1.0, seconds, delay)
        given = self._given_up(units, pool, block, place)
        given = given.by_loss(lost[given.option], missing)
        most = np.bincount(given.unit, given.most, len(free))
        able = units.shortlist(np.where(most >= missing, missing, inf))
        by_unit: dict[int, dict[int, int]] = {}
        orders: dict[int, Iterable[int]] = {}
        cost = np.full(len(free), inf)
        for unit in able.tolist():
            needed = int(missing[unit])
            by_unit[unit] = given.of(unit)
            for order in (by_unit[unit], self._largest(by_unit[unit], by_unit[unit].__getitem__)):
                selection = _Selection()
                if self._choose(order, by_unit[unit].__getitem__, needed, selection) >= needed:
                    cost[unit], orders[unit] = lost[selection.options].sum(), order
                    break
        best = units.best(cost, lambda costs: float(costs.sum()))
        if best is None or not missing[best].any():
            return None
        selection = _Selection()
        for unit in best.tolist():
            # who sits on several of the nodes leaves all of them
            needed = int(missing[unit]) - sum(by_unit[unit].get(option, 0) for option in selection.options)
            if self._choose(orders[unit], by_unit[unit].__getitem__, needed, selection) < needed:
                return None
        gives = {
            option: {unit: freed[option] for unit, freed in by_unit.items() if option in freed}
            for option in selection.options
        }
        best = units.spare(free, gives)
        trimmed = self._trimmed(gives, {unit: int(missing[unit]) for unit in best.tolist()})
        nodes = np.flatnonzero(np.isin(units.unit, best))
        return replace(self._victim_set(job, trimmed, seconds, delay), nodes=nodes)

    def _left_behind(self, pool: int, units: Units) -> Counts:
        """Devices of units that those give up who were told to go in this epoch, by unit."""
        occupancy = self._node_capacity.occupancy(pool, units)
        going = np.isin(occupancy.job, [mover.job for mover in self.migrations if not mover.stays or not mover.devices])
        freed: Counts = np.bincount(occupancy.unit[going], occupancy.devices[going], len(units.free)).astype(np.int64)
        return freed

    def _able(self, job: int, pool: int, seconds: float) -> tuple["PoolOptions", Numbers]:
        """Options of a pool, and places of those among them that are open to a job which holds devices for so long."""
        block = self._block(pool, int(self._snapshot.jobs.priority[job]))
        able = np.greater(block.left >= MIN_REMAINING_RATIO * seconds, self._gone.take(block.row))
        (place,) = (able & (block.stays | (block.devices <= self._availability.free.take(block.pool)))).nonzero()
        return block, place

    def _given_up(self, units: Units, pool: int, block: "PoolOptions", place: Numbers) -> "UnitOptions":
        """What options give up of units."""
        occupancy = self._node_capacity.occupancy(pool, units)
        row = self._row_of[occupancy.job]
        known = np.flatnonzero(row != NOWHERE)
        unit, row, devices = occupancy.unit[known], row[known], occupancy.devices[known]
        order = np.argsort(block.row[place], kind="stable")
        first, last = (np.searchsorted(block.row[place], row, side, sorter=order) for side in ("left", "right"))
        counts = last - first
        entry = np.repeat(np.arange(len(row)), counts)
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        option = order[np.repeat(first, counts) + offset]
        shrinks = block.shrinks[place[option]]
        whole = devices[entry] == self._running.devices[row[entry]]
        freed = np.where(shrinks, block.freed[place[option]], devices[entry])
        keep = np.flatnonzero(whole | ~shrinks)
        entry, option, freed = entry[keep], option[keep], freed[keep]
        # of what a job can give up of a unit only the most counts
        most = np.zeros(len(row), dtype=np.int64)
        np.maximum.at(most, entry, freed)
        leading = np.zeros(len(entry), dtype=np.int64)
        leading[np.unique(entry, return_index=True)[1]] = 1
        return UnitOptions(unit[entry], block.option[place[option]], freed, leading * most[entry])

    def _victim_set(self, job: int, trimmed: list[tuple[int, int]], seconds: float, delay: float) -> VictimSet:
        """Rows of options, with the devices on which each goes on, and what that comes to."""
        options = self._options
        rows, keeps = np.array(trimmed, dtype=np.int64).reshape(-1, 2).T
        saves, slower, cost = options.saves[rows], options.slower[rows], options.cost[rows]
        if (keeps != options.devices[rows]).any():
            change = self._running.change(options.row[rows], options.pool[rows], keeps)
            saves, slower, cost = change.saves, np.maximum(1.0 - change.speed, 0.0), _cost(change)
        start = max(EPOCH, float(np.ceil(saves.max() / EPOCH)) * EPOCH)
        lost = self._lost(job, rows, slower, cost, seconds, delay)
        return VictimSet(rows.tolist(), keeps.tolist(), start, float(lost.sum()))

    def _block(self, pool: int, own: int) -> "PoolOptions":
        """Options of a pool that may be open to a job of some priority."""
        if (pool, own) not in self._blocks:
            options, (begin, end) = self._options, self._bounds[pool : pool + 2].tolist()
            rows = np.arange(begin, end)
            priority, pause, left = self._priority[options.row[rows]], options.pause[rows], options.left[rows]
            lower = priority < own
            able = (priority == own) & (pause <= MAX_PAUSE_SHARE * left) & (options.devices[rows] > 0)
            rows = rows[lower | able]
            priority = self._priority[options.row[rows]]
            self._blocks[pool, own] = PoolOptions(
                option=rows,
                left=np.where(priority < own, inf, options.left[rows]),
                row=options.row[rows],
                pool=options.pool[rows],
                devices=options.devices[rows],
                freed=options.freed[rows],
                stays=self._stays[rows],
                shrinks=self._shrinks[rows],
                slower=options.slower[rows],
                cost=options.cost[rows],
                device_value=self._device_value[rows],
                weight=self._weight(priority, own),
            )
        return self._blocks[pool, own]

    def _weight(self, priority: Numbers, own: int) -> Floats:
        """What a second counts that a job of a priority loses for one of another."""
        below = self._priorities.searchsorted(own) - self._priorities.searchsorted(priority)
        weight: Floats = PRIORITY_WEIGHTS[np.minimum(below, len(PRIORITY_WEIGHTS) - 1)]
        return weight

    def _lost(self, job: int, rows: Numbers, slower: Floats, cost: Floats, seconds: float, delay: float) -> Floats:
        """Seconds that options count, those of others included who find devices taken elsewhere."""
        options, own = self._options, self._snapshot.jobs.priority[job]
        others = np.where(self._stays[rows], 0.0, delay * self._device_value[rows] * options.devices[rows] * seconds)
        weight = self._weight(self._priority[options.row[rows]], int(own))
        lost: Floats = weight * (slower * seconds + cost) + others
        return lost

    def _trimmed(self, gives: Mapping[int, Mapping[int, int]], wanted: Mapping[int, int]) -> list[tuple[int, int]]:
        """Rows of the options that are needed, and devices on which each goes on: no more is given up than is wanted.

        The last of them, who lose most for a device, keep theirs first.

        Args:
            gives: Devices that each option gives up in each place, by row of the option.
            wanted: Devices that are wanted in each place.
        """
        options, running, jobs = self._options, self._running, self._snapshot.jobs
        beyond = {where: sum(parts.get(where, 0) for parts in gives.values()) - more for where, more in wanted.items()}
        trimmed: list[tuple[int, int]] = []
        for option in reversed([*gives]):
            row, devices, parts = int(options.row[option]), int(options.devices[option]), gives[option]
            if all(freed <= beyond.get(where, freed) for where, freed in parts.items()):
                for where in beyond:
                    beyond[where] -= parts.get(where, 0)
                continue
            if options.pool[option] == options.was[option] and [*parts.values()] == [int(options.freed[option])]:
                (where,) = parts
                job = int(running.job[row])
                least, step, per_node = int(jobs.minimum[job]), int(jobs.step[job]), int(jobs.per_node[job])
                more = least + (devices + beyond[where] - least) // step * step
                if more >= max(devices, least) and more % max(per_node, 1) == 0:
                    beyond[where] -= more - devices
                    devices = more
            trimmed.append((option, devices))
        return trimmed[::-1]

    def _largest(self, order: Iterable[int], freed_by: Callable[[int], int]) -> list[int]:
        """Of some options those by which each job gives up most, in their order."""
        most: dict[int, int] = {}
        rows = self._options.row
        for option in order:
            most[int(rows[option])] = max(most.get(int(rows[option]), 0), freed_by(option))
        return [option for option in order if freed_by(option) == most[int(rows[option])]]

    def _choose(self, order: Iterable[int], freed_by: Callable[[int], int], more: int, selection: "_Selection") -> int:
        """The first of some options that can be carried out together, until so many devices are given up.

        Args:
            order: Rows of the options.
            freed_by: Devices that an option gives up.
            more: How many are needed.
            selection: What is chosen already; what is chosen here is added.

        Returns:
            Devices that are given up by what is chosen here; fewer than are needed where that cannot be.
        """
        options, availability, freed = self._options, self._availability, 0
        for option in order:
            if freed >= more:
                break
            row, pool = int(options.row[option]), int(options.pool[option])
            if row in selection.rows:
                continue
            if pool != options.was[option]:
                taken = selection.used.get(pool, 0) + int(options.devices[option])
                if not availability.leaves(pool, taken, float(options.left[option])):
                    continue
                if not self._node_capacity.holds(int(self._running.job[row]), pool, int(options.devices[option])):
                    continue
                selection.used[pool] = taken
            selection.rows.add(row)
            selection.options.append(option)
            freed += freed_by(option)
        return freed

    def _make(self, victims: VictimSet, beneficiary: int) -> None:
        """Those who are preempted go."""
        options, availability = self._options, self._availability
        if victims.nodes is not None:
            self.cleared[beneficiary] = victims.nodes
        for option, devices in zip(victims.options, victims.devices, strict=True):
            row, pool = int(options.row[option]), int(options.pool[option])
            job, was, left = int(self._running.job[row]), int(options.was[option]), float(options.left[option])
            bought = int(self._running.bought[row])
            if pool != was:
                bought = availability.purchases.cheapest(job, pool, devices, left)
                availability.take(job, np.array([pool]), np.array([devices]), left)
            freed = int(self._running.devices[row]) - (devices if pool == was else 0)
            availability.release(was, freed, left, victims.start)
            self._gone[row] = True
            self.migrations.append(Migration(job, pool, devices, pool == was, bought, beneficiary))

    @cached_property
    def _running(self) -> ChangeableJobs:
        return ChangeableJobs(self._snapshot)

    @cached_property
    def _gone(self) -> np.ndarray:
        return np.zeros(len(self._running.job), dtype=np.bool_)

    @cached_property
    def _priority(self) -> Numbers:
        priority: Numbers = self._snapshot.jobs.priority[self._running.job]
        return priority

    @cached_property
    def _priorities(self) -> Numbers:
        """Priorities of those who could be preempted, each once, ascending."""
        return np.unique(self._priority)

    @cached_property
    def _row_of(self) -> Numbers:
        """Row among those that can be changed, by job; ``NOWHERE`` for one that cannot."""
        row: Numbers = np.full(len(self._snapshot.jobs), NOWHERE, dtype=np.intp)
        row[self._running.job] = np.arange(len(self._running.job))
        return row

    @cached_property
    def _stays(self) -> Flags:
        stays: Flags = self._options.pool == self._options.was
        return stays

    @cached_property
    def _shrinks(self) -> Flags:
        shrinks: Flags = self._stays & (self._options.devices > 0)
        return shrinks

    @cached_property
    def _device_value(self) -> Floats:
        """Value of a device of the pool where each would go on."""
        value: Floats = self._snapshot.device_value[self._options.pool]
        return value

    @cached_property
    def _bounds(self) -> Numbers:
        """The first option of each pool, and behind them the end of the last."""
        bounds: Numbers = np.searchsorted(self._options.was, np.arange(len(self._availability.free) + 1))
        return bounds

    @cached_property
    def _options(self) -> VictimOptions:
        """All that can be thought of: as many devices elsewhere, as many as it asked for, the least that do, and none.

        None at all are left only to jobs of lower priority than somebody who waits. Those of a pool follow each other.
        """
        running, jobs, free = self._running, self._snapshot.jobs, self._availability.free
        has, least, step = running.devices, jobs.minimum[running.job], jobs.step[running.job]
        fewer = np.minimum(jobs.requested[running.job], has - 1)
        fewer = least + (fewer - least) // step * step
        sizes = np.stack([has, fewer, np.where(fewer > least, least, 0), np.zeros_like(has)])
        pools = np.arange(len(free))
        able = (sizes >= least)[:, :, None] & (free[None, None, :] >= sizes[:, :, None])
        able &= (running.pool[None, :, None] != pools) & (sizes > 0)[:, :, None]
        gives = (sizes >= least) & (sizes < has) & (sizes > 0)
        gives[-1] = self._priority < jobs.priority[: self._snapshot.waiting].max(initial=np.iinfo(np.int64).min)
        able[:, np.arange(len(has)), running.pool] = gives
        size, row, pool = np.nonzero(able)
        devices = sizes[size, row]
        change = running.change(row, pool, devices)
        left, was = running.left[row], running.pool[row]
        keep = np.flatnonzero(
            (change.saves <= MAX_SAVING_SECONDS)
            & bearable(running.undisturbed[row], change.pause)
            & ((change.speed > 0.0) | (devices == 0))
            & np.isfinite(change.pause + change.money)
            & (devices % np.maximum(jobs.per_node[running.job[row]], 1) == 0)
        )
        # small numbers are sorted fastest
        keep = keep[np.argsort(was[keep].astype(np.min_scalar_type(len(free))), kind="stable")]
        return VictimOptions(
            row=row[keep],
            was=was[keep],
            pool=pool[keep],
            devices=devices[keep],
            freed=(running.devices[row] - np.where(pool == was, devices, 0))[keep],
            left=left[keep],
            saves=change.saves[keep],
            pause=change.pause[keep],
            slower=np.maximum(1.0 - change.speed, 0.0)[keep],
            cost=_cost(change)[keep],
        )


def _loss(block: PoolOptions, place: Numbers, part: Floats | float, seconds: float, delay: float) -> Floats:
    """Seconds that options of a pool count for a job that holds devices for so long, by place.

    Args:
        block: Options of the pool.
        place: Places among them.
        part: Of what each gives up, the part that is needed.
        seconds: For how long the devices are held.
        delay: Jobs that a device second delays.
    """
    elsewhere = delay * block.device_value.take(place) * block.devices.take(place) * seconds
    counts = block.slower.take(place) * part * seconds + block.cost.take(place)
    lost: Floats = block.weight.take(place) * counts + np.where(block.stays.take(place), 0.0, elsewhere)
    return lost


def _cost(change: Change) -> Floats:
    """Seconds that interruptions count, money included."""
    cost: Floats = PAUSE_WEIGHT * change.pause + INTERRUPTION_SECONDS + MONEY * change.money
    return cost


MAX_MIGRATION_PAUSE_SHARE = 5e-3
"""Share of what a job has before it that its interruption may take."""
MIN_GAIN_SHARE = 0.1
"""Share of what it has before it that it must gain."""
MIN_GAIN_PER_PAUSE = 10.0
"""Seconds that must be gained for each that it is interrupted."""
MIN_SPEED = 1.0 / (1.0 - MIN_GAIN_SHARE) - 1e-3
"""Speed over that of now without which it cannot gain that much; a little less, as sums are rounded."""
GAIN_HORIZON_SECONDS = 34_000.0
"""Seconds for which it counts what a job gains; later others may want its devices."""
EXPECTED_ARRIVALS_SHARE = 0.05
"""Part of the running jobs that count as if they waited: as many will come."""


def migrations(snapshot: Snapshot, result: EpochResult, but: frozenset[int] = frozenset()) -> list[Migration]:
    """Jobs that go on with devices that nobody who waits is given, those that gain most first.

    Args:
        snapshot: What was decided on.
        result: What was decided.
        but: Numbers of jobs that something else becomes of.
    """
    availability = result.availability
    chosen = list(result.preemption)
    gone = {migration.job for migration in chosen}
    spare = np.flatnonzero(availability.free > 0)
    if not len(spare):
        return chosen
    now = ChangeableJobs(snapshot)
    row, pool, devices = _migration_candidates(snapshot, result, now, spare, availability.free)
    quick = now.speeds(row, pool, devices) > MIN_SPEED
    row, pool, devices = row[quick], pool[quick], devices[quick]
    gained, seconds = _gains(snapshot, result, now, row, pool, devices)
    for candidate in np.lexsort((np.arange(len(row)), -gained)).tolist():
        if gained[candidate] <= 0.0:
            break
        mover_row, where, count = int(row[candidate]), int(pool[candidate]), int(devices[candidate])
        mover, stays = int(now.job[mover_row]), bool(pool[candidate] == now.pool[mover_row])
        more = count - int(now.devices[mover_row]) * stays
        if mover in gone or mover in but or not availability.leaves(where, more, float(seconds[candidate])):
            continue
        bought = availability.purchases.cheapest(mover, where, more, float(seconds[candidate]))
        if stays and bought != now.bought[mover_row]:
            continue
        availability.take(mover, np.array([where]), np.array([more]), float(seconds[candidate]))
        gone.add(mover)
        chosen.append(Migration(mover, where, count, stays, bought))
    return chosen


def _migration_candidates(
    snapshot: Snapshot, result: EpochResult, now: ChangeableJobs, spare: Numbers, free: Counts
) -> tuple[Numbers, Numbers, Counts]:
    """Row, pool and devices of what else they could hold: what they asked for, or as many as are of use and free.

    Those are left out for whom the shortest interruption would be too long, and pools on which nobody is fast enough.
    """
    jobs, job = snapshot.jobs, now.job
    rows = np.flatnonzero((MAX_MIGRATION_PAUSE_SHARE * now.left >= STARTING) & bearable(now.undisturbed, STARTING))
    index, accelerator = snapshot.job_index[job[rows]], snapshot.pools.accelerator
    own, domain = snapshot.job_index[job[rows], accelerator[now.pool[rows]]], snapshot.pools.domain[spare]
    fastest = now.fastest[rows, None] * index[:, accelerator[spare]] * now.paces[domain]
    usable = fastest > (MIN_SPEED * own * now.paces[snapshot.pools.domain[now.pool[rows]]])[:, None]
    usable &= _near_enough(snapshot, result, now, rows)[:, domain] | (now.pool[rows, None] == spare)
    place, column = np.nonzero(usable)
    row = rows[place]
    pool = spare[column]
    stays = now.pool[row] == pool
    victims = free[pool] + np.where(stays, now.devices[row], 0)
    least, step = jobs.minimum[job[row]], jobs.step[job[row]]
    sizes = np.stack([np.minimum(jobs.maximum[job[row]], victims), np.minimum(jobs.requested[job[row]], victims)])
    if (step > 1).any():
        sizes = least + (sizes - least) // step * step
    able = sizes >= least
    able[1] &= sizes[1] != sizes[0]
    able &= ~stays | (sizes > now.devices[row])
    which, place = np.nonzero(able)
    return row[place], pool[place], sizes[which, place]


def _crowd(snapshot: Snapshot, result: EpochResult) -> float:
    """Jobs that wait, or will, for each device."""
    waiting = snapshot.waiting - sum(attempt.starts for attempt in result.attempts)
    to_come = EXPECTED_ARRIVALS_SHARE * (len(snapshot.jobs) - snapshot.waiting)
    return float((waiting + to_come) / max(int(snapshot.pools.devices.sum()), 1))


def _near_enough(snapshot: Snapshot, result: EpochResult, running: ChangeableJobs, rows: Numbers) -> Flags:
    """Whether data and checkpoint of jobs get to a domain in so little time and for so little money that it may pay.

    Reading, writing and starting are left out, and a little more is allowed than :func:`_gains` does, as sums are
    rounded; most domains are ruled out so. (rows, domains)
    """
    job, left = running.job[rows], running.left[rows]
    most = np.minimum(MAX_MIGRATION_PAUSE_SHARE * left, MAX_PAUSE_PER_UNDISTURBED * running.undisturbed[rows])
    most = np.minimum(most, np.minimum(left, GAIN_HORIZON_SECONDS) / MIN_GAIN_PER_PAUSE)
    bits = snapshot.jobs.checkpoint[job, None] * BITS
    source = snapshot.pools.domain[running.pool[rows]]
    staging, paid = snapshot.data_staging
    seconds = staging[job] + snapshot.paths.seconds(bits, source)
    money = paid[job] + snapshot.paths.money(bits, source)
    freed = _crowd(snapshot, result) * snapshot.device_value[running.pool[rows]] * running.devices[rows] * left
    gain = np.minimum(left, GAIN_HORIZON_SECONDS) + freed
    with np.errstate(invalid="ignore"):
        near: Flags = seconds <= most[:, None] * (1.0 + ROUNDING)
        near &= MONEY * money <= gain[:, None] * (1.0 + ROUNDING)
    return near


ROUNDING = 1e-6
"""Relative error of sums, and much more than that."""


def _gains(
    snapshot: Snapshot, result: EpochResult, running: ChangeableJobs, row: Numbers, pool: Numbers, devices: Counts
) -> tuple[Floats, Floats]:
    """Seconds that candidates gain, less what they cost others and in money, and seconds that are left on them then.

    Nought is gained where it does not pay.
    """
    value = snapshot.device_value
    was, had, left = running.pool[row], running.devices[row], running.left[row]
    change = running.change(row, pool, devices)
    with np.errstate(divide="ignore", invalid="ignore"):
        then = left / change.speed
        near = np.minimum(left, GAIN_HORIZON_SECONDS)
        gained = np.minimum(left - then, near * (1.0 - 1.0 / change.speed)) - change.pause
    others = _crowd(snapshot, result) * (value[pool] * devices * (change.pause + then) - value[was] * had * left)
    pays = (
        (gained >= MIN_GAIN_SHARE * near)
        & (gained >= MIN_GAIN_PER_PAUSE * change.pause)
        & (change.pause <= MAX_MIGRATION_PAUSE_SHARE * left)
        & bearable(running.undisturbed[row], change.pause)
    )
    with np.errstate(invalid="ignore"):
        net = gained - others - MONEY * change.money
    return np.where(pays & np.isfinite(then), net, 0.0), change.pause + then


MAX_SCALE_DOWN_PAUSE_SHARE = 1e-3
"""Share of what a job has before it that its interruption may take."""
MAX_SLOWDOWN = 1.02
"""A job may take so many times as long with fewer devices."""
MIN_FREED_PER_PAUSE = 4.0
"""Seconds that others gain, for each that a job is interrupted."""


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """A running job that goes on with fewer devices.

    Attributes:
        job: Its number.
        pool: Number of its pool.
        devices: How many it goes on with.
    """

    job: int
    pool: int
    devices: int


def scale_downs(snapshot: Snapshot, result: EpochResult) -> list[ScaleDown]:
    """Jobs that go on with fewer devices, those that give back most first, as long as anybody waits for them."""
    demand = wanted(snapshot, result)
    if not demand.any():
        return []
    jobs, holdings = snapshot.jobs, snapshot.holdings
    shares = np.bincount(holdings.holder - snapshot.waiting, minlength=len(jobs) - snapshot.waiting)
    alone = np.flatnonzero(
        (shares[holdings.holder - snapshot.waiting] == 1)
        & (holdings.mode[holdings.holder - snapshot.waiting] == NONE)
        & (holdings.ready[holdings.holder - snapshot.waiting] == 0.0)
        & (holdings.rate[holdings.holder - snapshot.waiting] > 0.0)
        & ~holdings.saving[holdings.holder - snapshot.waiting]
        & jobs.measured[holdings.holder]
        & (demand[holdings.pool] > 0)
        & snapshot.reachable[snapshot.pools.domain[holdings.pool]]
        & ~np.isin(holdings.holder, [migration.job for migration in result.preemption])
    )
    if not len(alone):
        return []
    job, pool, devices = holdings.holder[alone], holdings.pool[alone], holdings.devices[alone]
    least, step = jobs.minimum[job], jobs.step[job]
    busy = np.maximum(np.ceil(jobs.used[job] * jobs.requested[job] - 1e-9).astype(np.int64), least)
    fewer = least + -(-(busy - least) // step) * step
    utilisation_prior = UtilisationPrior(snapshot)
    slower = utilisation_prior.longer(job, fewer.astype(np.float64)) / utilisation_prior.longer(
        job, devices.astype(np.float64)
    )
    left = jobs.left[job] / holdings.rate[job - snapshot.waiting]
    pause = STARTING + jobs.checkpoint[job] / STORAGE * (1.0 / devices + 1.0 / fewer)
    waiting = snapshot.waiting - sum(attempt.starts for attempt in result.attempts)
    freed = devices - fewer
    gained = freed * left * waiting / max(int(snapshot.pools.devices.sum()), 1)
    pays = (
        (freed > 0)
        & (slower <= MAX_SLOWDOWN)
        & (pause <= MAX_SCALE_DOWN_PAUSE_SHARE * left)
        & bearable(holdings.undisturbed[job - snapshot.waiting], pause)
        & (gained >= MIN_FREED_PER_PAUSE * pause)
    )
    chosen = []
    for place in np.lexsort((np.arange(len(alone)), -np.where(pays, freed * left, 0.0))).tolist():
        if pays[place] and demand[pool[place]] > 0:
            demand[pool[place]] -= freed[place]
            chosen.append(ScaleDown(int(job[place]), int(pool[place]), int(fewer[place])))
    return chosen


def wanted(snapshot: Snapshot, result: EpochResult) -> Counts:
    """Devices that those who wait would take if they were free, by pool; not those that are free already."""
    demand = np.zeros(len(snapshot.pools.devices), dtype=np.int64)
    for attempt in result.attempts:
        if attempt.counts and attempt.chosen is not None and not attempt.starts:
            row = attempt.row
            valid = result.candidates.pools[row] >= 0
            np.add.at(demand, result.candidates.pools[row][valid], result.candidates.devices[row][valid])
    return demand - np.where(demand > 0, result.availability.free, 0)
