"""Who starts where: each job in its turn, where it is best off, and without delaying who came before."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from minimal_server.core import Json
from minimal_server.packing import Free
from minimal_server.scene import Job, Scene, Way, seconds
from minimal_server.speeds import Prospect
from minimal_server.timeline import Timeline
from minimal_server.weighing import Outlook, Weighing, Weights

PATIENCE = 5
"""How many times its length a job waits before nobody that came later is tried before it."""
LOOKED_AT = 50
"""Jobs that have to wait for which devices are kept."""


@dataclass
class Ledger:
    """What is left of pools while jobs are placed: devices, offers, nodes, and what is to come."""

    free: list[int]
    offers: list[list[int]]
    nodes: list[Free]
    timelines: list[Timeline]

    def copy(self) -> "Ledger":
        """One that may be changed without changing this; what is to come is the same."""
        offers, nodes = [[*left] for left in self.offers], [{**free} for free in self.nodes]
        return Ledger([*self.free], offers, nodes, self.timelines)


@dataclass
class Seat:
    """What was decided for a job.

    Attributes:
        job: The job.
        way: How it runs, if any way was found.
        outlook: What is expected, if any way was found.
        starts: Whether it is given its devices now.
        offers: Numbers of the offers that it is given them from, share by share; None for pools without offers.
        nodes: On which nodes, share by share.
    """

    job: Job
    way: Way | None
    outlook: Outlook | None = None
    starts: bool = False
    offers: list[int | None] = field(default_factory=list)
    nodes: list[list[Json]] = field(default_factory=list)


class Choosing(Weighing):
    """Decides job by job."""

    def ledger(self, scene: Scene) -> Ledger:
        """What there is before anything is decided."""
        releases: list[list[tuple[float, int]]] = [[] for _ in scene.pools]
        for job in scene.running:
            end = self.ending(scene, job)
            for number, devices in scene.held(job).shares:
                releases[number].append((end, devices))
        return Ledger(
            [pool.free for pool in scene.pools],
            [[offer["devices"] for offer in pool.row.get("offers", ())] for pool in scene.pools],
            [{node["id"]: node["free"] for node in pool.row.get("nodes", ())} for pool in scene.pools],
            [Timeline(pool.free, given) for pool, given in zip(scene.pools, releases, strict=True)],
        )

    def ending(self, scene: Scene, job: Job) -> float:
        """Seconds from now until a running job is expected to give its devices back."""
        begin = max(0.0, seconds(job.row["ready_at"]) - scene.now) if "ready_at" in job.row else 0.0
        if job.row["phase"] == "interrupted":
            return begin
        rate = job.row.get("rate") or self.prospect(scene, job, scene.held(job)).rate
        return float(begin + job.left / rate) if rate else math.inf

    def queue(self, scene: Scene) -> list[Job]:
        """Jobs by priority, and those of one priority by how long they wait for how long they take."""

        def turn(job: Job) -> tuple[float, float, float]:
            lasting, submitted = self.length(job), seconds(job.spec["submitted_at"])
            priority, waited = -job.spec.get("priority", 0), max(0.0, scene.now - submitted)
            if self.overtaken_until(job) < scene.now:
                return priority, 0.0, submitted
            return priority, 1.0, -(waited + lasting) / lasting

        return sorted(scene.waiting, key=turn)

    def length(self, job: Job) -> float:
        """Seconds that a job takes on what it asked for of the reference device."""
        return max(60.0, job.left / job.requested)

    def overtaken_until(self, job: Job) -> float:
        """When a job goes before all of its priority that were submitted later, in seconds since 1970."""
        return seconds(job.spec["submitted_at"]) + PATIENCE * self.length(job)

    def seats(self, scene: Scene, weights: Weights, ledger: Ledger, *, everybody: bool) -> list[Seat]:
        """What becomes of each job; of those that wait, only some are looked at unless everybody is to be."""
        seats, waiting = [], 0
        for job in self.queue(scene):
            keeps = waiting < LOOKED_AT
            outlook = None
            if everybody or keeps or self.may_start(scene, job, ledger):
                outlook = self.best(scene, weights, job, ledger, later=everybody or keeps)
            seat = Seat(job, outlook.prospect.way if outlook else None, outlook)
            lies = outlook is None or self.lies(scene, ledger, job, outlook.prospect.way)
            if outlook and lies and self.starts_now(outlook) and self.buy(scene, ledger, seat):
                self.keep(ledger, outlook)
                seat.starts = True
                seat.outlook = self.outlook(scene, weights, job, outlook.prospect, 0.0, seat.offers)
            else:
                waiting += 1
                if outlook and lies and keeps:
                    self.keep(ledger, outlook)
            seats.append(seat)
        return seats

    def may_start(self, scene: Scene, job: Job, ledger: Ledger) -> bool:
        """Whether any pool has room for a job at all."""
        return any(job.most(free) and self.fits(pool, job) for pool, free in zip(scene.pools, ledger.free, strict=True))

    def best(self, scene: Scene, weights: Weights, job: Job, ledger: Ledger, *, later: bool) -> Outlook | None:
        """The best way of a job, now or later, or of those that begin now."""
        outlooks = [
            self.outlook(scene, weights, job, prospect, begin)
            for prospect in self.possible(scene, job, ledger, later=later)
            if (begin := self.begins(ledger, prospect, later=later)) < math.inf
        ]
        return min(outlooks, key=lambda one: one.score, default=None)

    def possible(self, scene: Scene, job: Job, ledger: Ledger, *, later: bool) -> list[Prospect]:
        """Ways of a job in pools as they are now, and as they would be if they were empty."""
        ways = dict.fromkeys(self.ways(scene, job, self.purchasable(scene, ledger)))
        if later:
            ways |= dict.fromkeys(self.ways(scene, job, [pool.row["devices"] for pool in scene.pools]))
        return self.prospects(scene, job, ways)

    def purchasable(self, scene: Scene, ledger: Ledger) -> list[int]:
        """Devices by pool that are free and can be bought in one way."""
        return [
            min(free, max(offers)) if pool.row.get("offers") else free
            for pool, free, offers in zip(scene.pools, ledger.free, ledger.offers, strict=True)
        ]

    def begins(self, ledger: Ledger, prospect: Prospect, *, later: bool) -> float:
        """Seconds until all devices of a way are free for as long as they are needed; infinite where now is asked."""
        if not later:
            lasting = prospect.lasting
            now = (ledger.timelines[number].has(devices, lasting) for number, devices in prospect.way.shares)
            return 0.0 if all(now) else math.inf
        return max(
            ledger.timelines[number].earliest(devices, prospect.lasting) for number, devices in prospect.way.shares
        )

    def lies(self, scene: Scene, ledger: Ledger, job: Job, way: Way) -> bool:
        """Whether nodes have room for a way as the job needs it."""
        need = job.spec.get("nodes")
        for number, devices in way.shares if need else ():
            nodes = scene.pools[number].row.get("nodes")
            if nodes is not None and not self.seats_for(nodes, ledger.nodes[number], devices, need):
                return False
        return True

    def starts_now(self, outlook: Outlook) -> bool:
        """Whether what is best begins at once."""
        return outlook.begin <= 0

    def buy(self, scene: Scene, ledger: Ledger, seat: Seat) -> bool:
        """Buy a job's devices, as cheaply as can be; whether that was possible."""
        shares = seat.way.shares if seat.way else ()
        if any(ledger.free[number] < devices for number, devices in shares):
            return False
        offers = [self.cheapest(scene.pools[number], devices, ledger.offers[number]) for number, devices in shares]
        if any(one is None and ledger.offers[number] for (number, _), one in zip(shares, offers, strict=True)):
            return False
        self.account(ledger, shares, offers, -1)
        seat.offers = offers
        return True

    def account(
        self, ledger: Ledger, shares: Sequence[tuple[int, int]], offers: Sequence[int | None], sign: int
    ) -> None:
        """Take devices and their offers, or give them back."""
        for (number, devices), offer in zip(shares, offers, strict=True):
            ledger.free[number] += sign * devices
            if offer is not None:
                ledger.offers[number][offer] += sign * devices

    def give_back(self, ledger: Ledger, seat: Seat) -> None:
        """Give back all that a job was given."""
        if not seat.way or not seat.starts:
            return
        self.account(ledger, seat.way.shares, seat.offers, 1)
        for (number, _), nodes in zip(seat.way.shares, seat.nodes, strict=True):
            for node in nodes:
                ledger.nodes[number][node["node"]] += node["devices"]

    def keep(self, ledger: Ledger, outlook: Outlook) -> None:
        """Nobody else is given the devices from then on."""
        for number, devices in outlook.prospect.way.shares:
            ledger.timelines[number].take(outlook.begin, outlook.prospect.lasting, devices)
