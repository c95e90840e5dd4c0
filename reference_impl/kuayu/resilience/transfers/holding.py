"""What a plan holds at once. Where data are late, or a stream has more there than its depth, less can come early."""

import numpy as np

from kuayu.resilience.transfers.bandwidth import MEDIAN, Forecast
from kuayu.resilience.transfers.layout import Layout
from kuayu.resilience.transfers.scene import Flags, Floats, Stream, Whole
from kuayu.resilience.transfers.sequencing import Sequence, Shards
from kuayu.resilience.transfers.timetable import Timetable

_SAME = 1e-9


def within_room(
    streams: tuple[Stream, ...],
    tables: list[Timetable],
    shards: Shards,
    order: Sequence,
    its: Layout,
    ahead: Forecast,
    depth: Whole,
) -> Flags:
    """Shards that have room, (N,): all that start before the room would be exceeded.

    Where all is in time and no stream has more there than its depth in steps, (J,), the depths see to that.
    """
    keep = np.ones(len(shards.stream), dtype=bool)
    late = np.zeros(len(its.destinations), dtype=bool)
    late[its.of[shards.stream[order.finish_s > shards.due_s]]] = True
    for row, stream in enumerate(streams):
        much = _held(stream) > depth[row] * stream.step_bytes * (1 + _SAME)
        late[its.of[row]] |= much or bool(stream.under_way)  # whether that is late is seen below
    whose = its.of[shards.stream]
    sorted_by = np.argsort(whose, kind="stable")
    edges = np.searchsorted(whose[sorted_by], np.arange(len(its.destinations) + 1))
    for destination in np.flatnonzero(late).tolist():
        mine = sorted_by[edges[destination] : edges[destination + 1]]
        rows = np.flatnonzero(its.of == destination).tolist()
        ours, begun = shards.stream[mine], []
        for row in rows:
            pieces = _coming(mine[ours == row], streams[row], shards, order, ahead)
            begun.append(_begun(streams[row], tables[row], *pieces))
        here = sum(_held(streams[row]) for row in rows)
        starts = np.where(order.link[mine] >= 0, order.start_s[mine], np.inf)
        freed = np.concatenate(begun)
        frees = np.concatenate(
            [np.full(len(at), -streams[row].step_bytes) for row, at in zip(rows, begun, strict=True)]
        )
        times = np.concatenate([freed, starts])
        comes = np.where(np.isfinite(starts), shards.end[mine] - shards.begin[mine], 0.0)
        changes = np.concatenate([frees, comes])
        events = np.lexsort((changes, times))  # what frees room goes first
        held = here + np.cumsum(changes[events])
        too_much = (held > its.rooms[destination] * (1 + _SAME)) & (changes[events] > 0.0)
        if too_much.any():
            dropped = events[int(np.argmax(too_much)) :] - len(freed)
            keep[mine[dropped[dropped >= 0]]] = False
    return keep


def _coming(
    mine: Whole, stream: Stream, shards: Shards, order: Sequence, ahead: Forecast
) -> tuple[Floats, Floats, Floats]:
    """First bytes, bytes after the last, and when each piece that is under way or planned is expected."""
    way = stream.under_way
    rest = [each.left / ahead.rates[each.link, 0, MEDIAN] if ahead.up[each.link] else np.inf for each in way]
    return (
        np.concatenate([shards.begin[mine], [each.begin for each in way]]),
        np.concatenate([shards.end[mine], [each.end for each in way]]),
        np.concatenate([order.finish_s[mine], rest]),
    )


def _begun(stream: Stream, table: Timetable, begin: Floats, end: Floats, at_s: Floats) -> Floats:
    """When each step begins, (R,); infinite where nobody fetches all its data."""
    count, size = len(table.due_s), stream.step_bytes
    ready = np.zeros(count)
    first = np.floor(begin / size + _SAME).astype(np.int64)
    inside = first < count
    np.maximum.at(ready, first[inside], at_s[inside])  # later steps of a piece are no sooner: see below
    for low, high in stream.gaps:
        within = (begin >= low - _SAME * size) & (end <= high + _SAME * size)
        bare = low + float((end - begin)[within].sum())
        if bare < high - _SAME * size:
            ready[int(bare / size + _SAME) :] = np.inf
    earliest = np.maximum(np.maximum.accumulate(ready), stream.begins_s + table.slot * stream.step_s)
    begun: Floats = np.maximum.accumulate(earliest - table.slot * stream.step_s) + table.slot * stream.step_s
    return begun


def _held(stream: Stream) -> float:
    """Bytes that are here or under way, gap by gap: a difference of sums would lose them in streams that hardly end."""
    lows = [*(low for low, _ in stream.gaps), stream.remote_steps * stream.step_bytes]
    highs = [0.0, *(high for _, high in stream.gaps)]
    return sum(max(low - high, 0.0) for low, high in zip(lows, highs, strict=True))
