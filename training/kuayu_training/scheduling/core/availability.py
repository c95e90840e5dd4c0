"""What is free, when more will be, and for whom it is reserved: ``kuayu.scheduling.availability`` in rows.

Stretches of a row are written as slices: of an index that begins somewhere, LLVM does not know that it is not negative,
and scatters what lies side by side.
"""

from kuayu.scheduling.availability import UNTOLD
from kuayu_conformance.testbed.scheduling.core.layout import INF, NONE
from kuayu_training.scheduling.core.layout import MAX_RESERVATIONS, compiled


@compiled
def first_at(row, width, value):
    """Place of the first instant that is not before one."""
    low, high = 0, width
    while low < high:
        middle = (low + high) // 2
        if row[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def first_after(row, width, value):
    """Place of the first instant after one."""
    low, high = 0, width
    while low < high:
        middle = (low + high) // 2
        if row[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def put(row, width, first, count, value):
    """Devices are free at another instant than so far; the row stays in order."""
    place, then = first, first + count
    if then < width and row[then] < value:
        while then < width and row[then] < value:
            row[place] = row[then]
            place += 1
            then += 1
    else:
        while place > 0 and row[place - 1] > value:
            row[place - 1 + count] = row[place - 1]
            place -= 1
    row[place : place + count] = value


@compiled
def in_order_of_end(r):
    """Places of jobs with devices by when they give them back, in ``scratch[2]``; the order is kept between epochs."""
    e, ends, running, by_end, row_of = r.epoch[0], r.ends, r.running, r.by_end, r.row_of_running
    order, n = r.scratch[2], 0
    for row in range(e.running):
        row_of[running[row]] = row
    for place in range(e.ending + e.running):  # those that were there, as they were; then those that are new
        job = by_end[place] if place < e.ending else running[place - e.ending]
        if row_of[job] == NONE:
            continue
        row, spot = row_of[job], n
        row_of[job] = NONE
        while spot > 0 and ends[order[spot - 1]] > ends[row]:
            order[spot] = order[spot - 1]
            spot -= 1
        order[spot] = row
        n += 1
    for place in range(n):
        by_end[place] = running[order[place]]
    e.ending = n
    return order


@compiled
def open_pools(r):
    """When each device is free, by what running jobs have before them."""
    width, pools, devices, free, when = r.epoch[0].width, r.devices.size, r.devices, r.free, r.when
    first, count, ends, share_pool, share_devices = r.share_first, r.share_count, r.ends, r.share_pool, r.share_devices
    known = r.scratch[0]
    for pool in range(pools):
        when[pool, : free[pool]] = 0.0
        known[pool] = free[pool]
        r.reserved_count[pool] = 0
    order = in_order_of_end(r)
    for place in range(r.epoch[0].running):
        row = order[place]
        for number in range(first[row], first[row] + count[row]):
            pool = share_pool[number]
            begin = known[pool]
            end = min(begin + share_devices[number], max(devices[pool], free[pool]))
            when[pool, begin:end] = ends[row]
            known[pool] = end
    for pool in range(pools):
        when[pool, known[pool] : width] = INF


@compiled
def show(r):
    """Devices that are neither free nor held are held by jobs that are being moved away, if there are any."""
    e = r.epoch[0]
    going = 0
    for number in range(e.shares):
        n = r.share_of[number]
        if r.ready[n] > 0.0 and r.done[r.running[n]] > 0.0:
            going += r.share_devices[number]
    if going == 0:
        return
    taken = r.scratch[0]
    for pool in range(r.devices.size):
        taken[pool] = 0
    for number in range(e.shares):
        taken[r.share_pool[number]] += r.share_devices[number]
    for pool in range(r.devices.size):
        hidden = min(r.devices[pool] - r.reported[pool] - taken[pool], going)
        if hidden > 0:
            row, width = r.when[pool], r.devices[pool]
            first = first_at(row, width, INF)
            put(row, width, first, min(hidden, width - first), UNTOLD)


@compiled
def admits(r, pool, devices, seconds):
    """Whether devices of a pool are free, and holding them for so many seconds delays no reservation."""
    if devices > r.free[pool]:
        return False
    for spot in range(r.reserved_count[pool]):
        if seconds > r.reserved_start[pool, spot] and devices > max(r.reserved_extra[pool, spot], 0):
            return False
    return True


@compiled
def take(r, pool, devices, seconds):
    """Devices of a pool are held from now on, for so many seconds."""
    r.free[pool] -= devices
    put(r.when[pool], r.epoch[0].width, 0, devices, seconds)
    for spot in range(r.reserved_count[pool]):
        if seconds > r.reserved_start[pool, spot]:
            r.reserved_extra[pool, spot] -= devices


@compiled
def release(r, pool, devices, until, then):
    """Devices that were to be held until an instant are given back at another."""
    row, width = r.when[pool], r.epoch[0].width
    put(row, width, min(first_at(row, width, until), width - devices), devices, then)


@compiled
def book(r, pool, devices, start, seconds):
    """A job is expected to hold devices from ``start`` on: those that become free last before that."""
    row, width = r.when[pool], r.epoch[0].width
    last = max(first_after(row, width, start), devices)
    put(row, width, last - devices, devices, start + seconds)


@compiled
def keep(r, pool, devices, start):
    """A job waits for devices that will be free then: nobody is to delay it."""
    spot = r.reserved_count[pool]
    if spot < MAX_RESERVATIONS:
        r.reserved_start[pool, spot] = start
        r.reserved_extra[pool, spot] = first_after(r.when[pool], r.epoch[0].width, start) - devices
        r.reserved_count[pool] = spot + 1
