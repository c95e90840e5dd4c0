"""Who starts, and where: ``kuayu.scheduling.scheduler`` in the compiled world, job by job.

An epoch is decided in stretches, so that whoever learns may be asked in between: :func:`begin`, then :func:`go_on`
until there is no question left, then :func:`close`. Candidates of a job are found when it is its turn.
"""

from kuayu.scheduling.availability import EPOCH as EPOCH_SECONDS
from kuayu_conformance.testbed.scheduling.core.layout import INF, NONE
from kuayu_training.scheduling.core import preemption
from kuayu_training.scheduling.core.availability import book, keep, open_pools, show, take
from kuayu_training.scheduling.core.candidates import may_start, rows_of
from kuayu_training.scheduling.core.layout import (
    AGEING,
    AREA,
    BEGINS,
    BOOKED,
    CROWD,
    EAGER,
    GANG,
    LOOKED_AT,
    MAX_LOOKED_AT,
    MAX_TRIES,
    MIN_LENGTH,
    NO_QUESTION,
    PATIENCE,
    QUESTION,
    RESERVATIONS,
    RUNS,
    START,
    WAITS,
    compiled,
)
from kuayu_training.scheduling.core.network import set_constants
from kuayu_training.scheduling.core.observation import pose, take_answer
from kuayu_training.scheduling.core.scoring import guarded, score_of, waiting_second
from kuayu_training.scheduling.core.snapshot import take_stock, value_devices


@compiled
def earlier(w, r, one, other):
    """Whether a job is tried before another."""
    a, b = w.jobs[one].priority, w.jobs[other].priority
    if a != b:
        return a > b
    if r.overdue[one] != r.overdue[other]:
        return r.overdue[one] > r.overdue[other]
    if r.key[one] != r.key[other]:
        return r.key[one] < r.key[other]
    return one < other


@compiled
def priority_order(w, r):
    """Waiting jobs in the order in which they are tried; it is kept from epoch to epoch, as it hardly changes."""
    e, now, p = r.epoch[0], w.clock[0].now, r.parameters
    pending, order, key, overdue, listed = w.pending, r.order, r.key, r.overdue, r.listed
    records, best, left, used = w.jobs, r.best, r.left, r.used
    area, ageing, patience, least = p[AREA], p[AGEING], p[PATIENCE], p[MIN_LENGTH]
    for place in range(e.waiting):
        job = pending[place]
        requested = float(records[job].requested)
        seconds = left[job] / max(requested * used[job], 1e-9) / max(best[job], 1e-9)
        submitted = records[job].submitted - now
        overdue[job] = 1 if submitted + patience * max(seconds, least) < 0.0 else 0
        if overdue[job]:
            key[job] = submitted
        else:
            longer = 1.0 + ageing * -submitted / max(seconds, least)
            key[job] = max(seconds, 1.0) * requested**area / longer
        listed[job] += 2
    n = 0
    for place in range(e.ordered):
        job = order[place]
        if listed[job] == 3:
            order[n] = job
            n += 1
            listed[job] = 1
        else:
            listed[job] = 0
    for place in range(e.waiting):
        job = pending[place]
        if listed[job] == 2:
            order[n] = job
            n += 1
            listed[job] = 1
    for place in range(1, n):
        job, spot = order[place], place
        while spot > 0 and earlier(w, r, job, order[spot - 1]):
            order[spot] = order[spot - 1]
            spot -= 1
        order[spot] = job
    e.ordered = n


@compiled
def delay_of(w, r, place):
    """Jobs that a device second delays, over all devices: those behind a place in the order, and some to come."""
    e = r.epoch[0]
    behind = e.waiting - 1.0 - place
    to_come = r.parameters[EAGER] * e.running
    requested = float(w.jobs[r.order[place]].requested)
    return (behind + to_come) / e.reachable / requested ** r.parameters[GANG]


@compiled
def begin(w, r):
    """An epoch is to be decided."""
    e, p = r.epoch[0], r.parameters
    take_stock(w, r)
    open_pools(r)
    show(r)
    priority_order(w, r)
    if r.network.size:
        set_constants(w, r)
    value_devices(w, r)
    e.looked = min(e.ordered, int(p[LOOKED_AT if some_free(r) else BOOKED]), MAX_LOOKED_AT)
    e.place = e.starts = e.waits = e.reserved = 0
    e.tries = int(p[MAX_TRIES])
    r.wanted[:] = 0
    e.decisions += 1


@compiled
def some_free(r):
    """Whether any device is free that may be counted upon."""
    for pool in range(r.free.size):
        if r.free[pool] > 0:
            return True
    return False


@compiled
def fill(r):
    """How long candidates of a job wait, whether each could be taken now, and what each is worth."""
    when, rows, free, now, scores = r.when, r.rows, r.free, r.now, r.score
    pools, shares, counts = r.row_pools, r.row_shares, r.row_count
    reserved_count, reserved_start, reserved_extra = r.reserved_count, r.reserved_start, r.reserved_extra
    second = waiting_second(r)
    for row in range(r.epoch[0].rows):
        seconds, able, latest = rows[row, BEGINS] + rows[row, RUNS], True, 0.0
        for place in range(counts[row]):
            pool, devices = pools[row, place], shares[row, place]
            able &= devices <= free[pool]
            for spot in range(reserved_count[pool]):
                if seconds > reserved_start[pool, spot] and devices > max(reserved_extra[pool, spot], 0):
                    able = False
            latest = max(latest, when[pool, devices - 1])
        now[row] = 1 if able else 0
        rows[row, WAITS] = 0.0 if able else max(latest, EPOCH_SECONDS)
        scores[row] = score_of(r, row, 0.0, rows[row, CROWD]) + second * rows[row, WAITS]


@compiled
def best_of(r):
    """The candidate with the least score; none if none leads to the end of the job."""
    best = NONE
    for row in range(r.epoch[0].rows):
        if r.score[row] < INF and (best == NONE or r.score[row] < r.score[best]):
            best = row
    return best


@compiled
def go_on(w, r):
    """Decide on job after job until a question is open, or the epoch is decided; ``QUESTION`` or ``NO_QUESTION``."""
    e, p = r.epoch[0], r.parameters
    while e.place < e.looked:
        job = r.order[e.place]
        if not e.midway:
            if e.waits >= p[BOOKED]:
                if not some_free(r):
                    break
                if not may_start(w, r, job):
                    e.place += 1
                    continue
            e.rows = rows_of(w, r, job, delay_of(w, r, e.place))
            if e.rows == 0 or (e.waits >= p[BOOKED] and not fits_somewhere(r)):
                e.place += 1
                continue
            fill(r)
            e.attempts += 1
            e.candidates += e.rows
            e.chosen = best_of(r)
            if e.asking:
                if pose(w, r, job) == QUESTION:
                    e.midway = 1
                    return QUESTION
                e.chosen = guarded(r, e.chosen)
        else:
            e.midway = 0
            e.chosen = guarded(r, take_answer(w, r, job))
        settle(w, r, job)
        e.place += 1
    e.place = e.looked
    return NO_QUESTION


@compiled
def fits_somewhere(r):
    """Whether a candidate of the job at hand fits on what is free, whoever waits for it."""
    for row in range(r.epoch[0].rows):
        free = True
        for place in range(r.row_count[row]):
            free &= r.row_shares[row, place] <= r.free[r.row_pools[row, place]]
        if free:
            return True
    return False


@compiled
def settle(w, r, job):
    """The job at hand starts, or waits for what it has chosen, unless others are preempted for something better."""
    e, p = r.epoch[0], r.parameters
    better = preemption.better(w, r, job, delay_of(w, r, e.place))
    if better != NONE:
        e.chosen = better
    if e.chosen == NONE:
        return
    row = e.chosen
    features, count = r.rows[row], r.row_count[row]
    seconds = features[BEGINS] + features[RUNS]
    if r.now[row]:
        order = e.orders
        r.order_kind[order], r.order_job[order], r.order_count[order] = START, job, count
        r.order_mode[order], r.order_period[order] = r.row_mode[row], r.row_period[row]
        for place in range(count):
            pool, devices = r.row_pools[row, place], r.row_shares[row, place]
            r.order_pools[order, place], r.order_devices[order, place] = pool, devices
            take(r, pool, devices, seconds)
        e.orders += 1
        e.starts += 1
        if not some_free(r):
            e.waits += int(p[BOOKED])
        return
    e.waits += 1
    start = features[WAITS]
    if e.reserved < p[RESERVATIONS] and start < INF:
        for place in range(count):
            keep(r, r.row_pools[row, place], r.row_shares[row, place], start)
        e.reserved += 1
    for place in range(count):
        pool, devices = r.row_pools[row, place], r.row_shares[row, place]
        book(r, pool, devices, start, seconds)
        r.wanted[pool] += devices


@compiled
def close(w, r):
    """The epoch is decided: what follows for jobs that run."""
    preemption.scale_downs(w, r)
    preemption.migrations(w, r)
