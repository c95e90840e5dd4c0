"""Candidates of one job and what they lead to: ``kuayu.scheduling.candidates`` and the features of ``scheduler``."""

from math import ceil, isfinite, isnan

from kuayu.scheduling.candidates import MAX_POOLS
from kuayu.scheduling.state import MIN_VALUE
from kuayu_conformance.testbed.scheduling.core.layout import ALONE, INF, NONE, PERIODIC, PIPELINE, SYNCHRONOUS
from kuayu_training.scheduling.core.layout import (
    BEGINS,
    CROWD,
    DEVICES,
    EXCHANGING,
    INDEX,
    LOST,
    MODE_MONEY,
    MOVING,
    PERIODS,
    RUNS,
    SHRUNK,
    WAITS,
    compiled,
)
from kuayu_training.scheduling.core.snapshot import checkpoint_money, checkpoint_seconds, stage
from kuayu_training.scheduling.core.throughput import fast, longer_of, longer_unknown, restart, spread


@compiled
def rows_of(w, r, job, delay):
    """Candidates of a job, and all that is known of them but how long they wait; how many they are.

    Args:
        w: The world.
        r: The tables, after ``take_stock`` and ``value_devices``.
        job: Its number.
        delay: Jobs that a device second delays.
    """
    j = w.jobs[job]
    data, requested, least, most = j.data, j.requested, j.minimum, j.maximum
    stage(w, r, data)
    job_index, kinds, sites, devices, reach = r.job_index, r.pool_type, r.pool_site, r.devices, r.reach
    seconds, money, base = r.stage_seconds, r.stage_money, r.base_free
    n, largest, able, saved = 0, 0, r.scratch[3], j.checkpoint_at
    alone = r.modes[job, ALONE] == 1
    shrunk = ceil(r.parameters[SHRUNK] * requested)
    sizes, rows, pace, chances, left = r.scratch[4], r.rows, r.pace, r.chances, r.left[job]
    row_pools, row_shares, row_count, row_mode, row_period = (
        r.row_pools,
        r.row_shares,
        r.row_count,
        r.row_mode,
        r.row_period,
    )
    used, measured, serial, profile, checkpoint = r.used[job], r.measured[job], j.serial, j.profile, j.checkpoint
    sizes_seen, slower_seen, seen = r.scratch[5], r.levels[3], 0
    for pool in range(devices.size):
        total, site = devices[pool], sites[pool]
        able[pool] = 0
        if total <= 0 or reach[site] == 0 or not job_index[job, kinds[pool]] > 0.0:
            continue
        begins, moving = seconds[data, site], money[data, site]
        if saved != NONE:
            begins += checkpoint_seconds(w, r, job, site)
            moving += checkpoint_money(w, r, job, site)
        if not isfinite(begins):
            continue
        able[pool] = 1
        largest = max(largest, total)
        if not alone:
            continue
        # distinct sizes in ascending order
        count = 0
        for number in range(5):
            if number == 0:
                size = requested
            elif number == 1:
                size = least
            elif number == 2:
                size = most
            elif number == 3:
                size = shrunk
            else:
                size = base[pool]
            size = min(size, total, most)
            if size < least or size <= 0:
                continue
            place = count
            while place > 0 and sizes[place - 1] > size:
                place -= 1
            if place > 0 and sizes[place - 1] == size:
                continue
            for spot in range(count, place, -1):
                sizes[spot] = sizes[spot - 1]
            sizes[place] = size
            count += 1
        for number in range(count):
            row_pools[n, 0], row_shares[n, 0] = pool, sizes[number]
            row_count[n], row_mode[n], row_period[n] = 1, ALONE, 0
            size = sizes[number]
            index = job_index[job, kinds[pool]] * size / size
            if measured:
                slower = longer_of(used, float(requested), min(float(size), float(most)), serial)
            else:
                # pools of many sizes come to few sizes of the job
                spot = 0
                while spot < seen and sizes_seen[spot] != size:
                    spot += 1
                if spot == seen:
                    sizes_seen[spot] = size
                    slower_seen[spot] = longer_unknown(chances, profile, requested, most, serial, size)
                    seen += 1
                slower = slower_seen[spot]
            rate = used * requested * index / slower
            rate *= pace[site]
            rows[n, BEGINS] = begins + restart(checkpoint, float(size)) if saved != NONE else begins
            rows[n, MOVING], rows[n, EXCHANGING], rows[n, DEVICES], rows[n, INDEX] = moving, 0.0, size, index
            rows[n, RUNS] = left / rate if rate > 0.0 else INF
            n += 1
    if requested > largest and r.modes[job, SYNCHRONOUS] + r.modes[job, PERIODIC] + r.modes[job, PIPELINE] > 0:
        n = together(w, r, job, n)
    weigh(r, job, n, delay)
    return n


@compiled
def may_start(w, r, job):
    """Whether any candidate of a job might fit on what is free now; never false where one does."""
    least, requested, largest = w.jobs[job].minimum, w.jobs[job].requested, 0
    job_index, kinds, free, devices = r.job_index, r.pool_type, r.free, r.devices
    for pool in range(devices.size):
        if job_index[job, kinds[pool]] > 0.0:
            if free[pool] >= least:
                return True
            largest = max(largest, devices[pool])
    return requested > largest


@compiled
def predict_spread(w, r, job, row):
    """What a candidate over several domains leads to."""
    j, features = w.jobs[job], r.rows[row]
    count, mode = r.row_count[row], r.row_mode[row]
    total, smallest, index, begins, moving, pace = 0, r.row_shares[row, 0], 0.0, 0.0, 0.0, INF
    for place in range(count):
        pool, devices = r.row_pools[row, place], r.row_shares[row, place]
        site = r.pool_site[pool]
        total += devices
        smallest = min(smallest, devices)
        index += r.job_index[job, r.pool_type[pool]] * devices
        pace = min(pace, r.pace[site])
        if place == 0 or mode != PIPELINE:
            begins = max(begins, r.stage_seconds[j.data, site] + checkpoint_seconds(w, r, job, site))
            moving += r.stage_money[j.data, site] + checkpoint_money(w, r, job, site)
    index /= total
    if j.checkpoint_at != NONE:
        begins += restart(j.checkpoint, float(total if mode == PIPELINE else smallest))
    narrow, trips, tariff = INF, 0.0, 0.0
    for place in range(count):
        origin = r.pool_site[r.row_pools[row, place]]
        target = r.pool_site[r.row_pools[row, (place + 1) % count]]
        if mode != PIPELINE:
            narrow = min(narrow, r.available[origin, target])
            trips = max(trips, w.round_trip[origin, target])
            tariff += r.tariff[origin, target]
        elif place < count - 1:
            narrow = min(narrow, r.available[origin, target], r.available[target, origin])
            trips += w.round_trip[origin, target]
            tariff = tariff + r.tariff[origin, target] + r.tariff[target, origin]
    used = r.used[job]
    quick = fast(float(total), index, j.requested, j.maximum, j.serial, used)
    period = PERIODS[r.row_period[row]] if mode == PERIODIC else 1
    rate, occupied = spread(
        quick,
        used * j.requested * j.step,
        j.gradient,
        j.boundary,
        count,
        mode,
        period,
        r.penalty[0, count, r.row_period[row]],
        narrow,
        trips,
    )
    rate *= pace
    features[BEGINS], features[MOVING], features[DEVICES], features[INDEX] = begins, moving, total, index
    features[RUNS] = r.left[job] / rate if rate > 0.0 else INF
    features[EXCHANGING] = occupied * tariff * features[RUNS]


@compiled
def weigh(r, job, count, delay):
    """What candidates take from others: ``features_of``."""
    rows, value, pools, shares, counts, mean = r.rows, r.value, r.row_pools, r.row_shares, r.row_count, r.mean
    usual = max(mean[r.kind[job]], MIN_VALUE)
    for row in range(count):
        rated = 0.0
        for place in range(counts[row]):
            rated += value[pools[row, place]] * shares[row, place]
        seconds, devices = rows[row, BEGINS] + rows[row, RUNS], rows[row, DEVICES]
        advantage = rows[row, INDEX] / usual * devices / max(rated, MIN_VALUE)
        rows[row, WAITS] = 0.0
        rows[row, CROWD] = rated * seconds * delay
        rows[row, LOST] = (1.0 - advantage) * devices * seconds


# Several domains -----------------------------------------------------------------------------------------------------


@compiled
def together(w, r, job, n):
    """Add candidates over several domains, each in the mode and at the period that serve it best; how many then."""
    able, sites, devices = r.scratch[3], r.pool_site, r.devices
    pools, count = r.scratch[5], 0
    for pool in range(devices.size):
        if able[pool]:
            pools[count] = pool
            count += 1
    if count > MAX_POOLS:
        # the largest, of equals the first, in their order
        for pool in range(devices.size):
            if able[pool]:
                larger = 0
                for other in range(devices.size):
                    if able[other] and (
                        devices[other] > devices[pool] or (devices[other] == devices[pool] and other < pool)
                    ):
                        larger += 1
                able[pool] = 1 if larger < MAX_POOLS else 2
        count = 0
        for pool in range(devices.size):
            if able[pool] == 1:
                pools[count] = pool
                count += 1
    first = n
    for one in range(count):
        for other in range(one + 1, count):
            if sites[pools[one]] != sites[pools[other]] and joined(w, r, pools[one], pools[other]):
                r.scratch[6, 0], r.scratch[6, 1] = pools[one], pools[other]
                n = hold(w, r, job, first, n, 2)
    requested = w.jobs[job].requested
    for one in range(count):
        n = nearest_first(w, r, job, first, n, pools, count, pools[one], requested)
    return n


@compiled
def nearest_first(w, r, job, first, n, pools, count, start, requested):
    """From a pool to its nearest until there are as many devices as a job asks for."""
    chosen, order, sites = r.scratch[6], r.scratch[7], r.pool_site
    for place in range(count):
        trip, spot = w.round_trip[sites[start], sites[pools[place]]], place
        while spot > 0 and w.round_trip[sites[start], sites[order[spot - 1]]] > trip:
            order[spot] = order[spot - 1]
            spot -= 1
        order[spot] = pools[place]
    chosen[0], several, total = start, 1, r.devices[start]
    for place in range(count):
        if total >= requested:
            break
        pool, fits = order[place], True
        for other in range(several):
            fits &= sites[chosen[other]] != sites[pool] and joined(w, r, chosen[other], pool)
        if fits:
            chosen[several] = pool
            several += 1
            total += r.devices[pool]
    return hold(w, r, job, first, n, several) if several > 2 else n


@compiled
def joined(w, r, one, other):
    """Whether links between the domains of two pools are such as a job needs, both ways."""
    a, b = r.pool_site[one], r.pool_site[other]
    return (
        r.available[a, b] >= 1.0
        and r.available[b, a] >= 1.0
        and isfinite(w.round_trip[a, b])
        and isfinite(w.round_trip[b, a])
    )


@compiled
def hold(w, r, job, first, n, count):
    """Add what a job may hold of some pools, in ``scratch[6]``: in proportion to all devices, and to free ones."""
    for whole in range(2):
        if deal(w, r, job, n, count, whole == 0) and not known(r, first, n, count):
            n = choose_mode(w, r, job, n, count)
    return n


@compiled
def deal(w, r, job, row, count, whole):
    """So many devices in proportion to what there is, into a row; whether each pool gives some, and all enough."""
    chosen, total = r.scratch[6], 0
    capacity = r.devices if whole else r.base_free
    for place in range(count):
        total += capacity[chosen[place]]
    wanted = min(w.jobs[job].requested, total)
    if wanted < w.jobs[job].minimum or total == 0:
        return False
    given = 0
    for place in range(count):
        r.row_pools[row, place] = chosen[place]
        r.row_shares[row, place] = wanted * capacity[chosen[place]] // total
        given += r.row_shares[row, place]
    least = 1
    for place in range(count):
        more = max(min(wanted - given, capacity[chosen[place]] - r.row_shares[row, place]), 0)
        r.row_shares[row, place] += more
        given += more
        least = min(least, r.row_shares[row, place])
    return least > 0


@compiled
def known(r, first, row, count):
    """Whether a candidate holds the same as one of the job before it."""
    for other in range(first, row):
        same = r.row_count[other] == count
        if same:
            for place in range(count):
                same &= (
                    r.row_pools[other, place] == r.row_pools[row, place]
                    and r.row_shares[other, place] == r.row_shares[row, place]
                )
        if same:
            return True
    return False


@compiled
def choose_mode(w, r, job, row, count):
    """Give a candidate the mode and the period that serve it best; number of the next row, or its own without any."""
    best, best_mode, best_period = INF, NONE, 0
    r.row_count[row] = count
    for mode in range(SYNCHRONOUS, PIPELINE + 1):
        if not r.modes[job, mode]:
            continue
        for period in range(PERIODS.size if mode == PERIODIC else 1):
            r.row_mode[row], r.row_period[row] = mode, period
            predict_spread(w, r, job, row)
            features = r.rows[row]
            score = (
                features[BEGINS] + features[RUNS] + r.parameters[MODE_MONEY] * (features[MOVING] + features[EXCHANGING])
            )
            if isnan(score):
                return row
            if score < best:
                best, best_mode, best_period = score, mode, period
    if best_mode == NONE:
        r.row_count[row] = 0
        return row
    r.row_mode[row], r.row_period[row] = best_mode, best_period
    predict_spread(w, r, job, row)
    return row + 1
