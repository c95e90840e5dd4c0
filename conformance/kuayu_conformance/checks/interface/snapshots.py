"""A patched snapshot is answered like the whole one (COM-021).

1. States of scheduling that are sent as patches: asking for placements on them, and what leads from one to another.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.scheduling.placement_requests import PLACEMENTS, StateBuilder
from kuayu_conformance.checks.scheduling.stream import Scale, Stream
from kuayu_conformance.contract import violation
from kuayu_conformance.episode import Episode, NotTestable
from kuayu_conformance.findings import Finding, answered, holds
from kuayu_schemas import schema

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


def observe(episode: Episode) -> SnapshotAnswers:
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


def judge(o: SnapshotAnswers) -> Iterator[Finding]:
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


CHECK = Check("com_snapshots", ("COM-021",), observe, judge)
