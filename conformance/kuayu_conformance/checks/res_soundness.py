"""Whether a shard plan is sound, given its request (RES-012). Bytes count as the same within a millionth of a step."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from math import floor, inf

from kuayu_conformance.checks.res_fixtures import Json

_SAME = 1e-6
"""Share of a step."""

Range = tuple[float, float]


@dataclass(frozen=True)
class Needed:
    """A stream of a request, and what the plan may fetch for it.

    Attributes:
        stream: Of the request.
        least: Bytes below which two places are the same.
        ranges: What is missing, with what is abandoned, rising and apart.
        ways: Domains with a link to the target, and whether it is up.
        room: Bytes that the target has room for.
        local_slots: What the plan gives to local data, if that is rising and there are as many; else None.
    """

    stream: Json
    least: float
    ranges: tuple[Range, ...]
    ways: dict[str, bool]
    room: float
    local_slots: tuple[int, ...] | None


def faults(body: Json, told: Json) -> Iterator[str]:
    """What is wrong with a valid ``ShardPlan`` for a ``ShardPlanRequest``, in words with figures."""
    if told["revision"] != body["revision"]:
        yield f"revision {told['revision']} where the request's is {body['revision']}"
    names = [each["id"] for each in body["streams"]]
    planned = [each["stream"] for each in told["streams"]]
    if planned != names:
        yield f"streams {planned[:5]} where the request's are {names[:5]}"
        return
    shards: dict[str, list[Json]] = defaultdict(list)
    for shard in told["shards"]:
        shards[shard["stream"]].append(shard)
    yield from (f"a shard of stream {each}, which is not in the request" for each in shards if each not in names)
    for stream, plan in zip(body["streams"], told["streams"], strict=True):
        where = f"stream {stream['id']}"
        its = _needed(body, stream, plan)
        found = chain(_local(its, plan), _abandoned(its, plan), _shards(its, shards[stream["id"]]))
        yield from (f"{where}: {fault}" for fault in found)


def _needed(body: Json, stream: Json, plan: Json) -> Needed:
    least = _SAME * stream["step_size"]
    named = [(each["source"], each["begin"]) for each in plan.get("abandoned", [])]
    given_up = [
        way
        for way in stream.get("transfers", [])
        if any(way["source"] == source and abs(way["begin"] - begin) <= least for source, begin in named)
    ]
    ranges = joined([(each["begin"], each["end"]) for each in (*stream["missing"], *given_up)], least)
    ways = {link["source"]: link.get("up", True) for link in body["links"] if link["target"] == stream["target"]}
    room = next((each["size"] for each in body["rooms"] if each["domain"] == stream["target"]), 0.0)
    slots = plan["local_slots"]
    usable = len(slots) <= stream.get("local_steps", 0) and all(one < other for one, other in pairwise(slots))
    return Needed(stream, least, ranges, ways, room, tuple(slots) if usable else None)


def joined(ranges: Iterable[Range], least: float) -> tuple[Range, ...]:
    """Ranges in rising order; those that touch are one."""
    made: list[Range] = []
    for begin, end in sorted(ranges):
        if made and begin <= made[-1][1] + least:
            made[-1] = (made[-1][0], max(end, made[-1][1]))
        else:
            made.append((begin, end))
    return tuple(made)


def _local(its: Needed, plan: Json) -> Iterator[str]:
    slots, most = plan["local_slots"], its.stream.get("local_steps", 0)
    if len(slots) > most:
        yield f"{len(slots)} local_slots where there are {most} local steps"
    elif its.local_slots is None:
        yield f"local_slots {slots[:5]} do not rise"


def _abandoned(its: Needed, plan: Json) -> Iterator[str]:
    ways = its.stream.get("transfers", [])
    for each in plan.get("abandoned", []):
        if not any(way["source"] == each["source"] and abs(way["begin"] - each["begin"]) <= its.least for way in ways):
            yield f"abandons a transfer from {each['source']} at byte {each['begin']:.0f}, which is not under way"


def _shards(its: Needed, shards: list[Json]) -> Iterator[str]:
    for shard in shards:
        yield from (f"the shard {_named(shard)} {fault}" for fault in _of_shard(its, shard))
    ordered = sorted(shards, key=lambda shard: (shard["begin"], shard["end"]))
    for one, other in pairwise(ordered):
        if other["begin"] < one["end"] - its.least and other["end"] > other["begin"]:
            yield f"the shards {_named(one)} and {_named(other)} overlap"


def _of_shard(its: Needed, shard: Json) -> Iterator[str]:
    begin, end, source = shard["begin"], shard["end"], shard["source"]
    if not begin < end:
        yield "is empty"
    if source not in its.stream["sources"]:
        yield f"comes from {source}, which holds no copy"
    if not its.ways.get(source, False):
        yield f"comes from {source}, " + ("whose link is out" if source in its.ways else "which has no link")
    if end - begin > its.room + its.least:
        yield f"has {end - begin:.0f} bytes where there is room for {its.room:.0f}"
    last = its.stream["remote_steps"] * its.stream["step_size"]
    if end > last + its.least:
        yield f"ends after byte {last:.0f}, the last of all steps"
    if not _within(its, begin, end):
        yield "holds bytes that are not missing"
    if its.local_slots is not None and shard["slot"] not in _slots(its, begin):
        yield f"is for slot {shard['slot']} where its first byte is for slot {max(_slots(its, begin))}"


def _within(its: Needed, begin: float, end: float) -> bool:
    at = bisect_right(its.ranges, (begin + its.least, inf)) - 1
    return at >= 0 and begin >= its.ranges[at][0] - its.least and end <= its.ranges[at][1] + its.least


def _slots(its: Needed, begin: float) -> set[int]:
    """Slots that may take a byte: one, or two where it is hardly before the first of a step."""
    assert its.local_slots is not None
    size = its.stream["step_size"]
    return {_free(its.local_slots, floor(begin / size + near)) for near in (0.0, _SAME)}


def _free(local_slots: tuple[int, ...], number: int) -> int:
    """The slot of that number, from nought, among those that local data do not take."""
    slot = number
    for each in local_slots:
        if each > slot:
            break
        slot += 1
    return slot


def _named(shard: Json) -> str:
    return f"of bytes {shard['begin']:.0f} to {shard['end']:.0f} from {shard['source']}"
