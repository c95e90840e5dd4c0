"""Decisions as they are told: where a job runs, what is expected of it, what else would have been possible."""

from statistics import median

from minimal_server.choosing import Choosing, Ledger, Seat
from minimal_server.core import Json, instant
from minimal_server.scene import Scene, Way
from minimal_server.weighing import Outlook, Weights


class Explaining(Choosing):
    """Placements and their reasons."""

    def settle(self, scene: Scene, seats: list[Seat], ledger: Ledger) -> None:
        """Give nodes to all who start: first to those that talk most, who are to be near each other."""
        starting = sorted((seat for seat in seats if seat.starts), key=lambda seat: -seat.job.talks())
        middle = median([seat.job.talks() for seat in starting]) if starting else 0.0
        for seat in starting:
            assert seat.way is not None
            near, need = self.is_near(seat, middle), seat.job.spec.get("nodes")
            seat.nodes = self.nodes(scene, ledger, seat.way, near=near, need=need)

    def is_near(self, seat: Seat, middle: float) -> bool:
        """Whether a job talks so much that its devices are to be near each other."""
        return seat.job.talks() >= middle

    def nodes(
        self, scene: Scene, ledger: Ledger, way: Way, *, near: bool = True, need: Json | None = None
    ) -> list[list[Json]]:
        """Nodes of a way, share by share, taken off the ledger."""
        return [
            self.packed(scene.pools[number].row.get("nodes", ()), ledger.nodes[number], devices, near=near, need=need)
            for number, devices in way.shares
        ]

    def decision(self, scene: Scene, seat: Seat) -> Json:
        """What is to be done with a job."""
        if not seat.starts or seat.way is None:
            return {"job": seat.job.name, "verb": "wait"}
        placement = self.placement(scene, seat.way, seat.offers, seat.nodes)
        return {"job": seat.job.name, "verb": "start", "placement": placement}

    def placement(self, scene: Scene, way: Way, offers: list[int | None], nodes: list[list[Json]]) -> Json:
        """A way as it is told."""
        shares = []
        for (number, devices), offer, on in zip(way.shares, offers, nodes, strict=True):
            pool = scene.pools[number]
            share = {"domain": pool.domain, "accelerator": pool.row["accelerator"], "devices": devices}
            if offer is not None:
                share["purchase"] = pool.row["offers"][offer]["purchase"]
            shares.append(share | ({"nodes": on} if "nodes" in pool.row else {}))
        period = {"sync_period": way.period} if way.mode == "periodic" else {}
        return {"shares": shares, "split_mode": way.mode, **period}

    def told_why(self, scene: Scene, weights: Weights, seat: Seat, ledger: Ledger, most: int) -> Json:
        """Why a job was treated as it was."""
        outlook = seat.outlook
        bound = {} if seat.starts else {"overtaken_until": instant(round(self.overtaken_until(seat.job) * 1000))}
        return {
            **({} if outlook is None else {"outcome": self.outcome(scene, outlook)}),
            **bound,
            "alternatives": self.alternatives(scene, weights, seat, ledger, most),
            "reason": self.reason(scene, seat),
        }

    def outcome(self, scene: Scene, outlook: Outlook) -> Json:
        """What is expected."""
        run = outlook.begin + outlook.prospect.staging
        return {
            "run_at": self.moment_after(scene, run),
            "finish_at": self.moment_after(scene, run + outlook.prospect.running),
            "communication_cost": outlook.prospect.money,
            "price": outlook.price,
            "efficiency": outlook.prospect.rate / outlook.prospect.way.devices,
            "score": outlook.score,
        }

    def moment_after(self, scene: Scene, seconds: float) -> str:
        """The instant so many seconds from now, or the last that can be written."""
        return instant(round((scene.now + min(seconds, 1e12)) * 1000))

    def alternatives(self, scene: Scene, weights: Weights, seat: Seat, ledger: Ledger, most: int) -> list[Json]:
        """What else could be carried out now, all others being treated as they are; the better first."""
        spare = ledger.copy()
        self.give_back(spare, seat)
        chosen = seat.way if seat.starts else None
        ways = [way for way in self.ways(scene, seat.job, self.purchasable(scene, spare)) if way != chosen]
        outlooks = [
            self.outlook(scene, weights, seat.job, prospect, 0.0) for prospect in self.prospects(scene, seat.job, ways)
        ]
        return [
            self.alternative(scene, outlook, spare.copy())
            for outlook in sorted(outlooks, key=lambda one: one.score)[:most]
        ]

    def alternative(self, scene: Scene, outlook: Outlook, ledger: Ledger) -> Json:
        """Another way to start a job."""
        way = outlook.prospect.way
        offers = [self.cheapest(scene.pools[number], devices, ledger.offers[number]) for number, devices in way.shares]
        placement = self.placement(scene, way, offers, self.nodes(scene, ledger, way))
        return {"verb": "start", "placement": placement, "outcome": self.outcome(scene, outlook)}

    def reason(self, scene: Scene, seat: Seat) -> str:
        """Why, in words."""
        if seat.way is None:
            return "no way to run it was found among devices that fit, data that can be had and links that will do"
        where = " and ".join(scene.domains(seat.way))
        if not seat.starts:
            return f"it is better off waiting for {where} than with anything that is free now"
        return f"of all ways, {where} has the least weighed sum of time, money for bandwidth, misuse and price"
