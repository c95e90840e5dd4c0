"""An axis that shows what matters: figures, threshold and aim, and no more of the number line than it takes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from kuayu_conformance.rendering.figures import Unit

_MIN_SIZE, _MAX_SIZE = 1e-100, 1e100  # sizes beyond any quantity, where differences and ratios may overflow
_LOGARITHMIC_FROM = 30.0  # ratio of the greatest to the least figure
_MARGIN = 0.12  # room beside the outermost figures, as a share of their span
_FINEST = 1e-9  # least room, as a share of the figures themselves
_TICKS = 5
_MOST_LOGARITHMIC = 8  # ticks on a logarithmic axis of one, two and five to a decade
_LEAST_LOGARITHMIC = 4  # with fewer, the stretch is so short that equal steps serve it better
_STEPS = (1.0, 2.0, 5.0, 10.0)
_ROUND_TIMES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36000.0, 86400.0, 864000.0)


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the axis: its place in per cent of the width, and its label."""

    place: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A stretch of the number line, linear or logarithmic.

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
            return cls(*_ratios(low, high), logarithmic=False, unit=unit)
        if low > 0 and high / low >= _LOGARITHMIC_FROM:
            return cls(low / 2, high * 2, logarithmic=True, unit=unit)
        return cls(*_linear(low, high), logarithmic=False, unit=unit)

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
        if len(inside) < _LEAST_LOGARITHMIC:
            return tuple(self._round_sums()[1])
        if len(inside) <= _MOST_LOGARITHMIC:
            return tuple(inside)
        stride = math.ceil((last - first) / _MOST_LOGARITHMIC)
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


def _ratios(low: float, high: float) -> tuple[float, float]:
    """Ends of an axis of fractions: from zero, to one, or both, by which of them the figures are near."""
    if low > 0.5:  # noqa: PLR2004 - nearer to one
        return low - max(1.0 - low, _FINEST) * 2 * _MARGIN, 1.0
    if high < 0.5:  # noqa: PLR2004 - nearer to zero
        return 0.0, max(high, _FINEST) * (1 + 2 * _MARGIN)
    return 0.0, 1.0


def _linear(low: float, high: float) -> tuple[float, float]:
    span = high - low or abs(high) or 1.0
    margin = max(span * _MARGIN, abs(high) * _FINEST)
    starts_at_nought = 0 <= low < span
    return (0.0 if starts_at_nought else low - margin), high + margin


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return min((step * power for step in _STEPS), key=lambda step: abs(math.log(step / rough)))
