"""Links and streams side by side, destination by destination, so that all destinations are planned in one go."""

from dataclasses import dataclass

import numpy as np

from kuayu.resilience.transfers.bandwidth import MEDIAN, Forecast
from kuayu.resilience.transfers.scene import Flags, Floats, Scene, Whole


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Numbers instead of names; D destinations, at most S sources to each, J streams.

    Attributes:
        destinations: Names.
        links: Numbers of links, (D, S); -1 where there is none.
        usable: Whether there is a link and it is up, (D, S).
        rates: Quantiles of what they carry, bytes a second, (D, S, horizons, quantiles); nought where not usable.
        latency_s: Seconds of a request, (D, S).
        hazards: Outages a second, (D, S); nought where not usable.
        changes: Outages and falls by half a second, (D, S); nought where not usable.
        of: Destination of each stream, (J,).
        copies: Whether a stream's data lie at the source of a link that is usable, (J, S).
        rooms: Bytes, (D,).
        need: Bytes a second that all streams of a destination take, (D,).
    """

    destinations: tuple[str, ...]
    links: Whole
    usable: Flags
    rates: Floats
    latency_s: Floats
    hazards: Floats
    changes: Floats
    of: Whole
    copies: Flags
    rooms: Floats
    need: Floats

    @property
    def expected(self) -> Floats:
        """Median of what links carry over the middle horizon, bytes a second, (D, S)."""
        middle: Floats = self.rates[:, :, self.rates.shape[2] // 2, MEDIAN]
        return middle


def layout(scene: Scene, ahead: Forecast) -> Layout:
    """Lay a scene out."""
    names = tuple(dict.fromkeys(stream.destination for stream in scene.streams))
    number = {name: place for place, name in enumerate(names)}
    into: list[list[int]] = [[] for _ in names]
    for place, link in enumerate(scene.links):
        if link.destination in number:
            into[number[link.destination]].append(place)
    width = max((len(each) for each in into), default=0) or 1
    links = np.full((len(names), width), -1, dtype=np.int64)
    for row, each in enumerate(into):
        links[row, : len(each)] = each
    of = np.array([number[stream.destination] for stream in scene.streams], dtype=np.int64)
    need = np.zeros(len(names))
    np.add.at(need, of, [stream.step_bytes / stream.step_s for stream in scene.streams])
    if not scene.links:
        empty = np.zeros((len(names), width))
        usable = empty > 0.0
        rates = np.zeros((len(names), width, *ahead.rates.shape[1:]))
        latency, hazards, changes = empty, empty, empty
    else:
        usable = (links >= 0) & ahead.up[links]
        rates = np.where(usable[:, :, None, None], ahead.rates[links], 0.0)
        latency = np.where(links >= 0, np.array([link.latency_s for link in scene.links])[links], 0.0)
        hazards = np.where(usable, ahead.hazards[links], 0.0)
        changes = np.where(usable, ahead.changes[links], 0.0)
    copies = np.zeros((len(scene.streams), width), dtype=bool)
    for row, stream in enumerate(scene.streams):
        for column, place in enumerate(into[of[row]]):
            copies[row, column] = scene.links[place].source in stream.sources
    copies &= usable[of] if len(of) else copies
    rooms = np.array([float(scene.rooms.get(name, 0.0)) for name in names])
    return Layout(names, links, usable, rates, latency, hazards, changes, of, copies, rooms, need)
