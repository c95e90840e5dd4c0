"""``kuayu probe``: measure what this host sustains, show it, and hand it to a service where one is named."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

if TYPE_CHECKING:
    from kuayu.engine.host import Host
    from kuayu.engine.probes import ProbeReport, Progress
    from kuayu.engine.workloads import WorkloadReport
    from kuayu_schemas.models import Corpus

from kuayu.cli.terminal import USAGE, Token, console, errors, fail


def probe(
    *,
    budget: Annotated[
        float, typer.Option(metavar="S", min=0.1, help="Seconds for all of it; workloads get half.")
    ] = 40.0,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Some of matmul,memory,storage,all_reduce,workloads, or names of workloads; all by default.",
        ),
    ] = None,
    workloads: Annotated[
        bool, typer.Option(help="Measure reference workloads, which need the extra 'training'.")
    ] = True,
    corpus: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Corpus to add the throughputs of workloads to, made where there is none. It is how they are handed"
            " over, for compute indices are asked for with a corpus; --upload sends what the other probes gave.",
        ),
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
    """Measure what this host sustains: matrix products, memory, storage, all-reduce, reference workloads."""
    from kuayu.engine.host import Host
    from kuayu.engine.probes import PROBES, probe_all
    from kuayu.engine.workloads import WORKLOADS, fragment, merged, read, run_workloads, write

    wanted = _wanted(only, workloads=workloads)
    simple, reference = ([name for name in names if name in wanted] for names in (PROBES, WORKLOADS))
    if upload and not (domain and node):
        raise fail("--upload needs to know what this host is", "add --domain ID and --node ID", USAGE)
    if upload and not simple:
        raise fail("--upload sends what other probes than workloads gave", "hand workloads over with --corpus", USAGE)
    if corpus and not reference:
        raise fail("--corpus takes what workloads gave", "leave --no-workloads out, or add workloads to --only", USAGE)
    host, ends_at = Host.local(), time.monotonic() + budget
    with _said(), progress_bar() as progress:
        corpus_before = read(corpus) if corpus else None
        share = budget / 2 if reference else budget
        report = probe_all(host, share, progress, only=simple, storage_path=storage_path) if simple else None
        left = max(0.0, ends_at - time.monotonic())
        ran = run_workloads(host, left, progress, only=reference) if reference else None
    result = fragment(ran, report.bandwidths() if report else {}) if ran else None
    if as_json:
        typer.echo(json.dumps(_as_json(report, ran, result), default=str, ensure_ascii=False, indent=2))
    else:
        show(report, ran)
    if corpus and result:
        with _said():
            write(corpus, merged(corpus_before, result) if corpus_before else result.to_wire())
        errors.print(f"added {len(result.measurements)} measurements to {escape(str(corpus))}")
    if upload and domain and node and report:
        _upload(report, host, upload, domain=domain, node=node, token=token)
    if not (report and report.results) and not result:
        raise typer.Exit(1)


def _wanted(only: str | None, *, workloads: bool) -> set[str]:
    """Names of the probes and of the workloads that are asked for."""
    from kuayu.engine.probes import PROBES
    from kuayu.engine.workloads import GROUP, WORKLOADS

    names = [*PROBES, GROUP, *WORKLOADS]
    wanted = {name.strip() for name in only.split(",")} if only else {*PROBES, GROUP}
    if unknown := sorted(wanted - set(names)):
        raise fail(f"there is no probe {unknown[0]}", f"probes are {', '.join(names)}", USAGE)
    if GROUP in wanted:
        wanted |= set(WORKLOADS)
    wanted -= {GROUP} if workloads else {GROUP, *WORKLOADS}
    if not wanted:
        raise fail("--no-workloads leaves no probe", f"probes are {', '.join(names)}", USAGE)
    return wanted


@contextmanager
def _said() -> Iterator[None]:
    """Say what is wrong with a corpus file, and leave."""
    from kuayu.engine.workloads import CorpusFileError

    try:
        yield
    except CorpusFileError as error:
        raise fail(error.cause, error.hint) from error


def _as_json(report: "ProbeReport | None", ran: "WorkloadReport | None", corpus: "Corpus | None") -> dict[str, Any]:
    """What was measured, in SI units; throughputs of workloads in samples in a second."""
    of_probes: dict[str, Any] = asdict(report) if report else {"results": [], "skipped": []}
    if ran is None:
        return of_probes
    of_workloads = {
        "results": [asdict(result) for result in ran.results],
        "skipped": [asdict(entry) for entry in ran.skipped],
        "finished_at": ran.finished_at,
        "corpus": corpus.to_wire() if corpus else None,
    }
    return of_probes | {"workloads": of_workloads}


@contextmanager
def progress_bar() -> Iterator["Progress"]:
    """A bar on the terminal while probes run; says nothing where there is no terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("[bold]probe[/]"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda name, share: bar.update(task, description=name, completed=share)


def show(report: "ProbeReport | None", ran: "WorkloadReport | None") -> None:
    """Print the figures in units for people, and what could not be measured."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("probe", "median", "IQR", "n", "s"):
        table.add_column(heading, justify="left" if heading == "probe" else "right", no_wrap=True)
    table.add_column("on", overflow="fold", style="dim")
    for row in (*(_rows(report) if report else ()), *(_workload_rows(ran) if ran else ())):
        table.add_row(*row)
    if table.row_count:
        console.print(table)
    for place in ran.places if ran else ():
        console.print(f"[dim]{place.device} is {escape(place.id)}: {escape(place.model)}, {escape(place.stack)}[/]")
    for skipped in (*(report.skipped if report else ()), *(ran.skipped if ran else ())):
        console.print(
            f"[yellow]not measured[/] {escape(skipped.name)}: {escape(skipped.cause)}; {escape(skipped.hint)}"
        )


def _rows(report: "ProbeReport") -> Iterator[tuple[str, ...]]:
    """Rows of the simple probes, in the units that the indicator register shows."""
    from kuayu_schemas import registers

    known = {measure.name: measure for indicator in registers.indicators().indicators for measure in indicator.measures}
    for result in report.results:
        measure = known[result.measure]
        unit = measure.display_unit.replace("FLOP", "OP") if result.precision == "int8" else measure.display_unit
        figure = f"{result.value * measure.display_factor:.4g} {unit}"
        spread = f"{result.spread / result.value:.1%}"
        yield result.name, figure, spread, str(result.n), f"{result.seconds:.1f}", escape(result.stack)


def _workload_rows(ran: "WorkloadReport") -> Iterator[tuple[str, ...]]:
    """Rows of the workloads; a step that was timed in parts says so."""
    devices = {place.id: place.device for place in ran.places}
    for result in ran.results:
        part = "" if result.part == result.batch else f", {result.part} at once"
        on = f"{devices[result.place]}, {result.format}, batch {result.batch}{part}"
        spread = f"{result.spread / result.value:.1%}"
        figures = f"{result.value:.4g} /s", spread, str(result.n), f"{result.seconds:.1f}"
        yield result.workload, *figures, on


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
        raise fail(
            "--domain or --node is not a valid identifier", "letters, digits and ._- only, at most 128", USAGE
        ) from error
    except ValueError as error:
        raise fail(str(error), "write it as http://HOST:PORT", USAGE) from error
    for rejection in result.rejected if result else ():
        errors.print(f"[yellow]rejected[/] {escape(rejection.problem.detail or rejection.problem.title)}")
    if result and result.rejected:
        raise typer.Exit(1)
    errors.print(f"uploaded {result.accepted if result else 0} samples of {escape(node)} to {escape(url)}")
