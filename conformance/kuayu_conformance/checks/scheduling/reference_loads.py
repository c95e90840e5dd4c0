"""The reference loads: those that B1 just sustains, so that its 95th percentile of the bounded slowdown is ten.

``python -m kuayu_conformance.checks.scheduling.reference_loads SOURCE`` finds that of a source on scenarios of its own,
whose seeds no judge takes, and writes it to ``reference_loads.json`` with the table that it follows from. It takes some
minutes on one core; the traces ``itp``, ``philly`` and ``openb`` need ``KUAYU_DATA``.
"""

import json
import sys
from pathlib import Path
from typing import Any

from kuayu_conformance.checks.scheduling.cells import AGAINST, FULL, HOUR, LOADS_FILE, REFERENCE, assignment

LOADS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
WINDOWS = 40
SEED = "reference load {}"
"""Of a window, by its number."""


def search(source: str, windows: int = WINDOWS) -> dict[str, Any]:
    """The reference load of a source, and how B1 serves at loads around it; stops above where it no longer does."""
    from kuayu_conformance.caching import Cache
    from kuayu_conformance.checks.scheduling import scores as sch_scores
    from kuayu_conformance.checks.scheduling.gains import SERVED, sustained
    from kuayu_conformance.checks.scheduling.scores import Bounds, Score, Window
    from kuayu_conformance.testbed.scheduling.scenarios import Cell, digest_of, scenario
    from kuayu_conformance.testbed.scheduling.windows import BASELINES, play_window

    cache_ = Cache("scheduling", [sch_scores])
    grid: dict[float, list[Window]] = {}
    for load in LOADS:
        cell = Cell(REFERENCE, load, source, FULL.sites, FULL.nodes)
        grid[load] = []
        for number in range(windows):
            subject = scenario(cell, FULL.timing, SEED.format(number), assignment=assignment(number))
            key = [digest_of(subject), AGAINST]
            score = cache_.get(key)
            if score is None:
                score = Score.of(play_window(subject, BASELINES[AGAINST](), AGAINST)).json()
                cache_.put(key, score)
            grid[load].append(Window(number, Bounds(0.0, 0.0), {AGAINST: Score.from_json(score)}))
        its_ = sustained(grid, AGAINST)
        if min(its_.served[-1], its_.served_large[-1]) < SERVED - 0.05:
            break
    rows = zip(grid, its_.served, its_.served_large, its_.used, its_.queued, strict=True)
    names = ("load", "served", "served large", "used", "queued")
    return {
        "load": round(its_.load, 2),
        "windows": windows,
        "seeds": [SEED.format(0), SEED.format(windows - 1)],
        "domains": FULL.sites,
        "nodes": FULL.nodes,
        "hours": [part / HOUR for part in (FULL.timing.warm, FULL.timing.window, FULL.timing.drain)],
        "table": [dict(zip(names, (round(value, 4) for value in row), strict=True)) for row in rows],
    }


def main(source: str) -> int:
    """Write what was found, and print it."""
    path = Path(__file__).with_name(LOADS_FILE)
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    known[source] = search(source)
    text = json.dumps(dict(sorted(known.items())), indent=1) + "\n"
    path.write_text(text, "utf-8")
    sys.stdout.write(json.dumps(known[source], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
