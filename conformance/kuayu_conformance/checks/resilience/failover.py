"""Jobs whose nodes fail: how soon they are whole again, and how long no new step is made: RES-003 and RES-004.

The service is asked for a backup plan at the beginning of a window (:mod:`kuayu_conformance.testbed.recovery`), and for
failover plans 3 s after each fault and every ten seconds while a job is not whole, every minute once nothing has
happened for five; the suite holds and carries out what is sound of them. What is not over at the end of a window counts
as without end.

1. Plays windows in which nodes, racks and domains fail: the service through the episode, yardsticks beside.

   A window follows from the nonce and its number alone, so that two checks that play it ask the same.
2. What incidents come to: percentiles of times, with bounds.
3. Parts, tables and pictures that stand beside the times of incidents.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf, isfinite
from statistics import fmean
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import NONE, SHOWN, UnsoundAnswers, WindowClient, lines, percent, table
from kuayu_conformance.checks.resilience.resilience_requests import BACKUPS, FAILOVERS, unsound_jobs
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import quantile, quantile_upper_bound
from kuayu_conformance.testbed.recovery.run import (
    COLD,
    FIXED,
    GO_ON,
    REPLACE,
    RESTORE,
    WAIT,
    BaselinePlanner,
    Outcome,
    play,
)
from kuayu_conformance.testbed.recovery.world import KINDS, Incident, World, draw
from kuayu_schemas import registers
from kuayu_schemas.models import ReportPlot, ReportTable

if TYPE_CHECKING:
    from kuayu_schemas import documents

SERVICE = "the service"


@dataclass(frozen=True)
class Extent:
    """How much is played: windows, and whether the yardsticks play them too."""

    windows: int
    beside: bool


SMOKE, QUICK, FULL = Extent(6, beside=False), Extent(8, beside=False), Extent(24, beside=True)
"""About thirty incidents a window: enough that a bound of their 95th percentile is not the worst of them."""


@dataclass(frozen=True)
class FailoverWindow:
    """A window, and what came of it.

    Attributes:
        backed: Whether there was a backup plan.
        plans: Failover plans that the service made in it.
        outcomes: By planner.
    """

    backed: bool
    plans: int
    outcomes: Mapping[str, Outcome]

    @property
    def planned(self) -> bool:
        """Whether the service planned in it at all, as far as it was asked."""
        return self.backed and (self.plans > 0 or self.outcomes[SERVICE].failover_requests == 0)


_OUTCOMES = TypeAdapter(dict[str, Outcome])


@dataclass
class Player(WindowClient):
    """Plays windows in an episode; it is the planner of a window itself.

    What is unsound is not carried out: the job waits, and is asked about again.

    Attributes:
        left_out: What of backup plans could not be held, the first of it.
    """

    left_out: list[str] = field(default_factory=list)
    _backed: bool = False
    _plans: int = 0

    def window(self, number: int, *, beside: bool = False) -> FailoverWindow:
        """Play a window."""
        failover_window = self._once(number, lambda: self._played(number, beside=beside))
        self.left_out += islice(failover_window.outcomes[SERVICE].holdings.left_out, max(0, SHOWN - len(self.left_out)))
        return failover_window

    def _played(self, number: int, *, beside: bool) -> FailoverWindow:
        self._backed, self._plans = False, 0
        world = self._drawn(number)
        outcomes = {SERVICE: play(world, self)}
        if beside:
            score_store = self.episode.settings.score_store
            fixed: dict[str, Outcome] = score_store.get_or_make(
                f"failover/{number}",
                _OUTCOMES,
                lambda: {name: play(world, BaselinePlanner(world, cold=name == COLD)) for name in (COLD, FIXED)},
            )
            outcomes |= fixed
        return FailoverWindow(self._backed, self._plans, outcomes)

    def _drawn(self, number: int) -> World:
        seed = f"{self.episode.settings.nonce}/failover/{number}"
        return draw(seed, naming=self.episode.salted(seed))

    def backup(self, request: "documents.BackupRequest") -> "documents.BackupPlan | None":
        """The service's backup plan; None where it makes none, or has made no plan too often."""
        answer = self._ask(BACKUPS, request)
        self._backed = answer is not None
        return None if answer is None else answer.json

    def failover(self, request: "documents.FailoverRequest") -> "documents.FailoverPlan | None":
        """What of the service's failover plan can be carried out, likewise."""
        answer = self._ask(FAILOVERS, request)
        if answer is None:
            return None
        self._plans += 1
        plan: documents.FailoverPlan = answer.json
        wrong = unsound_jobs(request, plan)
        faults = (f"job {job}: {fault}" for job, entry in wrong.items() for fault in entry)
        self.unsound = self.unsound.noted(faults, answer)
        return {**plan, "recoveries": [recovery for recovery in plan["recoveries"] if recovery["job"] not in wrong]}


QUANTILE = 0.95
NEVER = 86400.0
"""Seconds that stand for a time without end: longer than any window."""
MEASURES = {"switch_s": "time until a job is whole again", "interruption_s": "time without a new step"}


@dataclass(frozen=True)
class Score:
    """A measure over some incidents, s.

    Attributes:
        estimate: 95th percentile.
        bound: Its one-sided 95 % upper bound; infinite where there are too few incidents for one.
        median: The middle one.
        n: Incidents.
        never: Those that were not over at the end of their window.
    """

    estimate: float
    bound: float
    median: float
    n: int
    never: int


def incidents(windows: Sequence[FailoverWindow], planner: str) -> list[Incident]:
    """All of them under a planner, in the order of windows."""
    return [
        incident for window in windows if planner in window.outcomes for incident in window.outcomes[planner].incidents
    ]


def score(incidents: Sequence[Incident], measure: str) -> Score:
    """One of ``MEASURES`` over incidents.

    Raises:
        ValueError: There are none.
    """
    seconds = [float(getattr(entry, measure)) for entry in incidents]
    ends = [min(NEVER, second) for second in seconds]
    return Score(
        quantile(ends, QUANTILE),
        quantile_upper_bound(ends, QUANTILE),
        quantile(ends, 0.5),
        len(ends),
        seconds.count(inf),
    )


_PLANNERS = (SERVICE, FIXED, COLD)
_POINTS = 100
_HOUR = 3600.0


def parts(windows: Sequence[FailoverWindow], measure: str) -> list[PartFigure]:
    """The measure by kind of fault, and under the yardsticks where they played."""
    figures = []
    for kind, entry in _kinds(incidents(windows, SERVICE)):
        measured = score(entry, measure)
        figures.append(
            PartFigure(kind, measured.estimate, measured.bound if isfinite(measured.bound) else None, measured.n)
        )
    for planner in _PLANNERS[1:]:
        entry = incidents(windows, planner)
        if entry:
            measured = score(entry, measure)
            figures.append(
                PartFigure(planner, measured.estimate, measured.bound if isfinite(measured.bound) else None, measured.n)
            )
    return figures


def exhibits(
    windows: Sequence[FailoverWindow], measure: str, requirement: str
) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Everything that is printed of a measure and not judged; who is within the threshold is counted."""
    subject = next(entry for entry in registers.requirements().requirements if entry.id == requirement)
    limit = subject.threshold.value if subject.threshold is not None else NEVER
    return [_by_kind(windows, measure, limit), _beside(windows, measure, limit)], [_distribution(windows, measure)]


def predictions(windows: Sequence[FailoverWindow]) -> ReportTable:
    """When plans expected a new step, and when there was one."""
    predicted = [prediction for window in windows for prediction in window.outcomes[SERVICE].predictions]
    rows = []
    for strategy in (GO_ON, REPLACE, RESTORE, WAIT):
        selected = [row for row in predicted if row.strategy == strategy]
        if selected:
            off = [abs(min(one.expected_s, NEVER) - one.happened_s) for one in selected]
            shown = [
                quantile([min(item.expected_s, NEVER) for item in selected], 0.5),
                quantile([entry.happened_s for entry in selected], 0.5),
                quantile(off, 0.5),
                quantile(off, 0.95),
            ]
            rows.append([strategy, str(len(selected)), *map(_seconds, shown)])
    columns = "strategy|plans|expected, median, s|happened, median, s|apart, median, s|apart, 95th percentile, s"
    return table("When a new step was expected, and when there was one", columns, rows)


def _kinds(incidents: Sequence[Incident]) -> Iterator[tuple[str, list[Incident]]]:
    for kind in KINDS:
        selected = [entry for entry in incidents if entry.kind == kind]
        if selected:
            yield kind, selected


def _by_kind(windows: Sequence[FailoverWindow], measure: str, limit: float) -> ReportTable:
    together = incidents(windows, SERVICE)
    rows = [
        [kind, *_times(entry, measure, limit), _mean(entry, "lost_s"), _mean(entry, "least_s"), _last_strategies(entry)]
        for kind, entry in [*_kinds(together), ("all", together)]
    ]
    columns = f"fault|incidents|median, s|95th percentile, s|within {limit:.0f} s|work done again, mean, s"
    columns += "|state over bandwidth, mean, s|ways"
    return table(f"{MEASURES[measure].capitalize()}, by kind of fault", columns, rows)


def _beside(windows: Sequence[FailoverWindow], measure: str, limit: float) -> ReportTable:
    rows = []
    for planner in _PLANNERS:
        own, ends = (
            incidents(windows, planner),
            [window.outcomes[planner] for window in windows if planner in window.outcomes],
        )
        if own:
            hours = fmean(end.hours for end in ends)
            rows.append(
                [
                    planner,
                    *_times(own, measure, limit),
                    _mean(own, "lost_s"),
                    f"{fmean(sum(outcome.holdings.spares) for outcome in ends):.1f}",
                    f"{fmean(outcome.price for outcome in ends) / hours:.0f}",
                    percent(fmean(entry.paused for entry in ends)),
                    f"{fmean(outcome.copies for outcome in ends) / hours:.0f}",
                ]
            )
    columns = f"planner|incidents|median, s|95th percentile, s|within {limit:.0f} s|work done again, mean, s"
    columns += "|spares|their price, money/h|time that checkpoints take|copies an hour"
    return table(f"{MEASURES[measure].capitalize()}, beside others on the same faults", columns, rows)


def _times(incidents: Sequence[Incident], measure: str, limit: float) -> list[str]:
    measured = score(incidents, measure)
    within = sum(getattr(entry, measure) <= limit for entry in incidents) / len(incidents)
    return [str(measured.n), _seconds(measured.median), _seconds(measured.estimate), percent(within)]


def _mean(incidents: Sequence[Incident], what: str) -> str:
    return f"{fmean(getattr(incident, what) for incident in incidents):.1f}"


def _last_strategies(incidents: Sequence[Incident]) -> str:
    """How many incidents had which way as their last."""
    last = [entry.strategies[-1] for entry in incidents if entry.strategies]
    return (
        ", ".join(f"{strategy} {last.count(strategy)}" for strategy in (GO_ON, REPLACE, RESTORE) if strategy in last)
        or NONE
    )


def _seconds(value: float) -> str:
    return "never" if value >= NEVER else f"{value:.1f}"


def _distribution(windows: Sequence[FailoverWindow], measure: str) -> ReportPlot:
    """Share of incidents that are over after so many seconds, a line for each planner."""
    points = {}
    for planner in _PLANNERS:
        seconds = [min(NEVER, float(getattr(incident, measure))) for incident in incidents(windows, planner)]
        if seconds:
            shares = [number / _POINTS for number in range(1, _POINTS + 1)]
            points_shown = [(quantile(seconds, share), 100.0 * share) for share in shares]
            points[planner] = [(0.0, 0.0), *((entry, share) for entry, share in points_shown if entry <= _HOUR)]
    title = f"{MEASURES[measure].capitalize()}, share of incidents that are over after it"
    return lines(title, "seconds", "% of incidents", points)


SWITCH, INTERRUPTION = "RES-003", "RES-004"
_MEASURES = {SWITCH: "switch_s", INTERRUPTION: "interruption_s"}


@dataclass(frozen=True)
class FailoverWindows:
    """What was played.

    Attributes:
        windows: In order; fewer than were wanted where the service was given up.
        wanted: How many were to be played.
        bad: The first answer that was no plan.
        bad_answers: How many there were.
        unsound: Failover plans with recoveries that were not carried out.
        left_out: What of backup plans was not held, the first of it.
    """

    windows: tuple[FailoverWindow, ...]
    wanted: int
    bad: Answer | None = None
    bad_answers: int = 0
    unsound: UnsoundAnswers = field(default_factory=UnsoundAnswers)
    left_out: tuple[str, ...] = ()


def observe(episode: Episode) -> FailoverWindows:
    """Play all windows that the run has."""
    extent = episode.settings.sized(smoke=SMOKE, quick=QUICK, full=FULL)
    player = Player(episode)
    windows = player.played(range(extent.windows), lambda number: player.window(number, beside=extent.beside))
    return FailoverWindows(
        windows, extent.windows, player.bad, player.bad_answers, player.unsound, tuple(player.left_out)
    )


def judge(o: FailoverWindows) -> Iterator[Finding]:
    """By the 95th percentile over incidents."""
    planned = sum(window.planned for window in o.windows)
    observed = f"{planned} of {o.wanted} windows had them"
    if o.bad_answers:
        observed += f"; {o.bad_answers} answers were no plan"
    for requirement in (SWITCH, INTERRUPTION):
        expected = "a backup plan, and a failover plan at least, for every window"
        yield holds(requirement, planned == o.wanted, expected, observed, o.bad if planned < o.wanted else None)
        if incidents(o.windows, SERVICE):
            yield _figure(o, requirement)


def _figure(o: FailoverWindows, requirement: str) -> Figure:
    measure = _MEASURES[requirement]
    measured = score(incidents(o.windows, SERVICE), measure)
    tables, plots = exhibits(o.windows, measure, requirement)
    return Figure(
        requirement,
        measured.estimate,
        min(NEVER, measured.bound),
        measured.n,
        f"95th percentile of the {MEASURES[measure]} over incidents, one-sided 95 % upper bound by order statistics; "
        f"{measured.never} of {measured.n} were not over at the end of their window and count as {NEVER:.0f} s. "
        "Parts: by kind of fault",
        parts(o.windows, measure),
        list(_misses(o, requirement)),
        [*tables, predictions(o.windows)] if requirement == INTERRUPTION else tables,
        plots,
    )


def _misses(o: FailoverWindows, requirement: str) -> Iterator[Claim]:
    """What was not carried out."""
    yield from o.unsound.misses(requirement, "recoveries that can be carried out, in every failover plan")
    if o.left_out:
        yield holds(requirement, False, "backup plans that can be held", _left_out_text(o.left_out))


def _left_out_text(left_out: Sequence[str]) -> str:
    return "not held: " + "; ".join(left_out)


CHECK = Check("res_failover", (SWITCH, INTERRUPTION), observe, judge, heavy=True)
