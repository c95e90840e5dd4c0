"""``kuayu recovery``: what to hold against faults, or how jobs go on after one, computed here or by a service.

1. Backup plans and failover plans as tables for people.
"""

from collections.abc import Sequence
from functools import singledispatch
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kuayu.cli.questions import Question, answer, check_url
from kuayu.cli.terminal import Token, plain_table, span
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import (
    BackupPlan,
    BackupRequest,
    FailoverPlan,
    FailoverRequest,
    JobRecovery,
    PlannedCopy,
    RecoveryMethod,
)

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
    for pool in report.pools:
        table.add_row(f"[bold]{escape(pool.domain)}[/]", f"{pool.spares:,}", f"{pool.risk:.2g}", f"{pool.price:,.2f}")
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
    for entry in report.recoveries:
        resumes = span(entry.resumes) if entry.resumes is not None else "nobody knows"
        name, how = f"[bold]{escape(entry.job)}[/]", entry.strategy.value.replace("_", " ")
        count, source = f"{len(entry.replicas):,}", escape(entry.source or "")
        table.add_row(name, how, count, source, _nodes(entry), span(entry.after), resumes)
    if report.recoveries:
        console.print(table)
        console.print()
    else:
        console.print("No replica is broken.")
    for entry in report.recoveries:
        for reason in entry.reasons or ():
            console.print(f"[bold]{escape(entry.job)}[/]  {escape(reason)}")
    console.print(_by(report.method))


def _copies(copies: Sequence[PlannedCopy]) -> Table:
    table = plain_table("job", "copy in", ">every")
    for copy in copies:
        table.add_row(f"[bold]{escape(copy.job)}[/]", escape(copy.domain), span(copy.period))
    return table


def _nodes(recovery: JobRecovery) -> str:
    nodes = [node for replica in recovery.replicas for node in replica.nodes]
    more = f" and {len(nodes) - NODES:,} more" if len(nodes) > NODES else ""
    return escape(", ".join(nodes[:NODES])) + more


def _by(method: RecoveryMethod) -> str:
    return f"By {escape(method.name)} {escape(method.version)}."


QUESTIONS = (
    Question(
        "domains",
        BackupRequest,
        BackupPlan,
        ("kuayu.resilience.backup_planner", "backup_plan"),
        lambda client, request: client.backup_plan(request),
        "request for a backup plan",
    ),
    Question(
        "nodes",
        FailoverRequest,
        FailoverPlan,
        ("kuayu.resilience.failover_planner", "failover_plan"),
        lambda client, request: client.failover_plan(request),
        "request for a failover plan",
    ),
)


def recovery(
    *,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="JSON of the class BackupRequest or FailoverRequest; - for stdin."),
    ],
    url: Annotated[str | None, typer.Option(metavar="URL", help="Service to ask; computed here by default.")] = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Tell what to hold against faults, or how jobs go on after one.

    Prints how many nodes to keep as spares and which copies of checkpoints to take how often; or in which way each job
    with a broken replica goes on, on which nodes and from which copy.
    """
    check_url(url)
    report = answer(file, QUESTIONS, url, token)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report)
