"""What B4 plans with, compiled: ``baselines.goodput``, where its rules and sources stand.

The linear programme itself is solved outside (:mod:`.players`), so that playing stops where a plan is due.
"""

from numba import njit

from kuayu_conformance.testbed.scheduling.baselines.goodput import ELSEWHERE
from kuayu_conformance.testbed.scheduling.core.baselines import left_of, prepare
from kuayu_conformance.testbed.scheduling.core.jobs import held_copy
from kuayu_conformance.testbed.scheduling.core.layout import INF, NONE, Desk, State
from kuayu_conformance.testbed.scheduling.core.network import share

_BITS = 8.0


@njit(cache=True)
def plan_due(w: State, d: Desk):
    """Whether jobs or devices have come or gone since the last plan, so that a new one would start somebody."""
    prepare(w, d)
    c, clock = d.counts[0], w.clock[0]
    revision = clock.queue_changes + clock.changes
    if c.seen == revision:
        return False
    c.seen = revision
    planned, value = d.planned, d.value
    for job in range(planned.size):
        planned[job], value[job] = NONE, 0.0
    records, rates, pools, free = w.jobs, w.rates, w.pools, d.free
    for place in range(clock.pending):
        job = w.pending[place]
        for pool in range(pools.size):
            if records[job].requested <= free[pool] and rates[job, pools[pool].type] > 0.0:
                return True
    return False


@njit(cache=True)
def planned_scores(d: Desk, job):
    """Ends of a job by its ways; those in other pools than planned come after all in that."""
    planned = d.planned[job]
    for place in range(d.way_count[job]):
        first = d.member_pools[d.ways[d.way_begin[job] + place].begin]
        elsewhere = planned != NONE and planned != first  # noqa: PLR1714 - numba compiles no membership as quick
        d.scores[place] = d.finish[place] + (ELSEWHERE if elsewhere else 0.0)


@njit(cache=True)
def find_active(w: State, found):
    """Jobs that wait, then those that run on what they asked for in one pool; each of a size that some pool has.

    Returns:
        How many wait, and how many there are.
    """
    biggest, count = 0, 0
    for pool in range(w.pools.size):
        biggest = max(biggest, w.pools[pool].devices)
    for place in range(w.clock[0].pending):
        job = w.pending[place]
        if w.jobs[job].requested <= biggest:
            found[count] = job
            count += 1
    waiting, run = count, w.clock[0].first
    while run != NONE:
        job = w.runs[run].job
        j = w.jobs[job]
        if j.pool != NONE and j.devices == j.requested and j.requested <= biggest:
            found[count] = job
            count += 1
        run = w.runs[run].after
    return waiting, count


@njit(cache=True)
def find_goodput(w: State, d: Desk, jobs, shortest, goodput):
    """Goodput of jobs by pool over the best of each, and the seconds that it takes with that, into (n, P) and (n,)."""
    now, sites, pools = w.clock[0].now, w.sites.size, w.pools
    for place in range(jobs.size):
        job = jobs[place]
        j = w.jobs[job]
        data = w.datasets[j.data]
        if d.sources[job, 0] == NONE:
            for site in range(sites):
                d.sources[job, site] = held_copy(w, j.data, site)
        size = INF if data.pinned else data.size * _BITS
        left, best = left_of(j, now), 0.0
        for pool in range(pools.size):
            goodput[place, pool] = 0.0
            rate = w.rates[job, pools[pool].type]
            if j.requested > pools[pool].devices or not rate > 0.0:
                continue
            most = 0.0
            for site in range(sites):
                if d.sources[job, site]:
                    most = max(most, share(w, site, pools[pool].site))
            staging = 0.0 if most == INF else (size / most if most > 0.0 else INF)
            seconds = left / rate + staging
            if seconds < INF:
                goodput[place, pool] = left / seconds
                best = max(best, goodput[place, pool])
        shortest[place] = left / best if best > 0.0 else 1.0
        for pool in range(pools.size):
            if best > 0.0:
                goodput[place, pool] = goodput[place, pool] / best
