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
from kuayu_conformance.checks.scheduling.placement_requests import PLACEMENTS, ROUTES, Draft, queued
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
        scene: What is special about the state.
        decisions: How many jobs were decided on.
        started: How many of them are to start.
        wanted: Revision of the state.
        told: Revision of the answer.
        faults: Why they cannot be carried out; nothing where they can.
        again: Whether the same question got the same decisions.
        answer: The exchange.
    """

    scene: str
    decisions: int
    started: int
    wanted: Mapping[str, Any]
    told: Mapping[str, Any]
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
    draft, settings = Draft.of(episode), episode.settings
    decided = _decided(episode, draft) if settings.asks(f"POST {PLACEMENTS}") else ()
    routed = []
    if settings.asks(f"POST {ROUTES}"):
        for _ in range(ROUTED_FULL if settings.full else ROUTED_QUICK):
            asked = ask(episode, ROUTES, grid(draft, demands=30))
            over = tuple(congested(asked.body["links"], asked.told["routes"]))
            routed.append(RoutedLinks(len(asked.body["demands"]), over, asked.answer))
    return SoundnessAnswers(decided, tuple(routed))


def _decided(episode: Episode, draft: Draft) -> tuple[StateDecision, ...]:
    """Ask for decisions on a free federation, on traps, and on crowds; then again, in another order."""
    bodies: list[tuple[str, documents.PlacementRequest]] = [("everything is free", {"state": _idle(draft)})]
    bodies += [(scene, {"state": trap(draft)}) for scene, trap in TRAPS.items()]
    crowds = CROWDS_FULL if episode.settings.full else CROWDS_QUICK
    bodies += [("a crowd", _request(draft, number)) for number in range(crowds)]
    first = [(scene, ask(episode, PLACEMENTS, body)) for scene, body in bodies]
    order = episode.random.sample(range(len(bodies)), len(bodies))
    again = {number: ask(episode, PLACEMENTS, bodies[number][1]) for number in order}
    return tuple(_judged(scene, asked, again[number]) for number, (scene, asked) in enumerate(first))


def _idle(draft: Draft) -> "documents.SchedulingState":
    profile = draft.name()
    kind = draft.accelerator([profile], speed=1.0)
    domains = [draft.domain(draft.pool(kind, 4, switches=2)) for _ in range(5)]
    names = [domain["id"] for domain in domains]
    specs = [draft.spec(profile, name, (4, 4, 4)) for name in names]
    return queued(draft.state([kind], domains, draft.mesh(names)), specs)


def _request(draft: Draft, number: int) -> "documents.PlacementRequest":
    """A crowd, every other one with explanations, weights, or shares."""
    state = crowd(draft, jobs=40)
    body: documents.PlacementRequest = {"state": state}
    if number % 2:
        body["explain"], body["alternatives"] = True, 2
    if number % 3 == 1:
        body["weights"] = {"period": 1.0, "price": draft.chance.uniform(0.0, 5.0), "communication": 1.0}
    if number % 3 == 2:
        body["shares"] = [{"domain": domain["id"], "share": 0.2} for domain in state["domains"]]
    return body


def _judged(scene: str, asked: DecisionExchange, again: DecisionExchange) -> StateDecision:
    report = asked.told
    decisions = report["decisions"]
    return StateDecision(
        scene,
        len(decisions),
        sum(decision["verb"] == "start" for decision in decisions),
        asked.body["state"]["revision"],
        report["revision"],
        tuple(Account(asked.body["state"]).faults(decisions)),
        again.told["decisions"] == decisions,
        asked.answer,
    )


def judge(observation: SoundnessAnswers) -> Iterable[Finding]:
    """Claims about every state."""
    for free in observation.decided[:1]:
        yield holds("SCH-013", free.started > 0, f"{free.scene}: jobs are started", f"{free.started} are", free.answer)
    for entry in observation.decided:
        expected = f"{entry.scene}: decisions that the state can carry out, in their order"
        yield holds("SCH-013", not entry.faults, expected, list(entry.faults[:3]), entry.answer)
        echoed = entry.told == entry.wanted
        yield holds("SCH-013", echoed, f"{entry.scene}: revision {entry.wanted}", entry.told, entry.answer)
        yield holds("SCH-013", entry.again, f"{entry.scene}: the same decisions again", entry.again, entry.answer)
        over = [fault for fault in entry.faults if "are free" in fault or "more than the offer" in fault]
        expected = f"{entry.scene}: no more devices given out than are free"
        yield holds("COM-030", not over, expected, over[:3], entry.answer)
    for routed in observation.routed:
        expected = f"{routed.demands} demands: no more of a link given out than is available"
        yield holds("COM-030", not routed.over, expected, list(routed.over[:3]), routed.answer)


CHECK = Check("sch_soundness", ("SCH-013", "COM-030"), observe, judge)
