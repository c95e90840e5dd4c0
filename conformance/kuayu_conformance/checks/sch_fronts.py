"""Small instances with their exact fronts, and schedules that are computed again from what they say."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf

from kuayu_conformance.caching import Cache
from kuayu_conformance.checks import sch_scene
from kuayu_conformance.checks.sch_account import Account
from kuayu_conformance.checks.sch_fixtures import GIGABYTE, Draft, Json, queued, unnamed
from kuayu_conformance.checks.sch_scene import Scene
from kuayu_conformance.testbed.scheduling import bounds

Ends = tuple[float, float]
"""Mean period in seconds, and money for communication."""

SLOT = 3600.0
NEAR = 0.01
"""Share by which a solution may miss a point in either end and still reach it, and by which stated ends may be off."""
_HAIR = 1e-6


@dataclass(frozen=True)
class Solution:
    """A schedule of an answer.

    Attributes:
        stated: The ends that it states.
        found: The ends that it really has; infinite where it cannot be carried out.
        faults: Why it cannot.
    """

    stated: Ends
    found: Ends
    faults: tuple[str, ...]


def small(draft: Draft, jobs: int) -> Json:
    """A state of five domains of one node in which few jobs wait, most at one place; one is larger than any domain."""
    chance, profile = draft.chance, draft.name()
    kinds = [draft.accelerator([profile], speed=1.0), draft.accelerator([profile])]
    domains = [draft.domain(draft.pool(chance.choice(kinds), 1)) for _ in range(5)]
    names = [domain["id"] for domain in domains]
    specs = []
    for number in range(jobs):
        home = names[0] if chance.random() < 0.7 else chance.choice(names)
        devices = chance.choice((4, 8, 8)) if number else 12
        spread = {"split_modes": ["none", "periodic"]} if not number else {}
        spec = draft.spec(profile, home, (min(devices, 8), devices, devices), **spread)
        lasting = chance.uniform(3000.0, 9000.0)
        spec["duration"] = {"expected": lasting, "low": lasting / 2, "high": lasting * 2, "coverage": 0.8}
        spec["data"][0]["size"] = chance.uniform(50.0, 1500.0) * GIGABYTE
        specs.append(spec)
    return queued(draft.state(kinds, domains, draft.mesh(names, (2.0, 20.0))), specs)


def exact(state: Json) -> tuple[Ends, ...]:
    """The front of a state in which each job is placed in the ways of ``bounds.instances``.

    It is kept, for this process and for others: solving takes seconds, what was observed is judged from its record as
    well, and a run with the same nonce asks the same again, but for names.

    Raises:
        NotSolved: The instance is too large.
    """
    return _exact(unnamed(state))


@lru_cache(64)
def _exact(state: str) -> tuple[Ends, ...]:
    kept = Cache("fronts", [bounds, sch_scene])
    if (ends := kept.get([state, SLOT])) is None:
        scene = Scene(json.loads(state))
        points = bounds.front(bounds.instance(scene.map, scene.load, scene.law, SLOT))
        ends = [(point.period, point.money) for point in points]
        kept.put([state, SLOT], ends)
    return tuple((period, money) for period, money in ends)


def solutions(state: Json, told: Sequence[Json]) -> Iterator[Solution]:
    """Solutions of an answer, computed again."""
    account, scene = Account(state), Scene(state)
    for each in told:
        stated = each["mean_period"], each["communication_cost"]
        faults, found = tuple(_faults(each, account, state)), (inf, inf)
        if not faults:
            found, faults = _run(each, scene, account)
        yield Solution(stated, (inf, inf) if faults else found, faults)


def _faults(solution: Json, account: Account, state: Json) -> Iterator[str]:
    """What is wrong before times are looked at."""
    names = [row["job"] for row in solution["jobs"]]
    if sorted(names) != sorted(entry["spec"]["id"] for entry in state["waiting"]):
        yield f"its {len(names)} jobs are not all that wait, each once"
        return
    for row in solution["jobs"]:
        slots = row["start"] / SLOT
        if slots < 1 - _HAIR or abs(slots - round(slots)) > _HAIR:
            yield f"{row['job']} starts after {row['start']} s"
        for fault in account.unfit(account.waiting[row["job"]], row["placement"]):
            yield f"{row['job']}: {fault}"


def _run(solution: Json, scene: Scene, account: Account) -> tuple[Ends, tuple[str, ...]]:
    """Ends of a solution, and pools that it fills more than they are large."""
    held: dict[tuple[str, str, int], int] = {}
    period, money = 0.0, 0.0
    for row in solution["jobs"]:
        course = scene.course(account.waiting[row["job"]], row["placement"])
        if course.seconds == inf:
            return (inf, inf), (f"{row['job']} never comes to an end",)
        period += (row["start"] + course.seconds) / len(solution["jobs"])
        money += course.communication
        first = round(row["start"] / SLOT)
        for share in row["placement"]["shares"]:
            for slot in range(first, first + max(1, ceil(course.seconds / SLOT - _HAIR))):
                at = share["domain"], share["accelerator"], slot
                held[at] = held.get(at, 0) + share["devices"]
    over = [at for at, devices in held.items() if devices > scene.pool({"domain": at[0], "accelerator": at[1]})["free"]]
    faults = tuple(f"{held[at]} devices of {at[1]} in {at[0]} in slot {at[2]}" for at in over[:3])
    return (period, money), faults


def coverage(points: Sequence[Ends], found: Sequence[Ends]) -> float:
    """Share of points that are reached: by a schedule that is at most a hundredth worse in either end."""
    crumb = NEAR * NEAR * max(money for _, money in points)
    reached = [
        any(p <= period * (1 + NEAR) and m <= money * (1 + NEAR) + crumb for p, m in found) for period, money in points
    ]
    return sum(reached) / len(points)


def hypervolume(points: Sequence[Ends], found: Sequence[Ends]) -> float:
    """Area that schedules leave behind them over that of the exact front; more than one where they have more ways.

    It is measured from a tenth beyond the worst ends of the exact front (E. Zitzler, L. Thiele, "Multiobjective
    evolutionary algorithms", IEEE Transactions on Evolutionary Computation 3, 1999); from a whole unit beyond an end
    that is nought everywhere.
    """
    corner = tuple(
        max(end) + 0.1 * (max(end) - min(end)) + _HAIR * max(end) or 1.0 for end in zip(*points, strict=True)
    )
    return _area(found, corner) / _area(points, corner)


def _area(points: Sequence[Ends], corner: Sequence[float]) -> float:
    area, money = 0.0, corner[1]
    for period, cost in sorted(points):
        if period < corner[0] and cost < money:
            area += (corner[0] - period) * (money - cost)
            money = cost
    return area


def distance(points: Sequence[Ends], found: Sequence[Ends]) -> float:
    """IGD+: how far schedules are from points of the exact front on average, in parts of its extent; nought is best.

    Only what is worse counts (H. Ishibuchi et al., "Modified distance calculation in generational distance and inverted
    generational distance", EMO 2015).
    """
    extents = [max(max(end) - min(end), _HAIR * max(end)) or 1.0 for end in zip(*points, strict=True)]
    apart = [
        min((sum((max(0.0, e - p) / x) ** 2 for e, p, x in zip(each, point, extents, strict=True)) ** 0.5
             for each in found), default=inf)
        for point in points
    ]  # fmt: skip
    return sum(apart) / len(apart)
