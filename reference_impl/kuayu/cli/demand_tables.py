"""Demands of trainings, layouts and sizes of tasks as tables for people."""

from functools import singledispatch

from rich.console import Console
from rich.markup import escape

from kuayu.cli.quantities import scaled, span, within
from kuayu.cli.tables import plain_table
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import (
    DemandMethod,
    Estimate,
    LayoutReport,
    ParallelStrategy,
    SizingReport,
    TaskResources,
    TrainingDemand,
    TrainingDemandReport,
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
    for each in report.demands:
        sent = sum(part.size for part in each.traffic)
        table.add_row(
            f"[bold]{escape(each.case)}[/]",
            f"{each.devices:,}",
            *_time(each.step_time),
            f"{each.utilisation:.1%}",
            scaled(each.work, "FLOP"),
            scaled(each.memory, "B"),
            scaled(sent, "B"),
            "" if each.fits else "[red]cannot run[/]",
        )
    console.print(table)
    for each in report.demands:
        for obstacle in each.obstacles:
            console.print(f"[bold]{escape(each.case)}[/] cannot run: {escape(obstacle)}")
    for each in report.demands:
        _show_phases(each)
        _show_segments(each)
    console.print(
        f"\nA step's work, its memory on the fullest accelerator and what one sends in it; {_by(report.method)}"
    )


@show.register
def _(report: LayoutReport) -> None:
    table = plain_table(">", "strategy", ">devices", ">step", ">", ">used", ">memory")
    for number, each in enumerate(report.layouts, 1):
        strategy = each.strategy
        devices = strategy.data * strategy.tensor * strategy.pipeline * (strategy.context or 1)
        table.add_row(
            str(number),
            _strategy(strategy),
            f"{devices:,}",
            *_time(each.step_time),
            f"{each.utilisation:.1%}",
            scaled(each.memory, "B"),
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
    for each in report.tasks:
        table.add_row(
            f"[bold]{escape(each.task)}[/]",
            *_resources(each.recommended),
            *(("", "") if each.duration is None else _time(each.duration)),
            f"{each.slow_down:+.1%}",
            escape(each.reason),
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
    for each in demand.phases:
        table.add_row(
            each.phase.value,
            f"{each.devices:,}",
            span(each.step_time),
            span(each.duration),
            scaled(each.work, "FLOP"),
            scaled(each.memory, "B"),
            scaled(each.traffic, "B"),
        )
    console.print()
    console.print(table)


def _show_segments(demand: TrainingDemand) -> None:
    if not demand.segments:
        return
    table = plain_table(f"step of {escape(demand.case)}", ">from", ">lasts", ">busy", "sends")
    for each in demand.segments:
        flows = ", ".join(f"{scaled(flow.flow, 'B/s')} {flow.link.value}" for flow in each.traffic)
        table.add_row(each.activity.value, span(each.begin), span(each.duration), f"{each.busy:.0%}", flows)
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
