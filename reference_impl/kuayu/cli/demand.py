"""``kuayu demand``: what trainings and tasks need, computed here or by a service."""

from typing import Annotated

import typer

from kuayu.cli.answers import check_url
from kuayu.cli.probe import Token
from kuayu.cli.questions import Question, answer
from kuayu_schemas.models import (
    LayoutReport,
    LayoutRequest,
    SizingReport,
    SizingRequest,
    TrainingDemandReport,
    TrainingDemandRequest,
)

QUESTIONS = (
    Question(
        "cases",
        TrainingDemandRequest,
        TrainingDemandReport,
        ("kuayu.demand.answering", "demand"),
        lambda client, request: client.training_demands(request),
        "request for demands",
    ),
    Question(
        "kind",
        LayoutRequest,
        LayoutReport,
        ("kuayu.demand.ranking", "rank"),
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
    from kuayu.cli.demand_tables import show

    check_url(url)
    report = answer(file, QUESTIONS, url, token)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report)
