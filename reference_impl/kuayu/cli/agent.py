"""``kuayu agent``: the aggregator of a domain, until told to stop."""

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kuayu.cli.terminal import USAGE, fail
from kuayu_schemas.models import Durability

if TYPE_CHECKING:
    from kuayu.engine.agent.settings import AgentSettings

MAX_WAIT_SECONDS = 1e9
"""More seconds than any wait may have."""
LAST_PORT = 65_535
PORTS = {"http": 80, "https": 443}
VARIABLE = "KUAYU_SENDER_TOKENS"
HINT = "give the token that senders show; leave it out altogether where everyone may send"
_TOKEN = re.compile(r"[\x21-\x7e]+")
LEVELS = ("debug", "info", "warning", "error")


def agent(
    *,
    url: Annotated[str, typer.Option(metavar="URL", help="Base URL of the service; /v1 lies under it.")],
    domain: Annotated[str, typer.Option(metavar="ID", help="Domain that the agent and its spool belong to.")],
    spool: Annotated[Path, typer.Option(metavar="FILE", help="File in which samples wait; created if there is none.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any that is free.")] = 8090,
    token: Annotated[
        str | None, typer.Option(metavar="T", envvar="KUAYU_TOKEN", help="Bearer token for the service.")
    ] = None,
    sender_token: Annotated[
        list[str] | None,
        typer.Option(
            metavar="T",
            envvar=VARIABLE,
            help="Bearer token that senders must show; may be repeated, or several with commas or blanks between,"
            " also in the environment. None is asked for where none is given, and"
            " whoever reaches the agent then speaks to the service with the agent's token.",
        ),
    ] = None,
    spool_limit: Annotated[
        str, typer.Option(metavar="SIZE", help="Most that waits: 500MB, 2GiB, 1000000samples.")
    ] = "1GiB",
    durability: Annotated[
        Durability, typer.Option(help="Which crash an acknowledged sample survives.")
    ] = Durability.process,
    batch: Annotated[int, typer.Option(metavar="N", min=1, help="Most samples that are sent at once.")] = 10_000,
    linger: Annotated[
        float, typer.Option(metavar="S", min=0.01, max=10, help="Seconds that samples wait for others to travel with.")
    ] = 0.5,
    hold: Annotated[
        float,
        typer.Option(metavar="S", min=0, help="Seconds for which samples of a subject that is unknown are sent again."),
    ] = 120.0,
    thin: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=0,
            help="Downsample to one sample of a subject every S seconds, except where it shows trouble.",
        ),
    ] = 0.0,
    drain: Annotated[
        float, typer.Option(metavar="S", min=0, help="Seconds to deliver what waits when the agent stops.")
    ] = 10.0,
    log_level: Annotated[str, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")] = "info",
) -> None:
    """Take samples of a domain's nodes as a service does, and forward them to a service, also over an outage.

    Samples are acknowledged when they are in the spool, and leave it when the service has acknowledged them; neither an
    outage nor kill -9 loses or doubles one. Everything but samples is handed on to the service. Metrics of the agent
    itself are under /metrics.
    """
    from kuayu.engine.agent.settings import AgentSettings, SpoolLimit
    from kuayu_schemas import schema

    if log_level not in LEVELS:
        raise fail(f"there is no log level {log_level!r}", f"use {', '.join(LEVELS)}", USAGE)
    if schema.errors("Domain", {"id": domain}):
        raise fail("--domain is not a valid identifier", "letters, digits and ._- only, at most 128", USAGE)
    if not _is_base(url):
        raise fail(f"--url {url!r} is not the address of a service", "write it as http://HOST:PORT", USAGE)
    for name, seconds in (("linger", linger), ("hold", hold), ("thin", thin), ("drain", drain)):
        if not 0 <= seconds <= MAX_WAIT_SECONDS:
            raise fail(
                f"--{name} {seconds} is not a valid time", f"give seconds, at most {MAX_WAIT_SECONDS:.0e}", USAGE
            )
    if token is not None and not _TOKEN.fullmatch(token):
        raise fail("--token is not a bearer token", "it has visible ASCII characters only, and at least one", USAGE)
    try:
        limit = SpoolLimit.parse(spool_limit)
    except ValueError as error:
        raise fail(f"--spool-limit: {error}", "write it as 500MB, 2GiB or 1000000samples", USAGE) from error
    settings = AgentSettings(
        url=url,
        domain=domain,
        spool=spool,
        limit=limit,
        token=token,
        tokens=dict.fromkeys(_sender_tokens(sender_token), domain),
        durability=durability,
        batch=batch,
        linger=linger,
        hold=hold,
        thin=thin,
        drain=drain,
    )
    _serve(settings, host, port, log_level)


def _serve(settings: "AgentSettings", host: str, port: int, log_level: str) -> None:
    import httpx

    from kuayu.cli.serve import is_own, listen, run, shown
    from kuayu.engine.agent.spool import Spool, SpoolError

    try:
        listener = listen(host, port)
    except OSError as error:
        hint = "choose another address or port, or stop what has it"
        raise fail(f"cannot listen on {shown(host)}:{port}: {error.strerror}", hint) from error
    service = httpx.URL(settings.url)
    if is_own(listener, service.host, service.port or PORTS[service.scheme]):
        raise fail(f"--url {settings.url} is the agent itself", "name the service, or choose another --port", USAGE)
    try:
        spool = Spool(settings.spool, settings.domain, settings.limit, settings.durability)
    except SpoolError as error:
        raise fail(error.cause, error.hint) from error
    from kuayu.engine.agent.app import Agent, create_app

    logging.basicConfig(level=log_level.upper(), format="%(levelname)-8s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    address = f"http://{shown(host)}:{listener.getsockname()[1]}"
    typer.echo(f"kuayu agent of {settings.domain} at {address} for {settings.url}, {spool.level.samples} samples wait")
    app = create_app(settings, spool)
    running: Agent = app.state.agent
    run(app, listener, log_level, ending=running.proxy.end_streams)
    left, refused = spool.level.samples, running.metrics.refused()
    said = f"{left} samples stay in {settings.spool} for the next start" if left else "all samples were forwarded"
    typer.echo(f"{said}; the service refused {refused} samples for good" if refused else said)


def _sender_tokens(given: list[str] | None) -> list[str]:
    """Tokens of senders, as they are given by options or the environment.

    A variable that is set and names none is taken for a mistake, since it would let everyone in.
    """
    result = re.split(r"[,\s]+", " ".join(given or ()).strip(", \t\n"))
    tokens = [token for token in result if token]
    if any(not value.strip(", ") for value in given or ()) and not (tokens and VARIABLE in os.environ):
        raise fail("a --sender-token is blank", HINT, USAGE)
    if not tokens and VARIABLE in os.environ:
        raise fail(f"{VARIABLE} is set and names no token", HINT, USAGE)
    if not all(map(_TOKEN.fullmatch, tokens)):
        raise fail("a --sender-token is not a bearer token", "it has visible ASCII characters only", USAGE)
    return tokens


def _is_base(url: str) -> bool:
    """Whether a URL can be the base of a service's."""
    import httpx

    try:
        parsed = httpx.URL(url)
        parsed.host.encode("idna")  # as the system will look it up
    except (httpx.InvalidURL, UnicodeError):
        return False
    if parsed.port is not None and not 0 < parsed.port <= LAST_PORT:
        return False
    return parsed.scheme in {"http", "https"} and bool(parsed.host) and not parsed.query and not parsed.fragment
