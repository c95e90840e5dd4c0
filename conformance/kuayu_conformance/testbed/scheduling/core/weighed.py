"""B3c compiled: ``baselines.weighed``, where its rules and sources stand, over B3.

Sums and products stand in its order, so that the same numbers come out to the last bit.
"""

from numba import njit

from kuayu_conformance.testbed.scheduling.core.baselines import earliest, staging, work_left
from kuayu_conformance.testbed.scheduling.core.jobs import held_copy
from kuayu_conformance.testbed.scheduling.core.law import lasts, terms
from kuayu_conformance.testbed.scheduling.core.layout import INF, NONE, Desk, State
from kuayu_conformance.testbed.scheduling.core.network import factor_seconds, share

AGAIN = 600.0
"""Of ``baselines.weighed``."""

_BITS, _HOUR, _DAY = 8.0, 3_600.0, 86_400.0


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
def exchange_money(w: State, d: Desk, tariffs, job, way, ends):
    """Money for what domains exchange until the end."""
    candidate, now, j = d.ways[way], w.clock[0].now, w.jobs[job]
    if candidate.count == 1:
        return 0.0
    pools, devices = d.member_pools[candidate.begin :], d.member_devices[candidate.begin :]
    _, _, whole, bits, latency, hidden, sent = terms(
        w, job, j.known_used, pools, devices, candidate.count, candidate.split, candidate.period, candidate.penalty
    )
    spare, granted = hidden - latency, INF
    wish = bits / spare if spare > 0.0 else INF
    for place in range(candidate.count):
        source, target = w.pools[pools[place]].site, w.pools[pools[(place + 1) % candidate.count]].site
        granted = min(granted, wish, share(w, source, target))
    held = sent / lasts(whole, bits, latency, hidden, granted)
    seconds = (factor_seconds(w, ends) - factor_seconds(w, now)) / w.tariff[1, tariff_step(w, now)]
    money = 0.0
    for place in range(candidate.count):
        source, target = w.pools[pools[place]].site, w.pools[pools[(place + 1) % candidate.count]].site
        money += held * seconds * tariffs[source, target]
    return money


@njit(cache=True)
def advantage(w: State, d: Desk, job, way):
    """Mean comparative advantage of a job over the devices of a way."""
    candidate, total, weighed = d.ways[way], 0, 0.0
    for place in range(candidate.begin, candidate.begin + candidate.count):
        devices = d.member_devices[place]
        total += devices
        weighed += d.advantages[w.pools[d.member_pools[place]].type, w.jobs[job].profile] * devices
    return weighed / total


@njit(cache=True)
def weighed_scores(w: State, d: Desk, job):
    """What a job goes by in each of its ways, into ``scores``, by when it would be finished there (``finish``)."""
    now = w.clock[0].now
    tariffs = d.tariffs[tariff_step(w, now)]
    for place in range(d.way_count[job]):
        way = d.way_begin[job] + place
        candidate, ends = d.ways[way], d.finish[place]
        if not ends < INF:
            d.scores[place] = INF
            continue
        longest, money = -INF, 0.0
        for member in range(candidate.begin, candidate.begin + candidate.count):
            site = w.pools[d.member_pools[member]].site
            longest = max(longest, staging(w, job, site, True))
            money += staging_money(w, tariffs, job, site)
        money += exchange_money(w, d, tariffs, job, way, ends)
        running = ends - now - longest
        lacking = 1.0 - advantage(w, d, job, way)
        d.scores[place] = ends + d.weights[1] * running * lacking + d.weights[0] * money


@njit(cache=True)
def look_ahead(w: State, d: Desk):
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
        held = seconds * records[job].requested / devices
        before += held
        d.ahead[job] = before - held


@njit(cache=True)
def rather_waits(w: State, d: Desk, job, best):
    """Whether cost that is saved is worth more than the wait and what the job takes longer then."""
    least, now = d.ahead[job], w.clock[0].now
    ends = d.finish[best]
    costs = d.scores[best] - ends
    for place in range(d.way_count[job]):
        if not d.scores[place] < INF:
            continue
        later = max(d.finish[place] - ends, 0.0)
        saved = costs - (d.scores[place] - d.finish[place]) - later
        if saved > least and max(earliest(w, d, d.way_begin[job] + place) - now, least) < saved:
            return True
    return False


@njit(cache=True)
def idle(w: State, d: Desk):
    """Whether all who wait have decided to, and nothing has changed: they look again later."""
    c, clock = d.counts[0], w.clock[0]
    return c.seen == clock.queue_changes + clock.changes and clock.now < c.idle_until


@njit(cache=True)
def rest(w: State, d: Desk):
    """Where nothing was ordered, those who wait look again when something has changed, or later."""
    c, clock = d.counts[0], w.clock[0]
    if c.orders == 0:
        c.seen, c.idle_until = clock.queue_changes + clock.changes, clock.now + AGAIN
