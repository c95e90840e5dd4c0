"""Decisions that the state can carry out, and nothing given out twice (SCH-013, COM-030)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import DecisionExchange, ask
from kuayu_conformance.checks.scheduling.account import Account
from kuayu_conformance.checks.scheduling.adversarial import TRAPS, crowd
from kuayu_conformance.checks.scheduling.paths import congested, grid
from kuayu_conformance.checks.scheduling.placement_requests import PLACEMENTS, ROUTES, StateBuilder, queued
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

CROWDS_QUICK, CROWDS_FULL = 6, 60
ROUTED_QUICK, ROUTED_FULL = 2, 20


@dataclass(frozen=True)
class StateDecision:
    """What was made of a state.

    Attributes:
        scenario: What is special about the state.
        decisions: How many jobs were decided on.
        started: How many of them are to start.
        wanted: Revision of the state.
        revision: Revision of the answer.
        faults: Why they cannot be carried out; nothing where they can.
        again: Whether the same question got the same decisions.
        answer: The exchange.
    """

    scenario: str
    decisions: int
    started: int
    wanted: Mapping[str, Any]
    revision: Mapping[str, Any]
    faults: tuple[str, ...]
    again: bool
    answer: Answer


@dataclass(frozen=True)
class RoutedLinks:
    """Links that were given out, and those of them that do not have as much."""

    demands: int
    over: tuple[str, ...]
    answer: Answer


@dataclass(frozen=True)
class SoundnessAnswers:
    """States that were decided on, the one in which everything is free first, and demands that were routed.

    Where the run is about parts of the profile, either may be missing.
    """

    decided: tuple[StateDecision, ...]
    routed: tuple[RoutedLinks, ...]


def observe(episode: Episode) -> SoundnessAnswers:
    """Ask for decisions on states, then for routes over narrow links, as far as the run is about them."""
    builder, settings = StateBuilder.of(episode), episode.settings
    decided = _decided(episode, builder) if settings.asks(f"POST {PLACEMENTS}") else ()
    routed = []
    if settings.asks(f"POST {ROUTES}"):
        for _ in range(ROUTED_FULL if settings.full else ROUTED_QUICK):
            exchange = ask(episode, ROUTES, grid(builder, demands=30))
            over = tuple(congested(exchange.body["links"], exchange.decision["routes"]))
            routed.append(RoutedLinks(len(exchange.body["demands"]), over, exchange.answer))
    return SoundnessAnswers(decided, tuple(routed))


def _decided(episode: Episode, builder: StateBuilder) -> tuple[StateDecision, ...]:
    """Ask for decisions on a free federation, on traps, and on crowds; then again, in another order."""
    bodies: list[tuple[str, documents.PlacementRequest]] = [("everything is free", {"state": _idle(builder)})]
    bodies += [(scenario, {"state": trap(builder)}) for scenario, trap in TRAPS.items()]
    crowds = CROWDS_FULL if episode.settings.full else CROWDS_QUICK
    bodies += [("a crowd", _request(builder, number)) for number in range(crowds)]
    first = [(scenario, ask(episode, PLACEMENTS, body)) for scenario, body in bodies]
    order = episode.random.sample(range(len(bodies)), len(bodies))
    again = {number: ask(episode, PLACEMENTS, bodies[number][1]) for number in order}
    return tuple(_judged(scenario, exchange, again[number]) for number, (scenario, exchange) in enumerate(first))


def _idle(builder: StateBuilder) -> "documents.SchedulingState":
    profile = builder.name()
    kind = builder.accelerator([profile], speed=1.0)
    domains = [builder.domain(builder.pool(kind, 4, switches=2)) for _ in range(5)]
    names = [domain["id"] for domain in domains]
    specs = [builder.spec(profile, name, (4, 4, 4)) for name in names]
    return queued(builder.state([kind], domains, builder.mesh(names)), specs)


def _request(builder: StateBuilder, number: int) -> "documents.PlacementRequest":
    """A crowd, every other one with explanations, weights, or shares."""
    state = crowd(builder, jobs=40)
    body: documents.PlacementRequest = {"state": state}
    if number % 2:
        body["explain"], body["alternatives"] = True, 2
    if number % 3 == 1:
        body["weights"] = {"period": 1.0, "price": builder.chance.uniform(0.0, 5.0), "communication": 1.0}
    if number % 3 == 2:
        body["shares"] = [{"domain": domain["id"], "share": 0.2} for domain in state["domains"]]
    return body


def _judged(scenario: str, exchange: DecisionExchange, again: DecisionExchange) -> StateDecision:
    report = exchange.decision
    decisions = report["decisions"]
    return StateDecision(
        scenario,
        len(decisions),
        sum(decision["verb"] == "start" for decision in decisions),
        exchange.body["state"]["revision"],
        report["revision"],
        tuple(Account(exchange.body["state"]).faults(decisions)),
        again.decision["decisions"] == decisions,
        exchange.answer,
    )


def judge(observation: SoundnessAnswers) -> Iterable[Finding]:
    """Claims about every state."""
    for free in observation.decided[:1]:
        yield holds(
            "SCH-013", free.started > 0, f"{free.scenario}: jobs are started", f"{free.started} are", free.answer
        )
    for entry in observation.decided:
        expected = f"{entry.scenario}: decisions that the state can carry out, in their order"
        yield holds("SCH-013", not entry.faults, expected, list(entry.faults[:3]), entry.answer)
        echoed = entry.revision == entry.wanted
        yield holds("SCH-013", echoed, f"{entry.scenario}: revision {entry.wanted}", entry.revision, entry.answer)
        yield holds("SCH-013", entry.again, f"{entry.scenario}: the same decisions again", entry.again, entry.answer)
        over = [fault for fault in entry.faults if "are free" in fault or "more than the offer" in fault]
        expected = f"{entry.scenario}: no more devices given out than are free"
        yield holds("COM-030", not over, expected, over[:3], entry.answer)
    for routed in observation.routed:
        expected = f"{routed.demands} demands: no more of a link given out than is available"
        yield holds("COM-030", not routed.over, expected, list(routed.over[:3]), routed.answer)


CHECK = Check("sch_soundness", ("SCH-013", "COM-030"), observe, judge)
