"""Ways in which each job of a Pareto request could run, with seconds and money of each: it has links to itself.

Ways are: in each pool the devices asked for, the least that will do, the most that are of use, and three quarters of
the pool; over each pair of pools of different domains, in proportion to their sizes, in every mode and at several
periods; and where no pair has what is asked for, over three, or over as many as have it. None is kept that takes as
many devices of each pool, as much time and as much money as another, or more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import ceil, inf

import numpy as np

from kuayu.scheduling.scene import NONE, PERIODIC, PIPELINE, SYNCHRONOUS, Counts, Flags, Floats, Numbers, Scene
from kuayu.scheduling.speeds import Asked, restart, spread

PERIODS = (5, 15, 50, 150, 500)
"""Steps between reconciliations, where a job leaves them open."""
SHRUNK = 0.75
"""Share of a pool to which a job may be shrunk."""
THREE = 3
"""Pools over which a job is spread where no two have what it asks for; more only where no three have."""
MOST_POOLS = 12
"""Pools, the largest, over which a job is spread."""

Holding = tuple[tuple[int, int], ...]
"""Numbers of pools, each with how many of its devices; in the order of the ring or the pipeline."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which a job could run.

    Attributes:
        holding: What it holds.
        mode: Number of the split mode.
        period: Steps between reconciliations, one where there are none.
        seconds: From the begin of its slot to its end.
        money: For data, checkpoint and exchanges.
    """

    holding: Holding
    mode: int
    period: int
    seconds: float
    money: float


class Options:
    """Makes the ways of jobs.

    Args:
        scene: What is decided on.
        room: Devices by pool that jobs can hold.
    """

    def __init__(self, scene: Scene, room: Counts) -> None:
        self._scene = scene
        self._room = np.where(scene.reachable[scene.pools.domain], room, 0)

    def of(self, job: int) -> tuple[Way, ...]:
        """Ways of a job that come to an end and are worth a thought, the quickest first."""
        ways = [way for way in self._timed(job) if way.seconds < inf and way.money < inf]
        ways.sort(key=lambda way: (way.seconds, way.money))
        money = np.array([way.money for way in ways])
        beaten = np.triu(money[:, None] <= money[None, :], 1)
        for pool in {pool for way in ways for pool, _ in way.holding}:
            need = np.array([dict(way.holding).get(pool, 0) for way in ways])
            beaten &= need[:, None] <= need[None, :]
        return tuple(ways[number] for number in np.flatnonzero(~beaten.any(axis=0)))

    def _timed(self, job: int) -> Iterator[Way]:
        jobs = self._scene.jobs
        pools = np.flatnonzero(
            (self._scene.worth[job, self._scene.pools.accelerator] > 0.0)
            & (self._room > 0)
            & np.isfinite(self._scene.staging[0][job, self._scene.pools.domain])
        ).tolist()
        if jobs.modes[job, NONE]:
            alone = list(dict.fromkeys(self._alone(job, pools)))
            yield from self._measured(job, alone, NONE, (1,))
        modes = [mode for mode in (SYNCHRONOUS, PERIODIC, PIPELINE) if jobs.modes[job, mode]]
        if modes:
            holdings = list(dict.fromkeys(self._spread(job, pools)))
            own = int(jobs.period[job])
            for mode in modes:
                yield from self._measured(
                    job, holdings, mode, ((own,) if own else PERIODS) if mode == PERIODIC else (1,)
                )

    def _alone(self, job: int, pools: Sequence[int]) -> Iterator[Holding]:
        jobs = self._scene.jobs
        for pool in pools:
            room = int(self._room[pool])
            most = min(int(jobs.maximum[job]), room)
            for devices in (min(int(jobs.requested[job]), most), int(jobs.minimum[job]), most, int(SHRUNK * room)):
                whole = self._stepped(job, min(devices, most))
                if whole > 0:
                    yield ((pool, whole),)

    def _spread(self, job: int, pools: list[int]) -> Iterator[Holding]:
        domain, room = self._scene.pools.domain, self._room
        asked = int(self._scene.jobs.requested[job])
        largest = sorted(sorted(pools, key=lambda pool: -int(room[pool]))[:MOST_POOLS])
        enough = False
        for one, other in permutations(largest, 2):
            if domain[one] != domain[other] and self._joined(job, (one, other)):
                total = self._stepped(job, min(asked, int(room[one] + room[other])))
                enough |= total >= asked
                share = min(int(room[other]), ceil(total * int(room[other]) / int(room[one] + room[other])))
                if 0 < share < total and total - share <= room[one]:
                    yield ((one, total - share), (other, share))
        if not enough:
            wide = self._wide(largest, asked)
            for chosen in (*permutations(largest, THREE), *([wide] if len(wide) > THREE else [])):
                if len(set(domain[list(chosen)].tolist())) == len(chosen) and self._joined(job, chosen):
                    sizes = [int(room[pool]) for pool in chosen]
                    total = self._stepped(job, min(asked, sum(sizes)))
                    others = [min(size, ceil(total * size / sum(sizes))) for size in sizes[1:]]
                    first = total - sum(others)
                    if 0 < first <= sizes[0]:
                        yield tuple(zip(chosen, (first, *others), strict=True))

    def _wide(self, pools: Sequence[int], asked: int) -> tuple[int, ...]:
        """The largest pools of different domains, as many as have what is asked for together."""
        chosen: list[int] = []
        for pool in sorted(pools, key=lambda pool: -int(self._room[pool])):
            if self._room[chosen].sum() >= asked:
                break
            if self._scene.pools.domain[pool] not in self._scene.pools.domain[chosen]:
                chosen.append(pool)
        return tuple(chosen)

    def _stepped(self, job: int, devices: int) -> int:
        """The largest number that the job can work with and that is no larger; nought where there is none."""
        jobs = self._scene.jobs
        least, step = int(jobs.minimum[job]), int(jobs.step[job])
        return least + (devices - least) // step * step if devices >= least else 0

    def _joined(self, job: int, pools: Sequence[int]) -> bool:
        """Whether links between the domains are such as the job needs."""
        paths, jobs = self._scene.paths, self._scene.jobs
        domains = self._scene.pools.domain[list(pools)]
        ends = np.ix_(domains, domains)
        return bool(
            (paths.available[ends] > 0.0).all()
            and (paths.available[ends] >= jobs.least_bandwidth[job]).all()
            and (paths.round_trip[ends] <= jobs.longest_round_trip[job]).all()
        )

    def _measured(self, job: int, holdings: Sequence[Holding], mode: int, periods: Sequence[int]) -> Iterator[Way]:
        """All holdings at all periods."""
        if not holdings:
            return
        scene, jobs = self._scene, self._scene.jobs
        pools = np.array([[pool for pool, _ in holding] for holding in _padded(holdings)])
        counts = np.array([[devices for _, devices in holding] for holding in _padded(holdings)])
        there = counts > 0
        domain = scene.pools.domain[pools]
        devices = counts.sum(axis=1)
        index = (scene.worth[job, scene.pools.accelerator[pools]] * counts).sum(axis=1) / devices
        read = there.copy()
        if mode == PIPELINE:
            read[:, 1:] = False
        staging, money = scene.staging
        begins = np.where(read, staging[job, domain], 0.0).max(axis=1)
        moving = np.where(read, money[job, domain], 0.0).sum(axis=1)
        if jobs.resumes[job]:
            smallest = devices if mode == PIPELINE else np.where(there, counts, devices[:, None]).min(axis=1)
            begins = begins + restart(jobs.checkpoint[job : job + 1], smallest.astype(np.float64))
        narrow, round_trips, tariff = self._flows(domain, there, mode)
        rows = np.full(len(holdings), job)
        asked = Asked(*(getattr(jobs, name)[rows] for name in Asked.__slots__))
        for period in periods:
            speeds = spread(
                asked,
                devices.astype(np.float64),
                index,
                there.sum(axis=1),
                np.full(len(holdings), mode),
                np.full(len(holdings), period),
                narrow,
                round_trips,
            )
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                runs = np.where(speeds.rate > 0.0, jobs.left[job] / speeds.rate, inf)
                cost = moving + np.where(speeds.occupied > 0.0, speeds.occupied * runs * tariff, 0.0)
            for row, holding in enumerate(holdings):
                yield Way(holding, mode, period, float(begins[row] + runs[row]), float(cost[row]))

    def _flows(self, domain: Numbers, there: Flags, mode: int) -> tuple[Floats, Floats, Floats]:
        """Least bandwidth, round-trip time that counts, and sum of tariffs of the flows of each holding."""
        paths = self._scene.paths
        narrow = np.full(len(domain), inf)
        long, dear = np.zeros(len(domain)), np.zeros(len(domain))
        count = there.sum(axis=1)
        if mode == NONE:
            return narrow, long, dear
        for place in range(domain.shape[1]):
            last = place == count - 1
            follows = domain[:, (place + 1) % domain.shape[1]]
            one, other = domain[:, place], np.where(last, domain[:, 0], follows)
            used = (place < count) & ~(last & (mode == PIPELINE))
            offers, tariff = paths.available[one, other], paths.tariff[one, other]
            if mode == PIPELINE:
                offers, tariff = np.minimum(offers, paths.available[other, one]), tariff + paths.tariff[other, one]
                long = np.where(used, long + paths.round_trip[one, other], long)
            else:
                long = np.where(used, np.maximum(long, paths.round_trip[one, other]), long)
            narrow = np.where(used, np.minimum(narrow, offers), narrow)
            dear = np.where(used, dear + tariff, dear)
        return narrow, long, dear


def _padded(holdings: Sequence[Holding]) -> list[Holding]:
    """Of one length; what is added holds nothing."""
    width = max(len(holding) for holding in holdings)
    return [(*holding, *(((holding[0][0], 0),) * (width - len(holding)))) for holding in holdings]
