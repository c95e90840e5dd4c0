"""``kuayu forecast``: what will be needed, and what to do about it, computed here or by a service."""

from typing import Annotated

import typer

from kuayu.cli.answers import check_url
from kuayu.cli.probe import Token
from kuayu.cli.questions import Question, answer
from kuayu_schemas.models import (
    ForecastReport,
    ForecastRequest,
    PeakPlan,
    PeakRequest,
    PhaseReport,
    PhaseRequest,
    ReservationReport,
    ReservationRequest,
    Waveform,
    WaveformRequest,
)

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
        ("kuayu.forecast.reservations", "reserve"),
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
    from kuayu.cli.forecast_tables import show

    check_url(url)
    report = answer(file, QUESTIONS, url, token)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report)
