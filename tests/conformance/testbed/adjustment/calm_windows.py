"""Windows in which nothing happens that is not asked for, small enough to be worked out by hand."""

from collections.abc import Sequence

import numpy as np

from kuayu_conformance.testbed.adjustment.world import (
    CELL_S,
    FALL,
    INTERVAL_S,
    PAST,
    QUICK,
    RISE,
    SLOW,
    Event,
    Job,
    Running,
    World,
    over_time,
)

SECONDS = 120.0
_CELLS = round(INTERVAL_S / CELL_S)


def running(moves_s: float = 0.05, domains: Sequence[int] = (0, 1)) -> Running:
    """100 parts of 10 ms, next to nothing to exchange: at equal loads of a half, a step a second."""
    count = len(domains)
    law = Job(np.full(count, 0.01), 1, 1e11, 1e-5, 1.0, np.full((count, count), 1e10), moves_s, 0.5)
    return Running("job", tuple(domains), law, 100)


def window(*events: Event, jobs: Sequence[Running] = (), seconds: float = SECONDS) -> World:
    """Three domains at a load of a half, 10 ms from each to each, measured without error."""
    cells = round(seconds / CELL_S)
    loads = over_time(np.full(3, 0.5), events, (RISE, FALL), cells)
    slowed = over_time(np.ones(3), events, (SLOW, QUICK), cells)
    latency = 0.01 * slowed[:, :, None] * slowed[:, None, :]
    means = loads.reshape(-1, _CELLS, 3).mean(axis=1)
    means_latency = latency.reshape(-1, _CELLS, 3, 3).mean(axis=1)
    return World(
        "calm",
        ("a", "b", "c"),
        tuple(jobs) or (running(),),
        np.full((3, 3), 1e10),
        tuple(events),
        loads,
        latency,
        np.concatenate([np.full((PAST, 3), 0.5), means]),
        np.concatenate([np.full((PAST, 3, 3), 0.01), means_latency]),
    )
