"""Where the gains of the reference's scheduler vanish: one thing of the reference cell of SCH-003 is moved at a time.

``PYTHONPATH=tests python tests/benchmarks/sensitivity.py --windows 16`` writes
``docs/results/scheduling/sensitivity.json``, which the page of results draws.

1. What is moved is what a full run moves (``checks.scheduling.cells.FULL.curves``), in finer steps and in more windows.
   Every curve runs through the reference cell itself, whose jobs are fitted to ITP. Windows have the same numbers at
   all points, so that points differ in nothing but what is moved.
2. Windows drain until their cohort has ended, as for SCH-003. *Gain* is one less the mean period over that of B1, of
   all jobs that train and of the large ones; *money* is for bandwidth, for a million device seconds that were done.
   Bounds are two-sided at 95 %, by the jackknife over windows, since a gain is a ratio of sums (R. G. Miller, "The
   jackknife – a review", Biometrika 61, 1974).
3. *bound* is the most that anybody could gain (``benchmarks.policies``).

The reference's rule is played compiled, which gives the same orders (decision 35). Windows are those of a seed of their
own, which no run of the suite draws.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import fsum
from pathlib import Path
from typing import Any

from benchmarks.policies import GROUPS, REFERENCE, Figure, Window, gain_of, money, off, played, rounded, total

from kuayu.scheduling.place import METHOD_VERSION
from kuayu_conformance.checks.scheduling.cells import AGAINST, FULL, Curve
from kuayu_conformance.testbed.scheduling.scenarios import Cell
from kuayu_training.workers import USAGE, WorkersError, executor

OUT = Path(__file__).parents[2] / "docs/results/scheduling/sensitivity.json"
NAMES = (AGAINST, "B3", REFERENCE)

VALUES: Mapping[str, Sequence[float]] = {
    "skew of demand": (0.0, 0.5, 1.0, 1.5, 2.0),
    "load over the reference load": (0.1, 0.3, 0.6, 1.0, 1.4),
    "chance that data are at home": (0.3, 0.5, 0.7, 0.85, 1.0),
    "devices asked for beyond use": (0.0, 0.25, 0.5, 1.0, 1.5),
    "tariff over the usual": (0.0, 0.5, 1.0, 2.0, 3.0),
    "share of the work in jobs larger than their home": (0.0, 0.05, 0.1, 0.2, 0.3),
    "share of jobs that are elastic": (0.0, 0.25, 0.5, 0.75, 1.0),
    "factor by which durations are misjudged": (1.0, 2.0, 4.0, 10.0),
}
"""Steps of each curve, by its label."""


def points(curve: Curve) -> Iterator[tuple[float, Cell]]:
    """Finer points of a curve of a full run."""
    reference = FULL.reference(FULL.sources[0])
    usual, moved = None, reference
    for value, cell in curve.points:
        if cell == reference:
            usual = value
        else:
            moved = cell
    for value in VALUES[curve.label]:
        if value == usual:
            yield value, reference
        elif moved.changed:
            yield value, replace(reference, changed=((moved.changed[0][0], value),))
        elif moved.assumed:
            yield value, replace(reference, assumed=((moved.assumed[0][0], value),))
        else:
            yield value, replace(reference, load=round(reference.load * value, 6))


def with_bound(windows: Sequence[Window], figure: Figure) -> list[float | None]:
    """A figure of all windows together, and by how much it may be off at 95 %."""
    return [rounded(figure(windows), 4), off(windows, figure)]


def most(windows: Sequence[Window], group: str) -> float:
    """The gain that nobody exceeds."""
    least = fsum(window.bounds[group] for window in windows)
    return round(1.0 - least / total(windows, AGAINST, group, "period"), 4)


def point(value: float, windows: Sequence[Window]) -> dict[str, Any]:
    """A point, as it is written down."""
    return {
        "value": value,
        "windows": len(windows),
        "jobs": {group: int(total(windows, AGAINST, group, "jobs")) for group in GROUPS},
        "gain": {
            name: {group: with_bound(windows, gain_of(name, group)) for group in GROUPS}
            for name in NAMES
            if name != AGAINST
        },
        "bound": {group: most(windows, group) for group in GROUPS},
        "money": {name: with_bound(windows, money(name)) for name in NAMES},
    }


def main() -> None:
    """Play, and write the curves."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--windows", type=int, default=16, help="of each point")
    parser.add_argument("--seed", default="sensitivity")
    parser.add_argument("--workers", default=str(os.cpu_count()), help=USAGE)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    due = {curve.label: list(points(curve)) for curve in FULL.curves}
    cells = list(dict.fromkeys(cell for moved in due.values() for _, cell in moved))
    windows: dict[Cell, list[Window]] = {cell: [] for cell in cells}
    try:
        workers = executor(options.workers)
    except WorkersError as error:
        sys.exit(str(error))
    with workers as pool:
        futures = [
            (cell, pool.submit(played, cell, options.seed, number, NAMES, None))
            for cell in cells
            for number in range(options.windows)
        ]
        try:
            for done, (cell, future) in enumerate(futures, start=1):
                if (window := future.result()) is not None:
                    windows[cell].append(window)
                sys.stderr.write(f"\r{done} of {len(futures)} windows ")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    sys.stderr.write("\n")
    command = "PYTHONPATH=tests python tests/benchmarks/sensitivity.py"
    made = {
        "command": f"{command} --windows {options.windows} --seed {options.seed}",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "method": METHOD_VERSION,
        "curves": [
            {
                "label": curve.label,
                "vanishing": curve.vanishing,
                "points": [point(value, windows[cell]) for value, cell in due[curve.label]],
            }
            for curve in FULL.curves
        ],
    }
    options.out.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
