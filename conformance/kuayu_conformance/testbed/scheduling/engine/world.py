"""The judge's clusters: what happens by itself, what a policy sees at an epoch, and what its orders do.

1. **Disturbances.** Nodes fail, domains are cut off, boast, or are slow, whatever the policy does.
2. **Reports.** Domains report the truth of their devices, or what was true when they were cut off, or more.
3. **Checks.** An order can be carried out where its job could run at all, and devices are free for it beside those that
   it has.
4. **Dispatch.** Orders are checked, then carried out, or refused with a reason.
5. **World.** Everything follows from topology, workload, law, disturbances, seed and the orders.
6. **Play.** A policy decides in a world, in Python or compiled, at each epoch until an instant, or until all jobs are
   finished.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Protocol

import numpy as np

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.scheduling.engine.interfaces import Law, Topology, Workload
from kuayu_conformance.testbed.scheduling.engine.orders import Move, Order, Refusal, RefusedOrder, Resize, Start, Stop
from kuayu_conformance.testbed.scheduling.engine.stages import Clock, Stages
from kuayu_conformance.testbed.scheduling.engine.state import (
    COPY_LIFETIME,
    Copies,
    Counts,
    Gauges,
    Holding,
    Holdings,
    Outcome,
    Period,
    Phase,
    Places,
    Queue,
    Record,
    Register,
    beyond,
)
from kuayu_conformance.testbed.scheduling.engine.traffic import Routes, Traffic
from kuayu_conformance.testbed.scheduling.engine.view import Parts, Policy, View
from kuayu_conformance.testbed.scheduling.values import Job, Placement, Share, Split

LLAMA_3_FAILURES = 419 / (54 * 86_400.0 * 16_384 / 8)
"""Unexpected interruptions for a node of eight devices and a second: 419 in 54 days on 16 384 accelerators.

Grattafiori et al., "The Llama 3 herd of models", arXiv:2407.21783, section 3.3.4.
"""
EPOCH = 60.0
"""Seconds between decisions, unless more are asked for."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A domain is partitioned from the others and from the policy.

    Its jobs run on; links that end there offer nothing, orders that concern it are refused, and what is reported of its
    devices is what was true when it began.
    """

    site: str
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Claim:
    """A domain reports so many times the devices that it has; it refuses what it cannot hold."""

    site: str
    factor: float
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Disturbances:
    """What goes wrong.

    Attributes:
        failures: Failures of a node in a second.
        repair: Mean seconds until a node that failed is back.
        cuts: Partitions; those of a domain do not overlap.
        claims: False reports.
        slow: Share of its speed on paper that jobs in a domain have in practice, by domain; one where it is not named.
    """

    failures: float = 0.0
    repair: float = 3_600.0
    cuts: tuple[Cut, ...] = ()
    claims: tuple[Claim, ...] = ()
    slow: Mapping[str, float] = field(default_factory=dict)


CALM = Disturbances()
"""Nothing goes wrong."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A node fails.

    Attributes:
        instant: Seconds since the scenario began.
        pool: Number of the pool.
        place: Where among the working devices of the pool it is, of [0, 1).
        repaired: When it is back.
    """

    instant: float
    pool: int
    place: float
    repaired: float


class Faults:
    """Faults one after the other: a Poisson process over all nodes, with exponential times of repair."""

    def __init__(self, disturbances: Disturbances, places: Places, seed: str) -> None:
        self._disturbances = disturbances
        self._chance = Chance(seed, "node faults")
        self._nodes = [
            (pool, float(nodes)) for pool, nodes in enumerate((places.devices // places.per_node).tolist()) if nodes
        ]
        self._rate = disturbances.failures * sum(nodes for _, nodes in self._nodes)
        self._now = 0.0

    def next(self) -> Fault | None:
        """The next one, or none if nodes do not fail."""
        if self._rate <= 0.0:
            return None
        self._now += exponential_variate(self._chance) / self._rate
        pool = self._chance.weighted(self._nodes)
        place = self._chance.fraction()
        return Fault(self._now, pool, place, self._now + exponential_variate(self._chance) * self._disturbances.repair)


def exponential_variate(chance: Chance) -> float:
    """A draw of mean one by comparisons alone, so that no logarithm can differ.

    J. von Neumann, "Various techniques used in connection with random digits", 1951: the length of a falling run of
    uniform draws is odd with probability exp(-first).
    """
    whole = 0.0
    while True:
        first = last = chance.fraction()
        length = 1
        while (drawn := chance.fraction()) < last:
            last = drawn
            length += 1
        if length % 2:
            return whole + first
        whole += 1.0


class Reports:
    """Devices as they are reported.

    Args:
        places: Pools by number.
        holdings: The truth.
        traffic: Links, which are cut with a domain.
        clock: Tells when.
        disturbances: What is planned.
        changed: Called when a report changes by itself.
    """

    def __init__(
        self,
        places: Places,
        holdings: Holdings,
        traffic: Traffic,
        clock: Clock,
        disturbances: Disturbances,
        changed: Callable[[], None],
    ) -> None:
        self._places, self._holdings, self._traffic, self._changed = places, holdings, traffic, changed
        self._cut: dict[int, tuple[Counts, Counts]] = {}
        self._claims: dict[int, float] = {}
        for cut in disturbances.cuts:
            clock.at(cut.since, self._cut_off, cut)
            clock.at(cut.until, self._heal, cut)
        for claim in disturbances.claims:
            clock.at(claim.since, self._boast, claim)
            clock.at(claim.until, self._repent, claim)

    @property
    def cut(self) -> frozenset[int]:
        """Numbers of the domains that cannot be reached."""
        return frozenset(self._cut)

    def devices(self) -> tuple[Counts, Counts]:
        """Working and free devices, by pool."""
        working, free = self._holdings.working.copy(), self._holdings.free.copy()
        for site, (then_working, then_free) in self._cut.items():
            pools = self._places.of_site[site]
            working[pools], free[pools] = then_working, then_free
        for site, factor in self._claims.items():
            pools = self._places.of_site[site]
            occupied = working[pools] - free[pools]
            working[pools] = np.rint(working[pools] * factor).astype(np.int64)
            free[pools] = np.maximum(working[pools] - occupied, 0)
        return working, free

    def _cut_off(self, cut: Cut) -> None:
        site = self._places.site_number(cut.site)
        pools = self._places.of_site[site]
        self._cut[site] = self._holdings.working[pools].copy(), self._holdings.free[pools].copy()
        self._rewire()

    def _heal(self, cut: Cut) -> None:
        del self._cut[self._places.site_number(cut.site)]
        self._rewire()

    def _rewire(self) -> None:
        names = {self._places.sites[site] for site in self._cut}
        links = self._traffic.topology.links
        self._traffic.cut({n for n, link in enumerate(links) if link.source in names or link.target in names})
        self._changed()

    def _boast(self, claim: Claim) -> None:
        self._claims[self._places.site_number(claim.site)] = claim.factor
        self._changed()

    def _repent(self, claim: Claim) -> None:
        del self._claims[self._places.site_number(claim.site)]
        self._changed()


def holding_of(places: Places, shares: tuple[Share, ...]) -> Holding | Refusal:
    """Shares by number, or why there are none."""
    try:
        holding = places.holding(shares)
    except KeyError:
        return Refusal.UNKNOWN_POOL
    if not shares or len({share.site for share in shares}) < len(shares):
        return Refusal.TWICE if shares else Refusal.SIZE
    return holding


def unfit(parts: Parts, number: int, placement: Placement, cut: frozenset[int]) -> Refusal | None:
    """Why a job could not run there even if all devices were free."""
    job = parts.register.known(number)
    holding = holding_of(parts.places, placement.shares)
    if isinstance(holding, Refusal):
        return holding
    if min(devices for _, devices in holding) < 1:
        return Refusal.SIZE
    if not job.minimum <= sum(devices for _, devices in holding) <= job.maximum:
        return Refusal.SIZE
    if any(parts.places.memory[parts.places.type[pool]] < job.memory for pool, _ in holding):
        return Refusal.MEMORY
    sites = [int(parts.places.site[pool]) for pool, _ in holding]
    if cut.intersection(sites):
        return Refusal.CUT_OFF
    return _unspreadable(job, placement) or _unreachable(parts, number, sites)


def fits(free: Counts, holding: Holding, present: Holding = ()) -> bool:
    """Whether devices are free for a job, in addition to those that it has."""
    return all(devices <= int(free[pool]) for pool, devices in beyond(holding, present))


class Dispatch:
    """Carries out orders.

    Args:
        parts: What a check looks at.
        stages: Jobs with devices.
        queue: Jobs without.
    """

    def __init__(self, parts: Parts, stages: Stages, queue: Queue) -> None:
        self._parts, self._stages, self._queue = parts, stages, queue

    def obey(self, order: Order, view: View) -> Refusal | None:
        """Carry out an order, or say why not; the view is that on which it was given."""
        number = self._parts.register.number.get(order.job)
        phase = Phase.ABSENT if number is None else self._stages.progress.phase[number]
        if number is None or phase == Phase.ABSENT:
            return Refusal.UNKNOWN_JOB
        if isinstance(order, Start):
            return self._start(number, order.placement, view) if phase == Phase.PENDING else Refusal.NOT_PENDING
        if phase != Phase.RUNNING:
            return Refusal.NOT_RUNNING
        if view.cut.intersection(int(self._parts.places.site[pool]) for pool, _ in self._stages.runs[number].holding):
            return Refusal.CUT_OFF
        if isinstance(order, Stop):
            self._stages.stop(number, None)
            return None
        if isinstance(order, Move):
            return self._move(number, order.placement, view)
        return self._resize(number, order, view)

    def _start(self, number: int, placement: Placement, view: View) -> Refusal | None:
        why = unfit(self._parts, number, placement, view.cut) or self._full(placement, ())
        if why is None:
            expected = view.expected(number, placement)
            self._queue.remove(number)
            self._stages.begin(number, placement, expected)
        return why

    def _move(self, number: int, placement: Placement, view: View) -> Refusal | None:
        why = unfit(self._parts, number, placement, view.cut)
        why = why or self._full(placement, self._stages.runs[number].holding)
        if why is None:
            self._stages.stop(number, placement, view.expected(number, placement))
        return why

    def _resize(self, number: int, order: Resize, view: View) -> Refusal | None:
        shares = self._stages.runs[number].placement.shares
        if len(shares) > 1:
            return Refusal.SPLIT
        return self._move(number, Placement((Share(shares[0].site, shares[0].device, order.devices),)), view)

    def _full(self, placement: Placement, present: Holding) -> Refusal | None:
        holding = holding_of(self._parts.places, placement.shares)
        if isinstance(holding, Refusal):
            return holding
        return None if fits(self._stages.holdings.free, holding, present) else Refusal.NO_ROOM


class World:
    """A scenario as it goes: everything follows from topology, workload, law, disturbances, seed and the orders.

    Time passes in :meth:`advance`, until the next epoch at which something is pending; :meth:`obey` then carries out
    was decided. Epochs are whole multiples of ``EPOCH``, or of what :meth:`advance` is given; what happens at the
    instant of one comes first.

    Args:
        topology: Where jobs can run.
        workload: What is submitted.
        law: How fast it is there.
        seed: Of the faults.
        disturbances: What goes wrong.
        copy_lifetime: Seconds that a copy of data stays after its last use.
    """

    def __init__(
        self,
        topology: Topology,
        workload: Workload,
        law: Law,
        seed: str,
        disturbances: Disturbances = CALM,
        copy_lifetime: float = COPY_LIFETIME,
    ) -> None:
        self._clock = Clock()
        self._places = places = Places(topology.sites, topology.devices)
        self._jobs = workload.jobs
        self._register = Register(self._jobs, places, law)
        numbers = {name: number for number, name in enumerate(places.sites)}
        copies = Copies(workload.datasets, numbers, copy_lifetime)
        self._traffic = Traffic(topology, Routes(places.sites, topology.links), len(self._jobs))
        speeds = np.array([disturbances.slow.get(name, 1.0) for name in places.sites])
        parts = (self._jobs, places, self._register, law, self._clock, self._traffic, copies)
        self._stages = Stages(*parts, self._wait, speeds)
        self._parts = Parts(
            topology,
            law,
            places,
            self._register,
            self._stages.progress,
            self._stages.runs,
            self._stages.checkpoint,
            self._traffic,
            copies,
        )
        self._queue = Queue(self._jobs)
        self._dispatch = Dispatch(self._parts, self._stages, self._queue)
        holdings = self._stages.holdings
        self._reports = Reports(places, holdings, self._traffic, self._clock, disturbances, self._changed)
        self._refused: tuple[RefusedOrder, ...] = ()
        self._arrived = self._decisions = self._refusals = 0
        self._faults = Faults(disturbances, places, seed)
        self._expect_fault()

    @property
    def now(self) -> float:
        """Seconds since the scenario began."""
        return self._clock.now

    @property
    def over(self) -> bool:
        """Whether all jobs have been submitted and are finished."""
        return self._arrived == len(self._jobs) and not self._queue and not self._stages.runs

    def advance(self, until: float, seconds: float = EPOCH) -> View | None:
        """Let time pass to the next epoch at which a job is pending; epochs are so many seconds apart.

        None if it is not before ``until``, or if all jobs are finished before.
        """
        epoch = (self.now // seconds + 1.0) * seconds
        while not self.over:
            due = epoch if self._queue else inf
            if self._next <= min(due, until):
                waited = bool(self._queue)
                self._happen(self._next)
                if not waited:
                    epoch = max(epoch, ceil(self.now / seconds) * seconds)
            elif due <= until:
                self._clock.now = due
                return self._view()
            else:
                assert until < inf, "something has to happen"
                self._clock.now = until
                return None
        return None

    def obey(self, orders: Sequence[Order]) -> tuple[RefusedOrder, ...]:
        """Carry out orders in turn; those that could not be carried out."""
        self._decisions += 1
        self._traffic.shares(self.now)
        view = self._view()
        answers = [(order, self._dispatch.obey(order, view)) for order in orders]
        self._refused = tuple(RefusedOrder(order, why) for order, why in answers if why)
        self._refusals += len(self._refused)
        self._stages.share()
        return self._refused

    def play(self, policy: Policy, until: float, seconds: float) -> bool:  # noqa: ARG002 - as the compiled world
        """Whether a policy was played without views and orders: not here."""
        return False

    def outcome(self) -> Outcome:
        """What has become of it by now; nothing changes by asking."""
        now, stages = self.now, self._stages
        bill = self._traffic.bill(now)
        available, occupied = stages.holdings.device_seconds(now)
        computing, work = stages.done_by(now)
        jobs = tuple(self._record(number, float(bill.of_job[number])) for number in range(self._arrived))
        return Outcome(
            now, jobs, bill.bits, bill.money, available, occupied, computing, work, self._decisions, self._refusals
        )

    def finished(self, first: int, beyond: int) -> bool:
        """Whether all jobs of some numbers are finished."""
        return bool((self._stages.tally.finished[first:beyond] < inf).all())

    def pace(self, number: int) -> float:
        """Work a second that an unfinished job may be taken to go on with: what nobody will see is imputed by it.

        That of the devices that it holds or held last; of a job that never held any, that of the pool which is fastest
        for it of those with room for it now, or of all if none has. Nought where no pool is large enough.
        """
        return self._stages.pace(number)

    def gauges(self) -> Gauges:
        """How it stands, without what became of each job; nothing changes by asking."""
        now, stages, waiting = self.now, self._stages, self._queue.numbers
        available, occupied = stages.holdings.device_seconds(now)
        bits, work = self._traffic.bill(now).bits, stages.done_by(now)[1]
        return Gauges(now, bits, available, occupied, work, len(waiting), int(self._register.requested[waiting].sum()))

    @property
    def _next(self) -> float:
        jobs = self._jobs
        submitted = jobs[self._arrived].submitted if self._arrived < len(jobs) else inf
        return min(submitted, self._clock.next)

    def _happen(self, instant: float) -> None:
        """Everything that is due at an instant."""
        self._clock.pass_to(instant)
        jobs = self._jobs
        while self._arrived < len(jobs) and jobs[self._arrived].submitted <= instant:
            self._register.admit(self._arrived)
            self._queue_up(self._arrived)
            self._arrived += 1
        self._stages.share()

    def _wait(self, job: int) -> None:
        """A job that has run is pending again."""
        self._register.again(job)
        self._queue_up(job)

    def _queue_up(self, job: int) -> None:
        self._queue.add(job)
        self._stages.progress.phase[job] = Phase.PENDING

    def _view(self) -> View:
        revision = self._queue.changes + self._stages.changes
        reports = self._reports
        return View(self._parts, self.now, revision, self._queue.numbers, reports.devices(), reports.cut, self._refused)

    def _changed(self) -> None:
        self._stages.changes += 1

    def _record(self, number: int, money: float) -> Record:
        job, tally, progress = self._jobs[number], self._stages.tally, self._stages.progress
        periods = list(tally.periods.get(number, ()))
        run = self._stages.runs.get(number)
        if run:
            periods.append(Period(run.placement, run.begin, run.running, run.stopped, inf))
        return Record(
            name=job.name,
            submitted=job.submitted,
            finished=float(tally.finished[number]),
            phase=Phase(progress.phase[number]),
            done=float(progress.at(np.array([number], dtype=np.intp), self.now)[0]),
            lost=float(tally.lost[number]),
            stops=tally.stops[number],
            moves=tally.moves[number],
            failures=tally.failures[number],
            money=money,
            periods=tuple(periods),
        )

    def _expect_fault(self) -> None:
        fault = self._faults.next()
        if fault:
            self._clock.at(fault.instant, self._fail, fault)

    def _fail(self, fault: Fault) -> None:
        hit, devices = self._stages.holdings.on_node(fault.pool, fault.place)
        for job in hit:
            self._stages.lose(job)
        if devices:
            self._stages.holdings.breaks(fault.pool, devices, self.now)
            self._clock.at(fault.repaired, self._repair, fault.pool, devices)
        self._stages.changes += 1
        self._expect_fault()

    def _repair(self, pool: int, devices: int) -> None:
        self._stages.holdings.repaired(pool, devices, self.now)
        self._stages.changes += 1


class AnyWorld(Protocol):
    """What :class:`.world.World` and the compiled world have in common; see there."""

    @property
    def now(self) -> float:
        """Seconds since the scenario began."""

    @property
    def over(self) -> bool:
        """Whether all jobs have been submitted and are finished."""

    def advance(self, until: float, seconds: float = EPOCH) -> View | None:
        """Let time pass to the next epoch at which a job is pending."""

    def obey(self, orders: Sequence[Order]) -> tuple[RefusedOrder, ...]:
        """Carry out orders in turn; those that could not be carried out."""

    def outcome(self) -> Outcome:
        """What has become of it by now."""

    def finished(self, first: int, beyond: int) -> bool:
        """Whether all jobs of some numbers are finished."""

    def pace(self, number: int) -> float:
        """Work a second that an unfinished job may be taken to go on with."""

    def gauges(self) -> Gauges:
        """How it stands, without what became of each job."""

    def play(self, policy: Policy, until: float, seconds: float) -> bool:
        """Let a policy decide until an instant, if the world knows how to do that by itself; whether it does."""


def play(world: AnyWorld, policy: Policy, until: float, seconds: float = EPOCH) -> None:
    """Let a policy decide at each epoch from now until an instant, or until all jobs are finished.

    Policies may take turns: one that warms a world up, then the one that is judged.

    Args:
        world: Goes on from where it is.
        policy: Is asked whenever a job is pending.
        until: Seconds since the scenario began.
        seconds: Between epochs.
    """
    if world.play(policy, until, seconds):
        return
    while (view := world.advance(until, seconds)) is not None:
        world.obey(policy.decide(view))


def _unspreadable(job: Job, placement: Placement) -> Refusal | None:
    alone = len(placement.shares) == 1
    if alone != (placement.split == Split.NONE) or (not alone and placement.split not in job.splits):
        return Refusal.SPLIT
    periodic = placement.split == Split.PERIODIC
    return None if placement.period >= 1 and (periodic or placement.period == 1) else Refusal.SPLIT


def _unreachable(parts: Parts, number: int, sites: list[int]) -> Refusal | None:
    """Data, checkpoint and gradients need a way."""
    data = parts.copies.datasets[parts.register.known(number).data]
    paths = parts.traffic.routes.paths
    always = parts.copies.always(data.name)
    saved = parts.checkpoint.get(number)
    for site in sites:
        if data.pinned and site not in always:
            return Refusal.DATA
        if site not in always and not any((source, site) in paths for source in always):
            return Refusal.NO_WAY
        if any(other != site and (other, site) not in paths for other in sites):
            return Refusal.NO_WAY
        if saved is not None and saved != site and (saved, site) not in paths:
            return Refusal.NO_WAY
    return None
