"""Bases of patches that are not held are named (COM-022)."""

from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.interface.snapshots import FORGOTTEN, patched, request, states_of
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.scheduling.placement_requests import PLACEMENTS
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, answered

STRANGE = "sha256:" + "0" * 64
"""Digest of nothing that anybody has sent or given out."""

NO_DIGEST = "sha256:none"
GRAPH = "/v1/graph/patch"


@dataclass(frozen=True)
class BaseAnswers:
    """Answers to patches whose bases cannot be held, of what the target declares to take or to give patches of.

    Attributes:
        unknown: By what the base is instead.
        parameters: Where the base is no digest, or absent, in a query.
        bodies: Where it is no digest in a body.
    """

    unknown: tuple[tuple[str, Answer], ...]
    parameters: tuple[Answer, ...]
    bodies: tuple[Answer, ...]


def observe(episode: Episode) -> BaseAnswers:
    """Ask for patches of the resource graph from strange bases, and for placements by patches of strange states."""
    unknown: list[tuple[str, Answer]] = []
    parameters: list[Answer] = []
    bodies: list[Answer] = []
    if episode.settings.asks("GET /v1/graph/patch", "MET"):
        unknown.append(("a graph that was never given", episode.ask("GET", f"{GRAPH}?base={STRANGE}")))
        parameters += (episode.ask("GET", f"{GRAPH}?base={NO_DIGEST}"), episode.ask("GET", GRAPH))
    if episode.settings.asks("POST /v1/placements", "SCH"):
        base, state, *_ = states_of(episode)
        unknown += _strange_states(episode, base, state)
        bodies.append(episode.ask("POST", PLACEMENTS, request(base, state, base_digest=NO_DIGEST)))
    return BaseAnswers(tuple(unknown), tuple(parameters), tuple(bodies))


def _strange_states(episode: Episode, base: Json, state: Json) -> Iterator[tuple[str, Answer]]:
    body = request(base, state)
    yield "a state that was never sent", episode.ask("POST", PLACEMENTS, body)
    if episode.settings.other_tenant:
        patched(episode, base, body)
        yield "a state that another tenant sent", episode.ask("POST", PLACEMENTS, body, tenant="other")
    refused = {**state, "domains": []}
    digest = request(base, refused)["patch"]["result"]
    episode.ask("POST", PLACEMENTS, {"state": refused, "digest": digest})
    yield "a state that was refused", episode.ask("POST", PLACEMENTS, request(refused, state))


def judge(o: BaseAnswers) -> Iterator[Finding]:
    """Claims about the problems that they are answered with."""
    for what, answer in o.unknown:
        yield answered("COM-022", answer, 409, f"{what} is no base", problem=FORGOTTEN)
    for answer in o.parameters:
        because = "a base that is no digest, or none at all, is a malformed parameter"
        yield answered("COM-022", answer, 400, because, problem="invalid-parameter")
    for answer in o.bodies:
        yield answered("COM-022", answer, 422, "a base that is no digest breaks the schema", problem="invalid-body")


CHECK = Check("com_bases", ("COM-022",), observe, judge)
