"""Where a job runs that stays at home, and what becomes of one that is too large for it."""

from itertools import chain

from kuayu_conformance.testbed.scheduling.baselines.ways import Way, nearest, seconds, shrunk, spread, usable, way
from kuayu_conformance.testbed.scheduling.engine.view import View


class HomePlacements:
    """The ways in which jobs can run that stay at home, found once for each job.

    A job that its home can hold has one way for each pool there. One that asks for more than any pool of its home has
    takes the faster, as estimated when it comes: 75 % of the largest pool of its home, or a static split with the
    nearest domain at a period of 50 steps, in proportion to the largest pools of both. The nearest domain is that of
    least round-trip time among those whose pool and the home's hold all that it asks for; if there is none, among those
    with which it runs at all. If neither is possible (it needs more, or may not be spread), it takes as much as its
    home has, if it runs on that.

    A job whose home has no device for it at all, by memory or because its data may not come, runs in the nearest
    domain that has, by the same rules: its home is there.
    """

    def __init__(self) -> None:
        self._found: dict[int, tuple[int, tuple[Way, ...]]] = {}

    def of(self, view: View, number: int) -> tuple[int, tuple[Way, ...]]:
        """Number of the domain in whose queue a job stands, and its ways; none if it cannot run at all."""
        found = self._found.get(number)
        if found is None:
            found = self._found[number] = _at_home(view, number)
        return found


def _at_home(view: View, number: int) -> tuple[int, tuple[Way, ...]]:
    home = int(view.register.home[number])
    pools = usable(view, number)
    for site in chain((home,), nearest(view, home)):
        own = [int(pool) for pool in pools if view.places.site[pool] == site]
        if own:
            requested = int(view.register.requested[number])
            enough = [pool for pool in own if view.places.devices[pool] >= requested]
            if enough:
                return site, tuple(way(view, ((pool, requested),)) for pool in enough)
            found = _too_large(view, number, site, pools.tolist())
            return site, () if found is None else (found,)
    return home, ()


def _too_large(view: View, number: int, site: int, pools: list[int]) -> Way | None:
    """The faster of shrinking and a split with the nearest domain."""
    largest = _largest(view, site, pools)
    requested, own = int(view.register.requested[number]), int(view.places.devices[largest])
    others = [_largest(view, other, pools) for other in nearest(view, site) if _has(view, other, pools)]
    enough = [pool for pool in others if own + int(view.places.devices[pool]) >= requested]
    pairs = (spread(view, number, (largest, pool)) for pool in enough or others)
    ways = [candidate for candidate in (shrunk(view, number, largest), next(filter(None, pairs), None)) if candidate]
    if ways:
        return min(ways, key=lambda candidate: seconds(view, number, candidate))
    return way(view, ((largest, own),)) if own >= view.register.minimum[number] else None


def _has(view: View, site: int, pools: list[int]) -> bool:
    return any(view.places.site[pool] == site for pool in pools)


def _largest(view: View, site: int, pools: list[int]) -> int:
    own = [pool for pool in pools if view.places.site[pool] == site]
    return max(own, key=lambda pool: (int(view.places.devices[pool]), -pool))
