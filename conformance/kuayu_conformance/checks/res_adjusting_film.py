"""The course of one job in a window, as it is shown: how fast it is under each adjuster, and what changes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kuayu_conformance.testbed.adjustment.courses import Course
from kuayu_conformance.testbed.adjustment.disturbing import CELL_S
from kuayu_conformance.testbed.adjustment.law import Floats
from kuayu_conformance.testbed.adjustment.run import Outcome
from kuayu_conformance.testbed.adjustment.scores import Yardstick
from kuayu_conformance.testbed.adjustment.world import WINDOW_S, World

FRAME_S = 2.0
"""Seconds from one point of a line to the next."""

Line = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Film:
    """One job of a window.

    Attributes:
        changes: That the service had carried out.
        speeds: Per cent of the best policy's steps over a window that ends then, by adjuster.
        loads: Per cent, of each domain of the job.
        slowest: Greatest latency of the job's links, ms.
    """

    changes: int
    speeds: Mapping[str, Line]
    loads: Mapping[str, Line]
    slowest: Line


def film(world: World, yardstick: Yardstick, outcomes: Mapping[str, Outcome]) -> Film:
    """The job for which the first of the adjusters had most to change."""
    first = next(iter(outcomes.values()))
    counts = [len(job.carried) for job in first.jobs]
    number = counts.index(max(counts))
    running, most = world.jobs[number], yardstick.most[number]
    at = np.arange(WINDOW_S, world.ends_s + FRAME_S / 2, FRAME_S)
    cells = np.minimum((at / CELL_S).astype(int), len(world.loads) - 1)
    where = list(running.domains)
    apart = ~np.eye(len(where), dtype=bool)
    slowest = world.latency[cells][:, where][:, :, where][:, apart].max(axis=1)
    made = {name: yardstick.made(outcome, number) for name, outcome in outcomes.items()}
    return Film(
        counts[number],
        {name: _line(at, 100.0 * _speed(course, most, at)) for name, course in made.items()},
        {f"load of domain {place}": _line(at, 100.0 * world.loads[cells, its]) for place, its in enumerate(where, 1)},
        _line(at, 1000.0 * slowest),
    )


def _speed(made: Course, most: Course, at: Floats) -> Floats:
    """Over a window that ends at some instants, in parts of the most, ``(N,)``."""
    return made.steps(at - WINDOW_S, at) / most.steps(at - WINDOW_S, at)


def _line(at: Floats, values: Floats) -> Line:
    return tuple(zip(at.tolist(), np.round(values, 3).tolist(), strict=True))
