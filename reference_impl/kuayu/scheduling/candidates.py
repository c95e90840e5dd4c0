"""Candidates for placing jobs, and what they lead to: in one pool at several sizes, or split over several domains.

1. All candidates of all jobs that are looked at stand in arrays, those of one job together; what they lead to is
   predicted for all of them at once.
2. A device is worth to the others what the jobs that are there could do with it, and a job is best placed where it has
   a comparative advantage: D. Ricardo, "On the principles of political economy and taxation", 1817, chapter 7.
"""

from dataclasses import dataclass
from math import inf

import numpy as np

from kuayu.scheduling.availability import paces
from kuayu.scheduling.state import (
    MIN_VALUE,
    NONE,
    NOWHERE,
    ONE_NODE,
    PERIODIC,
    PIPELINE,
    SYNCHRONOUS,
    Counts,
    Flags,
    Floats,
    Numbers,
    Snapshot,
)
from kuayu.scheduling.throughput import Speeds, UtilisationPrior, restart, speed_inputs, spread


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates of placing jobs, by row; rows of a job follow each other.

    Attributes:
        job: Number of the job.
        pools: Numbers of the pools, (rows, shares); ``NOWHERE`` in unused places, which come last.
        devices: How many of each; zero in unused places.
        mode: Number of the split mode.
        period: Steps between reconciliations, one where there are none.
    """

    job: Numbers
    pools: Numbers
    devices: Counts
    mode: Numbers
    period: Counts

    def __len__(self) -> int:
        """How many candidates."""
        return len(self.job)

    @property
    def narrow(self) -> tuple[Numbers, Counts]:
        """Pools and devices; numbers by row where none has more than one pool."""
        if self.pools.shape[1] == 1:
            return self.pools[:, 0].copy(), self.devices[:, 0].copy()
        return self.pools, self.devices

    def of(self, rows: Numbers) -> "Candidates":
        """Some of them."""
        return Candidates(self.job[rows], self.pools[rows], self.devices[rows], self.mode[rows], self.period[rows])


@dataclass(frozen=True, slots=True)
class Prediction:
    """What candidates lead to if they are taken now and nothing else happens, by row.

    Attributes:
        begins: Seconds from now until the first step; infinite where it never comes.
        runs: Seconds from the first step to the end, as it is to be expected from what such jobs keep busy.
        moving: Money for data and checkpoint.
        exchanging: Money for what domains exchange until the end.
        devices: How many are held, of all pools.
        rate: Work a second.
        index: Mean compute index of the devices for the job.
    """

    begins: Floats
    runs: Floats
    moving: Floats
    exchanging: Floats
    devices: Counts
    rate: Floats
    index: Floats


def dealt(total: int, capacity: Counts) -> Counts:
    """So many devices in proportion to what there is, none beyond it; the first have what division leaves over."""
    dealt = total * capacity // int(capacity.sum())
    for place in range(len(capacity)):
        more = min(total - int(dealt.sum()), int(capacity[place] - dealt[place]))
        dealt[place] += max(more, 0)
    return dealt


def in_all_modes(job: int, holdings: list[tuple[tuple[int, int], ...]], kinds: list[tuple[int, int]]) -> Candidates:
    """Every holding in every mode and period."""
    width = max(len(holding) for holding in holdings)
    pools = np.full((len(holdings), width), NOWHERE, dtype=np.intp)
    devices = np.zeros((len(holdings), width), dtype=np.int64)
    for row, holding in enumerate(holdings):
        pools[row, : len(holding)] = [pool for pool, _ in holding]
        devices[row, : len(holding)] = [count for _, count in holding]
    many = len(kinds)
    return Candidates(
        np.full(len(holdings) * many, job, dtype=np.intp),
        np.repeat(pools, many, axis=0),
        np.repeat(devices, many, axis=0),
        np.tile(np.array([mode for mode, _ in kinds], dtype=np.intp), len(holdings)),
        np.tile(np.array([period for _, period in kinds], dtype=np.int64), len(holdings)),
    )


def no_candidates() -> Candidates:
    """None at all."""
    return Candidates(
        np.zeros(0, dtype=np.intp),
        np.zeros((0, 1), dtype=np.intp),
        np.zeros((0, 1), dtype=np.int64),
        np.zeros(0, dtype=np.intp),
        np.zeros(0, dtype=np.int64),
    )


def comparative_advantage(snapshot: Snapshot, candidates: Candidates, prediction: Prediction, rated: Floats) -> Floats:
    """Work a second of the devices of a candidate over what they are worth to all; one where it is the same, by row.

    Args:
        snapshot: Its jobs.
        candidates: Rows.
        prediction: What they lead to.
        rated: What their devices are worth, all together.
    """
    mean = snapshot.mean_index[candidates.job]
    return prediction.index / np.maximum(mean, MIN_VALUE) * prediction.devices / np.maximum(rated, MIN_VALUE)


PERIODS = (1, 5, 15, 50, 150, 500)
"""Steps between reconciliations that are looked at where a job leaves them open."""
SHRUNK = 0.75
"""Share of what a job asks for at which it is looked at beside all of it and the least that will do."""
MAX_POOLS = 16
"""Pools, the largest, among which pairs are looked for."""
PAIR = 2
MONEY = 550.0
"""Seconds that a unit of money is worth where mode and period are chosen."""


class CandidateSet:
    """Makes candidates, and tells what they lead to.

    Attributes:
        snapshot: What is decided on.

    Args:
        snapshot: The same.
        free: Devices of each pool that may be counted upon now.
    """

    def __init__(self, snapshot: Snapshot, free: Counts) -> None:
        self.snapshot, self._free = snapshot, free
        self._utilisation_prior, self._paces = UtilisationPrior(snapshot), paces(snapshot)
        self._open = snapshot.reachable[snapshot.pools.domain] & (snapshot.pools.devices > 0)

    def usable(self, jobs: Numbers) -> Flags:
        """Whether jobs may hold devices of a pool, (jobs, pools): kind, memory, and a way for their data."""
        snapshot = self.snapshot
        able = (snapshot.job_index[jobs] > 0.0)[:, snapshot.pools.accelerator]
        flags: Flags = able & self._open & np.isfinite(snapshot.staging[0][jobs])[:, snapshot.pools.domain]
        return flags

    def alone(self, jobs: Numbers) -> Candidates:
        """Candidates inside one domain: what was asked for, the least and the most of use, and what is free."""
        snapshot, all_jobs = self.snapshot, self.snapshot.jobs
        able = self.usable(jobs) & all_jobs.modes[jobs, NONE][:, None]
        row, pool = np.nonzero(able)
        job = jobs[row]
        capacity, free = snapshot.pools.devices[pool], self._free[pool]
        requested, least, most = all_jobs.requested[job], all_jobs.minimum[job], all_jobs.maximum[job]
        sizes = np.stack([requested, least, most, np.ceil(SHRUNK * requested).astype(np.int64), free])
        sizes = np.minimum(np.minimum(sizes, capacity), most)
        step, per_node = all_jobs.step[job], all_jobs.per_node[job]
        if (all_jobs.within[job] == ONE_NODE).any():
            sizes = np.where(all_jobs.within[job] == ONE_NODE, np.minimum(sizes, snapshot.pools.per_node[pool]), sizes)
        if per_node.any():
            sizes = np.where((per_node > 0) & (step == 1), sizes // np.maximum(per_node, 1) * per_node, sizes)
        sizes = np.sort(np.where(sizes >= least, least + (sizes - least) // step * step, 0), axis=0)
        new = sizes > 0
        new[1:] &= sizes[1:] != sizes[:-1]
        # rows of a job follow each other: by place in `job`, then by size
        place, size = np.nonzero(new.T)
        count = len(place)
        return Candidates(
            job[place],
            pool[place, None],
            sizes[size, place, None],
            np.full(count, NONE, dtype=np.intp),
            np.ones(count, dtype=np.int64),
        )

    def outgrown(self, jobs: Numbers) -> Numbers:
        """Those of some jobs that ask for more than any pool has, and may be spread."""
        snapshot = self.snapshot
        capacity = (self.usable(jobs) * snapshot.pools.devices[None, :]).max(axis=1, initial=0)
        wide = (snapshot.jobs.requested[jobs] > capacity) & snapshot.jobs.modes[jobs, SYNCHRONOUS:].any(axis=1)
        outgrown: Numbers = jobs[wide]
        return outgrown

    def together(self, job: int) -> Candidates:
        """Candidates over several domains, each in the mode and at the period that serve it best."""
        snapshot, jobs = self.snapshot, self.snapshot.jobs
        modes = [mode for mode in (SYNCHRONOUS, PERIODIC, PIPELINE) if jobs.modes[job, mode]]
        pools = np.flatnonzero(self.usable(np.array([job]))[0])
        if not modes or len(set(snapshot.pools.domain[pools].tolist())) < PAIR:
            return no_candidates()
        least, step = int(jobs.minimum[job]), int(jobs.step[job])
        requested = int(jobs.requested[job])
        holdings: dict[tuple[tuple[int, int], ...], None] = {}
        for chosen in self._sets(job, pools, requested):
            for capacity in (snapshot.pools.devices[chosen], self._free[chosen]):
                total = min(requested, int(capacity.sum()))
                total = least + (total - least) // step * step
                if total >= least and (devices := dealt(total, capacity)).min() > 0:
                    holdings[tuple(zip(chosen.tolist(), devices.tolist(), strict=True))] = None
        own = int(jobs.period[job])
        periods = (own,) if own else PERIODS
        kinds = [(mode, period) for mode in modes for period in (periods if mode == PERIODIC else (1,))]
        if not holdings:
            return no_candidates()
        candidates = in_all_modes(job, list(holdings), kinds)
        look = self.prediction(candidates)
        score = (look.begins + look.runs + MONEY * (look.moving + look.exchanging)).reshape(len(holdings), -1)
        best = score.argmin(axis=1) + np.arange(len(holdings)) * score.shape[1]
        return candidates.of(best[np.isfinite(score.reshape(-1)[best])])

    def _sets(self, job: int, pools: Numbers, requested: int) -> list[Numbers]:
        """Pools of different domains, as few as have what is asked for: pairs, and from each pool to its nearest."""
        snapshot = self.snapshot
        domain, size = snapshot.pools.domain, snapshot.pools.devices
        if len(pools) > MAX_POOLS:
            pools = np.sort(pools[np.argsort(-size[pools], kind="stable")[:MAX_POOLS]])
        combinations: dict[tuple[int, ...], None] = {}
        first, second = np.triu_indices(len(pools), 1)
        pairs = np.stack([pools[first], pools[second]], axis=1)
        apart = domain[pairs[:, 0]] != domain[pairs[:, 1]]
        for pair in pairs[apart].tolist():
            if self._joined(job, pair):
                combinations[tuple(pair)] = None
        for start in pools.tolist():
            chosen = [start]
            near = np.argsort(snapshot.paths.round_trip[domain[start], domain[pools]], kind="stable")
            for pool in pools[near].tolist():
                if int(size[chosen].sum()) >= requested:
                    break
                if domain[pool] not in domain[chosen] and self._joined(job, [*chosen, pool]):
                    chosen.append(pool)
            if len(chosen) > PAIR:
                combinations[tuple(chosen)] = None
        return [np.array(combination, dtype=np.intp) for combination in combinations]

    def _joined(self, job: int, pools: list[int]) -> bool:
        """Whether links between all domains are such as the job needs."""
        snapshot, jobs = self.snapshot, self.snapshot.jobs
        domains = snapshot.pools.domain[pools]
        ends = np.ix_(domains, domains)
        return bool(
            (snapshot.paths.available[ends] >= max(float(jobs.least_bandwidth[job]), 1.0)).all()
            and (snapshot.paths.round_trip[ends] <= jobs.longest_round_trip[job]).all()
            and np.isfinite(snapshot.paths.round_trip[ends]).all()
        )

    def prediction(self, candidates: Candidates) -> Prediction:
        """What candidates lead to."""
        snapshot, jobs, pools = self.snapshot, self.snapshot.jobs, self.snapshot.pools
        job, valid = candidates.job, candidates.pools >= 0
        devices = candidates.devices.sum(axis=1)
        domain = np.where(valid, pools.domain[candidates.pools], 0)
        index = np.where(valid, snapshot.job_index[job[:, None], pools.accelerator[candidates.pools]], 0.0)
        index = (index * candidates.devices).sum(axis=1) / devices
        stages = valid.copy()
        stages[candidates.mode == PIPELINE, 1:] = False
        staging, money = snapshot.staging
        begins = np.where(stages, staging[job[:, None], domain], 0.0).max(axis=1)
        moving = np.where(stages, money[job[:, None], domain], 0.0).sum(axis=1)
        smallest = np.where(valid, candidates.devices, devices[:, None]).min(axis=1)
        readers = np.where(candidates.mode == PIPELINE, devices, smallest)
        begins = begins + np.where(jobs.resumes[job], restart(jobs.checkpoint[job], readers.astype(np.float64)), 0.0)
        rate, exchanging = self._pace(candidates, devices, index, domain, valid)
        rate = rate * np.where(valid, self._paces[domain], inf).min(axis=1)
        with np.errstate(divide="ignore"):
            runs = np.where(rate > 0.0, jobs.left[job] / rate, inf)
        return Prediction(begins, runs, moving, exchanging * runs, devices, rate, index)

    def _pace(
        self, candidates: Candidates, devices: Counts, index: Floats, domain: Numbers, valid: np.ndarray
    ) -> tuple[Floats, Floats]:
        """Work a second, and money a second for exchanges."""
        jobs = self.snapshot.jobs
        requested = jobs.requested[candidates.job]
        rate = (
            jobs.used[candidates.job]
            * requested
            * index
            / self._utilisation_prior.longer(candidates.job, devices.astype(np.float64))
        )
        money = np.zeros(len(candidates))
        several = np.flatnonzero(candidates.mode != NONE)
        if len(several):
            some = candidates.of(several)
            speeds, tariff = self._exchange(some, devices[several], index[several], domain[several], valid[several])
            rate[several], money[several] = speeds.rate, speeds.occupied * tariff
        return rate, money

    def _exchange(
        self, candidates: Candidates, devices: Counts, index: Floats, domain: Numbers, valid: np.ndarray
    ) -> tuple[Speeds, Floats]:
        """Speed of jobs that are spread, and the tariff of all their flows."""
        jobs, paths = self.snapshot.jobs, self.snapshot.paths
        count = valid.sum(axis=1)
        rows = np.arange(len(candidates))
        narrow, ring, line = np.full(len(candidates), inf), np.zeros(len(candidates)), np.zeros(len(candidates))
        around, along = np.zeros(len(candidates)), np.zeros(len(candidates))
        back = np.full(len(candidates), inf)
        for place in range(candidates.pools.shape[1]):
            used = place < count
            last = place == count - 1
            source = domain[:, place]
            target = np.where(last, domain[:, 0], domain[rows, np.minimum(place + 1, candidates.pools.shape[1] - 1)])
            narrow = np.where(used, np.minimum(narrow, paths.available[source, target]), narrow)
            ring = np.where(used, np.maximum(ring, paths.round_trip[source, target]), ring)
            around = np.where(used, around + paths.tariff[source, target], around)
            cut = used & ~last
            both = np.minimum(paths.available[source, target], paths.available[target, source])
            back = np.where(cut, np.minimum(back, both), back)
            line = np.where(cut, line + paths.round_trip[source, target], line)
            along = np.where(cut, along + paths.tariff[source, target] + paths.tariff[target, source], along)
        piped = candidates.mode == PIPELINE
        job = candidates.job
        speeds = spread(
            speed_inputs(jobs, job),
            devices.astype(np.float64),
            index,
            count,
            candidates.mode,
            candidates.period,
            np.where(piped, back, narrow),
            np.where(piped, line, ring),
        )
        return speeds, np.where(piped, along, around)
