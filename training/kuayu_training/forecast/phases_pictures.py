"""Phases of real curves, drawn: ``python -m kuayu_training.forecast.phases_pictures FOLDER``.

Writes for each model in the public data its run with the most points, whatever it looks like: the loss as a thinned
line, the phases of the definition as bands, and below them a strip of what the recogniser said at steps as it had seen
the run until there. The step and the loss are logarithmic, as the definition takes them. Drawings bear no words, so
that they stand in pages of either language. ``phases.json`` says what they are of. The data, with origin and licence
in the README files beside it, is in the folder that KUAYU_DATA names (default ../shared/data).
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from kuayu.forecast.phases import Floats, boundaries
from kuayu_training.forecast.phases import MEGATRON, PHASES, Curve, answers, public

WIDTH, HEIGHT = 380, 230
LEFT, RIGHT, TOP, BOTTOM = 40, 22, 8, 42
MARGIN = 6
"""Above and below the line."""

STRIP = 10
"""Height of what was said, below the bands."""

LINE = 240
"""Points of a line at most: those next to so many steps of equal ratio."""

ASKED = 90
"""Steps at which it is asked, of equal ratio, the last one among them."""

FILLS = ("#f2dfb4", "#cfe3da", "#dcd6ea")
"""Of the phases, where no style sheet says otherwise."""

TICKS = 4
ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)


def model(curve: Curve) -> str:
    """The model that a run trains, as far as its name tells."""
    if curve.source != MEGATRON:
        return f"mlperf-{curve.source}"
    return curve.name.split("/")[1].split("_")[0]


def longest(curves: Iterable[Curve]) -> dict[str, Curve]:
    """Of each model the run with the most points, the first by name where several have."""
    by_model: dict[str, Curve] = {}
    for curve in sorted(curves, key=lambda candidate: (-len(candidate.steps), candidate.name)):
        by_model.setdefault(model(curve), curve)
    return dict(sorted(by_model.items()))


def drawing(curve: Curve, said: Sequence[tuple[int, int]]) -> str:
    """SVG of a curve.

    Args:
        curve: What is drawn.
        said: Places and the phase that was said there, by its place in PHASES.
    """
    steps, losses = _thinned(curve)
    across = _Scale(steps, LEFT, WIDTH - RIGHT)
    up = _Scale(losses, HEIGHT - BOTTOM - MARGIN, TOP + MARGIN)
    begin, stable = boundaries(curve.steps, curve.losses, curve.rates)
    last = len(curve.steps) - 1
    bounds = [0, min(begin, last), min(stable, last), last]
    places = [place for place, _ in said]
    ends = [*places[1:], last][: len(places)]
    bottom = HEIGHT - BOTTOM
    parts = [
        *_bands([(phase, bounds[phase], bounds[phase + 1]) for phase in range(3)], curve, across, TOP, bottom - TOP),
        *_bands(
            [(phase, place, end) for (place, phase), end in zip(said, ends, strict=True)],
            curve,
            across,
            bottom + 4,
            STRIP,
        ),
        *_ticks(across, up),
    ]
    points = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in zip(steps.tolist(), losses.tolist(), strict=True))
    parts.append(f'<polyline class="loss" fill="none" stroke="#1d2024" stroke-width="1.2" points="{points}"/>')
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">', *parts, "</svg>"])


class _Scale:
    """A logarithmic scale from values to places in the drawing."""

    def __init__(self, values: Floats, begin: float, end: float) -> None:
        """From the least value at ``begin`` to the greatest at ``end``."""
        self.low, self.high = float(values.min()), float(values.max())
        self.begin, self.end = begin, end

    def __call__(self, value: float) -> float:
        """Where a value lies."""
        share = np.log(value / self.low) / (np.log(self.high / self.low) or 1.0)
        return float(self.begin + share * (self.end - self.begin))


def _thinned(curve: Curve) -> tuple[Floats, Floats]:
    places = _spread(curve, LINE)
    return curve.steps[places], curve.losses[places]


def _spread(curve: Curve, count: int) -> list[int]:
    """Places of steps of about equal ratio, the first and the last among them."""
    wanted = np.geomspace(curve.steps[0], curve.steps[-1], count)
    places: list[int] = np.unique(np.searchsorted(curve.steps, wanted * (1 - 1e-12))).tolist()
    return places


def _bands(
    spans: Iterable[tuple[int, int, int]], curve: Curve, across: _Scale, top: float, height: float
) -> Iterator[str]:
    """A box for each phase, from place to place; those that follow each other in one phase are one."""
    joined: list[list[int]] = []
    for phase, begin, end in spans:
        if joined and joined[-1][0] == phase:
            joined[-1][2] = end
        elif end > begin:
            joined.append([phase, begin, end])
    for phase, begin, end in joined:
        left, right = across(float(curve.steps[begin])), across(float(curve.steps[end]))
        yield (
            f'<rect class="phase-{phase + 1}" fill="{FILLS[phase]}" x="{left:.1f}" y="{top:.1f}" '
            f'width="{right - left:.1f}" height="{height:.1f}"/>'
        )


def _ticks(across: _Scale, up: _Scale) -> Iterator[str]:
    for value in 10.0 ** np.arange(np.ceil(np.log10(across.low)), np.floor(np.log10(across.high)) + 1):
        yield _text(across(value), HEIGHT - BOTTOM + STRIP + 20, f"{value:,.0f}".replace(",", "\u202f"), "middle")
    span = (up.high - up.low) / TICKS
    size = 10.0 ** np.floor(np.log10(span))
    step = next(size * times for times in ROUND if size * times >= span)
    for number in range(int(np.ceil(up.low / step)), int(np.floor(up.high / step)) + 1):
        y = up(number * step)
        yield f'<path class="rule" stroke="#bbb" stroke-width="0.6" fill="none" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
        yield _text(LEFT - 5, y + 4, f"{number * step:g}", "end")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text class="small" font-family="sans-serif" font-size="11" x="{x:.1f}" y="{y:.1f}" '
        f'text-anchor="{anchor}">{text}</text>'
    )


def draw(curves: Iterable[Curve], folder: Path) -> list[dict[str, Any]]:
    """Write the drawings and what they are of; the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, curve in track(longest(curves).items(), "curves", console=Console(stderr=True)):
        places = _spread(curve, ASKED)
        said = [PHASES.index(phase["phase"]) for phase in answers(curve, places)]
        bounds = boundaries(curve.steps, curve.losses, curve.rates)
        truth = [int(place >= bounds[0]) + int(place >= bounds[1]) for place in places]
        (folder / f"phases-{name}.svg").write_text(
            drawing(curve, list(zip(places, said, strict=True))) + "\n", encoding="utf-8"
        )
        begins = [float(curve.steps[place]) if place < len(curve.steps) else None for place in bounds]
        rows.append(
            {
                "model": name,
                "run": curve.name,
                "source": MEGATRON if curve.source == MEGATRON else "mlperf_curves",
                "held out": curve.held_out,
                "points": len(curve.steps),
                "steps": float(curve.steps[-1]),
                "fast from": begins[0],
                "stable from": begins[1],
                "asked": len(places),
                "right": float(np.mean(np.equal(said, truth))),
            }
        )
    (folder / "phases.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return rows


def main() -> int:
    """Write the drawings; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.forecast.phases_pictures", description=__doc__)
    parser.add_argument("folder", type=Path, help="where to write them")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("KUAYU_DATA", "../shared/data")))
    given = parser.parse_args()
    curves = list(public(given.data))
    if not curves:
        sys.stderr.write(f"no curves in {given.data}; set KUAYU_DATA to the folder of the public data\n")
        return 2
    draw(curves, given.folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
