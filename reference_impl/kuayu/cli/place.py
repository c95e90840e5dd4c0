"""``kuayu place``: where the jobs of a state run, decided here or by a service."""

from collections.abc import Collection
from typing import Annotated, Any

import orjson
import typer

from kuayu.cli.answers import answered, check_url
from kuayu.cli.documents import content_of, read_document
from kuayu.cli.probe import USAGE, Token, fail
from kuayu_schemas.models import ObjectiveWeights, PlacementReport, PlacementRequest, SchedulingState


def place(
    *,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="JSON of the class PlacementRequest or SchedulingState; - for stdin."),
    ],
    explain: Annotated[
        bool, typer.Option("--explain", help="Tell what is expected of each decision, why, and the next-best.")
    ] = False,
    alternatives: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=10, help="Tell so many of the next-best at most; with --explain."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=N,…",
            help=f"What counts how much, of {', '.join(ObjectiveWeights.model_fields)}; the rest counts nothing.",
        ),
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Service to ask; decided here by default.")] = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Decide where the jobs of a state run, and say why.

    Prints what is to be done with each job: start, wait, stop, migrate or resize, and where. Nothing is held by that.
    """
    from kuayu.cli.place_tables import show_placements

    check_url(url)
    more: dict[str, Any] = {"explain": True} if explain else {}
    if weights is not None:
        more["weights"] = _weights(weights)
    if alternatives is not None:
        more["alternatives"] = alternatives
    request = _request(file).model_copy(update=more)
    if request.state is None:
        raise fail(f"{file} brings a patch of a state that is not here", "give the whole state in place of it", USAGE)
    report = _decided(request, url, token)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show_placements(report, request.state)


def _request(file: str) -> PlacementRequest:
    """What a file asks; of a state alone, what to do with its jobs."""
    content = content_of(file, "placement request or scheduling state")
    if "domains" in _members(content):
        state = read_document(file, content, SchedulingState, "scheduling state")
        return PlacementRequest.model_validate({"state": state})
    return read_document(file, content, PlacementRequest, "placement request")


def _members(content: bytes) -> Collection[str]:
    """Names of the members of an object in JSON; none where it is something else."""
    from pydantic_core import from_json

    try:
        value = from_json(content)
    except ValueError:
        return ()
    return value if isinstance(value, dict) else ()


def _weights(told: str) -> ObjectiveWeights:
    """Weights as they are told: ``period=1,communication=2``."""
    from pydantic import ValidationError

    names = ", ".join(ObjectiveWeights.model_fields)
    pairs = [each.partition("=") for each in told.split(",")]
    try:
        return ObjectiveWeights.model_validate({name.strip(): float(number) for name, _, number in pairs})
    except (ValueError, ValidationError) as error:
        hint = f"write it as period=1,communication=2; the names are {names}, and a weight is no less than 0"
        raise fail(f"--weights: {told!r} are no weights", hint, USAGE) from error


def _decided(request: PlacementRequest, url: str | None, token: str | None) -> PlacementReport:
    from kuayu.scheduling import place as placement

    def here() -> PlacementReport:
        return PlacementReport.model_validate_json(orjson.dumps(placement.place(request.to_wire())))

    hint = "give each name once, use only names that the request holds, and numbers that go together"
    return answered(here, lambda client: client.place(request), url, token, called="request", hint=hint)
