"""The judge's clusters: what happens by itself, what a policy sees at an epoch, and what its orders do."""

from collections.abc import Sequence
from math import ceil, inf

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.clock import Clock
from kuayu_conformance.testbed.scheduling.engine.copies import KEPT, Copies
from kuayu_conformance.testbed.scheduling.engine.dispatch import Dispatch
from kuayu_conformance.testbed.scheduling.engine.disturbances import CALM, Disturbances, Fault, Faults
from kuayu_conformance.testbed.scheduling.engine.interfaces import Law, Topology, Workload
from kuayu_conformance.testbed.scheduling.engine.orders import Order, Refused
from kuayu_conformance.testbed.scheduling.engine.outcome import Gauges, Outcome, Period, Record
from kuayu_conformance.testbed.scheduling.engine.places import Places
from kuayu_conformance.testbed.scheduling.engine.policy import Policy
from kuayu_conformance.testbed.scheduling.engine.progress import Phase
from kuayu_conformance.testbed.scheduling.engine.queue import Queue
from kuayu_conformance.testbed.scheduling.engine.register import Register
from kuayu_conformance.testbed.scheduling.engine.reports import Reports
from kuayu_conformance.testbed.scheduling.engine.routes import Routes
from kuayu_conformance.testbed.scheduling.engine.stages import Stages
from kuayu_conformance.testbed.scheduling.engine.traffic import Traffic
from kuayu_conformance.testbed.scheduling.engine.view import Parts, View

EPOCH = 60.0
"""Seconds between decisions, unless more are asked for."""


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
        kept: Seconds that a copy of data stays after its last use.
    """

    def __init__(
        self,
        topology: Topology,
        workload: Workload,
        law: Law,
        seed: str,
        disturbances: Disturbances = CALM,
        kept: float = KEPT,
    ) -> None:
        self._clock = Clock()
        self._places = places = Places(topology.sites, topology.devices)
        self._jobs = workload.jobs
        self._register = Register(self._jobs, places, law)
        numbers = {name: number for number, name in enumerate(places.sites)}
        copies = Copies(workload.datasets, numbers, kept)
        self._traffic = Traffic(topology, Routes(places.sites, topology.wires), len(self._jobs))
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
        self._refused: tuple[Refused, ...] = ()
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

    def obey(self, orders: Sequence[Order]) -> tuple[Refused, ...]:
        """Carry out orders in turn; those that could not be carried out."""
        self._decisions += 1
        self._traffic.shares(self.now)
        view = self._view()
        answers = [(order, self._dispatch.obey(order, view)) for order in orders]
        self._refused = tuple(Refused(order, why) for order, why in answers if why)
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
        available, held = stages.holdings.device_seconds(now)
        computing, work = stages.done_by(now)
        jobs = tuple(self._record(number, float(bill.of_job[number])) for number in range(self._arrived))
        return Outcome(
            now, jobs, bill.bits, bill.money, available, held, computing, work, self._decisions, self._refusals
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
        available, held = stages.holdings.device_seconds(now)
        bits, work = self._traffic.bill(now).bits, stages.done_by(now)[1]
        return Gauges(now, bits, available, held, work, len(waiting), int(self._register.requested[waiting].sum()))

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
