"""A small planner of shards that keeps to the text, for stories about the checks of shard plans; it may be told to err.

It fetches step by step, as early as the room allows, over whichever link is expected to bring the step first by the
mean of its last measurements. Local data wait until something is late.
"""

from collections.abc import Callable, Iterator
from math import floor

from conforming import FunctionSource
from conforming import episode as episode_of

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.episode import Episode

METHOD = {"name": "conforming", "version": "1"}
RECENT = 6
SLACK = 1e-9
Change = Callable[[Json, Json], Json | None]
"""What becomes of an answer: request, answer; None where there is to be none."""


def unchanged(body: Json, answer: Json) -> Json:
    """The conforming answer."""
    del body
    return answer


def plan(body: Json) -> Json:
    """A sound plan."""
    rooms = {room["domain"]: room["size"] for room in body["rooms"]}
    ahead = {each["id"]: _ahead(body, each, rooms) for each in body["streams"]}
    free = {_way(link): _left(body, link) * 8 / max(_speed(link), 1.0) for link in body["links"]}
    pieces = sorted(
        ((piece, each) for each in body["streams"] for piece in _pieces(body, each, ahead[each["id"]], rooms)),
        key=lambda pair: pair[0]["due"],
    )
    shards = []
    for piece, stream in pieces:
        ends = []
        for link in body["links"]:
            if link["target"] == stream["target"] and link["source"] in stream["sources"] and link.get("up", True):
                speed = _speed(link)
                lasts = link["latency"] + (8 * (piece["end"] - piece["begin"]) / speed if speed else 1e9)
                ends.append((max(free[_way(link)], piece["after"]) + lasts, link))
        if ends:
            at, link = min(ends, key=lambda pair: pair[0])
            free[_way(link)] = at
            told = {name: piece[name] for name in ("begin", "end", "after", "slot")}
            shards.append({"stream": stream["id"], "source": link["source"], **told})
    streams = [
        {
            "stream": each["id"],
            "steps_ahead": ahead[each["id"]],
            "shard_size": each["step_size"],
            "local_slots": [],
            "local_when_late": True,
        }
        for each in body["streams"]
    ]
    return {"revision": body["revision"], "method": METHOD, "streams": streams, "shards": shards}


def _way(link: Json) -> tuple[str, str]:
    return link["source"], link["target"]


def _ahead(body: Json, stream: Json, rooms: dict[str, float]) -> int:
    """Steps of all streams of the target that there is room for."""
    together = sum(each["step_size"] for each in body["streams"] if each["target"] == stream["target"])
    return max(1, floor(rooms.get(stream["target"], 0.0) / together))


def _speed(link: Json) -> float:
    recent = link["bandwidths"][-RECENT:]
    return sum(recent) / len(recent) if recent else 1.0


def _left(body: Json, link: Json) -> float:
    return sum(
        way["left"]
        for each in body["streams"]
        for way in each.get("transfers", ())
        if each["target"] == link["target"] and way["source"] == link["source"]
    )


def _pieces(body: Json, stream: Json, ahead: int, rooms: dict[str, float]) -> Iterator[Json]:
    """What is missing, cut where steps begin, within the horizon."""
    size, room = stream["step_size"], rooms.get(stream["target"], 0.0)
    for gap in stream["missing"]:
        begin = gap["begin"]
        while begin < gap["end"] and room > 0.0:
            step = floor(begin / size + SLACK)
            end = min(gap["end"], (step + 1) * size, begin + room)
            due = stream["due"] + step * stream["step_time"]
            after = max(0.0, due - ahead * stream["step_time"])
            if after > body["horizon"]:
                break
            yield {"begin": begin, "end": end, "after": after, "slot": step, "due": due}
            begin = end


def source(change: Change = unchanged) -> FunctionSource:
    """The planner, of whose answers something becomes."""
    return FunctionSource(lambda _path, body: change(body, plan(body)))


def episode(name: str, change: Change = unchanged, *, full: bool = False, nonce: str = "stories") -> Episode:
    """An episode with the planner."""
    return episode_of(name, source(change), nonce=nonce, full=full)
