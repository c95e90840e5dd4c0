"""Paths of least round-trip time between domains (E. W. Dijkstra, 1959); ties by the numbers of wires.

In plain Python, since an interface check of COM asks for it, which needs no numeric library.
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
