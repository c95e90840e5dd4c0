"""The plan with the lowest peak as an integer programme, where it is small, and a peak below which no plan can be."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from kuayu.forecast.profiles import Load, Plan, profile
from kuayu.forecast.values import Floats, Whole

CHOICES = 2500
"""Most yes or no of a programme."""

NODES = 200
"""Most nodes of the search tree; a limit of time would not give the same plan twice."""

INTERVALS = 400
"""Most loads for which intervals are looked at."""


def bound(base: Floats, loads: Sequence[Load]) -> float:
    """A peak that no plan is below: the base, each load alone, and the work that no interval can give away."""
    found = float(base.max())
    for load in loads:
        window = np.sort(base[load.earliest : load.latest + 1])
        found = max(found, float(window[load.slots - 1]) + load.devices)
    if not loads or len(loads) > INTERVALS:
        return found
    sums = np.concatenate([[0.0], np.cumsum(base)])
    first, last = np.array([(load.earliest, load.latest) for load in loads]).T
    work = np.array([load.work for load in loads])
    for begin in np.unique(first).tolist():
        ends, within = np.unique(last[first >= begin], return_inverse=True)
        needed = np.cumsum(np.bincount(within, work[first >= begin]))
        found = max(found, float(((sums[ends + 1] - sums[begin] + needed) / (ends + 1 - begin)).max()))
    return found


def programmed(base: Floats, loads: Sequence[Load]) -> Plan | None:
    """The plan that the programme finds, or nothing where it is too large or finds none."""
    count = sum(load.latest - load.earliest + 1 - (0 if load.interruptible else load.slots - 1) for load in loads)
    if not loads or count > CHOICES:
        return None
    options = [_options(load) for load in loads]
    rows, columns, weights = [], [], []
    chosen: list[tuple[int, int]] = []
    at = 0
    for load, each in zip(loads, options, strict=True):
        chosen.append((at, at + len(each)))
        for slots in each:
            rows.append(slots)
            columns.append(np.full(len(slots), at))
            weights.append(np.full(len(slots), float(load.devices)))
            at += 1
    steps = len(base)
    # one more column stands for the peak
    table = coo_array(
        (
            np.concatenate([*weights, np.full(steps, -1.0)]),
            (np.concatenate([*rows, np.arange(steps)]), np.concatenate([*columns, np.full(steps, count)])),
        ),
        shape=(steps, count + 1),
    )
    places = np.concatenate([np.full(upto - since, number) for number, (since, upto) in enumerate(chosen)])
    once = coo_array((np.ones(count), (places, np.arange(count))), shape=(len(loads), count + 1))
    runs = np.array([load.slots if load.interruptible else 1 for load in loads], dtype=float)
    solved = milp(
        np.append(np.zeros(count), 1.0),
        constraints=[LinearConstraint(table.tocsr(), -np.inf, -base), LinearConstraint(once.tocsr(), runs, runs)],
        integrality=np.append(np.ones(count), 0.0),
        bounds=Bounds(np.zeros(count + 1), np.append(np.ones(count), np.inf)),
        options={"node_limit": NODES},
    )
    if solved.x is None:
        return None
    taken = solved.x[:count] > 0.5  # noqa: PLR2004 - yes or no
    plan = [
        np.sort(np.concatenate([slots for slots, yes in zip(each, taken[since:upto], strict=True) if yes]))
        for each, (since, upto) in zip(options, chosen, strict=True)
    ]
    return plan if all(len(slots) == load.slots for slots, load in zip(plan, loads, strict=True)) else None


def peak(base: Floats, loads: Sequence[Load], plan: Plan) -> float:
    """Most devices at once."""
    return float(profile(base, loads, plan).max())


def _options(load: Load) -> list[Whole]:
    """Sets of steps of which some are chosen: single ones, or all from a begin."""
    if load.interruptible:
        return [np.array([step]) for step in range(load.earliest, load.latest + 1)]
    return [np.arange(begin, begin + load.slots) for begin in load.starts.tolist()]
