"""``kuayu graph``: the resource graph of a service as tables, or its changes as they come."""

from typing import TYPE_CHECKING, Annotated

import typer

from kuayu.cli.probe import USAGE, Token, fail

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kuayu_schemas.models import GraphChange, ResourceGraph


def graph(
    *,
    url: Annotated[str, typer.Option(metavar="URL", help="Base URL of the service; /v1 lies under it.")] = (
        "http://127.0.0.1:8080"
    ),
    domain: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this domain, with each of its nodes; all domains by default.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with changes as they come, until Ctrl+C.")] = False,
    token: Token = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the graph with all nodes, and with --follow a line a change.")
    ] = False,
) -> None:
    """Show the resource graph of a service: domains with their nodes by state, and the links between them."""
    from kuayu.client import Client, ClientError, NotFoundError

    nodes = as_json or domain is not None
    try:
        with Client(url, token=token) as client:
            if follow:
                _follow(client.follow_graph(nodes=nodes, domain=domain), as_json=as_json)
            else:
                _show(client.graph(nodes=nodes, domain=domain), as_json=as_json)
    except NotFoundError as error:
        raise fail(error.cause, "kuayu graph without --domain shows which domains there are") from error
    except ClientError as error:
        raise fail(error.cause, error.hint) from error
    except ValueError as error:
        raise fail(f"--url: {error}", "write it as http://HOST:PORT", USAGE) from error
    except KeyboardInterrupt:
        raise typer.Exit from None


def _show(found: "ResourceGraph", *, as_json: bool) -> None:
    from kuayu.cli.graph_tables import console, tables
    from kuayu.picture import GraphPicture

    if as_json:
        typer.echo(found.model_dump_json(indent=2))
        return
    picture = GraphPicture()
    picture.take(found)
    console.print(tables(picture))


def _follow(news: "Iterator[ResourceGraph | GraphChange]", *, as_json: bool) -> None:
    """Show what comes: tables that change on a terminal, a line for each thing that changes elsewhere."""
    from rich.live import Live

    from kuayu.cli.graph_tables import console, lines, tables
    from kuayu.picture import GraphPicture

    picture = GraphPicture()
    if as_json:
        for each in news:
            typer.echo(each.to_json())
    elif console.is_terminal:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            for each in news:
                picture.take(each)
                live.update(tables(picture), refresh=True)
    else:
        for each in news:
            for line in lines(picture, each):
                console.print(line, soft_wrap=True)
            picture.take(each)
