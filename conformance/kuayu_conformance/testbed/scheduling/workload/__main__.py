"""How the parameters that ship follow from the traces, and how the fitted model compares with these.

``python -m kuayu_conformance.testbed.scheduling.workload DATA_DIR`` fits again, compares, and writes both files;
nothing here runs in a scenario.

1. **Fit.** A batch is a run of jobs of one size in one cluster, each submitted within ``TOGETHER`` of the one before.
   Quantiles of durations are those of the jobs of a group of sizes, of lengths those of their batches. The share of
   active spells is the one with which the model's mean demand over its 95th percentile comes nearest to that of the
   cluster.
2. **Comparison.** A reader, or a test, holds the one against the other by figures. Both are looked at in the same way
   and over the same time: every cluster at its measured size, for as long as the trace has jobs. The model is drawn
   ``DRAWS`` times from one seed, and the median of each figure is taken.
"""

import csv
import dataclasses
import gzip
import itertools
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import stream
from kuayu_conformance.testbed.elementary import Floats
from kuayu_conformance.testbed.scheduling.workload.traces import (
    DAY,
    LEVELS,
    SPANS,
    Cluster,
    Fit,
    Group,
    Trace,
    draw_cluster,
    forget,
    group_of,
    mean_and_p95,
    parameters,
    read,
)

TOGETHER = 900.0
MIN_DEVICES = (1, 2, 4, 8, 16)
"""Devices of the smallest jobs of each group."""
WORTH_A_DOMAIN = 16.0
"""Devices: a cluster whose 95th percentile is less is no domain (one of ITP's ten has 1.5, four of Philly's none)."""
ENOUGH_JOBS, ENOUGH_BATCHES = 60, 40
"""From so many on a cluster has durations and lengths of its own in a group of sizes, else those of all clusters."""
SHARES_ACTIVE = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
TRIES = 8
"""Draws by which a share of active spells is judged."""
SETTLED = 20 * DAY
"""Seconds before the beginning in which jobs are drawn, so that long ones stand there as they would."""
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
DRAWS = 5
SIZES = (1, 2, 4, 8, 16, 32, 64)
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
WINDOWS = {"10 min": 600.0, "1 h": 3600.0, "1 day": DAY}
FITTED = ("itp", "philly")


def fit_of_trace(trace: Trace) -> Fit:
    """Parameters of a trace with clusters; those of activity are found by simulation, from one seed."""
    usual = (trace.submitted >= trace.span[0]) & (trace.submitted < trace.span[1])
    batch, gap = _batches(trace)
    inside = np.isfinite(gap) & usual
    fit = Fit(
        SOURCES[trace.name],
        float(trace.duration.max()),
        _likeness(trace, batch, np.log(trace.duration)),
        _likeness(trace, batch, np.log1p(np.where(inside, gap, np.nan))),
        _quantiles(gap[inside]),
        _profile(trace.submitted[usual] // 3600 % 24, 24),
        _profile(trace.submitted[usual] // DAY % 7, 7),
        tuple(_group(trace, batch, usual, place) for place in range(len(MIN_DEVICES))),
        (),
    )
    clusters = (_cluster(trace, batch, place, fit) for place in range(len(trace.clusters)))
    return dataclasses.replace(fit, clusters=tuple(cluster for cluster in clusters if cluster is not None))


def fit_of_serving(trace: Trace) -> dict[str, Any]:
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


def fit_of_use(data: Path) -> dict[str, Any]:
    """Parameters of the use of devices, as they are kept, over samples above ``IDLE``.

    Raises:
        FileNotFoundError: The data folder does not hold the original.
    """
    return {
        "source": SOURCES["used"],
        "conventional": _utilisation(data, ("Philly",)),
        "language": _utilisation(data, ("Kalos", "Seren")),
    }


def members(fit: Fit) -> dict[str, Any]:
    """The fit as it is kept."""
    table = dataclasses.asdict(fit)
    for cluster in table["clusters"]:
        cluster["sizes"] = {str(size): share for size, share in cluster["sizes"]}
    return table


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


@dataclass(frozen=True, slots=True)
class JobTable:
    """Jobs to look at, in arrays by job."""

    submitted: Floats
    duration: Floats
    devices: Floats
    cluster: NDArray[np.str_]


def figures(jobs: JobTable, since: float, until: float) -> dict[str, float]:
    """Figures by name, of jobs that were submitted between two times; demand counts those that were there before."""
    within = (jobs.submitted >= since) & (jobs.submitted < until)
    submitted, duration, devices = jobs.submitted[within] - since, jobs.duration[within], jobs.devices[within]
    work = duration * devices
    rows = {"jobs a day": len(submitted) / ((until - since) / DAY)}
    for size in SIZES:
        rows[f"share of jobs of {size} devices"] = float(np.mean(devices == size))
    for size in SIZES:
        rows[f"share of work in jobs of {size} devices"] = float(work[devices == size].sum() / work.sum())
    for share, value in zip(SHARES, np.quantile(duration, SHARES), strict=True):
        rows[f"duration, {share:.0%} (s)"] = float(value)
    rows["share of work in jobs over 2 days"] = float(work[duration > 2 * DAY].sum() / work.sum())
    gaps = np.diff(np.sort(submitted))
    rows["seconds between jobs, variation"] = float(gaps.std() / gaps.mean())
    for name, window in WINDOWS.items():
        counts = np.bincount((submitted // window).astype(np.intp))
        rows[f"submissions in {name}, variance over mean"] = float(counts.var() / counts.mean())
    for name in np.unique(jobs.cluster):
        of = jobs.cluster == name
        mean, p95 = mean_and_p95(jobs.submitted[of], jobs.duration[of], jobs.devices[of], since, until)
        rows[f"{name}: mean demand (devices)"] = mean
        rows[f"{name}: mean over p95"] = mean / p95 if p95 > 0 else 0.0
    return rows


def measured(trace: Trace) -> dict[str, float]:
    """Figures of a trace, of the clusters that are worth a domain."""
    names = np.array(trace.clusters)[trace.cluster]
    members = np.isin(names, [cluster.name for cluster in parameters()[0][trace.name].clusters])
    return figures(
        JobTable(trace.submitted[members], trace.duration[members], trace.devices[members], names[members]), *trace.span
    )


def modelled(name: str) -> dict[str, float]:
    """Figures of the model that was fitted to a trace, over the same time."""
    fit, seconds = parameters()[0][name], SPANS[name][1] - SPANS[name][0]
    draws = []
    for attempt in range(DRAWS):
        parts = [
            draw_cluster(fit, cluster, (-SETTLED, seconds), stream(f"comparison {attempt}", cluster.name))
            for cluster in fit.clusters
        ]
        names = [np.full(len(part.batch), cluster.name) for part, cluster in zip(parts, fit.clusters, strict=True)]
        jobs = JobTable(
            np.concatenate([part.submitted for part in parts]),
            np.concatenate([part.duration for part in parts]),
            np.concatenate([part.devices for part in parts]),
            np.concatenate(names),
        )
        draws.append(figures(jobs, 0.0, seconds))
    return {key: float(np.median([draw[key] for draw in draws])) for key in draws[0]}


def comparison_text(traces: dict[str, Trace]) -> str:
    """Both by trace and figure, to three digits, as they are kept in ``comparison.json``."""
    rows = {}
    for name, trace in traces.items():
        real, model = measured(trace), modelled(name)
        rows[name] = {key: [_short(real[key]), _short(model[key])] for key in real}
    head = "figure: [trace, model]"
    lines = []
    for name, of in rows.items():
        pairs = ",\n".join(f"  {json.dumps(key)}: {json.dumps(pair)}" for key, pair in of.items())
        lines.append(f" {json.dumps(name)}: {{\n{pairs}\n }}")
    return "{\n" + f' "columns": {json.dumps(head)},\n' + ",\n".join(lines) + "\n}\n"


def shipped_comparison() -> dict[str, dict[str, tuple[float, float]]]:
    """The table that ships: by trace and figure, that of the trace and that of the model."""
    text = (Path(__file__).parent / "comparison.json").read_text("utf-8")
    return {
        name: {key: (a, b) for key, (a, b) in of.items()} for name, of in json.loads(text).items() if name != "columns"
    }


def _group(
    trace: Trace, batch: NDArray[np.intp], chosen: NDArray[np.bool_], place: int, usual: Group | None = None
) -> Group:
    """Quantiles of a group of sizes over some jobs, or the usual ones where they are too few."""
    members = chosen & (np.searchsorted(MIN_DEVICES, trace.devices, side="right") - 1 == place)
    counts = np.bincount(batch[members])
    lengths = counts[counts > 0].astype(np.float64)
    return Group(
        MIN_DEVICES[place],
        _quantiles(np.log(trace.duration[members]))
        if usual is None or members.sum() >= ENOUGH_JOBS
        else usual.durations,
        _quantiles(lengths) if usual is None or len(lengths) >= ENOUGH_BATCHES else usual.lengths,
    )


def _utilisation(data: Path, clusters: tuple[str, ...]) -> tuple[float, ...]:
    """Mean over clusters of the quantiles of GPU utilisation, as a share."""
    curves = []
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
        curves.append(np.interp(idle + (100 - idle) * np.array(LEVELS), below, values))
    return _rising(np.mean(curves, axis=0) / 100)


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


def _profile(places: Floats, count: int) -> tuple[float, ...]:
    counts = np.bincount(places.astype(np.intp), minlength=count)
    return tuple(round(float(share), 3) for share in counts / counts.mean())


def _quantiles(values: Floats) -> tuple[float, ...]:
    """Quantiles at ``LEVELS``, which never descend once rounded."""
    return _rising(np.quantile(values, LEVELS))


def _rising(values: Floats) -> tuple[float, ...]:
    return tuple(itertools.accumulate((round(float(value), 3) for value in values), max))


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def main(arguments: list[str]) -> int:
    """Write what was fitted and how it compares."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m kuayu_conformance.testbed.scheduling.workload DATA_DIR\n")
        return 2
    data, package = Path(arguments[0]), Path(__file__).parent
    (package / "fitted.json").write_text(fitted_text(data), "utf-8")
    forget()
    text = comparison_text({name: read(name, data) for name in FITTED})
    (package / "comparison.json").write_text(text, "utf-8")
    sys.stdout.write(text)
    return 0


def fitted_text(data: Path) -> str:
    """Text of the file of parameters."""
    parts: dict[str, Any] = {name: members(fit_of_trace(read(name, data))) for name in FITTED}
    parts["serving"] = fit_of_serving(read("openb", data))
    parts["used"] = fit_of_use(data)
    return "{\n" + ",\n".join(f" {json.dumps(name)}: {_part(of)}" for name, of in parts.items()) + "\n}\n"


def _part(members: dict[str, Any]) -> str:
    """A line for each member, and one for each of a list of objects."""
    lines = []
    for name, value in members.items():
        listed = isinstance(value, list | tuple) and isinstance(value[0], dict)
        text = "[\n" + ",\n".join(f"   {json.dumps(row)}" for row in value) + "\n  ]" if listed else json.dumps(value)
        lines.append(f"  {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n }"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
