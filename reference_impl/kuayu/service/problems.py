"""Exceptions → problem+json (RFC 9457), by the register of problem types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from kuayu_schemas import registers
from kuayu_schemas.models import ProblemType

MEDIA_TYPE = "application/problem+json"
MAX_ERRORS = 100
MAX_TEXT = 2000


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a request that is wrong: a JSON Pointer into its body, or the name of a parameter outside it."""

    detail: str
    pointer: str = ""
    parameter: str | None = None

    def to_wire(self) -> dict[str, str]:
        """The place as class ProblemError has it."""
        document = {"pointer": self.pointer, "detail": _text(self.detail)}
        return document if self.parameter is None else document | {"parameter": _text(self.parameter)}


class ProblemException(Exception):
    """A request cannot be done; the name is that of a registered problem type."""

    def __init__(
        self,
        name: str,
        detail: str,
        places: Sequence[Place] = (),
        *,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name
        self.detail = detail
        self.places = tuple(places)
        self.retry_after = retry_after
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        """HTTP status that goes with the problem type."""
        return _types()[self.name].status

    def to_wire(self) -> dict[str, Any]:
        """The problem as class Problem has it."""
        kind = _types()[self.name]
        document: dict[str, Any] = {
            "type": kind.type,
            "title": kind.title_en,
            "status": kind.status,
            "detail": _text(self.detail),
            "retryable": kind.retryable,
        }
        if self.retry_after is not None:
            document["retry_after"] = self.retry_after
        if self.places:
            document["errors"] = [place.to_wire() for place in self.places[:MAX_ERRORS]]
        return document

    def response(self) -> Response:
        """The problem as an answer."""
        headers = self.headers
        if self.retry_after is not None:
            headers = headers | {"Retry-After": str(max(1, round(self.retry_after)))}
        return Response(orjson.dumps(self.to_wire()), self.status, headers, MEDIA_TYPE)


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


def not_found(detail: str) -> ProblemException:
    """Nothing is known under this path."""
    return ProblemException("not-found", detail)


def invalid_body(*places: Place) -> ProblemException:
    """The body breaks the schema or a rule that the schema cannot state."""
    return ProblemException("invalid-body", places[0].detail, places)


def invalid_parameter(parameter: str, detail: str) -> ProblemException:
    """A query or header parameter is unknown or has a bad value."""
    return ProblemException("invalid-parameter", detail, [Place(detail, parameter=parameter)])


def unknown_reference(pointer: str, detail: str) -> ProblemException:
    """The body names something that is not registered."""
    return unknown_references(Place(detail, pointer))


def unknown_references(*places: Place) -> ProblemException:
    """The body names several things that are not known, each at its place."""
    return ProblemException("unknown-reference", places[0].detail, places)


def install(app: FastAPI) -> None:
    """Make every failure of the app an answer in problem+json."""

    @app.exception_handler(ProblemException)
    async def problem(_: Request, error: ProblemException) -> Response:
        return error.response()

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        if error.status_code == 405:  # noqa: PLR2004
            allowed = ", ".join(sorted(_methods(request)))
            detail = f"{request.url.path} takes {allowed}"
            return ProblemException("method-not-allowed", detail, headers={"Allow": allowed}).response()
        if error.status_code == 404:  # noqa: PLR2004
            return not_found(f"there is no {request.url.path}").response()
        return ProblemException("invalid-parameter", str(error.detail)).response()

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        places = [
            Place(
                str(result["msg"]), parameter=".".join(str(step) for step in result["loc"][1:]) or str(result["loc"][0])
            )
            for result in error.errors()
        ]
        detail = f"{places[0].parameter}: {places[0].detail}"
        return ProblemException("invalid-parameter", detail, places).response()

    @app.exception_handler(ClientGone)
    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, __: Exception) -> Response:
        return Response(status_code=400)  # nobody is there to read it

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> Response:
        detail = f"the service failed ({type(error).__name__}); its log says more"
        return ProblemException("internal", detail).response()


def _methods(request: Request) -> set[str]:
    """Methods that the routes of this path take."""
    return {
        method
        for route in request.app.router.routes
        if route.matches(request.scope)[0] is not Match.NONE
        for method in getattr(route, "methods", None) or ()
    }


@cache
def _types() -> dict[str, ProblemType]:
    return {kind.name: kind for kind in registers.problems().problems}


def _text(words: str) -> str:
    """Words within the limits of the type Text."""
    return words.replace("\0", "\\u0000")[:MAX_TEXT]
