"""Jobs drawn from what was fitted.

People submit in batches: many jobs of one size, one after the other, that take about as long as each other. So it is
batches that arrive, at a rate that follows the hour, the day of the week, and whether anybody is active in this cluster
in these two days.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.workload.curves import Floats, growth, read_off
from kuayu_conformance.testbed.scheduling.workload.fitted import LEVELS, STRETCH, Cluster, Fit, group_of

HOUR = 3600.0
NEAR = 0.05
"""How far, in shares of all jobs, durations and gaps of a batch lie from those that are its own."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Jobs of one cluster, in arrays by job.

    Attributes:
        submitted: Seconds; may be before nought.
        duration: Seconds on the devices that were asked for.
        devices: How many were asked for.
        batch: Number of its batch.
        turn: Factor of the cluster's size from which on the job is there. The one of length ``l`` has its ``k``-th job
            from ``(k - v) / l`` on, with one fraction ``v`` a batch: twice the size is batches twice as long.
    """

    submitted: Floats
    duration: Floats
    devices: Floats
    batch: NDArray[np.intp]
    turn: Floats


NOBODY = 1e-9
"""Share of active stretches below which nobody ever submits; a skewed family may leave a domain none."""


def draw_cluster(
    fit: Fit,
    cluster: Cluster,
    span: tuple[float, float],
    chance: np.random.Generator,
    *,
    scale: float = 1.0,
    most: float = 1.0,
    burst: float = 1.0,
) -> Drawn:
    """Jobs that a cluster submits in some span of seconds.

    Args:
        fit: Parameters of all clusters.
        cluster: Its own; ``active`` may be another than the fitted one.
        span: Seconds of the begin and of the end; nought is midnight at the begin of a week.
        chance: What it is drawn from.
        scale: Its size over that of the measured one; the jobs of longer batches come the closer.
        most: Largest ``turn`` that is drawn, over the scale.
        burst: How many times as long batches are, and as rare.
    """
    starts = _starts(fit, cluster, span, chance, burst)
    count = len(starts)
    pick, place, level, pace, own = chance.random((5, count))
    sizes = np.array([size for size, _ in cluster.sizes])
    shares = np.cumsum(np.array([share for _, share in cluster.sizes]))
    devices = sizes[np.minimum(np.searchsorted(shares, pick * shares[-1], side="right"), len(sizes) - 1)]
    groups = np.array([group_of(cluster.groups, int(size)) for size in sizes])[np.searchsorted(sizes, devices)]
    length = burst * _by_group(place, groups, [group.lengths for group in cluster.groups])
    jobs = np.floor(length * scale * most + own).astype(np.intp)
    batch = np.repeat(np.arange(count), jobs)
    rank = np.arange(len(batch)) - np.repeat(np.cumsum(jobs) - jobs, jobs)
    soon = _near(pace[batch], fit.paced, chance)
    gaps = np.where(rank == 0, 0.0, read_off(soon, LEVELS, fit.gaps)) / (burst * max(1.0, scale))
    passed = np.cumsum(gaps)
    submitted = starts[batch] + passed - np.repeat(passed[np.cumsum(jobs)[jobs > 0] - jobs[jobs > 0]], jobs[jobs > 0])
    quantiles = _near(level[batch], fit.alike, chance)
    logs = _by_group(quantiles, groups[batch], [group.durations for group in cluster.groups])
    duration = np.clip(growth(logs), 1.0, fit.longest)
    turn = (rank + 1 - own[batch]) / length[batch]
    return Drawn(submitted, duration, devices[batch].astype(np.float64), batch, turn)


def _starts(fit: Fit, cluster: Cluster, span: tuple[float, float], chance: np.random.Generator, burst: float) -> Floats:
    """When batches begin: so many as the rate adds up to, each by the share of it that has passed."""
    hours = np.arange(int((span[1] - span[0]) / HOUR) + 1)
    hour_numbers = np.floor(span[0] / HOUR).astype(np.intp) + hours
    stretch = (hour_numbers * HOUR // STRETCH).astype(np.intp) - int(span[0] // STRETCH)
    active = chance.random(int(stretch[-1]) + 1) < cluster.active
    usual = np.array(fit.hours)[hour_numbers % 24] * np.array(fit.days)[(hour_numbers // 24) % 7]
    rate = cluster.batches / 24 / burst / max(cluster.active, NOBODY) * usual * active[stretch]
    passed = np.concatenate(([0.0], np.cumsum(rate)))
    count = int(np.floor(passed[-1] + chance.random()))
    if count == 0 or passed[-1] == 0.0:
        return np.zeros(0)
    reached = np.sort(chance.random(count)) * passed[-1]
    hour = np.minimum(np.searchsorted(passed, reached, side="right") - 1, len(rate) - 1)
    starts: Floats = (hour_numbers[hour] + (reached - passed[hour]) / np.where(rate[hour] > 0, rate[hour], 1.0)) * HOUR
    return starts


def _near(levels: Floats, share: float, chance: np.random.Generator) -> Floats:
    """Levels even over [0, 1], of which some share lies near those given, thrown back at the ends; others anywhere."""
    alike, near, other = chance.random((3, len(levels)))
    aside = np.abs(levels + NEAR * (2.0 * near - 1.0))
    thrown: Floats = np.where(alike < share, np.where(aside > 1.0, 2.0 - aside, aside), other)
    return thrown


def _by_group(quantiles: Floats, groups: NDArray[np.intp], curves: list[tuple[float, ...]]) -> Floats:
    heights = np.zeros(len(quantiles))
    for place, curve in enumerate(curves):
        members = groups == place
        heights[members] = read_off(quantiles[members], LEVELS, curve)
    return heights
