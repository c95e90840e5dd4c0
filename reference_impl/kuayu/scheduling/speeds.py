"""Speed of a placed job, from the normative lines of the scheduling profile; arrays throughout, of one shape each.

Seconds, bytes, bits a second; work is in seconds of a reference device.
"""

from dataclasses import dataclass
from math import inf

import numpy as np

from kuayu.scheduling.scene import PERIODIC, PIPELINE, SYNCHRONOUS, Counts, Floats, Jobs, Numbers

OVERLAP = 2.0 / 3.0
"""Share of a step behind which an exchange hides."""
MICRO_BATCHES = 128.0
"""Over which the filling of a pipeline spreads."""
STORAGE = 122_070_312.5
"""Bytes a second at which each device reads and writes checkpoints."""
STARTING = 30.0
"""Seconds until processes run and find each other."""
GAP, REPLICAS, SCALE, DATA = 0.0240, 0.818, 18.4, 0.3658
"""Of what rare reconciliation costs in steps."""
BITS = 8.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What the speed of jobs follows from, by row.

    Attributes:
        requested: Devices.
        maximum: Devices.
        serial: Share of the work that more devices do not shorten.
        used: Share of the requested devices that is kept busy.
        step_time: Seconds of a step on the requested devices.
        exchange: Bytes.
        boundary: Bytes.
    """

    requested: Counts
    maximum: Counts
    serial: Floats
    used: Floats
    step_time: Floats
    exchange: Floats
    boundary: Floats


def asked_of(jobs: Jobs, job: Numbers) -> Asked:
    """What the speed of some jobs follows from, by row."""
    return Asked(
        jobs.requested[job],
        jobs.maximum[job],
        jobs.serial[job],
        jobs.used[job],
        jobs.step_time[job],
        jobs.exchange[job],
        jobs.boundary[job],
    )


@dataclass(frozen=True, slots=True)
class Speeds:
    """How placed jobs go on, by row.

    Attributes:
        rate: Work a second, in reference devices; what rare reconciliation costs is charged.
        occupied: Bits a second that each flow holds on average; nought in one domain.
    """

    rate: Floats
    occupied: Floats


def gain(devices: Floats, serial: Floats) -> Floats:
    """Speed of so many devices over that of one."""
    return devices / (1.0 + serial * (devices - 1.0))


def fast(devices: Floats, index: Floats, asked: Asked) -> Floats:
    """Work a second of devices that wait for no network."""
    held = np.minimum(devices, asked.maximum)
    busy = asked.used * asked.requested
    useful = np.minimum(held, asked.used * np.maximum(held, asked.requested))
    return index * busy * gain(useful, asked.serial) / gain(busy, asked.serial)


def penalty(domains: Floats, period: Floats) -> Floats:
    """How many times as many steps it takes to the same loss if replicas are reconciled so rarely."""
    share = GAP * (np.maximum(domains, 1.0) - 1.0) ** REPLICAS * np.log1p(period / SCALE)
    return (1.0 + share) ** (1.0 / DATA)


def spread(
    asked: Asked,
    devices: Floats,
    index: Floats,
    domains: Counts,
    mode: Numbers,
    period: Counts,
    bandwidth: Floats,
    round_trips: Floats,
) -> Speeds:
    """Speed of jobs in several domains, or in one.

    Args:
        asked: By row.
        devices: Of all domains together.
        index: Mean of the devices' compute indices.
        domains: How many.
        mode: Number of the split mode.
        period: Steps between reconciliations; counts where the mode is periodic.
        bandwidth: Bits a second that the slowest flow is granted.
        round_trips: The longest of a ring; the sum over the cuts of a pipeline.
    """
    quick = fast(devices, index, asked)
    done = asked.used * asked.requested * asked.step_time
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(quick > 0.0, done / quick, inf)
        periodic = mode == PERIODIC
        steps = np.where(periodic, period, 1).astype(np.float64)
        ring = 2.0 * (domains - 1) / domains * asked.exchange * BITS
        waits = np.maximum(0.0, ring / bandwidth + (domains - 1) * round_trips - OVERLAP * step)
        lasts = steps * step + np.where(ring > 0.0, waits, 0.0)
        charged = np.where(periodic, penalty(domains.astype(np.float64), steps), 1.0)
        rate = steps * done / charged / lasts
        occupied = ring / lasts
        filling = 1.0 + (domains - 1) / MICRO_BATCHES
        cut = asked.boundary / 2.0 * BITS
        paced = filling * step + round_trips + np.maximum(0.0, filling * cut / bandwidth - filling * step)
        piped = mode == PIPELINE
        rate = np.where(piped, done / paced, rate)
        occupied = np.where(piped, cut / paced, occupied)
    together = piped | periodic | (mode == SYNCHRONOUS)
    runs = together & (done > 0.0) & np.isfinite(rate)
    return Speeds(np.where(together, np.where(runs, rate, 0.0), quick), np.where(runs, occupied, 0.0))


def restart(checkpoint: Floats, readers: Floats) -> Floats:
    """Seconds until the first step from a checkpoint; readers are devices of the smallest replica, or of all stages."""
    return STARTING + checkpoint / (STORAGE * readers)


def saving(checkpoint: Floats, writers: Floats) -> Floats:
    """Seconds in which a checkpoint is written by the devices of the largest replica, or of all stages."""
    return checkpoint / (STORAGE * writers)
