"""How fast a job is where it is placed, when it begins, and what moving and exchanging cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from minimal_server.plans import Plans
from minimal_server.scene import Job, Path, Pool, Scene, Way

BITS = 8.0
HIDDEN = 2 / 3
"""Share of a step behind which an exchange hides."""
MICRO_BATCHES = 128
STORAGE = 122_070_312.5
"""Bytes a second at which each device reads and writes checkpoints."""
START_UP = 30.0


@dataclass(frozen=True)
class Round:
    """From one exchange to the next: work, seconds without a network, bits and seconds of latency, seconds that hide.

    Attributes:
        work: Seconds of a reference device.
        seconds: Of computing, and what is added whatever the bandwidth.
        bits: Bits that the slowest path has to carry meanwhile.
        latency: Seconds on top.
        hidden: Seconds of the exchange that cost nothing.
        sent: Bits that each path carries.
        paths: Paths that carry them.
    """

    work: float
    seconds: float
    bits: float = 0.0
    latency: float = 0.0
    hidden: float = 0.0
    sent: float = 0.0
    paths: tuple[Path, ...] = ()

    @property
    def lasting(self) -> float:
        """Seconds in all."""
        if not self.paths:
            return self.seconds
        bandwidth = min(path.bandwidth for path in self.paths)
        moving = self.bits / bandwidth if bandwidth > 0 else math.inf if self.bits else 0.0
        return self.seconds + max(0.0, moving + self.latency - self.hidden)


@dataclass(frozen=True)
class Prospect:
    """What is to be expected of a job in a way, from the moment that it is given the devices.

    Attributes:
        way: The way.
        staging: Seconds until its first step.
        rate: Work a second then.
        running: Seconds from there to its end.
        moving: Money for data and checkpoint.
        exchanging: Money for exchanges until the end.
    """

    way: Way
    staging: float
    rate: float
    running: float
    moving: float
    exchanging: float

    @property
    def lasting(self) -> float:
        """Seconds for which devices are held."""
        return self.staging + self.running

    @property
    def money(self) -> float:
        """For bandwidth."""
        return self.moving + self.exchanging


class Speeds(Plans):
    """The law of speeds."""

    def prospect(self, scene: Scene, job: Job, way: Way) -> Prospect:
        """What is to be expected of a job in a way."""
        staging, moving = self.staging(scene, job, way)
        lap = self.lap(scene, job, way)
        rate = lap.work / lap.lasting
        running = job.left / rate if rate > 0 else math.inf
        exchanging = self.exchanging(lap) * running if lap.paths and math.isfinite(running) else 0.0
        return Prospect(way, staging, rate, running, moving, exchanging)

    def worth(self, pool: Pool, job: Job) -> float:
        """Compute index of a pool's devices for a job; nought where it does not run there."""
        profile: str | None = job.spec.get("task_profile")
        if profile is None:
            return math.fsum(pool.indices.values()) / len(pool.indices)
        return pool.indices.get(profile, 0.0)

    def gain(self, devices: float, serial: float) -> float:
        """How much faster so many devices are than one."""
        return devices / (1 + serial * (devices - 1))

    def useful(self, job: Job, devices: int) -> float:
        """How many of so many devices a job keeps busy."""
        held: int = min(devices, job.spec["devices"]["maximum"])
        return min(held, job.used * max(held, job.requested))

    def fast(self, scene: Scene, job: Job, way: Way) -> float:
        """Work a second where no network is in the way."""
        serial: float = job.spec.get("serial_share", 0.0)
        busy = job.used * job.requested
        worth = sum(self.worth(scene.pools[number], job) * devices for number, devices in way.shares) / way.devices
        return worth * busy * self.gain(self.useful(job, way.devices), serial) / self.gain(busy, serial)

    def lap(self, scene: Scene, job: Job, way: Way) -> Round:
        """A round of a job."""
        fast = self.fast(scene, job, way)
        if fast <= 0:
            return Round(0.0, 1.0)
        if len(way.shares) == 1:
            return Round(fast, 1.0)
        needs = job.spec["communication"]
        done = job.used * job.requested * max(needs["step_time"], 1e-9)
        domains = scene.domains(way)
        if way.mode == "pipeline":
            return self.pipeline(scene, domains, done, done / fast, needs["boundary"] / 2 * BITS)
        return self.ring(scene, domains, done, done / fast, needs["exchange"] * BITS, way)

    def ring(self, scene: Scene, domains: list[str], done: float, step: float, bits: float, way: Way) -> Round:
        """All domains sum up what they have learned, each sending to the next."""
        paths = tuple(scene.network.path(*pair) for pair in pairwise([*domains, domains[0]]))
        count = len(domains)
        share = 2 * (count - 1) / count * bits
        latency = (count - 1) * max(path.round_trip for path in paths)
        penalty = self.penalty(count, way.period) if way.mode == "periodic" else 1.0
        steps = way.period if way.mode == "periodic" else 1
        return Round(steps * done / penalty, steps * step, share, latency, HIDDEN * step, share, paths)

    def pipeline(self, scene: Scene, domains: list[str], done: float, step: float, bits: float) -> Round:
        """Layers are cut between neighbours, and what crosses a cut goes both ways."""
        there = [scene.network.path(*pair) for pair in pairwise(domains)]
        back = [scene.network.path(other, one) for one, other in pairwise(domains)]
        filling = 1 + len(there) / MICRO_BATCHES
        seconds = filling * step + sum(path.round_trip for path in there)
        return Round(done, seconds, filling * bits, 0.0, filling * step, bits, (*there, *back))

    def penalty(self, domains: int, period: int) -> float:
        """How much more work it takes where models are reconciled so rarely."""
        lost = 0.0240 * (domains - 1) ** 0.818 * math.log(1 + period / 18.4)
        return float((1 + lost) ** (1 / 0.3658))

    def exchanging(self, lap: Round) -> float:
        """Money a second for the bandwidth that exchanges occupy."""
        lasting = lap.lasting
        return sum(lap.sent / lasting * path.tariff for path in lap.paths) if math.isfinite(lasting) else 0.0

    def staging(self, scene: Scene, job: Job, way: Way) -> tuple[float, float]:
        """Seconds until everything is where it is needed and processes run, and money for moving it."""
        seconds, money = 0.0, 0.0
        domains = scene.domains(way)
        for domain in domains[:1] if way.mode == "pipeline" else domains:
            moved = [self.moved(scene, size, at, domain, pinned=pinned) for size, at, pinned in job.artefacts]
            if job.saved is not None:
                moved.append(self.moved(scene, job.checkpoint, [job.saved], domain, pinned=False))
            seconds = max(seconds, sum(taken for taken, _ in moved))
            money += sum(paid for _, paid in moved)
        return seconds + (0.0 if job.saved is None else self.restart(job, way)), money

    def moved(
        self, scene: Scene, size: float, holders: Sequence[str], domain: str, *, pinned: bool
    ) -> tuple[float, float]:
        """Seconds and money until a domain has a copy, from where the path offers most."""
        if domain in holders or not holders or (size <= 0 and not pinned):
            return 0.0, 0.0
        path = max((scene.network.path(holder, domain) for holder in holders), key=lambda path: path.bandwidth)
        if pinned or path.bandwidth <= 0:
            return math.inf, math.inf
        return size * BITS / path.bandwidth, size * BITS * path.tariff

    def restart(self, job: Job, way: Way) -> float:
        """Seconds until a job that goes on from a checkpoint has read it."""
        counts = [devices for _, devices in way.shares]
        readers = sum(counts) if way.mode == "pipeline" else min(counts)
        return START_UP + job.checkpoint / (STORAGE * readers)
