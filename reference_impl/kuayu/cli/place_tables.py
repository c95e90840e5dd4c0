"""Placements as tables for people."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kuayu_schemas.models import (
    JobPlacement,
    PlacementDecision,
    PlacementReport,
    PlacementVerb,
    PredictedOutcome,
    PurchaseOption,
    SchedulingState,
    SplitMode,
)

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
    explained = any(each.explanation for each in report.decisions)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("job", "decision", "where", *(("runs in", "ends in", "money") if explained else ())):
        table.add_column(heading, justify="right" if heading in {"runs in", "ends in", "money"} else "left")
    for each in report.decisions:
        for row in _rows(each, now, explained=explained):
            table.add_row(*row)
    if report.decisions:
        console.print(table)
        console.print()
    for each in report.decisions:
        if each.explanation is not None:
            until = each.explanation.overtaken_until
            bound = f" Until {until:%Y-%m-%d %H:%M} it may be overtaken." if until else ""
            console.print(f"[bold]{escape(each.job)}[/] {escape(each.explanation.reason + bound)}")
    if explained:
        console.print()
    console.print(_summary(report, state))


def _rows(decision: PlacementDecision, now: datetime, *, explained: bool) -> Iterator[list[str]]:
    explanation = decision.explanation
    outcome = explanation.outcome if explanation else None
    verb = f"[{STYLES.get(decision.verb, 'none')}]{decision.verb.value}[/]"
    head = [f"[bold]{escape(decision.job)}[/]", verb, _where(decision.placement)]
    yield [*head, *(_figures(outcome, now) if explained else ())]
    if explanation is None:
        return
    for each in explanation.alternatives:
        instead = [f"[dim]or {each.verb.value}[/]", f"[dim]{_where(each.placement)}[/]"]
        yield ["", *instead, *(f"[dim]{figure}[/]" for figure in _figures(each.outcome, now))]


def _where(placement: JobPlacement | None) -> str:
    """Devices by domain, with their nodes where few are named, and how they work together."""
    if placement is None:
        return ""
    parts: list[str] = []
    for share in placement.shares:
        bought = "" if share.purchase in {None, PurchaseOption.unknown} else f" {share.purchase.value}"
        named = [each.node for each in share.nodes or ()]
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
    return [_span(outcome.run_at - now), _span(outcome.finish_at - now), money]


def _span(length: timedelta) -> str:
    """A length of time in its two largest units."""
    seconds = round(length.total_seconds())
    days, hours, minutes = seconds // 86_400, seconds % 86_400 // 3600, seconds % 3600 // 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"


def _summary(report: PlacementReport, state: SchedulingState) -> str:
    counts = {verb: sum(each.verb is verb for each in report.decisions) for verb in PlacementVerb}
    done = ", ".join(f"{number} {verb.value}" for verb, number in counts.items() if number) or "nothing to be done"
    simpler = "; a simpler method answered" if report.method.fallback else ""
    return (
        f"[bold]{done}[/] of {len(state.waiting)} that wait and {len(state.running)} that run;"
        f" by {escape(report.method.name)} {escape(report.method.version)}{simpler}."
    )
