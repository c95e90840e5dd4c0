"""``kuayu place``: where the jobs of a state run, decided here or by a service."""

from typing import Annotated

import typer

from kuayu.cli.documents import content_of, listed, read_document
from kuayu.cli.probe import USAGE, Token, fail
from kuayu_schemas.models import PlacementReport, PlacementRequest

PATIENCE_S = 60.0
"""Time that a service may take for one answer; a large state takes a second or two."""


def place(
    *,
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON file of the class PlacementRequest; - for stdin.")],
    explain: Annotated[
        bool, typer.Option("--explain", help="Tell what is expected of each decision, why, and the next-best.")
    ] = False,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Service to ask; decided here by default.")] = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Decide where the jobs of a state run, and say why.

    Prints what is to be done with each job: start, wait, stop, migrate or resize, and where. Nothing is held by that.
    """
    from kuayu.cli.place_tables import show_placements

    if url and not url.startswith(("http://", "https://")):
        raise fail(f"--url: {url!r} is no http or https URL", "write it as http://HOST:PORT", USAGE)
    called = "placement request"
    request = read_document(file, content_of(file, called), PlacementRequest, called)
    if explain:
        request = request.model_copy(update={"explain": True})
    report = _decided(request, url, token)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show_placements(report, request)


def _decided(request: PlacementRequest, url: str | None, token: str | None) -> PlacementReport:
    """The answer, computed here or, where a URL is named, by a service."""
    from kuayu.client import Client, ClientError
    from kuayu.scheduling import placing
    from kuayu.scheduling.names import NameTrouble

    try:
        if url is None:
            return PlacementReport.model_validate_json(_dumped(placing.place(request.to_wire())))
        with Client(url, token=token, timeout_s=PATIENCE_S) as client:
            return client.place(request)
    except NameTrouble as error:
        faults = [f"{pointer}: {detail}" for pointer, detail in error.pointers]
        hint = "give each name once, and use only names that the request holds"
        raise fail(listed("the request does not hold together", faults), hint, USAGE) from error
    except ClientError as error:
        raise fail(error.cause, error.hint) from error


def _dumped(answer: object) -> bytes:
    import orjson

    return orjson.dumps(answer)
