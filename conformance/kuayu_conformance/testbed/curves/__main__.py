"""``python -m kuayu_conformance.testbed.curves OUT.svg``: training curves with their phases, drawn.

The loss stands on bands of the labelled phases, the learning rate beneath it.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import numpy as np

from kuayu_conformance.rendering.chart import Axis
from kuayu_conformance.rendering.figures import Unit
from kuayu_conformance.testbed.curves import FAST, STABLE, WARM_UP, Curve, Floats, curve, real_curves, settled, switches

COLOURS = {WARM_UP: "#f3d9a4", FAST: "#bfe0d8", STABLE: "#d5dce2"}
_NAMES = {WARM_UP: "warm-up", FAST: "fast convergence", STABLE: "stable convergence"}
_COLUMNS, _WIDTH, _HEIGHT = 3, 300, 150
_LEFT, _TOP, _ROW, _COLUMN = 44, 60, 210, 350
_MAX_POINTS = 400
"""Points of a line; more of them are the same picture."""

GENERATED = 9


def labelled(curves: Sequence[Curve]) -> str:
    """A panel for each curve, as SVG."""
    rows = -(-len(curves) // _COLUMNS)
    width, height = _LEFT + _COLUMNS * _COLUMN, _TOP + rows * _ROW
    parts = [_text(_LEFT, 22, "Training curves with their phases as the standard defines them", size=15)]
    parts += _legend()
    for number, drawn in enumerate(curves):
        row, column = divmod(number, _COLUMNS)
        parts += _panel(drawn, _LEFT + column * _COLUMN, _TOP + 20 + row * _ROW)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="10" role="img"><title>Training curves with their phases</title>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _legend() -> Iterator[str]:
    x = float(_LEFT)
    for phase, colour in COLOURS.items():
        yield f'<rect x="{x}" y="33" width="12" height="12" fill="{colour}"/>{_text(x + 17, 43, _NAMES[phase])}'
        x += 130
    for words, colour in (("loss", "#1f4e79"), ("learning rate", "#b8321f")):
        yield f'<path d="M{x} 39h16" stroke="{colour}" stroke-width="1.5"/>{_text(x + 21, 43, words)}'
        x += 90
    yield _text(x, 43, "left of the dashed line the end of the run plays no part")


def _panel(curve: Curve, left: int, top: int) -> Iterator[str]:
    last, truth = float(curve.steps[-1]), switches(curve)
    begins = [0 if truth.fast is None else truth.fast, truth.stable]
    ends = [0.0, *(last if place is None else float(curve.steps[place]) for place in begins), last]
    if truth.fast is None:
        ends = [0.0, last, last, last]
    across = Axis(0.0, last, logarithmic=False, unit=Unit("1"))
    for phase, begin, end in zip((WARM_UP, FAST, STABLE), ends[:-1], ends[1:], strict=True):
        x, wide = left + across.place(begin) * _WIDTH / 100, (across.place(end) - across.place(begin)) * _WIDTH / 100
        yield f'<rect x="{x:.1f}" y="{top}" width="{wide:.1f}" height="{_HEIGHT}" fill="{COLOURS[phase]}"/>'
    high = float(np.quantile(curve.losses[len(curve.losses) // 50 :], 0.995)) * 1.05
    low = float(curve.losses.min()) * 0.95
    up = Axis(low, high, logarithmic=False, unit=Unit("1"))
    for figure in up.round_figures():
        y = top + _HEIGHT * (1 - up.place(figure) / 100)
        yield _text(left - 4, y + 3, f"{figure:g}", anchor="end")
    for figure in across.round_figures()[1:]:
        yield _text(left + across.place(figure) * _WIDTH / 100, top + _HEIGHT + 12, f"{figure:g}", anchor="middle")
    beneath = Axis(0.0, float(curve.rates.max()) * 3.0, logarithmic=False, unit=Unit("1"))
    yield _path(curve, curve.rates, (across, beneath), (left, top), "#b8321f")
    yield _path(curve, curve.losses, (across, up), (left, top), "#1f4e79")
    known = left + across.place(float(curve.steps[max(0, settled(curve.steps) - 1)])) * _WIDTH / 100
    yield f'<path d="M{known:.1f} {top}v{_HEIGHT}" stroke="#555" stroke-dasharray="3 3"/>'
    yield _text(left, top - 5, f"{escape(curve.source)}: {escape(curve.name)}"[:64])


def _path(curve: Curve, values: Floats, axes: tuple[Axis, Axis], corner: tuple[int, int], colour: str) -> str:
    (across, up), (left, top) = axes, corner
    every = -(-len(values) // _MAX_POINTS)
    points = [
        f"{left + across.place(step) * _WIDTH / 100:.1f} {top + _HEIGHT * (1 - up.place(value) / 100):.1f}"
        for step, value in zip(curve.steps[::every].tolist(), values[::every].tolist(), strict=True)
    ]
    return f'<path d="M{"L".join(points)}" fill="none" stroke="{colour}" stroke-width="1"/>'


def _text(x: float, y: float, words: str, *, size: int = 10, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{words}</text>'


def main(arguments: list[str]) -> int:
    """Draw made-up curves, and of real ones the longest of each source where their folder is named."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_conformance.testbed.curves", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT.svg", help="file for the drawing")
    parser.add_argument("--seed", default="curves", help="what made-up curves follow from")
    parser.add_argument("--data", type=Path, default=os.environ.get("KUAYU_DATA"), help="folder of public originals")
    options = parser.parse_args(arguments)
    drawn = [curve(options.seed, number) for number in range(GENERATED)]
    if options.data:
        drawn += _longest(real_curves(Path(options.data)))
    options.out.write_text(labelled(drawn), "utf-8")
    return 0


def _longest(curves: tuple[Curve, ...]) -> list[Curve]:
    """Of each source the run with most steps."""
    by_source: dict[str, Curve] = {}
    for run in curves:
        longest = by_source.setdefault(run.source, run)
        if run.steps[-1] > longest.steps[-1]:
            by_source[run.source] = run
    return list(by_source.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
