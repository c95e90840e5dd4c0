"""``kuayu recovery``: what to hold against faults, or how jobs go on after one, computed here or by a service."""

from typing import Annotated

import typer

from kuayu.cli.answers import check_url
from kuayu.cli.probe import Token
from kuayu.cli.questions import Question, answer
from kuayu_schemas.models import BackupPlan, BackupRequest, FailoverPlan, FailoverRequest

QUESTIONS = (
    Question(
        "domains",
        BackupRequest,
        BackupPlan,
        ("kuayu.resilience.recovery.backing", "backup_plan"),
        lambda client, request: client.backup_plan(request),
        "request for a backup plan",
    ),
    Question(
        "nodes",
        FailoverRequest,
        FailoverPlan,
        ("kuayu.resilience.recovery.failing", "failover_plan"),
        lambda client, request: client.failover_plan(request),
        "request for a failover plan",
    ),
)


def recovery(
    *,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="JSON of the class BackupRequest or FailoverRequest; - for stdin."),
    ],
    url: Annotated[str | None, typer.Option(metavar="URL", help="Service to ask; computed here by default.")] = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Tell what to hold against faults, or how jobs go on after one.

    Prints how many nodes to keep as spares and which copies of checkpoints to take how often; or in which way each job
    with a broken replica goes on, on which nodes and from which copy.
    """
    from kuayu.cli.recovery_tables import show

    check_url(url)
    report = answer(file, QUESTIONS, url, token)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report)
