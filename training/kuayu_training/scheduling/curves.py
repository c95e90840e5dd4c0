"""How training went, seed by seed: as JSON, and drawn."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kuayu_training.scheduling.comparison import PolicyComparison
    from kuayu_training.scheduling.learning import TrainingRun

CURVES, DRAWING = "learning-curves.json", "learning-curves.svg"
WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 50, 50
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df", "#bf8700", "#0a7b83", "#953800", "#57606a")


def document(
    learned: "Sequence[TrainingRun]",
    chosen: int,
    compared: "Sequence[PolicyComparison]",
    settings: dict[str, Any],
    *,
    ships: bool,
) -> dict[str, Any]:
    """What is written down of a training.

    Args:
        learned: What became of each seed.
        chosen: The one that was best where it was looked at.
        compared: That one beside the rule and baselines, by kind of window.
        settings: By which it was done.
        ships: Whether it ships as the default.
    """
    return {
        "command": "python -m kuayu_training scheduler",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "settings": settings,
        "chosen": chosen,
        "ships": ships,
        "seeds": [
            {"seed": run.seed, "decisions": run.decisions, "points": [asdict(point) for point in run.points]}
            for run in learned
        ],
        "compared": [asdict(comparison) for comparison in compared],
    }


def write(curves: dict[str, Any], folder: Path) -> list[Path]:
    """Write both; the paths written."""
    paths = [folder / CURVES, folder / DRAWING]
    paths[0].write_text(json.dumps(curves, indent=1) + "\n", "utf-8")
    paths[1].write_text(drawing(curves), "utf-8")
    return paths


def drawing(curves: dict[str, Any]) -> str:
    """An SVG: the objective over steps, a line for each seed, and one across for the rule, which is at zero."""
    seeds = curves["seeds"]
    points = [point for network in seeds for point in network["points"]]
    heights = [0.0, *(point["objective"] for point in points)]
    low, high = min(heights), max(heights)
    margin = 0.08 * (high - low) or 0.01
    low, high, most = low - margin, high + margin, max(point["step"] for point in points) or 1

    def across(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * float(step / most)

    def up(height: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * float((height - low) / (high - low))

    ruled = up(0.0)
    lines = [
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick)}" y2="{up(tick)}" stroke="#d0d7de"/>'
        f'<text x="{LEFT - 8}" y="{up(tick) + 4}" text-anchor="end">{100 * tick:.1f} %</text>'
        for tick in (low + (high - low) * part / 4 for part in range(5))
    ]
    lines += [
        f'<text x="{across(most * part / 4)}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
        f"{most * part / 4 / 1000:.0f} k</text>"
        for part in range(5)
    ]
    lines.append(
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{ruled}" y2="{ruled}" stroke="#57606a" stroke-dasharray="6 4"/>'
        f'<text x="{WIDTH - RIGHT + 8}" y="{ruled + 4}">the rule</text>'
    )
    for place, network in enumerate(seeds):
        colour = COLOURS[place % len(COLOURS)]
        path = " ".join(f"{across(point['step'])},{up(point['objective'])}" for point in network["points"])
        width = 3 if network["seed"] == curves["chosen"] else 1.5
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        mark = " (chosen)" if network["seed"] == curves["chosen"] else ""
        lines.append(
            f'<text x="{WIDTH - RIGHT + 8}" y="{TOP + 18 * place + 10}" fill="{colour}">'
            f"seed {network['seed']}{mark}</text>"
        )
    title = "Gain over the rule in whole windows that nobody learned from, by half hours"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}" '
        f'font-family="sans-serif" font-size="12" fill="#57606a"><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
        f'<text x="{LEFT}" y="26" font-size="15">{title}</text>{"".join(lines)}</svg>\n'
    )
