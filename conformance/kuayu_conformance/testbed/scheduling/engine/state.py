"""What the engine keeps: who holds which devices, copies of data, jobs with their progress, and what became of them.

1. **Places.** Domains and their pools have numbers, in the order of the topology.
2. **Progress.** How far jobs are stands in arrays by job, so that policies see thousands of them at once.
3. **Holdings.** Of each pool it is known who holds which devices and which are broken; never more are held than work.
4. **Copies.** Copies of data sets that are there at the beginning stay; others are kept for a while after their last
   use.
5. **Register.** Jobs have numbers in the order of submission, with what is known of them to policies.
6. **Queue.** Jobs that are pending stand by priority, then by time of submission.
7. **Outcome.** Records of jobs, sums, and how it stands at an instant. Sums begin with the scenario, so that a window
   is a difference of two outcomes.
8. **Runs.** A run is a job with its devices; a tally holds sums over jobs, and what belongs to each.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Law, Numbers
from kuayu_conformance.testbed.scheduling.values import Dataset, DeviceType, Job, Placement, Share, Site

Counts = NDArray[np.int64]
"""Whole numbers of devices."""
Holding = tuple[tuple[int, int], ...]
"""Numbers of pools, each with how many of its devices."""
SEVERAL = -1
"""Instead of the number of a pool: a job holds devices of more than one."""
COPY_LIFETIME = 7 * 86_400.0
"""Seconds that a copy stays after its last use; an assumption, the same for every policy (it is varied by families)."""


class Places:
    """Domains, pools and kinds of accelerators by number.

    Attributes:
        sites: Names of the domains.
        pools: Name of the domain and of the accelerator, by pool.
        types: Names of the accelerators that are there, in alphabetical order.
        site: Number of the domain, by pool.
        type: Number of the accelerator, by pool.
        devices: How many there are when nothing is broken, by pool.
        per_node: Devices of a node, by pool.
        memory: Bytes of a device, by accelerator.
        of_site: Numbers of the pools, by domain.
    """

    def __init__(self, sites: Sequence[Site], devices: Mapping[str, DeviceType]) -> None:
        self.sites = tuple(site.name for site in sites)
        self.pools = tuple((site.name, pool.device) for site in sites for pool in site.pools)
        assert len(set(self.pools)) == len(self.pools), "a share names its pool by domain and accelerator"
        self.types = tuple(sorted({device for _, device in self.pools}))
        self.site = np.array([self.sites.index(name) for name, _ in self.pools], dtype=np.intp)
        self.type = np.array([self.types.index(device) for _, device in self.pools], dtype=np.intp)
        self.devices = np.array([pool.devices for site in sites for pool in site.pools], dtype=np.int64)
        self.per_node = np.array([pool.per_node for site in sites for pool in site.pools], dtype=np.int64)
        self.memory = np.array([devices[name].memory for name in self.types], dtype=np.float64)
        self.of_site = tuple(np.flatnonzero(self.site == site) for site in range(len(sites)))
        self._numbers = {pool: number for number, pool in enumerate(self.pools)}
        self._site_numbers = {name: number for number, name in enumerate(self.sites)}
        self._shares: dict[tuple[int, int], Share] = {}

    def site_number(self, name: str) -> int:
        """Number of a domain.

        Raises:
            KeyError: There is no such domain.
        """
        return self._site_numbers[name]

    def share(self, pool: int, devices: int) -> Share:
        """Devices of a pool as a share of a placement."""
        share = self._shares.get((pool, devices))
        if share is None:
            site, device = self.pools[pool]
            share = self._shares[pool, devices] = Share(site, device, devices)
        return share

    def holding(self, shares: Sequence[Share]) -> Holding:
        """Shares as numbers of pools and devices.

        Raises:
            KeyError: A pool does not exist.
        """
        return tuple((self._numbers[share.site, share.device], share.devices) for share in shares)


class Phase(IntEnum):
    """What a job does at present."""

    ABSENT = 0
    PENDING = 1
    STAGING = 2
    RESTARTING = 3
    RUNNING = 4
    SAVING = 5
    FINISHED = 6


class Progress:
    """Work that is done, and how it goes on.

    Attributes:
        phase: See :class:`Phase`.
        done: Work that was done until ``since``.
        rate: Work a second since then; zero unless it runs.
        since: Instant of ``done``.
        saved: Work that a checkpoint holds.
        expected: Work a second that it does, or is expected to do once it runs.
        pool: Number of the pool whose devices a job holds, or ``SEVERAL``.
        devices: How many it holds.
        ready: When it is expected to run, for one that holds devices and does not run yet.
        interrupted: When an order interrupted it last; infinitely long ago where none did.
    """

    def __init__(self, jobs: int) -> None:
        self.phase = np.zeros(jobs, dtype=np.int8)
        self.done, self.rate, self.since = np.zeros(jobs), np.zeros(jobs), np.zeros(jobs)
        self.saved, self.expected, self.ready = np.zeros(jobs), np.zeros(jobs), np.zeros(jobs)
        self.pool, self.devices = np.full(jobs, SEVERAL, dtype=np.intp), np.zeros(jobs, dtype=np.int64)
        self.interrupted = np.full(jobs, -np.inf)
        self._resumed, self._interval = np.zeros(jobs), np.full(jobs, np.inf)

    def run(self, job: int, interval: float, now: float) -> None:
        """A job takes its first step since it was placed; it writes a checkpoint at every interval."""
        self.phase[job] = Phase.RUNNING
        self.since[job] = self._resumed[job] = now
        self._interval[job] = interval

    def settle(self, job: int, now: float) -> float:
        """Account for what was done until now; how much it was."""
        since, rate = float(self.since[job]), float(self.rate[job])
        done = rate * (now - since)
        resumed, interval = float(self._resumed[job]), float(self._interval[job])
        if rate > 0.0 and interval < np.inf:
            last = resumed + (now - resumed) // interval * interval
            if last >= since and last > resumed:
                self.saved[job] = self.done[job] + rate * (last - since)
        self.done[job] += done
        self.since[job] = now
        return done

    def save(self, job: int) -> None:
        """What is done is safe."""
        self.saved[job] = self.done[job]

    def lose(self, job: int) -> float:
        """What no checkpoint holds is lost; how much it was."""
        lost = float(self.done[job] - self.saved[job])
        self.done[job] = self.saved[job]
        return lost

    def at(self, jobs: Numbers, now: float) -> Floats:
        """Work that some jobs have done by now."""
        done: Floats = self.done[jobs] + self.rate[jobs] * (now - self.since[jobs])
        return done


class Holdings:
    """Devices by pool; never more are held than work.

    Attributes:
        working: Devices that are not broken, by pool.
        free: Those of them that nobody holds, by pool.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self.working = places.devices.copy()
        self.free = places.devices.copy()
        self._held: tuple[dict[int, int], ...] = tuple({} for _ in places.pools)
        self._since = 0.0
        self._there, self._taken = np.zeros(len(places.pools)), np.zeros(len(places.pools))

    def fits(self, holding: Holding) -> bool:
        """Whether so many devices are free."""
        return all(devices <= self.free[pool] for pool, devices in holding)

    def take(self, job: int, holding: Holding, now: float) -> None:
        """A job takes devices in addition to those that it has."""
        self._count(now)
        for pool, devices in holding:
            assert 0 < devices <= self.free[pool], "capacity is never exceeded"
            self.free[pool] -= devices
            self._held[pool][job] = self._held[pool].get(job, 0) + devices

    def give_back(self, job: int, holding: Holding, now: float) -> None:
        """A job gives back some of those that it has."""
        self._count(now)
        for pool, devices in holding:
            left = self._held[pool][job] - devices
            assert left >= 0, "nobody gives back what it does not have"
            if left:
                self._held[pool][job] = left
            else:
                del self._held[pool][job]
            self.free[pool] += devices
            assert self.free[pool] <= self.working[pool], "no device is there twice"

    def on_node(self, pool: int, place: float) -> tuple[list[int], int]:
        """Jobs that hold devices of a node, and how many working devices it has.

        Jobs fill the working devices of a pool in the order in which they came; ``place``, of [0, 1), is where among
        these the node is.
        """
        working = int(self.working[pool])
        size = min(int(self._places.per_node[pool]), working)
        first = int(place * (working - size + 1))
        hit, begin = [], 0
        for job, devices in self._held[pool].items():
            if begin < first + size and first < begin + devices:
                hit.append(job)
            begin += devices
        return hit, size

    def breaks(self, pool: int, devices: int, now: float) -> None:
        """Devices that nobody holds fail."""
        self._count(now)
        assert devices <= self.free[pool], "who held them has lost them before"
        self.free[pool] -= devices
        self.working[pool] -= devices

    def repaired(self, pool: int, devices: int, now: float) -> None:
        """Devices are back."""
        self._count(now)
        self.free[pool] += devices
        self.working[pool] += devices

    def device_seconds(self, now: float) -> tuple[Floats, Floats]:
        """Device seconds that have been there to be used, and those that were held, by pool."""
        passed = now - self._since
        return self._there + self.working * passed, self._taken + (self.working - self.free) * passed

    def _count(self, now: float) -> None:
        self._there, self._taken = self.device_seconds(now)
        self._since = now


class Copies:
    """Copies by data set and number of the domain.

    Args:
        datasets: By name.
        numbers: Number of each domain by name.
        copy_lifetime: Seconds that a copy stays after its last use.
    """

    def __init__(
        self, datasets: Mapping[str, Dataset], numbers: Mapping[str, int], copy_lifetime: float = COPY_LIFETIME
    ) -> None:
        self.datasets = datasets
        self._copy_lifetime = copy_lifetime
        self._always = {
            name: tuple(sorted(numbers[site] for site in dataset.sites)) for name, dataset in datasets.items()
        }
        self._until: dict[str, dict[int, float]] = {}

    def at(self, name: str, now: float) -> tuple[int, ...]:
        """Domains that hold a copy, in order."""
        cached = self._until.get(name)
        if not cached:
            return self._always[name]
        return tuple(sorted({*self._always[name], *(site for site, until in cached.items() if until >= now)}))

    def moved(self, names: Iterable[str], now: float) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Those of some data sets that are in more domains than at the beginning, with all domains that hold them."""
        for name in names:
            cached = self._until.get(name)
            if cached and any(until >= now for until in cached.values()):
                yield name, self.at(name, now)

    def always(self, name: str) -> tuple[int, ...]:
        """Domains that hold a copy from the beginning to the end, in order."""
        return self._always[name]

    def use(self, name: str, site: int, now: float) -> None:
        """A copy is there, and in use."""
        if site not in self._always[name]:
            self._until.setdefault(name, {})[site] = now + self._copy_lifetime


class Register:
    """What is known of jobs, by their number in the order of submission; nothing of those that are not admitted yet.

    A job is known with ``used`` one until it has run, and with ``work`` as it follows from what it states.

    Attributes:
        number: Of a job by its name.
        requested, minimum, maximum: Devices, by job.
        home: Number of the domain, by job.
        used: Share of the requested devices that a job is known to keep busy, by job; one before it has run.
        stated_work: Work that a job was or is stated to be, by job.
        rates: Work a second on the requested devices of one kind in one domain, (jobs, accelerators); zero where these
            have too little memory.
    """

    def __init__(self, jobs: Sequence[Job], places: Places, law: Law) -> None:
        assert all(before.submitted <= after.submitted for before, after in pairwise(jobs))
        self._truth, self._places, self._law = jobs, places, law
        self._known: dict[int, Job] = {}
        self.number: dict[str, int] = {}
        self.requested, self.minimum, self.maximum = np.zeros((3, len(jobs)), dtype=np.int64)
        self.home = np.zeros(len(jobs), dtype=np.intp)
        self.used, self.stated_work = np.ones(len(jobs)), np.zeros(len(jobs))
        self.rates: Floats = np.zeros((len(jobs), len(places.types)))

    def known(self, number: int) -> Job:
        """What is known of a job that was admitted; the law may be asked with it."""
        return self._known[number]

    def admit(self, number: int) -> None:
        """A job is submitted."""
        job = self._truth[number]
        self.number[job.name] = number
        self.requested[number], self.minimum[number], self.maximum[number] = job.requested, job.minimum, job.maximum
        self.home[number] = self._places.site_number(job.home)
        self._learn(number, 1.0)
        self._rate(number)

    def measure(self, number: int) -> None:
        """A job runs: what it keeps busy is known from now on."""
        if self._known[number].used != self._truth[number].used:
            self._learn(number, self._truth[number].used)

    def again(self, number: int) -> None:
        """A job that has run is pending again."""
        self._rate(number)

    def _learn(self, number: int, used: float) -> None:
        job = replace(self._truth[number], used=used, work=0.0)
        self.used[number] = used
        self.stated_work[number] = work = self._law.stated_work(job)
        self._known[number] = replace(job, work=work)

    def _rate(self, number: int) -> None:
        job = self._known[number]
        for kind, name in enumerate(self._places.types):
            if self._places.memory[kind] >= job.memory:
                placement = Placement((Share(job.home, name, job.requested),))
                self.rates[number, kind] = self._law.speed(job, placement, ()).rate


class Queue:
    """Numbers of the jobs that are pending, by priority and then by time of submission.

    Attributes:
        changes: Counts arrivals and departures.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs
        self._entries: list[tuple[int, int]] = []
        self._listed: tuple[int, Numbers] = (-1, np.zeros(0, dtype=np.intp))
        self.changes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, job: int) -> None:
        """A job is pending; one that was before takes its old place."""
        insort(self._entries, (-self._jobs[job].priority, job))
        self.changes += 1

    def remove(self, job: int) -> None:
        """A job is pending no longer."""
        del self._entries[bisect_left(self._entries, (-self._jobs[job].priority, job))]
        self.changes += 1

    @property
    def numbers(self) -> Numbers:
        """All of them in order."""
        if self._listed[0] != self.changes:
            self._listed = self.changes, np.array([job for _, job in self._entries], dtype=np.intp)
        return self._listed[1]


@dataclass(frozen=True, slots=True)
class Period:
    """A job held devices without a break.

    Attributes:
        placement: Where.
        begin: When it was given them.
        running: When it took its first step on them, or infinite.
        stopped: When it took its last one, or infinite if it goes on or has taken none.
        end: When it gave them back, or infinite if it has not.
    """

    placement: Placement
    begin: float
    running: float
    stopped: float
    end: float


@dataclass(frozen=True, slots=True)
class Record:
    """What became of a job.

    Attributes:
        name: Its name.
        submitted: Seconds since the scenario began.
        finished: Likewise, or infinite.
        phase: What it does at the end.
        done: Work that is done.
        lost: Work that was done and lost with a node.
        stops: How often it was preempted or moved.
        moves: How often it was moved, to other devices or to more or fewer.
        failures: How often a node failed under it.
        money: For the bandwidth that it occupied.
        periods: When it held what.
    """

    name: str
    submitted: float
    finished: float
    phase: Phase
    done: float
    lost: float
    stops: int
    moves: int
    failures: int
    money: float
    periods: tuple[Period, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What has become of a scenario by an instant. All sums begin with the scenario: a window is a difference of two.

    Attributes:
        instant: The instant, seconds since the scenario began.
        jobs: All that were submitted by then, in order.
        bits: Integral of the occupied bandwidth, by link.
        money: That by tariff and time of day, by link.
        available: Device seconds that were not broken, by pool.
        occupied: Device seconds that jobs held, by pool.
        computing: Device seconds in which jobs computed rather than waited for network or data, by pool.
        work: Work that was done and not lost, by pool, in device seconds of the reference device.
        decisions: Epochs at which the policy was asked.
        refusals: Orders that were not carried out.
    """

    instant: float
    jobs: tuple[Record, ...]
    bits: Floats
    money: Floats
    available: Floats
    occupied: Floats
    computing: Floats
    work: Floats
    decisions: int
    refusals: int


@dataclass(frozen=True, slots=True)
class Gauges:
    """How it stands at an instant; sums begin with the scenario, as those of an outcome.

    Attributes:
        instant: The instant, seconds since the scenario began.
        bits: Integral of the occupied bandwidth, by link.
        available: Device seconds that were not broken, by pool.
        occupied: Device seconds that jobs held, by pool.
        work: Work that was done and not lost, by pool.
        waiting: Jobs that are pending.
        devices: Devices that they ask for, all told.
    """

    instant: float
    bits: Floats
    available: Floats
    occupied: Floats
    work: Floats
    waiting: int
    devices: int


@dataclass(slots=True)
class Run:
    """A job with its devices.

    Attributes:
        placement: Where it runs.
        holding: The same by number.
        begin: When it was given the devices.
        devices: How many.
        running: When it took its first step on them, or infinite.
        stopped: When it took its last one, or infinite.
        flows: Numbers of its flows between domains.
        computing: Share of the time in which its devices compute.
        then: Where it goes after it has been saved, if it moves.
    """

    placement: Placement
    holding: Holding
    begin: float
    devices: int
    running: float = inf
    stopped: float = inf
    flows: tuple[int, ...] = ()
    computing: float = 0.0
    then: Placement | None = None

    def credit(self, computing: Floats, work: Floats, passed: float, done: float) -> None:
        """Add what was done in so many seconds to sums by pool, by each pool's share of the devices."""
        for pool, devices in self.holding:
            computing[pool] += devices * passed * self.computing
            work[pool] += done * devices / self.devices


class Tally:
    """Sums over jobs, and what belongs to each.

    Attributes:
        computing: Device seconds in which jobs computed, by pool.
        work: Work that was done and not lost, by pool.
        lost: Work that was lost, by job.
        finished: When, by job; infinite before.
        stops: How often a job was preempted or moved.
        moves: How often a job was moved.
        failures: How often a node failed under a job.
        periods: When a job held what.
    """

    def __init__(self, jobs: int, pools: int) -> None:
        self.computing, self.work = np.zeros(pools), np.zeros(pools)
        self.lost, self.finished = np.zeros(jobs), np.full(jobs, inf)
        self.stops, self.moves, self.failures = [0] * jobs, [0] * jobs, [0] * jobs
        self.periods: dict[int, list[Period]] = {}


def beyond(wanted: Holding, present: Holding) -> Holding:
    """What a holding has more than another."""
    has = dict(present)
    return tuple((pool, devices - has.get(pool, 0)) for pool, devices in wanted if devices > has.get(pool, 0))
