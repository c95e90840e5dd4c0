"""``kuayu adjust``: whether and how to adjust jobs as load and latency change, computed here or by a service.

1. Adjustments of running jobs as tables for people.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, cast

import orjson
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kuayu.cli.questions import answered, check_url, content_of, read_document
from kuayu.cli.terminal import Token, plain_table, span
from kuayu_schemas.models import (
    Adjustment,
    AdjustmentRequest,
    AdjustmentTrigger,
    JobAdjustment,
    PolicyChange,
    TriggerKind,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

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
    changed = [job for job in report.jobs if job.changes]
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
            table.add_row(name, rates, span(change.after), parts, _way(change), escape(" → ".join(change.order)))
            name = rates = ""
        more = len(job.changes) - CHANGES
        if more > 0:
            table.add_row("", "", "", f"and {more:,} changes more", "", "")
    return table


def _way(change: PolicyChange) -> str:
    words = change.collective.value.replace("_", " ")
    return f"{words}, every {change.period:,} steps" if change.period > 1 else words


QUESTION = "request to adjust jobs"
HINT = "give each name once, use only names that the request holds, and values that go together"


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
    request = read_document(file, content_of(file, QUESTION), AdjustmentRequest, QUESTION)

    def local() -> Adjustment:
        from kuayu.resilience.adjustment_planner import adjustment

        document = cast("documents.AdjustmentRequest", request.to_wire())
        return Adjustment.model_validate_json(orjson.dumps(adjustment(document)))

    report = answered(local, lambda client: client.adjust(request), url, token, called="request", hint=HINT)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report)
