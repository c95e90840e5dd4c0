"""Quality of links that nobody has measured, estimated from those that somebody has.

Round-trip time, from the surest to the least sure:

1. The way back. A round trip is the same from either end.
2. Triangulation over domains that both ends have been measured to: a round trip is hardly longer than the shortest
   detour and no shorter than the greatest difference of its ends' times to a third (S. M. Hotz, "Routing information
   organization to support scalable interdomain routing with heterogeneous path requirements", University of Southern
   California, 1994; the middle of both bounds is the N* heuristic).
3. Distance: time in fibre over the great circle, times how much longer paths are than that.

No round trip takes no time: a measured zero says nothing, and is left out.

Bandwidth is, in logarithms, what the sender gives plus what the receiver takes plus a share of the round-trip time;
least squares with shrinkage, so that an end of which little is known counts as an average one. On real links between
clouds see ``tests/benchmarks/links.py``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import asin, cos, radians, sin, sqrt

import numpy as np

EARTH_KM = 6371.0
"""Mean radius of the Earth."""

FIBRE_KM_PER_S = 204_000.0
"""Speed of light in fibre of refractive index 1.468 (ITU-T G.652)."""

DETOUR = 1.5
"""How much longer than the great circle a path is taken to be until links have been measured."""

SHRINKAGE = 1.0
"""Weight of "an average end", in measurements."""

Place = tuple[float, float]
"""Latitude and longitude in degrees."""


@dataclass(frozen=True, slots=True)
class Path:
    """A link with what was measured of it.

    Attributes:
        id: The link.
        source: Domain where it starts.
        destination: Domain where it ends.
        capacity: What was registered, bit/s; None where nothing was.
        bandwidth: What was measured, bit/s; None where nothing was.
        round_trip: What was measured, s; None where nothing was.
    """

    id: str
    source: str
    destination: str
    capacity: float | None = None
    bandwidth: float | None = None
    round_trip: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Quality of a link that was not measured; None where there is nothing to estimate it from."""

    bandwidth: float | None
    round_trip: float | None


def estimate(places: Mapping[str, Place], paths: Iterable[Path]) -> dict[str, Estimate]:
    """Estimates for every link that lacks a bandwidth or a round-trip time.

    Args:
        places: Where domains stand; those of which it is not known are left out.
        paths: All links of the graph.
    """
    measured = list(paths)
    times = _Times(places, measured)
    widths = _Widths(measured, times)
    return {
        path.id: Estimate(
            widths.of(path) if path.bandwidth is None else None,
            times.of(path.source, path.destination) if path.round_trip is None else None,
        )
        for path in measured
        if path.bandwidth is None or path.round_trip is None
    }


class _Times:
    """Round-trip times between domains, in seconds."""

    def __init__(self, places: Mapping[str, Place], paths: Iterable[Path]) -> None:
        self._places = places
        self._near: dict[str, dict[str, float]] = {}
        for path in paths:
            if path.round_trip is not None and path.round_trip > 0:
                for one, other in ((path.source, path.destination), (path.destination, path.source)):
                    known = self._near.setdefault(one, {})
                    known[other] = min(path.round_trip, known.get(other, path.round_trip))
        self._detour = self._median_detour()
        measured = [time for known in self._near.values() for time in known.values()]
        self.usual = float(np.median(measured)) if measured else 1.0

    def of(self, source: str, destination: str) -> float | None:
        """The time between two domains, measured either way or estimated; None where nothing is known."""
        source_times, destination_times = self._near.get(source, {}), self._near.get(destination, {})
        if destination in source_times:
            return source_times[destination]
        between = source_times.keys() & destination_times.keys()
        straight = self._in_fibre(source, destination)
        if between:
            longest = min(source_times[third] + destination_times[third] for third in between)
            shortest = max(
                [*(abs(source_times[third] - destination_times[third]) for third in between), straight or 0.0]
            )
            return (min(shortest, longest) + longest) / 2
        return None if straight is None else straight * self._detour

    def _median_detour(self) -> float:
        ratios = [
            time / straight
            for source, known in self._near.items()
            for destination, time in known.items()
            if (straight := self._in_fibre(source, destination))
        ]
        return float(np.median(ratios)) if ratios else DETOUR

    def _in_fibre(self, source: str, destination: str) -> float | None:
        """Time to the other end and back along the great circle; None where an end has no place."""
        if source not in self._places or destination not in self._places:
            return None
        return 2 * great_circle(self._places[source], self._places[destination]) / FIBRE_KM_PER_S


class _Widths:
    """Bandwidths between domains, in bit/s."""

    def __init__(self, paths: Iterable[Path], times: _Times) -> None:
        self._times = times
        measured = [path for path in paths if path.bandwidth]
        self._ends: dict[tuple[str, str], int] = {}
        for path in measured:
            self._ends.setdefault(("from", path.source), len(self._ends) + 2)
            self._ends.setdefault(("to", path.destination), len(self._ends) + 2)
        self._weights: np.ndarray | None = None
        if measured:
            rows = np.array([self._row(path) for path in measured])
            logs = np.log([path.bandwidth or 1.0 for path in measured])
            penalty = np.full(rows.shape[1], SHRINKAGE)
            penalty[0] = 1e-9  # the mean is not shrunk
            self._weights = np.linalg.solve(rows.T @ rows + np.diag(penalty), rows.T @ logs)

    def of(self, path: Path) -> float | None:
        """The bandwidth of a link, never more than its capacity; None where no link was measured."""
        if self._weights is None:
            return None
        width = float(np.exp(self._row(path) @ self._weights))
        return width if path.capacity is None else min(width, path.capacity)

    def _row(self, path: Path) -> np.ndarray:
        row = np.zeros(len(self._ends) + 2)
        row[0] = 1.0
        time = self._times.of(path.source, path.destination)
        # Relative to a usual time, so that a time of which nothing is known counts as that.
        row[1] = np.log(max(time, 1e-4) / self._times.usual) if time else 0.0
        for end in (("from", path.source), ("to", path.destination)):
            if end in self._ends:
                row[self._ends[end]] = 1.0
        return row


def great_circle(one: Place, other: Place) -> float:
    """Length of the great circle between two places, in km (haversine)."""
    (a, b), (c, d) = (map(radians, one), map(radians, other))
    half = sin((c - a) / 2) ** 2 + cos(a) * cos(c) * sin((d - b) / 2) ** 2
    return 2 * EARTH_KM * asin(min(1.0, sqrt(half)))
