"""``kuayu live``: a real training that goes on while domains fail.

1. What ``kuayu live`` prints at the end.
"""

import json
import math
import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from kuayu.cli.terminal import USAGE, fail, plain_table, span
from kuayu.live.findings import DELAYS, JUDGED_DELAYS, TOLERANCE, Findings, ReportedRun, delays, spread
from kuayu.live.view import incident_table


def show_findings(console: Console, findings: Findings, folder: Path) -> None:
    """The incidents, their spread by kind, and what holds or does not."""
    line = findings.timeline
    if line.incidents:
        console.print(incident_table(line.incidents, len(line.incidents)))
        console.print()
        _show_spreads(console, findings)
    console.print()
    for requirement in JUDGED_DELAYS:
        _show_judged(console, findings, requirement)
    if findings.calm is not None:
        difference = findings.difference
        console.print(
            f"curve                   {len(line.losses)} steps, largest difference from the undisturbed one"
            f" {difference:.3g} nats (tolerance {TOLERANCE:g})"
        )
    account = findings.account
    console.print(
        f"diaries of the workers  {account.entries} entries: {len(account.strangers)} under a foreign plan,"
        f" {len(account.twice)} after a later plan had begun, {len(account.differing)} steps with two results"
    )
    if findings.service is not None:
        _show_service(console, findings, findings.service)
    watched = findings.seconds[0] + findings.seconds[1]
    alarms = len(line.false_alarms) + (len(findings.calm.false_alarms) if findings.calm else 0)
    console.print(
        f"false alarms            {alarms} over {span(watched)}; suspicions that passed: {line.suspicions}"
        f" with faults, {findings.calm.suspicions if findings.calm else '–'} without"
    )
    console.print(f"load of this machine    {findings.load:.1f} at the end of the run with faults")
    for entry in findings.wrong:
        console.print(f"[red]wrong[/]  {entry}")
    console.print(f"written                 {folder / 'timeline.json'}, curves.json and picture.svg there")


def _show_service(console: Console, findings: Findings, service: ReportedRun) -> None:
    for kind, times in findings.told_after().items():
        seconds = sorted(entry for entry in times if entry is not None)
        report = f"median {seconds[len(seconds) // 2]:.2f} s, most {seconds[-1]:.2f} s" if seconds else "never"
        console.print(f"told by the service     {kind}: {len(seconds)} of {len(times)}, {report}")
    answered = service.actions_requested - service.unanswered
    console.print(
        f"fences of the service   {answered} of {service.actions_requested} carried out by the domains' agents"
    )


def _show_judged(console: Console, findings: Findings, requirement: str) -> None:
    judged = findings.judged(requirement)
    if judged is None:
        return
    (estimate, bound), (name, threshold, aim) = judged, JUDGED_DELAYS[requirement]
    report = span(estimate) if math.isfinite(estimate) else "never, for more than one in twenty"
    bounded = "no bound with fewer than 59 incidents"
    if bound is not None:
        bounded = f"bound {span(bound)}" if math.isfinite(bound) else "without bound"
    missed = "" if estimate <= aim else "  [red]missed[/]"
    console.print(
        f"{requirement} {'restored' if name == 'first' else 'interruption':<13} 95th percentile {report},"
        f" {bounded}; required {threshold:g} s, aim {aim:g} s{missed}"
    )


def _show_spreads(console: Console, findings: Findings) -> None:
    table = plain_table("kind", ">n", *(f">{name}" for name in (*DELAYS, "again")))
    for kind, some in findings.by_kind().items():
        cells = []
        for name in DELAYS:
            result = spread([value for entry in some if (value := delays(entry)[name]) is not None])
            cells.append("–" if result is None else f"{result[0]:.2f} / {result[1]:.2f}")
        again = spread([float(entry.again) for entry in some])
        cells.append("–" if again is None else f"{again[0]:g} / {again[1]:g}")
        table.add_row(kind, str(len(some)), *cells)
    console.print("Median / most, in seconds from the fault; of steps made again, their number")
    console.print(table)


if TYPE_CHECKING:
    from kuayu.engine.live.service import WatchingService
    from kuayu.live.findings import Account, Timeline
    from kuayu.live.plan import Settings
    from kuayu.live.supervisor import Kind

STEPS = 120
"""Steps that are made at least, so that there is a curve to see."""
WIDTH = 120
"""Characters of a line where there is no terminal."""


def live(
    *,
    domains: Annotated[int, typer.Option(metavar="N", min=3, max=7, help="Domains that train.")] = 5,
    steps: Annotated[int, typer.Option(metavar="N", min=1, help="Minimum number of steps.")] = STEPS,
    spare: Annotated[
        bool, typer.Option(help="Keep a domain on standby; otherwise the job shrinks until the lost one is back.")
    ] = True,
    minutes: Annotated[float, typer.Option(metavar="M", min=0, help="Minimum duration in minutes.")] = 0.0,
    incidents: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Faults: kinds, as kill,hang,slow,cut,partial,control,amid, with numbers, as kill=20,hang=5, or one"
            " number for each kind; none for a calm run. Their order is drawn. Without a spare there is no slow.",
        ),
    ] = "1",
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of parameters, text and times of faults.")] = 1,
    delay: Annotated[float, typer.Option(metavar="MS", min=0, help="Milliseconds that each gateway adds.")] = 1.0,
    rate: Annotated[
        float, typer.Option(metavar="MBIT", min=0, help="Mbit/s of a connection through a gateway; 0 for any.")
    ] = 0.0,
    service: Annotated[
        bool,
        typer.Option(
            "--service",
            help="Have a service watch: workers beat to a `kuayu serve` of this run through their gateways, its faults"
            " take the place of the run's own judge of heartbeats, and agents of domains fence as it asks.",
        ),
    ] = False,
    compare: Annotated[bool, typer.Option(help="Repeat the training without faults, and compare.")] = True,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Where timeline.json, curves.json and picture.svg go.")
    ] = Path("build/live"),
) -> None:
    """Train a small model over processes that stand for domains, bring faults about, and measure what follows.

    Ends with 0 where the job recovered from every fault, the curve is that of the undisturbed training, the job was
    never in two places and there was no false alarm; with 1 otherwise.
    """
    from kuayu.engine.runs.protocol import EngineError
    from kuayu.live.findings import Findings
    from kuayu.live.plan import Settings
    from kuayu.live.supervisor import ProcessLostError
    from kuayu.live.view import picture

    kinds = _kinds(incidents, spare=spare)
    random.Random(seed).shuffle(kinds)  # noqa: S311 - an order, no secret
    settings = Settings(seed=seed, domains=domains, spares=int(spare), delay=delay / 1e3, rate=rate * 1e6)
    _check_torch()
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise fail(f"{output} cannot be made: {error.strerror}", "name a folder with -o", USAGE) from error
    for entry in (signal.SIGTERM, signal.SIGINT):  # a shell that starts it in the background would have SIGINT ignored
        signal.signal(entry, signal.default_int_handler)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    try:
        begun = time.monotonic()
        watcher = _watching_service() if service else None
        watched = settings if watcher is None else replace(settings, service=watcher.port)
        line, result = _train(console, watched, "with faults", kinds, steps, 60 * minutes, watcher)
        load, middle = os.getloadavg()[0], time.monotonic()
        calm, calm_found = None, None
        if compare:
            calm, calm_found = _train(console, settings, "the same, undisturbed", [], max(line.losses, default=1), 0.0)
        seconds = (middle - begun, time.monotonic() - middle)
        report = None if watcher is None else watcher.found
        findings = Findings(settings, line, result, calm, calm_found, load, seconds, report)
    except KeyboardInterrupt:
        console.print("stopped; all processes have ended")
        raise typer.Exit(130) from None
    except EngineError as error:
        raise fail(error.cause, error.hint) from error
    except ProcessLostError as error:
        hint = "run it again; if it happens again, see whether memory is short"
        raise fail(str(error), hint) from error
    (output / "timeline.json").write_text(json.dumps(findings.to_json(), indent=1) + "\n", encoding="utf-8")
    (output / "curves.json").write_text(json.dumps(findings.curves()) + "\n", encoding="utf-8")
    (output / "picture.svg").write_text(picture(findings), encoding="utf-8")
    show_findings(console, findings, output)
    if findings.wrong:
        raise typer.Exit(1)


def _train(
    console: Console,
    settings: "Settings",
    title: str,
    kinds: "list[Kind]",
    steps: int,
    seconds: float,
    watcher: "WatchingService | None" = None,
) -> "tuple[Timeline, Account]":
    from kuayu.live.run import Run
    from kuayu.live.view import View

    if not console.is_terminal:
        console.print(f"{title}: seed {settings.seed}, {settings.domains} domains, {len(kinds)} incidents")
    view = View(console, f"kuayu live, {title}", len(kinds))
    with tempfile.TemporaryDirectory(prefix="kuayu-live-") as folder, view:
        run = Run(settings, Path(folder), kinds, view.watch, steps, seconds, watcher)
        view.follow(run.timeline)
        return run.timeline, run.go()


def _watching_service() -> "WatchingService":
    """A service for the run; it needs what the reference needs, which a run alone does not."""
    from kuayu.engine.live.service import WatchingService

    return WatchingService()


def _kinds(text: str, *, spare: bool) -> "list[Kind]":
    """Faults as they are told: a number, kinds, or kinds with numbers; a slow worker is replaced by a spare alone."""
    from kuayu.live.supervisor import Kind

    if text.strip() in {"", "none"}:
        return []
    if text.strip().isdecimal():
        return [kind for kind in Kind if spare or kind is not Kind.slow for _ in range(int(text))]
    result: list[Any] = []
    for part in text.split(","):
        name, _, number = part.strip().partition("=")
        if name not in list(Kind) or not (number or "1").isdecimal():
            names = ", ".join(Kind)
            hint = f"kinds are {names}; write kill,hang or kill=20,hang=5, or a number"
            raise fail(f"--incidents: {part!r} is not a kind of fault", hint, USAGE)
        result += [Kind(name)] * int(number or 1)
    if Kind.slow in result and not spare:
        hint = "a slow worker is replaced by a spare alone: leave out slow, or --no-spare"
        raise fail("--incidents: slow asks for a spare", hint, USAGE)
    return result


def _check_torch() -> None:
    """Workers need PyTorch; it is not loaded here."""
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        raise fail("this command needs torch", "pip install 'kuayu[reference,training]'", 3)
