"""``kuayu probe``: measure what this host sustains, show it, and hand it to a service where one is named."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from kuayu.engine.host import Host
    from kuayu.engine.probes import ProbeReport, Progress

USAGE = 2
"""Exit status of a command that was not called rightly."""

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

Token = Annotated[
    str | None, typer.Option(metavar="T", envvar="KUAYU_TOKEN", help="Bearer token, where the service asks for one.")
]


def fail(cause: str, hint: str, code: int = 1) -> typer.Exit:
    """Print a cause and a hint; the exit to raise."""
    errors.print(f"[bold red]error[/] {escape(cause)}\n[dim]hint[/]  {escape(hint)}")
    return typer.Exit(code)


def probe(
    *,
    budget: Annotated[float, typer.Option(metavar="S", min=0.1, help="Seconds for all probes together.")] = 20.0,
    only: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Some of matmul,memory,storage,all_reduce; all by default.")
    ] = None,
    storage_path: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory on the store to measure; that for temporary files by default."),
    ] = None,
    upload: Annotated[
        str | None, typer.Option(metavar="URL", help="Service to hand the figures to; with --domain and --node.")
    ] = None,
    domain: Annotated[str | None, typer.Option(metavar="ID", help="Domain to register this host in.")] = None,
    node: Annotated[str | None, typer.Option(metavar="ID", help="Node to register this host as.")] = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, in SI units.")] = False,
) -> None:
    """Measure what this host sustains: matrix products, memory, storage, all-reduce."""
    from kuayu.engine.host import Host
    from kuayu.engine.probes import PROBES, probe_all

    wanted = [name.strip() for name in only.split(",")] if only else list(PROBES)
    if unknown := [name for name in wanted if name not in PROBES]:
        raise fail(f"there is no probe {unknown[0]}", f"probes are {', '.join(PROBES)}", USAGE)
    if upload and not (domain and node):
        raise fail("--upload needs to know what this host is", "add --domain ID and --node ID", USAGE)
    host = Host.here()
    with progress_bar() as progress:
        report = probe_all(host, budget, progress, only=wanted, storage_path=storage_path)
    if as_json:
        typer.echo(json.dumps(asdict(report), default=str, ensure_ascii=False, indent=2))
    else:
        show(report)
    if upload and domain and node:
        _upload(report, host, upload, domain=domain, node=node, token=token)
    if not report.results:
        raise typer.Exit(1)


@contextmanager
def progress_bar() -> Iterator["Progress"]:
    """A bar on the terminal while probes run; says nothing where there is no terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("[bold]probe[/]"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda name, share: bar.update(task, description=name, completed=share)


def show(report: "ProbeReport") -> None:
    """Print the figures in units for people, and what could not be measured."""
    from rich.table import Table

    from kuayu_schemas import registers

    known = {measure.name: measure for each in registers.indicators().indicators for measure in each.measures}
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("probe", "median", "IQR", "n", "s"):
        table.add_column(heading, justify="left" if heading == "probe" else "right")
    table.add_column("on", overflow="fold", style="dim")
    for result in report.results:
        measure = known[result.measure]
        unit = measure.display_unit.replace("FLOP", "OP") if result.precision == "int8" else measure.display_unit
        table.add_row(
            result.name,
            f"{result.value * measure.display_factor:.4g} {unit}",
            f"{result.spread / result.value:.1%}",
            str(result.n),
            f"{result.seconds:.1f}",
            result.stack,
        )
    if report.results:
        console.print(table)
    for skipped in report.skipped:
        console.print(
            f"[yellow]not measured[/] {escape(skipped.name)}: {escape(skipped.cause)}; {escape(skipped.hint)}"
        )


def _upload(report: "ProbeReport", host: "Host", url: str, *, domain: str, node: str, token: str | None) -> None:
    """Register this host and hand over the figures."""
    from pydantic import ValidationError

    from kuayu.client import Client, ClientError
    from kuayu.engine.collector import register

    try:
        with Client(url, token=token) as client:
            register(client, host, domain=domain, node=node)
            samples = report.samples(node)
            result = client.post_samples(samples) if samples else None
    except ClientError as error:
        raise fail(error.cause, error.hint) from error
    except ValidationError as error:
        raise fail("--domain or --node is no identifier", "letters, digits and ._- only, at most 128", USAGE) from error
    except ValueError as error:
        raise fail(str(error), "write it as http://HOST:PORT", USAGE) from error
    for rejection in result.rejected if result else ():
        errors.print(f"[yellow]rejected[/] {escape(rejection.problem.detail or rejection.problem.title)}")
    if result and result.rejected:
        raise typer.Exit(1)
    errors.print(f"uploaded {result.accepted if result else 0} samples of {escape(node)} to {escape(url)}")
