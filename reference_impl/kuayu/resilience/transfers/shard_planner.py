"""The shard planner: rolling plans of what to fetch, how large, how early and from where, and why.

1. Asked anew every few steps; what is under way stays so, unless another link would have the whole of it much sooner.
2. Depth and size are chosen first (``shard_scheduler``), then links in the order in which shards are due.
3. Where a cautious forecast has data late, slots take local data, and shards are put in order once more.
4. Nothing is planned for which there is no room within the horizon.
5. Reasons say what less depth, other sizes and other sources would have cost, with figures.
6. Requests come in bits a second and bytes; here all is bytes and bytes a second, and names are numbers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from kuayu.resilience.transfers.network import (
    BITS_PER_BYTE,
    CAUTIOUS,
    MEDIAN,
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
)
from kuayu.resilience.transfers.shard_scheduler import (
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
from kuayu.resilience.transfers.transfer_validation import check_shard_plan, steps_looked_at

if TYPE_CHECKING:
    from kuayu_schemas import documents

Arrays = TypeVar("Arrays", Shards, FetchOrder)

SOONER_SHARE = 0.8
"""A late transfer is given up where another link would have the whole of it in this share of the time that is left."""


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


MAX_NAMED = 20
"""Most slots that are named one by one."""

_HOUR = 3600.0


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
