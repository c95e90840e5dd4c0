"""A run to look at: how it stands at instants, and pictures of who held, waited and sent what.

1. **Trajectory.** How a run stands at instants, and who held what in the end.
2. **Pictures.** Who held which domain when, how much of it was held and did work, who waited, what links carried. Each
   is a plot of a report. A picture of who held what is a graph, whose lines are jobs: time runs across, and up stand
   the domains one above the other, each as high as it has room for jobs side by side; a dot is where a job begins.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.outcome import Gauges, Outcome
from kuayu_conformance.testbed.scheduling.engine.view import Policy
from kuayu_conformance.testbed.scheduling.engine.world import play
from kuayu_conformance.testbed.scheduling.scenarios import Scenario
from kuayu_conformance.testbed.scheduling.values import Site
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot

HOUR, GIGABIT = 3_600.0, 1e9
Bar = tuple[float, float, int]
"""When devices were given to a job and when they were given back, hours, and the lane in which it is drawn."""
_LINKS = "links"
_GAP = 3
"""Lanes between two domains."""
_SHAPE = 1.0
"""Height of a picture of who held what, over its width."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A run.

    Attributes:
        scenario: Where it was.
        policy: Who decided.
        frames: How it stood, from the begin of the scenario on; at least two.
        outcome: What had become of it at the end.
    """

    scenario: Scenario
    policy: str
    frames: tuple[Gauges, ...]
    outcome: Outcome


def recorded(scenario: Scenario, policy: Policy, name: str, step: float = 600.0) -> Trajectory:
    """Let a policy decide up to the end of the window, and watch.

    Watching changes nothing.

    Args:
        scenario: Where.
        policy: A new one.
        name: What it is called.
        step: Seconds between frames, a whole number of minutes.
    """
    world, timing = scenario.world(), scenario.timing
    frames = [world.gauges()]
    while world.now < timing.end and not world.over:
        play(world, policy, min(world.now + step, timing.end))
        frames.append(world.gauges())
    return Trajectory(scenario, name, tuple(frames), world.outcome())


def pictures(trajectory: Trajectory) -> tuple[ReportPlot, ...]:
    """All of them."""
    return gantt(trajectory), utilisation(trajectory), queue(trajectory), traffic(trajectory)


def gantt(trajectory: Trajectory) -> ReportPlot:
    """Who held devices of which domain when."""
    hours = trajectory.outcome.instant / HOUR
    rows = bars(trajectory)
    lanes = sum(max((lane for _, _, lane in periods), default=0) + _GAP for periods in rows.values())
    height = _SHAPE * hours / max(lanes, 1)
    series, ends, base = [], list[tuple[float, float]](), 0
    for name, periods in rows.items():
        dots = [(begin, height * (base + lane)) for begin, _, lane in periods]
        for (begin, end, _), (_, up) in zip(periods, dots, strict=True):
            ends += [(begin, up), (end, up)]
        series.append(_series(name, dots))
        base += max((lane for _, _, lane in periods), default=0) + _GAP
    title = f"Jobs that held devices of each domain under {trajectory.policy}, over {hours:.0f} h"
    return _plot(PlotKind.graph, title, "Time", "Jobs by domain", [_series(_LINKS, ends), *series])


def bars(trajectory: Trajectory) -> Mapping[str, list[Bar]]:
    """The same as figures, by domain, in the order of begins; jobs that overlap are in different lanes."""
    held: dict[str, list[tuple[float, float]]] = {site.name: [] for site in trajectory.scenario.topology.sites}
    for record in trajectory.outcome.jobs:
        for period in record.periods:
            for share in period.placement.shares:
                held[share.site].append((period.begin / HOUR, min(period.end, trajectory.outcome.instant) / HOUR))
    return {name: _laned(sorted(periods)) for name, periods in held.items()}


def utilisation(trajectory: Trajectory) -> ReportPlot:
    """Share of the devices of each domain that was held, and work of all over time."""
    sites = trajectory.scenario.topology.sites
    series = []
    for site, pools in zip(sites, _pools(sites), strict=True):
        shares = [
            (after.held[pools].sum() - before.held[pools].sum())
            / max(after.available[pools].sum() - before.available[pools].sum(), 1e-9)
            for before, after in pairwise(trajectory.frames)
        ]
        series.append(_series(site.name, zip(_middles(trajectory), shares, strict=True)))
    title = f"Share of the devices of each domain that jobs held under {trajectory.policy}"
    return _plot(PlotKind.lines, title, "Time, h", "Share", series)


def queue(trajectory: Trajectory) -> ReportPlot:
    """How many jobs waited, and how many devices they asked for."""
    jobs = [(frame.instant / HOUR, frame.waiting) for frame in trajectory.frames]
    devices = [(frame.instant / HOUR, frame.devices) for frame in trajectory.frames]
    title = f"What waited under {trajectory.policy}"
    return _plot(PlotKind.lines, title, "Time, h", "Number", [_series("jobs", jobs), _series("devices", devices)])


def traffic(trajectory: Trajectory) -> ReportPlot:
    """What each domain received from others on average between frames."""
    wires = trajectory.scenario.topology.wires
    series = []
    for site in trajectory.scenario.topology.sites:
        into = np.array([wire.target == site.name for wire in wires], dtype=np.bool_)
        rates = [
            (after.bits[into].sum() - before.bits[into].sum()) / (after.instant - before.instant) / GIGABIT
            for before, after in pairwise(trajectory.frames)
        ]
        series.append(_series(site.name, zip(_middles(trajectory), rates, strict=True)))
    title = f"Traffic on the links that lead to each domain under {trajectory.policy}"
    return _plot(PlotKind.lines, title, "Time, h", "Gbit/s", series)


def _laned(held: Iterable[tuple[float, float]]) -> list[Bar]:
    """A lane for each, the lowest that is free; in the order of begins."""
    free, busy, used = list[int](), list[tuple[float, int]](), 0
    laned = []
    for begin, end in held:
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            used += 1
            lane = used
        heapq.heappush(busy, (end, lane))
        laned.append((begin, end, lane))
    return laned


def _pools(sites: Iterable[Site]) -> list[slice]:
    """Places of the pools of each domain among all."""
    ends = np.cumsum([0, *(len(site.pools) for site in sites)]).tolist()
    return [slice(begin, end) for begin, end in pairwise(ends)]


def _middles(trajectory: Trajectory) -> list[float]:
    return [(before.instant + after.instant) / 2 / HOUR for before, after in pairwise(trajectory.frames)]


def _series(label: str, points: Iterable[tuple[float, float]]) -> PlotSeries:
    pairs = [(float(x), float(y)) for x, y in points if x < inf and y < inf]
    return PlotSeries(label=label, x=[x for x, _ in pairs], y=[y for _, y in pairs])


def _plot(kind: PlotKind, title: str, x_label: str, y_label: str, series: list[PlotSeries]) -> ReportPlot:
    return ReportPlot(title=title, kind=kind, x_label=x_label, y_label=y_label, series=series)
