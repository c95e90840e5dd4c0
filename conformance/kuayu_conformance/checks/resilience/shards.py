"""Waiting for data, and blocked transfers, against fixed shards on demand: RES-005 and RES-006.

The service plans the shards of windows in which two jobs train on data from afar
(:mod:`kuayu_conformance.testbed.transfers`), asked every ten seconds; the suite carries its plans out. Fixed shards
play the same windows. An answer that is no plan leaves the suite with the plan before it.

1. Falls of waiting and of blocked transfers, and the tables and plots that stand beside them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.tables import NONE, table
from kuayu_conformance.checks.resilience.shard_windows import (
    AHEAD,
    DEMAND,
    FULL,
    QUICK,
    SEER,
    SERVICE,
    SMOKE,
    Player,
    ShardWindow,
    every,
)
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import ratio_lower_bound
from kuayu_conformance.testbed.transfers.shard_policies import Schedule, best
from kuayu_conformance.testbed.transfers.shard_simulation import FAMILIES, MILD, Outcome
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable

STATIC, PULLED = "best static schedule with overlap", "best one whose idle links pull"
"""Chosen in hindsight, for each family and measure anew."""

TITLES = {
    "waiting": "Share of time in which compute waits for data",
    "blocked": "Share of transfers that are blocked, by number",
    "blocked_bytes": "Share of transfers that are blocked, by bytes",
}
_LABELS = {"waiting": "", "blocked": ", by number", "blocked_bytes": ", by bytes"}
_SHOWN = (DEMAND, AHEAD, STATIC, PULLED, SEER, SERVICE)


@dataclass(frozen=True)
class Fall:
    """By which part something is less under the service, with both one-sided 95 % bounds."""

    estimate: float
    bound: float
    ceiling: float


def fall(windows: Sequence[ShardWindow], measure: str, seed: str) -> Fall:
    """Fall of a measure against fixed shards on demand, whose share is never zero: every request takes its latency.

    Raises:
        ValueError: There is no window.
    """
    pairs = []
    for window in windows:
        ours, theirs = (float(getattr(window.outcomes[name], measure)) for name in (SERVICE, DEMAND))
        pairs.append((theirs - ours, theirs))
    away = [(-part, whole) for part, whole in pairs]
    return Fall(
        fsum(part for part, _ in pairs) / fsum(whole for _, whole in pairs),
        ratio_lower_bound(pairs, f"{seed}/{measure}"),
        0.0 - ratio_lower_bound(away, f"{seed}/{measure}"),
    )


def parts(windows: Sequence[ShardWindow], measure: str) -> list[PartFigure]:
    """The fall against fixed shards on demand by family, and against the best static schedules where they played."""
    figures = []
    for family, entry in _families(windows):
        measured = fall(entry, measure, family)
        label = f"{family}{_LABELS[measure]}"
        figures.append(PartFigure(f"{label}, against {DEMAND}", measured.estimate, measured.bound, len(entry)))
        shares = _shares(entry, measure)
        figures += [
            PartFigure(
                f"{label}, against the {name}", 1.0 - fsum(shares[SERVICE]) / fsum(shares[name]), None, len(entry)
            )
            for name in (STATIC, PULLED)
            if fsum(shares.get(name, ())) > 0.0
        ]
    return figures


def exhibits(windows: Sequence[ShardWindow], measures: Sequence[str]) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Everything that is printed and not judged."""
    tables = [_table(windows, measure) for measure in measures]
    chosen = [row for measure in measures for row in _chosen(windows, measure)]
    if chosen:
        tables.append(
            table("Best static schedules, chosen in hindsight", "links|least|schedule|idle links pull", chosen)
        )
    return tables, [_drawn(family, entry, measures[0]) for family, entry in _families(windows)]


def _families(windows: Sequence[ShardWindow]) -> Iterator[tuple[str, list[ShardWindow]]]:
    for family in FAMILIES:
        selected = [window for window in windows if window.family == family]
        if selected:
            yield family, selected


def _schedules(windows: Sequence[ShardWindow]) -> Mapping[Schedule, Sequence[Outcome]]:
    return {schedule: [window.schedules[schedule] for window in windows] for schedule in windows[0].schedules}


def _shares(windows: Sequence[ShardWindow], measure: str) -> dict[str, list[float]]:
    """A measure of each policy, window by window."""
    outcomes: dict[str, Sequence[Outcome]] = {
        name: [window.outcomes[name] for window in windows] for name in windows[0].outcomes
    }
    schedules = _schedules(windows)
    if schedules:
        for name, pulling in ((STATIC, False), (PULLED, True)):
            outcomes[name] = schedules[best(schedules, measure, pulling=pulling)]
    return {name: [float(getattr(entry, measure)) for entry in item] for name, item in outcomes.items()}


def _table(windows: Sequence[ShardWindow], measure: str) -> ReportTable:
    rows_by_family = [(family, item, _shares(item, measure)) for family, item in _families(windows)]
    shown = [name for name in _SHOWN if any(name in shares for _, _, shares in rows_by_family)]
    rows = []
    for family, row, shares in rows_by_family:
        means = [f"{100 * fsum(shares[name]) / len(row):.2f} %" if name in shares else NONE for name in shown]
        rows.append([family, str(len(row)), *means, str(sum(not entry.outcomes[SERVICE].finished for entry in row))])
    columns = "|".join(("links", "windows", *shown, "not finished under the service"))
    return table(f"{TITLES[measure]}, mean over windows", columns, rows)


def _chosen(windows: Sequence[ShardWindow], measure: str) -> Iterator[list[str]]:
    for family, entry in _families(windows):
        schedules = _schedules(entry)
        if schedules:
            numbers = [str(best(schedules, measure, pulling=pulling)) for pulling in (False, True)]
            yield [family, TITLES[measure], *numbers]


def _drawn(family: str, windows: Sequence[ShardWindow], measure: str) -> ReportPlot:
    """Windows in the order in which fixed shards do, from the best to the worst."""
    shares = _shares(windows, measure)
    order = sorted(range(len(windows)), key=lambda number: (shares[DEMAND][number], number))
    return ReportPlot(
        title=f"{TITLES[measure]} at {family}, window by window",
        kind=PlotKind.lines,
        x_label=f"windows, by what it is under {DEMAND}",
        y_label="share",
        series=[
            PlotSeries(
                label=name,
                x=[float(place + 1) for place in range(len(order))],
                y=[shares[name][number] for number in order],
            )
            for name in _SHOWN
            if name in shares
        ],
    )


WAITING, BLOCKED = "RES-005", "RES-006"

_BOUND = "One-sided 95 % bootstrap bound over windows"


@dataclass(frozen=True)
class ShardWindows:
    """What was played.

    Attributes:
        windows: In order; fewer than were wanted where the service was given up.
        wanted: How many were to be played.
        bad: The first answer that was no shard plan.
        bad_answers: How many there were.
    """

    windows: tuple[ShardWindow, ...]
    wanted: int
    bad: Answer | None
    bad_answers: int


def observe(episode: Episode) -> ShardWindows:
    """Play windows of all families that the run has."""
    extent = episode.settings.sized(smoke=SMOKE, quick=QUICK, full=FULL)
    player = Player(episode)
    windows = player.played(every(extent), lambda which: player.window(*which, extent))
    return ShardWindows(windows, len(every(extent)), player.bad, player.bad_answers)


def judge(o: ShardWindows) -> Iterator[Finding]:
    """By how much less is waited for and blocked at ±30 %."""
    planned = sum(window.plans > 0 for window in o.windows)
    observed = f"{planned} of {o.wanted} windows had one"
    if o.bad_answers:
        observed += f"; {o.bad_answers} answers were no shard plan"
    for requirement in (WAITING, BLOCKED):
        expected = "a shard plan at least for every window"
        yield holds(requirement, planned == o.wanted, expected, observed, o.bad if planned < o.wanted else None)
    judged = [window for window in o.windows if window.family == MILD]
    yield _waiting(o.windows, judged)
    yield _blocked(o.windows, judged)


def _waiting(windows: Sequence[ShardWindow], judged: Sequence[ShardWindow]) -> Figure:
    subject = fall(judged, "waiting", WAITING)
    tables, plots = exhibits(windows, ("waiting",))
    return Figure(
        WAITING,
        subject.estimate,
        subject.bound,
        len(judged),
        "1 − share of time in which compute waits for data under the service ÷ that under fixed shards on demand, both "
        f"summed over windows at ±30 %. {_BOUND}",
        parts(windows, "waiting"),
        tables=tables,
        plots=plots,
        ceiling=subject.ceiling,
    )


def _blocked(windows: Sequence[ShardWindow], judged: Sequence[ShardWindow]) -> Figure:
    falls = [fall(judged, measure, BLOCKED) for measure in ("blocked", "blocked_bytes")]
    tables, plots = exhibits(windows, ("blocked", "blocked_bytes"))
    return Figure(
        BLOCKED,
        min(row.estimate for row in falls),
        min(entry.bound for entry in falls),
        len(judged),
        "1 − share of transfers that are blocked under the service ÷ that under fixed shards on demand, both summed "
        f"over windows at ±30 %, by number and by bytes, the lesser. {_BOUND}. Parts: by number, then by bytes",
        [*parts(windows, "blocked"), *parts(windows, "blocked_bytes")],
        tables=tables,
        plots=plots,
        ceiling=min(item.ceiling for item in falls),
    )


CHECK = Check("res_shards", (WAITING, BLOCKED), observe, judge, heavy=True)
