"""Jobs of public traces as a service would be told of them at an instant (``job_traces/README.md``).

The traces state when a job came, for how long it ran and how many devices it held; what anybody could have told of its
duration beforehand they do not state. Three tellers stand for that: one that misses by a known factor, as a law of
training would, and one that knows nothing but how long such jobs took before.
"""

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from kuayu.forecast.requests import Floats, Whole

if TYPE_CHECKING:
    from kuayu_schemas import documents

COVERAGE = 0.9

MARGIN = float(ndtri((1 + COVERAGE) / 2))

CLASSES = np.array([1, 2, 5, 9, 17])
"""Least devices of the classes in which durations are known from the past."""


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


TRACES: dict[str, tuple[str, float]] = {
    "itp": ("itp", 0.0),
    "philly": ("philly", 86_400.0),
    "openb": ("openb_2023", 0.0),
}
"""Trace of the jobs of a source, and seconds of its time zero before that of the series of the source."""


def read(data: Path, source: str, domains: tuple[str, ...]) -> Jobs:
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
    kind = np.searchsorted(CLASSES, jobs.devices, side="right") - 1
    median, width = np.ones(len(jobs.lasts)), np.ones(len(jobs.lasts))
    for one in np.unique(kind):
        logs = np.log(jobs.lasts[(kind == one) & (jobs.came < until)])
        median[kind == one], width[kind == one] = np.exp(np.median(logs)), logs.std()
    return Teller(median, width)
