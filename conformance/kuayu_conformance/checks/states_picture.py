"""The resource graph as it was shown, drawn: domains on a circle, each a disc of its nodes, coloured by state."""

from collections import defaultdict
from math import cos, pi, sin, sqrt

from kuayu_conformance.checks.states_timeline import Clock, Timeline
from kuayu_conformance.testbed.telemetry import World
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot

GOLDEN_ANGLE = pi * (3 - sqrt(5))
"""Angle between neighbours of a sunflower, whose seeds fill a disc evenly (H. Vogel, Math. Biosci. 44, 1979)."""

STATES = ("idle", "busy", "degraded", "straggling", "faulty", "offline", "unknown")


def picture(world: World, timeline: Timeline, clock: Clock) -> ReportPlot:
    """The world's part of the graph as the stream showed it in the last second of telemetry."""
    at = clock.at(world.scale.warm_up + world.scale.seconds)
    sites = [body["id"] for body in world.domains]
    nodes: dict[str, list[str]] = defaultdict(list)
    for body in (*world.nodes, *(late for _, late in world.late_nodes)):
        nodes[body["domain"]].append(body["id"])
    most = max(map(len, nodes.values()), default=1)
    room = 0.9 * pi / max(3, len(sites))  # half the way between neighbours on the circle
    centre = {site: _on_circle(i, len(sites)) for i, site in enumerate(sites)}
    dots: dict[str, list[tuple[float, float]]] = {state: [] for state in STATES}
    for site, names in nodes.items():
        for i, name in enumerate(names):
            radius = room * sqrt((i + 0.5) / most)
            x = centre[site][0] + radius * cos(i * GOLDEN_ANGLE)
            y = centre[site][1] + radius * sin(i * GOLDEN_ANGLE)
            state = str(timeline.track("nodes", name).value(at))
            dots.get(state, dots["unknown"]).append((round(x, 3), round(y, 3)))
    ends: list[tuple[float, float]] = []
    for body in world.links:
        if body["source"] < body["destination"] and {body["source"], body["destination"]} <= centre.keys():
            ends += [centre[body["source"]], centre[body["destination"]]]
    series = [_series("links", ends), *(_series(f"{s} ({len(rows)})", rows) for s, rows in dots.items() if rows)]
    return ReportPlot(
        title=f"The resource graph at the end: {len(sites)} domains, {sum(map(len, nodes.values()))} nodes",
        kind=PlotKind.graph,
        x_label="domains on a circle",
        y_label="nodes around their domain",
        series=series,
    )


def _on_circle(i: int, n: int) -> tuple[float, float]:
    angle = 2 * pi * i / max(1, n)
    return round(sin(angle), 3), round(cos(angle), 3)


def _series(label: str, points: list[tuple[float, float]]) -> PlotSeries:
    return PlotSeries(label=label, x=[x for x, _ in points], y=[y for _, y in points])
