"""The shard scheduler: how large shards are, how early they are fetched, over which link, and when.

1. How large the shards of a stream are: small ones spend time on requests, large ones are caught by what links do.

   Of a shard of ``s`` bytes over a link of ``B`` bytes a second that takes ``l`` seconds for a request and changes
   ``c`` times a second, the share ``l · B / s`` of the link's time goes to requests, and the share ``c · s / (2 B)``
   of its bytes is half-way when the link changes. The sum is least at ``B · √(2 l / c)``; it is the trade of J. W.
   Young, "A first order approximation to the optimum checkpoint interval", CACM 17 (1974), with requests for
   checkpoints. No shard takes longer than a step, since nothing more urgent passes it on its link, nor is it larger
   than what lets every source have two within the depth, so that none idles while another fetches the last one.
2. How many steps ahead data are fetched: as many as save enough waiting for the buffer that they hold.

   Waiting is expected from three things that a cover of ``x`` seconds is to hide:

   - the transfer itself, as far as it lasts longer than its head start;
   - bandwidths: over a horizon of ``h`` seconds, what a quantile of a stream's part of all links carries less than it
     needs is a deficit, ``h · (1 - bandwidth / need)``; what exceeds ``x`` is waited for. Links are slow together;
   - outages: while a link is out, the others leave a share ``u`` of the need unserved. With outages of exponential
     length, mean ``m``, that come at a rate ``λ``, the share of time waited is ``λ · u · m · exp(-x / (u · m))``.

   The sum falls ever less with each step of depth, so the last step that saves at least so much is the best. Where
   all together do not fit, the steps that save least for their bytes are left out, and then streams have theirs in
   order.
3. Which slot each coming step from outside takes, and which slots take data of the local cache instead.

   A slot takes local data where the data from outside are not expected in time by a cautious forecast, and as long as
   there are local data; so slow links find steps that need none of them, and local data are not spent while links
   keep up.
4. Which link each shard takes and when: in the order in which they are due, each over the link that has it soonest.

   The rule of earliest completion, over links that differ in speed (O. H. Ibarra, C. E. Kim, "Heuristic algorithms
   for scheduling independent tasks on nonidentical processors", JACM 24, 1977), with the due dates for an order. All
   destinations go at once, so that a loop runs over places in the order and no further.
5. Streams cut into shards, when there is room for each, and when the data of each step are there.
6. What a plan holds at once. Where data are late, or a stream has more there than its depth, less can come early.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from kuayu.resilience.network import (
    HORIZONS,
    MEDIAN,
    Flags,
    Floats,
    Forecast,
    Integers,
    Layout,
    Stream,
    TransferSnapshot,
    link_shares,
)

PARTS = 2.0 ** np.arange(-4, 6)
"""Sizes that are looked at, in steps."""


@dataclass(frozen=True, slots=True, eq=False)
class ShardSizes:
    """Sizes, and what they and their neighbours cost.

    Attributes:
        bytes: Of a shard of each stream, (J,).
        cost: Share of the links' time that goes to requests and to what is caught half-way, at each of ``PARTS``,
            (J, PARTS).
        part: Place of the size among ``PARTS``, (J,).
    """

    bytes: Floats
    cost: Floats
    part: Integers


def shard_sizes(snapshot: TransferSnapshot, layout: Layout, depth: Integers) -> ShardSizes:
    """Choose sizes for all streams."""
    step_bytes = np.array([stream.step_bytes for stream in snapshot.streams])
    copies = layout.copies
    many = np.maximum(copies.sum(axis=1), 1)
    rate, latency, changes = (
        np.where(copies, values[layout.of], 0.0).sum(axis=1) / many
        for values in (layout.expected, layout.latency_s, layout.changes)
    )
    candidates = step_bytes[:, None] * PARTS
    rate = np.maximum(rate, 1.0)[:, None]
    cost = (latency[:, None] * rate) / candidates + changes[:, None] * candidates / (2.0 * rate)
    step_s = np.array([stream.step_s for stream in snapshot.streams])
    limit = np.minimum(np.maximum(depth, 1) * step_bytes / (2.0 * many), rate[:, 0] * step_s)
    allowed = candidates <= limit[:, None]
    allowed[:, 0] = True
    part = np.argmin(np.where(allowed, cost, np.inf), axis=1)
    return ShardSizes(step_bytes * PARTS[part], cost, part)


MAX_DEPTH = 128
"""Steps; nothing is fetched earlier."""
MIN_DEPTH = 2
"""Steps: while one step's data wait, those of the next are under way."""
WEIGHTS = np.array([0.075, 0.1, 0.2, 0.25, 0.2, 0.1, 0.075])
"""How much of the time each quantile of a forecast stands for."""
_HALVINGS = 16
_WHOLE = 1 + 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class PrefetchDepths:
    """How deep, and why.

    Attributes:
        steps: Of each stream, (J,); zero where the room does not hold one step.
        waiting: Share of time that each stream is expected to wait at each depth, (J, DEEPEST + 1).
        saving: Share of time that the last step of depth saves at least, for a step of mean size, (D,); more than asked
            for where the room is too small.
    """

    steps: Integers
    waiting: Floats
    saving: Floats


def prefetch_depths(snapshot: TransferSnapshot, layout: Layout, outage_s: float) -> PrefetchDepths:
    """Choose depths for all streams."""
    count = len(layout.destinations)
    step_bytes = np.array([stream.step_bytes for stream in snapshot.streams], dtype=np.float64)
    many = np.maximum(np.bincount(layout.of, minlength=count), 1)
    mean = np.bincount(layout.of, step_bytes, minlength=count) / many
    waiting = _waiting(snapshot, layout, outage_s)
    saved = (waiting[:, :-1] - waiting[:, 1:]) * (mean[layout.of] / step_bytes)[:, None]
    most = np.minimum(np.floor(layout.free_bytes[layout.of] / step_bytes * _WHOLE), MAX_DEPTH).astype(np.int64)

    def taken(saving: Floats) -> Integers:
        saves_enough = saved >= saving[layout.of, None]
        wanted = np.where(saves_enough.any(axis=1), saved.shape[1] - np.argmax(saves_enough[:, ::-1], axis=1), 1)
        depths: Integers = np.minimum(np.maximum(wanted, MIN_DEPTH), most)
        return depths

    def fits(steps: Integers) -> Flags:
        within_capacity: Flags = np.bincount(layout.of, steps * step_bytes, count) <= layout.free_bytes * _WHOLE
        return within_capacity

    saving = np.full(count, snapshot.saving)
    steps = taken(saving)
    if not fits(steps).all():
        low, high = saving, np.maximum(saving, float(saved.max(initial=0.0)) + snapshot.saving)
        for _ in range(_HALVINGS):
            middle = np.sqrt(low * high)
            fit = fits(taken(middle))
            low, high = np.where(fit, low, middle), np.where(fit, middle, high)
        saving = np.where(fits(steps), saving, high)
        steps = taken(saving)
    return PrefetchDepths(_at_most(steps, step_bytes, layout), waiting, saving)


def _waiting(snapshot: TransferSnapshot, layout: Layout, outage_s: float) -> Floats:
    """Expected share of waiting at depths of 0 to DEEPEST, (J, DEEPEST + 1)."""
    step_s = np.array([stream.step_s for stream in snapshot.streams])
    need = np.array([stream.step_bytes for stream in snapshot.streams]) / step_s
    mine = link_shares(snapshot, layout)
    carried = mine * layout.expected[layout.of]
    together = np.maximum(carried.sum(axis=1), 1.0)
    latency = np.where(layout.copies, layout.latency_s[layout.of], 0.0).max(axis=1, initial=0.0)
    head = need / together * step_s + latency  # seconds that a step's own transfer takes
    early = np.arange(MAX_DEPTH + 1) * step_s[:, None]
    late = np.maximum(head[:, None] - early, 0.0) / step_s[:, None]
    cover = np.maximum(early - head[:, None], 0.0)
    slow = np.zeros_like(cover)
    sums = np.einsum("js,jshq->jhq", mine, layout.rates[layout.of])
    for place, horizon in enumerate(HORIZONS):
        span = horizon * snapshot.interval_s
        deficit = span * np.maximum(1.0 - sums[:, place] / need[:, None], 0.0)
        waited = np.zeros_like(cover)
        for quantile, weight in enumerate(WEIGHTS):
            waited += weight / span * np.maximum(deficit[:, quantile, None] - cover, 0.0)
        slow = np.maximum(slow, waited)  # the horizon that asks for most; longer ones hold the same deficits again
    left = together[:, None] - carried
    unserved = np.where(layout.copies, np.clip(1.0 - left / need[:, None], 0.0, 1.0), 0.0) * outage_s
    gone = np.zeros_like(cover)
    for column in range(layout.links.shape[1]):
        mean = np.maximum(unserved[:, column], 1e-9)
        gone += (layout.hazards[layout.of, column] * unserved[:, column])[:, None] * np.exp(-cover / mean[:, None])
    total: Floats = late + slow + gone
    return total


def _at_most(steps: Integers, step_bytes: Floats, layout: Layout) -> Integers:
    """No more than the room: where not even two steps of each stream fit, streams have one after the other in order."""
    free = layout.free_bytes * _WHOLE
    if (np.bincount(layout.of, steps * step_bytes, len(free)) <= free).all():
        return steps
    depths = np.zeros_like(steps)
    for _ in range(int(steps.max())):
        for row in np.flatnonzero(depths < steps).tolist():
            if step_bytes[row] <= free[layout.of[row]]:
                depths[row] += 1
                free[layout.of[row]] -= step_bytes[row]
    return depths


@dataclass(frozen=True, slots=True, eq=False)
class SlotTable:
    """Slots of a stream's coming steps.

    Attributes:
        due_s: When each step from outside is due, (R,).
        slot: The number of its slot, (R,).
        local: Slots that take local data.
        waits_s: Seconds that slots are expected to wait, together.
    """

    due_s: Floats
    slot: Floats
    local: tuple[int, ...]
    waits_s: float


def undisturbed(stream: Stream, count: int) -> SlotTable:
    """One step from outside after the other, each when it is due."""
    numbers = np.arange(count, dtype=np.float64)
    return SlotTable(stream.begins_s + numbers * stream.step_s, numbers, (), 0.0)


def reordered(stream: Stream, ready_s: Sequence[float]) -> SlotTable:
    """Local data in slots whose data from outside would be late.

    Args:
        stream: Whose.
        ready_s: When the data of each step from outside are there, rising; infinite where nobody knows.
    """
    due, slots, local = [], [], []
    clock_s, slot, left, waits = stream.begins_s, 0, stream.local_steps, 0.0
    for ready in ready_s:
        while ready > clock_s and left:
            local.append(slot)
            clock_s, slot, left = clock_s + stream.step_s, slot + 1, left - 1
        due.append(clock_s)
        slots.append(float(slot))
        late = ready - clock_s
        if 0.0 < late < float("inf"):
            waits += late
            clock_s += late
        clock_s, slot = clock_s + stream.step_s, slot + 1
    return SlotTable(np.array(due), np.array(slots), tuple(local), waits)


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """Pieces of streams that are neither here nor under way.

    Attributes:
        stream: Number of its stream, (N,).
        begin: First byte, (N,).
        end: The byte after its last, (N,).
        due_s: When the first step that takes it is due, (N,).
        release_s: When there is room for it, (N,).
    """

    stream: Integers
    begin: Floats
    end: Floats
    due_s: Floats
    release_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class FetchOrder:
    """Where and when shards are fetched, in their order.

    Attributes:
        link: Number of the link, (N,); -1 where no source is up.
        start_s: When it begins, (N,).
        finish_s: When it is expected to be there, (N,); infinite where no source is up.
        other_s: When the next best link would have it, (N,); infinite where there is none.
    """

    link: Integers
    start_s: Floats
    finish_s: Floats
    other_s: Floats


def order_shards(shards: Shards, layout: Layout, free_s: Floats) -> FetchOrder:
    """Give every shard a link.

    Args:
        shards: In any order.
        layout: Where they can come from.
        free_s: When each link has done what is under way, (D, S).
    """
    every = len(shards.stream)
    link = np.full(every, -1, dtype=np.int64)
    start, finish, other = np.full(every, np.inf), np.full(every, np.inf), np.full(every, np.inf)
    served = layout.copies[shards.stream].any(axis=1)
    if not served.any():
        return FetchOrder(link, start, finish, other)
    stream, release = shards.stream[served], shards.release_s[served]
    row = layout.of[stream]
    rows, width = layout.links.shape
    place = _places(row, stream, shards.due_s[served], shards.begin[served], rows)
    with np.errstate(divide="ignore"):
        pace = np.where(layout.usable, 1.0 / layout.expected, 0.0)
    took = layout.latency_s[row] + (shards.end - shards.begin)[served, None] * pace[row]
    cell = place * rows + row
    lasts = np.full((int(place.max()) + 1, rows, width), np.inf)
    lasts.reshape(-1, width)[cell] = np.where(layout.copies[stream], took, np.inf)
    released = np.zeros((len(lasts), rows, 1))
    released.ravel()[cell] = release
    picks, finishes = _picked(lasts, released, free_s)
    pick, ends = picks.ravel()[cell], finishes.reshape(-1, width)[cell]
    one = np.arange(len(pick))
    link[served] = layout.links[row, pick]
    finish[served] = ends[one, pick]
    start[served] = ends[one, pick] - took[one, pick]
    ends[one, pick] = np.inf
    other[served] = ends.min(axis=1)
    return FetchOrder(link, start, finish, other)


def _places(row: Integers, stream: Integers, due_s: Floats, begin: Floats, rows: int) -> Integers:
    """Place of each shard in the order of its destination."""
    order = np.lexsort((begin, stream, due_s, row))
    firsts = np.searchsorted(row[order], np.arange(rows))
    place = np.empty(len(row), dtype=np.int64)
    place[order] = np.arange(len(row)) - firsts[row[order]]
    return place


def _picked(lasts: Floats, released: Floats, free_s: Floats) -> tuple[Integers, Floats]:
    """Which source each place takes, (places, D), and when each source would have it, (places, D, S).

    Destinations that have no more shards go on with infinite times, which move nothing any more.
    """
    rows, width = free_s.shape
    finishes = np.empty_like(lasts)
    picks = np.empty(lasts.shape[:2], dtype=np.int64)
    free = free_s.copy()
    flat, base = free.ravel(), np.arange(rows) * width
    begins = np.empty_like(free)
    for step in range(len(lasts)):
        np.maximum(free, released[step], out=begins)
        finish = np.add(begins, lasts[step], out=finishes[step])
        pick = finish.argmin(axis=1, out=picks[step])
        cells = base + pick
        flat[cells] = finish.ravel()[cells]
    return picks, finishes


_ENDS = (slice(None, -1), slice(1, None))
_SAME = 1e-9
"""Relative; bytes are sums of shares of steps."""

Gaps = tuple[tuple[float, float], ...]


def steps_in_reach(stream: Stream, depth: int, horizon_s: float) -> int:
    """How many steps from outside are looked at: those for which there is room within the horizon."""
    return max(0, min(stream.remote_steps, depth + int(max(horizon_s - stream.begins_s, 0.0) / stream.step_s) + 1))


def cut_shards(
    streams: Sequence[Stream], tables: Sequence[SlotTable], depth: Integers, size: Floats, horizon_s: float
) -> Shards:
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
    begin, end = (np.concatenate([edge[which] for edge in edges] or [np.zeros(0)]) for which in _ENDS)
    step_bytes = np.array([stream.step_bytes for stream in streams])[stream]
    due = np.concatenate([table.due_s for table in tables] or [np.zeros(0)])
    offset = np.concatenate([[0], np.cumsum([len(table.due_s) for table in tables])])[stream].astype(np.int64)
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
    streams: Sequence[Stream], tables: Sequence[SlotTable], depth: Integers, size: Floats
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


def ready_times(stream: Stream, count: int, gaps: Gaps, begin: Floats, end: Floats, at_s: Floats) -> Floats:
    """When the data of each of the next steps are there, rising, (count,).

    Args:
        stream: Whose.
        count: Steps.
        gaps: Bytes that nobody has begun to fetch.
        begin: First bytes of what is under way or planned.
        end: The bytes after their last.
        at_s: When each is there.
    """
    instants = np.zeros(count)
    covered = np.zeros(count)
    for low, high in gaps:  # a step some of whose bytes nobody fetches is never there
        for step in range(int(low // stream.step_bytes), count):
            if step * stream.step_bytes >= high * (1 - _SAME):
                break
            covered[step] -= min(high, (step + 1) * stream.step_bytes) - max(low, step * stream.step_bytes)
    for one, after, instant in zip(begin.tolist(), end.tolist(), at_s.tolist(), strict=True):
        for step in range(int(one / stream.step_bytes + _SAME), min(count, int(np.ceil(after / stream.step_bytes)))):
            instants[step] = max(instants[step], instant)
            covered[step] += min(after, (step + 1) * stream.step_bytes) - max(one, step * stream.step_bytes)
    instants[covered < -_SAME * stream.step_bytes] = np.inf
    return np.maximum.accumulate(instants)


def within_room(
    streams: tuple[Stream, ...],
    tables: list[SlotTable],
    shards: Shards,
    order: FetchOrder,
    layout: Layout,
    ahead: Forecast,
    depth: Integers,
) -> Flags:
    """Shards that have room, (N,): all that start before the room would be exceeded.

    Where all is in time and no stream has more there than its depth in steps, (J,), the depths see to that.
    """
    keep = np.ones(len(shards.stream), dtype=bool)
    late = np.zeros(len(layout.destinations), dtype=bool)
    late[layout.of[shards.stream[order.finish_s > shards.due_s]]] = True
    for row, stream in enumerate(streams):
        much = _bytes_held(stream) > depth[row] * stream.step_bytes * (1 + _SAME)
        late[layout.of[row]] |= much or bool(stream.under_way)  # whether that is late is seen below
    whose = layout.of[shards.stream]
    sorted_by = np.argsort(whose, kind="stable")
    edges = np.searchsorted(whose[sorted_by], np.arange(len(layout.destinations) + 1))
    for destination in np.flatnonzero(late).tolist():
        mine = sorted_by[edges[destination] : edges[destination + 1]]
        rows = np.flatnonzero(layout.of == destination).tolist()
        ours, begun = shards.stream[mine], []
        for row in rows:
            pieces = _coming(mine[ours == row], streams[row], shards, order, ahead)
            begun.append(_begun(streams[row], tables[row], *pieces))
        present = sum(_bytes_held(streams[row]) for row in rows)
        starts = np.where(order.link[mine] >= 0, order.start_s[mine], np.inf)
        freed = np.concatenate(begun)
        frees = np.concatenate(
            [np.full(len(begins), -streams[row].step_bytes) for row, begins in zip(rows, begun, strict=True)]
        )
        times = np.concatenate([freed, starts])
        comes = np.where(np.isfinite(starts), shards.end[mine] - shards.begin[mine], 0.0)
        changes = np.concatenate([frees, comes])
        events = np.lexsort((changes, times))  # what frees room goes first
        occupied = present + np.cumsum(changes[events])
        too_much = (occupied > layout.free_bytes[destination] * (1 + _SAME)) & (changes[events] > 0.0)
        if too_much.any():
            dropped = events[int(np.argmax(too_much)) :] - len(freed)
            keep[mine[dropped[dropped >= 0]]] = False
    return keep


def _coming(
    mine: Integers, stream: Stream, shards: Shards, order: FetchOrder, ahead: Forecast
) -> tuple[Floats, Floats, Floats]:
    """First bytes, bytes after the last, and when each piece that is under way or planned is expected."""
    transfers = stream.under_way
    rest = [
        transfer.left / ahead.rates[transfer.link, 0, MEDIAN] if ahead.up[transfer.link] else np.inf
        for transfer in transfers
    ]
    return (
        np.concatenate([shards.begin[mine], [transfer.begin for transfer in transfers]]),
        np.concatenate([shards.end[mine], [transfer.end for transfer in transfers]]),
        np.concatenate([order.finish_s[mine], rest]),
    )


def _begun(stream: Stream, table: SlotTable, begin: Floats, end: Floats, at_s: Floats) -> Floats:
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


def _bytes_held(stream: Stream) -> float:
    """Bytes that are here or under way, gap by gap: a difference of sums would lose them in streams that hardly end."""
    lows = [*(low for low, _ in stream.gaps), stream.remote_steps * stream.step_bytes]
    highs = [0.0, *(high for _, high in stream.gaps)]
    return sum(max(low - high, 0.0) for low, high in zip(lows, highs, strict=True))
