"""Faults are recognised and responded to while a simulated world beats: RES-001 and RES-002.

The suite plays the aggregators of five domains (:mod:`kuayu_conformance.testbed.heartbeats`), one batch for each domain
and quarter of a second, and follows the stream of faults. When one is told that an action responds to, it asks for the
actions of the domain at once and answers them as carried out. Everything is timed by the suite's clock, at arrival.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.res_detection_player import EVENTS, Player, Response, registered
from kuayu_conformance.checks.res_detection_report import RECOGNISED, RESPONDED, recognised, responded
from kuayu_conformance.checks.res_detection_scores import account, tellings
from kuayu_conformance.checks.states_timeline import Clock
from kuayu_conformance.episode import Episode, FellBehind
from kuayu_conformance.findings import Finding, answered, holds
from kuayu_conformance.streams import StreamEvent
from kuayu_conformance.testbed.heartbeats import FULL, QUICK, World
from kuayu_schemas import schema

MOST_WAITING = 0.1
"""Share of its time for which the world may wait for the suite; beyond it nothing is said of delays."""


@dataclass(frozen=True)
class Observed:
    """A played world, what the target answered, and what its stream told.

    Attributes:
        world: The world.
        clock: From its seconds to Unix time.
        unregistered: Refusals of what the world consists of; where there are any nothing was played.
        openings: How the stream of faults was opened, and again where it had ended.
        events: What it told, in order.
        responses: Actions that could be fetched.
        refused: Batches that were not taken whole.
        batches: How many were sent.
        unanswered: Answers that were no list of actions, and results of actions that were not taken.
    """

    world: World
    clock: Clock
    unregistered: tuple[Answer, ...] = ()
    openings: tuple[Answer, ...] = ()
    events: tuple[StreamEvent, ...] = ()
    responses: tuple[Response, ...] = ()
    refused: tuple[Answer, ...] = ()
    batches: int = 0
    unanswered: tuple[Answer, ...] = ()


def observe(episode: Episode) -> Observed:
    """Register the world, follow its faults, and play it in real time.

    Raises:
        FellBehind: The suite, or the path to the target, was too slow for its own world.
    """
    scale = FULL if episode.settings.full else QUICK
    world = World(scale, f"{episode.settings.nonce}/heartbeats", episode.name_of)
    refusals = tuple(registered(episode, world))
    if refusals:
        return Observed(world, Clock(episode.now()), refusals)
    streams = [episode.follow(EVENTS)]
    player = Player(episode, world, Clock(episode.now() + 1.0), streams)
    if streams[0].opening.status == 200:
        player.play()
    streams[-1].hang_up()
    if player.clock.waited > MOST_WAITING * scale.total:
        raise FellBehind(
            f"the world waited {player.clock.waited:.0f} of {scale.total:.0f} s for requests to be answered, so that "
            "delays would be those of the path",
            f"{MOST_WAITING:.0%} of the time of a world",
        )
    return Observed(
        world,
        player.clock,
        (),
        tuple(stream.opening for stream in streams),
        tuple(event for stream in streams for event in stream.events),
        tuple(player.responses),
        tuple(player.refused),
        player.batches,
        tuple(player.unanswered),
    )


def judge(o: Observed) -> Iterator[Finding]:
    """What was told, held against what was so."""
    if o.unregistered:
        for requirement in CHECK.requirements:
            expected = "the domains and nodes of which the world consists are taken"
            yield answered(requirement, o.unregistered[0], (200, 201), expected)
        return
    for opening in o.openings:
        for requirement in CHECK.requirements:
            yield answered(requirement, opening, 200, "the stream of faults is opened")
    if not o.openings or o.openings[0].status != 200:
        return
    yield from _taken(o)
    broken = [
        f"{event.id}: {error.pointer} {error.detail}"
        for event in o.events
        for error in schema.errors("Fault", event.json, reader=True)
    ]
    yield holds(RECOGNISED, not broken, "each fault is valid", broken[:3] or f"{len(o.events)} events", o.openings[0])
    found = account(o.world, o.clock, tellings(o.events), o.responses)
    yield recognised(o.world, found, o.clock.waited)
    yield responded(found)


def _taken(o: Observed) -> Iterator[Finding]:
    """What was sent was taken, and what was asked for could be fetched."""
    first = o.refused[0] if o.refused else None
    found = f"{len(o.refused)} of {o.batches} batches were not"
    yield holds(RECOGNISED, not o.refused, "heartbeats and log lines are taken whole", found, first)
    first = o.unanswered[0] if o.unanswered else None
    found = f"{len(o.unanswered)} times it was not so"
    yield holds(RESPONDED, not o.unanswered, "open actions are listed, and their results taken", found, first)


CHECK = Check("res_detection", (RECOGNISED, RESPONDED), observe, judge, recorded_times=True, background=True)
