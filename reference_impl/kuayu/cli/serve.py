"""``kuayu serve``: the reference service on this host.

1. Serving an application on a socket until SIGTERM or SIGINT.
"""

import errno
import ipaddress
import os
import signal
import socket
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typing_extensions import override

from kuayu.scheduling import Scheduler
from kuayu_schemas.models import Durability

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastapi import FastAPI
    from starlette.types import ASGIApp

    from kuayu.service.access import AuditLog
    from kuayu.service.account_store import AccountFile
    from kuayu.service.edge import Edge
    from kuayu.service.token_issuer import TokenIssuer

GRACE_S = 5
"""Seconds that requests under way, open streams among them, have to end once the program is told to stop."""

KEEP_ALIVE_S = 65
"""Seconds for which a connection stays open without a request: longer than clients keep theirs (httpx: 5 s) and proxies
before a service (nginx: 60 s). Whoever sends a request while the other end closes the connection cannot know whether it
was carried out (RFC 9112, 9.3.1), so it is not the service that closes first."""


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; nobody is let in before :func:`run`.

    Raises:
        OSError: There is no such address, or another program has the port.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except UnicodeError as error:
        raise OSError(errno.EINVAL, "no name of a host") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


def is_own(listener: socket.socket, host: str, port: int | None) -> bool:
    """Whether an address of another program is that of this listener itself."""
    bound = ipaddress.ip_address(listener.getsockname()[0])
    if port != listener.getsockname()[1]:
        return False
    try:
        result = {
            ipaddress.ip_address(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        }
    except OSError:
        return False
    return bound in result or (bound.is_unspecified and any(entry.is_loopback or entry == bound for entry in result))


def shown(host: str) -> str:
    """A host as it stands in a URL (RFC 3986, 3.2.2)."""
    return f"[{host}]" if ":" in host else host


def run(
    app: "ASGIApp",
    listener: socket.socket,
    log_level: str,
    ending: Callable[[], None] = lambda: None,
    *,
    grace_s: int = GRACE_S,
    **options: Any,
) -> None:
    """Serve until told to stop; returns when the application has ended in order.

    Args:
        app: What answers.
        listener: Where.
        log_level: Of the server.
        ending: Called when the server is told to stop, before it waits for answers under way.
        grace_s: Seconds that these have to end.
        options: Further ones of uvicorn.
    """
    import uvicorn

    class Server(uvicorn.Server):
        """Ends streams and waiting when it is told to stop; otherwise it would wait for readers to go by themselves."""

        @override
        async def shutdown(self, sockets: "list[socket.socket] | None" = None) -> None:
            ending()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        **({"http": "httptools"} | options),
        loop="uvloop",
        ws="none",
        access_log=False,
        proxy_headers=False,  # what a client writes into them is not believed; behind a proxy the service reads them
        log_level=log_level,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=grace_s,
    )
    # uvicorn raises the signal that stopped it once more when it is done; by then it has been obeyed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    Server(config).run(sockets=[listener])


GRACE = 10
"""Seconds that requests under way have to end once the service is told to stop."""

PRIVATE = 0o077
"""What is taken from the mode of files that the service makes: they are its owner's alone."""

OTHER_FILES = 256
"""Open files besides connections: the database, workers, scrapes."""

SWITCH_INTERVAL = 0.001
"""Seconds after which a thread that waits for the interpreter gets it. Python's 5 ms would have the writer wait that
long for a busy event loop each time it comes back from the database."""

COLLECTION_THRESHOLD = 50_000
"""Objects that are made before the garbage collector looks for cycles. A large batch alone makes more than Python's
2 000, none of them in a cycle."""


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any that is free.")] = 8080,
    database: Annotated[
        str, typer.Option(metavar="URL", help="sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME.")
    ] = "sqlite:///kuayu.db",
    token: Annotated[
        list[str] | None, typer.Option(metavar="TENANT=TOKEN", help="A tenant's bearer token; may be repeated.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with one TENANT=TOKEN [role=ROLE] [account=ACCOUNT] a line; read again on changes.",
        ),
    ] = None,
    jwt_issuer: Annotated[
        str | None, typer.Option(metavar="ISS", help="Whose JSON Web Tokens are taken too, as their claim iss has it.")
    ] = None,
    jwt_audience: Annotated[
        str | None, typer.Option(metavar="AUD", help="What these tokens have to be for, as their claim aud has it.")
    ] = None,
    jwt_keys: Annotated[
        str | None,
        typer.Option(
            metavar="URL|FILE",
            help="The issuer's JSON Web Key Set; without, it is where its metadata say.",
        ),
    ] = None,
    jwt_claim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT=CLAIM", help="Claim for tenant, role, domain or account; a.b for b in a; may be repeated."
        ),
    ] = None,
    jwt_leeway: Annotated[
        float, typer.Option(min=0, max=300, metavar="SECONDS", help="By which the issuer's clock may differ.")
    ] = 30.0,
    tokens: Annotated[
        str, typer.Option(envvar="KUAYU_TOKENS", hidden=True, help="TENANT=TOKEN, several with commas between.")
    ] = "",
    scrape_allow: Annotated[
        list[str] | None, typer.Option(metavar="HOST|CIDR", help="What may be scraped; may be repeated.")
    ] = None,
    durability: Annotated[
        Durability, typer.Option(help="Which crash an acknowledged write survives.")
    ] = Durability.process,
    retention: Annotated[float, typer.Option(min=60, metavar="SECONDS", help="How long samples are kept.")] = 604_800,
    rollup_retention: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long series of older samples are kept; 0 for none.")
    ] = 34_560_000,
    max_resources: Annotated[
        int, typer.Option(min=1, metavar="N", help="Resources that a tenant may have registered.")
    ] = 1_000_000,
    max_resource: Annotated[
        int, typer.Option(min=1_000, metavar="CHARACTERS", help="Size of one of them, as JSON.")
    ] = 1_048_576,
    max_resources_together: Annotated[
        int, typer.Option(min=1_000, metavar="CHARACTERS", help="Size of all of a tenant's, with held versions.")
    ] = 536_870_912,
    graph_changes: Annotated[
        int, typer.Option(min=1, metavar="N", help="Changes of the graph from which streams can be resumed.")
    ] = 100_000,
    max_streams: Annotated[
        int, typer.Option(min=1, metavar="N", help="Readers of change streams that are served at once.")
    ] = 256,
    tls_certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate chain in PEM; with --tls-key, HTTPS is served.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Private key in PEM.")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="TLS ends at a proxy: serve plain HTTP on other addresses too.")
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="WHO", help="Who gets /metrics: open (default on loopback), token (elsewhere), operator or off."
        ),
    ] = None,
    max_connections: Annotated[
        int, typer.Option(min=1, metavar="N", help="Connections that there may be at once.")
    ] = 4_096,
    max_connections_per_address: Annotated[
        int, typer.Option(min=1, metavar="N", help="Connections from one address; behind a proxy all are from its own.")
    ] = 1_024,
    max_request_rate: Annotated[
        float, typer.Option(min=0, metavar="N", help="Requests a second of one account or token; 0 for no limit.")
    ] = 1_000.0,
    max_request_burst: Annotated[
        float | None, typer.Option(min=1, metavar="N", help="Requests of it at once; five seconds of these by default.")
    ] = None,
    max_token_guesses: Annotated[
        float, typer.Option(min=0, metavar="N", help="Unknown tokens from one address a minute; 0 for no limit.")
    ] = 60.0,
    accounts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with one [TENANT/]ACCOUNT [weight=W] [quota=HOURS] [rate=N] a line; read again on changes.",
        ),
    ] = None,
    half_life: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="After which what accounts have used counts half.")
    ] = 604_800,
    scheduler: Annotated[
        Scheduler, typer.Option(help="What places jobs: the rule, or the rule with constants that PPO sets.")
    ] = Scheduler.RULE,
    prepare: Annotated[
        bool, typer.Option(help="Begin a process for computations at once; else the first of them takes seconds more.")
    ] = True,
    pass_records: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keeps the inputs of the last decisions about jobs, to make them again."),
    ] = None,
    audit_log: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", help="Keeps who wrote what and who was refused, as JSON lines; - for stdout."),
    ] = None,
    log_level: Annotated[str, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")] = "info",
) -> None:
    """Serve the reference implementation until SIGTERM or SIGINT.

    With any token the service has several tenants, who do not see each other; the tokens may also stand in the
    environment variable KUAYU_TOKENS, as TENANT=TOKEN with commas between. Without tokens it serves this host alone;
    on any other address than loopback it needs tokens, and TLS or a proxy that ends it. In a file a token may stand as
    TENANT=sha256:HEX, the SHA-256 of the token, and after it role=viewer (reads), role=tenant (reads and writes, the
    default), role=domain domain=DOMAIN (does what the agent of that domain does) or role=operator (may act for any
    tenant, by the header Kuayu-Tenant), account=ACCOUNT (submits and calls off jobs of that account alone, and writes
    nothing else; may be repeated), name=NAME and expires=INSTANT. With --jwt-issuer and --jwt-audience signed
    tokens of an OpenID provider are taken too (RS256, ES256, EdDSA), by their claims tenant, roles and domain.
    The audit log has names, never tokens. Metrics of the service itself are under /metrics.
    """
    # Before NumPy is imported: its threads would spin after each small product of the recogniser, and keep a processor
    # from all else. Workers have one thread too.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    from kuayu.service.app import create_app
    from kuayu.service.auth import TokenFile
    from kuayu.service.edge import Edge
    from kuayu.service.rate_limits import BURST_SECONDS, RateLimit
    from kuayu.service.scraper import AllowList
    from kuayu.service.settings import OperatorFileError, Settings
    from kuayu.service.storage.database import DatabaseError, open_database
    from kuayu.service.storage.resources import Quota

    if log_level not in {"debug", "info", "warning", "error"}:
        _fail(f"there is no log level {log_level!r}", "use debug, info, warning or error")
    allowed = tuple(scrape_allow or ())
    try:
        AllowList.parse(allowed)
    except ValueError as error:
        _fail(f"--scrape-allow: {error}", "give host names, addresses, or networks such as 10.0.0.0/8")
    if metrics not in {None, "open", "token", "operator", "off"}:
        _fail(f"--metrics cannot be {metrics!r}", "give --metrics open, token, operator or off")
    given = _read_tokens([*(token or ()), *tokens.split(",")])
    try:
        in_file = None if token_file is None else TokenFile(token_file)
    except OperatorFileError as error:
        _fail(str(error), "give a file with one TENANT=TOKEN in each line")
    if in_file is not None and not in_file.tenants:
        _fail(f"there is no token in {token_file}", "give a file with one TENANT=TOKEN in each line")
    issuer = _token_issuer(jwt_issuer, jwt_audience, jwt_keys, jwt_claim or [], jwt_leeway)
    listener = _listen(host, port)
    local = ip_address(listener.getsockname()[0]).is_loopback
    _check_exposure(local, bool(given or in_file or issuer), bool(tls_certificate and tls_key), behind_proxy)
    if bool(tls_certificate) != bool(tls_key):
        _fail("TLS needs a certificate and its key", "give both --tls-certificate and --tls-key")
    if in_file is not None and in_file.exposed:
        if not local:
            _fail(f"others than its owner and our group may read {token_file}", f"chmod 600 {token_file}")
        typer.echo(f"note  others than its owner and our group may read {token_file}: chmod 600 {token_file}", err=True)
    os.umask(PRIVATE)
    settings = Settings(
        database=database,
        tokens=given,
        token_file=in_file,
        issuer=issuer,
        metrics=metrics or ("open" if local else "token"),  # type: ignore[arg-type]
        scrape_allow=allowed,
        durability=durability,
        retention=retention,
        rollup_retention=rollup_retention,
        scheduler=scheduler,
        prepare=prepare,
        quota=Quota(max_resources, max_resource, max_resources_together),
        graph_changes=graph_changes,
        max_streams=max_streams,
        accounts=None if accounts is None else _account_file(accounts),
        half_life=half_life,
        pass_records=pass_records,
        audit_log=None if audit_log is None else _open_audit_log(audit_log),
        request_limit=RateLimit(max_request_rate, max_request_burst or max(1.0, BURST_SECONDS * max_request_rate))
        if max_request_rate
        else None,
        guess_limit=RateLimit(max_token_guesses / 60, max(1.0, max_token_guesses)) if max_token_guesses else None,
        behind_proxy=behind_proxy,
    )
    try:
        opened = open_database(settings.database, settings.durability)
    except DatabaseError as error:
        _fail(error.cause, error.hint)
    address = f"http{'s' if tls_key else ''}://{host}:{listener.getsockname()[1]}"
    tenants = settings.tenants
    alone = "" if settings.asks_for_tokens else "; without tokens it serves this host alone"
    others = "" if issuer is None else f" and those of {issuer.name}"
    typer.echo(f"kuayu serves {address} from {opened.shown}, {len(tenants) or 'no'} tenants{others}{alone}")
    edge = Edge(connections=max_connections, per_address=max_connections_per_address)
    _run(create_app(settings, opened), listener, log_level, edge, (tls_certificate, tls_key))


def _account_file(path: Path) -> "AccountFile":
    from kuayu.service.account_store import AccountFile
    from kuayu.service.settings import OperatorFileError

    try:
        return AccountFile(path)
    except OperatorFileError as error:
        _fail(str(error), "give a file with one [TENANT/]ACCOUNT [weight=W] [quota=HOURS] [rate=N] in each line")


def _token_issuer(
    name: str | None, audience: str | None, keys: str | None, claims: list[str], leeway: float
) -> "TokenIssuer | None":
    if name is None and audience is None and keys is None:
        if claims:
            _fail("claims are those of an issuer's tokens", "give --jwt-issuer and --jwt-audience too")
        return None
    if not (name and audience) or keys == "":
        hint = "give --jwt-issuer and --jwt-audience, and --jwt-keys where the issuer has no OpenID metadata"
        _fail("tokens of an issuer need its name and an audience", hint)
    from kuayu.service.token_issuer import KeySetError, KeyStore, TokenIssuer, read_claims

    try:
        return TokenIssuer(name, audience, KeyStore(keys, name), read_claims(claims), leeway)
    except KeySetError as error:
        where = "--jwt-issuer without --jwt-keys" if keys is None else "--jwt-keys"
        _fail(f"{where}: {error}", "give the issuer's jwks_uri with --jwt-keys, or a file of its content")
    except ValueError as error:
        _fail(f"--jwt-claim: {error}", "for example --jwt-claim role=realm_access.roles")


def _open_audit_log(place: str) -> "AuditLog":
    from kuayu.service.access import AuditLog

    try:
        return AuditLog(place)
    except OSError as error:
        _fail(f"cannot write the audit log {place}: {error.strerror}", "give a file that can be written, or -")


def _check_exposure(local: bool, tokens: bool, tls: bool, behind_proxy: bool) -> None:  # noqa: FBT001 - four yes or no
    """Refuse to serve other hosts without knowing who they are, or in the clear."""
    if not local and not tokens:
        _fail(
            "without tokens the service listens on loopback alone",
            "give --token-file FILE, or --host 127.0.0.1",
        )
    if not local and not (tls or behind_proxy):
        _fail(
            "on this address tokens would go over the network in the clear",
            "give --tls-certificate and --tls-key, or --behind-proxy where a proxy ends TLS",
        )


def _run(
    app: "FastAPI",
    listener: "socket.socket",
    log_level: str,
    edge: "Edge",
    tls: "tuple[Path | None, Path | None]",
) -> None:
    import gc
    import sys

    from kuayu.service.edge import protocol

    _allow_files(edge.connections)
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.set_threshold(COLLECTION_THRESHOLD, 20, 50)

    def ending() -> None:
        app.state.runtime.end_waiting()  # there is none before the service has begun

    files = {"ssl_certfile": tls[0], "ssl_keyfile": tls[1]}
    run(app, listener, log_level, ending, grace_s=GRACE, http=protocol(edge), **files)


def _allow_files(connections: int) -> None:
    """Let the process have as many open files as connections need, as far as the system does."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        hint = "choose another address or port, or stop what has it"
        _fail(f"cannot listen on {host}:{port}: {error.strerror}", hint)
    return listener


def _read_tokens(entries: "Iterable[str]") -> dict[str, str]:
    """Tenant of each token."""
    result: dict[str, str] = {}
    for entry in entries:
        if not entry.strip():
            continue
        tenant, separator, secret = entry.strip().partition("=")
        if not (tenant and separator and secret):
            _fail("a token is given as TENANT=TOKEN", "for example --token blue=8f2c…")
        if result.setdefault(secret, tenant) != tenant:
            _fail(f"the tenants {result[secret]} and {tenant} have the same token", "give each its own")
    return result


def _fail(cause: str, hint: str) -> NoReturn:
    typer.echo(f"error {cause}\nhint  {hint}", err=True)
    raise typer.Exit(1)
