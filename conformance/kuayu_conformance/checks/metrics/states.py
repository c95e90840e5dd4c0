"""Telemetry is played and the graph is watched: MET-004, MET-005, MET-006, MET-016, MET-022 and MET-024.

The suite plays the aggregators of a simulated world, one batch for each domain and second. Everything is timed by the
suite's clock, at sending and at the arrival of the event.

1. *Playback.* A world is registered, its batches are sent in time, and the stream of the graph is followed.
2. *Many domains* (:mod:`kuayu_conformance.testbed.telemetry`): domains joined, delays, states that are right, and
   partitions. Beside the world the suite changes a domain of its own in ways that leave nothing to be recognised: each
   node and each link changes once.
3. The resource graph as it was shown is drawn: domains on a circle, each a disc of its nodes, coloured by state.
4. *Sparse telemetry* (:mod:`kuayu_conformance.testbed.sparse`, MET-024): of subjects, nodes or families, the share that
   is shown rightly, which is read off the stream alone. A subject (``Unit`` of the test bed) is one node alone or one
   family, and is counted once. Shares in tables are percentages; in figures they are fractions of one, as the
   threshold is.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, cos, pi, sin, sqrt
from typing import TYPE_CHECKING

import numpy as np

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.graphs import graph_of, identifier_of, read
from kuayu_conformance.checks.kit.requests import domain, sample
from kuayu_conformance.checks.metrics.timeline import ABSENT, Clock, Timeline, Track
from kuayu_conformance.contract import violation
from kuayu_conformance.episode import Episode, FellBehind, Stream, instant
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, answered, holds
from kuayu_conformance.statistics import proportion_lower_bound, quantile, quantile_upper_bound
from kuayu_conformance.streams import StreamEvent
from kuayu_conformance.testbed.sparse import FULL as SPARSE_FULL
from kuayu_conformance.testbed.sparse import LASTING as SPARSE_LASTING
from kuayu_conformance.testbed.sparse import QUICK as SPARSE_QUICK
from kuayu_conformance.testbed.sparse import Unit
from kuayu_conformance.testbed.sparse import World as SparseWorld
from kuayu_conformance.testbed.telemetry import Delivery, Incident, Scale, World
from kuayu_schemas import schema
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable, TableRow

if TYPE_CHECKING:
    from kuayu_schemas import documents

EVENTS = "/v1/graph/events"

SAMPLE_BYTES = 600
"""Room that a sample takes in a request, generously."""

SLACK = 0.25
"""Seconds by which the suite may fall behind its own world before the world waits for it."""

REOPENED_EVERY = 5
"""Seconds after which a stream that has ended is resumed."""

GIVEN_UP = 3
"""Seconds after which a target that takes no batch at all is given up."""


@dataclass(frozen=True)
class Playback:
    """What a target answered while a world was played to it, and what its stream showed.

    Attributes:
        clock: From seconds of the world to Unix time.
        unregistered: Refusals of what the world consists of; where there are any nothing was played.
        snapshot: The graph when nothing had been sent yet.
        streams: Its changes from then on; more than one where a stream ended and was resumed.
        refused: Batches that were not taken whole.
        batches: How many were sent.
    """

    clock: Clock
    unregistered: tuple[Answer, ...]
    snapshot: Answer
    streams: tuple[Stream, ...]
    refused: tuple[Answer, ...]
    batches: int

    @property
    def events(self) -> tuple[StreamEvent, ...]:
        """Events of all streams, in order."""
        return tuple(event for stream in self.streams for event in stream.events)


def registered(
    episode: Episode,
    domains: "Iterable[documents.Domain]",
    nodes: "Iterable[documents.Node]",
    families: "Iterable[documents.ComputeIdentifier]",
    links: "Iterable[documents.Link]" = (),
) -> Iterator[Answer]:
    """Register what a world consists of; yields refusals."""
    kinds: dict[str, Iterable[documents.Resource]] = {"domains": domains, "nodes": nodes, "links": links}
    for kind, bodies in kinds.items():
        yield from refusals(episode, [(f"/v1/{kind}/{body['id']}", body) for body in bodies])
    yield from refusals(episode, [(f"/v1/compute-identifiers/{body['urn']}", body) for body in families])


def refusals(episode: Episode, bodies: Iterable[tuple[str, object]]) -> Iterator[Answer]:
    """Put bodies to their paths; the first that is refused ends it, and is yielded."""
    for path, body in bodies:
        answer = episode.ask_patiently("PUT", path, body)
        if answer.status not in {200, 201} or violation(answer):
            yield answer
            return


def reopen(episode: Episode, streams: list[Stream], begin: str) -> None:
    """Resume the stream behind its last event where it has ended, as everyone has to whose connection breaks."""
    streams[-1].take(0.0, at_least=0)
    if streams[-1].taken[-1].ended:
        events = [event for stream in streams for event in stream.events if event.id]
        streams.append(episode.follow(EVENTS, after=events[-1].id if events else begin))


@dataclass
class Sender:
    """Sends what is due, never before its time; where the suite falls behind, the world's clock waits for it.

    Attributes:
        episode: The conversation.
        clock: From seconds of the world to Unix time.
        refused: Batches that were not taken whole.
        batches: How many were sent.
    """

    episode: Episode
    clock: Clock
    refused: list[Answer] = field(default_factory=list)
    batches: int = 0

    def until(self, due: float) -> None:
        """Wait until a second of the world has come."""
        ahead = self.clock.at(due) - self.episode.now()
        if ahead > 0:
            self.episode.sleep(ahead)
        elif -ahead > SLACK:
            self.clock.wait(due, -ahead)

    def deliver(self, delivery: Delivery) -> None:
        """Send what a domain's aggregator sends, in batches that the target takes."""
        samples = [{**body, "observed_at": instant(self.clock.at(seen))} for seen, body in delivery.samples]
        limits = self.episode.settings.limits
        most = max(1, int(min(limits["max_batch"], limits["max_body"] // SAMPLE_BYTES)))
        for begin in range(0, len(samples), most):
            batch = samples[begin : begin + most]
            answer = self.episode.ask_patiently("POST", "/v1/samples", {"mode": "per_item", "samples": batch})
            self.batches += 1
            if answer.status != 200 or answer.at("accepted") != len(batch):
                self.refused.append(answer)


GOLDEN_ANGLE = pi * (3 - sqrt(5))
"""Angle between neighbours of a sunflower, whose seeds fill a disc evenly (H. Vogel, Math. Biosci. 44, 1979)."""

DRAWN_STATES = ("idle", "busy", "degraded", "straggling", "faulty", "offline", "unknown")


def picture(world: World, timeline: Timeline, clock: Clock) -> ReportPlot:
    """The world's part of the graph as the stream showed it in the last second of telemetry."""
    position = clock.at(world.scale.warm_up + world.scale.seconds)
    sites = [body["id"] for body in world.domains]
    nodes: dict[str, list[str]] = defaultdict(list)
    for body in (*world.nodes, *(late for _, late in world.late_nodes)):
        nodes[body["domain"]].append(body["id"])
    most = max(map(len, nodes.values()), default=1)
    radius_of_site = 0.9 * pi / max(3, len(sites))  # half the way between neighbours on the circle
    centre = {site: _on_circle(i, len(sites)) for i, site in enumerate(sites)}
    dots: dict[str, list[tuple[float, float]]] = {state: [] for state in DRAWN_STATES}
    for site, names in nodes.items():
        for i, name in enumerate(names):
            radius = radius_of_site * sqrt((i + 0.5) / most)
            x = centre[site][0] + radius * cos(i * GOLDEN_ANGLE)
            y = centre[site][1] + radius * sin(i * GOLDEN_ANGLE)
            state = str(timeline.track("nodes", name).value(position))
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


KINDS = ("registered", "faulty", "offline", "deleted", "link down", "link up")
"""What is changed in every second, each of another node or link."""

HELD_SECONDS = 32
"""Seconds for which a link stays down: longer than a change may take to be shown, so that none is overtaken."""


@dataclass(frozen=True)
class Change:
    """A change that leaves nothing to be recognised: what, of which node or link, and how it was answered."""

    what: str
    name: str
    answer: Answer


class StatedDomains:
    """A pair of domains of the suite's own, whose states are stated and not recognised."""

    def __init__(self, episode: Episode, seconds: int) -> None:
        """Register what is to be changed, a node and a link for each second and kind."""
        self._episode = episode
        self._site = domain(episode, "beside")
        other = domain(episode, "opposite")
        for second in range(seconds):
            for kind in ("faulty", "offline", "deleted"):
                name = self._name(kind, second)
                episode.set_up("PUT", f"/v1/nodes/{name}", {"id": name, "domain": self._site})
            name = self._name("link", second)
            body = {"id": name, "source": self._site, "destination": other}
            episode.set_up("PUT", f"/v1/links/{name}", body)

    def change(self, second: int, what: str) -> Iterator[Change]:
        """Make the change of that second; links come up again after a while."""
        if what.startswith("link"):
            of = second if what == "link down" else second - HELD_SECONDS
            if of < 0:
                return
            name = self._name("link", of)
            answer = self._report(name, "link", packet_loss=float(what == "link down"))
        else:
            name = self._name(what, second)
            if what == "registered":
                answer = self._episode.ask("PUT", f"/v1/nodes/{name}", {"id": name, "domain": self._site})
            elif what == "deleted":
                answer = self._episode.ask("DELETE", f"/v1/nodes/{name}")
            else:
                answer = self._report(name, "node", health_state=what)
        yield Change(what, name, answer)

    def _name(self, kind: str, second: int) -> str:
        return self._episode.name_of(f"{kind}{second}")

    def _report(self, name: str, kind: str, **measures: float | str) -> Answer:
        reported = sample(name, instant(self._episode.now()), kind=kind, **measures)
        return self._episode.ask("POST", "/v1/samples", {"mode": "per_item", "samples": [reported]})


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
    for change in (entry for entry in changes if entry.answer.started <= end - VISIBLE):
        shown = _shown_at(change, timeline)
        delay = NEVER if shown is None else max(0.0, shown - change.answer.started)
        delays[change.what].append(delay)
        if delay > VISIBLE:
            observed = "never" if shown is None else f"after {delay:.1f} s"
            expected = f"{change.what}: shown within {VISIBLE:.0f} s"
            misses.append(holds("MET-005", False, expected, f"{change.name} {observed}", change.answer))
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
            shown = timeline.track("nodes", incident.node).value(clock.at(incident.onset) + GRACE)
            expected = f"{incident.node} is {incident.after} ({incident.cause}) from second {incident.onset:.1f} on"
            observed = f"shown as {shown or 'absent'} {GRACE:.0f} s later"
            misses.append(holds("MET-006", False, expected, observed))
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
    for incident in sorted(world.incidents, key=lambda row: row.onset, reverse=True):
        until = following.get(incident.node, float(end))
        following[incident.node] = incident.onset
        if incident.after in STATES and world.scale.warm_up <= incident.onset <= end - GRACE:
            rows.append((incident, until))
    yield from reversed(rows)


def _delay(incident: Incident, until: float, timeline: Timeline, clock: Clock) -> float:
    begin, end = clock.at(incident.onset), clock.at(until)
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
        shown = [(round(delay, 3), share) for delay, share in points if delay < NEVER]
        series.append(PlotSeries(label=kind, x=[0.0, *(x for x, _ in shown)], y=[0.0, *(y for _, y in shown)]))
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
    upcoming = sorted(world.incidents, key=lambda row: row.onset)
    taken = 0
    for second in range(begin, end):
        while taken < len(upcoming) and upcoming[taken].onset <= second:
            changed[upcoming[taken].node] = upcoming[taken].onset
            taken += 1
        moment = clock.at(second)
        for name, truth in world.truth(second).items():
            returned = 0 <= second - back.get(domain_of[name], -VISIBLE) < VISIBLE
            if truth in STATES and second - changed[name] >= GRACE and not returned:
                shown = timeline.track("nodes", name).value(moment)
                column = SHOWN.index(shown) if shown in SHOWN else SHOWN.index("unknown")
                counts[position[name], STATES.index(truth), column] += 1
    return counts


def _f1(counts: np.ndarray) -> np.ndarray:
    """F1 of each state, of shape (samples, 6), from counts of shape (samples, 6, 7)."""
    hits = np.diagonal(counts, axis1=1, axis2=2).astype(float)
    totals = counts.sum(axis=1)[:, : len(STATES)] + counts.sum(axis=2)
    scores: np.ndarray = np.divide(2 * hits, totals, out=np.zeros_like(hits), where=totals > 0)
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
        remote = [name for name in names if before.get(name) != "offline"]
        site = partition.domain
        deadline = min(until, since + VISIBLE)
        cut = timeline.first("domains", site, since, lambda reachable: reachable is False)
        seen = cut is not None and cut <= deadline
        expected = f"{site} is shown as not reachable within {VISIBLE:.0f} s of falling silent"
        yield holds("MET-022", seen, expected, "never" if cut is None else f"after {cut - since:.1f} s", answer)
        unknown = sum(timeline.track("nodes", name).value(deadline) == "unknown" for name in remote)
        expected = f"its nodes are then unknown, all but {MASS:.0%} of them"
        observed = f"{unknown} of {len(remote)}"
        yield holds("MET-022", unknown >= (1 - MASS) * len(remote), expected, observed, answer)
        dead = sum(_turned_offline(timeline, name, since, until) for name in remote)
        expected = f"no more than {MASS:.0%} of its nodes are shown as having gone offline meanwhile"
        yield holds("MET-022", dead <= MASS * len(remote), expected, f"{dead} of {len(remote)}", answer)
        already = timeline.track("domains", site).value(until) is True
        back = until if already else timeline.first("domains", site, until, lambda reachable: reachable is True)
        expected = f"{site} is reachable within {VISIBLE:.0f} s of sending again"
        met = back is not None and back - until <= VISIBLE
        yield holds("MET-022", met, expected, "never" if back is None else f"after {back - until:.1f} s", answer)


def _turned_offline(timeline: Timeline, name: str, since: float, until: float) -> bool:
    track = timeline.track("nodes", name)
    rows = zip(track.instants, track.values, strict=True)
    return any(since <= place <= until and value == "offline" for place, value in rows)


SMOKE = Scale(domains=5, nodes=700, warm_up=12, seconds=66, churn=0.01)
"""Long enough for 299 changes that have all their time to be shown, which a bound of the 99th percentile needs."""
QUICK = Scale(domains=5, nodes=1000, warm_up=12, seconds=84, churn=0.01)
FULL = Scale(domains=64, nodes=10_000, warm_up=20, seconds=120, churn=0.01)

SETTLE = 8.0
"""Seconds for which the stream is watched when everything has been sent."""

MOST_WAITING = 0.1
"""Share of its time for which the world may wait for the suite; beyond it nothing is said of delays."""

AT_ONCE = 8
"""Aggregators that send at the same time."""


@dataclass(frozen=True)
class StateWorldRun(Playback):
    """What came of a world.

    Attributes:
        world: The world.
        changes: What was changed beside it.
    """

    world: World
    changes: tuple[Change, ...]


def observe(episode: Episode) -> StateWorldRun:
    """Register the world, follow the graph, play the world second by second, and change a pair of domains beside it.

    Raises:
        FellBehind: The suite, or the path to the target, was too slow for its own world.
    """
    scale = episode.settings.sized(smoke=SMOKE, quick=QUICK, full=FULL)
    world = World(scale, f"{episode.settings.nonce}/telemetry", episode.name_of, episode.urn_of)
    refused = tuple(registered(episode, world.domains, world.nodes, world.families, world.links))
    beside = StatedDomains(episode, scale.warm_up + scale.seconds)
    snapshot = read(episode)
    begin = identifier_of(snapshot.at("revision"))
    streams = [episode.follow(EVENTS, after=begin)]
    if streams[0].opening.status != 200:
        refused += (streams[0].opening,)
    player = _Player(episode, Clock(episode.now() + 1.0), moments=moments_of(world))
    if not refused:
        for second in range(scale.warm_up + scale.seconds):
            refused += tuple(player.join(world, second))
            player.play(second, world.deliveries(second), beside)
            if second % REOPENED_EVERY == 0:
                reopen(episode, streams, begin)
            if second > GIVEN_UP and len(player.refused) == player.batches:
                break
        streams[-1].take(SETTLE, at_least=1_000_000_000)
    streams[-1].hang_up()
    if player.clock.waited > MOST_WAITING * scale.seconds:
        raise FellBehind(
            f"the world waited {player.clock.waited:.0f} of {scale.seconds} s for requests to be answered, so that "
            "delays would be those of the path",
            f"{MOST_WAITING:.0%} of the time of a world",
        )
    unsent, changes = tuple(player.refused), tuple(player.changes)
    return StateWorldRun(player.clock, refused, snapshot, tuple(streams), unsent, player.batches, world, changes)


@dataclass
class _Player(Sender):
    """Sends what is due, and changes a pair of domains beside it.

    Aggregators know nothing of each other: those of a large federation send spread over the second, at ``moments``.
    """

    moments: Mapping[str, float] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    def join(self, world: World, second: int) -> Iterator[Answer]:
        """Register the nodes that join in a second; yields refusals."""
        late = [(f"/v1/nodes/{body['id']}", body) for when, body in world.late_nodes if when == second]
        yield from refusals(self.episode, late)

    def play(self, second: int, deliveries: Iterable[Delivery], beside: StatedDomains) -> None:
        """Send a second's deliveries and make its changes, each when it is due."""
        due: list[tuple[float, Delivery | int]] = [(self.due(second, delivery), delivery) for delivery in deliveries]
        due += [(second + (number + 0.5) / len(KINDS), number) for number in range(len(KINDS))]
        for when, what in sorted(due, key=lambda row: row[0]):
            self.until(when)
            if isinstance(what, Delivery):
                self.deliver(what)
            else:
                self.changes += beside.change(second, KINDS[what])

    def due(self, second: int, delivery: Delivery) -> float:
        """When a delivery is sent: once its newest sample has been observed, be that in an earlier second."""
        return max(second, *(observed for observed, _ in delivery.samples)) + self.moments[delivery.domain]


def moments_of(world: World) -> dict[str, float]:
    """When in a second the aggregator of each domain sends, ``AT_ONCE`` of them together."""
    rounds = ceil(len(world.domains) / AT_ONCE)
    return {body["id"]: place // AT_ONCE / rounds for place, body in enumerate(world.domains)}


def judge(o: StateWorldRun) -> Iterator[Finding]:
    """Delays and states, read off the stream alone."""
    if o.unregistered:
        for requirement in CHECK.requirements:
            yield answered(
                requirement, o.unregistered[0], (200, 201), "what the world consists of is taken, and followed"
            )
        return
    for stream in o.streams:
        yield answered("MET-005", stream.opening, 200, "the stream of the whole graph is opened")
    broken = [
        f"{event.id}: {error.pointer} {error.detail}"
        for event in o.events
        for error in schema.errors("GraphChange", event.json, reader=True)
    ]
    observed = broken[:3] or f"{len(o.events)} changes"
    yield holds("MET-005", not broken, "each change is valid", observed, o.snapshot)
    yield from _not_known_beforehand(o)
    first = o.refused[0] if o.refused else None
    observed = f"{len(o.refused)} of {o.batches} batches were not"
    yield holds("MET-004", not o.refused, "what the aggregators send is taken whole", observed, first)
    timeline = Timeline(o.snapshot.json, o.events)
    yield domains_joined(o.world, timeline, o.clock)
    end = o.clock.at(o.world.scale.warm_up + o.world.scale.seconds) + SETTLE
    yield delays_of_changes(o.changes, timeline, end)
    yield delays_of_states(o.world, timeline, o.clock)
    yield right_states(o.world, timeline, o.clock)
    yield from partitions(o.world, timeline, o.clock, o.snapshot)


def _not_known_beforehand(o: StateWorldRun) -> Iterator[Finding]:
    """A state that is shown before any sample was sent follows from nothing."""
    shown = graph_of(o.snapshot.json)["nodes"]
    states = [str(shown.get(body["id"], {}).get("state")) for body in o.world.nodes]
    known = sorted(set(states) - {"unknown"})
    expected = "before its first sample a node's state is unknown"
    yield holds("MET-004", not known, expected, known or "unknown", o.snapshot)


CHECK = Check(
    "met_states",
    ("MET-004", "MET-005", "MET-006", "MET-016", "MET-022"),
    observe,
    judge,
    recorded_times=True,
    background=True,
    summary="Telemetry of many domains is played, and the graph is watched: MET-004, 005, 006, 016 and 022.",
)


TROUBLE = ("degraded", "straggling", "faulty", "offline")
"""States of which none is true of a node with which nothing is wrong."""

WELL, STOPPED = "nothing wrong", "stopped"

MOST_MISSES = 8


@dataclass(frozen=True)
class _Verdict:
    """Whether a unit was shown rightly; what was shown wrongly, and in which second, where it was not."""

    unit: Unit
    wrong: str
    second: float

    @property
    def right(self) -> bool:
        return not self.wrong


def shown_rightly(world: SparseWorld, timeline: Timeline, clock: Clock) -> Figure:
    """The lower of two shares: of units with which nothing is wrong, and of those that stop."""
    verdicts = [_unit_verdict(unit, world, timeline, clock) for unit in world.units]
    strata = {
        WELL: [verdict for verdict in verdicts if verdict.unit.onset is None],
        STOPPED: [entry for entry in verdicts if entry.unit.onset is not None],
    }
    parts = [_part(name, rows) for name, rows in strata.items()]
    by_pattern: dict[str, list[_Verdict]] = defaultdict(list)
    for row in verdicts:
        by_pattern[row.unit.pattern].append(row)
    misses = [
        holds(
            "MET-024",
            False,
            "no state but its own, or unknown" if item.unit.onset is None else "faulty in time",
            f"{item.unit.nodes[0]} ({item.unit.pattern}; {', '.join(item.unit.measures)}): {item.wrong}, "
            f"{item.second:.0f} s after the beginning",
        )
        for item in verdicts
        if not item.right
    ]
    return Figure(
        "MET-024",
        min(part.estimate for part in parts),
        min(part.bound or 0.0 for part in parts),
        len(verdicts),
        "the lower of two shares of subjects, of which a node alone and a family count one each: of those with which "
        "nothing is wrong, such as are shown in no state but their own or unknown; of those that stop, such as are "
        "shown as faulty in time; n: subjects; bound: the lower of the exact one-sided 95 % lower bounds of both "
        "shares (Clopper and Pearson)",
        parts,
        misses[:MOST_MISSES],
        [_table(by_pattern), _unknown(world, timeline, clock)],
    )


def _part(name: str, rows: Sequence[_Verdict]) -> PartFigure:
    right = sum(row.right for row in rows)
    share = right / len(rows) if rows else 0.0
    return PartFigure(name, share, proportion_lower_bound(right, len(rows)), len(rows))


def _unit_verdict(unit: Unit, world: SparseWorld, timeline: Timeline, clock: Clock) -> _Verdict:
    if unit.onset is None:
        wrong = (fault for name in unit.nodes for fault in _wrong(unit, name, world, timeline, clock))
        what, second = min(wrong, key=lambda fault: fault[1], default=("", 0.0))
        return _Verdict(unit, what, second)
    track = timeline.track("nodes", unit.nodes[0])
    for second in range(world.scale.warm_up, unit.onset):
        if track.value(clock.at(second)) in TROUBLE:
            return _Verdict(unit, f"{track.value(clock.at(second))} before anything was wrong", second)
    late = unit.onset + unit.patience
    return _Verdict(unit, "" if _is_shown(track, unit, clock) else _shown(track, clock.at(late)), late)


def _wrong(unit: Unit, name: str, world: SparseWorld, timeline: Timeline, clock: Clock) -> Iterator[tuple[str, float]]:
    """The first second in which a node is shown in trouble, or as working where it rests, or the other way round."""
    track = timeline.track("nodes", name)
    changed = 0
    for second in range(world.scale.total):
        if second and unit.works[second] != unit.works[second - 1]:
            changed = second
        shown = track.value(clock.at(second))
        opposite = "idle" if unit.works[second] else "busy"
        if second < world.scale.warm_up:
            continue
        if shown in TROUBLE or (shown == opposite and second - changed > unit.patience):
            yield str(shown), float(second)
            return


def _is_shown(track: Track, unit: Unit, clock: Clock) -> bool:
    """Whether the node is shown as faulty in time, and goes on being shown so for a while."""
    assert unit.onset is not None, "it stops"
    begin, late = clock.at(unit.onset), clock.at(unit.onset + unit.patience)
    spans = track.spans(float("inf"))
    return any(
        state == "faulty" and max(since, begin) <= late and until - max(since, begin) >= SPARSE_LASTING
        for since, until, state in spans
    )


def _shown(track: Track, instant: float) -> str:
    return f"{track.value(instant) or 'nothing'} and not faulty"


def _table(by_pattern: dict[str, list[_Verdict]]) -> ReportTable:
    """Units by pattern, and what was shown wrongly."""
    rows = []
    for pattern, verdicts in sorted(by_pattern.items()):
        wrong = Counter(entry.wrong for entry in verdicts if not entry.right)
        said = "; ".join(f"{what}: {count}" for what, count in wrong.most_common(3))
        cells = [pattern, str(len(verdicts)), str(sum(verdict.right for verdict in verdicts)), said]
        rows.append(TableRow(cells=cells))
    return ReportTable(
        title="Subjects, nodes or families, by what they do",
        columns=["what they do", "subjects", "shown rightly", "wrong: subjects"],
        rows=rows,
    )


def _unknown(world: SparseWorld, timeline: Timeline, clock: Clock) -> ReportTable:
    """How often nothing is said of a healthy node, by the number of its measures: printed and not judged."""
    seconds, unknown = Counter[int](), Counter[int]()
    for unit in (entry for entry in world.units if entry.onset is None):
        for name in unit.nodes:
            track = timeline.track("nodes", name)
            for second in range(world.scale.warm_up, world.scale.total):
                seconds[len(unit.measures)] += 1
                unknown[len(unit.measures)] += track.value(clock.at(second)) == "unknown"
    rows = [
        TableRow(cells=[str(count), str(seconds[count]), f"{unknown[count] / seconds[count]:.1%}"])
        for count in sorted(seconds)
    ]
    return ReportTable(
        title="Nodes with which nothing is wrong, shown as unknown",
        columns=["measures sent", "seconds, summed over nodes", "shown as unknown"],
        rows=rows,
    )


SPARSE_SETTLE = 3.0
"""Seconds for which the stream is watched when everything has been sent."""

SPARSE_MOST_WAITING = 0.5
"""Share of its time for which the world may wait for the suite; beyond it nothing is said. Delays of the path are not
judged here, and samples that come a third more seldom are sparse telemetry too."""


@dataclass(frozen=True)
class SparseWorldRun(Playback):
    """What came of a world.

    Attributes:
        world: The world.
    """

    world: SparseWorld


def observe_sparse(episode: Episode) -> SparseWorldRun:
    """Register the world, follow the graph, and play the world second by second.

    Raises:
        FellBehind: The suite, or the path to the target, was too slow for its own world.
    """
    scale = SPARSE_FULL if episode.settings.full else SPARSE_QUICK
    world = SparseWorld(scale, f"{episode.settings.nonce}/sparse", episode.name_of)
    unregistered = tuple(registered(episode, world.domains, world.nodes, world.families))
    snapshot = read(episode)
    begin = identifier_of(snapshot.at("revision"))
    streams = [episode.follow(EVENTS, after=begin)]
    if streams[0].opening.status != 200:
        unregistered += (streams[0].opening,)
    sender = Sender(episode, Clock(episode.now() + 1.0))
    for second in range(scale.total + 1) if not unregistered else ():
        for place, delivery in enumerate(world.deliveries(second)):
            sender.until(second + place / len(world.domains))
            sender.deliver(delivery)
        if second % REOPENED_EVERY == 0:
            reopen(episode, streams, begin)
        if second > GIVEN_UP and len(sender.refused) == sender.batches:
            break
    if not unregistered:
        streams[-1].take(SPARSE_SETTLE, at_least=1_000_000_000)
    streams[-1].hang_up()
    if sender.clock.waited > SPARSE_MOST_WAITING * scale.total:
        raise FellBehind(
            f"the world waited {sender.clock.waited:.0f} of {scale.total} s for requests to be answered, so that "
            "what was shown late would be the path's",
            f"{SPARSE_MOST_WAITING:.0%} of the time of a world",
        )
    refused = tuple(sender.refused)
    return SparseWorldRun(sender.clock, unregistered, snapshot, tuple(streams), refused, sender.batches, world)


def judge_sparse(o: SparseWorldRun) -> Iterator[Finding]:
    """Subjects that were shown rightly."""
    if o.unregistered:
        expected = "what the world consists of is taken, and followed"
        yield answered("MET-024", o.unregistered[0], (200, 201), expected)
        return
    first = o.refused[0] if o.refused else None
    observed = f"{len(o.refused)} of {o.batches} batches were not"
    yield holds("MET-024", not o.refused, "what the aggregators send is taken whole", observed, first)
    yield shown_rightly(o.world, Timeline(o.snapshot.json, o.events), o.clock)


SPARSE_CHECK = Check(
    "met_sparse",
    ("MET-024",),
    observe_sparse,
    judge_sparse,
    recorded_times=True,
    heavy=True,
    summary="Nodes that send any part of their measures are shown as they are: MET-024.",
)
