"""``kuayu demand``: what trainings and tasks need, computed here or by a service.

1. Demands of trainings, layouts and sizes of tasks as tables for people.
"""

from functools import singledispatch
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from kuayu.cli.decisions import Question, answer, check_url
from kuayu.cli.terminal import Token, plain_table, scaled, span, within
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import (
    DemandMethod,
    Estimate,
    LayoutReport,
    LayoutRequest,
    ParallelStrategy,
    SizingReport,
    SizingRequest,
    TaskResources,
    TrainingDemand,
    TrainingDemandReport,
    TrainingDemandRequest,
)

console = Console(highlight=False)


@singledispatch
def show(report: KuayuModel) -> None:
    """Print a report.

    Raises:
        TypeError: There is no table for its class.
    """
    raise TypeError(type(report).__name__)


@show.register
def _(report: TrainingDemandReport) -> None:
    headings = (">devices", ">step", ">", ">used", ">work", ">memory", ">sent", "")
    table = plain_table("case", *headings)
    for entry in report.demands:
        sent = sum(part.size for part in entry.traffic)
        table.add_row(
            f"[bold]{escape(entry.case)}[/]",
            f"{entry.devices:,}",
            *_time(entry.step_time),
            f"{entry.utilisation:.1%}",
            scaled(entry.work, "FLOP"),
            scaled(entry.memory, "B"),
            scaled(sent, "B"),
            "" if entry.fits else "[red]cannot run[/]",
        )
    console.print(table)
    for entry in report.demands:
        for obstacle in entry.obstacles:
            console.print(f"[bold]{escape(entry.case)}[/] cannot run: {escape(obstacle)}")
    for entry in report.demands:
        _show_phases(entry)
        _show_segments(entry)
    console.print(
        f"\nA step's work, its memory on the fullest accelerator and what one sends in it; {_by(report.method)}"
    )


@show.register
def _(report: LayoutReport) -> None:
    table = plain_table(">", "strategy", ">devices", ">step", ">", ">used", ">memory")
    for number, layout in enumerate(report.layouts, 1):
        strategy = layout.strategy
        devices = strategy.data * strategy.tensor * strategy.pipeline * (strategy.context or 1)
        table.add_row(
            str(number),
            _strategy(strategy),
            f"{devices:,}",
            *_time(layout.step_time),
            f"{layout.utilisation:.1%}",
            scaled(layout.memory, "B"),
        )
    if report.layouts:
        console.print(table)
        console.print()
    console.print(
        f"[bold]{report.feasible:,}[/] of {report.considered:,} strategies that were looked at can run;"
        f" {_by(report.method)}"
    )
    console.print("d data, t tensor, p pipeline, v virtual stages, c context, e expert parallelism, b micro-batch")


@show.register
def _(report: SizingReport) -> None:
    table = plain_table("task", ">devices", ">cores", ">memory", ">runs for", ">", ">slower by", "why")
    for task in report.tasks:
        table.add_row(
            f"[bold]{escape(task.task)}[/]",
            *_resources(task.recommended),
            *(("", "") if task.duration is None else _time(task.duration)),
            f"{task.slow_down:+.1%}",
            escape(task.reason),
        )
    console.print(table)
    if report.importance:
        console.print()
        table = plain_table("kind", ">devices", ">cores", ">memory", ">error", ">records")
        for kind in report.importance:
            shares = (f"{value:.2f}" for value in (kind.devices, kind.cores, kind.memory))
            table.add_row(f"[bold]{escape(kind.kind)}[/]", *shares, f"{kind.error:.1%}", f"{kind.records:,}")
        console.print(table)
    console.print(f"\nImportances are in parts of the error of the mean; {_by(report.method)}")


def _show_phases(demand: TrainingDemand) -> None:
    if not demand.phases:
        return
    table = plain_table(f"{escape(demand.case)} in", ">devices", ">step", ">lasts", ">work", ">memory", ">sent a step")
    for phase in demand.phases:
        table.add_row(
            phase.phase.value,
            f"{phase.devices:,}",
            span(phase.step_time),
            span(phase.duration),
            scaled(phase.work, "FLOP"),
            scaled(phase.memory, "B"),
            scaled(phase.traffic, "B"),
        )
    console.print()
    console.print(table)


def _show_segments(demand: TrainingDemand) -> None:
    if not demand.segments:
        return
    table = plain_table(f"step of {escape(demand.case)}", ">from", ">lasts", ">busy", "sends")
    for segment in demand.segments:
        flows = ", ".join(f"{scaled(flow.flow, 'B/s')} {flow.link.value}" for flow in segment.traffic)
        table.add_row(segment.activity.value, span(segment.begin), span(segment.duration), f"{segment.busy:.0%}", flows)
    console.print()
    console.print(table)


def _time(estimate: Estimate) -> tuple[str, str]:
    return span(estimate.expected), f"[dim]{within(estimate.low, estimate.high)}[/]"


def _resources(resources: TaskResources) -> tuple[str, str, str]:
    return f"{resources.devices:,.3g}", f"{resources.cores:,.3g}", scaled(resources.memory, "B")


def _strategy(strategy: ParallelStrategy) -> str:
    """What differs from one device, in a few signs."""
    numbers = (
        ("d", strategy.data),
        ("t", strategy.tensor),
        ("p", strategy.pipeline),
        ("v", strategy.virtual_stages or 1),
        ("c", strategy.context or 1),
        ("e", strategy.expert or 1),
    )
    parts = [f"{sign}{number}" for sign, number in numbers if number > 1 or sign in "dtp"]
    parts.append(f"b{strategy.micro_batch}")
    parts += [f"ZeRO-{strategy.sharding}"] if strategy.sharding else []
    if strategy.recomputation is not None and strategy.recomputation.value != "none":
        parts.append(f"recompute {strategy.recomputation.value}")
    return " ".join(parts)


def _by(method: DemandMethod) -> str:
    runs = f", {method.runs:,} measured run{'' if method.runs == 1 else 's'}" if method.runs else ""
    return f"by {escape(method.name)} {escape(method.version)}{runs}."


QUESTIONS = (
    Question(
        "cases",
        TrainingDemandRequest,
        TrainingDemandReport,
        ("kuayu.demand.demand_report", "demand"),
        lambda client, request: client.training_demands(request),
        "request for demands",
    ),
    Question(
        "kind",
        LayoutRequest,
        LayoutReport,
        ("kuayu.demand.search", "rank"),
        lambda client, request: client.layouts(request),
        "request for layouts",
    ),
    Question(
        "tasks",
        SizingRequest,
        SizingReport,
        ("kuayu.demand.sizing", "size"),
        lambda client, request: client.task_sizes(request),
        "request for sizes",
    ),
)


def demand(
    *,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="JSON of the class TrainingDemandRequest, LayoutRequest or SizingRequest; - for stdin."
        ),
    ],
    url: Annotated[str | None, typer.Option(metavar="URL", help="Service to ask; computed here by default.")] = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Tell what trainings or tasks need.

    Prints work, memory, traffic and time of each case; or the quickest strategies of a model on so many accelerators;
    or what each task should be given, as those show that ran before.
    """
    check_url(url)
    report = answer(file, QUESTIONS, url, token)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report)
