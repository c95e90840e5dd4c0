"""Query parameters, cursors of listings, and conditional headers.

1. Query parameters, closed like bodies: one that the operation does not know is refused.
2. Cursors: opaque to the client, signed so that only ours are taken, bound to the listing that they were made for.
3. Headers that make a request conditional or repeatable, or say where a stream goes on.
"""

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import orjson
from fastapi import Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from kuayu.service import instants
from kuayu.service.problems import ProblemException, invalid_parameter
from kuayu.service.storage.resources import Revision
from kuayu.service.storage.writer import Key
from kuayu_schemas import schema
from kuayu_schemas.models import Identifier, SubjectKind

INSTANT_PATTERN: str = schema.document()["$defs"]["Instant"]["pattern"]

InstantText = Annotated[str, Field(pattern=INSTANT_PATTERN, json_schema_extra={"format": "date-time"})]
StepLength = Annotated[
    Literal[60, 300, 3600, 86_400],
    # What a query holds is text, and a Literal takes none for a number.
    BeforeValidator(lambda text: int(text) if text in {"60", "300", "3600", "86400"} else text),
]
DEFAULT_LIMIT = 100


class NoQuery(BaseModel):
    """An operation without query parameters."""

    model_config = ConfigDict(extra="forbid")


class PageQuery(NoQuery):
    """Part of a listing."""

    limit: int = Field(default=DEFAULT_LIMIT, ge=1, description="Most items; at most limits.max_page.")
    cursor: str | None = Field(default=None, description="Where to go on: next_cursor of the page before.")

    def check(self, max_page: int) -> Self:
        """Hold the limit against the service's own.

        Raises:
            ProblemException: invalid-parameter.
        """
        if self.limit > max_page:
            raise invalid_parameter("limit", f"a page has at most {max_page} items")
        return self


class NodePageQuery(PageQuery):
    """Part of the list of nodes."""

    domain: Identifier | None = Field(default=None, description="Only nodes of this domain.")


class SampleQueryParameters(PageQuery):
    """Which samples are asked for."""

    subject: Identifier = Field(description="Node, domain or link.")
    subject_kind: SubjectKind = Field(description="What the subject is; device for devices of the node.")
    device: Identifier | None = Field(default=None, description="Device of the node; all of them where absent.")
    since: InstantText | None = Field(default=None, alias="from", description="First instant.")
    until: InstantText | None = Field(default=None, alias="to", description="First instant not asked for any more.")


class SeriesQueryParameters(NoQuery):
    """Which series is asked for."""

    subject: Identifier = Field(description="Node, domain or link.")
    subject_kind: SubjectKind = Field(description="What the subject is; device for a device of the node.")
    device: Identifier | None = Field(default=None, description="Device of the node; where the subject kind is device.")
    measure: Identifier = Field(description="A measure that is one number.")
    since: InstantText = Field(alias="from", description="An instant of the first step.")
    until: InstantText = Field(
        alias="to", description="First instant not asked for any more; its step is, unless it begins there."
    )
    step: StepLength = Field(description="Length of a step in seconds.")


class ExpositionQuery(NoQuery):
    """What an exporter's page is about."""

    node: Identifier = Field(description="Node that the page reports on.")
    exporter: Identifier = Field(description="Exporter of the collection map.")
    observed_at: InstantText | None = Field(
        default=None, description="When lines without a timestamp were observed; the time of receipt where absent."
    )
    sent_at: InstantText | None = Field(
        default=None, description="The sender's clock when it sent; instants of the page are corrected by it."
    )


class ReportQuery(NoQuery):
    """When a report is about."""

    at: InstantText | None = Field(default=None, description="The instant; now where absent.")


def milliseconds(name: str, text: str | None) -> int | None:
    """An instant out of a parameter.

    Raises:
        ProblemException: invalid-parameter, where the form is right but there is no such day.
    """
    if text is None:
        return None
    try:
        return instants.to_milliseconds(text)
    except ValueError as error:
        raise invalid_parameter(name, f"there is no such instant: {error}") from error


SIGNATURE_SIZE = 12


@dataclass(frozen=True, slots=True)
class Cursors:
    """Makes and reads the cursors of one listing.

    Attributes:
        secret: Key of the signatures.
        listing: What tells this listing from others: tenant, path, filters.
    """

    secret: bytes
    listing: tuple[str | None, ...]

    def write(self, position: dict[str, Any]) -> str:
        """Make a cursor that stands for a position in the listing."""
        payload = orjson.dumps(position)
        return base64.urlsafe_b64encode(self._sign(payload) + payload).decode().rstrip("=")

    def read(self, cursor: str) -> dict[str, Any]:
        """Read a cursor.

        Raises:
            ProblemException: invalid-cursor.
        """
        try:
            raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), b"-_", validate=True)
        except (binascii.Error, UnicodeEncodeError) as error:
            raise _invalid() from error
        signature, payload = raw[:SIGNATURE_SIZE], raw[SIGNATURE_SIZE:]
        if not hmac.compare_digest(signature, self._sign(payload)):
            raise _invalid()
        position: dict[str, Any] = orjson.loads(payload)
        return position

    def _sign(self, payload: bytes) -> bytes:
        message = orjson.dumps(self.listing) + b"\0" + payload
        return hmac.new(self.secret, message, hashlib.sha256).digest()[:SIGNATURE_SIZE]


def _invalid() -> ProblemException:
    return ProblemException("invalid-cursor", "the cursor was not made for this listing")


_ENTITY_TAG = re.compile(r'"([A-Za-z0-9][A-Za-z0-9._-]{0,127}):(0|[1-9][0-9]{0,15})"')
_EVENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,127}):(0|[1-9][0-9]{0,15})")
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


def if_match(request: Request) -> Revision | None:
    """Revision that a request expects, from the header If-Match.

    Raises:
        ProblemException: invalid-parameter.
    """
    stated = request.headers.get("if-match")
    if stated is None:
        return None
    result = _ENTITY_TAG.fullmatch(stated.strip())
    if result is None:
        raise invalid_parameter("If-Match", 'expected one entity tag of the form "EPOCH:NUMBER"')
    return Revision(result[1], int(result[2]))


def last_event(request: Request) -> Revision | None:
    """Revision that the header Last-Event-ID names.

    Raises:
        ProblemException: invalid-parameter.
    """
    stated = request.headers.get("last-event-id")
    if stated is None:
        return None
    result = _EVENT.fullmatch(stated)
    if result is None:
        raise invalid_parameter("Last-Event-ID", "expected an identifier of an event, EPOCH:NUMBER")
    return Revision(result[1], int(result[2]))


def idempotency_key(request: Request) -> str | None:
    """The header Idempotency-Key.

    Raises:
        ProblemException: invalid-parameter.
    """
    stated = request.headers.get("idempotency-key")
    if stated is not None and not _KEY.fullmatch(stated):
        raise invalid_parameter("Idempotency-Key", "expected 1 to 255 visible ASCII characters")
    return stated


def bind(key: str, request: Request, tenant: str, body: bytes, received: int) -> Key:
    """What a key stands for: this tenant, this operation with its query, this body."""
    operation = f"{request.method} {request.url.path}?{request.url.query}"
    return Key(tenant, operation, key, hashlib.sha256(body).hexdigest(), received)
