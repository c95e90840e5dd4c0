"""What a scenario of scheduling consists of: sites, devices, links, data, jobs, and where a job is placed.

SI units: bytes, bits a second on links, seconds, watts; money in the currency of the tariff. Work is counted in device
seconds of the reference device, so that a device of index 2 does a second's work in half a second.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class JobKind(StrEnum):
    """Kinds of jobs."""

    PRETRAINING = "pretraining"
    FINE_TUNING = "fine-tuning"
    TRAINING = "training"
    SERVING = "serving"


class Split(StrEnum):
    """How a job is spread over domains; names are those of ``SplitMode``."""

    NONE = "none"
    SYNCHRONOUS = "synchronous"
    PERIODIC = "periodic"
    PIPELINE = "pipeline"


@dataclass(frozen=True, slots=True)
class DeviceType:
    """An accelerator.

    Attributes:
        name: Name of the product.
        memory: Bytes.
        peak: FLOP/s of the matrix units in bf16, dense.
        index: Compute index by task profile; that of the reference device is one in all of them.
        power: Watts at work.
    """

    name: str
    memory: float
    peak: float
    index: Mapping[str, float]
    power: float


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one kind in a domain.

    Attributes:
        device: Name of the accelerator.
        nodes: How many nodes.
        per_node: Accelerators of a node.
        prices: Money for a device hour by way of buying it: ``on-demand``, ``reserved``, ``spot``.
    """

    device: str
    nodes: int
    per_node: int
    prices: Mapping[str, float]

    @property
    def devices(self) -> int:
        """All accelerators."""
        return self.nodes * self.per_node


@dataclass(frozen=True, slots=True)
class Site:
    """A domain as a place with pools.

    Attributes:
        name: Name of the domain.
        latitude: Degrees north.
        longitude: Degrees east.
        pools: Its nodes.
    """

    name: str
    latitude: float
    longitude: float
    pools: tuple[Pool, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """Link from one domain to another, in one direction.

    Attributes:
        source: Where it begins.
        target: Where it ends.
        capacity: Bits a second that are offered when nothing is wrong.
        round_trip: Seconds.
        tariff: Money for each bit a second that is held for a second, before the time of day counts.
    """

    source: str
    target: str
    capacity: float
    round_trip: float
    tariff: float


@dataclass(frozen=True, slots=True)
class Dataset:
    """What a job reads.

    Attributes:
        name: Its name.
        size: Bytes.
        sites: Domains that hold a copy from the beginning.
        pinned: Whether it may not leave them.
    """

    name: str
    size: float
    sites: tuple[str, ...]
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Model:
    """What the communication of a job follows from.

    Attributes:
        parameters: How many.
        gradient: Bytes exchanged by each replica at a step.
        boundary: Bytes that cross a pipeline cut at a step.
        checkpoint: Bytes of a checkpoint.
        step: Seconds of a step on the devices that were asked for, of the reference device.
    """

    parameters: float
    gradient: float
    boundary: float
    checkpoint: float
    step: float


@dataclass(frozen=True, slots=True)
class Job:
    """What was submitted, with what only the world knows.

    Attributes:
        name: Its name.
        kind: What it does.
        submitted: Seconds since the scenario began.
        home: Domain where it was submitted.
        tenant: Whose it is.
        priority: Higher goes first.
        deadline: Seconds since the scenario began, or infinite.
        requested: Devices that were asked for.
        minimum: Devices below which it does not run.
        maximum: Devices beyond which more are of no use.
        memory: Bytes that each device must have.
        profile: Task profile by which devices are compared.
        model: What its communication follows from.
        data: Name of the data set that it reads.
        serial: Share of its work that more devices do not shorten.
        stated: Seconds that it says it takes on what it asked for, of the reference device.
        work: Device seconds of the reference device that it truly takes; unknown to policies.
        used: Share of the requested devices that it keeps busy; unknown to policies before it has run.
        splits: How it may be spread over domains.
    """

    name: str
    kind: JobKind
    submitted: float
    home: str
    tenant: str
    priority: int
    deadline: float
    requested: int
    minimum: int
    maximum: int
    memory: float
    profile: str
    model: Model
    data: str
    serial: float
    stated: float
    work: float
    used: float
    splits: tuple[Split, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """Devices of one pool.

    Attributes:
        site: Name of the domain.
        device: Name of the accelerator.
        devices: How many.
    """

    site: str
    device: str
    devices: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a job runs, and how it is spread.

    Attributes:
        shares: Devices that it holds; one pool of a domain at most for each.
        split: How domains work together; ``none`` where there is one.
        period: Steps between reconciliations of a periodic split, else one.
    """

    shares: tuple[Share, ...]
    split: Split = Split.NONE
    period: int = 1

    @property
    def readers(self) -> tuple[str, ...]:
        """Domains that need the whole data set before the job begins.

        Every replica reads all of it in turn, since epochs are shuffled; of a pipeline only the first stage reads.
        """
        sites = tuple(share.site for share in self.shares)
        return sites[:1] if self.split is Split.PIPELINE else sites
