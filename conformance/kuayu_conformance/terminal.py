"""Progress of a run on a terminal, or line by line where there is none; what the target says is shown, not obeyed."""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from kuayu_conformance.answers import shorten
from kuayu_conformance.check import Check
from kuayu_conformance.rendering.view import reason_of
from kuayu_conformance.rendering.words import visible
from kuayu_conformance.run.judgement import Results
from kuayu_conformance.run.live import Exchange
from kuayu_conformance.run.runner import Progress as RunProgress
from kuayu_schemas.models import RequirementResult, Verdict

COLOURS = {Verdict.pass_: "green", Verdict.fail: "red", Verdict.harness_error: "red"}

NEED_NO_REASON = frozenset({Verdict.pass_, Verdict.not_applicable, Verdict.not_supported})
"""Verdicts under which nothing is printed as a check ends."""

LONGEST_PATH = 2000
"""Characters of a path that are printed."""

SAID_EVERY = 60.0
"""Seconds after which it is said how far a long check is, where there is no terminal to draw a bar on."""


class TimeLeft(ProgressColumn):
    """How long it will take on, by what it has taken of late: parts of a check take minutes, too long for a speed."""

    def render(self, task: Task) -> Text:
        """Minutes, once something has passed; nothing for all checks together, which are not alike."""
        reports = task.fields["reports"]
        return Text(left(reports, task.total or 0.0, time.monotonic()) if reports else "")


def left(reports: Sequence[tuple[float, int]], of: float, now: float) -> str:
    """Time left in words, by what was done in the latter half of the time; empty where nothing can be said.

    A run that goes on has the parts that it has kept in no time, and needs what the others do for the rest.

    Args:
        reports: Instants in seconds, and how many parts were done; the first is the start, with none.
        of: All parts.
        now: The instant.
    """
    (begun, _), (_, done) = reports[0], reports[-1]
    since, before = [report for report in reports if report[0] <= (begun + now) / 2][-1]
    if before == done:
        since, before = begun, 0
    if not before < done < of:
        return ""
    minutes = (now - since) * (of - done) / (done - before) / 60.0
    return f"about {minutes:.0f} min left" if minutes >= 1.0 else "less than a minute left"


class TerminalProgress(RunProgress):
    """A bar over all checks, one for each that takes long, and a line for each that has ended."""

    def __init__(self, console: Console) -> None:
        """Draw on ``console``."""
        self._console = console
        self._lock = threading.Lock()
        self._running: dict[str, float] = {}
        self._long: dict[str, TaskID] = {}
        self._reports: dict[str, list[tuple[float, int]]] = {}
        self._said: dict[str, float] = {}
        self._bar = Progress(
            TextColumn("[bold]{task.fields[name]}[/]"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            TimeLeft(),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, name="conformance", reports=())

    def __enter__(self) -> Self:
        """Begin to draw."""
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop drawing."""
        if self._console.is_terminal:
            self._bar.stop()

    def planned(self, checks: list[Check[Any]]) -> None:
        """Set the length of the bar."""
        self._bar.update(self._task, total=len(checks))

    def resumed(self, ended: int, stand: Mapping[str, int]) -> None:
        """Say what need not be asked again."""
        for name, exchanges in stand.items():
            goes_on = f"goes on after {exchanges} answers" if exchanges else "is begun anew"
            self._console.print(f"[dim]note[/]  {name} {goes_on}", highlight=False)
        self._console.print(f"[dim]note[/]  {ended} checks had ended", highlight=False)

    def started(self, check: Check[Any]) -> None:
        """Name what runs now."""
        with self._lock:
            self._running[check.name] = time.monotonic()
            self._bar.update(self._task, description=", ".join(self._running))

    def passed(self, check: str, done: int, of: int) -> None:
        """Draw a bar for a check, or say now and then how far it is."""
        with self._lock:
            since = self._running.setdefault(check, time.monotonic())
            if check not in self._long:
                reports = self._reports[check] = [(since, 0)]
                self._long[check] = self._bar.add_task("", total=of, name=f"  {check}", reports=reports)
                self._bar.tasks[-1].start_time = self._bar.get_time() - (time.monotonic() - since)
            self._reports[check].append((time.monotonic(), done))
            self._bar.update(self._long[check], completed=done, total=of)
            if not self._console.is_terminal and time.monotonic() - self._said.get(check, since) >= SAID_EVERY:
                self._said[check] = time.monotonic()
                words = ", ".join(filter(None, (f"{done} of {of}", left(self._reports[check], of, time.monotonic()))))
                self._console.print(f"{check}: {words}", highlight=False)

    def finished(self, check: Check[Any], results: Results) -> None:
        """Print the verdicts of a check, and under it why, where a vendor has to look at something."""
        with self._lock:
            seconds = time.monotonic() - self._running.pop(check.name, time.monotonic())
            if check.name in self._long:
                self._bar.remove_task(self._long.pop(check.name))
            verdicts = "  ".join(
                f"{name} [{COLOURS.get(result.verdict, 'yellow')}]{result.verdict.value}[/]"
                for name, result in sorted(results.items())
            )
            self._bar.update(self._task, advance=1, description=", ".join(self._running))
            self._console.print(f"[dim]{seconds:6.1f} s[/]  {check.name:16} {verdicts}", highlight=False)
            for _, result in sorted(results.items()):
                if result.verdict not in NEED_NO_REASON:
                    self._print_line(Text(f"{'':10}{_why(result)}", style="dim"))

    def _print_line(self, line: Text) -> None:
        """Print on one line: of one that is too long for a terminal, what fits."""
        if self._console.is_terminal:
            self._console.print(line, no_wrap=True, overflow="ellipsis", highlight=False)
        else:
            self._console.print(line, soft_wrap=True, highlight=False)

    def cleaned(self, left: int) -> None:
        """Say what could not be removed."""
        if left:
            self._console.print(f"[yellow]note[/] {left} things that the run had made could not be removed")

    def judging(self) -> None:
        """Name what is done now."""
        with self._lock:
            self._bar.update(self._task, description="judging the transcript")


def _why(result: RequirementResult) -> str:
    """Why a result is no pass, with the first thing that was found otherwise, on one line."""
    evidence = [f"expected {result.evidence[0].expected}, found {result.evidence[0].found}"] if result.evidence else []
    why = "; ".join([reason_of(result) or result.verdict.value, *evidence])
    return visible(shorten(f"{result.requirement}: {why}"))


def exchange_line(exchange: Exchange) -> Text:
    """One exchange: episode, method, path, status or why there is none, seconds, bytes of the answer's body."""
    answer = exchange.answer
    answered = shorten(answer.failure) if answer.failure else str(answer.status)
    path = shorten(exchange.request.path, LONGEST_PATH)
    what = f"{exchange.episode}  {exchange.request.method} {path}  {answered}"
    return Text(visible(f"{what}  {answer.seconds:.3f} s  {len(answer.body)} B"))
