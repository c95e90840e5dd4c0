"""B2, B3 and B3c: all domains as one queue, gone through in order.

1. **B2.** A job is offered to all domains, and the first that admits it wins, in the way of MultiKueue.
2. **B3.** Each job goes where it is expected to be finished first, with EASY backfill.
3. **B3c.** The greedy of B3 with cost: completion, money for bandwidth, and where a job is at its best, weighed.
"""

from collections.abc import Sequence
from math import inf
from zlib import crc32

import numpy as np

from kuayu_conformance.testbed.scheduling.baselines.candidates import (
    Schedule,
    Trust,
    Way,
    all_seconds,
    nearest,
    shrunk,
    spread,
    usable,
    way,
)
from kuayu_conformance.testbed.scheduling.baselines.tuned import Weights, tuned
from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.orders import Order, Start
from kuayu_conformance.testbed.scheduling.engine.state import Counts
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.values import DeviceType

_AGAIN = 600.0
"""Seconds after which those that wait look again at bandwidths and tariffs; ten epochs."""


class FirstToAdmit:
    """B2: in the order of the queue, each job to the first domain with room; who does not fit blocks nobody.

    Kueue's documentation, "MultiKueue" (all workers are offered a workload at once, the first to reserve quota keeps
    it) and "ClusterQueue" (``BestEffortFIFO``; flavours are tried in the order in which they are listed; partial
    admission). Which of several domains with room is first is chance there; here the name of the job decides where the
    round begins. A job that no pool could ever hold is admitted with fewer devices, as many as a pool has, if it runs
    on that; it is never spread.
    """

    def __init__(self) -> None:
        self._trust = Trust()
        self._ways: dict[int, tuple[tuple[int, int], ...]] = {}

    def decide(self, view: View) -> Sequence[Order]:
        """Start whoever fits anywhere."""
        free = self._trust.free(view)
        largest = int(free.max(initial=0))
        orders: list[Order] = []
        for number in view.pending.tolist():
            if largest == 0:
                break
            if min(view.register.requested[number], view.places.devices.max()) > largest:
                continue
            taken = self._admit(view, number, free)
            if taken:
                free[taken[0]] -= taken[1]
                largest = int(free.max())
                orders.append(Start(view.job(number).name, way(view, (taken,)).placement))
        return orders

    def _admit(self, view: View, number: int, free: Counts) -> tuple[int, int] | None:
        """The first pool with room, and how many of its devices."""
        ways = self._ways.get(number)
        if ways is None:
            ways = self._ways[number] = _offers(view, number)
        return next(((pool, devices) for pool, devices in ways if devices <= free[pool]), None)


class EarliestCompletion:
    """B3: in the order of the queue, each job to the pool where staging and running end first.

    The first job may wait for a pool that is held, if it is expected to be finished there before it would be in any
    that is free: it then has a reservation there. Jobs behind it start where they end first among the pools that are
    free, if that does not delay it. A job that no pool could hold is shrunk to 75 % of one, or spread over a pool and
    those of the nearest domains until all is there that it asks for, reconciled every 50 steps, whichever ends first.
    """

    def __init__(self) -> None:
        self._trust = Trust()
        self._ways: dict[int, tuple[Way, ...]] = {}

    def decide(self, view: View) -> Sequence[Order]:
        """Start whoever should not, or need not, wait."""
        schedule = Schedule(view, self._trust.free(view))
        orders: list[Order] = []
        self._prepare(view, schedule)
        self._place(view, schedule, view.pending.tolist(), orders)
        return orders

    def _place(self, view: View, schedule: Schedule, pending: list[int], orders: list[Order]) -> None:
        """Start jobs in the order in which they wait, until one rather waits; those behind it fill in."""
        for place, number in enumerate(pending):
            ways = self._of(view, number)
            ends = self._ends(view, number, ways)
            scores = self._scores(view, number, ways, ends)
            best = self._best_now(schedule, ways, ends, scores)
            if self._waits(view, schedule, ways, scores, best):
                self._backfill(view, schedule, pending[place + 1 :], orders)
                break
            if best is not None:
                self._start(view, schedule, number, ways[best], float(ends[best]), orders)

    def _prepare(self, view: View, schedule: Schedule) -> None:
        """What is found once for an epoch, before any job is looked at."""

    def _scores(self, view: View, number: int, ways: tuple[Way, ...], ends: Floats) -> Floats:
        """What a job goes by, the less the better, in seconds; a second that it waits is one more."""
        del view, number, ways
        return ends

    def _ordered(self, view: View, candidates: list[int]) -> list[int]:
        """Who is looked at first of those behind the one that waits."""
        del view
        return candidates

    def _rather_waits(
        self,
        view: View,
        schedule: Schedule,
        number: int,
        ways: tuple[Way, ...],
        figures: tuple[Floats, Floats],
        best: int,
    ) -> bool:
        """Whether one behind the one that waits does not take the best that is free; figures are ends and scores."""
        del view, schedule, number, ways, figures, best
        return False

    def _backfill(self, view: View, schedule: Schedule, pending: list[int], orders: list[Order]) -> None:
        for number in self._ordered(view, self._candidates(view, schedule, pending)):
            ways = self._of(view, number)
            if not any(schedule.fits(candidate.holding) for candidate in ways):
                continue
            ends = self._ends(view, number, ways)
            scores = self._scores(view, number, ways, ends)
            best = self._best_now(schedule, ways, ends, scores)
            if best is not None and not self._rather_waits(view, schedule, number, ways, (ends, scores), best):
                self._start(view, schedule, number, ways[best], float(ends[best]), orders)

    def _candidates(self, view: View, schedule: Schedule, pending: list[int]) -> list[int]:
        """Jobs that might start if their data were there: others need not be looked at one by one."""
        jobs = np.array(pending, dtype=np.intp)
        requested, left = view.register.requested[jobs], view.work_left(jobs)
        possible = requested > int(view.places.devices.max())
        for pool in np.flatnonzero(schedule.free > 0).tolist():
            rates = view.register.rates[jobs, view.places.type[pool]]
            ends = view.now + np.divide(left, rates, out=np.full(len(jobs), inf), where=rates > 0.0)
            possible |= schedule.may_admit(pool, requested, ends) & (rates > 0.0)
        return [int(number) for number in jobs[possible]]

    @staticmethod
    def _start(view: View, schedule: Schedule, number: int, candidate: Way, ends: float, orders: list[Order]) -> None:
        schedule.take(candidate.holding, ends)
        orders.append(Start(view.job(number).name, candidate.placement))

    @staticmethod
    def _best_now(schedule: Schedule, ways: tuple[Way, ...], ends: Floats, scores: Floats) -> int | None:
        """Which way is best of those that are free."""
        for place in np.argsort(scores, kind="stable").tolist():
            if scores[place] < inf and schedule.admits(ways[place].holding, float(ends[place])):
                return int(place)
        return None

    @staticmethod
    def _waits(view: View, schedule: Schedule, ways: tuple[Way, ...], scores: Floats, best: int | None) -> bool:
        """Whether the first job waits, for which it then has a reservation; nobody waits for what never comes."""
        limit = inf if best is None else float(scores[best])
        awaited = None
        for place, candidate in enumerate(ways):
            if scores[place] < limit:
                score = schedule.earliest(candidate.holding) - view.now + float(scores[place])
                if score < limit:
                    limit, awaited = score, candidate
        if awaited is not None:
            schedule.reserve(awaited.holding)
        return awaited is not None

    def _of(self, view: View, number: int) -> tuple[Way, ...]:
        ways = self._ways.get(number)
        if ways is None:
            ways = self._ways[number] = _ways(view, number)
        return ways

    @staticmethod
    def _ends(view: View, number: int, ways: tuple[Way, ...]) -> Floats:
        """When a job would be finished in each way if it had the devices now."""
        return view.now + all_seconds(view, number, ways)


class WeighedCompletion(EarliestCompletion):
    """B3c: as B3, but each job goes where a weighed sum is least.

    It is the seconds until completion, ``money`` times what staging, the checkpoint and the exchanges between domains
    would cost, and ``index`` times the seconds of running times what it lacks in advantage (one less that advantage, so
    that it may be negative). Staging is charged at the tariff of the hour, exchanges at those of the hours until the
    end. The first may wait as in B3, with a reservation. Others wait, without one, for what saves cost enough: they
    expect to wait until all devices together have done what stands before them in the queue, and no less than until
    those devices are free. Without weights it is B3.

    Args:
        weights: As tuned unless they are given.

    Attributes:
        weights: What they are.
    """

    def __init__(self, weights: Weights | None = None) -> None:
        super().__init__()
        self.weights = weights or tuned().weights
        self._advantages: dict[str, Floats] = {}
        self._lacking: dict[int, Floats] = {}
        self._ahead: dict[int, float] = {}
        self._idle: tuple[int, float] = (-1, 0.0)

    def decide(self, view: View) -> Sequence[Order]:
        """Start whoever should not wait; who has decided to wait looks again when something has changed, or later."""
        revision, until = self._idle
        if view.revision == revision and view.now < until:
            return ()
        orders = super().decide(view)
        if not orders:
            self._idle = view.revision, view.now + _AGAIN
        return orders

    def _prepare(self, view: View, schedule: Schedule) -> None:
        """How long all devices together need for what stands before each job."""
        del schedule
        if not self._advantages:
            self._advantages = advantages([view.topology.devices[name] for name in view.places.types])
        jobs = view.pending
        rates = view.register.rates[jobs].max(axis=1, initial=0.0)
        seconds = np.divide(view.work_left(jobs), rates, out=np.zeros(len(jobs)), where=rates > 0.0)
        held = seconds * view.register.requested[jobs] / view.places.devices.sum()
        self._ahead = dict(zip(jobs.tolist(), (np.cumsum(held) - held).tolist(), strict=True))

    def _scores(self, view: View, number: int, ways: tuple[Way, ...], ends: Floats) -> Floats:
        lacking = self._lacking.get(number)
        if lacking is None:
            lacking = self._lacking[number] = np.array(
                [1.0 - self._advantage(view, number, candidate) for candidate in ways]
            )
        staging, money = self._moving(view, number, ways)
        able = np.isfinite(ends)
        running = np.where(able, ends, 0.0) - view.now - np.where(able, staging, 0.0)
        for place in np.flatnonzero(able).tolist() if any(len(candidate.sites) > 1 for candidate in ways) else ():
            money[place] += self._exchanges(view, number, ways[place], float(ends[place]))
        paid = self.weights.money * np.where(able, money, 0.0)
        scores: Floats = ends + self.weights.index * running * lacking + paid
        return scores

    @staticmethod
    def _moving(view: View, number: int, ways: tuple[Way, ...]) -> tuple[Floats, Floats]:
        """Seconds and money for data and checkpoint, by way."""
        staging, money = view.staging(number), view.staging_money(number)
        if all(len(candidate.sites) == 1 for candidate in ways):
            sites = [candidate.sites[0] for candidate in ways]
            return staging[sites], money[sites]
        longest = [max(float(staging[site]) for site in candidate.sites) for candidate in ways]
        return np.array(longest), np.array([sum(float(money[site]) for site in candidate.sites) for candidate in ways])

    def _rather_waits(
        self,
        view: View,
        schedule: Schedule,
        number: int,
        ways: tuple[Way, ...],
        figures: tuple[Floats, Floats],
        best: int,
    ) -> bool:
        """Whether cost that is saved is worth more than the wait and what the job takes longer then.

        That it might be faster elsewhere is no reason: whoever waits for that behind others mostly waits in vain.
        """
        ends, scores = figures
        able = np.isfinite(scores)
        costs = np.where(able, scores, np.inf) - np.where(able, ends, 0.0)
        later = np.maximum(np.where(able, ends, np.inf) - ends[best], 0.0)
        saved, least = costs[best] - costs - later, self._ahead[number]
        return any(
            max(schedule.earliest(ways[place].holding) - view.now, least) < float(saved[place])
            for place in np.flatnonzero(saved > least).tolist()
        )

    @staticmethod
    def _exchanges(view: View, number: int, candidate: Way, ends: float) -> float:
        """Money for what domains exchange until the end."""
        if len(candidate.sites) == 1:
            return 0.0
        weather, site = view.topology.weather, view.places.site_number
        seconds = weather.tariff_seconds(view.now, ends) / weather.tariff(view.now)
        flows = view.law.flows(view.job(number), candidate.placement)
        held = view.speed(number, candidate.placement).occupied
        return sum(
            bits * seconds * float(view.tariffs[site(flow.source), site(flow.target)])
            for flow, bits in zip(flows, held, strict=True)
        )

    def _advantage(self, view: View, number: int, candidate: Way) -> float:
        """Mean over the devices of a way."""
        of_type = self._advantages[view.job(number).profile]
        held = sum(devices for _, devices in candidate.holding)
        return sum(float(of_type[view.places.type[pool]]) * devices for pool, devices in candidate.holding) / held


def advantages(kinds: Sequence[DeviceType]) -> dict[str, Floats]:
    """Comparative advantage by profile and accelerator, in the order of accelerators that are given.

    The efficiency of a profile on an accelerator is its index there over its best index on any other; its advantage is
    that over the mean of all profiles, so that a device which is best for everybody is nobody's in particular (D.
    Ricardo, "On the principles of political economy and taxation", 1817, chapter 7). One where there is one kind only.
    """
    profiles = sorted(kinds[0].index)
    if len(kinds) == 1:
        return {profile: np.ones(1) for profile in profiles}
    index = np.array([[kind.index[profile] for kind in kinds] for profile in profiles])
    others = [np.delete(index, kind, axis=1).max(axis=1) for kind in range(len(kinds))]
    efficiency = index / np.stack(others, axis=1)
    relative = efficiency / efficiency.mean(axis=0)
    return {profile: relative[row] for row, profile in enumerate(profiles)}


def _offers(view: View, number: int) -> tuple[tuple[int, int], ...]:
    """Pools in the order in which they are asked, and for how many devices."""
    pools = usable(view, number).tolist()
    begin = crc32(view.job(number).name.encode()) % len(view.places.sites)
    pools.sort(key=lambda pool: ((int(view.places.site[pool]) - begin) % len(view.places.sites), pool))
    sizes, requested = view.places.devices, int(view.register.requested[number])
    if any(sizes[pool] >= requested for pool in pools):
        return tuple((pool, requested) for pool in pools if sizes[pool] >= requested)
    return tuple((pool, int(sizes[pool])) for pool in pools if sizes[pool] >= view.register.minimum[number])


def _ways(view: View, number: int) -> tuple[Way, ...]:
    pools = usable(view, number).tolist()
    sizes, requested = view.places.devices, int(view.register.requested[number])
    enough = [pool for pool in pools if sizes[pool] >= requested]
    if enough:
        return tuple(way(view, ((pool, requested),)) for pool in enough)
    found = [shrunk(view, number, pool) for pool in pools]
    found += [spread(view, number, _around(view, pool, pools, requested)) for pool in pools]
    return tuple(candidate for candidate in found if candidate)


def _around(view: View, centre: int, pools: list[int], requested: int) -> tuple[int, ...]:
    """A pool and the largest of each of the nearest domains, until they have what is asked for."""
    chosen = [centre]
    for site in nearest(view, int(view.places.site[centre])):
        if sum(int(view.places.devices[pool]) for pool in chosen) >= requested:
            break
        own = [pool for pool in pools if view.places.site[pool] == site]
        if own:
            chosen.append(max(own, key=lambda pool: (int(view.places.devices[pool]), -pool)))
    return tuple(chosen)
