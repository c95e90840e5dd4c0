"""``kuayu faults``: what is wrong, as far as a service can tell, as a table or as it comes and goes."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from kuayu.cli.answers import check_url
from kuayu.cli.probe import Token, fail

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kuayu_schemas.models import Fault


def faults(
    *,
    url: Annotated[str, typer.Option(metavar="URL", help="Base URL of the service; /v1 lies under it.")] = (
        "http://127.0.0.1:8080"
    ),
    domain: Annotated[
        str | None, typer.Option(metavar="ID", help="Only faults of this domain and of its nodes; all by default.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show those too that are cleared, of the last hour at least.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with changes as they come, until Ctrl+C.")] = False,
    token: Token = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: a list of faults, and with --follow a line for each change.")
    ] = False,
) -> None:
    """Show what is wrong with nodes, domains and jobs, as far as a service can tell.

    SINCE is from when on it is taken to last, TOLD how long after that the service had come to its verdict. ACTIONS are
    what it has asked domains to do because of it, by their names.
    """
    from kuayu.client import Client, ClientError
    from kuayu_schemas.models import FaultState

    check_url(url)
    try:
        with Client(url, token=token) as client:
            if follow:
                news = (each for each in client.follow_faults() if domain in {None, each.domain})
                _follow(news, everything=everything, as_json=as_json)
            else:
                state = None if everything else FaultState.open
                _show(list(client.faults(domain=domain, state=state)), everything=everything, as_json=as_json)
    except ClientError as error:
        raise fail(error.cause, error.hint) from error
    except KeyboardInterrupt:
        raise typer.Exit from None


def _show(found: "list[Fault]", *, everything: bool, as_json: bool) -> None:
    from kuayu.cli.faults_tables import console, table

    if as_json:
        typer.echo(json.dumps([each.to_wire() for each in found], ensure_ascii=False, indent=2))
    else:
        console.print(table(found, cleared=everything))


def _follow(news: "Iterator[Fault]", *, everything: bool, as_json: bool) -> None:
    """Show what comes: a table that changes on a terminal, a line for each change elsewhere."""
    from rich.live import Live

    from kuayu.cli.faults_tables import Picture, console, line, table

    picture = Picture(cleared=everything)
    if not console.is_terminal or as_json:
        for each in news:
            if picture.take(each):
                typer.echo(each.to_json() if as_json else line(each))
        return
    with Live(table([], cleared=everything), console=console, screen=True, auto_refresh=False) as live:
        for each in news:
            if picture.take(each):
                live.update(table(picture.shown(), cleared=everything), refresh=True)
