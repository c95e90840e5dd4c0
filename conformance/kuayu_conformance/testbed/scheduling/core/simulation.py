"""Compiled baselines with the world that they play: time passes, they decide, and their orders are carried out.

Orders are carried out as ``engine.dispatch`` does, and may be refused for the same reasons.
"""

from numba import njit

from kuayu_conformance.testbed.scheduling.core import events, jobs
from kuayu_conformance.testbed.scheduling.core.admission import decide_to_admit
from kuayu_conformance.testbed.scheduling.core.baselines import decide_at_home, expected
from kuayu_conformance.testbed.scheduling.core.goodput import plan_due
from kuayu_conformance.testbed.scheduling.core.greedy import EARLIEST, PLANNED, WEIGHED, decide_anywhere
from kuayu_conformance.testbed.scheduling.core.layout import Desk, State
from kuayu_conformance.testbed.scheduling.core.weighed import idle, rest

FIFO, BACKFILL, ADMITTED = range(3)
"""B0, B1, B2; others are those of :mod:`.greedy`."""

__all__ = ["ADMITTED", "BACKFILL", "EARLIEST", "FIFO", "PLANNED", "WEIGHED", "play"]


@njit(cache=True)
def obey(w: State, d: Desk):
    """Carry out the orders of a decision, as ``engine.dispatch``."""
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
