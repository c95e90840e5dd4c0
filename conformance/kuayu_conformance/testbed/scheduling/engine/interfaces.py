"""What the engine asks of topology, workload and law: protocols, so that each can be replaced in a test by a few lines.

Places are named; links are numbered by their place in ``Topology.links``. A link may begin or end at a place that is no
site (an exchange): the engine finds routes of least round-trip time over all links. SI units: bits a second on links,
bytes of what is moved, seconds; work is counted in device seconds of the reference device.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.values import Dataset, DeviceType, Job, Link, Placement, Site

Numbers = NDArray[np.intp]
Floats = NDArray[np.float64]


class LinkVariation(Protocol):
    """What varies with time alone: pure functions, so that they may be asked in any order and again."""

    def factor(self, links: Numbers, instant: float) -> Floats:
        """Share of its capacity that each of some links offers, zero while it is cut; shape of ``links``."""

    def until(self, links: Numbers, instant: float) -> Floats:
        """When each factor changes next, later than ``instant``; infinite where it does not; shape of ``links``."""

    def tariff(self, instant: float) -> float:
        """Factor of all tariffs by the time of day."""

    def tariff_seconds(self, since: float, until: float) -> float:
        """Integral of ``tariff``, in seconds: what holding a bit a second costs is that times the link's tariff."""

    def price(self, instant: float) -> float:
        """Factor of the prices of devices by the time of day."""


class Topology(Protocol):
    """Where jobs can run."""

    @property
    def sites(self) -> tuple[Site, ...]:
        """Domains."""

    @property
    def links(self) -> tuple[Link, ...]:
        """Links, one for each direction."""

    @property
    def devices(self) -> Mapping[str, DeviceType]:
        """Accelerators by name; every device of a pool is among them."""

    @property
    def variation(self) -> LinkVariation:
        """What varies with time."""


class Workload(Protocol):
    """What is submitted."""

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Jobs in the order of ``submitted``; ``data`` is a key of ``datasets``."""

    @property
    def datasets(self) -> Mapping[str, Dataset]:
        """Data sets by name."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Traffic between two domains of a job that is split over them, in one direction.

    Attributes:
        source: Domain where it begins.
        target: Domain where it ends.
        wish: Bits a second beyond which more is of no use to it, or infinite.
    """

    source: str
    target: str
    wish: float


@dataclass(frozen=True, slots=True)
class Speed:
    """How a placed job goes on with what its flows were granted.

    Attributes:
        rate: Work a second, in reference devices; the penalty on quality is charged already.
        computing: Share of the time in which its devices compute rather than wait for the network.
        occupied: Bits a second that each flow holds on average, in the order of ``Law.flows``; at most what it was
            granted.
    """

    rate: float
    computing: float
    occupied: tuple[float, ...]


class Law(Protocol):
    """How fast a placed job is, and what moving it costs. Devices are known to it from its construction.

    The engine asks with the true job; policies ask with what is known of it: ``work`` as stated, ``used`` as measured,
    or one before the job has run.
    """

    def flows(self, job: Job, placement: Placement) -> tuple[Flow, ...]:
        """Traffic of a job between the domains of its placement; empty in one domain."""

    def speed(self, job: Job, placement: Placement, granted: Sequence[float]) -> Speed:
        """Speed with so many bits a second for each of its flows.

        It is that of staged data and a running job, and depends on neither ``work`` nor ``stated``. Rate zero means
        that it does not go on until more is granted.
        """

    def stated_work(self, job: Job) -> float:
        """Work of a job if what it states is true: ``stated`` times its rate on ``requested`` reference devices."""

    def saving(self, job: Job, placement: Placement) -> float:
        """Seconds from the order to stop until its checkpoint is written and its devices are free."""

    def restart(self, job: Job, placement: Placement) -> float:
        """Seconds from the arrival of all data until the first step of a job that goes on from a checkpoint."""

    def interval(self, job: Job, placement: Placement) -> float:
        """Seconds between its checkpoints: what is younger is lost when a node fails."""
