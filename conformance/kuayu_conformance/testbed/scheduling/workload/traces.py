"""Jobs of real clusters, the parameters that were fitted to them, and jobs drawn from these.

1. **Traces.** They are read from the folder of public originals (``KUAYU_DATA``).

   - *itp*: ten clusters of Microsoft in spring 2021, microsoft/elasticflow-traces ``data/raw-traces.tar.gz`` [277ed24];
     D. Gu et al., "ElasticFlow", ASPLOS 2023. Jobs were submitted in the first 40 of 60 days.
   - *philly*: virtual clusters of Microsoft, 2017, siasosp23/artifacts ``sia-simulator/traces/philly.csv`` [aaf7a0d],
     from msr-fiddle/philly-traces; M. Jeon et al., "Analysis of large-scale multi-tenant GPU clusters", ATC 2019.
   - *openb*: pods of Alibaba, 2023, alibaba/clusterdata ``cluster-trace-gpu-v2023`` [7a6c496]; Q. Weng et al., "Beware
     of fragmentation", ATC 2023. It is a sample without clusters; pods share GPUs, and most serve.
2. **Demand.** Load and skew are told by the devices that jobs would hold if every one of them started at once.
3. **Parameters.** ``fitted.json`` holds arrivals, sizes and durations; ``__main__`` says how each of them came about.
4. **Draws.** People submit in batches: many jobs of one size, one after the other, that take about as long as each
   other. So it is batches that arrive, at a rate that follows the hour, the day of the week, and whether anybody is
   active in this cluster in these two days.
"""

import csv
import gzip
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.corpora import JOB_TRACES
from kuayu_conformance.testbed.elementary import Floats, exact_sum, growth, read_off

DAY = 86400.0
FILES = JOB_TRACES
SPANS = {"itp": (0.0, 40 * DAY), "philly": (0.0, 49 * DAY), "openb": (115 * DAY, 138 * DAY)}
"""Seconds in which jobs were submitted as usual: philly's first days and openb's first months hold few long ones."""
SERVING_CLASSES = ("LS", "Guaranteed", "Burstable")
"""Classes of openb that wait for requests: latency-sensitive ones, and those with a guarantee."""
STEP = 600.0
"""Seconds over which demand is averaged before a percentile is taken."""
LEVELS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
"""Shares of jobs, or of batches, below the quantiles that are kept."""
SPELL = 2 * DAY
"""Seconds for which a cluster stays active or quiet."""
HOUR = 3600.0
NEAR = 0.05
"""How far, in shares of all jobs, durations and gaps of a batch lie from those that are its own."""
NOBODY = 1e-9
"""Share of active spells below which nobody ever submits; a skewed family may leave a domain none."""
_MIDDLES = 4096


class MissingTraces(LookupError):
    """The public originals are not where they were looked for; the message says where that was."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs in the order of their submission.

    Attributes:
        name: Name of the trace.
        submitted: Seconds since the trace's time zero, by job.
        duration: Seconds that it ran, by job; at least one.
        devices: Devices that it held, by job; a share of one counts as one.
        share: Share of these that it asked for, by job; below one where pods share a device.
        serving: Whether it serves, by job.
        cluster: Place of its cluster in ``clusters``, by job.
        clusters: Names of clusters.
        span: Seconds between which jobs were submitted as usual.
    """

    name: str
    submitted: Floats
    duration: Floats
    devices: Floats
    share: Floats
    serving: NDArray[np.bool_]
    cluster: NDArray[np.intp]
    clusters: tuple[str, ...]
    span: tuple[float, float]


def folder_of(data: Path | None) -> Path:
    """The folder of public originals: the one that is given, else that of ``KUAYU_DATA``.

    Raises:
        MissingTraces: Neither names one.
    """
    named = data or os.environ.get("KUAYU_DATA")
    if not named:
        raise MissingTraces("real traces do not come with the suite; name their folder with --data or KUAYU_DATA")
    return Path(named)


def read(name: str, data: Path | None = None) -> Trace:
    """The trace of a name, ``itp``, ``philly`` or ``openb``. Jobs without a GPU or without a duration are left out.

    Raises:
        MissingTraces: The folder does not hold it.
    """
    path = folder_of(data) / FILES[name]
    if not path.is_file():
        raise MissingTraces(
            f"the trace {name} is not in {path.parent.parent}; KUAYU_DATA names the folder with {FILES[name]}"
        )
    return _read_trace(name, path)


def within(submitted: Floats, duration: Floats, devices: Floats, seconds: float) -> Floats:
    """Device seconds of each job that fall between zero and so many seconds."""
    lasting: Floats = np.maximum(0.0, np.minimum(submitted + duration, seconds) - np.maximum(submitted, 0.0))
    return devices * lasting


def over_time(submitted: Floats, duration: Floats, devices: Floats, since: float, until: float) -> Floats:
    """Mean of devices held in each step of ``STEP`` seconds between two times."""
    edges = np.arange(since, until + STEP / 2, STEP)
    if len(submitted) == 0:
        return np.zeros(len(edges) - 1)
    times = np.concatenate((submitted, submitted + duration))
    order = np.argsort(times, kind="stable")
    times = times[order]
    in_use = np.cumsum(np.concatenate((devices, -devices))[order])
    area = np.concatenate(([0.0], np.cumsum(in_use[:-1] * np.diff(times))))
    mean: Floats = np.diff(np.interp(edges, times, area)) / STEP
    return mean


def mean_and_p95(
    submitted: Floats, duration: Floats, devices: Floats, since: float, until: float
) -> tuple[float, float]:
    """Mean and 95th percentile of the devices held; the latter is how large a domain is in the reference skew."""
    demand = over_time(submitted, duration, devices, since, until)
    return float(demand.mean()), float(np.percentile(demand, 95))


@cache
def _read_trace(name: str, path: Path) -> Trace:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if _number(row["gpus"]) > 0 and _number(row["duration_s"]) > 0]
    rows.sort(key=lambda row: (float(row["submit_time_s"]), row["job_id"]))
    requested = np.array([float(row["gpus"]) for row in rows])
    devices = np.ceil(requested)
    names = tuple(sorted({row["domain"] for row in rows}))
    places = {domain: place for place, domain in enumerate(names)}
    return Trace(
        name,
        np.array([float(row["submit_time_s"]) for row in rows]),
        np.maximum(1.0, np.array([float(row["duration_s"]) for row in rows])),
        devices,
        requested / devices,
        np.array([row["job_type"] in SERVING_CLASSES for row in rows]),
        np.array([places[row["domain"]] for row in rows], dtype=np.intp),
        names,
        SPANS[name],
    )


def _number(text: str) -> float:
    return float(text) if text else 0.0


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
        active: Share of spells in which anybody submits.
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
class DeviceUse:
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
def device_use() -> DeviceUse:
    """What ships of the use of devices."""
    table = _table()["used"]
    return DeviceUse(table["source"], tuple(table["conventional"]), tuple(table["language"]))


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
    device_use.cache_clear()


@dataclass(frozen=True, slots=True)
class ClusterJobs:
    """Jobs of one cluster, in arrays by job.

    Attributes:
        submitted: Seconds; may be before zero.
        duration: Seconds on the devices that were asked for.
        devices: How many were asked for.
        batch: Number of its batch.
        threshold: Factor of the cluster's size from which on the job is there. The one of length ``l`` has its ``k``-th
            job from ``(k - v) / l`` on, with one fraction ``v`` a batch: twice the size is batches twice as long.
    """

    submitted: Floats
    duration: Floats
    devices: Floats
    batch: NDArray[np.intp]
    threshold: Floats


def draw_cluster(
    fit: Fit,
    cluster: Cluster,
    span: tuple[float, float],
    chance: np.random.Generator,
    *,
    scale: float = 1.0,
    most: float = 1.0,
    burst: float = 1.0,
) -> ClusterJobs:
    """Jobs that a cluster submits in some span of seconds.

    Args:
        fit: Parameters of all clusters.
        cluster: Its own; ``active`` may be another than the fitted one.
        span: Seconds of the beginning and of the end; zero is midnight at the beginning of a week.
        chance: What it is drawn from.
        scale: Its size over that of the measured one; the jobs of longer batches come the closer.
        most: Largest ``threshold`` that is drawn, over the scale.
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
    threshold = (rank + 1 - own[batch]) / length[batch]
    return ClusterJobs(submitted, duration, devices[batch].astype(np.float64), batch, threshold)


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
    spell = (hour_numbers * HOUR // SPELL).astype(np.intp) - int(span[0] // SPELL)
    active = chance.random(int(spell[-1]) + 1) < cluster.active
    usual = np.array(fit.hours)[hour_numbers % 24] * np.array(fit.days)[(hour_numbers // 24) % 7]
    rate = cluster.batches / 24 / burst / max(cluster.active, NOBODY) * usual * active[spell]
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
