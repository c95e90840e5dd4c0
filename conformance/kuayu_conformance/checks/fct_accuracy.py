"""Accuracy of forecasts ten minutes and an hour ahead (FCT-001, FCT-002).

Large trainings come and go in five domains beside small jobs and services. The service sees what is known, at instants
in the order of time; accuracy is one less the sum of absolute errors over the sum of what came, of each domain, and the
worst domain counts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kuayu_conformance.check import Check
from kuayu_conformance.checks.fct_bounds import CONFIDENCE, gathered, ratio, ratio_bounds
from kuayu_conformance.checks.fct_origins import HORIZONS, Observation, Row, Size
from kuayu_conformance.checks.fct_origins import observe as observe_worlds
from kuayu_conformance.checks.fct_real import RealRow, observe_real
from kuayu_conformance.checks.fct_report import exhibits, real_table
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Figure, Finding, PartFigure, holds
from kuayu_conformance.testbed.demand.real import FILES

REQUIREMENTS = dict(zip(HORIZONS, ("FCT-001", "FCT-002"), strict=True))
QUICK, FULL = Size(worlds=3, days=5, origins=20), Size(worlds=8, days=7, origins=50)


@dataclass(frozen=True)
class Seen:
    """What was said of worlds and of real series, and what was not answered."""

    made: Observation
    real: tuple[RealRow, ...] = ()


def observe(episode: Episode) -> Seen:
    """Ask in worlds, and in a full run of real series as far as they are at hand."""
    made = observe_worlds(episode, FULL if episode.settings.full else QUICK)
    return Seen(made, observe_real(episode) if made.rows else ())


def judge(seen: Seen) -> Iterable[Finding]:
    """The worst domain by horizon."""
    made = seen.made
    for horizon, requirement in REQUIREMENTS.items():
        missing = len(made.refused)
        expected = "every question is answered by forecasts of all series, horizons and levels, in order"
        yield holds(requirement, not missing, expected, f"{missing} of {made.asked} are not", *made.refused[:1])
        rows = [row for row in made.rows if row.horizon == horizon]
        if rows:
            yield _figure(requirement, rows, seen)


def _figure(requirement: str, rows: Sequence[Row], seen: Seen) -> Figure:
    domains = [row for row in rows if row.part == "domain"]
    labels = list(dict.fromkeys(row.domain for row in domains))
    parts, ceilings = [], []
    for label in labels:
        totals = error_totals([row for row in domains if row.domain == label])
        low, _ = ratio_bounds(totals, f"{requirement} {label}", 1.0 - (1.0 - CONFIDENCE) / len(labels))
        _, high = ratio_bounds(totals, f"{requirement} {label}")
        n = sum(row.domain == label for row in domains)
        parts.append(PartFigure(label, 1.0 - ratio(totals), 1.0 - high, n))
        ceilings.append(1.0 - low)
    tables, plots = exhibits(rows, requirement)
    real = [row for row in seen.real if row.horizon == rows[0].horizon]
    return Figure(
        requirement,
        min(part.estimate for part in parts),
        min(part.bound for part in parts if part.bound is not None),
        len(domains),
        "1 - sum of absolute errors over sum of devices demanded, in the order of time; the worst domain; bound: the "
        "least of the domains' one-sided 95 % bounds, by bootstrap over days of worlds",
        parts=parts,
        tables=[*tables, *([real_table(real)] if real else [])],
        plots=plots,
        ceiling=min(ceilings),
    )


def error_totals(rows: Iterable[Row]) -> tuple[list[float], list[float]]:
    """Absolute errors and devices by block."""
    return gathered((row.block, abs(row.expected - row.truth), row.truth) for row in rows)


CHECK = Check("fct_accuracy", tuple(REQUIREMENTS.values()), observe, judge, traces=tuple(FILES), heavy=True)
