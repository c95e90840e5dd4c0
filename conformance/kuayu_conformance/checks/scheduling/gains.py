"""Training period, utilisation and cost of communication against single-domain scheduling: SCH-003, 004, 005 and 011.

The service schedules simulated windows (:mod:`kuayu_conformance.testbed.scheduling`), one question for each epoch in
which something waits, with its own policy and weights throughout. Baselines play the same windows with the same
information. Which windows there are was fixed beforehand (:mod:`.cells`); all are played, whatever they say.

1. Figures of some windows as cells of tables.
2. Tables and plots that stand beside the gains: all baselines, families, curves, what is left up to the bound.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.tables import NONE, lines, percent, table
from kuayu_conformance.checks.scheduling.baseline_scores import Place
from kuayu_conformance.checks.scheduling.cells import (
    AGAINST,
    ALL,
    HOUR,
    LINEAR,
    POOL,
    SERVICE,
    TRACE,
    Curve,
    Plan,
    plan,
)
from kuayu_conformance.checks.scheduling.kpis import (
    MIN_COST_CNY,
    MIN_SHOWN_GAIN,
    MIN_SOURCE_GAIN,
    MONEY,
    MOST_IMPUTED,
    PERIOD,
    THREE,
    UTILISATION,
    Gain,
    Kpis,
    SustainedLoad,
    below_least,
    claimed,
    job_by_job,
    kpis,
    money_gain,
    period_gain,
    reference_windows,
)
from kuayu_conformance.checks.scheduling.scores import (
    EVERYONE,
    LARGE_TRAINING,
    LARGER,
    TRAINING,
    GroupOf,
    Window,
    Windows,
)
from kuayu_conformance.checks.scheduling.window_player import Player
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics.holm import LEVEL
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Timing
from kuayu_schemas.models import ReportPlot, ReportTable


def mean_period(windows: Sequence[Window], policy: str, of: GroupOf) -> float | None:
    """Seconds, over the jobs of all windows; None where there are none."""
    groups = [of(window.scores[policy]) for window in windows]
    jobs = sum(group.jobs for group in groups)
    return fsum(group.period for group in groups) / jobs if jobs else None


def least_period(windows: Sequence[Window], of: GroupOf) -> float | None:
    """Seconds below which no policy brings the mean period of the jobs that train, or of the large ones of them."""
    jobs = [of(window.scores[AGAINST]).jobs for window in windows]
    least = [window.bounds.large_training if of is LARGE_TRAINING else window.bounds.training for window in windows]
    return fsum(mean * n for mean, n in zip(least, jobs, strict=True)) / sum(jobs) if any(jobs) else None


def money(windows: Sequence[Window], policy: str, of: GroupOf) -> str:
    """Yuan for the work of a reference device in an hour."""
    groups = [of(window.scores[policy]) for window in windows if policy in window.scores]
    done = fsum(group.done for group in groups)
    return f"{fsum(group.money for group in groups) / done * HOUR:.3g}" if done else NONE


def money_less(windows: Sequence[Window], of: GroupOf, policy: str, against: str = AGAINST) -> float | None:
    """Part by which that is less than under another policy; None where it is zero there."""
    if not sum(of(window.scores[against]).money for window in windows):
        return None
    return money_gain([windows], of, policy, against).estimate


def less(value: float | None, base: float | None) -> float | None:
    """Part by which a value is less than another."""
    return 1.0 - value / base if value is not None and base else None


def hours(seconds: float | None) -> str:
    """Seconds as hours."""
    return NONE if seconds is None else f"{seconds / HOUR:.2f}"


Exhibits = tuple[list[ReportTable], list[ReportPlot]]

MARGIN = 0.05
"""Part by which the training period may be longer than under B1 in any family."""

GREEDY, COST_AWARE = "B3", "B3c"


def parts_of_period(plan: Plan, windows: Windows, level: float) -> list[PartFigure]:
    """Gain in the training period by workload, of all and of large jobs, then by family."""
    strata = reference_windows(plan, windows)
    parts = []
    for source, stratum in zip(plan.sources, strata, strict=True):
        for label, of in (("all", TRAINING), ("of eight devices or more", LARGE_TRAINING)):
            if any(of(window.scores[AGAINST]).jobs for window in stratum):
                parts.append(_part(f"{source}, {label}", period_gain([stratum], of), level))
    rows = ((family, windows[plan.of_family(family)]) for family in plan.families)
    return parts + [_part(f"family {family}", period_gain([entry], TRAINING), LEVEL) for family, entry in rows]


def _part(label: str, gain: Gain, level: float) -> PartFigure:
    return PartFigure(label, gain.estimate, max(MIN_SHOWN_GAIN, gain.bound(level)), gain.n)


def worse(plan: Plan, windows: Windows) -> Iterator[tuple[str, Gain]]:
    """Families in which the training period is shown to be longer than under B1, by more than the margin.

    The level is shared by all families.
    """
    for family in plan.families:
        gain = period_gain([windows[plan.of_family(family)]], TRAINING)
        if gain.ceiling(LEVEL / len(plan.families)) < -MARGIN:
            yield family, gain


def period_exhibits(plan: Plan, windows: Windows) -> Exhibits:
    """All policies at the reference load, by workload; families; curves."""
    strata = reference_windows(plan, windows)
    tables = [one for source, entry in zip(plan.sources, strata, strict=True) for one in _at_reference(source, entry)]
    if plan.families:
        tables.append(_families(plan, windows))
    tables += [_along(plan, curve, windows) for curve in plan.curves]
    return tables, [_drawn(plan, curve, windows) for curve in plan.curves]


def _at_reference(source: str, items: Sequence[Window]) -> list[ReportTable]:
    """How long jobs take under each policy, all and large ones, and how they are served."""
    names = sorted(items[0].scores, key=lambda name: (name == SERVICE, name))
    where = f"jobs from {source}, {len(items)} windows"
    served = []
    for name in names:
        scores = [window.scores[name] for window in items]
        jobs = sum(s.everyone.jobs for s in scores)
        served.append(
            [
                name,
                percent(sum(s.everyone.within for s in scores) / jobs),
                percent(sum(s.unfinished for s in scores) / jobs),
                percent(fsum(s.work for s in scores) / fsum(s.capacity for s in scores)),
                money(items, name, EVERYONE),
                f"{fsum(s.price for s in scores) / (fsum(s.work for s in scores) or 1.0) * HOUR:.3g}",
                str(sum(s.decisions for s in scores)),
                str(sum(s.refusals for s in scores)),
                str(sum(s.bad_answers for s in scores)),
            ]
        )
    jobs = sum(window.scores[AGAINST].everyone.jobs for window in items)
    groups = (("", TRAINING), (" of eight devices or more", LARGE_TRAINING))
    return [
        *(_periods(f"{where} with {{}} jobs that train{which}", items, names, of) for which, of in groups),
        table(
            f"Service at the reference load: {where} with {jobs} jobs; money for traffic and for devices, yuan for the "
            "work of a reference device in an hour",
            "policy|slowdown ≤ 10|not finished|utilisation|traffic|devices|asked|orders refused|bad answers",
            served,
        ),
    ]


def _periods(where: str, items: Sequence[Window], names: Sequence[str], of: GroupOf) -> ReportTable:
    """Periods of some jobs under each policy, and the bound that no policy can beat."""
    base, bound, pool = mean_period(items, AGAINST, of), least_period(items, of), mean_period(items, POOL, of)
    weighed = {name: _weighed(items, name, of) for name in names}
    longest = {name: fsum(of(window.scores[name]).longest for window in items) / len(items) for name in names}
    rows = []
    for name in names:
        mean = mean_period(items, name, of)
        unseen = fsum(of(window.scores[name]).imputed for window in items)
        seen = fsum(of(window.scores[name]).period for window in items)
        rows.append(
            [
                name,
                hours(mean),
                percent(less(mean, base)),
                percent(job_by_job(items, of, name)),
                percent(_reached(mean, base, pool)),
                percent(mean / bound - 1.0 if mean and bound else None),
                hours(weighed[name]),
                percent(less(weighed[name], weighed[AGAINST])),
                hours(longest[name]),
                percent(less(longest[name], longest[AGAINST])),
                percent(unseen / seen if seen else None),
            ]
        )
    rows.append(["B5 bound", hours(bound), percent(less(bound, base)), NONE, NONE, percent(0.0), *[NONE] * 5])
    jobs = sum(of(window.scores[AGAINST]).jobs for window in items)
    title = f"Training periods at the reference load: {where.format(jobs)}"
    return table(
        f"{title}; p95 is a mean over windows, B5 pool is B3 with all devices in one place, B5 bound is what no policy "
        "can beat with these devices",
        "policy|mean, h|less than B1|job by job|of the pool's gain|above the bound|weighted by work, h|"
        "weighted, less than B1|p95, h|p95, less than B1|imputed",
        rows,
    )


def _weighed(windows: Sequence[Window], name: str, of: GroupOf) -> float | None:
    """Mean period, each job counting with its work; None where there is none."""
    work = fsum(of(window.scores[name]).work for window in windows)
    return fsum(of(window.scores[name]).weighted for window in windows) / work if work else None


def _reached(mean: float | None, base: float | None, pool: float | None) -> float | None:
    """Part of what an ideal pool gains; None where it gains nothing."""
    if mean is None or base is None or pool is None or pool >= base:
        return None
    return (base - mean) / (base - pool)


def _families(plan: Plan, windows: Windows) -> ReportTable:
    others = [*(name for name in plan.beside if name != AGAINST), LINEAR]
    columns = "family|windows|under B1, h|service less by|at least|" + "|".join(f"{name} less by" for name in others)
    rows = []
    for family in plan.families:
        subject = windows[plan.of_family(family)]
        base, mine = mean_period(subject, AGAINST, TRAINING), period_gain([subject], TRAINING)
        gains = {name: period_gain([subject], TRAINING, name).estimate for name in others}
        shortest = max([(mine.estimate, SERVICE), *((gain, name) for name, gain in gains.items())])[1]
        rows.append(
            [
                family,
                str(len(subject)),
                hours(base),
                percent(mine.estimate),
                percent(max(MIN_SHOWN_GAIN, mine.bound(LEVEL))),
                *(percent(gains[name]) for name in others),
                percent(less(least_period(subject, TRAINING), base)),
                shortest,
            ]
        )
    title = "Training period by family at the reference load, less than under B1"
    return table(title, f"{columns}|bound less by|shortest", rows)


def _along(plan: Plan, curve: Curve, windows: Windows) -> ReportTable:
    names = [*(name for name in plan.beside if name != AGAINST), SERVICE]
    columns = [curve.label, "windows", *(f"{name}: period less by" for name in names)]
    columns += [f"{name}: money less by" for name in names]
    rows = []
    for value, cell in curve.points:
        subject = windows[cell][: plan.curve_windows]
        periods = [percent(period_gain([subject], TRAINING, name).estimate) for name in names]
        rows.append(
            [
                f"{value:g}",
                str(len(subject)),
                *periods,
                *(percent(money_less(subject, EVERYONE, name)) for name in names),
            ]
        )
    vanishing = f"; {curve.vanishing}" if curve.vanishing else ""
    return table(f"Over the {curve.label}, against B1{vanishing}", "|".join(columns), rows)


def _drawn(plan: Plan, curve: Curve, windows: Windows) -> ReportPlot:
    rows = [(place, windows[cell][: plan.curve_windows]) for place, cell in curve.points]
    points = {
        name: [(item, 100.0 * period_gain([entry], TRAINING, name).estimate) for item, entry in rows]
        for name in (*(name for name in plan.beside if name != AGAINST), SERVICE)
    }
    return lines(f"Training period over the {curve.label}", curve.label, "less than under B1, %", points)


def grid_exhibits(plan: Plan, found: Mapping[str, SustainedLoad]) -> Exhibits:
    """Utilisation and service over the load, and what each policy sustains."""
    base = found[AGAINST].floor
    rows = []
    for name, each in found.items():
        used = each.floor if name == AGAINST else each.utilisation
        load = (
            f"below {plan.loads[0]:g}" if not each.load else f"{each.load:.2f}" + (" and more" if each.beyond else "")
        )
        rows.append([name, load, percent(used), percent(used / base - 1.0 if base else None)])
    title = f"Highest load at which jobs are served well, over the reference load; {plan.loads[-1]:g} is the most tried"
    if not found[AGAINST].load:
        title += f". B1 sustains none of them; it counts with what it uses at {plan.loads[0]:g}"
    highest = table(title, "policy|load|utilisation|more than B1", rows)
    columns = ["policy", *(f"{what} at {load:g}" for load in plan.loads for what in ("served", "large", "used"))]
    grid = table(
        "Jobs served well, large ones likewise, and utilisation, by load over the reference load",
        "|".join(columns),
        [
            [
                name,
                *(
                    percent(part)
                    for place in zip(its.served, its.served_large, its.used, strict=True)
                    for part in place
                ),
            ]
            for name, its in found.items()
        ],
    )

    def plot(title: str, label: str, figures: Callable[[SustainedLoad], Sequence[float]]) -> ReportPlot:
        points = {
            name: [(load, 100.0 * part) for load, part in zip(plan.loads, figures(row), strict=True)]
            for name, row in found.items()
        }
        return lines(title, "load over the reference load", label, points)

    plots = [
        plot("Utilisation over the load", "useful work over capacity, %", lambda entry: entry.used),
        plot("Service over the load", "jobs with a bounded slowdown of 10 at most, %", lambda item: item.served),
    ]
    return [highest, grid], plots


def cost_exhibits(plan: Plan, windows: Windows) -> Exhibits:
    """Cost against B1, and against B3 at no longer period; jobs larger than their home apart."""
    strata = reference_windows(plan, windows)
    places = [(source, entry) for source, entry in zip(plan.sources, strata, strict=True)]
    places += [(family, windows[plan.of_family(family)]) for family in plan.families]
    columns = (
        "where|windows|B1|B3|B3c|service|service less than B1|less than B3|period longer than B3's|"
        "larger than home: B1's static pair|service|their period less than B1's"
    )
    rows = [
        [
            label,
            str(len(item)),
            *(money(item, name, EVERYONE) for name in (AGAINST, GREEDY, COST_AWARE, SERVICE)),
            percent(money_less(item, EVERYONE, SERVICE)),
            percent(money_less(item, EVERYONE, SERVICE, GREEDY)),
            percent(-period_gain([item], TRAINING, SERVICE, GREEDY).estimate),
            *(money(item, name, LARGER) for name in (AGAINST, SERVICE)),
            percent(less(mean_period(item, SERVICE, LARGER), mean_period(item, AGAINST, LARGER))),
        ]
        for label, item in places
    ]
    return [table("Money for traffic, yuan for the work of a reference device in an hour", columns, rows)], []


TOGETHER = "SCH-011"

MOST_BAD = 0.001
"""Share of questions that may go without an answer; each of them already counts as if nothing were to be done."""


@dataclass(frozen=True)
class GainWindows:
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


def observe(episode: Episode) -> GainWindows:
    """Play the reference cell of each source, what stands beside, then the grid of loads."""
    subject = plan(full=episode.settings.full, traces=episode.settings.traces)
    with Player(episode) as player:
        reference = [subject.reference(source) for source in subject.sources]
        picked = {
            cell: player.chosen(cell, subject.drained(cell), subject.windows, subject.candidates) for cell in reference
        }
        usual = next(iter(picked.values()))
        families = [subject.of_family(family) for family in subject.families]
        due: list[tuple[Place, tuple[str, ...]]] = []
        for cell, count in subject.due().items():
            beside = ALL if cell in reference else (*subject.beside, LINEAR) if cell in families else subject.beside
            due += [(Place(cell, subject.drained(cell), n), beside) for n in picked.get(cell, usual)[:count]]
        for load in subject.loads:
            due += [
                (Place(subject.at_load(load), subject.timing, n), subject.beside) for n in range(subject.load_windows)
            ]
        played = player.windows(due)
        asking = player.asking
        if asking.hopeless:
            return GainWindows(subject, {}, {}, asking.asked, asking.bad_answers, asking.bad)
        rows: dict[tuple[Cell, Timing], list[Window]] = {}
        for (place, _), window in zip(due, played, strict=True):
            rows.setdefault((place.cell, place.timing), []).append(window)
        windows = {cell: tuple(rows[cell, subject.drained(cell)]) for cell in subject.due()}
        grid = {load: tuple(rows[subject.at_load(load), subject.timing]) for load in subject.loads}
        shown = player.pictures(subject.at_load(1.0), subject.timing, 0, AGAINST) if episode.settings.full else ()
        return GainWindows(subject, windows, grid, asking.asked, asking.bad_answers, asking.bad, shown)


def judge(o: GainWindows) -> Iterator[Finding]:
    """The three gains, and how many of them hold together."""
    found = f"{o.bad_answers} of {o.asked} were not"
    answered = o.bad_answers <= MOST_BAD * o.asked
    for requirement in (*THREE, TOGETHER):
        expected = f"all but {MOST_BAD:.1%} of the questions where jobs are to run are answered by a placement report"
        yield holds(requirement, answered, expected, found, None if answered else o.bad)
    if not o.windows:
        return
    subject = kpis(o.plan, o.windows, o.grid)
    yield from _period(o, subject)
    yield _utilisation(o, subject)
    yield from _cost(o, subject)
    yield _together(subject)


def _period(o: GainWindows, kpis: Kpis) -> Iterator[Finding]:
    for family, gain in worse(o.plan, o.windows):
        found = f"{-gain.estimate:.1%} longer over {gain.n} windows, at least {-gain.ceiling(0.05):.1%}"
        yield holds(PERIOD, False, f"in the family {family} no training period is longer than under B1", found)
    for source, stratum in zip(o.plan.sources, reference_windows(o.plan, o.windows), strict=True):
        if below_least(stratum, LEVEL / len(o.plan.sources)):
            expected = f"with jobs from {source} training periods are at least {MIN_SOURCE_GAIN:.0%} shorter"
            yield holds(PERIOD, False, expected, "they are shown not to be, of all jobs or of large ones")
    held = kpis.held[PERIOD]
    tables, plots = period_exhibits(o.plan, o.windows)
    yield Figure(
        PERIOD,
        held.gain.estimate,
        held.bound,
        held.gain.n,
        "1 − mean training period under the service ÷ that under B1, of the jobs of the cohort that train and of those "
        "of them of at least eight devices, each the mean over workloads, the lesser. "
        f"{_bound(held.level)}{_why_not(kpis)}. Parts: by workload, then by family with a bound of their own",
        parts=parts_of_period(o.plan, o.windows, held.level),
        tables=tables,
        plots=plots,
        ceiling=held.ceiling,
    )


def _utilisation(o: GainWindows, kpis: Kpis) -> Figure:
    held, found = kpis.held[UTILISATION], kpis.sustained
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
            PartFigure(name, entry.utilisation / found["B1"].floor - 1.0, None, entry.windows)
            for name, entry in found.items()
            if name not in {"B1", "service"} and found["B1"].floor > 0.0
        ],
        tables=tables,
        plots=[*plots, *o.pictures],
        ceiling=held.ceiling,
    )


def _cost(o: GainWindows, kpis: Kpis) -> Iterator[Finding]:
    held = claimed(kpis)
    others = [kpis.held[name] for name in (PERIOD, UTILISATION)]
    yield holds(
        MONEY,
        not any(other.missed for other in others),
        "the cost is claimed only where neither SCH-003 nor SCH-004 fails in the same run",
        " and ".join(f"{entry.gain.estimate:.1%}" for entry in others),
    )
    tables, plots = cost_exhibits(o.plan, o.windows)
    yield Figure(
        MONEY,
        held.gain.estimate,
        held.bound,
        held.gain.n,
        "1 − money for occupied bandwidth ÷ work done, both of the cohort, ÷ the same under B1; the bound counts as "
        f"nought unless SCH-003 and SCH-004 are proven and B1's traffic costs {MIN_COST_CNY} yuan or more for the work "
        f"of a reference device in an hour (here {kpis.money_of_reference:.3g}). {_bound(held.level)}",
        tables=tables,
        plots=plots,
        ceiling=held.ceiling,
    )


def _together(kpis: Kpis) -> Figure:
    money = claimed(kpis)
    held = [kpis.held[PERIOD], kpis.held[UTILISATION], money]
    return Figure(
        TOGETHER,
        sum(item.reached for item in held),
        sum(entry.proven for entry in held),
        held[0].gain.n,
        "how many of the three reach their thresholds, on the same windows, with one policy and its own weights; as "
        "bound: how many do so with their bounds, after Holm",
        parts=[
            PartFigure(name, float(each.reached), float(each.proven), each.gain.n)
            for name, each in zip(THREE, held, strict=True)
        ],
        ceiling=sum(not row.missed for row in held),
    )


def _bound(level: float) -> str:
    return f"Bound: Student's, over windows, at {level:.3g} after Holm"


def _why_not(kpis: Kpis) -> str:
    """Why the gain in the period cannot be proven, whatever its bound says; empty where it can."""
    if not kpis.large:
        return "; there was no job of eight devices, so that nothing can be proven"
    vague = [source for source, share in kpis.imputed.items() if share > MOST_IMPUTED]
    if vague:
        return (
            f"; more than {MOST_IMPUTED:.0%} of B1's periods is imputed of jobs from {', '.join(vague)}: inconclusive"
        )
    if kpis.short:
        return f"; with jobs from {', '.join(kpis.short)} it falls short of {MIN_SOURCE_GAIN:.0%}: not proven"
    return ""


CHECK = Check("sch_gains", (*THREE, TOGETHER), observe, judge, traces=(TRACE,), heavy=True)
