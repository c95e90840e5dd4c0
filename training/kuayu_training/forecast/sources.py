"""Public traces, in the folder that KUAYU_DATA names: series of demand, jobs, and how jobs come together.

1. Series are those of ``demand_series/README.md`` there, jobs those of ``job_traces/README.md``.
2. Jobs are known as a service would be told of them at an instant. The traces state when a job came, for how long it
   ran and how many devices it held; what anybody could have told of its duration beforehand they do not state. Tellers
   stand for that: one that misses by a known factor, as a law of training would, and one that knows nothing but how
   long such jobs took before.
3. How jobs come together is the shape of the gamma distribution by which their rate of arrival varies. Counted are jobs
   that come within a horizon and are still there at its end. With *c* of them and a mean *m* over the day before, the
   shape is Σ *m*² ÷ Σ ((*c* − *m*)² − *m*): infinite where they come by Poisson's law, the less the more they come in
   groups. The first half of each trace alone is looked at.
"""

import csv
import gzip
import os
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table
from scipy.special import ndtri

from kuayu.forecast.requests import Floats, Whole
from kuayu.forecast.series import DAY

if TYPE_CHECKING:
    from kuayu_schemas import documents

MINUTE = 60.0

TEN_MINUTES = 600.0

AHEAD = (10, 60)
"""Horizons that forecasts are judged at, in minutes."""

EMPTY_DAYS = 3
"""Days that ITP and Philly take to fill up; they are left out."""

FILES: dict[str, tuple[str, str | None, int]] = {
    "itp": ("itp_cluster_gpus_demand_1min.csv.gz", None, EMPTY_DAYS),
    "philly": ("philly_vc_gpus_running_1min.csv.gz", None, EMPTY_DAYS),
    "helios earth": ("helios_earth_vc_gpus_running_1min.csv.gz", None, 0),
    "openb": ("openb_2023_running_1min.csv.gz", "gpus_running", 0),
    "dlrm": ("dlrm_2025_running_1min.csv.gz", "gpus_running", 0),
}
"""File of each source, the only column that counts, and the days that are left out."""

FLOWS: dict[str, tuple[str, tuple[str, ...] | None, int, int]] = {
    "itp submitted": ("itp_cluster_gpus_submitted_1min.csv.gz", None, EMPTY_DAYS, 10),
    "philly submitted": ("philly_vc_gpus_submitted_1min.csv.gz", None, EMPTY_DAYS, 10),
    "helios venus jobs": ("helios_venus_10min.csv.gz", ("submit_gpu_job", "submit_gpu_num"), 0, 1),
    "genai requests": ("genai_requests_10min.csv", ("requests",), 0, 1),
}
"""File of each flow, the columns that count, the days that are left out, and rows that are one step of ten minutes."""

COVERAGE = 0.9

MARGIN = float(ndtri((1 + COVERAGE) / 2))

DEVICE_CLASSES = np.array([1, 2, 5, 9, 17])
"""Least devices of the classes in which durations are known from the past."""

TRACES: dict[str, tuple[str, float]] = {
    "itp": ("itp", 0.0),
    "philly": ("philly", 86_400.0),
    "openb": ("openb_2023", 0.0),
}
"""Trace of the jobs of a source, and seconds of its time zero before that of the series of the source."""

MIN_MEAN_ARRIVALS = 0.3
"""Arrivals within a horizon, on the mean, below which a domain says too little."""


@dataclass(frozen=True)
class Source:
    """Series of one cluster or trace.

    Attributes:
        name: Its name.
        domains: Names of its domains, D.
        values: Devices, D × T.
        offset: Seconds of the first value since the time zero of the source.
        step: Seconds from one value to the next.
    """

    name: str
    domains: tuple[str, ...]
    values: Floats
    offset: float
    step: float = MINUTE


def folder() -> Path:
    """Where the public data is."""
    return Path(os.environ.get("KUAYU_DATA", "../shared/data"))


def sources(data: Path, names: Container[str] = frozenset(FILES)) -> Iterator[Source]:
    """Sources of these names, all where none are given.

    Raises:
        FileNotFoundError: A file is not there.
    """
    for name, (file, only, days) in FILES.items():
        if name not in names:
            continue
        with gzip.open(data / "demand_series" / file, "rt") as text:
            header = next(csv.reader([text.readline()]))
            table = np.loadtxt(text, delimiter=",")
        columns = [column for column in range(1, len(header)) if only in {None, header[column]}]
        skipped = days * 1440
        domains = tuple(header[column] for column in columns)
        yield Source(name, domains, table[skipped:, columns].T.copy(), float(table[skipped, 0]))


def flows(data: Path) -> Iterator[Source]:
    """Series of what comes in ten minutes: submissions and requests.

    Raises:
        FileNotFoundError: A file is not there.
    """
    for name, (file, only, days, rows) in FLOWS.items():
        path = data / "demand_series" / file
        with gzip.open(path, "rt") if file.endswith(".gz") else path.open(encoding="utf-8") as text:
            header = next(csv.reader([text.readline()]))
            table = np.loadtxt(text, delimiter=",")[days * 1440 :]
        columns = [column for column in range(1, len(header)) if only is None or header[column] in only]
        count = len(table) // rows
        values = table[: count * rows, columns].T.reshape(len(columns), count, rows).sum(axis=2)
        yield Source(name, tuple(header[column] for column in columns), values, float(table[0, 0]), TEN_MINUTES)


@dataclass(frozen=True)
class Jobs:
    """Jobs of a trace, J; each runs as soon as it comes.

    Attributes:
        domain: Number of its domain among those of the source, J.
        came: Seconds since the time zero of the trace, J.
        lasts: Seconds, J.
        devices: J.
    """

    domain: Whole
    came: Floats
    lasts: Floats
    devices: Floats

    def at(self, instant: float) -> Whole:
        """Numbers of the jobs that are there at an instant."""
        return np.flatnonzero((self.came <= instant) & (instant < self.came + self.lasts))


@dataclass(frozen=True)
class Teller:
    """What is told of durations: medians and standard deviations of logarithms, J."""

    median: Floats
    width: Floats

    def estimate(self, job: int) -> "documents.Estimate":
        """What is told of a job's duration."""
        median, factor = float(self.median[job]), float(np.exp(MARGIN * self.width[job]))
        return {"expected": median, "low": median / factor, "high": median * factor, "coverage": COVERAGE}


def read_jobs(data: Path, source: str, domains: tuple[str, ...]) -> Jobs:
    """Jobs of a source that hold whole devices, from their start where it is known, else from their submission.

    Raises:
        FileNotFoundError: The trace is not there.
    """
    trace, later = TRACES[source]
    place = {name: number for number, name in enumerate(domains)}
    with gzip.open(data / "job_traces" / f"{trace}.csv.gz", "rt", newline="") as file:
        rows = [
            (
                place.get(row["domain"], 0),
                float(row["start_time_s"] or row["submit_time_s"]) - later,
                float(row["duration_s"]),
                float(row["gpus"]),
            )
            for row in csv.DictReader(file)
            if (row["domain"] in place or len(domains) == 1)
            and (row["start_time_s"] or row["submit_time_s"])
            and float(row["duration_s"] or 0) > 0
            and float(row["gpus"] or 0) >= 1
            and float(row["gpus"]).is_integer()
        ]
    table = np.array(rows).T
    return Jobs(table[0].astype(np.int64), table[1], table[2], table[3])


def missing_by(jobs: Jobs, width: float, seed: int) -> Teller:
    """Durations told with a log-normal error of a known width, each job's drawn once."""
    missed = np.random.default_rng([seed, round(1000 * width)]).normal(0.0, width, len(jobs.lasts))
    return Teller(jobs.lasts * np.exp(missed), np.full(len(jobs.lasts), width))


def as_before(jobs: Jobs, until: float) -> Teller:
    """Durations told by nothing but those of jobs of as many devices that came before an instant."""
    kind = np.searchsorted(DEVICE_CLASSES, jobs.devices, side="right") - 1
    median, width = np.ones(len(jobs.lasts)), np.ones(len(jobs.lasts))
    for one in np.unique(kind):
        logs = np.log(jobs.lasts[(kind == one) & (jobs.came < until)])
        median[kind == one], width[kind == one] = np.exp(np.median(logs)), logs.std()
    return Teller(median, width)


@dataclass(frozen=True)
class ArrivalShape:
    """What one domain shows.

    Attributes:
        source: Name of the source.
        domain: Name of the domain.
        minutes: Horizon.
        mean: Jobs that come within it and are still there.
        shape: Of the gamma distribution.
    """

    source: str
    domain: str
    minutes: int
    mean: float
    shape: float


def arrival_shapes(data: Path, datasets: Sequence[Source]) -> Iterator[ArrivalShape]:
    """Shapes of all domains in which enough jobs come.

    Raises:
        FileNotFoundError: A trace is not there.
    """
    for source in datasets:
        if source.name not in TRACES:
            continue
        jobs = read_jobs(data, source.name, source.domains)
        until = source.offset + MINUTE * (source.values.shape[1] // 2)
        for number, domain in enumerate(source.domains):
            for minutes in AHEAD:
                came = _arrival_counts(jobs, number, source.offset, until, MINUTE * minutes)
                if came.mean() >= MIN_MEAN_ARRIVALS:
                    shape = _arrival_shape(came, round(DAY / MINUTE / minutes))
                    yield ArrivalShape(source.name, domain, minutes, float(came.mean()), shape)


def _arrival_counts(jobs: Jobs, domain: int, begin: float, until: float, horizon: float) -> Floats:
    """Jobs that came within each horizon and are still there at its end."""
    edges = np.arange(begin, until, horizon)
    came, lasts = jobs.came[jobs.domain == domain], jobs.lasts[jobs.domain == domain]
    place = np.searchsorted(edges, came, side="right") - 1
    inside = (place >= 0) & (place < len(edges) - 1)
    place, ends = place[inside], (came + lasts)[inside]
    return np.bincount(place[ends >= edges[place + 1]], minlength=len(edges) - 1).astype(np.float64)


def _arrival_shape(came: Floats, day: int) -> float:
    before = np.convolve(came, np.full(day, 1 / day))[day - 1 : len(came) - 1]
    came = came[day:]
    beyond = float(((came - before) ** 2 - before).sum())
    return float((before**2).sum()) / beyond if beyond > 0 else np.inf


def arrival_tables(fits: Sequence[ArrivalShape]) -> Iterator[Table]:
    """A table of domains, and the medians over them."""
    table = Table(title="Jobs that come within a horizon and are still there, first half of each trace")
    for name in ("source", "domain", "minutes", "mean", "shape"):
        table.add_column(name)
    for fit in fits:
        table.add_row(fit.source, fit.domain, str(fit.minutes), f"{fit.mean:.2f}", f"{fit.shape:.2f}")
    for minutes in AHEAD:
        middle = float(np.median([fit.shape for fit in fits if fit.minutes == minutes]))
        table.add_row("all", "median", str(minutes), "", f"{middle:.2f}")
    yield table
