"""Training period, utilisation and cost of communication against single-domain scheduling: SCH-003, 004, 005 and 011.

The service schedules simulated windows (:mod:`kuayu_conformance.testbed.scheduling`), one question for each epoch in
which something waits, with its own policy and weights throughout. Baselines play the same windows with the same
information. Which windows there are was fixed beforehand (:mod:`.sch_cells`); all are played, whatever they say.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.sch_baselines import Place
from kuayu_conformance.checks.sch_cells import AGAINST, ALL, LINEAR, TRACE, Plan, plan
from kuayu_conformance.checks.sch_kpis import (
    LEAST_MONEY,
    LEAST_OF_SOURCE,
    MONEY,
    MOST_IMPUTED,
    PERIOD,
    THREE,
    UTILISATION,
    Kpis,
    below_least,
    claimed,
    kpis,
    reference_windows,
)
from kuayu_conformance.checks.sch_player import Player
from kuayu_conformance.checks.sch_report import cost_exhibits, grid_exhibits, parts_of_period, period_exhibits, worse
from kuayu_conformance.checks.sch_scores import Window
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics.holm import LEVEL
from kuayu_conformance.testbed.scheduling.scenarios import Cell
from kuayu_conformance.testbed.scheduling.timing import Timing
from kuayu_schemas.models import ReportPlot

TOGETHER = "SCH-011"

MOST_BAD = 0.001
"""Share of questions that may go without an answer; each of them already counts as if nothing were to be done."""


@dataclass(frozen=True)
class Observation:
    """What was played.

    Attributes:
        plan: What was to be played.
        windows: Windows that were played to the end, by cell; none where the service gave no answers.
        grid: Windows by load; none likewise.
        asked: How often the service was asked.
        bad_answers: How often it gave no answer.
        bad: One of these, if it is known.
        pictures: A window of the reference cell, drawn; none in a quick run.
    """

    plan: Plan
    windows: dict[Cell, tuple[Window, ...]]
    grid: dict[float, tuple[Window, ...]]
    asked: int
    bad_answers: int
    bad: Answer | None
    pictures: tuple[ReportPlot, ...] = ()


def observe(episode: Episode) -> Observation:
    """Play the reference cell of each source, what stands beside, then the grid of loads."""
    its = plan(full=episode.settings.full, traces=episode.settings.traces)
    with Player(episode) as player:
        reference = [its.reference(source) for source in its.sources]
        picked = {cell: player.chosen(cell, its.drained(cell), its.windows, its.candidates) for cell in reference}
        usual = next(iter(picked.values()))
        families = [its.of_family(family) for family in its.families]
        due: list[tuple[Place, tuple[str, ...]]] = []
        for cell, count in its.due().items():
            beside = ALL if cell in reference else (*its.beside, LINEAR) if cell in families else its.beside
            due += [(Place(cell, its.drained(cell), n), beside) for n in picked.get(cell, usual)[:count]]
        for load in its.loads:
            due += [(Place(its.at_load(load), its.timing, n), its.beside) for n in range(its.load_windows)]
        played = player.windows(due)
        asking = player.asking
        if asking.hopeless:
            return Observation(its, {}, {}, asking.asked, asking.bad_answers, asking.bad)
        rows: dict[tuple[Cell, Timing], list[Window]] = {}
        for (place, _), window in zip(due, played, strict=True):
            rows.setdefault((place.cell, place.timing), []).append(window)
        windows = {cell: tuple(rows[cell, its.drained(cell)]) for cell in its.due()}
        grid = {load: tuple(rows[its.at_load(load), its.timing]) for load in its.loads}
        shown = player.pictures(its.at_load(1.0), its.timing, 0, AGAINST) if episode.settings.full else ()
        return Observation(its, windows, grid, asking.asked, asking.bad_answers, asking.bad, shown)


def judge(o: Observation) -> Iterator[Finding]:
    """The three gains, and how many of them hold together."""
    found = f"{o.bad_answers} of {o.asked} were not"
    answered = o.bad_answers <= MOST_BAD * o.asked
    for requirement in (*THREE, TOGETHER):
        expected = f"all but {MOST_BAD:.1%} of the questions where jobs are to run are answered by a placement report"
        yield holds(requirement, answered, expected, found, None if answered else o.bad)
    if not o.windows:
        return
    its = kpis(o.plan, o.windows, o.grid)
    yield from _period(o, its)
    yield _utilisation(o, its)
    yield from _cost(o, its)
    yield _together(its)


def _period(o: Observation, its: Kpis) -> Iterator[Finding]:
    for family, gain in worse(o.plan, o.windows):
        found = f"{-gain.estimate:.1%} longer over {gain.n} windows, at least {-gain.ceiling(0.05):.1%}"
        yield holds(PERIOD, False, f"in the family {family} no training period is longer than under B1", found)
    for source, stratum in zip(o.plan.sources, reference_windows(o.plan, o.windows), strict=True):
        if below_least(stratum, LEVEL / len(o.plan.sources)):
            expected = f"with jobs from {source} training periods are at least {LEAST_OF_SOURCE:.0%} shorter"
            yield holds(PERIOD, False, expected, "they are shown not to be, of all jobs or of large ones")
    held = its.held[PERIOD]
    tables, plots = period_exhibits(o.plan, o.windows)
    yield Figure(
        PERIOD,
        held.gain.estimate,
        held.bound,
        held.gain.n,
        "1 − mean training period under the service ÷ that under B1, of the jobs of the cohort that train and of those "
        "of them of at least eight devices, each the mean over workloads, the lesser. "
        f"{_bound(held.level)}{_why_not(its)}. Parts: by workload, then by family with a bound of their own",
        parts=parts_of_period(o.plan, o.windows, held.level),
        tables=tables,
        plots=plots,
        ceiling=held.ceiling,
    )


def _utilisation(o: Observation, its: Kpis) -> Figure:
    held, found = its.held[UTILISATION], its.sustained
    tables, plots = grid_exhibits(o.plan, found)
    return Figure(
        UTILISATION,
        held.gain.estimate,
        held.bound,
        held.gain.n,
        "useful work ÷ capacity by linear programme, at the highest load at which 95 % of the jobs, and of those of at "
        "least eight devices, have a bounded slowdown of 10 at most and the queue is bounded, ÷ the same of B1 − 1; "
        "interpolated between the loads of the grid, nothing is assumed beyond it. Bound: Student's, with the standard "
        f"error of the logarithm by bootstrap over {held.gain.n} windows, at {held.level:.3g} after Holm",
        parts=[
            PartFigure(name, each.utilisation / found["B1"].floor - 1.0, None, each.windows)
            for name, each in found.items()
            if name not in {"B1", "service"} and found["B1"].floor > 0.0
        ],
        tables=tables,
        plots=[*plots, *o.pictures],
        ceiling=held.ceiling,
    )


def _cost(o: Observation, its: Kpis) -> Iterator[Finding]:
    held = claimed(its)
    others = [its.held[name] for name in (PERIOD, UTILISATION)]
    yield holds(
        MONEY,
        not any(each.missed for each in others),
        "the cost is claimed only where neither SCH-003 nor SCH-004 fails in the same run",
        " and ".join(f"{each.gain.estimate:.1%}" for each in others),
    )
    tables, plots = cost_exhibits(o.plan, o.windows)
    yield Figure(
        MONEY,
        held.gain.estimate,
        held.bound,
        held.gain.n,
        "1 − money for occupied bandwidth ÷ work done, both of the cohort, ÷ the same under B1; the bound counts as "
        f"nought unless SCH-003 and SCH-004 are proven and B1's traffic costs {LEAST_MONEY} yuan or more for the work "
        f"of a reference device in an hour (here {its.money_of_reference:.3g}). {_bound(held.level)}",
        tables=tables,
        plots=plots,
        ceiling=held.ceiling,
    )


def _together(its: Kpis) -> Figure:
    money = claimed(its)
    held = [its.held[PERIOD], its.held[UTILISATION], money]
    return Figure(
        TOGETHER,
        sum(each.reached for each in held),
        sum(each.proven for each in held),
        held[0].gain.n,
        "how many of the three reach their thresholds, on the same windows, with one policy and its own weights; as "
        "bound: how many do so with their bounds, after Holm",
        parts=[
            PartFigure(name, float(each.reached), float(each.proven), each.gain.n)
            for name, each in zip(THREE, held, strict=True)
        ],
        ceiling=sum(not each.missed for each in held),
    )


def _bound(level: float) -> str:
    return f"Bound: Student's, over windows, at {level:.3g} after Holm"


def _why_not(its: Kpis) -> str:
    """Why the gain in the period cannot be proven, whatever its bound says; empty where it can."""
    if not its.large:
        return "; there was no job of eight devices, so that nothing can be proven"
    vague = [source for source, share in its.imputed.items() if share > MOST_IMPUTED]
    if vague:
        return (
            f"; more than {MOST_IMPUTED:.0%} of B1's periods is imputed of jobs from {', '.join(vague)}: inconclusive"
        )
    if its.short:
        return f"; with jobs from {', '.join(its.short)} it falls short of {LEAST_OF_SOURCE:.0%}: not proven"
    return ""


CHECK = Check("sch_gains", (*THREE, TOGETHER), observe, judge, traces=(TRACE,), heavy=True)
