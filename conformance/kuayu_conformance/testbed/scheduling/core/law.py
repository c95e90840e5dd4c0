"""Speeds of the compiled world: :mod:`kuayu_conformance.testbed.scheduling.law` for a run in its place, term by term.

Sources are given there. Sums and products stand in its order, so that the same numbers come out to the last bit.
"""

from math import sqrt

from numba import njit

from kuayu_conformance.testbed.scheduling.core.layout import ALONE, INF, PIPELINE, State

_BITS = 8.0


@njit(cache=True)
def gain(devices, serial):
    """Speed of so many devices over that of one (Amdahl)."""
    return devices / (1.0 + serial * (devices - 1.0))


@njit(cache=True)
def step_seconds(w: State, job, used, pools, devices, count):
    """Seconds of a step where nothing is exchanged, and the work of one."""
    j = w.jobs[job]
    held, weighed = 0, 0.0
    for place in range(count):
        held += devices[place]
    for place in range(count):
        weighed += devices[place] * w.indices[w.pools[pools[place]].type, j.profile]
    return _step(w, job, used, float(held), weighed / held)


@njit(cache=True)
def _step(w: State, job, used, held, index):
    j = w.jobs[job]
    busy = used * j.requested
    most = min(held, float(j.maximum))
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
