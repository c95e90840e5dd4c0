"""What compiled baselines share: what they expect of a job, candidates to run it, and EASY backfill.

1. **Sources.** Rules and sources stand in :mod:`kuayu_conformance.testbed.scheduling.baselines.greedy`; sums and
   products stand in their order.
2. **Candidates.** Those of a job are found once, and lie one behind the other in ``candidates``, what each holds in
   ``member_pools`` and ``member_devices``.
3. **Reservations.** Who waits first has one, and nobody who comes before it delays it.
4. **Decisions.** They begin with what is free and may be counted upon (:func:`prepare`).
"""

from math import ceil, frexp, ldexp

import numpy as np
from numba import njit

from kuayu_conformance.testbed.scheduling.core.jobs import held_copy, lasts, restart, terms
from kuayu_conformance.testbed.scheduling.core.layout import (
    ALONE,
    INF,
    NONE,
    PERIODIC,
    RUNNING,
    SAVING,
    State,
    Workspace,
    sort_by,
)
from kuayu_conformance.testbed.scheduling.core.network import share, update_next_flow_rates

SHRUNK, PERIOD, WARY = 0.75, 50, 600.0
"""Of ``baselines.greedy``."""
_BITS = 8.0


# Expectations ---------------------------------------------------------------------------------------------------------


@njit(cache=True)
def left_of(j, now):
    """Work that a job is estimated to have before it: what it stated, doubled as often as it has done that."""
    done = j.done + j.rate * (now - j.since)
    _, doublings = frexp(done / j.stated_work if j.stated_work > 0.0 else 0.0)
    return ldexp(j.stated_work, max(doublings, 0)) - done


@njit(cache=True)
def work_left(w: State, job):
    """The same of a job by its number."""
    return left_of(w.jobs[job], w.clock[0].now)


@njit(cache=True)
def staging(w: State, job, site, reads):
    """Seconds until checkpoint, and data if it reads, of a job are in a domain."""
    j = w.jobs[job]
    saved = 0.0
    if j.checkpoint_at != NONE:
        hoped = share(w, j.checkpoint_at, site)
        saved = j.checkpoint * _BITS / hoped if hoped > 0.0 else INF
    if not reads:
        return saved
    data = w.datasets[j.data]
    if data.pinned:
        return saved + (0.0 if held_copy(w, j.data, site) else INF)
    most = 0.0
    for other in range(w.sites.size):
        if held_copy(w, j.data, other):
            most = max(most, share(w, other, site))
    return saved + (data.size * _BITS / most if most > 0.0 else INF)


@njit(cache=True)
def expected(w: State, job, pools, devices, count, split, period, penalty):
    """Seconds until a job would run with a candidate, and its rate then, as ``View.expected``."""
    j = w.jobs[job]
    seconds = -INF
    for place in range(count):
        seconds = max(seconds, staging(w, job, w.pools[pools[place]].site, True))
    if j.checkpoint_at != NONE:
        seconds += restart(w, job, devices, count, split)
    work, _, whole, bits, latency, hidden, _ = terms(
        w, job, j.known_used, pools, devices, count, split, period, penalty
    )
    granted = INF
    if count > 1:
        spare = hidden - latency
        wish = bits / spare if spare > 0.0 else INF
        for place in range(count):
            source, target = w.pools[pools[place]].site, w.pools[pools[(place + 1) % count]].site
            granted = min(granted, wish, share(w, source, target))
    return seconds, work / lasts(whole, bits, latency, hidden, granted)


@njit(cache=True)
def seconds_of(w: State, d: Workspace, job, candidate):
    """How long a job would hold the devices if it were given them now; infinite if it cannot run there."""
    row = d.candidates[candidate]
    pools, devices = d.member_pools[row.begin :], d.member_devices[row.begin :]
    seconds, rate = expected(w, job, pools, devices, row.count, row.split, row.period, row.penalty)
    return seconds + work_left(w, job) / rate if rate > 0.0 else INF


@njit(cache=True)
def all_seconds_of(w: State, d: Workspace, job, candidate):
    """The same as B3 finds it: by the rate on what the job asks for, where it asks for that and is fresh."""
    row = d.candidates[candidate]
    pool = d.member_pools[row.begin]
    if w.jobs[job].checkpoint_at != NONE or d.member_devices[row.begin] != w.jobs[job].requested:
        return seconds_of(w, d, job, candidate)
    rate = w.rates[job, w.pools[pool].type]
    if not rate > 0.0:
        return INF
    return staging(w, job, w.pools[pool].site, True) + work_left(w, job) / rate


# Candidates -----------------------------------------------------------------------------------------------------------


@njit(cache=True)
def usable(w: State, job, pool):
    """Whether a pool has memory enough, and data and checkpoint may go there."""
    p, j = w.pools[pool], w.jobs[job]
    if not w.rates[job, p.type] > 0.0:
        return False
    if held_copy(w, j.data, p.site):
        return True
    if w.datasets[j.data].pinned:
        return False
    for other in range(w.sites.size):
        if held_copy(w, j.data, other) and w.round_trip[other, p.site] < INF:
            return True
    return False


@njit(cache=True)
def add_candidate(d: Workspace):
    """A new candidate, which holds nothing yet."""
    c = d.counts[0]
    candidate = c.candidates
    c.candidates += 1
    row = d.candidates[candidate]
    row.begin, row.count, row.split, row.period, row.penalty = c.members, 0, ALONE, 1, 1.0
    return candidate


@njit(cache=True)
def add_member(d: Workspace, candidate, pool, devices):
    """A candidate holds devices of one more pool."""
    c, row = d.counts[0], d.candidates[candidate]
    d.member_pools[c.members], d.member_devices[c.members] = pool, devices
    c.members += 1
    row.count += 1
    if row.count > 1:
        row.split, row.period, row.penalty = PERIODIC, PERIOD, d.penalty[row.count]


@njit(cache=True)
def drop_candidate(d: Workspace, candidate):
    """The last candidate is none."""
    c = d.counts[0]
    c.members = d.candidates[candidate].begin
    c.candidates = candidate


@njit(cache=True)
def shrunk(w: State, d: Workspace, job, pool):
    """Whether a job goes on with three quarters of a pool that is too small for it: a candidate then."""
    devices = int(SHRUNK * w.pools[pool].devices)
    if devices < w.jobs[job].minimum or devices <= 0:
        return NONE
    candidate = add_candidate(d)
    add_member(d, candidate, pool, devices)
    return candidate


@njit(cache=True)
def spread(w: State, d: Workspace, job, candidate):
    """Pools of a candidate share what a job asks for in proportion to their size; none if that is impossible."""
    row, j = d.candidates[candidate], w.jobs[job]
    total = 0
    for place in range(row.count):
        total += w.pools[d.member_pools[row.begin + place]].devices
    wanted = min(j.requested, total)
    if not j.periodic or wanted < j.minimum:
        drop_candidate(d, candidate)
        return NONE
    others, least = 0, 1
    for place in range(1, row.count):
        size = w.pools[d.member_pools[row.begin + place]].devices
        count = min(size, ceil(wanted * size / total))
        d.member_devices[row.begin + place] = count
        others += count
        least = min(least, count)
    d.member_devices[row.begin] = wanted - others
    if min(least, wanted - others) <= 0:
        drop_candidate(d, candidate)
        return NONE
    return candidate


@njit(cache=True)
def largest(w: State, d: Workspace, job, site):
    """The largest pool of a domain that a job can use; -1 if there is none."""
    chosen = NONE
    for place in range(d.site_begin[site], d.site_begin[site + 1]):
        pool = d.site_pools[place]
        if usable(w, job, pool) and (chosen == NONE or w.pools[pool].devices > w.pools[chosen].devices):
            chosen = pool
    return chosen


@njit(cache=True)
def too_large(w: State, d: Workspace, job, site):
    """The faster of shrinking and a split with the nearest domain; all of the pool where neither is possible."""
    own_pool, requested = largest(w, d, job, site), w.jobs[job].requested
    own = w.pools[own_pool].devices
    enough = False
    for place in range(w.sites.size):
        other = d.nearest[site, place]
        if other == NONE:
            break
        pool = largest(w, d, job, other)
        if pool != NONE and own + w.pools[pool].devices >= requested:
            enough = True
            break
    first = shrunk(w, d, job, own_pool)
    took = seconds_of(w, d, job, first) if first != NONE else INF
    begin = d.counts[0].candidates
    for place in range(w.sites.size):
        other = d.nearest[site, place]
        if other == NONE:
            break
        pool = largest(w, d, job, other)
        if pool == NONE or (enough and own + w.pools[pool].devices < requested):
            continue
        candidate = add_candidate(d)
        add_member(d, candidate, own_pool, 0)
        add_member(d, candidate, pool, 0)
        if spread(w, d, job, candidate) != NONE:
            if first != NONE and not seconds_of(w, d, job, candidate) < took:
                drop_candidate(d, candidate)
                return first
            return candidate
    if first != NONE:
        return first
    if own < w.jobs[job].minimum:
        return NONE
    assert d.counts[0].candidates == begin
    candidate = add_candidate(d)
    add_member(d, candidate, own_pool, own)
    return candidate


@njit(cache=True)
def at_home(w: State, d: Workspace, job):
    """Find the candidates of a job that stays at home, or in the nearest domain that can hold it."""
    j, c = w.jobs[job], d.counts[0]
    d.candidate_begin[job], d.candidate_count[job], d.queue_site[job] = c.candidates, 0, j.home
    for place in range(-1, w.sites.size):
        site = j.home if place < 0 else d.nearest[j.home, place]
        if site == NONE:
            return
        if largest(w, d, job, site) == NONE:
            continue
        d.queue_site[job] = site
        for spot in range(d.site_begin[site], d.site_begin[site + 1]):
            pool = d.site_pools[spot]
            if usable(w, job, pool) and w.pools[pool].devices >= j.requested:
                add_member(d, add_candidate(d), pool, j.requested)
                d.candidate_count[job] += 1
        if d.candidate_count[job] == 0:
            candidate = too_large(w, d, job, site)
            d.candidate_begin[job] = candidate if candidate != NONE else c.candidates
            d.candidate_count[job] = 1 if candidate != NONE else 0
        return


@njit(cache=True)
def anywhere(w: State, d: Workspace, job):
    """Find the candidates of a job in all domains."""
    j, c = w.jobs[job], d.counts[0]
    d.candidate_begin[job], d.candidate_count[job] = c.candidates, 0
    for pool in range(w.pools.size):
        if usable(w, job, pool) and w.pools[pool].devices >= j.requested:
            add_member(d, add_candidate(d), pool, j.requested)
            d.candidate_count[job] += 1
    if d.candidate_count[job]:
        return
    for pool in range(w.pools.size):
        if usable(w, job, pool) and shrunk(w, d, job, pool) != NONE:
            d.candidate_count[job] += 1
    for pool in range(w.pools.size):
        if not usable(w, job, pool):
            continue
        candidate = add_candidate(d)
        add_member(d, candidate, pool, 0)
        total = w.pools[pool].devices
        for place in range(w.sites.size):
            site = d.nearest[w.pools[pool].site, place]
            if site == NONE or total >= j.requested:
                break
            other = largest(w, d, job, site)
            if other != NONE:
                add_member(d, candidate, other, 0)
                total += w.pools[other].devices
        if spread(w, d, job, candidate) != NONE:
            d.candidate_count[job] += 1


@njit(cache=True)
def has_space_for_candidates(w: State, d: Workspace):
    """Whether there is space for the candidates of one more job."""
    c, pools = d.counts[0], w.pools.size
    return (
        c.candidates + 2 * pools + 2 <= d.candidates.size
        and c.members + (2 * pools + 2) * (w.sites.size + 1) <= d.member_pools.size
    )


# Reservations ---------------------------------------------------------------------------------------------------------


@njit(cache=True)
def releases(w: State, d: Workspace, pool):
    """See to it that it is known when devices of a pool are estimated to be given back."""
    if d.known[pool] >= 0:
        return
    now, n, holder = w.clock[0].now, 0, w.pools[pool].first
    records, holders, ends, freed = w.jobs, w.holders, d.ends[pool], d.freed[pool]
    while holder != NONE:
        h = holders[holder]
        j = records[h.job]
        seconds = left_of(j, now) / j.expected if j.expected > 0.0 else INF
        begins = now if j.phase == RUNNING else max(j.ready, now)
        ends[n], freed[n] = begins + (0.0 if j.phase == SAVING else seconds), h.devices
        n += 1
        holder = h.after
    sort_by(ends, freed, n)
    d.known[pool] = n


@njit(cache=True)
def put(d: Workspace, pool, n, end, devices):
    """Devices of a pool are given back at some time; behind others at the same."""
    place = n
    while place > 0 and d.ends[pool, place - 1] > end:
        d.ends[pool, place], d.freed[pool, place] = d.ends[pool, place - 1], d.freed[pool, place - 1]
        place -= 1
    d.ends[pool, place], d.freed[pool, place] = end, devices


@njit(cache=True)
def fits(d: Workspace, candidate):
    """Whether devices are free now, whoever waits for them."""
    row = d.candidates[candidate]
    for place in range(row.begin, row.begin + row.count):
        if d.member_devices[place] > d.free[d.member_pools[place]]:
            return False
    return True


@njit(cache=True)
def may_admit(d: Workspace, pool, devices, ends):
    """Whether a job that holds devices of a pool from now until ``ends`` delays no reservation."""
    if devices > d.free[pool]:
        return False
    for spot in range(d.reserved[pool]):
        if not (ends <= d.starts[pool, spot] or devices <= d.extras[pool, spot]):
            return False
    return True


@njit(cache=True)
def admits(d: Workspace, candidate, ends):
    """The same of all that a candidate holds."""
    row = d.candidates[candidate]
    for place in range(row.begin, row.begin + row.count):
        if not may_admit(d, d.member_pools[place], d.member_devices[place], ends):
            return False
    return True


@njit(cache=True)
def order(w: State, d: Workspace, job, candidate, ends):
    """A job starts as a candidate says, and holds the devices until ``ends``."""
    row = d.candidates[candidate]
    for place in range(row.begin, row.begin + row.count):
        pool, devices = d.member_pools[place], d.member_devices[place]
        releases(w, d, pool)
        put(d, pool, d.known[pool], ends, devices)
        d.known[pool] += 1
        for spot in range(d.reserved[pool]):
            if ends > d.starts[pool, spot]:
                d.extras[pool, spot] -= devices
    give(d, job, candidate)


@njit(cache=True)
def give(d: Workspace, job, candidate):
    """A job starts as a candidate says: its devices are free no longer."""
    c, row = d.counts[0], d.candidates[candidate]
    for place in range(row.begin, row.begin + row.count):
        d.free[d.member_pools[place]] -= d.member_devices[place]
    d.orders[0, c.orders], d.orders[1, c.orders] = job, candidate
    c.orders += 1


@njit(cache=True)
def earliest(w: State, d: Workspace, candidate):
    """When devices will be free, now or later; infinite if nothing says so."""
    row, latest = d.candidates[candidate], -INF
    for place in range(row.begin, row.begin + row.count):
        pool, devices = d.member_pools[place], d.member_devices[place]
        when = w.clock[0].now
        if devices > d.free[pool]:
            releases(w, d, pool)
            when, freed = INF, d.free[pool]
            for spot in range(d.known[pool]):
                freed += d.freed[pool, spot]
                if freed >= devices:
                    when = d.ends[pool, spot]
                    break
        latest = max(latest, when)
    return latest


@njit(cache=True)
def reserve(w: State, d: Workspace, candidate):
    """A job waits for what a candidate holds; if that will never be free, for nothing."""
    start = earliest(w, d, candidate)
    if start == INF:
        return
    row = d.candidates[candidate]
    for place in range(row.begin, row.begin + row.count):
        pool, devices = d.member_pools[place], d.member_devices[place]
        releases(w, d, pool)
        free = d.free[pool]
        for spot in range(d.known[pool]):
            if d.ends[pool, spot] > start:
                break
            free += d.freed[pool, spot]
        spot = d.reserved[pool]
        d.starts[pool, spot], d.extras[pool, spot] = start, free - devices
        d.reserved[pool] = spot + 1


# Decisions ------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def prepare(w: State, d: Workspace):
    """A decision begins: what is free, and may be counted upon."""
    c, now = d.counts[0], w.clock[0].now
    for spot in range(c.refused):
        row = d.candidates[d.refused[spot]]
        for place in range(row.begin, row.begin + row.count):
            d.trusted[d.member_pools[place]] = now + WARY
    c.refused = c.orders = 0
    for pool in range(w.pools.size):
        p = w.pools[pool]
        site = w.sites[p.site]
        working, free = (p.cut_working, p.cut_free) if site.cut else (p.working, p.free)
        if site.claim != 1.0:
            occupied = working - free
            free = max(int(np.rint(working * site.claim)) - occupied, 0)
        d.free[pool] = 0 if site.cut or d.trusted[pool] > now else free
        d.known[pool], d.reserved[pool] = -1, 0
    update_next_flow_rates(w)
