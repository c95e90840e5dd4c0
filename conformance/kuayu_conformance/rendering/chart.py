"""A figure drawn, and said in a sentence: estimate, bound, threshold and aim on one axis, the parts in rows beneath.

The axis shows what matters, and no more of the number line than that takes. Places are per cent of the width, so that
text keeps its size on any screen.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Self

from kuayu_conformance.rendering.figures import Unit, count, unit_of
from kuayu_conformance.rendering.words import COMPARISONS, Words
from kuayu_schemas.models import Comparison, Part, RequirementResult, Threshold

_MIN_SIZE, _MAX_SIZE = 1e-100, 1e100  # sizes beyond any quantity, where differences and ratios may overflow
_LOGARITHMIC_FROM = 30.0  # ratio of the greatest to the least figure
_MARGIN = 0.12  # room beside the outermost figures, as a share of their span
_FINEST = 1e-9  # least room, as a share of the figures themselves
_TICKS = 5
_MAX_LOGARITHMIC = 8  # ticks on a logarithmic axis of one, two and five to a decade
_MIN_LOGARITHMIC = 4  # with fewer, the axis is so short that equal steps serve it better
_STEPS = (1.0, 2.0, 5.0, 10.0)
_ROUND_TIMES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36000.0, 86400.0, 864000.0)

Anchor = Literal["start", "middle", "end"]
Standing = Literal["good", "open", "bad"]
_NEAR_EDGE = 22.0  # per cent of the width that half a label may need


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the axis: its place in per cent of the width, and its label."""

    place: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A part of the number line, linear or logarithmic.

    Attributes:
        low: Figure at its left end.
        high: Figure at its right end.
        logarithmic: Whether equal distances are equal ratios.
        unit: Unit of the figures.
    """

    low: float
    high: float
    logarithmic: bool
    unit: Unit

    @classmethod
    def over(cls, figures: Iterable[float], unit: Unit) -> Self | None:
        """The axis for some figures; None where they cannot be drawn on one."""
        shown = sorted(figures)
        if not shown or not all(map(within_reach, shown)):
            return None
        low, high = shown[0], shown[-1]
        if unit.ratio:
            return cls(*_ratio_ends(low, high), logarithmic=False, unit=unit)
        if low > 0 and high / low >= _LOGARITHMIC_FROM:
            return cls(low / 2, high * 2, logarithmic=True, unit=unit)
        return cls(*_linear_ends(low, high), logarithmic=False, unit=unit)

    def place(self, figure: float) -> float:
        """Where a figure stands, in per cent of the width."""
        if self.logarithmic:
            share = math.log(figure / self.low) / math.log(self.high / self.low) if figure > 0 else 0.0
        else:
            share = (figure - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def ticks(self) -> tuple[Tick, ...]:
        """Round figures along the axis."""
        if self.logarithmic:
            return tuple(Tick(self.place(figure), self.unit.text(figure)) for figure in self._round_ratios())
        scaling = self.unit.scaling(self.high)
        step, figures = self._round_sums(scaling.divisor)
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        return tuple(Tick(self.place(figure), scaling.fixed(figure, decimals)) for figure in figures)

    def round_figures(self) -> tuple[float, ...]:
        """Round figures along the axis: one, two and five to a decade where it is logarithmic and not too long."""
        if not self.logarithmic:
            return tuple(self._round_sums()[1])
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        fine = [step * 10.0**power for power in range(first, last + 1) for step in _STEPS[:-1]]
        inside = [figure for figure in fine if self.low <= figure <= self.high]
        if len(inside) < _MIN_LOGARITHMIC:
            return tuple(self._round_sums()[1])
        if len(inside) <= _MAX_LOGARITHMIC:
            return tuple(inside)
        stride = math.ceil((last - first) / _MAX_LOGARITHMIC)
        decades = (10.0**power for power in range(first, last + 1) if power % stride == 0)
        return tuple(figure for figure in decades if self.low <= figure <= self.high)

    def _round_sums(self, divisor: float = 1.0) -> tuple[float, list[float]]:
        """The step between round figures in equal distances, and the figures; round once divided."""
        low, high = self.low / divisor, self.high / divisor
        step = max(_round_step((high - low) / _TICKS), 1.0 if self.unit.whole else 0.0)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return step, [number * step * divisor for number in range(first, last + 1)]

    def _round_ratios(self) -> list[float]:
        if self.unit.code == "s":
            candidates = list(_ROUND_TIMES)
        else:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            candidates = [10.0**power for power in powers]
        inside = [figure for figure in candidates if self.low <= figure <= self.high]
        return inside[:: math.ceil(len(inside) / (_TICKS + 1)) or 1]


def within_reach(figure: float) -> bool:
    """Whether a figure is of a size that an axis can hold."""
    return figure == 0 or _MIN_SIZE < abs(figure) < _MAX_SIZE


def _ratio_ends(low: float, high: float) -> tuple[float, float]:
    """Ends of an axis of fractions: from zero, to one, or both, by which of them the figures are near."""
    if low > 0.5:  # noqa: PLR2004 - nearer to one
        return low - max(1.0 - low, _FINEST) * 2 * _MARGIN, 1.0
    if high < 0.5:  # noqa: PLR2004 - nearer to zero
        return 0.0, max(high, _FINEST) * (1 + 2 * _MARGIN)
    return 0.0, 1.0


def _linear_ends(low: float, high: float) -> tuple[float, float]:
    span = high - low or abs(high) or 1.0
    margin = max(span * _MARGIN, abs(high) * _FINEST)
    starts_at_zero = 0 <= low < span
    return (0.0 if starts_at_zero else low - margin), high + margin


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return min((step * power for step in _STEPS), key=lambda step: abs(math.log(step / rough)))


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


_Phrase = Callable[[RequirementResult, Chart], Words | None]


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


def sentence(result: RequirementResult, chart: Chart) -> Words:
    """What is said beside the estimate."""
    said = [
        words
        for phrase in (_confidence_said, _required_said, _aim_said, _observations_said)
        if (words := phrase(result, chart))
    ]
    return Words(" ".join(words.en for words in said), "".join(words.zh for words in said))


def _confidence_said(result: RequirementResult, chart: Chart) -> Words:
    bound = chart.rows[0].bound_text
    if not bound or result.threshold is None:
        return Words("found.", "为所得值。")
    side = _side(result.threshold)
    return Words(
        f"found, and {side.en} {bound} with 95\u202f% confidence.",
        f"为估计值，以 95\u202f% 的置信度{side.zh} {bound}。",
    )


def _required_said(result: RequirementResult, chart: Chart) -> Words | None:
    if result.threshold is None:
        return None
    side = _side(result.threshold)
    return Words(f"Required: {side.en} {chart.threshold.label}.", f"要求{side.zh} {chart.threshold.label}。")


def _aim_said(result: RequirementResult, chart: Chart) -> Words | None:
    if result.aim is None or chart.aim is None:
        return None
    side = _side(result.aim)
    reached = {
        True: Words(", reached", "，已达到"),
        False: Words(", not reached", "，未达到"),
        None: Words("", ""),
    }[result.aim_met]
    return Words(f"Aim: {side.en} {chart.aim.label}{reached.en}.", f"目标{side.zh} {chart.aim.label}{reached.zh}。")


def _observations_said(result: RequirementResult, chart: Chart) -> Words | None:  # noqa: ARG001 - one signature for all
    if result.n is None:
        return None
    plural = "" if result.n == 1 else "s"
    return Words(f"From {count(result.n)} observation{plural}.", f"共 {count(result.n)} 次观测。")


def _side(limit: Threshold) -> Words:
    return COMPARISONS[limit.comparison]
