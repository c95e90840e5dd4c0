"""``kuayu place``: where the jobs of a state run, decided here or by a service.

1. Placements as tables for people.
"""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, cast

import orjson
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kuayu.cli.decisions import answered, check_url, content_of, read_document
from kuayu.cli.terminal import USAGE, Token, fail
from kuayu_schemas.models import (
    JobPlacement,
    ObjectiveWeights,
    PlacementDecision,
    PlacementReport,
    PlacementRequest,
    PlacementVerb,
    PredictedOutcome,
    PurchaseOption,
    SchedulingState,
    SplitMode,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

STYLES = {
    PlacementVerb.start: "green",
    PlacementVerb.migrate: "yellow",
    PlacementVerb.resize: "yellow",
    PlacementVerb.stop: "red",
    PlacementVerb.wait: "dim",
}
NODES_SHOWN = 3
"""Nodes of a share that are told by name."""

console = Console(highlight=False)


def show_placements(report: PlacementReport, state: SchedulingState) -> None:
    """Print what is to be done, a line for each job, then why, and how much of everything there is."""
    now = state.now
    explained = any(decision.explanation for decision in report.decisions)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("job", "decision", "where", *(("runs in", "ends in", "money") if explained else ())):
        table.add_column(heading, justify="right" if heading in {"runs in", "ends in", "money"} else "left")
    for decision in report.decisions:
        for row in _rows(decision, now, explained=explained):
            table.add_row(*row)
    if report.decisions:
        console.print(table)
        console.print()
    for decision in report.decisions:
        if decision.explanation is not None:
            until = decision.explanation.overtaken_until
            bound = f" Until {until:%Y-%m-%d %H:%M} it may be overtaken." if until else ""
            console.print(f"[bold]{escape(decision.job)}[/] {escape(decision.explanation.reason + bound)}")
    if explained:
        console.print()
    console.print(_summary(report, state))


def _rows(decision: PlacementDecision, now: datetime, *, explained: bool) -> Iterator[list[str]]:
    explanation = decision.explanation
    outcome = explanation.outcome if explanation else None
    verb = f"[{STYLES.get(decision.verb, 'none')}]{decision.verb.value}[/]"
    head = [f"[bold]{escape(decision.job)}[/]", verb, where(decision.placement)]
    yield [*head, *(_figures(outcome, now) if explained else ())]
    if explanation is None:
        return
    for alternative in explanation.alternatives:
        instead = [f"[dim]or {alternative.verb.value}[/]", f"[dim]{where(alternative.placement)}[/]"]
        yield ["", *instead, *(f"[dim]{figure}[/]" for figure in _figures(alternative.outcome, now))]


def where(placement: JobPlacement | None) -> str:
    """Devices by domain, with their nodes where few are named, and how they work together; as markup."""
    if placement is None:
        return ""
    parts: list[str] = []
    for share in placement.shares:
        bought = "" if share.purchase in {None, PurchaseOption.unknown} else f" {share.purchase.value}"
        named = [node.node for node in share.nodes or ()]
        more = f" … {len(named)} nodes" if len(named) > NODES_SHOWN else ""
        nodes = f" ({', '.join(named[:NODES_SHOWN])}{more})" if named else ""
        parts.append(f"{share.devices} × {share.accelerator} in {share.domain}{bought}{nodes}")
    split = "" if placement.split_mode is SplitMode.none else f", {placement.split_mode.value}"
    period = f" every {placement.sync_period} steps" if placement.sync_period else ""
    return escape(" + ".join(parts) + split + period)


def _figures(outcome: PredictedOutcome | None, now: datetime) -> list[str]:
    if outcome is None:
        return ["", "", ""]
    money = f"{outcome.price + outcome.communication_cost:,.2f}"
    return [length(outcome.run_at - now), length(outcome.finish_at - now), money]


def length(length: timedelta) -> str:
    """A length of time in its two largest units."""
    seconds = round(length.total_seconds())
    days, hours, minutes = seconds // 86_400, seconds % 86_400 // 3600, seconds % 3600 // 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"


def _summary(report: PlacementReport, state: SchedulingState) -> str:
    counts = {verb: sum(decision.verb is verb for decision in report.decisions) for verb in PlacementVerb}
    done = ", ".join(f"{number} {verb.value}" for verb, number in counts.items() if number) or "nothing to be done"
    simpler = "; a simpler method answered" if report.method.fallback else ""
    return (
        f"[bold]{done}[/] of {len(state.waiting)} that wait and {len(state.running)} that run;"
        f" by {escape(report.method.name)} {escape(report.method.version)}{simpler}."
    )


def place(
    *,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="JSON of the class PlacementRequest or SchedulingState; - for stdin."),
    ],
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what is expected of each decision, why, and the next-best.")
    ] = False,
    alternatives: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=10, help="Show at most N of the next-best; with --explain."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=N,…",
            help=f"What counts how much, of {', '.join(ObjectiveWeights.model_fields)}; the rest counts nothing.",
        ),
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Service to ask; decided here by default.")] = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Decide where the jobs of a state run, and say why.

    Prints what is to be done with each job: start, wait, stop, migrate or resize, and where. Nothing is held by that.
    """
    check_url(url)
    more: dict[str, Any] = {"explain": True} if explain else {}
    if weights is not None:
        more["weights"] = _weights(weights)
    if alternatives is not None:
        more["alternatives"] = alternatives
    request = _request(file).model_copy(update=more)
    if request.state is None:
        raise fail(f"{file} is a patch of a state that is not known here", "give the whole state instead", USAGE)
    report = _decided(request, url, token)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show_placements(report, request.state)


def _request(file: str) -> PlacementRequest:
    """What a file asks; of a state alone, what to do with its jobs."""
    content = content_of(file, "placement request or scheduling state")
    if "domains" in _members(content):
        state = read_document(file, content, SchedulingState, "scheduling state")
        return PlacementRequest.model_validate({"state": state})
    return read_document(file, content, PlacementRequest, "placement request")


def _members(content: bytes) -> Collection[str]:
    """Names of the members of an object in JSON; none where it is something else."""
    from pydantic_core import from_json

    try:
        value = from_json(content)
    except ValueError:
        return ()
    return value if isinstance(value, dict) else ()


def _weights(text: str) -> ObjectiveWeights:
    """Weights as they are told: ``period=1,communication=2``."""
    from pydantic import ValidationError

    names = ", ".join(ObjectiveWeights.model_fields)
    pairs = [entry.partition("=") for entry in text.split(",")]
    try:
        return ObjectiveWeights.model_validate({name.strip(): float(number) for name, _, number in pairs})
    except (ValueError, ValidationError) as error:
        hint = f"write it as period=1,communication=2; the names are {names}, and a weight is no less than 0"
        raise fail(f"--weights: {text!r} are no weights", hint, USAGE) from error


def _decided(request: PlacementRequest, url: str | None, token: str | None) -> PlacementReport:
    from kuayu.scheduling import place as placement

    def local() -> PlacementReport:
        document = cast("documents.PlacementRequest", request.to_wire())
        return PlacementReport.model_validate_json(orjson.dumps(placement.place(document)))

    hint = "give each name once, use only names that the request holds, and numbers that go together"
    return answered(local, lambda client: client.place(request), url, token, called="request", hint=hint)
