"""How long a task takes on what it is given, what it uses meanwhile, and when it dies.

Given a part of what it needs, the share of its time that waits for that resource grows as the reciprocal. Whatever it
is, work stays the same: nobody uses more than is given, so that time is at least use ÷ given. Where more than one
resource is short the delays add.
"""

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.tasks.kinds import MEMORY

Numbers = NDArray[np.float64]

MARGIN = 1e-9
"""Part by which memory may fall short of a peak for no other reason than rounding."""


def slowed(given: Numbers, need: Numbers, use: Numbers, waits: Numbers) -> Numbers:
    """Time on what is given ÷ time on what is needed.

    Args:
        given: ``(n, 3)``, none below nought; who is given nothing of what it needs takes for ever.
        need: ``(n, 3)``.
        use: ``(n, 3)``; the mean at full speed.
        waits: ``(n, 3)``; shares of the time that wait for each resource.

    Returns:
        ``(n,)``; one or more.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        short = np.where(need > 0.0, np.maximum(need / given - 1.0, 0.0), 0.0)
        bound = np.where(use > 0.0, use / given, 0.0)[:, :MEMORY]
    with np.errstate(invalid="ignore"):
        delays = np.where((short > 0.0) & (waits > 0.0), waits * short, 0.0)
    return np.asarray(np.maximum(1.0 + delays.sum(axis=1), np.maximum(bound.max(axis=1), 1.0)))


def used(use: Numbers, slow: Numbers) -> Numbers:
    """Mean use ``(n, 3)`` while it runs: the same work in more time, and memory as ever."""
    mean_use = use / slow[:, None]
    mean_use[:, MEMORY] = use[:, MEMORY]
    return mean_use


def dies(given: Numbers, peak: Numbers) -> NDArray[np.bool_]:
    """Whether memory runs out: less is given than the peak, both ``(n,)``."""
    return given < peak * (1.0 - MARGIN)
