"""How long decisions take, one after the other, each on a new state (SCH-002)."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import is_answer
from kuayu_conformance.checks.scheduling.account import Account
from kuayu_conformance.checks.scheduling.placement_requests import PLACEMENTS, Scale, StateBuilder, Stream
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import quantile, quantile_upper_bound
from kuayu_schemas.models import ReportTable, TableRow

JUDGED = Scale(domains=5, nodes=132, running=1500, waiting=1500)
LARGE = Scale(domains=64, nodes=157, running=8000, waiting=2000)
DECISIONS_SMOKE, DECISIONS_QUICK, DECISIONS_FULL, DECISIONS_LARGE = 300, 475, 1000, 100
"""The bound of 299 to 472 decisions is the slowest of them, so that one stall of a machine decides in a smoke run."""

LOOKED_AT = 30
"""Of so many answers one is held against its state."""
MOST_IDLE = 0.1
"""Share of the answers that may start nothing, although there is room and half of all jobs wait."""


@dataclass(frozen=True)
class Decision:
    """A decision.

    Attributes:
        seconds: From the first byte sent to the last one received.
        valid: Whether it is one.
        started: How many jobs it starts.
        faults: Why it cannot be carried out, where that was looked at.
        answer: The exchange.
    """

    seconds: float
    valid: bool
    started: int
    faults: tuple[str, ...]
    answer: Answer


@dataclass(frozen=True)
class Series:
    """Decisions one after the other, the cold one first, and the mean size of their requests in bytes."""

    scale: Scale
    decisions: tuple[Decision, ...]
    size: float


@dataclass(frozen=True)
class LatencySeries:
    """What is judged, and what is only printed."""

    judged: Series
    large: Series | None


def observe(episode: Episode) -> LatencySeries:
    """Ask for one decision after the other; in a full run on a large federation too."""
    full, begin = episode.settings.full, len(episode.exchanges)
    exchanges: tuple[_TimedExchange, ...] | None = episode.again("decisions")
    if exchanges is None:
        with episode.segment("decisions") as segment:
            builder = StateBuilder.of(episode)
            count = episode.settings.sized(smoke=DECISIONS_SMOKE, quick=DECISIONS_QUICK, full=DECISIONS_FULL)
            exchanges = tuple(_timed_exchanges(episode, builder, JUDGED, count))
            exchanges += tuple(_timed_exchanges(episode, builder, LARGE, DECISIONS_LARGE)) if full else ()
            segment.keep(exchanges)
    answers = [answer for _, answer in episode.exchanges[begin:]]
    pairs = list(zip(exchanges, answers, strict=True))
    return LatencySeries(_series(JUDGED, pairs), _series(LARGE, pairs) if full else None)


@dataclass(frozen=True, slots=True)
class _TimedExchange:
    """A question of a series, and what was seen of the answer; small enough to be kept for when it is judged."""

    scale: Scale
    size: int
    valid: bool
    started: int
    faults: tuple[str, ...]


def _timed_exchanges(episode: Episode, builder: StateBuilder, scale: Scale, count: int) -> Iterator[_TimedExchange]:
    for number, content in enumerate(islice(Stream(builder, scale), count)):
        answer = episode.ask("POST", PLACEMENTS, content=content)
        if is_answer(PLACEMENTS, answer):
            decisions = answer.json["decisions"]
            started = sum(decision["verb"] == "start" for decision in decisions)
            faults = Account(json.loads(content)["state"]).faults(decisions) if number % LOOKED_AT == 0 else ()
            yield _TimedExchange(scale, len(content), True, started, tuple(faults))
        else:
            yield _TimedExchange(scale, len(content), False, 0, ())


def _series(scale: Scale, pairs: Sequence[tuple[_TimedExchange, Answer]]) -> Series:
    selected = [pair for pair in pairs if pair[0].scale == scale]
    decisions = tuple(Decision(answer.seconds, a.valid, a.started, a.faults, answer) for a, answer in selected)
    return Series(scale, decisions, sum(a.size for a, _ in selected) / len(selected))


def judge(observation: LatencySeries) -> Iterable[Finding]:
    """The 99th percentile; claims that what was timed were decisions."""
    decisions = observation.judged.decisions
    silent = [row for row in decisions if not row.valid]
    first = (silent or decisions)[0].answer
    yield holds("SCH-002", not silent, "every request is decided on", f"{len(silent)} are not: {first.brief}", first)
    unsound = [item for item in decisions if item.faults]
    for sample in unsound[:1]:
        yield holds("SCH-002", False, "decisions that the state can carry out", list(sample.faults[:3]), sample.answer)
    idle = sum(sample.started == 0 for sample in decisions)
    expected = f"jobs are started in at least {1 - MOST_IDLE:.0%} of the decisions, as there is room and many wait"
    yield holds("SCH-002", idle <= MOST_IDLE * len(decisions), expected, f"none in {idle} of {len(decisions)}")
    seconds = [decision.seconds for decision in decisions]
    series = [sample for sample in (observation.judged, observation.large) if sample]
    slow = sorted(decisions, key=lambda entry: -entry.seconds)[:3]
    yield Figure(
        "SCH-002",
        quantile(seconds, 0.99),
        quantile_upper_bound(seconds, 0.99),
        len(seconds),
        f"99th percentile over decisions on new states, one after the other, {observation.judged.scale.label}; "
        "one-sided 95 % bound by order statistics",
        [PartFigure("the first decision, cold", seconds[0], None, 1), *_parts(seconds[1:])],
        [holds("SCH-002", False, "a quick decision", f"{sample.seconds:.3f} s", sample.answer) for sample in slow],
        [_table(series)],
    )


def _parts(seconds: Sequence[float]) -> list[PartFigure]:
    if not seconds:
        return []
    return [
        PartFigure(f"{words} of the others, warm", quantile(seconds, q), None, len(seconds))
        for words, q in (("median", 0.5), ("99th percentile", 0.99))
    ]


def _table(series: Sequence[Series]) -> ReportTable:
    rows = []
    for entry in series:
        seconds = [decision.seconds for decision in entry.decisions]
        figures = [seconds[0], *(quantile(seconds, q) for q in (0.5, 0.95, 0.99)), max(seconds)]
        started = sum(decision.started for decision in entry.decisions) / len(seconds)
        cells = [entry.scale.label, str(len(seconds)), f"{entry.size / 1e6:.1f} MB", f"{started:.1f}"]
        rows.append(TableRow(cells=[*cells, *(f"{1000 * figure:.0f} ms" for figure in figures)]))
    columns = ["state", "decisions", "request", "jobs started", "first", "median", "95 %", "99 %", "slowest"]
    return ReportTable(title="Time of decisions over HTTP", columns=columns, rows=rows)


CHECK = Check("sch_latency", ("SCH-002",), observe, judge, recorded_times=True, heavy=True)
