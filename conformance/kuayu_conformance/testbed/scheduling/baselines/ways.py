"""How a job can be placed: in one pool, shrunk, or spread over domains."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Numbers
from kuayu_conformance.testbed.scheduling.engine.state import Holding
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.values import Placement, Split

SHRUNK = 0.75
"""Share of a pool to which a job is shrunk that is too large for it."""
PERIOD = 50
"""Steps between the reconciliations of a job that is spread."""


@dataclass(frozen=True, slots=True)
class Way:
    """A placement that a job might have.

    Attributes:
        placement: Where it would run.
        holding: The same by number.
        sites: Numbers of its domains.
    """

    placement: Placement
    holding: Holding
    sites: tuple[int, ...]


def way(view: View, holding: Holding) -> Way:
    """These devices, periodically reconciled if they are in several domains."""
    shares = tuple(view.places.share(pool, devices) for pool, devices in holding)
    sites = tuple(int(view.places.site[pool]) for pool, _ in holding)
    if len(holding) == 1:
        return Way(Placement(shares), holding, sites)
    return Way(Placement(shares, Split.PERIODIC, PERIOD), holding, sites)


def seconds(view: View, number: int, candidate: Way) -> float:
    """How long a job would hold the devices if it were given them now; infinite if it cannot run there."""
    staging, rate = view.expected(number, candidate.placement)
    left = float(view.work_left(np.array([number], dtype=np.intp))[0])
    return staging + left / rate if rate > 0.0 else inf


def all_seconds(view: View, number: int, ways: Sequence[Way]) -> Floats:
    """The same for many ways, by way."""
    left = float(view.work_left(np.array([number], dtype=np.intp))[0])
    staging, rates = view.staging(number), view.register.rates[number]
    requested, fresh = int(view.register.requested[number]), view.checkpoint_at(number) is None
    found = np.empty(len(ways))
    for place, candidate in enumerate(ways):
        pool, devices = candidate.holding[0]
        if fresh and devices == requested:
            rate = float(rates[view.places.type[pool]])
            found[place] = float(staging[candidate.sites[0]]) + left / rate if rate > 0.0 else inf
        else:
            found[place] = seconds(view, number, candidate)
    return found


def usable(view: View, number: int) -> Numbers:
    """Pools with memory enough, and where data and checkpoint may go."""
    kinds = view.register.rates[number] > 0.0
    reachable = np.zeros(len(view.places.sites), dtype=bool)
    reachable[list(view.data_at(number))] = True
    if not view.dataset(number).pinned:
        reachable |= np.isfinite(view.round_trips[list(view.data_at(number))]).any(axis=0)
    return np.flatnonzero(kinds[view.places.type] & reachable[view.places.site])


def shrunk(view: View, number: int, pool: int) -> Way | None:
    """Three quarters of a pool that is too small for what the job asks for, if the job goes on with so few."""
    devices = int(SHRUNK * view.places.devices[pool])
    return way(view, ((pool, devices),)) if devices >= view.register.minimum[number] and devices > 0 else None


def spread(view: View, number: int, pools: tuple[int, ...]) -> Way | None:
    """Pools of different domains that share what a job asks for in proportion to their size.

    If they are too small for it, it has all of them, if it goes on with so few.
    """
    if Split.PERIODIC not in view.job(number).splits:
        return None
    sizes = view.places.devices[list(pools)].tolist()
    requested = int(view.register.requested[number])
    wanted = min(requested, sum(sizes))
    if wanted < view.register.minimum[number]:
        return None
    counts = [min(size, ceil(wanted * size / sum(sizes))) for size in sizes[1:]]
    counts.insert(0, wanted - sum(counts))
    holding = tuple(zip(pools, counts, strict=True))
    return way(view, holding) if min(counts) > 0 else None


def nearest(view: View, site: int) -> Iterator[int]:
    """The other domains that can be reached from one, the nearest first."""
    round_trips = view.round_trips[site]
    for other in np.argsort(round_trips, kind="stable").tolist():
        if other != site and round_trips[other] < inf:
            yield other
