"""How jobs come together in public traces: the shape of the gamma distribution by which their rate of arrival varies.

Counted are jobs that come within a horizon and are still there at its end. With *c* of them and a mean *m* over the day
before, the shape is Σ *m*² ÷ Σ ((*c* − *m*)² − *m*): infinite where they come by Poisson's law, the less the more they
come in groups. The first half of each trace alone is looked at.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from kuayu.forecast.requests import Floats
from kuayu.forecast.series import DAY
from kuayu_training.forecast.jobs import TRACES, Jobs, read
from kuayu_training.forecast.judgement import AHEAD
from kuayu_training.forecast.sources import MINUTE, Source

MIN_MEAN_ARRIVALS = 0.3
"""Arrivals within a horizon, on the mean, below which a domain says too little."""


@dataclass(frozen=True)
class Shape:
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


def shapes(data: Path, datasets: Sequence[Source]) -> Iterator[Shape]:
    """Shapes of all domains in which enough jobs come.

    Raises:
        FileNotFoundError: A trace is not there.
    """
    for source in datasets:
        if source.name not in TRACES:
            continue
        jobs = read(data, source.name, source.domains)
        until = source.offset + MINUTE * (source.values.shape[1] // 2)
        for number, domain in enumerate(source.domains):
            for minutes in AHEAD:
                came = _counts(jobs, number, source.offset, until, MINUTE * minutes)
                if came.mean() >= MIN_MEAN_ARRIVALS:
                    shape = _shape(came, round(DAY / MINUTE / minutes))
                    yield Shape(source.name, domain, minutes, float(came.mean()), shape)


def _counts(jobs: Jobs, domain: int, begin: float, until: float, horizon: float) -> Floats:
    """Jobs that came within each horizon and are still there at its end."""
    edges = np.arange(begin, until, horizon)
    came, lasts = jobs.came[jobs.domain == domain], jobs.lasts[jobs.domain == domain]
    place = np.searchsorted(edges, came, side="right") - 1
    inside = (place >= 0) & (place < len(edges) - 1)
    place, ends = place[inside], (came + lasts)[inside]
    return np.bincount(place[ends >= edges[place + 1]], minlength=len(edges) - 1).astype(np.float64)


def _shape(came: Floats, day: int) -> float:
    before = np.convolve(came, np.full(day, 1 / day))[day - 1 : len(came) - 1]
    came = came[day:]
    beyond = float(((came - before) ** 2 - before).sum())
    return float((before**2).sum()) / beyond if beyond > 0 else np.inf


def tables(fits: Sequence[Shape]) -> Iterator[Table]:
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
