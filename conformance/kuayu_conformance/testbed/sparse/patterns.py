"""What accelerators do that are well: arrays by second, drawn for one node.

Shapes and their sources: a power cap holds a board at one value (NVIDIA, "nvidia-smi" manual, *Software Power Cap*);
servers of inference reserve their memory once and keep it (vLLM, ``gpu_memory_utilization``); two thirds of the samples
of the Acme clusters show utilisation, and half of them next to no power (InternLM/AcmeTrace, ``data/utilization``).
Lengths and levels are assumptions.
"""

from collections.abc import Callable

import numpy as np

from kuayu_conformance.testbed.chance import Chance, normal
from kuayu_conformance.testbed.elementary import exponential, wave
from kuayu_conformance.testbed.sparse.values import Activity, Floats

WARM = 48
"""Seconds of the warm-up. Whoever works in turns works all through it, so that no rest has been seen before."""

DRIVER = 0.004
"""Share of the memory that a driver takes without a job."""

OPEN = 0.06
"""Power of an open context that does nothing, above that at rest."""

Pattern = Callable[[Chance, np.random.Generator, int], Activity]


def steady(chance: Chance, _noise: np.random.Generator, seconds: int) -> Activity:
    """Work that shows the same values all the time."""
    level = chance.between(0.3, 1.0)
    return _constant(seconds, level, chance.between(0.2, 0.9), chance.between(0.2, 0.95))


def capped(chance: Chance, noise: np.random.Generator, seconds: int) -> Activity:
    """Full utilisation under a limit of power that is reached all the time; what gets done varies a little."""
    made = _constant(seconds, 1.0, chance.between(0.15, 0.6), chance.between(0.3, 0.95))
    made.effort = _noisy(made.effort, noise, 0.03)
    return made


def noisy(chance: Chance, noise: np.random.Generator, seconds: int) -> Activity:
    """Work whose values vary from second to second, each by itself."""
    by = chance.between(0.01, 0.05)
    made = _constant(seconds, chance.between(0.45, 0.95), chance.between(0.3, 0.9), chance.between(0.2, 0.95))
    made.utilisation = np.minimum(1.0, _noisy(made.utilisation, noise, by))
    made.effort, made.power = _noisy(made.effort, noise, by), _noisy(made.power, noise, by)
    return made


def drifting(chance: Chance, noise: np.random.Generator, seconds: int) -> Activity:
    """Work that swings slowly about its mean."""
    made = noisy(chance, noise, seconds)
    swing = 1 + chance.between(0.01, 0.05) * wave(np.arange(seconds) / chance.between(40, 160) + chance.fraction())
    made.utilisation = np.minimum(1.0, made.utilisation * swing)
    made.effort, made.power = made.effort * swing, made.power * swing
    return made


def at_rest(chance: Chance, _noise: np.random.Generator, seconds: int) -> Activity:
    """No job at all."""
    return _constant(seconds, 0.0, 0.0, chance.between(DRIVER, 2 * DRIVER))


def held_at_rest(chance: Chance, _noise: np.random.Generator, seconds: int) -> Activity:
    """Memory held by a notebook or a server that nobody has asked anything since it was started."""
    return _constant(seconds, 0.0, OPEN, chance.between(0.3, 0.95))


def notebook(chance: Chance, noise: np.random.Generator, seconds: int) -> Activity:
    """Even work and rests with all memory kept, in turns."""
    works = _spells(chance, seconds)
    made = _constant(seconds, chance.between(0.5, 1.0), chance.between(0.3, 0.9), chance.between(0.3, 0.95))
    made.effort, made.power = _noisy(made.effort, noise, 0.02), _noisy(made.power, noise, 0.02)
    return _resting(made, works)


def server(chance: Chance, noise: np.random.Generator, seconds: int) -> Activity:
    """A load that wanders, and seconds without any request, likewise."""
    works = _spells(chance, seconds)
    made = _constant(seconds, 1.0, 1.0, chance.between(0.6, 0.95))
    load, aside = np.empty(seconds), 0.0
    mean = chance.between(0.35, 0.7)
    for second, shock in enumerate(normal(noise, seconds).tolist()):
        aside = 0.8 * aside + 0.2 * shock
        load[second] = min(0.85, max(0.15, mean * float(exponential(aside))))
    made.utilisation, made.effort, made.power = load, load, 0.1 + 0.6 * load
    return _resting(made, works)


def jobs(chance: Chance, noise: np.random.Generator, seconds: int) -> Activity:
    """Jobs one after the other; between two of them the memory is given back."""
    made = notebook(chance, noise, seconds)
    made.memory = np.where(made.works, made.memory, DRIVER)
    made.power = np.where(made.works, made.power, 0.0)
    return made


def _constant(seconds: int, utilisation: float, power: float, memory: float) -> Activity:
    return Activity.of(*(np.full(seconds, value) for value in (utilisation, utilisation, power, memory)))


def _noisy(values: Floats, noise: np.random.Generator, by: float) -> Floats:
    made: Floats = values * (1 + by * np.clip(normal(noise, len(values)).astype(np.float64), -3, 3))
    return made


def _resting(made: Activity, works: np.ndarray) -> Activity:
    made.utilisation, made.effort = np.where(works, made.utilisation, 0.0), np.where(works, made.effort, 0.0)
    made.power, made.works = np.where(works, made.power, OPEN), works
    return made


def _spells(chance: Chance, seconds: int) -> np.ndarray:
    """Whether it works, by second: through the warm-up, then with rests of up to half a minute."""
    works = np.zeros(seconds, bool)
    second = 0
    while second < seconds:
        work = WARM + chance.below(12) if second == 0 else 12 + chance.below(12)
        rest = 12 + chance.below(20)
        works[second : second + work] = True
        second += work + rest
    return works


PATTERNS: dict[str, tuple[Pattern, float]] = {
    "steady": (steady, 2.0),
    "power-capped": (capped, 2.0),
    "noisy": (noisy, 1.5),
    "drifting": (drifting, 1.0),
    "at rest": (at_rest, 1.5),
    "at rest, memory held": (held_at_rest, 2.0),
    "notebook": (notebook, 2.0),
    "server": (server, 2.0),
    "jobs": (jobs, 1.0),
}
"""What nodes do that are well, and how often each is drawn."""

IN_TURNS = frozenset({"notebook", "server", "jobs"})
"""Patterns of which something changes within seconds: they are sent once a second."""
