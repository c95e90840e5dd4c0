"""Draws one window of the simulated world under B1 and under B3c: ``python docs/hooks/pages/world_pictures.py``.

Everything follows from the seed below. The drawings bear no words, so that they stand in pages of either language, and
take their colours from the page.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kuayu_conformance.testbed.scheduling.scenarios import Cell, Timing, scenario
from kuayu_conformance.testbed.scheduling.windows import (
    BASELINES,
    Trajectory,
    bars,
    queue,
    recorded,
    traffic,
    utilisation,
)
from kuayu_schemas.models import ReportPlot

FOLDER = Path(__file__).parents[2] / "results/scheduling"
HOUR = 3600.0
SEED = "pictures/1"
CELL = Cell("reference", 0.8, sites=5, nodes=8)
TIMING = Timing(warm=4 * HOUR, window=12 * HOUR, drain=12 * HOUR)
POLICIES = ("B1", "B3c")

WIDTH, MARGIN, GUTTER, EDGE = 760, 92, 32, 14
PANEL = (WIDTH - MARGIN - GUTTER - EDGE) // 2
HEAD, FOOT = 22, 24
ROW, GAP = 40, 10
LANE = 1.6
"""Height of a job."""
TICK_H = 4


def main() -> None:
    """Play, and write the drawings and what was played."""
    its = scenario(CELL, TIMING, SEED)
    trajectories = [recorded(its, BASELINES[name](), name) for name in POLICIES]
    names = [site.name for site in its.topology.sites]
    FOLDER.mkdir(parents=True, exist_ok=True)
    drawings = {
        "gantt": _gantt(trajectories),
        "utilisation": _rows(trajectories, names, utilisation, 1.0, "100 %"),
        "queue": _rows(trajectories, ["devices"], queue),
        "traffic": _rows(trajectories, names, traffic),
    }
    for name, drawn in drawings.items():
        (FOLDER / f"{name}.svg").write_text(drawn + "\n", encoding="utf-8")
    told = {
        "seed": SEED,
        "family": CELL.family,
        "sites": CELL.sites,
        "nodes": CELL.nodes,
        "load": CELL.load,
        "warm": TIMING.warm / HOUR,
        "window": TIMING.window / HOUR,
    }
    (FOLDER / "window.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _gantt(trajectories: Sequence[Trajectory]) -> str:
    """A stroke for each job in each domain; both panels have the same scale."""
    rows = [bars(trajectory) for trajectory in trajectories]
    lanes = {name: max((lane for its in rows for _, _, lane in its[name]), default=1) for name in rows[0]}
    parts, top = [], float(HEAD)
    for name, most in lanes.items():
        height = LANE * (most + 1)
        parts.append(_label(name, top + height / 2))
        for left, its in zip(_lefts(), rows, strict=True):
            strokes = "".join(
                f"M{left + _x(begin):.1f} {top + height - LANE * lane:.1f}H{left + _x(end):.1f}"
                for begin, end, lane in its[name]
            )
            parts.append(f'<path class="good" fill="none" stroke="#11706a" stroke-width="1.1" d="{strokes}"/>')
            parts.append(_floor(left, top + height + 2))
        top += height + GAP
    return _drawing(parts, top)


def _rows(
    trajectories: Sequence[Trajectory],
    names: Sequence[str],
    of: Callable[[Trajectory], ReportPlot],
    most: float | None = None,
    said: str = "",
) -> str:
    """A line for each name, one below the other; both panels have the same scale, and all rows have."""
    plots = [
        {each.label: list(zip(each.x, each.y, strict=True)) for each in of(trajectory).series}
        for trajectory in trajectories
    ]
    top_value = most or max(y for plot in plots for name in names for _, y in plot[name]) or 1.0
    said = said or f"{top_value:.3g}"
    parts, top = [], float(HEAD)
    for name in names:
        parts.append(_label(name if len(names) > 1 else "", top + ROW / 2))
        parts.append(f'<text class="small" x="{MARGIN - 4}" y="{top + 8:.1f}" text-anchor="end">{said}</text>')
        for left, plot in zip(_lefts(), plots, strict=True):
            points = " ".join(
                f"{left + _x(x):.1f},{top + ROW * (1 - min(y / top_value, 1.0)):.1f}" for x, y in plot[name]
            )
            parts.append(_floor(left, top + ROW))
            parts.append(f'<polyline class="line" fill="none" stroke="#11706a" stroke-width="1.3" points="{points}"/>')
        top += ROW + GAP
    return _drawing(parts, top)


def _drawing(parts: Sequence[str], bottom: float) -> str:
    """The whole, with names of policies above, hours below, and where the window begins."""
    height = round(bottom + FOOT)
    titles = [
        f'<text class="title" x="{left}" y="14">{name}</text>' for left, name in zip(_lefts(), POLICIES, strict=True)
    ]
    hours = [
        f'<text class="small" x="{left + _x(hour):.1f}" y="{bottom + 14:.1f}" text-anchor="middle">{hour:g} h</text>'
        for left in _lefts()
        for hour in _hours()
    ]
    begin = TIMING.begin / HOUR
    begins = [
        f'<path class="rule" stroke="#999" stroke-dasharray="2 3" fill="none" '
        f'd="M{left + _x(begin):.1f} {HEAD - 4}V{bottom:.1f}"/>'
        for left in _lefts()
    ]
    body = "\n".join([*titles, *begins, *parts, *hours])
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n{body}\n</svg>'


def _label(name: str, middle: float) -> str:
    return f'<text x="{MARGIN - 8}" y="{middle + 4:.1f}" text-anchor="end">{name}</text>' if name else ""


def _floor(left: float, y: float) -> str:
    return f'<path class="rule" stroke="#ccc" fill="none" d="M{left} {y:.1f}h{PANEL}"/>'


def _lefts() -> tuple[int, int]:
    return MARGIN, MARGIN + PANEL + GUTTER


def _x(hour: float) -> float:
    return PANEL * hour / (TIMING.end / HOUR)


def _hours() -> Iterator[int]:
    return iter(range(0, round(TIMING.end / HOUR) + 1, TICK_H))


if __name__ == "__main__":
    main()
