"""How the fitted model compares with the traces: what a reader, or a test, holds the one against the other by.

Both are looked at in the same way and over the same time: every cluster at its measured size, for as long as the trace
has jobs. The model is drawn ``DRAWS`` times from one seed, and the median of each figure is taken.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import stream
from kuayu_conformance.testbed.scheduling.workload.arrivals import draw_cluster
from kuayu_conformance.testbed.scheduling.workload.curves import Floats
from kuayu_conformance.testbed.scheduling.workload.demand import mean_and_p95
from kuayu_conformance.testbed.scheduling.workload.fitted import parameters
from kuayu_conformance.testbed.scheduling.workload.fitting import SETTLED
from kuayu_conformance.testbed.scheduling.workload.traces import DAY, SPANS, Trace

DRAWS = 5
SIZES = (1, 2, 4, 8, 16, 32, 64)
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
WINDOWS = {"10 min": 600.0, "1 h": 3600.0, "1 day": DAY}


@dataclass(frozen=True, slots=True)
class Looked:
    """Jobs to look at, in arrays by job."""

    submitted: Floats
    duration: Floats
    devices: Floats
    cluster: NDArray[np.str_]


def figures(jobs: Looked, since: float, until: float) -> dict[str, float]:
    """Figures by name, of jobs that were submitted between two times; demand counts those that were there before."""
    within = (jobs.submitted >= since) & (jobs.submitted < until)
    submitted, duration, devices = jobs.submitted[within] - since, jobs.duration[within], jobs.devices[within]
    work = duration * devices
    found = {"jobs a day": len(submitted) / ((until - since) / DAY)}
    for size in SIZES:
        found[f"share of jobs of {size} devices"] = float(np.mean(devices == size))
    for size in SIZES:
        found[f"share of work in jobs of {size} devices"] = float(work[devices == size].sum() / work.sum())
    for share, value in zip(SHARES, np.quantile(duration, SHARES), strict=True):
        found[f"duration, {share:.0%} (s)"] = float(value)
    found["share of work in jobs over 2 days"] = float(work[duration > 2 * DAY].sum() / work.sum())
    gaps = np.diff(np.sort(submitted))
    found["seconds between jobs, variation"] = float(gaps.std() / gaps.mean())
    for name, window in WINDOWS.items():
        counts = np.bincount((submitted // window).astype(np.intp))
        found[f"submissions in {name}, variance over mean"] = float(counts.var() / counts.mean())
    for name in np.unique(jobs.cluster):
        of = jobs.cluster == name
        mean, p95 = mean_and_p95(jobs.submitted[of], jobs.duration[of], jobs.devices[of], since, until)
        found[f"{name}: mean demand (devices)"] = mean
        found[f"{name}: mean over p95"] = mean / p95 if p95 > 0 else 0.0
    return found


def measured(trace: Trace) -> dict[str, float]:
    """Figures of a trace, of the clusters that are worth a domain."""
    names = np.array(trace.clusters)[trace.cluster]
    kept = np.isin(names, [cluster.name for cluster in parameters()[0][trace.name].clusters])
    return figures(Looked(trace.submitted[kept], trace.duration[kept], trace.devices[kept], names[kept]), *trace.span)


def modelled(name: str) -> dict[str, float]:
    """Figures of the model that was fitted to a trace, over the same time."""
    fit, seconds = parameters()[0][name], SPANS[name][1] - SPANS[name][0]
    found = []
    for attempt in range(DRAWS):
        parts = [
            draw_cluster(fit, cluster, (-SETTLED, seconds), stream(f"comparison {attempt}", cluster.name))
            for cluster in fit.clusters
        ]
        names = [np.full(len(part.batch), cluster.name) for part, cluster in zip(parts, fit.clusters, strict=True)]
        jobs = Looked(
            np.concatenate([part.submitted for part in parts]),
            np.concatenate([part.duration for part in parts]),
            np.concatenate([part.devices for part in parts]),
            np.concatenate(names),
        )
        found.append(figures(jobs, 0.0, seconds))
    return {key: float(np.median([draw[key] for draw in found])) for key in found[0]}


def table(traces: dict[str, Trace]) -> str:
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


def kept() -> dict[str, dict[str, tuple[float, float]]]:
    """The table that ships: by trace and figure, that of the trace and that of the model."""
    text = (Path(__file__).parent / "comparison.json").read_text("utf-8")
    return {
        name: {key: (a, b) for key, (a, b) in of.items()} for name, of in json.loads(text).items() if name != "columns"
    }


def _short(value: float) -> float:
    return float(f"{value:.3g}")
