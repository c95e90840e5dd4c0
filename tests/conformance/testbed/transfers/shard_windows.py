"""Windows small enough to be worked out by hand: one link, two jobs whose steps need a megabyte a second each."""

import numpy as np

from kuayu_conformance.testbed.shards import HISTORY_S, INTERVAL_S, STEP_S, Floats, Names, Window

MEGA = 1e6
STEP_BYTES = STEP_S * MEGA
BITS = 8.0


def plain(rates: Floats, *, room: float = 4.0, local: int = 0, steps: int = 60, latency: float = 0.0) -> Window:
    """Links that carry so many megabytes a second, ``(seconds,)`` or ``(S, seconds)``; room for steps of each job."""
    carried = MEGA * np.atleast_2d(rates)
    count, seconds = carried.shape
    measured = np.full((count, (HISTORY_S + seconds) // INTERVAL_S), BITS * 2.0 * MEGA)
    return Window(
        "plain",
        "by hand",
        Names("here", tuple(f"source-{link}" for link in range(count)), ("one", "other")),
        np.full(count, latency),
        carried,
        measured,
        np.full(2, STEP_BYTES),
        np.ones((2, count), dtype=bool),
        steps,
        local,
        room * 2 * STEP_BYTES,
        60.0,
        0.5,
    )
