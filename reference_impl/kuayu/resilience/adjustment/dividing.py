"""How many parts of a step each domain computes, so that the slowest is done as soon as can be."""

from bisect import bisect_left
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace

ENDLESS = 1e200
"""Seconds of a part in a domain of which nothing is left, as a number that can still be reckoned with."""

_SAME = 1e-9
"""Parts by which a quotient of doubles may be off."""


def divided(total: int, costs: Sequence[float], least: Sequence[int], most: Sequence[int]) -> list[int]:
    """The division of parts whose slowest domain is quickest; it is exact.

    The level of time that takes all parts, were they as fine as sand, is no later than any division of whole ones. What
    each domain can do by then is given to it; the few parts that are left go one by one to whoever is done with them
    first.

    Args:
        total: Parts of a step; no fewer than all of ``least``, no more than all of ``most``.
        costs: Seconds of a part in each domain.
        least: Parts that each computes at least.
        most: Parts that each computes at most.

    Returns:
        Parts of each.
    """
    level = _level(total, costs, least, most)
    parts = [max(low, min(high, int(level / cost + _SAME))) for cost, low, high in zip(costs, least, most, strict=True)]
    left = total - sum(parts)
    if left > 0:
        _given(left, parts, costs, most)
    elif left < 0:
        _taken(-left, parts, costs, least)
    return parts


def _level(total: int, costs: Sequence[float], least: Sequence[int], most: Sequence[int]) -> float:
    """Seconds after which domains would have done so many parts, were they as fine as sand."""
    rows = list(zip(costs, least, most, strict=True))
    turns = sorted({number * cost for cost, low, high in rows for number in (low, high)})

    def done(seconds: float) -> float:
        return sum(min(float(high), max(float(low), seconds / cost)) for cost, low, high in rows)

    turn = min(bisect_left(turns, float(total), key=done), len(turns) - 1)
    if turn == 0:
        return turns[0]
    before = turns[turn - 1]
    middle = before + (turns[turn] - before) / 2.0  # no domain begins or ends between two turns
    speed = sum(1.0 / cost for cost, low, high in rows if low * cost < middle < high * cost)
    return before + (total - done(before)) / speed if speed > 0.0 else before


def _given(left: int, parts: list[int], costs: Sequence[float], most: Sequence[int]) -> None:
    ready = [(float(number + 1) * cost, at) for at, (number, cost) in enumerate(zip(parts, costs, strict=True))]
    ready = [each for each in ready if parts[each[1]] < most[each[1]]]
    heapify(ready)
    for _ in range(left):
        _, at = ready[0]
        parts[at] += 1
        if parts[at] < most[at]:
            heapreplace(ready, ((parts[at] + 1) * costs[at], at))
        else:
            heappop(ready)


def _taken(left: int, parts: list[int], costs: Sequence[float], least: Sequence[int]) -> None:
    slow = [(-number * cost, at) for at, (number, cost) in enumerate(zip(parts, costs, strict=True))]
    slow = [each for each in slow if parts[each[1]] > least[each[1]]]
    heapify(slow)
    for _ in range(left):
        _, at = slow[0]
        parts[at] -= 1
        if parts[at] > least[at]:
            heapreplace(slow, (-parts[at] * costs[at], at))
        else:
            heappop(slow)


def best(costs: Sequence[float], total: int) -> list[int]:
    """The division that is quickest of all, one part at least to each."""
    return divided(total, costs, [1] * len(costs), [total] * len(costs))


def near(parts: Sequence[int], costs: Sequence[float], within_s: float) -> list[int]:
    """The division that moves fewest parts and takes no longer than this; of those, the quickest.

    Args:
        parts: Of each domain now.
        costs: Seconds of a part in each domain.
        within_s: No less than what the best division takes.
    """
    total = sum(parts)
    can = [max(1, int(min(within_s / cost + _SAME, float(total)))) for cost in costs]
    keep = [min(now, high) for now, high in zip(parts, can, strict=True)]
    most = [max(high, low) for high, low in zip(can, keep, strict=True)]
    return divided(total, costs, keep, most) if sum(most) >= total else best(costs, total)


def toward(parts: Sequence[int], target: Sequence[int], costs: Sequence[float], moved: int) -> list[int]:
    """Move so many parts on the way from one division to another, those first that make the slowest quicker.

    Args:
        parts: Of each domain now.
        target: Of each at last; as many in all.
        costs: Seconds of a part in each domain.
        moved: No more than have to be moved in all.
    """
    made = list(parts)
    for gives in (True, False):
        rows = [at for at, (now, then) in enumerate(zip(parts, target, strict=True)) if (now > then) == gives]
        here = sum(parts[at] for at in rows) + (-moved if gives else moved)
        low, high = (target, parts) if gives else (parts, target)
        some = divided(here, [costs[at] for at in rows], [low[at] for at in rows], [high[at] for at in rows])
        for at, number in zip(rows, some, strict=True):
            made[at] = number
    return made


def moves(parts: Sequence[int], other: Sequence[int]) -> int:
    """Parts that come to another domain."""
    return sum(max(0, then - now) for now, then in zip(parts, other, strict=True))
