"""Fronts of period and communication cost, against the exact ones of small instances (SCH-001, SCH-014)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.sch_fixtures import FRONTS, Draft, decided
from kuayu_conformance.checks.sch_fronts import (
    NEAR,
    SLOT,
    Ends,
    Solution,
    coverage,
    distance,
    exact,
    hypervolume,
    small,
    solutions,
)
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import mean_lower_bound
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable, TableRow

INSTANCES_QUICK, INSTANCES_FULL = (4,) * 8, (4,) * 30 + (5,) * 30 + (6,) * 10
"""Jobs of the instances of a run."""
MOST = 50
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
    def found(self) -> list[Ends]:
        """Ends of what can be carried out."""
        return [each.found for each in self.solutions or () if not each.faults]


def observe(episode: Episode) -> tuple[Instance, ...]:
    """Ask for the fronts of small instances, and find the exact ones."""
    draft = Draft.of(episode)
    made = []
    for jobs in INSTANCES_FULL if episode.settings.full else INSTANCES_QUICK:
        state = small(draft, jobs)
        body = {"state": state, "slot": SLOT, "solutions": MOST}
        answer = episode.ask_patiently("POST", FRONTS, body)
        front = decided(FRONTS, answer)
        told = tuple(solutions(state, answer.json["solutions"])) if front else None
        echoed = front and answer.json["revision"] == state["revision"]
        made.append(Instance(jobs, exact(state), told, echoed, answer))
    return tuple(made)


def judge(observation: tuple[Instance, ...]) -> Iterable[Finding]:
    """The share of the points that are reached; claims about stated ends and about the form of fronts."""
    silent = [each for each in observation if each.solutions is None]
    for each in silent[:1]:
        for requirement in CHECK.requirements:
            yield Claim(requirement, "a front of every instance", False, each.answer.brief, each.answer)
    for each in observation:
        if each.solutions is not None:
            yield from _sound(each)
    yield _covered(observation)


def _sound(each: Instance) -> Iterator[Claim]:
    told = each.solutions or ()
    what = f"a front of {each.jobs} jobs"
    wrong = [fault for solution in told for fault in solution.faults]
    yield holds("SCH-014", not wrong, f"{what}: schedules that can be carried out", wrong[:3], each.answer)
    off = [f"{solution.stated} stated, {solution.found} found" for solution in told if _off(solution, each.points)]
    yield holds("SCH-014", not off, f"{what}: the ends that its schedules have", off[:3], each.answer)
    yield holds("SCH-014", 0 < len(told) <= MOST, f"{what}: one to {MOST} solutions", len(told), each.answer)
    yield holds("SCH-014", each.revision, f"{what}: the revision of its state", each.revision, each.answer)
    stated = [solution.stated for solution in told]
    ordered = all(one[0] <= other[0] and one[1] >= other[1] and one != other for one, other in pairwise(stated))
    expected = f"{what}: from the quickest to the cheapest, none beaten in both ends"
    yield holds("SCH-014", ordered, expected, stated[:8], each.answer)


def _off(solution: Solution, points: Sequence[Ends]) -> bool:
    """Whether stated ends are more than a hundredth off; money is free of that up to a ten-thousandth of the most."""
    if solution.faults:
        return False
    crumb = NEAR * NEAR * max(money for _, money in points)
    (period, money), (found_period, found_money) = solution.stated, solution.found
    return abs(period - found_period) > NEAR * found_period or abs(money - found_money) > NEAR * found_money + crumb


def _covered(observation: Sequence[Instance]) -> Figure:
    shares = [[coverage(each.points, each.found)] for each in observation]
    estimate = sum(share for (share,) in shares) / len(shares)
    missed = [
        holds(
            "SCH-001",
            False,
            f"all {len(each.points)} points of {each.jobs} jobs",
            f"{share:.0%} of them; {len(each.found)} schedules, {each.found[:4]} against {each.points[:4]}",
            each.answer,
        )
        for each, (share,) in zip(observation, shares, strict=True)
        if share < 1
    ]
    sizes = sorted({each.jobs for each in observation})
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
        [_plot(each, number) for number, each in enumerate(observation[:DRAWN], 1)],
    )


def _part(observation: Sequence[Instance], jobs: int) -> PartFigure:
    shares = [[coverage(each.points, each.found)] for each in observation if each.jobs == jobs]
    bound = mean_lower_bound(shares, f"SCH-001 {jobs}") if len(shares) > 1 else None
    return PartFigure(f"{jobs} jobs", sum(share for (share,) in shares) / len(shares), bound, len(shares))


def _table(observation: Sequence[Instance]) -> ReportTable:
    rows = [
        [
            f"{number}: {each.jobs} jobs",
            str(len(each.points)),
            str(len(each.found)),
            f"{coverage(each.points, each.found):.1%}",
            f"{hypervolume(each.points, each.found):.4f}",
            _short(distance(each.points, each.found)),
        ]
        for number, each in enumerate(observation, 1)
    ]
    columns = ["instance", "points", "schedules", "reached", "hypervolume over the exact", "IGD+"]
    return ReportTable(title="Fronts", columns=columns, rows=[TableRow(cells=cells) for cells in rows])


def _short(figure: float) -> str:
    return "–" if figure == inf else f"{figure:.4f}"


def _plot(each: Instance, number: int) -> ReportPlot:
    series = {"exact": each.points, "answer": tuple(sorted(end for end in each.found if isfinite(sum(end))))}
    return ReportPlot(
        title=f"Front of instance {number}, {each.jobs} jobs",
        kind=PlotKind.lines,
        x_label="mean period, h",
        y_label="communication cost",
        series=[
            PlotSeries(label=label, x=[round(p / 3600, 4) for p, _ in ends], y=[round(m, 2) for _, m in ends])
            for label, ends in series.items()
            if ends
        ],
    )


CHECK = Check("sch_pareto", ("SCH-001", "SCH-014"), observe, judge, heavy=True)
