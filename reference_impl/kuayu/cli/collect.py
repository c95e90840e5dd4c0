"""``kuayu collect``: observe this host and hand what is seen to a service, until told to stop."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer
from rich.console import Console
from rich.markup import escape

from kuayu.cli.probe import USAGE, Token, fail, progress_bar

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
    url: Annotated[str, typer.Option(metavar="URL", help="Base URL of the service; /v1 lies under it.")],
    domain: Annotated[str, typer.Option(metavar="ID", help="Domain of this host; registered when there is none.")],
    node: Annotated[str, typer.Option(metavar="ID", help="Node to register this host as.")],
    period: Annotated[float, typer.Option(metavar="S", min=0.1, max=60, help="Seconds between observations.")] = 0.9,
    token: Token = None,
    probe: Annotated[bool, typer.Option(help="Measure once, at the beginning, what this host sustains.")] = True,
    probe_budget: Annotated[float, typer.Option(metavar="S", min=0.1, help="Seconds for these probes.")] = 10.0,
    storage_path: Annotated[Path | None, typer.Option(metavar="DIR", help="Directory on the store to measure.")] = None,
    buffer: Annotated[int, typer.Option(metavar="N", min=1, help="Most samples that wait for the service.")] = 20_000,
    duration: Annotated[float, typer.Option(metavar="S", min=0, help="Stop after so many seconds.")] = float("inf"),
) -> None:
    """Send this host's telemetry to a service of the standard."""
    from pydantic import ValidationError

    from kuayu.client import Client, ClientError
    from kuayu.engine.collector import Collector
    from kuayu.engine.host import Host

    host = Host.here()
    try:
        host.node(node, domain)
        with stopping() as stop, Client(url, token=token, timeout_s=5.0, attempts=1) as client, _Status() as status:
            tally = Collector(client, host, domain=domain, node=node, capacity=buffer).run(
                stop,
                period_s=period,
                duration_s=duration,
                first=lambda: _probed(host, node, probe_budget, storage_path, stop) if probe else [],
                watch=status.show,
            )
    except ValidationError as error:
        raise fail("--domain or --node is no identifier", "letters, digits and ._- only, at most 128", USAGE) from error
    except ClientError as error:
        raise fail(error.cause, error.hint) from error
    except ValueError as error:
        raise fail(str(error), "write it as http://HOST:PORT", USAGE) from error
    console.print(describe(tally))
    if tally.waiting:
        raise fail(
            f"{tally.waiting} samples could not be handed over: {tally.problem}", "start again when the service is back"
        )


class _Stopped(Exception):
    """The collector was told to stop while it probed."""


def _probed(
    host: "Host", node: str, budget_s: float, storage_path: Path | None, stop: threading.Event
) -> list["Sample"]:
    """Samples of the probes; none when told to stop meanwhile."""
    from kuayu.engine.probes import probe_all

    with progress_bar() as bar:

        def progress(name: str, share: float) -> None:
            if stop.is_set():
                raise _Stopped
            bar(name, share)

        try:
            report = probe_all(host, budget_s, progress, storage_path=storage_path)
        except _Stopped:
            return []
    for skipped in report.skipped:
        console.print(f"[yellow]not measured[/] {escape(skipped.name)}: {escape(skipped.cause)}")
    return report.samples(node)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set."""
    stop = threading.Event()
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(each, lambda *_: stop.set()) for each in signals]
    try:
        yield stop
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)


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
