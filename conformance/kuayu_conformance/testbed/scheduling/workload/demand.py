"""Devices that jobs would hold if every one of them started at once: what load and skew are told by."""

import numpy as np

from kuayu_conformance.testbed.scheduling.workload.curves import Floats

STEP = 600.0
"""Seconds over which demand is averaged before a percentile is taken."""


def within(submitted: Floats, duration: Floats, devices: Floats, seconds: float) -> Floats:
    """Device seconds of each job that fall between nought and so many seconds."""
    held: Floats = devices * np.maximum(0.0, np.minimum(submitted + duration, seconds) - np.maximum(submitted, 0.0))
    return held


def over_time(submitted: Floats, duration: Floats, devices: Floats, since: float, until: float) -> Floats:
    """Mean of devices held in each step of ``STEP`` seconds between two times."""
    edges = np.arange(since, until + STEP / 2, STEP)
    if len(submitted) == 0:
        return np.zeros(len(edges) - 1)
    times = np.concatenate((submitted, submitted + duration))
    order = np.argsort(times, kind="stable")
    times = times[order]
    held = np.cumsum(np.concatenate((devices, -devices))[order])
    area = np.concatenate(([0.0], np.cumsum(held[:-1] * np.diff(times))))
    mean: Floats = np.diff(np.interp(edges, times, area)) / STEP
    return mean


def mean_and_p95(
    submitted: Floats, duration: Floats, devices: Floats, since: float, until: float
) -> tuple[float, float]:
    """Mean and 95th percentile of the devices held; the latter is how large a domain is in the reference skew."""
    held = over_time(submitted, duration, devices, since, until)
    return float(held.mean()), float(np.percentile(held, 95))
