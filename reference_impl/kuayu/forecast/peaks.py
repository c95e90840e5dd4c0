"""Loads laid over a base: where they may run, and where one adds least to what is there.

The plan with the lowest peak as an integer programme, where it is small, and a peak below which no plan can be.

Lower peaks by moving loads: greedy plans, improved by taking out what makes the peak and laying it anew.

Ruin and recreate: G. Schrimpf et al., "Record breaking optimization results using the ruin and recreate principle",
Journal of Computational Physics 159(2), 2000. What is taken out is drawn by a generator with a fixed seed.

A plan that lowers the peaks of demand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from kuayu.forecast.requests import Floats, Whole, check_peak, rounded

if TYPE_CHECKING:
    from kuayu_schemas import documents


@dataclass(frozen=True)
class Load:
    """A load that can be moved."""

    devices: int
    slots: int
    earliest: int
    latest: int
    planned: int
    interruptible: bool

    @staticmethod
    def of(load: "documents.MovableLoad") -> "Load":
        """Read a load."""
        window = int(load["earliest"]), int(load["latest"]), int(load["planned"])
        return Load(int(load["devices"]), int(load["slots"]), *window, load.get("interruptible", False))

    @property
    def work(self) -> int:
        """Devices × steps."""
        return self.devices * self.slots

    @property
    def as_planned(self) -> Whole:
        """Steps in which it would run otherwise."""
        return np.arange(self.planned, self.planned + self.slots)

    @property
    def starts(self) -> Whole:
        """Steps in which it may begin if it does not pause."""
        return np.arange(self.earliest, self.latest - self.slots + 2)


Plan = list[Whole]
"""Steps in which each load runs, rising."""


def profile(base: Floats, loads: Sequence[Load], plan: Plan) -> Floats:
    """Devices in each step of the base."""
    devices = base.copy()
    for load, slots in zip(loads, plan, strict=True):
        devices[slots] += load.devices
    return devices


def least(load: Load, total: Floats) -> Whole:
    """Steps in which a load adds least to what is there: to the highest of them, then to their sum."""
    window = total[load.earliest : load.latest + 1]
    if load.interruptible:
        return load.earliest + np.sort(np.argsort(window, kind="stable")[: load.slots])
    sums = np.concatenate([[0.0], np.cumsum(window)])
    total = sums[load.slots :] - sums[: -load.slots]
    highest = _sliding(window, load.slots)
    lowest = np.flatnonzero(highest <= highest.min())
    lightest = lowest[total[lowest] <= total[lowest].min()]
    begin = int(lightest[np.argmin(np.abs(load.earliest + lightest - load.planned))])
    return np.arange(load.earliest + begin, load.earliest + begin + load.slots)


def _sliding(values: Floats, width: int) -> Floats:
    """Highest of each so many values that follow each other, by doubling."""
    highest, reach = values, 1
    while 2 * reach <= width:
        highest, reach = np.maximum(highest[:-reach], highest[reach:]), 2 * reach
    rest = width - reach
    return np.maximum(highest[: len(highest) - rest], highest[rest:]) if rest else highest


CHOICES = 2500
"""Most yes or no of a programme."""

NODES = 200
"""Most nodes of the search tree; a limit of time would not give the same plan twice."""

INTERVALS = 400
"""Most loads for which intervals are looked at."""


def bound(base: Floats, loads: Sequence[Load]) -> float:
    """A peak that no plan is below: the base, each load alone, and the work that no interval can give away."""
    peak = float(base.max())
    for load in loads:
        window = np.sort(base[load.earliest : load.latest + 1])
        peak = max(peak, float(window[load.slots - 1]) + load.devices)
    if not loads or len(loads) > INTERVALS:
        return peak
    sums = np.concatenate([[0.0], np.cumsum(base)])
    first, last = np.array([(load.earliest, load.latest) for load in loads]).T
    work = np.array([load.work for load in loads])
    for begin in np.unique(first).tolist():
        ends, within = np.unique(last[first >= begin], return_inverse=True)
        needed = np.cumsum(np.bincount(within, work[first >= begin]))
        peak = max(peak, float(((sums[ends + 1] - sums[begin] + needed) / (ends + 1 - begin)).max()))
    return peak


def programmed(base: Floats, loads: Sequence[Load]) -> Plan | None:
    """The plan that the programme finds, or nothing where it is too large or finds none."""
    count = sum(load.latest - load.earliest + 1 - (0 if load.interruptible else load.slots - 1) for load in loads)
    if not loads or count > CHOICES:
        return None
    options = [_options(load) for load in loads]
    rows, columns, weights = [], [], []
    chosen: list[tuple[int, int]] = []
    offset = 0
    for load, option in zip(loads, options, strict=True):
        chosen.append((offset, offset + len(option)))
        for slots in option:
            rows.append(slots)
            columns.append(np.full(len(slots), offset))
            weights.append(np.full(len(slots), float(load.devices)))
            offset += 1
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
        np.sort(np.concatenate([slots for slots, yes in zip(option, taken[since:upto], strict=True) if yes]))
        for option, (since, upto) in zip(options, chosen, strict=True)
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
    work, devices, slack, earliest, planned = table.T
    after = (planned, earliest)
    first = np.lexsort((*after, slack, -devices, -work))
    return (
        [first]
        if len(loads) > CROWD
        else [
            first,
            np.lexsort((*after, slack, -work, -devices)),
            np.lexsort((*after, -devices, -work, slack)),
        ]
    )


def _greedy(base: Floats, loads: Sequence[Load], order: Whole) -> Plan:
    total, plan = base.copy(), [load.as_planned for load in loads]
    for number in order.tolist():
        plan[number] = least(loads[number], total)
        total[plan[number]] += loads[number].devices
    return plan


def _improved(base: Floats, loads: Sequence[Load], plan: Plan, enough: float) -> Plan:
    """Take out loads that run at the peak and some others, lay them anew, and keep what is better."""
    if len(loads) * len(base) > TABLE:
        return plan
    chance = np.random.default_rng(SEED)
    runs = np.zeros((len(loads), len(base)), dtype=bool)
    for number, slots in enumerate(plan):
        runs[number, slots] = True
    total = profile(base, loads, plan)
    rank, effort = _rank(total), 0
    sizes = np.array([load.latest - load.earliest + 1 for load in loads])
    fixed = np.array([load.latest - load.earliest + 1 == load.slots for load in loads], dtype=bool)
    for _ in range(ROUNDS):
        top = np.flatnonzero(total >= rank[0])
        at_top = np.flatnonzero(runs[:, top].any(axis=1) & ~fixed)
        if rank[0] <= enough or not len(at_top) or effort > EFFORT:
            break
        taken = _taken(at_top, np.flatnonzero(~fixed), chance)
        tried, laid = total.copy(), list(plan)
        for number in taken:
            tried[plan[number]] -= loads[number].devices
        for number in taken:
            laid[number] = least(loads[number], tried)
            tried[laid[number]] += loads[number].devices
        effort += int(sizes[taken].sum()) + len(total) + 10 * len(loads)  # a list is copied too
        if _rank(tried) < rank:
            total, plan, rank = tried, laid, _rank(tried)
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


def _rank(total: Floats) -> Rank:
    return float(total.max()), float(total @ total)


METHOD: "documents.ForecastMethod" = {"name": "kuayu-packing", "version": "1.0.0"}

SLACK = 1e-9


def shave(request: "documents.PeakRequest") -> "documents.PeakPlan":
    """Move loads so that the most that is needed at once is as little as can be found.

    Loads are packed; where that is not known to be best and the choices are few, an integer programme tries too.

    Returns:
        A plan, never with a higher peak than what was planned.

    Raises:
        kuayu.refusals.RepeatedName: Loads share a name.
        kuayu.refusals.Impossible: A load does not fit into its window.
    """
    check_peak(request)
    base = np.array(request["base"], dtype=float)
    loads = [Load.of(load) for load in request["loads"]]
    before = peak(base, loads, [load.as_planned for load in loads])
    enough = bound(base, loads)
    plan = packed(base, loads, enough + SLACK)
    after = peak(base, loads, plan)
    if after > enough + SLACK:
        other = programmed(base, loads)
        if other is not None and peak(base, loads, other) < after - SLACK:
            plan, after = other, peak(base, loads, other)
    return {
        "revision": request["revision"],
        "method": METHOD,
        "loads": [
            {"load": load["id"], "slots": slots.tolist()} for load, slots in zip(request["loads"], plan, strict=True)
        ],
        "peak_before": rounded(before),
        "peak_after": rounded(after),
    }
