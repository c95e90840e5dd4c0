"""``kuayu check``: the main job, from an empty folder to a verdict on the reference."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import httpx
import typer
from rich.console import Console
from rich.table import Table

from kuayu import shortfalls
from kuayu_conformance.cli import (
    Data,
    FullRequests,
    Profiles,
    Requirements,
    execute,
    fail,
    go_on,
    nonce_of,
    profiles_of,
    requirement_of,
)
from kuayu_conformance.rendering.view import reason_of
from kuayu_conformance.run.judgement import exit_code, machine_was_busy
from kuayu_conformance.run.resumption import unfinished
from kuayu_conformance.run.runner import Options
from kuayu_schemas import registers
from kuayu_schemas.models import ConformanceReport, RequirementResult, RunLevel

DOMAIN, NODE = "here", "this-host"
SERVED = "served.json"
ACCOUNTS = "main/spent quota=0\n"
"""What the reference knows of accounts: one that may use nothing, so that it is seen what a quota does."""
MAX_REQUIREMENTS_NAMED = 12
"""Requirements that a command is printed for; of more, the whole is run again."""
START_TIMEOUT_SECONDS = 60.0
"""Seconds that a process of ours may take until it answers; a cold start on a slow disk stays well below."""

console = Console(highlight=False)


class StartError(Exception):
    """A process that the check needs did not come up."""


def check(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for the report.")] = Path(
        "build/check"
    ),
    level: Annotated[
        RunLevel | None,
        typer.Option(help="How much is measured: smoke takes minutes, full hours.", show_default=RunLevel.smoke.value),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed, to repeat a run.")] = None,
    nonce: Annotated[str | None, typer.Option(metavar="X", help="Nonce of an earlier run, to repeat it.")] = None,
    profile: Profiles = None,
    requirement: Requirements = None,
    data: Data = None,
    probe: Annotated[bool, typer.Option("--probe/--no-probe", help="Measure what this host sustains.")] = True,
    strict: Annotated[bool, typer.Option("--strict", help="Count known shortfalls as failures.")] = False,
    tolerate_busy: Annotated[
        bool, typer.Option("--tolerate-busy", help="Do not count what this machine was too busy to test.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the run in DIR where one was interrupted; otherwise start one.")
    ] = False,
    language: Annotated[Literal["en", "zh"], typer.Option(help="Language of the summary.")] = "en",
    full_requests: FullRequests = False,
) -> None:
    """Serve the reference on SQLite, collect this host's telemetry through it, test it over HTTP, write the report.

    Exit code: 0 all that is required passes, 1 something fails, 2 something is open, 3 the suite failed. What the
    reference is known to miss is named and does not count, unless --strict is given; the report does not know of it.
    """
    profiles, selection = profiles_of(profile or []), tuple(requirement_of(name).id for name in requirement or [])
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what runs beside it ends with it, as at Ctrl-C
    beside = output.parent / f"{output.name}-service"
    begun = unfinished(output) if resume else None
    if begun is None:  # a run that is gone on with knows its own
        level = level or RunLevel.smoke
    nonce = nonce_of(seed, nonce) if begun is None or seed is not None else nonce
    served = _ServedReference.read(beside) if begun else _ServedReference.new(beside)
    target, own = served.target, served.own
    accounts = beside / "accounts"
    accounts.write_text(ACCOUNTS, encoding="utf-8")
    serve = [
        *("serve", "--port", str(served.port), "--database", f"sqlite:///{beside / 'kuayu.db'}"),
        *("--scrape-allow", "127.0.0.1", "--accounts", str(accounts)),
    ]
    collect = ["collect", "--url", target, "--domain", DOMAIN, "--node", NODE, "--probe" if probe else "--no-probe"]
    tokens = {"KUAYU_TOKENS": f"main={own},other={served.other}"}
    try:
        with (
            _started("the reference", serve, beside / "serve.log", tokens) as service,
            httpx.Client(base_url=target, trust_env=False) as client,
        ):
            client.headers["authorization"] = f"Bearer {own}"
            _until(lambda: client.get("/v1/health").is_success, service)
            token = {"KUAYU_TOKEN": own}
            with _started("the collector", collect, beside / "collect.log", token) as collector:
                path = f"/v1/nodes/{NODE}/indicators"
                _until(lambda: _sampled(client, path), service, collector)
                console.print(f"reference at {target}, fed with this host's telemetry; the suite begins")
                options = Options(
                    target=target,
                    nonce=nonce or "",
                    headers={"authorization": f"Bearer {own}"},
                    other_headers={"authorization": f"Bearer {served.other}"},
                    profiles=profiles,
                    selection=selection,
                    level=level.value if level else "",
                    data=data,
                    full_requests=full_requests,
                )
                carried_out = go_on if begun else execute
                report = carried_out(options, output, language, f"kuayu check --resume -o {output}")
                console.print(_telemetry(_values(client, path), language))
    except StartError as error:
        console.print(
            f"[bold red]error[/] {error}\n[dim]hint[/]  its last words are above; the whole log is in {beside}"
        )
        raise typer.Exit(3) from error
    beyond = beyond_shortfalls(report, tolerate_busy=tolerate_busy)
    raise typer.Exit(report.exit_code if strict else beyond)


def beyond_shortfalls(report: ConformanceReport, *, tolerate_busy: bool = False) -> int:
    """Name the known shortfalls, then whatever else is amiss; the exit code, in which known shortfalls do not count.

    With ``tolerate_busy`` what the machine was too busy to test does not count either.
    """
    shown, unknown = shortfalls.of(report.results)
    for shortfall in shown:
        console.print(f"[yellow]known shortfall[/] {shortfall.requirement}: {shortfall.because}")
    amiss = [result for result in report.results if result.requirement in unknown]
    busy = [result for result in amiss if machine_was_busy(result)]
    for result in amiss:
        mark = "[yellow]untested[/]" if result in busy else "[bold red]amiss[/]"
        console.print(f"{mark} {result.requirement}: {_result_line(result)}")
    if amiss:
        again = f"kuayu check --level {report.run_level} --nonce {report.nonce}"
        named = "".join(f" --requirement {result.requirement}" for result in amiss)
        console.print(f"[dim]just these again:[/] {again}{named if len(amiss) <= MAX_REQUIREMENTS_NAMED else ''}")
    return exit_code(result for result in amiss if not (tolerate_busy and result in busy))


def _result_line(result: RequirementResult) -> str:
    """What was found for a requirement, in a line: a log may keep no more than its last lines."""
    figures = {"estimate": result.estimate, "bound": result.bound}
    if result.threshold is not None:
        figures[result.threshold.comparison.value.replace("_", " ")] = result.threshold.value
    said = ", ".join(f"{name} {figure:.5g}" for name, figure in figures.items() if figure is not None)
    return "; ".join(part for part in (result.verdict.value, said, reason_of(result)) if part)


@dataclass(frozen=True)
class _ServedReference:
    """Where the reference is served, and whom it lets in; kept beside its database for a run that is gone on with."""

    port: int
    own: str
    other: str

    @property
    def target(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self.port}"

    @classmethod
    def new(cls, folder: Path) -> "_ServedReference":
        """On a free port, with an empty database."""
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("kuayu.db*"):
            old.unlink()
        served = cls(_free_port(), secrets.token_urlsafe(12), secrets.token_urlsafe(12))
        file = folder / SERVED
        file.unlink(missing_ok=True)
        file.touch(mode=0o600)
        file.write_text(json.dumps(asdict(served)), "utf-8")
        return served

    @classmethod
    def read(cls, folder: Path) -> "_ServedReference":
        """As it was when the run began.

        Raises:
            typer.Exit: It is not known any more.
        """
        try:
            return cls(**json.loads((folder / SERVED).read_text("utf-8")))
        except (OSError, ValueError, TypeError) as error:
            cause = f"the run cannot be gone on with: {folder / SERVED} says no more where the reference was ({error})"
            raise fail(cause, "omit --resume to start again", 2) from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class _Part:
    """What runs beside the suite."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path


@contextlib.contextmanager
def _started(name: str, arguments: Sequence[str], log: Path, secret: dict[str, str]) -> Iterator[_Part]:
    """Run a part of ours beside this one; it is ended cleanly, and killed only when it does not listen."""
    command = [sys.executable, "-c", "from kuayu.cli import main; main()", *arguments]
    with log.open("wb") as output:
        environment = {**os.environ, **secret}
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)  # noqa: S603 - ourselves
    try:
        yield _Part(name, process, log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until(holds: Callable[[], bool], *parts: _Part) -> None:
    """Wait until something holds, for which the last of some parts answers, and the others have to run.

    Raises:
        StartError: It does not answer in time, or one of them has ended.
    """
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not (ended := [part for part in parts if part.process.poll() is not None]) and time.monotonic() < deadline:
        with contextlib.suppress(httpx.HTTPError):
            if holds():
                return
        time.sleep(0.1)
    silent = next(iter(ended), parts[-1])
    console.print(silent.log.read_text("utf-8", "replace")[-2000:], markup=False)
    how = f"but ended with exit code {silent.process.returncode}" if ended else f"within {START_TIMEOUT_SECONDS:.0f} s"
    raise StartError(f"{silent.name} did not answer {how}")


def _sampled(client: httpx.Client, path: str) -> bool:
    """Whether telemetry flows: the probes are over then, which must not run beside the suite."""
    return any(value["measure"] == "accelerator_utilisation" for value in _values(client, path))


def _values(client: httpx.Client, path: str) -> list[dict[str, Any]]:
    """Indicators of this host; none where nobody answers any more, which the report tells."""
    try:
        answer = client.get(path)
    except httpx.TransportError:
        return []
    return list(answer.json()["values"]) if answer.is_success else []


def _telemetry(values: Sequence[dict[str, Any]], language: str) -> Table:
    """What the reference knows of this host, in the units that people use."""
    chinese = language == "zh"
    title = "本机指标（经参考实现采集）" if chinese else "this host, as collected through the reference"
    table = Table(title=title, title_justify="left", box=None, header_style="dim")
    for column in (
        ("指标", "测度", "值", "单位", "来源") if chinese else ("indicator", "measure", "value", "unit", "from")
    ):
        table.add_column(column, justify="right" if column in {"value", "值"} else "left")
    measures = {m.name: m for indicator in registers.indicators().indicators for m in indicator.measures}
    for value in values:
        measure = measures.get(value["measure"])
        if measure is None or "device" in value:
            continue
        name = measure.name_zh if chinese else measure.name
        for label, shown in _shown(value, measure.display_factor):
            table.add_row(value["indicator"], f"{name}{label}", shown, measure.display_unit, value["provenance"])
    return table


def _shown(value: dict[str, Any], factor: float) -> Iterator[tuple[str, str]]:
    if "state" in value:
        yield "", value["state"]
    for precision, number in value.get("by_precision", {}).items():
        yield f" {precision}", f"{number * factor:.4g}"
    if "number" in value:
        yield "", f"{value['number'] * factor:.4g}"
