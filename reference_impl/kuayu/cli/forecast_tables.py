"""Forecasts, phases, waveforms, peak plans and reservations as tables for people."""

from collections.abc import Iterator, Sequence
from functools import singledispatch

from rich.console import Console
from rich.markup import escape

from kuayu.cli.quantities import HOUR, span
from kuayu.cli.tables import plain_table
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import (
    Estimate,
    ForecastMethod,
    ForecastReport,
    PeakPlan,
    PhaseReport,
    ReservationReport,
    Waveform,
    WaveformPoint,
)

ROWS = 24
"""Points of a waveform that are printed at most."""

BAR = 40
"""Characters of the longest bar."""

console = Console(highlight=False)


@singledispatch
def show(report: KuayuModel) -> None:
    """Print a report.

    Raises:
        TypeError: There is no table for its class.
    """
    raise TypeError(type(report).__name__)


@show.register
def _(report: ForecastReport) -> None:
    levels = [each.level for each in report.forecasts[0].points[0].quantiles]
    table = plain_table("series", ">in", ">expected", *(f">{level:.4g}" for level in levels), ">by structure")
    for forecast in report.forecasts:
        for number, point in enumerate(forecast.points):
            table.add_row(
                "" if number else f"[bold]{escape(forecast.series)}[/]",
                span(point.horizon),
                _amount(point.expected),
                *(_amount(quantile.value) for quantile in point.quantiles),
                f"{point.structure_share:.0%}",
            )
    console.print(table)
    console.print(f"\nBeside what is expected, what is not exceeded in each share of cases; {_by(report.method)}")


@show.register
def _(report: PhaseReport) -> None:
    table = plain_table("training", "phase", ">since step", ">sure")
    for each in report.phases:
        name = f"[bold]{escape(each.curve)}[/]"
        table.add_row(name, each.phase.value, f"{each.since:,}", f"{each.confidence:.0%}")
    console.print(table)
    console.print(f"\nB{_by(report.method)[1:]}")


@show.register
def _(report: Waveform) -> None:
    shown = list(_some(report.points))
    longest = max(1.0, *(each.high for each in shown))
    table = plain_table(">in", ">devices", ">low", ">high", "")
    for each in shown:
        full, more = round(BAR * each.expected / longest), round(BAR * each.high / longest)
        bar = f"{'█' * full}[dim]{'░' * (more - full)}[/]"
        table.add_row(span(each.at), _amount(each.expected), _amount(each.low), _amount(each.high), bar)
    console.print(table)
    console.print()
    console.print(f"[bold]{_between(report.device_seconds, HOUR)}[/] device-hours")
    if report.budget is not None:
        console.print(f"[bold]{_between(report.budget)}[/] money")
    left_out = len(report.points) - len(shown)
    some = f" {left_out:,} of {len(report.points):,} points are left out; --json tells all." if left_out else ""
    console.print(f"B{_by(report.method)[1:]}{some}")


@show.register
def _(report: PeakPlan) -> None:
    table = plain_table("load", ">steps", "runs in steps")
    for each in report.loads:
        table.add_row(f"[bold]{escape(each.load)}[/]", f"{len(each.slots):,}", ", ".join(_stretches(each.slots)))
    if report.loads:
        console.print(table)
        console.print()
    lower = f", {1 - report.peak_after / report.peak_before:.1%} lower" if report.peak_before else ""
    console.print(
        f"[bold]{_amount(report.peak_before)} → {_amount(report.peak_after)}[/] devices at most{lower};"
        f" {_by(report.method)}"
    )


@show.register
def _(report: ReservationReport) -> None:
    table = plain_table("tenant", "domain", "series", ">expected", ">reserve")
    for each in report.reservations:
        names = (escape(each.tenant), escape(each.domain or ""), escape(each.series))
        table.add_row(f"[bold]{names[0]}[/]", *names[1:], _amount(each.expected), f"[bold]{each.devices:,}[/]")
    console.print(table)
    console.print(f"\nB{_by(report.method)[1:]}")


def _amount(value: float) -> str:
    """As many digits as say something."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"  # noqa: PLR2004 - four digits


def _between(estimate: Estimate, unit: float = 1.0) -> str:
    low, high = (_amount(value / unit) for value in (estimate.low, estimate.high))
    return f"{_amount(estimate.expected / unit)} ({low} to {high} in {estimate.coverage:.0%} of cases)"


def _some(points: Sequence[WaveformPoint]) -> Iterator[WaveformPoint]:
    """Points at equal distances, the first and the last among them."""
    if len(points) <= ROWS:
        yield from points
        return
    for number in range(ROWS):
        yield points[round(number * (len(points) - 1) / (ROWS - 1))]


def _stretches(slots: Sequence[int]) -> Iterator[str]:
    """Steps that follow each other as one stretch, such as ``3–7``."""
    begin = last = slots[0]
    for slot in [*slots[1:], None]:
        if slot is not None and slot == last + 1:
            last = slot
            continue
        yield f"{begin}–{last}" if last > begin else f"{begin}"
        if slot is not None:
            begin = last = slot


def _by(method: ForecastMethod) -> str:
    return f"by {escape(method.name)} {escape(method.version)}."
