"""Short pauses of the interpreter: what a run has kept does not hold it up while it measures how soon a target answers.

Python's collector of cycles goes through all that it has kept each time that this has grown by a quarter, and no thread
runs meanwhile. A run keeps evidence, so that it would stand still for longer and longer, amid episodes that play a
world in real time and count its delays as the target's.
"""

import contextlib
import gc
import sys
from collections.abc import Iterator
from typing import Any

SWITCH_INTERVAL = 0.001
"""Seconds after which an episode that has been waiting for the interpreter gets it from one that computes. With
Python's 5 ms, one that plays in real time would wait that long for each piece that it reads or writes."""

_OLDEST = 2


@contextlib.contextmanager
def short_pauses() -> Iterator[None]:
    """Let the collector look through what is kept once, and no thread wait for long; as before when the block ends.

    Cycles that are given up later than that are collected when somebody collects after the block; not where somebody
    had set things aside before it, which stay so.
    """
    interval, before = sys.getswitchinterval(), gc.get_freeze_count()
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.callbacks.append(_set_aside)
    try:
        yield
    finally:
        gc.callbacks.remove(_set_aside)
        if not before:  # all or nothing: there is no telling apart who set what aside
            gc.unfreeze()
        sys.setswitchinterval(interval)


def _set_aside(phase: str, info: dict[str, Any]) -> None:
    """Take what a look through everything has left out of further looks."""
    if phase == "stop" and info["generation"] == _OLDEST:
        gc.freeze()
