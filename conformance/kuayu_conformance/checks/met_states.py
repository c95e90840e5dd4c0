"""Telemetry of many domains is played, and the graph is watched: MET-004, MET-005, MET-006, MET-016 and MET-022.

The suite plays the aggregators of a simulated world (:mod:`kuayu_conformance.testbed.telemetry`), one batch for each
domain and second, and beside it changes a domain of its own in ways that leave nothing to be recognised. Everything is
timed by the suite's clock, at sending and at the arrival of the event.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.graphs import graph_of, identifier_of, read
from kuayu_conformance.checks.states_beside import KINDS, Beside, Change
from kuayu_conformance.checks.states_figures import (
    delays_of_changes,
    delays_of_states,
    domains_joined,
    partitions,
    right_states,
)
from kuayu_conformance.checks.states_player import (
    EVENTS,
    GIVEN_UP,
    REOPENED_EVERY,
    Followed,
    Sender,
    refusals,
    registered,
    reopen,
)
from kuayu_conformance.checks.states_timeline import Clock, Timeline
from kuayu_conformance.episode import Episode, FellBehind
from kuayu_conformance.findings import Finding, answered, holds
from kuayu_conformance.testbed.telemetry import Delivery, Scale, World
from kuayu_schemas import schema

QUICK = Scale(domains=5, nodes=1000, warm_up=12, seconds=84, churn=0.01)
FULL = Scale(domains=64, nodes=10_000, warm_up=20, seconds=120, churn=0.01)

SETTLE = 8.0
"""Seconds for which the stream is watched when everything has been sent."""

MOST_WAITING = 0.1
"""Share of its time for which the world may wait for the suite; beyond it nothing is said of delays."""

AT_ONCE = 8
"""Aggregators that send at the same time."""


@dataclass(frozen=True)
class Observed(Followed):
    """What came of a world.

    Attributes:
        world: The world.
        changes: What was changed beside it.
    """

    world: World
    changes: tuple[Change, ...]


def observe(episode: Episode) -> Observed:
    """Register the world, follow the graph, play the world second by second, and change a pair of domains beside it.

    Raises:
        FellBehind: The suite, or the path to the target, was too slow for its own world.
    """
    scale = FULL if episode.settings.full else QUICK
    world = World(scale, f"{episode.settings.nonce}/telemetry", episode.name_of, episode.urn_of)
    refused = tuple(registered(episode, world.domains, world.nodes, world.families, world.links))
    beside = Beside(episode, scale.warm_up + scale.seconds)
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
    return Observed(player.clock, refused, snapshot, tuple(streams), unsent, player.batches, world, changes)


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

    def play(self, second: int, deliveries: Iterable[Delivery], beside: Beside) -> None:
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


def judge(o: Observed) -> Iterator[Finding]:
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
    found = broken[:3] or f"{len(o.events)} changes"
    yield holds("MET-005", not broken, "each change is valid", found, o.snapshot)
    yield from _not_known_beforehand(o)
    first = o.refused[0] if o.refused else None
    found = f"{len(o.refused)} of {o.batches} batches were not"
    yield holds("MET-004", not o.refused, "what the aggregators send is taken whole", found, first)
    timeline = Timeline(o.snapshot.json, o.events)
    yield domains_joined(o.world, timeline, o.clock)
    end = o.clock.at(o.world.scale.warm_up + o.world.scale.seconds) + SETTLE
    yield delays_of_changes(o.changes, timeline, end)
    yield delays_of_states(o.world, timeline, o.clock)
    yield right_states(o.world, timeline, o.clock)
    yield from partitions(o.world, timeline, o.clock, o.snapshot)


def _not_known_beforehand(o: Observed) -> Iterator[Finding]:
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
)
