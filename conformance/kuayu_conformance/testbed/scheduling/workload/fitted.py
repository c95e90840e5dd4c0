"""Arrivals, sizes and durations fitted to real traces: the parameters that ship.

``fitted.json`` holds them, ``fitting`` says how each of them came about, and ``arrivals`` draws from them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from kuayu_conformance.testbed.scheduling.workload.curves import Floats, exact_sum, growth, read_off
from kuayu_conformance.testbed.scheduling.workload.traces import DAY

LEVELS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
"""Shares of jobs, or of batches, below the quantiles that are kept."""

STRETCH = 2 * DAY
"""Seconds for which a cluster stays active or quiet."""
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


def forget() -> None:
    """Read what ships again when it is next asked for: it has been fitted anew."""
    parameters.cache_clear()
    used.cache_clear()
