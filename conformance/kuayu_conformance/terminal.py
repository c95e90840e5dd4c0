"""Progress of a run on a terminal, or line by line where there is none."""

import threading
import time
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kuayu_conformance.check import Check
from kuayu_conformance.run.judging import Results
from kuayu_conformance.run.runner import Progress as RunProgress
from kuayu_schemas.models import Verdict

COLOURS = {Verdict.pass_: "green", Verdict.fail: "red", Verdict.harness_error: "red"}


class TerminalProgress(RunProgress):
    """A bar over all checks, and a line for each that has ended."""

    def __init__(self, console: Console) -> None:
        """Draw on ``console``."""
        self._console = console
        self._lock = threading.Lock()
        self._running: dict[str, float] = {}
        self._bar = Progress(
            TextColumn("[bold]conformance[/]"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None)

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

    def started(self, check: Check[Any]) -> None:
        """Name what runs now."""
        with self._lock:
            self._running[check.name] = time.monotonic()
            self._bar.update(self._task, description=", ".join(self._running))

    def finished(self, check: Check[Any], results: Results) -> None:
        """Print the verdicts of a check."""
        with self._lock:
            seconds = time.monotonic() - self._running.pop(check.name, time.monotonic())
            verdicts = "  ".join(
                f"{name} [{COLOURS.get(result.verdict, 'yellow')}]{result.verdict.value}[/]"
                for name, result in sorted(results.items())
            )
            self._bar.update(self._task, advance=1, description=", ".join(self._running))
            self._console.print(f"[dim]{seconds:6.1f} s[/]  {check.name:16} {verdicts}", highlight=False)

    def cleaned(self, left: int) -> None:
        """Say what could not be removed."""
        if left:
            self._console.print(f"[yellow]note[/] {left} things that the run had made could not be removed")
