"""Figures of the played world: domains joined, delays, states that are right, and partitions."""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.states_beside import Change
from kuayu_conformance.checks.states_picture import picture
from kuayu_conformance.checks.states_timeline import ABSENT, Clock, Timeline
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import quantile, quantile_upper_bound
from kuayu_conformance.testbed.telemetry import Incident, World
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable, TableRow

STATES = ("idle", "busy", "degraded", "straggling", "faulty", "offline")
"""The states that are judged, in the order of the clause."""

SHOWN = (*STATES, "unknown")

NEVER = 3600.0
"""Seconds that stand for a delay without end."""

LASTING = 5.0
"""Seconds for which a state must be shown to count as recognised."""

GRACE = 10.0
"""Seconds after a change in which states are not held against the truth (MET-016)."""

VISIBLE = 30.0
"""Seconds within which a change of the graph must show (MET-005, MET-022)."""

MASS = 0.01
"""Share of a partitioned domain's nodes that may be taken for offline at most."""

RESAMPLES = 1000
QUANTILE = 0.99


def domains_joined(world: World, timeline: Timeline, clock: Clock) -> Figure:
    """MET-004: domains of which every node was shown, and known, at some time."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for body in (*world.nodes, *(late for _, late in world.late_nodes)):
        nodes[body["domain"]].append(body["id"])
    since = clock.at(0)
    known = {
        site: sum(timeline.first("nodes", name, since, _is_known) is not None for name in names)
        for site, names in nodes.items()
    }
    joined = sum(known[site] == len(names) for site, names in nodes.items())
    misses = [
        holds("MET-004", False, f"all {len(nodes[site])} nodes of {site} are known at some time", f"{known[site]} are")
        for site in nodes
        if known[site] < len(nodes[site])
    ]
    total = sum(map(len, nodes.values()))
    late = len(world.late_nodes)
    return Figure(
        "MET-004",
        joined,
        joined,
        len(nodes),
        f"domains of which every node was shown in a state other than unknown at some time; {len(nodes)} domains with "
        f"{total} nodes, {late} of which joined while telemetry ran; a count, so the bound is the figure; the suite's "
        f"own world waited {clock.waited:.1f} s for it to keep up",
        misses=misses[:8],
        plots=[picture(world, timeline, clock)],
    )


def _is_known(state: object) -> bool:
    return state not in {ABSENT, "unknown"}


def delays_of_changes(changes: Sequence[Change], timeline: Timeline, end: float) -> Figure:
    """MET-005: time from sending a change to its event; changes that might yet be shown are left out."""
    delays: dict[str, list[float]] = defaultdict(list)
    misses = []
    for change in (each for each in changes if each.answer.started <= end - VISIBLE):
        shown = _shown_at(change, timeline)
        delay = NEVER if shown is None else max(0.0, shown - change.answer.started)
        delays[change.what].append(delay)
        if delay > VISIBLE:
            found = "never" if shown is None else f"after {delay:.1f} s"
            expected = f"{change.what}: shown within {VISIBLE:.0f} s"
            misses.append(holds("MET-005", False, expected, f"{change.name} {found}", change.answer))
    return _delay_figure("MET-005", delays, misses, "from sending a change to the arrival of the event that shows it")


def _shown_at(change: Change, timeline: Timeline) -> float | None:
    since, name = change.answer.started, change.name
    match change.what:
        case "registered":
            return timeline.first("nodes", name, since, lambda state: state != ABSENT)
        case "deleted":
            return timeline.first("nodes", name, since, lambda state: state == ABSENT)
        case "link down" | "link up":
            return timeline.first("links", name, since, lambda state: state == change.what.removeprefix("link "))
        case _:
            return timeline.first("nodes", name, since, lambda state: state == change.what)


def delays_of_states(world: World, timeline: Timeline, clock: Clock) -> Figure:
    """MET-006: time from a change of a node's state until the right state is shown and stays for a while."""
    delays: dict[str, list[float]] = defaultdict(list)
    causes: dict[tuple[str, str], list[float]] = defaultdict(list)
    misses: list[Claim] = []
    for incident, until in _judged(world):
        delay = _delay(incident, until, timeline, clock)
        delays[incident.after].append(delay)
        causes[incident.after, incident.cause].append(delay)
        if delay > GRACE:
            shown = timeline.track("nodes", incident.node).value(clock.at(incident.at) + GRACE)
            expected = f"{incident.node} is {incident.after} ({incident.cause}) from second {incident.at:.1f} on"
            found = f"shown as {shown or 'absent'} {GRACE:.0f} s later"
            misses.append(holds("MET-006", False, expected, found))
    ordered = {state: delays[state] for state in STATES if state in delays}
    table = ReportTable(
        title="Delay by what happened, s",
        columns=["state", "cause", "n", "p50", "p99", "later than 10 s or never"],
        rows=[
            TableRow(cells=[state, cause, str(len(row)), *_brief(row)])
            for (state, cause), row in sorted(causes.items(), key=lambda item: (STATES.index(item[0][0]), item[0][1]))
        ],
    )
    what = (
        "from the instant at which a node's telemetry begins to differ until the stream shows its new state and goes "
        f"on to for {LASTING:.0f} s"
    )
    return _delay_figure("MET-006", ordered, misses, what, [table])


def _judged(world: World) -> Iterator[tuple[Incident, float]]:
    """Incidents with the second at which the state ends; none so near to the end that it could not be seen."""
    end = world.scale.warm_up + world.scale.seconds
    following: dict[str, float] = {}
    rows = []
    for incident in sorted(world.incidents, key=lambda row: row.at, reverse=True):
        until = following.get(incident.node, float(end))
        following[incident.node] = incident.at
        if incident.after in STATES and world.scale.warm_up <= incident.at <= end - GRACE:
            rows.append((incident, until))
    yield from reversed(rows)


def _delay(incident: Incident, until: float, timeline: Timeline, clock: Clock) -> float:
    begin, end = clock.at(incident.at), clock.at(until)
    for since, till, state in timeline.track("nodes", incident.node).spans(float("inf")):
        start = max(since, begin)
        # Where the truth changes again soon after, the state need not be shown for longer than it is true.
        if state == incident.after and start < end and min(till, end) - start >= min(LASTING, end - start):
            return start - begin
    return NEVER


def _delay_figure(
    requirement: str,
    delays: Mapping[str, Sequence[float]],
    misses: Sequence[Claim],
    what: str,
    tables: Sequence[ReportTable] = (),
) -> Figure:
    together = [delay for row in delays.values() for delay in row]
    bound = min(NEVER, quantile_upper_bound(together, QUANTILE)) if together else NEVER
    never = sum(delay >= NEVER for delay in together)
    return Figure(
        requirement,
        quantile(together, QUANTILE) if together else NEVER,
        bound,
        len(together),
        f"99th percentile of the time {what}, one-sided 95 % upper bound by order statistics; {never} of "
        f"{len(together)} never were and count as {NEVER:.0f} s; parts: 99th percentile by kind, median in the table",
        [PartFigure(kind, quantile(row, QUANTILE), None, len(row)) for kind, row in delays.items()],
        misses[:8],
        [
            ReportTable(
                title="Delay, s",
                columns=["kind", "n", "p50", "p99", "later than 10 s or never"],
                rows=[TableRow(cells=[kind, str(len(row)), *_brief(row)]) for kind, row in delays.items()],
            ),
            *tables,
        ],
        [_distribution(delays)],
    )


def _brief(delays: Sequence[float]) -> list[str]:
    """Median, 99th percentile and number of the late ones, as cells."""
    late = sum(delay > GRACE for delay in delays)
    shown = [quantile(delays, q) for q in (0.5, QUANTILE)]
    return [*("never" if value >= NEVER else f"{value:.2f}" for value in shown), str(late)]


def _distribution(delays: Mapping[str, Sequence[float]]) -> ReportPlot:
    """Share of changes that were shown by a time, one line for each kind; at most a hundred points a line."""
    series = []
    for kind, row in delays.items():
        shares = [i / 100 for i in range(1, 101)]
        points = [(quantile(row, share), share) for share in shares]
        held = [(round(delay, 3), share) for delay, share in points if delay < NEVER]
        series.append(PlotSeries(label=kind, x=[0.0, *(x for x, _ in held)], y=[0.0, *(y for _, y in held)]))
    return ReportPlot(
        title="Share of changes that are shown after a time",
        kind=PlotKind.lines,
        x_label="delay, s",
        y_label="share",
        series=series,
    )


def right_states(world: World, timeline: Timeline, clock: Clock) -> Figure:
    """MET-016: macro-averaged F1 of the shown states, node seconds as observations."""
    counts = _confusion(world, timeline, clock)
    total = counts.sum(axis=0)
    chance = random.Random("MET-016")  # noqa: S311 - reproducible by design, not secret
    drawn = np.array([_drawn(chance, len(counts)) for _ in range(RESAMPLES)])
    resampled = np.tensordot(drawn, counts, axes=1)
    scores = np.sort(_macro_f1(resampled))
    estimate = float(_macro_f1(total[None])[0])
    bound = float(scores[int(0.05 * RESAMPLES)])
    precision, recall = _precision(total), _recall(total)
    rows = [
        TableRow(cells=[state, *(str(n) for n in total[i]), f"{recall[i]:.4f}", f"{precision[i]:.4f}"])
        for i, state in enumerate(STATES)
    ]
    table = ReportTable(
        title="Truth down, shown across, in node seconds",
        columns=["truth", *SHOWN, "recall", "precision"],
        rows=rows,
    )
    parts = [
        PartFigure(state, float(_f1(total[None])[0, i]), None, int(total[i].sum())) for i, state in enumerate(STATES)
    ]
    return Figure(
        "MET-016",
        estimate,
        min(estimate, bound),
        int(total.sum()),
        f"mean over the six states of 2 TP/(2 TP + FP + FN), in node seconds, the {GRACE:.0f} s after each change left "
        f"out; bound: 5th percentile of {RESAMPLES} bootstrap samples of nodes; parts: F1 of each state",
        parts,
        tables=[table],
    )


def _drawn(chance: random.Random, n: int) -> np.ndarray:
    """How often each of ``n`` nodes is drawn; by Python's own fractions, a sequence that no version changes."""
    return np.bincount([int(chance.random() * n) for _ in range(n)], minlength=n)


def _confusion(world: World, timeline: Timeline, clock: Clock) -> np.ndarray:
    """Node seconds by truth and shown state, of shape (nodes, 6, 7)."""
    names = [body["id"] for body in (*world.nodes, *(late for _, late in world.late_nodes))]
    position = {name: i for i, name in enumerate(names)}
    counts = np.zeros((len(names), len(STATES), len(SHOWN)), dtype=np.int64)
    begin, end = world.scale.warm_up, world.scale.warm_up + world.scale.seconds
    changed = dict.fromkeys(names, float("-inf"))
    for when, body in world.late_nodes:
        changed[body["id"]] = float(when)
    domain_of = {body["id"]: body["domain"] for body in (*world.nodes, *(late for _, late in world.late_nodes))}
    back = {partition.domain: partition.until for partition in world.partitions}
    upcoming = sorted(world.incidents, key=lambda row: row.at)
    taken = 0
    for second in range(begin, end):
        while taken < len(upcoming) and upcoming[taken].at <= second:
            changed[upcoming[taken].node] = upcoming[taken].at
            taken += 1
        at = clock.at(second)
        for name, truth in world.truth(second).items():
            returned = 0 <= second - back.get(domain_of[name], -VISIBLE) < VISIBLE
            if truth in STATES and second - changed[name] >= GRACE and not returned:
                shown = timeline.track("nodes", name).value(at)
                column = SHOWN.index(shown) if shown in SHOWN else SHOWN.index("unknown")
                counts[position[name], STATES.index(truth), column] += 1
    return counts


def _f1(counts: np.ndarray) -> np.ndarray:
    """F1 of each state, of shape (samples, 6), from counts of shape (samples, 6, 7)."""
    hits = np.diagonal(counts, axis1=1, axis2=2).astype(float)
    told = counts.sum(axis=1)[:, : len(STATES)] + counts.sum(axis=2)
    scores: np.ndarray = np.divide(2 * hits, told, out=np.zeros_like(hits), where=told > 0)
    return scores


def _macro_f1(counts: np.ndarray) -> np.ndarray:
    scores: np.ndarray = _f1(counts).mean(axis=1)
    return scores


def _recall(total: np.ndarray) -> np.ndarray:
    shares: np.ndarray = np.diagonal(total) / np.maximum(1, total.sum(axis=1))
    return shares


def _precision(total: np.ndarray) -> np.ndarray:
    shares: np.ndarray = np.diagonal(total) / np.maximum(1, total.sum(axis=0)[: len(STATES)])
    return shares


def partitions(world: World, timeline: Timeline, clock: Clock, answer: Answer) -> Iterator[Finding]:
    """MET-022: a domain of which nothing arrives is not reachable, its nodes are unknown and not offline."""
    for partition in world.partitions:
        since, until = clock.at(partition.since), clock.at(partition.until)
        names = [body["id"] for body in world.nodes if body["domain"] == partition.domain]
        before = world.truth(int(partition.since) - 1)
        there = [name for name in names if before.get(name) != "offline"]
        site = partition.domain
        deadline = min(until, since + VISIBLE)
        cut = timeline.first("domains", site, since, lambda reachable: reachable is False)
        seen = cut is not None and cut <= deadline
        expected = f"{site} is shown as not reachable within {VISIBLE:.0f} s of falling silent"
        yield holds("MET-022", seen, expected, "never" if cut is None else f"after {cut - since:.1f} s", answer)
        unknown = sum(timeline.track("nodes", name).value(deadline) == "unknown" for name in there)
        expected = f"its nodes are then unknown, all but {MASS:.0%} of them"
        found = f"{unknown} of {len(there)}"
        yield holds("MET-022", unknown >= (1 - MASS) * len(there), expected, found, answer)
        dead = sum(_turned_offline(timeline, name, since, until) for name in there)
        expected = f"no more than {MASS:.0%} of its nodes are shown as having gone offline meanwhile"
        yield holds("MET-022", dead <= MASS * len(there), expected, f"{dead} of {len(there)}", answer)
        already = timeline.track("domains", site).value(until) is True
        back = until if already else timeline.first("domains", site, until, lambda reachable: reachable is True)
        expected = f"{site} is reachable within {VISIBLE:.0f} s of sending again"
        met = back is not None and back - until <= VISIBLE
        yield holds("MET-022", met, expected, "never" if back is None else f"after {back - until:.1f} s", answer)


def _turned_offline(timeline: Timeline, name: str, since: float, until: float) -> bool:
    track = timeline.track("nodes", name)
    rows = zip(track.instants, track.values, strict=True)
    return any(since <= at <= until and value == "offline" for at, value in rows)
