"""B0 and B1: each domain schedules the jobs that are submitted there, and knows nothing of the others."""

from collections.abc import Sequence
from math import inf

import numpy as np

from kuayu_conformance.testbed.scheduling.baselines.easy import Schedule
from kuayu_conformance.testbed.scheduling.baselines.home_placements import HomePlacements
from kuayu_conformance.testbed.scheduling.baselines.trust import Trust
from kuayu_conformance.testbed.scheduling.baselines.ways import Way, seconds
from kuayu_conformance.testbed.scheduling.engine.interfaces import Numbers
from kuayu_conformance.testbed.scheduling.engine.orders import Order, Start
from kuayu_conformance.testbed.scheduling.engine.view import View


class HomeFifo:
    """B0: home domain, first come first served, all devices at once."""

    def __init__(self) -> None:
        self._placements, self._trust = HomePlacements(), Trust()

    def decide(self, view: View) -> Sequence[Order]:
        """Start who is first in its domain, until one does not fit."""
        schedule = Schedule(view, self._trust.free(view))
        orders: list[Order] = []
        waiting: dict[int, list[int]] = {}
        for number in view.pending.tolist():
            site, ways = self._placements.of(view, number)
            if site in waiting:
                waiting[site].append(number)
            elif ways and not self._start(view, schedule, number, orders):
                waiting[site] = []
                self._wait(view, schedule, number)
        self._backfill(view, schedule, waiting, orders)
        return orders

    def _start(self, view: View, schedule: Schedule, number: int, orders: list[Order]) -> bool:
        """Start a job in the best way in which it fits; whether there is one."""
        _, ways = self._placements.of(view, number)
        fitting = [candidate for candidate in ways if schedule.fits(candidate.holding)]
        timed = [(seconds(view, number, candidate), place) for place, candidate in enumerate(fitting)]
        for took, place in sorted(timed):
            if took < inf and schedule.admits(fitting[place].holding, view.now + took):
                schedule.take(fitting[place].holding, view.now + took)
                orders.append(Start(view.job(number).name, fitting[place].placement))
                return True
        return False

    def _wait(self, view: View, schedule: Schedule, number: int) -> None:
        """A job is the first that waits in its domain."""

    def _backfill(self, view: View, schedule: Schedule, waiting: dict[int, list[int]], orders: list[Order]) -> None:
        """Jobs stand behind the first that waits, by domain."""


class HomeBackfill(HomeFifo):
    """B1: home domain with EASY backfill, the traditional scheduling of single domains.

    The first that waits in a domain has a reservation where it is expected to finish first; who comes after it starts
    if that delays no reservation, of its own domain or of a split job of a neighbour. :class:`HomePlacements` says what
    becomes of a job that is too large for its home.
    """

    def _wait(self, view: View, schedule: Schedule, number: int) -> None:
        schedule.reserve(self._awaited(view, schedule, number).holding)

    def _backfill(self, view: View, schedule: Schedule, waiting: dict[int, list[int]], orders: list[Order]) -> None:
        for site, jobs in waiting.items():
            for number in self._candidates(view, schedule, site, np.array(jobs, dtype=np.intp)):
                self._start(view, schedule, number, orders)

    def _awaited(self, view: View, schedule: Schedule, number: int) -> Way:
        """The way in which a job that waits is expected to finish first."""
        _, ways = self._placements.of(view, number)
        if len(ways) == 1:
            return ways[0]
        return min(ways, key=lambda candidate: schedule.earliest(candidate.holding) + seconds(view, number, candidate))

    def _candidates(self, view: View, schedule: Schedule, site: int, jobs: Numbers) -> list[int]:
        """Jobs that might start if their data were there: others need not be looked at one by one."""
        if not len(jobs) or not schedule.free[view.places.of_site[site]].any():
            return []
        requested, left = view.register.requested[jobs], view.work_left(jobs)
        possible = requested > view.places.devices[view.places.of_site[site]].max()
        for pool in view.places.of_site[site].tolist():
            rates = view.register.rates[jobs, view.places.type[pool]]
            ends = view.now + np.divide(left, rates, out=np.full(len(jobs), inf), where=rates > 0.0)
            possible |= schedule.may_admit(pool, requested, ends) & (rates > 0.0)
        return [int(number) for number in jobs[possible]]
