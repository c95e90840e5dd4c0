"""Nodes that send any part of their measures are shown as they are: MET-024.

The suite plays the aggregators of a few domains (:mod:`kuayu_conformance.testbed.sparse`), one batch for each domain
and second, and follows the graph. Whether a subject, a node or a family, was shown rightly is read off the stream
alone.

1. Figure of MET-024: of subjects with sparse telemetry, nodes or families, the share that is shown rightly. A subject
   (``Unit`` of the test bed) is one node alone or one family, and is counted once. Shares in tables are percentages; in
   figures they are fractions of one, as the threshold is.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.graphs import identifier_of, read
from kuayu_conformance.checks.metrics.playback import (
    EVENTS,
    GIVEN_UP,
    REOPENED_EVERY,
    Playback,
    Sender,
    registered,
    reopen,
)
from kuayu_conformance.checks.metrics.timeline import Clock, Timeline, Track
from kuayu_conformance.episode import Episode, FellBehind
from kuayu_conformance.findings import Figure, Finding, PartFigure, answered, holds
from kuayu_conformance.statistics import proportion_lower_bound
from kuayu_conformance.testbed.sparse import FULL, LASTING, QUICK, Unit, World
from kuayu_schemas.models import ReportTable, TableRow

TROUBLE = ("degraded", "straggling", "faulty", "offline")
"""States of which none is true of a node with which nothing is wrong."""

WELL, STOPPED = "nothing wrong", "stopped"

MOST_MISSES = 8


@dataclass(frozen=True)
class _Verdict:
    """Whether a unit was shown rightly; what was shown wrongly, and in which second, where it was not."""

    unit: Unit
    wrong: str
    second: float

    @property
    def right(self) -> bool:
        return not self.wrong


def shown_rightly(world: World, timeline: Timeline, clock: Clock) -> Figure:
    """The lower of two shares: of units with which nothing is wrong, and of those that stop."""
    verdicts = [_judged(unit, world, timeline, clock) for unit in world.units]
    strata = {
        WELL: [verdict for verdict in verdicts if verdict.unit.onset is None],
        STOPPED: [entry for entry in verdicts if entry.unit.onset is not None],
    }
    parts = [_part(name, rows) for name, rows in strata.items()]
    by_pattern: dict[str, list[_Verdict]] = defaultdict(list)
    for row in verdicts:
        by_pattern[row.unit.pattern].append(row)
    misses = [
        holds(
            "MET-024",
            False,
            "no state but its own, or unknown" if item.unit.onset is None else "faulty in time",
            f"{item.unit.nodes[0]} ({item.unit.pattern}; {', '.join(item.unit.measures)}): {item.wrong}, "
            f"{item.second:.0f} s after the beginning",
        )
        for item in verdicts
        if not item.right
    ]
    return Figure(
        "MET-024",
        min(part.estimate for part in parts),
        min(part.bound or 0.0 for part in parts),
        len(verdicts),
        "the lower of two shares of subjects, of which a node alone and a family count one each: of those with which "
        "nothing is wrong, such as are shown in no state but their own or unknown; of those that stop, such as are "
        "shown as faulty in time; n: subjects; bound: the lower of the exact one-sided 95 % lower bounds of both "
        "shares (Clopper and Pearson)",
        parts,
        misses[:MOST_MISSES],
        [_table(by_pattern), _unknown(world, timeline, clock)],
    )


def _part(name: str, rows: Sequence[_Verdict]) -> PartFigure:
    right = sum(row.right for row in rows)
    share = right / len(rows) if rows else 0.0
    return PartFigure(name, share, proportion_lower_bound(right, len(rows)), len(rows))


def _judged(unit: Unit, world: World, timeline: Timeline, clock: Clock) -> _Verdict:
    if unit.onset is None:
        wrong = (fault for name in unit.nodes for fault in _wrong(unit, name, world, timeline, clock))
        what, second = min(wrong, key=lambda fault: fault[1], default=("", 0.0))
        return _Verdict(unit, what, second)
    track = timeline.track("nodes", unit.nodes[0])
    for second in range(world.scale.warm_up, unit.onset):
        if track.value(clock.at(second)) in TROUBLE:
            return _Verdict(unit, f"{track.value(clock.at(second))} before anything was wrong", second)
    late = unit.onset + unit.patience
    return _Verdict(unit, "" if _is_shown(track, unit, clock) else _shown(track, clock.at(late)), late)


def _wrong(unit: Unit, name: str, world: World, timeline: Timeline, clock: Clock) -> Iterator[tuple[str, float]]:
    """The first second in which a node is shown in trouble, or as working where it rests, or the other way round."""
    track = timeline.track("nodes", name)
    changed = 0
    for second in range(world.scale.total):
        if second and unit.works[second] != unit.works[second - 1]:
            changed = second
        shown = track.value(clock.at(second))
        opposite = "idle" if unit.works[second] else "busy"
        if second < world.scale.warm_up:
            continue
        if shown in TROUBLE or (shown == opposite and second - changed > unit.patience):
            yield str(shown), float(second)
            return


def _is_shown(track: Track, unit: Unit, clock: Clock) -> bool:
    """Whether the node is shown as faulty in time, and goes on being shown so for a while."""
    assert unit.onset is not None, "it stops"
    begin, late = clock.at(unit.onset), clock.at(unit.onset + unit.patience)
    spans = track.spans(float("inf"))
    return any(
        state == "faulty" and max(since, begin) <= late and until - max(since, begin) >= LASTING
        for since, until, state in spans
    )


def _shown(track: Track, instant: float) -> str:
    return f"{track.value(instant) or 'nothing'} and not faulty"


def _table(by_pattern: dict[str, list[_Verdict]]) -> ReportTable:
    """Units by pattern, and what was shown wrongly."""
    rows = []
    for pattern, verdicts in sorted(by_pattern.items()):
        wrong = Counter(entry.wrong for entry in verdicts if not entry.right)
        said = "; ".join(f"{what}: {count}" for what, count in wrong.most_common(3))
        cells = [pattern, str(len(verdicts)), str(sum(verdict.right for verdict in verdicts)), said]
        rows.append(TableRow(cells=cells))
    return ReportTable(
        title="Subjects, nodes or families, by what they do",
        columns=["what they do", "subjects", "shown rightly", "wrong: subjects"],
        rows=rows,
    )


def _unknown(world: World, timeline: Timeline, clock: Clock) -> ReportTable:
    """How often nothing is said of a healthy node, by the number of its measures: printed and not judged."""
    seconds, unknown = Counter[int](), Counter[int]()
    for unit in (entry for entry in world.units if entry.onset is None):
        for name in unit.nodes:
            track = timeline.track("nodes", name)
            for second in range(world.scale.warm_up, world.scale.total):
                seconds[len(unit.measures)] += 1
                unknown[len(unit.measures)] += track.value(clock.at(second)) == "unknown"
    rows = [
        TableRow(cells=[str(count), str(seconds[count]), f"{unknown[count] / seconds[count]:.1%}"])
        for count in sorted(seconds)
    ]
    return ReportTable(
        title="Nodes with which nothing is wrong, shown as unknown",
        columns=["measures sent", "seconds, summed over nodes", "shown as unknown"],
        rows=rows,
    )


SETTLE = 3.0
"""Seconds for which the stream is watched when everything has been sent."""

MOST_WAITING = 0.5
"""Share of its time for which the world may wait for the suite; beyond it nothing is said. Delays of the path are not
judged here, and samples that come a third more seldom are sparse telemetry too."""


@dataclass(frozen=True)
class SparseWorldRun(Playback):
    """What came of a world.

    Attributes:
        world: The world.
    """

    world: World


def observe(episode: Episode) -> SparseWorldRun:
    """Register the world, follow the graph, and play the world second by second.

    Raises:
        FellBehind: The suite, or the path to the target, was too slow for its own world.
    """
    scale = FULL if episode.settings.full else QUICK
    world = World(scale, f"{episode.settings.nonce}/sparse", episode.name_of)
    unregistered = tuple(registered(episode, world.domains, world.nodes, world.families))
    snapshot = read(episode)
    begin = identifier_of(snapshot.at("revision"))
    streams = [episode.follow(EVENTS, after=begin)]
    if streams[0].opening.status != 200:
        unregistered += (streams[0].opening,)
    sender = Sender(episode, Clock(episode.now() + 1.0))
    for second in range(scale.total + 1) if not unregistered else ():
        for place, delivery in enumerate(world.deliveries(second)):
            sender.until(second + place / len(world.domains))
            sender.deliver(delivery)
        if second % REOPENED_EVERY == 0:
            reopen(episode, streams, begin)
        if second > GIVEN_UP and len(sender.refused) == sender.batches:
            break
    if not unregistered:
        streams[-1].take(SETTLE, at_least=1_000_000_000)
    streams[-1].hang_up()
    if sender.clock.waited > MOST_WAITING * scale.total:
        raise FellBehind(
            f"the world waited {sender.clock.waited:.0f} of {scale.total} s for requests to be answered, so that "
            "what was shown late would be the path's",
            f"{MOST_WAITING:.0%} of the time of a world",
        )
    refused = tuple(sender.refused)
    return SparseWorldRun(sender.clock, unregistered, snapshot, tuple(streams), refused, sender.batches, world)


def judge(o: SparseWorldRun) -> Iterator[Finding]:
    """Subjects that were shown rightly."""
    if o.unregistered:
        expected = "what the world consists of is taken, and followed"
        yield answered("MET-024", o.unregistered[0], (200, 201), expected)
        return
    first = o.refused[0] if o.refused else None
    observed = f"{len(o.refused)} of {o.batches} batches were not"
    yield holds("MET-024", not o.refused, "what the aggregators send is taken whole", observed, first)
    yield shown_rightly(o.world, Timeline(o.snapshot.json, o.events), o.clock)


CHECK = Check("met_sparse", ("MET-024",), observe, judge, recorded_times=True, heavy=True)
