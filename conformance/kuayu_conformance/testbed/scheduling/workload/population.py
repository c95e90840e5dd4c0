"""Arrivals at all homes, as many as a load asks for.

Every candidate has a turn: the level of demand from which on it is there. Candidates join in the order of their turns
until what they would hold, had each started at once, is the load times the capacity. That is counted over one stretch
of time after the other (a day, say), with what came before and would still run: so every stretch has the load that it
is said to have, that of the window as well as those in which it drains.
"""

import dataclasses
from collections.abc import Callable, Sequence
from math import ceil
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
    homes: Sequence[Home],
    load: float,
    seconds: float,
    until: float,
    family: Family,
    seed: str,
    source: str,
    data: Path | None,
) -> Arrivals:
    """What is submitted, in order; what was submitted earlier and still runs comes at nought.

    Args:
        homes: Domains.
        load: What is to be held of their capacity.
        seconds: Over which that is counted, again and again.
        until: Seconds until which jobs are submitted, no fewer.
        family: Parameters.
        seed: What is drawn follows from it.
        source: Where jobs come from.
        data: Folder of public originals.

    Raises:
        MissingTraces: The source is a trace, and its folder is not known or does not hold it.
        NotEnoughJobs: The trace is shorter than the scenario, or empty for all of it.
        UnknownSource: There is no such source.
    """
    target = load * seconds * sum(home.capacity for home in homes)
    stretches = _stretches(seconds, until)
    trace = None if source.startswith("fitted") else read(source, data)
    serves = 0.0 if trace is not None and trace.serving.any() else target * family.serving
    large = target * family.oversize if len(outgrown(homes)) else 0.0
    beside, longer = [], until / seconds
    if large > 0.0:
        added = _up_to(
            [large] * len(stretches), stretches, lambda m: oversize(homes, m * large * longer, until, seed, source)
        )
        beside.append(added)
    if serves > 0.0:
        added = _up_to([serves] * len(stretches), stretches, lambda m: serving(homes, m * serves * longer, until, seed))
        beside.append(added)
    rest = [
        max(target - sum(_held(part, *stretch) for part in beside), LEAST_OF_HOMES * target) for stretch in stretches
    ]
    level = rest[0] / (seconds * sum(home.ratio * home.capacity for home in homes))

    def of_homes(most: float) -> Arrivals:
        if trace is None:
            return joined([drawn(home, i, until, family, seed, source, level, most) for i, home in enumerate(homes)])
        return joined([replayed(home, i, trace, until, seed, level * most) for i, home in enumerate(homes)])

    return _settled(joined([_up_to(rest, stretches, of_homes), *beside]), until)


def _stretches(seconds: float, until: float) -> list[tuple[float, float]]:
    """Begin and end of each stretch over which the load is counted; the last one may reach beyond the end."""
    return [(place * seconds, (place + 1) * seconds) for place in range(ceil(until / seconds))]


def _held(arrivals: Arrivals, since: float, until: float) -> float:
    return exact_sum(within(arrivals.submitted - since, arrivals.duration, arrivals.devices, until - since))


def _settled(arrivals: Arrivals, seconds: float) -> Arrivals:
    """Only those that are there between nought and the end, with what is left of them, in the order of submission."""
    present = arrivals.only((arrivals.submitted + arrivals.duration > 0.0) & (arrivals.submitted < seconds))
    left = np.maximum(1.0, np.rint(present.duration + np.minimum(present.submitted, 0.0)))
    submitted = np.rint(np.maximum(present.submitted, 0.0) * 1e3) / 1e3
    return dataclasses.replace(present, submitted=submitted, duration=left).only(np.argsort(submitted, kind="stable"))


def _up_to(
    targets: Sequence[float], stretches: Sequence[tuple[float, float]], candidates: Callable[[float], Arrivals]
) -> Arrivals:
    """Candidates until each stretch has its target in device seconds; they are drawn for twice of it, then for more."""
    for doubling in range(1, MOST_DOUBLINGS):
        cut = _cut(candidates(2.0**doubling), targets, stretches)
        if cut is not None:
            return cut
    seconds = stretches[0][1]
    raise NotEnoughJobs(f"no jobs add up to the load within {seconds:.0f} s; take a longer scenario or another seed")


def _cut(arrivals: Arrivals, targets: Sequence[float], stretches: Sequence[tuple[float, float]]) -> Arrivals | None:
    """Those whose turn comes before the target is reached, the last one in or out as is nearer; none if it is not."""
    order = np.argsort(arrivals.turn, kind="stable")
    joined_ = np.zeros(len(order), dtype=np.bool_)
    # what comes before the first stretch or after the last belongs to these
    number = np.searchsorted([since for since, _ in stretches[1:]], arrivals.submitted[order], side="right")
    for place, (target, (since, until)) in enumerate(zip(targets, stretches, strict=True)):
        held = within(arrivals.submitted - since, arrivals.duration, arrivals.devices, until - since)
        members = order[number == place]
        before = float(held[joined_].sum())
        if before >= target:
            continue
        reached = before + np.cumsum(held[members])
        count = int(np.searchsorted(reached, target))
        if count == len(members):
            return None
        last = float(reached[count - 1]) if count else before
        count += bool(reached[count] - target < target - last)
        joined_[members[:count]] = True
    return arrivals.only(np.nonzero(joined_)[0])
