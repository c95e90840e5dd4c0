"""Fronts of period and communication cost: against exact ones, and by a time limit (SCH-001, SCH-014, SCH-040).

1. Small instances have exact fronts, and schedules are computed again from what they say (SCH-001, SCH-014).
2. A state in which twelve jobs wait is asked about without a limit, and then with each of ``LIMITS_SECONDS``. No name
   tells which question is which, and each has a revision of its own, so that no answer can be one that was kept
   (SCH-040).
3. An answer comes no later than ``GRACE_SECONDS`` after its limit, from the first byte sent to the last one received,
   and holds a schedule at least. Its schedules can be carried out and state the ends that they have, as for SCH-014.
4. Where they cover less than the front without a limit (by hypervolume, beyond ``NEAR``), they are marked as partial.
   A mark without need is not held against anybody: who was stopped cannot know what was still to be found.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING

from kuayu_conformance.answers import Answer
from kuayu_conformance.caching import Cache
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import is_answer
from kuayu_conformance.checks.scheduling import cluster as sch_scene
from kuayu_conformance.checks.scheduling.account import Account
from kuayu_conformance.checks.scheduling.cluster import ClusterState
from kuayu_conformance.checks.scheduling.placement_requests import FRONTS, GIGABYTE, StateBuilder, queued, unnamed
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import mean_lower_bound
from kuayu_conformance.testbed.scheduling import bounds
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable, TableRow

if TYPE_CHECKING:
    from kuayu_schemas import documents

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
        ends: The ends that it really has; infinite where it cannot be carried out.
        faults: Why it cannot.
    """

    stated: Ends
    ends: Ends
    faults: tuple[str, ...]


def small(builder: StateBuilder, jobs: int) -> "documents.SchedulingState":
    """A state of five domains of one node in which few jobs wait, most at one place; one is larger than any domain."""
    chance, profile = builder.chance, builder.name()
    kinds = [builder.accelerator([profile], speed=1.0), builder.accelerator([profile])]
    domains = [builder.domain(builder.pool(chance.choice(kinds), 1)) for _ in range(5)]
    names = [domain["id"] for domain in domains]
    specs = []
    for number in range(jobs):
        home = names[0] if chance.random() < 0.7 else chance.choice(names)
        devices = chance.choice((4, 8, 8)) if number else 12
        spread = {"split_modes": ["none", "periodic"]} if not number else {}
        spec = builder.spec(profile, home, (min(devices, 8), devices, devices), **spread)
        lasting = chance.uniform(3000.0, 9000.0)
        spec["duration"] = {"expected": lasting, "low": lasting / 2, "high": lasting * 2, "coverage": 0.8}
        spec["data"][0]["size"] = chance.uniform(50.0, 1500.0) * GIGABYTE
        specs.append(spec)
    return queued(builder.state(kinds, domains, builder.mesh(names, (2.0, 20.0))), specs)


def exact(state: "documents.SchedulingState") -> tuple[Ends, ...]:
    """The front of a state in which each job is placed in the ways of ``bounds.instances``.

    It is kept, for this process and for others: solving takes seconds, what was observed is judged from its record as
    well, and a run with the same nonce asks the same again, but for names.

    Raises:
        SolverFailure: The instance is too large.
    """
    return _exact(unnamed(state))


@lru_cache(64)
def _exact(state: str) -> tuple[Ends, ...]:
    cache = Cache("fronts", [bounds, sch_scene])
    if (ends := cache.get([state, SLOT])) is None:
        cluster = ClusterState(json.loads(state))
        points = bounds.front(bounds.instance(cluster.map, cluster.load, cluster.law, SLOT))
        ends = [(point.period, point.money) for point in points]
        cache.put([state, SLOT], ends)
    return tuple((period, money) for period, money in ends)


def solutions(state: "documents.SchedulingState", rows: "Sequence[documents.ParetoSolution]") -> Iterator[Solution]:
    """Solutions of an answer, computed again."""
    account, cluster = Account(state), ClusterState(state)
    for entry in rows:
        stated = entry["mean_period"], entry["communication_cost"]
        faults, ends = tuple(_faults(entry, account, state)), (inf, inf)
        if not faults:
            ends, faults = _run(entry, cluster, account)
        yield Solution(stated, (inf, inf) if faults else ends, faults)


def _faults(
    solution: "documents.ParetoSolution", account: Account, state: "documents.SchedulingState"
) -> Iterator[str]:
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


def _run(solution: "documents.ParetoSolution", cluster: ClusterState, account: Account) -> tuple[Ends, tuple[str, ...]]:
    """Ends of a solution, and pools that it fills more than they are large."""
    devices_in_use: dict[tuple[str, str, int], int] = {}
    period, money = 0.0, 0.0
    for row in solution["jobs"]:
        course = cluster.course(account.waiting[row["job"]], row["placement"])
        if course.seconds == inf:
            return (inf, inf), (f"{row['job']} never comes to an end",)
        period += (row["start"] + course.seconds) / len(solution["jobs"])
        money += course.communication
        first = round(row["start"] / SLOT)
        for share in row["placement"]["shares"]:
            for slot in range(first, first + max(1, ceil(course.seconds / SLOT - _HAIR))):
                position = share["domain"], share["accelerator"], slot
                devices_in_use[position] = devices_in_use.get(position, 0) + share["devices"]
    over = [
        place
        for place, devices in devices_in_use.items()
        if devices > cluster.pool({"domain": place[0], "accelerator": place[1], "devices": devices})["free"]
    ]
    faults = tuple(f"{devices_in_use[item]} devices of {item[1]} in {item[0]} in slot {item[2]}" for item in over[:3])
    return (period, money), faults


def coverage(points: Sequence[Ends], ends: Sequence[Ends]) -> float:
    """Share of points that are reached: by a schedule that is at most a hundredth worse in either end."""
    crumb = NEAR * NEAR * max(money for _, money in points)
    reached = [
        any(p <= period * (1 + NEAR) and m <= money * (1 + NEAR) + crumb for p, m in ends) for period, money in points
    ]
    return sum(reached) / len(points)


def hypervolume(points: Sequence[Ends], ends: Sequence[Ends]) -> float:
    """Area that schedules leave behind them over that of the exact front; more than one where they have more ways.

    It is measured from a tenth beyond the worst ends of the exact front (E. Zitzler, L. Thiele, "Multiobjective
    evolutionary algorithms", IEEE Transactions on Evolutionary Computation 3, 1999); from a whole unit beyond an end
    that is zero everywhere.
    """
    corner = tuple(
        max(end) + 0.1 * (max(end) - min(end)) + _HAIR * max(end) or 1.0 for end in zip(*points, strict=True)
    )
    return _area(ends, corner) / _area(points, corner)


def _area(points: Sequence[Ends], corner: Sequence[float]) -> float:
    area, money = 0.0, corner[1]
    for period, cost in sorted(points):
        if period < corner[0] and cost < money:
            area += (corner[0] - period) * (money - cost)
            money = cost
    return area


def distance(points: Sequence[Ends], ends: Sequence[Ends]) -> float:
    """IGD+: how far schedules are from points of the exact front on average, in parts of its extent; zero is best.

    Only what is worse counts (H. Ishibuchi et al., "Modified distance calculation in generational distance and inverted
    generational distance", EMO 2015).
    """
    extents = [max(max(end) - min(end), _HAIR * max(end)) or 1.0 for end in zip(*points, strict=True)]
    apart = [
        min((sum((max(0.0, e - p) / x) ** 2 for e, p, x in zip(entry, point, extents, strict=True)) ** 0.5
             for entry in ends), default=inf)
        for point in points
    ]  # fmt: skip
    return sum(apart) / len(apart)


INSTANCES_QUICK, INSTANCES_FULL = (4,) * 8, (4,) * 30 + (5,) * 30 + (6,) * 10
"""Jobs of the instances of a run."""
MAX_SOLUTIONS = 50
"""Solutions that are asked for at most; exact fronts have some thirty points."""
DRAWN = 3
"""Instances whose fronts are drawn."""


@dataclass(frozen=True)
class Instance:
    """An instance: what it is, its exact front, and what was answered.

    Attributes:
        jobs: How many wait.
        points: The exact front, from the quickest to the cheapest.
        solutions: Those of the answer, in its order; none where it is no front.
        revision: Whether the answer states the revision of the state.
        answer: The exchange.
    """

    jobs: int
    points: tuple[Ends, ...]
    solutions: tuple[Solution, ...] | None
    revision: bool
    answer: Answer

    @property
    def ends(self) -> list[Ends]:
        """Ends of what can be carried out."""
        return [solution.ends for solution in self.solutions or () if not solution.faults]


def observe(episode: Episode) -> tuple[Instance, ...]:
    """Ask for the fronts of small instances, and find the exact ones."""
    builder = StateBuilder.of(episode)
    instances = []
    for jobs in INSTANCES_FULL if episode.settings.full else INSTANCES_QUICK:
        state = small(builder, jobs)
        body = {"state": state, "slot": SLOT, "solutions": MAX_SOLUTIONS}
        answer = episode.ask_patiently("POST", FRONTS, body)
        front = is_answer(FRONTS, answer)
        solved = tuple(solutions(state, answer.json["solutions"])) if front else None
        echoed = front and answer.json["revision"] == state["revision"]
        instances.append(Instance(jobs, exact(state), solved, echoed, answer))
    return tuple(instances)


def judge(observation: tuple[Instance, ...]) -> Iterable[Finding]:
    """The share of the points that are reached; claims about stated ends and about the form of fronts."""
    silent = [entry for entry in observation if entry.solutions is None]
    for row in silent[:1]:
        for requirement in CHECK.requirements:
            yield Claim(requirement, "a front of every instance", False, row.answer.brief, row.answer)
    for item in observation:
        if item.solutions is not None:
            yield from _sound(item)
    yield _covered(observation)


def _sound(instance: Instance) -> Iterator[Claim]:
    front_solutions = instance.solutions or ()
    what = f"a front of {instance.jobs} jobs"
    wrong = [fault for solution in front_solutions for fault in solution.faults]
    yield holds("SCH-014", not wrong, f"{what}: schedules that can be carried out", wrong[:3], instance.answer)
    off = [
        f"{solution.stated} stated, {solution.ends} found"
        for solution in front_solutions
        if _off(solution, instance.points)
    ]
    yield holds("SCH-014", not off, f"{what}: the ends that its schedules have", off[:3], instance.answer)
    yield holds(
        "SCH-014",
        0 < len(front_solutions) <= MAX_SOLUTIONS,
        f"{what}: one to {MAX_SOLUTIONS} solutions",
        len(front_solutions),
        instance.answer,
    )
    yield holds("SCH-014", instance.revision, f"{what}: the revision of its state", instance.revision, instance.answer)
    stated = [solution.stated for solution in front_solutions]
    ordered = all(one[0] <= other[0] and one[1] >= other[1] and one != other for one, other in pairwise(stated))
    expected = f"{what}: from the quickest to the cheapest, none beaten in both ends"
    yield holds("SCH-014", ordered, expected, stated[:8], instance.answer)


def _off(solution: Solution, points: Sequence[Ends]) -> bool:
    """Whether stated ends are more than a hundredth off; money is free of that up to a ten-thousandth of the most."""
    if solution.faults:
        return False
    crumb = NEAR * NEAR * max(money for _, money in points)
    (period, money), (found_period, found_money) = solution.stated, solution.ends
    return abs(period - found_period) > NEAR * found_period or abs(money - found_money) > NEAR * found_money + crumb


def _covered(observation: Sequence[Instance]) -> Figure:
    shares = [[coverage(item.points, item.ends)] for item in observation]
    estimate = sum(share for (share,) in shares) / len(shares)
    missed = [
        holds(
            "SCH-001",
            False,
            f"all {len(instance.points)} points of {instance.jobs} jobs",
            f"{share:.0%} of them; {len(instance.ends)} schedules, {instance.ends[:4]} against {instance.points[:4]}",
            instance.answer,
        )
        for instance, (share,) in zip(observation, shares, strict=True)
        if share < 1
    ]
    sizes = sorted({entry.jobs for entry in observation})
    return Figure(
        "SCH-001",
        estimate,
        mean_lower_bound(shares, "SCH-001"),
        len(observation),
        "mean share of the points of the exact front that a schedule reaches within a hundredth in both ends; "
        "one-sided 95 % bootstrap bound over instances",
        [_part(observation, jobs) for jobs in sizes],
        missed,
        [_table(observation)],
        [_plot(row, number) for number, row in enumerate(observation[:DRAWN], 1)],
    )


def _part(observation: Sequence[Instance], jobs: int) -> PartFigure:
    shares = [[coverage(entry.points, entry.ends)] for entry in observation if entry.jobs == jobs]
    bound = mean_lower_bound(shares, f"SCH-001 {jobs}") if len(shares) > 1 else None
    return PartFigure(f"{jobs} jobs", sum(share for (share,) in shares) / len(shares), bound, len(shares))


def _table(observation: Sequence[Instance]) -> ReportTable:
    rows = [
        [
            f"{number}: {entry.jobs} jobs",
            str(len(entry.points)),
            str(len(entry.ends)),
            f"{coverage(entry.points, entry.ends):.1%}",
            f"{hypervolume(entry.points, entry.ends):.4f}",
            _short(distance(entry.points, entry.ends)),
        ]
        for number, entry in enumerate(observation, 1)
    ]
    columns = ["instance", "points", "schedules", "reached", "hypervolume over the exact", "IGD+"]
    return ReportTable(title="Fronts", columns=columns, rows=[TableRow(cells=cells) for cells in rows])


def _short(figure: float) -> str:
    return "–" if figure == inf else f"{figure:.4f}"


def _plot(instance: Instance, number: int) -> ReportPlot:
    series = {"exact": instance.points, "answer": tuple(sorted(end for end in instance.ends if isfinite(sum(end))))}
    return ReportPlot(
        title=f"Front of instance {number}, {instance.jobs} jobs",
        kind=PlotKind.lines,
        x_label="mean period, h",
        y_label="communication cost",
        series=[
            PlotSeries(label=label, x=[round(p / 3600, 4) for p, _ in ends], y=[round(m, 2) for _, m in ends])
            for label, ends in series.items()
            if ends
        ],
    )


CHECK = Check(
    "sch_pareto",
    ("SCH-001", "SCH-014"),
    observe,
    judge,
    heavy=True,
    summary="Fronts of period and communication cost, against the exact ones of small instances (SCH-001, SCH-014).",
)


JOBS = 12
"""Jobs that wait: so many that a search goes on for a while, and so few that all their schedules are soon computed."""
LIMITS_SECONDS = (0.25, 0.5)
GRACE_SECONDS = 1.0
"""Between the limit of a request and the end of its answer, by the standard."""


@dataclass(frozen=True)
class LimitedFront:
    """A front that was asked for.

    Attributes:
        limit: Seconds; None without a limit.
        ends: Ends of its schedules that can be carried out.
        faults: Why others cannot, and what they state wrongly.
        partial: Whether it is marked as partial.
        answer: The exchange.
    """

    limit: float | None
    ends: tuple[Ends, ...]
    faults: tuple[str, ...]
    partial: bool
    answer: Answer

    @property
    def what(self) -> str:
        """The question in words."""
        return "a front without a time limit" if self.limit is None else f"a front within {self.limit:g} s"


def observe_limits(episode: Episode) -> tuple[LimitedFront, ...]:
    """Ask for one front without a limit, and for the same with limits."""
    state = small(StateBuilder.of(episode), JOBS)
    return tuple(_limited_front(episode, state, number, limit) for number, limit in enumerate((None, *LIMITS_SECONDS)))


def _limited_front(
    episode: Episode, state: "documents.SchedulingState", number: int, limit: float | None
) -> LimitedFront:
    revision = {**state["revision"], "number": state["revision"]["number"] + number}
    body = {"state": {**state, "revision": revision}, "slot": SLOT, "solutions": MAX_SOLUTIONS}
    if limit is None:
        answer = episode.ask_patiently("POST", FRONTS, body)
    else:
        answer = episode.ask("POST", FRONTS, {**body, "time_limit": limit})
    if not is_answer(FRONTS, answer):
        return LimitedFront(limit, (), (), False, answer)
    rows = tuple(solutions(state, answer.json["solutions"]))
    faults = [fault for solution in rows for fault in solution.faults]
    faults += [
        f"{solution.stated} stated, {solution.ends} found"
        for solution in rows
        if not solution.faults and _ends_off(solution.stated, solution.ends)
    ]
    sound = tuple(solution.ends for solution in rows if not solution.faults)
    return LimitedFront(limit, sound, tuple(faults), answer.json.get("partial", False), answer)


def _ends_off(stated: Ends, computed: Ends) -> bool:
    """Whether an end is more than a hundredth off; a whole unit of money is free."""
    (period, money), (own_period, own_money) = stated, computed
    return abs(period - own_period) > NEAR * own_period or abs(money - own_money) > NEAR * own_money + 1.0


def judge_limits(observation: tuple[LimitedFront, ...]) -> Iterable[Finding]:
    """Claims about the time of answers, their schedules, and the mark of what is not all."""
    whole, *limited = observation
    yield holds("SCH-040", bool(whole.ends), whole.what, whole.answer.brief, whole.answer)
    for front in limited:
        yield from _within_limit(front, whole)


def _within_limit(front: LimitedFront, whole: LimitedFront) -> Iterator[Claim]:
    assert front.limit is not None
    answer, seconds = front.answer, front.answer.seconds
    in_time = seconds <= front.limit + GRACE_SECONDS
    yield holds("SCH-040", in_time, f"{front.what}, and one more at most", f"{seconds:.2f} s", answer)
    yield holds("SCH-040", bool(front.ends), f"{front.what}: one schedule at least", answer.brief, answer)
    yield holds("SCH-040", not front.faults, f"{front.what}: schedules as they are", list(front.faults[:3]), answer)
    if front.ends and whole.ends:
        share = hypervolume(whole.ends, front.ends)
        expected = f"{front.what}: marked as partial where it covers less than the front without a limit"
        yield holds("SCH-040", front.partial or share >= 1.0 - NEAR, expected, f"{share:.1%}, no mark", answer)


LIMITS_CHECK = Check(
    "sch_front_limits",
    ("SCH-040",),
    observe_limits,
    judge_limits,
    recorded_times=True,
    heavy=True,
    summary="Fronts that are wanted by a time limit, against the same front without one (SCH-040).",
)
