"""Parts, tables and pictures that stand beside what adjusting costs."""

from collections.abc import Iterator, Sequence
from math import inf
from statistics import fmean

from kuayu_conformance.checks.res_adjusting_scores import (
    LOSS,
    MEASURES,
    MOST,
    NEVER,
    RECOVERY,
    Counted,
    calm,
    disturbances,
    named,
    percentile,
)
from kuayu_conformance.checks.res_adjusting_windows import SERVICE, Played
from kuayu_conformance.checks.sch_tables import NONE, lines, percent, table
from kuayu_conformance.findings import PartFigure
from kuayu_conformance.testbed.adjustment.disturbing import KINDS
from kuayu_conformance.testbed.adjustment.opponents import ADJUSTERS
from kuayu_conformance.testbed.adjustment.scores import Disturbance
from kuayu_schemas import registers
from kuayu_schemas.models import ReportPlot, ReportTable

_TOGETHER = "all"
_BEST = "always the best, for nothing"


def parts(windows: Sequence[Played], measure: str) -> list[PartFigure]:
    """The measure by kind of disturbance, and under the yardsticks."""
    its = [*_kinds(disturbances(windows, SERVICE)), *((name, disturbances(windows, name)) for name in ADJUSTERS)]
    made = []
    for label, found in its:
        told = percentile(found, measure)
        bound = told.bound if told.bound < MOST[measure] else None
        made.append(PartFigure(label, told.estimate, bound, told.n))
    return made


def exhibits(windows: Sequence[Played], measure: str, requirement: str) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Everything that is printed of a measure and not judged; who is within the threshold is counted."""
    limit = limit_of(requirement)
    shown = max((window.film for window in windows), key=lambda film: film.changes)
    told = f"{shown.changes} changes under the service"
    if measure == LOSS:
        points = {**shown.loads, "greatest latency of a link, ms": shown.slowest}
        plot = lines(f"What happened to the job of a window that changed most: {told}", "seconds", "% and ms", points)
    else:
        points = dict(shown.speeds)
        title = f"Steps of that job over ten seconds, of those of the best policy: {told}"
        plot = lines(title, "seconds", "% of the best", points)
    return [_by_kind(windows, measure, limit), _beside(windows, measure, limit)], [plot]


def limit_of(requirement: str) -> float:
    """The threshold of a requirement that has one; infinite where it has none."""
    its = next(each for each in registers.requirements().requirements if each.id == requirement)
    return inf if its.threshold is None else its.threshold.value


def triggers(windows: Sequence[Played]) -> ReportTable:
    """What was named of changes, and done in calm (RES-007)."""
    rows = []
    for kind in KINDS:
        found = named(windows, kind)
        after = NONE if found.after_s is None else f"{found.after_s:.1f}"
        rows.append([kind, str(found.n), *_counted(found.missed), after])
    rows.append(["calm minutes, acted in", NONE, *_counted(calm(windows)), NONE])
    columns = "what|disturbances|counted as a change, or calm|missed, or false|share, 95 % bound|named after, median, s"
    return table("Changes that were named, and calm in which something was done", columns, rows)


def _counted(its: Counted) -> list[str]:
    return [str(its.of), str(its.times), percent(its.bound)]


def _kinds(its: Sequence[Disturbance]) -> Iterator[tuple[str, list[Disturbance]]]:
    for kind in KINDS:
        found = [each for each in its if each.event.kind == kind]
        if found:
            yield kind, found


def _by_kind(windows: Sequence[Played], measure: str, limit: float) -> ReportTable:
    together = disturbances(windows, SERVICE)
    rows = [[kind, *_told(its, measure, limit)] for kind, its in [*_kinds(together), (_TOGETHER, together)]]
    return table(_title(measure, "by kind of disturbance"), f"disturbance|{_columns(measure, limit)}", rows)


def _beside(windows: Sequence[Played], measure: str, limit: float) -> ReportTable:
    rows = []
    for adjuster in (SERVICE, *ADJUSTERS):
        share = fmean(window.scores[adjuster].share for window in windows)
        rows.append([adjuster, *_told(disturbances(windows, adjuster), measure, limit), percent(share)])
    rows.append([_BEST, *[NONE] * 6, percent(1.0)])
    columns = f"adjuster|{_columns(measure, limit)}|steps, of those of the best"
    return table(_title(measure, "beside others in the same windows"), columns, rows)


def _title(measure: str, how: str) -> str:
    return f"{MEASURES[measure].capitalize()}, {how}"


def _columns(measure: str, limit: float) -> str:
    within = percent(limit) if measure == LOSS else f"{limit:.0f} s"
    return f"disturbances|with changes|never recovered|median|95th percentile|within {within}"


def _told(its: Sequence[Disturbance], measure: str, limit: float) -> list[str]:
    found = percentile(its, measure)
    within = sum(getattr(each, measure) <= limit for each in its) / len(its)
    adjusted = sum(each.changes > 0 for each in its)
    shown = [shown_as(each, measure) for each in (found.median, found.estimate)]
    return [str(found.n), str(adjusted), str(found.never), *shown, percent(within)]


def shown_as(value: float, measure: str) -> str:
    """A measure in words."""
    if measure == RECOVERY:
        return "never" if value >= NEVER else f"{value:.1f} s"
    return percent(value)
