"""Pareto front of schedules: the best compromises between the mean period of waiting jobs and communication money.

1. *Candidates.* In each pool the devices asked for, the least that will do, the most that are of use, and three
   quarters of the pool; over each pair of pools of different domains, in proportion to their sizes, in every mode and
   at several periods; and where no pair has what is asked for, over three, or over as many as have it. None is kept
   that takes as many devices of each pool, as much time and as much money as another, or more. A job has links to
   itself.
2. *Schedules.* One is told by the candidate of each job and by an order: in this order each job starts at the first
   slot from which on its devices are free as long as it holds them. Some order leads to a best schedule (active
   schedules: A. Sprecher, R. Kolisch, A. Drexl, "Semi-active, active, and non-delay schedules for the
   resource-constrained project scheduling problem", European Journal of Operational Research 80, 1995).
3. *Search.* It begins with what would be best if devices were free but had a price, and then tries neighbours of the
   schedules that it has kept, as long as there are new ones (Pareto local search: L. Paquete, M. Chiarandini, T.
   Stützle, in "Metaheuristics for Multiobjective Optimisation", 2004). When there are none, it crosses schedules that
   lie near to each other. It ends when that leads nowhere, or after so many schedules, not after so much time, so that
   the answer is always the same; unless the request states a time limit: then what has been found by then is a partial
   front, and how much that is hangs on the machine.
4. *Answer.* Placements name nodes and ways of buying, so that nothing is given twice in any slot.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import ceil, inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from kuayu.scheduling.node_allocator import NodeAllocator, NodeAssignment, gang_of
from kuayu.scheduling.parse import snapshot_of
from kuayu.scheduling.state import (
    MODES,
    NONE,
    PERIODIC,
    PIPELINE,
    PURCHASES,
    RESERVED,
    SYNCHRONOUS,
    Counts,
    Flags,
    Floats,
    Numbers,
    Snapshot,
)
from kuayu.scheduling.throughput import SpeedInputs, restart, spread
from kuayu.scheduling.validation import check_state

if TYPE_CHECKING:
    from kuayu_schemas import documents

PERIODS = (5, 15, 50, 150, 500)
"""Steps between reconciliations, where a job leaves them open."""
SHRUNK = 0.75
"""Share of a pool to which a job may be shrunk."""
THREE = 3
"""Pools over which a job is spread where no two have what it asks for; more only where no three have."""
MAX_POOLS = 12
"""Pools, the largest, over which a job is spread."""

Holding = tuple[tuple[int, int], ...]
"""Numbers of pools, each with how many of its devices; in the order of the ring or the pipeline."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A placement that a job could have.

    Attributes:
        holding: What it holds.
        mode: Number of the split mode.
        period: Steps between reconciliations, one where there are none.
        seconds: From the begin of its slot to its end.
        money: For data, checkpoint and exchanges.
    """

    holding: Holding
    mode: int
    period: int
    seconds: float
    money: float


class Options:
    """Makes the candidates of jobs.

    Args:
        snapshot: What is decided on.
        capacity: Devices by pool that jobs can hold.
    """

    def __init__(self, snapshot: Snapshot, capacity: Counts) -> None:
        self._snapshot = snapshot
        self._capacity = np.where(snapshot.reachable[snapshot.pools.domain], capacity, 0)

    def of(self, job: int) -> tuple[Candidate, ...]:
        """Candidates of a job that come to an end and are worth a thought, the quickest first."""
        candidates = [candidate for candidate in self._timed(job) if candidate.seconds < inf and candidate.money < inf]
        candidates.sort(key=lambda candidate: (candidate.seconds, candidate.money))
        money = np.array([candidate.money for candidate in candidates])
        beaten = np.triu(money[:, None] <= money[None, :], 1)
        for pool in {pool for candidate in candidates for pool, _ in candidate.holding}:
            need = np.array([dict(candidate.holding).get(pool, 0) for candidate in candidates])
            beaten &= need[:, None] <= need[None, :]
        return tuple(candidates[number] for number in np.flatnonzero(~beaten.any(axis=0)))

    def _timed(self, job: int) -> Iterator[Candidate]:
        jobs = self._snapshot.jobs
        pools = np.flatnonzero(
            (self._snapshot.job_index[job, self._snapshot.pools.accelerator] > 0.0)
            & (self._capacity > 0)
            & np.isfinite(self._snapshot.staging[0][job, self._snapshot.pools.domain])
        ).tolist()
        if jobs.modes[job, NONE]:
            alone = list(dict.fromkeys(self._alone(job, pools)))
            yield from self._measured(job, alone, NONE, (1,))
        modes = [mode for mode in (SYNCHRONOUS, PERIODIC, PIPELINE) if jobs.modes[job, mode]]
        if modes:
            holdings = list(dict.fromkeys(self._spread(job, pools)))
            own = int(jobs.period[job])
            for mode in modes:
                yield from self._measured(
                    job, holdings, mode, ((own,) if own else PERIODS) if mode == PERIODIC else (1,)
                )

    def _alone(self, job: int, pools: Sequence[int]) -> Iterator[Holding]:
        jobs = self._snapshot.jobs
        for pool in pools:
            capacity = int(self._capacity[pool])
            most = min(int(jobs.maximum[job]), capacity)
            for devices in (min(int(jobs.requested[job]), most), int(jobs.minimum[job]), most, int(SHRUNK * capacity)):
                whole = self._stepped(job, min(devices, most))
                if whole > 0:
                    yield ((pool, whole),)

    def _spread(self, job: int, pools: list[int]) -> Iterator[Holding]:
        domain, capacity = self._snapshot.pools.domain, self._capacity
        requested = int(self._snapshot.jobs.requested[job])
        largest = sorted(sorted(pools, key=lambda pool: -int(capacity[pool]))[:MAX_POOLS])
        enough = False
        for one, other in permutations(largest, 2):
            if domain[one] != domain[other] and self._joined(job, (one, other)):
                total = self._stepped(job, min(requested, int(capacity[one] + capacity[other])))
                enough |= total >= requested
                share = min(
                    int(capacity[other]), ceil(total * int(capacity[other]) / int(capacity[one] + capacity[other]))
                )
                if 0 < share < total and total - share <= capacity[one]:
                    yield ((one, total - share), (other, share))
        if not enough:
            wide = self._wide(largest, requested)
            for chosen in (*permutations(largest, THREE), *([wide] if len(wide) > THREE else [])):
                if len(set(domain[list(chosen)].tolist())) == len(chosen) and self._joined(job, chosen):
                    sizes = [int(capacity[pool]) for pool in chosen]
                    total = self._stepped(job, min(requested, sum(sizes)))
                    others = [min(size, ceil(total * size / sum(sizes))) for size in sizes[1:]]
                    first = total - sum(others)
                    if 0 < first <= sizes[0]:
                        yield tuple(zip(chosen, (first, *others), strict=True))

    def _wide(self, pools: Sequence[int], requested: int) -> tuple[int, ...]:
        """The largest pools of different domains, as many as have what is asked for together."""
        chosen: list[int] = []
        for pool in sorted(pools, key=lambda pool: -int(self._capacity[pool])):
            if self._capacity[chosen].sum() >= requested:
                break
            if self._snapshot.pools.domain[pool] not in self._snapshot.pools.domain[chosen]:
                chosen.append(pool)
        return tuple(chosen)

    def _stepped(self, job: int, devices: int) -> int:
        """The largest number that the job can work with and that is no larger; zero where there is none."""
        jobs = self._snapshot.jobs
        least, step = int(jobs.minimum[job]), int(jobs.step[job])
        return least + (devices - least) // step * step if devices >= least else 0

    def _joined(self, job: int, pools: Sequence[int]) -> bool:
        """Whether links between the domains are such as the job needs."""
        paths, jobs = self._snapshot.paths, self._snapshot.jobs
        domains = self._snapshot.pools.domain[list(pools)]
        ends = np.ix_(domains, domains)
        return bool(
            (paths.available[ends] > 0.0).all()
            and (paths.available[ends] >= jobs.least_bandwidth[job]).all()
            and (paths.round_trip[ends] <= jobs.longest_round_trip[job]).all()
        )

    def _measured(
        self, job: int, holdings: Sequence[Holding], mode: int, periods: Sequence[int]
    ) -> Iterator[Candidate]:
        """All holdings at all periods."""
        if not holdings:
            return
        snapshot, jobs = self._snapshot, self._snapshot.jobs
        pools = np.array([[pool for pool, _ in holding] for holding in _padded(holdings)])
        counts = np.array([[devices for _, devices in holding] for holding in _padded(holdings)])
        valid = counts > 0
        domain = snapshot.pools.domain[pools]
        devices = counts.sum(axis=1)
        index = (snapshot.job_index[job, snapshot.pools.accelerator[pools]] * counts).sum(axis=1) / devices
        read = valid.copy()
        if mode == PIPELINE:
            read[:, 1:] = False
        staging, money = snapshot.staging
        begins = np.where(read, staging[job, domain], 0.0).max(axis=1)
        moving = np.where(read, money[job, domain], 0.0).sum(axis=1)
        if jobs.resumes[job]:
            smallest = devices if mode == PIPELINE else np.where(valid, counts, devices[:, None]).min(axis=1)
            begins = begins + restart(jobs.checkpoint[job : job + 1], smallest.astype(np.float64))
        narrow, round_trips, tariff = self._flows(domain, valid, mode)
        rows = np.full(len(holdings), job)
        inputs = SpeedInputs(*(getattr(jobs, name)[rows] for name in SpeedInputs.__slots__))
        for period in periods:
            speeds = spread(
                inputs,
                devices.astype(np.float64),
                index,
                valid.sum(axis=1),
                np.full(len(holdings), mode),
                np.full(len(holdings), period),
                narrow,
                round_trips,
            )
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                runs = np.where(speeds.rate > 0.0, jobs.left[job] / speeds.rate, inf)
                cost = moving + np.where(speeds.occupied > 0.0, speeds.occupied * runs * tariff, 0.0)
            for row, holding in enumerate(holdings):
                yield Candidate(holding, mode, period, float(begins[row] + runs[row]), float(cost[row]))

    def _flows(self, domain: Numbers, valid: Flags, mode: int) -> tuple[Floats, Floats, Floats]:
        """Least bandwidth, round-trip time that counts, and sum of tariffs of the flows of each holding."""
        paths = self._snapshot.paths
        narrow = np.full(len(domain), inf)
        long, dear = np.zeros(len(domain)), np.zeros(len(domain))
        count = valid.sum(axis=1)
        if mode == NONE:
            return narrow, long, dear
        for place in range(domain.shape[1]):
            last = place == count - 1
            follows = domain[:, (place + 1) % domain.shape[1]]
            one, other = domain[:, place], np.where(last, domain[:, 0], follows)
            used = (place < count) & ~(last & (mode == PIPELINE))
            offers, tariff = paths.available[one, other], paths.tariff[one, other]
            if mode == PIPELINE:
                offers, tariff = np.minimum(offers, paths.available[other, one]), tariff + paths.tariff[other, one]
                long = np.where(used, long + paths.round_trip[one, other], long)
            else:
                long = np.where(used, np.maximum(long, paths.round_trip[one, other]), long)
            narrow = np.where(used, np.minimum(narrow, offers), narrow)
            dear = np.where(used, dear + tariff, dear)
        return narrow, long, dear


def _padded(holdings: Sequence[Holding]) -> list[Holding]:
    """Of one length; what is added holds nothing."""
    width = max(len(holding) for holding in holdings)
    return [(*holding, *(((holding[0][0], 0),) * (width - len(holding)))) for holding in holdings]


FEW = 80
"""Jobs up to which many schedules are computed at once."""
_TOLERANCE = 1e-6
"""Of a slot, by which a job may end after it."""
_MAX_LASTING_SLOTS = 2.0**50
"""Slots that a job lasts at most; whatever takes longer never ends."""
_NEVER = int(np.iinfo(np.int64).max) // 2


@dataclass(frozen=True, slots=True)
class Batch:
    """Schedules, by row.

    Attributes:
        candidates: Number of the way of each job, (rows, jobs).
        orders: Jobs in the order of their starts, (rows, jobs).
        starts: Slot in which each job starts, (rows, jobs); one is the first.
        period: Mean seconds to the end.
        money: Of all jobs.
    """

    candidates: Numbers
    orders: Numbers
    starts: Counts
    period: Floats
    money: Floats

    def of(self, rows: Numbers) -> "Batch":
        """Some of them."""
        return Batch(self.candidates[rows], self.orders[rows], self.starts[rows], self.period[rows], self.money[rows])

    def and_also(self, other: "Batch") -> "Batch":
        """These and others."""
        return Batch(
            np.concatenate([self.candidates, other.candidates]),
            np.concatenate([self.orders, other.orders]),
            np.concatenate([self.starts, other.starts]),
            np.concatenate([self.period, other.period]),
            np.concatenate([self.money, other.money]),
        )


class Trial:
    """Schedules jobs one after the other: each at the first slot from which on its devices are free for as long.

    Args:
        options: Candidates of each job, at least one of each.
        capacity: Devices, by pool; each candidate fits in.
        slot: Seconds.

    Attributes:
        jobs: How many.
        slot: Seconds.
        counts: How many candidates each job has.
        seconds: Of each candidate, (jobs, most candidates); infinite where there is none.
        money: The same.
        lasting: Slots that it holds its devices, the same; zero where there is none.
        part: Devices that it holds over those that there are, summed over pools; the same.
    """

    def __init__(self, options: Sequence[Sequence[Candidate]], capacity: Counts, slot: float) -> None:
        self.jobs, self.slot = len(options), slot
        self.counts = np.array([len(candidates) for candidates in options])
        shape = len(options), int(self.counts.max())
        width = max(len(candidate.holding) for candidates in options for candidate in candidates)
        self.seconds, self.money = np.full(shape, np.inf), np.full(shape, np.inf)
        self.lasting = np.zeros(shape, dtype=np.int64)
        # places that a holding does not use name a pool that is never full
        self._pool = np.full((*shape, width), len(capacity), dtype=np.intp)
        self._need = np.zeros((*shape, width), dtype=np.int64)
        self._capacity = np.append(capacity, 1)
        for job, candidates in enumerate(options):
            for number, candidate in enumerate(candidates):
                self.seconds[job, number], self.money[job, number] = candidate.seconds, candidate.money
                self.lasting[job, number] = max(1, ceil(min(candidate.seconds / slot, _MAX_LASTING_SLOTS) - _TOLERANCE))
                for place, (pool, devices) in enumerate(candidate.holding):
                    self._pool[job, number, place], self._need[job, number, place] = pool, devices
        self.part = (self._need / np.maximum(self._capacity[self._pool], 1)).sum(axis=2)

    def run(self, candidates: Numbers, orders: Numbers) -> Batch:
        """Schedules by the way of each job, (rows, jobs), and by an order of jobs, (rows, jobs)."""
        every = np.arange(self.jobs)
        if self.jobs <= FEW:
            starts = self._together(candidates, orders)
        else:
            starts = np.array(
                [self.single(candidate, order) for candidate, order in zip(candidates, orders, strict=True)]
            )
        ended = starts * self.slot + self.seconds[every, candidates]
        begun = np.take_along_axis(starts, orders, axis=1)
        by_start = np.take_along_axis(orders, np.argsort(begun, axis=1, kind="stable"), axis=1)
        return Batch(candidates, by_start, starts, ended.mean(axis=1), self.money[every, candidates].sum(axis=1))

    def _together(self, candidates: Numbers, orders: Numbers) -> Counts:
        """Starts of all rows, job by job."""
        rows = np.arange(len(candidates))
        every = np.arange(self.jobs)
        starts = np.ones((len(candidates), self.jobs), dtype=np.int64)
        pool, need = self._pool[every, candidates], self._need[every, candidates]
        lasting = self.lasting[every, candidates]
        for place in range(1, self.jobs):
            job = orders[:, place]
            before = orders[:, :place]
            columns = rows[:, None]
            begun = starts[columns, before]
            ended = begun + lasting[columns, before]
            # devices that each of those before takes of each pool that the job needs, (rows, those before, pools)
            wanted = pool[rows, job]
            taken = np.zeros((*before.shape, wanted.shape[1]), dtype=np.int64)
            others, given = pool[columns, before], need[columns, before]
            for share in range(others.shape[2]):
                taken += np.where(others[:, :, share, None] == wanted[:, None, :], given[:, :, share, None], 0)
            spare = self._capacity[wanted] - need[rows, job]
            # it can start in the first slot, or when another ends; what is in the candidate begins with another's start
            instants = np.concatenate([np.ones((len(candidates), 1), dtype=np.int64), ended], axis=1)
            full_at = self._full(instants, begun, ended, taken, spare)
            full_then = self._full(begun, begun, ended, taken, spare)
            until = instants + lasting[rows, job][:, None]
            later = (begun[:, None, :] > instants[:, :, None]) & (begun[:, None, :] < until[:, :, None])
            blocked = full_at | (later & full_then[:, None, :]).any(axis=2)
            starts[rows, job] = np.where(blocked, _NEVER, instants).min(axis=1)
        return starts

    def single(self, candidates: Numbers, order: Numbers) -> Counts:
        """Starts of one row; what is free is kept from instant to instant, which pays where there are many jobs."""
        starts = np.ones(self.jobs, dtype=np.int64)
        instants = np.array([1, _NEVER])
        free = np.tile(self._capacity, (1, 1))
        for job in order.tolist():
            candidate, lasting = candidates[job], int(self.lasting[job, candidates[job]])
            pool, need = self._pool[job, candidate], self._need[job, candidate]
            full = np.flatnonzero((free[:, pool] < need).any(axis=1))
            # gaps between what is in the candidate
            begins = np.append(1, instants[full + 1])
            ends = np.append(instants[full], _NEVER)
            start = int(begins[np.argmax(ends - begins >= lasting)])
            for instant in (start, start + lasting):
                place = int(np.searchsorted(instants, instant))
                if instants[place] != instant:
                    instants = np.insert(instants, place, instant)
                    free = np.insert(free, place, free[place - 1], axis=0)
            first, last = np.searchsorted(instants, [start, start + lasting])
            for one, devices in zip(pool.tolist(), need.tolist(), strict=True):
                free[first:last, one] -= devices
            starts[job] = start
        return starts

    @staticmethod
    def _full(instants: Counts, begun: Counts, ended: Counts, taken: Counts, spare: Counts) -> Flags:
        """Whether any pool has too little at some instants, (rows, instants)."""
        on = (begun[:, None, :] <= instants[:, :, None]) & (instants[:, :, None] < ended[:, None, :])
        used = np.matmul(on.astype(np.float32), taken.astype(np.float32))
        full: Flags = (used > spare[:, None, :]).any(axis=2)
        return full


MAX_SCHEDULES = 30_000
"""Schedules that are tried."""
EFFORT = 3e8, 3e4
"""The same times the cube of the number of jobs, up to ``FEW`` of them, and times their number beyond."""
NEAR = 24
"""Jobs up to which all neighbours are tried."""
PRICES = (0.0, 0.1, 0.3, 1.0, 3.0)
"""Prices of devices at which the search begins: by how much others are thought to wait for those that are held."""
AT_ONCE = 2000
"""Schedules that are tried at a time."""
GLANCES = 16
"""Parts of ``AT_ONCE`` between which the clock is looked at where there is a time limit."""
IDLE = 3
"""Times that crosses may find nothing new before the search ends."""
FRESH = 6
"""Schedules whose neighbours are tried at a time."""
SUMS = 150
"""Sums that are kept while jobs are added."""
_ENDS = (0, -1)
"""Rows that are always kept where more than as many are."""
_SAME = 1e-9
"""Share by which figures may differ and be the same."""
_SEED = 20_261_121
"""Of the crosses."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule.

    Attributes:
        candidates: Number of the candidate, by job.
        starts: Slot in which it starts, by job; one is the first.
        ends: Slot in which it holds its devices no more, by job.
        period: Mean seconds to the end.
        money: Of all jobs.
    """

    candidates: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    period: float
    money: float


def search(
    options: Sequence[Sequence[Candidate]], capacity: Counts, slot: float, keep: int, until: float = inf
) -> tuple[tuple[Schedule, ...], bool]:
    """Schedules from the quickest to the cheapest, none of which beats another.

    Args:
        options: Candidates of each job, at least one of each.
        capacity: Devices, by pool; each candidate fits in.
        slot: Seconds.
        keep: How many schedules at most.
        until: When to stop, by ``time.monotonic``; a first schedule is found even after it.

    Returns:
        The schedules, and whether time ended the search before it came to its own end.
    """
    trial = Trial(options, capacity, slot)
    chance = np.random.default_rng(_SEED)
    few = trial.jobs <= NEAR
    left = min(MAX_SCHEDULES, int(EFFORT[0] / trial.jobs**3 if trial.jobs <= FEW else EFFORT[1] / trial.jobs) + 1)
    at_once = min(AT_ONCE, AT_ONCE * NEAR**2 // trial.jobs**2 + 1)
    if until < inf:  # the clock is looked at between them
        at_once = at_once // GLANCES + 1
    pareto_set = _ParetoSet(2 * max(keep, 50))

    def in_time() -> bool:
        return pareto_set.batch is None or monotonic() < until

    def tried(candidates: Numbers, orders: Numbers) -> int:
        candidates, orders = candidates[:left], orders[:left]
        for begin in range(0, len(candidates), at_once):
            if not in_time():
                return begin
            pareto_set.add(trial.run(candidates[begin : begin + at_once], orders[begin : begin + at_once]))
        return len(candidates)

    if until < inf:  # whatever comes next, something can be answered
        tried(np.zeros((1, trial.jobs), dtype=np.intp), np.arange(trial.jobs)[None, :])
    for candidates, orders in _beginnings(trial, SUMS if few else max(left // 40, 2)):
        left -= tried(candidates, orders)
    idle = 0
    while left > 0 and idle < IDLE and in_time():
        fresh = pareto_set.fresh(FRESH)
        if few and len(fresh.candidates):
            left -= tried(*_neighbours(trial, fresh))
        else:
            left -= tried(*_crosses(trial, pareto_set.batch, chance, min(AT_ONCE, left)))
            idle = 0 if pareto_set.news else idle + 1
    best = pareto_set.best(keep)
    ends = best.starts + trial.lasting[np.arange(trial.jobs), best.candidates]
    schedules = tuple(
        Schedule(
            tuple(best.candidates[row].tolist()),
            tuple(best.starts[row].tolist()),
            tuple(ends[row].tolist()),
            float(best.period[row]),
            float(best.money[row]),
        )
        for row in range(len(ends))
    )
    return schedules, left > 0 and idle < IDLE


class _ParetoSet:
    """Schedules that no other beats, from the quickest to the cheapest.

    Args:
        most: How many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.batch: Batch | None = None
        self._explored: Flags = np.zeros(0, dtype=np.bool_)

    def add(self, more: Batch) -> None:
        """Keep those of more that are not beaten."""
        together = more if self.batch is None else self.batch.and_also(more)
        explored = np.append(self._explored, np.zeros(len(more.candidates), dtype=np.bool_))
        rows = _unbeaten(together.period, together.money)
        if len(rows) > self._most:
            rows = rows[_spaced(together.period[rows], together.money[rows], self._most)]
        self.batch, self._explored = together.of(rows), explored[rows]

    @property
    def news(self) -> bool:
        """Whether there are schedules whose neighbours have not been tried."""
        return not self._explored.all()

    def fresh(self, most: int) -> Batch:
        """Some whose neighbours have not been tried; they count as tried from now on."""
        assert self.batch is not None
        rows = np.flatnonzero(~self._explored)
        if len(rows) > most:
            rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]
        self._explored[rows] = True
        return self.batch.of(rows)

    def best(self, most: int) -> Batch:
        """So many of them at most, those that say most about where the others lie."""
        assert self.batch is not None
        return self.batch.of(_spaced(self.batch.period, self.batch.money, most))


def _unbeaten(period: Floats, money: Floats) -> Numbers:
    """Rows that no other beats, by period; of equal ones the first."""
    order = np.lexsort((np.arange(len(period)), money, period))
    least = np.minimum.accumulate(money[order])
    better = np.ones(len(order), dtype=np.bool_)
    better[1:] = least[1:] < least[:-1] * (1.0 - _SAME)
    rows: Numbers = order[better]
    # one that is a little dearer and no slower than one a hair quicker stays; one as quick as its follower goes
    same = np.append(period[rows][1:] <= period[rows][:-1] * (1.0 + _SAME), False)
    unbeaten: Numbers = rows[~same]
    return unbeaten


def _spaced(period: Floats, money: Floats, most: int) -> Numbers:
    """Rows, in their order, without those whose absence is least felt: by the area that they alone cover."""
    rows = list(range(len(period)))
    if most <= len(_ENDS):
        return np.array(rows[:most], dtype=np.intp)
    if len(rows) > 3 * most:  # too many to look at one by one: as many as that, evenly along the front
        extent = np.abs(np.diff(period)) / np.ptp(period) + np.abs(np.diff(money)) / np.ptp(money)
        along = np.append(0.0, np.cumsum(extent))
        rows = np.unique(np.searchsorted(along, np.linspace(0.0, along[-1], 3 * most))).clip(max=len(rows) - 1).tolist()
    while len(rows) > most:
        p, m = period[rows], money[rows]
        lost = (p[2:] - p[1:-1]) * (m[:-2] - m[1:-1])
        del rows[int(np.argmin(lost)) + 1]
    return np.array(rows, dtype=np.intp)


def _beginnings(trial: Trial, most: int) -> list[tuple[Numbers, Numbers]]:
    """Best sums of candidates at several prices of devices, each in several orders."""
    beginnings: list[tuple[Numbers, Numbers]] = []
    for price in PRICES:
        occupied = trial.part * trial.lasting * trial.slot
        candidates = _sums(trial, trial.seconds + price * trial.jobs / 2.0 * occupied, most)
        every = np.arange(trial.jobs)
        lasting, part = trial.lasting[every, candidates], trial.part[every, candidates]
        by = (lasting, lasting * part, -part, lasting / part)
        beginnings.extend((candidates, np.argsort(key, axis=1, kind="stable")) for key in by)
    return beginnings


def _sums(trial: Trial, cost: Floats, most: int) -> Numbers:
    """Candidates of all jobs whose sums of cost and money no others beat, or some of them; (rows, jobs)."""
    candidates = np.zeros((1, 0), dtype=np.intp)
    costs, money = np.zeros(1), np.zeros(1)
    for job in range(trial.jobs):
        count = int(trial.counts[job])
        more_costs = (costs[:, None] + cost[job, None, :count]).ravel()
        more_money = (money[:, None] + trial.money[job, None, :count]).ravel()
        rows = _unbeaten(more_costs, more_money)
        if len(rows) > most:
            rows = rows[_spaced(more_costs[rows], more_money[rows], most)]
        candidates = np.column_stack([candidates[rows // count], rows % count])
        costs, money = more_costs[rows], more_money[rows]
    return candidates


def _neighbours(trial: Trial, batch: Batch) -> tuple[Numbers, Numbers]:
    """Every other way of every job, where it is in the order and first of all; and every other place in the order."""
    candidates: list[Numbers] = []
    orders: list[Numbers] = []
    jobs = np.repeat(np.arange(trial.jobs), trial.counts)
    numbers = np.concatenate([np.arange(count) for count in trial.counts])
    first, second = np.triu_indices(trial.jobs, 1)
    for own, order, starts in zip(batch.candidates, batch.orders, batch.starts, strict=True):
        other = numbers != own[jobs]
        changed = np.tile(own, (int(other.sum()), 1))
        changed[np.arange(len(changed)), jobs[other]] = numbers[other]
        same = np.tile(order, (len(changed), 1))
        candidates.append(changed)
        orders.append(same)
        crowded = starts.max() > 1
        if not crowded:
            continue
        candidates.append(changed)
        orders.append(_moved_first(same, jobs[other]))
        swapped = np.tile(order, (len(first), 1))
        rows = np.arange(len(first))
        swapped[rows, first], swapped[rows, second] = order[second], order[first]
        migrations = [
            np.insert(np.delete(order, one), other, order[one])
            for one, other in permutations(range(trial.jobs), 2)
            if abs(one - other) > 1
        ]
        together = np.concatenate([swapped, np.array(migrations, dtype=np.intp).reshape(-1, trial.jobs)])
        candidates.append(np.tile(own, (len(together), 1)))
        orders.append(together)
    return np.concatenate(candidates), np.concatenate(orders)


def _moved_first(orders: Numbers, jobs: Numbers) -> Numbers:
    """Orders in which one job has come to the front."""
    rest = orders[orders != jobs[:, None]].reshape(len(orders), orders.shape[1] - 1)
    return np.column_stack([jobs, rest])


def _crosses(trial: Trial, batch: Batch | None, chance: np.random.Generator, many: int) -> tuple[Numbers, Numbers]:
    """Children of schedules near to each other, some jobs of which are placed anew."""
    assert batch is not None
    one = chance.integers(len(batch.candidates), size=many)
    other = np.clip(one + chance.integers(-5, 6, size=many), 0, len(batch.candidates) - 1)
    take = chance.integers(2, size=(many, trial.jobs)) > 0
    candidates = np.where(take, batch.candidates[one], batch.candidates[other])
    anew = chance.random((many, trial.jobs)) < chance.integers(0, 4, size=many)[:, None] / trial.jobs
    candidates = np.where(anew, (chance.random((many, trial.jobs)) * trial.counts).astype(np.intp), candidates)
    ranks = np.argsort(batch.orders[one], axis=1) + chance.normal(0.0, 2.0, (many, trial.jobs)) * chance.integers(
        2, size=(many, 1)
    )
    return candidates, np.argsort(ranks, axis=1, kind="stable")


def scheduled_jobs(
    snapshot: Snapshot, chosen: Sequence[Candidate], schedule: Schedule, slot: float
) -> "list[documents.ScheduledJob]":
    """Jobs of a schedule, in the order of the queue.

    Those that start together are packed together, on nodes that others have given back by then. What is
    reserved is used first, since it is paid for in any case, and then the offer that has most, which is all that
    schedules count upon.

    Args:
        snapshot: What was decided on.
        chosen: Candidate of each job.
        schedule: When they start and how long they hold devices.
        slot: Seconds.
    """
    allocator = NodeAllocator(snapshot.pools.nodes)
    counter = _Counter(snapshot)
    names, pools = snapshot.names, snapshot.pools
    leaving: dict[int, list[tuple[int, NodeAssignment]]] = {}
    shares: list[list[documents.DomainShare]] = [[] for _ in chosen]
    for start in sorted(set(schedule.starts)):
        for end in sorted(instant for instant in leaving if instant <= start):
            for pool, assignment in leaving.pop(end):
                allocator.give_back(pool, assignment)
        jobs = [job for job, begins in enumerate(schedule.starts) if begins == start]
        gangs = [(job, gang_of(snapshot, job, pool, devices)) for job in jobs for pool, devices in chosen[job].holding]
        packed = allocator.pack([gang for _, gang in gangs])
        for (job, gang), own in zip(gangs, packed, strict=True):
            share: documents.DomainShare = {
                "domain": names.domains[pools.domain[gang.pool]],
                "accelerator": names.accelerators[pools.accelerator[gang.pool]],
                "devices": gang.devices,
            }
            bought = counter.purchase(gang.pool, gang.devices, start, schedule.ends[job])
            if bought is not None:
                share["purchase"] = bought
            if own and allocator.knows_nodes(gang.pool):
                share["nodes"] = allocator.named(gang.pool, own)
                leaving.setdefault(schedule.ends[job], []).append((gang.pool, own))
            shares[job].append(share)
    return [
        {"job": names.jobs[job], "start": start * slot, "placement": _placement(chosen[job], shares[job])}
        for job, start in enumerate(schedule.starts)
    ]


def _placement(candidate: Candidate, shares: "list[documents.DomainShare]") -> "documents.JobPlacement":
    mode = MODES[candidate.mode if len(shares) > 1 else NONE]
    placement: documents.JobPlacement = {"shares": shares, "split_mode": mode}
    if candidate.mode == PERIODIC:
        placement["sync_period"] = candidate.period
    return placement


class _Counter:
    """What is bought of each pool while a schedule is carried out, in the order of starts.

    Args:
        snapshot: With its offers.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._offers = snapshot.pools.offers
        self._bought: dict[tuple[int, int], list[tuple[int, int, int]]] = {}

    def purchase(self, pool: int, devices: int, start: int, end: int) -> "documents.PurchaseOption | None":
        """Name of the way in which devices are bought; none where they cost nothing."""
        offers = self._offers[pool]
        if not offers:
            return None
        wide = max(range(len(offers)), key=lambda number: (offers[number].devices, -offers[number].price))
        reserved = next((number for number, offer in enumerate(offers) if offer.purchase == RESERVED), wide)
        bought = sum(count for begun, ended, count in self._bought.get((pool, reserved), []) if begun <= start < ended)
        number = reserved if bought + devices <= offers[reserved].devices else wide
        self._bought.setdefault((pool, number), []).append((start, end, devices))
        return PURCHASES[offers[number].purchase]


def by_job(options: Sequence[Sequence[Candidate]], schedule: Schedule) -> list[Candidate]:
    """Way of each job of a schedule."""
    return [candidates[number] for candidates, number in zip(options, schedule.candidates, strict=True)]


METHOD_NAME = "Pareto local search over ways and orders of jobs"
METHOD_VERSION = "1.1.0"

MIN_SLOT_SECONDS = 1e-3
"""Seconds of a slot at least."""
SOLUTIONS = 100
"""How many at most, where the request does not say."""


def front(request: "documents.ParetoRequest", begun: float | None = None) -> "documents.ParetoFront":
    """Look for the best compromises.

    Args:
        request: What is asked.
        begun: When its time limit began to run, by ``time.monotonic``, which all processes of a machine share; absent,
            it is now.

    Returns:
        A front that follows from the request and, where this states no time limit, from nothing else; without
        solutions where nothing waits, or where something waits that can run nowhere.

    Raises:
        RepeatedName: Names of the state stand twice.
        UnknownName: The state names what it does not hold.
    """
    until = (monotonic() if begun is None else begun) + float(request.get("time_limit", inf))
    state = request["state"]
    check_state(state)
    snapshot = snapshot_of(state)
    capacity = _capacity(snapshot)
    options = [Options(snapshot, capacity).of(job) for job in range(snapshot.waiting)]
    keep = int(request.get("solutions", SOLUTIONS))
    slot = max(float(request["slot"]), MIN_SLOT_SECONDS)
    schedules, partial = search(options, capacity, slot, keep, until) if options and all(options) else ((), False)
    answer: documents.ParetoFront = {
        "revision": state["revision"],
        "method": {"name": METHOD_NAME, "version": METHOD_VERSION},
        "solutions": [
            {
                "mean_period": schedule.period,
                "communication_cost": schedule.money,
                "jobs": scheduled_jobs(snapshot, by_job(options, schedule), schedule, slot),
            }
            for schedule in schedules
        ],
    }
    if partial:
        answer["partial"] = True
    return answer


def _capacity(snapshot: Snapshot) -> Counts:
    """Devices by pool that schedules count upon: what is free on nodes, as far as it can be bought in one way."""
    bought = [max((offer.devices for offer in offers), default=None) for offers in snapshot.pools.offers]
    named = [
        None if nodes is None else int(np.minimum(nodes.free, nodes.devices).sum()) for nodes in snapshot.pools.nodes
    ]
    free = np.minimum(snapshot.pools.free, snapshot.pools.devices).tolist()
    rows = zip(free, bought, named, strict=True)
    return np.array([min(limit for limit in row if limit is not None) for row in rows], dtype=np.int64)
