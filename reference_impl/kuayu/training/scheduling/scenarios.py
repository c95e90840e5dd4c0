"""Worlds to learn in: small ones, of families, loads and sizes that are drawn; no judge takes their seeds."""

from hashlib import sha256

import numpy as np

from kuayu_conformance.testbed.scheduling.baselines import HomeBackfill
from kuayu_conformance.testbed.scheduling.engine.episode import play
from kuayu_conformance.testbed.scheduling.engine.world import World
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Scenario, scenario
from kuayu_conformance.testbed.scheduling.timing import Timing

FAMILIES = (
    *("reference",) * 6,
    *("heterogeneous",) * 3,
    *("wan-poor", "east-west") * 2,
    *("gravity", "bursty", "balanced", "misjudged"),
)
"""Families, as often as they are drawn; others are left for the judge alone."""
SITES, NODES = (5, 7), (8, 16)
LOADS = (0.5, 1.0)
HOUR = 3600.0
TIMING = Timing(HOUR, 3 * HOUR, 3 * HOUR)
"""B1 decides for an hour, then whoever learns does; jobs are submitted until the end."""


def drawn(purpose: str, number: int, timing: Timing = TIMING) -> Scenario:
    """The scenario of a number; each purpose has scenarios of its own.

    Args:
        purpose: ``learning`` with the seed of a training, ``looking`` for its curves, ``held out`` for comparisons.
        number: Any.
        timing: Its parts.
    """
    seed = f"training/{purpose}/{number}"
    chance = np.random.default_rng(int.from_bytes(sha256(seed.encode()).digest()[:8]))
    cell = Cell(
        family=FAMILIES[chance.integers(len(FAMILIES))],
        load=round(float(chance.uniform(*LOADS)), 3),
        sites=int(chance.integers(*SITES, endpoint=True)),
        nodes=int(chance.integers(*NODES, endpoint=True)),
    )
    return scenario(cell, timing, seed)


def taken_over(its: Scenario) -> World:
    """Its world as B1 has left it when the window begins."""
    world = its.world()
    play(world, HomeBackfill(), its.timing.begin)
    return world
