"""States of scheduling that are sent as patches: asking for placements on them, and what leads from one to another."""

import json
from collections.abc import Iterator
from itertools import islice

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.sch_fixtures import PLACEMENTS, Draft, Json
from kuayu_conformance.checks.sch_stream import Scale, Stream
from kuayu_conformance.episode import Episode
from kuayu_schemas import schema

SCALE = Scale(domains=3, nodes=6, running=40, waiting=20)
STATES = 6
TRIES = 3
"""Times that a base is sent anew where a target has forgotten it."""

QUEUES = ("waiting", "running")
FORGOTTEN = "unknown-base"


def states_of(episode: Episode) -> list[Json]:
    """States of a busy federation, a minute after each other."""
    stream = Stream(Draft.of(episode), SCALE)
    return [json.loads(text)["state"] for text in islice(stream, STATES)]


def patched(episode: Episode, base: Json, asked: Json, *, held: bool = False) -> Answer:
    """The answer to a patch whose base is sent whole before, unless it should be held; again where it was forgotten."""
    answer = episode.ask("POST", PLACEMENTS, asked) if held else None
    for _ in range(TRIES):
        if answer is not None and answer.problem != FORGOTTEN:
            break
        episode.set_up("POST", PLACEMENTS, {"state": base, "digest": schema.digest(base)})
        answer = episode.ask("POST", PLACEMENTS, asked)
    assert answer is not None
    return answer


def request(base: Json, state: Json, operations: list[Json] | None = None, *, base_digest: str = "") -> Json:
    """A request that brings a state as a patch of another; with operations of its own, or a base that is none."""
    patch = {
        "base": base_digest or schema.digest(base),
        "result": schema.digest(state),
        "operations": operations_of(base, state) if operations is None else operations,
    }
    return {"patch": patch}


def operations_of(before: Json, after: Json) -> list[Json]:
    """What leads from one state to another: members, jobs that are gone from behind, then jobs from the front."""
    made: list[Json] = [{"op": "remove", "path": f"/{name}"} for name in before if name not in after]
    for name, value in after.items():
        if name in QUEUES and isinstance(value, list):
            made += _queue(name, before[name], value)
        elif value != before.get(name):
            made.append({"op": "replace" if name in before else "add", "path": f"/{name}", "value": value})
    return made


def _queue(name: str, before: list[Json], after: list[Json]) -> Iterator[Json]:
    held = {entry["spec"]["id"]: entry for entry in before}
    wanted = {entry["spec"]["id"] for entry in after}
    for place in range(len(before) - 1, -1, -1):
        if before[place]["spec"]["id"] not in wanted:
            yield {"op": "remove", "path": f"/{name}/{place}"}
    placed: set[str] = set()
    for place, entry in enumerate(after):
        known = held.get(entry["spec"]["id"])
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
