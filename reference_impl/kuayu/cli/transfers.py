"""``kuayu transfers``: what data to fetch, or by which collective to agree, computed here or by a service."""

from typing import Annotated

import typer

from kuayu.cli.answers import check_url
from kuayu.cli.probe import Token
from kuayu.cli.questions import Question, answer
from kuayu_schemas.models import CollectiveChoice, CollectiveRequest, ShardPlan, ShardPlanRequest

QUESTIONS = (
    Question(
        "streams",
        ShardPlanRequest,
        ShardPlan,
        ("kuayu.resilience.transfers.answering", "shard_plan"),
        lambda client, request: client.shard_plan(request),
        "request for a shard plan",
    ),
    Question(
        "exchange",
        CollectiveRequest,
        CollectiveChoice,
        ("kuayu.resilience.transfers.choosing", "collective"),
        lambda client, request: client.collective(request),
        "request for a collective",
    ),
)


def transfers(
    *,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="JSON of the class ShardPlanRequest or CollectiveRequest; - for stdin."),
    ],
    url: Annotated[str | None, typer.Option(metavar="URL", help="Service to ask; computed here by default.")] = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Tell what data to fetch, or by which collective to agree.

    Prints what training data to fetch, from where, in what pieces and how early; or by which collective replicas in
    several domains are to sum up their gradients.
    """
    from kuayu.cli.transfers_tables import show

    check_url(url)
    report = answer(file, QUESTIONS, url, token)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report)
