"""How often healthy nodes are shown in trouble, over every subset of signals and what exporters make of them.

    PYTHONPATH=tests python tests/benchmarks/false_alarms.py [--seconds N] [--seed N] [--json FILE]

One node alone, and one family of four, for each of 127 subsets of signals and each pattern of ``perception/healthy``.
Printed by pattern: nodes that were shown degraded, straggling, faulty or offline at any time, the share of all seconds
in which they were, and of the seconds told idle or busy how many are right.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from perception.healthy import PATTERNS, WRONG, Healthy

from kuayu.perception.recognition import STATES, PlainRecogniser, Recogniser, RuleRecogniser

BUSY, UNKNOWN = STATES.index("busy"), STATES.index("unknown")
KINDS = {each.name: each for each in (Recogniser, PlainRecogniser, RuleRecogniser)}


def measure(world: Healthy, kind: Any, seconds: int) -> dict[str, dict[str, float]]:
    """Figures of each pattern."""
    recogniser = kind(world.population)
    shown, truth = [], []
    for telemetry, works in world.play(seconds):
        shown.append(recogniser.update(telemetry).state)
        truth.append(works)
    states, working = np.stack(shown), np.stack(truth)
    wrong, told = np.isin(states, WRONG), states <= BUSY
    found = {}
    for number, name in enumerate(PATTERNS):
        of = world.pattern == number
        right = (states[:, of] == BUSY) == working[:, of]
        found[name] = {
            "nodes": int(of.sum()),
            "nodes with a false alarm": int(wrong[:, of].any(axis=0).sum()),
            "share of seconds": float(wrong[:, of].mean()),
            "unknown": float((states[:, of] == UNKNOWN).mean()),
            "idle or busy, right": float(right[told[:, of]].mean()) if told[:, of].any() else float("nan"),
        }
    return found


def main() -> None:
    """Run the benchmark as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=240)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recogniser", choices=KINDS, default="graph")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    figures = {}
    for families in (False, True):
        where = "families" if families else "alone"
        figures[where] = measure(Healthy(asked.seed, families=families), KINDS[asked.recogniser], asked.seconds)
        print(f"\n{where:34}{'nodes':>7}{'alarmed':>9}{'seconds':>9}{'unknown':>9}{'right':>8}")
        for name, row in figures[where].items():
            print(f"  {name:32}{row['nodes']:7d}{row['nodes with a false alarm']:9d}"
                  f"{row['share of seconds']:9.2%}{row['unknown']:9.1%}{row['idle or busy, right']:8.2%}")  # fmt: skip
    if asked.json:
        request = {name: value for name, value in vars(asked).items() if name != "json"}
        asked.json.write_text(json.dumps({"figures": figures, "request": request}, indent=1) + "\n")


if __name__ == "__main__":
    main()
