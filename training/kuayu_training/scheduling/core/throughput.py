"""How fast a placed job is: ``kuayu.scheduling.throughput`` for a row at a time, in its order of sums and products."""

from math import isfinite

from kuayu.scheduling.throughput import BITS, MICRO_BATCHES, OVERLAP, STARTING, STORAGE
from kuayu_conformance.testbed.scheduling.core.layout import INF, PERIODIC, PIPELINE
from kuayu_training.scheduling.core.layout import compiled


@compiled
def gain(devices, serial):
    """Speed of so many devices over that of one."""
    return devices / (1.0 + serial * (devices - 1.0))


@compiled
def fast(devices, index, requested, maximum, serial, used):
    """Work a second of devices that wait for no network."""
    usable = min(devices, float(maximum))
    busy = used * requested
    useful = min(usable, used * max(usable, float(requested)))
    return index * busy * gain(useful, serial) / gain(busy, serial)


@compiled
def restart(checkpoint, readers):
    """Seconds until the first step from a checkpoint."""
    return STARTING + checkpoint / (STORAGE * readers)


@compiled
def saving(checkpoint, writers):
    """Seconds in which a checkpoint is written."""
    return checkpoint / (STORAGE * writers)


@compiled
def longer_of(used, requested, devices, serial):
    """How many times as long a job takes that keeps such a share busy."""
    busy = used * requested
    return gain(busy, serial) / gain(min(devices, used * max(devices, requested)), serial)


@compiled
def longer(w, r, job, devices):
    """How many times as long a job takes on so many devices as on those that it asked for: ``UtilisationPrior``."""
    j = w.jobs[job]
    if r.measured[job]:
        return longer_of(r.used[job], float(j.requested), min(float(devices), float(j.maximum)), j.serial)
    return longer_unknown(r.chances, j.profile, j.requested, j.maximum, j.serial, devices)


@compiled
def longer_unknown(chances, profile, requested, maximum, serial, devices):
    """The same of a job of which it is not known how many devices it keeps busy."""
    if devices == requested:
        return 1.0
    wanted, usable = float(requested), min(float(devices), float(maximum))
    a = longer_of(0.0625, wanted, usable, serial) * chances[profile, 0]
    b = longer_of(0.1875, wanted, usable, serial) * chances[profile, 1]
    c = longer_of(0.3125, wanted, usable, serial) * chances[profile, 2]
    d = longer_of(0.4375, wanted, usable, serial) * chances[profile, 3]
    e = longer_of(0.5625, wanted, usable, serial) * chances[profile, 4]
    f = longer_of(0.6875, wanted, usable, serial) * chances[profile, 5]
    g = longer_of(0.8125, wanted, usable, serial) * chances[profile, 6]
    h = longer_of(0.9375, wanted, usable, serial) * chances[profile, 7]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@compiled
def spread(quick, done, exchange, boundary, count, mode, period, charged, bandwidth, trips):
    """Work a second of a job in several domains, and bits a second that each of its flows holds.

    Args:
        quick: Work a second of its devices that wait for no network.
        done: Work of a step.
        exchange: Bytes that replicas sum up.
        boundary: Bytes that cross a cut.
        count: How many domains.
        mode: How it is spread.
        period: Steps between reconciliations.
        charged: Times as many steps that this takes.
        bandwidth: Bits a second that the slowest flow is granted.
        trips: The longest round trip of a ring; the sum over the cuts of a pipeline.
    """
    step = done / quick if quick > 0.0 else INF
    if mode == PIPELINE:
        filling = 1.0 + (count - 1) / MICRO_BATCHES
        cut = boundary / 2.0 * BITS
        paced = filling * step + trips + max(0.0, filling * cut / bandwidth - filling * step)
        rate, occupied = done / paced, cut / paced
    else:
        steps = float(period) if mode == PERIODIC else 1.0
        ring = 2.0 * (count - 1) / count * exchange * BITS
        lasts = steps * step
        if ring > 0.0:
            lasts += max(0.0, ring / bandwidth + (count - 1) * trips - OVERLAP * step)
        rate = steps * done / (charged if mode == PERIODIC else 1.0) / lasts
        occupied = ring / lasts
    if done > 0.0 and isfinite(rate):
        return rate, occupied
    return 0.0, 0.0
