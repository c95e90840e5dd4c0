"""What is submitted at all homes: candidates, and as many of them as a load asks for.

1. **Candidates.** They come from the fit, from a trace, to serve, and of a size that no home holds. Each has a turn,
   the level of demand from which on it is there.
2. **Load.** Arrivals at all homes, as many as a load asks for.

   Every candidate has a turn: the level of demand from which on it is there. Candidates join in the order of their
   turns until what they would hold, had each started at once, is the load times the capacity. That is counted over one
   stretch of time after the other (a day, say), with what came before and would still run: so every stretch has the
   load that it is said to have, that of the window as well as those in which it drains.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.elementary import Floats, exact_sum, growth, read_off
from kuayu_conformance.testbed.scheduling.workload.families import Family, Home, fit_of
from kuayu_conformance.testbed.scheduling.workload.fitted import LEVELS, draw_cluster, parameters
from kuayu_conformance.testbed.scheduling.workload.traces import DAY, Trace, read, within

SETTLED = 20 * DAY
"""Seconds before the begin from which on jobs are drawn: one that still runs is there with what is left of it."""
COPIED_WITHIN = 1800.0
"""Seconds after a job of a trace in which its copies are submitted where a domain is larger than its cluster was."""
OPENB_P95 = 48.8
"""Devices that all of openb held at its 95th percentile: it has no clusters, and stands whole for each domain."""
OVER = (1.05, 1.6)
"""Devices of a job larger than its home, over those of the home; an assumption."""
MAX_DEVICE_SHARE = 0.5
"""Share of all devices that such a job asks for at most."""
NODE = 8
"""Devices that such a job asks for at once."""
MAX_TRACE_DEVICES = 32
"""Devices of the largest jobs of the traces: one of more devices does as much work as these, and takes less time."""
MOST_DOUBLINGS = 12
"""Times that candidates are drawn again, twice as many, until they suffice."""
LEAST_OF_HOMES = 0.25
"""Share of the load that is left to usual jobs where a job larger than its home holds more than it should."""


class NotEnoughJobs(Exception):
    """A source has no jobs in the time asked for that could add up to the load."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Jobs as they are submitted, in arrays by job.

    Attributes:
        submitted: Seconds since the scenario began; may be before.
        duration: Seconds on the reference devices that were asked for.
        devices: How many were asked for.
        share: Share of these that was asked for; below one where a device may be shared.
        home: Place of the home.
        batch: Number of the batch; those of one batch are of one home.
        serving: Whether it serves.
        turn: Level of demand from which on it is there.
    """

    submitted: Floats
    duration: Floats
    devices: Floats
    share: Floats
    home: NDArray[np.intp]
    batch: NDArray[np.intp]
    serving: NDArray[np.bool_]
    turn: Floats

    def only(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> "Arrivals":
        """Some of them, by a mask or by places."""
        return Arrivals(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(self)))


def joined(parts: Sequence[Arrivals]) -> Arrivals:
    """All of some arrivals, with batches numbered anew."""
    first = np.cumsum([0, *(int(part.batch.max(initial=-1)) + 1 for part in parts)])
    parts = [dataclasses.replace(part, batch=part.batch + base) for part, base in zip(parts, first, strict=False)]
    fields = (field.name for field in dataclasses.fields(Arrivals))
    return Arrivals(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))


def inserted(arrivals: Arrivals, submitted: float, duration: float, devices: float, home: int) -> Arrivals:
    """The same with one training job more, in the order of submission."""
    begin, length, size, nought = np.array([submitted]), np.array([duration]), np.array([devices]), np.zeros(1)
    one = _alone(begin, length, size, np.ones(1), np.array([home]), nought)
    both = joined([arrivals, one])
    return both.only(np.argsort(both.submitted, kind="stable"))


def drawn(
    home: Home, place: int, seconds: float, family: Family, seed: str, source: str, level: float, most: float
) -> Arrivals:
    """Jobs by the fit, up to ``most`` times those of a level; the scenario begins at midnight of a weekday drawn."""
    fit = fit_of(source)
    cluster = dataclasses.replace(home.cluster, active=1.0 - family.skew * (1.0 - home.cluster.active))
    size = home.ratio * home.capacity * DAY / (cluster.batches * cluster.work)
    begin = (4 * 7 + Chance(seed, "day of the week").below(7)) * DAY
    span = (begin - SETTLED, begin + seconds)
    chance = stream(seed, f"jobs of {place}")
    drawn = draw_cluster(fit, cluster, span, chance, scale=size * level, most=most, burst=family.burst)
    count = len(drawn.batch)
    return Arrivals(
        drawn.submitted - begin,
        drawn.duration,
        drawn.devices,
        np.ones(count),
        np.full(count, place, dtype=np.intp),
        drawn.batch,
        np.zeros(count, dtype=np.bool_),
        drawn.turn / size,
    )


def replayed(home: Home, place: int, trace: Trace, seconds: float, seed: str, level: float) -> Arrivals:
    """Jobs of a cluster of a trace from one of its midnights on, left out or copied as the domain's size asks."""
    since, until = trace.span
    days = int((until - since - seconds) / DAY)
    if days < 0:
        raise NotEnoughJobs(f"{trace.name} has jobs for {(until - since) / DAY:.0f} days; the scenario is longer")
    own = len(trace.clusters) > 1
    begin = since + DAY * Chance(seed, "begin in the trace" if own else f"begin in the trace of {place}").below(
        days + 1
    )
    selected = trace.cluster == (trace.clusters.index(home.cluster.name) if own else 0)
    selected &= (trace.submitted + trace.duration > begin) & (trace.submitted < begin + seconds)
    size = home.capacity / home.cluster.p95 if own else home.capacity / OPENB_P95
    chance = stream(seed, f"copies of {place}")
    jobs = np.nonzero(selected)[0]
    own_fraction = chance.random(len(jobs))
    copies = np.floor(size * level + own_fraction).astype(np.intp)
    of = np.repeat(np.arange(len(jobs)), copies)
    rank = np.arange(len(of)) - np.repeat(np.cumsum(copies) - copies, copies)
    late = np.where(rank == 0, 0.0, COPIED_WITHIN * chance.random(len(of)))
    job = jobs[of]
    return Arrivals(
        trace.submitted[job] - begin + late,
        trace.duration[job],
        trace.devices[job],
        trace.share[job],
        np.full(len(job), place, dtype=np.intp),
        of,
        trace.serving[job],
        (rank + 1 - own_fraction[of]) / size,
    )


def serving(homes: Sequence[Home], work: float, seconds: float, seed: str) -> Arrivals:
    """Pods that serve, about as many as hold so many device seconds; each comes alone, to a home by its capacity."""
    fitted = parameters()[1]
    sizes, shares = np.array([float(size) for size, _ in fitted.sizes]), np.array([share for _, share in fitted.sizes])
    device_seconds = sum(size * share for size, share in fitted.sizes) * fitted.duration
    chance = stream(seed, "serving")
    instant, pick, level, share_level, where, turn = chance.random((6, _count(work, seconds, device_seconds)))
    return _alone(
        instant * (seconds + SETTLED) - SETTLED,
        growth(read_off(level, LEVELS, fitted.durations)),
        sizes[_picked(pick, shares)],
        read_off(share_level, LEVELS, fitted.shares),
        _picked(where, np.array([home.capacity for home in homes])),
        turn,
        serving=True,
    )


def outgrown(homes: Sequence[Home]) -> NDArray[np.intp]:
    """Places of homes that a job can be larger than; none where one domain has most of all devices."""
    sizes = _sizes(homes)
    return np.nonzero(OVER[0] * sizes + NODE <= MAX_DEVICE_SHARE * sizes.sum())[0]


def oversize(homes: Sequence[Home], work: float, seconds: float, seed: str, source: str) -> Arrivals:
    """Jobs larger than their home, about as many as hold so many device seconds; every home has as much work in them.

    Each does as much work as one of the largest jobs of the fit. If it took as long as that, two or three would be all
    the work that there is to be in such jobs, and two windows of three would have none. There has to be a home that
    ``outgrown`` names.
    """
    sizes, able = _sizes(homes), outgrown(homes)
    group = fit_of(source).groups[-1]
    shares = 1.0 / sizes[able]
    device_seconds = MAX_TRACE_DEVICES * group.duration
    chance = stream(seed, "oversize")
    instant, level, over, where, turn = chance.random((5, _count(work, seconds, device_seconds)))
    home = able[_picked(where, shares)]
    requested = sizes[home] * (OVER[0] + (OVER[1] - OVER[0]) * over)
    devices = NODE * np.ceil(np.minimum(requested, MAX_DEVICE_SHARE * sizes.sum() - NODE) / NODE)
    duration = growth(read_off(level, LEVELS, group.durations)) * np.minimum(1.0, MAX_TRACE_DEVICES / devices)
    begin = instant * (seconds + SETTLED) - SETTLED
    return _alone(begin, duration, devices, np.ones(len(instant)), home, turn)


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


def _sizes(homes: Sequence[Home]) -> Floats:
    return np.array([float(sum(pool.devices for pool in home.site.pools)) for home in homes])


def _alone(
    submitted: Floats,
    duration: Floats,
    devices: Floats,
    share: Floats,
    home: NDArray[np.intp],
    turn: Floats,
    *,
    serving: bool = False,
) -> Arrivals:
    """Jobs each of which is a batch of its own."""
    count = len(submitted)
    batch, serves = np.arange(count), np.full(count, serving)
    return Arrivals(submitted, np.maximum(1.0, duration), devices, share, home, batch, serves, turn)


def _count(work: float, seconds: float, device_seconds: float) -> int:
    """Jobs, of so many device seconds each, that hold so much work between nought and the end; a few more."""
    return int(work * (seconds + SETTLED) / seconds / device_seconds) + 16


def _picked(draws: Floats, shares: Floats) -> NDArray[np.intp]:
    """Place of what is picked, by shares that need not add up to one."""
    reached = np.cumsum(shares)
    places: NDArray[np.intp] = np.minimum(np.searchsorted(reached, draws * reached[-1], side="right"), len(shares) - 1)
    return places


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
