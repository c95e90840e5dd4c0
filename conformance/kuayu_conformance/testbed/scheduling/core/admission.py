"""B2 compiled: ``baselines.admission``, where its rules and sources stand."""

from numba import njit

from kuayu_conformance.testbed.scheduling.core.baselines import (
    add_member,
    add_way,
    fits,
    give,
    prepare,
    room_for_ways,
    usable,
)
from kuayu_conformance.testbed.scheduling.core.layout import NONE, Desk, State


@njit(cache=True)
def offers(w: State, d: Desk, job):
    """Find the ways of a job in the order in which pools are asked: those that hold it, else each as large as it is."""
    j, c = w.jobs[job], d.counts[0]
    d.way_begin[job], d.way_count[job] = c.ways, 0
    enough = False
    for pool in range(w.pools.size):
        enough |= w.pools[pool].devices >= j.requested and usable(w, job, pool)
    for step in range(w.sites.size):
        site = (d.seat[job] + step) % w.sites.size
        for spot in range(d.site_begin[site], d.site_begin[site + 1]):
            pool = d.site_pools[spot]
            size = w.pools[pool].devices
            if size >= (j.requested if enough else j.minimum) and usable(w, job, pool):
                add_member(d, add_way(d), pool, j.requested if enough else size)
                d.way_count[job] += 1


@njit(cache=True)
def most_free(d: Desk):
    """Devices that are free in the pool that has most."""
    most = 0
    for free in d.free:
        most = max(most, free)
    return most


@njit(cache=True)
def decide_to_admit(w: State, d: Desk):
    """B2: each job to the first domain with room, and who does not fit blocks nobody; False if room is short."""
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
        if d.way_begin[job] == NONE:
            if not room_for_ways(w, d):
                return False
            offers(w, d, job)
        for way in range(d.way_begin[job], d.way_begin[job] + d.way_count[job]):
            if fits(d, way):
                give(d, job, way)
                most = most_free(d)
                break
    return True
