"""B4: a linear programme on goodput says which kinds of jobs should run in which pools."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.baselines.allocation import allocate, gangs
from kuayu_conformance.testbed.scheduling.baselines.easy import Schedule
from kuayu_conformance.testbed.scheduling.baselines.greedy import EarliestCompletion
from kuayu_conformance.testbed.scheduling.baselines.tuned import tuned
from kuayu_conformance.testbed.scheduling.baselines.ways import Way
from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Numbers
from kuayu_conformance.testbed.scheduling.engine.progress import SEVERAL
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.powers import power

_BITS = 8.0
_STEP = 3
"""Jobs of a class differ in what they state by a factor of two to that power at most."""
_ELSEWHERE = 1e15
"""Seconds by which all ways are worse that are not planned: more than any job takes."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A job: its profile, the domains that held its data when it was first seen, and bits to fetch from there."""

    profile: str
    sources: tuple[int, ...]
    bits: float


class Goodput(EarliestCompletion):
    """B4: at each change, jobs are shared out to pools by a linear programme; those that are free start accordingly.

    Jobs that run and jobs that wait form classes: of one profile, one number of devices, one set of pools that they can
    use, and about the same length. What a job is worth in a pool is its goodput there (work over the time of staging
    and running) over the best that it has in any, times its shortest time to the power of ``-favour``. The programme
    says how many of a class should run where if all could be moved for nothing; nobody is preempted, so that those
    that wait go where fewer run than should, as many as devices are free. The head of the queue keeps its reservation.
    What the programme leaves open (devices that it gives to nobody who waits, jobs that no pool can hold) is filled
    as B3 does; if there is no solution, everything is.

    Args:
        favour: How much short jobs are favoured: nought not at all, one as the rate at which jobs are finished does;
            as tuned unless it is given.
    """

    def __init__(self, favour: float | None = None) -> None:
        super().__init__()
        self._favour = tuned().favour if favour is None else favour
        self._seen = -1
        self._planned: dict[int, int] = {}
        self._value: dict[int, float] = {}
        self._known: dict[int, _Known] = {}

    def _prepare(self, view: View, schedule: Schedule) -> None:
        if self._seen != view.revision:
            self._seen = view.revision
            self._planned, self._value = {}, {}
            if self._some_fit(view, schedule):
                self._plan(view, schedule)

    def _scores(self, view: View, number: int, ways: tuple[Way, ...], ends: Floats) -> Floats:
        del view
        planned = self._planned.get(number)
        if planned is None:
            return ends
        scores: Floats = ends + np.array([0.0 if each.holding[0][0] == planned else _ELSEWHERE for each in ways])
        return scores

    def _ordered(self, view: View, candidates: list[int]) -> list[int]:
        del view
        return sorted(candidates, key=lambda number: -self._value.get(number, 0.0))

    @staticmethod
    def _some_fit(view: View, schedule: Schedule) -> bool:
        """Whether any that waits could start on what is free: else no programme would start one."""
        asked, rates = view.register.requested[view.pending], view.register.rates[view.pending]
        fits = (asked[:, np.newaxis] <= schedule.free) & (rates[:, view.places.type] > 0.0)
        return bool(fits.any())

    def _plan(self, view: View, schedule: Schedule) -> None:
        """Which of those that wait should start in which pool."""
        jobs = self._active(view)
        if not len(jobs):
            return
        value, goodput = self._worth(view, jobs)
        keys = self._keys(view, jobs, goodput)
        _, first, kind = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        kind = kind.reshape(-1)
        gang = view.register.requested[jobs[first]]
        counts = np.bincount(kind)
        means = np.zeros((len(gang), goodput.shape[1]))
        np.add.at(means, kind, value[:, np.newaxis] * goodput)
        means /= counts[:, np.newaxis]
        waiting = np.isin(jobs, view.pending)
        runs = jobs[~waiting]
        present = np.zeros(means.shape, dtype=np.int64)
        np.add.at(present, (kind[~waiting], view.pools(runs)), 1)
        held = (present * gang[:, np.newaxis]).sum(axis=0)
        wanted = allocate(means, gang, counts, held + schedule.free) - present
        starts = gangs(wanted, gang, np.bincount(kind[waiting], minlength=len(gang)), schedule.free)
        self._assign(jobs[waiting], kind[waiting], (value[:, np.newaxis] * goodput)[waiting], starts)

    def _assign(self, jobs: Numbers, kind: Numbers, worth: Floats, starts: NDArray[np.int64]) -> None:
        """In the order of the queue each takes the best pool of those that its class has left."""
        for place, number in enumerate(jobs.tolist()):
            left = np.where(starts[kind[place]] > 0, worth[place], 0.0)
            best = int(np.argmax(left))
            if left[best] > 0.0:
                self._planned[number], self._value[number] = best, float(left[best])
                starts[kind[place], best] -= 1

    @staticmethod
    def _active(view: View) -> Numbers:
        """Jobs that wait, and those that run on what they asked for in one pool; each of a size that some pool has."""
        running = view.running
        alone = view.pools(running) != SEVERAL
        same = view.devices(running) == view.register.requested[running]
        jobs = np.concatenate([view.pending, running[alone & same]])
        able: Numbers = jobs[view.register.requested[jobs] <= view.places.devices.max()]
        return able

    def _worth(self, view: View, jobs: Numbers) -> tuple[Floats, Floats]:
        """Weight of each job, and its normalised goodput by pool; (jobs,) and (jobs, pools)."""
        rates = view.register.rates[jobs][:, view.places.type]
        rates = np.where(view.register.requested[jobs][:, np.newaxis] <= view.places.devices, rates, 0.0)
        left = view.work_left(jobs)[:, np.newaxis]
        running = np.divide(left, rates, out=np.full(rates.shape, np.inf), where=rates > 0.0)
        seconds = running + self._staging(view, jobs)[:, view.places.site]
        goodput = np.divide(left, seconds, out=np.zeros(rates.shape), where=np.isfinite(seconds))
        best = goodput.max(axis=1)
        goodput = np.divide(goodput, best[:, np.newaxis], out=np.zeros(rates.shape), where=best[:, np.newaxis] > 0.0)
        shortest = np.divide(left[:, 0], best, out=np.ones(len(jobs)), where=best > 0.0)
        return power(np.maximum(shortest, 1.0), -self._favour), goodput

    def _staging(self, view: View, jobs: Numbers) -> Floats:
        """Seconds until the data of each would be in each domain, at present bandwidths; (jobs, domains)."""
        known = [self._of_job(view, number) for number in jobs.tolist()]
        kinds = {kind: view.shares[list(kind)].max(axis=0) for kind in {each.sources for each in known}}
        shares = np.stack([kinds[each.sources] for each in known])
        size = np.array([each.bits for each in known])[:, np.newaxis]
        with np.errstate(invalid="ignore", divide="ignore"):
            seconds = np.where(np.isinf(shares), 0.0, np.where(shares > 0.0, size / shares, np.inf))
        found: Floats = seconds
        return found

    def _of_job(self, view: View, number: int) -> "_Known":
        """What is looked up when a job is seen for the first time."""
        known = self._known.get(number)
        if known is None:
            data = view.dataset(number)
            bits = np.inf if data.pinned else data.size * _BITS
            known = self._known[number] = _Known(view.job(number).profile, view.data_at(number), bits)
        return known

    def _keys(self, view: View, jobs: Numbers, goodput: Floats) -> NDArray[np.int64]:
        """What jobs of a class have in common; (jobs, members of the key)."""
        names = [self._of_job(view, number).profile for number in jobs.tolist()]
        profiles = {name: place for place, name in enumerate(sorted(set(names)))}
        profile = np.array([profiles[name] for name in names], dtype=np.int64)
        _, length = np.frexp(view.register.stated_work[jobs])
        _, usable = np.unique(goodput > 0.0, axis=0, return_inverse=True)
        requested = view.register.requested[jobs]
        return np.stack([profile, requested, length.astype(np.int64) // _STEP, usable.reshape(-1)], axis=1)
