"""How the rate of submissions varies in a window, by a fifth either way; before and after it is steady.

The same jobs come earlier or later: where the rate is ``1 + s``, the clock of submissions goes ``1 + s`` times as fast.
Each swing sums up to nothing over the window, so that as many jobs are submitted in it as without.
"""

import dataclasses
from collections.abc import Callable, Mapping
from math import inf
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.timing import Timing
from kuayu_conformance.testbed.scheduling.values import Job

_Floats = NDArray[np.float64]

SWING = 0.2
"""Part by which the rate varies."""
WAVES = 4
"""Times that it rises and falls again in ``oscillating``."""


def _oscillating(phase: _Floats) -> _Floats:
    """A triangle wave about nought that begins at nought, rising."""
    turn = (WAVES * phase + 0.25) % 1.0
    wave: _Floats = 1.0 - np.abs(4.0 * turn - 2.0)
    return wave


SWINGS: Mapping[str, Callable[[_Floats], _Floats]] = MappingProxyType(
    {
        "steady": np.zeros_like,
        "step": lambda phase: np.where(phase < 0.5, -1.0, 1.0),  # noqa: PLR2004 - half of the window
        "ramp": lambda phase: 2.0 * phase - 1.0,
        "oscillating": _oscillating,
    }
)
"""Deviation of the rate, over ``SWING``, by the part of the window that is over."""

_STEPS = 2_000


def swung(jobs: tuple[Job, ...], swing: str, timing: Timing) -> tuple[Job, ...]:
    """Jobs as they are submitted at a rate that varies; deadlines go with them.

    Raises:
        ValueError: There is no such swing.
    """
    if swing not in SWINGS:
        raise ValueError(f"no swing is named {swing}; there are {', '.join(SWINGS)}")
    if swing == "steady":
        return jobs
    middle = (np.arange(_STEPS) + 0.5) / _STEPS
    passed = np.concatenate(([0.0], np.cumsum(1.0 + SWING * SWINGS[swing](middle)))) / _STEPS
    submitted = np.array([job.submitted for job in jobs])
    part = np.interp((submitted - timing.begin) / timing.window, passed / passed[-1], np.linspace(0.0, 1.0, _STEPS + 1))
    inside = (submitted > timing.begin) & (submitted < timing.end)
    moved = np.where(inside, np.rint((timing.begin + timing.window * part) * 1e3) / 1e3, submitted)
    return tuple(
        job
        if submitted == job.submitted
        else dataclasses.replace(
            job, submitted=submitted, deadline=job.deadline + submitted - job.submitted if job.deadline < inf else inf
        )
        for job, submitted in zip(jobs, moved.tolist(), strict=True)
    )
