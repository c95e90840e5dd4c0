"""States of scheduling that checks make up.

Whatever is drawn comes from the episode's random numbers, names and clock included; only sums, products and square
roots are taken of it, so that a run can be made again on any machine.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import permutations
from math import hypot
from random import Random
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.checks.kit.decisions import present
from kuayu_conformance.episode import Episode, instant

if TYPE_CHECKING:
    from kuayu_schemas import documents

PLACEMENTS, FRONTS = "/v1/placements", "/v1/pareto-fronts"
PLANS, ROUTES = "/v1/allocation-plans", "/v1/routes"

GIGABIT, GIGABYTE = 1e9, 1e9
FARTHEST = 0.04
"""Seconds of a round trip from one corner of the map to the opposite one, less or more by the shape of the map."""
PRICES: "Mapping[documents.PurchaseOption, float]" = {"reserved": 0.0, "on_demand": 1.0, "spot": 0.4}
"""Prices of the ways of buying over that on demand."""

NAME = re.compile(r'"([a-h][0-9a-f]{10})"')
"""A name that a :class:`StateBuilder` gives, in JSON."""


def unnamed(state: "documents.SchedulingState") -> str:
    """A state as JSON, names numbered as they come: the same for all states that differ in nothing else."""
    numbers: dict[str, int] = {}
    return NAME.sub(lambda match: f'"{numbers.setdefault(match[1], len(numbers))}"', json.dumps(state))


class StateBuilder:
    """Draws the parts of a state.

    Attributes:
        chance: Random numbers.
        now: The present instant, Unix time in whole seconds.
    """

    def __init__(self, chance: Random, naming: Random | None = None) -> None:
        """Draw from random numbers, and names from others where they are given."""
        self.chance = chance
        self._naming = naming or chance
        self.now = float(present(chance))
        self._names: set[str] = set()

    @classmethod
    def of(cls, episode: Episode) -> "StateBuilder":
        """One that draws from the episode's random numbers."""
        return cls(episode.random, episode.naming)

    def name(self) -> str:
        """A name that tells nothing and was not given before."""
        while (drawn := f"{self._naming.choice('abcdefgh')}{self._naming.getrandbits(40):010x}") in self._names:
            pass
        self._names.add(drawn)
        return drawn

    def names(self, count: int) -> list[str]:
        """Several of them."""
        return [self.name() for _ in range(count)]

    @cached_property
    def epoch(self) -> str:
        """Life of the state that revisions count in."""
        return self.name()

    def state(
        self,
        accelerators: "Sequence[documents.OfferedAccelerator]",
        domains: "Sequence[documents.PoolDomain]",
        links: "Sequence[documents.PathLink]",
    ) -> "documents.SchedulingState":
        """A state in which nothing waits and nothing runs."""
        return {
            "revision": {"epoch": self.epoch, "number": self.chance.randrange(1_000_000)},
            "now": instant(self.now),
            "accelerators": list(accelerators),
            "domains": list(domains),
            "links": list(links),
            "copies": [],
            "waiting": [],
            "running": [],
        }

    def accelerator(
        self, profiles: Sequence[str], memory: float = 80 * GIGABYTE, speed: float | None = None
    ) -> "documents.OfferedAccelerator":
        """A kind of accelerator; its indices are drawn around a speed, unless that is one: the reference."""
        pace = self.chance.uniform(0.5, 2.5) if speed is None else speed
        spread = 0.0 if speed is not None else 0.3
        indices: list[documents.ProfileIndex] = [
            {"profile": name, "value": pace * self.chance.uniform(1 - spread, 1 + spread)} for name in profiles
        ]
        return {"id": self.name(), "kind": "gpu", "memory": memory, "indices": indices}

    def pool(
        self, accelerator: "documents.OfferedAccelerator", nodes: int, *, per_node: int = 8, switches: int = 0
    ) -> "documents.ComputePool":
        """A pool of which everything is free; its nodes hang on so many switches, or are not told."""
        devices = nodes * per_node
        body: documents.ComputePool = {
            "accelerator": accelerator["id"], "devices": devices, "free": devices, "devices_per_node": per_node,
        }  # fmt: skip
        if switches:
            leaves = self.names(switches)
            body["nodes"] = [
                {"id": self.name(), "devices": per_node, "free": per_node, "switch": leaves[number % switches]}
                for number in range(nodes)
            ]
        return body

    def offers(
        self, pool: "documents.ComputePool", price: float, parts: "Mapping[documents.PurchaseOption, float]"
    ) -> None:
        """Have a pool bought: part of its free devices by way of buying, at prices that follow that on demand."""
        pool["offers"] = []
        for purchase, part in parts.items():
            offer: documents.CapacityOffer = {
                "purchase": purchase,
                "devices": int(part * pool["free"]),
                "price": price * PRICES[purchase],
            }
            if purchase == "spot":
                offer["interruption_rate"] = 0.02
            pool["offers"].append(offer)

    def domain(self, *pools: "documents.ComputePool") -> "documents.PoolDomain":
        """A domain of some pools."""
        return {"id": self.name(), "pools": list(pools)}

    def mesh(self, places: Sequence[str], gigabits: tuple[float, float] = (2.0, 40.0)) -> "list[documents.PathLink]":
        """Links between all places of a map, each the shortest way between its ends."""
        position = {place: (self.chance.uniform(0.05, 1.0), self.chance.uniform(0.05, 1.0)) for place in places}
        return [
            self.link(one, other, position[one], position[other], gigabits) for one, other in permutations(places, 2)
        ]

    def link(
        self, source: str, target: str, source_position: tuple[float, float], target_position: tuple[float, float],
        gigabits: tuple[float, float],
    ) -> "documents.PathLink":  # fmt: skip
        """A link over a distance."""
        bandwidth = self.chance.uniform(*gigabits) * GIGABIT
        return {
            "source": source,
            "target": target,
            "bandwidth": bandwidth,
            "available": bandwidth * self.chance.uniform(0.4, 1.0),
            "round_trip_time": FARTHEST
            * hypot(source_position[0] - target_position[0], source_position[1] - target_position[1]),
            "tariff": self.chance.uniform(2e-11, 2e-10),
        }

    def spec(self, profile: str, home: str, devices: tuple[int, int, int], **members: Any) -> "documents.JobSpec":
        """What a job asks for: devices at least, requested and at most; its data are at home."""
        chance = self.chance
        exchange = chance.uniform(0.2, 20.0) * GIGABYTE
        lasting = float(chance.randrange(900, 20_000))
        least, requested, most = devices
        spec = {
            "id": self.name(),
            "kind": "training",
            "priority": 0,
            "home_domain": home,
            "submitted_at": instant(self.now - chance.randrange(60, 7_200)),
            "devices": {"minimum": least, "maximum": most, "requested": requested},
            "task_profile": profile,
            "duration": {"expected": lasting, "low": lasting / 2, "high": lasting * 2, "coverage": 0.8},
            "serial_share": 0.001,
            "communication": {
                "step_time": chance.uniform(0.5, 20.0),
                "exchange": exchange,
                "boundary": exchange * chance.uniform(0.2, 2.0),
                "checkpoint_size": 7 * exchange,
            },
            "split_modes": ["none"],
            "data": [{"id": self.name(), "size": chance.uniform(1.0, 500.0) * GIGABYTE, "domains": [home]}],
            **members,
        }
        return cast("documents.JobSpec", spec)


def queued(state: "documents.SchedulingState", specs: "Sequence[documents.JobSpec]") -> "documents.SchedulingState":
    """The state with jobs that wait: by priority, then by time of submission."""
    ordered = sorted(specs, key=lambda spec: (-spec.get("priority", 0), spec["submitted_at"]))
    return {**state, "waiting": [{"spec": spec} for spec in ordered]}


def alone(domain: str, pool: "documents.ComputePool", devices: int) -> "documents.JobPlacement":
    """A placement in one pool, on its first nodes that are free; these are told where the pool tells them."""
    share: documents.DomainShare = {"domain": domain, "accelerator": pool["accelerator"], "devices": devices}
    if "nodes" in pool:
        share["nodes"] = []
        for node in pool["nodes"]:
            if taken := min(node["free"], devices - sum(entry["devices"] for entry in share["nodes"])):
                share["nodes"].append({"node": node["id"], "devices": taken})
    if "offers" in pool:
        share["purchase"] = pool["offers"][0]["purchase"]
    return {"shares": [share], "split_mode": "none"}


def occupied(
    builder: StateBuilder,
    state: "documents.SchedulingState",
    part: float,
    spec_of: "Callable[[str, int], documents.JobSpec]",
) -> "documents.SchedulingState":
    """The state with jobs that run on about a part of each pool, in pieces of one device to all of a node.

    Args:
        builder: Draws them.
        state: Free so far; its pools are changed.
        part: Of the devices.
        spec_of: What a job asks for, by home and devices.
    """
    running: list[documents.RunningJob] = []
    for domain in state["domains"]:
        for pool in domain["pools"]:
            while pool["free"] > (1.0 - part) * pool["devices"]:
                devices = min(pool["free"], builder.chance.choice((1, 2, 4, 8, 8)))
                placement = alone(domain["id"], pool, devices)
                take(pool, placement["shares"][0])
                spec = spec_of(domain["id"], devices)
                done = builder.chance.uniform(0.0, 0.9) * spec["duration"]["expected"] * devices
                running.append({"spec": spec, "placement": placement, "phase": "running", "done": done,
                                "used": 1.0, "rate": float(devices)})  # fmt: skip
    return {**state, "running": running}


def take(pool: "documents.ComputePool", share: "documents.DomainShare") -> None:
    """Take the devices of a share out of what a pool has free."""
    pool["free"] -= share["devices"]
    devices_by_node = {entry["node"]: entry["devices"] for entry in share.get("nodes", [])}
    for node in pool.get("nodes", []):
        node["free"] -= devices_by_node.get(node["id"], 0)
    for offer in pool.get("offers", []):
        bought = share["devices"] if offer["purchase"] == share.get("purchase") else 0
        offer["devices"] = min(offer["devices"] - bought, pool["free"])
