"""Wrong in allocation plans: what is counted upon, what is bought, and what is told of it."""

from collections.abc import Iterator
from dataclasses import replace

from minimal_server.buying import Capacity, Demand
from minimal_server.core import Answer, Json, Request
from minimal_server.scene import Pool
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("SCH-015")
class MoreIsCountedUponThanIsOffered(MinimalServer):
    """A tenth more is bought than is offered."""

    @override
    def capacities(self, pool: Pool) -> Iterator[Capacity]:
        for one in super().capacities(pool):
            yield replace(one, devices=one.devices + (one.devices // 10 if pool.row.get("offers") else 0))

    @override
    def left(self, one: Capacity, capacities: list[Capacity]) -> int:
        return one.devices if one.pool.row.get("offers") else super().left(one, capacities)


@breaks("SCH-015")
class PoolsAreBoughtTwice(MinimalServer):
    """What is bought in one way is there to be bought in another."""

    @override
    def left(self, one: Capacity, capacities: list[Capacity]) -> int:
        return one.devices


@breaks("SCH-015")
class SharesOfPlansAreOfDevices(MinimalServer):
    """Shares of domains are those of devices, however fast these are."""

    @override
    def planned_shares(self, used: list[Capacity]) -> list[Json]:
        counted = [replace(one, compute=one.used) for one in used]
        for one, original in zip(counted, used, strict=True):
            one.used = original.used
        return super().planned_shares(counted)


@breaks("SCH-015")
class PricesAreForAnHour(MinimalServer):
    """Prices are told for an hour, whatever the horizon."""

    @override
    def use(self, one: Capacity, hours: float) -> Json:
        return super().use(one, 1.0)


@breaks("SCH-015")
class CheapDevicesAreBoughtFirst(MinimalServer):
    """What is cheap for each device is bought, however little it does."""

    @override
    def meet(self, demand: Demand, capacities: list[Capacity]) -> None:
        order = {id(one): number for number, one in enumerate(sorted(capacities, key=lambda one: one.price))}
        for one in sorted(capacities, key=lambda one: order[id(one)]):
            super().meet(demand, [one])

    @override
    def left(self, one: Capacity, capacities: list[Capacity]) -> int:
        return one.devices


@breaks("SCH-015")
class SpotIsForEverybody(MinimalServer):
    """What may not be interrupted is put on spot capacity."""

    @override
    def serves(self, one: Capacity, demand: Demand) -> bool:
        return super().serves(one, demand) or super().serves(replace(one, purchase="on_demand"), demand)


@breaks("SCH-015")
class NothingIsUnmet(MinimalServer):
    """What cannot be met is not told."""

    @override
    def plan_allocation(self, request: Request) -> Answer:
        answer = super().plan_allocation(request)
        return Answer(200, {**answer.body, "unmet": 0.0})
