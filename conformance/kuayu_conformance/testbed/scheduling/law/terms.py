"""All that the speed of a placed job follows from, for one job or in arrays for many.

A job goes on in rounds: from one exchange between domains to the next. A round takes ``seconds``, and beyond that what
an exchange takes longer than is hidden: ``max(0, bits / bandwidth + latency - hidden)``. That holds for every split:

- none: no exchange, so that the rest of a round is nothing;
- synchronous: a round is a step, hidden is what a backward pass takes, and bits are those of a ring of all domains;
- periodic: a round is ``period`` steps; the rest is the same, and the work of a round counts less by its penalty;
- pipeline: a round is a step with the filling of the pipeline; each cut sends while stages compute, so that the slower
  of the two sets the pace, and the round trips of all cuts come on top.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.engine.interfaces import Flow, Speed
from kuayu_conformance.testbed.scheduling.law.exchanges import cut_bits, ring_bits, ring_latency
from kuayu_conformance.testbed.scheduling.law.facts import PUBLISHED, Constants
from kuayu_conformance.testbed.scheduling.law.quality import penalty
from kuayu_conformance.testbed.scheduling.law.steps import speed
from kuayu_conformance.testbed.scheduling.values import DeviceType, Job, Placement, Split

Floats = NDArray[np.float64]
RoundTrip = Callable[[str, str], float]


@dataclass(frozen=True, slots=True)
class Terms:
    """A round of a placed job.

    Attributes:
        work: What it brings to the end, in device seconds of the reference device; the penalty is charged.
        computing: Seconds of it in which devices compute.
        seconds: Seconds of it if the network is of no account.
        bits: Bits that the slowest flow has to move while the rest waits, all told.
        latency: Seconds that an exchange takes beside that.
        hidden: Seconds of an exchange behind which computing goes on.
        pairs: Domains between which there are flows, source and target.
        sent: Bits that each flow moves.
    """

    work: float
    computing: float
    seconds: float
    bits: float = 0.0
    latency: float = 0.0
    hidden: float = 0.0
    pairs: tuple[tuple[str, str], ...] = ()
    sent: float = 0.0

    def flows(self) -> tuple[Flow, ...]:
        """Its flows, with the bandwidth at which an exchange is hidden; infinite where it cannot be."""
        spare = self.hidden - self.latency
        wish = self.bits / spare if spare > 0.0 else inf
        return tuple(Flow(source, target, wish) for source, target in self.pairs)

    def lasts(self, bandwidth: float) -> float:
        """Seconds of a round if the slowest flow has so many bits a second; infinite without any."""
        if self.bits == 0.0:
            return self.seconds
        if bandwidth <= 0.0:
            return inf
        return self.seconds + max(0.0, self.bits / bandwidth + self.latency - self.hidden)

    def speed(self, granted: Sequence[float]) -> Speed:
        """Speed with so many bits a second for each flow."""
        lasts = self.lasts(min(granted, default=inf))
        return Speed(self.work / lasts, self.computing / lasts, (self.sent / lasts,) * len(self.pairs))


@dataclass(frozen=True, slots=True)
class Rows:
    """The same for many jobs, in arrays by job.

    Attributes:
        work: As in ``Terms``.
        computing: The same.
        seconds: The same.
        bits: The same.
        latency: The same.
        hidden: The same.
        sent: The same.
    """

    work: Floats
    computing: Floats
    seconds: Floats
    bits: Floats
    latency: Floats
    hidden: Floats
    sent: Floats

    @classmethod
    def of(cls, jobs: Sequence[Terms]) -> "Rows":
        """Those of some jobs, in their order."""
        fields = [(t.work, t.computing, t.seconds, t.bits, t.latency, t.hidden, t.sent) for t in jobs]
        return cls(*np.array(fields, dtype=np.float64).reshape(-1, 7).T)

    def lasts(self, bandwidth: Floats) -> Floats:
        """Seconds of a round of each job if its slowest flow has so many bits a second."""
        silent = self.bits == 0.0
        moved = np.full_like(self.bits, inf)
        with np.errstate(over="ignore"):  # what takes longer than any number says is as good as cut off
            np.divide(self.bits, bandwidth, out=moved, where=bandwidth > 0.0)
        waited = np.where(silent, 0.0, np.maximum(0.0, moved + self.latency - self.hidden))
        return self.seconds + waited

    def rates(self, bandwidth: Floats) -> Floats:
        """Work a second of each, in reference devices."""
        return self.work / self.lasts(bandwidth)

    def occupied(self, bandwidth: Floats) -> Floats:
        """Bits a second that each flow of each job holds on average."""
        return self.sent / self.lasts(bandwidth)


def terms(
    job: Job,
    placement: Placement,
    devices: Mapping[str, DeviceType],
    round_trip: RoundTrip,
    constants: Constants = PUBLISHED,
) -> Terms:
    """A round of a job in its placement; whether it fits there is for the engine to say.

    Args:
        job: What is placed; ``work`` and ``stated`` do not matter.
        placement: Where. Rings and pipelines go through the domains in its order.
        devices: Accelerators by name.
        round_trip: Seconds from one domain to another and back.
        constants: What is the same for all jobs.

    Raises:
        ValueError: The placement is none: no devices, a domain twice, several without a split, a period below one.
        KeyError: A device is unknown, or has no index for the profile of the job.
    """
    sites = _sites(placement)
    held = sum(share.devices for share in placement.shares)
    index = sum(share.devices * devices[share.device].index[job.profile] for share in placement.shares) / held
    fast = speed(
        held, index, requested=job.requested, maximum=job.maximum, serial=job.serial, used=job.used
    )  # fmt: skip
    done = job.used * job.requested * job.model.step
    step = done / fast
    if len(sites) == 1:
        return Terms(done, step, step)
    if placement.split is Split.PIPELINE:
        return _pipeline(job, sites, done, step, round_trip, constants)
    period = placement.period if placement.split is Split.PERIODIC else 1
    ring = tuple(zip(sites, (*sites[1:], sites[0]), strict=True))
    charged = penalty(len(sites), period) if placement.split is Split.PERIODIC else 1.0
    bits = ring_bits(len(sites), job.model.gradient)
    return Terms(
        work=period * done / charged,
        computing=period * step,
        seconds=period * step,
        bits=bits,
        latency=ring_latency(len(sites), max(round_trip(*pair) for pair in ring)),
        hidden=constants.overlap * step,
        pairs=ring,
        sent=bits,
    )


def _pipeline(
    job: Job, sites: tuple[str, ...], done: float, step: float, round_trip: RoundTrip, constants: Constants
) -> Terms:
    cuts = tuple(pairwise(sites))
    filling = 1.0 + len(cuts) / constants.micro_batches
    bits = cut_bits(job.model.boundary)
    return Terms(
        work=done,
        computing=step,
        seconds=filling * step + sum(round_trip(*cut) for cut in cuts),
        bits=filling * bits,
        hidden=filling * step,
        pairs=(*cuts, *((target, source) for source, target in cuts)),
        sent=bits,
    )


def _sites(placement: Placement) -> tuple[str, ...]:
    sites = tuple(share.site for share in placement.shares)
    if not sites or any(share.devices < 1 for share in placement.shares):
        raise ValueError("a placement without devices")
    if len(set(sites)) < len(sites):
        raise ValueError(f"a domain is named twice: {', '.join(sites)}")
    if len(sites) > 1 and placement.split is Split.NONE:
        raise ValueError(f"several domains without a split: {', '.join(sites)}")
    if placement.period < 1:
        raise ValueError(f"a period of {placement.period} steps")
    return sites
