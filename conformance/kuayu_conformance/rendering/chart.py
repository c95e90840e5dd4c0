"""A figure drawn: estimate, bound, threshold and aim on one axis, the parts in rows beneath.

Places are per cent of the width, so that text keeps its size on any screen.
"""

from dataclasses import dataclass
from typing import Literal

from kuayu_conformance.rendering.axis import Axis, Tick
from kuayu_conformance.rendering.figures import Unit, unit_of
from kuayu_schemas.models import Comparison, Part, RequirementResult, Threshold

Anchor = Literal["start", "middle", "end"]
Standing = Literal["good", "open", "bad"]

_NEAR_EDGE = 22.0  # per cent of the width that half a label may need


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across all rows: its place, its label and how the label hangs on it."""

    place: float
    label: str
    anchor: Anchor


@dataclass(frozen=True, slots=True)
class Row:
    """One figure with its bound.

    Attributes:
        label: Name of the part; empty for the whole.
        estimate: Place of the dot.
        bound: Place of the whisker's end; None where there is no bound apart from the estimate.
        standing: Whether the bound lies on the right side of the threshold, the estimate alone, or neither.
        text: Estimate in words.
        bound_text: Bound in words, empty where there is none.
        n: Observations; zero where they are not stated.
    """

    label: str
    estimate: float
    bound: float | None
    standing: Standing
    text: str
    bound_text: str
    n: int


@dataclass(frozen=True, slots=True)
class Chart:
    """What is drawn; shading runs from ``shade_from`` over ``shade_width``, the side where figures are right."""

    rows: tuple[Row, ...]
    threshold: Mark
    aim: Mark | None
    shade_from: float
    shade_width: float
    ticks: tuple[Tick, ...]
    logarithmic: bool


def figure_unit(result: RequirementResult) -> Unit:
    """Unit of a result's figures."""
    limits = [limit.value for limit in (result.threshold, result.aim) if limit is not None]
    code = result.threshold.unit if result.threshold else result.unit or "1"
    return unit_of(code, [*limits, *_figures(result)])


def chart(result: RequirementResult) -> Chart | None:
    """Drawing of a result; None where it has no figure and threshold, or they cannot be drawn."""
    threshold, aim = result.threshold, result.aim
    if result.estimate is None or threshold is None:
        return None
    unit = figure_unit(result)
    axis = Axis.over([threshold.value, *([aim.value] if aim else []), *_figures(result)], unit)
    if axis is None:
        return None
    whole = Part(label="", estimate=result.estimate, bound=result.bound, n=result.n or 0)
    position = axis.place(threshold.value)
    at_least = threshold.comparison is Comparison.at_least
    return Chart(
        rows=tuple(_row(axis, threshold, part) for part in (whole, *result.parts)),
        threshold=_mark(axis, threshold),
        aim=_mark(axis, aim) if aim else None,
        shade_from=position if at_least else 0.0,
        shade_width=round(100 - position if at_least else position, 2),
        ticks=axis.ticks(),
        logarithmic=axis.logarithmic,
    )


def _figures(result: RequirementResult) -> list[float]:
    pairs = [(result.estimate, result.bound), *((part.estimate, part.bound) for part in result.parts)]
    return [figure for pair in pairs for figure in pair if figure is not None]


def _row(axis: Axis, threshold: Threshold, part: Part) -> Row:
    bound = None if part.bound == part.estimate else part.bound
    family = [threshold.value, part.estimate, part.estimate if bound is None else bound]
    return Row(
        label=part.label,
        estimate=axis.place(part.estimate),
        bound=None if bound is None else axis.place(bound),
        standing=_standing(threshold, part.estimate, part.estimate if bound is None else bound),
        text=axis.unit.text(part.estimate, apart_from=family),
        bound_text="" if bound is None else axis.unit.text(bound, apart_from=family),
        n=part.n,
    )


def _standing(threshold: Threshold, estimate: float, bound: float) -> Standing:
    right, least = threshold.value, threshold.comparison is Comparison.at_least
    if bound >= right if least else bound <= right:
        return "good"
    return "open" if (estimate >= right if least else estimate <= right) else "bad"


def _mark(axis: Axis, limit: Threshold) -> Mark:
    place = axis.place(limit.value)
    anchor: Anchor = "start" if place < _NEAR_EDGE else "end" if place > 100 - _NEAR_EDGE else "middle"
    return Mark(place, axis.unit.text(limit.value), anchor)
