"""Arrivals at all homes, as many as a load asks for.

Every candidate has a turn: the level of demand from which on it is there. Candidates join in the order of their turns
until what they would hold between the begin and the end, had each started at once, is the load times the capacity. So a
window has the load that it is said to have.
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from kuayu_conformance.testbed.scheduling.workload.curves import exact_sum
from kuayu_conformance.testbed.scheduling.workload.demand import within
from kuayu_conformance.testbed.scheduling.workload.families import Family
from kuayu_conformance.testbed.scheduling.workload.homes import Home
from kuayu_conformance.testbed.scheduling.workload.submitting import (
    Arrivals,
    NotEnoughJobs,
    drawn,
    joined,
    outgrown,
    oversize,
    replayed,
    serving,
)
from kuayu_conformance.testbed.scheduling.workload.traces import read

MOST_DOUBLINGS = 12
"""Times that candidates are drawn again, twice as many, until they suffice."""
LEAST_OF_HOMES = 0.25
"""Share of the load that is left to usual jobs where a job larger than its home holds more than it should."""


def populate(
    homes: Sequence[Home], load: float, seconds: float, family: Family, seed: str, source: str, data: Path | None
) -> Arrivals:
    """What is submitted until so many seconds, in order; what was submitted earlier and still runs comes at nought.

    Raises:
        MissingTraces: The source is a trace, and its folder is not known or does not hold it.
        NotEnoughJobs: The trace is shorter than the scenario, or empty for all of it.
        UnknownSource: There is no such source.
    """
    target = load * seconds * sum(home.capacity for home in homes)
    trace = None if source.startswith("fitted") else read(source, data)
    serves = 0.0 if trace is not None and trace.serving.any() else target * family.serving
    large = target * family.oversize if len(outgrown(homes)) else 0.0
    beside = []
    if large > 0.0:
        beside.append(_up_to(large, seconds, lambda most: oversize(homes, most * large, seconds, seed, source)))
    if serves > 0.0:
        beside.append(_up_to(serves, seconds, lambda most: serving(homes, most * serves, seconds, seed)))
    rest = max(target - sum(_held(part, seconds) for part in beside), LEAST_OF_HOMES * target)
    level = rest / (seconds * sum(home.ratio * home.capacity for home in homes))

    def of_homes(most: float) -> Arrivals:
        if trace is None:
            return joined([drawn(home, i, seconds, family, seed, source, level, most) for i, home in enumerate(homes)])
        return joined([replayed(home, i, trace, seconds, seed, level * most) for i, home in enumerate(homes)])

    return _settled(joined([_up_to(rest, seconds, of_homes), *beside]), seconds)


def _held(arrivals: Arrivals, seconds: float) -> float:
    return exact_sum(within(arrivals.submitted, arrivals.duration, arrivals.devices, seconds))


def _settled(arrivals: Arrivals, seconds: float) -> Arrivals:
    """Only those that are there between nought and the end, with what is left of them, in the order of submission."""
    there = arrivals.only((arrivals.submitted + arrivals.duration > 0.0) & (arrivals.submitted < seconds))
    left = np.maximum(1.0, np.rint(there.duration + np.minimum(there.submitted, 0.0)))
    submitted = np.rint(np.maximum(there.submitted, 0.0) * 1e3) / 1e3
    return dataclasses.replace(there, submitted=submitted, duration=left).only(np.argsort(submitted, kind="stable"))


def _up_to(target: float, seconds: float, candidates: Callable[[float], Arrivals]) -> Arrivals:
    """Candidates until a target in device seconds is reached; they are drawn for twice of it, then for more."""
    for doubling in range(1, MOST_DOUBLINGS):
        cut = _cut(candidates(2.0**doubling), target, seconds)
        if cut is not None:
            return cut
    raise NotEnoughJobs(f"no jobs add up to the load within {seconds:.0f} s; take a longer scenario or another seed")


def _cut(arrivals: Arrivals, target: float, seconds: float) -> Arrivals | None:
    """Those whose turn comes before the target is reached, the last one in or out as is nearer; none if it is not."""
    order = np.argsort(arrivals.turn, kind="stable")
    reached = np.cumsum(within(arrivals.submitted, arrivals.duration, arrivals.devices, seconds)[order])
    count = int(np.searchsorted(reached, target))
    if count == len(order):
        return None
    before = float(reached[count - 1]) if count else 0.0
    if reached[count] - target < target - before:
        count += 1
    return arrivals.only(np.sort(order[:count]))
