"""States of scheduling that checks make up.

Whatever is drawn comes from the episode's random numbers, names and clock included; only sums, products and square
roots are taken of it, so that a run can be made again on any machine.

1. Parts of a state: domains, pools, links, jobs (:class:`StateBuilder`).
2. Links that demands are routed over, and the suite's own paths over them (:class:`Roads`).
3. States in which only little can be done, or nothing, and what stands in the way is told in one place
   (:data:`TRAPS`).
4. A busy federation from minute to minute (:class:`Stream`): each state is a new one, and is written in little time.
   The suite writes megabytes for each decision; so what has not changed is kept as text.
"""

import heapq
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise, permutations
from math import hypot, inf
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


BITS = 8.0
HAIR = 1e-6
"""Share of a figure that rounding may take."""


def grid(builder: StateBuilder, demands: int, *, domains: int = 6, limits: bool = True) -> "documents.RouteRequest":
    """A request for routes: domains hang on exchanges, two each, and exchanges on each other."""
    chance = builder.chance
    names, exchanges = builder.names(domains), builder.names(4)
    position = {place: (chance.uniform(0.05, 1.0), chance.uniform(0.05, 1.0)) for place in (*names, *exchanges)}
    pairs = [pair for name in names for exchange in chance.sample(exchanges, 2)
             for pair in ((name, exchange), (exchange, name))]  # fmt: skip
    links = [builder.link(one, other, position[one], position[other], (2.0, 40.0)) for one, other in pairs]
    links += [
        builder.link(one, other, position[one], position[other], (10.0, 100.0))
        for one, other in permutations(exchanges, 2)
    ]
    return {
        "revision": {"epoch": builder.epoch, "number": chance.randrange(1_000_000)},
        "links": links,
        "demands": [_demand(builder, names, limits=limits) for _ in range(demands)],
    }


def _demand(builder: StateBuilder, names: Sequence[str], *, limits: bool) -> "documents.RouteDemand":
    """From one or two domains to one to three others; now and then one of them has it already."""
    chance = builder.chance
    drawn = chance.sample(names, 5)
    sources, targets = drawn[: chance.choice((1, 1, 2))], drawn[2 : 2 + chance.choice((1, 2, 3))]
    demand: documents.RouteDemand = {
        "id": builder.name(),
        "sources": sources,
        "targets": targets,
        "size": chance.uniform(10.0, 5000.0) * GIGABYTE,
    }
    if limits:
        if chance.random() < 0.1:
            targets.append(sources[0])
        if chance.random() < 0.4:
            demand["bandwidth"] = chance.uniform(0.2, 4.0) * GIGABIT
        if chance.random() < 0.3:
            demand["round_trip_time"] = chance.uniform(0.02, 0.1)
    return demand


def congested(links: "Iterable[documents.PathLink]", routes: "Iterable[documents.Route]") -> Iterator[str]:
    """Links of which routes are given more than is available."""
    given: dict[tuple[str, str], float] = {}
    for route in routes:
        for ends in pairwise(route["path"]):
            given[ends] = given.get(ends, 0.0) + route["bandwidth"]
    available = {(link["source"], link["target"]): link["available"] for link in links}
    for ends, bits in given.items():
        if bits > available.get(ends, 0.0) * (1 + HAIR):
            yield f"{bits:.6g} of {available.get(ends, 0.0):.6g} bit/s from {ends[0]} to {ends[1]}"


class Roads:
    """Links with what is left of them.

    Args:
        links: No two from one place to the same other.
        routes: Which have taken their part already.
    """

    def __init__(self, links: "Iterable[documents.PathLink]", routes: "Iterable[documents.Route]" = ()) -> None:
        self._links = {(link["source"], link["target"]): link for link in links}
        self._left = {ends: float(link["available"]) for ends, link in self._links.items()}
        for route in routes:
            for ends in pairwise(route["path"]):
                if ends in self._left:
                    self._left[ends] = max(0.0, self._left[ends] - route["bandwidth"])
        self._leaving: dict[str, list[str]] = {}
        for source, target in self._links:
            self._leaving.setdefault(source, []).append(target)

    def joined(self, path: Sequence[str]) -> bool:
        """Whether links lead along a path."""
        return all(ends in self._links for ends in pairwise(path))

    def seconds(self, path: Sequence[str]) -> float:
        """Round trip along a path."""
        return float(sum(self._links[ends]["round_trip_time"] for ends in pairwise(path)))

    def tariff(self, path: Sequence[str]) -> float:
        """Money for a bit along a path."""
        return float(sum(self._links[ends]["tariff"] for ends in pairwise(path)))

    def bandwidth_left(self, path: Sequence[str]) -> float:
        """Bits a second that are left along a path; infinite along one of a single place."""
        return min((self._left[ends] for ends in pairwise(path)), default=inf)

    def nearest(self, demand: "documents.RouteDemand") -> list[str]:
        """The path of the shortest round trip to the nearest end; nothing where there is none."""
        return self._best(demand, lambda total, ends: total + self._links[ends]["round_trip_time"])

    def cheapest(self, demand: "documents.RouteDemand") -> list[str]:
        """The path of the lowest tariff."""
        return self._best(demand, lambda total, ends: total + self._links[ends]["tariff"])

    def widest(self, demand: "documents.RouteDemand") -> list[str]:
        """The path with the most room."""
        return self._best(demand, lambda worst, ends: max(worst, -self._left[ends]), -inf)

    def _best(
        self, demand: "documents.RouteDemand", grown: Callable[[float, tuple[str, str]], float], least: float = 0.0
    ) -> list[str]:  # fmt: skip
        """The path on which a figure that never falls is least (Dijkstra 1959)."""
        ahead = [(least, [source]) for source in sorted(demand["sources"])]
        heapq.heapify(ahead)
        done = set()
        while ahead:
            figure, path = heapq.heappop(ahead)
            place = path[-1]
            if place in demand["targets"]:
                return path
            if place in done:
                continue
            done.add(place)
            for target in self._leaving.get(place, ()):
                if target not in done:
                    heapq.heappush(ahead, (grown(figure, (place, target)), [*path, target]))
        return []


Scenery = tuple["documents.SchedulingState", "list[documents.PoolDomain]", str]
"""A state of three domains of two nodes, these domains, and the task profile."""


def _scenery(builder: StateBuilder, *, memory: float = 80 * GIGABYTE, nodes: int = 2) -> Scenery:
    profile = builder.name()
    kinds = [builder.accelerator([profile], speed=1.0), builder.accelerator([profile], memory)]
    domains = [builder.domain(builder.pool(kinds[number == 2], nodes, switches=2)) for number in range(3)]
    links = builder.mesh([domain["id"] for domain in domains])
    return builder.state(kinds, domains, links), domains, profile


def _full(
    builder: StateBuilder,
    state: "documents.SchedulingState",
    profile: str,
    domain: "documents.PoolDomain",
    leaving: int = 0,
) -> None:
    """Fill the pool of a domain with one job."""
    pool = domain["pools"][0]
    devices = pool["free"] - leaving
    placement = alone(domain["id"], pool, devices)
    take(pool, placement["shares"][0])
    spec = builder.spec(profile, domain["id"], (devices, devices, devices))
    state["running"].append({"spec": spec, "placement": placement, "phase": "running", "done": 10.0, "used": 1.0,
                             "rate": float(devices)})  # fmt: skip


def _unreachable(builder: StateBuilder) -> "documents.SchedulingState":
    state, domains, profile = _scenery(builder)
    for domain in domains[:2]:
        _full(builder, state, profile, domain)
    domains[2]["reachable"] = False
    return queued(state, [builder.spec(profile, domains[number]["id"], (4, 4, 4)) for number in (0, 2)])


def _pinned(builder: StateBuilder) -> "documents.SchedulingState":
    state, domains, profile = _scenery(builder)
    _full(builder, state, profile, domains[0], leaving=4)
    data = {"id": builder.name(), "size": GIGABYTE, "domains": [domains[0]["id"]], "pinned": True}
    modes = ["none", "periodic", "synchronous"]
    sizes = ((8, 8, 8), (4, 4, 8), (6, 12, 12))
    return queued(
        state, [builder.spec(profile, domains[0]["id"], size, data=[data], split_modes=modes) for size in sizes]
    )


def _memory(builder: StateBuilder) -> "documents.SchedulingState":
    state, domains, profile = _scenery(builder, memory=32 * GIGABYTE)
    for domain in domains[:2]:
        _full(builder, state, profile, domain)
    home = domains[2]["id"]
    return queued(state, [builder.spec(profile, home, (4, 4, 4), memory_per_device=64 * GIGABYTE) for _ in range(3)])


def _profile(builder: StateBuilder) -> "documents.SchedulingState":
    state, domains, profile = _scenery(builder)
    state["accelerators"][1]["indices"] = [{"profile": builder.name(), "value": 3.0}]
    for domain in domains[:2]:
        _full(builder, state, profile, domain)
    return queued(state, [builder.spec(profile, domains[2]["id"], (2, 4, 8)) for _ in range(3)])


def _kinds(builder: StateBuilder) -> "documents.SchedulingState":
    state, domains, profile = _scenery(builder)
    state["accelerators"][1]["kind"] = "npu"
    for domain in domains[:2]:
        _full(builder, state, profile, domain)
    return queued(state, [builder.spec(profile, domains[2]["id"], (2, 4, 8), device_kinds=["gpu"]) for _ in range(3)])


def _steps(builder: StateBuilder) -> "documents.SchedulingState":
    """Three or seven devices will do, of which six are free."""
    state, domains, profile = _scenery(builder)
    for number, domain in enumerate(domains):
        _full(builder, state, profile, domain, leaving=6 if number == 1 else 2)
    spec = builder.spec(profile, domains[1]["id"], (3, 7, 15))
    spec["devices"]["step"] = 4
    return queued(state, [spec])


def _islands(builder: StateBuilder) -> "documents.SchedulingState":
    """No links lead to where devices are free."""
    state, domains, profile = _scenery(builder)
    for domain in domains[:2]:
        _full(builder, state, profile, domain, leaving=3)
    far = domains[2]["id"]
    state["links"] = [link for link in state["links"] if far not in {link["source"], link["target"]}]
    modes = ["none", "periodic", "synchronous", "pipeline"]
    return queued(
        state, [builder.spec(profile, domains[0]["id"], (size, size, size), split_modes=modes) for size in (8, 10, 16)]
    )


def _undivided(builder: StateBuilder) -> "documents.SchedulingState":
    """Jobs larger than any domain: one may not be spread, one tells nothing of what it would send."""
    state, domains, profile = _scenery(builder)
    homes = [domain["id"] for domain in domains]
    silent = builder.spec(profile, homes[1], (20, 20, 20), split_modes=["none", "periodic"])
    del silent["communication"]
    return queued(state, [builder.spec(profile, homes[0], (20, 20, 20)), silent])


def _spread(builder: StateBuilder) -> "documents.SchedulingState":
    """Jobs larger than any domain that may be spread in one way each; one prescribes how often it reconciles."""
    state, domains, profile = _scenery(builder, nodes=8)
    home = domains[0]["id"]
    sizes = (72, 72, 72)
    specs = [
        builder.spec(profile, home, sizes, split_modes=["none", "pipeline"]),
        builder.spec(
            profile, home, sizes, split_modes=["none", "periodic"], sync_period=builder.chance.randrange(20, 90)
        ),
    ]
    return queued(state, specs)


def _needs(builder: StateBuilder) -> "documents.SchedulingState":
    """Links between domains are not what a job needs of them."""
    state, domains, profile = _scenery(builder, nodes=3)
    specs = [
        builder.spec(profile, domain["id"], (32, 32, 32), split_modes=["none", "periodic", "synchronous"], links=need)
        for domain, need in zip(domains, ({"round_trip_time": 1e-6}, {"bandwidth": 1e15}), strict=False)
    ]
    return queued(state, specs)


def _offers(builder: StateBuilder) -> "documents.SchedulingState":
    """Of what is free some can be bought in one way and some in another, and some not at all."""
    state, domains, profile = _scenery(builder)
    for domain in domains:
        builder.offers(domain["pools"][0], 10.0, {"reserved": 0.25, "on_demand": 0.2, "spot": 0.2})
    specs = [builder.spec(profile, domain["id"], (devices,) * 3) for domain in domains for devices in (1, 3, 4, 6)]
    return queued(state, specs)


def _contenders(builder: StateBuilder) -> "documents.SchedulingState":
    """Each fits, but not both."""
    state, domains, profile = _scenery(builder)
    for domain in domains:
        _full(builder, state, profile, domain, leaving=5)
    return queued(state, [builder.spec(profile, domains[0]["id"], (4, 4, 4)) for _ in range(9)])


def _begun(builder: StateBuilder) -> "documents.SchedulingState":
    """Jobs of little weight hold everything; some only wait for their data, and one cannot be reached."""
    state, domains, profile = _scenery(builder)
    for domain in domains:
        _full(builder, state, profile, domain)
    phases: tuple[documents.JobPhase, ...] = ("staging", "interrupted", "running")
    for entry, phase in zip(state["running"], phases, strict=True):
        entry["phase"], entry["spec"]["priority"] = phase, -10
        entry["checkpoint_domain"] = entry["placement"]["shares"][0]["domain"]
        if phase != "running":
            entry.pop("rate")
            entry["ready_at"] = state["now"]
    domains[2]["reachable"] = False
    return queued(state, [builder.spec(profile, domains[0]["id"], (8, 8, 8), priority=100) for _ in range(2)])


def _scattered(builder: StateBuilder) -> "documents.SchedulingState":
    """Devices are free, but only some on each node."""
    state, domains, profile = _scenery(builder, nodes=6)
    for domain in domains:
        pool = domain["pools"][0]
        for node in pool["nodes"]:
            node["free"] = builder.chance.randrange(0, 4)
        pool["free"] = sum(node["free"] for node in pool["nodes"])
    return queued(state, [builder.spec(profile, domains[0]["id"], (2, devices, 9)) for devices in (2, 5, 8, 9) * 3])


TRAPS: "Mapping[str, Callable[[StateBuilder], documents.SchedulingState]]" = {
    "a domain that cannot be reached": _unreachable,
    "data that may not leave their domain": _pinned,
    "too little memory": _memory,
    "no index for the task profile": _profile,
    "other kinds of accelerators": _kinds,
    "numbers of devices in steps": _steps,
    "islands": _islands,
    "jobs that cannot be spread": _undivided,
    "jobs that can only be spread": _spread,
    "links that are not good enough": _needs,
    "offers": _offers,
    "rivals": _contenders,
    "jobs that cannot be stopped": _begun,
    "devices scattered over nodes": _scattered,
}
"""States by what stands in the way."""


def crowd(builder: StateBuilder, jobs: int, *, domains: int = 5, **members: Any) -> "documents.SchedulingState":
    """A federation of two pools a domain, with nodes and offers, of which most is held by others already."""
    chance = builder.chance
    profiles = builder.names(3)
    kinds = [builder.accelerator(profiles, speed=1.0)]
    kinds += [builder.accelerator(profiles, chance.choice((32, 64, 80)) * GIGABYTE) for _ in range(3)]
    federation = []
    for _ in range(domains):
        pools = [builder.pool(kind, chance.randrange(2, 7), switches=2) for kind in chance.sample(kinds, 2)]
        for pool in pools:
            occupied = chance.randrange(0, 8)
            pool["nodes"][0]["free"] -= occupied
            pool["free"] -= occupied
            builder.offers(pool, chance.uniform(5.0, 20.0), {"reserved": 0.3, "on_demand": 0.7, "spot": 0.3})
        federation.append(builder.domain(*pools))
    names = [domain["id"] for domain in federation]
    state = builder.state(kinds, federation, builder.mesh(names))
    specs = []
    for _ in range(jobs):
        devices = chance.choice((1, 2, 4, 8, 16, 32))
        modes = chance.choice((["none"], ["none", "periodic"], ["none", "pipeline", "synchronous"]))
        specs.append(
            builder.spec(
                chance.choice(profiles), chance.choice(names), (max(1, devices // 2), devices, devices),
                split_modes=modes, priority=chance.choice((0, 0, 5)), memory_per_device=chance.choice((16e9, 48e9)),
            )
        )  # fmt: skip
    return cast("documents.SchedulingState", {**queued(state, specs), **members})


STEP = 60.0
"""Seconds from one state to the next."""
SIZES = (1, 1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 16)
"""Devices of a job: most want one, a few hold most of the devices."""
_TRIES = 4
"""Places that are looked at for each job that is to begin."""


@dataclass(frozen=True)
class Scale:
    """How large a federation is.

    Attributes:
        domains: How many.
        nodes: Nodes of a domain, in two pools.
        running: Jobs that run, as long as there is room.
        waiting: Jobs that wait.
    """

    domains: int
    nodes: int
    running: int
    waiting: int

    @property
    def label(self) -> str:
        """In words."""
        return f"{self.domains} domains, {self.domains * self.nodes} nodes, {self.running + self.waiting} active jobs"


@dataclass
class _Run:
    """A job that runs: its spec and placement as text, its pool, its share, and what it has done."""

    text: str
    pool: "documents.ComputePool"
    share: "documents.DomainShare"
    rate: float
    done: float


class Stream:
    """States of a federation, one after the other.

    Args:
        builder: Draws them.
        scale: How large.
    """

    def __init__(self, builder: StateBuilder, scale: Scale) -> None:
        self._draft, self._scale = builder, scale
        self._profiles = builder.names(4)
        kinds = [builder.accelerator(self._profiles, speed=1.0)]
        kinds += [builder.accelerator(self._profiles) for _ in range(4)]
        self._domains = []
        for _ in range(scale.domains):
            one, other = builder.chance.sample(kinds, 2)
            half = scale.nodes // 2
            pools = [builder.pool(one, scale.nodes - half, switches=4), builder.pool(other, half, switches=4)]
            self._domains.append(builder.domain(*pools))
        self._names = [domain["id"] for domain in self._domains]
        self._kinds, self._links = json.dumps(kinds), builder.mesh(self._names)
        self._number = builder.chance.randrange(1_000_000)
        self._minutes = 0
        self._places = [(domain["id"], pool) for domain in self._domains for pool in domain["pools"]]
        self._running: list[_Run] = []
        self._fill()
        self._waiting = [json.dumps({"spec": self._spec()}) for _ in range(scale.waiting)]

    def __iter__(self) -> Iterator[bytes]:
        """Requests for placements, without end."""
        while True:
            yield self._written()
            self._pass()

    def _pass(self) -> None:
        """A minute goes by: others have begun where jobs ended before, some end, and others come to wait.

        So what is free is what has just become so, as in a federation in which many wait.
        """
        chance = self._draft.chance
        self._minutes += 1
        self._number += chance.randrange(1, 50)
        for run in self._running:
            run.done += run.rate * STEP
        self._fill()
        for _ in range(max(1, len(self._running) // 40)):
            ended = self._running.pop(chance.randrange(len(self._running)))
            _give_back(ended)
        for link in self._links:
            link["available"] = link["bandwidth"] * chance.uniform(0.3, 1.0)
        come = max(1, self._scale.waiting // 20)
        for _ in range(come):
            del self._waiting[chance.randrange(len(self._waiting))]
        self._waiting += [json.dumps({"spec": self._spec()}) for _ in range(come)]

    def _fill(self) -> None:
        """Jobs begin until enough run, or until there is hardly any room."""
        missing = self._scale.running - len(self._running)
        tried = (run for _ in range(_TRIES * missing) if (run := self._begun()))
        self._running += islice(tried, missing)

    def _spec(self) -> "documents.JobSpec":
        chance = self._draft.chance
        devices = chance.choice(SIZES)
        modes = ["none", "periodic", "pipeline"] if devices >= 16 and chance.random() < 0.5 else ["none"]
        submitted = instant(self._draft.now + STEP * self._minutes - chance.randrange(1, 60))
        return self._draft.spec(
            chance.choice(self._profiles), chance.choice(self._names), (max(1, devices // 2), devices, devices),
            split_modes=modes, submitted_at=submitted,
        )  # fmt: skip

    def _begun(self) -> _Run | None:
        """A job that begins to run where there is room; one device in a hundred is left free."""
        chance = self._draft.chance
        name, pool = self._places[chance.randrange(len(self._places))]
        devices = min(chance.choice(SIZES), pool["free"] - pool["devices"] // 100)
        if devices <= 0:
            return None
        spec: documents.JobSpec = {**self._spec(), "devices": {"minimum": devices, "maximum": devices}}
        placement = alone(name, pool, devices)
        share = placement["shares"][0]
        take(pool, share)
        text = f'"spec":{json.dumps(spec)},"placement":{json.dumps(placement)}'
        return _Run(text, pool, share, float(devices), chance.uniform(0.0, 900.0) * devices)

    def _written(self) -> bytes:
        state = {
            "revision": {"epoch": self._draft.epoch, "number": self._number},
            "now": instant(self._draft.now + STEP * self._minutes),
            "links": self._links,
            "domains": self._domains,
        }
        running = ",".join(
            f'{{{run.text},"phase":"running","used":1.0,"rate":{run.rate!r},"done":{run.done!r}}}'
            for run in self._running
        )
        text = (
            f'{{"state":{json.dumps(state)[:-1]},"accelerators":{self._kinds},'
            f'"waiting":[{",".join(self._waiting)}],"running":[{running}]}}}}'
        )
        return text.encode()


def _give_back(run: _Run) -> None:
    run.pool["free"] += run.share["devices"]
    devices_by_node = {entry["node"]: entry["devices"] for entry in run.share["nodes"]}
    for node in run.pool["nodes"]:
        node["free"] += devices_by_node.get(node["id"], 0)
