"""Sizes that need no service: what somebody gives who knows, and what the source's method comes to."""

import numpy as np

from kuayu_conformance.testbed.tasks.drawing import Tasks
from kuayu_conformance.testbed.tasks.kinds import CORES, DEVICES
from kuayu_conformance.testbed.tasks.law import Numbers

_HALVINGS = 30


def ideal(tasks: Tasks) -> Numbers:
    """What each task needs, no more than it asks for: no task becomes slower."""
    return tasks.ideal


def tolerant(tasks: Tasks, allowed: float) -> Numbers:
    """As little of cores, then of devices, as lets each task take so much longer than on what it asks for."""
    limit = tasks.slowed(tasks.requested) * (1.0 + allowed)
    given = tasks.ideal
    for resource in (CORES, DEVICES):
        low, high = np.zeros(len(tasks)), np.ones(len(tasks))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            tried = given.copy()
            tried[:, resource] *= middle
            enough = tasks.slowed(tried) <= limit
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        given[:, resource] *= high
    return given


def at_one_rate(tasks: Tasks, allowed: float) -> Numbers:
    """The same part of its cores for every task, as little as makes them so much slower on the mean.

    What algorithm 1 of the source does where cores are the only resource that may be cut, here with the true times.
    """
    before = tasks.slowed(tasks.requested)
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        enough = float((tasks.slowed(_cores(tasks, middle)) / before).mean()) <= 1.0 + allowed
        low, high = (low, middle) if enough else (middle, high)
    return _cores(tasks, high)


def _cores(tasks: Tasks, part: float) -> Numbers:
    given = tasks.requested.copy()
    given[:, CORES] *= part
    return given
