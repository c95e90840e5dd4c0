"""B0 and B1: each domain schedules the jobs that are submitted there, and knows nothing of the others.

1. **Placements.** Where a job runs that stays at home, and what becomes of one that is too large for it, is found once
   for each job.
2. **Policies.** :class:`HomeFifo` (B0) goes first come, first served; :class:`HomeBackfill` (B1) has EASY backfill, the
   traditional scheduling of single domains.
"""

from collections.abc import Sequence
from itertools import chain
from math import inf

import numpy as np

from kuayu_conformance.testbed.scheduling.baselines.candidates import (
    Schedule,
    Trust,
    Way,
    nearest,
    seconds,
    shrunk,
    spread,
    usable,
    way,
)
from kuayu_conformance.testbed.scheduling.engine.interfaces import Numbers
from kuayu_conformance.testbed.scheduling.engine.orders import Order, Start
from kuayu_conformance.testbed.scheduling.engine.view import View


class HomePlacements:
    """The ways in which jobs can run that stay at home, found once for each job.

    A job that its home can hold has one way for each pool there. One that asks for more than any pool of its home has
    takes the faster, as estimated when it comes: 75 % of the largest pool of its home, or a static split with the
    nearest domain at a period of 50 steps, in proportion to the largest pools of both. The nearest domain is that of
    least round-trip time among those whose pool and the home's hold all that it asks for; if there is none, among those
    with which it runs at all. If neither is possible (it needs more, or may not be spread), it takes as much as its
    home has, if it runs on that.

    A job whose home has no device for it at all, by memory or because its data may not come, runs in the nearest
    domain that has, by the same rules: its home is there.
    """

    def __init__(self) -> None:
        self._found: dict[int, tuple[int, tuple[Way, ...]]] = {}

    def of(self, view: View, number: int) -> tuple[int, tuple[Way, ...]]:
        """Number of the domain in whose queue a job stands, and its ways; none if it cannot run at all."""
        found = self._found.get(number)
        if found is None:
            found = self._found[number] = _at_home(view, number)
        return found


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


def _at_home(view: View, number: int) -> tuple[int, tuple[Way, ...]]:
    home = int(view.register.home[number])
    pools = usable(view, number)
    for site in chain((home,), nearest(view, home)):
        own = [int(pool) for pool in pools if view.places.site[pool] == site]
        if own:
            requested = int(view.register.requested[number])
            enough = [pool for pool in own if view.places.devices[pool] >= requested]
            if enough:
                return site, tuple(way(view, ((pool, requested),)) for pool in enough)
            found = _too_large(view, number, site, pools.tolist())
            return site, () if found is None else (found,)
    return home, ()


def _too_large(view: View, number: int, site: int, pools: list[int]) -> Way | None:
    """The faster of shrinking and a split with the nearest domain."""
    largest = _largest(view, site, pools)
    requested, own = int(view.register.requested[number]), int(view.places.devices[largest])
    others = [_largest(view, other, pools) for other in nearest(view, site) if _has(view, other, pools)]
    enough = [pool for pool in others if own + int(view.places.devices[pool]) >= requested]
    pairs = (spread(view, number, (largest, pool)) for pool in enough or others)
    ways = [candidate for candidate in (shrunk(view, number, largest), next(filter(None, pairs), None)) if candidate]
    if ways:
        return min(ways, key=lambda candidate: seconds(view, number, candidate))
    return way(view, ((largest, own),)) if own >= view.register.minimum[number] else None


def _has(view: View, site: int, pools: list[int]) -> bool:
    return any(view.places.site[pool] == site for pool in pools)


def _largest(view: View, site: int, pools: list[int]) -> int:
    own = [pool for pool in pools if view.places.site[pool] == site]
    return max(own, key=lambda pool: (int(view.places.devices[pool]), -pool))
