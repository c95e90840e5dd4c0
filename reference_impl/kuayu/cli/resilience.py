"""``kuayu transfers``, ``kuayu recovery`` and ``kuayu adjust``: what keeps jobs running, computed here or by a service.

1. ``kuayu transfers``: what data to fetch, or by which collective to agree.
2. ``kuayu recovery``: what to hold against faults, or how jobs go on after one.
3. ``kuayu adjust``: whether and how to adjust jobs as load and latency change.
4. Each prints its answer as tables for people, or as JSON.
"""

from collections.abc import Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Annotated, cast

import orjson
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kuayu.cli.decisions import Question, answer, answered, check_url, content_of, read_document
from kuayu.cli.terminal import Token, plain_table, scaled, span
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import (
    Adjustment,
    AdjustmentMethod,
    AdjustmentRequest,
    AdjustmentTrigger,
    BackupPlan,
    BackupRequest,
    CollectiveChoice,
    CollectiveRequest,
    FailoverPlan,
    FailoverRequest,
    JobAdjustment,
    JobRecovery,
    PlannedCopy,
    PlannedShard,
    PolicyChange,
    RecoveryMethod,
    ShardPlan,
    ShardPlanRequest,
    StreamPlan,
    TransferMethod,
    TriggerKind,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

SHARDS = 24
"""Most shards that are printed."""

SLOTS = 8
"""Most slots with local data that are printed of a stream."""

console = Console(highlight=False)


def _by(method: AdjustmentMethod | RecoveryMethod | TransferMethod) -> str:
    return f"By {escape(method.name)} {escape(method.version)}."


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


TRANSFER_QUESTIONS = (
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
    report = answer(file, TRANSFER_QUESTIONS, url, token)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report)


COPIES = 24
"""Most copies that are printed."""

NODES = 6
"""Most nodes that are printed of a recovery."""


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


RECOVERY_QUESTIONS = (
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
    report = answer(file, RECOVERY_QUESTIONS, url, token)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report)


TRIGGERS = 24
"""Most changes of load and latency that are printed."""

CHANGES = 12
"""Most changes of one job that are printed."""


@show.register
def _(report: Adjustment) -> None:
    if report.triggers:
        console.print(_triggers(report.triggers[:TRIGGERS]))
        more = len(report.triggers) - TRIGGERS
        console.print(f"… and {more:,} more.\n" if more > 0 else "")
    else:
        console.print("No load and no latency has changed.")
    changed = [job for job in report.jobs if job.changes]
    if changed:
        console.print(_changes(changed))
        console.print()
    for reasons, names in _reasons(report.jobs).items():
        console.print(f"[bold]{escape(', '.join(names))}[/]")
        for reason in reasons:
            console.print(f"  {escape(reason)}")
    console.print(_by(report.method))


def _reasons(jobs: Sequence[JobAdjustment]) -> dict[tuple[str, ...], list[str]]:
    """Names of the jobs of which the same is said, by what is said."""
    result: dict[tuple[str, ...], list[str]] = {}
    for job in jobs:
        if job.reasons:
            result.setdefault(tuple(job.reasons), []).append(job.job)
    return result


def _triggers(triggers: Sequence[AdjustmentTrigger]) -> Table:
    table = plain_table("what has changed", "where", ">before", ">now")
    for trigger in triggers:
        where = f"[bold]{escape(trigger.domain)}[/]" + (f" → {escape(trigger.target)}" if trigger.target else "")
        is_load = trigger.kind is TriggerKind.load
        before, now = (f"{value:.1%}" if is_load else span(value) for value in (trigger.before, trigger.now))
        table.add_row(trigger.kind.value, where, before, now)
    return table


def _changes(jobs: Sequence[JobAdjustment]) -> Table:
    table = plain_table("job", ">steps a second", ">not before", "parts by share", "replicas agree by", "in the order")
    for job in jobs:
        name, rates = f"[bold]{escape(job.job)}[/]", f"{job.rate:.3g} → {job.expected_rate:.3g}"
        for change in job.changes[:CHANGES]:
            parts = " ".join(f"{number:,}" for number in change.parts)
            table.add_row(
                name, rates, span(change.after), parts, _policy_words(change), escape(" → ".join(change.order))
            )
            name = rates = ""
        more = len(job.changes) - CHANGES
        if more > 0:
            table.add_row("", "", "", f"and {more:,} changes more", "", "")
    return table


def _policy_words(change: PolicyChange) -> str:
    words = change.collective.value.replace("_", " ")
    return f"{words}, every {change.period:,} steps" if change.period > 1 else words


ADJUSTMENT = "request to adjust jobs"
ADJUSTMENT_HINT = "give each name once, use only names that the request holds, and values that go together"


def adjust(
    *,
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON of the class AdjustmentRequest; - for stdin.")],
    url: Annotated[str | None, typer.Option(metavar="URL", help="Service to ask; computed here by default.")] = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Tell whether and how to adjust jobs as load and latency change.

    Prints which loads and latencies have changed, and for each job how many parts of a step each domain is to compute
    from when on, and by which collective its replicas are to agree.
    """
    check_url(url)
    request = read_document(file, content_of(file, ADJUSTMENT), AdjustmentRequest, ADJUSTMENT)

    def local() -> Adjustment:
        from kuayu.resilience.adjustment_planner import adjustment

        document = cast("documents.AdjustmentRequest", request.to_wire())
        return Adjustment.model_validate_json(orjson.dumps(adjustment(document)))

    report = answered(local, lambda client: client.adjust(request), url, token, called="request", hint=ADJUSTMENT_HINT)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report)
