"""Requests as they are read: bodies, batches, query parameters, cursors, and conditional headers.

1. JSON as the standard takes it: UTF-8, no NaN or infinities, no repeated member names, at most 64 levels deep.
   orjson is strict on all but repeated names and depth. Both are looked at before a body counts as read: cheaply
   where what was read, written again, can tell, else by the standard library's parser, which is slower but sees every
   member.
2. Undoing gzip (RFC 1952) without ever holding more than was agreed: a thousandth of it may be what came. One
   encoding is undone, once. Several on top of each other are of no use to anyone but who means harm, and libraries
   undo them piece by piece without a bound on what a piece becomes.
3. Bodies of requests: media type, size, JSON, schema — in this order, each with its own problem.
4. Bulk requests whose items are judged one by one: a bad item keeps none of the others out.
5. Query parameters, closed like bodies: one that the operation does not know is refused.
6. Cursors of listings: opaque to the client, signed so that only ours are taken, bound to the listing that they were
   made for.
7. Headers that make a request conditional or repeatable, or say where a stream goes on.
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, NoReturn, Self

import numpy as np
import orjson
from fastapi import Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from kuayu.service import access, instants
from kuayu.service.concurrency import Threads
from kuayu.service.problems import Place, ProblemException, invalid_body, invalid_parameter
from kuayu.service.storage.resources import Revision
from kuayu.service.storage.writer import Key
from kuayu_schemas import schema
from kuayu_schemas.models import Identifier, SubjectKind

MAX_DEPTH = 64

MAX_VALUES = 2_000_000
"""Values that a text may hold. An empty object takes three bytes of a body, and two hundred in memory."""

_STRING = re.compile(rb'"(?>[^"\\]+|\\.)*+"', re.DOTALL)

COLON_IN_DISGUISE = b"\\u003"
"""What the escape of a colon begins with, in either case of its last digit."""

DEEP = b"\n" + MAX_DEPTH * b"  "
"""How a line begins, where orjson indents, inside so many objects and arrays."""


class MalformedJsonError(ValueError):
    """The bytes are not JSON as the standard takes it."""


class TooManyValuesError(ValueError):
    """The text holds more values than are made at once."""


def load_strictly(body: bytes) -> Any:
    """Read a JSON text, whatever is in it.

    Raises:
        MalformedJsonError: It is not JSON as the standard takes it.
        TooManyValuesError: It has more than :data:`MAX_VALUES`; none of them was made.
    """
    value = load_leniently(body)
    if _is_plain(value, body):
        return value
    try:
        json.loads(body, object_pairs_hook=_no_repetition, parse_constant=_no_constant)
    except RecursionError:
        raise MalformedJsonError(f"nested deeper than {MAX_DEPTH} levels") from None
    if _depth_exceeds(value, MAX_DEPTH):
        raise MalformedJsonError(f"nested deeper than {MAX_DEPTH} levels")
    return value


def load_leniently(body: bytes) -> Any:
    """Read a JSON text that may still repeat member names or be nested too deeply.

    Raises:
        TooManyValuesError: It has more than :data:`MAX_VALUES`; none of them was made.
        MalformedJsonError: It is not UTF-8 JSON, or it holds NaN, an infinity or half of a surrogate pair.
    """
    check_values(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedJsonError(str(error)) from None


def check_values(body: bytes) -> None:
    """Look how many values a text may hold, before any is made.

    Raises:
        TooManyValuesError: More than :data:`MAX_VALUES`.
    """
    # A value takes two bytes at least, with the comma after it, so that most bodies need no look.
    if (
        len(body) > 2 * MAX_VALUES
        and _separators(body) > MAX_VALUES
        and _separators(_STRING.sub(b"", body)) > MAX_VALUES
    ):
        raise TooManyValuesError(f"more than {MAX_VALUES} values of JSON")


def _separators(body: bytes) -> int:
    text = np.frombuffer(body, dtype=np.uint8)  # several times faster than bytes count
    return sum(int(np.count_nonzero(text == character)) for character in b",[{")


def _is_plain(value: Any, body: bytes) -> bool:
    """Whether it is sure, without a look at every member, that no name stands twice and nothing is nested deeply.

    Of members with the same name one is read. Written again, the others and their colons are missing; colons in strings
    are there again, unless they came in another guise. Lines are indented by as many steps as something is nested.
    """
    if COLON_IN_DISGUISE in body:
        return False
    try:
        again = orjson.dumps(value, option=orjson.OPT_INDENT_2)
    except TypeError:  # nested too deeply to be written
        return False
    return again.count(b":") == body.count(b":") and DEEP not in again


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise MalformedJsonError(f"the member {name!r} stands twice in one object")
            seen.add(name)
    return members


def _no_constant(name: str) -> NoReturn:
    raise MalformedJsonError(f"{name} is not a JSON number")


def _depth_exceeds(value: Any, levels: int) -> bool:
    """Whether more than so many objects and arrays are nested within one another."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [nested for nested in layer if isinstance(nested, dict | list)]
        if not layer:
            return False
        layer = [child for nested in layer for child in (nested.values() if isinstance(nested, dict) else nested)]
    return True


GZIP = 16 + zlib.MAX_WBITS
"""Has zlib read the head and the checksum of gzip."""

MAX_MEMBERS = 64
"""Members of one body. What follows a member is copied when it ends, and an empty one takes twenty bytes."""


class UnpackingError(ValueError):
    """The bytes are not what gzip packs; the message says why."""


class TooLargeError(UnpackingError):
    """What was packed is larger than agreed."""


def unpack(packed: bytes, limit: int) -> bytes:
    """What gzip packed, in one or several members.

    Args:
        packed: All of it.
        limit: Most bytes that are ever unpacked.

    Raises:
        TooLargeError: It is larger than ``limit``.
        UnpackingError: It is not whole, or not of gzip.
    """
    page = Page("gzip", limit)
    page.add(packed)
    return page.whole()


class Page:
    """A body that comes in pieces, packed or not.

    Args:
        encoding: Content-Encoding as the sender states it (RFC 9110, 8.4); none, identity or gzip.
        limit: Most bytes that are held.

    Raises:
        UnpackingError: It is another encoding, or several.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        stated = encoding.strip().lower()
        if stated not in {"", "identity", "gzip", "x-gzip"}:
            raise UnpackingError(f"the content encoding {encoding[:100]!r} is not taken; gzip is, once")
        self._packed = stated in {"gzip", "x-gzip"}
        self._limit = limit
        self._chunks: list[bytes] = []
        self._size = 0
        self._inflater = zlib.decompressobj(GZIP)
        self._members = 0

    def add(self, chunk: bytes) -> None:
        """Take the next piece.

        Raises:
            TooLargeError: More than agreed.
            UnpackingError: It is not of gzip.
        """
        if not self._packed:
            self._keep(chunk)
            return
        try:
            while chunk:
                if self._inflater.eof:  # another member follows, or padding
                    chunk = chunk.lstrip(b"\0")
                    if not chunk:
                        return
                    self._members += 1
                    if self._members > MAX_MEMBERS:
                        raise UnpackingError(f"it has more than {MAX_MEMBERS} members of gzip")
                    self._inflater = zlib.decompressobj(GZIP)
                self._members = self._members or 1
                self._keep(self._inflater.decompress(chunk, self._limit - self._size + 1))
                chunk = self._inflater.unconsumed_tail or self._inflater.unused_data
        except zlib.error as error:
            raise UnpackingError(f"it is not what gzip packs: {error}") from error

    def whole(self) -> bytes:
        """All of it.

        Raises:
            UnpackingError: The end is missing.
        """
        if self._packed and not (self._members and self._inflater.eof):
            raise UnpackingError("it is not what gzip packs: its end is missing")
        return b"".join(self._chunks)

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            raise TooLargeError(f"it is larger than {self._limit} bytes when it is unpacked")
        if piece:
            self._chunks.append(piece)


SMALL = 8 * 1024
"""Bytes of a body that is parsed where it was read: that takes less than to hand it to a thread."""


async def read(request: Request, media_type: str, limit: int) -> bytes:
    """Read the body of a request.

    Args:
        request: The request; its body has not been read yet.
        media_type: The only one that is taken.
        limit: Bytes that are read at most.

    Raises:
        ProblemException: unsupported-media-type or payload-too-large; forbidden, where it names what is another's.
    """
    _check_media_type(request, media_type)
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
    body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    await access.check_body(request, partial(load_leniently, body))
    return body


def parse(body: bytes, class_name: str) -> Any:
    """Read a body as a valid instance of a class of the model.

    Raises:
        ProblemException: malformed-json or invalid-body.
    """
    value = parse_json(body)
    errors = schema.errors(class_name, value)
    if errors:
        raise invalid_body(*(Place(error.detail, error.pointer) for error in errors))
    return value


async def parse_aside(body: bytes, class_name: str, threads: Threads, tenant: str) -> Any:
    """What :func:`parse` does, in a thread where it may take long.

    Raises:
        ProblemException: malformed-json, invalid-body, payload-too-large or overloaded.
    """
    return parse(body, class_name) if len(body) < SMALL else await threads.run(tenant, parse, body, class_name)


def parse_json(body: bytes) -> Any:
    """Read a body as JSON of any shape.

    Raises:
        ProblemException: malformed-json, or payload-too-large where it holds too many values.
    """
    try:
        return load_strictly(body)
    except TooManyValuesError as error:
        raise ProblemException("payload-too-large", str(error)) from error
    except MalformedJsonError as error:
        raise ProblemException("malformed-json", str(error)) from error


def _check_media_type(request: Request, media_type: str) -> None:
    stated = request.headers.get("content-type", "")
    name, *parameters = (part.strip().lower() for part in stated.split(";"))
    charset = next((part.partition("=")[2].strip('"') for part in parameters if part.startswith("charset=")), "utf-8")
    if name != media_type or charset not in {"utf-8", "utf8"}:
        raise ProblemException("unsupported-media-type", f"expected {media_type} in UTF-8, got {stated or 'no type'!r}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ProblemException("unsupported-media-type", "bodies are taken without a content encoding")


def _too_large(limit: int) -> ProblemException:
    detail = f"the body is larger than {limit} bytes"
    return ProblemException("payload-too-large", detail, headers={"Connection": "close"})


EXPLAINED = 100
"""Items of a batch of which it is said where they break the schema: to find that out takes a hundred times as long as
to find that they do."""

Rejections = Mapping[int, ProblemException]
"""Why items cannot be taken, by index."""


@dataclass(frozen=True, slots=True)
class ItemForm:
    """What a bulk request looks like.

    Attributes:
        class_name: Class of the body.
        member: Member that holds the items.
        item: Class of an item.
        example: A valid item with no more members than it needs.
    """

    class_name: str
    member: str
    item: str
    example: Mapping[str, Any]

    def judge(self, value: Any, max_batch: int) -> dict[int, ProblemException]:
        """Items that break the schema. How many there are is looked at before anything in them is.

        Args:
            value: The body, as JSON of any shape.
            max_batch: Most items.

        Raises:
            ProblemException: invalid-body, for the request as a whole.
        """
        self.check_length(value, max_batch)
        self._check_shell(value)
        return self._broken(value[self.member])

    def check_length(self, value: Any, max_batch: int) -> None:
        """Refuse a batch of too many items, whatever they are.

        Raises:
            ProblemException: invalid-body.
        """
        items: Any = value.get(self.member) if isinstance(value, dict) else None
        if isinstance(items, list) and len(items) > max_batch:
            raise invalid_body(Place(f"{len(items)} items, where {max_batch} are the most", f"/{self.member}"))

    def _check_shell(self, value: Any) -> None:
        """Hold all but the items against the schema.

        Raises:
            ProblemException: invalid-body.
        """
        items: Any = value.get(self.member) if isinstance(value, dict) else None
        shell = value | {self.member: [self.example]} if items and isinstance(items, list) else value
        errors = schema.errors(self.class_name, shell)
        if errors:
            raise invalid_body(*(Place(error.detail, error.pointer) for error in errors))

    def _broken(self, items: Sequence[Any]) -> dict[int, ProblemException]:
        # One by one, so that no call holds Python's lock for as long as a whole batch takes.
        broken = (index for index, item in enumerate(items) if not schema.is_valid(self.item, item))
        result: dict[int, ProblemException] = {}
        for index in broken:
            if len(result) < EXPLAINED:
                errors = schema.errors(self.item, items[index])
                result[index] = invalid_body(*(Place(error.detail, error.pointer) for error in errors))
            else:
                result[index] = invalid_body(
                    Place(f"it breaks the schema of {self.item}; the first {EXPLAINED} such items say where")
                )
        return result


def rejected(rejections: Sequence[tuple[int, ProblemException]]) -> list[dict[str, Any]]:
    """Items that cannot be taken, each of class ItemRejection."""
    return [{"index": index, "problem": problem.to_wire()} for index, problem in rejections]


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

    instant: InstantText | None = Field(default=None, alias="at", description="The instant; now where absent.")


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
