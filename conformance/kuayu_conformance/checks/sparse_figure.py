"""Figure of MET-024: of units with sparse telemetry, how many are shown rightly."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kuayu_conformance.checks.states_timeline import Clock, Timeline, Track
from kuayu_conformance.findings import Figure, PartFigure, holds
from kuayu_conformance.statistics import proportion_lower_bound
from kuayu_conformance.testbed.sparse.values import LASTING, Unit
from kuayu_conformance.testbed.sparse.world import World
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
        WELL: [each for each in verdicts if each.unit.onset is None],
        STOPPED: [each for each in verdicts if each.unit.onset is not None],
    }
    parts = [_part(name, rows) for name, rows in strata.items()]
    by_pattern: dict[str, list[_Verdict]] = defaultdict(list)
    for each in verdicts:
        by_pattern[each.unit.pattern].append(each)
    misses = [
        holds(
            "MET-024",
            False,
            "no state but its own, or unknown" if each.unit.onset is None else "faulty in time",
            f"{each.unit.nodes[0]} ({each.unit.pattern}; {', '.join(each.unit.measures)}): {each.wrong} in second "
            f"{each.second:.0f}",
        )
        for each in verdicts
        if not each.right
    ]
    return Figure(
        "MET-024",
        min(part.estimate for part in parts),
        min(part.bound or 0.0 for part in parts),
        len(verdicts),
        "the lower of two shares of units, a node or a family each: of those with which nothing is wrong, such as are "
        "shown in no state but their own or unknown; of those that stop, such as are shown as faulty in time; bound: "
        "the lower of their exact one-sided 95 % lower bounds (Clopper and Pearson)",
        parts,
        misses[:MOST_MISSES],
        [_table(by_pattern), _unknown(world, timeline, clock)],
    )


def _part(name: str, rows: Sequence[_Verdict]) -> PartFigure:
    right = sum(each.right for each in rows)
    share = right / len(rows) if rows else 0.0
    return PartFigure(name, share, proportion_lower_bound(right, len(rows)), len(rows))


def _judged(unit: Unit, world: World, timeline: Timeline, clock: Clock) -> _Verdict:
    if unit.onset is None:
        wrong = (found for name in unit.nodes for found in _wrong(unit, name, world, timeline, clock))
        what, second = min(wrong, key=lambda found: found[1], default=("", 0.0))
        return _Verdict(unit, what, second)
    track = timeline.track("nodes", unit.nodes[0])
    for second in range(world.scale.warm_up, unit.onset):
        if track.value(clock.at(second)) in TROUBLE:
            return _Verdict(unit, f"{track.value(clock.at(second))} before anything was wrong", second)
    late = unit.onset + unit.patience
    return _Verdict(unit, "" if _told(track, unit, clock) else _shown(track, clock.at(late)), late)


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


def _told(track: Track, unit: Unit, clock: Clock) -> bool:
    """Whether the node is shown as faulty in time, and goes on being shown so for a while."""
    assert unit.onset is not None, "it stops"
    begin, late = clock.at(unit.onset), clock.at(unit.onset + unit.patience)
    spans = track.spans(float("inf"))
    return any(
        state == "faulty" and max(since, begin) <= late and until - max(since, begin) >= LASTING
        for since, until, state in spans
    )


def _shown(track: Track, at: float) -> str:
    return f"{track.value(at) or 'nothing'} and not faulty"


def _table(by_pattern: dict[str, list[_Verdict]]) -> ReportTable:
    """Units by pattern, and what was shown wrongly."""
    rows = []
    for pattern, verdicts in sorted(by_pattern.items()):
        wrong = Counter(each.wrong for each in verdicts if not each.right)
        said = "; ".join(f"{what}: {count}" for what, count in wrong.most_common(3))
        cells = [pattern, str(len(verdicts)), str(sum(each.right for each in verdicts)), said]
        rows.append(TableRow(cells=cells))
    return ReportTable(
        title="Units by what they do", columns=["what they do", "n", "shown rightly", "wrong"], rows=rows
    )


def _unknown(world: World, timeline: Timeline, clock: Clock) -> ReportTable:
    """How often nothing is said of a healthy node, by the number of its measures: printed and not judged."""
    seconds, unknown = Counter[int](), Counter[int]()
    for unit in (each for each in world.units if each.onset is None):
        for name in unit.nodes:
            track = timeline.track("nodes", name)
            for second in range(world.scale.warm_up, world.scale.total):
                seconds[len(unit.measures)] += 1
                unknown[len(unit.measures)] += track.value(clock.at(second)) == "unknown"
    rows = [
        TableRow(cells=[str(count), str(seconds[count]), f"{unknown[count] / seconds[count]:.3f}"])
        for count in sorted(seconds)
    ]
    return ReportTable(
        title="Nodes with which nothing is wrong, shown as unknown",
        columns=["measures sent", "node seconds", "share"],
        rows=rows,
    )
