"""The recogniser's figures in one file: delays, recall and false alarms, by state, by signals sent, and by telemetry.

    PYTHONPATH=tests python tests/benchmarks/recognition_report.py --seed N [--processes N] [--json FILE]

1. *Judge's world* and *held-out region* of the training generator, 5 domains with 1 000 nodes, one sample a second:
   delays in s, share recognised within 10 s, recall and F1 by state (``recognition.py`` says how they are counted),
   message passing beside the same features without other nodes and beside rules.
2. *By signals sent*: the held-out region once more, of whose signals only some are sent. What they cannot tell is
   counted as missed; ``unknown`` says how often nothing was said, and ``false alarms`` of how many of the seconds in
   which a node was idle or busy it was shown in trouble.
3. *Healthy telemetry*: patterns of ``perception/healthy`` (steady, power-capped, quantised, idle-looking, sparse)
   through 127 subsets of seven signals, of which no training has seen any (``false_alarms.py``).
"""

import argparse
import json
import platform
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import recognition
from false_alarms import measure
from perception.healthy import Healthy
from recognition_worlds import JudgesWorld, OwnWorld, Second

from kuayu.perception.recognition import SIGNALS, STATES, Recogniser

DOMAINS, NODES = recognition.SCALES["5x200"]
IDLE, BUSY, UNKNOWN = (STATES.index(name) for name in ("idle", "busy", "unknown"))
WORLDS = {"judge's world": JudgesWorld, "held-out region": OwnWorld}
OF_PIPES = ("matrix_pipe_activity", "memory_bandwidth_utilisation")
COUNTED = ("faults", "device_share", "allocatable_share", "health_state")

SENT: dict[str, tuple[str, ...]] = {
    "utilisation": ("accelerator_utilisation",),
    "power": ("power",),
    "utilisation and memory": ("accelerator_utilisation", "accelerator_memory_used"),
    "utilisation, power and memory": ("accelerator_utilisation", "power", "accelerator_memory_used"),
    "these, and faults and shares": ("accelerator_utilisation", "power", "accelerator_memory_used", *COUNTED),
    "all but pipes and memory bandwidth": tuple(name for name in SIGNALS if name not in OF_PIPES),
    "all that exporters of the region give": SIGNALS,
}
"""Signals that are sent, as far as the exporters of a domain give them."""


class Masked(OwnWorld):
    """The held-out region of which only some signals are sent."""

    def __init__(self, seed: int, seconds: int, sent: tuple[str, ...]) -> None:
        super().__init__(seed, DOMAINS, NODES, recognition.WARM_UP, seconds)
        self._hidden = np.array([name not in sent for name in SIGNALS])

    def play(self) -> Iterator[Second]:
        """All seconds."""
        for second in super().play():
            values = np.where(self._hidden, np.nan, second.telemetry.values)
            yield replace(second, telemetry=replace(second.telemetry, values=values))


def of_world(name: str, seed: int, seconds: int) -> dict[str, Any]:
    """Figures of all three recognisers in one world."""
    world = WORLDS[name](seed, DOMAINS, NODES, recognition.WARM_UP, seconds)
    played = recognition.play(world)
    found = {}
    for kind in played["shown"]:
        part = recognition.measured(played, kind, recognition.WARM_UP, world.causes)
        made = recognition.summary([part], played["times"][kind])
        chosen = {key: made[key] for key in ("macro F1", "interval", "changes", "F1", "delay")}
        found[kind] = chosen | {"recall": recall(part["by_node"].sum(0))}
    return found


def of_signals(sent: tuple[str, ...], seed: int, seconds: int) -> dict[str, Any]:
    """Figures of the recogniser that ships where only some signals are sent."""
    world = Masked(seed, seconds, sent)
    played = recognition.play(world, (Recogniser,))
    part = recognition.measured(played, Recogniser.name, recognition.WARM_UP, world.causes)
    counts = part["by_node"].sum(0).reshape(len(STATES), len(STATES))
    well = counts[[IDLE, BUSY]]
    made = recognition.summary([part], played["times"][Recogniser.name])
    return {
        "recognised within 10 s": {state: row["recall"] for state, row in made["delay"].items()},
        "delay, p50 s": {state: row["p50"] for state, row in made["delay"].items()},
        "delay, p99 s": {state: row["p99"] for state, row in made["delay"].items()},
        "recall": recall(counts.reshape(-1)),
        "false alarms": float(well[:, BUSY + 1 : UNKNOWN].sum() / well.sum()),
        "unknown": float(counts[:, UNKNOWN].sum() / counts.sum()),
    }


def recall(counts: Any) -> dict[str, float | None]:
    """Share of the node seconds of each state in which it was shown; None of a state that never was."""
    square = counts.reshape(len(STATES), len(STATES))
    return {
        state: float(square[place, place] / square[place].sum()) if square[place].any() else None
        for place, state in enumerate(recognition.JUDGED)
    }


def of_patterns(families: str, seed: int, seconds: int) -> dict[str, Any]:
    """False alarms of healthy telemetry by pattern."""
    return measure(Healthy(seed, families=families == "families"), Recogniser, seconds)


def main() -> None:
    """Run the benchmark as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=int, default=240, help="seconds of each world, after a minute of warm-up")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with ProcessPoolExecutor(asked.processes, mp_context=get_context("spawn")) as pool:
        given = (asked.seed, asked.seconds)
        parts = {
            "worlds": {name: pool.submit(of_world, name, *given) for name in WORLDS},
            "held-out region, by signals sent": {
                name: pool.submit(of_signals, sent, *given) for name, sent in SENT.items()
            },
            "healthy telemetry": {name: pool.submit(of_patterns, name, *given) for name in ("alone", "families")},
        }
        figures = {part: {name: found.result() for name, found in rows.items()} for part, rows in parts.items()}
    place = {"python": platform.python_version(), "numpy": version("numpy"), "machine": platform.machine()}
    request = {"seed": asked.seed, "seconds": asked.seconds, "date": datetime.now(UTC).date().isoformat()}
    written = json.dumps({"figures": figures, "world": place, "request": request}, allow_nan=False, indent=1) + "\n"
    if asked.json:
        asked.json.write_text(written)
    print(written, end="")


if __name__ == "__main__":
    main()
