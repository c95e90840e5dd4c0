"""B3c: the greedy of B3 with cost: completion, money for bandwidth, and where a job is at its best, weighed."""

from collections.abc import Sequence

import numpy as np

from kuayu_conformance.testbed.scheduling.baselines.easy import Schedule
from kuayu_conformance.testbed.scheduling.baselines.greedy import EarliestCompletion
from kuayu_conformance.testbed.scheduling.baselines.tuned import Weights, tuned
from kuayu_conformance.testbed.scheduling.baselines.ways import Way
from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.orders import Order
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.values import DeviceType

_AGAIN = 600.0
"""Seconds after which those that wait look again at bandwidths and tariffs; ten epochs."""


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
