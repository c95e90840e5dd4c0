"""Quantiles of forecasts, and what is reserved for tenants by what they were promised (FCT-004).

A level is kept where a value is not exceeded in that share of cases. Devices are whole: where what comes is the value
itself, the case counts in part, as in C. Czado, T. Gneiting and L. Held, "Predictive model assessment for count data",
Biometrics 65 (2009) 1254-1261.

1. Reservations asked for at instants of worlds, and what the tenants came to need.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.check import Check
from kuayu_conformance.checks.forecast.forecast_requests import RESERVATIONS
from kuayu_conformance.checks.forecast.origins import (
    CONFIDENCE,
    LEVELS,
    OriginForecasts,
    Row,
    Size,
    drawn_blocks,
    gathered,
    ratio,
    ratio_bounds,
    upper_of,
    worlds,
)
from kuayu_conformance.checks.forecast.origins import observe as observe_worlds
from kuayu_conformance.checks.kit.decisions import is_answer
from kuayu_conformance.checks.kit.tables import lines, percent, table
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Figure, Finding, PartFigure, holds
from kuayu_conformance.testbed.demand.codec import Subject, past, reservation_request, values
from kuayu_conformance.testbed.demand.world import STEP, World
from kuayu_schemas.models import ReportPlot, ReportTable

HORIZON = 3_600.0
PROMISES = (0.05, 0.1, 0.2)
"""Shares of cases in which tenants may come to need more; each tenant of a world has one."""


@dataclass(frozen=True, slots=True)
class ReservedRow:
    """A reservation and what came.

    Attributes:
        world: Number of the world.
        day: Day of the world.
        promised: Share of cases in which more may be needed.
        reserved: Devices.
        needed: Most that were demanded at once until the horizon.
        seen: Most that were demanded in the series of the request.
        last: What was demanded when it was asked.
    """

    world: int
    day: int
    promised: float
    reserved: float
    needed: float
    seen: float
    last: float

    @property
    def block(self) -> tuple[int, int]:
        """What is drawn as one: a day of a world."""
        return self.world, self.day


def observe_reserved(episode: Episode, size: Size) -> tuple[tuple[ReservedRow, ...], int]:
    """Reservations for all tenants of worlds, and how many questions were not answered."""
    rows: list[ReservedRow] = []
    unanswered = 0
    for number, row, names, steps in worlds(episode, size):
        about = [Subject(domain, tenant) for domain, of in enumerate(row.domains) for tenant in range(len(of.tenants))]
        promises = _draw_promises(episode.random, len(about))
        for step in steps:
            request = reservation_request(row, names, step, about, HORIZON, promises)
            answer = episode.ask_patiently("POST", RESERVATIONS, request)
            reservations = answer.json["reservations"] if is_answer(RESERVATIONS, answer) else []
            if [entry["series"] for entry in reservations] != [series["id"] for series in request["series"]]:
                unanswered += 1
                continue
            devices = [float(item["devices"]) for item in reservations]
            rows += _rows(row, number, step, list(zip(about, promises, devices, strict=True)))
    return tuple(rows), unanswered


def _draw_promises(chance: Random, count: int) -> list[float]:
    return [chance.choice(PROMISES) for _ in range(count)]


def _rows(
    world: World, number: int, step: int, reservations: Sequence[tuple[Subject, float, float]]
) -> Iterator[ReservedRow]:
    ahead = int(HORIZON / STEP)
    for subject, promised, devices in reservations:
        series = values(world, subject)
        needed = series[step + 1 : step + ahead + 1].max()
        seen = series[max(0, step - past(subject)) : step + 1].max()
        day = int(step * STEP // 86_400.0)
        yield ReservedRow(number, day, promised, devices, float(needed), float(seen), float(series[step]))


def reserved_table(rows: Sequence[ReservedRow]) -> ReportTable:
    """Violations and devices by promise, beside two rules that anybody can follow."""
    cells = []
    for promised in sorted({row.promised for row in rows}):
        selected = [row for row in rows if row.promised == promised]
        for label in ("service", "the most that was seen", "last value"):
            of = [_by(label, row) for row in selected]
            totals = gathered((row.block, float(row.needed > had), 1.0) for row, had in zip(selected, of, strict=True))
            share = sum(row.needed > had for row, had in zip(selected, of, strict=True)) / len(selected)
            low, high = ratio_bounds(totals, f"{label} {promised}")
            needed = sum(row.needed for row in selected) or 1.0
            shown = [percent(share), f"{percent(low)} to {percent(high)}", f"{sum(of) / needed:.3f}"]
            cells.append([percent(promised), label, str(len(selected)), *shown])
    title = "Reservations for an hour: cases in which more is needed, and devices reserved over the most needed"
    return table(title, "promised|rule|cases|more is needed|5-95 %|reserved over needed", cells)


def _by(label: str, row: ReservedRow) -> float:
    return {"service": row.reserved, "the most that was seen": row.seen, "last value": row.last}[label]


REQUIREMENT = "FCT-004"
_CRUMB = 1e-9
QUICK, FULL = Size(worlds=2, days=5, origins=20), Size(worlds=8, days=7, origins=50)
QUICK_RESERVED, FULL_RESERVED = Size(worlds=2, days=5, origins=10), Size(worlds=6, days=7, origins=35)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class QuantileForecasts:
    """Forecasts, and reservations; ``unanswered`` of these were not answered as the standard says."""

    forecasts: OriginForecasts
    reserved: tuple[ReservedRow, ...]
    unanswered: int = 0


def observe(episode: Episode) -> QuantileForecasts:
    """Ask for forecasts, then in other worlds for reservations."""
    full = episode.settings.full
    forecasts = observe_worlds(episode, FULL if full else QUICK)
    reserved, unanswered = observe_reserved(episode, FULL_RESERVED if full else QUICK_RESERVED)
    return QuantileForecasts(forecasts, reserved, unanswered)


def judge(seen: QuantileForecasts) -> Iterable[Finding]:
    """Coverage, then reservations."""
    missing = len(seen.forecasts.refused)
    expected = "every question is answered by forecasts of all series, horizons and levels, in order"
    observed = f"{missing} of {seen.forecasts.requests} are not"
    yield holds(REQUIREMENT, not missing, expected, observed, *seen.forecasts.refused[:1])
    expected = "every question is answered by a reservation for every tenant, in order"
    yield holds(REQUIREMENT, not seen.unanswered, expected, f"{seen.unanswered} are not")
    if seen.reserved:
        yield from _promises(seen.reserved)
    rows = [row for row in seen.forecasts.rows if row.part in {"domain", "tenant"}]
    if rows:
        yield _figure(rows, seen)


def _promises(rows: Sequence[ReservedRow]) -> Iterator[Finding]:
    """What was promised is kept, with less than would be by reserving the most that was seen."""
    promises = sorted({row.promised for row in rows})
    level = 1.0 - (1.0 - CONFIDENCE) / len(promises)
    for promised in promises:
        selected = [row for row in rows if row.promised == promised]
        totals = gathered((row.block, float(row.needed > row.reserved), 1.0) for row in selected)
        low, _ = ratio_bounds(totals, f"{REQUIREMENT} violations {promised}", level)
        expected = (
            f"tenants need more than is reserved for them in no more than {percent(promised)} of cases, as promised"
        )
        observed = f"in {percent(ratio(totals))}, in {percent(low)} at least"
        yield holds(REQUIREMENT, low <= promised + _CRUMB, expected, observed)
    ours, most = (sum(entry) for entry in zip(*((row.reserved, row.seen) for row in rows), strict=True))
    expected = "less is reserved than the most that was seen of each tenant"
    yield holds(REQUIREMENT, ours < most, expected, f"{ours:.0f} devices against {most:.0f}")


def _figure(rows: Sequence[Row], seen: QuantileForecasts) -> Figure:
    groups = {
        f"{label}, {part}": [row for row in rows if (row.domain, row.part) == (label, part)]
        for label, part in dict.fromkeys((row.domain, row.part) for row in rows)
    }
    parts = [
        PartFigure(label, deviation(entry), _deviation_bound(entry, f"{REQUIREMENT} {label}"), len(entry))
        for label, entry in groups.items()
    ]
    tables = [_coverage(groups), _scores(groups, rows)]
    if seen.reserved:
        tables.append(reserved_table(seen.reserved))
    return Figure(
        REQUIREMENT,
        max(part.estimate for part in parts),
        max(part.bound for part in parts if part.bound is not None),
        len(rows),
        "mean over levels of how far the share of cases that do not exceed a quantile is from its level; the worst of "
        "domains and of their tenants, both horizons together; bound: the greatest of their one-sided 95 % bounds, by "
        "bootstrap over days of worlds",
        parts=parts,
        tables=tables,
        plots=[_drawn(groups)],
    )


def deviation(rows: Sequence[Row]) -> float:
    """Mean over levels of how far a level is from being kept."""
    below, upto = _bounds_of_cover(rows)
    return float(_away(below.mean(axis=0), upto.mean(axis=0)))


def _bounds_of_cover(rows: Sequence[Row]) -> tuple[Floats, Floats]:
    """By row and level, the least and the most that a case counts as one that does not exceed the quantile.

    It is one or zero but where what came is the quantile, in whole devices. Then the forecast lays some probability
    on that number, and the case is worth the part of it that lies below the level; its ends are between two levels
    each, which leaves a least and a most.
    """
    truth = np.array([row.truth for row in rows])[:, None]
    # what lies half a device beside a whole number means it
    quantiles = np.rint(np.minimum(np.array([row.quantiles for row in rows]), 1e15))
    levels, edges = np.array(LEVELS), np.array([0.0, *LEVELS, 1.0])
    first, beyond = ((quantiles < truth).sum(axis=1), (quantiles <= truth).sum(axis=1))
    begin_least, begin_most = edges[first][:, None], edges[np.minimum(first + 1, len(LEVELS))][:, None]
    end_least, end_most = edges[beyond][:, None], edges[beyond + 1][:, None]
    on_it = quantiles == truth
    least = np.where(on_it, _part(levels, begin_most, end_most), quantiles > truth)
    most = np.where(on_it, _part(levels, begin_least, end_least), quantiles > truth)
    return least, most


def _part(levels: Floats, begin: Floats, end: Floats) -> Floats:
    """Part of the stretch between two levels that lies below each level; all of it where it has no length."""
    length = end - begin
    part: Floats = np.clip((levels - begin) / np.where(length > 0.0, length, 1.0), 0.0, 1.0)
    return np.where(length > 0.0, part, 1.0)


def _away(below: Floats, upto: Floats) -> Floats:
    """How far levels are from lying between both shares, as a mean over the last axis."""
    levels = np.array(LEVELS)
    away: Floats = np.maximum(0.0, np.maximum(levels - upto, below - levels)).mean(axis=-1)
    return away


def _deviation_bound(rows: Sequence[Row], seed: str) -> float:
    """One-sided upper bound of the deviation; no less than the deviation itself."""
    blocks = sorted({row.block for row in rows})
    place = {block: number for number, block in enumerate(blocks)}
    below, upto = _bounds_of_cover(rows)
    sums = np.zeros((len(blocks), 2 * len(LEVELS) + 1))
    for row, less, no_more in zip(rows, below, upto, strict=True):
        sums[place[row.block]] += np.concatenate((less, no_more, [1.0]))
    drawn = sums[drawn_blocks(len(blocks), seed)].sum(axis=1)
    shares = drawn[:, :-1] / drawn[:, -1:]
    deviations = _away(shares[:, : len(LEVELS)], shares[:, len(LEVELS) :])
    return max(deviation(rows), upper_of(deviations.tolist()))


def pinball(rows: Sequence[Row], quantiles: Sequence[Sequence[float]]) -> float:
    """Sum over levels of the pinball loss, mean over cases: twice that is the interval score of all intervals.

    T. Gneiting and A. E. Raftery, Journal of the American Statistical Association 102 (2007) 359-378, section 6.
    """
    truth = np.array([row.truth for row in rows])[:, None]
    away = truth - np.array(quantiles)
    levels = np.array(LEVELS)
    return float(np.maximum(levels * away, (levels - 1.0) * away).sum(axis=1).mean())


def _coverage(groups: dict[str, list[Row]]) -> ReportTable:
    cells = []
    for label, item in groups.items():
        below, upto = (entry.mean(axis=0) for entry in _bounds_of_cover(item))
        shown = (f"{100 * less:.0f}-{100 * more:.0f}" for less, more in zip(below, upto, strict=True))
        cells.append([label, str(len(item)), percent(deviation(item)), *shown])
    columns = "|".join(f"{100 * level:g} %" for level in LEVELS)
    title = "Share of cases that do not exceed a quantile, in per cent: the least and the most, where it is met"
    return table(title, f"series of|cases|away|{columns}", cells)


def _scores(groups: dict[str, list[Row]], rows: Sequence[Row]) -> ReportTable:
    cells = []
    horizons = dict.fromkeys(row.horizon for row in rows)
    for label, all_of in groups.items():
        for horizon in horizons:
            selected = [row for row in all_of if row.horizon == horizon]
            ours = pinball(selected, [row.quantiles for row in selected])
            simple = pinball(selected, [row.empirical for row in selected])
            less = percent(1.0 - ours / simple if simple else None)
            cells.append([label, f"{horizon / 60:g}", str(len(selected)), f"{ours:.2f}", f"{simple:.2f}", less])
    title = "Pinball loss over all levels, in devices, beside the last value with the errors that it made within a day"
    return table(title, "series of|minutes|cases|service|last value with errors|less", cells)


def _drawn(groups: dict[str, list[Row]]) -> ReportPlot:
    points = {
        label: [
            (level, float(share)) for level, share in zip(LEVELS, _bounds_of_cover(entry)[1].mean(axis=0), strict=True)
        ]
        for label, entry in groups.items()
    }
    level = {"as stated": [(level, level) for level in LEVELS]}
    return lines("Share of cases that do not exceed a quantile", "level", "share", level | points)


CHECK = Check("fct_quantiles", (REQUIREMENT,), observe, judge, heavy=True)
