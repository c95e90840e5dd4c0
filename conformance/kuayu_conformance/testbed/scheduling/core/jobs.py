"""Jobs of the compiled world: how fast they are, what becomes of them, and time, in which it does.

1. **Speeds** are those of :mod:`kuayu_conformance.testbed.scheduling.law` for a run in its place, term by term. Sources
   are given there. Sums and products stand in its order, so that the same numbers come out to the last bit.
2. **Jobs.** Who holds which devices; staging, restart, running, saving, and the end of it: ``engine.stages``, with
   holdings and copies of ``engine.state``, in arrays; events and sums come in their order.
3. **Events** come in the order of time, and of their making where they coincide; then come the jobs that are submitted
   at that instant; then links are shared anew.
4. **Decisions** are due at whole multiples of an epoch at which a job is pending; what happens at that instant comes
   first. Whatever may have become too small is told of between two events, and they go on when it has been enlarged.
"""

from math import ceil, sqrt

from numba import njit

from kuayu_conformance.testbed.scheduling.core.layout import (
    ALONE,
    CHECK,
    CLAIM,
    CUT,
    FAIL,
    FINISH,
    FINISHED,
    HEAL,
    INF,
    NONE,
    PENDING,
    PIPELINE,
    REPAIR,
    RESTARTING,
    RUN,
    RUNNING,
    SAVED,
    SAVING,
    STAGING,
    TOUCH,
    UNCLAIM,
    State,
    append,
    free_node,
    sort_by,
    unlink,
)
from kuayu_conformance.testbed.scheduling.core.network import (
    at,
    close_flow,
    hold,
    mark,
    open_flow,
    pop,
    rebalance,
    share,
    through,
    update_next_flow_rates,
)

_BITS = 8.0
DUE, OVER, SHORT = range(3)
"""A decision is due; the time is over, or all jobs are finished; an array is too short."""


@njit(cache=True)
def gain(devices, serial):
    """Speed of so many devices over that of one (Amdahl)."""
    return devices / (1.0 + serial * (devices - 1.0))


@njit(cache=True)
def step_seconds(w: State, job, used, pools, devices, count):
    """Seconds of a step where nothing is exchanged, and the work of one."""
    j = w.jobs[job]
    total, weighed = 0, 0.0
    for place in range(count):
        total += devices[place]
    for place in range(count):
        weighed += devices[place] * w.indices[w.pools[pools[place]].type, j.profile]
    return _step(w, job, used, float(total), weighed / total)


@njit(cache=True)
def _step(w: State, job, used, devices, index):
    j = w.jobs[job]
    busy = used * j.requested
    most = min(devices, float(j.maximum))
    useful = min(most, used * max(most, float(j.requested)))
    fast = index * busy * gain(useful, j.serial) / gain(busy, j.serial)
    done = used * j.requested * j.step
    return done / fast, done


@njit(cache=True)
def rate_alone(w: State, job, used, kind, devices):
    """Work a second on devices of one kind in one domain."""
    index = devices * w.indices[kind, w.jobs[job].profile] / devices
    step, done = _step(w, job, used, float(devices), index)
    return done / step


@njit(cache=True)
def terms(w: State, job, used, pools, devices, count, split, period, penalty):
    """A round: work, computing, seconds, bits, latency, hidden, sent; see ``law.Terms``."""
    j = w.jobs[job]
    step, done = step_seconds(w, job, used, pools, devices, count)
    if count == 1:
        return done, step, step, 0.0, 0.0, 0.0, 0.0
    c = w.clock[0]
    if split == PIPELINE:
        filling = 1.0 + (count - 1) / c.micro_batches
        bits = j.boundary / 2.0 * _BITS
        trips = 0.0
        for place in range(count - 1):
            trips += w.round_trip[w.pools[pools[place]].site, w.pools[pools[place + 1]].site]
        return done, step, filling * step + trips, filling * bits, 0.0, filling * step, bits
    farthest = 0.0
    for place in range(count):
        other = pools[(place + 1) % count]
        farthest = max(farthest, w.round_trip[w.pools[pools[place]].site, w.pools[other].site])
    bits = 2.0 * (count - 1) / count * j.gradient * _BITS
    latency = (count - 1) * farthest
    return period * done / penalty, period * step, period * step, bits, latency, c.overlap * step, bits


@njit(cache=True)
def lasts(seconds, bits, latency, hidden, bandwidth):
    """Seconds of a round if the slowest flow has so many bits a second; infinite without any."""
    if bits == 0.0:
        return seconds
    if bandwidth <= 0.0:
        return INF
    return seconds + max(0.0, bits / bandwidth + latency - hidden)


@njit(cache=True)
def saving(w: State, job, devices, count, split):
    """Seconds in which a checkpoint is written: by the largest replica, or by all stages."""
    total = largest = 0
    for place in range(count):
        total += devices[place]
        largest = max(largest, devices[place])
    return w.jobs[job].checkpoint / (w.clock[0].storage * (total if split == PIPELINE else largest))


@njit(cache=True)
def restart(w: State, job, devices, count, split):
    """Seconds until the first step: processes begin, and the smallest replica, or all stages, read the checkpoint."""
    total, smallest = 0, devices[0]
    for place in range(count):
        total += devices[place]
        smallest = min(smallest, devices[place])
    counted = total if split == PIPELINE else smallest
    return w.clock[0].starting + w.jobs[job].checkpoint / (w.clock[0].storage * counted)


@njit(cache=True)
def interval(w: State, job, devices, count, split):
    """Seconds between checkpoints (Young), and no less than saving takes."""
    total = 0
    for place in range(count):
        total += devices[place]
    saving_time = saving(w, job, devices, count, split)
    return max(saving_time, sqrt(2.0 * saving_time * (w.clock[0].between_faults / total)))


@njit(cache=True)
def flows_of(count, split):
    """How many flows a split over so many domains has."""
    if count == 1 or split == ALONE:
        return 0
    return 2 * (count - 1) if split == PIPELINE else count


@njit(cache=True)
def count_devices(w: State):
    """Account for device seconds until now."""
    c = w.clock[0]
    passed = c.now - c.counted
    for pool in range(w.pools.size):
        p = w.pools[pool]
        p.there = p.there + p.working * passed
        p.taken = p.taken + (p.working - p.free) * passed
    c.counted = c.now


@njit(cache=True)
def take(w: State, run, pool, devices):
    """A run takes devices of a pool in addition to those that it has."""
    p = w.pools[pool]
    assert 0 < devices <= p.free
    p.free -= devices
    holder = w.run_holders[run, pool]
    if holder != NONE:
        w.holders[holder].devices += devices
        return
    c = w.clock[0]
    holder, c.free_holder, c.used_holders = free_node(w.holders, c.free_holder, c.used_holders)
    h = w.holders[holder]
    h.job, h.devices = w.runs[run].job, devices
    append(w.holders, p, holder)
    w.run_holders[run, pool] = holder


@njit(cache=True)
def give_back(w: State, run, pool, devices):
    """A run gives back some of the devices that it has of a pool."""
    p = w.pools[pool]
    holder = w.run_holders[run, pool]
    h = w.holders[holder]
    h.devices -= devices
    assert h.devices >= 0
    p.free += devices
    assert p.free <= p.working
    if h.devices:
        return
    unlink(w.holders, p, holder)
    h.after = w.clock[0].free_holder
    w.clock[0].free_holder = holder
    w.run_holders[run, pool] = NONE


@njit(cache=True)
def more_than(pools, devices, count, pool):
    """Devices of a pool in a holding."""
    for place in range(count):
        if pools[place] == pool:
            return devices[place]
    return 0


@njit(cache=True)
def give_back_beyond(w: State, run, wanted, devices, count, remaining, remaining_devices, remaining_count):
    """A run gives back what a holding has more than another."""
    for place in range(count):
        beyond = devices[place] - more_than(remaining, remaining_devices, remaining_count, wanted[place])
        if beyond > 0:
            give_back(w, run, wanted[place], beyond)


@njit(cache=True)
def held_copy(w: State, data, site):
    """Whether a domain holds a copy now."""
    return w.copies[data, site] >= w.clock[0].now


@njit(cache=True)
def use_copy(w: State, data, site):
    """A copy is there, and in use."""
    if w.copies[data, site] < INF:
        w.copies[data, site] = w.clock[0].now + w.clock[0].copy_lifetime


@njit(cache=True)
def wait_for(w: State, job, flow):
    """A job waits for a transfer."""
    c = w.clock[0]
    wait, c.free_wait, c.used_waits = free_node(w.waits, c.free_wait, c.used_waits)
    entry, f, j = w.waits[wait], w.flows[flow], w.jobs[job]
    entry.job, entry.flow = job, flow
    append(w.waits, f, wait)
    entry.previous, entry.next = NONE, j.waits
    if j.waits != NONE:
        w.waits[j.waits].previous = wait
    j.waits = wait
    j.missing += 1


@njit(cache=True)
def wait_no_more(w: State, wait):
    """A job waits for a transfer no more."""
    entry = w.waits[wait]
    f, j = w.flows[entry.flow], w.jobs[entry.job]
    unlink(w.waits, f, wait)
    if entry.previous == NONE:
        j.waits = entry.next
    else:
        w.waits[entry.previous].next = entry.next
    if entry.next != NONE:
        w.waits[entry.next].previous = entry.previous
    j.missing -= 1
    entry.after = w.clock[0].free_wait
    w.clock[0].free_wait = wait


@njit(cache=True)
def end_transfer(w: State, flow):
    """A transfer is through, or given up."""
    f = w.flows[flow]
    if f.data != NONE:
        w.under_way[f.data, f.site] = NONE
    close_flow(w, flow)


@njit(cache=True)
def forget(w: State, job):
    """A job waits no longer; what nobody else waits for is given up, in the order in which it was sent."""
    while w.jobs[job].waits != NONE:
        first, wait = NONE, w.jobs[job].waits
        while wait != NONE:
            if first == NONE or w.flows[w.waits[wait].flow].number < w.flows[w.waits[first].flow].number:
                first = wait
            wait = w.waits[wait].next
        flow = w.waits[first].flow
        wait_no_more(w, first)
        if w.flows[flow].first == NONE:
            end_transfer(w, flow)


@njit(cache=True)
def schedule(w: State, flow):
    """A transfer goes on at another rate; one that has become slower is looked at when it would have been through."""
    f = w.flows[flow]
    ends = w.clock[0].now + f.bits / f.rate if f.rate > 0.0 else INF
    if ends < f.looked_at:
        f.looked_at = ends
        at(w.events, w.clock, ends, CHECK, flow, f.number, ends)


@njit(cache=True)
def fetch(w: State, job, data, site):
    """A job waits for a copy of its data: one that is under way, or from where most may be hoped for."""
    flow = w.under_way[data, site]
    if flow == NONE:
        update_next_flow_rates(w)
        best, source = -1.0, NONE
        for other in range(w.sites.size):
            if held_copy(w, data, other):
                hoped = share(w, other, site)
                if hoped > best:
                    best, source = hoped, other
        flow = open_flow(w, source, site, INF, w.datasets[data].size * _BITS, job)
        w.flows[flow].data, w.flows[flow].site = data, site
        w.under_way[data, site] = flow
    wait_for(w, job, flow)


@njit(cache=True)
def stage(w: State, run):
    """A job waits for its data where it reads, and for its checkpoint, if it has one, in all of its domains."""
    r = w.runs[run]
    job = r.job
    j = w.jobs[job]
    readers = 1 if r.split == PIPELINE else r.count
    for place in range(r.count):
        site = w.pools[w.run_pools[run, place]].site
        if held_copy(w, j.data, site):
            use_copy(w, j.data, site)
        elif place < readers:
            fetch(w, job, j.data, site)
        if j.checkpoint_at not in (NONE, site) and j.checkpoint > 0.0:
            wait_for(w, job, open_flow(w, j.checkpoint_at, site, INF, j.checkpoint * _BITS, job))


@njit(cache=True)
def account(w: State, run):
    """Account for what a run has done until now."""
    r, now = w.runs[run], w.clock[0].now
    j = w.jobs[r.job]
    passed = now - j.since
    done = j.rate * passed
    if j.rate > 0.0 and j.interval < INF:
        last = j.resumed + (now - j.resumed) // j.interval * j.interval
        if last >= j.since and last > j.resumed:
            j.saved = j.done + j.rate * (last - j.since)
    j.done += done
    j.since = now
    if r.running < INF:
        credit(w, run, passed, done)


@njit(cache=True)
def credit(w: State, run, passed, done):
    """Add what was done in so many seconds to sums by pool."""
    r = w.runs[run]
    for place in range(r.count):
        p, devices = w.pools[w.run_pools[run, place]], w.run_devices[run, place]
        p.computing += devices * passed * r.computing
        p.work += done * devices / r.devices


@njit(cache=True)
def end_steps(w: State, run):
    """A job takes no more steps where it is, whatever it was doing."""
    r, now = w.runs[run], w.clock[0].now
    j = w.jobs[r.job]
    account(w, run)
    j.rate = 0.0
    for place in range(r.flows):
        close_flow(w, w.run_flows[run, place])
    r.flows, r.computing = 0, 0.0
    j.version += 1
    if j.fresh:
        j.fresh = 0
        for place in range(w.clock[0].fresh):
            if w.fresh[place] == r.job:
                w.fresh[place] = NONE
    if r.running < INF:
        r.stopped = min(r.stopped, now)
        for place in range(r.count):
            use_copy(w, j.data, w.pools[w.run_pools[run, place]].site)


@njit(cache=True)
def write_period(w: State, run):
    """Write down that a job held devices without a break."""
    c, r = w.clock[0], w.runs[run]
    p = w.periods[c.periods]
    p.job, p.count, p.split, p.period = r.job, r.count, r.split, r.period
    p.begin, p.running, p.stopped, p.end = r.begin, r.running, r.stopped, c.now
    for place in range(r.count):
        w.period_pools[c.periods, place] = w.run_pools[run, place]
        w.period_devices[c.periods, place] = w.run_devices[run, place]
    c.periods += 1


@njit(cache=True)
def leave(w: State, run):
    """A job gives back all its devices."""
    c, r = w.clock[0], w.runs[run]
    count_devices(w)
    for place in range(r.count):
        give_back(w, run, w.run_pools[run, place], w.run_devices[run, place])
    write_period(w, run)
    unlink(w.runs, c, run)
    w.jobs[r.job].run = NONE
    r.after = c.free_run
    c.free_run = run
    c.runs -= 1
    c.changes += 1


@njit(cache=True)
def place_in_queue(w: State, job):
    """Place of a job among those that are pending, or where it belongs."""
    low, high, priority, pending, records = 0, w.clock[0].pending, w.jobs[job].priority, w.pending, w.jobs
    while low < high:
        middle = (low + high) // 2
        other = pending[middle]
        if records[other].priority > priority or (records[other].priority == priority and other < job):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def queue_up(w: State, job):
    """A job is pending: by priority, then by number; one that was before takes its old place."""
    c, pending = w.clock[0], w.pending
    place = place_in_queue(w, job)
    for spot in range(c.pending, place, -1):
        pending[spot] = pending[spot - 1]
    pending[place] = job
    c.pending += 1
    c.queue_changes += 1
    w.jobs[job].phase = PENDING


@njit(cache=True)
def unqueue(w: State, job):
    """A job is pending no longer."""
    c, pending = w.clock[0], w.pending
    place = place_in_queue(w, job)
    assert place < c.pending
    assert pending[place] == job
    for spot in range(place, c.pending - 1):
        pending[spot] = pending[spot + 1]
    c.pending -= 1
    c.queue_changes += 1


@njit(cache=True)
def unqueue_all(w: State, started, count):
    """So many jobs, each another one, are pending no longer; the queue moves up once. Uses two rows of ``scratch``."""
    if count == 0:
        return
    c, pending, places, same = w.clock[0], w.pending, w.scratch[0], w.scratch[1]
    for number in range(count):
        place = place_in_queue(w, started[number])
        assert place < c.pending
        assert pending[place] == started[number]
        places[number] = same[number] = place
    sort_by(places, same, count)
    n = places[0]
    for number in range(count):
        for spot in range(places[number] + 1, places[number + 1] if number + 1 < count else c.pending):
            pending[n] = pending[spot]
            n += 1
    c.pending = n
    c.queue_changes += count


@njit(cache=True)
def rate_of(w: State, job):
    """Work a second on what a job asks for, as it is known, by kind of accelerator."""
    j = w.jobs[job]
    for kind in range(w.memory.size):
        if w.memory[kind] >= j.memory:
            w.rates[job, kind] = rate_alone(w, job, j.known_used, kind, j.requested)


@njit(cache=True)
def pend_again(w: State, job):
    """A job that has run is pending again."""
    rate_of(w, job)
    queue_up(w, job)


@njit(cache=True)
def pace(w: State, run):
    """From now on a running job goes on as its flows allow."""
    r, c = w.runs[run], w.clock[0]
    job = r.job
    j = w.jobs[job]
    account(w, run)
    granted = INF
    for place in range(r.flows):
        granted = min(granted, w.flows[w.run_flows[run, place]].rate)
    work, computing, seconds, bits, latency, hidden, sent = terms(
        w, job, j.used, w.run_pools[run], w.run_devices[run], r.count, r.split, r.period, r.penalty
    )
    whole = lasts(seconds, bits, latency, hidden, granted)
    for place in range(r.flows):
        hold(w, w.run_flows[run, place], sent / whole)
    slowest = INF
    for place in range(r.count):
        slowest = min(slowest, w.sites[w.pools[w.run_pools[run, place]].site].speed)
    rate = work / whole * slowest
    r.computing = computing / whole
    j.rate = j.expected = rate
    j.version += 1
    if rate > 0.0:
        left = max(j.work - j.done, 0.0)
        at(w.events, w.clock, c.now + left / rate, FINISH, job, j.version, 0.0)


@njit(cache=True)
def run_now(w: State, job):
    """A job takes its first step since it was placed."""
    c = w.clock[0]
    run = w.jobs[job].run
    r, j = w.runs[run], w.jobs[job]
    forget(w, job)
    r.running = c.now
    j.phase = RUNNING
    j.since = j.resumed = c.now
    j.interval = interval(w, job, w.run_devices[run], r.count, r.split)
    if j.known_used != j.used:
        j.known_used = j.used
        j.stated_work = j.stated * j.used * j.requested
    r.flows = 0
    wanted = flows_of(r.count, r.split)
    if wanted:
        _, _, _, bits, latency, hidden, _ = terms(
            w, job, j.used, w.run_pools[run], w.run_devices[run], r.count, r.split, r.period, r.penalty
        )
        spare = hidden - latency
        wish = bits / spare if spare > 0.0 else INF
        for number in range(wanted):
            if r.split == PIPELINE:
                cut = number % (r.count - 1)
                one, other = cut, cut + 1
                if number >= r.count - 1:
                    one, other = other, one
            else:
                one, other = number, (number + 1) % r.count
            source, target = w.pools[w.run_pools[run, one]].site, w.pools[w.run_pools[run, other]].site
            w.run_flows[run, number] = open_flow(w, source, target, wish, INF, job)
        r.flows = wanted
        j.fresh = 1
        w.fresh[c.fresh] = job
        c.fresh += 1
    else:
        pace(w, run)
    c.changes += 1


@njit(cache=True)
def arrived(w: State, job):
    """All that a job waited for is there."""
    j = w.jobs[job]
    if j.checkpoint_at == NONE:
        run_now(w, job)
        return
    j.phase = RESTARTING
    r = w.runs[j.run]
    seconds = restart(w, job, w.run_devices[j.run], r.count, r.split)
    at(w.events, w.clock, w.clock[0].now + seconds, RUN, job, j.version, 0.0)


@njit(cache=True)
def settle_in(w: State, run, seconds, rate):
    """What a job needs is sent to its devices, which it holds already."""
    c, r = w.clock[0], w.runs[run]
    j = w.jobs[r.job]
    total = 0
    for place in range(r.count):
        total += w.run_devices[run, place]
    r.devices = total
    r.begin, r.running, r.stopped, r.flows, r.computing, r.then_count = c.now, INF, INF, 0, 0.0, 0
    j.pool = w.run_pools[run, 0] if r.count == 1 else NONE
    j.devices = total
    j.phase = STAGING
    j.ready, j.expected = c.now + seconds, rate
    c.changes += 1
    stage(w, run)
    if j.missing == 0:
        arrived(w, r.job)


@njit(cache=True)
def begin(w: State, job, pools, devices, count, split, period, penalty, seconds, rate):
    """A pending job takes devices that are free.

    Args:
        w: The world.
        job: Its number.
        pools: Where, one pool of a domain each.
        devices: How many of each.
        count: How many pools.
        split: How it is spread.
        period: Steps between reconciliations.
        penalty: Times as many steps that a periodic split takes.
        seconds: Until it is expected to run.
        rate: Work a second then, as expected.
    """
    c = w.clock[0]
    run, c.free_run, c.used_runs = free_node(w.runs, c.free_run, c.used_runs)
    r = w.runs[run]
    r.job, r.count, r.split, r.period, r.penalty = job, count, split, period, penalty
    append(w.runs, c, run)
    c.runs += 1
    w.jobs[job].run = run
    count_devices(w)
    for place in range(count):
        w.run_pools[run, place], w.run_devices[run, place] = pools[place], devices[place]
        take(w, run, pools[place], devices[place])
    settle_in(w, run, seconds, rate)


@njit(cache=True)
def stop(w: State, job, pools, devices, count, split, period, penalty, seconds, rate):
    """A running job writes its checkpoint, and gives its devices back, or goes on with others where ``count`` is not 0.

    Devices that it will have in addition are taken at once; they are free. Arguments are those of :func:`begin`.
    """
    c = w.clock[0]
    run = w.jobs[job].run
    r, j = w.runs[run], w.jobs[job]
    if count:
        count_devices(w)
        for place in range(count):
            has = more_than(w.run_pools[run], w.run_devices[run], r.count, pools[place])
            if devices[place] > has:
                take(w, run, pools[place], devices[place] - has)
    end_steps(w, run)
    r.then_count, r.then_split, r.then_period, r.then_penalty = count, split, period, penalty
    r.then_seconds, r.then_rate = seconds, rate
    for place in range(count):
        w.then_pools[run, place], w.then_devices[run, place] = pools[place], devices[place]
    j.interrupted = c.now
    j.stops += 1
    j.moves += 1 if count else 0
    j.phase = SAVING
    takes = saving(w, job, w.run_devices[run], r.count, r.split)
    j.ready = c.now + takes
    at(w.events, w.clock, c.now + takes, SAVED, job, j.version, 0.0)
    c.changes += 1


@njit(cache=True)
def lose(w: State, job):
    """A node fails under a job: its devices are free, and what no checkpoint holds is lost."""
    run = w.jobs[job].run
    r, j = w.runs[run], w.jobs[job]
    end_steps(w, run)
    forget(w, job)
    lost = j.done - j.saved
    j.done = j.saved
    j.lost += lost
    j.failures += 1
    for place in range(r.count):
        w.pools[w.run_pools[run, place]].work -= lost * w.run_devices[run, place] / r.devices
    if j.saved > 0.0 and r.running < INF:
        j.checkpoint_at = w.pools[w.run_pools[run, 0]].site
    if r.then_count:
        count_devices(w)
        give_back_beyond(
            w, run, w.then_pools[run], w.then_devices[run], r.then_count, w.run_pools[run], w.run_devices[run], r.count
        )
    leave(w, run)
    pend_again(w, job)


@njit(cache=True)
def saved(w: State, job):
    """The checkpoint of a job is written."""
    run = w.jobs[job].run
    r, j = w.runs[run], w.jobs[job]
    j.saved = j.done
    j.checkpoint_at = w.pools[w.run_pools[run, 0]].site
    if r.then_count == 0:
        leave(w, run)
        pend_again(w, job)
        return
    count_devices(w)
    give_back_beyond(
        w, run, w.run_pools[run], w.run_devices[run], r.count, w.then_pools[run], w.then_devices[run], r.then_count
    )
    write_period(w, run)
    r.count, r.split, r.period, r.penalty = r.then_count, r.then_split, r.then_period, r.then_penalty
    for place in range(r.count):
        w.run_pools[run, place], w.run_devices[run, place] = w.then_pools[run, place], w.then_devices[run, place]
    settle_in(w, run, r.then_seconds, r.then_rate)


@njit(cache=True)
def finish(w: State, job):
    """A job has done all its work."""
    run, j = w.jobs[job].run, w.jobs[job]
    end_steps(w, run)
    j.done = j.saved = j.work
    j.phase = FINISHED
    j.finished = w.clock[0].now
    leave(w, run)


@njit(cache=True)
def check(w: State, flow):
    """A transfer may be through."""
    f = w.flows[flow]
    f.looked_at = INF
    if not through(w, flow):
        schedule(w, flow)
        return
    if f.data != NONE:
        use_copy(w, f.data, f.site)
    jobs = 0
    while f.first != NONE:
        w.scratch[0, jobs] = w.waits[f.first].job
        jobs += 1
        wait_no_more(w, f.first)
    end_transfer(w, flow)
    for place in range(jobs):
        job = w.scratch[0, place]
        if w.jobs[job].missing == 0:
            arrived(w, job)


@njit(cache=True)
def set_speeds(w: State):
    """Share links anew after what has happened at this instant, until no speed changes any more."""
    c = w.clock[0]
    while True:
        changed = rebalance(w)
        for place in range(changed):
            flow = w.scratch[4, place]
            if w.flows[flow].bits < INF:
                schedule(w, flow)
            else:
                owner = w.flows[flow].owner
                if not w.jobs[owner].fresh:
                    w.jobs[owner].fresh = 1
                    w.fresh[c.fresh] = owner
                    c.fresh += 1
        if c.fresh == 0:
            return
        fresh = c.fresh
        c.fresh = 0
        for place in range(fresh):
            if w.fresh[place] != NONE:
                w.jobs[w.fresh[place]].fresh = 0
                pace(w, w.jobs[w.fresh[place]].run)


@njit(cache=True)
def short(w: State):
    """Whether an array may not suffice for the next event."""
    c = w.clock[0]
    return (
        c.events + 2 * (c.flows + c.runs) + w.links.size + 64 > w.events.size or c.periods + c.runs + 8 > w.periods.size
    )


@njit(cache=True)
def over(w: State):
    """Whether all jobs have been submitted and are finished."""
    c = w.clock[0]
    return c.arrived == w.jobs.size and c.pending == 0 and c.runs == 0


@njit(cache=True)
def expect_fault(w: State):
    """The next fault is an event."""
    c = w.clock[0]
    if c.faults < w.faults.size:
        at(w.events, w.clock, w.faults[c.faults].at, FAIL, c.faults, 0, 0.0)
        c.faults += 1


@njit(cache=True)
def fail(w: State, fault):
    """A node fails: whoever holds devices of it loses them.

    Jobs fill the working devices of a pool in the order in which they came; ``place`` is where among these the node is.
    """
    f = w.faults[fault]
    p = w.pools[f.pool]
    size = min(p.per_node, p.working)
    first = int(f.place * (p.working - size + 1))
    hit, begin, holder = 0, 0, p.first
    while holder != NONE:
        h = w.holders[holder]
        if begin < first + size and first < begin + h.devices:
            w.scratch[0, hit] = h.job
            hit += 1
        begin += h.devices
        holder = h.after
    for place in range(hit):
        lose(w, w.scratch[0, place])
    if size:
        count_devices(w)
        assert size <= p.free
        p.free -= size
        p.working -= size
        at(w.events, w.clock, f.repaired, REPAIR, f.pool, size, 0.0)
    w.clock[0].changes += 1
    expect_fault(w)


@njit(cache=True)
def rewire(w: State):
    """Links of domains that are cut off offer nothing."""
    for number in range(w.links.size):
        link = w.links[number]
        cut = 0
        if link.source != NONE and w.sites[link.source].cut:
            cut = 1
        if link.target != NONE and w.sites[link.target].cut:
            cut = 1
        if cut != link.cut:
            link.cut = cut
            mark(w, number)
    w.clock[0].changes += 1


@njit(cache=True)
def happen(w: State):
    """The first event, which is due."""
    e = w.events[pop(w.events, w.clock)]
    kind, what, which, when = e.kind, e.what, e.which, e.when
    if kind == FINISH:
        if w.jobs[what].version == which:
            finish(w, what)
    elif kind == CHECK:
        if w.flows[what].number == which and w.flows[what].looked_at == when:
            check(w, what)
    elif kind == TOUCH:
        mark(w, what)
    elif kind == RUN:
        if w.jobs[what].version == which:
            run_now(w, what)
    elif kind == SAVED:
        if w.jobs[what].version == which:
            saved(w, what)
    elif kind == FAIL:
        fail(w, what)
    elif kind == REPAIR:
        count_devices(w)
        w.pools[what].free += which
        w.pools[what].working += which
        w.clock[0].changes += 1
    elif kind == CUT:
        w.sites[what].cut = 1
        for pool in range(w.pools.size):
            p = w.pools[pool]
            if p.site == what:
                p.cut_working, p.cut_free = p.working, p.free
        rewire(w)
    elif kind == HEAL:
        w.sites[what].cut = 0
        rewire(w)
    elif kind == CLAIM:
        w.sites[what].claim = when
        w.clock[0].changes += 1
    elif kind == UNCLAIM:
        w.sites[what].claim = 1.0
        w.clock[0].changes += 1


@njit(cache=True)
def admit(w: State):
    """The next job is submitted."""
    c = w.clock[0]
    j = w.jobs[c.arrived]
    j.known_used = 1.0
    j.stated_work = j.stated * 1.0 * j.requested
    rate_of(w, c.arrived)
    queue_up(w, c.arrived)
    c.arrived += 1


@njit(cache=True)
def advance(w: State, epoch, until, seconds):
    """Let time pass to the next epoch at which a job is pending.

    Args:
        w: The world.
        epoch: The first instant at which a decision may be due.
        until: When to stop at the latest.
        seconds: Between epochs.

    Returns:
        ``DUE``, ``OVER`` or ``SHORT``, and the first instant at which a decision may be due from then on.
    """
    c = w.clock[0]
    while not over(w):
        due = epoch if c.pending else INF
        instant = w.events[0].at if c.events else INF
        if c.arrived < w.jobs.size:
            instant = min(instant, w.jobs[c.arrived].submitted)
        if min(instant, due, until) >= c.variation_until:
            return SHORT, epoch
        if instant <= min(due, until) or c.midway:
            if not c.midway:
                c.now, c.waited, c.midway = instant, c.pending > 0, 1
            while c.events and w.events[0].at <= c.now:
                if short(w):
                    return SHORT, epoch
                happen(w)
            c.midway = 0
            while c.arrived < w.jobs.size and w.jobs[c.arrived].submitted <= c.now:
                admit(w)
            set_speeds(w)
            if not c.waited:
                epoch = max(epoch, ceil(c.now / seconds) * seconds)
        elif due <= until:
            c.now = due
            return DUE, epoch
        else:
            c.now = until
            return OVER, epoch
    return OVER, epoch
