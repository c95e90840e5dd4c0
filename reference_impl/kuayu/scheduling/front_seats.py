"""A schedule on the wire: placements with nodes and ways of buying, so that nothing is given twice in any slot."""

from collections.abc import Sequence
from typing import Any

from kuayu.scheduling.front_search import Schedule
from kuayu.scheduling.front_ways import Way
from kuayu.scheduling.packing import Floor, Gang, traffic
from kuayu.scheduling.scene import MODES, NONE, PERIODIC, PURCHASES, RESERVED, Scene
from kuayu.scheduling.seating import Seats


def seated(scene: Scene, chosen: Sequence[Way], schedule: Schedule, slot: float) -> list[dict[str, Any]]:
    """Jobs of a schedule as a list of ``ScheduledJob``, in the order of the queue.

    Those that start together are packed together, on nodes that others have given back by then. What is
    reserved is used first, since it is paid for in any case, and then the offer that has most, which is all that
    schedules count upon.

    Args:
        scene: What was decided on.
        chosen: Way of each job.
        schedule: When they start and how long they hold devices.
        slot: Seconds.
    """
    floor = Floor(scene.pools.nodes)
    counter = _Counter(scene)
    names, pools = scene.names, scene.pools
    leaving: dict[int, list[tuple[int, Seats]]] = {}
    shares: list[list[dict[str, Any]]] = [[] for _ in chosen]
    for start in sorted(set(schedule.starts)):
        for end in sorted(at for at in leaving if at <= start):
            for pool, seats in leaving.pop(end):
                floor.give_back(pool, seats)
        jobs = [job for job, begins in enumerate(schedule.starts) if begins == start]
        gangs = [
            (job, Gang(pool, devices, traffic(scene, job))) for job in jobs for pool, devices in chosen[job].holding
        ]
        packed = floor.pack([gang for _, gang in gangs])
        for (job, gang), own in zip(gangs, packed, strict=True):
            share: dict[str, Any] = {
                "domain": names.domains[pools.domain[gang.pool]],
                "accelerator": names.accelerators[pools.accelerator[gang.pool]],
                "devices": gang.devices,
            }
            bought = counter.buy(gang.pool, gang.devices, start, schedule.ends[job])
            if bought is not None:
                share["purchase"] = bought
            if own and floor.told(gang.pool):
                share["nodes"] = floor.wire(gang.pool, own)
                leaving.setdefault(schedule.ends[job], []).append((gang.pool, own))
            shares[job].append(share)
    return [
        {"job": names.jobs[job], "start": start * slot, "placement": _placement(chosen[job], shares[job])}
        for job, start in enumerate(schedule.starts)
    ]


def _placement(way: Way, shares: list[dict[str, Any]]) -> dict[str, Any]:
    placement: dict[str, Any] = {"shares": shares, "split_mode": MODES[way.mode if len(shares) > 1 else NONE]}
    if way.mode == PERIODIC:
        placement["sync_period"] = way.period
    return placement


class _Counter:
    """What is bought of each pool while a schedule is carried out, in the order of starts.

    Args:
        scene: With its offers.
    """

    def __init__(self, scene: Scene) -> None:
        self._offers = scene.pools.offers
        self._bought: dict[tuple[int, int], list[tuple[int, int, int]]] = {}

    def buy(self, pool: int, devices: int, start: int, end: int) -> str | None:
        """Name of the way in which devices are bought; none where they cost nothing."""
        offers = self._offers[pool]
        if not offers:
            return None
        wide = max(range(len(offers)), key=lambda number: (offers[number].devices, -offers[number].price))
        reserved = next((number for number, offer in enumerate(offers) if offer.purchase == RESERVED), wide)
        held = sum(count for begun, ended, count in self._bought.get((pool, reserved), []) if begun <= start < ended)
        number = reserved if held + devices <= offers[reserved].devices else wide
        self._bought.setdefault((pool, number), []).append((start, end, devices))
        return PURCHASES[offers[number].purchase]


def by_job(options: Sequence[Sequence[Way]], schedule: Schedule) -> list[Way]:
    """Way of each job of a schedule."""
    return [ways[number] for ways, number in zip(options, schedule.ways, strict=True)]
