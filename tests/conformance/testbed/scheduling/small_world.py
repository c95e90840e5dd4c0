"""Worlds so small that what happens in them can be worked out by hand, and a law of whole numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Flow, Numbers, Speed
from kuayu_conformance.testbed.scheduling.engine.state import Outcome, Record
from kuayu_conformance.testbed.scheduling.engine.world import CALM, Disturbances, World
from kuayu_conformance.testbed.scheduling.values import (
    Dataset,
    DeviceType,
    Job,
    JobKind,
    Link,
    Model,
    Placement,
    Pool,
    Share,
    Site,
    Split,
)

GIGABIT = 1e9
FAST, PLAIN = "fast", "plain"
DEVICES = {
    PLAIN: DeviceType(PLAIN, 80e9, 1e15, {"any": 1.0}, 500.0),
    FAST: DeviceType(FAST, 80e9, 2e15, {"any": 2.0}, 700.0),
}


@dataclass(frozen=True)
class Steady:
    """Variation that changes at given instants only: factors of single links, and dear hours."""

    factors: Mapping[int, Sequence[tuple[float, float]]] = field(default_factory=dict)
    dear_after: float = inf

    def factor(self, links: Numbers, at: float) -> Floats:
        """Last factor that was given for a link, or one."""
        return np.array([self._of(int(link), at) for link in links])

    def until(self, links: Numbers, at: float) -> Floats:
        """The next instant that was given."""
        changes = [[since for since, _ in self.factors.get(int(link), ()) if since > at] for link in links]
        return np.array([min(each, default=inf) for each in changes])

    def tariff(self, at: float) -> float:
        """One, and twice that in dear hours."""
        return 2.0 if at >= self.dear_after else 1.0

    def tariff_seconds(self, since: float, until: float) -> float:
        """Dear seconds count twice."""
        return (until - since) + max(0.0, until - max(since, self.dear_after))

    def price(self, at: float) -> float:
        """The same as the tariff."""
        return self.tariff(at)

    def _of(self, link: int, at: float) -> float:
        return next((factor for since, factor in reversed(self.factors.get(link, ())) if since <= at), 1.0)


@dataclass(frozen=True)
class Map:
    """A topology."""

    sites: tuple[Site, ...]
    links: tuple[Link, ...]
    devices: Mapping[str, DeviceType] = field(default_factory=lambda: DEVICES)
    variation: Steady = field(default_factory=Steady)


@dataclass(frozen=True)
class Load:
    """A workload."""

    jobs: tuple[Job, ...]
    datasets: Mapping[str, Dataset]


class RoundLaw:
    """Speed is devices used times index; a periodic split loses a tenth, and needs a gigabit a second each way.

    Checkpoints take ten seconds to write, twenty to go on from, and are written every 100 s.
    """

    def flows(self, job: Job, placement: Placement) -> tuple[Flow, ...]:
        """A ring; a synchronous split takes all that it gets."""
        sites = [share.site for share in placement.shares]
        wish = inf if placement.split == Split.SYNCHRONOUS else job.model.gradient * 8
        pairs = zip(sites, [*sites[1:], sites[0]], strict=True)
        return tuple(Flow(source, target, wish) for source, target in pairs)

    def speed(self, job: Job, placement: Placement, granted: Sequence[float]) -> Speed:
        """Devices in use times index."""
        wanted = sum(share.devices * DEVICES[share.device].index["any"] for share in placement.shares)
        whole = wanted * job.used
        if not granted:
            return Speed(whole, 1.0, ())
        needed = job.model.gradient * 8
        share = min(1.0, min(granted) / needed)
        return Speed(whole * 0.9 * share, share, tuple(min(each, needed) for each in granted))

    def stated_work(self, job: Job) -> float:
        """As it says."""
        return job.stated * job.requested * job.used

    def saving(self, job: Job, placement: Placement) -> float:
        """Ten seconds."""
        del job, placement
        return 10.0

    def restart(self, job: Job, placement: Placement) -> float:
        """Twenty."""
        del job, placement
        return 20.0

    def interval(self, job: Job, placement: Placement) -> float:
        """A hundred."""
        del job, placement
        return 100.0


def site(name: str, devices: int, device: str = PLAIN, per_node: int = 8) -> Site:
    """A domain of one pool."""
    return Site(name, 0.0, 0.0, (Pool(device, devices // per_node, per_node, {}),))


def mesh(*sites: Site, gigabits: float = 8.0, tariff: float = 1.0, variation: Steady | None = None) -> Map:
    """Links between all; domains are the farther apart the farther they stand in the list."""
    links = tuple(
        Link(one.name, other.name, gigabits * GIGABIT, 0.001 * abs(here - there), tariff)
        for here, one in enumerate(sites)
        for there, other in enumerate(sites)
        if one is not other
    )
    return Map(sites, links, DEVICES, variation or Steady())


def job(name: str, home: str, devices: int, seconds: float, **other: float | str | tuple[Split, ...]) -> Job:
    """A job that takes so many seconds on so many plain devices, and says so."""
    used = float(str(other.get("used", 1.0)))
    fields = {
        "kind": JobKind.TRAINING,
        "submitted": 0.0,
        "tenant": "t",
        "priority": 0,
        "deadline": inf,
        "minimum": devices,
        "maximum": 10 * devices,
        "memory": 40e9,
        "profile": "any",
        "model": Model(1e9, 0.125e9, 1e6, 14e9, 1.0),
        "data": home,
        "serial": 0.0,
        "stated": seconds,
        "work": seconds * devices * used,
        "used": 1.0,
        "splits": (Split.PERIODIC, Split.SYNCHRONOUS),
        **other,
    }
    return Job(name=name, home=home, requested=devices, **fields)  # type: ignore[arg-type]


def load(*jobs: Job, **datasets: Dataset) -> Load:
    """Jobs whose data are at home and empty unless they are named."""
    at_home = {each.home: Dataset(each.home, 0.0, (each.home,)) for each in jobs}
    return Load(tuple(sorted(jobs, key=lambda each: each.submitted)), {**at_home, **datasets})


def world(topology: Map, workload: Load, disturbances: Disturbances = CALM) -> World:
    """With the law of whole numbers."""
    return World(topology, workload, RoundLaw(), "small", disturbances)


def at(place: str, devices: int, device: str = PLAIN) -> Placement:
    """Devices of one domain."""
    return Placement((Share(place, device, devices),))


def of(outcome: Outcome, name: str) -> Record:
    """What became of a job."""
    return next(record for record in outcome.jobs if record.name == name)
