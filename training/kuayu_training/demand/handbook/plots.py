"""Small SVG drawings: lines over a logarithmic or plain axis, and stacked bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 80, 170, 40, 60
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df", "#bf8700", "#0a7b83", "#953800", "#57606a", "#cf222e", "#6e7781")


@dataclass(frozen=True)
class Axis:
    """An axis.

    Attributes:
        title: What it shows, with its unit.
        low: Its beginning.
        high: Its end.
        logarithmic: Equal ratios are equally long.
    """

    title: str
    low: float
    high: float
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Where a value lies, from 0 at the beginning to 1 at the end."""
        if self.logarithmic:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values, or powers of ten."""
        if self.logarithmic:
            first, last = ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9)
            return [10.0**power for power in range(first, last + 1)]
        span = (self.high - self.low) / 5
        size = 10.0 ** floor(log10(span))
        step = next(size * times for times in (1, 2, 5, 10) if size * times >= span)
        return [step * place for place in range(ceil(self.low / step), floor(self.high / step) + 1)]


def over(title: str, values: Sequence[float], *, logarithmic: bool = False) -> Axis:
    """An axis that holds all values; a plain one begins at 0."""
    low, high = min(values), max(values)
    if logarithmic:
        return Axis(title, 10 ** floor(log10(low)), 10 ** ceil(log10(high)), logarithmic=True)
    return Axis(title, 0.0, 1.08 * high or 1.0)


def lines(title: str, across: Axis, up: Axis, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Lines with a dot at every point."""
    drawn = []
    for place, (name, points) in enumerate(series.items()):
        colour = COLOURS[place % len(COLOURS)]
        spots = [(_x(across.share(x)), _y(up.share(y))) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        drawn.append(_legend(place, name, colour))
    return _framed(title, [*_ticks_across(across), *_ticks_up(up), *drawn], across.title, up.title)


def steps(title: str, across: Axis, up: Axis, series: Mapping[str, Sequence[tuple[float, float, float]]]) -> str:
    """Functions that are constant between a beginning and an end: (begins, ends, value)."""
    drawn = []
    for place, (name, parts) in enumerate(series.items()):
        colour = COLOURS[place % len(COLOURS)]
        path = " ".join(f"{_x(across.share(x)):.1f},{_y(up.share(y)):.1f}" for a, b, y in parts for x in (a, b))
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn.append(_legend(place, name, colour))
    return _framed(title, [*_ticks_across(across), *_ticks_up(up), *drawn], across.title, up.title)


def bars(title: str, up: Axis, parts: Sequence[str], stacks: Mapping[str, Sequence[float]], line: float = 0.0) -> str:
    """Stacked bars, with a line across where asked for."""
    drawn, slot = [], (WIDTH - LEFT - RIGHT) / len(stacks)
    for place, (name, values) in enumerate(stacks.items()):
        base, left = 0.0, LEFT + slot * (place + 0.15)
        for part, value in enumerate(values):
            top, bottom = _y(up.share(base + value)), _y(up.share(base))
            colour = COLOURS[part % len(COLOURS)]
            drawn.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{0.7 * slot:.1f}" height="{max(0.0, bottom - top):.1f}" '
                f'fill="{colour}"/>'
            )
            base += value
        drawn.append(_text(left + 0.35 * slot, HEIGHT - BOTTOM + 18, name, "middle"))
    drawn += [_legend(place, part, COLOURS[place % len(COLOURS)]) for place, part in enumerate(parts)]
    if line:
        y = _y(up.share(line))
        drawn.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#24292f" '
            'stroke-dasharray="6 4"/>'
        )
    return _framed(title, [*_ticks_up(up), *drawn], "", up.title)


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    safe = text.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{safe}</text>'


def _legend(place: int, name: str, colour: str) -> str:
    y = TOP + 12 + 20 * place
    swatch = f'<rect x="{WIDTH - RIGHT + 14}" y="{y - 9}" width="12" height="10" fill="{colour}"/>'
    return swatch + _text(WIDTH - RIGHT + 32, y, name)


def _label(value: float) -> str:
    return f"{value:.0e}".replace("e+0", "e") if value >= 1e5 else f"{value:g}"


def _ticks_across(axis: Axis) -> list[str]:
    return [_text(_x(axis.share(tick)), HEIGHT - BOTTOM + 18, _label(tick), "middle") for tick in axis.ticks()]


def _ticks_up(axis: Axis) -> list[str]:
    elements = []
    for tick in axis.ticks():
        y = _y(axis.share(tick))
        elements.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d0d7de"/>')
        elements.append(_text(LEFT - 8, y + 4, _label(tick), "end"))
    return elements


def _framed(title: str, drawn: Sequence[str], across: str, up: str) -> str:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    label = _text(0, 0, up, "middle")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" role="img"><rect width="100%" height="100%" fill="#ffffff"/>'
        f'<g font-size="14" font-weight="bold">{_text(LEFT, 22, title)}</g>'
        f'<line x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#57606a"/>'
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}" stroke="#57606a"/>'
        + "\n".join(drawn)
        + _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, across, "middle")
        + f'<g transform="translate(16 {middle:.0f}) rotate(-90)">{label}</g></svg>\n'
    )
