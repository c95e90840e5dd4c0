"""``python -m kuayu_conformance.testbed.telemetry --seconds 60 --plot FILE.svg``: a world told and drawn.

The excerpt shows states of nodes over time, and the signals of one family around a straggler.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from kuayu_conformance.rendering.chart import Axis
from kuayu_conformance.rendering.figures import Unit
from kuayu_conformance.testbed.telemetry.population import FULL, LEAST_SECONDS, QUICK, Incident, Scale
from kuayu_conformance.testbed.telemetry.world import World

if TYPE_CHECKING:
    from kuayu_schemas import documents

_COLOURS = {
    "idle": "#d5dce2",
    "busy": "#4f9d8f",
    "degraded": "#e0b23c",
    "straggling": "#d9722e",
    "faulty": "#b8321f",
    "offline": "#2b2f33",
    "unknown": "#ffffff",
}
_WIDTH, _LEFT, _RIGHT = 960, 70, 20
_ROW, _MOST_ROWS = 4, 120
_PANEL, _GAP = 120, 46
_AROUND = 20  # seconds before and after the beginning of the straggling
_PANELS = (
    ("accelerator_utilisation", "utilisation", 1.0, "1"),
    ("matrix_pipe_activity", "matrix pipes", 1.0, "1"),
    ("power", "power, kW", 1e-3, "kW"),
    ("scale_out_transmit_flow", "sent, GB/s", 1e-9, "GB/s"),
)


@dataclass(frozen=True)
class _Place:
    """A stretch of time on the drawing."""

    since: float
    until: float

    def x(self, second: float) -> float:
        share = (second - self.since) / (self.until - self.since)
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * min(max(share, 0.0), 1.0), 1)


def excerpt(world: World) -> str:
    """The drawing as SVG.

    Raises:
        ValueError: No family with a straggler can be shown.
    """
    until = world.scale.total
    place = _Place(0, until)
    nodes = _chosen(world)
    raster_height = len(nodes) * _ROW
    top = 60
    parts = [_text(_LEFT, 24, f"States of {len(nodes)} nodes over {until} s", size=15), *_legend(40)]
    parts += _raster(world, nodes, place, top)
    parts += _seconds(place, top + raster_height + 14)
    parts.append(_line(place.x(world.scale.warm_up), top - 4, top + raster_height, "end of the warm-up"))
    top += raster_height + 60
    incident, family = _straggler(world)
    about = f"A family of {len(family)} around a straggler ({escape(incident.cause)}, orange)"
    parts.append(_text(_LEFT, top - 14, about, size=15))
    around = _Place(max(0.0, incident.onset - _AROUND), min(float(until), incident.onset + _AROUND))
    for measure, name, factor, unit in _PANELS:
        parts += _panel(world, incident, family, around, (measure, name, factor, unit, top + 10))
        top += _PANEL + _GAP
    parts += _seconds(around, top - _GAP + 40)
    height = top + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        f'font-size="11" role="img"><title>Telemetry of the testbed</title>'
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _chosen(world: World) -> list[str]:
    """Nodes of the partitioned domain and of the next one, as many of each; families stand together."""
    family = {urn: number for number, body in enumerate(world.families) for urn in body["members"]}

    def together(body: "documents.Node") -> int:
        return family.get(body["compute_identifier"], len(world.families))

    named = [str(body["id"]) for body in world.domains]
    cut = named.index(world.partitions[0].domain)
    shown: list[str] = []
    for domain in (named[cut], named[(cut + 1) % len(named)]):
        bodies = sorted((body for body in world.nodes if body["domain"] == domain), key=together)
        shown += [str(body["id"]) for body in bodies][: _MOST_ROWS // 2]
    return shown


def _raster(world: World, nodes: Sequence[str], place: _Place, top: int) -> Iterator[str]:
    truths = [world.truth(second) for second in range(int(place.until))]
    for number, node in enumerate(nodes):
        row = [truth.get(node, "unknown") for truth in truths]
        second = 0
        for state, run in groupby(row):
            length = len(list(run))
            x, width = place.x(second), place.x(second + length) - place.x(second)
            second += length
            yield (
                f'<rect x="{x}" y="{top + number * _ROW}" width="{width:.1f}" height="{_ROW - 0.5}" '
                f'fill="{_COLOURS[state]}"/>'
            )


def _legend(y: int) -> Iterator[str]:
    x = float(_LEFT)
    for state, colour in _COLOURS.items():
        name = "unknown (partitioned)" if state == "unknown" else state
        yield f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}" stroke="#888" stroke-width=".5"/>'
        yield _text(x + 14, y, name)
        x += 34 + 6.2 * len(name)


def _straggler(world: World) -> tuple[Incident, list[str]]:
    """The first family of three or more in which only one becomes slow, and stays so while it is shown."""
    urns = {body["compute_identifier"]: str(body["id"]) for body in world.nodes}
    families = {urns[urn]: body["members"] for body in world.families for urn in body["members"] if urn in urns}
    for incident in world.incidents:
        late = not _AROUND <= incident.onset <= world.scale.total - _AROUND
        if late or incident.after != "straggling" or len(families[incident.node]) < 3:  # noqa: PLR2004 - others to see
            continue
        family = [urns[urn] for urn in families[incident.node]]
        others = [other for other in world.incidents if other.node in family and other is not incident]
        shown = "matrix_pipe_activity" in _measures(world, incident.node)
        if shown and all(abs(other.onset - incident.onset) > _AROUND for other in others):
            return incident, family
    raise ValueError("no family with a straggler can be shown: play more seconds")


def _measures(world: World, node: str) -> set[str]:
    """What is reported of a node."""
    deliveries = world.deliveries(world.scale.warm_up)
    samples = (sample for one in deliveries for _, sample in one.samples)
    return {measure for sample in samples if sample["subject"] == node for measure in sample}


def _panel(
    world: World,
    incident: Incident,
    family: Sequence[str],
    place: _Place,
    panel: tuple[str, str, float, str, int],
) -> Iterator[str]:
    measure, name, factor, unit, top = panel
    lines = {node: _curve(world, node, measure, factor, place) for node in family}
    axis = Axis(0.0, max(value for line in lines.values() for _, value in line) * 1.05 or 1.0, False, Unit(unit))
    yield _text(_LEFT, top + 6, name)
    for figure in axis.round_figures():
        y = round(top + 12 + _PANEL * (1 - axis.place(figure) / 100), 1)
        yield f'<path d="M{_LEFT} {y}H{_WIDTH - _RIGHT}" stroke="#e3e6e8"/>'
        yield _text(_LEFT - 6, y + 4, f"{figure:g}", anchor="end")
    for node in sorted(family, key=lambda node: node == incident.node):
        points = "L".join(
            f"{place.x(instant)} {round(top + 12 + _PANEL * (1 - axis.place(value) / 100), 1)}"
            for instant, value in lines[node]
        )
        mine = node == incident.node
        colour, width = (_COLOURS["straggling"], 2) if mine else (_COLOURS["busy"], 1)
        yield f'<path d="M{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
    yield _line(place.x(incident.onset), top + 12, top + 12 + _PANEL, "")


def _curve(world: World, node: str, measure: str, factor: float, place: _Place) -> list[tuple[float, float]]:
    curve = zip(world.instants(node).tolist(), world.signal(node, measure).tolist(), strict=True)
    return [(instant, value * factor) for instant, value in curve if place.since <= instant <= place.until]


def _seconds(place: _Place, y: float) -> Iterator[str]:
    axis = Axis(place.since, place.until, logarithmic=False, unit=Unit("s"))
    for figure in axis.round_figures():
        yield _text(place.x(figure), y, f"{figure:g} s", anchor="middle")


def _line(x: float, top: float, bottom: float, name: str) -> str:
    return f'<path d="M{x} {top}V{bottom}" stroke="#333" stroke-dasharray="3 2"/>' + _text(x + 4, top - 2, name)


def _text(x: float, y: float, words: str, *, size: int = 11, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}">{words}</text>'


def main(arguments: list[str]) -> int:
    """Make a world, say what happens in it, and draw an excerpt."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_conformance.testbed.telemetry", description=__doc__)
    parser.add_argument("--seconds", type=int, default=None, help="seconds played after the warm-up, 60 at least")
    parser.add_argument("--seed", default="excerpt", help="what everything follows from")
    parser.add_argument("--full", action="store_true", help="10 000 nodes in 64 domains rather than 1 000 in 5")
    parser.add_argument("--plot", type=Path, default=None, help="file for the drawing (SVG)")
    options = parser.parse_args(arguments)
    scale: Scale = FULL if options.full else QUICK
    if options.seconds is not None and options.seconds < LEAST_SECONDS:
        parser.error(f"--seconds must be {LEAST_SECONDS} at least, so that a partition fits in")
    if options.seconds is not None:
        scale = replace(scale, seconds=options.seconds)
    world = World(scale, options.seed, lambda label: label)
    sys.stdout.write(_described(world))
    if options.plot:
        options.plot.write_text(excerpt(world), "utf-8")
    return 0


def _described(world: World) -> str:
    played = [incident for incident in world.incidents if incident.onset >= world.scale.warm_up]
    states = Counter(incident.after for incident in played)
    strata = Counter(incident.stratum for incident in played)
    lines = [f"{len(played)} changes in {world.scale.seconds} s after a warm-up of {world.scale.warm_up} s"]
    lines += [f"{count:6}  into {state}" for state, count in states.most_common()]
    lines += [f"{count:6}  {stratum}" for stratum, count in strata.most_common()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
