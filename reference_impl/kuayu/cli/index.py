"""``kuayu index``: compare devices for training tasks on what was measured, here or by a service.

1. Compute indices and probe plans as tables for people.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from kuayu.cli.decisions import SHOWN, answered, check_url, content_of, read_document
from kuayu.cli.terminal import USAGE, Token, fail
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import (
    ComputeIndex,
    Corpus,
    CorpusCell,
    IndexBasis,
    IndexReport,
    IndexRequest,
    ProbePlan,
    ProbePlanRequest,
    Revision,
)

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
    indices = {(entry.device, entry.task): entry for entry in report.indices}
    devices = list(dict.fromkeys(device for device, _ in indices))
    tasks = list(dict.fromkeys(task for _, task in indices))
    for columns in _fitting(tasks):
        console.print(_table(indices, devices, columns))
        console.print()
    if len(report.indices) == 1:
        _show_explanation(report.indices[0])
    signs = {SIGNS[entry.basis] for entry in report.indices} | {"~" for entry in report.indices if entry.abstained}
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
    width = console.width - DEVICE
    columns: list[str] = []
    for task in tasks:
        if columns and sum(_width(entry) for entry in [*columns, task]) > width:
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
        table.add_row(head, *(_cell(cell) for cell in cells))
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


if TYPE_CHECKING:
    from kuayu.client import Client

PROBES = 4
"""How many probes are planned unless told otherwise: as many as figures of the standard allow for."""

ReportT = TypeVar("ReportT", bound=KuayuModel)


def index(
    *,
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", help="JSON file of the class Corpus; - for stdin.")],
    reference: Annotated[
        str | None, typer.Option(metavar="ID", help="Device whose index is one; required but for --plan.")
    ] = None,
    device: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Device to show; may be repeated, all by default.")
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Task to show; may be repeated, all by default.")
    ] = None,
    coverage: Annotated[
        float | None, typer.Option(metavar="C", min=0.5, max=0.99, help="Coverage of the intervals.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(metavar="W", min=1e-30, max=1e30, help="Widest useful interval, as √(high/low) − 1.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain what dominates; for one device and one task, every term.")
    ] = False,
    plan: Annotated[
        str | None, typer.Option(metavar="ID", help="Show which tasks to measure next on this device instead.")
    ] = None,
    probes: Annotated[
        int, typer.Option(metavar="N", min=1, max=100, help="Maximum number of measurements to plan.")
    ] = PROBES,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Service to ask; computed here by default.")] = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Compare devices for training tasks on measurements in a file.

    Prints how many of the reference each device is worth for each task, with the interval. With --plan, prints which
    measurements would make the indices of a device surest; --task then names the indices that matter.
    """
    from kuayu.index import compute_indices, plan_probes

    if plan and (reference or device or explain or coverage or tolerance):
        hint = "leave out --reference, --device, --explain, --coverage and --tolerance"
        raise fail("--plan asks another question", hint, USAGE)
    if not (plan or reference):
        raise fail("there is nothing to compare with", "name a device of the corpus with --reference ID", USAGE)
    check_url(url)
    content = content_of(corpus, "corpus")
    revision = Revision(epoch=f"file-{hashlib.sha256(content).hexdigest()[:16]}", number=0)
    known = read_document(corpus, content, Corpus, "corpus")
    devices, tasks = [entry.id for entry in known.devices], [item.id for item in known.tasks]
    _check(task or (), tasks, "task", "--task")
    if plan:
        _check([plan], devices, "device", "--plan")
        wanted = _plan_request(known, revision, plan, task or tasks, probes)
        result = _answer(lambda: plan_probes(wanted), lambda client: client.probe_plan(wanted), url, token)
        _print(result, show_plan, as_json=as_json)
        return
    assert reference
    _check([reference], devices, "device", "--reference")
    _check(device or (), devices, "device", "--device")
    request = IndexRequest(
        revision=revision,
        corpus=known,
        reference=reference,
        devices=list(dict.fromkeys(device)) if device else None,
        tasks=list(dict.fromkeys(task)) if task else None,
        coverage=coverage,
        tolerance=tolerance,
        explain=explain or None,
    )
    report = _answer(lambda: compute_indices(request), lambda client: client.compute_indices(request), url, token)
    _print(report, show_report, as_json=as_json)


def _print(answer: ReportT, show: Callable[[ReportT], None], *, as_json: bool) -> None:
    if as_json:
        typer.echo(answer.model_dump_json(indent=2))
    else:
        show(answer)


def _check(names: Sequence[str], known: Sequence[str], kind: str, option: str) -> None:
    """Hold names of the command line against those of the corpus."""
    for name in names:
        if name in known:
            continue
        by_lower = {entry.lower(): entry for entry in known}
        alike = [by_lower[match] for match in get_close_matches(name.lower(), by_lower)]
        rest = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
        hint = f"did you mean {', '.join(alike)}?" if alike else f"{kind}s are {', '.join(known[:SHOWN])}{rest}"
        raise fail(f"{option}: the corpus has no {kind} {name!r}", hint, USAGE)


def _plan_request(
    corpus: Corpus, revision: Revision, device: str, tasks: Sequence[str], probes: int
) -> ProbePlanRequest:
    """What to ask for a device: any task may be measured that was not yet; those named are to become surer."""
    measured = {measurement.task for measurement in corpus.measurements if measurement.device == device}
    open_tasks = [entry.id for entry in corpus.tasks if entry.id not in measured]
    targets = [task for task in dict.fromkeys(tasks) if task not in measured]
    if not targets:
        raise fail(f"all of these tasks were measured on {device} already", "name another device or other tasks")
    return ProbePlanRequest(
        revision=revision,
        corpus=corpus,
        candidates=[CorpusCell(device=device, task=task) for task in open_tasks],
        targets=[CorpusCell(device=device, task=task) for task in targets],
        probes=probes,
    )


def _answer(
    local: Callable[[], ReportT], remote: Callable[["Client"], ReportT], url: str | None, token: str | None
) -> ReportT:
    hint = "give each device and task one entry, and measure only those"
    return answered(local, remote, url, token, called="corpus", hint=hint, within="/corpus")
