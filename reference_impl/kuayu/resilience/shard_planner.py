"""The shard planner: rolling plans of what to fetch, how large, how early and from where, and why.

1. Asked anew every few steps; what is under way stays so, unless another link would have the whole of it much sooner.
2. Depth and size are chosen first (``shard_scheduler``), then links in the order in which shards are due.
3. Where a cautious forecast has data late, slots take local data, and shards are put in order once more.
4. Nothing is planned for which there is no room within the horizon.
5. Reasons say what less depth, other sizes and other sources would have cost, with figures.
6. Requests come in bits a second and bytes; here all is bytes and bytes a second, and names are numbers.
7. What a request must hold to: streams, rooms and links are each named once, and a transfer comes over a link that
   leads to its stream. Ranges that a stream misses or that are under way begin before they end, lie in the stream and
   do not overlap. What would take longer, or more memory, than anybody has is refused, with what to ask fewer of.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from kuayu.refusals import Complaint, Impossible, RepeatedName, UnknownName, refuse, repeated
from kuayu.resilience.network import (
    BITS_PER_BYTE,
    CAUTIOUS,
    MAX_BYTES,
    MAX_SPAN_S,
    MEDIAN,
    TOO_LONG,
    TOO_MUCH,
    Flags,
    Floats,
    Forecast,
    Layout,
    Link,
    Stream,
    TransferSnapshot,
    UnderWay,
    forecast,
    lay_out,
    link_complaints,
    repeated_links,
    size_complaints,
    span_complaints,
)
from kuayu.resilience.shard_scheduler import (
    MAX_DEPTH,
    PARTS,
    FetchOrder,
    Gaps,
    PrefetchDepths,
    Shards,
    ShardSizes,
    SlotTable,
    cut_shards,
    order_shards,
    prefetch_depths,
    ready_times,
    reordered,
    shard_sizes,
    steps_in_reach,
    undisturbed,
    within_room,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

SOONER_SHARE = 0.8
"""A late transfer is given up where another link would have the whole of it in this share of the time that is left."""

MAX_NAMED = 20
"""Most slots that are named one by one."""

_HOUR = 3600.0

METHOD: "documents.TransferMethod" = {"name": "kuayu-rolling-shards", "version": "1.0.0"}

MAX_MEASUREMENTS = 1_000_000
"""Most of them over all links; where there are more, the oldest are left out."""

SILENT_RATE = 0.125
"""Bytes a second below which a link counts as out: one bit."""

MAX_REASONS = 100
"""Most of them that the standard lets a stream have."""

_SAME = 1e-12
"""Share of a step, for each step from the first byte, by which sums of shares of steps are off."""

_NEAR = 1e-6
"""Share of a step that is no other step."""

SLACK_SHARE = 1e-6
"""Share of a step that ranges may be off, being sums of shares of steps."""

ROUNDING_SHARE = 1e-15
"""Share of all bytes of a stream that their number may be off, being a product."""

MAX_STEPS = 120_000
"""Most steps and ranges that a plan looks at, over all streams."""

MAX_IN_DOMAIN = 12_000
"""Most of them in one domain; shards of a domain are put in order one after the other."""

MAX_CELLS = 600_000
"""Most steps of a domain × domains × sources; domains are planned side by side, each as wide as the widest."""

MAX_RANGES = 12_000
"""Most missing ranges and transfers under way, over all streams."""


Arrays = TypeVar("Arrays", Shards, FetchOrder)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What to do, and what it follows from.

    Attributes:
        shards: What to fetch, in the order of streams.
        order: Over which link and when.
        given_up: Transfers under way that are to be stopped, by stream; their bytes are planned anew.
        tables: Slots of each stream.
        depths: How deep, and why.
        sizes: How large, and why.
        ahead: What links will carry.
        layout: Everything by number.
    """

    shards: Shards
    order: FetchOrder
    given_up: tuple[tuple[UnderWay, ...], ...]
    tables: tuple[SlotTable, ...]
    depths: PrefetchDepths
    sizes: ShardSizes
    ahead: Forecast
    layout: Layout


def plan(snapshot: TransferSnapshot) -> Plan:
    """Plan all transfers that have room within the horizon."""
    ahead = forecast(snapshot.links, snapshot.interval_s)
    layout = lay_out(snapshot, ahead)
    deep = prefetch_depths(snapshot, layout, ahead.outage_s)
    sized = shard_sizes(snapshot, layout, deep.steps)
    free_s, given_up = _under_way(snapshot, layout, ahead)
    streams = tuple(_without(stream, stopped) for stream, stopped in zip(snapshot.streams, given_up, strict=True))
    counts = [steps_in_reach(stream, int(deep.steps[row]), snapshot.horizon_s) for row, stream in enumerate(streams)]
    tables = [undisturbed(stream, count) for stream, count in zip(streams, counts, strict=True)]
    shards = cut_shards(streams, tables, deep.steps, sized.bytes, snapshot.horizon_s)
    order = order_shards(shards, layout, free_s)
    reserves = [row for row, stream in enumerate(streams) if stream.local_steps and counts[row]]
    for row in reserves:
        tables[row] = reordered(streams[row], _ready(row, streams[row], counts[row], shards, order, ahead).tolist())
    if any(tables[row].local for row in reserves):
        shards = cut_shards(streams, tables, deep.steps, sized.bytes, snapshot.horizon_s)
        order = order_shards(shards, layout, free_s)
    keep = within_room(streams, tables, shards, order, layout, ahead, deep.steps)
    return Plan(_only(shards, keep), _only(order, keep), given_up, tuple(tables), deep, sized, ahead, layout)


def _only(arrays: Arrays, keep: Flags) -> Arrays:
    """Those rows of all arrays."""
    if keep.all():
        return arrays
    return replace(arrays, **{array.name: getattr(arrays, array.name)[keep] for array in fields(arrays)})


def _ready(row: int, stream: Stream, count: int, shards: Shards, order: FetchOrder, ahead: Forecast) -> Floats:
    """When the data of each step are there by a cautious forecast."""
    mine = (shards.stream == row) & (order.link >= 0)
    links = order.link[mine]
    release = shards.release_s[mine]
    ready_s = release + (order.finish_s[mine] - release) * _caution(ahead)[links]
    coming = [transfer for transfer in stream.under_way if ahead.up[transfer.link]]
    begin = np.concatenate([shards.begin[mine], [transfer.begin for transfer in coming]])
    end = np.concatenate([shards.end[mine], [transfer.end for transfer in coming]])
    slow = ahead.rates[:, 0, CAUTIOUS]
    ready_s = np.concatenate([ready_s, [transfer.left / slow[transfer.link] for transfer in coming]])
    stuck: Gaps = tuple((transfer.begin, transfer.end) for transfer in stream.under_way if not ahead.up[transfer.link])
    return ready_times(stream, count, stream.gaps + stuck, begin, end, ready_s)


def _caution(ahead: Forecast) -> Floats:
    """How many times as long transfers take by a cautious forecast, (L,)."""
    middle = ahead.rates.shape[1] // 2
    times: Floats = ahead.rates[:, middle, MEDIAN] / ahead.rates[:, middle, CAUTIOUS]
    return times


def _under_way(
    snapshot: TransferSnapshot, layout: Layout, ahead: Forecast
) -> tuple[Floats, tuple[tuple[UnderWay, ...], ...]]:
    """When each link has done what it has begun, (D, S), and what is not worth waiting for."""
    busy = np.zeros(len(snapshot.links))
    for stream in snapshot.streams:
        for transfer in stream.under_way:
            busy[transfer.link] += (
                transfer.left / ahead.rates[transfer.link, 0, MEDIAN] if ahead.up[transfer.link] else 0.0
            )
    given_up: list[tuple[UnderWay, ...]] = []
    for row, stream in enumerate(snapshot.streams):
        stopped = []
        for transfer in stream.under_way:
            links = layout.links[layout.of[row]]
            soonest = _elsewhere(transfer, row, busy, layout, ahead)
            rest = busy[transfer.link] if ahead.up[transfer.link] else np.inf
            due = stream.begins_s + max(0.0, transfer.begin // stream.step_bytes) * stream.step_s
            if links.size and rest > max(due, 0.0) and soonest < SOONER_SHARE * rest:
                stopped.append(transfer)
                if ahead.up[transfer.link]:
                    busy[transfer.link] -= transfer.left / ahead.rates[transfer.link, 0, MEDIAN]
        given_up.append(tuple(stopped))
    free = np.where(layout.links >= 0, busy[layout.links], 0.0) if len(snapshot.links) else np.zeros(layout.links.shape)
    return np.maximum(free, 0.0), tuple(given_up)


def _elsewhere(transfer: UnderWay, row: int, busy: Floats, layout: Layout, ahead: Forecast) -> float:
    """When another link would have the whole of a transfer, from now."""
    columns = np.flatnonzero(layout.copies[row] & (layout.links[layout.of[row]] != transfer.link))
    if not len(columns):
        return float("inf")
    links = layout.links[layout.of[row], columns]
    took = (transfer.end - transfer.begin) / ahead.rates[links, 0, MEDIAN]
    return float((busy[links] + layout.latency_s[layout.of[row], columns] + took).min())


def _without(stream: Stream, stopped: tuple[UnderWay, ...]) -> Stream:
    """A stream whose stopped transfers are gaps again."""
    if not stopped:
        return stream
    gaps = tuple(sorted([*stream.gaps, *((transfer.begin, transfer.end) for transfer in stopped)]))
    gone = set(stopped)
    return replace(
        stream, gaps=gaps, under_way=tuple(transfer for transfer in stream.under_way if transfer not in gone)
    )


def reasons(snapshot: TransferSnapshot, shard_plan: Plan, stream: int) -> Iterator[str]:
    """Of one stream: depth, size of shards, local data, sources, and what is given up."""
    yield from _depth(snapshot, shard_plan, stream)
    if shard_plan.depths.steps[stream]:
        yield from _size(shard_plan, stream)
    yield from _local(snapshot, shard_plan, stream)
    yield from _sources(snapshot, shard_plan, stream)
    for transfer in shard_plan.given_up[stream]:
        source = snapshot.links[transfer.link].source
        yield f"The transfer from {source} is given up: it would be late, and another link has it sooner."


def _depth(snapshot: TransferSnapshot, shard_plan: Plan, stream: int) -> Iterator[str]:
    depth, waiting = int(shard_plan.depths.steps[stream]), shard_plan.depths.waiting[stream]
    if depth < 1:
        yield "Nothing is fetched: the room does not hold a step."
        return
    less = _HOUR * float(waiting[depth - 1] - waiting[depth])
    words = f"{depth} steps ahead; one less would cost {less:.3g} s of waiting an hour"
    if depth + 1 < len(waiting):
        words += f", one more would save {_HOUR * float(waiting[depth] - waiting[depth + 1]):.3g} s"
    if shard_plan.depths.saving[shard_plan.layout.of[stream]] > snapshot.saving:
        words += "; the room does not hold all that would be worth it"
    yield words + "."


def _size(shard_plan: Plan, stream: int) -> Iterator[str]:
    part, cost = int(shard_plan.sizes.part[stream]), shard_plan.sizes.cost[stream]
    words = f"Shards of {PARTS[part]:g} steps cost {100 * cost[part]:.2g} % of the links' time"
    if part:
        words += f"; of half the size, {100 * cost[part - 1]:.2g} %"
    if part + 1 < len(PARTS):
        words += f"; of twice the size, {100 * cost[part + 1]:.2g} %"
    yield words + "."


def _local(snapshot: TransferSnapshot, shard_plan: Plan, stream: int) -> Iterator[str]:
    local = shard_plan.tables[stream].local
    if local:
        slots = ", ".join(str(slot) for slot in local[:MAX_NAMED])
        more = f" and {len(local) - MAX_NAMED} more" if len(local) > MAX_NAMED else ""
        yield f"Slots {slots}{more} take local data: by a cautious forecast, data from afar would be late for them."
    elif snapshot.streams[stream].local_steps:
        yield "No slot takes local data: data from afar are in time by a cautious forecast."


def _sources(snapshot: TransferSnapshot, shard_plan: Plan, stream: int) -> Iterator[str]:
    mine = (shard_plan.shards.stream == stream) & (shard_plan.order.link >= 0)
    for link in np.unique(shard_plan.order.link[mine]).tolist():
        over = mine & (shard_plan.order.link == link)
        sooner = shard_plan.order.other_s[over] - shard_plan.order.finish_s[over]
        words = f"{int(over.sum())} shards come from {snapshot.links[link].source}"
        known = sooner[np.isfinite(sooner)]
        yield words + (f"; the next best link would have them {known.mean():.2g} s later." if len(known) else ".")
    lost = int(((shard_plan.shards.stream == stream) & (shard_plan.order.link < 0)).sum())
    if lost:
        yield f"{lost} shards wait: no source of theirs is up."


def shard_plan(request: "documents.ShardPlanRequest") -> "documents.ShardPlan":
    """Plan what to fetch, from where, in what pieces and how early.

    Returns:
        A plan that follows from the request and from nothing else.

    Raises:
        kuayu.refusals.RepeatedName: Streams, rooms or links share a name.
        kuayu.refusals.UnknownName: A transfer comes from where no link leads to its stream.
        kuayu.refusals.Impossible: A range contradicts itself or another, or there is more than can be planned at once.
    """
    check_shard_plan(request)
    snapshot = snapshot_of(request)
    chosen = plan(snapshot)
    return {
        "revision": request["revision"],
        "method": METHOD,
        "streams": [_stream_plan(snapshot, chosen, row, stream) for row, stream in enumerate(request["streams"])],
        "shards": _shards(snapshot, chosen),
    }


def snapshot_of(request: "documents.ShardPlanRequest") -> TransferSnapshot:
    """What a checked request says, in bytes and by number."""
    links = request["links"]
    most = max(1, MAX_MEASUREMENTS // max(len(links), 1))
    number = {(link["source"], link["target"]): place for place, link in enumerate(links)}
    return TransferSnapshot(
        tuple(
            Link(link["source"], link["target"], _measured(link, most), link["latency"], link.get("up", True))
            for link in links
        ),
        tuple(_stream(stream, number, request["horizon"]) for stream in request["streams"]),
        {row["domain"]: row["size"] for row in request["rooms"]},
        request["interval"],
        request["horizon"],
    )


def _measured(link: "documents.MeasuredLink", most: int) -> Floats:
    """Bytes a second, the newest of them."""
    rates: Floats = np.array(link["bandwidths"][-most:], dtype=np.float64) / BITS_PER_BYTE
    return np.where(rates < SILENT_RATE, 0.0, rates)


def _stream(entry: "documents.DataStream", number: Mapping[tuple[str, str], int], horizon: float) -> Stream:
    target = entry["target"]
    return Stream(
        entry["id"],
        target,
        frozenset(entry["sources"]),
        entry["step_size"],
        entry["step_time"],
        entry["due"],
        int(entry["remote_steps"]),  # JSON also writes an integer as 3.0
        min(entry.get("local_steps") or 0, steps_looked_at(entry, horizon)),
        tuple((gap["begin"], gap["end"]) for gap in entry["missing"]),
        tuple(
            UnderWay(number[transfer["source"], target], transfer["begin"], transfer["end"], transfer["left"])
            for transfer in entry.get("transfers") or ()
        ),
    )


def _stream_plan(
    snapshot: TransferSnapshot, chosen: Plan, row: int, entry: "documents.DataStream"
) -> "documents.StreamPlan":
    return {
        "stream": entry["id"],
        "steps_ahead": int(chosen.depths.steps[row]),
        "shard_size": float(chosen.sizes.bytes[row]),
        "local_slots": list(chosen.tables[row].local),
        "local_when_late": bool(entry.get("local_steps")),
        "abandoned": [
            {"source": snapshot.links[transfer.link].source, "begin": transfer.begin}
            for transfer in chosen.given_up[row]
        ],
        "reasons": list(islice(reasons(snapshot, chosen, row), MAX_REASONS)),
    }


def _shards(snapshot: TransferSnapshot, chosen: Plan) -> "list[documents.PlannedShard]":
    """Shards that have a source, in the order in which links are to take them."""
    shards, order = chosen.shards, chosen.order
    size = np.array([stream.step_bytes for stream in snapshot.streams])[shards.stream]
    begin, end = _on_steps(shards.begin, size), _on_steps(shards.end, size)
    rows = np.lexsort((shards.stream, begin, order.start_s))
    rows = rows[(order.link[rows] >= 0) & (end[rows] > begin[rows])]
    first = np.floor(begin / size + _NEAR).astype(np.int64)
    return [
        {
            "stream": snapshot.streams[stream].name,
            "begin": low,
            "end": high,
            "source": snapshot.links[link].source,
            "after": after,
            "slot": int(chosen.tables[stream].slot[min(step, len(chosen.tables[stream].slot) - 1)]),
        }
        for stream, low, high, link, after, step in zip(
            shards.stream[rows].tolist(),
            begin[rows].tolist(),
            end[rows].tolist(),
            order.link[rows].tolist(),
            shards.release_s[rows].tolist(),
            first[rows].tolist(),
            strict=True,
        )
    ]


def _on_steps(position: Floats, size: Floats) -> Floats:
    """Bytes, those beside the first of a step moved onto it, so that any division finds that step."""
    near = np.rint(position / size)
    first: Floats = near * size
    first = np.where(np.floor_divide(first, size) < near, np.nextafter(first, np.inf), first)
    return np.where(np.abs(position / size - near) <= _SAME * np.maximum(near, 1.0), first, position)


def check_shard_plan(request: "documents.ShardPlanRequest") -> None:
    """Check a request for a shard plan.

    Raises:
        RepeatedName: Streams, rooms or links share a name.
        UnknownName: A transfer comes from where no link leads to its stream.
        Impossible: A range contradicts itself or another, or there is more than can be planned at once.
    """
    streams, links = request["streams"], request["links"]
    complaints = repeated("/streams", [stream["id"] for stream in streams])
    complaints += repeated("/rooms", [row["domain"] for row in request["rooms"]], "/domain")
    refuse(RepeatedName, [*repeated_links(links), *complaints])
    joined = {(link["source"], link["target"]) for link in links}
    refuse(UnknownName, _unlinked_transfers(streams, joined))
    complaints = [*link_complaints(links), *span_complaints(request, "", ("interval", "horizon"))]
    complaints += [
        (f"/rooms/{index}/size", TOO_MUCH) for index, row in enumerate(request["rooms"]) if row["size"] > MAX_BYTES
    ]
    for index, stream in enumerate(streams):
        place = f"/streams/{index}"
        complaints += [*span_complaints(stream, place, ("step_time",)), *size_complaints(stream, place, "step_size")]
        complaints += [(f"{place}/due", TOO_LONG)] if stream["due"] > MAX_SPAN_S else []
        complaints += check_ranges(stream, place)
    refuse(Impossible, complaints)
    refuse(Impossible, _work_complaints(request))


def check_ranges(stream: "documents.DataStream", place: str) -> Iterator[Complaint]:
    """Ranges that end before they begin, overlap, or lie beyond the last step."""
    size, missing, transfers = stream["step_size"], stream["missing"], stream.get("transfers") or ()
    slack, total = SLACK_SHARE * size, stream["remote_steps"] * size
    named: list[tuple[str, documents.ByteRange]] = [
        *((f"{place}/missing/{number}", entry) for number, entry in enumerate(missing)),
        *((f"{place}/transfers/{number}", entry) for number, entry in enumerate(transfers)),
    ]
    for where, entry in named:
        if entry["end"] <= entry["begin"]:
            yield f"{where}/end", "it is not after the begin"
        elif entry["end"] > total * (1 + ROUNDING_SHARE) + slack:
            yield f"{where}/end", f"{stream['remote_steps']} steps from afar end before"
    for number, entry in enumerate(transfers):
        if entry["left"] > (entry["end"] - entry["begin"]) * (1 + SLACK_SHARE):
            yield f"{place}/transfers/{number}/left", "more than all of it"
    for number, (one, other) in enumerate(pairwise(missing), start=1):
        if other["begin"] < one["end"] - slack:
            yield f"{place}/missing/{number}/begin", "ranges rise and lie apart"
    yield from _overlap_complaints(named, slack)


def _overlap_complaints(named: "Sequence[tuple[str, documents.ByteRange]]", slack: float) -> Iterator[Complaint]:
    """What is under way although it is missing, or under way a second time."""
    end, under_way = float("-inf"), False
    for where, entry in sorted(named, key=lambda pair: float(pair[1]["begin"])):
        moves = "/transfers/" in where
        if (moves or under_way) and entry["begin"] < end - slack:
            yield f"{where}/begin", "what is under way overlaps what is missing or under way"
        if entry["end"] > end:
            end, under_way = entry["end"], moves


def _unlinked_transfers(streams: "Sequence[documents.DataStream]", joined: set[tuple[str, str]]) -> Iterator[Complaint]:
    for index, stream in enumerate(streams):
        for number, transfer in enumerate(stream.get("transfers") or ()):
            if (transfer["source"], stream["target"]) not in joined:
                detail = f"there is no link from {transfer['source']} to {stream['target']}"
                yield f"/streams/{index}/transfers/{number}/source", detail


def _work_complaints(request: "documents.ShardPlanRequest") -> Iterator[Complaint]:
    """What would take too long, or more memory than there is."""
    steps: Counter[str] = Counter()
    ranges = 0
    for stream in request["streams"]:
        listed = len(stream["missing"]) + len(stream.get("transfers") or ())
        steps[stream["target"]] += steps_looked_at(stream, request["horizon"]) + listed + 1
        ranges += listed
    if ranges > MAX_RANGES:
        yield "/streams", f"{ranges} ranges, where {MAX_RANGES} are the most; ask for fewer streams at once"
    into = Counter(link["target"] for link in request["links"] if link["target"] in steps)
    most = max(steps.values(), default=0)
    together, cells = steps.total(), most * len(steps) * max(into.values(), default=1)
    for number, limit, what in (
        (together, MAX_STEPS, "steps"),
        (most, MAX_IN_DOMAIN, "steps in one domain"),
        (cells, MAX_CELLS, "steps × domains × links into one"),
    ):
        if number > limit:
            hint = "ask for a shorter horizon, or for fewer streams at once"
            yield "/horizon", f"{number} {what} to be planned, where {limit} are the most; {hint}"


def steps_looked_at(stream: "documents.DataStream", horizon: float) -> int:
    """Most slots of a stream that a plan so far ahead can look at."""
    slots = MAX_DEPTH + max(horizon - stream["due"], 0.0) / stream["step_time"] + 1
    return int(min(float(stream["remote_steps"] + (stream.get("local_steps") or 0)), slots))
