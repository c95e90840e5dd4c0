"""Adjustments of running jobs as tables for people."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kuayu.cli.quantities import span
from kuayu.cli.tables import plain_table
from kuayu_schemas.models import Adjustment, AdjustmentTrigger, JobAdjustment, PolicyChange, TriggerKind

TRIGGERS = 24
"""Most changes of load and latency that are printed."""

CHANGES = 12
"""Most changes of one job that are printed."""

console = Console(highlight=False)


def show(report: Adjustment) -> None:
    """Print what has changed, what becomes of jobs, and why."""
    if report.triggers:
        console.print(_triggers(report.triggers[:TRIGGERS]))
        more = len(report.triggers) - TRIGGERS
        console.print(f"… and {more:,} more.\n" if more > 0 else "")
    else:
        console.print("No load and no latency has changed.")
    changed = [each for each in report.jobs if each.changes]
    if changed:
        console.print(_changes(changed))
        console.print()
    for reasons, names in _reasons(report.jobs).items():
        console.print(f"[bold]{escape(', '.join(names))}[/]")
        for reason in reasons:
            console.print(f"  {escape(reason)}")
    console.print(f"By {escape(report.method.name)} {escape(report.method.version)}.")


def _reasons(jobs: Sequence[JobAdjustment]) -> dict[tuple[str, ...], list[str]]:
    """Names of the jobs of which the same is said, by what is said."""
    found: dict[tuple[str, ...], list[str]] = {}
    for each in jobs:
        if each.reasons:
            found.setdefault(tuple(each.reasons), []).append(each.job)
    return found


def _triggers(triggers: Sequence[AdjustmentTrigger]) -> Table:
    table = plain_table("what has changed", "where", ">before", ">now")
    for each in triggers:
        where = f"[bold]{escape(each.domain)}[/]" + (f" → {escape(each.target)}" if each.target else "")
        is_load = each.kind is TriggerKind.load
        before, now = (f"{value:.1%}" if is_load else span(value) for value in (each.before, each.now))
        table.add_row(each.kind.value, where, before, now)
    return table


def _changes(jobs: Sequence[JobAdjustment]) -> Table:
    table = plain_table("job", ">steps a second", ">not before", "parts by share", "replicas agree by", "in the order")
    for job in jobs:
        name, rates = f"[bold]{escape(job.job)}[/]", f"{job.rate:.3g} → {job.expected_rate:.3g}"
        for each in job.changes[:CHANGES]:
            parts = " ".join(f"{number:,}" for number in each.parts)
            table.add_row(name, rates, span(each.after), parts, _way(each), escape(" → ".join(each.order)))
            name = rates = ""
        more = len(job.changes) - CHANGES
        if more > 0:
            table.add_row("", "", "", f"and {more:,} changes more", "", "")
    return table


def _way(change: PolicyChange) -> str:
    words = change.collective.value.replace("_", " ")
    return f"{words}, every {change.period:,} steps" if change.period > 1 else words
