"""Who may call which operation, and about what, and the log of who did: the one place where that is decided and kept.

1. Roles by operation. The table is whole: the application does not start with an operation that is not in it, and the
   OpenAPI document carries it as ``x-kuayu-roles``. An operation without roles needs no token.
2. Which operation a request is for, found by the very patterns that the router has.
3. The role *domain* speaks for one domain. What a request names is looked at before anybody acts on it: paths and
   queries when the request is let in, bodies when they are read. Names that nothing is registered under are left to
   whoever answers. An operation that the role may call and that has no rule here lets it name nothing.
4. A token that is bound to accounts submits and calls off jobs of these, and changes nothing else: domains, nodes,
   links and allocations are shared by all accounts, and so is what is reported of them. A job that names no account
   counts for the only one of the token. What it reads is what its role reads. An operation that writes and has no rule
   here is none for such a token. A job keeps its account, so that it can be looked at before the job is called off.
   Tenants need no rule: whatever is looked up is looked up by tenant.
5. The audit log has one line of JSON for each request that writes, whatever its answer, and for each that a known token
   may not make:

   ``{"time": …, "tenant": …, "subject": …, "role": …, "accounts": …, "operation": …, "resource": …, "status": …,
   "request": …}``

   ``subject`` is the name of a token, never the token, ``tenant`` the one that the request was for, and ``accounts``
   those that the token is bound to, null where it is bound to none. ``status`` is null where the sender went before
   there was an answer. ``request`` is made here; the answer has it as X-Request-Id.
6. Nothing that a client wrote gets into the log but the names in its path, and these only where they have the form of
   names; one that holds the sender's token is left out. Queries, other headers and bodies do not get in at all.
   Requests without a token are not kept: they change nothing, and anybody could fill the log with them. Those with a
   token that is unknown are, as far as :mod:`kuayu.service.rate_limits` says: with ``address``, null for who it is
   and no names. So is the first request in a while that is turned away for coming too fast, and none of the others.
7. A line is written at once and whole, after the answer. What cannot be written is said in the service's own log, and
   the service goes on. A file has mode 0600 and is opened anew where it was moved away, as logrotate does.
"""

import logging
import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import orjson
from fastapi import Request
from fastapi.routing import APIRoute
from starlette._utils import get_route_path
from starlette.routing import BaseRoute
from starlette.types import Message, Scope, Send
from typing_extensions import override

from kuayu.jobs.fair_share import account_of
from kuayu.service import auth, instants
from kuayu.service.auth import Grant, Role
from kuayu.service.problems import Place, ProblemException
from kuayu.service.rate_limits import RateLimitedError, RateLimits
from kuayu.service.settings import Settings

if TYPE_CHECKING:
    from kuayu.service.runtime import Runtime

NOBODY: frozenset[Role] = frozenset()
READERS = frozenset({Role.VIEWER, Role.TENANT, Role.OPERATOR})
WRITERS = frozenset({Role.TENANT, Role.OPERATOR})
DOMAINS = frozenset({Role.DOMAIN})

_PUBLIC = ("getHealth",)

_REGISTERS = ("getDeclaration", "getProblems", "getIndicators")
"""What everybody reads who has a token."""

_READS = (
    *("listDomains", "getDomainIndicators", "listNodes", "getNodeIndicators"),
    *("listLinks", "getLink", "getLinkIndicators"),
    *("getComputeIdentifier", "resolveComputeIdentifier", "listScrapeTargets", "getScrapeTarget"),
    *("listSamples", "getSeries", "getGraph", "followGraph", "getGraphPatch", "listFaults", "followFaults"),
    *(
        "listAllocations",
        "getAllocation",
        "listJobs",
        "listAccounts",
        "streamJobs",
        "getJob",
        "getJobDecision",
        "getJobLogs",
    ),
)
_READS_OF_DOMAINS = ("getDomain", "getNode")

_QUESTIONS = (
    *("computeIndices", "planProbes", "placeJobs", "findParetoFront", "planAllocation", "findRoutes"),
    *("demandTrainings", "rankLayouts", "sizeTasks"),
    *("forecastDemand", "recogniseTrainingPhases", "makeWaveform", "planPeaks", "reserveForTenants"),
    *("planShards", "chooseCollective", "planBackups", "planFailover", "planAdjustments"),
)
"""What is computed from the request. It changes nothing, but takes the service's time, so that viewers may not."""

_WRITES = (
    *("deleteDomain", "deleteNode", "putLink", "deleteLink", "putComputeIdentifier", "deleteComputeIdentifier"),
    *("putScrapeTarget", "deleteScrapeTarget", "postMetrics"),
    *("putAllocation", "deleteAllocation", "putJob", "deleteJob", "postJobLoad"),
)
_WRITES_OF_DOMAINS = (
    *("putDomain", "putNode", "postSamples", "postExposition", "postHeartbeats", "postLogLines"),
    *("postActionResult", "postRunReport", "postRunLogs"),
)

_POLLS_OF_DOMAINS = ("getActions",)
"""What only whoever carries something out asks for: a domain that asks is taken to be at work."""

ROLES: Mapping[str, frozenset[Role]] = {
    **dict.fromkeys(_PUBLIC, NOBODY),
    **dict.fromkeys(_REGISTERS, READERS | DOMAINS),
    **dict.fromkeys(_READS, READERS),
    **dict.fromkeys(_READS_OF_DOMAINS, READERS | DOMAINS),
    **dict.fromkeys(_QUESTIONS, WRITERS),
    **dict.fromkeys(_WRITES, WRITERS),
    **dict.fromkeys((*_WRITES_OF_DOMAINS, *_POLLS_OF_DOMAINS), WRITERS | DOMAINS),
}
"""Who may call each operation, by its identifier."""

WRITES = frozenset({*_WRITES, *_WRITES_OF_DOMAINS})
"""Operations that change something; each call is in the audit log."""

CHANGING = WRITES | {*_POLLS_OF_DOMAINS}
"""Operations after which the service is no longer as it was."""

URGENT = frozenset(
    {"postHeartbeats", "postLogLines", "listFaults", "followFaults", "postActionResult", "postRunReport"}
)
"""Operations by which faults and the states of runs, and what was done about them, are told and read."""

KEEPING_ALIVE = URGENT | {*_POLLS_OF_DOMAINS}
"""Operations whose rate is limited apart from that of all others."""

WRITES_OF_ACCOUNTS = frozenset({"putJob", "deleteJob"})
"""Of these, what a token that is bound to accounts may call."""

METRICS = {"token": READERS, "operator": frozenset({Role.OPERATOR})}
"""Who gets the service's own metrics, by the operator's setting, where not everybody or nobody does."""

EXTENSION = "x-kuayu-roles"
"""Member of an operation of the OpenAPI document that names who may call it."""


def shown(operation: str) -> dict[str, list[str]]:
    """What the OpenAPI document says of an operation's roles; nothing where it needs no token.

    Raises:
        KeyError: The table does not have the operation.
    """
    roles = ROLES[operation]
    return {EXTENSION: [role.value for role in Role if role in roles]} if roles else {}


@dataclass(frozen=True, slots=True)
class Call:
    """An operation that a request is for.

    Attributes:
        operation: Its identifier.
        path: Path of its route, with the names of its parameters.
        names: What stands for these in the path of the request.
    """

    operation: str
    path: str
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    """A request that was let in: whom it speaks for and, unless it is for none of the API's operations, for which."""

    grant: Grant
    call: Call | None


_ADMITTED = "kuayu.admitted"
"""Where the scope of a request holds :class:`AdmittedRequest`."""


_GUESS_ADDRESS = "kuayu.guess-address"
"""Where the scope of a request with an unknown token holds the address that the audit log is to have."""


class Gate:
    """Lets requests in by rate, token, role and domain.

    Args:
        routes: All of the application, in its order.
        settings: What the operator set.
        limits: How fast requests may come.

    Raises:
        KeyError: A route is an operation that the table does not have.
    """

    def __init__(self, routes: Sequence[BaseRoute], settings: Settings, limits: RateLimits) -> None:
        self._settings = settings
        self._limits = limits
        self._routes: dict[str, list[APIRoute]] = {}
        for route in routes:
            if isinstance(route, APIRoute) and route.include_in_schema:
                if route.operation_id not in ROLES:
                    raise KeyError(f"{route.operation_id} is not in kuayu.service.access.ROLES; say who may call it")
                for method in route.methods or ():
                    self._routes.setdefault(method, []).append(route)

    def call(self, scope: Scope) -> Call | None:
        """The operation that a request is for; None where it is for none."""
        path = get_route_path(scope)
        for route in self._routes.get(scope["method"], ()):
            match = route.path_regex.match(path)
            if match is not None:
                return Call(str(route.operation_id), route.path, match.groupdict())
        return None

    async def admit(self, scope: Scope, call: Call | None) -> Grant | None:
        """Let a request in, or not.

        Args:
            scope: Of the request; holds afterwards what was decided.
            call: The operation that it is for.

        Returns:
            Whom it speaks for; None where that is not known and need not be.

        Raises:
            ProblemException: rate-limited, unauthorised, forbidden, or invalid-parameter; overloaded.
        """
        request = Request(scope)
        if call is not None and not ROLES[call.operation]:
            return None
        try:
            grant = await self._identify(request)
        except RateLimitedError:
            raise
        except ProblemException:
            if call is not None:
                raise
            return None  # who answers asks again, where it matters
        # From here on it is known who is refused, which the audit log is to hold.
        scope[_ADMITTED] = AdmittedRequest(grant, call)
        self._limits.check_sender(grant, urgent=call is not None and call.operation in KEEPING_ALIVE)
        if call is None:
            return grant
        grant = auth.acting(request, grant, self._settings)
        scope[_ADMITTED] = AdmittedRequest(grant, call)
        if grant.role not in ROLES[call.operation]:
            raise _beyond_scope(f"the role {grant.role.value} may not call {call.operation}")
        if grant.role is Role.DOMAIN:
            _check_names(
                grant, _IN_HEAD.get(call.operation), (call.names, scope["query_string"]), scope["app"].state.runtime
            )
        if grant.accounts is not None and call.operation in CHANGING:
            await _check_account_in_head(grant, grant.accounts, call, scope["app"].state.runtime)
        return grant

    async def _identify(self, request: Request) -> Grant:
        """What the token of a request is good for.

        Raises:
            ProblemException: rate-limited or unauthorised; overloaded, as long as the keys of an issuer are not known.
        """
        secret = auth.bearer(request) if self._settings.asks_for_tokens else ""
        address = self._limits.address_of(request.scope) if self._settings.asks_for_tokens else ""
        try:
            if secret:
                self._limits.check_guess(address, secret)
                if self._settings.issuer is not None:
                    await self._settings.issuer.prepare(secret)
            grant = auth.identify(request, self._settings)
        except RateLimitedError as error:
            if error.first:
                request.scope[_GUESS_ADDRESS] = address
            raise
        except ProblemException as problem:
            if secret and problem.name == "unauthorised" and self._limits.note_guess(address, secret):
                request.scope[_GUESS_ADDRESS] = address
            self._limits.check_address(address)
            raise
        if secret:
            self._limits.note_good(address, secret)
        return grant


def _beyond_scope(detail: str) -> ProblemException:
    """An operation that is not for the token of a request (RFC 6750, 3.1)."""
    headers = {auth.CHALLENGE: f'{auth.BEARER}, error="insufficient_scope"'}
    return ProblemException("forbidden", detail, headers=headers)


def admitted(scope: Scope) -> AdmittedRequest | None:
    """What was decided about a request; None where nobody is known to have sent it."""
    decided: AdmittedRequest | None = scope.get(_ADMITTED)
    return decided


def grant_of(request: Request, settings: Settings) -> Grant:
    """Whom a request speaks for that was let in for what now answers it.

    Raises:
        ProblemException: unauthorised; forbidden, where something else answers it than what it was let in for.
    """
    decided = admitted(request.scope) or AdmittedRequest(auth.identify(request, settings), None)
    answering = getattr(request.scope.get("route"), "operation_id", None)
    if answering != (None if decided.call is None else decided.call.operation):
        raise ProblemException("forbidden", f"the request was not let in for {answering}")
    return decided.grant


def check_metrics(request: Request, settings: Settings) -> None:
    """See whether who sends a request may have the service's own metrics.

    Raises:
        ProblemException: unauthorised or forbidden.
    """
    allowed = METRICS.get(settings.metrics)
    if allowed is not None and (role := grant_of(request, settings).role) not in allowed:
        raise ProblemException("forbidden", f"the role {role.value} may not have the metrics")


async def check_body(request: Request, load: Callable[[], Any]) -> None:
    """See whether what a body names is the sender's domain's; anybody else's is not looked at.

    Args:
        request: Was let in.
        load: Reads its body as JSON of any shape. What cannot be read is left to whoever reads it for good, as are
            members that stand twice: such a body is refused there as a whole.

    Raises:
        ProblemException: forbidden.
    """
    decided = admitted(request.scope)
    if decided is None or decided.grant.role is not Role.DOMAIN or decided.call is None:
        return
    runtime: Runtime = request.app.state.runtime
    rule = _IN_BODY.get(decided.call.operation)
    await runtime.urgent.run(decided.grant.tenant, _check_loaded, decided.grant, rule, load, runtime)


async def _check_account_in_head(grant: Grant, accounts: AbstractSet[str], call: Call, runtime: "Runtime") -> None:
    """See whether a token that is bound to accounts may call an operation that writes, as far as its path tells.

    Raises:
        ProblemException: forbidden; overloaded.
    """
    if call.operation not in WRITES_OF_ACCOUNTS:
        detail = "a token that is bound to accounts submits and calls off jobs alone"
        raise _beyond_scope(f"{detail}; for {call.operation} use one of the same tenant that is bound to none")
    if call.operation == "deleteJob":
        job = call.names["id"]
        record = await runtime.threads.run(grant.tenant, runtime.jobs.store.record, grant.tenant, job)
        if record is not None and (account := account_of(record.standing.spec)) not in accounts:
            detail = (
                f"the job {job!r} counts for the account {account!r}, and the token is bound to {_listed(accounts)}"
            )
            raise ProblemException("forbidden", f"{detail}; use one for {account!r}")


def settle_account(request: Request, job: dict[str, Any]) -> dict[str, Any]:
    """A job that is submitted, with the account that it counts for where its sender is bound to accounts.

    One that names none counts for ``default``, as everybody's does, if the sender is bound to that among others; else
    for the only account that the sender is bound to.

    Args:
        request: Was let in.
        job: Class JobRequest.

    Raises:
        ProblemException: forbidden.
    """
    decided = admitted(request.scope)
    accounts = None if decided is None else decided.grant.accounts
    if accounts is None or account_of(job) in accounts:
        return job
    if "account" in job:
        detail = f"the job counts for the account {job['account']!r}, and the token is bound to {_listed(accounts)}"
        detail = f"{detail}; name one of these, or use a token for {job['account']!r}"
    elif len(accounts) > 1:
        detail = f"the job names no account, and the token is bound to several; name one of {_listed(accounts)}"
    else:
        return {**job, "account": next(iter(accounts))}
    raise ProblemException("forbidden", detail, [Place("it has to be an account of the token", "/account")])


MAX_LISTED = 10
"""Accounts that a refusal names."""


def _listed(accounts: AbstractSet[str]) -> str:
    names = [repr(name) for name in sorted(accounts)]
    return ", ".join(names if len(names) <= MAX_LISTED else [*names[:MAX_LISTED], "…"])


Named = tuple[str, Any]
"""Kind and name of something that a request is about."""

_Rule = Callable[[Any], Iterator[Named]]


def _check_loaded(grant: Grant, rule: _Rule | None, load: Callable[[], Any], runtime: "Runtime") -> None:
    try:
        value = {} if rule is _nothing else load()
    except ValueError:
        return
    _check_names(grant, rule, value if isinstance(value, dict) else {}, runtime)


def _check_names(grant: Grant, rule: _Rule | None, part: Any, runtime: "Runtime") -> None:
    """See whether a part of a request names what is of the domain alone.

    Raises:
        ProblemException: forbidden.
    """
    if rule is None:
        raise ProblemException("forbidden", "the role domain may send nothing here")
    known: dict[Named, str | None] = {}
    for named in rule(part):
        if not isinstance(named[1], str):
            continue  # it breaks the schema, as who reads it says
        if named not in known:
            known[named] = _domain_of(grant.tenant, named, runtime)
        if known[named] not in {None, grant.domain}:
            raise ProblemException("forbidden", f"the token speaks for the domain {grant.domain!r} alone")


OF_NONE = ""
"""Stands for the domain of what belongs to none."""


def _domain_of(tenant: str, named: Named, runtime: "Runtime") -> str | None:
    """Domain of what is named; None where nothing is known by that name."""
    kind, name = named
    match kind:
        case "domain":
            return str(name)
        case "node" | "device":
            return runtime.watcher.registry.domains(tenant).get(name)
        case "action":
            return runtime.dispatcher.domain_of(tenant, name)
    return OF_NONE


def _nothing(_: Any) -> Iterator[Named]:
    yield from ()


def _path(kind: str) -> _Rule:
    def named(head: tuple[Mapping[str, str], bytes]) -> Iterator[Named]:
        yield kind, head[0]["id"]

    return named


def _query(kind: str) -> _Rule:
    def named(head: tuple[Mapping[str, str], bytes]) -> Iterator[Named]:
        for name in parse_qs(head[1].decode("latin-1"), keep_blank_values=True).get(kind, ()):
            yield kind, name

    return named


def _member(member: str) -> _Rule:
    """A body that names what its member is called."""

    def named(body: Mapping[str, Any]) -> Iterator[Named]:
        yield member, body.get(member)

    return named


def _items(array: str) -> _Rule:
    """Nodes that the items of a batch name, or the subjects of samples."""

    def named(body: Mapping[str, Any]) -> Iterator[Named]:
        items = body.get(array)
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict) and "subject_kind" in item:
                yield str(item["subject_kind"]), item.get("subject")
            elif isinstance(item, dict):
                yield "node", item.get("node")

    return named


_IN_HEAD: Mapping[str, _Rule] = {
    **dict.fromkeys(_REGISTERS, _nothing),
    **dict.fromkeys(_WRITES_OF_DOMAINS, _nothing),
    **dict.fromkeys(("getDomain", "putDomain"), _path("domain")),
    **dict.fromkeys(("getNode", "putNode"), _path("node")),
    "getActions": _query("domain"),
    "postExposition": _query("node"),
}
"""What the path and the query of a request name, by operation."""

_IN_BODY: Mapping[str, _Rule] = {
    "putDomain": _nothing,
    "putNode": _member("domain"),
    "postSamples": _items("samples"),
    "postExposition": _nothing,
    "postHeartbeats": _items("beats"),
    "postLogLines": _items("lines"),
    "postActionResult": _member("action"),
    "postRunReport": _member("domain"),
    "postRunLogs": _member("domain"),
}
"""What the body of a request names, by operation."""


logger = logging.getLogger(__name__)


STANDARD_OUTPUT = "-"
"""Stands for standard output in place of a file's name."""

REQUEST_ID_HEADER = b"x-request-id"

OWNER_ALONE = 0o600

RESOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,255}")
"""What names in paths look like: type Identifier, and compute identifiers, which have colons."""

LEFT_OUT = "?"
"""Stands for what looks otherwise."""


class AuditLog:
    """Where the lines go.

    Args:
        place: Name of a file, or :data:`STANDARD_OUTPUT`.

    Raises:
        OSError: The file cannot be written, or its mode not be set.
    """

    def __init__(self, place: str) -> None:
        self._handler: logging.Handler
        if place == STANDARD_OUTPUT:
            self._handler = _to_standard_output()
        else:
            self._handler = _File(Path(place))
        self._handler.setFormatter(logging.Formatter("%(message)s"))

    def write(
        self,
        decided: AdmittedRequest | None,
        call: Call | None,
        secret: str,
        status: int | None,
        request: str,
        address: str | None,
    ) -> None:
        """Write a line.

        Args:
            decided: Who sent the request; None where nobody knows.
            call: What it was for; None where it was for no operation.
            secret: The token that it came with; empty where there was none.
            status: Of the answer.
            request: Its identifier.
            address: Where it came from, where nobody knows who sent it.
        """
        grant = None if decided is None else decided.grant
        line = {
            "time": instants.to_text(instants.now()),
            "tenant": None if grant is None else grant.tenant,
            "subject": None if grant is None else grant.name,
            "role": None if grant is None else grant.role.value,
            "accounts": None if grant is None or grant.accounts is None else sorted(grant.accounts),
            "operation": None if call is None else call.operation,
            "resource": None if call is None else _resource(call, None if grant is None else secret),
            "status": status,
            "request": request,
        }
        if address is not None:
            line["address"] = address
        text = orjson.dumps(line).decode()
        self._handler.handle(logging.LogRecord(__name__, logging.INFO, "", 0, text, None, None))

    def close(self) -> None:
        """Close the file."""
        self._handler.close()


class _Complaining(logging.Handler):
    """Says in the service's own log what cannot be written."""

    @override
    def handleError(self, record: logging.LogRecord) -> None:
        logger.error("a line of the audit log could not be written: %s", sys.exc_info()[1])


class _File(_Complaining, WatchedFileHandler):
    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8")

    @override
    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, OWNER_ALONE)
        os.fchmod(descriptor, OWNER_ALONE)  # it may have been there with another mode
        return os.fdopen(descriptor, "a", encoding=self.encoding)


class _Standard(_Complaining, logging.StreamHandler):  # type: ignore[type-arg]
    pass


def _to_standard_output() -> logging.Handler:
    return _Standard(sys.stdout)


class Watch:
    """Sees what is answered to a request, and writes a line when that is over.

    Args:
        log: Where to; None to keep none.
        scope: Of the request.
        call: What it is for; None where it is for no operation.
        send: Where the answer goes.

    Attributes:
        recorded: Whether a line is written of a request of a known sender; of each that writes where it is None.
    """

    def __init__(self, log: AuditLog | None, scope: Scope, call: Call | None, send: Send) -> None:
        self._log = log
        self._scope = scope
        self._call = call
        self._send = send
        self._status: int | None = None
        self._request = secrets.token_hex(8)
        self.recorded: bool | None = None

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = [*message.get("headers", ()), (REQUEST_ID_HEADER, self._request.encode())]
            message = {**message, "headers": headers}
        await self._send(message)

    def end(self) -> None:
        """The request is over."""
        if self._log is None:
            return
        decided, address = admitted(self._scope), self._scope.get(_GUESS_ADDRESS)
        if decided is None:
            recorded = address is not None
        else:
            recorded = self._call is not None and (
                self._call.operation in WRITES if self.recorded is None else self.recorded
            )
        if recorded:
            secret = auth.bearer(Request(self._scope))
            self._log.write(decided, self._call, secret, self._status, self._request, address)


def _resource(call: Call, secret: str | None) -> str:
    """The path of a request, of its names those that are names; none of them where it is not known who sends it."""
    result = call.path
    for parameter, name in call.names.items():
        fit = secret is not None and RESOURCE_NAME.fullmatch(name) and not (secret and secret in name)
        result = result.replace(f"{{{parameter}}}", name if fit else LEFT_OUT)
    return result
