"""Where a job might run: in one pool, with fewer devices than it asked for, or over two domains."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import ceil, inf

from minimal_server.scene import Job, Pool, Scene, Way
from minimal_server.speeds import Prospect, Speeds

SHRUNK = 0.75
PERIODS = (20, 50, 200)
SPREAD_OVER = 4
"""Pools of which pairs are looked at."""


class Ways(Speeds):
    """What is possible, whether or not devices are free."""

    def ways(self, scene: Scene, job: Job, room: Sequence[int]) -> Iterator[Way]:
        """Ways for which pools have room; a job is spread only where none has room for all that it asks for."""
        fitting = [pool for pool in scene.pools if room[pool.number] and self.fits(pool, job)]
        yield from self.alone(job, fitting, room)
        if all(room[pool.number] < job.requested for pool in fitting):
            yield from self.spread(scene, job, fitting, room)

    def prospects(self, scene: Scene, job: Job, ways: Iterable[Way]) -> list[Prospect]:
        """Prospects of those ways that come to an end."""
        found = [self.prospect(scene, job, way) for way in ways]
        return [one for one in found if one.lasting < inf and one.money < inf]

    def fits(self, pool: Pool, job: Job) -> bool:
        """Whether devices of a pool will do for a job."""
        kinds = job.spec.get("device_kinds")
        enough = pool.accelerator["memory"] >= job.spec.get("memory_per_device", 0.0)
        right = not kinds or pool.accelerator.get("kind") in kinds
        return pool.reachable and enough and right and self.worth(pool, job) > 0

    def alone(self, job: Job, pools: Sequence[Pool], room: Sequence[int]) -> Iterator[Way]:
        """In one pool: as asked for, or fewer where the pool is too small for that."""
        for pool in pools:
            devices = job.most(min(job.requested, room[pool.number]))
            if devices < job.requested:
                devices = job.most(min(room[pool.number], int(SHRUNK * pool.row["devices"])))
            if devices:
                yield Way(((pool.number, devices),))

    def spread(self, scene: Scene, job: Job, pools: Sequence[Pool], room: Sequence[int]) -> Iterator[Way]:
        """Over two domains that both have room, in proportion to it."""
        modes = [mode for mode in job.spec["split_modes"] if mode in {"synchronous", "periodic", "pipeline"}]
        if not modes or "communication" not in job.spec or len(pools) < 2 or job.requested < 2:
            return
        roomy = sorted(pools, key=lambda pool: -room[pool.number])[:SPREAD_OVER]
        for pair in combinations(roomy, 2):
            shares = self.shared(job, [(pool.number, room[pool.number]) for pool in pair])
            if shares and self.joined(scene, job, pair):
                for mode in modes:
                    yield from (Way(shares, mode, period) for period in self.periods(job, mode))

    def shared(self, job: Job, rooms: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """What a job asks for, in proportion to rooms; empty where it does not work with that."""
        (one, first), (other, second) = rooms
        devices = job.most(min(job.requested, first + second))
        half = min(second, ceil(devices * second / (first + second)))
        return ((one, devices - half), (other, half)) if 0 < half < devices and devices - half <= first else ()

    def joined(self, scene: Scene, job: Job, pair: Sequence[Pool]) -> bool:
        """Whether two pools lie in different domains with links between them as a job needs them."""
        needs: Mapping[str, float] = job.spec.get("links", {})
        one, other = (pool.domain for pool in pair)
        paths = (scene.network.path(one, other), scene.network.path(other, one))
        return one != other and all(
            path.bandwidth > 0
            and path.bandwidth >= needs.get("bandwidth", 0.0)
            and path.round_trip <= needs.get("round_trip_time", 1e9)
            for path in paths
        )

    def periods(self, job: Job, mode: str) -> Sequence[int]:
        """Steps between exchanges that a split may have."""
        if mode != "periodic":
            return (1,)
        return (job.spec["sync_period"],) if "sync_period" in job.spec else PERIODS

    def lacking(self, scene: Scene, job: Job, way: Way) -> float:
        """How much less a job gains on the devices of a way than others would, over all of them."""
        profile = job.spec.get("task_profile", "")
        lacks = (scene.lacks.get((scene.pools[number].row["accelerator"], profile), 0.0) for number, _ in way.shares)
        return sum(lack * devices for lack, (_, devices) in zip(lacks, way.shares, strict=True)) / way.devices
