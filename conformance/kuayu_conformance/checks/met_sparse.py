"""Nodes that send any part of their measures are shown as they are: MET-024.

The suite plays the aggregators of a few domains (:mod:`kuayu_conformance.testbed.sparse`), one batch for each domain
and second, and follows the graph. Whether a unit, a node or a family, was shown rightly is read off the stream alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.check import Check
from kuayu_conformance.checks.graphs import identifier_of, read
from kuayu_conformance.checks.sparse_figure import shown_rightly
from kuayu_conformance.checks.states_player import (
    EVENTS,
    GIVEN_UP,
    REOPENED_EVERY,
    Followed,
    Sender,
    registered,
    reopen,
)
from kuayu_conformance.checks.states_timeline import Clock, Timeline
from kuayu_conformance.episode import Episode, FellBehind
from kuayu_conformance.findings import Finding, answered, holds
from kuayu_conformance.testbed.sparse import FULL, QUICK, World

SETTLE = 3.0
"""Seconds for which the stream is watched when everything has been sent."""

MOST_WAITING = 0.5
"""Share of its time for which the world may wait for the suite; beyond it nothing is said. Delays of the path are not
judged here, and samples that come a third more seldom are sparse telemetry too."""


@dataclass(frozen=True)
class Observed(Followed):
    """What came of a world.

    Attributes:
        world: The world.
    """

    world: World


def observe(episode: Episode) -> Observed:
    """Register the world, follow the graph, and play the world second by second.

    Raises:
        FellBehind: The suite, or the path to the target, was too slow for its own world.
    """
    scale = FULL if episode.settings.full else QUICK
    world = World(scale, f"{episode.settings.nonce}/sparse", episode.name_of)
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
        streams[-1].take(SETTLE, at_least=1_000_000_000)
    streams[-1].hang_up()
    if sender.clock.waited > MOST_WAITING * scale.total:
        raise FellBehind(
            f"the world waited {sender.clock.waited:.0f} of {scale.total} s for requests to be answered, so that "
            "what was shown late would be the path's",
            f"{MOST_WAITING:.0%} of the time of a world",
        )
    refused = tuple(sender.refused)
    return Observed(sender.clock, unregistered, snapshot, tuple(streams), refused, sender.batches, world)


def judge(o: Observed) -> Iterator[Finding]:
    """Units that were shown rightly."""
    if o.unregistered:
        expected = "what the world consists of is taken, and followed"
        yield answered("MET-024", o.unregistered[0], (200, 201), expected)
        return
    first = o.refused[0] if o.refused else None
    found = f"{len(o.refused)} of {o.batches} batches were not"
    yield holds("MET-024", not o.refused, "what the aggregators send is taken whole", found, first)
    yield shown_rightly(o.world, Timeline(o.snapshot.json, o.events), o.clock)


CHECK = Check("met_sparse", ("MET-024",), observe, judge, recorded_times=True, heavy=True)
