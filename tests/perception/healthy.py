"""Telemetry of nodes that nothing is wrong with: what exporters really publish, over every subset of signals.

Each pattern says what the accelerators do and how the exporter shows it; each node gives one pattern through one subset
of seven signals (a flow counts as one, whichever way). Sources of the shapes: a power cap holds the board at one value
(NVIDIA, "nvidia-smi" manual, *Software Power Cap*); DCGM makes values every 30 s unless told otherwise (dcgm-exporter,
README, ``--collect-interval``), however often they are scraped; utilisation is in whole percent (NVML,
``nvmlUtilization_t``); servers reserve their memory once and keep it (vLLM, ``gpu_memory_utilization``).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from kuayu.perception.recognition import SIGNALS, STATES, Population, Telemetry
from kuayu.perception.recognition.values import Flags, Floats, Instants

GROUPS = (
    ("accelerator_utilisation",),
    ("matrix_pipe_activity",),
    ("power",),
    ("accelerator_memory_used",),
    ("memory_bandwidth_utilisation",),
    ("scale_out_transmit_flow", "scale_out_receive_flow"),
    ("storage_read_flow",),
)
"""Signals that are there or not."""

SUBSETS = tuple(chain.from_iterable(combinations(range(len(GROUPS)), size) for size in range(1, len(GROUPS) + 1)))
"""All 127 of them."""

WRONG = tuple(STATES.index(name) for name in ("degraded", "straggling", "faulty", "offline"))
"""States of which none is true here."""

MEMBERS = 4
"""Nodes of a family; all of them give the same subset."""

PERIOD = {"every ten seconds": 10, "every thirty seconds": 30}
"""Seconds between samples of the patterns that are named here; one of all others."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the accelerators of a node do in a second: shares of what they can, and whether they work."""

    utilisation: float
    pipe: float
    power: float
    memory: float
    bandwidth: float
    flow: float
    storage: float
    works: bool


Pattern = Callable[[int, np.random.Generator], Load]


def _at(level: float, memory: float = 0.6, *, works: bool = True) -> Load:
    return Load(level, 0.45 * level, 0.14 + 0.8 * level, memory, 0.5 * level, level, level, works)


STEADY = Load(0.93, 0.4, 68.5 / 400, 0.6, 0.5, 0.8, 0.2, works=True)
CAPPED = Load(1.0, 0.35, 72.0 / 400, 0.7, 0.6, 0.8, 0.2, works=True)
REST = Load(0.0, 0.0, 0.12, 0.01, 0.0, 1e-5, 1e-4, works=False)
SERVES_NOBODY = Load(0.0, 0.0, 0.16, 0.9, 0.0, 1e-5, 1e-4, works=False)


def _noisy(load: Load, random: np.random.Generator, by: float = 0.03) -> Load:
    utilisation, pipe, power, bandwidth, flow, storage = np.exp(random.normal(0, by, 6)) * (
        load.utilisation, load.pipe, load.power, load.bandwidth, load.flow, load.storage,
    )  # fmt: skip
    return Load(min(1.0, utilisation), pipe, power, load.memory, bandwidth, flow, storage, load.works)


def _quantised(load: Load) -> Load:
    parts = (load.utilisation, load.pipe, load.power, load.bandwidth, load.flow, load.storage)
    utilisation, pipe, power, bandwidth, flow, storage = (float(np.round(20 * each) / 20) for each in parts)
    return Load(utilisation, pipe, power, load.memory, bandwidth, flow, storage, load.works)


def _made_every(seconds: int, pattern: Pattern) -> Pattern:
    """An exporter that makes its page so often, and shows the same values in between."""
    held: list[Load] = []

    def made(second: int, random: np.random.Generator) -> Load:
        load = pattern(second, random)
        if not held or second % seconds == 0:
            held[:] = [load]
        return held[0]

    return made


def _blips(_second: int, random: np.random.Generator) -> Load:
    level = float(random.uniform(0.0, 0.03)) if random.random() < 0.3 else 0.0
    return Load(level, 0.0, 0.12 + level / 4, 0.02, level / 10, 1e-5, 1e-4, works=False)


def _server() -> Pattern:
    """A server whose load wanders, and to which for half a minute in every one and a half nobody sends anything."""
    load = [0.6]

    def made(second: int, random: np.random.Generator) -> Load:
        load[0] = float(np.clip(load[0] + random.normal(0, 0.15) + 0.1 * (0.55 - load[0]), 0.15, 1.0))
        return _noisy(_at(load[0], 0.9), random) if second % 90 < 60 else _noisy(SERVES_NOBODY, random)

    return made


def _notebook(second: int, random: np.random.Generator) -> Load:
    """Even work for a minute and rest for half of one, again and again, with the memory kept all the time."""
    return _noisy(_at(0.85, 0.9), random) if second % 90 < 60 else _noisy(SERVES_NOBODY, random)


def _jobs(second: int, random: np.random.Generator) -> Load:
    """Jobs with a rest in between in which the memory is given back."""
    return _noisy(_at(0.9), random) if second % 90 < 60 else _noisy(REST, random)


PATTERNS: dict[str, Pattern] = {
    "steady": lambda _second, _random: STEADY,
    "power-capped": lambda _second, _random: CAPPED,
    "at rest, steady": lambda _second, _random: REST,
    "serves nobody, steady": lambda _second, _random: SERVES_NOBODY,
    "blips of monitoring": _blips,
    "noisy work": lambda _second, random: _noisy(_at(0.9), random),
    "quantised work": lambda _second, random: _quantised(_noisy(_at(0.9), random)),
    "page made every ten seconds": _made_every(10, lambda _second, random: _noisy(_at(0.9), random)),
    "server with pauses": _server(),
    "notebook with pauses": _notebook,
    "jobs and rest": _jobs,
    "every ten seconds": lambda _second, random: _noisy(_at(0.9), random),
    "every thirty seconds": lambda _second, _random: STEADY,
}
"""What is played, by name."""


class Healthy:
    """Every pattern through every subset of signals: one node of each alone, or a family of each.

    Args:
        seed: Noise follows from it.
        families: Whether each pattern and subset is a family of ``MEMBERS`` nodes that do the same.
        devices: Accelerators of a node.
    """

    def __init__(self, seed: int, *, families: bool, devices: int = 1) -> None:
        each = MEMBERS if families else 1
        self.pattern = np.repeat(np.arange(len(PATTERNS)), len(SUBSETS) * each)
        self.subset = np.tile(np.repeat(np.arange(len(SUBSETS)), each), len(PATTERNS))
        nodes = len(self.pattern)
        group = np.arange(nodes) // each
        rows = np.arange(nodes) if families else np.zeros(0, np.intp)
        count = nodes // each if families else 0
        place = np.zeros(nodes, np.intp)
        self.population = Population(place, 1, rows, group[rows], count, np.full(nodes, devices))
        self._random = np.random.default_rng(seed)
        self._patterns = [_of(name) for name in PATTERNS]
        self._period = np.array([PERIOD.get(name, 1) for name in PATTERNS])[self.pattern]
        self._phase = group
        self._shown = np.zeros((nodes, len(SIGNALS)), bool)
        for number, subset in enumerate(SUBSETS):
            names = [name for at in subset for name in GROUPS[at]]
            self._shown[np.ix_(self.subset == number, [SIGNALS.index(name) for name in names])] = True

    def play(self, seconds: int) -> Iterator[tuple[Telemetry, Flags]]:
        """Telemetry, and whether each node works, (nodes,), second by second."""
        nodes = len(self.pattern)
        values: Instants = np.full((nodes, len(SIGNALS)), np.nan)
        observed: Instants = np.full(nodes, np.nan)
        works: Flags = np.zeros(nodes, bool)
        for second in range(seconds):
            due = (second + self._phase) % self._period == 0
            for row in np.flatnonzero(due):
                load = self._patterns[self.pattern[row]](second, self._random)
                values[row], works[row] = np.where(self._shown[row], _row(load), np.nan), load.works
            observed[due] = second
            yield Telemetry(float(second), values.copy(), observed.copy(), observed.copy(), due.copy()), works.copy()


def _of(name: str) -> Pattern:
    return PATTERNS[name]


def _row(load: Load) -> Floats:
    """Values of all signals, (signals,): one board of 400 W and 80 GB with a port of 400 Gbit/s."""
    row = np.full(len(SIGNALS), np.nan)
    for name, value in (
        ("accelerator_utilisation", load.utilisation),
        ("matrix_pipe_activity", load.pipe),
        ("power", 400 * load.power),
        ("accelerator_memory_used", 80e9 * load.memory),
        ("memory_bandwidth_utilisation", load.bandwidth),
        ("scale_out_transmit_flow", 5e10 * load.flow),
        ("scale_out_receive_flow", 5e10 * load.flow),
        ("storage_read_flow", 1e9 * load.storage),
    ):
        row[SIGNALS.index(name)] = value
    return row
