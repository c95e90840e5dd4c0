"""Small instances, written out: for each job the ways in which it could run, with seconds and money of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import ceil, inf

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Law, Numbers, Topology, Workload
from kuayu_conformance.testbed.scheduling.engine.state import Holding, Places
from kuayu_conformance.testbed.scheduling.engine.traffic import Routes
from kuayu_conformance.testbed.scheduling.values import Job, Placement, Share, Split

_BITS = 8.0


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
    """An instance of a scenario, at the weather and tariff of its begin.

    Ways are: in each pool the devices that a job asked for, or all; those below which it does not run; and ``shrunk``
    of the pool; and for one that may be spread periodically, all pairs of pools of different domains, in proportion to
    their sizes. Each way has the wires to itself, so that staging and exchanges may take longer in the engine, never
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
    scene = _Scene(topology, workload, law, period, shrunk)
    tasks = tuple(Task(job.name, job.submitted, 1.0, tuple(scene.options(job))) for job in workload.jobs)
    for task in tasks:
        if not task.options:
            raise ValueError(f"{task.name} can run nowhere")
    return Instance(tasks, tuple(scene.places.devices.tolist()), slot)


class _Scene:
    """Ways of jobs in a topology."""

    def __init__(self, topology: Topology, workload: Workload, law: Law, period: int, shrunk: float) -> None:
        self.places = Places(topology.sites, topology.devices)
        self._workload, self._law, self._period, self._shrunk = workload, law, period, shrunk
        routes = Routes(self.places.sites, topology.wires)
        every: Numbers = np.arange(len(topology.wires), dtype=np.intp)
        offered = np.array([wire.capacity for wire in topology.wires]) * topology.weather.factor(every, 0.0)
        self._offered = routes.narrowest(offered)
        tariffs = np.array([wire.tariff for wire in topology.wires]) * topology.weather.tariff(0.0)
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
