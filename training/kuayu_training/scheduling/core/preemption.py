"""Running jobs that are migrated, scaled up or down: ``kuayu.scheduling.preemption``, function by function.

- ``find_running`` is ``Elsewhere``, ``change`` its method; ``find_options`` is ``Preemption._options`` of one pool;
- ``better``, ``victims``, ``choose``, ``make`` are methods of ``Preemption``;
- ``migrations`` with ``gain_of``, and ``scale_downs``, are the functions of these names.

Options of a pool are found when somebody first wants its devices, by what was free when options were first looked for.
"""

from math import ceil, isfinite

from kuayu.scheduling.availability import EPOCH as EPOCH_SECONDS
from kuayu.scheduling.throughput import STARTING, STORAGE
from kuayu_conformance.testbed.scheduling.core.layout import ALONE, INF, NONE
from kuayu_training.scheduling.core.availability import admits, release, take
from kuayu_training.scheduling.core.handle import compiled
from kuayu_training.scheduling.core.layout import (
    BEGINS,
    CROWD,
    EXPECTED_ARRIVALS_SHARE,
    GAIN_HORIZON_SECONDS,
    INTERRUPTION_SECONDS,
    MAX_MIGRATION_PAUSE_SHARE,
    MAX_PAUSE_SECONDS,
    MAX_PAUSE_SHARE,
    MAX_SAVING_SECONDS,
    MAX_SCALE_DOWN_PAUSE_SHARE,
    MAX_SLOWDOWN,
    MIN_FREED_PER_PAUSE,
    MIN_GAIN_PER_PAUSE,
    MIN_GAIN_SHARE,
    MIN_REMAINING_RATIO,
    MIN_SCORE_GAIN,
    MODE_MONEY,
    MOVE,
    PAUSE_WEIGHT,
    RUNS,
    WAITS,
)
from kuayu_training.scheduling.core.scoring import score_of
from kuayu_training.scheduling.core.snapshot import stage, undisturbed
from kuayu_training.scheduling.core.throughput import longer, restart, saving

_BITS = 8.0


@compiled
def find_running(w, r):
    """See to it that running jobs are known that can be changed, and what each has before it where it is."""
    e = r.epoch[0]
    if e.elsewhere != NONE:
        return
    n = 0
    for place in range(e.running):
        r.gone[place] = 0
        if undisturbed(r, place):
            share = r.share_first[place]
            r.row_of[n] = r.running[place]
            r.row_pool[n], r.row_devices[n] = r.share_pool[share], r.share_devices[share]
            r.row_left[n] = r.left[r.running[place]] / r.rate[place]
            r.row_longer[n] = longer(w, r, r.row_of[n], r.row_devices[n])
            n += 1
    e.elsewhere = n


@compiled
def change(w, r, row, pool, devices):
    """Speed then over speed now, seconds until devices are given back, seconds without steps, and money."""
    job, was, has = r.row_of[row], r.row_pool[row], r.row_devices[row]
    j = w.jobs[job]
    here, there, size = r.pool_site[was], r.pool_site[pool], j.checkpoint
    staging = paid = moving = money = 0.0
    if pool != was:
        stage(w, r, j.data)
        staging, paid = r.stage_seconds[j.data, there], r.stage_money[j.data, there]
    speed = r.row_longer[row] / (r.row_longer[row] if devices == has else longer(w, r, job, devices))
    speed *= r.worth[job, r.pool_type[pool]] / r.worth[job, r.pool_type[was]]
    if here != there and size > 0.0:
        moving = size * _BITS / r.available[here, there]
        money = size * _BITS * r.tariff[here, there]
    saves = saving(size, float(has))
    pause = saves + moving + staging + restart(size, float(devices))
    return speed * r.pace[there] / r.pace[here], saves, pause, money + paid


@compiled
def begin_options(w, r):
    """Options are looked for in this epoch for the first time: what is free now counts for all of them."""
    e = r.epoch[0]
    if e.options != NONE:
        return
    find_running(w, r)
    e.options = 0
    for pool in range(r.free.size):
        r.option_begin[pool] = r.option_count[pool] = NONE
        r.option_free[pool] = r.free[pool]


@compiled
def add_option(w, r, row, pool, devices):
    """An option, if the interruption is little enough."""
    e, p = r.epoch[0], r.parameters
    left, was = r.row_left[row], r.row_pool[row]
    if not r.worth[r.row_of[row], r.pool_type[pool]] > 0.0 or p[MAX_PAUSE_SHARE] * left < STARTING:
        return
    speed, saves, pause, money = change(w, r, row, pool, devices)
    if (
        saves <= p[MAX_SAVING_SECONDS]
        and pause <= p[MAX_PAUSE_SHARE] * left
        and speed > 0.0
        and isfinite(pause + money)
    ):
        its = r.options[e.options]
        its.row, its.pool, its.devices, its.left = row, pool, devices, left
        its.freed = r.row_devices[row] - (devices if pool == was else 0)
        its.saves, its.pause = saves, pause
        its.slower = max(1.0 - speed, 0.0)
        its.cost = p[PAUSE_WEIGHT] * pause + p[INTERRUPTION_SECONDS] + p[MODE_MONEY] * money
        e.options += 1


@compiled
def find_options(w, r, was):
    """All that jobs of a pool might do: as many devices elsewhere, as many as they asked for, the least that do."""
    e = r.epoch[0]
    if r.option_count[was] != NONE:
        return
    r.option_begin[was] = e.options
    for size in range(3):
        for row in range(e.elsewhere):
            if r.row_pool[row] != was:
                continue
            j, has = w.jobs[r.row_of[row]], r.row_devices[row]
            fewer = min(j.requested, has - 1)
            devices = has if size == 0 else fewer
            if size == 2:
                devices = j.minimum if fewer > j.minimum else 0
            if devices < j.minimum:
                continue
            for pool in range(r.free.size):
                if pool == was:
                    if devices < has:
                        add_option(w, r, row, pool, devices)
                elif r.option_free[pool] >= devices:
                    add_option(w, r, row, pool, devices)
    r.option_count[was] = e.options - r.option_begin[was]


@compiled
def better(w, r, job, delay):
    """The candidate that is better than the one chosen, if others make room for it, who are told to; none else."""
    e, p = r.epoch[0], r.parameters
    if e.chosen == NONE or e.tries <= 0:
        return NONE
    own = r.score[e.chosen]
    least = own - p[MIN_SCORE_GAIN] * abs(own)
    hopeful, bounds, n = r.scratch[3], r.levels[2], 0
    for row in range(e.rows):
        if r.now[row] or r.row_mode[row] != ALONE:
            continue
        bound = score_of(r, row, EPOCH_SECONDS, r.rows[row, CROWD] + p[INTERRUPTION_SECONDS])
        if bound < least:
            place = n
            while place > 0 and bounds[place - 1] > bound:
                bounds[place], hopeful[place] = bounds[place - 1], hopeful[place - 1]
                place -= 1
            bounds[place], hopeful[place] = bound, row
            n += 1
    found, start, lost, count = NONE, 0.0, 0.0, 0
    for place in range(n):
        if bounds[place] >= least:
            break
        row = hopeful[place]
        e.tries -= 1
        its = r.rows[row]
        if not victims(w, r, job, r.row_pools[row, 0], r.row_shares[row, 0], its[BEGINS] + its[RUNS], delay):
            continue
        score = score_of(r, row, e.start, its[CROWD] + e.lost)
        if score < least:
            least, found, start, lost, count = score, row, e.start, e.lost, e.victims
            for spot in range(count):
                r.victims[spot] = r.scratch[5, spot]
    if found == NONE:
        return NONE
    r.rows[found, WAITS] = start
    r.rows[found, CROWD] += lost
    r.score[found] = least
    make(r, count, start)
    return found


@compiled
def victims(w, r, job, pool, devices, seconds, delay):
    """The cheapest way for a job to have devices of a pool for so long; false without one.

    Options are then in ``scratch[5]``, with their number, when devices are free, and what is lost in the epoch.
    """
    p = r.parameters
    begin_options(w, r)
    more = devices - r.free[pool]
    if more <= 0:
        return False
    find_options(w, r, pool)
    begin, count = r.option_begin[pool], r.option_count[pool]
    if count == 0:
        return False
    priority, options, free, value, records = w.jobs[job].priority, r.options, r.free, r.value, w.jobs
    ratio, pause, sum_freed, last, most = p[MIN_REMAINING_RATIO], p[MAX_PAUSE_SECONDS], 0, NONE, 0
    able = r.scratch[4]
    n = 0
    for number in range(begin, begin + count):
        its = options[number]
        stays = its.pool == pool
        if (
            its.left >= ratio * seconds
            and (records[r.row_of[its.row]].priority <= priority or its.pause <= pause)
            and not r.gone[its.row]
            and (stays or its.devices <= free[its.pool])
        ):
            others = 0.0 if stays else delay * value[its.pool] * its.devices * seconds
            its.lost = its.slower * seconds + its.cost + others
            able[n] = number
            n += 1
            if its.row != last:
                sum_freed += most
                last, most = its.row, 0
            most = max(most, its.freed)
    # an upper bound on what can be given up, since options of a job follow each other within each size only
    if n == 0 or sum_freed + most < more:
        return False
    return choose(r, pool, more, n)


@compiled
def choose(r, pool, more, n):
    """The cheapest of some options for each device that they give up, until there are enough; whether there are."""
    e, options, able, chosen, used = r.epoch[0], r.options, r.scratch[4], r.scratch[5], r.scratch[6]
    per_device, wanted = r.levels[3], more
    for place in range(n):
        its = options[able[place]]
        per_device[place] = its.lost / min(its.freed, wanted)
    for other in range(r.free.size):
        used[other] = 0
    count, lost, saves = 0, 0.0, 0.0
    while more > 0:
        best = NONE
        for place in range(n):
            if able[place] != NONE and (best == NONE or per_device[place] < per_device[best]):
                best = place
        if best == NONE:
            break
        number = able[best]
        able[best] = NONE
        its = options[number]
        if its.pool != pool:
            taken = used[its.pool] + its.devices
            if not admits(r, its.pool, taken, its.left):
                continue
            used[its.pool] = taken
        for place in range(n):
            if able[place] != NONE and options[able[place]].row == its.row:
                able[place] = NONE
        chosen[count] = number
        count += 1
        more -= its.freed
        lost += its.lost
        saves = max(saves, its.saves)
    if more > 0:
        return False
    e.victims, e.lost = count, lost
    e.start = max(EPOCH_SECONDS, ceil(saves / EPOCH_SECONDS) * EPOCH_SECONDS)
    return True


@compiled
def add_move(r, job, pool, devices, stays, needed):
    """A running job goes on with devices of a pool."""
    e = r.epoch[0]
    r.moves[0, e.moves], r.moves[1, e.moves], r.moves[2, e.moves] = job, pool, devices
    r.moves[3, e.moves], r.moves[4, e.moves] = stays, needed
    e.moves += 1


@compiled
def make(r, count, start):
    """Those who make room go."""
    for place in range(count):
        its = r.options[r.victims[place]]
        was = r.row_pool[its.row]
        if its.pool != was:
            take(r, its.pool, its.devices, its.left)
        release(r, was, its.freed, its.left, start)
        r.gone[its.row] = 1
        add_move(r, r.row_of[its.row], its.pool, its.devices, its.pool == was, 1)


@compiled
def order_move(r, job, pool, devices):
    """A running job is told to go on with devices of a pool."""
    e = r.epoch[0]
    number = e.orders
    r.order_kind[number], r.order_job[number], r.order_count[number] = MOVE, job, 1
    r.order_mode[number], r.order_period[number] = ALONE, 0
    r.order_pools[number, 0], r.order_devices[number, 0] = pool, devices
    e.orders += 1


@compiled
def migrations(w, r):
    """Jobs that make room, and those that go on with devices that nobody who waits is given, who gain most first."""
    e = r.epoch[0]
    spare = False
    for pool in range(r.free.size):
        spare |= r.free[pool] > 0
    if spare:
        migrate(w, r)
    for number in range(e.moves):
        order_move(r, r.moves[0, number], r.moves[1, number], r.moves[2, number])


@compiled
def migrate(w, r):
    """Find jobs that gain by going elsewhere, or by more devices."""
    e = r.epoch[0]
    find_running(w, r)
    free, gains, seconds, n = r.option_free, r.levels[2], r.levels[3], 0
    rows, pools, devices = r.scratch[3], r.scratch[4], r.scratch[5]
    for pool in range(r.free.size):
        free[pool] = r.free[pool]
    crowd = (e.waiting - e.starts + r.parameters[EXPECTED_ARRIVALS_SHARE] * e.running) / max(e.devices, 1)
    gone, row_of, row_pool, row_devices, row_left = r.gone, r.row_of, r.row_pool, r.row_devices, r.row_left
    worth, kinds, sites, pace, records = r.worth, r.pool_type, r.pool_site, r.pace, w.jobs
    least_share, most_share = r.parameters[MIN_GAIN_SHARE], r.parameters[MAX_MIGRATION_PAUSE_SHARE]
    for size in range(2):
        for row in range(e.elsewhere):
            if gone[row] or most_share * row_left[row] < STARTING:
                continue
            job, own, has = row_of[row], row_pool[row], row_devices[row]
            j, here = records[job], worth[row_of[row], kinds[row_pool[row]]] * pace[sites[row_pool[row]]]
            for pool in range(free.size):
                index = worth[job, kinds[pool]]
                if free[pool] <= 0 or not index > 0.0:
                    continue
                room = free[pool] + (has if pool == own else 0)
                most = min(j.maximum, room)
                many = most if size == 0 else min(j.requested, room)
                if many < j.minimum or (size == 1 and many == most) or (pool == own and many <= has):
                    continue
                if many <= has and (index * pace[sites[pool]] - here) < 0.999 * least_share * index * pace[sites[pool]]:
                    continue  # no faster on no more devices, by more than rounding: it gains too little
                gained, then = gain_of(w, r, row, pool, many, crowd)
                if gained > 0.0:
                    gains[n], seconds[n], rows[n], pools[n], devices[n] = gained, then, row, pool, many
                    n += 1
    while True:
        best = NONE
        for place in range(n):
            if gains[place] > 0.0 and (best == NONE or gains[place] > gains[best]):
                best = place
        if best == NONE:
            break
        gains[best] = 0.0
        row, pool = rows[best], pools[best]
        stays = pool == r.row_pool[row]
        more = devices[best] - (r.row_devices[row] if stays else 0)
        if r.gone[row] or not admits(r, pool, more, seconds[best]):
            continue
        take(r, pool, more, seconds[best])
        r.gone[row] = 1
        add_move(r, r.row_of[row], pool, devices[best], stays, 0)


@compiled
def gain_of(w, r, row, pool, devices, crowd):
    """Seconds that a job gains elsewhere, less what it costs others and in money, and seconds that are left then.

    Zero is gained where it does not pay.
    """
    p, left, was = r.parameters, r.row_left[row], r.row_pool[row]
    job = r.row_of[row]
    stage(w, r, w.jobs[job].data)
    if not isfinite(r.stage_seconds[w.jobs[job].data, r.pool_site[pool]]):
        return 0.0, INF
    speed, _, pause, money = change(w, r, row, pool, devices)
    then = left / speed
    near = min(left, p[GAIN_HORIZON_SECONDS])
    gained = min(left - then, near * (1.0 - 1.0 / speed)) - pause
    pays = (
        gained >= p[MIN_GAIN_SHARE] * near
        and gained >= p[MIN_GAIN_PER_PAUSE] * pause
        and pause <= p[MAX_MIGRATION_PAUSE_SHARE] * left
    )
    if not pays or not isfinite(then):
        return 0.0, INF
    others = crowd * (r.value[pool] * devices * (pause + then) - r.value[was] * r.row_devices[row] * left)
    return gained - others - p[MODE_MONEY] * money, pause + then


@compiled
def scale_downs(w, r):
    """Jobs that go on with fewer devices, those that give back most first, as long as anybody waits for them."""
    e, p, wanted = r.epoch[0], r.parameters, r.wanted
    some = False
    for pool in range(wanted.size):
        if wanted[pool] > 0:
            wanted[pool] -= r.free[pool]
            some |= wanted[pool] > 0
    if not some:
        return
    find_running(w, r)
    waiting, rows, fewer, gains, n = e.waiting - e.starts, r.scratch[3], r.scratch[4], r.levels[2], 0
    for row in range(e.elsewhere):
        pool = r.row_pool[row]
        if r.gone[row] or wanted[pool] <= 0:
            continue
        job, devices, left = r.row_of[row], r.row_devices[row], r.row_left[row]
        if p[MAX_SCALE_DOWN_PAUSE_SHARE] * left < STARTING:
            continue
        j = w.jobs[job]
        busy = max(ceil(r.used[job] * j.requested - 1e-9), j.minimum)
        freed = devices - busy
        if freed <= 0:
            continue
        slower = longer(w, r, job, busy) / longer(w, r, job, devices)
        pause = STARTING + j.checkpoint / STORAGE * (1.0 / devices + 1.0 / busy)
        gained = freed * left * waiting / max(e.devices, 1)
        if (
            slower <= p[MAX_SLOWDOWN]
            and pause <= p[MAX_SCALE_DOWN_PAUSE_SHARE] * left
            and gained >= p[MIN_FREED_PER_PAUSE] * pause
        ):
            rows[n], fewer[n], gains[n] = row, busy, freed * left
            n += 1
    while True:
        best = NONE
        for place in range(n):
            if gains[place] > 0.0 and (best == NONE or gains[place] > gains[best]):
                best = place
        if best == NONE:
            return
        gains[best] = 0.0
        row = rows[best]
        pool = r.row_pool[row]
        if wanted[pool] > 0:
            wanted[pool] -= r.row_devices[row] - fewer[best]
            r.gone[row] = 1
            order_move(r, r.row_of[row], pool, fewer[best])
