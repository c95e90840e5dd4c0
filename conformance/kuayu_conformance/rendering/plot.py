"""A check's plot drawn: points against the line of equality on logarithmic axes, lines over linear ones, or a graph.

1. **Points.** Whatever cannot be drawn is left out and noted, so that nothing goes unsaid.
2. **Symbols.** A shape and a colour tell series apart, so that the shape alone is enough. A point is a stroke of next
   to no length, as thick as the symbol is wide: round ends make a disc, square ones a square, along the diagonal a
   diamond. So all points of a series are one path, and as strokes do not scale with the drawing (``vector-effect``),
   symbols keep their size.
3. **Places.** Text stands at per cent of the drawing, so that it keeps its size on any screen; points and lines are in
   steps of a two-thousandth of its width.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from kuayu_conformance.rendering.chart import Axis, Tick, within_reach
from kuayu_conformance.rendering.figures import Unit, brief, count
from kuayu_conformance.rendering.words import Words
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot

_COLOURS = 6
_SHAPES = ("disc", "square", "diamond", "ring", "frame", "lozenge")
_SLANTED = frozenset({"diamond", "lozenge"})
_HOLLOW = frozenset({"ring", "frame", "lozenge"})

Point = tuple[float, float]

_WIDTH = 2000
_HEIGHTS = {PlotKind.agreement: _WIDTH, PlotKind.lines: 1500, PlotKind.graph: _WIDTH}
_BAND = 0.1  # distance from equality that is shaded, as a share of what was measured
_OUTER = 1.25  # factor beyond the outermost points on a logarithmic axis
_HEADROOM = 1.06  # factor beyond the highest point of a line
_CROWD = 250  # points beyond which symbols are small
_MAX_MARKED = 60  # points of a line that are marked one by one
_LINKS = "links"  # series of a graph whose points are ends of lines, two by two
_MARGIN = 0.03  # of a graph's extent, on each side


@dataclass(frozen=True, slots=True)
class Symbol:
    """Shape and colour of a series' points, by the names of their classes in the style sheet.

    Attributes:
        shape: Name of the shape.
        colour: Name of the colour.
    """

    shape: str
    colour: str

    @property
    def hollow(self) -> bool:
        """Whether the shape is drawn twice, the second time in the colour of the paper."""
        return self.shape in _HOLLOW

    def path(self, places: Iterable[tuple[int, int]]) -> str:
        """The points at some places of the drawing, as the data of one SVG path."""
        nib = "l1 1" if self.shape in _SLANTED else "h.1"
        return "".join(f"M{x} {y}{nib}" for x, y in places)


def symbol(number: int) -> Symbol:
    """The symbol of a series by its number; the first six differ in both, the first 36 in either."""
    shape = (number + number // _COLOURS) % len(_SHAPES)
    return Symbol(_SHAPES[shape], f"colour-{number % _COLOURS}")


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
        f"{_points_said(n)} left out: logarithmic axes have no place for nought or less.",
        f"{count(n)} 个点含零或负值，对数坐标无法表示，未绘出。",
    )


def _out_of_reach_noted(n: int) -> Words:
    return Words(
        f"{_points_said(n)} left out: a figure is too large or too small to be drawn.",
        f"{count(n)} 个点数值过大或过小，无法绘出。",
    )


def _points_said(n: int) -> str:
    return f"{count(n)} point{'' if n == 1 else 's'}"


_SIZE = (_out_of_reach, _out_of_reach_noted)
_HINDRANCES: dict[PlotKind, tuple[tuple[Callable[[Point], bool], Callable[[int], Words]], ...]] = {
    PlotKind.agreement: ((_not_positive, _not_positive_noted), _SIZE),
    PlotKind.lines: (_SIZE,),
    PlotKind.graph: (_SIZE,),
}


@dataclass(frozen=True, slots=True)
class Series:
    """Points that belong together.

    Attributes:
        label: What they are.
        symbol: How they look.
        n: How many are drawn.
        dots: SVG path of the points; empty where a line has too many to mark each.
        line: SVG path of the line through them, in their order; empty where there is none.
        said: Where a line begins and ends, in words; None where there is no line.
    """

    label: str
    symbol: Symbol
    n: int
    dots: str
    line: str
    said: Words | None


@dataclass(frozen=True, slots=True)
class Field:
    """Where points are drawn, 2000 steps wide.

    Attributes:
        across: Axis from left to right.
        up: Axis from bottom to top.
        height: Height in steps.
        bare: Whether the axes are not drawn, since figures along them mean nothing.
    """

    across: Axis
    up: Axis
    height: int
    bare: bool = False

    @classmethod
    def of_ratios(cls, points: Sequence[Point]) -> Self:
        """The same logarithmic axis twice."""
        figures = [figure for point in points for figure in point]
        axis = Axis(min(figures) / _OUTER, max(figures) * _OUTER, logarithmic=True, unit=Unit("1"))
        return cls(axis, axis, _HEIGHTS[PlotKind.agreement])

    @classmethod
    def from_zero(cls, points: Sequence[Point]) -> Self:
        """Linear axes that hold zero."""
        across, up = zip(*points, strict=True)
        return cls(_from_zero(across), _from_zero(up, _HEADROOM), _HEIGHTS[PlotKind.lines])

    @classmethod
    def of_graph(cls, points: Sequence[Point]) -> Self:
        """A square in which all points have room, of one scale across and up."""
        across, up = zip(*points, strict=True)
        middles = [(min(figures) + max(figures)) / 2 for figures in (across, up)]
        extent = max(max(across) - min(across), max(up) - min(up), *(abs(m) * 1e-6 for m in middles))
        half = (extent or 1.0) * (0.5 + _MARGIN)
        axes = [Axis(m - half, m + half, logarithmic=False, unit=Unit("1")) for m in middles]
        return cls(axes[0], axes[1], _HEIGHTS[PlotKind.graph], bare=True)

    @property
    def x_ticks(self) -> tuple[Tick, ...]:
        """Round figures across, per cent from the left."""
        if self.bare:
            return ()
        return tuple(Tick(self.across.place(figure), brief(figure, 6)) for figure in self.across.round_figures())

    @property
    def y_ticks(self) -> tuple[Tick, ...]:
        """Round figures up, per cent from the top."""
        if self.bare:
            return ()
        return tuple(
            Tick(round(100 - self.up.place(figure), 2), brief(figure, 6)) for figure in self.up.round_figures()
        )

    def place(self, point: Point) -> tuple[int, int]:
        """Where a point stands, in steps from the left and from the top."""
        across, up = self.across.place(point[0]) / 100, self.up.place(point[1]) / 100
        return round(across * _WIDTH), round((1 - up) * self.height)

    @property
    def band(self) -> str:
        """SVG path of the band about equality, cut off at the edges; empty but on logarithmic axes."""
        if not self.across.logarithmic:
            return ""
        span = math.log(self.across.high / self.across.low)
        above = round(math.log(1 + _BAND) / span * _WIDTH)
        below = round(-math.log(1 - _BAND) / span * _WIDTH)
        return f"M0 {_WIDTH}V{_WIDTH - above}L{_WIDTH - above} 0H{_WIDTH}V{below}L{below} {_WIDTH}z"


@dataclass(frozen=True, slots=True)
class Plot:
    """What is drawn.

    Attributes:
        title: What it shows.
        kind: Its kind, as a class of the style sheet.
        x_label: What runs across.
        y_label: What runs up.
        field: Where it is drawn; None where there is nothing to draw, and the notes say why.
        crowded: Whether points are so many that symbols are better small.
        series: What is drawn in it.
        said: What the drawing shows beyond its series, in words; None where that is all.
        notes: What was left out.
    """

    title: str
    kind: str
    x_label: str
    y_label: str
    field: Field | None
    crowded: bool
    series: tuple[Series, ...]
    said: Words | None
    notes: tuple[Note, ...]


def plots(drawings: Sequence[ReportPlot]) -> tuple[Plot, ...]:
    """What is drawn of a requirement's plots; a label has the same symbol in all of them."""
    numbers: dict[str, int] = {}
    for drawing in drawings:
        labels = dict.fromkeys(series.label for series in drawing.series)
        taken = {numbers[label] for label in labels if label in numbers}
        free = (number for number in range(len(labels)) if number not in taken)
        numbers |= {label: next(free) for label in labels if label not in numbers}
    symbols = {label: symbol(number) for label, number in numbers.items()}
    return tuple(_plot(drawing, symbols) for drawing in drawings)


def _plot(drawing: ReportPlot, symbols: Mapping[str, Symbol]) -> Plot:
    gathered = gather(drawing)
    points, ratios = gathered.points, drawing.kind is PlotKind.agreement
    field = _FIELDS[drawing.kind](points) if points else None
    draw = _DRAWN[drawing.kind]
    return Plot(
        title=drawing.title,
        kind=drawing.kind.value,
        x_label=drawing.x_label,
        y_label=drawing.y_label,
        field=field,
        crowded=len(points) > _CROWD,
        series=tuple(draw(field, symbols[label], label, entry) for label, entry in gathered.series) if field else (),
        said=_agreement(points) if points and ratios else None,
        notes=gathered.notes,
    )


def _scatter(field: Field, look: Symbol, label: str, points: Sequence[Point]) -> Series:
    """Points alone; those that fall on the same place are drawn once."""
    dots = look.path(dict.fromkeys(map(field.place, points)))
    return Series(label, look, len(points), dots, line="", said=None)


def _line(field: Field, look: Symbol, label: str, points: Sequence[Point]) -> Series:
    """A line through points, which are marked where they are few."""
    places = [field.place(point) for point in points]
    dots = look.path(places) if len(points) <= _MAX_MARKED else ""
    line = "M" + "L".join(f"{x} {y}" for x, y in places)
    first, last = ([brief(figure) for figure in point] for point in (points[0], points[-1]))
    said = Words(
        f"from {first[1]} at {first[0]} to {last[1]} at {last[0]}",
        f"横坐标 {first[0]} 处为 {first[1]}，{last[0]} 处为 {last[1]}",
    )
    return Series(label, look, len(points), dots, line, said)


def _vertices(field: Field, look: Symbol, label: str, points: Sequence[Point]) -> Series:
    """Vertices of a graph, or, in the series of links, lines between every two points."""
    if label != _LINKS:
        return _scatter(field, look, label, points)
    ends = [field.place(point) for point in points]
    pairs = list(zip(ends[::2], ends[1::2], strict=False))
    line = "".join(f"M{a} {b}L{c} {d}" for (a, b), (c, d) in pairs)
    return Series(label, look, len(pairs), "", line, Words(f"{count(len(pairs))} lines", f"{count(len(pairs))} 条连线"))


def _from_zero(figures: Sequence[float], headroom: float = 1.0) -> Axis:
    shown = [0.0, *figures]
    low, high = min(shown), max(shown) * headroom
    whole = all(figure.is_integer() for figure in shown)
    return Axis(low, high if high > low else low + 1.0, logarithmic=False, unit=Unit("1", whole=whole))


_FIELDS = {
    PlotKind.agreement: Field.of_ratios,
    PlotKind.lines: Field.from_zero,
    PlotKind.graph: Field.of_graph,
}
_DRAWN = {PlotKind.agreement: _scatter, PlotKind.lines: _line, PlotKind.graph: _vertices}


def _agreement(points: Sequence[Point]) -> Words:
    n, within = count(len(points)), count(sum(abs(up / across - 1) <= _BAND for across, up in points))
    return Words(
        f"{within} of {n} points lie within ±10\u202f% of equality. Both axes are logarithmic.",
        f"{n} 个点中有 {within} 个的纵横坐标之差在 ±10\u202f% 以内。两轴均为对数坐标。",
    )
