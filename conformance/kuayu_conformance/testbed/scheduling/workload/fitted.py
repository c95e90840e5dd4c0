"""Arrivals, sizes and durations fitted to real traces: the parameters that ship, and jobs drawn from them.

1. **Parameters.** ``fitted.json`` holds them; :mod:`kuayu_conformance.testbed.scheduling.workload.fitting` says how
   each of them came about.
2. **Draws.** Jobs drawn from what was fitted.

   People submit in batches: many jobs of one size, one after the other, that take about as long as each other. So it is
   batches that arrive, at a rate that follows the hour, the day of the week, and whether anybody is active in this
   cluster in these two days.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.elementary import Floats, exact_sum, growth, read_off
from kuayu_conformance.testbed.scheduling.workload.traces import DAY

LEVELS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
"""Shares of jobs, or of batches, below the quantiles that are kept."""
STRETCH = 2 * DAY
"""Seconds for which a cluster stays active or quiet."""
HOUR = 3600.0
NEAR = 0.05
"""How far, in shares of all jobs, durations and gaps of a batch lie from those that are its own."""
NOBODY = 1e-9
"""Share of active stretches below which nobody ever submits; a skewed family may leave a domain none."""
_MIDDLES = 4096


@dataclass(frozen=True, slots=True)
class Group:
    """Jobs of similar size.

    Attributes:
        least: Devices of its smallest jobs.
        durations: Logarithms of seconds at ``LEVELS``, over jobs.
        lengths: Jobs of a batch at ``LEVELS``, over batches.
    """

    least: int
    durations: tuple[float, ...]
    lengths: tuple[float, ...]

    @property
    def duration(self) -> float:
        """Mean seconds of a job."""
        return _mean_growth(self.durations)

    @property
    def length(self) -> float:
        """Mean jobs of a batch."""
        return _mean_height(self.lengths)


def group_of(groups: Sequence[Group], devices: int) -> int:
    """Place of the group of a size."""
    return max(place for place, group in enumerate(groups) if group.least <= devices)


@dataclass(frozen=True, slots=True)
class Cluster:
    """How one cluster differs from the others.

    Attributes:
        name: Its name in the trace.
        p95: 95th percentile of the devices that its jobs held, had each of them started at once.
        ratio: Mean of these over the percentile.
        batches: Batches a day.
        sizes: Devices of the jobs of a batch, and the share of such batches.
        active: Share of stretches in which anybody submits.
        groups: Its own durations and lengths by group of sizes, those of all clusters where it has too few.
    """

    name: str
    p95: float
    ratio: float
    batches: float
    sizes: tuple[tuple[int, float], ...]
    active: float
    groups: tuple[Group, ...]

    @property
    def work(self) -> float:
        """Mean device seconds of a batch."""
        return sum(
            share * size * group.length * group.duration
            for size, share in self.sizes
            for group in (self.groups[group_of(self.groups, size)],)
        )


@dataclass(frozen=True, slots=True)
class Fit:
    """What was fitted to one trace.

    Attributes:
        source: What it was fitted to.
        longest: Seconds of its longest job.
        alike: Share of the jobs of a batch that take about as long as the batch does.
        paced: Share of the jobs of a batch that come about as soon after the one before as the batch does.
        gaps: Seconds between jobs of a batch at ``LEVELS``.
        hours: Submissions by hour of the day, over their mean.
        days: Submissions by day of the week, over their mean.
        groups: Groups of sizes, ascending, over all clusters.
        clusters: Clusters whose 95th percentile is worth a domain.
    """

    source: str
    longest: float
    alike: float
    paced: float
    gaps: tuple[float, ...]
    hours: tuple[float, ...]
    days: tuple[float, ...]
    groups: tuple[Group, ...]
    clusters: tuple[Cluster, ...]


@dataclass(frozen=True, slots=True)
class Serving:
    """What was fitted to the pods that serve.

    Attributes:
        source: What it was fitted to.
        durations: Logarithms of seconds at ``LEVELS``, over pods.
        sizes: Devices of a pod, and the share of such pods.
        shares: Share that it asks for of what it holds, at ``LEVELS``.
    """

    source: str
    durations: tuple[float, ...]
    sizes: tuple[tuple[int, float], ...]
    shares: tuple[float, ...]

    @property
    def duration(self) -> float:
        """Mean seconds of a pod."""
        return _mean_growth(self.durations)


@dataclass(frozen=True, slots=True)
class Used:
    """What was fitted to the utilisation of devices.

    Attributes:
        source: What it was fitted to.
        conventional: Share of the time in which devices that are held are busy, at ``LEVELS``, where jobs are small.
        language: The same where language models are trained.
    """

    source: str
    conventional: tuple[float, ...]
    language: tuple[float, ...]


@cache
def used() -> Used:
    """What ships of the use of devices."""
    table = _table()["used"]
    return Used(table["source"], tuple(table["conventional"]), tuple(table["language"]))


@cache
def parameters() -> tuple[Mapping[str, Fit], Serving]:
    """What ships: fits by trace, and the one of serving."""
    table = _table()
    fits = {name: _fit(table[name]) for name in ("itp", "philly")}
    serving = table["serving"]
    return fits, Serving(serving["source"], tuple(serving["durations"]), _sizes(serving), tuple(serving["shares"]))


def forget() -> None:
    """Read what ships again when it is next asked for: it has been fitted anew."""
    parameters.cache_clear()
    used.cache_clear()


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


def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(files(__package__).joinpath("fitted.json").read_text("utf-8"))
    return table


# Curves are few and never change, but each scenario asks for the means of all of them several times.
@cache
def _mean_growth(logarithms: tuple[float, ...]) -> float:
    return _mean(growth(read_off(_middles(), LEVELS, logarithms)))


@cache
def _mean_height(heights: tuple[float, ...]) -> float:
    return _mean(read_off(_middles(), LEVELS, heights))


def _mean(values: Floats) -> float:
    return exact_sum(values) / len(values)


@cache
def _middles() -> Floats:
    return (np.arange(_MIDDLES) + 0.5) / _MIDDLES


def _sizes(members: dict[str, Any]) -> tuple[tuple[int, float], ...]:
    return tuple(sorted((int(size), share) for size, share in members["sizes"].items()))


def _fit(members: dict[str, Any]) -> Fit:
    curves = ("gaps", "hours", "days")
    clusters = tuple(
        Cluster(**cluster | {"sizes": _sizes(cluster), "groups": _groups(cluster)}) for cluster in members["clusters"]
    )
    profiles = {name: tuple(members[name]) for name in curves}
    return Fit(**members | profiles | {"groups": _groups(members), "clusters": clusters})


def _groups(members: dict[str, Any]) -> tuple[Group, ...]:
    return tuple(
        Group(group["least"], tuple(group["durations"]), tuple(group["lengths"])) for group in members["groups"]
    )


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
