"""Decision services are pure and say on what state they decided (COM-028, COM-029)."""

from collections.abc import Iterable
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.idx_fixtures import PROBED, Json, corpus, question
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, holds

Sent = tuple[str, Json]
"""Path and body of a request."""


@dataclass(frozen=True)
class Decided:
    """A request and what was decided on it, the first time and again."""

    body: Json
    first: Answer
    again: Answer


def observe(episode: Episode) -> tuple[Decided, ...]:
    """Send requests to every decision service, then the same ones in another order."""
    requests = [request for _ in range(2) for request in _requests(episode)]
    first = [episode.set_up("POST", *request) for request in requests]
    order = episode.random.sample(range(len(requests)), len(requests))
    again = {number: episode.set_up("POST", *requests[number]) for number in order}
    return tuple(Decided(body, first[n], again[n]) for n, (_, body) in enumerate(requests))


def _requests(episode: Episode) -> list[Sent]:
    of = corpus(episode)
    indices = question(episode, of, explain=True)
    cells = [{"device": PROBED, "task": task["id"]} for task in of["tasks"]]
    plan = {"revision": indices["revision"], "corpus": of, "candidates": cells, "targets": cells, "probes": 2}
    return [("/v1/compute-indices", indices), ("/v1/probe-plans", plan)]


def judge(observation: tuple[Decided, ...]) -> Iterable[Finding]:
    """Claims about revisions and repetitions."""
    for decided in observation:
        wanted = decided.body["revision"]
        body = decided.first.json if isinstance(decided.first.json, dict) else {}
        told = body.get("revision")
        yield holds("COM-028", told == wanted, f"revision {wanted}", told, decided.first)
        same = decided.first.json is not None and decided.again.json == decided.first.json
        yield holds("COM-029", same, "the same decision again", decided.again.brief, decided.again)


CHECK = Check("com_decisions", ("COM-028", "COM-029"), observe, judge, needs="IDX")
