"""What answers of a service are held beside: forecasts that anybody can make, demand of real clusters, simple plans.

1. **Baselines.** *Last value*, *drift* (the straight line through the first and the last value) and *seasonal naive*
   (the value a day before) as in R. J. Hyndman and G. Athanasopoulos, "Forecasting: principles and practice", 3rd ed.
   (2021), 5.2; *smoothing* with a damped trend as in E. S. Gardner and E. McKenzie, "Forecasting trends in time
   series", Management Science 31 (1985) 1237-1246; *plan*, the last value with what trainings and events are expected
   to change of it.
2. **Real series.** They come from the folder of public originals (``KUAYU_DATA``), and are not judged: nobody can keep
   them from having been seen.

   - *itp-demand*: GPUs that jobs of ten clusters of Microsoft held or waited for in spring 2021, as if none had queued;
     microsoft/elasticflow-traces (D. Gu et al., ASPLOS 2023).
   - *earth-running*: GPUs in use of 16 virtual clusters of SenseTime's cluster Earth, May 2020; HeliosArtifact (Q. Hu
     et al., "Characterization and prediction of deep learning workloads in large-scale GPU datacenters", SC 2021).
   - *philly-running*: GPUs in use of virtual clusters of Microsoft, 2017 (M. Jeon et al., ATC 2019).
   - *openb-running*: GPUs in use by a sample of Alibaba's pods, 2023 (Q. Weng et al., ATC 2023).
3. **Cases.** The periods of each training are laid one after the other, many times over. A training that runs is laid
   from its start, one that waits from its submission or from now, whichever is later; seconds of a period are
   log-normal, with the median and the ends of the interval that its estimate states.
4. **Peaks.** A bound below which no plan comes (:func:`least_peak`), and a plan that a simple rule makes
   (:func:`greedy`).
"""

import csv
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.corpora import DEMAND_SERIES
from kuayu_conformance.testbed.chance import stream
from kuayu_conformance.testbed.demand.codec import Foreseen, announced, foreseen
from kuayu_conformance.testbed.demand.world import DAY, STEP, Domain, Period

Floats = NDArray[np.float64]
LAST, SEASONAL, DRIFT, SMOOTHING, PLAN = "last value", "seasonal naive", "drift", "smoothing", "plan"
SIMPLE = (LAST, SEASONAL, DRIFT, SMOOTHING)
"""Those that know nothing but the series."""
FILES = DEMAND_SERIES
"""Tables of a value each minute and cluster, by name."""
DEMANDED = frozenset({"itp-demand"})
"""Those that count what is demanded; the others count what is held."""
EMPTY_AT_FIRST = 3 * 1440
"""Values at the beginning that say nothing, as the lists of jobs begin with nobody there."""
MIN_MEAN_DEVICES = 20.0
"""Mean devices of a cluster that is worth a forecast."""
_DAY = int(DAY / STEP)
_TREND, _DAMPED = 0.1, 0.9
_LEVELS = (0.3, 0.6, 0.9)
_MINUTES_PER_VALUE = 10
_OVERDUE = 0.1
_OTHERS = frozenset({"time_s", "cpus_running", "pods_running"})


def simple(series: Floats, ahead: int) -> dict[str, float]:
    """Forecasts of a series by minutes for so many steps after its last value.

    Args:
        series: A day of values or more.
        ahead: Steps, less than a day.

    Raises:
        ValueError: The series is shorter than a day.
    """
    if len(series) <= _DAY:
        raise ValueError("a day of values and one more are needed")
    last = float(series[-1])
    slope = float(series[-1] - series[-1 - _DAY]) / _DAY
    return {
        LAST: last,
        SEASONAL: float(series[-1 + ahead - _DAY]),
        DRIFT: max(0.0, last + slope * ahead),
        SMOOTHING: max(0.0, smoothed(series[-1 - _DAY :: _MINUTES_PER_VALUE], ahead / _MINUTES_PER_VALUE)),
    }


def smoothed(values: Floats, ahead: float) -> float:
    """Level and damped trend after so many steps; the weight of the level is the best of three on what was there."""
    best, forecast = np.inf, float(values[-1])
    whole = max(1, round(ahead))
    reach = sum(_DAMPED**step for step in range(1, whole + 1))
    for weight in _LEVELS:
        level, trend, missed, forecasts = float(values[0]), 0.0, 0.0, []
        for value in values[1:].tolist():
            before = level
            level = weight * value + (1.0 - weight) * (level + _DAMPED * trend)
            trend = _TREND * (level - before) + (1.0 - _TREND) * _DAMPED * trend
            forecasts.append(level + reach * trend)
        missed = (
            float(np.abs(np.array(forecasts[:-whole]) - values[1 + whole :]).sum()) if len(forecasts) > whole else 0.0
        )
        if missed < best:
            best, forecast = missed, forecasts[-1]
    return forecast


def plan(domain: Domain, now: float, horizons: Sequence[float]) -> dict[float, float]:
    """By how much trainings and events are expected to change a domain's demand until each horizon."""
    return {horizon: sum(by_tenant.values()) for horizon, by_tenant in planned(domain, now, horizons).items()}


def planned(domain: Domain, now: float, horizons: Sequence[float]) -> Mapping[float, Mapping[int, float]]:
    """The same by tenant of the domain; events are of the last two."""
    from kuayu_conformance.testbed.demand.world import CROWD, SERVING

    changes: dict[float, dict[int, float]] = {horizon: {} for horizon in horizons}
    for training in foreseen(domain, now):
        for horizon in horizons:
            change = _devices(training, now, now + horizon) - _devices(training, now, now)
            changes[horizon][training.job.tenant] = changes[horizon].get(training.job.tenant, 0.0) + change
    for event in announced(domain, now):
        tenant, sign = (SERVING, -1.0) if event.kind == "maintenance" else (CROWD, 1.0)
        for horizon in horizons:
            active = [float(event.begin <= instant < event.end) for instant in (now, now + horizon)]
            change = sign * event.devices * (active[1] - active[0])
            changes[horizon][tenant] = changes[horizon].get(tenant, 0.0) + change
    return changes


def last_with_errors(series: Floats, ahead: int, levels: Sequence[float]) -> tuple[float, ...]:
    """The last value with the errors that last values made so many steps ahead, by levels; none is below zero.

    A quantile is the least error that at least that share of errors does not exceed.
    """
    errors = np.sort(series[ahead:] - series[:-ahead])
    places = [max(0, int(np.ceil(level * len(errors))) - 1) for level in levels]
    return tuple(max(0.0, float(series[-1] + errors[place])) for place in places)


def series(name: str, folder: Path) -> Mapping[str, NDArray[np.float64]]:
    """Values each minute by cluster, those at the beginning that say nothing left out.

    Raises:
        KeyError: There is no such table.
        OSError: It cannot be read.
    """
    with gzip.open(folder / FILES[name], "rt", encoding="utf-8") as lines:
        rows = csv.reader(lines)
        names = next(rows)
        table = np.array([[float(cell or 0.0) for cell in row] for row in rows])
    columns = {
        names[place]: table[EMPTY_AT_FIRST:, place] for place in range(len(names)) if names[place] not in _OTHERS
    }
    return {cluster: values for cluster, values in columns.items() if values.mean() >= MIN_MEAN_DEVICES}


def _devices(training: Foreseen, now: float, instant: float) -> float:
    """Devices of a training at an instant if all goes as expected from now on; one that waits goes on waiting."""
    if training.started is None:
        return float(training.periods[0].devices) if training.submitted <= instant else 0.0
    end = training.started
    for period in training.periods:
        lasts = period.expected
        if period.spread > 0.0 and end <= now:
            # one that is overdue is about to end
            lasts = max(lasts, now - end + _OVERDUE * period.spread * period.expected)
        end += lasts
        if instant < end:
            return float(period.devices)
    return 0.0


@dataclass(frozen=True, slots=True)
class Laid:
    """A training whose periods are laid.

    Attributes:
        begin: Seconds from now at which the first of them begins.
        periods: In order.
    """

    begin: float
    periods: tuple[Period, ...]


def cases(jobs: Sequence[Laid], ats: Floats, count: int, seed: str) -> Floats:
    """Devices by case and instant, shape (count, instants).

    Args:
        jobs: Trainings.
        ats: Seconds from now, rising.
        count: Cases.
        seed: What is drawn follows from it.
    """
    chance = stream(seed, "cases of a waveform")
    change = np.zeros((count, len(ats) + 1))
    rows = np.arange(count)
    for job in jobs:
        before = np.full(count, job.begin)
        for period in job.periods:
            lasts = period.expected * np.exp(period.spread * chance.standard_normal(count))
            after = before + lasts
            # a period has its devices from its beginning on, and no longer at its end; each row is there once
            change[rows, np.searchsorted(ats, before)] += period.devices
            change[rows, np.searchsorted(ats, after)] -= period.devices
            before = after
    return np.cumsum(change[:, :-1], axis=1)


def prices_at(begins: Sequence[float], prices: Sequence[float], seconds: Floats) -> Floats:
    """Price of an hour at seconds since a midnight, each price holding until the next begins."""
    place = np.searchsorted(np.array(begins), seconds % 86_400.0, side="right") - 1
    prices_there: Floats = np.array(prices)[place]
    return prices_there


@dataclass(frozen=True, slots=True)
class Load:
    """Work that may be moved; see ``MovableLoad`` of the model."""

    devices: int
    slots: int
    earliest: int
    latest: int
    planned: int
    interruptible: bool

    @property
    def as_planned(self) -> range:
        """Steps in which it runs if nobody moves it."""
        return range(self.planned, self.planned + self.slots)


def level(base: Sequence[float], loads: Sequence[Load], where: Sequence[Sequence[int]]) -> Floats:
    """Devices in each step, with each load in its steps."""
    total = np.array(base, dtype=np.float64)
    for load, steps in zip(loads, where, strict=True):
        total[list(steps)] += load.devices
    return total


def greedy(base: Sequence[float], loads: Sequence[Load]) -> list[list[int]]:
    """Steps of each load: the largest first, each where it makes the least peak, the earliest of these.

    List scheduling, as in R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM Journal on Applied
    Mathematics 17 (1969) 416-429, with loads by falling work.
    """
    total = np.array(base, dtype=np.float64)
    where: list[list[int]] = [[] for _ in loads]
    for place in sorted(range(len(loads)), key=lambda index: -loads[index].devices * loads[index].slots):
        load = loads[place]
        steps = _lowest(total, load) if load.interruptible else _best_run(total, load)
        total[steps] += load.devices
        where[place] = steps
    return where


def least_peak(base: Sequence[float], loads: Sequence[Load]) -> float:
    """A peak that no plan is below: that of the linear programme in which any part of a load may run in any step.

    Raises:
        ArithmeticError: The programme cannot be solved, which a load in its window rules out.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    columns = [(place, step) for place, load in enumerate(loads) for step in range(load.earliest, load.latest + 1)]
    steps, count = len(base), len(columns)
    numbers = np.arange(count)
    rows = np.concatenate((np.array([step for _, step in columns]), np.arange(steps)))
    devices = np.array([float(loads[place].devices) for place, _ in columns])
    upper = coo_array(
        (np.concatenate((devices, -np.ones(steps))), (rows, np.concatenate((numbers, np.full(steps, count))))),
        shape=(steps, count + 1),
    )
    whole = coo_array(
        (np.ones(count), (np.array([place for place, _ in columns]), numbers)), shape=(len(loads), count + 1)
    )
    solution = linprog(
        np.concatenate((np.zeros(count), [1.0])),
        A_ub=upper,
        b_ub=-np.array(base, dtype=np.float64),
        A_eq=whole,
        b_eq=np.array([float(load.slots) for load in loads]),
        bounds=[(0.0, 1.0)] * count + [(0.0, None)],
        method="highs",
    )
    if not solution.success:
        raise ArithmeticError(f"no least peak was found: {solution.message}")
    return float(solution.fun)


def _lowest(total: Floats, load: Load) -> list[int]:
    window = range(load.earliest, load.latest + 1)
    return sorted(sorted(window, key=lambda step: (total[step], step))[: load.slots])


def _best_run(total: Floats, load: Load) -> list[int]:
    begins = range(load.earliest, load.latest - load.slots + 2)
    best = min(begins, key=lambda begin: (total[begin : begin + load.slots].max(), begin))
    return list(range(best, best + load.slots))
