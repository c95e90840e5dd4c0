"""Running jobs whose policy is adjusted: when, at what cost, and to what end: RES-007, RES-008 and RES-009.

The service is asked every four seconds in windows of about ten minutes (:mod:`kuayu_conformance.testbed.adjustment`);
what can be carried out of its answers is. Each answer is held against its own request, and what jobs make of each
window against what they would make by the policy before, and by the best.

1. *Invariants.* An adjustment states the rates that follow from the levels now, and can be carried out (RES-016). It
   names what has changed, and changes policies when it has to and not in calm (RES-007). Parts of requests are drawn;
   times and bandwidths have no round numbers that would hide a slip.
2. *Windows* in which load and latency change: the service through the episode, baselines beside. A window follows from
   the nonce and its number alone, so that two checks that play it ask the same.
3. *Figures*: what disturbances come to, by percentiles with bounds, and how many of them were named.
4. *Report*: parts, tables and pictures that stand beside what adjusting costs, and the course of one job in a window:
   how fast it is under each adjuster, and what changes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations
from math import inf
from random import Random
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import (
    NONE,
    SHOWN,
    UnsoundAnswers,
    WindowClient,
    lines,
    name,
    percent,
    revision,
    revision_faults,
    table,
)
from kuayu_conformance.checks.resilience.resilience_requests import ADJUSTMENTS, bandwidth
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import proportion_lower_bound, quantile, quantile_upper_bound
from kuayu_conformance.testbed.adjustment.run import (
    ADJUSTERS,
    ASKED_S,
    Course,
    Disturbance,
    Outcome,
    Score,
    Scorer,
    beside,
    play,
)
from kuayu_conformance.testbed.adjustment.world import (
    CELL_S,
    KINDS,
    SLOW,
    WINDOW_S,
    Floats,
    Level,
    Motion,
    Policy,
    RequestedJob,
    World,
    draw,
    jobs,
    levels,
    policy,
)
from kuayu_conformance.testbed.collectives import HIERARCHICAL, LOW, RING
from kuayu_schemas import registers
from kuayu_schemas.models import ReportPlot, ReportTable

if TYPE_CHECKING:
    from kuayu_schemas import documents

INTERVAL, PATIENCE, WINDOW, ALLOWANCE = 2.0, 10.0, 10.0, 0.1
RISE, FALL = 1.5, 0.5
"""Of a load: changes that a job with parts there does not do well with."""
MEASURED, LATEST = 12, 5
"""Intervals that are told, and those of them that patience spans."""
_NOISE = (-0.02, -0.01, 0.0, 0.01, 0.02)
"""Around the level that is meant, which is the median therefore."""

Way = tuple[str, str]


class AdjustmentRequestBuilder:
    """Draws the parts of a request.

    Attributes:
        chance: What is drawn from.
        domains: Their names; all are joined.
        loads: Stated level of each.
        delays: Stated level of the latency of each way between them, in seconds.
        bandwidths: What each way carries, in bits a second.
    """

    def __init__(self, chance: Random, count: int = 4) -> None:
        self.chance = chance
        self.domains = [name(chance) for _ in range(count)]
        self.loads = {entry: round(chance.uniform(0.35, 0.5), 6) for entry in self.domains}
        pairs = list(permutations(self.domains, 2))
        self.delays = {pair: round(chance.uniform(0.01, 0.03), 6) for pair in pairs}
        self.bandwidths = {pair: bandwidth(chance, 8.0, 16.0) for pair in pairs}
        self._slowness = {domain: chance.uniform(0.7, 1.4) for domain in self.domains}

    def job(
        self,
        domains: Sequence[str],
        *,
        step: float = 2.0,
        total: int = 96,
        collective: str = "hierarchical",
        parts: Sequence[int] = (),
        **members: Any,
    ) -> "documents.AdjustedJob":
        """A job over domains that computes much more than it exchanges.

        Args:
            domains: Where it runs.
            step: Seconds that a step takes at the stated loads where all domains end at once.
            total: Parts of a step.
            collective: By which replicas agree.
            parts: Of each domain; by default all end at once, but for what cannot be divided.
            members: What is otherwise.
        """
        speeds = [(1.0 - self.loads[domain]) / self._slowness[domain] for domain in domains]
        unit = step * sum(speeds) / total
        given = parts or divided(total, speeds)
        job = {
            "id": name(self.chance),
            "shares": [
                {"domain": entry, "parts": item, "part_time": round(unit * self._slowness[entry], 9)}
                for entry, item in zip(domains, given, strict=True)
            ],
            "nodes": 2,
            "node_bandwidth": bandwidth(self.chance, 80.0, 120.0),
            "node_latency": 1e-5,
            "exchange": float(self.chance.randrange(200_000_000, 500_000_000)),
            "collective": collective,
            "period": 1,
            "order": list(domains),
            "move_time": 0.01,
            "switch_time": 0.3,
            **members,
        }
        return cast("documents.AdjustedJob", job)

    def many_rounds(self, domains: Sequence[str], **members: Any) -> "documents.AdjustedJob":
        """A job in one ring of many nodes: what latency does to it is half of the time."""
        rounds = {"step": 1.0, "nodes": 8, "exchange": 1e8, "collective": "ring"}
        return self.job(domains, **{**rounds, **members})

    def planned(
        self, job: "documents.AdjustedJob", speeds: Sequence[float], *, after: float = 5.0, **members: Any
    ) -> "documents.PolicyChange":
        """A change of a job for other speeds of its domains, and otherwise as it runs."""
        parts = divided(sum(share["parts"] for share in job["shares"]), speeds)
        unchanged = {"collective": job["collective"], "period": job["period"], "order": job["order"]}
        return cast("documents.PolicyChange", {"after": after, "parts": parts, **unchanged, **members})

    def speeds(self, job: "documents.AdjustedJob", loads: Mapping[str, float]) -> list[float]:
        """Parts a second in each domain of a job, where some have other loads than the stated ones."""
        now = {**self.loads, **loads}
        return [(1.0 - now[share["domain"]]) / share["part_time"] for share in job["shares"]]

    def request(
        self,
        jobs: "list[documents.AdjustedJob]",
        *,
        loads: Mapping[str, float] | None = None,
        delays: Mapping[Way, float] | None = None,
        **members: Any,
    ) -> "documents.AdjustmentRequest":
        """A request where some loads and latencies are others now than the stated ones."""
        now, late = {**self.loads, **(loads or {})}, {**self.delays, **(delays or {})}
        request = {
            "revision": revision(self.chance),
            "interval": INTERVAL,
            "patience": PATIENCE,
            "window": WINDOW,
            "allowance": ALLOWANCE,
            "domains": [
                {"id": entry, "level": level, "loads": [min(1.0, one) for one in self.measured(level, now[entry])]}
                for entry, level in self.loads.items()
            ],
            "links": [
                {
                    "source": source,
                    "target": target,
                    "bandwidth": self.bandwidths[source, target],
                    "level": level,
                    "latencies": self.measured(level, late[source, target]),
                }
                for (source, target), level in self.delays.items()
            ],
            "jobs": jobs,
            **members,
        }
        return cast("documents.AdjustmentRequest", request)

    def measured(self, before: float, now: float) -> list[float]:
        """Intervals at a level, then those of patience at the present one."""
        noise = [*_NOISE]
        self.chance.shuffle(noise)
        past = [before * (1.0 + self.chance.uniform(-0.02, 0.02)) for _ in range(MEASURED - LATEST)]
        return [round(item, 9) for item in (*past, *(now * (1.0 + entry) for entry in noise))]


def divided(total: int, speeds: Sequence[float]) -> list[int]:
    """Parts in proportion to speeds, at least one to each; the last ones go where they end soonest."""
    parts = [max(1, int(total * speed / sum(speeds))) for speed in speeds]
    while sum(parts) > total:
        parts[parts.index(max(parts))] -= 1
    while sum(parts) < total:
        soonest = min(
            range(len(parts)), key=lambda entry: (parts[entry] + 1) / speeds[entry] if speeds[entry] else float("inf")
        )
        parts[soonest] += 1
    return parts


MIN_STEP_SHARE = 0.9
"""Share of the steps of the best policy with which a job may be left as it is when something has changed."""
STATED_LEVEL_SHARE = 1e-6
"""Levels are stated to within this share."""
_HAIR = 1e-9

Key = tuple[str, str, str | None]
"""Kind, domain or source, and target."""


def untimely(
    request: "documents.AdjustmentRequest",
    adjustment: "documents.Adjustment",
    stated_levels: Sequence[Level] | None = None,
) -> list[str]:
    """All that deviates in triggers, and in whether jobs have changes, of a valid answer.

    Args:
        request: It is valid and does not contradict itself.
        adjustment: Its answer.
        stated_levels: Levels of the request, where they are at hand.
    """
    stated_levels = list(levels(request)) if stated_levels is None else stated_levels
    return [*_triggers(stated_levels, adjustment["triggers"]), *_changes(request, stated_levels, adjustment["jobs"])]


def _triggers(levels: Sequence[Level], adjustment: "Sequence[documents.AdjustmentTrigger]") -> Iterator[str]:
    known = {entry.key: entry for entry in levels}
    times: Counter[Key] = Counter()
    for trigger in adjustment:
        key: Key = trigger["kind"], trigger["domain"], trigger.get("target")
        times[key] += 1
        level = known.get(key)
        if level is None:
            yield f"a trigger of {_words(key)}, which the request does not hold"
        elif level.motion == Motion.CALM:
            yield f"a trigger of {_words(key)}, which is calm: {_standing(level)}"
        elif not _is(trigger["before"], level.before) or not _is(trigger["now"], level.now):
            stated = f"from {trigger['before']:.9g} to {trigger['now']:.9g}"
            yield f"a trigger of {_words(key)}, {stated}, where it is {_standing(level)}"
    for named, count in times.items():
        if count > 1:
            yield f"{_words(named)} is named {count} times"
    for level in levels:
        if level.motion == Motion.CHANGED and level.key not in times:
            yield f"no trigger of {_words(level.key)}, which has changed: {_standing(level)}"


def _changes(
    request: "documents.AdjustmentRequest", levels: Sequence[Level], adjustment: "Sequence[documents.JobAdjustment]"
) -> Iterator[str]:
    motions = {entry.motion for entry in levels}
    changes = {item["job"]: item["changes"] for item in adjustment}
    if motions == {Motion.CALM}:
        for name, planned in changes.items():
            if planned:
                yield f"job {name}: {len(planned)} changes where all is calm"
    if Motion.CHANGED not in motions:
        return
    for job in jobs(request, levels):
        if not changes.get(job.id):
            rate, best = job.rate(job.final_policy), job.best_rate
            if rate < (MIN_STEP_SHARE - _HAIR) * best:
                yield f"job {job.id}: no change where it would make {rate:.6g} steps a second of {best:.6g}"


def _is(stated: float, level: float) -> bool:
    return abs(stated - level) <= STATED_LEVEL_SHARE * level


def _words(key: Key) -> str:
    kind, domain, target = key
    return f"the {kind} of {domain}" + ("" if target is None else f" to {target}")


def _standing(level: Level) -> str:
    return f"from {level.before:.9g} to {level.now:.9g}"


STATED_RATE_SHARE = 0.01
"""Rates are stated to within this share."""
MAX_NAMES = 5
"""Names and numbers that a sentence holds at most."""


def deviations(request: "documents.AdjustmentRequest", adjustment: "documents.Adjustment") -> list[str]:
    """All that deviates in rates and changes of a valid answer, with expected and found.

    Args:
        request: It is valid and does not contradict itself.
        adjustment: Its answer.
    """
    deviating = [*revision_faults(request, adjustment)]
    expected, named = [item["id"] for item in request["jobs"]], [entry["job"] for entry in adjustment["jobs"]]
    if named != expected:
        where = f"the request has {len(expected)}, {expected[:MAX_NAMES]}, in this order"
        deviating.append(f"{len(named)} jobs, {named[:MAX_NAMES]}, where {where}")
    return deviating + [
        f"job {job}: {fault}" for job, faults in unsound_jobs(request, adjustment).items() for fault in faults
    ]


def unsound_jobs(request: "documents.AdjustmentRequest", adjustment: "documents.Adjustment") -> dict[str, list[str]]:
    """What deviates in what is told of each job of a request, by job; those where nothing does are absent.

    Args:
        request: It is valid and does not contradict itself.
        adjustment: A valid answer.
    """
    faults_by_job = {}
    for job in jobs(request):
        selected = [item for item in adjustment["jobs"] if item["job"] == job.id]
        faults = [fault for entry in selected for fault in _of_job(job, entry)]
        if len(selected) != 1:
            faults.insert(0, f"told of {len(selected)} times where once is right")
        if faults:
            faults_by_job[job.id] = faults
    return faults_by_job


def _of_job(job: RequestedJob, adjustment: "documents.JobAdjustment") -> Iterator[str]:
    yield from _of_rate("rate", adjustment["rate"], job.rate(job.in_force))
    last: Policy | None = job.final_policy
    before: Policy | None = job.in_force
    takes_back = bool(job.planned) and len(adjustment["changes"]) == 1
    for number, change in enumerate(adjustment["changes"]):
        wrong = [*faults_of(job, change)]
        yield from (f"change {number}: {item}" for item in wrong)
        last = None if wrong else policy(job.domains, change["parts"], change)
        if before is not None and last is not None and last.is_like(before) and not takes_back:
            yield f"change {number}: it is like {f'change {number - 1}' if number else 'the policy in force'} before it"
        before = last
    yield from _of_times([entry["after"] for entry in adjustment["changes"]])
    # what follows from a policy that cannot be is nothing
    if last is not None:
        yield from _of_rate("expected rate", adjustment["expected_rate"], job.rate(last))


def faults_of(job: RequestedJob, change: "documents.PolicyChange") -> Iterator[str]:
    """Why a change of a job, as an answer tells it, cannot be carried out."""
    parts, order = change["parts"], change["order"]
    if len(parts) != len(job.domains):
        yield f"parts for {len(parts)} domains where the job has {len(job.domains)}"
    elif min(parts) < 1:
        yield f"parts {parts[:MAX_NAMES]}, not one at least for each domain"
    elif sum(parts) != job.total:
        yield f"{sum(parts)} parts in all where a step has {job.total}"
    if sorted(order) != sorted(job.domains):
        yield f"the order {order[:MAX_NAMES]} where the job's domains are {sorted(job.domains)[:MAX_NAMES]}, each once"
    collective, period = change["collective"], change["period"]
    if collective not in {RING, HIERARCHICAL, LOW}:
        yield f"the collective {collective}, which is none of {RING}, {HIERARCHICAL}, {LOW}"
    elif period != 1 and collective != LOW:
        yield f"a period of {period} with {collective} where it is one"


def _of_times(after: list[float]) -> Iterator[str]:
    for number, (one, other) in enumerate(pairwise(after), 1):
        if other < one:
            yield f"change {number} is planned after {other:.6g} s, sooner than the one before it, after {one:.6g} s"


def _of_rate(what: str, adjustment: float, true: float) -> Iterator[str]:
    if abs(adjustment - true) > (STATED_RATE_SHARE + _HAIR) * true:
        yield f"{what} {adjustment:.6g}/s where the levels now lead to {true:.6g}/s"


FRAME_S = 2.0
"""Seconds from one point of a line to the next."""

Line = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class JobTrace:
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


def trace_of(world: World, scorer: Scorer, outcomes: Mapping[str, Outcome]) -> JobTrace:
    """The job for which the first of the adjusters had most to change."""
    first = next(iter(outcomes.values()))
    counts = [len(job.carried) for job in first.jobs]
    number = counts.index(max(counts))
    running, most = world.jobs[number], scorer.most[number]
    position = np.arange(WINDOW_S, world.ends_s + FRAME_S / 2, FRAME_S)
    cells = np.minimum((position / CELL_S).astype(int), len(world.loads) - 1)
    where = list(running.domains)
    apart = ~np.eye(len(where), dtype=bool)
    slowest = world.latency[cells][:, where][:, :, where][:, apart].max(axis=1)
    courses = {name: scorer.course(outcome, number) for name, outcome in outcomes.items()}
    return JobTrace(
        counts[number],
        {name: _line(position, 100.0 * _speed(course, most, position)) for name, course in courses.items()},
        {
            f"load of domain {place}": _line(position, 100.0 * world.loads[cells, entry])
            for place, entry in enumerate(where, 1)
        },
        _line(position, 1000.0 * slowest),
    )


def _speed(course: Course, most: Course, instants: Floats) -> Floats:
    """Over a window that ends at some instants, in parts of the most, ``(N,)``."""
    return course.steps(instants - WINDOW_S, instants) / most.steps(instants - WINDOW_S, instants)


def _line(instants: Floats, values: Floats) -> Line:
    return tuple(zip(instants.tolist(), np.round(values, 3).tolist(), strict=True))


SERVICE = "the service"
SMOKE, QUICK, FULL = 19, 25, 64
"""Windows of five disturbances each: enough that a bound of their 95th percentile is not the worst of them."""


@dataclass(frozen=True, slots=True)
class AdjustmentExchange:
    """A question, and what was heard on it.

    Attributes:
        instant: Seconds from the beginning of the window.
        changed: What had changed by the question.
        calm: Whether all was calm by it.
        named: Triggers of the answer.
        acted: Whether it had triggers or changes.
    """

    instant: float
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
        exchanges: Questions in the order of time.
        scores: By adjuster.
        trace: Of one of its jobs, to be shown.
    """

    names: tuple[str, ...]
    answers: int
    exchanges: tuple[AdjustmentExchange, ...]
    scores: Mapping[str, Score]
    trace: JobTrace


@dataclass
class Player(WindowClient):
    """Plays windows in an episode; it is the adjuster of a window itself.

    What cannot be carried out is not: the job goes on as it was planned.

    Attributes:
        untimely: Answers whose triggers, or whose having changes or not, deviate.
    """

    untimely: UnsoundAnswers = field(default_factory=UnsoundAnswers)
    _exchanges: list[AdjustmentExchange] = field(default_factory=list)

    def window(self, number: int) -> AdjustmentWindow:
        """Play a window."""
        return self._once(number, lambda: self._played(number))

    @property
    def _amiss(self) -> int:
        return super()._amiss + self.untimely.count

    def _played(self, number: int) -> AdjustmentWindow:
        self._exchanges, before = [], self.answers
        world = self._drawn(number)
        scorer = Scorer(world)
        own = play(world, self.adjustment)
        others = beside(world, scorer)
        outcomes = {SERVICE: own, **{name: item.outcome for name, item in others.items()}}
        scores = {SERVICE: scorer.score(own), **{name: entry.score for name, entry in others.items()}}
        return AdjustmentWindow(
            world.names, self.answers - before, tuple(self._exchanges), scores, trace_of(world, scorer, outcomes)
        )

    def _drawn(self, number: int) -> World:
        seed = f"{self.episode.settings.nonce}/adjusting/{number}"
        return draw(seed, naming=self.episode.salted(seed))

    def adjustment(self, request: "documents.AdjustmentRequest") -> "documents.Adjustment | None":
        """What of the service's answer can be carried out; None where there is none, or was none too often."""
        answer = self._ask(ADJUSTMENTS, request)
        answered: documents.Adjustment | None = None if answer is None else answer.json
        selected = list(levels(request))
        self._hear(selected, answered)
        if answer is None or answered is None:
            return None
        self.untimely = self.untimely.noted(untimely(request, answered, selected), answer)
        wrong = _not_to_be_done(request, selected, answered)
        words = (f"job {job}: {fault}" for job, faults in wrong.items() for fault in faults)
        self.unsound = self.unsound.noted(words, answer)
        return {
            **answered,
            "jobs": [{**entry, "changes": []} if entry["job"] in wrong else entry for entry in answered["jobs"]],
        }

    def _hear(self, levels: Sequence[Level], adjustment: "documents.Adjustment | None") -> None:
        named = (
            []
            if adjustment is None
            else [(trigger["kind"], trigger["domain"], trigger.get("target")) for trigger in adjustment["triggers"]]
        )
        self._exchanges.append(
            AdjustmentExchange(
                ASKED_S * len(self._exchanges),
                frozenset(item.key for item in levels if item.motion is Motion.CHANGED),
                all(entry.motion is Motion.CALM for entry in levels),
                frozenset(named),
                bool(named) or (adjustment is not None and any(job["changes"] for job in adjustment["jobs"])),
            )
        )


def _not_to_be_done(
    request: "documents.AdjustmentRequest", levels: Sequence[Level], adjustment: "documents.Adjustment"
) -> dict[str, list[str]]:
    """Why changes of jobs cannot be carried out, by job; those where they can are absent."""
    changed = {entry["job"] for entry in adjustment["jobs"] if entry["changes"]}
    if not changed:
        return {}
    asked_jobs = {job.id: job for job in jobs(request, levels) if job.id in changed}
    faults_by_job: dict[str, list[str]] = {}
    for item in adjustment["jobs"]:
        if item["job"] in asked_jobs:
            faults = [fault for change in item["changes"] for fault in faults_of(asked_jobs[item["job"]], change)]
            if faults:
                faults_by_job.setdefault(item["job"], []).extend(faults)
    return faults_by_job


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
    delays = [
        _named(window, disturbance)
        for window in windows
        for disturbance in window.scores[SERVICE].disturbances
        if disturbance.event.kind == kind
    ]
    owed = [entry for entry in delays if entry is not None]
    times = [item for item in owed if item < inf]
    return DiagnosisCounts(
        len(delays), ViolationCounts(len(owed) - len(times), len(owed)), median(times) if times else None
    )


def _named(window: AdjustmentWindow, disturbance: Disturbance) -> float | None:
    """Seconds until all that had changed by a disturbance was named; None where nothing had, infinite where not all."""
    domain, kind = window.names[disturbance.event.domain], "latency" if disturbance.event.kind == SLOW else "load"
    exchanges = [row for row in window.exchanges if disturbance.event.instant <= row.instant < disturbance.until]
    first = {
        key: next((item.instant for item in exchanges if key in item.named), inf)
        for key in set().union(*(entry.changed for entry in exchanges))
        if key[0] == kind and domain in key[1:]
    }
    return max(first.values()) - disturbance.event.instant if first else None


def calm(windows: Sequence[AdjustmentWindow]) -> ViolationCounts:
    """Minutes in which all was calm, one after the other, and those in which something was named or planned."""
    minutes = [minute for window in windows for minute in _minutes(window.exchanges)]
    return ViolationCounts(sum(any(entry.acted for entry in minute) for minute in minutes), len(minutes))


def _minutes(exchanges: Sequence[AdjustmentExchange]) -> Iterator[list[AdjustmentExchange]]:
    run: list[AdjustmentExchange] = []
    for entry in exchanges:
        run = [*run, entry] if entry.calm else []
        if len(run) * ASKED_S >= MINUTE_S:
            yield run
            run = []


_TOGETHER = "all"
_BEST = "always the best, for nothing"


def parts(windows: Sequence[AdjustmentWindow], measure: str) -> list[PartFigure]:
    """The measure by kind of disturbance, and under the yardsticks."""
    subject = [*_kinds(disturbances(windows, SERVICE)), *((name, disturbances(windows, name)) for name in ADJUSTERS)]
    figures = []
    for label, items in subject:
        percentiles = percentile(items, measure)
        bound = percentiles.bound if percentiles.bound < WORST[measure] else None
        figures.append(PartFigure(label, percentiles.estimate, bound, percentiles.n))
    return figures


def exhibits(
    windows: Sequence[AdjustmentWindow], measure: str, requirement: str
) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Everything that is printed of a measure and not judged; who is within the threshold is counted."""
    limit = limit_of(requirement)
    shown = max((window.trace for window in windows), key=lambda trace: trace.changes)
    changed = f"{shown.changes} changes under the service"
    if measure == LOSS:
        points = {**shown.loads, "greatest latency of a link, ms": shown.slowest}
        plot = lines(
            f"What happened to the job of a window that changed most: {changed}", "seconds", "% and ms", points
        )
    else:
        points = dict(shown.speeds)
        title = f"Steps of that job over ten seconds, of those of the best policy: {changed}"
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
        counts = named(windows, kind)
        after = NONE if counts.after_s is None else f"{counts.after_s:.1f}"
        rows.append([kind, str(counts.n), *_counted(counts.missed), after])
    rows.append(["calm minutes, acted in", NONE, *_counted(calm(windows)), NONE])
    columns = "what|disturbances|counted as a change, or calm|missed, or false|share, 95 % bound|named after, median, s"
    return table("Changes that were named, and calm in which something was done", columns, rows)


def _counted(counts: ViolationCounts) -> list[str]:
    return [str(counts.of), str(counts.times), percent(counts.bound)]


def _kinds(disturbances: Sequence[Disturbance]) -> Iterator[tuple[str, list[Disturbance]]]:
    for kind in KINDS:
        selected = [entry for entry in disturbances if entry.event.kind == kind]
        if selected:
            yield kind, selected


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
    percentiles = percentile(disturbances, measure)
    within = sum(getattr(item, measure) <= limit for item in disturbances) / len(disturbances)
    adjusted = sum(entry.changes > 0 for entry in disturbances)
    shown = [shown_as(row, measure) for row in (percentiles.median, percentiles.estimate)]
    return [str(percentiles.n), str(adjusted), str(percentiles.never), *shown, percent(within)]


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
    observed = f"{o.answers} answers were, {o.bad_answers} were not"
    yield holds(ADJUSTED, not o.bad_answers, "every question is answered by an adjustment", observed, o.bad)
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
    percentiles = percentile(disturbances(o.windows, SERVICE), measure)
    tables, plots = exhibits(o.windows, measure, requirement)
    words = f"95th percentile over disturbances of the {MEASURES[measure]}, that of the job for which it is greatest; "
    words += "one-sided 95 % upper bound by order statistics"
    if measure == RECOVERY:
        words += f"; after {percentiles.never} of {percentiles.n} some job never recovered"
    return Figure(
        requirement,
        percentiles.estimate,
        percentiles.bound,
        percentiles.n,
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
