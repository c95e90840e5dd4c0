"""Device-seconds that are held in vain, or missing, when a plan meets what a training can use."""

from collections.abc import Sequence
from itertools import accumulate
from math import ceil
from typing import NamedTuple


class Held(NamedTuple):
    """So many accelerators for so many seconds."""

    devices: int
    seconds: float


def in_vain(plan: Sequence[Held], use: Sequence[Held], node: int) -> float:
    """Integral of the difference between what is held and what is of use, in device-seconds.

    Nodes are held whole. When the plan has ended before the use, nothing is held; when the use has ended, nothing is
    of use.

    Args:
        plan: What is held, one after the other.
        use: What is of use, likewise.
        node: Accelerators of a node.
    """
    ends = sorted({*accumulate(each.seconds for each in plan), *accumulate(each.seconds for each in use)})
    total, before = 0.0, 0.0
    for end in ends:
        middle = (before + end) / 2
        held = ceil(_at(plan, middle) / node) * node
        total += abs(held - _at(use, middle)) * (end - before)
        before = end
    return total


def _at(course: Sequence[Held], instant: float) -> int:
    for each, end in zip(course, accumulate(each.seconds for each in course), strict=True):
        if instant < end:
            return each.devices
    return 0
