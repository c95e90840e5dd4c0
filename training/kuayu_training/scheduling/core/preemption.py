"""Running jobs that are stopped, migrated, scaled up or down: ``kuayu.scheduling.preemption``, function by function.

- ``find_running`` is ``ChangeableJobs``, ``change`` its method;
- ``find_options`` is ``Preemption._options`` of one pool, ``weight_of`` its ``_weight``;
- ``better``, ``victims``, ``keep_largest``, ``choose``, ``keep_beyond`` and ``make`` are ``better``, ``victims``,
  ``_largest``, ``_choose``, ``_trimmed`` and ``_make`` of ``Preemption``;
- ``migrations`` with ``gain_of`` are ``migrations`` with ``_gains``, and ``scale_downs`` is the function of this name.

Options of a pool are found when somebody first wants its devices, by what was free when options were first looked for.
"""

from math import ceil, isfinite

from kuayu.scheduling.availability import EPOCH as EPOCH_SECONDS
from kuayu.scheduling.preemption import MAX_PRIORITIES
from kuayu.scheduling.throughput import STARTING, STORAGE
from kuayu_conformance.testbed.scheduling.core.layout import ALONE, INF, NONE
from kuayu_training.scheduling.core.availability import admits, release, take
from kuayu_training.scheduling.core.layout import (
    BEGINS,
    CROWD,
    EXPECTED_ARRIVALS_SHARE,
    GAIN_HORIZON_SECONDS,
    INTERRUPTION_SECONDS,
    LOWER_PRIORITY_WEIGHT,
    MAX_MIGRATION_PAUSE_SHARE,
    MAX_PAUSE_PER_UNDISTURBED,
    MAX_PAUSE_SHARE,
    MAX_SAVING_SECONDS,
    MAX_SCALE_DOWN_PAUSE_SHARE,
    MAX_SLOWDOWN,
    MIN_FREED_PER_PAUSE,
    MIN_GAIN_PER_PAUSE,
    MIN_GAIN_SHARE,
    MIN_REMAINING_RATIO,
    MIN_SCORE_GAIN,
    MIN_UNDISTURBED_SECONDS,
    MODE_MONEY,
    MOVE,
    PAUSE_WEIGHT,
    RUNS,
    STOP,
    WAITS,
    compiled,
)
from kuayu_training.scheduling.core.scoring import score_of
from kuayu_training.scheduling.core.snapshot import stage, undisturbed
from kuayu_training.scheduling.core.throughput import longer, restart, saving

_BITS = 8.0
MARK = 1 << 40
"""Beyond any number that is written into the array of marks otherwise."""
NEVER = -(1 << 40)
"""A priority below all, and a number of devices that there never is."""


@compiled
def greatest(gains, n):
    """Place of the greatest gain, the first of equal ones; none where nothing is gained."""
    best = NONE
    for place in range(n):
        if gains[place] > 0.0 and (best == NONE or gains[place] > gains[best]):
            best = place
    return best


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
            r.row_undisturbed[n] = w.clock[0].now - w.jobs[r.row_of[n]].interrupted
            r.row_longer[n] = longer(w, r, r.row_of[n], r.row_devices[n])
            n += 1
    e.elsewhere = n


@compiled
def change(w, r, row, pool, devices):
    """Speed then over speed now, seconds until devices are given back, seconds without steps, and money.

    On no devices a job is stopped, to go on one day on as many as it has.
    """
    job, was, has = r.row_of[row], r.row_pool[row], r.row_devices[row]
    j = w.jobs[job]
    source, target, size = r.pool_site[was], r.pool_site[pool], j.checkpoint
    then = devices or has
    staging = paid = moving = money = 0.0
    if pool != was:
        stage(w, r, j.data)
        staging, paid = r.stage_seconds[j.data, target], r.stage_money[j.data, target]
    speed = r.row_longer[row] / (r.row_longer[row] if then == has else longer(w, r, job, then))
    speed *= r.job_index[job, r.pool_type[pool]] / r.job_index[job, r.pool_type[was]]
    if source != target and size > 0.0:
        moving = size * _BITS / r.available[source, target]
        money = size * _BITS * r.tariff[source, target]
    saves = saving(size, float(has))
    pause = saves + moving + staging + restart(size, float(then))
    speed *= r.pace[target] / r.pace[source] if devices else 0.0
    return speed, saves, pause, money + paid


@compiled
def bearable(r, undisturbed, pause):
    """Whether a job may be interrupted for so many seconds, so long after the last time."""
    p = r.parameters
    return undisturbed >= p[MIN_UNDISTURBED_SECONDS] and pause <= p[MAX_PAUSE_PER_UNDISTURBED] * undisturbed


@compiled
def begin_options(w, r):
    """Options are looked for in this epoch for the first time: what is free now counts for all of them."""
    e = r.epoch[0]
    if e.options != NONE:
        return
    find_running(w, r)
    e.options = 0
    e.highest = w.jobs[w.pending[0]].priority if e.waiting else NEVER
    find_priorities(w, r)
    for pool in range(r.free.size):
        r.option_begin[pool] = r.option_count[pool] = NONE
        r.option_free[pool] = r.free[pool]


@compiled
def find_priorities(w, r):
    """Priorities of running jobs that can be changed, each once, ascending."""
    e, priorities, n = r.epoch[0], r.priorities, 0
    for row in range(e.elsewhere):
        priority, place = w.jobs[r.row_of[row]].priority, n
        while place > 0 and priorities[place - 1] > priority:
            place -= 1
        if place > 0 and priorities[place - 1] == priority:
            continue
        for later in range(n, place, -1):
            priorities[later] = priorities[later - 1]
        priorities[place] = priority
        n += 1
    e.priorities = n


@compiled
def weight_of(r, priority, own):
    """What a second counts that a job of a priority loses for one of another."""
    below, weight = 0, 1.0
    for place in range(r.epoch[0].priorities):
        if below < MAX_PRIORITIES and priority <= r.priorities[place] < own:
            weight *= r.parameters[LOWER_PRIORITY_WEIGHT]
            below += 1
    return weight


@compiled
def cost_of(r, pause, money):
    """Seconds that an interruption counts, money included."""
    p = r.parameters
    return p[PAUSE_WEIGHT] * pause + p[INTERRUPTION_SECONDS] + p[MODE_MONEY] * money


@compiled
def of_use(w, r, row):
    """Whether any option of a running job may be of use: interruptions take longer than processes take to start."""
    p, j, left = r.parameters, w.jobs[r.row_of[row]], r.row_left[row]
    return (
        saving(j.checkpoint, float(r.row_devices[row])) <= p[MAX_SAVING_SECONDS]
        and bearable(r, r.row_undisturbed[row], STARTING)
        and (j.priority < r.epoch[0].highest or p[MAX_PAUSE_SHARE] * left >= STARTING)
    )


@compiled
def find_options(w, r, was):
    """All that jobs of a pool might do: as many devices elsewhere, as many as they asked for, the least, and none.

    None at all are left only to jobs of lower priority than somebody who waits. What each leads to is that of
    :func:`change`, of which all that does not depend on the pool is found once.
    """
    e, p, jobs = r.epoch[0], r.parameters, w.jobs
    if r.option_count[was] != NONE:
        return
    rows, n, row_pool, free, options, number = r.scratch[4], 0, r.row_pool, r.option_free, r.options, e.options
    row_of, row_devices, row_left, row_longer, row_undisturbed = (
        r.row_of,
        r.row_devices,
        r.row_left,
        r.row_longer,
        r.row_undisturbed,
    )
    job_index, kinds, sites, pace, available, tariff = (
        r.job_index,
        r.pool_type,
        r.pool_site,
        r.pace,
        r.available,
        r.tariff,
    )
    stage_seconds, stage_money = r.stage_seconds, r.stage_money
    least_undisturbed, per_undisturbed = p[MIN_UNDISTURBED_SECONDS], p[MAX_PAUSE_PER_UNDISTURBED]
    source, highest = sites[was], e.highest
    for row in range(e.elsewhere):
        if row_pool[row] == was and of_use(w, r, row):
            rows[n] = row
            n += 1
            stage(w, r, jobs[row_of[row]].data)
    begin = number
    for size in range(4):
        for place in range(n):
            row = rows[place]
            job, has = row_of[row], row_devices[row]
            j = jobs[job]
            fewer = min(j.requested, has - 1)
            devices = has if size == 0 else fewer
            if size == 2:
                devices = j.minimum if fewer > j.minimum else 0
            if size == 3:
                devices = 0
                if j.priority >= highest:
                    continue
            elif devices < j.minimum or devices <= 0:
                continue
            then, checkpoint, data, undisturbed_for = devices or has, j.checkpoint, j.data, row_undisturbed[row]
            ratio = 1.0 if then == has else row_longer[row] / longer(w, r, job, then)
            saves, restarts = saving(checkpoint, float(has)), restart(checkpoint, float(then))
            for pool in range(free.size):
                if not ((devices < has) if pool == was else (devices > 0 and free[pool] >= devices)):
                    continue
                index = job_index[job, kinds[pool]]
                if not index > 0.0:
                    continue
                target = sites[pool]
                staging = paid = moving = money = 0.0
                if pool != was:
                    staging, paid = stage_seconds[data, target], stage_money[data, target]
                if source != target and checkpoint > 0.0:
                    moving = checkpoint * _BITS / available[source, target]
                    money = checkpoint * _BITS * tariff[source, target]
                pause = saves + moving + staging + restarts
                speed = ratio * (index / job_index[job, kinds[was]])
                speed *= pace[target] / pace[source] if devices else 0.0
                if (
                    undisturbed_for >= least_undisturbed
                    and pause <= per_undisturbed * undisturbed_for
                    and (speed > 0.0 or devices == 0)
                    and isfinite(pause + (money + paid))
                ):
                    option = options[number]
                    option.priority, option.row, option.pool, option.devices = j.priority, row, pool, devices
                    option.left, option.freed = row_left[row], has - (devices if pool == was else 0)
                    option.pause, option.slower = pause, max(1.0 - speed, 0.0)
                    option.cost = cost_of(r, pause, money + paid)
                    number += 1
    e.options = number
    r.option_begin[was], r.option_count[was] = begin, number - begin


@compiled
def better(w, r, job, delay):
    """The candidate that is better than the one chosen, and starts by preempting others; it preempts them."""
    e, p = r.epoch[0], r.parameters
    if e.tries <= 0:
        return NONE
    least = INF
    if e.chosen != NONE:
        least = r.score[e.chosen]
        least -= p[MIN_SCORE_GAIN] * abs(least)
    hopeful, bounds, n = r.scratch[3], r.levels[2], 0
    rows, now, modes, interruption = r.rows, r.now, r.row_mode, p[INTERRUPTION_SECONDS]
    for row in range(e.rows):
        if now[row] or modes[row] != ALONE:
            continue
        bound = score_of(r, row, EPOCH_SECONDS, rows[row, CROWD] + interruption)
        if bound < least:
            place = n
            while place > 0 and bounds[place - 1] > bound:
                bounds[place], hopeful[place] = bounds[place - 1], hopeful[place - 1]
                place -= 1
            bounds[place], hopeful[place] = bound, row
            n += 1
    best, start, lost, count = NONE, 0.0, 0.0, 0
    for place in range(n):
        if bounds[place] >= least:
            break
        row = hopeful[place]
        e.tries -= 1
        seconds = rows[row, BEGINS] + rows[row, RUNS]
        if not victims(w, r, job, r.row_pools[row, 0], r.row_shares[row, 0], seconds, delay):
            continue
        score = score_of(r, row, e.start, rows[row, CROWD] + e.lost)
        if score < least:
            least, best, start, lost, count = score, row, e.start, e.lost, e.victims
            for spot in range(count):
                r.victims[spot], r.victim_devices[spot] = r.scratch[5, spot], r.scratch[6, spot]
    if best == NONE:
        return NONE
    rows[best, WAITS] = start
    rows[best, CROWD] += lost
    r.score[best] = least
    make(r, count, start)
    return best


@compiled
def victims(w, r, job, pool, devices, seconds, delay):
    """The cheapest way for a job to have devices of a pool for so long; false without one.

    Options are then in ``scratch[5]`` and the devices on which each goes on in ``scratch[6]``; their number, when
    devices are free, and what is lost in the epoch.
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
    own, options, free, value = w.jobs[job].priority, r.options, r.free, r.value
    able, gone, per_device = r.scratch[4], r.gone, r.levels[3]
    ratio, most_share = p[MIN_REMAINING_RATIO], p[MAX_PAUSE_SHARE]
    n = sum_freed = 0
    lower = False
    for number in range(begin, begin + count):
        option = options[number]
        priority = option.priority
        if gone[option.row] or (
            priority > own
            or (
                priority == own
                and (option.left < ratio * seconds or option.pause > most_share * option.left or option.devices <= 0)
            )
        ):
            continue
        stays = option.pool == pool
        if not stays and option.devices > free[option.pool]:
            continue
        part = min(more / option.freed, 1.0) if stays and option.devices > 0 else 1.0
        others = 0.0 if stays else delay * value[option.pool] * option.devices * seconds
        weight = weight_of(r, priority, own)
        option.lost = weight * (option.slower * part * seconds + option.cost) + others
        able[n] = number
        per_device[n] = option.lost / min(option.freed, more)
        n += 1
        sum_freed += option.freed
        lower |= weight < 1.0
    if sum_freed < more:
        return False
    if choose(w, r, job, pool, more, n, seconds, delay):
        return True
    return lower and choose(w, r, job, pool, more, keep_largest(r, more, n), seconds, delay)


@compiled
def keep_largest(r, more, n):
    """Keep of some options those by which each job gives up most; how many there are."""
    options, able, per_device, count = r.options, r.scratch[4], r.levels[3], 0
    for place in range(n):
        option, largest = options[able[place]], True
        for other in range(n):
            rival = options[able[other]]
            largest &= rival.row != option.row or rival.freed <= option.freed
        if largest:
            able[count], per_device[count] = able[place], option.lost / min(option.freed, more)
            count += 1
    return count


@compiled
def choose(w, r, job, pool, more, n, seconds, delay):
    """The cheapest of some options for each device that they give up, until there are enough; whether there are."""
    e, options, able, chosen, used = r.epoch[0], r.options, r.scratch[4], r.scratch[5], r.scratch[6]
    taken, per_device = r.scratch[7], r.levels[3]
    e.choices += 1
    mark = MARK + e.choices
    for other in range(r.free.size):
        used[other] = 0
    count = 0
    while more > 0:
        best, least = NONE, INF
        for place in range(n):
            if per_device[place] < least:
                best, least = place, per_device[place]
        if best == NONE:
            return False
        per_device[best] = INF
        option = options[able[best]]
        if taken[option.row] == mark:
            continue
        if option.pool != pool:
            wanted = used[option.pool] + option.devices
            if not admits(r, option.pool, wanted, option.left):
                continue
            used[option.pool] = wanted
        taken[option.row] = mark
        chosen[count] = able[best]
        count += 1
        more -= option.freed
    keep_beyond(w, r, job, pool, count, -more, seconds, delay)
    return True


@compiled
def keep_beyond(w, r, job, pool, count, beyond, seconds, delay):
    """Of those chosen, the ones that are needed, each with as many devices as need not be given up.

    The last of them, who lose most for a device, keep theirs first.
    """
    e, options, chosen, devices = r.epoch[0], r.options, r.scratch[5], r.scratch[6]
    for place in range(count - 1, -1, -1):
        option = options[chosen[place]]
        devices[place] = option.devices
        if option.freed <= beyond:
            beyond -= option.freed
            devices[place] = NEVER
        elif option.pool == pool and option.devices + beyond >= max(
            option.devices, w.jobs[r.row_of[option.row]].minimum
        ):
            devices[place] += beyond
            beyond = 0
    remaining, lost, saves, own = 0, 0.0, 0.0, w.jobs[job].priority
    for place in range(count):
        if devices[place] == NEVER:
            continue
        option = options[chosen[place]]
        speed, option_saves, pause, money = change(w, r, option.row, option.pool, devices[place])
        others = 0.0 if option.pool == pool else delay * r.value[option.pool] * option.devices * seconds
        weight = weight_of(r, option.priority, own)
        lost += weight * (max(1.0 - speed, 0.0) * seconds + cost_of(r, pause, money)) + others
        saves = max(saves, option_saves)
        chosen[remaining], devices[remaining] = chosen[place], devices[place]
        remaining += 1
    e.victims, e.lost = remaining, lost
    e.start = max(EPOCH_SECONDS, ceil(saves / EPOCH_SECONDS) * EPOCH_SECONDS)


@compiled
def add_move(r, job, pool, devices, stays, needed):
    """A running job goes on with devices of a pool."""
    e = r.epoch[0]
    r.moves[0, e.moves], r.moves[1, e.moves], r.moves[2, e.moves] = job, pool, devices
    r.moves[3, e.moves], r.moves[4, e.moves] = stays, needed
    e.moves += 1


@compiled
def make(r, count, start):
    """Those who are preempted go."""
    for place in range(count):
        option, devices = r.options[r.victims[place]], r.victim_devices[place]
        was = r.row_pool[option.row]
        if option.pool != was:
            take(r, option.pool, devices, option.left)
        freed = r.row_devices[option.row] - (devices if option.pool == was else 0)
        release(r, was, freed, option.left, start)
        r.gone[option.row] = 1
        add_move(r, r.row_of[option.row], option.pool, devices, option.pool == was, 1)


@compiled
def order_move(r, job, pool, devices):
    """A running job is told to go on with devices of a pool, or to stop where there are none."""
    e = r.epoch[0]
    number = e.orders
    r.order_kind[number], r.order_job[number], r.order_count[number] = MOVE if devices else STOP, job, 1
    r.order_mode[number], r.order_period[number] = ALONE, 0
    r.order_pools[number, 0], r.order_devices[number, 0] = pool, devices
    e.orders += 1


@compiled
def migrations(w, r):
    """Jobs that are preempted, and those that go on with devices that nobody who waits is given, most gain first."""
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
    job_index, kinds, sites, pace, records = r.job_index, r.pool_type, r.pool_site, r.pace, w.jobs
    undisturbed_for = r.row_undisturbed
    least_share, most_share = r.parameters[MIN_GAIN_SHARE], r.parameters[MAX_MIGRATION_PAUSE_SHARE]
    for size in range(2):
        for row in range(e.elsewhere):
            if gone[row] or most_share * row_left[row] < STARTING or not bearable(r, undisturbed_for[row], STARTING):
                continue
            job, own, has = row_of[row], row_pool[row], row_devices[row]
            j, current = records[job], job_index[row_of[row], kinds[row_pool[row]]] * pace[sites[row_pool[row]]]
            for pool in range(free.size):
                index = job_index[job, kinds[pool]]
                if free[pool] <= 0 or not index > 0.0:
                    continue
                capacity = free[pool] + (has if pool == own else 0)
                most = min(j.maximum, capacity)
                many = most if size == 0 else min(j.requested, capacity)
                if many < j.minimum or (size == 1 and many == most) or (pool == own and many <= has):
                    continue
                if (
                    many <= has
                    and (index * pace[sites[pool]] - current) < 0.999 * least_share * index * pace[sites[pool]]
                ):
                    continue  # no faster on no more devices, by more than rounding: it gains too little
                gained, then = gain_of(w, r, row, pool, many, crowd)
                if gained > 0.0:
                    gains[n], seconds[n], rows[n], pools[n], devices[n] = gained, then, row, pool, many
                    n += 1
    while True:
        best = greatest(gains, n)
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
        and bearable(r, r.row_undisturbed[row], pause)
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
            and bearable(r, r.row_undisturbed[row], pause)
            and gained >= p[MIN_FREED_PER_PAUSE] * pause
        ):
            rows[n], fewer[n], gains[n] = row, busy, freed * left
            n += 1
    while True:
        best = greatest(gains, n)
        if best == NONE:
            return
        gains[best] = 0.0
        row = rows[best]
        pool = r.row_pool[row]
        if wanted[pool] > 0:
            wanted[pool] -= r.row_devices[row] - fewer[best]
            r.gone[row] = 1
            order_move(r, r.row_of[row], pool, fewer[best])
