"""The law as the engine and policies ask it: how fast a placed job is, and what moving it costs.

1. **Moving.** Staging, checkpoints, restarts and migration, in bytes and seconds.
2. **Law.** :class:`PublishedLaw` follows published measurements.
"""

from collections.abc import Mapping, Sequence
from math import inf, sqrt

from kuayu_conformance.testbed.scheduling.engine.interfaces import Flow, Speed, Topology
from kuayu_conformance.testbed.scheduling.engine.traffic import Routes
from kuayu_conformance.testbed.scheduling.law.terms import PUBLISHED, Constants, Terms, terms
from kuayu_conformance.testbed.scheduling.values import DeviceType, Job, Placement, Split

_BITS = 8.0


def transfer(size: float, bandwidth: float, round_trip: float = 0.0) -> float:
    """Seconds in which so many bytes arrive over so many bits a second; infinite if none are granted."""
    if size <= 0.0:
        return 0.0
    return size * _BITS / bandwidth + round_trip if bandwidth > 0.0 else inf


def saving(checkpoint: float, placement: Placement, constants: Constants = PUBLISHED) -> float:
    """Seconds in which a checkpoint is written: by the largest replica, since all are alike, or by all stages."""
    counts = [share.devices for share in placement.shares]
    writers = sum(counts) if placement.split is Split.PIPELINE else max(counts)
    return checkpoint / (constants.storage * writers)


def restart(checkpoint: float, placement: Placement, constants: Constants = PUBLISHED) -> float:
    """Seconds until the first step: processes begin, and the smallest replica, or all stages, read the checkpoint."""
    counts = [share.devices for share in placement.shares]
    counted = sum(counts) if placement.split is Split.PIPELINE else min(counts)
    return constants.starting + checkpoint / (constants.storage * counted)


def interval(checkpoint: float, placement: Placement, constants: Constants = PUBLISHED) -> float:
    """Seconds between checkpoints: ``√(2 · saving · time between faults)``, and no less than saving takes.

    J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17 (1974). They are written
    while the job goes on, so that they do not slow it.
    """
    saving_time = saving(checkpoint, placement, constants)
    between = constants.between_faults / sum(share.devices for share in placement.shares)
    return max(saving_time, sqrt(2.0 * saving_time * between))


def migration(
    checkpoint: float,
    missing: float,
    before: Placement,
    after: Placement,
    bandwidth: float,
    round_trip: float = 0.0,
    constants: Constants = PUBLISHED,
) -> float:
    """Seconds without progress when a job moves: saved, sent with the data that the new place lacks, and begun again.

    Args:
        checkpoint: Bytes of it.
        missing: Bytes of data that go the same way.
        before: Where the job was.
        after: Where it goes on.
        bandwidth: Bits a second between the two.
        round_trip: Seconds between them.
        constants: What is the same for all jobs.
    """
    sent = transfer(checkpoint + missing, bandwidth, round_trip)
    return saving(checkpoint, before, constants) + sent + restart(checkpoint, after, constants)


class PublishedLaw:
    """How fast a placed job is, and what moving it costs, by published measurements.

    Args:
        devices: Accelerators by name.
        round_trips: Seconds from one domain to another and back, for every pair that a job may be split over.
        constants: What is the same for all jobs.
    """

    def __init__(
        self,
        devices: Mapping[str, DeviceType],
        round_trips: Mapping[tuple[str, str], float],
        constants: Constants = PUBLISHED,
    ) -> None:
        self._devices = devices
        self._round_trips = round_trips
        self._constants = constants

    @classmethod
    def of(cls, topology: Topology, constants: Constants = PUBLISHED) -> "PublishedLaw":
        """That of a topology, with the round trips of the engine's routes."""
        names = [site.name for site in topology.sites]
        seconds = Routes(names, topology.wires).round_trips
        pairs = {(a, b): float(seconds[i, j]) for i, a in enumerate(names) for j, b in enumerate(names)}
        return cls(topology.devices, pairs, constants)

    def terms(self, job: Job, placement: Placement) -> Terms:
        """What speed and flows follow from; to be kept by whoever asks again with other bandwidths.

        Raises:
            ValueError: The placement is none.
            KeyError: A device or a pair of domains is unknown.
        """
        return terms(job, placement, self._devices, self._round_trip, self._constants)

    def flows(self, job: Job, placement: Placement) -> tuple[Flow, ...]:
        """Traffic of a job between the domains of its placement; empty in one domain."""
        return self.terms(job, placement).flows()

    def speed(self, job: Job, placement: Placement, granted: Sequence[float]) -> Speed:
        """Speed with so many bits a second for each of its flows."""
        return self.terms(job, placement).speed(granted)

    def stated_work(self, job: Job) -> float:
        """Work of a job if what it states is true: ``stated`` times its rate on ``requested`` reference devices."""
        return job.stated * job.used * job.requested

    def saving(self, job: Job, placement: Placement) -> float:
        """Seconds from the order to stop until its checkpoint is written and its devices are free."""
        return saving(job.model.checkpoint, placement, self._constants)

    def restart(self, job: Job, placement: Placement) -> float:
        """Seconds from the arrival of all data until the first step of a job that goes on from a checkpoint."""
        return restart(job.model.checkpoint, placement, self._constants)

    def interval(self, job: Job, placement: Placement) -> float:
        """Seconds between its checkpoints: what is younger is lost when a node fails."""
        return interval(job.model.checkpoint, placement, self._constants)

    def _round_trip(self, source: str, target: str) -> float:
        return self._round_trips[source, target]
