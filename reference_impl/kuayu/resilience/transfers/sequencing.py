"""Which link each shard takes and when: in the order in which they are due, each over the link that has it soonest.

The rule of earliest completion, over links that differ in speed (O. H. Ibarra, C. E. Kim, "Heuristic algorithms for
scheduling independent tasks on nonidentical processors", JACM 24, 1977), with the due dates for an order. All
destinations go at once, so that a loop runs over places in the order and no further.
"""

from dataclasses import dataclass

import numpy as np

from kuayu.resilience.transfers.layout import Layout
from kuayu.resilience.transfers.scene import Floats, Whole


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

    stream: Whole
    begin: Floats
    end: Floats
    due_s: Floats
    release_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """Where and when shards are fetched, in their order.

    Attributes:
        link: Number of the link, (N,); -1 where no source is up.
        start_s: When it begins, (N,).
        finish_s: When it is expected to be there, (N,); infinite where no source is up.
        other_s: When the next best link would have it, (N,); infinite where there is none.
    """

    link: Whole
    start_s: Floats
    finish_s: Floats
    other_s: Floats


def sequence(shards: Shards, its: Layout, free_s: Floats) -> Sequence:
    """Give every shard a link.

    Args:
        shards: In any order.
        its: Where they can come from.
        free_s: When each link has done what is under way, (D, S).
    """
    every = len(shards.stream)
    link = np.full(every, -1, dtype=np.int64)
    start, finish, other = np.full(every, np.inf), np.full(every, np.inf), np.full(every, np.inf)
    served = its.copies[shards.stream].any(axis=1)
    if not served.any():
        return Sequence(link, start, finish, other)
    stream, release = shards.stream[served], shards.release_s[served]
    row = its.of[stream]
    rows, width = its.links.shape
    place = _places(row, stream, shards.due_s[served], shards.begin[served], rows)
    with np.errstate(divide="ignore"):
        pace = np.where(its.usable, 1.0 / its.expected, 0.0)
    took = its.latency_s[row] + (shards.end - shards.begin)[served, None] * pace[row]
    cell = place * rows + row
    lasts = np.full((int(place.max()) + 1, rows, width), np.inf)
    lasts.reshape(-1, width)[cell] = np.where(its.copies[stream], took, np.inf)
    released = np.zeros((len(lasts), rows, 1))
    released.ravel()[cell] = release
    picks, finishes = _picked(lasts, released, free_s)
    pick, ends = picks.ravel()[cell], finishes.reshape(-1, width)[cell]
    one = np.arange(len(pick))
    link[served] = its.links[row, pick]
    finish[served] = ends[one, pick]
    start[served] = ends[one, pick] - took[one, pick]
    ends[one, pick] = np.inf
    other[served] = ends.min(axis=1)
    return Sequence(link, start, finish, other)


def _places(row: Whole, stream: Whole, due_s: Floats, begin: Floats, rows: int) -> Whole:
    """Place of each shard in the order of its destination."""
    order = np.lexsort((begin, stream, due_s, row))
    firsts = np.searchsorted(row[order], np.arange(rows))
    place = np.empty(len(row), dtype=np.int64)
    place[order] = np.arange(len(row)) - firsts[row[order]]
    return place


def _picked(lasts: Floats, released: Floats, free_s: Floats) -> tuple[Whole, Floats]:
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
