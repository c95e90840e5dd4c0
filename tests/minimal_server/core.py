"""What every operation rests on: the clock, tenants, problems, revisions, pages and idempotency keys."""

import hashlib
import json
import re
import secrets
import threading
import time
from bisect import insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from minimal_server.validator import Error, Validator, parse

Json = dict[str, Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z", re.ASCII)
IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
REVISION = re.compile(r'"([A-Za-z0-9][A-Za-z0-9._-]{0,127}):([0-9]{1,16})"')
KEY = re.compile(r"[\x21-\x7e]{1,255}")
LIMITS = {"max_body": 4 << 20, "max_batch": 1000, "max_page": 1000, "retention": 604800, "idempotency": 604800}
PINS = 1000


def milliseconds(instant: str) -> int:
    """Milliseconds since 1970 of an instant; ValueError where it is none."""
    if not INSTANT.fullmatch(instant):
        raise ValueError(f"{instant[:40]} is no instant such as 2026-01-01T00:00:00.000Z")
    whole, _, fraction = instant[17:-1].partition(".")
    if whole > "59":
        raise ValueError(f"{instant} has a second that no minute has")
    return _minute(instant[:16]) + 1000 * int(whole) + int(fraction.ljust(3, "0"))


@lru_cache(10_000)
def _minute(text: str) -> int:
    """Milliseconds since 1970 at the begin of a minute; of most samples it is the same."""
    return (datetime.fromisoformat(text + "Z") - EPOCH) // timedelta(milliseconds=1)


EARLIEST, LATEST = milliseconds("0001-01-01T00:00:00Z"), milliseconds("9999-12-31T23:59:59.999Z")


@lru_cache(10_000)
def instant(moment: int) -> str:
    """The instant that lies ``moment`` milliseconds after 1970, clipped to the years that can be written."""
    when = EPOCH + timedelta(milliseconds=min(max(moment, EARLIEST), LATEST))
    return when.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


class Refusal(Exception):
    """A request is not carried out; becomes a problem."""

    def __init__(self, name: str, detail: str, errors: list[Json] | None = None, headers: Json | None = None) -> None:
        """Give the name of the registered problem type, what went wrong, the places, and headers of the answer."""
        super().__init__(detail)
        self.name, self.detail, self.errors, self.headers = name, detail, errors or [], headers or {}


def wrong_body(name: str, pointer: str, detail: str) -> Refusal:
    """A refusal for one place in the body."""
    return Refusal(name, detail, [{"pointer": pointer, "detail": detail}])


def wrong_parameter(parameter: str, detail: str, name: str = "invalid-parameter") -> Refusal:
    """A refusal for one parameter of the path, the query or the header."""
    return Refusal(name, detail, [{"pointer": "", "parameter": parameter, "detail": detail}])


@dataclass
class Series:
    """Samples of one subject or device: records by instant, and in order the instants at which each measure is held."""

    records: dict[int, Json] = field(default_factory=dict)
    instants: dict[str, list[int]] = field(default_factory=dict)

    def add(self, moment: int, record: Json, measures: Mapping[str, Any]) -> None:
        """Hold ``measures`` beside what is held already for that instant."""
        self.records[moment] = {**self.records.get(moment, record), **measures}
        for measure in measures:
            insort(self.instants.setdefault(measure, []), moment)


@dataclass
class Tenant:
    """All that one tenant has; nothing is shared with another."""

    name: str
    number: int = 0
    records: dict[str, dict[str, Json]] = field(default_factory=dict)
    series: dict[tuple[str, str, str], Series] = field(default_factory=dict)
    counters: dict[tuple[str, str], Any] = field(default_factory=dict)
    scrapes: dict[str, Json] = field(default_factory=dict)
    keys: dict[tuple[str, str], tuple[str, "Answer"]] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """A request whose path and parameters are known to be good."""

    tenant: Tenant
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """Status, JSON or text, and headers; and whether what was done for it is kept beyond the process."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    kept: bool = True


@cache
def published(path: Path) -> Json:
    """A published register or schema; all services read the same, and none writes to it."""
    document: Json = json.loads(path.read_text("utf-8"))
    return document


@cache
def validator(path: Path) -> Validator:
    """Finds what is wrong by a published schema; what it has made of the schema serves every service."""
    return Validator(published(path))


class Core:
    """The parts of the service that have no subject of their own."""

    def __init__(self, schemas: Path, tokens: Mapping[str, str], allowed: tuple[str, ...]) -> None:
        """Read the published registers; ``tokens`` name a tenant each, ``allowed`` are hosts that may be scraped."""
        self.indicators, self.problem_register = (
            published(schemas / name) for name in ("indicators.json", "problems.json")
        )
        self.problems = {row["name"]: row for row in self.problem_register["problems"]}
        self.validator = validator(schemas / "kuayu.schema.json")
        self.tokens, self.allowed = tokens, allowed
        self.epoch = secrets.token_hex(8)
        self.tenants: dict[str, Tenant] = {}
        self.pins: dict[str, tuple[list[Json], Json]] = {}
        self.moment = self.read_clock()
        self.lock = threading.RLock()
        self.replaying = False

    def deed(self, tenant: Tenant, name: str, *arguments: Any) -> None:
        """Do something that nobody has asked for."""
        getattr(self, name)(tenant, *arguments)

    def read_clock(self) -> int:
        """Milliseconds since 1970. One reading, ``moment``, serves a whole request."""
        return time.time_ns() // 1_000_000

    def tenant(self, name: str) -> Tenant:
        """The tenant of that name."""
        return self.tenants.setdefault(name, Tenant(name))

    def authorise(self, headers: Mapping[str, str]) -> Tenant:
        """The tenant that the bearer token belongs to; the only one there is where no tokens were given."""
        if not self.tokens:
            return self.tenant("")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or token.strip() not in self.tokens:
            raise Refusal("unauthorised", "no known bearer token was given", headers={"WWW-Authenticate": "Bearer"})
        return self.tenant(self.tokens[token.strip()])

    def problem(self, refusal: Refusal) -> Json:
        """The refusal as problem+json."""
        row = self.problems[refusal.name]
        return {
            "type": row["type"],
            "title": row["title_en"],
            "status": row["status"],
            "detail": refusal.detail.replace("\x00", "")[:2000],
            "retryable": row["retryable"],
            **({"errors": refusal.errors[:100]} if refusal.errors else {}),
        }

    def body(self, request: Request, model: str, *, without: str = "") -> Json:
        """The body, known to be an instance of the class ``model``."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refusal("unsupported-media-type", "the media type must be application/json")
        try:
            value = self.parse(request.body)
        except ValueError as error:
            raise Refusal("malformed-json", f"the body is not well-formed: {error}") from error
        errors = self.schema_errors(model, value, without=without)
        if errors:
            places = [{"pointer": pointer, "detail": detail} for pointer, detail in errors]
            raise Refusal("invalid-body", f"the body is no {model}", places)
        document: Json = value
        return document

    def parse(self, body: bytes) -> Any:
        """The body as JSON; ValueError where it is none."""
        return parse(body)

    def schema_errors(self, model: str, value: Any, *, without: str = "") -> list[Error]:
        """What is wrong with the value; requests are closed, so unknown members are."""
        return self.validator.errors(model, value, without=without)

    def revision(self, tenant: Tenant) -> Json:
        """Where the tenant's registered resources stand."""
        return {"epoch": self.epoch, "number": tenant.number}

    def next_revision(self, tenant: Tenant) -> Json:
        """One change further."""
        tenant.number += 1
        return self.revision(tenant)

    def page(self, request: Request, listing: Callable[[], Iterator[Json]], revision: Json | None = None) -> Answer:
        """One page of a listing, as it stood when its first page was made, at the revision of resources if no other."""
        limit = self.limit(request)
        query = {name: value for name, value in request.query.items() if name not in {"limit", "cursor"}}
        scope = json.dumps([self.epoch, request.tenant.name, request.path, sorted(query.items())])
        cursor = request.query.get("cursor")
        if cursor is None:
            pin, start = secrets.token_hex(8), 0
            items, revision = list(listing()), revision or self.revision(request.tenant)
        else:
            pin, start = self.open_cursor(scope, cursor)
            items, revision = self.pinned(pin, request, listing)
        page = {"items": items[start : start + limit], "revision": revision}
        if start + limit < len(items):
            self.pins[pin] = items, revision
            if len(self.pins) > PINS:
                del self.pins[next(iter(self.pins))]
            page["next_cursor"] = self.cursor(scope, pin, start + limit)
        return Answer(200, page)

    def limit(self, request: Request) -> int:
        """How many items the page may hold."""
        text = request.query.get("limit", "100")
        if not re.fullmatch("[0-9]{1,6}", text) or not 1 <= int(text) <= LIMITS["max_page"]:
            raise wrong_parameter("limit", f"limit must be a number from 1 to {LIMITS['max_page']}")
        return int(text)

    def cursor(self, scope: str, pin: str, start: int) -> str:
        """Where the next page begins, sealed so that it opens for the same listing only."""
        seal = hashlib.sha256(f"{scope} {pin} {start}".encode()).hexdigest()[:16]
        return f"{pin}.{start}.{seal}"

    def open_cursor(self, scope: str, cursor: str) -> tuple[str, int]:
        """The listing's pin and where its next page begins."""
        parts = re.fullmatch(r"([0-9a-f]{16})\.([0-9]{1,9})\.[0-9a-f]{16}", cursor)
        if parts is None or cursor != self.cursor(scope, parts[1], int(parts[2])):
            raise wrong_parameter("cursor", "the cursor was not given for this listing", "invalid-cursor")
        return parts[1], int(parts[2])

    def pinned(self, pin: str, _request: Request, _listing: Callable[[], Iterator[Json]]) -> tuple[list[Json], Json]:
        """The items and the revision of the first page."""
        if pin not in self.pins:
            raise Refusal("revision-expired", "the revision of the first page is no longer held; begin again")
        return self.pins[pin]

    def once(self, request: Request, carry_out: Callable[[Request], Answer]) -> Answer:
        """Carry out a POST, or give the first answer again where its idempotency key is known."""
        key = request.headers.get("idempotency-key")
        if key is None:
            return carry_out(request)
        if not KEY.fullmatch(key):
            raise wrong_parameter("Idempotency-Key", "the key must be 1 to 255 visible ASCII characters")
        operation = f"{request.path}?{json.dumps(sorted(request.query.items()))}"
        digest = hashlib.sha256(request.body).hexdigest()
        known = request.tenant.keys.get((operation, key))
        if known is None:
            answer = self.judged(request, carry_out)
            request.tenant.keys[operation, key] = digest, answer
            return answer
        if known[0] != digest:
            raise Refusal("idempotency-mismatch", "the key was used with another body")
        return Answer(known[1].status, known[1].body, {**known[1].headers, "Idempotency-Replayed": "true"})

    def judged(self, request: Request, carry_out: Callable[[Request], Answer]) -> Answer:
        """The answer by which the items were judged; any other refusal is raised, and no key remembers it."""
        try:
            return carry_out(request)
        except Refusal as refusal:
            if refusal.name != "batch-refused":
                raise
            return self.refuse(refusal)

    def refuse(self, refusal: Refusal) -> Answer:
        """The answer to a request that is not carried out."""
        problem = self.problem(refusal)
        return Answer(problem["status"], problem, {"Content-Type": "application/problem+json", **refusal.headers})
