"""Which points of a check's plot can be drawn; whatever cannot is left out and noted, so that nothing goes unsaid."""

from collections.abc import Callable
from dataclasses import dataclass

from kuayu_conformance.rendering.axis import within_reach
from kuayu_conformance.rendering.figures import count
from kuayu_conformance.rendering.words import Words
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Note:
    """What was left out, and why; about the series of a label where there is one."""

    words: Words
    label: str = ""


@dataclass(frozen=True, slots=True)
class PointSeries:
    """Points by series, none of them empty, and notes about the rest."""

    series: tuple[tuple[str, tuple[Point, ...]], ...]
    notes: tuple[Note, ...]

    @property
    def points(self) -> tuple[Point, ...]:
        """All points."""
        return tuple(point for _, points in self.series for point in points)


def gather(drawing: ReportPlot) -> PointSeries:
    """Points that can be drawn: series whose coordinates pair up, figures that the axes of this kind can hold."""
    faults = [fault for series in drawing.series if (fault := _fault(series))]
    paired = [
        (series.label, tuple(zip(series.x, series.y, strict=True)))
        for series in drawing.series
        if len(series.x) == len(series.y)
    ]
    for hindrance, noted in _HINDRANCES[drawing.kind]:
        left_out = sum(hindrance(point) for _, points in paired for point in points)
        faults += [Note(noted(left_out))] if left_out else []
        paired = [(label, tuple(point for point in points if not hindrance(point))) for label, points in paired]
    return PointSeries(tuple((label, points) for label, points in paired if points), tuple(faults))


def _fault(series: PlotSeries) -> Note | None:
    across, up = len(series.x), len(series.y)
    if across != up:
        words = Words(
            f"left out, with {count(across)} across but {count(up)} up",
            f"未绘出：横坐标 {count(across)} 个，纵坐标 {count(up)} 个，数目不等",
        )
        return Note(words, series.label)
    return None if across else Note(Words("no points", "没有数据点"), series.label)


def _not_positive(point: Point) -> bool:
    return min(point) <= 0


def _out_of_reach(point: Point) -> bool:
    return not all(map(within_reach, point))


def _not_positive_noted(n: int) -> Words:
    return Words(
        f"{_points(n)} left out: logarithmic axes have no place for nought or less.",
        f"{count(n)} 个点含零或负值，对数坐标无法表示，未绘出。",
    )


def _out_of_reach_noted(n: int) -> Words:
    return Words(
        f"{_points(n)} left out: a figure is too large or too small to be drawn.",
        f"{count(n)} 个点数值过大或过小，无法绘出。",
    )


def _points(n: int) -> str:
    return f"{count(n)} point{'' if n == 1 else 's'}"


_SIZE = (_out_of_reach, _out_of_reach_noted)
_HINDRANCES: dict[PlotKind, tuple[tuple[Callable[[Point], bool], Callable[[int], Words]], ...]] = {
    PlotKind.agreement: ((_not_positive, _not_positive_noted), _SIZE),
    PlotKind.lines: (_SIZE,),
    PlotKind.graph: (_SIZE,),
}
