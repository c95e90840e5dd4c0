"""Backup plans and failover plans as tables for people."""

from collections.abc import Sequence
from functools import singledispatch

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kuayu.cli.quantities import span
from kuayu.cli.tables import plain_table
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import BackupPlan, FailoverPlan, JobRecovery, PlannedCopy, RecoveryMethod

COPIES = 24
"""Most copies that are printed."""

NODES = 6
"""Most nodes that are printed of a recovery."""

console = Console(highlight=False)


@singledispatch
def show(report: KuayuModel) -> None:
    """Print a report.

    Raises:
        TypeError: There is no table for its class.
    """
    raise TypeError(type(report).__name__)


@show.register
def _(report: BackupPlan) -> None:
    table = plain_table("domain", ">spares", ">risk", ">money an hour")
    for each in report.pools:
        table.add_row(f"[bold]{escape(each.domain)}[/]", f"{each.spares:,}", f"{each.risk:.2g}", f"{each.price:,.2f}")
    console.print(table)
    console.print()
    if report.copies:
        console.print(_copies(report.copies[:COPIES]))
        console.print()
    for reason in report.reasons or ():
        console.print(escape(reason))
    left_out = len(report.copies) - COPIES
    some = f" {left_out:,} of {len(report.copies):,} copies are left out; --json tells all." if left_out > 0 else ""
    console.print(f"{_by(report.method)}{some}")


@show.register
def _(report: FailoverPlan) -> None:
    table = plain_table("job", "goes on by", ">replicas", "from", "nodes", ">not before", ">resumes")
    for each in report.recoveries:
        resumes = span(each.resumes) if each.resumes is not None else "nobody knows"
        name, how = f"[bold]{escape(each.job)}[/]", each.strategy.value.replace("_", " ")
        count, source = f"{len(each.replicas):,}", escape(each.source or "")
        table.add_row(name, how, count, source, _nodes(each), span(each.after), resumes)
    if report.recoveries:
        console.print(table)
        console.print()
    else:
        console.print("No replica is broken.")
    for each in report.recoveries:
        for reason in each.reasons or ():
            console.print(f"[bold]{escape(each.job)}[/]  {escape(reason)}")
    console.print(_by(report.method))


def _copies(copies: Sequence[PlannedCopy]) -> Table:
    table = plain_table("job", "copy in", ">every")
    for each in copies:
        table.add_row(f"[bold]{escape(each.job)}[/]", escape(each.domain), span(each.period))
    return table


def _nodes(recovery: JobRecovery) -> str:
    nodes = [node for replica in recovery.replicas for node in replica.nodes]
    more = f" and {len(nodes) - NODES:,} more" if len(nodes) > NODES else ""
    return escape(", ".join(nodes[:NODES])) + more


def _by(method: RecoveryMethod) -> str:
    return f"By {escape(method.name)} {escape(method.version)}."
