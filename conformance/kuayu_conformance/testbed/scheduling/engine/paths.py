"""What goes over links, in plain Python: paths of least round-trip time, and max-min fair rates.

An interface check of COM asks for paths, which needs no numeric library; so none is imported here.

1. **Paths.** Those of least round-trip time between domains (E. W. Dijkstra, 1959); ties by the numbers of wires.
2. **Rates.** Flows that share wires get max-min fair rates by progressive filling (Bertsekas and Gallager, "Data
   Networks", 2nd edition, 1992, section 6.5.2).
"""

import heapq
from collections.abc import Mapping, Sequence

from kuayu_conformance.testbed.scheduling.values import Wire

Path = tuple[int, ...]


def shortest_paths(sites: Sequence[str], wires: Sequence[Wire]) -> dict[tuple[int, int], tuple[float, Path]]:
    """Seconds of the round trip, and numbers of the wires, by source and target, numbers of domains.

    A domain is no seconds and no wires from itself; where there is no way there is no entry.
    """
    leaving: dict[str, list[int]] = {}
    for number, wire in enumerate(wires):
        leaving.setdefault(wire.source, []).append(number)
    paths: dict[tuple[int, int], tuple[float, Path]] = {}
    for source, name in enumerate(sites):
        found = _from(name, leaving, wires)
        for target, other in enumerate(sites):
            if other in found:
                paths[source, target] = found[other]
    return paths


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
    kinds = list(alike)
    rates = rates_of_kinds(offered, [path for path, _ in kinds], [wish for _, wish in kinds], list(alike.values()))
    found = dict(zip(kinds, rates, strict=True))
    return [found[kind] for kind in zip(paths, wishes, strict=True)]


def rates_of_kinds(
    offered: Mapping[int, float],
    paths: Sequence[tuple[int, ...]],
    wishes: Sequence[float],
    counts: Sequence[int],
) -> list[float]:
    """Rate of one flow of each kind: flows of the same path and wish get the same.

    The level at which a wire is full only rises while others settle, so that a heap of levels that are out of date
    finds the next one: what it shows is looked at again before it counts.

    Args:
        offered: Bits a second by the number of a wire; all wires of all paths.
        paths: Wires of a kind, at least one, none twice.
        wishes: Bits a second beyond which a flow of a kind does not rise, or infinite.
        counts: How many flows are of a kind.
    """
    on: dict[int, list[int]] = {}
    rising: dict[int, int] = {}
    for kind, path in enumerate(paths):
        for wire in path:
            if wire in on:
                on[wire].append(kind)
                rising[wire] += counts[kind]
            else:
                on[wire] = [kind]
                rising[wire] = counts[kind]
    left = {wire: offered[wire] for wire in on}
    levels = [(left[wire] / rising[wire], wire) for wire in on]
    heapq.heapify(levels)
    modest = sorted(range(len(paths)), key=lambda kind: -wishes[kind])
    rates, settled = [0.0] * len(paths), [False] * len(paths)
    while levels:
        level, wire = levels[0]
        if not rising[wire]:
            heapq.heappop(levels)
            continue
        present = max(left[wire], 0.0) / rising[wire]
        if present > level:
            heapq.heapreplace(levels, (present, wire))
            continue
        while settled[modest[-1]]:
            modest.pop()
        wish = wishes[modest[-1]]
        settling = [modest[-1]] if wish <= present else [kind for kind in on[wire] if not settled[kind]]
        rate = min(wish, present)
        for kind in settling:
            rates[kind], settled[kind] = rate, True
            count = counts[kind]
            for link in paths[kind]:
                rising[link] -= count
                left[link] -= rate * count
    return rates


def _from(source: str, leaving: Mapping[str, Sequence[int]], wires: Sequence[Wire]) -> dict[str, tuple[float, Path]]:
    """The same from one place to all others, by their names."""
    found: dict[str, tuple[float, Path]] = {}
    open_ends: list[tuple[float, Path, str]] = [(0.0, (), source)]
    while open_ends:
        seconds, path, place = heapq.heappop(open_ends)
        if place in found:
            continue
        found[place] = (seconds, path)
        for number in leaving.get(place, ()):
            wire = wires[number]
            if wire.target not in found:
                heapq.heappush(open_ends, (seconds + wire.round_trip, (*path, number), wire.target))
    return found
