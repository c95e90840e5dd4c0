"""Lower peaks by moving loads: greedy plans, improved by taking out what makes the peak and laying it anew.

Ruin and recreate: G. Schrimpf et al., "Record breaking optimization results using the ruin and recreate principle",
Journal of Computational Physics 159(2), 2000. What is taken out is drawn by a generator with a fixed seed.
"""

from collections.abc import Sequence

import numpy as np

from kuayu.forecast.profiles import Load, Plan, least, profile
from kuayu.forecast.values import Floats, Whole

SEED = 2000

ROUNDS = 400
"""Most times that something is taken out."""

EFFORT = 2_000_000
"""Most steps of windows that are looked at over all rounds."""

TABLE = 2_000_000
"""Most loads × steps of a plan that is improved; beyond that the greedy plan stands."""

CROWD = 2000
"""Loads from which one order is tried."""

TAKEN = 12
"""Most loads that are taken out at once."""

Rank = tuple[float, float]
"""How good a plan is, less being better: its peak, and the sum of squares."""


def packed(base: Floats, loads: Sequence[Load], enough: float) -> Plan:
    """The best plan that is found, and never a worse one than what was planned.

    Args:
        base: Devices that are needed in any case, by step.
        loads: What may be moved.
        enough: A peak that no plan is below; where it is reached, the search ends.
    """
    plans = [[load.as_planned for load in loads], *(_greedy(base, loads, order) for order in _orders(loads))]
    best = min(plans, key=lambda plan: _rank(profile(base, loads, plan)))
    return _improved(base, loads, best, enough)


def _orders(loads: Sequence[Load]) -> list[Whole]:
    """Orders in which loads are laid: the most work, the most devices, and the least room first."""
    table = np.array(
        [
            (load.work, load.devices, load.latest - load.earliest + 1 - load.slots, load.earliest, load.planned)
            for load in loads
        ]
    ).reshape(-1, 5)
    work, devices, room, earliest, planned = table.T
    after = (planned, earliest)
    first = np.lexsort((*after, room, -devices, -work))
    return (
        [first]
        if len(loads) > CROWD
        else [
            first,
            np.lexsort((*after, room, -work, -devices)),
            np.lexsort((*after, -devices, -work, room)),
        ]
    )


def _greedy(base: Floats, loads: Sequence[Load], order: Whole) -> Plan:
    there, plan = base.copy(), [load.as_planned for load in loads]
    for number in order.tolist():
        plan[number] = least(loads[number], there)
        there[plan[number]] += loads[number].devices
    return plan


def _improved(base: Floats, loads: Sequence[Load], plan: Plan, enough: float) -> Plan:
    """Take out loads that run at the peak and some others, lay them anew, and keep what is better."""
    if len(loads) * len(base) > TABLE:
        return plan
    chance = np.random.default_rng(SEED)
    runs = np.zeros((len(loads), len(base)), dtype=bool)
    for number, slots in enumerate(plan):
        runs[number, slots] = True
    there = profile(base, loads, plan)
    rank, effort = _rank(there), 0
    sizes = np.array([load.latest - load.earliest + 1 for load in loads])
    fixed = np.array([load.latest - load.earliest + 1 == load.slots for load in loads], dtype=bool)
    for _ in range(ROUNDS):
        top = np.flatnonzero(there >= rank[0])
        at_top = np.flatnonzero(runs[:, top].any(axis=1) & ~fixed)
        if rank[0] <= enough or not len(at_top) or effort > EFFORT:
            break
        taken = _taken(at_top, np.flatnonzero(~fixed), chance)
        tried, laid = there.copy(), list(plan)
        for number in taken:
            tried[plan[number]] -= loads[number].devices
        for number in taken:
            laid[number] = least(loads[number], tried)
            tried[laid[number]] += loads[number].devices
        effort += int(sizes[taken].sum()) + len(there) + 10 * len(loads)  # a list is copied too
        if _rank(tried) < rank:
            there, plan, rank = tried, laid, _rank(tried)
            for number in taken:
                runs[number] = False
                runs[number, laid[number]] = True
    return plan


def _taken(at_top: Whole, free: Whole, chance: np.random.Generator) -> list[int]:
    """Numbers of loads to take out, one of them from the peak, in the order in which they are laid anew."""
    first = int(chance.choice(at_top))
    others = chance.permutation(free[free != first])[: int(chance.integers(0, TAKEN))]
    taken = np.append(others, first)
    return [int(one) for one in chance.permutation(taken)]


def _rank(there: Floats) -> Rank:
    return float(there.max()), float(there @ there)
