"""Views of a run: on the terminal while it runs, and as a picture afterwards.

1. The picture of a run: the curve with and without faults, and progress over time with the incidents in it.
2. What one sees while it runs: a view that is drawn anew on a terminal, lines elsewhere.
"""

import html
import time
from collections.abc import Sequence
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kuayu.live.findings import DELAYS, Findings, Incident, Timeline, delays, not_over
from kuayu.live.supervisor import Kind

_WIDTH, _LEFT, _RIGHT, _HEIGHT, _TOP, _GAP = 900, 64, 20, 230, 66, 62
_MAX_POINTS = 1200  # points of a line
_COLOURS = {
    Kind.kill: "#b3261e",
    Kind.hang: "#7b3fa0",
    Kind.slow: "#9a6a00",
    Kind.cut: "#0b6bcb",
    Kind.partial: "#00796b",
    Kind.control: "#5d4037",
    Kind.amid: "#c2185b",
}
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#444}.title{font-size:14px;font-weight:600;fill:#111}"
    ".axis{stroke:#bbb;fill:none}.grid{stroke:#eee}.line{fill:none;stroke-linejoin:round}"
)

Point = tuple[float, float]


class _Panel:
    """Axes from zero, with room for so much."""

    def __init__(self, number: int, across: float, up: float) -> None:
        self.top = _TOP + number * (_HEIGHT + _GAP)
        self._across, self._up = across or 1.0, up or 1.0

    def x(self, figure: float) -> float:
        return round(_LEFT + figure / self._across * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, figure: float) -> float:
        return round(self.top + _HEIGHT * (1 - figure / self._up), 1)

    def frame(self, title: str, across: str, up: str) -> str:
        parts = [f'<text class="title" x="{_LEFT}" y="{self.top - 12}">{html.escape(title)}</text>']
        for figure in _round(self._up):
            y = self.y(figure)
            parts.append(f'<path class="grid" d="M{_LEFT} {y}H{_WIDTH - _RIGHT}"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{figure:g}</text>')
        bottom = self.top + _HEIGHT
        parts.extend(
            f'<text x="{self.x(figure)}" y="{bottom + 16}" text-anchor="middle">{figure:g}</text>'
            for figure in _round(self._across)
        )
        parts.append(f'<path class="axis" d="M{_LEFT} {self.top}V{bottom}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_WIDTH - _RIGHT}" y="{bottom + 32}" text-anchor="end">{html.escape(across)}</text>')
        parts.append(f'<text x="{_WIDTH - _RIGHT}" y="{self.top - 12}" text-anchor="end">{html.escape(up)}</text>')
        return "".join(parts)

    def line(self, points: Sequence[Point], colour: str, width: float) -> str:
        stride = max(1, len(points) // _MAX_POINTS)
        places = "L".join(f"{self.x(a)} {self.y(b)}" for a, b in [*points[::stride], points[-1]])
        return f'<path class="line" stroke="{colour}" stroke-width="{width}" d="M{places}"/>'

    def mark(self, figure: float, colour: str, until: float | None = None) -> str:
        a = self.x(figure)
        b = max(self.x(until) if until is not None else a, a + 1)
        shade = f'<rect x="{a}" y="{self.top}" width="{b - a:.1f}" height="{_HEIGHT}" fill="{colour}" opacity=".18"/>'
        return f'{shade}<path d="M{a} {self.top}V{self.top + _HEIGHT}" stroke="{colour}" stroke-width=".8"/>'


def picture(findings: Findings) -> str:
    """The picture as SVG."""
    line = findings.timeline
    losses = [(float(step), line.losses[step]) for step in sorted(line.losses)]
    if not losses:
        return '<svg xmlns="http://www.w3.org/2000/svg"/>'
    origin = line.progress[0][0]
    moved = [(instant - origin, float(step)) for instant, step in line.progress]
    over = [incident for incident in line.incidents if not not_over(incident)]
    curve = _Panel(0, losses[-1][0], max(loss for _, loss in losses) * 1.05)
    course = _Panel(1, moved[-1][0], moved[-1][1])
    parts = [curve.frame("Loss", "step", "nats a character")]
    for entry in over:
        step = max((step for instant, step in line.progress if instant <= entry.injected_at), default=0)
        parts.append(curve.mark(step, _COLOURS[entry.kind]))
    parts.append(curve.line(losses, "#9cc3ee", 5))
    if findings.calm is not None and findings.calm.losses:
        calm = [(float(step), findings.calm.losses[step]) for step in sorted(findings.calm.losses)]
        parts.append(curve.line(calm, "#111", 1.2))
    parts.append(course.frame("Steps made, without those made again", "seconds", "step"))
    parts.extend(
        course.mark(entry.injected_at - origin, _COLOURS[entry.kind], (entry.progress or entry.injected_at) - origin)
        for entry in over
    )
    parts.extend((course.line(moved, "#111", 1.4), _legend(findings)))
    height = _TOP + 2 * (_HEIGHT + _GAP) + 10
    box = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    ground = f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" aria-label="Course of a live run">'
        f"<style>{_STYLE}</style>{ground}{''.join(parts)}</svg>\n"
    )


def _legend(findings: Findings) -> str:
    entries = [("#9cc3ee", "with faults")]
    if findings.calm is not None:
        entries.append(("#111", "same seed, undisturbed"))
    entries += [(_COLOURS[kind], f"{kind} ({len(some)})") for kind, some in findings.by_kind().items()]
    parts, x, y = [], _LEFT, 18
    for colour, label in entries:
        width = 30 + 7 * len(label)
        if x + width > _WIDTH:
            x, y = _LEFT, y + 16
        parts.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{x + 14}" y="{y}">{html.escape(label)}</text>')
        x += width
    return "".join(parts)


def _round(most: float) -> list[float]:
    """Round figures from zero to the greatest, five or so."""
    power = 10.0 ** len(str(int(most / 5))) / 10 if most >= 5 else 0.1  # noqa: PLR2004 - five figures
    step = next((power * entry for entry in (1, 2, 5, 10) if most / (power * entry) <= 6), power * 10)  # noqa: PLR2004
    return [round(step * number, 6) for number in range(int(most / step) + 1)]


REDRAW_S = 0.25
PRINTED_STEPS = 50
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
                if event["step"] < self._said + PRINTED_STEPS:
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
        rate = sum(instant > now - 5 for instant, _ in line.progress) / 5
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
    for incident in incidents[-last:]:
        report = delays(incident)
        figures = ["missed" if not_over(incident) and incident.lifted else _figure(report[name]) for name in DELAYS]
        table.add_row(incident.kind, incident.worker, incident.fault or "–", *figures, str(incident.again))
    return table


def spark(losses: dict[int, float], width: int = SPARK_WIDTH) -> str:
    """The curve in one line of bars, each the mean of a segment."""
    values = [losses[step] for step in sorted(losses)]
    if not values:
        return ""
    count = min(width, len(values))
    segments = [values[number * len(values) // count : (number + 1) * len(values) // count] for number in range(count)]
    means = [sum(segment) / len(segment) for segment in segments]
    top = max(means) or 1.0
    return "".join(_BARS[min(len(_BARS) - 1, int(mean / top * len(_BARS)))] for mean in means)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
