"""``kuayu hold`` and ``kuayu engine``: the controller of a domain, and the engine that runs its jobs.

1. ``kuayu hold`` controls a domain until told to end.
2. ``kuayu engine`` checks what starts and watches the processes of jobs in a domain, and says what it lacks here.
"""

import json
import logging
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from kuayu.cli.terminal import USAGE, Token, fail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kuayu.engine.runs.protocol import Finding

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)
console = Console(highlight=False)


@app.callback()
def parts() -> None:
    """Check what runs jobs in a domain."""


@app.command()
def check(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Engine: local, slurm, ray or kubernetes.")],
    directory: Annotated[
        Path, typer.Option(metavar="DIR", help="Where it keeps its runs; nothing is written there.")
    ] = Path("kuayu-data/engine"),
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Option of the engine, lists and mappings as JSON; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """See whether an engine has what it needs, without starting anything. It ends with 1 where something is missing.

    kuayu engine check local --option 'nodes={"n1": 8, "n2": 8}'

    kuayu engine check slurm --directory /shared/kuayu --option partition=gpu
    """
    from kuayu.cli.data_directory import option_value
    from kuayu.engine.runs import registry
    from kuayu.engine.runs.protocol import EngineError, Finding

    if name not in registry.names():
        raise fail(f"there is no engine {name}", f"engines are {', '.join(registry.names())}", USAGE)
    texts = _options(option or ())
    try:
        known = {key: str(parameter.annotation) for key, parameter in registry.options(name).items()}
        if unknown := sorted(texts.keys() - known.keys()):
            raise fail(f"the engine {name} has no option {unknown[0]}", _forms(known), USAGE)
        given = {key: option_value(text, known[key]) for key, text in texts.items()}
        try:
            findings = registry.find(name, directory, **given).check()
        except (TypeError, ValueError, AttributeError) as error:
            raise fail(f"the engine {name} cannot take these options: {error}", _forms(known), USAGE) from error
    except EngineError as error:
        findings = [Finding("engine", present=False, detail=error.cause, hint=error.hint)]
    if as_json:
        _print_json(name, findings)
    else:
        _show(findings)
    if not all(finding.present for finding in findings):
        raise typer.Exit(1)


def _options(given: "Sequence[str]") -> dict[str, str]:
    """Options by name, as they were typed."""
    options: dict[str, str] = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not separator or not key.isidentifier():
            raise fail(f"--option {text!r} is not of the form KEY=VALUE", "write it as partition=gpu", USAGE)
        options[key] = value
    return options


FORMS = {
    "Mapping[str, int]": '{"NAME": NUMBER}',
    "Mapping[": '{"NAME": "TEXT"}',
    "Sequence[str]": '["TEXT"]',
    "Sequence[": "[{}]",
    "Path": "FILE",
    "str": "TEXT",
    "int": "NUMBER",
}
"""How an option is written, by what its annotation holds; the first that it holds counts."""


def _forms(known: Mapping[str, str]) -> str:
    """How the options of an engine are written."""
    forms = {
        key: next((FORMS[part] for part in FORMS if part in annotation), "VALUE") for key, annotation in known.items()
    }
    return f"its options are {', '.join(f'{key}={form}' for key, form in forms.items())}"


def _print_json(name: str, findings: "Sequence[Finding]") -> None:
    from dataclasses import asdict

    content = {"engine": name, "findings": [asdict(finding) for finding in findings]}
    typer.echo(json.dumps(content, ensure_ascii=False, indent=2))


def _show(findings: "Sequence[Finding]") -> None:
    """Print what was looked at, what was found, and what to do about what is missing."""
    from kuayu.cli.terminal import plain_table

    table = plain_table("what", "is there", "found")
    for finding in findings:
        table.add_row(escape(finding.subject), "yes" if finding.present else "[bold red]no[/]", escape(finding.detail))
    console.print(table)
    for finding in findings:
        if not finding.present:
            console.print(f"[bold red]{escape(finding.subject)}[/] {escape(finding.detail)}", soft_wrap=True)
            console.print(f"[dim]hint[/]  {escape(finding.hint)}", soft_wrap=True)


if TYPE_CHECKING:
    from kuayu.engine.controller import DomainController
    from kuayu.engine.holdings import Fence, Holding, Holdings, Pools


def hold(
    *,
    inventory: Annotated[str, typer.Argument(metavar="FILE", help="TOML file with the devices; - for stdin.")],
    url: Annotated[str, typer.Option(metavar="URL", help="Base URL of the service; /v1 lies under it.")],
    domain: Annotated[str, typer.Option(metavar="ID", help="Domain whose devices they are.")],
    journal: Annotated[
        Path, typer.Option(metavar="FILE", help="File with what is prepared and allocated; created if there is none.")
    ],
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each change.")] = False,
) -> None:
    """Hold devices of a domain and fence its nodes as a service asks, and say what became of it.

    FILE has a table for each kind of accelerator, [pools.a800], and in it a line for each node, "gy-001" = 8.

    What is promised or fenced is in the journal before the service hears of it, and outlives kill -9. A line is printed
    when devices are taken or given back, nodes are fenced or lifted, or a job is to be stopped, and at the beginning
    one for all that is held and fenced. No device of a fenced node is given out.

    It starts and stops nothing itself: whoever runs jobs follows these lines, or runs kuayu domain run in its place.
    What it does not know, it refuses.
    What is held under a lease is given back when the service has not answered for so long; leases are kept only while
    this command runs.
    """
    from kuayu.cli.domain import read_inventory
    from kuayu.client import Client, ClientError
    from kuayu.engine.controller import DomainController
    from kuayu.engine.holdings import Journal, JournalError
    from kuayu_schemas import schema

    if schema.errors("Domain", {"id": domain}):
        raise fail("--domain is not a valid identifier", "letters, digits and ._- only, at most 128", USAGE)
    if not url.startswith(("http://", "https://")):
        raise fail(f"--url: {url!r} is not an http or https URL", "write it as http://HOST:PORT", USAGE)
    pools = read_inventory(inventory)
    logging.basicConfig(level=logging.INFO, format="%(levelname)-8s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        with closing(Journal(journal, domain)) as journal_file, Client(url, token=token, attempts=1) as client:
            said = Lines(as_json=as_json)
            controller = DomainController(client, domain, pools, journal=journal_file, hooks=said)
            typer.echo(f"kuayu hold for {domain} at {url}: {_inventory(pools)}", err=True)
            run_controller(controller)
            typer.echo(f"{_counted(controller.holdings)}, as {journal} says for the next start", err=True)
    except JournalError as error:
        raise fail(error.cause, error.hint) from error
    except ClientError as error:
        raise fail(error.cause, error.hint) from error


class Lines:
    """Prints what changes."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def take(self, holding: "Holding") -> None:
        """These devices are held for a job."""
        self._print_holding("taken", holding)

    def give_back(self, holding: "Holding") -> None:
        """These devices are not held any more."""
        self._print_holding("given back", holding)

    def fence(self, fence: "Fence") -> None:
        """Nothing may run on these nodes."""
        self._fenced("fenced", fence)

    def lift(self, fence: "Fence") -> None:
        """These nodes may be used again."""
        self._fenced("lifted", fence)

    def stop(self, job: str, cause: str | None) -> None:
        """This job is to be stopped."""
        self._print({"change": "stop", "job": job, "cause": cause}, f"to be stopped: {job}{_because(cause)}")

    def _print_holding(self, what: str, holding: "Holding") -> None:
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


class _StopSignal(Exception):
    """The controller was told to stop while it waited."""


def run_controller(controller: "DomainController") -> None:
    """Carry out what is asked until SIGTERM or SIGINT; what has been begun is finished."""
    stopped = threading.Event()

    def stop(*_: object) -> None:
        if controller.idle:
            raise _StopSignal  # a service may let it wait for long, and nothing is under way
        stopped.set()

    with _handled(stop):
        try:
            controller.run(stopped)
        except _StopSignal:
            return


@contextmanager
def _handled(stop: Any) -> Iterator[None]:
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(entry, stop) for entry in signals]
    try:
        yield
    finally:
        for entry, handler in zip(signals, before, strict=True):
            signal.signal(entry, handler)


def _inventory(pools: "Pools") -> str:
    """The devices of a domain in words."""
    kinds = (f"{sum(nodes.values())} of {kind} on {len(nodes)} nodes" for kind, nodes in pools.items())
    return ", ".join(kinds)


def _counted(holdings: "Holdings") -> str:
    """What is held in words."""
    devices = sum(sum(entry.nodes.values()) for entry in holdings.current)
    fenced = len({node for fence in holdings.fences for node in fence.nodes})
    also = f", {fenced} nodes are fenced" if fenced else ""
    return f"{devices} devices are held or promised in {len(holdings.current)} pieces{also}"
