"""``kuayu live``: a real training that goes on while domains fail."""

import json
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

from kuayu.cli.probe import USAGE, fail

if TYPE_CHECKING:
    from kuayu.engine.live.service import Attended
    from kuayu.live.accounts import Account
    from kuayu.live.faults import Kind
    from kuayu.live.settings import Settings
    from kuayu.live.timeline import Timeline

STEPS = 120
"""Steps that are made at least, so that there is a curve to see."""
WIDTH = 120
"""Characters of a line where there is no terminal."""


def live(
    *,
    domains: Annotated[int, typer.Option(metavar="N", min=3, max=7, help="Domains that train.")] = 5,
    steps: Annotated[int, typer.Option(metavar="N", min=1, help="Steps to make at least.")] = STEPS,
    spare: Annotated[
        bool, typer.Option(help="Have a domain stand by; without, the job goes on smaller until the lost one is back.")
    ] = True,
    minutes: Annotated[float, typer.Option(metavar="M", min=0, help="Minutes to go on at least.")] = 0.0,
    incidents: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Faults: kinds, as kill,hang,slow,cut,partial,control,amid, with numbers, as kill=20,hang=5, or one"
            " number for each kind; none for a calm run. Their order is drawn. Without a spare there is no slow.",
        ),
    ] = "1",
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of parameters, text, and moments of faults.")] = 1,
    delay: Annotated[float, typer.Option(metavar="MS", min=0, help="Milliseconds that each gateway takes.")] = 1.0,
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
    compare: Annotated[bool, typer.Option(help="Make the same training without faults, and compare.")] = True,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Where timeline.json, curves.json and picture.svg go.")
    ] = Path("build/live"),
) -> None:
    """Train a small model over processes that stand for domains, bring faults about, and measure what follows.

    Ends with 0 where the job recovered from every fault, the curve is that of the undisturbed training, the job was
    never in two places and there was no false alarm; with 1 otherwise.
    """
    from kuayu.live.findings import Findings
    from kuayu.live.ground import Lost
    from kuayu.live.picture import picture
    from kuayu.live.settings import Settings

    kinds = _kinds(incidents, spare=spare)
    random.Random(seed).shuffle(kinds)  # noqa: S311 - an order, no secret
    settings = Settings(seed=seed, domains=domains, spares=int(spare), delay=delay / 1e3, rate=rate * 1e6)
    _check_torch()
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise fail(f"{output} cannot be made: {error.strerror}", "name a folder with -o", USAGE) from error
    for each in (signal.SIGTERM, signal.SIGINT):  # a shell that starts it in the background would have SIGINT ignored
        signal.signal(each, signal.default_int_handler)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    try:
        begun = time.monotonic()
        attended = _attended() if service else None
        watched = settings if attended is None else replace(settings, service=attended.port)
        line, found = _train(console, watched, "with faults", kinds, steps, 60 * minutes, attended)
        load, middle = os.getloadavg()[0], time.monotonic()
        calm, calm_found = None, None
        if compare:
            calm, calm_found = _train(console, settings, "the same, undisturbed", [], max(line.losses, default=1), 0.0)
        seconds = (middle - begun, time.monotonic() - middle)
        told = None if attended is None else attended.found
        findings = Findings(settings, line, found, calm, calm_found, load, seconds, told)
    except KeyboardInterrupt:
        console.print("stopped; all processes have ended")
        raise typer.Exit(130) from None
    except Lost as error:
        hint = "run it again; if it happens again, see whether memory is short"
        raise fail(str(error), hint) from error
    (output / "timeline.json").write_text(json.dumps(findings.to_json(), indent=1) + "\n", encoding="utf-8")
    (output / "curves.json").write_text(json.dumps(findings.curves()) + "\n", encoding="utf-8")
    (output / "picture.svg").write_text(picture(findings), encoding="utf-8")
    from kuayu.cli.live_tables import show_findings

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
    attended: "Attended | None" = None,
) -> "tuple[Timeline, Account]":
    from kuayu.live.running import Run
    from kuayu.live.view import View

    if not console.is_terminal:
        console.print(f"{title}: seed {settings.seed}, {settings.domains} domains, {len(kinds)} incidents")
    view = View(console, f"kuayu live, {title}", len(kinds))
    with tempfile.TemporaryDirectory(prefix="kuayu-live-") as folder, view:
        run = Run(settings, Path(folder), kinds, view.watch, steps, seconds, attended)
        view.follow(run.timeline)
        return run.timeline, run.go()


def _attended() -> "Attended":
    """A service for the run; it needs what the reference needs, which a run alone does not."""
    from kuayu.engine.live.service import Attended

    return Attended()


def _kinds(told: str, *, spare: bool) -> "list[Kind]":
    """Faults as they are told: a number, kinds, or kinds with numbers; a slow worker is replaced by a spare alone."""
    from kuayu.live.faults import Kind

    if told.strip() in {"", "none"}:
        return []
    if told.strip().isdecimal():
        return [kind for kind in Kind if spare or kind is not Kind.slow for _ in range(int(told))]
    found: list[Any] = []
    for part in told.split(","):
        name, _, number = part.strip().partition("=")
        if name not in list(Kind) or not (number or "1").isdecimal():
            names = ", ".join(Kind)
            hint = f"kinds are {names}; write kill,hang or kill=20,hang=5, or a number"
            raise fail(f"--incidents: {part!r} is no kind of fault", hint, USAGE)
        found += [Kind(name)] * int(number or 1)
    if Kind.slow in found and not spare:
        hint = "a slow worker is replaced by a spare alone: leave out slow, or --no-spare"
        raise fail("--incidents: slow asks for a spare", hint, USAGE)
    return found


def _check_torch() -> None:
    """Workers need PyTorch; it is not loaded here."""
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        raise fail("this command needs torch", "pip install 'kuayu[reference,training]'", 3)
