"""How the parameters that ship follow from the traces; ``python -m … workload DATA_DIR`` writes them.

A batch is a run of jobs of one size in one cluster, each submitted within ``TOGETHER`` of the one before. Quantiles of
durations are those of the jobs of a group of sizes, of lengths those of their batches. The share of active stretches is
the one with which the model's mean demand over its 95th percentile comes nearest to that of the cluster. Nothing here
runs in a scenario.
"""

import csv
import dataclasses
import gzip
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import stream
from kuayu_conformance.testbed.scheduling.workload.arrivals import draw_cluster
from kuayu_conformance.testbed.scheduling.workload.curves import Floats
from kuayu_conformance.testbed.scheduling.workload.demand import mean_and_p95
from kuayu_conformance.testbed.scheduling.workload.fitted import LEVELS, Cluster, Fit, Group, group_of
from kuayu_conformance.testbed.scheduling.workload.traces import DAY, Trace

TOGETHER = 900.0
MIN_DEVICES = (1, 2, 4, 8, 16)
"""Devices of the smallest jobs of each group."""
WORTH_A_DOMAIN = 16.0
"""Devices: a cluster whose 95th percentile is less is no domain (one of ITP's ten has 1.5, four of Philly's none)."""
ENOUGH_JOBS, ENOUGH_BATCHES = 60, 40
"""From so many on a cluster has durations and lengths of its own in a group of sizes, else those of all clusters."""
SHARES_ACTIVE = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
TRIES = 8
"""Draws by which a share of active stretches is judged."""
SETTLED = 20 * DAY
"""Seconds before the begin in which jobs are drawn, so that long ones stand there as they would."""

IDLE = 1.0
"""Utilisation in per cent up to which a device counts as held by nobody."""

SOURCES = {
    "itp": "microsoft/elasticflow-traces data/raw-traces.tar.gz, commit 277ed24d0e908c31a1c98145819e2e3853d8ac00, MIT",
    "philly": "siasosp23/artifacts sia-simulator/traces/philly.csv, commit aaf7a0de7b6cb5eab06ea020467ede5d2fd18e70, "
    "from msr-fiddle/philly-traces, CC BY 4.0",
    "openb": "alibaba/clusterdata cluster-trace-gpu-v2023, commit 7a6c496e4f4b6ce6150be8f881cb051bf2abff42; "
    "pods of the classes LS, Guaranteed and Burstable",
    "used": "InternLM/AcmeTrace data/utilization/util_pkl, commit 6d6ac9cd15f3b01151ac6ba00ecddd9156f0dc73, CC BY 4.0; "
    "Philly's samples, and the mean of Kalos's and Seren's",
}


def fitted(trace: Trace) -> Fit:
    """Parameters of a trace with clusters; those of activity are found by simulation, from one seed."""
    kept = (trace.submitted >= trace.span[0]) & (trace.submitted < trace.span[1])
    batch, gap = _batches(trace)
    inside = np.isfinite(gap) & kept
    fit = Fit(
        SOURCES[trace.name],
        float(trace.duration.max()),
        _likeness(trace, batch, np.log(trace.duration)),
        _likeness(trace, batch, np.log1p(np.where(inside, gap, np.nan))),
        _quantiles(gap[inside]),
        _profile(trace.submitted[kept] // 3600 % 24, 24),
        _profile(trace.submitted[kept] // DAY % 7, 7),
        tuple(_group(trace, batch, kept, place) for place in range(len(MIN_DEVICES))),
        (),
    )
    clusters = (_cluster(trace, batch, place, fit) for place in range(len(trace.clusters)))
    return dataclasses.replace(fit, clusters=tuple(cluster for cluster in clusters if cluster is not None))


def _group(
    trace: Trace, batch: NDArray[np.intp], kept: NDArray[np.bool_], place: int, usual: Group | None = None
) -> Group:
    """Quantiles of a group of sizes over some jobs, or the usual ones where they are too few."""
    members = kept & (np.searchsorted(MIN_DEVICES, trace.devices, side="right") - 1 == place)
    counts = np.bincount(batch[members])
    lengths = counts[counts > 0].astype(np.float64)
    return Group(
        MIN_DEVICES[place],
        _quantiles(np.log(trace.duration[members]))
        if usual is None or members.sum() >= ENOUGH_JOBS
        else usual.durations,
        _quantiles(lengths) if usual is None or len(lengths) >= ENOUGH_BATCHES else usual.lengths,
    )


def fitted_serving(trace: Trace) -> dict[str, Any]:
    """Parameters of the pods that serve, as they are kept."""
    serving = trace.serving & (trace.submitted >= trace.span[0])
    sizes, counts = np.unique(trace.devices[serving], return_counts=True)
    return {
        "source": SOURCES[trace.name],
        "durations": _quantiles(np.log(trace.duration[serving])),
        "sizes": {
            str(int(size)): round(int(count) / int(serving.sum()), 4) for size, count in zip(sizes, counts, strict=True)
        },
        "shares": _quantiles(trace.share[serving]),
    }


def fitted_use(data: Path) -> dict[str, Any]:
    """Parameters of the use of devices, as they are kept, over samples above ``IDLE``.

    Raises:
        FileNotFoundError: The data folder does not hold the original.
    """
    return {
        "source": SOURCES["used"],
        "conventional": _utilisation(data, ("Philly",)),
        "language": _utilisation(data, ("Kalos", "Seren")),
    }


def _utilisation(data: Path, clusters: tuple[str, ...]) -> tuple[float, ...]:
    """Mean over clusters of the quantiles of GPU utilisation, as a share."""
    found = []
    with gzip.open(data / "utilization" / "acme_cdf.csv.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["metric"].endswith("GPU utilisation (%)")]
    for cluster in clusters:
        curve = [
            (float(row["cumulative_pct"]), float(row["value"]))
            for row in rows
            if row["metric"].startswith(cluster) and row["value"] and row["cumulative_pct"]
        ]
        below, values = np.array(curve).T
        idle = float(below[values <= IDLE].max())
        found.append(np.interp(idle + (100 - idle) * np.array(LEVELS), below, values))
    return _rising(np.mean(found, axis=0) / 100)


def members(fit: Fit) -> dict[str, Any]:
    """The fit as it is kept."""
    table = dataclasses.asdict(fit)
    for cluster in table["clusters"]:
        cluster["sizes"] = {str(size): share for size, share in cluster["sizes"]}
    return table


def _batches(trace: Trace) -> tuple[NDArray[np.intp], Floats]:
    """Number of each job's batch, and seconds since the job before it; infinite for the first."""
    order = np.lexsort((trace.submitted, trace.devices, trace.cluster))
    gap = np.diff(trace.submitted[order], prepend=-np.inf)
    other = (np.diff(trace.cluster[order], prepend=-1) != 0) | (np.diff(trace.devices[order], prepend=-1) != 0)
    first = other | (gap > TOGETHER)
    batch, gaps = np.zeros(len(order), dtype=np.intp), np.zeros(len(order))
    batch[order] = np.cumsum(first) - 1
    gaps[order] = np.where(first, np.inf, gap)
    return batch, gaps


def _likeness(trace: Trace, batch: NDArray[np.intp], values: Floats) -> float:
    """Share of jobs that are like their batch: the root of the correlation of jobs that follow each other in it."""
    order = np.lexsort((trace.submitted, batch))
    before, after = values[order][:-1], values[order][1:]
    same = (np.diff(batch[order]) == 0) & np.isfinite(before) & np.isfinite(after)
    return round(math.sqrt(float(np.corrcoef(before[same], after[same])[0, 1])), 3)


def _cluster(trace: Trace, batch: NDArray[np.intp], place: int, fit: Fit) -> Cluster | None:
    members = trace.cluster == place
    since, until = trace.span
    mean, p95 = mean_and_p95(trace.submitted[members], trace.duration[members], trace.devices[members], since, until)
    if p95 < WORTH_A_DOMAIN:
        return None
    members &= (trace.submitted >= since) & (trace.submitted < until)
    groups = tuple(_group(trace, batch, members, number, usual) for number, usual in enumerate(fit.groups))
    sizes, counts = np.unique(trace.devices[members].astype(np.intp), return_counts=True)
    batches = np.array(
        [count / groups[group_of(groups, int(size))].length for size, count in zip(sizes, counts, strict=True)]
    )
    cluster = Cluster(
        trace.clusters[place],
        round(p95, 1),
        round(mean / p95, 3),
        round(float(batches.sum()) / ((until - since) / DAY), 3),
        tuple((int(size), round(float(count / batches.sum()), 5)) for size, count in zip(sizes, batches, strict=True)),
        1.0,
        groups,
    )
    tried = {active: abs(modelled_ratio(fit, cluster, active, until - since) - mean / p95) for active in SHARES_ACTIVE}
    return dataclasses.replace(cluster, active=min(tried, key=lambda active: (tried[active], -active)))


def modelled_ratio(fit: Fit, cluster: Cluster, active: float, seconds: float) -> float:
    """Mean demand over its 95th percentile in the model, as the median of several draws of the trace's length."""
    ratios = []
    for attempt in range(TRIES):
        candidate = dataclasses.replace(cluster, active=active)
        chance = stream("fitting", f"{cluster.name}/{attempt}")
        drawn = draw_cluster(fit, candidate, (-SETTLED, seconds), chance)
        mean, p95 = mean_and_p95(drawn.submitted, drawn.duration, drawn.devices, 0.0, seconds)
        ratios.append(mean / p95 if p95 > 0 else 0.0)
    return float(np.median(ratios))


def _profile(places: Floats, count: int) -> tuple[float, ...]:
    counts = np.bincount(places.astype(np.intp), minlength=count)
    return tuple(round(float(share), 3) for share in counts / counts.mean())


def _quantiles(values: Floats) -> tuple[float, ...]:
    """Quantiles at ``LEVELS``, which never descend once rounded."""
    return _rising(np.quantile(values, LEVELS))


def _rising(values: Floats) -> tuple[float, ...]:
    return tuple(itertools.accumulate((round(float(value), 3) for value in values), max))
