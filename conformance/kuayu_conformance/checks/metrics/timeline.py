"""What the stream of the graph showed when, and how the seconds of the simulated world lie in time."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from kuayu_conformance.checks.kit.graphs import KINDS, PARTS, gone_of, graph_of
from kuayu_conformance.streams import StreamEvent

ABSENT = ""
"""Shown state of what is not in the graph."""


class Clock:
    """Seconds of the world as Unix time; the world waits where the suite could not keep up."""

    def __init__(self, begin: float) -> None:
        """The world begins at ``begin``, Unix time in seconds."""
        self._begin = begin
        self._since: list[float] = [float("-inf")]
        self._waited: list[float] = [0.0]

    def wait(self, second: float, seconds: float) -> None:
        """From a second of the world on everything is later by so many seconds more."""
        self._since.append(second)
        self._waited.append(self._waited[-1] + seconds)

    def at(self, second: float) -> float:
        """Unix time of a second of the world."""
        return self._begin + second + self._waited[bisect_right(self._since, second) - 1]

    @property
    def waited(self) -> float:
        """Seconds that the world waited in all."""
        return self._waited[-1]


class Track:
    """What was shown of one vertex: values, each from an instant on."""

    def __init__(self, instant: float, value: Any) -> None:
        """It begins with a value."""
        self.instants = [instant]
        self.values = [value]

    def add(self, instant: float, value: Any) -> None:
        """From ``instant`` on another value is shown, if it is another."""
        if value != self.values[-1]:
            self.instants.append(instant)
            self.values.append(value)

    def value(self, instant: float) -> Any:
        """What was shown at an instant; the first value before there was any."""
        return self.values[max(0, bisect_right(self.instants, instant) - 1)]

    def spans(self, end: float) -> Iterable[tuple[float, float, Any]]:
        """From when until when each value was shown."""
        for (since, value), (until, _) in pairwise([*zip(self.instants, self.values, strict=True), (end, None)]):
            yield since, until, value


class Timeline:
    """States of nodes and links and reachability of domains, as the stream showed them."""

    def __init__(self, snapshot: Any, events: Iterable[StreamEvent]) -> None:
        """Begin with a snapshot and take the events of the stream from its revision on."""
        self._tracks: dict[str, dict[str, Track]] = {part: {} for part in PARTS}
        self.end = 0.0
        self._take(float("-inf"), snapshot)
        for event in events:
            self._take(event.received_at, event.json)
            self.end = event.received_at

    def _take(self, instant: float, body: Any) -> None:
        for part, vertices in graph_of(body).items():
            for name, vertex in vertices.items():
                self._show(instant, part, name, _plain(vertex.get("reachable" if part == "domains" else "state")))
        for kind, name in gone_of(body):
            if kind in KINDS:
                self._show(instant, KINDS[kind], name, ABSENT)

    def _show(self, instant: float, part: str, name: str, value: Any) -> None:
        track = self._tracks[part].get(name)
        if track is None:
            track = self._tracks[part][name] = Track(float("-inf"), ABSENT)
        track.add(instant, value)

    def track(self, part: str, name: str) -> Track:
        """What was shown of a vertex; nothing at all where it never was."""
        return self._tracks[part].get(name) or Track(float("-inf"), ABSENT)

    def first(self, part: str, name: str, since: float, wanted: Callable[[Any], bool]) -> float | None:
        """When something wanted came to be shown at or after an instant; None where it never did."""
        track = self.track(part, name)
        shown = zip(track.instants, track.values, strict=True)
        return next((place for place, value in shown if place >= since and wanted(value)), None)


def _plain(value: Any) -> Any:
    """A state or a truth value as it is; whatever else a target may send, in words."""
    return value if isinstance(value, str | bool) else repr(value)
