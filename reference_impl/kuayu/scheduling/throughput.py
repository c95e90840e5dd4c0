"""How fast a placed job is: the normative lines of the scheduling profile, and how much of its devices it keeps busy.

1. More devices gain by Amdahl's law; a split over domains waits for what its exchange takes longer than is hidden, and
   pays for rare synchronisation (clause sch-02-speed, which names its sources).
2. Whoever asks for devices asks for more than are kept busy. Those of a job are known from its first step on; until
   then the measured jobs of its profile stand for it, together with a few that are spread over all shares.

Seconds, bytes, bits a second; work is in seconds of a reference device. Arrays throughout, of one shape each.
"""

from dataclasses import dataclass
from math import inf

import numpy as np

from kuayu.scheduling.state import PERIODIC, PIPELINE, SYNCHRONOUS, Counts, Floats, Jobs, Numbers, Snapshot

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
class SpeedInputs:
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


def speed_inputs(jobs: Jobs, job: Numbers) -> SpeedInputs:
    """What the speed of some jobs follows from, by row."""
    return SpeedInputs(
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
        occupied: Bits a second that each flow holds on average; zero in one domain.
    """

    rate: Floats
    occupied: Floats


def gain(devices: Floats, serial: Floats) -> Floats:
    """Speed of so many devices over that of one."""
    return devices / (1.0 + serial * (devices - 1.0))


def fast(devices: Floats, index: Floats, inputs: SpeedInputs) -> Floats:
    """Work a second of devices that wait for no network."""
    usable = np.minimum(devices, inputs.maximum)
    busy = inputs.used * inputs.requested
    useful = np.minimum(usable, inputs.used * np.maximum(usable, inputs.requested))
    return index * busy * gain(useful, inputs.serial) / gain(busy, inputs.serial)


def penalty(domains: Floats, period: Floats) -> Floats:
    """How many times as many steps it takes to the same loss if replicas are reconciled so rarely."""
    share = GAP * (np.maximum(domains, 1.0) - 1.0) ** REPLICAS * np.log1p(period / SCALE)
    return (1.0 + share) ** (1.0 / DATA)


def spread(
    inputs: SpeedInputs,
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
        inputs: By row.
        devices: Of all domains together.
        index: Mean of the devices' compute indices.
        domains: How many.
        mode: Number of the split mode.
        period: Steps between reconciliations; counts where the mode is periodic.
        bandwidth: Bits a second that the slowest flow is granted.
        round_trips: The longest of a ring; the sum over the cuts of a pipeline.
    """
    quick = fast(devices, index, inputs)
    done = inputs.used * inputs.requested * inputs.step_time
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(quick > 0.0, done / quick, inf)
        periodic = mode == PERIODIC
        steps = np.where(periodic, period, 1).astype(np.float64)
        ring = 2.0 * (domains - 1) / domains * inputs.exchange * BITS
        waits = np.maximum(0.0, ring / bandwidth + (domains - 1) * round_trips - OVERLAP * step)
        lasts = steps * step + np.where(ring > 0.0, waits, 0.0)
        charged = np.where(periodic, penalty(domains.astype(np.float64), steps), 1.0)
        rate = steps * done / charged / lasts
        occupied = ring / lasts
        filling = 1.0 + (domains - 1) / MICRO_BATCHES
        cut = inputs.boundary / 2.0 * BITS
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


SHARES: Floats = (np.arange(8, dtype=np.float64) + 0.5) / 8.0
"""Shares that are told apart: the middles of eighths."""
PRIOR = 4.0
"""Measured jobs that the even spread over all shares counts as much as."""


class UtilisationPrior:
    """Shares of devices that are kept busy, by profile.

    Args:
        snapshot: Its jobs that were measured.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        jobs = snapshot.jobs
        counts = np.full((len(snapshot.index) + 1, len(SHARES)), PRIOR / len(SHARES))
        known = np.flatnonzero(jobs.measured)
        eighth = np.minimum((jobs.used[known] * len(SHARES)).astype(np.intp), len(SHARES) - 1)
        np.add.at(counts, (jobs.profile[known], eighth), 1.0)
        self._chances = counts / counts.sum(axis=1, keepdims=True)
        self._jobs = jobs

    def longer(self, job: Numbers, devices: Floats) -> Floats:
        """How many times as long jobs take on so many devices as on those that they asked for, by row."""
        jobs = self._jobs
        requested, serial = jobs.requested[job].astype(np.float64), jobs.serial[job]
        factors = np.ones(len(job))
        known = jobs.measured[job]
        factors[known] = _longer(
            jobs.used[job[known]], requested[known], np.minimum(devices, jobs.maximum[job])[known], serial[known]
        )
        open_ones = np.flatnonzero(~known & (devices != requested))
        if len(open_ones):
            job, devices = job[open_ones], np.minimum(devices, jobs.maximum[job])[open_ones]
            by_share = _longer(SHARES[None, :], requested[open_ones, None], devices[:, None], serial[open_ones, None])
            factors[open_ones] = (by_share * self._chances[jobs.profile[job]]).sum(axis=1)
        return factors


def _longer(used: Floats, requested: Floats, devices: Floats, serial: Floats) -> Floats:
    busy = used * requested
    return gain(busy, serial) / gain(np.minimum(devices, used * np.maximum(devices, requested)), serial)
