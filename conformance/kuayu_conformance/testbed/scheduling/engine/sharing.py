"""Max-min fair rates: what flows get that share wires."""

import heapq
from collections.abc import Mapping, Sequence


def fair_rates(offered: Mapping[int, float], paths: Sequence[tuple[int, ...]], wishes: Sequence[float]) -> list[float]:
    """Rates by progressive filling: all rise together, each until its wish is met or a wire of its path is full.

    Bertsekas and Gallager, "Data Networks", 2nd edition, 1992, section 6.5.2; it is what flows of long-lived TCP
    approach on equal terms.

    Args:
        offered: Bits a second by the number of a wire; all wires of all paths.
        paths: Wires of each flow, at least one, none twice.
        wishes: Bits a second beyond which a flow does not rise, or infinite.
    """
    alike: dict[tuple[tuple[int, ...], float], int] = {}
    for kind in zip(paths, wishes, strict=True):
        alike[kind] = alike.get(kind, 0) + 1
    rates = _of_kinds(offered, alike)
    return [rates[kind] for kind in zip(paths, wishes, strict=True)]


def _of_kinds(
    offered: Mapping[int, float], alike: Mapping[tuple[tuple[int, ...], float], int]
) -> dict[tuple[tuple[int, ...], float], float]:
    """Rate of one flow of each kind; flows of the same path and wish get the same.

    The level at which a wire is full only rises while others settle, so that a heap of levels that are out of date
    finds the next one: what it shows is looked at again before it counts.
    """
    on: dict[int, list[tuple[tuple[int, ...], float]]] = {}
    rising: dict[int, int] = {}
    for kind, flows in alike.items():
        for wire in kind[0]:
            on.setdefault(wire, []).append(kind)
            rising[wire] = rising.get(wire, 0) + flows
    left = {wire: offered[wire] for wire in on}
    levels = [(left[wire] / rising[wire], wire) for wire in on]
    heapq.heapify(levels)
    modest = sorted(alike, key=lambda kind: -kind[1])
    rates: dict[tuple[tuple[int, ...], float], float] = {}
    while levels:
        level, wire = levels[0]
        if not rising[wire]:
            heapq.heappop(levels)
            continue
        present = max(left[wire], 0.0) / rising[wire]
        if present > level:
            heapq.heapreplace(levels, (present, wire))
            continue
        while modest[-1] in rates:
            modest.pop()
        wish = modest[-1][1]
        settling = [modest[-1]] if wish <= present else [kind for kind in on[wire] if kind not in rates]
        for kind in settling:
            rates[kind] = rate = min(wish, present)
            for each in kind[0]:
                rising[each] -= alike[kind]
                left[each] -= rate * alike[kind]
    return rates
