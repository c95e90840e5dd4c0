"""Compute indices and probe plans as tables for people."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from kuayu_schemas.models import ComputeIndex, IndexBasis, IndexReport, ProbePlan

CELL = 13
"""Characters of the narrowest column: an interval of two numbers of four digits."""
DEVICE = 30
"""Characters that a device may take; its stack is cut off there."""
GAP = 2

SIGNS = {IndexBasis.measured: "", IndexBasis.probed: "p", IndexBasis.specified: "s", IndexBasis.unknown: "?"}
LEGEND = {
    "p": "inferred from measurements of other tasks",
    "s": "by the data sheet, nothing was measured",
    "?": "on a basis that this version does not know",
    "~": "interval wider than the tolerance: not to be relied on",
}

console = Console(highlight=False)


def show_report(report: IndexReport) -> None:
    """Print devices × tasks, in as many tables as the width asks for, and what the signs mean."""
    indices = {(each.device, each.task): each for each in report.indices}
    devices = list(dict.fromkeys(device for device, _ in indices))
    tasks = list(dict.fromkeys(task for _, task in indices))
    for columns in _fitting(tasks):
        console.print(_table(indices, devices, columns))
        console.print()
    if len(report.indices) == 1:
        _show_explanation(report.indices[0])
    signs = {SIGNS[each.basis] for each in report.indices} | {"~" for each in report.indices if each.abstained}
    console.print(
        f"How many of the reference [bold]{escape(report.reference)}[/] one device is worth, with the interval that"
        f" holds it in {report.coverage:.0%} of cases; by {escape(report.method.name)} {escape(report.method.version)}."
    )
    for sign, meaning in LEGEND.items():
        if sign in signs:
            console.print(f"[bold]{sign}[/] {meaning}")


def show_plan(plan: ProbePlan) -> None:
    """Print which tasks to measure, in order, and how sure each makes the indices."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "measure", "on", "then intervals are wide"):
        table.add_column(heading, justify="left" if heading in {"measure", "on"} else "right")
    table.add_row("", "[dim]as things stand[/]", "", f"±{plan.without:.1%}")
    for number, probe in enumerate(plan.probes, 1):
        table.add_row(str(number), escape(probe.task), escape(probe.device), f"±{probe.half_width:.1%}")
    console.print(table)


def _fitting(tasks: Sequence[str]) -> Iterator[list[str]]:
    """Tasks in groups that fit beside the devices; at least one in each."""
    room = console.width - DEVICE
    columns: list[str] = []
    for task in tasks:
        if columns and sum(_width(each) for each in [*columns, task]) > room:
            yield columns
            columns = []
        columns.append(task)
    yield columns


def _width(task: str) -> int:
    return max(CELL, len(task)) + GAP


def _table(indices: dict[tuple[str, str], ComputeIndex], devices: Sequence[str], tasks: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("device", max_width=DEVICE - GAP, no_wrap=True, overflow="ellipsis")
    for task in tasks:
        table.add_column(escape(task), justify="right", min_width=CELL, overflow="fold")
    for number, device in enumerate(devices):
        if number:
            table.add_row()
        cells = [indices[device, task] for task in tasks]
        head = Text(device, style="bold").append(f"\n{cells[0].stack}", style="not bold dim")
        table.add_row(head, *(_cell(each) for each in cells))
    return table


def _cell(index: ComputeIndex) -> Text:
    """Value with its signs, interval below, and what dominates where it was told."""
    sign = SIGNS[index.basis]
    text = Text(style="dim" if index.abstained else "")
    text.append(f"{'~' if index.abstained else ''}{index.value:.3g}{' ' if sign else ''}{sign}", style="bold")
    text.append(f"\n{index.low:.3g}–{index.high:.3g}" if index.low < index.high else "\n")
    if index.explanation is not None:
        share = max(term.share for term in index.explanation.terms)
        text.append(f"\n{index.explanation.dominant.value} {share:.0%}", style="italic")
    return text


def _show_explanation(index: ComputeIndex) -> None:
    """Every term of an index, and what would change it."""
    if index.explanation is None:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("capability", "share of time on reference", "× of reference", "share of time here"):
        table.add_column(heading, justify="left" if heading == "capability" else "right")
    for term in index.explanation.terms:
        table.add_row(term.capability.value, f"{term.weight:.1%}", f"{term.ratio:.3g}", f"{term.share:.1%}")
    console.print(table)
    console.print(f"beyond the terms, by measurements: × {index.explanation.residual:.3g}")
    for lever in index.explanation.levers:
        console.print(f"with {lever.factor:.3g} × {lever.capability.value} the index would be {lever.value:.3g}")
    console.print()
