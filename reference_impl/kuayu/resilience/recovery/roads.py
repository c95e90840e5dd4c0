"""What copies travel over: stores, links as they are predicted, and what is planned to share them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kuayu.resilience.recovery.scene import BITS, LONGEST, SHORTEST, reckoned
from kuayu.resilience.transfers.bandwidth import HORIZONS, forecast
from kuayu.resilience.transfers.scene import Link

Plain = Mapping[str, Any]
Road = tuple[str, str]
"""Domain of a store and domain that reads; the store alone where both are the same."""

NEWEST = 256
"""Measurements of a link that are looked at; a recovery is over long before older ones matter."""

MEASUREMENTS = 1_000_000
"""Most of them over all links."""

QUANTILE = 2
"""Place of the quantile of links that is reckoned with, a quarter: a recovery that is late costs more than one that is
early gains."""


@dataclass(frozen=True, slots=True)
class Way:
    """A link that is up.

    Attributes:
        latency_s: Seconds that it takes beside the bytes.
        rates: Bytes a second that it carries by a cautious forecast, over each horizon.
    """

    latency_s: float
    rates: tuple[float, ...]


@dataclass(slots=True)
class Load:
    """Transfers that are planned over one store or link.

    Attributes:
        count: How many.
        bytes: Of all.
    """

    count: int = 0
    bytes: float = 0.0

    def beside(self, size: float) -> float:
        """Most bytes of theirs that go while a transfer of so many goes, where all share evenly."""
        return min(self.bytes, self.count * size)


@dataclass(slots=True)
class Roads:
    """Stores and links, and what is planned over them.

    Attributes:
        stores: Bytes a second of each.
        links: By source, then by target; only those that are up.
        interval_s: Seconds between measurements.
        read: Load of each store.
        carried: Load of each link.
    """

    stores: Mapping[str, float]
    links: Mapping[str, Mapping[str, Way]]
    interval_s: float
    read: defaultdict[str, Load] = field(default_factory=lambda: defaultdict(Load))
    carried: defaultdict[Road, Load] = field(default_factory=lambda: defaultdict(Load))

    def seconds(self, road: Road, size: float) -> tuple[float, float]:
        """How long so many bytes take beside what is planned, and how much longer that takes on the whole for them."""
        source, target = road
        store, beside = self.stores[source], self.read[source].beside(size)
        own_s, others_s = (size + beside) / store, beside / store
        if source == target:
            return own_s, others_s
        way, beside = self.links[source][target], self.carried[road].beside(size)
        rate = self._rate(way, size)
        return way.latency_s + max(own_s, (size + beside) / rate), max(others_s, beside / rate)

    def plan(self, road: Road, size: float, sign: int = 1) -> None:
        """Reckon with a transfer, or no more with it where the sign is negative."""
        source, target = road
        for load in (self.read[source], *([self.carried[road]] if source != target else [])):
            load.count += sign
            load.bytes = load.bytes + sign * size if load.count else 0.0

    def _rate(self, way: Way, size: float) -> float:
        """Mean over the shortest horizon in which so many bytes are through."""
        for rate, horizon in zip(way.rates, HORIZONS, strict=True):
            if size / rate <= horizon * self.interval_s:
                return rate
        return way.rates[-1]


def roads(request: Plain, sources: set[str]) -> Roads:
    """What a checked request says of stores, and of links that leave these domains."""
    leaving = [link for link in request["links"] if link["source"] in sources and link.get("up", True)]
    return Roads(
        {store["domain"]: reckoned(store["bandwidth"] / BITS) for store in request["stores"]},
        _links(leaving, request["interval"]),
        min(request["interval"], LONGEST),
    )


def _links(leaving: Sequence[Plain], interval_s: float) -> Mapping[str, Mapping[str, Way]]:
    found: dict[str, dict[str, Way]] = defaultdict(dict)
    if not leaving:
        return found
    newest = min(NEWEST, max(1, MEASUREMENTS // len(leaving)))
    measured = tuple(
        Link(link["source"], link["target"], _measured(link["bandwidths"][-newest:]), link["latency"])
        for link in leaving
    )
    ahead = forecast(measured, reckoned(interval_s))
    rates = np.clip(ahead.rates[:, :, QUANTILE], SHORTEST, LONGEST).tolist()
    for link, each in zip(leaving, rates, strict=True):
        found[link["source"]][link["target"]] = Way(min(link["latency"], LONGEST), tuple(each))
    return found


def _measured(bandwidths: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Bytes a second; out is out, and what carries anything at all carries a little."""
    rates = np.array(bandwidths, dtype=np.float64) / BITS
    return np.where(rates > 0.0, np.clip(rates, SHORTEST, LONGEST), 0.0)
