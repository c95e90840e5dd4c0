"""A rolling shard plan: what to fetch next, how large, how early, from where, and which steps take local data.

Asked anew every few steps; what is under way stays so, unless the plan says to give it up.
"""

from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np

from kuayu.resilience.transfers.bandwidth import CAUTIOUS, MEDIAN, Forecast, forecast
from kuayu.resilience.transfers.depth import Depths, depths
from kuayu.resilience.transfers.holding import within_room
from kuayu.resilience.transfers.layout import Layout, layout
from kuayu.resilience.transfers.pieces import Gaps, cut, reach, ready
from kuayu.resilience.transfers.scene import Flags, Floats, Scene, Stream, UnderWay
from kuayu.resilience.transfers.sequencing import Sequence, Shards, sequence
from kuayu.resilience.transfers.sizes import Sizes, sizes
from kuayu.resilience.transfers.timetable import Timetable, reordered, undisturbed

Arrays = TypeVar("Arrays", Shards, Sequence)

SOONER = 0.8
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
    order: Sequence
    given_up: tuple[tuple[UnderWay, ...], ...]
    tables: tuple[Timetable, ...]
    depths: Depths
    sizes: Sizes
    ahead: Forecast
    layout: Layout


def plan(scene: Scene) -> Plan:
    """Plan all transfers that have room within the horizon."""
    ahead = forecast(scene.links, scene.interval_s)
    its = layout(scene, ahead)
    deep = depths(scene, its, ahead.outage_s)
    sized = sizes(scene, its, deep.steps)
    free_s, given_up = _under_way(scene, its, ahead)
    streams = tuple(_without(stream, stopped) for stream, stopped in zip(scene.streams, given_up, strict=True))
    counts = [reach(stream, int(deep.steps[row]), scene.horizon_s) for row, stream in enumerate(streams)]
    tables = [undisturbed(stream, count) for stream, count in zip(streams, counts, strict=True)]
    shards = cut(streams, tables, deep.steps, sized.bytes, scene.horizon_s)
    order = sequence(shards, its, free_s)
    reserves = [row for row, stream in enumerate(streams) if stream.local_steps and counts[row]]
    for row in reserves:
        tables[row] = reordered(streams[row], _ready(row, streams[row], counts[row], shards, order, ahead).tolist())
    if any(tables[row].local for row in reserves):
        shards = cut(streams, tables, deep.steps, sized.bytes, scene.horizon_s)
        order = sequence(shards, its, free_s)
    keep = within_room(streams, tables, shards, order, its, ahead, deep.steps)
    return Plan(_only(shards, keep), _only(order, keep), given_up, tuple(tables), deep, sized, ahead, its)


def _only(arrays: Arrays, keep: Flags) -> Arrays:
    """Those rows of all arrays."""
    if keep.all():
        return arrays
    return replace(arrays, **{each.name: getattr(arrays, each.name)[keep] for each in fields(arrays)})


def _ready(row: int, stream: Stream, count: int, shards: Shards, order: Sequence, ahead: Forecast) -> Floats:
    """When the data of each step are there by a cautious forecast."""
    mine = (shards.stream == row) & (order.link >= 0)
    links = order.link[mine]
    release = shards.release_s[mine]
    at = release + (order.finish_s[mine] - release) * _caution(ahead)[links]
    coming = [each for each in stream.under_way if ahead.up[each.link]]
    begin = np.concatenate([shards.begin[mine], [each.begin for each in coming]])
    end = np.concatenate([shards.end[mine], [each.end for each in coming]])
    slow = ahead.rates[:, 0, CAUTIOUS]
    at = np.concatenate([at, [each.left / slow[each.link] for each in coming]])
    stuck: Gaps = tuple((each.begin, each.end) for each in stream.under_way if not ahead.up[each.link])
    return ready(stream, count, stream.gaps + stuck, begin, end, at)


def _caution(ahead: Forecast) -> Floats:
    """How many times as long transfers take by a cautious forecast, (L,)."""
    middle = ahead.rates.shape[1] // 2
    times: Floats = ahead.rates[:, middle, MEDIAN] / ahead.rates[:, middle, CAUTIOUS]
    return times


def _under_way(scene: Scene, its: Layout, ahead: Forecast) -> tuple[Floats, tuple[tuple[UnderWay, ...], ...]]:
    """When each link has done what it has begun, (D, S), and what is not worth waiting for."""
    busy = np.zeros(len(scene.links))
    for stream in scene.streams:
        for each in stream.under_way:
            busy[each.link] += each.left / ahead.rates[each.link, 0, MEDIAN] if ahead.up[each.link] else 0.0
    given_up: list[tuple[UnderWay, ...]] = []
    for row, stream in enumerate(scene.streams):
        stopped = []
        for each in stream.under_way:
            links = its.links[its.of[row]]
            soonest = _elsewhere(each, row, busy, its, ahead)
            rest = busy[each.link] if ahead.up[each.link] else np.inf
            due = stream.begins_s + max(0.0, each.begin // stream.step_bytes) * stream.step_s
            if links.size and rest > max(due, 0.0) and soonest < SOONER * rest:
                stopped.append(each)
                if ahead.up[each.link]:
                    busy[each.link] -= each.left / ahead.rates[each.link, 0, MEDIAN]
        given_up.append(tuple(stopped))
    free = np.where(its.links >= 0, busy[its.links], 0.0) if len(scene.links) else np.zeros(its.links.shape)
    return np.maximum(free, 0.0), tuple(given_up)


def _elsewhere(each: UnderWay, row: int, busy: Floats, its: Layout, ahead: Forecast) -> float:
    """When another link would have the whole of a transfer, from now."""
    columns = np.flatnonzero(its.copies[row] & (its.links[its.of[row]] != each.link))
    if not len(columns):
        return float("inf")
    links = its.links[its.of[row], columns]
    took = (each.end - each.begin) / ahead.rates[links, 0, MEDIAN]
    return float((busy[links] + its.latency_s[its.of[row], columns] + took).min())


def _without(stream: Stream, stopped: tuple[UnderWay, ...]) -> Stream:
    """A stream whose stopped transfers are gaps again."""
    if not stopped:
        return stream
    gaps = tuple(sorted([*stream.gaps, *((each.begin, each.end) for each in stopped)]))
    gone = set(stopped)
    return replace(stream, gaps=gaps, under_way=tuple(each for each in stream.under_way if each not in gone))
