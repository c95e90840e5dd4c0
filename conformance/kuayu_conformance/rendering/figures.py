"""Figures for people: units scaled, and as many digits as it takes to tell a figure from its threshold."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

_NARROW = "\u202f"  # narrow no-break space, between groups of digits and before units (SI brochure, 5.4.3 and 5.4.4)
_SIGNIFICANT = 3
_MOST_SIGNIFICANT = 15  # a double holds no more
_EXPONENT_FROM = 1e15
_BRIEF_FROM, _BRIEF_TO = 1e-4, 1e6  # sizes that are written without a power of ten where there is little room
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_TIMES = ((86400.0, "d", 172800.0), (3600.0, "h", 7200.0), (60.0, "min", 120.0), (1.0, "s", 1.0))
_SMALL_TIMES = ((1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_PREFIXED = {"By": "B", "By/s": "B/s", "bit/s": "bit/s", "{FLOP}/s": "FLOP/s", "{flop}/s": "FLOP/s", "Hz": "Hz"}


@dataclass(frozen=True, slots=True)
class Scaling:
    """How a wire value is shown: divided by ``divisor``, followed by ``symbol``."""

    divisor: float
    symbol: str

    def text(self, value: float, significant: int = _SIGNIFICANT) -> str:
        """The value with a number of significant digits; whole numbers keep all of theirs."""
        return self._suffixed(_digits(value / self.divisor, significant))

    def fixed(self, value: float, decimals: int) -> str:
        """The value with a number of decimals."""
        return self._suffixed(_grouped(f"{value / self.divisor:.{decimals}f}"))

    def _suffixed(self, number: str) -> str:
        return f"{number}{_NARROW}{self.symbol}" if self.symbol else number


@dataclass(frozen=True, slots=True)
class Unit:
    """A UCUM unit and how figures in it are shown.

    Attributes:
        code: UCUM code.
        ratio: Whether figures are fractions of one and shown as percentages.
        whole: Whether figures are whole numbers of things.
    """

    code: str
    ratio: bool = False
    whole: bool = False

    def scaling(self, value: float) -> Scaling:
        """The scaling that suits a figure of this size."""
        size = abs(value)
        if self.ratio:
            return Scaling(0.01, "%")
        if self.code == "s":
            return _time_scaling(size)
        if self.code in _PREFIXED:
            return _prefix_scaling(size, _PREFIXED[self.code])
        return Scaling(1.0, _symbol(self.code))

    def text(self, value: float, *, apart_from: Iterable[float] = ()) -> str:
        """A figure with its unit, in digits enough to differ from every other figure that it differs from.

        Rounding keeps order, so figures that look different stand on the side of each other that is shown.
        """
        scaling = self.scaling(value)
        others = [other for other in (*apart_from, *((1.0,) if self.ratio else ())) if other != value]
        for significant in range(_SIGNIFICANT, _MOST_SIGNIFICANT + 1):
            text = scaling.text(value, significant)
            if all(text != scaling.text(other, significant) for other in others):
                return text
        return scaling.text(value, _MOST_SIGNIFICANT)


def unit_of(code: str, figures: Iterable[float]) -> Unit:
    """Unit for a family of figures; dimensionless ones between zero and one are ratios."""
    family = list(figures)
    return Unit(
        code,
        ratio=code == "1" and all(0 <= figure <= 1 for figure in family),
        whole=code.startswith("{") and all(figure.is_integer() for figure in family),
    )


def count(number: int) -> str:
    """A whole number, digits in groups."""
    return _grouped(str(number))


def brief(figure: float, significant: int = _SIGNIFICANT) -> str:
    """A pure number where there is little room: ``0.05``, ``20 000``, ``2·10⁻⁷``."""
    mantissa, _, exponent = f"{figure:.{significant - 1}e}".partition("e")
    rounded = float(f"{mantissa}e{exponent}")
    if rounded == 0 or _BRIEF_FROM <= abs(rounded) < _BRIEF_TO:
        return _grouped(f"{rounded:.{significant + 4}f}".rstrip("0").rstrip(".")) if rounded else "0"
    power = "10" + str(int(exponent)).translate(_RAISED)
    factor = _grouped(mantissa.rstrip("0").rstrip("."))
    return factor[:-1] + power if factor in {"1", "−1"} else f"{factor}·{power}"


def length_of_time(seconds: float) -> str:
    """A length of time as a clock would tell it: ``2 min 14 s``."""
    if seconds < 60:  # noqa: PLR2004 - a minute
        return Unit("s").text(round(seconds, 3))
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    shown = ((hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join(f"{number}{_NARROW}{symbol}" for number, symbol in shown if number)


def _time_scaling(size: float) -> Scaling:
    for divisor, symbol, begins in _TIMES:
        if size >= begins:
            return Scaling(divisor, symbol)
    for divisor, symbol in _SMALL_TIMES:
        if size >= divisor:
            return Scaling(divisor, symbol)
    return Scaling(1.0, "s")


def _prefix_scaling(size: float, symbol: str) -> Scaling:
    for divisor, prefix in _PREFIXES:
        if size >= divisor:
            return Scaling(divisor, prefix + symbol)
    return Scaling(1.0, symbol)


def _symbol(code: str) -> str:
    """UCUM code without its annotations in braces, which title and text say better and in the reader's language."""
    outside, depth = "", 0
    for character in code:
        depth += (character == "{") - (character == "}")
        outside += character if depth == 0 and character != "}" else ""
    return "" if outside == "1" else outside


def _digits(number: float, significant: int) -> str:
    size = abs(number)
    if size >= _EXPONENT_FROM:
        return f"{number:.{significant - 1}e}".replace("e+", f"{_NARROW}×{_NARROW}10^")
    if size == 0:
        return "0"
    before = math.floor(math.log10(size)) + 1
    decimals = max(0, significant - before)
    text = f"{number:.{decimals}f}"
    return _grouped(text.rstrip("0").rstrip(".") if "." in text else text)


def _grouped(text: str) -> str:
    sign, unsigned = ("−", text[1:]) if text.startswith("-") else ("", text)
    whole, point, fraction = unsigned.partition(".")
    if len(whole) > 4:  # noqa: PLR2004 - four digits stay together
        head = len(whole) % 3
        groups = [whole[:head]] * bool(head) + [whole[i : i + 3] for i in range(head, len(whole), 3)]
        whole = _NARROW.join(groups)
    return f"{sign}{whole}{point}{fraction}"
