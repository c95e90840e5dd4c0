"""What one sees while it runs: a view that is drawn anew on a terminal, lines elsewhere."""

import time
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kuayu.live.findings import DELAYS, delays, not_over
from kuayu.live.timeline import Incident, Timeline

REDRAW_S = 0.25
SAID_STEPS = 50
SHOWN_INCIDENTS, SPARK_WIDTH = 12, 60
_BARS = "▁▂▃▄▅▆▇█"


class View:
    """Shows a run as it goes.

    Args:
        console: Where.
        title: What runs.
        planned: Incidents that will be brought about.
    """

    def __init__(self, console: Console, title: str, planned: int) -> None:
        self._console, self._title, self._planned = console, title, planned
        self._timeline = Timeline()
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._drawn, self._said = 0.0, 0
        self._suspected: dict[str, str] = {}

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def follow(self, timeline: Timeline) -> None:
        """Show this timeline."""
        self._timeline = timeline

    def watch(self, event: dict[str, Any] | None) -> None:
        """Something happened, or time passed."""
        if event is not None and event["kind"] == "suspicion":
            self._suspected[event["worker"]] = event["stage"]
        if self._live is None:
            if event is not None and (line := self._line(event)):
                self._console.print(line, markup=False)
        elif time.monotonic() - self._drawn >= REDRAW_S:
            self._drawn = time.monotonic()
            self._live.update(self._drawing(), refresh=True)

    def _line(self, event: dict[str, Any]) -> str:
        match event["kind"]:
            case "step":
                if event["step"] < self._said + SAID_STEPS:
                    return ""
                self._said = event["step"]
                return f"step {event['step']:>5}  loss {event['loss']:.4f}  {event['world']} workers"
            case "struck":
                return f"        {event['fault']:<8} {event['worker']}"
            case "verdict":
                return f"        verdict  {event['worker']} is {event['fault']}"
            case "plan":
                members = " ".join(event["members"])
                return f"        plan {event['generation']}   {members}, from step {event['restore']}"
        return ""

    def _drawing(self) -> Group:
        line = self._timeline
        now = time.monotonic()
        rate = sum(at > now - 5 for at, _ in line.progress) / 5
        loss = f"{line.losses[line.step]:.4f}" if line.step in line.losses else "–"
        left = f"{len(line.incidents)} of {self._planned} incidents"
        head = Text.assemble(
            (self._title, "bold"), f"   step {line.step}   loss {loss}   {rate:.1f} new steps/s   {left}"
        )
        return Group(head, Text(spark(line.losses), "cyan"), self._workers(), Text(""), incident_table(line.incidents))

    def _workers(self) -> Table:
        line, table = self._timeline, Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("worker", "state"):
            table.add_column(heading)
        victim = line.open.worker if line.open else None
        for worker in sorted({*line.connected, *line.members}):
            state, style = ("trains", "green") if worker in line.members else ("stands by", "dim")
            if worker not in line.connected:
                state, style = "gone", "red"
            elif self._suspected.get(worker, "none") != "none":
                state, style = self._suspected[worker], "yellow"
            if worker == victim and line.open is not None:
                state += f"  ← {line.open.kind}"
            table.add_row(worker, Text(state, style))
        return table


def incident_table(incidents: list[Incident], last: int = SHOWN_INCIDENTS) -> Table:
    """The latest incidents, a row each; seconds from the fault."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("incident", "worker", "taken for"):
        table.add_column(heading)
    for heading in ("detected s", "decided s", "in place s", "first step s", "interruption s", "steps again"):
        table.add_column(heading, justify="right")
    for each in incidents[-last:]:
        told = delays(each)
        figures = ["missed" if not_over(each) and each.lifted else _figure(told[name]) for name in DELAYS]
        table.add_row(each.kind, each.worker, each.fault or "–", *figures, str(each.again))
    return table


def spark(losses: dict[int, float], width: int = SPARK_WIDTH) -> str:
    """The curve in one line of bars, each the mean of its stretch."""
    values = [losses[step] for step in sorted(losses)]
    if not values:
        return ""
    count = min(width, len(values))
    stretches = [values[number * len(values) // count : (number + 1) * len(values) // count] for number in range(count)]
    means = [sum(each) / len(each) for each in stretches]
    top = max(means) or 1.0
    return "".join(_BARS[min(len(_BARS) - 1, int(each / top * len(_BARS)))] for each in means)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
