"""The law as the engine and policies ask it."""

from collections.abc import Mapping, Sequence

from kuayu_conformance.testbed.scheduling.engine.interfaces import Flow, Speed, Topology
from kuayu_conformance.testbed.scheduling.engine.traffic import Routes
from kuayu_conformance.testbed.scheduling.law import moving
from kuayu_conformance.testbed.scheduling.law.facts import PUBLISHED, Constants
from kuayu_conformance.testbed.scheduling.law.terms import Terms, terms
from kuayu_conformance.testbed.scheduling.values import DeviceType, Job, Placement


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
        return moving.saving(job.model.checkpoint, placement, self._constants)

    def restart(self, job: Job, placement: Placement) -> float:
        """Seconds from the arrival of all data until the first step of a job that goes on from a checkpoint."""
        return moving.restart(job.model.checkpoint, placement, self._constants)

    def interval(self, job: Job, placement: Placement) -> float:
        """Seconds between its checkpoints: what is younger is lost when a node fails."""
        return moving.interval(job.model.checkpoint, placement, self._constants)

    def _round_trip(self, source: str, target: str) -> float:
        return self._round_trips[source, target]
