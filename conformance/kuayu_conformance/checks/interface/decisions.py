"""Decision services are pure and say on what state they decided (COM-028, COM-029)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.index.index_requests import PROBED, corpus, question
from kuayu_conformance.checks.kit.decisions import named_revision
from kuayu_conformance.checks.kit.requests import DECISIONS, decision_services
from kuayu_conformance.contract import violation
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

DecisionRequest = tuple[str, Mapping[str, Any]]
"""Path and body of a request."""


@dataclass(frozen=True)
class RepeatedDecision:
    """A revision that was sent, and what was decided on it, the first time and again."""

    revision: Mapping[str, Any]
    first: Answer
    again: Answer


def observe(episode: Episode) -> tuple[RepeatedDecision, ...]:
    """Send requests to every decision service that the run is about, then the same ones in another order."""
    services = decision_services(episode)
    requests = [request for _ in range(2) for request in _requests(episode, services)]
    first = [episode.set_up("POST", *request) for request in requests]
    order = episode.random.sample(range(len(requests)), len(requests))
    again = {number: episode.set_up("POST", *requests[number]) for number in order}
    return tuple(RepeatedDecision(_revision_of(body), first[n], again[n]) for n, (_, body) in enumerate(requests))


def _requests(episode: Episode, services: Sequence[str]) -> Iterator[DecisionRequest]:
    """The least that each service can be asked; of the compute index a little more, since it computes with care."""
    for operation in services:
        path = operation.removeprefix("POST ")
        yield path, _with(DECISIONS[operation], named_revision(episode, "state"))
        if path == "/v1/compute-indices":
            of = corpus(episode)
            indices = question(episode, of, explain=True)
            cells: list[documents.CorpusCell] = [{"device": PROBED, "task": task["id"]} for task in of["tasks"]]
            yield path, indices
            plan: documents.ProbePlanRequest = {
                "revision": indices["revision"],
                "corpus": of,
                "candidates": cells,
                "targets": cells,
                "probes": 2,
            }
            yield "/v1/probe-plans", plan


def _with(body: Mapping[str, Any], revision: "documents.Revision") -> Mapping[str, Any]:
    """A request that states another revision: its own, or that of the state that it holds."""
    if "state" in body:
        return {**body, "state": {**body["state"], "revision": revision}}
    return {**body, "revision": revision}


def _revision_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    revision: Mapping[str, Any] = body.get("state", body)["revision"]
    return revision


def judge(observation: tuple[RepeatedDecision, ...]) -> Iterable[Finding]:
    """Claims about revisions and repetitions."""
    for decided in observation:
        wanted = decided.revision
        body = decided.first.json if isinstance(decided.first.json, dict) else {}
        observed = body.get("revision")
        yield holds("COM-028", observed == wanted, f"revision {wanted}", observed, decided.first)
        wrong = violation(decided.first)  # what is no decision may well be the same again
        same = not wrong and decided.again.json == decided.first.json
        yield holds("COM-029", same, "the same decision again", wrong or decided.again.brief, decided.again)


CHECK = Check("com_decisions", ("COM-028", "COM-029"), observe, judge)
