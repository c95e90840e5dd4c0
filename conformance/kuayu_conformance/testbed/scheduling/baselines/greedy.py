"""B0 to B3 and B3c: jobs one after the other, each to where it is best now; and what all baselines share.

1. **Candidates.** A job can be placed in one pool, shrunk, or spread over domains.
2. **Backfill.** Who waits first has a reservation, and nobody who comes before it delays it. Lifka, "The ANL/IBM SP
   scheduling system", JSSPP 1995; Mu'alem and Feitelson, "Utilization, predictability, workloads, and user runtime
   estimates in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001.
3. **Trust.** A domain that has refused since devices were not free is left alone for a while.
4. **B0 and B1.** Each domain schedules the jobs that are submitted there, and knows nothing of the others. Where a job
   runs that stays at home, and what becomes of one that is too large for it, is found once for each job.
   :class:`HomeFifo` (B0) goes first come, first served; :class:`HomeBackfill` (B1) has EASY backfill.
5. **B2.** A job is offered to all domains, and the first that admits it wins, as MultiKueue does.
6. **B3.** All domains are one queue: each job goes where it is expected to be finished first, with EASY backfill.
7. **B3c.** The greedy of B3 with cost: completion, money for bandwidth, and where a job is at its best, weighed. Its
   weights ship in ``tuned.json``, written by ``python -m kuayu_conformance.testbed.scheduling.baselines``, which says
   on which cells and seeds, and by which rule they were found, with the whole table.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from math import ceil, inf
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Numbers
from kuayu_conformance.testbed.scheduling.engine.orders import Move, Order, Refusal, Start
from kuayu_conformance.testbed.scheduling.engine.state import Counts, Holding
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.values import DeviceType, Placement, Split

SHRUNK = 0.75
"""Share of a pool to which a job is shrunk that is too large for it."""
PERIOD = 50
"""Steps between the reconciliations of a job that is spread."""
_WARY = 600.0
"""Seconds for which the devices of a pool that has refused are taken to be held; ten epochs."""
TUNED_FILE = "tuned.json"
_AGAIN = 600.0
"""Seconds after which those that wait look again at bandwidths and tariffs; ten epochs."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A placement that a job might have.

    Attributes:
        placement: Where it would run.
        holding: The same by number.
        sites: Numbers of its domains.
    """

    placement: Placement
    holding: Holding
    sites: tuple[int, ...]


def candidate_of(view: View, holding: Holding) -> Candidate:
    """These devices, periodically reconciled if they are in several domains."""
    shares = tuple(view.places.share(pool, devices) for pool, devices in holding)
    sites = tuple(int(view.places.site[pool]) for pool, _ in holding)
    if len(holding) == 1:
        return Candidate(Placement(shares), holding, sites)
    return Candidate(Placement(shares, Split.PERIODIC, PERIOD), holding, sites)


def seconds(view: View, number: int, candidate: Candidate) -> float:
    """How long a job would hold the devices if it were given them now; infinite if it cannot run there."""
    staging, rate = view.expected(number, candidate.placement)
    left = float(view.work_left(np.array([number], dtype=np.intp))[0])
    return staging + left / rate if rate > 0.0 else inf


def all_seconds(view: View, number: int, candidates: Sequence[Candidate]) -> Floats:
    """The same for many candidates, by candidate."""
    left = float(view.work_left(np.array([number], dtype=np.intp))[0])
    staging, rates = view.staging(number), view.register.rates[number]
    requested, fresh = int(view.register.requested[number]), view.checkpoint_at(number) is None
    durations = np.empty(len(candidates))
    for place, candidate in enumerate(candidates):
        pool, devices = candidate.holding[0]
        if fresh and devices == requested:
            rate = float(rates[view.places.type[pool]])
            durations[place] = float(staging[candidate.sites[0]]) + left / rate if rate > 0.0 else inf
        else:
            durations[place] = seconds(view, number, candidate)
    return durations


def usable(view: View, number: int) -> Numbers:
    """Pools with memory enough, and where data and checkpoint may go."""
    kinds = view.register.rates[number] > 0.0
    reachable = np.zeros(len(view.places.sites), dtype=bool)
    reachable[list(view.data_at(number))] = True
    if not view.dataset(number).pinned:
        reachable |= np.isfinite(view.round_trips[list(view.data_at(number))]).any(axis=0)
    return np.flatnonzero(kinds[view.places.type] & reachable[view.places.site])


def shrunk(view: View, number: int, pool: int) -> Candidate | None:
    """Three quarters of a pool that is too small for what the job asks for, if the job goes on with so few."""
    devices = int(SHRUNK * view.places.devices[pool])
    return candidate_of(view, ((pool, devices),)) if devices >= view.register.minimum[number] and devices > 0 else None


def spread(view: View, number: int, pools: tuple[int, ...]) -> Candidate | None:
    """Pools of different domains that share what a job asks for in proportion to their size.

    If they are too small for it, it has all of them, if it goes on with so few.
    """
    if Split.PERIODIC not in view.job(number).splits:
        return None
    sizes = view.places.devices[list(pools)].tolist()
    requested = int(view.register.requested[number])
    wanted = min(requested, sum(sizes))
    if wanted < view.register.minimum[number]:
        return None
    counts = [min(size, ceil(wanted * size / sum(sizes))) for size in sizes[1:]]
    counts.insert(0, wanted - sum(counts))
    holding = tuple(zip(pools, counts, strict=True))
    return candidate_of(view, holding) if min(counts) > 0 else None


def nearest(view: View, site: int) -> Iterator[int]:
    """The other domains that can be reached from one, the nearest first."""
    round_trips = view.round_trips[site]
    for other in np.argsort(round_trips, kind="stable").tolist():
        if other != site and round_trips[other] < inf:
            yield other


@dataclass(slots=True)
class Reservation:
    """Devices of a pool for a job that waits.

    Attributes:
        start: When it is expected to start.
        extra: Devices that are free at that time beside those that it needs.
    """

    start: float
    extra: int


class Schedule:
    """What is free now and when more will be, while an epoch is being decided.

    Args:
        view: The epoch.
        free: Free devices that may be counted upon, by pool; changed in place.
    """

    def __init__(self, view: View, free: Counts) -> None:
        self._view = view
        self.free = free
        self._taken: dict[int, list[tuple[float, int]]] = {}
        self._reserved: dict[int, list[Reservation]] = {}
        self._known: dict[int, tuple[Floats, Counts]] = {}

    def fits(self, holding: Holding) -> bool:
        """Whether devices are free now, whoever waits for them."""
        return all(devices <= self.free[pool] for pool, devices in holding)

    def admits(self, holding: Holding, ends: float) -> bool:
        """Whether a job that holds these devices from now until ``ends`` delays no reservation."""
        return self.fits(holding) and all(
            ends <= reserved.start or devices <= reserved.extra
            for pool, devices in holding
            for reserved in self._reserved.get(pool, ())
        )

    def may_admit(self, pool: int, devices: Counts, ends: Floats) -> NDArray[np.bool_]:
        """The same for many jobs, each in one pool."""
        fits: NDArray[np.bool_] = devices <= self.free[pool]
        for reserved in self._reserved.get(pool, ()):
            fits &= (ends <= reserved.start) | (devices <= reserved.extra)
        return fits

    def take(self, holding: Holding, ends: float) -> None:
        """A job starts now."""
        for pool, devices in holding:
            self.free[pool] -= devices
            self._taken.setdefault(pool, []).append((ends, devices))
            self._known.pop(pool, None)
            for reserved in self._reserved.get(pool, ()):
                if ends > reserved.start:
                    reserved.extra -= devices

    def earliest(self, holding: Holding) -> float:
        """When devices will be free, now or later; infinite if nothing says so."""
        return max(self._when(pool, devices) for pool, devices in holding)

    def reserve(self, holding: Holding) -> None:
        """A job waits for these devices; if they will never be free, for nothing."""
        start = self.earliest(holding)
        if start == inf:
            return
        for pool, devices in holding:
            extra = self._free_at(pool, start) - devices
            self._reserved.setdefault(pool, []).append(Reservation(start, extra))

    def _when(self, pool: int, devices: int) -> float:
        if devices <= self.free[pool]:
            return self._view.now
        ends, freed = self._releases(pool)
        place = int(np.searchsorted(freed, devices - int(self.free[pool])))
        return float(ends[place]) if place < len(ends) else inf

    def _free_at(self, pool: int, instant: float) -> int:
        ends, freed = self._releases(pool)
        place = int(np.searchsorted(ends, instant, side="right"))
        return int(self.free[pool]) + (int(freed[place - 1]) if place else 0)

    def _releases(self, pool: int) -> tuple[Floats, Counts]:
        """When devices are given back, in order, and how many by then; kept until more are taken."""
        known = self._known.get(pool)
        if known is None:
            ends, freed = self._view.releases(pool)
            taken = self._taken.get(pool)
            if taken:
                ends = np.append(ends, [end for end, _ in taken])
                freed = np.append(freed, [devices for _, devices in taken])
                order = np.argsort(ends, kind="stable")
                ends, freed = ends[order], freed[order]
            known = self._known[pool] = ends, np.cumsum(freed)
        return known


class Trust:
    """Remembers who has refused."""

    def __init__(self) -> None:
        self._until: dict[int, float] = {}

    def free(self, view: View) -> Counts:
        """Free devices that may be counted upon, by pool."""
        for refused in view.refused:
            if refused.why == Refusal.NO_ROOM and isinstance(refused.order, Start | Move):
                for pool, _ in view.places.holding(refused.order.placement.shares):
                    self._until[pool] = view.now + _WARY
        free = view.free.copy()
        for pool in [pool for pool, until in self._until.items() if until > view.now]:
            free[pool] = 0
        for site in view.cut:
            free[view.places.of_site[site]] = 0
        return free


@dataclass(frozen=True, slots=True)
class Weights:
    """What a job goes by in B3c, beside the seconds until it is completed.

    Attributes:
        money: Seconds that a unit of money for bandwidth is worth.
        index: Seconds that a second of running is worth on devices where a job has no advantage at all over others.
    """

    money: float
    index: float


@dataclass(frozen=True, slots=True)
class TunedParameters:
    """All of them.

    Attributes:
        weights: Of B3c.
        favour: How much B4 favours short jobs.
    """

    weights: Weights
    favour: float


@cache
def tuned() -> TunedParameters:
    """The parameters that ship with the suite."""
    parameters = json.loads(files(__package__).joinpath(TUNED_FILE).read_text("utf-8"))
    weights = parameters["weights"]
    return TunedParameters(Weights(float(weights["money"]), float(weights["index"])), float(parameters["favour"]))


class HomePlacements:
    """The candidates of jobs that stay at home, found once for each job.

    A job that its home can hold has one candidate for each pool there. One that asks for more than any pool of its home
    has takes the faster, as estimated when it comes: 75 % of the largest pool of its home, or a static split with the
    nearest domain at a period of 50 steps, in proportion to the largest pools of both. The nearest domain is that of
    least round-trip time among those whose pool and the home's hold all that it asks for; if there is none, among those
    with which it runs at all. If neither is possible (it needs more, or may not be spread), it takes as much as its
    home has, if it runs on that.

    A job whose home has no device for it at all, by memory or because its data may not come, runs in the nearest
    domain that has, by the same rules: its home is there.
    """

    def __init__(self) -> None:
        self._by_job: dict[int, tuple[int, tuple[Candidate, ...]]] = {}

    def of(self, view: View, number: int) -> tuple[int, tuple[Candidate, ...]]:
        """Number of the domain in whose queue a job stands, and its candidates; none if it cannot run at all."""
        entry = self._by_job.get(number)
        if entry is None:
            entry = self._by_job[number] = _at_home(view, number)
        return entry


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
            site, candidates = self._placements.of(view, number)
            if site in waiting:
                waiting[site].append(number)
            elif candidates and not self._start(view, schedule, number, orders):
                waiting[site] = []
                self._wait(view, schedule, number)
        self._backfill(view, schedule, waiting, orders)
        return orders

    def _start(self, view: View, schedule: Schedule, number: int, orders: list[Order]) -> bool:
        """Start a job as the best candidate that fits; whether there is one."""
        _, candidates = self._placements.of(view, number)
        fitting = [candidate for candidate in candidates if schedule.fits(candidate.holding)]
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
            for number in self._startable_jobs(view, schedule, site, np.array(jobs, dtype=np.intp)):
                self._start(view, schedule, number, orders)

    def _awaited(self, view: View, schedule: Schedule, number: int) -> Candidate:
        """The candidate with which a job that waits is expected to finish first."""
        _, candidates = self._placements.of(view, number)
        if len(candidates) == 1:
            return candidates[0]
        return min(
            candidates, key=lambda candidate: schedule.earliest(candidate.holding) + seconds(view, number, candidate)
        )

    def _startable_jobs(self, view: View, schedule: Schedule, site: int, jobs: Numbers) -> list[int]:
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


def _at_home(view: View, number: int) -> tuple[int, tuple[Candidate, ...]]:
    home = int(view.register.home[number])
    pools = usable(view, number)
    for site in chain((home,), nearest(view, home)):
        own = [int(pool) for pool in pools if view.places.site[pool] == site]
        if own:
            requested = int(view.register.requested[number])
            enough = [pool for pool in own if view.places.devices[pool] >= requested]
            if enough:
                return site, tuple(candidate_of(view, ((pool, requested),)) for pool in enough)
            candidate = _too_large(view, number, site, pools.tolist())
            return site, () if candidate is None else (candidate,)
    return home, ()


def _too_large(view: View, number: int, site: int, pools: list[int]) -> Candidate | None:
    """The faster of shrinking and a split with the nearest domain."""
    largest = _largest_pool(view, site, pools)
    requested, own = int(view.register.requested[number]), int(view.places.devices[largest])
    others = [_largest_pool(view, other, pools) for other in nearest(view, site) if _has(view, other, pools)]
    enough = [pool for pool in others if own + int(view.places.devices[pool]) >= requested]
    pairs = (spread(view, number, (largest, pool)) for pool in enough or others)
    candidates = [
        candidate for candidate in (shrunk(view, number, largest), next(filter(None, pairs), None)) if candidate
    ]
    if candidates:
        return min(candidates, key=lambda candidate: seconds(view, number, candidate))
    return candidate_of(view, ((largest, own),)) if own >= view.register.minimum[number] else None


def _has(view: View, site: int, pools: list[int]) -> bool:
    return any(view.places.site[pool] == site for pool in pools)


def _largest_pool(view: View, site: int, pools: list[int]) -> int:
    own = [pool for pool in pools if view.places.site[pool] == site]
    return max(own, key=lambda pool: (int(view.places.devices[pool]), -pool))


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
        self._offers: dict[int, tuple[tuple[int, int], ...]] = {}

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
                orders.append(Start(view.job(number).name, candidate_of(view, (taken,)).placement))
        return orders

    def _admit(self, view: View, number: int, free: Counts) -> tuple[int, int] | None:
        """The first pool with room, and how many of its devices."""
        offers = self._offers.get(number)
        if offers is None:
            offers = self._offers[number] = _offers(view, number)
        return next(((pool, devices) for pool, devices in offers if devices <= free[pool]), None)


class EarliestCompletion:
    """B3: in the order of the queue, each job to the pool where staging and running end first.

    The first job may wait for a pool that is held, if it is expected to be finished there before it would be in any
    that is free: it then has a reservation there. Jobs behind it start where they end first among the pools that are
    free, if that does not delay it. A job that no pool could hold is shrunk to 75 % of one, or spread over a pool and
    those of the nearest domains until all is there that it asks for, reconciled every 50 steps, whichever ends first.
    """

    def __init__(self) -> None:
        self._trust = Trust()
        self._candidates_of: dict[int, tuple[Candidate, ...]] = {}

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
            candidates = self._of(view, number)
            ends = self._ends(view, number, candidates)
            scores = self._scores(view, number, candidates, ends)
            best = self._best_now(schedule, candidates, ends, scores)
            if self._waits(view, schedule, candidates, scores, best):
                self._backfill(view, schedule, pending[place + 1 :], orders)
                break
            if best is not None:
                self._start(view, schedule, number, candidates[best], float(ends[best]), orders)

    def _prepare(self, view: View, schedule: Schedule) -> None:
        """What is found once for an epoch, before any job is looked at."""

    def _scores(self, view: View, number: int, candidates: tuple[Candidate, ...], ends: Floats) -> Floats:
        """What a job goes by, the less the better, in seconds; a second that it waits is one more."""
        del view, number, candidates
        return ends

    def _ordered(self, view: View, jobs: list[int]) -> list[int]:
        """Who is looked at first of those behind the one that waits."""
        del view
        return jobs

    def _rather_waits(
        self,
        view: View,
        schedule: Schedule,
        number: int,
        candidates: tuple[Candidate, ...],
        figures: tuple[Floats, Floats],
        best: int,
    ) -> bool:
        """Whether one behind the one that waits does not take the best that is free; figures are ends and scores."""
        del view, schedule, number, candidates, figures, best
        return False

    def _backfill(self, view: View, schedule: Schedule, pending: list[int], orders: list[Order]) -> None:
        for number in self._ordered(view, self._startable_jobs(view, schedule, pending)):
            candidates = self._of(view, number)
            if not any(schedule.fits(candidate.holding) for candidate in candidates):
                continue
            ends = self._ends(view, number, candidates)
            scores = self._scores(view, number, candidates, ends)
            best = self._best_now(schedule, candidates, ends, scores)
            if best is not None and not self._rather_waits(view, schedule, number, candidates, (ends, scores), best):
                self._start(view, schedule, number, candidates[best], float(ends[best]), orders)

    def _startable_jobs(self, view: View, schedule: Schedule, pending: list[int]) -> list[int]:
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
    def _start(
        view: View, schedule: Schedule, number: int, candidate: Candidate, ends: float, orders: list[Order]
    ) -> None:
        schedule.take(candidate.holding, ends)
        orders.append(Start(view.job(number).name, candidate.placement))

    @staticmethod
    def _best_now(schedule: Schedule, candidates: tuple[Candidate, ...], ends: Floats, scores: Floats) -> int | None:
        """Which candidate is best of those that are free."""
        for place in np.argsort(scores, kind="stable").tolist():
            if scores[place] < inf and schedule.admits(candidates[place].holding, float(ends[place])):
                return int(place)
        return None

    @staticmethod
    def _waits(
        view: View, schedule: Schedule, candidates: tuple[Candidate, ...], scores: Floats, best: int | None
    ) -> bool:
        """Whether the first job waits, for which it then has a reservation; nobody waits for what never comes."""
        limit = inf if best is None else float(scores[best])
        awaited = None
        for place, candidate in enumerate(candidates):
            if scores[place] < limit:
                score = schedule.earliest(candidate.holding) - view.now + float(scores[place])
                if score < limit:
                    limit, awaited = score, candidate
        if awaited is not None:
            schedule.reserve(awaited.holding)
        return awaited is not None

    def _of(self, view: View, number: int) -> tuple[Candidate, ...]:
        candidates = self._candidates_of.get(number)
        if candidates is None:
            candidates = self._candidates_of[number] = _candidates_anywhere(view, number)
        return candidates

    @staticmethod
    def _ends(view: View, number: int, candidates: tuple[Candidate, ...]) -> Floats:
        """When a job would be finished in each candidate if it had the devices now."""
        return view.now + all_seconds(view, number, candidates)


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
        seconds_held = seconds * view.register.requested[jobs] / view.places.devices.sum()
        self._ahead = dict(zip(jobs.tolist(), (np.cumsum(seconds_held) - seconds_held).tolist(), strict=True))

    def _scores(self, view: View, number: int, candidates: tuple[Candidate, ...], ends: Floats) -> Floats:
        lacking = self._lacking.get(number)
        if lacking is None:
            lacking = self._lacking[number] = np.array(
                [1.0 - self._advantage(view, number, candidate) for candidate in candidates]
            )
        staging, money = self._moving(view, number, candidates)
        able = np.isfinite(ends)
        running = np.where(able, ends, 0.0) - view.now - np.where(able, staging, 0.0)
        for place in np.flatnonzero(able).tolist() if any(len(candidate.sites) > 1 for candidate in candidates) else ():
            money[place] += self._exchanges(view, number, candidates[place], float(ends[place]))
        paid = self.weights.money * np.where(able, money, 0.0)
        scores: Floats = ends + self.weights.index * running * lacking + paid
        return scores

    @staticmethod
    def _moving(view: View, number: int, candidates: tuple[Candidate, ...]) -> tuple[Floats, Floats]:
        """Seconds and money for data and checkpoint, by candidate."""
        staging, money = view.staging(number), view.staging_money(number)
        if all(len(candidate.sites) == 1 for candidate in candidates):
            sites = [candidate.sites[0] for candidate in candidates]
            return staging[sites], money[sites]
        longest = [max(float(staging[site]) for site in candidate.sites) for candidate in candidates]
        return np.array(longest), np.array(
            [sum(float(money[site]) for site in candidate.sites) for candidate in candidates]
        )

    def _rather_waits(
        self,
        view: View,
        schedule: Schedule,
        number: int,
        candidates: tuple[Candidate, ...],
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
            max(schedule.earliest(candidates[place].holding) - view.now, least) < float(saved[place])
            for place in np.flatnonzero(saved > least).tolist()
        )

    @staticmethod
    def _exchanges(view: View, number: int, candidate: Candidate, ends: float) -> float:
        """Money for what domains exchange until the end."""
        if len(candidate.sites) == 1:
            return 0.0
        variation, site = view.topology.variation, view.places.site_number
        seconds = variation.tariff_seconds(view.now, ends) / variation.tariff(view.now)
        flows = view.law.flows(view.job(number), candidate.placement)
        occupied = view.speed(number, candidate.placement).occupied
        return sum(
            bits * seconds * float(view.tariffs[site(flow.source), site(flow.target)])
            for flow, bits in zip(flows, occupied, strict=True)
        )

    def _advantage(self, view: View, number: int, candidate: Candidate) -> float:
        """Mean over the devices of a candidate."""
        of_type = self._advantages[view.job(number).profile]
        total = sum(devices for _, devices in candidate.holding)
        return sum(float(of_type[view.places.type[pool]]) * devices for pool, devices in candidate.holding) / total


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


def _candidates_anywhere(view: View, number: int) -> tuple[Candidate, ...]:
    pools = usable(view, number).tolist()
    sizes, requested = view.places.devices, int(view.register.requested[number])
    enough = [pool for pool in pools if sizes[pool] >= requested]
    if enough:
        return tuple(candidate_of(view, ((pool, requested),)) for pool in enough)
    candidates = [shrunk(view, number, pool) for pool in pools]
    candidates += [spread(view, number, _around(view, pool, pools, requested)) for pool in pools]
    return tuple(candidate for candidate in candidates if candidate)


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
