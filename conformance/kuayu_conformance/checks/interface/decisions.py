"""On what state decisions rest: they are pure, name it, and take it whole or as a patch (COM-021, 022, 028 and 029).

1. A decision service is asked twice: it answers the same, changes nothing, and says on what state it decided (COM-028,
   COM-029).
2. States of scheduling are sent as patches of those before; a patched snapshot is answered like the whole one
   (COM-021).
3. The base of a patch that is not held is named (COM-022).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.index.index_requests import PROBED, corpus, question
from kuayu_conformance.checks.kit.decisions import Json, named_revision
from kuayu_conformance.checks.kit.requests import DECISIONS, decision_services
from kuayu_conformance.checks.scheduling.placement_requests import PLACEMENTS, Scale, StateBuilder, Stream
from kuayu_conformance.contract import violation
from kuayu_conformance.episode import Episode, NotTestable
from kuayu_conformance.findings import Finding, answered, holds
from kuayu_schemas import schema

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


CHECK = Check(
    "com_decisions",
    ("COM-028", "COM-029"),
    observe,
    judge,
    summary="Decision services are pure and say on what state they decided (COM-028, COM-029).",
)


SCALE = Scale(domains=3, nodes=6, running=40, waiting=20)
STATES = 6
TRIES = 3
"""Times that a base is sent anew where a target has forgotten it."""

QUEUES = ("waiting", "running")
FORGOTTEN = "unknown-base"


def states_of(episode: Episode) -> list[Json]:
    """States of a busy federation, a minute after each other."""
    stream = Stream(StateBuilder.of(episode), SCALE)
    return [json.loads(text)["state"] for text in islice(stream, STATES)]


def digest(state: Json) -> str:
    """Digest of a state; each is named in many requests, and to write it canonically takes longer than to ask."""
    return _digest(json.dumps(state))


@lru_cache(maxsize=32)
def _digest(text: str) -> str:
    return schema.digest(json.loads(text))


def patched(episode: Episode, base: Json, body: Json, *, cached: bool = False) -> Answer:
    """The answer to a patch whose base is sent whole before, unless it should be held; again where it was forgotten."""
    answer = episode.ask("POST", PLACEMENTS, body) if cached else None
    for _ in range(TRIES):
        if answer is not None and answer.problem != FORGOTTEN:
            break
        episode.set_up("POST", PLACEMENTS, {"state": base, "digest": digest(base)})
        answer = episode.ask("POST", PLACEMENTS, body)
    assert answer is not None
    return answer


def request(base: Json, state: Json, operations: list[Json] | None = None, *, base_digest: str = "") -> Json:
    """A request that brings a state as a patch of another; with operations of its own, or a base that is none."""
    patch = {
        "base": base_digest or digest(base),
        "result": digest(state),
        "operations": operations_of(base, state) if operations is None else operations,
    }
    return {"patch": patch}


def operations_of(before: Json, after: Json) -> list[Json]:
    """What leads from one state to another: members, jobs that are gone from behind, then jobs from the front."""
    operations: list[Json] = [{"op": "remove", "path": f"/{name}"} for name in before if name not in after]
    for name, value in after.items():
        if name in QUEUES and isinstance(value, list):
            operations += _queue(name, before[name], value)
        elif value != before.get(name):
            operations.append({"op": "replace" if name in before else "add", "path": f"/{name}", "value": value})
    return operations


def _queue(name: str, before: list[Json], after: list[Json]) -> Iterator[Json]:
    earlier = {entry["spec"]["id"]: entry for entry in before}
    wanted = {entry["spec"]["id"] for entry in after}
    for place in range(len(before) - 1, -1, -1):
        if before[place]["spec"]["id"] not in wanted:
            yield {"op": "remove", "path": f"/{name}/{place}"}
    placed: set[str] = set()
    for place, entry in enumerate(after):
        known = earlier.get(entry["spec"]["id"])
        if known is None or entry["spec"]["id"] in placed:
            yield {"op": "add", "path": f"/{name}/{place}", "value": entry}
        elif known != entry:
            yield from _members(f"/{name}/{place}", known, entry)
        placed.add(entry["spec"]["id"])


def _members(path: str, before: Json, after: Json) -> Iterator[Json]:
    for name in before:
        if name not in after:
            yield {"op": "remove", "path": f"{path}/{name}"}
    for name in after:
        if name not in before:
            yield {"op": "add", "path": f"{path}/{name}", "value": after[name]}
        elif after[name] != before[name]:
            yield {"op": "replace", "path": f"{path}/{name}", "value": after[name]}


Change = Callable[[Json], object]
Operations = Callable[[Json, Json], list[Json]]

WRONG: tuple[tuple[str, Change], ...] = (
    ("without the present instant", lambda state: state.pop("now")),
    ("with a job that has done less than nothing", lambda state: state["running"][0].update(done=-1.0)),
    ("with a member that there is not", lambda state: state["waiting"][1].update(colour="red")),
    ("with a domain that there is not", lambda state: state["waiting"][0]["spec"].update(home_domain="nowhere")),
    ("with a job that stands twice", lambda state: state["running"].append(deepcopy(state["running"][0]))),
    ("with a queue that is none", lambda state: state.update(waiting={})),
)
"""What makes a state one that cannot be decided on."""


@dataclass(frozen=True)
class StateComparison:
    """A state that was sent whole and as a patch.

    Attributes:
        what: Which, in words.
        whole: Answer to the whole state.
        patched: Answer to its patch.
    """

    what: str
    whole: Answer
    patched: Answer


@dataclass(frozen=True)
class SnapshotAnswers:
    """States that were sent both ways, and bodies that are not what they say they are, by what is wrong."""

    compared: tuple[StateComparison, ...]
    refused: tuple[tuple[str, Answer], ...]


def observe_snapshots(episode: Episode) -> SnapshotAnswers:
    """Ask for placements on states of a busy federation, whole and as patches.

    Raises:
        NotTestable: The target holds no state that it was just sent, which it is free to do.
    """
    states = states_of(episode)
    compared = tuple(_compared(episode, states))
    if all(entry.patched.problem == FORGOTTEN for entry in compared):
        reason = "the target holds no state that it was just sent with its digest, so that no patch was answered"
        raise NotTestable(reason, "have it hold the last state of a tenant at least while the suite runs")
    return SnapshotAnswers(compared, tuple(_refused(episode, *states[:2])))


def _compared(episode: Episode, states: Sequence[Json]) -> Iterator[StateComparison]:
    first = states[0]
    for number, state in enumerate(states):
        # Each is further from the first than the one before.
        yield _both(episode, f"{number} minutes after its base", first, state)
    for number, (before, after) in enumerate(pairwise(states)):
        # Those after the first were sent as patches themselves.
        yield _both(episode, f"of minute {number + 1}, a minute after its base", before, after, cached=True)
    yield _both(episode, "put in the place of its base as a whole", first, states[1], _replaced)
    yield _both(episode, "with a queue that was written anew", first, states[1], _rewritten)
    yield _both(episode, "after tests that its base passes", first, states[1], _tested)
    for what, change in WRONG:
        wrong = deepcopy(states[1])
        change(wrong)
        yield _both(episode, what, first, wrong)


def _both(
    episode: Episode, what: str, base: Json, state: Json, diff: Operations = operations_of, *, cached: bool = False
) -> StateComparison:
    operations = diff(base, state)
    whole = episode.ask("POST", PLACEMENTS, {"state": state, "explain": True})
    body = {**request(base, state, operations), "explain": True}
    return StateComparison(what, whole, patched(episode, base, body, cached=cached))


def _refused(episode: Episode, base: Json, state: Json) -> Iterator[tuple[str, Answer]]:
    operations = operations_of(base, state)
    gone = {"op": "remove", "path": "/running/99999"}
    other = {"op": "test", "path": "/now", "value": "1999-12-31T23:59:59Z"}
    for what, body in (
        ("leads to another digest than it states", request(base, base, operations)),
        ("states a digest and does nothing", request(base, state, [])),
        ("removes what is not there", request(base, state, [*operations, gone])),
        ("replaces what is not there", request(base, state, [{**gone, "op": "replace", "value": 1}, *operations])),
        ("tests for another value", request(base, state, [other, *operations])),
    ):
        yield f"a patch that {what}", patched(episode, base, body)
    whole = {"state": state, "digest": digest(base)}
    yield "a whole state with the digest of another", episode.ask("POST", PLACEMENTS, whole)


def _replaced(_before: Json, after: Json) -> list[Json]:
    return [{"op": "replace", "path": "", "value": after}]


def _rewritten(before: Json, after: Json) -> list[Json]:
    """The same with a queue that is emptied and filled at its end."""
    queue = [{"op": "add", "path": "/waiting", "value": []}]
    queue += [{"op": "add", "path": "/waiting/-", "value": entry} for entry in after["waiting"]]
    return [*queue, *operations_of({**before, "waiting": after["waiting"]}, after)]


def _tested(before: Json, after: Json) -> list[Json]:
    tests = [{"op": "test", "path": f"/{name}", "value": value} for name, value in sorted(before.items())]
    return [*tests, {"op": "test", "path": "/running/0/used", "value": 1}, *operations_of(before, after)]


def judge_snapshots(o: SnapshotAnswers) -> Iterator[Finding]:
    """The answers are equal as JSON values, problems but for their words; what is false is refused."""
    for entry in o.compared:
        if entry.patched.problem == FORGOTTEN:
            continue
        wrong = violation(entry.whole)  # what is no answer may well be the same both ways
        same = not wrong and _content(entry.patched) == _content(entry.whole)
        expected = f"the state {entry.what} is answered like the whole: {entry.whole.brief}"
        yield holds("COM-021", same, expected, wrong or entry.patched.brief, entry.patched)
    for what, answer in o.refused:
        if answer.problem != FORGOTTEN:
            yield answered("COM-021", answer, 422, f"{what} is refused", problem="invalid-body")


def _content(answer: Answer) -> Any:
    """A report, or of a problem its type and the places that it points to."""
    if answer.status == 200:
        return answer.json
    places = [place for place in answer.items("errors") if isinstance(place, dict)]
    return answer.status, answer.problem, sorted(str(place.get("pointer")) for place in places)


SNAPSHOTS_CHECK = Check(
    "com_snapshots",
    ("COM-021",),
    observe_snapshots,
    judge_snapshots,
    summary="A patched snapshot is answered like the whole one (COM-021).",
)


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


def observe_bases(episode: Episode) -> BaseAnswers:
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


def judge_bases(o: BaseAnswers) -> Iterator[Finding]:
    """Claims about the problems that they are answered with."""
    for what, answer in o.unknown:
        yield answered("COM-022", answer, 409, f"{what} is no base", problem=FORGOTTEN)
    for answer in o.parameters:
        because = "a base that is no digest, or none at all, is a malformed parameter"
        yield answered("COM-022", answer, 400, because, problem="invalid-parameter")
    for answer in o.bodies:
        yield answered("COM-022", answer, 422, "a base that is no digest breaks the schema", problem="invalid-body")


BASES_CHECK = Check(
    "com_bases",
    ("COM-022",),
    observe_bases,
    judge_bases,
    summary="Bases of patches that are not held are named (COM-022).",
)
