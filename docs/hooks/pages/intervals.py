"""A drawing of predictions with their intervals beside what was measured, one row for each task."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import log

WIDTH, LEFT, RIGHT = 760, 190, 40
TOP, STEP = 48, 28
TICKS = (0.1, 0.2, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 10)


@dataclass(frozen=True, slots=True)
class Row:
    """One task.

    Attributes:
        label: Its name.
        measured: What was measured.
        value: What was predicted; the same as what was measured where the task was a probe.
        low: Lower end of the interval.
        high: Upper end of the interval.
        probe: Whether the task was a probe, so that nothing was predicted.
    """

    label: str
    measured: float
    value: float
    low: float
    high: float
    probe: bool

    @property
    def held(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True)
class Scale:
    """A logarithmic axis over the drawing's width."""

    low: float
    high: float

    def at(self, figure: float) -> float:
        """Where a figure stands, from the left."""
        return round(LEFT + (WIDTH - LEFT - RIGHT) * log(figure / self.low) / log(self.high / self.low), 1)


def drawing(rows: Sequence[Row], scalar: float, *, title: str, scalar_label: str) -> str:
    """An SVG: each row has a short thick stroke where it was measured and a dot with its interval where predicted.

    A prediction whose interval holds what was measured is drawn as good, another as bad; a line through all rows stands
    at ``scalar``.
    """
    figures = [scalar, *(figure for row in rows for figure in (row.measured, row.low, row.high))]
    scale = Scale(min(figures) / 1.05, max(figures) * 1.05)
    bottom = TOP + STEP * len(rows) - 8
    line = scale.at(scalar)
    parts = [
        '<div class="drawing">',
        f'<svg viewBox="0 0 {WIDTH} {bottom + 24}" role="img" aria-label="{escape(title, quote=True)}">',
        *(_tick(scale.at(tick), f"{tick:g}", bottom) for tick in TICKS if scale.low <= tick <= scale.high),
        f'<line class="limit" x1="{line}" x2="{line}" y1="26" y2="{bottom}"/>',
        f'<text class="small" x="{line}" y="18" text-anchor="middle">{escape(scalar_label)}</text>',
        *(_row(row, scale, TOP + STEP * number) for number, row in enumerate(rows)),
        "</svg>",
        "</div>",
    ]
    return "\n".join(parts)


def _tick(x: float, label: str, bottom: int) -> str:
    line = f'<line class="rule" x1="{x}" x2="{x}" y1="{TOP - 16}" y2="{bottom}"/>'
    return f'{line}<text class="small" x="{x}" y="{bottom + 16}" text-anchor="middle">{label}</text>'


def _row(row: Row, scale: Scale, y: int) -> str:
    name = f'<text x="0" y="{y + 4}">{escape(row.label)}</text>'
    low, high, value, measured = map(scale.at, (row.low, row.high, row.value, row.measured))
    truth = f'<line class="truth" x1="{measured}" x2="{measured}" y1="{y - 8}" y2="{y + 8}"/>'
    if row.probe:
        return name + truth
    ends = "".join(f'<line x1="{x}" x2="{x}" y1="{y - 5}" y2="{y + 5}" stroke-width="2"/>' for x in (low, high))
    span = f'<line x1="{low}" x2="{high}" y1="{y}" y2="{y}" stroke-width="2"/>'
    dot = f'<circle cx="{value}" cy="{y}" r="5"/>'
    return f'{name}<g class="{"good" if row.held else "bad"}">{span}{ends}{dot}</g>{truth}'
