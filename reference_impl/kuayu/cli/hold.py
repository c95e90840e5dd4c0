"""``kuayu hold``: the controller of a domain, until told to end."""

import json
import logging
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kuayu.cli.probe import USAGE, Token, fail

if TYPE_CHECKING:
    from kuayu.engine.controller import DomainController
    from kuayu.engine.holdings import Fence, Holding, Holdings, Pools


def hold(
    *,
    inventory: Annotated[str, typer.Argument(metavar="FILE", help="TOML file with the devices; - for stdin.")],
    url: Annotated[str, typer.Option(metavar="URL", help="Base URL of the service; /v1 lies under it.")],
    domain: Annotated[str, typer.Option(metavar="ID", help="Domain whose devices they are.")],
    journal: Annotated[
        Path, typer.Option(metavar="FILE", help="File with what is promised and held; made where there is none.")
    ],
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each change.")] = False,
) -> None:
    """Hold devices of a domain and fence its nodes as a service asks, and say what became of it.

    FILE has a table for each kind of accelerator, [pools.a800], and in it a line for each node, "gy-001" = 8.

    What is promised or fenced is in the journal before the service hears of it, and outlives kill -9. A line is printed
    when devices are taken or given back, nodes are fenced or lifted, or a job is to be stopped, and at the beginning
    one for all that is held and fenced. No device of a fenced node is given out.

    It starts and stops nothing itself: whoever runs jobs follows these lines. What it does not know, it refuses.
    What is held under a lease is given back when the service has not answered for so long; leases are kept only while
    this command runs.
    """
    from kuayu.cli.inventory import read_inventory
    from kuayu.client import Client, ClientError
    from kuayu.engine.controller import DomainController
    from kuayu.engine.journal import Journal, JournalError
    from kuayu_schemas import schema

    if schema.errors("Domain", {"id": domain}):
        raise fail("--domain is no identifier", "letters, digits and ._- only, at most 128", USAGE)
    if not url.startswith(("http://", "https://")):
        raise fail(f"--url: {url!r} is no http or https URL", "write it as http://HOST:PORT", USAGE)
    pools = read_inventory(inventory)
    logging.basicConfig(level=logging.INFO, format="%(levelname)-8s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        with closing(Journal(journal, domain)) as kept, Client(url, token=token, attempts=1) as client:
            said = _Lines(as_json=as_json)
            controller = DomainController(client, domain, pools, journal=kept, hands=said)
            typer.echo(f"kuayu hold for {domain} at {url}: {_inventory(pools)}", err=True)
            _run(controller)
            typer.echo(f"{_counted(controller.holdings)}, as {journal} says for the next start", err=True)
    except JournalError as error:
        raise fail(error.cause, error.hint) from error
    except ClientError as error:
        raise fail(error.cause, error.hint) from error


class _Lines:
    """Prints what changes."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def take(self, holding: "Holding") -> None:
        """These devices are held for a job."""
        self._held("taken", holding)

    def give_back(self, holding: "Holding") -> None:
        """These devices are not held any more."""
        self._held("given back", holding)

    def fence(self, fence: "Fence") -> None:
        """Nothing may run on these nodes."""
        self._fenced("fenced", fence)

    def lift(self, fence: "Fence") -> None:
        """These nodes may be used again."""
        self._fenced("lifted", fence)

    def stop(self, job: str, cause: str | None) -> None:
        """This job is to be stopped."""
        self._print({"change": "stop", "job": job, "cause": cause}, f"to be stopped: {job}{_because(cause)}")

    def _held(self, what: str, holding: "Holding") -> None:
        said = {"change": what.replace(" ", "_"), "action": holding.action, "job": holding.job}
        where = ", ".join(f"{count} on {node}" for node, count in holding.nodes.items())
        self._print(
            {**said, "accelerator": holding.accelerator, "nodes": _shares(holding.nodes)},
            f"{what} for {holding.job or 'a job'}: {holding.accelerator}, {where}",
        )

    def _fenced(self, what: str, fence: "Fence") -> None:
        said = {"change": what, "action": fence.action, "cause": fence.cause, "nodes": _shares(fence.nodes)}
        why = _because(fence.cause) if what == "fenced" else ""
        self._print(said, f"{what}: {', '.join(fence.nodes)}{why}")

    def _print(self, said: Mapping[str, Any], line: str) -> None:
        typer.echo(json.dumps(said) if self._as_json else line)


def _shares(nodes: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{"node": node, "devices": count} for node, count in nodes.items()]


def _because(cause: str | None) -> str:
    return f" ({cause})" if cause else ""


class _Stopped(Exception):
    """The controller was told to stop while it waited."""


def _run(controller: "DomainController") -> None:
    """Carry out what is asked until SIGTERM or SIGINT; what has been begun is finished."""
    stopped = threading.Event()

    def stop(*_: object) -> None:
        if controller.idle:
            raise _Stopped  # a service may let it wait for long, and nothing is under way
        stopped.set()

    with _handled(stop):
        try:
            controller.run(stopped)
        except _Stopped:
            return


@contextmanager
def _handled(stop: Any) -> Iterator[None]:
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(each, stop) for each in signals]
    try:
        yield
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)


def _inventory(pools: "Pools") -> str:
    """The devices of a domain in words."""
    kinds = (f"{sum(nodes.values())} of {kind} on {len(nodes)} nodes" for kind, nodes in pools.items())
    return ", ".join(kinds)


def _counted(holdings: "Holdings") -> str:
    """What is held in words."""
    devices = sum(sum(each.nodes.values()) for each in holdings.held)
    fenced = len({node for fence in holdings.fences for node in fence.nodes})
    also = f", {fenced} nodes are fenced" if fenced else ""
    return f"{devices} devices are held or promised in {len(holdings.held)} pieces{also}"
