"""``kuayu transfers``: what data to fetch, or by which collective to agree, computed here or by a service.

1. Shard plans and choices of collectives as tables for people.
"""

from collections.abc import Sequence
from functools import singledispatch
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kuayu.cli.questions import Question, answer, check_url
from kuayu.cli.terminal import Token, plain_table, scaled, span
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import (
    CollectiveChoice,
    CollectiveRequest,
    PlannedShard,
    ShardPlan,
    ShardPlanRequest,
    StreamPlan,
    TransferMethod,
)

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
    for stream in report.streams:
        ahead, stopped = f"{stream.steps_ahead:,}", f"{len(stream.abandoned or ()):,}"
        table.add_row(
            f"[bold]{escape(stream.stream)}[/]", ahead, scaled(stream.shard_size, "B"), _local(stream), stopped
        )
    if report.streams:
        console.print(table)
        console.print()
    if report.shards:
        console.print(_shards(report.shards[:SHARDS]))
        console.print()
    for stream in report.streams:
        for reason in stream.reasons or ():
            console.print(f"[bold]{escape(stream.stream)}[/]  {escape(reason)}")
    left_out = len(report.shards) - SHARDS
    some = f" {left_out:,} of {len(report.shards):,} shards are left out; --json tells all." if left_out > 0 else ""
    console.print(f"{_by(report.method)}{some}")


@show.register
def _(report: CollectiveChoice) -> None:
    table = plain_table("", "collective", ">period", ">steps a second", ">step")
    for entry in sorted(report.candidates, key=lambda candidate: -candidate.rate):
        taken = (entry.collective, entry.period) == (report.collective, report.period)
        lasts = span(1 / entry.rate) if entry.rate else "never"
        name = entry.collective.value.replace("_", " ")
        table.add_row("→" if taken else "", name, f"{entry.period:,}", f"{entry.rate:.4g}", lasts)
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
    for shard in shards:
        size = scaled(shard.end - shard.begin, "B")
        names = f"[bold]{escape(shard.stream)}[/]", escape(shard.source)
        table.add_row(*names, f"{shard.begin:,.0f}", size, span(shard.after), f"{shard.slot:,}")
    return table


def _local(plan: StreamPlan) -> str:
    slots = ", ".join(f"{slot:,}" for slot in plan.local_slots[:SLOTS])
    more = f" and {len(plan.local_slots) - SLOTS:,} more" if len(plan.local_slots) > SLOTS else ""
    late = "those whose data are late" if plan.local_when_late else ""
    return f"{slots}{more}" + (f"; {late}" if slots and late else late) or "none"


def _by(method: TransferMethod) -> str:
    return f"By {escape(method.name)} {escape(method.version)}."


QUESTIONS = (
    Question(
        "streams",
        ShardPlanRequest,
        ShardPlan,
        ("kuayu.resilience.shard_planner", "shard_plan"),
        lambda client, request: client.shard_plan(request),
        "request for a shard plan",
    ),
    Question(
        "exchange",
        CollectiveRequest,
        CollectiveChoice,
        ("kuayu.resilience.collectives", "collective"),
        lambda client, request: client.collective(request),
        "request for a collective",
    ),
)


def transfers(
    *,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="JSON of the class ShardPlanRequest or CollectiveRequest; - for stdin."),
    ],
    url: Annotated[str | None, typer.Option(metavar="URL", help="Service to ask; computed here by default.")] = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Tell what data to fetch, or by which collective to agree.

    Prints what training data to fetch, from where, in what pieces and how early; or by which collective replicas in
    several domains are to sum up their gradients.
    """
    check_url(url)
    report = answer(file, QUESTIONS, url, token)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report)
