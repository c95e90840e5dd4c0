"""Parts, tables and pictures that stand beside the times of incidents."""

from collections.abc import Iterator, Sequence
from math import isfinite
from statistics import fmean

from kuayu_conformance.checks.res_failover_scores import MEASURES, NEVER, incidents, score
from kuayu_conformance.checks.res_failover_windows import SERVICE, Played
from kuayu_conformance.checks.sch_tables import NONE, lines, percent, table
from kuayu_conformance.findings import PartFigure
from kuayu_conformance.statistics import quantile
from kuayu_conformance.testbed.recovery.faults import KINDS
from kuayu_conformance.testbed.recovery.opponents import COLD, FIXED
from kuayu_conformance.testbed.recovery.recovering import GO_ON, REPLACE, RESTORE, WAIT
from kuayu_conformance.testbed.recovery.state import Incident
from kuayu_schemas import registers
from kuayu_schemas.models import ReportPlot, ReportTable

_PLANNERS = (SERVICE, FIXED, COLD)
_POINTS = 100
_HOUR = 3600.0


def parts(windows: Sequence[Played], measure: str) -> list[PartFigure]:
    """The measure by kind of fault, and under the yardsticks where they played."""
    made = []
    for kind, its in _kinds(incidents(windows, SERVICE)):
        found = score(its, measure)
        made.append(PartFigure(kind, found.estimate, found.bound if isfinite(found.bound) else None, found.n))
    for planner in _PLANNERS[1:]:
        its = incidents(windows, planner)
        if its:
            found = score(its, measure)
            made.append(PartFigure(planner, found.estimate, found.bound if isfinite(found.bound) else None, found.n))
    return made


def exhibits(windows: Sequence[Played], measure: str, requirement: str) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Everything that is printed of a measure and not judged; who is within the threshold is counted."""
    its = next(each for each in registers.requirements().requirements if each.id == requirement)
    limit = its.threshold.value if its.threshold is not None else NEVER
    return [_by_kind(windows, measure, limit), _beside(windows, measure, limit)], [_distribution(windows, measure)]


def predictions(windows: Sequence[Played]) -> ReportTable:
    """When plans expected a new step, and when there was one."""
    told = [each for window in windows for each in window.outcomes[SERVICE].predictions]
    rows = []
    for strategy in (GO_ON, REPLACE, RESTORE, WAIT):
        its = [each for each in told if each.strategy == strategy]
        if its:
            off = [abs(min(each.expected_s, NEVER) - each.happened_s) for each in its]
            shown = [
                quantile([min(each.expected_s, NEVER) for each in its], 0.5),
                quantile([each.happened_s for each in its], 0.5),
                quantile(off, 0.5),
                quantile(off, 0.95),
            ]
            rows.append([strategy, str(len(its)), *map(_seconds, shown)])
    columns = "strategy|plans|expected, median, s|happened, median, s|apart, median, s|apart, 95th percentile, s"
    return table("When a new step was expected, and when there was one", columns, rows)


def _kinds(its: Sequence[Incident]) -> Iterator[tuple[str, list[Incident]]]:
    for kind in KINDS:
        found = [each for each in its if each.kind == kind]
        if found:
            yield kind, found


def _by_kind(windows: Sequence[Played], measure: str, limit: float) -> ReportTable:
    together = incidents(windows, SERVICE)
    rows = [
        [kind, *_times(its, measure, limit), _mean(its, "lost_s"), _mean(its, "least_s"), _ways(its)]
        for kind, its in [*_kinds(together), ("all", together)]
    ]
    columns = f"fault|incidents|median, s|95th percentile, s|within {limit:.0f} s|work done again, mean, s"
    columns += "|state over bandwidth, mean, s|ways"
    return table(f"{MEASURES[measure].capitalize()}, by kind of fault", columns, rows)


def _beside(windows: Sequence[Played], measure: str, limit: float) -> ReportTable:
    rows = []
    for planner in _PLANNERS:
        its, ends = (
            incidents(windows, planner),
            [each.outcomes[planner] for each in windows if planner in each.outcomes],
        )
        if its:
            hours = fmean(each.hours for each in ends)
            rows.append(
                [
                    planner,
                    *_times(its, measure, limit),
                    _mean(its, "lost_s"),
                    f"{fmean(sum(each.held.spares) for each in ends):.1f}",
                    f"{fmean(each.price for each in ends) / hours:.0f}",
                    percent(fmean(each.paused for each in ends)),
                    f"{fmean(each.copies for each in ends) / hours:.0f}",
                ]
            )
    columns = f"planner|incidents|median, s|95th percentile, s|within {limit:.0f} s|work done again, mean, s"
    columns += "|spares|their price, money/h|time that checkpoints take|copies an hour"
    return table(f"{MEASURES[measure].capitalize()}, beside others on the same faults", columns, rows)


def _times(its: Sequence[Incident], measure: str, limit: float) -> list[str]:
    found = score(its, measure)
    within = sum(getattr(each, measure) <= limit for each in its) / len(its)
    return [str(found.n), _seconds(found.median), _seconds(found.estimate), percent(within)]


def _mean(its: Sequence[Incident], what: str) -> str:
    return f"{fmean(getattr(each, what) for each in its):.1f}"


def _ways(its: Sequence[Incident]) -> str:
    """How many incidents had which way as their last."""
    last = [each.ways[-1] for each in its if each.ways]
    return ", ".join(f"{way} {last.count(way)}" for way in (GO_ON, REPLACE, RESTORE) if way in last) or NONE


def _seconds(value: float) -> str:
    return "never" if value >= NEVER else f"{value:.1f}"


def _distribution(windows: Sequence[Played], measure: str) -> ReportPlot:
    """Share of incidents that are over after so many seconds, a line for each planner."""
    points = {}
    for planner in _PLANNERS:
        seconds = [min(NEVER, float(getattr(each, measure))) for each in incidents(windows, planner)]
        if seconds:
            shares = [number / _POINTS for number in range(1, _POINTS + 1)]
            held = [(quantile(seconds, share), 100.0 * share) for share in shares]
            points[planner] = [(0.0, 0.0), *((each, share) for each, share in held if each <= _HOUR)]
    title = f"{MEASURES[measure].capitalize()}, share of incidents that are over after it"
    return lines(title, "seconds", "% of incidents", points)
