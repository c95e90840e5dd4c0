"""What was decided is carried out in the compiled world, as ``engine.world.Dispatch`` of the suite does; or refused."""

from kuayu_conformance.testbed.scheduling.core import jobs
from kuayu_conformance.testbed.scheduling.core.candidates import staging
from kuayu_conformance.testbed.scheduling.core.jobs import lasts, restart, terms
from kuayu_conformance.testbed.scheduling.core.layout import ALONE, INF, NONE, PENDING, PERIODIC, PIPELINE, RUNNING
from kuayu_conformance.testbed.scheduling.core.network import share
from kuayu_training.scheduling.core.layout import PERIODS, START, STOP, compiled


@compiled
def expected(w, job, pools, devices, count, mode, period, penalty):
    """Seconds until a job would run there, and its rate then, as ``View.expected``."""
    j, seconds = w.jobs[job], -INF
    for place in range(count):
        reads = mode != PIPELINE or place == 0
        seconds = max(seconds, staging(w, job, w.pools[pools[place]].site, reads))
    if j.checkpoint_at != NONE:
        seconds += restart(w, job, devices, count, mode)
    work, _, whole, bits, latency, hidden, _ = terms(w, job, j.known_used, pools, devices, count, mode, period, penalty)
    granted = INF
    if count > 1:
        spare = hidden - latency
        wish = bits / spare if spare > 0.0 else INF
        for place in range(count - 1 if mode == PIPELINE else count):
            one, other = w.pools[pools[place]].site, w.pools[pools[(place + 1) % count]].site
            granted = min(granted, wish, share(w, one, other))
            if mode == PIPELINE:
                granted = min(granted, share(w, other, one))
    return seconds, work / lasts(whole, bits, latency, hidden, granted)


@compiled
def devices_of(w, job, pool):
    """Devices of a pool that a job holds."""
    run = w.jobs[job].run
    for place in range(w.runs[run].count):
        if w.run_pools[run, place] == pool:
            return w.run_devices[run, place]
    return 0


@compiled
def allowed(w, r, number):
    """Whether an order can be carried out: domains can be reached, the job is in the phase, and devices are free."""
    job = r.order_job[number]
    j = w.jobs[job]
    starts = r.order_kind[number] == START
    if j.phase != (PENDING if starts else RUNNING):
        return False
    if not starts:
        for place in range(w.runs[j.run].count):
            if w.sites[w.pools[w.run_pools[j.run, place]].site].cut:
                return False
    if r.order_kind[number] == STOP:
        return True
    total = 0
    for place in range(r.order_count[number]):
        pool, devices = r.order_pools[number, place], r.order_devices[number, place]
        p = w.pools[pool]
        total += devices
        has = 0 if starts else devices_of(w, job, pool)
        if w.sites[p.site].cut or devices < 1 or devices - has > p.free:
            return False
    return j.minimum <= total <= j.maximum


@compiled
def obey(w, r):
    """Carry out all orders of an epoch in turn."""
    e = r.epoch[0]
    for number in range(e.orders):
        if not allowed(w, r, number):
            e.refusals += 1
            continue
        job, count, mode = r.order_job[number], r.order_count[number], r.order_mode[number]
        pools, devices = r.order_pools[number], r.order_devices[number]
        if r.order_kind[number] == STOP:
            jobs.stop(w, job, pools, devices, 0, ALONE, 1, 1.0, 0.0, 0.0)
            continue
        period = PERIODS[r.order_period[number]] if mode == PERIODIC else 1
        penalty = r.penalty[1, count, r.order_period[number]] if mode == PERIODIC else 1.0
        seconds, rate = expected(w, job, pools, devices, count, mode, period, penalty)
        if r.order_kind[number] == START:
            jobs.unqueue(w, job)
            jobs.begin(w, job, pools, devices, count, mode, period, penalty, seconds, rate)
        else:
            jobs.stop(w, job, pools, devices, count, ALONE, 1, 1.0, seconds, rate)
    jobs.set_speeds(w)
