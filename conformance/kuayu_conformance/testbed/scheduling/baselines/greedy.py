"""B3: all domains as one queue; each job goes where it is expected to be finished first, with EASY backfill."""

from collections.abc import Sequence
from math import inf

import numpy as np

from kuayu_conformance.testbed.scheduling.baselines.easy import Schedule
from kuayu_conformance.testbed.scheduling.baselines.trust import Trust
from kuayu_conformance.testbed.scheduling.baselines.ways import Way, all_seconds, nearest, shrunk, spread, usable, way
from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.orders import Order, Start
from kuayu_conformance.testbed.scheduling.engine.view import View


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
