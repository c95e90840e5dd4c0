"""Allocation plans: demand is met by the cheapest capacity that it may use, and domains share as it falls."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from minimal_server.core import Answer, Json, Request
from minimal_server.fronts import Fronts
from minimal_server.scene import Pool, Scene

METHOD_OF_PLANS = {"name": "minimal server: cheapest first", "version": "1"}


@dataclass
class Capacity:
    """Devices of a pool that can be bought in one way, and what is used of them.

    Attributes:
        pool: The pool.
        purchase: The way.
        price: Money for a device and an hour that gets something done.
        paid: Money for a device and an hour.
        devices: How many there are.
        used: How many are used, before they are made whole.
        compute: Reference devices that they are used as.
    """

    pool: Pool
    purchase: str
    price: float
    paid: float
    devices: int
    used: float = 0.0
    compute: float = 0.0


@dataclass
class Demand:
    """Reference devices that are needed.

    Attributes:
        devices: How many.
        profile: For which task profile; None for any.
        domain: Where; None for anywhere.
        interruptible: Whether they may be taken away.
        unmet: What of it is left.
    """

    devices: float
    profile: str | None
    domain: str | None
    interruptible: bool
    unmet: float = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is met yet."""
        self.unmet = self.devices


class Buying(Fronts):
    """How much of which capacity to use."""

    def plan_allocation(self, request: Request) -> Answer:
        """A plan for a horizon."""
        body = self.body(request, "AllocationPlanRequest")
        self.check_scheduling(body)
        scene, hours = self.scene(body["state"]), body["horizon"] / 3600
        capacities = [one for pool in scene.pools for one in self.capacities(pool)]
        demands = sorted(self.demands(scene, body.get("forecast", ())), key=self.freedom)
        for demand in demands:
            self.meet(demand, capacities)
        used = [one for one in capacities if one.used > 0]
        uses = [self.use(one, hours) for one in used]
        return Answer(
            200,
            {
                "revision": self.echoed(body["state"]),
                "method": METHOD_OF_PLANS,
                "uses": uses,
                "shares": self.planned_shares(used),
                "unmet": math.fsum(demand.unmet for demand in demands),
                "price": math.fsum(use["price"] for use in uses),
            },
        )

    def capacities(self, pool: Pool) -> Iterator[Capacity]:
        """What can be used of a pool."""
        if not pool.reachable:
            return
        offers = pool.row.get("offers")
        if not offers:
            yield Capacity(pool, "on_demand", 0.0, 0.0, pool.free)
        for number, offer in enumerate(offers or ()):
            devices = min(offer["devices"], pool.free)
            yield Capacity(pool, offer["purchase"], self.rate_of_offer(offer), self.paid(pool, number), devices)

    def demands(self, scene: Scene, forecast: list[Json]) -> Iterator[Demand]:
        """What is needed: by jobs that wait, and what is forecast, so much that it is exceeded once in ten cases."""
        for job in scene.waiting:
            yield Demand(job.used * job.requested, job.spec.get("task_profile"), None, interruptible=False)
        for row in forecast:
            headroom = max(0.0, row["high"] - row["expected"])
            for domain, part in ((row["domain"], 1 - row["movable"]), (None, row["movable"])):
                yield Demand(headroom * part, row["profile"], domain, interruptible=False)
                for interruptible in (False, True):
                    share = row["interruptible"] if interruptible else 1 - row["interruptible"]
                    yield Demand(row["expected"] * part * share, row["profile"], domain, interruptible=interruptible)

    def freedom(self, demand: Demand) -> tuple[bool, bool]:
        """What has the least choice comes first."""
        return demand.domain is None, demand.interruptible

    def meet(self, demand: Demand, capacities: list[Capacity]) -> None:
        """Use what is cheapest for each reference device."""
        able = [one for one in capacities if self.serves(one, demand)]
        for one in sorted(able, key=lambda one: one.price / self.for_profile(one, demand)):
            index = self.for_profile(one, demand)
            taken = min(demand.unmet, max(0.0, self.left(one, capacities) - one.used) * index)
            if taken > 1e-9:
                one.used += taken / index
                one.compute += taken
                demand.unmet = max(0.0, demand.unmet - taken)

    def left(self, one: Capacity, capacities: list[Capacity]) -> int:
        """Devices that may be bought in a way, when the pool's others are as they are."""
        beside = sum(self.in_devices(other) for other in capacities if other.pool is one.pool and other is not one)
        return min(one.devices, one.pool.free - beside)

    def serves(self, one: Capacity, demand: Demand) -> bool:
        """Whether capacity may be used for a demand."""
        here = demand.domain is None or demand.domain == one.pool.domain
        stays = demand.interruptible or one.purchase != "spot"
        return here and stays and self.for_profile(one, demand) > 0

    def for_profile(self, one: Capacity, demand: Demand) -> float:
        """Compute index of capacity for a demand."""
        if demand.profile is None:
            return math.fsum(one.pool.indices.values()) / len(one.pool.indices)
        return one.pool.indices.get(demand.profile, 0.0)

    def use(self, one: Capacity, hours: float) -> Json:
        """Use of capacity as it is told, in whole devices."""
        devices = self.in_devices(one)
        return {
            "domain": one.pool.domain,
            "accelerator": one.pool.row["accelerator"],
            "purchase": one.purchase,
            "devices": devices,
            "price": devices * one.paid * hours,
        }

    def in_devices(self, one: Capacity) -> int:
        """Whole devices that are used."""
        return min(one.devices, math.ceil(one.used - 1e-9))

    def planned_shares(self, used: list[Capacity]) -> list[Json]:
        """Shares of domains in what is used, by compute index."""
        compute: dict[str, float] = {}
        for one in used:
            weighted = self.in_devices(one) * one.compute / one.used
            compute[one.pool.domain] = compute.get(one.pool.domain, 0.0) + weighted
        total = math.fsum(compute.values())
        return [{"domain": domain, "share": min(1.0, part / total)} for domain, part in compute.items()]
