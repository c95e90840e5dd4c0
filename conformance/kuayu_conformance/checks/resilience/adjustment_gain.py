"""Running jobs whose policy is adjusted: when, at what cost, and to what end: RES-007, RES-008 and RES-009.

The service is asked every four seconds in windows of about ten minutes (:mod:`kuayu_conformance.testbed.adjustment`);
what can be carried out of its answers is. Each answer is held against its own request, and what jobs make of each
window against what they would make by the policy before, and by the best.

1. The course of one job in a window, as it is shown: how fast it is under each adjuster, and what changes.
2. Plays windows in which load and latency change: the service through the episode, yardsticks beside.

   A window follows from the nonce and its number alone, so that two checks that play it ask the same.
3. What disturbances come to: percentiles with bounds, and how many of them were named.
4. Parts, tables and pictures that stand beside what adjusting costs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import fmean, median
from typing import TYPE_CHECKING

import numpy as np

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import SHOWN, UnsoundAnswers, WindowClient
from kuayu_conformance.checks.kit.tables import NONE, lines, percent, table
from kuayu_conformance.checks.resilience.adjustment_invariants import Key, faults_of, untimely
from kuayu_conformance.checks.resilience.resilience_requests import ADJUSTMENTS
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import proportion_lower_bound, quantile, quantile_upper_bound
from kuayu_conformance.testbed.adjustment.law import Floats, Level, Motion, jobs, levels
from kuayu_conformance.testbed.adjustment.run import ASKED_S, Outcome, play
from kuayu_conformance.testbed.adjustment.scores import ADJUSTERS, Course, Disturbance, Score, Yardstick, beside
from kuayu_conformance.testbed.adjustment.world import CELL_S, KINDS, SLOW, WINDOW_S, World, draw
from kuayu_schemas import registers
from kuayu_schemas.models import ReportPlot, ReportTable

if TYPE_CHECKING:
    from kuayu_schemas import documents

FRAME_S = 2.0
"""Seconds from one point of a line to the next."""

Line = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Film:
    """One job of a window.

    Attributes:
        changes: That the service had carried out.
        speeds: Per cent of the best policy's steps over a window that ends then, by adjuster.
        loads: Per cent, of each domain of the job.
        slowest: Greatest latency of the job's links, ms.
    """

    changes: int
    speeds: Mapping[str, Line]
    loads: Mapping[str, Line]
    slowest: Line


def film(world: World, yardstick: Yardstick, outcomes: Mapping[str, Outcome]) -> Film:
    """The job for which the first of the adjusters had most to change."""
    first = next(iter(outcomes.values()))
    counts = [len(job.carried) for job in first.jobs]
    number = counts.index(max(counts))
    running, most = world.jobs[number], yardstick.most[number]
    position = np.arange(WINDOW_S, world.ends_s + FRAME_S / 2, FRAME_S)
    cells = np.minimum((position / CELL_S).astype(int), len(world.loads) - 1)
    where = list(running.domains)
    apart = ~np.eye(len(where), dtype=bool)
    slowest = world.latency[cells][:, where][:, :, where][:, apart].max(axis=1)
    made = {name: yardstick.made(outcome, number) for name, outcome in outcomes.items()}
    return Film(
        counts[number],
        {name: _line(position, 100.0 * _speed(course, most, position)) for name, course in made.items()},
        {
            f"load of domain {place}": _line(position, 100.0 * world.loads[cells, entry])
            for place, entry in enumerate(where, 1)
        },
        _line(position, 1000.0 * slowest),
    )


def _speed(made: Course, most: Course, at: Floats) -> Floats:
    """Over a window that ends at some instants, in parts of the most, ``(N,)``."""
    return made.steps(at - WINDOW_S, at) / most.steps(at - WINDOW_S, at)


def _line(at: Floats, values: Floats) -> Line:
    return tuple(zip(at.tolist(), np.round(values, 3).tolist(), strict=True))


SERVICE = "the service"
SMOKE, QUICK, FULL = 19, 25, 64
"""Windows of five disturbances each: enough that a bound of their 95th percentile is not the worst of them."""


@dataclass(frozen=True, slots=True)
class AdjustmentExchange:
    """A question, and what was heard on it.

    Attributes:
        at: Seconds from the begin of the window.
        changed: What had changed by the question.
        calm: Whether all was calm by it.
        named: Triggers of the answer.
        acted: Whether it had triggers or changes.
    """

    at: float
    changed: frozenset[Key]
    calm: bool
    named: frozenset[Key]
    acted: bool


@dataclass(frozen=True)
class AdjustmentWindow:
    """A window, and what came of it.

    Attributes:
        names: Of its domains, by number.
        answers: Adjustments that the service answered with.
        heard: Questions in the order of time.
        scores: By adjuster.
        film: Of one of its jobs, to be shown.
    """

    names: tuple[str, ...]
    answers: int
    heard: tuple[AdjustmentExchange, ...]
    scores: Mapping[str, Score]
    film: Film


@dataclass
class Player(WindowClient):
    """Plays windows in an episode; it is the adjuster of a window itself.

    What cannot be carried out is not: the job goes on as it was planned.

    Attributes:
        untimely: Answers whose triggers, or whose having changes or not, deviate.
    """

    untimely: UnsoundAnswers = field(default_factory=UnsoundAnswers)
    _heard: list[AdjustmentExchange] = field(default_factory=list)

    def window(self, number: int) -> AdjustmentWindow:
        """Play a window."""
        return self._once(number, lambda: self._played(number))

    @property
    def _amiss(self) -> int:
        return super()._amiss + self.untimely.count

    def _played(self, number: int) -> AdjustmentWindow:
        self._heard, before = [], self.answers
        world = self._drawn(number)
        yardstick = Yardstick(world)
        own = play(world, self.adjustment)
        others = beside(world, yardstick)
        outcomes = {SERVICE: own, **{name: item.outcome for name, item in others.items()}}
        scores = {SERVICE: yardstick.score(own), **{name: entry.score for name, entry in others.items()}}
        return AdjustmentWindow(
            world.names, self.answers - before, tuple(self._heard), scores, film(world, yardstick, outcomes)
        )

    def _drawn(self, number: int) -> World:
        seed = f"{self.episode.settings.nonce}/adjusting/{number}"
        return draw(seed, naming=self.episode.salted(seed))

    def adjustment(self, request: "documents.AdjustmentRequest") -> "documents.Adjustment | None":
        """What of the service's answer can be carried out; None where there is none, or was none too often."""
        answer = self._asked(ADJUSTMENTS, request)
        told: documents.Adjustment | None = None if answer is None else answer.json
        selected = list(levels(request))
        self._hear(selected, told)
        if answer is None or told is None:
            return None
        self.untimely = self.untimely.noted(untimely(request, told, selected), answer)
        wrong = _not_to_be_done(request, selected, told)
        words = (f"job {job}: {fault}" for job, faults in wrong.items() for fault in faults)
        self.unsound = self.unsound.noted(words, answer)
        return {
            **told,
            "jobs": [{**entry, "changes": []} if entry["job"] in wrong else entry for entry in told["jobs"]],
        }

    def _hear(self, levels: Sequence[Level], told: "documents.Adjustment | None") -> None:
        named = (
            []
            if told is None
            else [(trigger["kind"], trigger["domain"], trigger.get("target")) for trigger in told["triggers"]]
        )
        self._heard.append(
            AdjustmentExchange(
                ASKED_S * len(self._heard),
                frozenset(item.key for item in levels if item.motion is Motion.CHANGED),
                all(entry.motion is Motion.CALM for entry in levels),
                frozenset(named),
                bool(named) or (told is not None and any(job["changes"] for job in told["jobs"])),
            )
        )


def _not_to_be_done(
    request: "documents.AdjustmentRequest", levels: Sequence[Level], told: "documents.Adjustment"
) -> dict[str, list[str]]:
    """Why changes of jobs cannot be carried out, by job; those where they can are absent."""
    changed = {entry["job"] for entry in told["jobs"] if entry["changes"]}
    if not changed:
        return {}
    asked = {job.id: job for job in jobs(request, levels) if job.id in changed}
    found: dict[str, list[str]] = {}
    for item in told["jobs"]:
        if item["job"] in asked:
            faults = [fault for change in item["changes"] for fault in faults_of(asked[item["job"]], change)]
            if faults:
                found.setdefault(item["job"], []).extend(faults)
    return found


QUANTILE = 0.95
ALL, NEVER = 1.0, 86400.0
"""What stands for a loss and for a time without end: all steps, and longer than any window."""
LOSS, RECOVERY = "loss", "recovery_s"
MEASURES = {LOSS: "share of a window's steps lost while adjusted", RECOVERY: "time to recover after the adjustment"}
WORST = {LOSS: ALL, RECOVERY: NEVER}
MINUTE_S = 60.0


@dataclass(frozen=True)
class Percentile:
    """A measure over some disturbances.

    Attributes:
        estimate: 95th percentile.
        bound: Its one-sided 95 % upper bound; the most there is where there are too few disturbances for one.
        median: The middle one.
        n: Disturbances.
        never: Those after which some job never recovered.
    """

    estimate: float
    bound: float
    median: float
    n: int
    never: int


@dataclass(frozen=True)
class ViolationCounts:
    """How often something that should not be was.

    Attributes:
        times: How often it was.
        of: How often it could have been.
    """

    times: int
    of: int

    @property
    def bound(self) -> float:
        """One-sided 95 % upper bound of the share, exact; one where it could never have been."""
        return 1.0 - proportion_lower_bound(self.of - self.times, self.of)


@dataclass(frozen=True)
class DiagnosisCounts:
    """Disturbances of a kind and what was named of them.

    Attributes:
        n: Disturbances.
        missed: Of those by which a level had changed before the next one, those of which some change was never named.
        after_s: Until an answer named all that had changed, the median; None where none did.
    """

    n: int
    missed: ViolationCounts
    after_s: float | None


def disturbances(windows: Sequence[AdjustmentWindow], adjuster: str) -> list[Disturbance]:
    """All of them under an adjuster, in the order of windows."""
    return [disturbance for window in windows for disturbance in window.scores[adjuster].disturbances]


def percentile(disturbances: Sequence[Disturbance], measure: str) -> Percentile:
    """One of ``MEASURES`` over disturbances.

    Raises:
        ValueError: There are none.
    """
    values = [min(WORST[measure], float(getattr(item, measure))) for item in disturbances]
    bound = min(WORST[measure], quantile_upper_bound(values, QUANTILE))
    never = sum(entry.recovery_s == inf for entry in disturbances)
    return Percentile(quantile(values, QUANTILE), bound, quantile(values, 0.5), len(values), never)


def named(windows: Sequence[AdjustmentWindow], kind: str) -> DiagnosisCounts:
    """What was named of disturbances of a kind."""
    found = [
        _named(window, disturbance)
        for window in windows
        for disturbance in window.scores[SERVICE].disturbances
        if disturbance.event.kind == kind
    ]
    owed = [entry for entry in found if entry is not None]
    told = [item for item in owed if item < inf]
    return DiagnosisCounts(
        len(found), ViolationCounts(len(owed) - len(told), len(owed)), median(told) if told else None
    )


def _named(window: AdjustmentWindow, disturbance: Disturbance) -> float | None:
    """Seconds until all that had changed by a disturbance was named; None where nothing had, infinite where not all."""
    domain, kind = window.names[disturbance.event.domain], "latency" if disturbance.event.kind == SLOW else "load"
    heard = [row for row in window.heard if disturbance.event.instant <= row.at < disturbance.until]
    first = {
        key: next((item.at for item in heard if key in item.named), inf)
        for key in set().union(*(entry.changed for entry in heard))
        if key[0] == kind and domain in key[1:]
    }
    return max(first.values()) - disturbance.event.instant if first else None


def calm(windows: Sequence[AdjustmentWindow]) -> ViolationCounts:
    """Minutes in which all was calm, one after the other, and those in which something was named or planned."""
    minutes = [minute for window in windows for minute in _minutes(window.heard)]
    return ViolationCounts(sum(any(entry.acted for entry in minute) for minute in minutes), len(minutes))


def _minutes(heard: Sequence[AdjustmentExchange]) -> Iterator[list[AdjustmentExchange]]:
    run: list[AdjustmentExchange] = []
    for entry in heard:
        run = [*run, entry] if entry.calm else []
        if len(run) * ASKED_S >= MINUTE_S:
            yield run
            run = []


_TOGETHER = "all"
_BEST = "always the best, for nothing"


def parts(windows: Sequence[AdjustmentWindow], measure: str) -> list[PartFigure]:
    """The measure by kind of disturbance, and under the yardsticks."""
    subject = [*_kinds(disturbances(windows, SERVICE)), *((name, disturbances(windows, name)) for name in ADJUSTERS)]
    made = []
    for label, found in subject:
        told = percentile(found, measure)
        bound = told.bound if told.bound < WORST[measure] else None
        made.append(PartFigure(label, told.estimate, bound, told.n))
    return made


def exhibits(
    windows: Sequence[AdjustmentWindow], measure: str, requirement: str
) -> tuple[list[ReportTable], list[ReportPlot]]:
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
    subject = next(entry for entry in registers.requirements().requirements if entry.id == requirement)
    return inf if subject.threshold is None else subject.threshold.value


def triggers(windows: Sequence[AdjustmentWindow]) -> ReportTable:
    """What was named of changes, and done in calm (RES-007)."""
    rows = []
    for kind in KINDS:
        found = named(windows, kind)
        after = NONE if found.after_s is None else f"{found.after_s:.1f}"
        rows.append([kind, str(found.n), *_counted(found.missed), after])
    rows.append(["calm minutes, acted in", NONE, *_counted(calm(windows)), NONE])
    columns = "what|disturbances|counted as a change, or calm|missed, or false|share, 95 % bound|named after, median, s"
    return table("Changes that were named, and calm in which something was done", columns, rows)


def _counted(counts: ViolationCounts) -> list[str]:
    return [str(counts.of), str(counts.times), percent(counts.bound)]


def _kinds(disturbances: Sequence[Disturbance]) -> Iterator[tuple[str, list[Disturbance]]]:
    for kind in KINDS:
        found = [entry for entry in disturbances if entry.event.kind == kind]
        if found:
            yield kind, found


def _by_kind(windows: Sequence[AdjustmentWindow], measure: str, limit: float) -> ReportTable:
    together = disturbances(windows, SERVICE)
    rows = [[kind, *_left_out(entry, measure, limit)] for kind, entry in [*_kinds(together), (_TOGETHER, together)]]
    return table(_title(measure, "by kind of disturbance"), f"disturbance|{_columns(measure, limit)}", rows)


def _beside(windows: Sequence[AdjustmentWindow], measure: str, limit: float) -> ReportTable:
    rows = []
    for adjuster in (SERVICE, *ADJUSTERS):
        share = fmean(window.scores[adjuster].share for window in windows)
        rows.append([adjuster, *_left_out(disturbances(windows, adjuster), measure, limit), percent(share)])
    rows.append([_BEST, *[NONE] * 6, percent(1.0)])
    columns = f"adjuster|{_columns(measure, limit)}|steps, of those of the best"
    return table(_title(measure, "beside others in the same windows"), columns, rows)


def _title(measure: str, how: str) -> str:
    return f"{MEASURES[measure].capitalize()}, {how}"


def _columns(measure: str, limit: float) -> str:
    within = percent(limit) if measure == LOSS else f"{limit:.0f} s"
    return f"disturbances|with changes|never recovered|median|95th percentile|within {within}"


def _left_out(disturbances: Sequence[Disturbance], measure: str, limit: float) -> list[str]:
    found = percentile(disturbances, measure)
    within = sum(getattr(item, measure) <= limit for item in disturbances) / len(disturbances)
    adjusted = sum(entry.changes > 0 for entry in disturbances)
    shown = [shown_as(row, measure) for row in (found.median, found.estimate)]
    return [str(found.n), str(adjusted), str(found.never), *shown, percent(within)]


def shown_as(value: float, measure: str) -> str:
    """A measure in words."""
    if measure == RECOVERY:
        return "never" if value >= NEVER else f"{value:.1f} s"
    return percent(value)


ADJUSTED, DIP, RECOVERED = "RES-007", "RES-008", "RES-009"
_MEASURES = {DIP: LOSS, RECOVERED: RECOVERY}


@dataclass(frozen=True)
class AdjustmentWindows:
    """What was played.

    Attributes:
        windows: In order; fewer than were wanted where the service was given up.
        wanted: How many were to be played.
        answers: How many of the answers were adjustments.
        bad: The first answer that was none.
        bad_answers: How many there were.
        untimely: Answers whose triggers, or whose having changes or not, deviate.
        unsound: Answers with changes that were not carried out.
    """

    windows: tuple[AdjustmentWindow, ...]
    wanted: int
    answers: int
    bad: Answer | None = None
    bad_answers: int = 0
    untimely: UnsoundAnswers = field(default_factory=UnsoundAnswers)
    unsound: UnsoundAnswers = field(default_factory=UnsoundAnswers)


def observe(episode: Episode) -> AdjustmentWindows:
    """Play all windows that the run has."""
    wanted = episode.settings.sized(smoke=SMOKE, quick=QUICK, full=FULL)
    player = Player(episode)
    windows = player.played(range(wanted), player.window)
    return AdjustmentWindows(
        windows, wanted, player.answers, player.bad, player.bad_answers, player.untimely, player.unsound
    )


def judge(o: AdjustmentWindows) -> Iterator[Finding]:
    """Every answer by its own request; what is lost and how long it takes by the 95th percentile over disturbances."""
    found = f"{o.answers} answers were, {o.bad_answers} were not"
    yield holds(ADJUSTED, not o.bad_answers, "every question is answered by an adjustment", found, o.bad)
    answered = sum(window.answers > 0 for window in o.windows)
    for requirement in (DIP, RECOVERED):
        expected, shown = "adjustments in every window", f"{answered} of {o.wanted} windows had them"
        yield holds(requirement, answered == o.wanted, expected, shown, o.bad if answered < o.wanted else None)
    expected = "every answer names what has changed and nothing that is calm, and has changes where it has to"
    yield from o.untimely.findings(ADJUSTED, expected, f"{o.untimely.count} of {o.answers} do not")
    if disturbances(o.windows, SERVICE):
        yield _figure(o, DIP)
        yield _figure(o, RECOVERED)


def _figure(o: AdjustmentWindows, requirement: str) -> Figure:
    measure = _MEASURES[requirement]
    told = percentile(disturbances(o.windows, SERVICE), measure)
    tables, plots = exhibits(o.windows, measure, requirement)
    words = f"95th percentile over disturbances of the {MEASURES[measure]}, that of the job for which it is greatest; "
    words += "one-sided 95 % upper bound by order statistics"
    if measure == RECOVERY:
        words += f"; after {told.never} of {told.n} some job never recovered"
    return Figure(
        requirement,
        told.estimate,
        told.bound,
        told.n,
        f"{words}. Parts: by kind of disturbance, then of others in the same windows",
        parts(o.windows, measure),
        [*_worst(o.windows, requirement), *_misses(o, requirement)],
        tables if measure == LOSS else [*tables, triggers(o.windows)],
        plots,
    )


def _worst(windows: Sequence[AdjustmentWindow], requirement: str) -> Iterator[Claim]:
    """Disturbances that are worse than the percentile may be, the worst first."""
    measure, limit = _MEASURES[requirement], limit_of(requirement)
    rows = [
        (float(getattr(disturbance, measure)), number, disturbance.event)
        for number, window in enumerate(windows)
        for disturbance in window.scores[SERVICE].disturbances
    ]
    for value, number, event in sorted(rows, key=lambda row: -row[0])[:SHOWN]:
        if value > limit:
            expected = f"{MEASURES[measure]}: {shown_as(limit, measure)} at most"
            what = f"{event.kind} to × {event.times:.2f}, at {event.instant:.1f} s of window {number}"
            yield holds(requirement, False, expected, f"{shown_as(value, measure)}: {what}")


def _misses(o: AdjustmentWindows, requirement: str) -> Iterator[Claim]:
    """What was not carried out."""
    yield from o.unsound.misses(requirement, "changes that can be carried out, in every answer")


CHECK = Check("res_adjusting", (ADJUSTED, DIP, RECOVERED), observe, judge, heavy=True)
