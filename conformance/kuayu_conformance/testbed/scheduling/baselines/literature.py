"""Policies of the literature over all domains as one queue: SRTF and DRF. No requirement is relative to them.

1. **SRTF.** The shortest remaining time first; longer jobs are preempted where that pays.

   - *Order.* By priority; of equal ones, by the seconds that a job is estimated to run yet on the accelerators that are
     fastest for it. On one machine that order has the least mean time from submission to end: L. Schrage, "A proof of
     the optimality of the shortest remaining processing time discipline", Operations Research 16(3), 1968. Clusters for
     deep learning are compared with it where durations are known: J. Gu et al., "Tiresias: a GPU cluster manager for
     distributed deep learning", NSDI 2019. Here they are known as well as a view tells.
   - *Placement.* As B3 does: where staging and running end first; the first that rather waits has a reservation, and
     those behind it fill in.
   - *Preemption.* Who still waits may take the place of jobs of no higher priority that have longer to run than itself.
     Those with the longest remaining time go first, and no more than are needed. Preempting is not free, as it is on
     the one machine: checkpoints are written and read, and a gang may displace several jobs. So it is done only if that
     shortens the sum of all times to the end: if the job ends earlier by more than those preempted end later, each by
     the time to the end of the job, until the next decision, and until it has restarted.
   - *No thrashing.* Devices that are being freed are reserved for whom they are freed, since otherwise others would
     fill them, and the next one would have to be preempted. A job that is staging, restarting or being saved is left
     alone.
2. **DRF.** Dominant resource fairness between tenants; nobody is preempted. A. Ghodsi et al., "Dominant resource
   fairness: fair allocation of multiple resource types", NSDI 2011.

   - *Resources* are the accelerators of each kind, in all domains together. A tenant's share of a kind is what its jobs
     hold of it over what there is of it; its dominant share is the greatest of these.
   - *Progressive filling* (algorithm 1 there): the tenant of least dominant share is next, and its next job is given
     devices; then it is seen anew who is next. The next job of a tenant is that which comes first in the queue, so that
     priorities order a tenant's own jobs and not those of others. Tenants have equal weights.
   - *Placement.* There a task names what it needs of each resource; a job here can run on several kinds, in any domain.
     It goes where B3 would send it, where staging and running end first.
   - *Gangs.* There it ends when the next task does not fit. Here the first job that rather waits, or does not fit, has
     a reservation, since otherwise large jobs would never find enough devices free; whoever is next after it fills in
     where that does not delay it.
   - Shares change as jobs end: who holds more than its share keeps it until then, as there.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.baselines.greedy import Candidate, EarliestCompletion, Schedule
from kuayu_conformance.testbed.scheduling.engine.orders import Order, Start, Stop
from kuayu_conformance.testbed.scheduling.engine.state import Counts, Holding, Phase
from kuayu_conformance.testbed.scheduling.engine.view import View

_EPOCH = 60.0
"""Seconds between decisions as long as it has not been seen how many there are."""
_AGAIN = 600.0
"""Seconds after which it is decided anew although no job and no device has come or gone; ten epochs."""


@dataclass(frozen=True, slots=True)
class _Preemption:
    """What would become of a job if others were preempted for it.

    Attributes:
        candidate: Where it would run.
        victims: Places among the running of those who would be preempted.
        spare: Free devices that it would use beside theirs.
        ends: When it would be finished.
        net: Seconds by which it ends earlier, less those by which the victims end later.
    """

    candidate: Candidate
    victims: tuple[int, ...]
    spare: Holding
    ends: float
    net: float


class _Running:
    """Who may be preempted, while an epoch is being decided: whoever takes steps, and can be told to stop.

    Attributes:
        jobs: Numbers of the running.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self.jobs = view.running.tolist()
        self._remaining: list[float] = (view.ends - view.now).tolist()
        self._holdings = [dict(view.holding(number)) for number in self.jobs]
        self._closed: set[int] = set()
        self._of_pool: dict[int, list[int]] = {}
        for place in sorted(range(len(self.jobs)), key=lambda index: -self._remaining[index]):
            if self._preemptible(place):
                for pool in self._holdings[place]:
                    self._of_pool.setdefault(pool, []).append(place)

    def victims(self, missing: Mapping[int, int], longer: float, priority: int) -> tuple[int, ...] | None:
        """Places of those who have to go so that so many devices of each pool are free; None if too few may.

        Args:
            missing: Devices by pool.
            longer: Seconds than which a victim has to have more before it.
            priority: Than which it must not have a higher.
        """
        left = {pool: devices for pool, devices in missing.items() if devices > 0}
        chosen: list[int] = []
        for pool in missing:
            for place in self._of_pool.get(pool, ()):
                if left.get(pool, 0) <= 0 or self._remaining[place] <= longer:
                    break
                gone = place in self._closed or place in chosen
                if not gone and self._view.job(self.jobs[place]).priority <= priority:
                    chosen.append(place)
                    self._give(place, left, 1)
        if max(left.values()) > 0:
            return None
        for place in reversed(chosen.copy()):  # one that was taken later may have made an earlier one needless
            self._give(place, left, -1)
            if max(left.values()) <= 0:
                chosen.remove(place)
            else:
                self._give(place, left, 1)
        return tuple(chosen)

    def close(self, places: Sequence[int]) -> None:
        """These are preempted now."""
        self._closed.update(places)

    def _give(self, place: int, left: dict[int, int], sign: int) -> None:
        holding = self._holdings[place]
        for pool in holding.keys() & left.keys():
            left[pool] -= sign * holding[pool]

    def _preemptible(self, place: int) -> bool:
        view = self._view
        if view.phase(self.jobs[place]) != Phase.RUNNING:
            return False
        return not view.cut or view.cut.isdisjoint(int(view.places.site[pool]) for pool in self._holdings[place])


class ShortestRemainingTime(EarliestCompletion):
    """SRTF: in the order of remaining time, preemptive, each job to the pool where it ends first."""

    def __init__(self) -> None:
        super().__init__()
        self._freed_for: dict[int, Candidate] = {}
        self._idle: tuple[int, float] = (-1, 0.0)
        self._epoch, self._asked, self._left = _EPOCH, 0.0, False

    def decide(self, view: View) -> Sequence[Order]:
        """Start whoever should start, and preempt for whom that pays."""
        if self._left:  # who leaves somebody waiting is asked again at the next epoch
            self._epoch = view.now - self._asked
        self._asked = view.now
        revision, until = self._idle
        if view.revision == revision and view.now < until:
            return ()
        schedule = Schedule(view, self._trust.free(view))
        orders: list[Order] = []
        awaited = self._start_awaited(view, schedule, orders)
        waiting = [number for number in _by_remaining_time(view) if number not in awaited]
        self._place(view, schedule, waiting, orders)
        started = {order.job for order in orders if isinstance(order, Start)}
        self._preempt(view, schedule, [number for number in waiting if view.job(number).name not in started], orders)
        self._left = sum(isinstance(order, Start) for order in orders) < len(view.pending)
        if not orders:
            self._idle = view.revision, view.now + _AGAIN
        return orders

    def _start_awaited(self, view: View, schedule: Schedule, orders: list[Order]) -> set[int]:
        """Those for whom devices were freed have them; while these are still being freed, a reservation.

        Returns:
            Numbers of both. Others wait like anybody else, where devices broke or were not there after all.
        """
        awaited = set()
        pending = set(view.pending.tolist())
        saving = [number for number in view.running.tolist() if view.phase(number) == Phase.SAVING]
        freeing = {pool for number in saving for pool, _ in view.holding(number)}
        for number, candidate in list(self._freed_for.items()):
            ends = float(self._ends(view, number, (candidate,))[0]) if number in pending else inf
            if ends < inf and schedule.fits(candidate.holding):
                self._start(view, schedule, number, candidate, ends, orders)
                awaited.add(number)
            elif ends < inf and any(pool in freeing for pool, _ in candidate.holding):
                schedule.reserve(candidate.holding)
                awaited.add(number)
                continue
            del self._freed_for[number]
        return awaited

    def _preempt(self, view: View, schedule: Schedule, waiting: list[int], orders: list[Order]) -> None:
        """Preempt for each of those that wait, in their order, if it pays."""
        running: _Running | None = None
        for number in waiting:
            candidates = self._of(view, number)
            choices = list(zip(candidates, (self._ends(view, number, candidates) - view.now).tolist(), strict=True))
            later = min((schedule.earliest(candidate.holding) + seconds for candidate, seconds in choices), default=inf)
            # even a single victim with nothing to write and to read loses as much as the job takes
            choices = [
                (candidate, seconds)
                for candidate, seconds in choices
                if 2.0 * (seconds + self._epoch) < later - view.now
            ]
            if not choices:
                continue
            running = running or _Running(view)
            tried = (
                self._tried(view, schedule, running, number, candidate, seconds, later)
                for candidate, seconds in choices
            )
            best = max(filter(None, tried), key=lambda preemption: preemption.net, default=None)
            if best is not None and best.net > 0.0:
                orders += [Stop(view.job(running.jobs[place]).name) for place in best.victims]
                running.close(best.victims)
                schedule.take(best.spare, best.ends)
                self._freed_for[number] = best.candidate

    def _tried(
        self,
        view: View,
        schedule: Schedule,
        running: _Running,
        number: int,
        candidate: Candidate,
        seconds: float,
        later: float,
    ) -> _Preemption | None:
        """What preempting for a job comes to; None if too few may be preempted there, or none need be.

        Args:
            view: The epoch.
            schedule: What is free.
            running: Who may be preempted.
            number: Of the job.
            candidate: Where it would run.
            seconds: Of staging and running there.
            later: When it would be finished at the earliest without.
        """
        spare = _spare(schedule, candidate, view.now + seconds)
        free = dict(spare)
        missing = {pool: devices - free.get(pool, 0) for pool, devices in candidate.holding}
        if max(missing.values()) <= 0:
            return None
        victims = running.victims(missing, seconds, view.job(number).priority)
        if victims is None:
            return None
        stopped = [running.jobs[place] for place in victims]
        saving = max(view.law.saving(view.job(job), view.placement(job)) for job in stopped)
        ends = view.now + max(ceil(saving / self._epoch), 1) * self._epoch + seconds
        lost = sum(
            ends - view.now + self._epoch + view.law.restart(view.job(job), view.placement(job)) for job in stopped
        )
        return _Preemption(candidate, victims, spare, ends, later - ends - lost)


class DominantShares:
    """What tenants hold, while an epoch is being decided.

    Args:
        view: The epoch; jobs that hold devices count, also those that do not run yet.
    """

    def __init__(self, view: View) -> None:
        self._kinds, count = view.places.type, len(view.places.types)
        self._devices: Counts = np.bincount(self._kinds, weights=view.places.devices, minlength=count).astype(np.int64)
        self._held: defaultdict[str, Counts] = defaultdict(lambda: np.zeros(count, dtype=np.int64))
        for number in view.running.tolist():
            self.take(view.job(number).tenant, view.holding(number))

    def take(self, tenant: str, holding: Holding) -> None:
        """A tenant is given devices."""
        for pool, devices in holding:
            self._held[tenant][self._kinds[pool]] += devices

    def of(self, tenant: str) -> float:
        """Dominant share of a tenant, from zero to one."""
        return float((self._held[tenant] / self._devices).max())


class DominantResourceFairness(EarliestCompletion):
    """DRF: the tenant of least dominant share is next, its job goes to the pool where it ends first."""

    def __init__(self) -> None:
        super().__init__()
        self._idle: tuple[int, float] = (-1, 0.0)

    def decide(self, view: View) -> Sequence[Order]:
        """Start jobs of tenants in the order of their dominant shares."""
        revision, until = self._idle
        if view.revision == revision and view.now < until:
            return ()
        schedule, shares = Schedule(view, self._trust.free(view)), DominantShares(view)
        orders: list[Order] = []
        reserved = False
        for number in _in_turn(shares, _queues(view)):
            candidates = self._of(view, number)
            if reserved and not any(schedule.fits(candidate.holding) for candidate in candidates):
                continue
            ends = self._ends(view, number, candidates)
            best = self._best_now(schedule, candidates, ends, ends)
            if not reserved and self._waits(view, schedule, candidates, ends, best):
                reserved = True
            elif best is not None:
                self._start(view, schedule, number, candidates[best], float(ends[best]), orders)
                shares.take(view.job(number).tenant, candidates[best].holding)
        if not orders:
            self._idle = view.revision, view.now + _AGAIN
        return orders


def _spare(schedule: Schedule, candidate: Candidate, ends: float) -> Holding:
    """Free devices of a candidate that may be held until then without delaying who has a reservation."""
    free = ((pool, min(devices, int(schedule.free[pool]))) for pool, devices in candidate.holding)
    return tuple(part for part in free if part[1] > 0 and schedule.admits((part,), ends))


def _by_remaining_time(view: View) -> list[int]:
    """Those that wait: by priority, then by the seconds that they would run on what is fastest for them."""
    jobs = view.pending
    rates = view.register.rates[jobs].max(axis=1, initial=0.0)
    seconds = np.divide(view.work_left(jobs), rates, out=np.full(len(jobs), inf), where=rates > 0.0)
    priority: NDArray[np.int64] = np.array([view.job(number).priority for number in jobs.tolist()], dtype=np.int64)
    order: list[int] = jobs[np.lexsort((seconds, -priority))].tolist()
    return order


def _queues(view: View) -> dict[str, deque[int]]:
    """Those that wait by tenant, in the order of the queue."""
    queues: dict[str, deque[int]] = {}
    for number in view.pending.tolist():
        queues.setdefault(view.job(number).tenant, deque()).append(number)
    return queues


def _in_turn(shares: DominantShares, queues: Mapping[str, deque[int]]) -> Iterator[int]:
    """All who wait, always the next of the tenant that has least then; of equal ones that which is first by name."""
    left = dict(queues)
    while left:
        tenant = min(left, key=lambda name: (shares.of(name), name))
        yield left[tenant].popleft()
        if not left[tenant]:
            del left[tenant]
