"""States of links, by the clause on the quality of links."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kuayu.perception.graph.changes import Name, Vertex
from kuayu.perception.graph.vertices import LINK, number, written

if TYPE_CHECKING:
    from kuayu_schemas import documents

MEASURES = ("inter_domain_bandwidth", "round_trip_time", "packet_loss")
"""Measures of a link that the graph shows; bit/s, s, share."""

LOST_ALL = 1.0
LOST_MUCH = 0.1
HALF = 0.5

USUAL_SECONDS = 3600.0
"""How long a link has to offer little until that is what it usually offers."""

USUAL_FROM = 3
"""Measurements from which on there is something usual."""

NOTICEABLE = 0.05
"""By which share a value has to move to be shown at once."""

PATIENCE = 5.0
"""Seconds after which smaller moves are shown too."""

Quality = tuple[float | None, float | None, float | None]
"""A value or None for each of MEASURES."""

NOTHING: Quality = (None, None, None)


@dataclass(slots=True)
class _Link:
    source: str
    destination: str
    capacity: float | None
    measured: Quality = NOTHING
    estimated: Quality = NOTHING
    usual: float = 0.0
    count: int = 0
    at: float = float("-inf")
    shown: Mapping[str, Any] = field(default_factory=dict)
    shown_at: float = float("-inf")


class LinkTracker:
    """Links with what is known of their quality. Whatever changes is noted until :meth:`changed` asks for it."""

    def __init__(self) -> None:
        self._links: dict[str, _Link] = {}
        self._touched: dict[str, None] = {}
        self._waiting: set[str] = set()

    def put(self, name: str, source: str, destination: str, capacity: float | None) -> None:
        """A link is registered, or its registration has changed; its capacity in bit/s."""
        link = self._links.get(name)
        if link is None:
            self._links[name] = _Link(source, destination, capacity)
        else:
            link.source, link.destination, link.capacity = source, destination, capacity
        self._touched[name] = None

    def drop(self, name: str) -> None:
        """A link is gone."""
        self._links.pop(name, None)
        self._waiting.discard(name)
        self._touched[name] = None

    def measure(self, name: str, measured: Quality, observed: float, now: float) -> None:
        """The newest values of a registered link that live.

        Args:
            name: The link.
            measured: The values.
            observed: When the newest bandwidth was observed, in seconds since 1970.
            now: Seconds, on any clock that does not go back.
        """
        link = self._links[name]
        if measured[0] is not None and observed > link.at:
            _learn(link, measured[0], observed)
        link.measured = measured
        self._look(name, link, now)

    def estimate(self, name: str, bandwidth: float | None, round_trip: float | None, now: float) -> None:
        """What a registered link is thought to offer where nothing is measured; None where nothing can be said."""
        link = self._links[name]
        link.estimated = (bandwidth, round_trip, None)
        self._look(name, link, now)

    def measured(self) -> dict[str, Quality]:
        """Links of which something is measured."""
        return {name: link.measured for name, link in self._links.items() if link.measured != NOTHING}

    def changed(self, now: float) -> tuple[dict[Name, Vertex], list[Name]]:
        """What has changed since the last call: vertices as they stand now, and names of those that are gone."""
        for name in [name for name in self._waiting if now >= self._links[name].shown_at + PATIENCE]:
            self._touched[name] = None
        touched, self._touched = self._touched, {}
        come: dict[Name, Vertex] = {}
        for name in touched:
            link = self._links.get(name)
            if link is not None:
                link.shown, link.shown_at = _vertex(name, link), now
                self._waiting.discard(name)
                come[LINK, name] = Vertex(written(link.shown), (link.source, link.destination))
        return come, [(LINK, name) for name in touched if name not in self._links]

    def _look(self, name: str, link: _Link, now: float) -> None:
        """Note what has to be shown: what matters at once, small moves in time."""
        present = _vertex(name, link)
        if present == link.shown:
            self._waiting.discard(name)
        elif _differ(present, link.shown) or now >= link.shown_at + PATIENCE:
            self._touched[name] = None
        else:
            self._waiting.add(name)


def _learn(link: _Link, bandwidth: float, observed: float) -> None:
    """Follow what a link usually offers. Little counts slowly, so that a slump does not soon look usual."""
    slow = 1.0 - math.exp(-(observed - link.at) / USUAL_SECONDS) if link.count else 1.0
    quick = 1.0 / (link.count + 1)
    low = link.count >= USUAL_FROM and bandwidth < HALF * link.usual
    link.usual += (slow if low else max(slow, quick)) * (bandwidth - link.usual)
    link.count += 1
    link.at = observed


def _state(link: _Link) -> "documents.LinkState":
    bandwidth, _, loss = link.measured
    if link.measured == NOTHING:
        return "unknown"
    if loss is not None and loss >= LOST_ALL:
        return "down"
    if loss is not None and loss >= LOST_MUCH:
        return "degraded"
    usual = [HALF * link.usual] if link.count > USUAL_FROM else []
    least = max([*usual, HALF * (link.capacity or 0.0)])
    return "degraded" if bandwidth is not None and bandwidth < least else "up"


def _vertex(name: str, link: _Link) -> "documents.LinkVertex":
    """A link as it is shown."""
    quality = link.measured
    provenance: documents.Provenance = "measured"
    if quality == NOTHING:
        quality, provenance = link.estimated, "estimated" if link.estimated != NOTHING else "unknown"
    vertex: documents.LinkVertex = {
        "destination": link.destination,
        "id": name,
        "provenance": provenance,
        "source": link.source,
        "state": _state(link),
    }
    bandwidth, round_trip, loss = quality
    if bandwidth is not None:
        vertex["inter_domain_bandwidth"] = number(bandwidth)
    if round_trip is not None:
        vertex["round_trip_time"] = number(round_trip)
    if loss is not None:
        vertex["packet_loss"] = number(loss)
    return vertex


def _differ(present: Mapping[str, Any], shown: Mapping[str, Any]) -> bool:
    """Whether two vertices of a link differ by more than small moves of their values."""
    if present.keys() != shown.keys():
        return True
    return any(
        abs(value - shown[name]) > NOTICEABLE * abs(shown[name]) if name in MEASURES else value != shown[name]
        for name, value in present.items()
    )
