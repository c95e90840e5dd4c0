"""Jobs of real clusters in one form, and the devices that jobs would hold if every one of them started at once.

1. **Traces.** They are read from the folder of public originals (``KUAYU_DATA``).

   - *itp*: ten clusters of Microsoft in spring 2021, microsoft/elasticflow-traces ``data/raw-traces.tar.gz`` [277ed24];
     D. Gu et al., "ElasticFlow", ASPLOS 2023. Jobs were submitted in the first 40 of 60 days.
   - *philly*: virtual clusters of Microsoft, 2017, siasosp23/artifacts ``sia-simulator/traces/philly.csv`` [aaf7a0d],
     from msr-fiddle/philly-traces; M. Jeon et al., "Analysis of large-scale multi-tenant GPU clusters", ATC 2019.
   - *openb*: pods of Alibaba, 2023, alibaba/clusterdata ``cluster-trace-gpu-v2023`` [7a6c496]; Q. Weng et al., "Beware
     of fragmentation", ATC 2023. It is a sample without clusters; pods share GPUs, and most serve.
2. **Demand.** Load and skew are told by the devices that jobs would hold if every one of them started at once.
"""

import csv
import gzip
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.corpora.data_folder import JOB_TRACES
from kuayu_conformance.testbed.elementary import Floats

DAY = 86400.0
FILES = JOB_TRACES
SPANS = {"itp": (0.0, 40 * DAY), "philly": (0.0, 49 * DAY), "openb": (115 * DAY, 138 * DAY)}
"""Seconds in which jobs were submitted as usual: philly's first days and openb's first months hold few long ones."""
SERVING_CLASSES = ("LS", "Guaranteed", "Burstable")
"""Classes of openb that wait for requests: latency-sensitive ones, and those with a guarantee."""
STEP = 600.0
"""Seconds over which demand is averaged before a percentile is taken."""


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
    return _read(name, path)


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


@cache
def _read(name: str, path: Path) -> Trace:
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
