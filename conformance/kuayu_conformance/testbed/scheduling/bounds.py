"""B5: what no policy can beat, and what the best of all does on instances small enough to find out.

Pure functions of topology, workload and law. What they hold for: a law by which a job gains from each further device no
more than from the one before, and by which no split is faster than as many of its devices in one place; that of the
package ``law`` is such a one. Disturbances only make things worse. Seconds since the scenario began; work in device
seconds of the reference device; money of tariffs.

1. **Needs.** What a device second is worth to each job, and the least time that it takes wherever it runs.
2. **Capacity.** The throughput that a linear programme says is feasible for a mix of jobs; SCH-004 divides by it.
3. **Periods.** Lower bounds on the mean time from submission to end (SCH-003).
4. **Makespans.** Lower bounds on the time at which the last job ends.
5. **Ideal pool.** The same scenario with all devices in one place, so that the network is free.
6. **Instances.** Small ones are written out: for each job the ways in which it could run, with seconds and money of
   each.
7. **Optimum.** Placement and order of few jobs by an integer programme, and the front of period and cost (SCH-001).
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import ceil, inf
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import coo_array, csr_array, vstack

from kuayu_conformance.testbed.scheduling.engine.interfaces import (
    Floats,
    Law,
    LinkVariation,
    Numbers,
    Topology,
    Workload,
)
from kuayu_conformance.testbed.scheduling.engine.state import Holding, Places
from kuayu_conformance.testbed.scheduling.engine.traffic import Routes
from kuayu_conformance.testbed.scheduling.values import (
    Dataset,
    DeviceType,
    Job,
    Link,
    Placement,
    Pool,
    Share,
    Site,
    Split,
)

NAME = "all"
"""Of the only domain."""
_BITS = 8.0
_TOLERANCE = 1e-6
"""Share of a figure by which the solver may be off."""
_APART = 1e-4
"""Share of the money of the quickest schedule by which two points of a front differ; well above that tolerance."""
_INFEASIBLE, _OTHER = 2, 4
"""Status of the solver: there is no solution; it has failed."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What jobs need, in arrays by job.

    Attributes:
        places: Pools by number.
        submitted: Seconds since the scenario began.
        work: Device seconds of the reference device.
        rates: Work of a device second, (jobs, pools): the most that a job makes of it, with as few devices as it runs
            on. Nought where it cannot run: too little memory, or its data may not go there.
        shortest: Seconds of the job alone in the ideal pool: all devices that it can use and has use for, of the
            fastest kind, in one place, with data at hand. Infinite for one that cannot run at all.
    """

    places: Places
    submitted: Floats
    work: Floats
    rates: Floats
    shortest: Floats

    def only(self, chosen: NDArray[np.bool_] | Numbers) -> "Needs":
        """Those of some jobs, by a mask or by places."""
        parts = (self.submitted[chosen], self.work[chosen], self.rates[chosen], self.shortest[chosen])
        return Needs(self.places, *parts)


def needs(
    topology: Topology, workload: Workload, law: Law, jobs: Sequence[Job] | None = None, *, expanding: bool = True
) -> Needs:
    """Needs of all jobs, or of some.

    With ``n`` devices of a kind a job does ``r(n)`` work a second. By G. M. Amdahl, "Validity of the single processor
    approach", AFIPS 1967, ``r(n)/n`` does not grow with ``n`` and ``r(n)`` does not fall; so a device second is worth
    most with the fewest devices, and a job is fastest with the most.

    Args:
        topology: Where they can run.
        workload: Data sets; and the jobs, unless some are given.
        law: Asked with jobs as they truly are.
        jobs: Some of the workload.
        expanding: Whether jobs may be given more devices than they asked for; ``shortest`` is longer where they are
            not, and then holds for those policies alone that never do so, as the baselines.
    """
    chosen = workload.jobs if jobs is None else tuple(jobs)
    places = Places(topology.sites, topology.devices)
    slow, fast = np.zeros((len(chosen), len(places.types))), np.zeros((len(chosen), len(places.types)))
    reachable = np.zeros((len(chosen), len(places.pools)), dtype=np.bool_)
    for place, job in enumerate(chosen):
        able = places.memory >= job.memory
        reachable[place] = able[places.type]
        data = workload.datasets[job.data]
        if data.pinned:
            reachable[place] &= np.isin(places.site, [places.site_number(site) for site in data.sites])
        most = min(job.maximum if expanding else job.requested, int(places.devices[reachable[place]].sum()))
        if most < job.minimum:
            reachable[place] = False
        for kind in np.unique(places.type[reachable[place]]).tolist():
            slow[place, kind] = _rate(law, job, places.types[kind], job.minimum) / job.minimum
            fast[place, kind] = _rate(law, job, places.types[kind], most)
    work = np.array([job.work for job in chosen], dtype=np.float64)
    fastest = np.where(reachable, fast[:, places.type], 0.0).max(axis=1, initial=0.0)
    return Needs(
        places,
        np.array([job.submitted for job in chosen], dtype=np.float64),
        work,
        np.where(reachable, slow[:, places.type], 0.0),
        np.divide(work, fastest, out=np.full(len(chosen), np.inf), where=fastest > 0.0),
    )


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a linear programme says.

    Attributes:
        throughput: Work a second, in device seconds of the reference device, if the mix goes on for ever.
        share: Share of the devices of each pool that the programme uses; the same for pools that are alike.
        values: What a device second of each pool is worth: the work a second that one more device would bring. Scaled
            so that all devices together are worth ``throughput``.
    """

    throughput: float
    share: Floats
    values: Floats


def capacity(jobs: Needs, devices: Floats | None = None) -> Capacity:
    """The most work a second that is feasible while each kind of job gets its share of the work.

    Jobs of the same rates in all pools are one kind. With ``y`` devices of each pool for each kind, it is the greatest
    ``θ`` such that kind ``c`` does at least ``θ`` times its share of the work, and no pool gives more than it has. Each
    kind may go where it is at its best, so that a ratio to this never exceeds one, as one to the sum of devices does
    where indices depend on the task. Over-requests are forgiven: a device second counts as what the job would make of
    it with as few devices as it runs on. D. Narayanan et al. (Gavel), OSDI 2020, section 4.2, allocate by it.

    Args:
        jobs: The mix; those that can run nowhere are left out.
        devices: Devices of each pool that are there, on average; otherwise all.

    Raises:
        ValueError: None of the jobs can run, or none has work to do.
    """
    available = jobs.places.devices.astype(np.float64) if devices is None else np.asarray(devices, dtype=np.float64)
    able = (np.where(available > 0.0, jobs.rates, 0.0).max(axis=1, initial=0.0) > 0.0) & (jobs.work > 0.0)
    if not able.any():
        raise ValueError("no job has work to do and can run")
    # pools that are alike to all jobs are one to the programme
    merged, pool = np.unique(np.where(available > 0.0, jobs.rates[able], 0.0), axis=1, return_inverse=True)
    pool = pool.reshape(-1)
    sizes = np.bincount(pool, weights=available)
    kinds, which = np.unique(merged, axis=0, return_inverse=True)
    mix = np.bincount(which.reshape(-1), weights=jobs.work[able])
    mix = mix / mix.sum()
    rows, pools = np.nonzero(kinds)
    last = len(rows)
    done = coo_array((-kinds[rows, pools], (rows, np.arange(last))), shape=(len(kinds), last + 1))
    demanded = coo_array((mix, (np.arange(len(kinds)), np.full(len(kinds), last))), shape=(len(kinds), last + 1))
    holdings = coo_array((np.ones(last), (pools, np.arange(last))), shape=(len(sizes), last + 1))
    limits = np.concatenate([np.zeros(len(kinds)), sizes])
    solved = linprog(
        np.append(np.zeros(last), -1.0),
        A_ub=vstack([done + demanded, holdings], format="csr"),
        b_ub=limits,
        method="highs",
    )
    assert solved.status == 0, solved.message
    used = np.bincount(pools, weights=solved.x[:last], minlength=len(sizes))
    values = np.maximum(-solved.ineqlin.marginals[len(kinds) :], 0.0)
    share = np.divide(used, sizes, out=np.zeros(len(sizes)), where=sizes > 0.0)
    return Capacity(float(solved.x[last]), share[pool], values[pool])


def cheapest_seconds(jobs: Needs, values: Floats) -> Floats:
    """Least worth of the device seconds that each job holds, wherever it runs; infinite for one that cannot run.

    Whatever ``values`` are, no schedule hands out more in a second than all devices are worth: so the jobs of any
    schedule are those of one machine of that speed. The values of :func:`capacity` make that machine as slow as can be.

    Args:
        jobs: By job and pool.
        values: Of a device second, by pool; none below zero.
    """
    unit_costs = np.divide(values, jobs.rates, out=np.full(jobs.rates.shape, np.inf), where=jobs.rates > 0.0)
    least: Floats = unit_costs.min(axis=1, initial=np.inf)
    return np.where(jobs.work > 0.0, jobs.work * least, 0.0)


@dataclass(frozen=True, slots=True)
class Periods:
    """Seconds below which no policy brings the mean period of some jobs.

    Attributes:
        alone: Mean of what each job takes alone in the ideal pool.
        ideal: Mean in the ideal pool if it could be cut at will, and did the shortest first.
    """

    alone: float
    ideal: float

    @property
    def least(self) -> float:
        """The better of both."""
        return max(self.alone, self.ideal)


def periods(jobs: Needs) -> Periods:
    """Bounds for some jobs; those that are not among them are taken not to be there.

    - Alone: a job ends no sooner than if it had all to itself.
    - Ideal: all devices as one machine, of the speed that they are worth together (``capacity``), which may be taken
      from a job at any time and given to another for nothing. On one machine the rule of the shortest remaining time
      first has the least sum of periods: L. Schrage, "A proof of the optimality of the shortest remaining processing
      time discipline", Operations Research 16 (1968). A job in a real schedule holds at least as much as it needs
      there.

    Args:
        jobs: At least one, all of them able to run.

    Raises:
        ValueError: There are none, or one can run nowhere.
    """
    if not len(jobs.work) or not np.isfinite(jobs.shortest).all():
        raise ValueError("a mean needs jobs, each of them able to run")
    limit = capacity(jobs)
    speed = float((limit.values * jobs.places.devices).sum())
    ends = shortest_first(jobs.submitted, cheapest_seconds(jobs, limit.values) / speed)
    return Periods(float(jobs.shortest.mean()), float((ends - jobs.submitted).mean()))


def shortest_first(submitted: Floats, seconds: Floats) -> Floats:
    """When each job ends on one machine that always does the one with the least left; seconds, by job.

    Args:
        submitted: When each is there.
        seconds: What each takes.
    """
    ends = np.zeros(len(submitted))
    waiting: list[tuple[float, int]] = []
    now = 0.0
    order = np.argsort(submitted, kind="stable").tolist()
    for place, job in enumerate(order):
        now = max(now, float(submitted[job]))
        heapq.heappush(waiting, (float(seconds[job]), job))
        following = float(submitted[order[place + 1]]) if place + 1 < len(order) else np.inf
        while waiting and now < following:
            left, first = heapq.heappop(waiting)
            if now + left > following:
                heapq.heappush(waiting, (left - (following - now), first))
                break
            now += left
            ends[first] = now
    return ends


@dataclass(frozen=True, slots=True)
class Makespan:
    """Seconds since the scenario began before which no policy has finished all jobs.

    Attributes:
        work: Work over capacity, from the submission on from which that is latest.
        path: The latest end of a job that has all devices to itself.
        pinned: The same as ``work`` for jobs that can run in some pools only, by their memory or their data, and these
            pools.
    """

    work: float
    path: float
    pinned: float

    @property
    def least(self) -> float:
        """The best of the three.

        R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 17 (1969), has the first two
        for machines that are alike.
        """
        return max(self.work, self.path, self.pinned)


def makespan(jobs: Needs) -> Makespan:
    """Bounds for some jobs.

    Args:
        jobs: At least one, all of them able to run.

    Raises:
        ValueError: There are none, or one can run nowhere.
    """
    if not len(jobs.work) or not np.isfinite(jobs.shortest).all():
        raise ValueError("a makespan needs jobs, each of them able to run")
    usable = jobs.rates > 0.0
    pinned = float(jobs.submitted.max())
    for pools in np.unique(usable, axis=0):
        within = ~(usable & ~pools).any(axis=1)
        pinned = max(pinned, _latest(jobs.only(within)))
    return Makespan(_latest(jobs), float((jobs.submitted + jobs.shortest).max()), pinned)


@dataclass(frozen=True, slots=True)
class IdealPool:
    """A topology of one domain, and a workload at home there.

    Attributes:
        sites: The domain; a pool for each kind of accelerator.
        links: None.
        devices: As before.
        variation: As before; there is nothing that it could change.
        jobs: All of them.
        datasets: All of them, at hand and never pinned.
    """

    sites: tuple[Site, ...]
    links: tuple[Link, ...]
    devices: Mapping[str, DeviceType]
    variation: LinkVariation
    jobs: tuple[Job, ...]
    datasets: Mapping[str, Dataset]


def pooled(topology: Topology, workload: Workload) -> IdealPool:
    """The ideal pool of a scenario, to be played with a baseline: what part of its gain was reached is shown beside.

    It is no bound, since the baseline may be beaten there as well. A job that was larger than a pool of its own domain
    may now fit; one that is larger than all devices of a kind cannot be spread over kinds.
    """
    counts: dict[tuple[str, int], int] = {}
    prices: dict[str, Mapping[str, float]] = {}
    for site in topology.sites:
        for pool in site.pools:
            counts[pool.device, pool.per_node] = counts.get((pool.device, pool.per_node), 0) + pool.nodes
            prices.setdefault(pool.device, pool.prices)
    nodes: dict[str, list[tuple[int, int]]] = {}
    for (device, per_node), count in counts.items():
        nodes.setdefault(device, []).append((count, per_node))
    pools = tuple(
        Pool(device, *(of[0] if len(of) == 1 else (sum(count * size for count, size in of), 1)), prices[device])
        for device, of in nodes.items()
    )
    return IdealPool(
        (Site(NAME, topology.sites[0].latitude, topology.sites[0].longitude, pools),),
        (),
        topology.devices,
        topology.variation,
        tuple(replace(job, home=NAME) for job in workload.jobs),
        MappingProxyType(
            {name: replace(dataset, sites=(NAME,), pinned=False) for name, dataset in workload.datasets.items()}
        ),
    )


@dataclass(frozen=True, slots=True)
class Option:
    """A way in which a job could run.

    Attributes:
        placement: Where.
        holding: The same as numbers of pools and devices.
        seconds: From the order to start to its end.
        money: For staging and exchanges.
    """

    placement: Placement
    holding: Holding
    seconds: float
    money: float


@dataclass(frozen=True, slots=True)
class Task:
    """A job of an instance.

    Attributes:
        name: Its name.
        submitted: Seconds since the scenario began.
        weight: What its period counts.
        options: The ways in which it could run; at least one.
    """

    name: str
    submitted: float
    weight: float
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Instance:
    """What is to be placed.

    Attributes:
        tasks: Jobs.
        capacity: Devices, by pool.
        slot: Seconds; jobs start at whole multiples of it, from one on, as the engine has them.
    """

    tasks: tuple[Task, ...]
    capacity: tuple[int, ...]
    slot: float


def instance(
    topology: Topology, workload: Workload, law: Law, slot: float, *, period: int = 50, shrunk: float = 0.75
) -> Instance:
    """An instance of a scenario, at the variation and tariff of its beginning.

    Ways are: in each pool the devices that a job asked for, or all; those below which it does not run; and ``shrunk``
    of the pool; and for one that may be spread periodically, all pairs of pools of different domains, in proportion to
    their sizes. Each way has the links to itself, so that staging and exchanges may take longer in the engine, never
    less; what is exact is exact without contention, and a bound with it. All weights are one.

    Args:
        topology: Where.
        workload: Jobs, and data sets: none may be read by two, as the second would find a copy of the first.
        law: Asked with jobs as they truly are.
        slot: Seconds.
        period: Steps between reconciliations of a job that is spread.
        shrunk: Share of a pool to which a job may be shrunk.

    Raises:
        ValueError: A data set that is not empty and may move is read by two jobs, or a job can run nowhere.
    """
    read = [job.data for job in workload.jobs]
    for name, data in workload.datasets.items():
        if read.count(name) > 1 and data.size > 0.0 and not data.pinned:
            raise ValueError(f"{name} is read by {read.count(name)} jobs: what one moves, the others find")
    builder = _OptionBuilder(topology, workload, law, period, shrunk)
    tasks = tuple(Task(job.name, job.submitted, 1.0, tuple(builder.options(job))) for job in workload.jobs)
    for task in tasks:
        if not task.options:
            raise ValueError(f"{task.name} can run nowhere")
    return Instance(tasks, tuple(builder.places.devices.tolist()), slot)


class SolverFailure(Exception):
    """The solver has not found the optimum in the time that it was given; the instance is too large for it."""


@dataclass(frozen=True, slots=True)
class Point:
    """A schedule.

    Attributes:
        period: Mean seconds from submission to end, weighted.
        money: For bandwidth.
        makespan: When the last job ends.
        starts: When each task is given its devices, in the order of the instance.
        options: How.
    """

    period: float
    money: float
    makespan: float
    starts: tuple[float, ...]
    options: tuple[Option, ...]


def quickest(instance: Instance, seconds: float = 60.0) -> Point:
    """The schedule of the least mean period, and of these the cheapest.

    No job is preempted. Time is cut into slots, at the beginnings of which jobs start; that is exact for whoever
    decides at epochs as long as a slot. The formulation is that of J. P. Sousa, L. A. Wolsey, "A time indexed
    formulation of non-preemptive single machine scheduling problems", Mathematical Programming 54 (1992), with a choice
    of places.

    Args:
        instance: A dozen jobs or so.
        seconds: For which the solver may try, for each of its programmes.

    Raises:
        SolverFailure: That was not enough.
    """
    return _Programme(instance, seconds).least_period(inf)


def cheapest(instance: Instance, seconds: float = 60.0) -> Point:
    """The schedule of the least money, and of these the quickest; arguments and errors as for ``quickest``."""
    return _Programme(instance, seconds).least_money()


def soonest(instance: Instance, seconds: float = 60.0) -> Point:
    """A schedule of the least makespan; arguments and errors as for ``quickest``."""
    return _Programme(instance, seconds).least_makespan()


def front(instance: Instance, seconds: float = 60.0) -> tuple[Point, ...]:
    """All schedules that none beats in period and money both, from the quickest to the cheapest.

    By ε-constraint: the quickest, then the quickest of those that are cheaper, and so on (Y. Haimes et al., IEEE
    Transactions on Systems, Man and Cybernetics 1, 1971; of those of one period the cheapest is taken, so that none is
    weakly dominated: G. Mavrotas, "Effective implementation of the ε-constraint method", Applied Mathematics and
    Computation 213, 2009). Points whose money differs by less than a ten-thousandth of the quickest one's
    count as one. Arguments and errors as for ``quickest``.
    """
    programme = _Programme(instance, seconds)
    least = programme.least_money().money
    points = [programme.least_period(inf)]
    step = _APART * max(points[0].money, 1e-300)
    budget = points[0].money - step
    while budget > least:
        point = programme.least_period(budget)
        if point.money < points[-1].money - step / 2.0:
            points.append(point)
        budget = min(point.money, budget) - step
    return tuple(points) if points[-1].money <= least + step else (*points, programme.least_money())


def _rate(law: Law, job: Job, device: str, devices: int) -> float:
    """Work a second with so many devices in one place."""
    return law.speed(job, Placement((Share(job.home, device, devices),)), ()).rate


def _latest(jobs: Needs) -> float:
    """From each submission on, what came then and later has to be done by all pools that any of them can use."""
    if not (jobs.work > 0.0).any():
        return float(jobs.submitted.max())
    values = capacity(jobs).values
    speed = float((values * jobs.places.devices).sum())
    order = np.argsort(jobs.submitted, kind="stable")
    seconds: Floats = cheapest_seconds(jobs, values)[order] / speed
    remaining = np.cumsum(seconds[::-1])[::-1]
    return float((jobs.submitted[order] + remaining).max())


class _OptionBuilder:
    """Ways of jobs in a topology."""

    def __init__(self, topology: Topology, workload: Workload, law: Law, period: int, shrunk: float) -> None:
        self.places = Places(topology.sites, topology.devices)
        self._workload, self._law, self._period, self._shrunk = workload, law, period, shrunk
        routes = Routes(self.places.sites, topology.links)
        every: Numbers = np.arange(len(topology.links), dtype=np.intp)
        offered = np.array([link.capacity for link in topology.links]) * topology.variation.factor(every, 0.0)
        self._offered = routes.narrowest(offered)
        tariffs = np.array([link.tariff for link in topology.links]) * topology.variation.tariff(0.0)
        self._tariffs = routes.total(tariffs)

    def options(self, job: Job) -> Iterator[Option]:
        """All ways of a job that come to an end."""
        for holding in dict.fromkeys(self._holdings(job)):
            option = self._option(job, holding)
            if option.seconds < inf and option.money < inf:
                yield option

    def _holdings(self, job: Job) -> Iterator[Holding]:
        able = [int(n) for n in np.flatnonzero(self.places.memory[self.places.type] >= job.memory)]
        sizes = self.places.devices.tolist()
        for pool in able:
            for devices in (min(job.requested, sizes[pool]), job.minimum, int(self._shrunk * sizes[pool])):
                if job.minimum <= devices <= min(job.maximum, sizes[pool]) and devices > 0:
                    yield ((pool, devices),)
        if Split.PERIODIC in job.splits:
            for one, other in permutations(able, 2):
                if self.places.site[one] != self.places.site[other]:
                    yield from self._pair(job, one, other)

    def _pair(self, job: Job, one: int, other: int) -> Iterator[Holding]:
        first, second = int(self.places.devices[one]), int(self.places.devices[other])
        wanted = min(job.requested, first + second)
        share = min(second, ceil(wanted * second / (first + second)))
        if wanted >= job.minimum and 0 < share < wanted and wanted - share <= first:
            yield ((one, wanted - share), (other, share))

    def _option(self, job: Job, holding: Holding) -> Option:
        shares = tuple(self.places.share(pool, devices) for pool, devices in holding)
        spread = len(shares) > 1
        placement = Placement(shares, Split.PERIODIC, self._period) if spread else Placement(shares)
        staging, money = self._staging(job, shares)
        ends = self.places.site_number
        flows = self._law.flows(job, placement) if spread else ()
        granted = [min(flow.wish, float(self._offered[ends(flow.source), ends(flow.target)])) for flow in flows]
        speed = self._law.speed(job, placement, granted)
        running = job.work / speed.rate if speed.rate > 0.0 else inf
        for flow, bits in zip(flows, speed.occupied, strict=True):
            money += bits * running * float(self._tariffs[ends(flow.source), ends(flow.target)]) if bits else 0.0
        return Option(placement, holding, staging + running, money)

    def _staging(self, job: Job, shares: tuple[Share, ...]) -> tuple[float, float]:
        """Seconds and money until the data are in all domains of a way, each from where they come fastest."""
        data = self._workload.datasets[job.data]
        holders = [self.places.site_number(site) for site in data.sites]
        seconds, money = 0.0, 0.0
        for site in {self.places.site_number(share.site) for share in shares} - set(holders):
            best = max(holders, key=lambda source: float(self._offered[source, site]))
            offered = float(self._offered[best, site])
            if data.pinned or offered <= 0.0:
                return inf, inf
            seconds = max(seconds, data.size * _BITS / offered)
            money += data.size * _BITS * min(float(self._tariffs[source, site]) for source in holders)
        return seconds, money


class _Infeasible(Exception):
    """There is no such schedule."""


class _Programme:
    """A binary variable for each task, way and slot."""

    def __init__(self, instance: Instance, seconds: float) -> None:
        self._instance, self._seconds = instance, seconds
        tasks, slot = instance.tasks, instance.slot
        first = [max(1, ceil(task.submitted / slot)) for task in tasks]
        lasting = [[max(1, ceil(option.seconds / slot - _TOLERANCE)) for option in task.options] for task in tasks]
        # in the best schedules each job starts when it may or when another ends: after all others, each in the way that
        # takes longest, at the latest
        longest = [max(slots) for slots in lasting]
        latest = max(first) + sum(longest)
        columns = [
            (number, choice, start)
            for number, task in enumerate(tasks)
            for choice in range(len(task.options))
            for start in range(first[number], latest - longest[number] + 1)
        ]
        horizon = latest + 1
        self._task, self._choice, self._start = (np.array(part, dtype=np.intp) for part in zip(*columns, strict=True))
        self._lasting = np.array([lasting[number][choice] for number, choice, _ in columns], dtype=np.intp)
        options = [tasks[number].options[choice] for number, choice, _ in columns]
        self._money = np.array([option.money for option in options])
        self._ends = self._start * slot + np.array([option.seconds for option in options])
        weights = np.array([task.weight for task in tasks])
        submitted = np.array([task.submitted for task in tasks])
        self._period = (self._ends - submitted[self._task]) * weights[self._task] / weights.sum()
        self._rows = [self._once(), self._never_full(options, horizon)]

    def least_period(self, budget: float) -> Point:
        """Of those within a budget the quickest, and of these the cheapest."""
        within = [] if budget == inf else [self._at_most(self._money, budget)]
        columns = self._solve(self._period, within)
        limit = float(self._period[columns].sum()) * (1.0 + _TOLERANCE * 1e-2) + 1e-9
        return self._point(self._solve(self._money, [*within, self._at_most(self._period, limit)]))

    def least_money(self) -> Point:
        """Of the cheapest the quickest."""
        columns = self._solve(self._money, [])
        budget = float(self._money[columns].sum())
        return self._point(self._solve(self._period, [self._at_most(self._money, budget)]))

    def least_makespan(self) -> Point:
        """One whose last job ends first: the least instant among all ends that leaves a schedule."""
        instants = np.unique(self._ends)
        columns = self._solve(self._period, [])
        low, high = 0, int(np.searchsorted(instants, self._ends[columns].max()))
        while low < high:
            middle = (low + high) // 2
            try:
                columns = self._solve(self._period, [], self._ends <= instants[middle])
            except _Infeasible:
                low = middle + 1
            else:
                high = int(np.searchsorted(instants, self._ends[columns].max()))
        return self._point(columns)

    def _once(self) -> LinearConstraint:
        """Each task starts once."""
        ones = np.ones(len(self._task))
        rows = csr_array((ones, (self._task, np.arange(len(self._task)))))
        return LinearConstraint(rows, 1.0, 1.0)

    def _never_full(self, options: Sequence[Option], horizon: int) -> LinearConstraint:
        """No pool gives more than it has in any slot."""
        pools = len(self._instance.capacity)
        rows: list[int] = []
        columns: list[int] = []
        amounts: list[float] = []
        for column, option in enumerate(options):
            since = int(self._start[column])
            for slot in range(since, min(since + int(self._lasting[column]), horizon)):
                for pool, devices in option.holding:
                    rows.append(slot * pools + pool)
                    columns.append(column)
                    amounts.append(float(devices))
        limits = np.tile(np.array(self._instance.capacity, dtype=np.float64), horizon)
        matrix = csr_array((amounts, (rows, columns)), shape=(horizon * pools, len(options)))
        return LinearConstraint(matrix, -np.inf, limits)

    @staticmethod
    def _at_most(figure: Floats, limit: float) -> LinearConstraint:
        """Scaled, so that the solver's tolerance is relative."""
        scale = max(abs(limit), float(np.abs(figure).max(initial=0.0)) * _TOLERANCE, 1e-300)
        return LinearConstraint(csr_array((figure / scale)[np.newaxis]), -np.inf, limit / scale + 1e-9)

    def _solve(
        self, figure: Floats, more: Sequence[LinearConstraint], among: NDArray[np.bool_] | None = None
    ) -> Numbers:
        """Columns of the schedule that has the least sum of a figure."""
        upper = np.ones(len(figure)) if among is None else among.astype(np.float64)
        scale = float(np.abs(figure).max(initial=0.0)) or 1.0
        for presolve in (True, False):  # HiGHS fails now and then on what it made simpler, not on what it was given
            solved = milp(
                figure / scale,
                integrality=np.ones(len(figure)),
                bounds=Bounds(0.0, upper),
                constraints=[*self._rows, *more],
                options={"time_limit": self._seconds, "mip_rel_gap": 0.0, "presolve": presolve},
            )
            if solved.status != _OTHER:
                break
        if solved.status == _INFEASIBLE:
            raise _Infeasible
        if solved.status != 0:
            raise SolverFailure(solved.message)
        return np.flatnonzero(np.rint(solved.x))

    def _point(self, columns: Numbers) -> Point:
        """The schedule of some columns."""
        ordered = columns[np.argsort(self._task[columns], kind="stable")]
        tasks = self._instance.tasks
        return Point(
            float(self._period[ordered].sum()),
            float(self._money[ordered].sum()),
            float(self._ends[ordered].max()),
            tuple((self._start[ordered] * self._instance.slot).tolist()),
            tuple(
                tasks[task].options[choice]
                for task, choice in zip(self._task[ordered], self._choice[ordered], strict=True)
            ),
        )
