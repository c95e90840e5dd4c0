"""What a way comes to: its end, its cost, and one figure of both."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minimal_server.core import Json
from minimal_server.packing import Packing
from minimal_server.scene import Job, Pool, Scene
from minimal_server.speeds import Prospect

Weights = Mapping[str, float]

Offers = Sequence[int | None]
"""Numbers of offers, share by share; None for pools without."""

OWN_WEIGHTS = {"period": 1.0, "communication": 1.0, "utilisation": 0.1, "price": 0.01}
"""What counts where a request does not say."""
SECONDS_OF_MONEY = 100.0
"""Seconds that money for bandwidth is worth where both count alike."""
RESTARTING = 1.0
"""Hours that are lost when capacity is taken away."""


@dataclass(frozen=True)
class Outlook:
    """A prospect from a moment on.

    Attributes:
        prospect: It.
        begin: Seconds from now until devices are given.
        price: Money for devices.
        score: What the weights make of it; less is better.
    """

    prospect: Prospect
    begin: float
    price: float
    score: float

    @property
    def end(self) -> float:
        """Seconds from now to the end."""
        return self.begin + self.prospect.lasting


class Weighing(Packing):
    """Objectives."""

    def outlook(
        self, scene: Scene, weights: Weights, job: Job, prospect: Prospect, begin: float, offers: Offers = ()
    ) -> Outlook:
        """What a prospect comes to, with what was bought for it, or with what would be."""
        shares = prospect.way.shares
        bought = offers or [self.cheapest(scene.pools[number], devices) for number, devices in shares]
        hourly = sum(
            devices * self.paid(scene.pools[number], offer)
            for (number, devices), offer in zip(shares, bought, strict=True)
        )
        price = hourly * prospect.lasting / 3600
        objectives = {
            "period": begin + prospect.lasting,
            "communication": SECONDS_OF_MONEY * prospect.money,
            "utilisation": prospect.running * self.lacking(scene, job, prospect.way),
            "price": price,
        }
        return Outlook(prospect, begin, price, self.score(weights, objectives))

    def weights(self, body: Json) -> Weights:
        """What counts."""
        weights: Weights = body.get("weights", OWN_WEIGHTS)
        return weights if any(weights.values()) else OWN_WEIGHTS

    def score(self, weights: Weights, objectives: Mapping[str, float]) -> float:
        """Mean of the objectives by weight."""
        return math.fsum(weights.get(name, 0.0) * value for name, value in objectives.items()) / sum(weights.values())

    def cheapest(self, pool: Pool, devices: int, left: Sequence[int] | None = None) -> int | None:
        """Number of the cheapest offer of a pool that has so many devices, or has them left; None where none has."""
        offers = pool.row.get("offers", ())
        there = [offer["devices"] for offer in offers] if left is None else left
        able = [place for place, count in enumerate(there) if count >= devices]
        return min(able, key=lambda place: self.rate_of_offer(offers[place]), default=None)

    def paid(self, pool: Pool, offer: int | None) -> float:
        """Money for a device and an hour; what is reserved is paid for in any case."""
        row = {"purchase": "reserved"} if offer is None else pool.row["offers"][offer]
        return 0.0 if row["purchase"] == "reserved" else float(row["price"])

    def rate_of_offer(self, offer: Json) -> float:
        """Money for a device and an hour that gets something done; what is reserved is paid for in any case."""
        if offer["purchase"] == "reserved":
            return 0.0
        return float(offer["price"] * (1 + offer.get("interruption_rate", 0.0) * RESTARTING))
