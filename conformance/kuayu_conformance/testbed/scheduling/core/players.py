"""Baselines B0 to B4 as policies that play a compiled world by themselves: no view is made, and no order is written.

1. **Time.** It passes until a decision is due, the baseline decides, and its orders are carried out (:func:`play`), as
   ``engine.world.Dispatch`` does; they may be refused for the same reasons.
2. **Room.** Where an array may be too short, playing stops, the array is enlarged, and it goes on.
3. **Plans.** For B4 it stops as well where a plan is due, which is made in Python as ``baselines.goodput`` makes it.
4. **Whose.** Only the baselines themselves are compiled: a class that is derived of one is another policy. A policy
   that is compiled elsewhere has a method ``player`` that makes its own.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from numba import njit

from kuayu_conformance.testbed.scheduling.baselines import (
    EarliestCompletion,
    FirstToAdmit,
    Goodput,
    HomeBackfill,
    HomeFifo,
    WeighedCompletion,
)
from kuayu_conformance.testbed.scheduling.baselines.goodput import Active, plan
from kuayu_conformance.testbed.scheduling.baselines.greedy import advantages
from kuayu_conformance.testbed.scheduling.core import events, jobs
from kuayu_conformance.testbed.scheduling.core.baselines import (
    ADMITTED,
    BACKFILL,
    EARLIEST,
    FIFO,
    PLANNED,
    WEIGHED,
    decide_anywhere,
    decide_at_home,
    decide_to_admit,
    find_active,
    find_goodput,
    idle,
    plan_due,
    rest,
)
from kuayu_conformance.testbed.scheduling.core.candidates import PERIOD, expected
from kuayu_conformance.testbed.scheduling.core.facade import Holder
from kuayu_conformance.testbed.scheduling.core.layout import COUNTS, NONE, WAY, Desk, State, desk_handle
from kuayu_conformance.testbed.scheduling.engine.view import Policy
from kuayu_conformance.testbed.scheduling.law import penalty

RULES: Mapping[type, int] = {
    HomeFifo: FIFO,
    HomeBackfill: BACKFILL,
    FirstToAdmit: ADMITTED,
    EarliestCompletion: EARLIEST,
    WeighedCompletion: WEIGHED,
    Goodput: PLANNED,
}
"""Baselines that are compiled."""


@njit(cache=True)
def play(w: State, d: Desk, rules, until, seconds):
    """Let a baseline decide at each epoch from now until an instant, or until all jobs are finished.

    Returns:
        ``events.OVER``; ``events.SHORT`` where an array is to be enlarged before it goes on, and ``events.DUE`` where
        a plan is to be made (B4).
    """
    c = w.clock[0]
    while True:
        if not c.due:
            if not c.passing:
                c.epoch = (c.now // seconds + 1.0) * seconds
            how, c.epoch = events.advance(w, c.epoch, until, seconds)
            c.passing = how == events.SHORT
            if how != events.DUE:
                return how
            c.due = 1
        if events.short(w) or not roomy(w, d):
            return events.SHORT
        if rules == PLANNED and plan_due(w, d):
            return events.DUE
        if not decide(w, d, rules):
            return events.SHORT
        obey(w, d)
        c.due = 0


@njit(cache=True)
def decide(w: State, d: Desk, rules):
    """Orders of a baseline; false if an array is too short for them."""
    if rules == WEIGHED and idle(w, d):
        d.counts[0].orders = 0
        return True
    if rules >= EARLIEST:
        done = decide_anywhere(w, d, rules)
    elif rules == ADMITTED:
        done = decide_to_admit(w, d)
    else:
        done = decide_at_home(w, d, rules == BACKFILL)
    if rules == WEIGHED and done:
        rest(w, d)
    return done


@njit(cache=True)
def obey(w: State, d: Desk):
    """Carry out the orders of a decision, as ``engine.world.Dispatch``."""
    c = d.counts[0]
    c.decisions += 1
    for number in range(c.orders):
        job, way = d.orders[0, number], d.orders[1, number]
        candidate = d.ways[way]
        cut = full = False
        for place in range(candidate.begin, candidate.begin + candidate.count):
            p = w.pools[d.member_pools[place]]
            cut |= w.sites[p.site].cut != 0
            full |= d.member_devices[place] > p.free
        if cut or full:
            c.refusals += 1
            if not cut:
                d.refused[c.refused] = way
                c.refused += 1
            continue
        pools, devices = d.member_pools[candidate.begin :], d.member_devices[candidate.begin :]
        seconds, rate = expected(
            w, job, pools, devices, candidate.count, candidate.split, candidate.period, candidate.penalty
        )
        jobs.unqueue(w, job)
        jobs.begin(
            w, job, pools, devices, candidate.count, candidate.split, candidate.period, candidate.penalty, seconds, rate
        )
    jobs.set_speeds(w)


@njit(cache=True)
def roomy(w: State, d: Desk):
    """Whether a decision has room: every job that waits might start."""
    c = w.clock[0]
    free = w.runs.size - c.runs
    least = min(c.pending, total_free(w))
    return free > least and d.ends.shape[1] > c.runs + c.pending + 1 and c.events + 8 * (c.pending + 8) < w.events.size


@njit(cache=True)
def total_free(w: State):
    """Devices that nobody holds."""
    free = 0
    for pool in range(w.pools.size):
        free += w.pools[pool].free
    return free


class Player(Protocol):
    """What plays a compiled world by itself."""

    def play(self, world: Holder, until: float, seconds: float) -> tuple[int, int]:
        """Decide at each epoch from now until an instant, or until all jobs are finished.

        Returns:
            How many decisions were made, and how many orders were refused.
        """


def player_of(policy: Policy) -> Player | None:
    """What plays a policy, if it is compiled; a class that is derived of a baseline is another policy.

    A policy that is compiled elsewhere has a method ``player`` that makes its own.
    """
    if type(policy) in RULES:
        return CompiledBaseline(policy)
    make: Callable[[], Player] | None = getattr(policy, "player", None)
    return make() if make is not None else None


class CompiledBaseline:
    """A baseline that plays whole stretches of time.

    Args:
        policy: The same in Python, for its parameters; it decides nothing.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy, self._rules = policy, RULES[type(policy)]
        self._desk: Desk | None = None
        self._handle: Any = None

    def play(self, world: Holder, until: float, seconds: float) -> tuple[int, int]:
        """Decide at each epoch from now until an instant, or until all jobs are finished.

        Returns:
            How many decisions were made, and how many orders were refused.
        """
        if self._desk is None:
            self._changed(_desk(world, self._policy))
        assert self._desk is not None
        counts = self._desk.counts
        counts["decisions"] = counts["refusals"] = 0
        while (how := play(world.handle, self._handle, self._rules, until, seconds)) != events.OVER:
            if how == events.DUE:
                self._plan(world)
            else:
                world.grow()
                self._grow(world.state)
        return int(counts["decisions"][0]), int(counts["refusals"][0])

    def _changed(self, desk: Desk) -> None:
        self._desk, self._handle = desk, desk_handle(desk)

    def _plan(self, world: Holder) -> None:
        """Where those that wait should start (B4)."""
        state, d = world.state, self._desk
        assert d is not None
        assert isinstance(self._policy, Goodput)
        jobs = np.zeros(int(state.clock["pending"][0] + state.clock["runs"][0]), dtype=np.int64)
        waiting, count = find_active(world.handle, jobs)
        if not count:
            return
        jobs = jobs[:count]
        shortest, found = np.zeros(count), np.zeros((count, len(state.pools)))
        find_goodput(world.handle, self._handle, jobs, shortest, found)
        rows = state.jobs
        active = Active(
            waiting,
            rows["pool"][jobs[waiting:]],
            rows["requested"][jobs],
            rows["stated_work"][jobs],
            rows["profile"][jobs],
            shortest,
            found,
        )
        pools, values = plan(active, d.free, self._policy.favour)
        d.planned[jobs[:waiting]], d.value[jobs[:waiting]] = pools, values

    def _grow(self, state: State) -> None:
        """Enlarge what may have been too short."""
        d = self._desk
        assert d is not None
        pools, sites = len(state.pools), len(state.sites)
        width = int(state.clock["runs"][0] + state.clock["pending"][0]) + 64
        longer: dict[str, Any] = {}
        if d.ends.shape[1] < width:
            longer |= {"ends": np.zeros((pools, 2 * width)), "freed": np.zeros((pools, 2 * width), dtype=np.int64)}
        if int(d.counts["ways"][0]) + 2 * pools + 2 > len(d.ways):
            longer["ways"] = np.concatenate([d.ways, np.zeros_like(d.ways)])
        if int(d.counts["members"][0]) + (2 * pools + 2) * (sites + 1) > len(d.member_pools):
            for name in ("member_pools", "member_devices"):
                longer[name] = np.concatenate([getattr(d, name), np.zeros_like(d.member_pools)])
        if longer:
            self._changed(d._replace(**longer))


def _nearest(state: State) -> Any:
    """Other domains that can be reached, by round-trip time."""
    found = np.full(state.round_trip.shape, NONE)
    for site, trips in enumerate(state.round_trip):
        others: Sequence[int] = [
            other for other in np.argsort(trips, kind="stable").tolist() if other != site and trips[other] < np.inf
        ]
        found[site, : len(others)] = others
    return found


def _desk(world: Holder, policy: Policy) -> Desk:
    state = world.state
    jobs, pools, sites = len(state.jobs), len(state.pools), len(state.sites)
    members = 4 * (2 * pools + 2) * (sites + 1) + jobs
    of_site = [np.flatnonzero(state.pools["site"] == site) for site in range(sites)]
    blank = np.zeros(0, dtype=np.int64)
    counts = np.zeros(1, dtype=COUNTS)
    counts["seen"] = NONE
    weights = [policy.weights.money, policy.weights.index] if isinstance(policy, WeighedCompletion) else [0.0, 0.0]

    def numbers(*shape: int, filling: int = 0) -> Any:
        return np.full(shape, filling, dtype=np.int64)

    return Desk(
        counts=counts,
        way_begin=numbers(jobs, filling=NONE),
        way_count=numbers(jobs),
        seat=_asked_first(world) if isinstance(policy, FirstToAdmit) else numbers(jobs),
        ways=np.zeros(4 * (2 * pools + 2) + jobs, dtype=WAY),
        member_pools=numbers(members),
        member_devices=numbers(members),
        penalty=np.array([1.0, *(penalty(count, PERIOD) for count in range(1, sites + 1))]),
        nearest=_nearest(state),
        site_begin=np.cumsum([0, *map(len, of_site)]),
        site_pools=np.concatenate([blank, *of_site]),
        trusted=np.zeros(pools),
        orders=numbers(2, jobs),
        refused=numbers(jobs),
        free=numbers(pools),
        known=numbers(pools),
        ends=np.zeros((pools, 256)),
        freed=numbers(pools, 256),
        reserved=numbers(pools),
        starts=np.zeros((pools, sites + 2)),
        extras=numbers(pools, sites + 2),
        line=numbers(sites),
        next=numbers(jobs),
        last=numbers(sites),
        sites=numbers(sites),
        flags=numbers(jobs),
        scores=np.zeros(2 * pools + 2),
        finish=np.zeros(2 * pools + 2),
        ahead=np.zeros(jobs),
        weights=np.array(weights),
        advantages=_advantages(world),
        tariffs=_tariffs(world),
        planned=numbers(jobs, filling=NONE),
        value=np.zeros(jobs),
        sources=numbers(jobs if isinstance(policy, Goodput) else 0, sites, filling=NONE),
    )


def _asked_first(world: Holder) -> Any:
    """Domain that B2 asks first, by job."""
    return np.array([crc32(job.name.encode()) % len(world.state.sites) for job in world.truth], dtype=np.int64)


def _advantages(world: Holder) -> Any:
    """Comparative advantage by accelerator and profile, as jobs number these."""
    found = advantages([world.topology.devices[name] for name in world.places.types])
    profiles = sorted({job.profile for job in world.truth})
    return np.array([found[profile] for profile in profiles]).reshape(len(profiles), -1).T.copy()


def _tariffs(world: Holder) -> Any:
    """Money for a bit along each route, by the step of the day."""
    wires = np.array([wire.tariff for wire in world.topology.wires])
    return np.array([world.routes.total(wires * factor) for factor in world.state.tariff[1].tolist()])
