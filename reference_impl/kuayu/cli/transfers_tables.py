"""Shard plans and choices of collectives as tables for people."""

from collections.abc import Sequence
from functools import singledispatch

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kuayu.cli.quantities import scaled, span
from kuayu.cli.tables import plain_table
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import CollectiveChoice, PlannedShard, ShardPlan, StreamPlan, TransferMethod

SHARDS = 24
"""Most shards that are printed."""

SLOTS = 8
"""Most slots with local data that are printed of a stream."""

console = Console(highlight=False)


@singledispatch
def show(report: KuayuModel) -> None:
    """Print a report.

    Raises:
        TypeError: There is no table for its class.
    """
    raise TypeError(type(report).__name__)


@show.register
def _(report: ShardPlan) -> None:
    table = plain_table("stream", ">steps ahead", ">shard", "slots with local data", ">abandoned")
    for each in report.streams:
        ahead, stopped = f"{each.steps_ahead:,}", f"{len(each.abandoned or ()):,}"
        table.add_row(f"[bold]{escape(each.stream)}[/]", ahead, scaled(each.shard_size, "B"), _local(each), stopped)
    if report.streams:
        console.print(table)
        console.print()
    if report.shards:
        console.print(_shards(report.shards[:SHARDS]))
        console.print()
    for each in report.streams:
        for reason in each.reasons or ():
            console.print(f"[bold]{escape(each.stream)}[/]  {escape(reason)}")
    left_out = len(report.shards) - SHARDS
    some = f" {left_out:,} of {len(report.shards):,} shards are left out; --json tells all." if left_out > 0 else ""
    console.print(f"{_by(report.method)}{some}")


@show.register
def _(report: CollectiveChoice) -> None:
    table = plain_table("", "collective", ">period", ">steps a second", ">step")
    for each in sorted(report.candidates, key=lambda candidate: -candidate.rate):
        taken = (each.collective, each.period) == (report.collective, report.period)
        lasts = span(1 / each.rate) if each.rate else "never"
        name = each.collective.value.replace("_", " ")
        table.add_row("→" if taken else "", name, f"{each.period:,}", f"{each.rate:.4g}", lasts)
    console.print(table)
    kind = report.collective.value.replace("_", " ")
    rarely = f" every {report.period:,} steps" if report.period > 1 else ""
    change = "switch to" if report.switched else "use"
    console.print(f"\n{change.capitalize()} [bold]{kind}[/]{rarely}, {escape(' → '.join(report.order))}.")
    for reason in report.reasons or ():
        console.print(escape(reason))
    console.print(_by(report.method))


def _shards(shards: Sequence[PlannedShard]) -> Table:
    table = plain_table("stream", "from", ">first byte", ">size", ">not before", ">slot")
    for each in shards:
        size = scaled(each.end - each.begin, "B")
        names = f"[bold]{escape(each.stream)}[/]", escape(each.source)
        table.add_row(*names, f"{each.begin:,.0f}", size, span(each.after), f"{each.slot:,}")
    return table


def _local(plan: StreamPlan) -> str:
    slots = ", ".join(f"{slot:,}" for slot in plan.local_slots[:SLOTS])
    more = f" and {len(plan.local_slots) - SLOTS:,} more" if len(plan.local_slots) > SLOTS else ""
    late = "those whose data are late" if plan.local_when_late else ""
    return f"{slots}{more}" + (f"; {late}" if slots and late else late) or "none"


def _by(method: TransferMethod) -> str:
    return f"By {escape(method.name)} {escape(method.version)}."
