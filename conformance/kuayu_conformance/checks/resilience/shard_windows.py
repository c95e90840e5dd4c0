"""Plays windows of shard plans: the service through the episode, static schedules and one who knows the links beside.

A window follows from the nonce, its family and its number alone, so that two checks that play it ask the same.

1. Whether a shard plan is sound, given its request (RES-012). Bytes count as the same within a millionth of a step.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import floor, inf
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from kuayu_conformance.checks.kit.decisions import WindowClient, revision_faults
from kuayu_conformance.checks.resilience.resilience_requests import SHARDS
from kuayu_conformance.testbed.transfers.shard_policies import (
    ON_DEMAND,
    ONE_AHEAD,
    Executor,
    Schedule,
    Static,
    clairvoyant,
    grid,
)
from kuayu_conformance.testbed.transfers.shard_simulation import MILD, Outcome, Run, Window, draw

if TYPE_CHECKING:
    from kuayu_schemas import documents

_SAME = 1e-6
"""Share of a step."""

Range = tuple[float, float]


@dataclass(frozen=True)
class StreamNeed:
    """A stream of a request, and what the plan may fetch for it.

    Attributes:
        stream: Of the request.
        least: Bytes below which two places are the same.
        ranges: What is missing, with what is abandoned, rising and apart.
        links_up: Domains with a link to the target, and whether it is up.
        capacity: Bytes that the target has room for.
        local_slots: What the plan gives to local data, if that is rising and there are as many; else None.
    """

    stream: "documents.DataStream"
    least: float
    ranges: tuple[Range, ...]
    links_up: dict[str, bool]
    capacity: float
    local_slots: tuple[int, ...] | None


def faults(body: "documents.ShardPlanRequest", shard_plan: "documents.ShardPlan") -> Iterator[str]:
    """What is wrong with a valid plan for a request, in words with figures."""
    yield from revision_faults(body, shard_plan)
    names = [entry["id"] for entry in body["streams"]]
    planned = [item["stream"] for item in shard_plan["streams"]]
    if planned != names:
        yield f"streams {planned[:5]} where the request's are {names[:5]}"
        return
    shards: dict[str, list[documents.PlannedShard]] = defaultdict(list)
    for shard in shard_plan["shards"]:
        shards[shard["stream"]].append(shard)
    yield from (f"a shard of stream {row}, which is not in the request" for row in shards if row not in names)
    for stream, plan in zip(body["streams"], shard_plan["streams"], strict=True):
        where = f"stream {stream['id']}"
        needed = _needed(body, stream, plan)
        deviations = chain(_local(needed, plan), _abandoned(needed, plan), _shards(needed, shards[stream["id"]]))
        yield from (f"{where}: {fault}" for fault in deviations)


def _needed(
    body: "documents.ShardPlanRequest", stream: "documents.DataStream", plan: "documents.StreamPlan"
) -> StreamNeed:
    least = _SAME * stream["step_size"]
    named = [(entry["source"], entry["begin"]) for entry in plan.get("abandoned", [])]
    given_up = [
        transfer
        for transfer in stream.get("transfers", [])
        if any(transfer["source"] == source and abs(transfer["begin"] - begin) <= least for source, begin in named)
    ]
    ranges = joined([(row["begin"], row["end"]) for row in (*stream["missing"], *given_up)], least)
    links_up = {link["source"]: link.get("up", True) for link in body["links"] if link["target"] == stream["target"]}
    capacity = next((item["size"] for item in body["rooms"] if item["domain"] == stream["target"]), 0.0)
    slots = plan["local_slots"]
    usable = len(slots) <= stream.get("local_steps", 0) and all(one < other for one, other in pairwise(slots))
    return StreamNeed(stream, least, ranges, links_up, capacity, tuple(slots) if usable else None)


def joined(ranges: Iterable[Range], least: float) -> tuple[Range, ...]:
    """Ranges in rising order; those that touch are one."""
    merged: list[Range] = []
    for begin, end in sorted(ranges):
        if merged and begin <= merged[-1][1] + least:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return tuple(merged)


def _local(stream_need: StreamNeed, plan: "documents.StreamPlan") -> Iterator[str]:
    slots, most = plan["local_slots"], stream_need.stream.get("local_steps", 0)
    if len(slots) > most:
        yield f"{len(slots)} local_slots where there are {most} local steps"
    elif stream_need.local_slots is None:
        yield f"local_slots {slots[:5]} do not rise"


def _abandoned(stream_need: StreamNeed, plan: "documents.StreamPlan") -> Iterator[str]:
    transfers = stream_need.stream.get("transfers", [])
    for entry in plan.get("abandoned", []):
        if not any(
            transfer["source"] == entry["source"] and abs(transfer["begin"] - entry["begin"]) <= stream_need.least
            for transfer in transfers
        ):
            yield f"abandons a transfer from {entry['source']} at byte {entry['begin']:.0f}, which is not under way"


def _shards(stream_need: StreamNeed, shards: "list[documents.PlannedShard]") -> Iterator[str]:
    for shard in shards:
        yield from (f"the shard {_named(shard)} {fault}" for fault in _of_shard(stream_need, shard))
    ordered = sorted(shards, key=lambda shard: (shard["begin"], shard["end"]))
    for one, other in pairwise(ordered):
        if other["begin"] < one["end"] - stream_need.least and other["end"] > other["begin"]:
            yield f"the shards {_named(one)} and {_named(other)} overlap"


def _of_shard(stream_need: StreamNeed, shard: "documents.PlannedShard") -> Iterator[str]:
    begin, end, source = shard["begin"], shard["end"], shard["source"]
    if not begin < end:
        yield "is empty"
    if source not in stream_need.stream["sources"]:
        yield f"comes from {source}, which holds no copy"
    if not stream_need.links_up.get(source, False):
        yield f"comes from {source}, " + (
            "whose link is out" if source in stream_need.links_up else "which has no link"
        )
    if end - begin > stream_need.capacity + stream_need.least:
        yield f"has {end - begin:.0f} bytes where there is room for {stream_need.capacity:.0f}"
    last = stream_need.stream["remote_steps"] * stream_need.stream["step_size"]
    if end > last + stream_need.least:
        yield f"ends after byte {last:.0f}, the last of all steps"
    if not _within(stream_need, begin, end):
        yield "holds bytes that are not missing"
    if stream_need.local_slots is not None and shard["slot"] not in _slots(stream_need, begin):
        yield f"is for slot {shard['slot']} where its first byte is for slot {max(_slots(stream_need, begin))}"


def _within(stream_need: StreamNeed, begin: float, end: float) -> bool:
    position = bisect_right(stream_need.ranges, (begin + stream_need.least, inf)) - 1
    return (
        position >= 0
        and begin >= stream_need.ranges[position][0] - stream_need.least
        and end <= stream_need.ranges[position][1] + stream_need.least
    )


def _slots(stream_need: StreamNeed, begin: float) -> set[int]:
    """Slots that may take a byte: one, or two where it is hardly before the first of a step."""
    assert stream_need.local_slots is not None
    size = stream_need.stream["step_size"]
    return {_free(stream_need.local_slots, floor(begin / size + near)) for near in (0.0, _SAME)}


def _free(local_slots: tuple[int, ...], number: int) -> int:
    """The slot of that number, from zero, among those that local data do not take."""
    slot = number
    for entry in local_slots:
        if entry > slot:
            break
        slot += 1
    return slot


def _named(shard: "documents.PlannedShard") -> str:
    return f"of bytes {shard['begin']:.0f} to {shard['end']:.0f} from {shard['source']}"


SERVICE, DEMAND, AHEAD, SEER = "the service", "fixed, on demand", "fixed, one ahead", "who knows the links"


@dataclass(frozen=True)
class Extent:
    """How much is played.

    Attributes:
        seconds: Of the steps of a window.
        windows: How many, by family; the first is the one that is judged.
        beside: Whether the grid of static schedules and one who knows the links play too.
    """

    seconds: int
    windows: Mapping[str, int]
    beside: bool


SMOKE = Extent(600, {MILD: 5}, beside=False)
QUICK = Extent(600, {MILD: 8}, beside=False)
FULL = Extent(1200, {MILD: 40, "×0.3": 15, "outages": 15, "measured": 15, "calm": 15}, beside=True)


@dataclass(frozen=True)
class ShardWindow:
    """A window, and what came of it.

    Attributes:
        family: How bandwidths lie over time.
        plans: Plans that the service made in it.
        outcomes: By policy.
        schedules: Of each schedule of the grid, where they were played.
    """

    family: str
    plans: int
    outcomes: Mapping[str, Outcome]
    schedules: Mapping[Schedule, Outcome]


_OUTCOMES = TypeAdapter(tuple[Outcome, ...])


@dataclass
class Player(WindowClient):
    """Plays windows in an episode.

    Attributes:
        look: Whether plans are held against what makes them sound.
    """

    look: bool = False

    def window(self, family: str, number: int, extent: Extent) -> ShardWindow:
        """Play a window."""
        return self._once((family, number), lambda: self._played(family, number, extent))

    def _played(self, family: str, number: int, extent: Extent) -> ShardWindow:
        window = self._drawn(family, number, extent)
        executor = Executor(window, self.plan)
        outcomes = {
            SERVICE: Run(window, executor).play(),
            DEMAND: Run(window, Static(window, ON_DEMAND)).play(),
            AHEAD: Run(window, Static(window, ONE_AHEAD)).play(),
        }
        schedules: dict[Schedule, Outcome] = {}
        if extent.beside:

            def beside() -> tuple[Outcome, ...]:
                return clairvoyant(window), *(Run(window, Static(window, schedule)).play() for schedule in grid())

            score_store = self.episode.settings.score_store
            outcomes[SEER], *others = score_store.made(f"shards/{family}/{number}", _OUTCOMES, beside)
            schedules = dict(zip(grid(), others, strict=True))
        return ShardWindow(family, executor.plans, outcomes, schedules)

    def service_alone(self, family: str, number: int, extent: Extent) -> None:
        """Play a window for the sake of its plans."""
        window = self._drawn(family, number, extent)
        Run(window, Executor(window, self.plan)).play()

    def _drawn(self, family: str, number: int, extent: Extent) -> Window:
        seed = f"{self.episode.settings.nonce}/shards/{number}"
        return draw(family, seed, extent.seconds, naming=self.episode.salted(seed))

    def plan(self, body: "documents.ShardPlanRequest") -> "documents.ShardPlan | None":
        """The service's plan; None where it makes none, or has made none too often."""
        answer = self._ask(SHARDS, body)
        if answer is None:
            return None
        shard_plan: documents.ShardPlan = answer.json
        if self.look:
            self.unsound = self.unsound.noted(faults(body, shard_plan), answer)
        return shard_plan


def every(extent: Extent) -> Sequence[tuple[str, int]]:
    """Family and number of each window."""
    return [(family, number) for family, count in extent.windows.items() for number in range(count)]
