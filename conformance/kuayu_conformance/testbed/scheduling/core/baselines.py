"""B0 to B4 and B3c compiled, and how they play a world by themselves: what they decide is what they decide in Python.

1. **Sources.** Rules and sources stand in :mod:`kuayu_conformance.testbed.scheduling.baselines`: ``greedy`` (B0 to B3c)
   and ``goodput`` (B4). Sums and products stand in their order, so that the same numbers come out to the last bit.
2. **Complete or not at all.** A decision changes nothing until it is complete: where an array is too short it is made
   again in a longer one, and false is the answer.
3. **At home.** B0 and B1 go through the queue of each domain (:func:`decide_at_home`).
4. **First to admit.** B2 asks domains in turn (:func:`decide_to_admit`).
5. **Anywhere.** B3, B3c and B4 differ in what a job goes by, in who is looked at first behind the one that waits, and
   in who rather waits (:func:`decide_anywhere`).
6. **Plans of B4.** The linear programme itself is solved in Python, as ``baselines.goodput`` does, so that playing
   stops where a plan is due (:func:`plan_due`).
7. **Time** passes until a decision is due, the baseline decides, and its orders are carried out (:func:`play`), as
   ``engine.world.Dispatch`` does; they may be refused for the same reasons. No view is made, and no order is written.
8. **Space.** Where an array may be too short, playing stops, the array is enlarged, and it goes on.
9. **Whose.** Only the baselines themselves are compiled: a class that is derived of one is another policy. A policy
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
from kuayu_conformance.testbed.scheduling.baselines.goodput import ELSEWHERE, Active, plan
from kuayu_conformance.testbed.scheduling.baselines.greedy import advantages
from kuayu_conformance.testbed.scheduling.core import jobs
from kuayu_conformance.testbed.scheduling.core.candidates import (
    PERIOD,
    add_candidate,
    add_member,
    admits,
    all_seconds_of,
    anywhere,
    at_home,
    earliest,
    expected,
    fits,
    give,
    has_space_for_candidates,
    left_of,
    may_admit,
    order,
    prepare,
    reserve,
    seconds_of,
    staging,
    usable,
    work_left,
)
from kuayu_conformance.testbed.scheduling.core.handles import Handle
from kuayu_conformance.testbed.scheduling.core.jobs import held_copy, lasts, terms
from kuayu_conformance.testbed.scheduling.core.layout import (
    CANDIDATE,
    COUNTS,
    INF,
    NONE,
    Numbers,
    State,
    Workspace,
)
from kuayu_conformance.testbed.scheduling.core.network import factor_seconds, share
from kuayu_conformance.testbed.scheduling.engine.interfaces import Topology
from kuayu_conformance.testbed.scheduling.engine.state import Places
from kuayu_conformance.testbed.scheduling.engine.traffic import Routes
from kuayu_conformance.testbed.scheduling.engine.view import Policy
from kuayu_conformance.testbed.scheduling.law import penalty
from kuayu_conformance.testbed.scheduling.values import Job, Placement

FIFO, BACKFILL, ADMITTED, EARLIEST, WEIGHED, PLANNED = range(6)
"""B0, B1, B2, B3, B3c, B4."""
AGAIN = 600.0
"""Seconds after which those that wait look again under B3c, as in ``baselines.greedy``."""
NOBODY = -2
"""Instead of the last of those who wait behind the first of a domain: nobody waits."""
_BITS, _HOUR, _DAY = 8.0, 3_600.0, 86_400.0
RULES: Mapping[type, int] = {
    HomeFifo: FIFO,
    HomeBackfill: BACKFILL,
    FirstToAdmit: ADMITTED,
    EarliestCompletion: EARLIEST,
    WeighedCompletion: WEIGHED,
    Goodput: PLANNED,
}
"""Baselines that are compiled."""


# B0 and B1 ------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def decide_at_home(w: State, d: Workspace, backfill):
    """B0, or B1 with backfill: start who is first in its domain, until one does not fit; False if space is short."""
    now = w.clock[0].now
    prepare(w, d)
    records, pools, rates, pending = w.jobs, w.pools, w.rates, w.pending
    candidate_begin, queue_sites, line, last, after, flags, free = (
        d.candidate_begin,
        d.queue_site,
        d.line,
        d.last,
        d.next,
        d.flags,
        d.free,
    )
    waiting = 0
    for site in range(w.sites.size):
        last[site] = NOBODY
    for place in range(w.clock[0].pending):
        job = pending[place]
        if candidate_begin[job] == NONE:
            if not has_space_for_candidates(w, d):
                return False
            at_home(w, d, job)
        site = queue_sites[job]
        if last[site] != NOBODY:
            after[job] = NONE
            if last[site] == NONE:
                line[site] = job
            else:
                after[last[site]] = job
            last[site] = job
        elif d.candidate_count[job] and not start_at_home(w, d, job):
            last[site], line[site] = NONE, NONE
            d.sites[waiting] = site
            waiting += 1
            if backfill:
                reserve(w, d, awaited(w, d, job))
    if not backfill:
        return True
    for place in range(waiting):
        site = d.sites[place]
        own = d.site_pools[d.site_begin[site] : d.site_begin[site + 1]]
        biggest = most = 0
        for pool in own:
            biggest, most = max(biggest, pools[pool].devices), max(most, free[pool])
        if most == 0:
            continue
        job = line[site]
        while job != NONE:
            requested = records[job].requested
            flags[job] = requested > biggest
            if requested <= most:
                left = left_of(records[job], now)
                for pool in own:
                    rate = rates[job, pools[pool].type]
                    if requested <= free[pool] and rate > 0.0 and may_admit(d, pool, requested, now + left / rate):
                        flags[job] = 1
            job = after[job]
        job = line[site]
        while job != NONE:
            if flags[job]:
                start_at_home(w, d, job)
            job = after[job]
    return True


@njit(cache=True)
def start_at_home(w: State, d: Workspace, job):
    """Start a job as the best candidate that fits; whether there is one."""
    begin, count, now = d.candidate_begin[job], d.candidate_count[job], w.clock[0].now
    fitting = 0
    for candidate in range(begin, begin + count):
        if fits(d, candidate):
            took = seconds_of(w, d, job, candidate)
            place = fitting
            while place > 0 and d.scores[place - 1] > took:
                d.scores[place], w.scratch[0, place] = d.scores[place - 1], w.scratch[0, place - 1]
                place -= 1
            d.scores[place], w.scratch[0, place] = took, candidate
            fitting += 1
    for place in range(fitting):
        took, candidate = d.scores[place], w.scratch[0, place]
        if took < INF and admits(d, candidate, now + took):
            order(w, d, job, candidate, now + took)
            return True
    return False


@njit(cache=True)
def awaited(w: State, d: Workspace, job):
    """The candidate with which a job that waits is expected to finish first."""
    begin, best = d.candidate_begin[job], INF
    chosen = begin
    if d.candidate_count[job] > 1:
        for candidate in range(begin, begin + d.candidate_count[job]):
            when = earliest(w, d, candidate) + seconds_of(w, d, job, candidate)
            if when < best:
                best, chosen = when, candidate
    return chosen


# B2 -------------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def decide_to_admit(w: State, d: Workspace):
    """B2: each job to the first domain that can, and who does not fit blocks nobody; False if space is short."""
    prepare(w, d)
    most, biggest = most_free(d), 0
    for pool in range(w.pools.size):
        biggest = max(biggest, w.pools[pool].devices)
    pending, records = w.pending, w.jobs
    for place in range(w.clock[0].pending):
        if most == 0:
            break
        job = pending[place]
        if min(records[job].requested, biggest) > most:
            continue
        if d.candidate_begin[job] == NONE:
            if not has_space_for_candidates(w, d):
                return False
            offers(w, d, job)
        for candidate in range(d.candidate_begin[job], d.candidate_begin[job] + d.candidate_count[job]):
            if fits(d, candidate):
                give(d, job, candidate)
                most = most_free(d)
                break
    return True


@njit(cache=True)
def offers(w: State, d: Workspace, job):
    """Find the candidates of a job in the order of asking pools: those that hold it, else each as large as it is."""
    j, c = w.jobs[job], d.counts[0]
    d.candidate_begin[job], d.candidate_count[job] = c.candidates, 0
    enough = False
    for pool in range(w.pools.size):
        enough |= w.pools[pool].devices >= j.requested and usable(w, job, pool)
    for step in range(w.sites.size):
        site = (d.queue_site[job] + step) % w.sites.size
        for spot in range(d.site_begin[site], d.site_begin[site + 1]):
            pool = d.site_pools[spot]
            size = w.pools[pool].devices
            if size >= (j.requested if enough else j.minimum) and usable(w, job, pool):
                add_member(d, add_candidate(d), pool, j.requested if enough else size)
                d.candidate_count[job] += 1


@njit(cache=True)
def most_free(d: Workspace):
    """Devices that are free in the pool that has most."""
    most = 0
    for free in d.free:
        most = max(most, free)
    return most


# B3, and what B3c and B4 share with it --------------------------------------------------------------------------------


@njit(cache=True)
def decide_anywhere(w: State, d: Workspace, rules):
    """Each job where its score is least, with backfill; False if space is short."""
    prepare(w, d)
    if rules == WEIGHED:
        look_ahead(w, d)
    pending, place = w.clock[0].pending, 0
    while place < pending:
        job = w.pending[place]
        place += 1
        if not find_ends(w, d, job):
            return False
        find_scores(w, d, job, rules)
        best = best_now(d, job)
        if waits(w, d, job, best):
            break
        if best != NONE:
            order(w, d, job, d.candidate_begin[job] + best, d.finish[best])
    startable = d.next[: find_startable(w, d, place)]
    if rules == PLANNED:
        startable = startable[np.argsort(-d.value[startable], kind="mergesort")]
    for job in startable:
        if d.candidate_begin[job] == NONE:
            if not has_space_for_candidates(w, d):
                return False
            anywhere(w, d, job)
        if not fits_somewhere(d, job):
            continue
        find_ends(w, d, job)
        find_scores(w, d, job, rules)
        best = best_now(d, job)
        if best != NONE and not (rules == WEIGHED and rather_waits(w, d, job, best)):
            order(w, d, job, d.candidate_begin[job] + best, d.finish[best])
    return True


@njit(cache=True)
def find_scores(w: State, d: Workspace, job, rules):
    """What a job goes by with each candidate, into ``scores``; when it would be finished stands in ``finish``."""
    if rules == WEIGHED:
        weighed_scores(w, d, job)
    elif rules == PLANNED:
        planned_scores(d, job)
    else:
        for place in range(d.candidate_count[job]):
            d.scores[place] = d.finish[place]


@njit(cache=True)
def find_ends(w: State, d: Workspace, job):
    """When a job would be finished with each candidate, into ``finish``; false if space for these is short."""
    if d.candidate_begin[job] == NONE:
        if not has_space_for_candidates(w, d):
            return False
        anywhere(w, d, job)
    for place in range(d.candidate_count[job]):
        d.finish[place] = w.clock[0].now + all_seconds_of(w, d, job, d.candidate_begin[job] + place)
    return True


@njit(cache=True)
def best_now(d: Workspace, job):
    """Which candidate has the least score of those that are free; -1 if none is."""
    best = NONE
    for place in range(d.candidate_count[job]):
        score = d.scores[place]
        better = score < INF and (best == NONE or score < d.scores[best])
        if better and admits(d, d.candidate_begin[job] + place, d.finish[place]):
            best = place
    return best


@njit(cache=True)
def waits(w: State, d: Workspace, job, best):
    """Whether the first job waits, for which it then has a reservation."""
    limit = INF if best == NONE else d.scores[best]
    awaited = NONE
    for place in range(d.candidate_count[job]):
        if d.scores[place] < limit:
            score = earliest(w, d, d.candidate_begin[job] + place) - w.clock[0].now + d.scores[place]
            if score < limit:
                limit, awaited = score, d.candidate_begin[job] + place
    if awaited != NONE:
        reserve(w, d, awaited)
    return awaited != NONE


@njit(cache=True)
def find_startable(w: State, d: Workspace, begin):
    """Jobs from a place in the queue on that might start if their data were there: how many, the first of ``next``."""
    records, pools, rates, free, jobs, pending = w.jobs, w.pools, w.rates, d.free, d.next, w.pending
    now, count = w.clock[0].now, 0
    biggest = most = 0
    for pool in range(pools.size):
        biggest, most = max(biggest, pools[pool].devices), max(most, free[pool])
    for spot in range(begin, w.clock[0].pending):
        job = pending[spot]
        requested = records[job].requested
        startable = requested > biggest
        if requested <= most:
            left = left_of(records[job], now)
            for pool in range(pools.size):
                rate = rates[job, pools[pool].type]
                if requested <= free[pool] and rate > 0.0 and may_admit(d, pool, requested, now + left / rate):
                    startable = True
                    break
        if startable:
            jobs[count] = job
            count += 1
    return count


@njit(cache=True)
def fits_somewhere(d: Workspace, job):
    """Whether devices are free now for one of the candidates of a job."""
    for candidate in range(d.candidate_begin[job], d.candidate_begin[job] + d.candidate_count[job]):
        if fits(d, candidate):
            return True
    return False


# B3c ------------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def weighed_scores(w: State, d: Workspace, job):
    """What a job goes by with each candidate, into ``scores``, by when it would be finished there (``finish``)."""
    now = w.clock[0].now
    tariffs = d.tariffs[tariff_step(w, now)]
    for place in range(d.candidate_count[job]):
        candidate = d.candidate_begin[job] + place
        row, ends = d.candidates[candidate], d.finish[place]
        if not ends < INF:
            d.scores[place] = INF
            continue
        longest, money = -INF, 0.0
        for member in range(row.begin, row.begin + row.count):
            site = w.pools[d.member_pools[member]].site
            longest = max(longest, staging(w, job, site, True))
            money += staging_money(w, tariffs, job, site)
        money += exchange_money(w, d, tariffs, job, candidate, ends)
        running = ends - now - longest
        lacking = 1.0 - advantage(w, d, job, candidate)
        d.scores[place] = ends + d.weights[1] * running * lacking + d.weights[0] * money


@njit(cache=True)
def tariff_step(w: State, now):
    """Which of the factors of the tariff holds."""
    hour = (now - _DAY * (now // _DAY)) / _HOUR
    step, since = 0, w.tariff[0, 0]
    while step + 1 < w.tariff.shape[1] and since / _HOUR <= hour:
        step += 1
        since += w.tariff[0, step]
    return step


@njit(cache=True)
def staging_money(w: State, tariffs, job, site):
    """Money for moving data and checkpoint of a job to a domain now; infinite if they cannot be moved."""
    j = w.jobs[job]
    data = w.datasets[j.data]
    if data.pinned:
        money = 0.0 if held_copy(w, j.data, site) else INF
    else:
        least = INF
        for other in range(w.sites.size):
            if held_copy(w, j.data, other):
                least = min(least, tariffs[other, site])
        money = least * data.size * _BITS
    if j.checkpoint_at != NONE:
        money = money + tariffs[j.checkpoint_at, site] * j.checkpoint * _BITS
    return money


@njit(cache=True)
def exchange_money(w: State, d: Workspace, tariffs, job, candidate, ends):
    """Money for what domains exchange until the end."""
    row, now, j = d.candidates[candidate], w.clock[0].now, w.jobs[job]
    if row.count == 1:
        return 0.0
    pools, devices = d.member_pools[row.begin :], d.member_devices[row.begin :]
    _, _, whole, bits, latency, hidden, sent = terms(
        w, job, j.known_used, pools, devices, row.count, row.split, row.period, row.penalty
    )
    spare, granted = hidden - latency, INF
    wish = bits / spare if spare > 0.0 else INF
    for place in range(row.count):
        source, target = w.pools[pools[place]].site, w.pools[pools[(place + 1) % row.count]].site
        granted = min(granted, wish, share(w, source, target))
    occupied = sent / lasts(whole, bits, latency, hidden, granted)
    seconds = (factor_seconds(w, ends) - factor_seconds(w, now)) / w.tariff[1, tariff_step(w, now)]
    money = 0.0
    for place in range(row.count):
        source, target = w.pools[pools[place]].site, w.pools[pools[(place + 1) % row.count]].site
        money += occupied * seconds * tariffs[source, target]
    return money


@njit(cache=True)
def advantage(w: State, d: Workspace, job, candidate):
    """Mean comparative advantage of a job over the devices of a candidate."""
    row, total, weighed = d.candidates[candidate], 0, 0.0
    for place in range(row.begin, row.begin + row.count):
        devices = d.member_devices[place]
        total += devices
        weighed += d.advantages[w.pools[d.member_pools[place]].type, w.jobs[job].profile] * devices
    return weighed / total


@njit(cache=True)
def look_ahead(w: State, d: Workspace):
    """How long all devices together need for what stands before each job that waits, into ``ahead``."""
    devices = 0
    for pool in range(w.pools.size):
        devices += w.pools[pool].devices
    before, pending, records, rates = 0.0, w.pending, w.jobs, w.rates
    for place in range(w.clock[0].pending):
        job = pending[place]
        fastest = 0.0
        for rate in rates[job]:
            fastest = max(fastest, rate)
        seconds = work_left(w, job) / fastest if fastest > 0.0 else 0.0
        seconds_held = seconds * records[job].requested / devices
        before += seconds_held
        d.ahead[job] = before - seconds_held


@njit(cache=True)
def rather_waits(w: State, d: Workspace, job, best):
    """Whether cost that is saved is worth more than the wait and what the job takes longer then."""
    least, now = d.ahead[job], w.clock[0].now
    ends = d.finish[best]
    costs = d.scores[best] - ends
    for place in range(d.candidate_count[job]):
        if not d.scores[place] < INF:
            continue
        later = max(d.finish[place] - ends, 0.0)
        saved = costs - (d.scores[place] - d.finish[place]) - later
        if saved > least and max(earliest(w, d, d.candidate_begin[job] + place) - now, least) < saved:
            return True
    return False


@njit(cache=True)
def idle(w: State, d: Workspace):
    """Whether all who wait have decided to, and nothing has changed: they look again later."""
    c, clock = d.counts[0], w.clock[0]
    return c.seen == clock.queue_changes + clock.changes and clock.now < c.idle_until


@njit(cache=True)
def rest(w: State, d: Workspace):
    """Where nothing was ordered, those who wait look again when something has changed, or later."""
    c, clock = d.counts[0], w.clock[0]
    if c.orders == 0:
        c.seen, c.idle_until = clock.queue_changes + clock.changes, clock.now + AGAIN


# B4 -------------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def plan_due(w: State, d: Workspace):
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
def planned_scores(d: Workspace, job):
    """Ends of a job by its candidates; those in other pools than planned come after all in that."""
    planned = d.planned[job]
    for place in range(d.candidate_count[job]):
        first = d.member_pools[d.candidates[d.candidate_begin[job] + place].begin]
        elsewhere = planned != NONE and planned != first  # noqa: PLR1714 - numba compiles no membership as quick
        d.scores[place] = d.finish[place] + (ELSEWHERE if elsewhere else 0.0)


@njit(cache=True)
def find_active(w: State, jobs):
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
            jobs[count] = job
            count += 1
    waiting, run = count, w.clock[0].first
    while run != NONE:
        job = w.runs[run].job
        j = w.jobs[job]
        if j.pool != NONE and j.devices == j.requested and j.requested <= biggest:
            jobs[count] = job
            count += 1
        run = w.runs[run].after
    return waiting, count


@njit(cache=True)
def find_goodput(w: State, d: Workspace, jobs, shortest, goodput):
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


# Playing --------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def play(w: State, d: Workspace, rules, until, seconds):
    """Let a baseline decide at each epoch from now until an instant, or until all jobs are finished.

    Returns:
        ``jobs.OVER``; ``jobs.SHORT`` where an array is to be enlarged before it goes on, and ``jobs.DUE`` where
        a plan is to be made (B4).
    """
    c = w.clock[0]
    while True:
        if not c.due:
            if not c.passing:
                c.epoch = (c.now // seconds + 1.0) * seconds
            how, c.epoch = jobs.advance(w, c.epoch, until, seconds)
            c.passing = how == jobs.SHORT
            if how != jobs.DUE:
                return how
            c.due = 1
        if jobs.short(w) or not has_space(w, d):
            return jobs.SHORT
        if rules == PLANNED and plan_due(w, d):
            return jobs.DUE
        if not decide(w, d, rules):
            return jobs.SHORT
        obey(w, d)
        c.due = 0


@njit(cache=True)
def decide(w: State, d: Workspace, rules):
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
def obey(w: State, d: Workspace):
    """Carry out the orders of a decision, as ``engine.world.Dispatch``."""
    c, started = d.counts[0], 0
    c.decisions += 1
    for number in range(c.orders):
        job, candidate = d.orders[0, number], d.orders[1, number]
        row = d.candidates[candidate]
        cut = full = False
        for place in range(row.begin, row.begin + row.count):
            p = w.pools[d.member_pools[place]]
            cut |= w.sites[p.site].cut != 0
            full |= d.member_devices[place] > p.free
        if cut or full:
            c.refusals += 1
            if not cut:
                d.refused[c.refused] = candidate
                c.refused += 1
            continue
        pools, devices = d.member_pools[row.begin :], d.member_devices[row.begin :]
        seconds, rate = expected(w, job, pools, devices, row.count, row.split, row.period, row.penalty)
        jobs.begin(w, job, pools, devices, row.count, row.split, row.period, row.penalty, seconds, rate)
        d.orders[0, started] = job
        started += 1
    jobs.unqueue_all(w, d.orders[0], started)
    jobs.set_speeds(w)


@njit(cache=True)
def has_space(w: State, d: Workspace):
    """Whether a decision has space: every job that waits might start."""
    c = w.clock[0]
    free = w.runs.size - c.runs
    least = min(c.pending, total_free(w))
    return free > least and width(w) <= d.ends.shape[1] and c.events + 8 * (c.pending + 8) < w.events.size


@njit(cache=True)
def width(w: State):
    """How many jobs may hold devices of a pool once a decision is carried out: at most all that it is said to have."""
    most = 0
    for pool in range(w.pools.size):
        p = w.pools[pool]
        most = max(most, int(p.devices * max(w.sites[p.site].claim, 1.0)))
    return most + 2


@njit(cache=True)
def total_free(w: State):
    """Devices that nobody holds."""
    free = 0
    for pool in range(w.pools.size):
        free += w.pools[pool].free
    return free


class Holder(Protocol):
    """Who holds the arrays of a compiled world.

    Attributes:
        state: The arrays; others take their place when they have to be longer.
        handle: What compiled functions are called with.
        places: Domains and pools by number.
        truth: Jobs as they truly are.
        routes: Which links lead where.
        topology: Where jobs can run.
        numbers: Of jobs by name.
        dataset_numbers: Of data sets by name.
    """

    state: State
    handle: Any
    places: Places
    truth: tuple[Job, ...]
    routes: Routes
    topology: Topology
    numbers: dict[str, int]
    dataset_numbers: dict[str, int]

    @property
    def now(self) -> float:
        """Seconds since the scenario began."""

    def placement(self, pools: Numbers, devices: Numbers, row: Any) -> Placement:
        """A placement in the first pools of a row, with so many devices of each."""

    def grow_runs(self) -> None:
        """See to it that one more job can have devices."""

    def grow(self) -> None:
        """Enlarge what was too short, so that whoever waits may start."""


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
        self._workspace: Workspace | None = None
        self._handle: Any = None

    def play(self, world: Holder, until: float, seconds: float) -> tuple[int, int]:
        """Decide at each epoch from now until an instant, or until all jobs are finished.

        Returns:
            How many decisions were made, and how many orders were refused.
        """
        if self._workspace is None:
            self._changed(_workspace(world, self._policy))
        assert self._workspace is not None
        counts = self._workspace.counts
        counts["decisions"] = counts["refusals"] = 0
        while (how := play(world.handle, self._handle, self._rules, until, seconds)) != jobs.OVER:
            if how == jobs.DUE:
                self._plan(world)
            else:
                world.grow()
                self._grow(world)
        return int(counts["decisions"][0]), int(counts["refusals"][0])

    def _changed(self, workspace: Workspace) -> None:
        self._workspace, self._handle = workspace, Handle(workspace)

    def _plan(self, world: Holder) -> None:
        """Where those that wait should start (B4)."""
        state, d = world.state, self._workspace
        assert d is not None
        assert isinstance(self._policy, Goodput)
        jobs = np.zeros(int(state.clock["pending"][0] + state.clock["runs"][0]), dtype=np.int64)
        waiting, count = find_active(world.handle, jobs)
        if not count:
            return
        jobs = jobs[:count]
        shortest, goodput = np.zeros(count), np.zeros((count, len(state.pools)))
        find_goodput(world.handle, self._handle, jobs, shortest, goodput)
        rows = state.jobs
        active = Active(
            waiting,
            rows["pool"][jobs[waiting:]],
            rows["requested"][jobs],
            rows["stated_work"][jobs],
            rows["profile"][jobs],
            shortest,
            goodput,
        )
        pools, values = plan(active, d.free, self._policy.favour)
        d.planned[jobs[:waiting]], d.value[jobs[:waiting]] = pools, values

    def _grow(self, world: Holder) -> None:
        """Enlarge what may have been too short."""
        d, state = self._workspace, world.state
        assert d is not None
        pools, sites = len(state.pools), len(state.sites)
        longer: dict[str, Any] = {}
        if d.ends.shape[1] < (most := width(world.handle)):
            longer |= {"ends": np.zeros((pools, most)), "freed": np.zeros((pools, most), dtype=np.int64)}
        if int(d.counts["candidates"][0]) + 2 * pools + 2 > len(d.candidates):
            longer["candidates"] = np.concatenate([d.candidates, np.zeros_like(d.candidates)])
        if int(d.counts["members"][0]) + (2 * pools + 2) * (sites + 1) > len(d.member_pools):
            for name in ("member_pools", "member_devices"):
                longer[name] = np.concatenate([getattr(d, name), np.zeros_like(d.member_pools)])
        if longer:
            self._changed(d._replace(**longer))


def _nearest(state: State) -> Any:
    """Other domains that can be reached, by round-trip time."""
    others_by_distance = np.full(state.round_trip.shape, NONE)
    for site, trips in enumerate(state.round_trip):
        others: Sequence[int] = [
            other for other in np.argsort(trips, kind="stable").tolist() if other != site and trips[other] < np.inf
        ]
        others_by_distance[site, : len(others)] = others
    return others_by_distance


def _workspace(world: Holder, policy: Policy) -> Workspace:
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

    return Workspace(
        counts=counts,
        candidate_begin=numbers(jobs, filling=NONE),
        candidate_count=numbers(jobs),
        queue_site=_asked_first(world) if isinstance(policy, FirstToAdmit) else numbers(jobs),
        candidates=np.zeros(4 * (2 * pools + 2) + jobs, dtype=CANDIDATE),
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
        ends=np.zeros((pools, width(world.handle))),
        freed=numbers(pools, width(world.handle)),
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
        advantages=_comparative_advantages(world),
        tariffs=_route_tariffs(world),
        planned=numbers(jobs, filling=NONE),
        value=np.zeros(jobs),
        sources=numbers(jobs if isinstance(policy, Goodput) else 0, sites, filling=NONE),
    )


def _asked_first(world: Holder) -> Any:
    """Domain that B2 asks first, by job."""
    return np.array([crc32(job.name.encode()) % len(world.state.sites) for job in world.truth], dtype=np.int64)


def _comparative_advantages(world: Holder) -> Any:
    """Comparative advantage by accelerator and profile, as jobs number these."""
    by_profile = advantages([world.topology.devices[name] for name in world.places.types])
    profiles = sorted({job.profile for job in world.truth})
    return np.array([by_profile[profile] for profile in profiles]).reshape(len(profiles), -1).T.copy()


def _route_tariffs(world: Holder) -> Any:
    """Money for a bit along each route, by the step of the day."""
    links = np.array([link.tariff for link in world.topology.links])
    return np.array([world.routes.total(links * factor) for factor in world.state.tariff[1].tolist()])
