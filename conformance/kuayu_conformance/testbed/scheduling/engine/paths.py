"""What goes over links, in plain Python: paths of least round-trip time, and max-min fair rates.

An interface check of COM asks for paths, which needs no numeric library; so none is imported here.

1. **Paths.** Those of least round-trip time between domains (E. W. Dijkstra, 1959); ties by the numbers of links.
2. **Rates.** Flows that share links get max-min fair rates by progressive filling (Bertsekas and Gallager, "Data
   Networks", 2nd edition, 1992, section 6.5.2).
"""

import heapq
from collections.abc import Mapping, Sequence

from kuayu_conformance.testbed.scheduling.values import Link

Path = tuple[int, ...]


def shortest_paths(sites: Sequence[str], links: Sequence[Link]) -> dict[tuple[int, int], tuple[float, Path]]:
    """Seconds of the round trip, and numbers of the links, by source and target, numbers of domains.

    A domain is no seconds and no links from itself; where there is no way there is no entry.
    """
    leaving: dict[str, list[int]] = {}
    for number, link in enumerate(links):
        leaving.setdefault(link.source, []).append(number)
    paths: dict[tuple[int, int], tuple[float, Path]] = {}
    for source, name in enumerate(sites):
        reached = _from(name, leaving, links)
        for target, other in enumerate(sites):
            if other in reached:
                paths[source, target] = reached[other]
    return paths


def fair_rates(offered: Mapping[int, float], paths: Sequence[tuple[int, ...]], wishes: Sequence[float]) -> list[float]:
    """Rates by progressive filling: all rise together, each until its wish is met or a link of its path is full.

    Bertsekas and Gallager, "Data Networks", 2nd edition, 1992, section 6.5.2; it is what flows of long-lived TCP
    approach on equal terms.

    Args:
        offered: Bits a second by the number of a link; all links of all paths.
        paths: Links of each flow, at least one, none twice.
        wishes: Bits a second beyond which a flow does not rise, or infinite.
    """
    alike: dict[tuple[tuple[int, ...], float], int] = {}
    for kind in zip(paths, wishes, strict=True):
        alike[kind] = alike.get(kind, 0) + 1
    kinds = list(alike)
    rates = rates_of_kinds(offered, [path for path, _ in kinds], [wish for _, wish in kinds], list(alike.values()))
    by_kind = dict(zip(kinds, rates, strict=True))
    return [by_kind[kind] for kind in zip(paths, wishes, strict=True)]


def rates_of_kinds(
    offered: Mapping[int, float],
    paths: Sequence[tuple[int, ...]],
    wishes: Sequence[float],
    counts: Sequence[int],
) -> list[float]:
    """Rate of one flow of each kind: flows of the same path and wish get the same.

    The level at which a link is full only rises while others settle, so that a heap of levels that are out of date
    finds the next one: what it shows is looked at again before it counts.

    Args:
        offered: Bits a second by the number of a link; all links of all paths.
        paths: Links of a kind, at least one, none twice.
        wishes: Bits a second beyond which a flow of a kind does not rise, or infinite.
        counts: How many flows are of a kind.
    """
    on: dict[int, list[int]] = {}
    rising: dict[int, int] = {}
    for kind, path in enumerate(paths):
        for link in path:
            if link in on:
                on[link].append(kind)
                rising[link] += counts[kind]
            else:
                on[link] = [kind]
                rising[link] = counts[kind]
    left = {link: offered[link] for link in on}
    levels = [(left[link] / rising[link], link) for link in on]
    heapq.heapify(levels)
    modest = sorted(range(len(paths)), key=lambda kind: -wishes[kind])
    rates, settled = [0.0] * len(paths), [False] * len(paths)
    while levels:
        level, link = levels[0]
        if not rising[link]:
            heapq.heappop(levels)
            continue
        present = max(left[link], 0.0) / rising[link]
        if present > level:
            heapq.heapreplace(levels, (present, link))
            continue
        while settled[modest[-1]]:
            modest.pop()
        wish = wishes[modest[-1]]
        settling = [modest[-1]] if wish <= present else [kind for kind in on[link] if not settled[kind]]
        rate = min(wish, present)
        for kind in settling:
            rates[kind], settled[kind] = rate, True
            count = counts[kind]
            for number in paths[kind]:
                rising[number] -= count
                left[number] -= rate * count
    return rates


def _from(source: str, leaving: Mapping[str, Sequence[int]], links: Sequence[Link]) -> dict[str, tuple[float, Path]]:
    """The same from one place to all others, by their names."""
    reached: dict[str, tuple[float, Path]] = {}
    open_ends: list[tuple[float, Path, str]] = [(0.0, (), source)]
    while open_ends:
        seconds, path, place = heapq.heappop(open_ends)
        if place in reached:
            continue
        reached[place] = (seconds, path)
        for number in leaving.get(place, ()):
            link = links[number]
            if link.target not in reached:
                heapq.heappush(open_ends, (seconds + link.round_trip, (*path, number), link.target))
    return reached
