"""``kuayu diagnose``: tell what faults a log shows, and what follows from them.

1. Faults of a log as a table for people, and as JSON.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from kuayu.cli.terminal import USAGE, fail, plain_table
from kuayu.resilience.logs.reader import Group, LogReader, Summary
from kuayu.resilience.logs.recogniser import Follows, Severity, Verdict

ROWS = 40
"""Different faults that are printed at most."""

COLOURS = {Follows.DRAIN: "bold red", Follows.RESTART: "yellow", Follows.WATCH: "", Follows.NONE: "dim"}

console = Console(highlight=False)


def plain(verdict: Verdict) -> dict[str, Any]:
    """A verdict as an object of JSON."""
    return {
        "code": verdict.code,
        "kind": verdict.kind,
        "severity": verdict.severity.name.lower(),
        "about": verdict.about.value,
        "subject": verdict.subject,
        "node": verdict.node,
        "follows": verdict.follows.value,
        "what": verdict.what,
        "confidence": verdict.confidence.value,
        "line": verdict.evidence.line,
        "text": verdict.evidence.text,
        "template": verdict.evidence.template,
        "source": verdict.source.url if verdict.source else None,
    }


def line(verdict: Verdict, *, as_json: bool) -> str:
    """A verdict in one line."""
    if as_json:
        return json.dumps(plain(verdict), ensure_ascii=False)
    where = " ".join(entry for entry in (verdict.node, verdict.subject) if entry)
    parts = (f"{verdict.evidence.line}:", verdict.follows.value, verdict.code, where, f"{verdict.what} |")
    return " ".join((*(part for part in parts if part), verdict.evidence.text))


def to_json(reader: LogReader, summary: Summary) -> dict[str, Any]:
    """All that was found, as an object of JSON."""
    return {
        "lines": reader.lines,
        "bytes": reader.bytes,
        "templates": len(reader.miner.templates()),
        "faults": [
            plain(group.verdict) | {"count": group.count, "last_line": group.last} for group in summary.groups()
        ],
    }


def show(reader: LogReader, summary: Summary) -> None:
    """Print what was found."""
    groups = summary.groups()
    table = plain_table("follows", "fault", "of", ">lines", ">first", "what")
    for group in groups[:ROWS]:
        table.add_row(*_cells(group))
    if groups:
        console.print(table)
    if len(groups) > ROWS:
        console.print(f"and {len(groups) - ROWS} more; --json has all")
    worst = sum(entry.verdict.severity is Severity.CRITICAL for entry in groups)
    result = f"{len(groups)} faults and oddities, {worst} of them critical" if groups else "no fault"
    console.print(f"{result} in {reader.lines} lines of {len(reader.miner.templates())} templates")
    if reader.untold:
        console.print(f"[dim]{reader.untold} more forms of lines were unusual[/]")


def _cells(group: Group) -> tuple[str, ...]:
    verdict, colour = group.verdict, COLOURS[group.verdict.follows]
    follows = f"[{colour}]{verdict.follows.value}[/]" if colour else verdict.follows.value
    of = " ".join(entry for entry in (verdict.about.value, verdict.node, verdict.subject) if entry)
    what = verdict.what if verdict.source else f"{verdict.what}: {verdict.evidence.template or verdict.evidence.text}"
    return follows, verdict.code, escape(of), f"{group.count}", f"{verdict.evidence.line}", escape(what)


if TYPE_CHECKING:
    from kuayu.resilience.logs.reader import LogReader, Miner

PIECE = 1 << 20
"""Bytes read at once."""

PAUSE_S = 0.2
"""Time between looks at a file that is followed."""

LARGE = 16 << 20
"""Bytes from which a file has a progress bar."""

errors = Console(stderr=True, highlight=False)


def diagnose(
    *,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A log; - for the standard input.")],
    templates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Library of templates to start from, and to save what is learned in."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Report each fault as its line arrives, and wait for more lines.")
    ] = False,
    unusual: Annotated[bool, typer.Option(help="Also report lines of unusual form.")] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON; with --follow, one object per line for each fault.")
    ] = False,
) -> None:
    """Tell what faults a log shows, and what follows from them.

    Known are NVIDIA Xid and SXid, memory errors, NCCL and HCCL, drivers and buses, memory that ran out, networks,
    storage and hosts. Lines of unusual form are told once 1000 lines have been learned, from this log or a library.
    """
    from kuayu.resilience.logs.reader import LogReader, Summary

    reader, summary = LogReader(_library(templates), unusual=unusual), Summary()
    stopped = False
    try:
        with _interruptible():
            for piece in _pieces(file, follow=follow):
                result = reader.take(piece) if piece is not None else reader.end()
                summary.add(result)
                for verdict in result if follow else ():
                    sys.stdout.write(line(verdict, as_json=as_json) + "\n")
                if result and follow:
                    sys.stdout.flush()
    except KeyboardInterrupt:
        stopped = True
        summary.add(reader.end())
    except BrokenPipeError:  # whoever read has gone; what was learned is kept
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for the interpreter's last flush
    if templates and unusual:
        _keep(templates, reader)
    if as_json and not follow:
        typer.echo(json.dumps(to_json(reader, summary), ensure_ascii=False, indent=2))
    elif not as_json:
        show(reader, summary)
    if stopped and not follow:
        errors.print("[yellow]stopped[/] before the end of the log")
        raise typer.Exit(130)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Take SIGTERM as Ctrl-C, and both even where a shell has them ignored: what was learned is kept."""
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(entry, signal.default_int_handler) for entry in signals]
    try:
        yield
    finally:
        for entry, handler in zip(signals, before, strict=True):
            signal.signal(entry, handler)


def _library(file: Path | None) -> "Miner | None":
    """The library that a file holds; None where there is no such file yet."""
    from kuayu.resilience.logs.reader import LibraryError, decode_library

    if file is None or not file.exists():
        return None
    try:
        return decode_library(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, LibraryError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        hint = "name a library that this command wrote, or a file that is not there yet"
        raise fail(f"cannot read templates from {file}: {cause}", hint, USAGE) from error


def _keep(file: Path, reader: "LogReader") -> None:
    """Write the library beside the old one, then put it in its place."""
    from kuayu.resilience.logs.reader import encode_library

    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        fresh.write_text(encode_library(reader.miner), "utf-8")
        fresh.replace(file)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise fail(f"cannot write templates to {file}: {error.strerror}", "name a file that can be written") from error


def _pieces(file: str, *, follow: bool) -> Iterator[bytes | None]:
    """Bytes of a log as they come, and None where a log ends."""
    with ExitStack() as stack:
        try:
            source: BinaryIO = sys.stdin.buffer if file == "-" else stack.enter_context(Path(file).open("rb"))
            size = None if file == "-" else os.fstat(source.fileno()).st_size
            # A pipe gives what it has; waiting for a full piece would hold lines back.
            read: Callable[[int], bytes] = getattr(source, "read1", source.read)
            advance = stack.enter_context(_bar(size)) if size is not None and size >= LARGE and not follow else None
            while piece := read(PIECE):
                yield piece
                if advance:
                    advance(len(piece))
            if follow and file != "-":
                yield from _more(Path(file), source)
            yield None
        except OSError as error:
            hint = "give a file that can be read, or - for the standard input"
            raise fail(f"cannot read {file}: {error.strerror}", hint, USAGE) from error


def _more(file: Path, source: BinaryIO) -> Iterator[bytes | None]:
    """What is added to a file, for ever; a file that was replaced or cut begins anew."""
    while True:
        if piece := source.read(PIECE):
            yield piece
            continue
        time.sleep(PAUSE_S)
        try:
            now, existing = file.stat(), os.fstat(source.fileno())
        except FileNotFoundError:
            continue
        if now.st_ino != existing.st_ino or now.st_dev != existing.st_dev:
            yield None
            with file.open("rb") as fresh:
                yield from _more(file, fresh)
        elif now.st_size < source.tell():
            yield None
            source.seek(0)


@contextmanager
def _bar(size: int) -> Iterator[Callable[[int], None]]:
    """A progress bar; gives the function that moves it."""
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(TextColumn("reading"), *columns, console=errors, transient=True) as progress:
        task = progress.add_task("reading", total=size)
        yield lambda count: progress.advance(task, count)
