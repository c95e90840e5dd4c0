"""Tables and plots that stand beside the gains: all baselines, families, curves, what is left up to the bound."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import fsum

from kuayu_conformance.checks.sch_cells import AGAINST, HOUR, LINEAR, POOL, SERVICE, Curve, Plan
from kuayu_conformance.checks.sch_equal_service import Sustained
from kuayu_conformance.checks.sch_kpis import LOWEST, Gain, job_by_job, period_gain, reference_windows
from kuayu_conformance.checks.sch_scores import EVERYONE, LARGE_TRAINING, LARGER, TRAINING, Of, Window, Windows
from kuayu_conformance.checks.sch_tables import (
    NONE,
    hours,
    least_period,
    less,
    lines,
    mean_period,
    money,
    money_less,
    percent,
    table,
)
from kuayu_conformance.findings import PartFigure
from kuayu_conformance.statistics.holm import LEVEL
from kuayu_schemas.models import ReportPlot, ReportTable

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
    return parts + [_part(f"family {family}", period_gain([its], TRAINING), LEVEL) for family, its in rows]


def _part(label: str, gain: Gain, level: float) -> PartFigure:
    return PartFigure(label, gain.estimate, max(LOWEST, gain.bound(level)), gain.n)


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
    tables = [one for source, its in zip(plan.sources, strata, strict=True) for one in _at_reference(source, its)]
    if plan.families:
        tables.append(_families(plan, windows))
    tables += [_along(plan, curve, windows) for curve in plan.curves]
    return tables, [_drawn(plan, curve, windows) for curve in plan.curves]


def _at_reference(source: str, its: Sequence[Window]) -> list[ReportTable]:
    """How long jobs take under each policy, all and large ones, and how they are served."""
    names = sorted(its[0].scores, key=lambda name: (name == SERVICE, name))
    where = f"jobs from {source}, {len(its)} windows"
    served = []
    for name in names:
        scores = [window.scores[name] for window in its]
        jobs = sum(s.everyone.jobs for s in scores)
        served.append(
            [
                name,
                percent(sum(s.everyone.within for s in scores) / jobs),
                percent(sum(s.unfinished for s in scores) / jobs),
                percent(fsum(s.work for s in scores) / fsum(s.capacity for s in scores)),
                money(its, name, EVERYONE),
                f"{fsum(s.price for s in scores) / (fsum(s.work for s in scores) or 1.0) * HOUR:.3g}",
                str(sum(s.decisions for s in scores)),
                str(sum(s.refusals for s in scores)),
                str(sum(s.bad_answers for s in scores)),
            ]
        )
    jobs = sum(window.scores[AGAINST].everyone.jobs for window in its)
    groups = (("", TRAINING), (" of eight devices or more", LARGE_TRAINING))
    return [
        *(_periods(f"{where} with {{}} jobs that train{which}", its, names, of) for which, of in groups),
        table(
            f"Service at the reference load: {where} with {jobs} jobs; money for traffic and for devices, yuan for the "
            "work of a reference device in an hour",
            "policy|slowdown ≤ 10|not finished|utilisation|traffic|devices|asked|orders refused|bad answers",
            served,
        ),
    ]


def _periods(where: str, its: Sequence[Window], names: Sequence[str], of: Of) -> ReportTable:
    """Periods of some jobs under each policy, and the bound that no policy can beat."""
    base, bound, pool = mean_period(its, AGAINST, of), least_period(its, of), mean_period(its, POOL, of)
    weighed = {name: _weighed(its, name, of) for name in names}
    longest = {name: fsum(of(window.scores[name]).longest for window in its) / len(its) for name in names}
    rows = []
    for name in names:
        mean = mean_period(its, name, of)
        unseen = fsum(of(window.scores[name]).imputed for window in its)
        seen = fsum(of(window.scores[name]).period for window in its)
        rows.append(
            [
                name,
                hours(mean),
                percent(less(mean, base)),
                percent(job_by_job(its, of, name)),
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
    jobs = sum(of(window.scores[AGAINST]).jobs for window in its)
    title = f"Training periods at the reference load: {where.format(jobs)}"
    return table(
        f"{title}; p95 is a mean over windows, B5 pool is B3 with all devices in one place, B5 bound is what no policy "
        "can beat with these devices",
        "policy|mean, h|less than B1|job by job|of the pool's gain|above the bound|weighted by work, h|"
        "weighted, less than B1|p95, h|p95, less than B1|imputed",
        rows,
    )


def _weighed(its: Sequence[Window], name: str, of: Of) -> float | None:
    """Mean period, each job counting with its work; None where there is none."""
    work = fsum(of(window.scores[name]).work for window in its)
    return fsum(of(window.scores[name]).weighted for window in its) / work if work else None


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
        its = windows[plan.of_family(family)]
        base, mine = mean_period(its, AGAINST, TRAINING), period_gain([its], TRAINING)
        gains = {name: period_gain([its], TRAINING, name).estimate for name in others}
        shortest = max([(mine.estimate, SERVICE), *((gain, name) for name, gain in gains.items())])[1]
        rows.append(
            [
                family,
                str(len(its)),
                hours(base),
                percent(mine.estimate),
                percent(max(LOWEST, mine.bound(LEVEL))),
                *(percent(gains[name]) for name in others),
                percent(less(least_period(its, TRAINING), base)),
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
        its = windows[cell][: plan.curve_windows]
        periods = [percent(period_gain([its], TRAINING, name).estimate) for name in names]
        rows.append(
            [f"{value:g}", str(len(its)), *periods, *(percent(money_less(its, EVERYONE, name)) for name in names)]
        )
    vanishing = f"; {curve.vanishing}" if curve.vanishing else ""
    return table(f"Over the {curve.label}, against B1{vanishing}", "|".join(columns), rows)


def _drawn(plan: Plan, curve: Curve, windows: Windows) -> ReportPlot:
    rows = [(at, windows[cell][: plan.curve_windows]) for at, cell in curve.points]
    points = {
        name: [(at, 100.0 * period_gain([its], TRAINING, name).estimate) for at, its in rows]
        for name in (*(name for name in plan.beside if name != AGAINST), SERVICE)
    }
    return lines(f"Training period over the {curve.label}", curve.label, "less than under B1, %", points)


def grid_exhibits(plan: Plan, found: Mapping[str, Sustained]) -> Exhibits:
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
            [name, *(percent(part) for at in zip(its.served, its.served_large, its.used, strict=True) for part in at)]
            for name, its in found.items()
        ],
    )

    def plot(title: str, label: str, figures: Callable[[Sustained], Sequence[float]]) -> ReportPlot:
        points = {
            name: [(load, 100.0 * part) for load, part in zip(plan.loads, figures(its), strict=True)]
            for name, its in found.items()
        }
        return lines(title, "load over the reference load", label, points)

    plots = [
        plot("Utilisation over the load", "useful work over capacity, %", lambda its: its.used),
        plot("Service over the load", "jobs with a bounded slowdown of 10 at most, %", lambda its: its.served),
    ]
    return [highest, grid], plots


def cost_exhibits(plan: Plan, windows: Windows) -> Exhibits:
    """Cost against B1, and against B3 at no longer period; jobs larger than their home apart."""
    strata = reference_windows(plan, windows)
    places = [(source, its) for source, its in zip(plan.sources, strata, strict=True)]
    places += [(family, windows[plan.of_family(family)]) for family in plan.families]
    columns = (
        "where|windows|B1|B3|B3c|service|service less than B1|less than B3|period longer than B3's|"
        "larger than home: B1's static pair|service|their period less than B1's"
    )
    rows = [
        [
            label,
            str(len(its)),
            *(money(its, name, EVERYONE) for name in (AGAINST, GREEDY, COST_AWARE, SERVICE)),
            percent(money_less(its, EVERYONE, SERVICE)),
            percent(money_less(its, EVERYONE, SERVICE, GREEDY)),
            percent(-period_gain([its], TRAINING, SERVICE, GREEDY).estimate),
            *(money(its, name, LARGER) for name in (AGAINST, SERVICE)),
            percent(less(mean_period(its, SERVICE, LARGER), mean_period(its, AGAINST, LARGER))),
        ]
        for label, its in places
    ]
    return [table("Money for traffic, yuan for the work of a reference device in an hour", columns, rows)], []
