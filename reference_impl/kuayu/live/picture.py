"""The picture of a run: the curve with and without faults, and progress over time with the incidents in it."""

import html
from collections.abc import Sequence

from kuayu.live.faults import Kind
from kuayu.live.findings import Findings, not_over

_WIDTH, _LEFT, _RIGHT, _HEIGHT, _TOP, _GAP = 900, 64, 20, 230, 66, 62
_MOST = 1200  # points of a line
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
    """Axes from nought, with room for so much."""

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
        stride = max(1, len(points) // _MOST)
        places = "L".join(f"{self.x(a)} {self.y(b)}" for a, b in [*points[::stride], points[-1]])
        return f'<path class="line" stroke="{colour}" stroke-width="{width}" d="M{places}"/>'

    def mark(self, at: float, colour: str, until: float | None = None) -> str:
        a = self.x(at)
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
    moved = [(at - origin, float(step)) for at, step in line.progress]
    over = [each for each in line.incidents if not not_over(each)]
    curve = _Panel(0, losses[-1][0], max(loss for _, loss in losses) * 1.05)
    course = _Panel(1, moved[-1][0], moved[-1][1])
    parts = [curve.frame("Loss", "step", "nats a character")]
    for each in over:
        step = max((step for at, step in line.progress if at <= each.at), default=0)
        parts.append(curve.mark(step, _COLOURS[each.kind]))
    parts.append(curve.line(losses, "#9cc3ee", 5))
    if findings.calm is not None and findings.calm.losses:
        calm = [(float(step), findings.calm.losses[step]) for step in sorted(findings.calm.losses)]
        parts.append(curve.line(calm, "#111", 1.2))
    parts.append(course.frame("Steps made, without those made again", "seconds", "step"))
    parts.extend(
        course.mark(each.at - origin, _COLOURS[each.kind], (each.progress or each.at) - origin) for each in over
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
    """Round figures from nought to the greatest, five or so."""
    power = 10.0 ** len(str(int(most / 5))) / 10 if most >= 5 else 0.1  # noqa: PLR2004 - five figures
    step = next((power * each for each in (1, 2, 5, 10) if most / (power * each) <= 6), power * 10)  # noqa: PLR2004
    return [round(step * number, 6) for number in range(int(most / step) + 1)]
