"""States in which only little can be done, or nothing, and what stands in the way is told in one place."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.checks.scheduling.placement_requests import GIGABYTE, StateBuilder, alone, queued, take

if TYPE_CHECKING:
    from kuayu_schemas import documents

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
