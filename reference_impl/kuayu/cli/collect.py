"""``kuayu collect``: observe this host and hand what is seen to a service, until told to stop.

1. ``kuayu beat``: signs of life of nodes and lines of their logs, until told to stop.
"""

import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer
from rich.console import Console
from rich.markup import escape

from kuayu.cli.data_directory import DEFAULT, Data, Token, Url, service_of
from kuayu.cli.probe import progress_bar
from kuayu.cli.terminal import USAGE, errors, fail

if TYPE_CHECKING:
    from kuayu.engine.collector import Tally
    from kuayu.engine.host import Host
    from kuayu_schemas.models import Sample

LINE_EVERY_S = 10.0
"""Time between plain lines where there is no terminal; a change of the problem is told at once."""
CLOCK_TOLERANCE_S = 2.0
"""By how much clocks may differ (rule on time of the standard)."""

console = Console(highlight=False)


def collect(
    *,
    url: Url = None,
    domain: Annotated[str, typer.Option(metavar="ID", help="Domain of this host; registered when there is none.")],
    node: Annotated[str, typer.Option(metavar="ID", help="Node to register this host as.")],
    period: Annotated[float, typer.Option(metavar="S", min=0.1, max=60, help="Seconds between observations.")] = 0.9,
    token: Token = None,
    data: Data = DEFAULT,
    probe: Annotated[bool, typer.Option(help="Measure once, at the beginning, what this host sustains.")] = True,
    probe_budget: Annotated[float, typer.Option(metavar="S", min=0.1, help="Seconds for these probes.")] = 10.0,
    storage_path: Annotated[Path | None, typer.Option(metavar="DIR", help="Directory on the store to measure.")] = None,
    buffer: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of samples that wait for the service.")
    ] = 20_000,
    duration: Annotated[float, typer.Option(metavar="S", min=0, help="Stop after S seconds.")] = float("inf"),
) -> None:
    """Send this host's telemetry to a service of the standard."""
    from pydantic import ValidationError

    from kuayu.client import Client, ClientError
    from kuayu.engine.collector import Collector
    from kuayu.engine.host import Host

    host = Host.local()
    request, credential = service_of(url, token, data)
    try:
        host.node(node, domain)
        with (
            stopping() as stop,
            Client(request, token=credential, timeout_s=5.0, attempts=1) as client,
            _Status() as status,
        ):
            tally = Collector(client, host, domain=domain, node=node, capacity=buffer).run(
                stop,
                period_s=period,
                duration_s=duration,
                first=lambda: _probed(host, node, probe_budget, storage_path, stop) if probe else [],
                watch=status.show,
            )
    except ValidationError as error:
        raise fail(
            "--domain or --node is not a valid identifier", "letters, digits and ._- only, at most 128", USAGE
        ) from error
    except ClientError as error:
        raise fail(error.cause, error.hint) from error
    console.print(describe(tally))
    if tally.waiting:
        raise fail(
            f"{tally.waiting} samples could not be handed over: {tally.problem}", "start again when the service is back"
        )


class _StopSignal(Exception):
    """The collector was told to stop while it probed."""


def _probed(
    host: "Host", node: str, budget_s: float, storage_path: Path | None, stop: threading.Event
) -> list["Sample"]:
    """Samples of the probes; none when told to stop meanwhile."""
    from kuayu.engine.probes import probe_all

    with progress_bar() as bar:

        def progress(name: str, share: float) -> None:
            if stop.is_set():
                raise _StopSignal
            bar(name, share)

        try:
            report = probe_all(host, budget_s, progress, storage_path=storage_path)
        except _StopSignal:
            return []
    for skipped in report.skipped:
        console.print(f"[yellow]not measured[/] {escape(skipped.name)}: {escape(skipped.cause)}")
    return report.samples(node)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set."""
    stop = threading.Event()
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(entry, lambda *_: stop.set()) for entry in signals]
    try:
        yield stop
    finally:
        for entry, handler in zip(signals, before, strict=True):
            signal.signal(entry, handler)


def describe(tally: "Tally") -> str:
    """The tally in one line."""
    parts = [f"{datetime.now(UTC):%H:%M:%S}Z taken {tally.taken}"]
    counts = {"waiting": tally.waiting, "dropped": tally.dropped, "rejected": tally.rejected}
    parts += [f"{name} {count}" for name, count in counts.items() if count]
    if abs(tally.clock_ahead_s) > CLOCK_TOLERANCE_S:
        parts.append(f"[yellow]this clock is {tally.clock_ahead_s:+.1f} s off the service's[/]")
    if tally.problem:
        parts.append(f"[yellow]{escape(tally.problem)}[/]")
    return " · ".join(parts)


class _Status:
    """One line that is kept up to date on a terminal, plain lines now and then elsewhere."""

    def __init__(self) -> None:
        self._line = console.status("") if console.is_terminal else None
        self._shown_at, self._problem = float("-inf"), ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._line:
            self._line.stop()

    def show(self, tally: "Tally") -> None:
        """Tell how the collector stands."""
        if self._line:
            self._line.update(describe(tally))
            self._line.start()
        elif tally.problem != self._problem or time.monotonic() - self._shown_at >= LINE_EVERY_S:
            console.print(describe(tally), soft_wrap=True)
            self._shown_at, self._problem = time.monotonic(), tally.problem


if TYPE_CHECKING:
    from kuayu.engine.heartbeats import LogSender
    from kuayu.engine.log_tail import Source

MIN_BEAT_SECONDS = 0.05
"""Seconds between beats at least."""

BEAT_TIMEOUT_SECONDS = 2.0
"""Time that a beat may take; one that takes longer is as good as lost."""

LOG_TIMEOUT_SECONDS = 10.0
ENDING_S = 1.0
"""Time for lines that are on their way when we are told to stop."""


def beat(
    *,
    node: Annotated[list[str], typer.Option(metavar="ID", help="Node that beats; may be repeated.")],
    url: Url = None,
    every: Annotated[
        float, typer.Option(metavar="S", min=MIN_BEAT_SECONDS, max=60, help="Seconds between beats.")
    ] = 0.5,
    anew: Annotated[
        bool, typer.Option("--anew", help="The nodes were restarted, though this host was not: count from 1.")
    ] = False,
    log: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ID=]FILE",
            help="Log whose new lines are sent, - for the standard input; may be repeated. With several nodes, ID="
            " says of which it is.",
        ),
    ] = None,
    steps: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ID=]FILE",
            help="File to which training jobs add lines JOB RANK STEP, and in the end JOB RANK ended; the last of each"
            " rank goes with the beats. May be repeated.",
        ),
    ] = None,
    token: Token = None,
    data: Data = DEFAULT,
) -> None:
    """Send a service signs of life of nodes, new lines of their logs, and how far training jobs are.

    Beats are counted from when this host was started: numbers that begin anew tell the service that the node was
    repaired. They go on while the service is away; those that get lost then are not sent again. Lines of logs wait in
    their files and never hold beats up. Of files that are there already only what is added from now on counts; they
    may be rotated.
    """
    from kuayu.client import Client, ClientError
    from kuayu.engine.heartbeats import HeartbeatSender, LogSender
    from kuayu.engine.host import seconds_up
    from kuayu.engine.log_tail import StepFile

    nodes = _checked(node)
    request, credential = service_of(url, token, data)
    with ExitStack() as stack:
        logs = [(of, stack.enter_context(_opened(file))) for of, file in _named(log, nodes, "--log")]
        progress: dict[str, StepFile] = {}
        for of, file in _named(steps, nodes, "--steps"):
            if of in progress:
                raise fail(f"--steps: {of} has two files", "have all its ranks write to one file", USAGE)
            progress[of] = StepFile(stack.enter_context(_opened(file)), complain=partial(_odd, file))
        stop = stack.enter_context(stopping())
        client = stack.enter_context(Client(request, token=credential, timeout_s=BEAT_TIMEOUT_SECONDS, attempts=1))
        # In so many parts of a second that whoever goes on with another period never falls behind what was sent.
        first = 1 if anew else int(seconds_up() / MIN_BEAT_SECONDS)
        sender = HeartbeatSender(client, nodes, steps=progress, notify=_say, first=first)
        typer.echo(f"kuayu beat for {', '.join(nodes)} at {request}, every {every:g} s", err=True)
        if logs:
            slow = stack.enter_context(Client(request, token=credential, timeout_s=LOG_TIMEOUT_SECONDS, attempts=1))
            stack.enter_context(_beside(LogSender(slow, logs, notify=_say), stop))
        try:
            sender.run(stop, every)
        except ClientError as error:
            raise fail(error.cause, error.hint) from error
    typer.echo(
        f"{sender.taken} beats were taken; a node that beats no more counts as dead until it is deleted", err=True
    )


def _checked(nodes: Sequence[str]) -> list[str]:
    from kuayu_schemas import schema

    for node in nodes:
        if schema.errors("NodeShare", {"node": node, "devices": 1}):
            raise fail(f"--node {node!r} is not a valid identifier", "letters, digits and ._- only, at most 128", USAGE)
    return list(dict.fromkeys(nodes))


def _named(files: Sequence[str] | None, nodes: Sequence[str], option: str) -> list[tuple[str, str]]:
    """Files, each with the node that it is of."""
    result = []
    for entry in files or ():
        node, equals, file = entry.partition("=")
        if equals and node in nodes:
            result.append((node, file))
        elif len(nodes) == 1:
            result.append((nodes[0], entry))
        else:
            hint = f"write {option} {nodes[0]}={entry}, with the node that it is of"
            raise fail(f"{option} {entry} does not say of which node it is", hint, USAGE)
    return result


def _opened(file: str) -> "closing[Source]":
    """New lines of a file, or of the standard input."""
    from kuayu.engine.log_tail import Pipe, Tail

    try:
        return closing(Pipe(sys.stdin.fileno()) if file == "-" else Tail(Path(file)))
    except OSError as error:
        hint = "name a file that can be read, or one that comes later"
        raise fail(f"cannot read {file}: {error.strerror}", hint, USAGE) from error


def _odd(file: str, line: str) -> None:
    """Say that a line of a file is none of steps."""
    _say(f"{file} has lines that tell of no step, such as {line[:60]!r}", "write JOB RANK STEP, or JOB RANK ended")


@contextmanager
def _beside(sender: "LogSender", stop: threading.Event) -> Iterator[None]:
    """Have lines sent beside the beats."""
    thread = threading.Thread(target=sender.run, args=(stop,), name="log lines", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(ENDING_S)


def _say(what: str, hint: str) -> None:
    """Say what has happened, with the time, and what can be done about it."""
    errors.print(f"{datetime.now(UTC):%H:%M:%S}Z {escape(what)}", soft_wrap=True)
    if hint:
        errors.print(f"[dim]hint[/]  {escape(hint)}", soft_wrap=True)
