"""What an epoch is decided on: ``kuayu.bench.snapshots`` and ``kuayu.scheduling.state`` over the compiled world.

Found once at the beginning of an epoch: what is reported and reached, what jobs have before them, who runs, and how
fast jobs are in practice. Staging is found for each data set when it is first asked for.
"""

from math import frexp, isfinite, isnan, ldexp, nan

import numpy as np

from kuayu.scheduling.availability import BELIEF, SLOWEST
from kuayu.scheduling.state import MAX_WEIGHT, MIN_VALUE
from kuayu.scheduling.throughput import PRIOR
from kuayu_conformance.testbed.scheduling.core.layout import ALONE, INF, NONE, RUNNING, SAVING
from kuayu_conformance.testbed.scheduling.core.network import update_next_flow_rates
from kuayu_training.scheduling.core.layout import LEVELS, compiled
from kuayu_training.scheduling.core.throughput import fast

_BITS = 8.0
_DAY = 86_400.0


@compiled
def take_stock(w, r):
    """An epoch begins: find all that it is decided on."""
    e, c = r.epoch[0], w.clock[0]
    e.stamp += 1
    e.midway = e.orders = e.moves = 0
    e.elsewhere = e.options = NONE
    e.valued = 0
    update_next_flow_rates(w)
    reports(w, r)
    paths(w, r)
    jobs(w, r)
    holdings(w, r)
    prior(w, r)
    trust(w, r)
    e.waiting = c.pending


@compiled
def reports(w, r):
    """Working and free devices as they are reported: true, or when a domain was cut off, or too many."""
    pools, sites, devices, free, reach = w.pools, w.sites, r.devices, r.reported, r.reach
    for site in range(sites.size):
        reach[site] = 0 if sites[site].cut else 1
    total = reachable = width = 0
    for pool in range(pools.size):
        p = pools[pool]
        site = sites[p.site]
        working, left = (p.cut_working, p.cut_free) if site.cut else (p.working, p.free)
        if site.claim != 1.0:
            in_use = working - left
            working = int(np.rint(working * site.claim))
            left = max(working - in_use, 0)
        devices[pool], free[pool] = working, left
        total += working
        width = max(width, working)
        if reach[p.site]:
            reachable += working
    r.epoch[0].devices, r.epoch[0].reachable = total, max(reachable, 1)
    r.epoch[0].width = max(width, 1) + 1


@compiled
def tariff_factor(w, now):
    """Factor of all tariffs by the time of day."""
    left, step = now - _DAY * (now // _DAY), 0
    while step + 1 < w.tariff.shape[1] and left >= w.tariff[0, step]:
        left -= w.tariff[0, step]
        step += 1
    return w.tariff[1, step]


@compiled
def paths(w, r):
    """What paths between domains offer, and what they cost."""
    e, available, tariff = r.epoch[0], r.available, r.tariff
    begins, counts, routes, links = w.route_begin, w.route_count, w.route_links, w.links
    sites = w.sites.size
    factor = tariff_factor(w, w.clock[0].now)
    for source in range(sites):
        for target in range(sites):
            begin, count = begins[source, target], counts[source, target]
            least = INF if source == target else 0.0
            if count and source != target:
                least = INF
                for place in range(begin, begin + count):
                    least = min(least, links[routes[place]].hope)
            available[source, target] = least
    if factor != e.factor:
        e.factor = factor
        for source in range(sites):
            for target in range(sites):
                begin, count = begins[source, target], counts[source, target]
                money = 0.0 if source == target else INF
                if count and source != target:
                    money = links[routes[begin]].tariff * factor
                    for place in range(begin + 1, begin + count):
                        money += links[routes[place]].tariff * factor
                tariff[source, target] = money


@compiled
def left_of(stated, done):
    """Work before a job: what it has stated is doubled as often as it has done all of that."""
    if not stated > 0.0 or done < stated:
        return stated - done
    _, doublings = frexp(done / stated)
    return ldexp(stated, max(doublings, 0)) - done


@compiled
def jobs(w, r):
    """Who runs, what is known of it, and what all jobs have before them."""
    c, e, records, runs = w.clock[0], r.epoch[0], w.jobs, w.runs
    running, rate, ready, saving, mode = r.running, r.rate, r.ready, r.saving, r.mode
    used, measured, finished, left, now = r.used, r.measured, r.done, r.left, c.now
    n, run = 0, c.first
    while run != NONE:
        record = runs[run]
        job = record.job
        j = records[job]
        running[n] = job
        steps = j.rate > 0.0 or j.phase == RUNNING
        saving[n] = 1 if j.phase == SAVING and record.then_count == 0 and not steps else 0
        mode[n] = record.then_split if record.then_count and not steps else record.split
        if steps and not measured[job]:
            used[job], measured[job] = j.known_used, 1
        rate[n] = j.rate if steps else nan
        until = j.ready - now
        ready[n] = 0.0 if steps else (max(until, 0.0) if isfinite(until) else nan)
        done = j.done + j.rate * (now - j.since)
        finished[job] = done
        left[job] = left_of(j.stated * used[job] * j.requested, done)
        n += 1
        run = record.after
    e.running = n
    pending = w.pending
    for place in range(c.pending):
        job = pending[place]
        j = records[job]
        finished[job] = j.done
        left[job] = left_of(j.stated * used[job] * j.requested, j.done)


@compiled
def holdings(w, r):
    """What running jobs hold, or will hold once they are moved; and when data arrive that they wait for."""
    c, e, runs, stamp = w.clock[0], r.epoch[0], w.runs, r.epoch[0].stamp
    first, count, owner, pools, devices = r.share_first, r.share_count, r.share_of, r.share_pool, r.share_devices
    coming, coming_of, records, sites, ready = r.coming, r.coming_of, w.jobs, r.pool_site, r.ready
    run_pools, run_devices, then_pools, then_devices = w.run_pools, w.run_devices, w.then_pools, w.then_devices
    n, number, run = 0, 0, c.first
    while run != NONE:
        record = runs[run]
        moved = record.then_count and not (records[record.job].rate > 0.0 or records[record.job].phase == RUNNING)
        shares = record.then_count if moved else record.count
        first[n], count[n] = number, shares
        for place in range(shares):
            owner[number] = n
            pools[number] = then_pools[run, place] if moved else run_pools[run, place]
            devices[number] = then_devices[run, place] if moved else run_devices[run, place]
            if ready[n] > 0.0:
                data, site = records[record.job].data, sites[pools[number]]
                if coming_of[data] != stamp:
                    coming_of[data] = stamp
                    coming[data, :] = INF
                coming[data, site] = min(coming[data, site], ready[n])
            number += 1
        n += 1
        run = record.after
    e.shares = number


@compiled
def prior(w, r):
    """How many of their devices jobs of each profile keep busy: ``UtilisationPrior``."""
    chances, running, pending, used, measured, records = r.chances, r.running, w.pending, r.used, r.measured, w.jobs
    waiting, chances[:] = w.clock[0].pending, PRIOR / LEVELS
    for place in range(waiting + r.epoch[0].running):
        job = pending[place] if place < waiting else running[place - waiting]
        if measured[job]:
            chances[records[job].profile, min(int(used[job] * LEVELS), LEVELS - 1)] += 1.0
    for profile in range(chances.shape[0]):
        total = 0.0
        for level in range(LEVELS):
            total += chances[profile, level]
        for level in range(LEVELS):
            chances[profile, level] /= total


@compiled
def trust(w, r):
    """Free devices that may be counted upon; the pace of each domain; when running jobs end."""
    e, records = r.epoch[0], w.jobs
    reach, free, reported, devices, sites, kinds = r.reach, r.free, r.reported, r.devices, r.pool_site, r.pool_type
    base_free = r.base_free
    pools, share_devices, pace, weighed = r.share_pool, r.share_devices, r.pace, r.levels[0]
    taken, counts, shares, firsts, several = r.scratch[0], r.scratch[1], e.shares, r.share_first, r.share_count
    running, rates, readies, saving, ends = r.running, r.rate, r.ready, r.saving, r.ends
    used, measured, job_index, left = r.used, r.measured, r.job_index, r.left
    for pool in range(free.size):
        taken[pool] = 0
    for number in range(shares):
        taken[pools[number]] += share_devices[number]
    for pool in range(free.size):
        available = min(reported[pool], max(devices[pool] - taken[pool], 0))
        free[pool] = base_free[pool] = available if reach[sites[pool]] else 0
    for site in range(reach.size):
        weighed[site], counts[site] = 0.0, 0
    for n in range(e.running):
        job = running[n]
        j, number = records[job], firsts[n]
        if several[n] == 1 and measured[job] and rates[n] > 0.0 and readies[n] == 0.0:
            pool = pools[number]
            paper = fast(
                float(share_devices[number]), job_index[job, kinds[pool]], j.requested, j.maximum, j.serial, used[job]
            )
            ratio = rates[n] / paper if paper > 0.0 else 1.0
            weighed[sites[pool]] += min(max(ratio, SLOWEST), 1.0 / SLOWEST)
            counts[sites[pool]] += 1
        rate = rates[n]
        if not isfinite(rate):
            total, compute = 0, 0.0
            for place in range(number, number + several[n]):
                total += share_devices[place]
                compute += job_index[job, kinds[pools[place]]] * share_devices[place]
            rate = compute / max(float(total), 1.0) * min(float(total), used[job] * j.requested)
        seconds = left[job] / rate if rate > 0.0 else INF
        ready = readies[n] if isfinite(readies[n]) else 0.0
        ends[n] = ready if saving[n] else ready + seconds
    for site in range(reach.size):
        pace[site] = (weighed[site] + BELIEF) / (counts[site] + BELIEF)


@compiled
def stage(w, r, data):
    """Seconds and money until a data set is in each domain, into ``stage_seconds`` and ``stage_money``."""
    stamp = r.epoch[0].stamp
    if r.staged[data] == stamp:
        return
    r.staged[data] = stamp
    dataset, now = w.datasets[data], w.clock[0].now
    copies, available, tariff, trips = w.copies, r.available, r.tariff, w.round_trip
    seconds, money, sites = r.stage_seconds, r.stage_money, w.sites.size
    bits = dataset.size * _BITS
    sources, count = r.scratch[0], 0
    for site in range(sites):
        if copies[data, site] >= now:
            sources[count] = site
            count += 1
    for target in range(sites):
        took, cost = INF, INF
        if copies[data, target] >= now:
            took = cost = 0.0
        elif not dataset.pinned:
            most, best = -1.0, NONE
            for place in range(count):
                source = sources[place]
                if available[source, target] > most:
                    most, best = available[source, target], source
            if best != NONE and isfinite(trips[best, target]):
                if bits == 0.0:
                    took = cost = 0.0
                else:
                    took = bits / most if most > 0.0 else INF
                    cost = bits * tariff[best, target]
        if r.coming_of[data] == stamp and r.coming[data, target] < INF:
            took, cost = min(took, r.coming[data, target]), 0.0
        seconds[data, target], money[data, target] = took, cost


@compiled
def checkpoint_seconds(w, r, job, site):
    """Seconds until the checkpoint of a job is in a domain; zero without one."""
    j = w.jobs[job]
    if j.checkpoint_at == NONE:
        return 0.0
    bits = j.checkpoint * _BITS
    if bits == 0.0 and isfinite(w.round_trip[j.checkpoint_at, site]):
        return 0.0
    offered = r.available[j.checkpoint_at, site]
    return bits / offered if offered > 0.0 else INF


@compiled
def checkpoint_money(w, r, job, site):
    """What that costs."""
    j = w.jobs[job]
    if j.checkpoint_at == NONE:
        return 0.0
    bits, tariff = j.checkpoint * _BITS, r.tariff[j.checkpoint_at, site]
    return 0.0 if bits == 0.0 and isfinite(tariff) else bits * tariff


@compiled
def nth(values, count, rank):
    """The value of a rank, from zero, among the first so many, which change their places."""
    low, high = 0, count - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, k = low, high
        while i <= k:
            while values[i] < pivot:
                i += 1
            while values[k] > pivot:
                k -= 1
            if i <= k:
                values[i], values[k] = values[k], values[i]
                i += 1
                k -= 1
        if rank <= k:
            high = k
        elif rank >= i:
            low = i
        else:
            break
    return values[rank]


@compiled
def value_devices(w, r):
    """What a device of each pool is worth over the mean of all: ``candidates.device_value``; and means by class."""
    e = r.epoch[0]
    if e.valued:
        return
    e.valued = 1
    kind_index, mean, devices, kinds, value = r.kind_index, r.mean, r.devices, r.pool_type, r.value
    weight, left, kind, sorted_left = r.weight, r.left, r.kind, r.levels[1]
    for number in range(mean.size):
        total, count = 0.0, 0
        for pool in range(devices.size):
            index = kind_index[number, kinds[pool]]
            total += index * devices[pool]
            count += devices[pool] if index > 0.0 else 0
        mean[number] = total / max(count, 1)
        weight[number] = 0.0
        r.head[number] = 0.0
        if mean[number] > 0.0:
            for pool in range(devices.size):
                if kind_index[number, kinds[pool]] > 0.0:
                    r.head[number] = 1.0
    n, pending, running = 0, w.pending, r.running
    for place in range(e.waiting):
        if r.head[kind[pending[place]]] > 0.0:
            sorted_left[n] = left[pending[place]]
            n += 1
    for place in range(e.running):
        if r.head[kind[running[place]]] > 0.0:
            sorted_left[n] = left[running[place]]
            n += 1
    if n == 0:
        value[:] = 1.0
        return
    median = nth(sorted_left, n, n // 2)
    if n % 2 == 0:
        median = (nth(sorted_left, n, n // 2 - 1) + median) / 2.0
    most, total = median * MAX_WEIGHT, 0.0
    for place in range(e.waiting + e.running):
        job = pending[place] if place < e.waiting else running[place - e.waiting]
        if r.head[kind[job]] > 0.0:
            work = min(left[job], most) + MIN_VALUE
            weight[kind[job]] += work
            total += work
    for pool in range(value.size):
        relative = 0.0
        for number in range(mean.size):
            if weight[number] > 0.0:
                relative += kind_index[number, kinds[pool]] / mean[number] * weight[number]
        value[pool] = max(relative / total, MIN_VALUE)


@compiled
def undisturbed(r, n):
    """Whether a running job runs undisturbed in one pool, and it is known what it keeps busy."""
    return (
        r.share_count[n] == 1
        and r.mode[n] == ALONE
        and r.ready[n] == 0.0
        and not isnan(r.rate[n])
        and r.rate[n] > 0.0
        and not r.saving[n]
        and r.measured[r.running[n]] == 1
        and r.reach[r.pool_site[r.share_pool[r.share_first[n]]]] == 1
    )
