"""Which resource runs out first: what one more of each is worth.

A request does not tell the cluster that it is for. What machines with accelerators hold is known though, and what tasks
ask for at the same time is in the history; a resource is the scarcer, the more kinds of machines it fills first.
"""

from collections.abc import Iterable

import numpy as np

from kuayu.demand.sizing_records import RESOURCES, Records
from kuayu.demand.strategy import Floats

GB = 1e9

MACHINES = (
    (8, 40, 512 * GB),
    (16, 48, 1536 * GB),
    (8, 128, 1024 * GB),
    (8, 112, 2048 * GB),
    (8, 192, 1024 * GB),
)
"""Accelerators, cores, memory: NVIDIA DGX-1, DGX-2, DGX A100 and DGX H100, Huawei Atlas 800 (9000), by data sheets."""


def worth(history: Iterable[Records]) -> Floats:
    """Parts of the worth of all that tasks of a history asked for that fall to each resource, 3; their sum is one.

    Share of the machines that are full of it first; each resource counts as one kind of machine more, equally divided,
    so that none is worth nothing.
    """
    with np.errstate(over="ignore"):  # what is beyond doubles is scarce
        held = sum((each.duration @ each.given for each in history), np.zeros(len(RESOURCES)))
    first = np.full(len(RESOURCES), 1 / len(RESOURCES))
    for machine in np.array(MACHINES):
        full = held / machine
        if full.max() > 0:
            first[int(full.argmax())] += 1
    return np.asarray(first / first.sum())
