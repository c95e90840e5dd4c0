"""Streams cut into shards, when there is room for each, and when the data of each step are there."""

from collections.abc import Sequence
from math import ceil

import numpy as np

from kuayu.resilience.transfers.scene import Floats, Stream, Whole
from kuayu.resilience.transfers.sequencing import Shards
from kuayu.resilience.transfers.timetable import Timetable

_ENDS = (slice(None, -1), slice(1, None))
_SAME = 1e-9
"""Relative; bytes are sums of shares of steps."""

Gaps = tuple[tuple[float, float], ...]


def reach(stream: Stream, depth: int, horizon_s: float) -> int:
    """How many steps from afar are looked at: those for which there is room within the horizon."""
    return max(0, min(stream.remote_steps, depth + int(max(horizon_s - stream.begins_s, 0.0) / stream.step_s) + 1))


def cut(streams: Sequence[Stream], tables: Sequence[Timetable], depth: Whole, size: Floats, horizon_s: float) -> Shards:
    """Shards for which there is room within the horizon.

    There is room for a shard when the step that lies ``depth`` steps before the last that takes it has begun.

    Args:
        streams: All of them.
        tables: When their steps are due.
        depth: Steps ahead of each stream, (J,).
        size: Bytes of a shard of each stream, (J,).
        horizon_s: How far ahead is planned.
    """
    edges, many = _edges(streams, tables, depth, size)
    stream = np.repeat(np.arange(len(streams)), many)
    begin, end = (np.concatenate([each[which] for each in edges] or [np.zeros(0)]) for which in _ENDS)
    step_bytes = np.array([each.step_bytes for each in streams])[stream]
    due = np.concatenate([each.due_s for each in tables] or [np.zeros(0)])
    offset = np.concatenate([[0], np.cumsum([len(each.due_s) for each in tables])])[stream].astype(np.int64)
    last = np.maximum(np.ceil(end / step_bytes - _SAME).astype(np.int64) - 1, 0)
    gone = last - depth[stream]
    if not len(begin):
        return Shards(stream, begin, end, begin, begin)
    release = np.where(gone < 0, 0.0, np.maximum(due[offset + np.maximum(gone, 0)], 0.0))
    # a sliver at the end of a step is told from the next step by its end alone
    first = np.minimum(np.floor(begin / step_bytes + _SAME).astype(np.int64), last)
    keep = release <= horizon_s
    return Shards(stream[keep], begin[keep], end[keep], due[(offset + first)[keep]], release[keep])


def _edges(
    streams: Sequence[Stream], tables: Sequence[Timetable], depth: Whole, size: Floats
) -> tuple[list[Floats], list[int]]:
    """Where shards begin and end, gap by gap, and how many each stream has."""
    edges: list[Floats] = []
    many = [0] * len(streams)
    for row, stream in enumerate(streams):
        limit = len(tables[row].due_s) * stream.step_bytes
        for low, high in stream.gaps:
            stop = min(high, limit)
            if low >= stop or depth[row] < 1:
                continue
            count = max(1, ceil((stop - low) / size[row] - _SAME))
            cuts: Floats = low + size[row] * np.arange(count + 1)
            cuts[-1] = stop
            edges.append(cuts)
            many[row] += count
    return edges, many


def ready(stream: Stream, count: int, gaps: Gaps, begin: Floats, end: Floats, at_s: Floats) -> Floats:
    """When the data of each of the next steps are there, rising, (count,).

    Args:
        stream: Whose.
        count: Steps.
        gaps: Bytes that nobody has begun to fetch.
        begin: First bytes of what is under way or planned.
        end: The bytes after their last.
        at_s: When each is there.
    """
    made = np.zeros(count)
    covered = np.zeros(count)
    for low, high in gaps:  # a step some of whose bytes nobody fetches is never there
        for step in range(int(low // stream.step_bytes), count):
            if step * stream.step_bytes >= high * (1 - _SAME):
                break
            covered[step] -= min(high, (step + 1) * stream.step_bytes) - max(low, step * stream.step_bytes)
    for one, after, at in zip(begin.tolist(), end.tolist(), at_s.tolist(), strict=True):
        for step in range(int(one / stream.step_bytes + _SAME), min(count, int(np.ceil(after / stream.step_bytes)))):
            made[step] = max(made[step], at)
            covered[step] += min(after, (step + 1) * stream.step_bytes) - max(one, step * stream.step_bytes)
    made[covered < -_SAME * stream.step_bytes] = np.inf
    return np.maximum.accumulate(made)
