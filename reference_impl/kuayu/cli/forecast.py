"""``kuayu forecast``: what will be needed, and what to do about it, computed here or by a service.

1. Forecasts, phases, waveforms, peak plans and reservations as tables for people.
"""

from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from kuayu.cli.decisions import Question, answer, check_url
from kuayu.cli.terminal import HOUR, Token, plain_table, span
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import (
    Estimate,
    ForecastMethod,
    ForecastReport,
    ForecastRequest,
    PeakPlan,
    PeakRequest,
    PhaseReport,
    PhaseRequest,
    ReservationReport,
    ReservationRequest,
    Waveform,
    WaveformPoint,
    WaveformRequest,
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
    levels = [entry.level for entry in report.forecasts[0].points[0].quantiles]
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
    for phase in report.phases:
        name = f"[bold]{escape(phase.curve)}[/]"
        table.add_row(name, phase.phase.value, f"{phase.since:,}", f"{phase.confidence:.0%}")
    console.print(table)
    console.print(f"\nB{_by(report.method)[1:]}")


@show.register
def _(report: Waveform) -> None:
    shown = list(_some(report.points))
    longest = max(1.0, *(entry.high for entry in shown))
    table = plain_table(">in", ">devices", ">low", ">high", "")
    for entry in shown:
        full, more = round(BAR * entry.expected / longest), round(BAR * entry.high / longest)
        bar = f"{'█' * full}[dim]{'░' * (more - full)}[/]"
        table.add_row(span(entry.at), _amount(entry.expected), _amount(entry.low), _amount(entry.high), bar)
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
    for load in report.loads:
        table.add_row(f"[bold]{escape(load.load)}[/]", f"{len(load.slots):,}", ", ".join(_stretches(load.slots)))
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
    for reservation in report.reservations:
        names = (escape(reservation.tenant), escape(reservation.domain or ""), escape(reservation.series))
        table.add_row(
            f"[bold]{names[0]}[/]", *names[1:], _amount(reservation.expected), f"[bold]{reservation.devices:,}[/]"
        )
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


QUESTIONS = (
    Question(
        "horizons",
        ForecastRequest,
        ForecastReport,
        ("kuayu.forecast.forecasting", "forecast"),
        lambda client, request: client.forecasts(request),
        "request for forecasts",
    ),
    Question(
        "curves",
        PhaseRequest,
        PhaseReport,
        ("kuayu.forecast.phases", "recognise"),
        lambda client, request: client.training_phases(request),
        "request for phases",
    ),
    Question(
        "period",
        WaveformRequest,
        Waveform,
        ("kuayu.forecast.waveforms", "waveform"),
        lambda client, request: client.waveform(request),
        "request for a waveform",
    ),
    Question(
        "base",
        PeakRequest,
        PeakPlan,
        ("kuayu.forecast.peaks", "shave"),
        lambda client, request: client.peak_plan(request),
        "request for a peak plan",
    ),
    Question(
        "qualities",
        ReservationRequest,
        ReservationReport,
        ("kuayu.forecast.forecasting", "reserve"),
        lambda client, request: client.reservations(request),
        "request for reservations",
    ),
)


def forecast(
    *,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="JSON of the class ForecastRequest, PhaseRequest, WaveformRequest, PeakRequest or ReservationRequest;"
            " - for stdin.",
        ),
    ],
    url: Annotated[str | None, typer.Option(metavar="URL", help="Service to ask; computed here by default.")] = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Tell what will be needed, and what to do about it.

    Prints forecasts of series; or in which phases trainings are; or how demand runs over a coming period; or when to do
    movable work so that peaks are low; or how many devices to reserve for tenants.
    """
    check_url(url)
    report = answer(file, QUESTIONS, url, token)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report)
