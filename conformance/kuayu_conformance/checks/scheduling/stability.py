"""Jobs under a load that varies by ±20 %: how much of their time passes without a forced interruption (SCH-008)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.scheduling.cells import AGAINST, SERVICE, Plan, plan
from kuayu_conformance.checks.scheduling.scores import Player, Score, Window
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import LEVEL, ratio_lower_bound
from kuayu_schemas.models import ReportTable, TableRow

STABLE = "SCH-008"

MOST_MIGRATIONS = 0.1
"""Moves and resizes for each hour of a job."""

MOST_QUEUED = 0.5
"""Days of the domains' capacity by which waiting work may grow in a window, on average, or as much as under B1."""

MIN_BOUND_WINDOWS = 5
"""Windows from which on a bootstrap bound is worth its name: of two the least is as good as any."""


@dataclass(frozen=True)
class StabilityWindows:
    """What was played.

    Attributes:
        windows: Windows by how the load varied; none where the service gave no answers.
        bad: What it said then.
    """

    windows: dict[str, tuple[Window, ...]]
    bad: Answer | None


def observe(episode: Episode) -> StabilityWindows:
    """Play some windows with each form of load."""
    load_plan: Plan = plan(full=episode.settings.full)
    player = Player(episode)
    windows: dict[str, tuple[Window, ...]] = {}
    for swing in load_plan.swings:
        rows = []
        for number in range(load_plan.swing_windows):
            rows.append(player.window(load_plan.swinging(swing), load_plan.swing_timing, number, (AGAINST,)))
            if player.asking.hopeless:
                return StabilityWindows({}, player.asking.bad)
            episode.passed(
                len(windows) * load_plan.swing_windows + len(rows), len(load_plan.swings) * load_plan.swing_windows
            )
        windows[swing] = tuple(rows)
    return StabilityWindows(windows, player.asking.bad)


def judge(o: StabilityWindows) -> Iterator[Finding]:
    """The worst form of load."""
    answered = bool(o.windows)
    expected = "questions where jobs are to run are answered by a placement report"
    yield holds(STABLE, answered, expected, "they were" if answered else "none was", None if answered else o.bad)
    if not answered:
        return
    parts, ceilings = [], []
    for swing, entry in o.windows.items():
        scores = [window.scores[SERVICE] for window in entry]
        moved = sum(score.migrations for score in scores) / (fsum(score.job_hours for score in scores) or 1.0)
        expected = f"{swing}: no more than {MOST_MIGRATIONS:g} migrations for each hour of a job"
        yield holds(STABLE, moved <= MOST_MIGRATIONS, expected, f"{moved:.3g}")
        grown, of_b1 = (_queued([window.scores[name] for window in entry]) for name in (SERVICE, AGAINST))
        expected = f"{swing}: the queue grows by no more than {MOST_QUEUED:g} days of the capacity, or than under B1"
        yield holds(STABLE, grown <= max(MOST_QUEUED, of_b1), expected, f"{grown:.3g} days, {of_b1:.3g} under B1")
        parts.append(PartFigure(swing, _share(scores), _bound(swing, scores), len(scores)))
        ceilings.append(_ceiling(swing, scores, LEVEL / len(o.windows)))
    worst = min(parts, key=lambda part: part.estimate)
    bounds = [part.bound for part in parts if part.bound is not None]
    yield Figure(
        STABLE,
        worst.estimate,
        min(bounds) if len(bounds) == len(parts) else 0.0,
        sum(part.n for part in parts),
        "seconds from first step to end in which jobs of the cohort ran ÷ all of them; the worst form of load; "
        f"bound: the least of the forms' one-sided 95 % bootstrap bounds over windows, nought for fewer than "
        f"{MIN_BOUND_WINDOWS} windows of a form",
        parts=parts,
        tables=[_table(o.windows)],
        ceiling=min(ceilings),
    )


def _share(scores: Sequence[Score]) -> float:
    devices_held = fsum(score.lived_seconds for score in scores)
    return 1.0 - fsum(score.interrupted for score in scores) / devices_held if devices_held else 0.0


def _bound(swing: str, scores: Sequence[Score]) -> float | None:
    pairs = [
        (score.lived_seconds - score.interrupted, score.lived_seconds) for score in scores if score.lived_seconds > 0.0
    ]
    return (
        min(_share(scores), ratio_lower_bound(pairs, f"{STABLE} {swing}")) if len(pairs) >= MIN_BOUND_WINDOWS else None
    )


def _ceiling(swing: str, scores: Sequence[Score], level: float) -> float:
    """The other bound: of some windows in which jobs were interrupted, luck may have chosen the worst."""
    pairs = [(score.interrupted, score.lived_seconds) for score in scores if score.lived_seconds > 0.0]
    if 0 < len(pairs) < MIN_BOUND_WINDOWS:
        return 1.0
    if not pairs:
        return 0.0
    return max(_share(scores), 1.0 - ratio_lower_bound(pairs, f"{STABLE} {swing}, ceiling", 1.0 - level))


def _queued(scores: Sequence[Score]) -> float:
    return fsum(score.queued for score in scores) / len(scores)


def _table(windows: dict[str, tuple[Window, ...]]) -> ReportTable:
    columns = ["load", "policy", "windows", "uninterrupted", "stops", "migrations", "job hours", "queue grew, days"]
    rows = []
    for swing, entry in windows.items():
        for name in entry[0].scores:
            scores = [window.scores[name] for window in entry]
            figures = [sum(s.forced_stops for s in scores), sum(s.migrations for s in scores)]
            hours = f"{fsum(s.job_hours for s in scores):.0f}"
            share = f"{100 * _share(scores):.3f} %"
            cells = [swing, name, str(len(scores)), share, *map(str, figures), hours, f"{_queued(scores):.3f}"]
            rows.append(TableRow(cells=cells))
    return ReportTable(title="Load that varies by ±20 %", columns=columns, rows=rows)


CHECK = Check("sch_stability", (STABLE,), observe, judge, heavy=True)
