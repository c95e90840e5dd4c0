"""The ideal pool as a scenario: all devices in one place, so that the network is free."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from kuayu_conformance.testbed.scheduling.engine.interfaces import Topology, Weather, Workload
from kuayu_conformance.testbed.scheduling.values import Dataset, DeviceType, Job, Pool, Site, Wire

NAME = "all"
"""Of the only domain."""


@dataclass(frozen=True, slots=True)
class Pooled:
    """A topology of one domain, and a workload at home there.

    Attributes:
        sites: The domain; a pool for each kind of accelerator.
        wires: None.
        devices: As before.
        weather: As before; there is nothing that it could change.
        jobs: All of them.
        datasets: All of them, at hand and never pinned.
    """

    sites: tuple[Site, ...]
    wires: tuple[Wire, ...]
    devices: Mapping[str, DeviceType]
    weather: Weather
    jobs: tuple[Job, ...]
    datasets: Mapping[str, Dataset]


def pooled(topology: Topology, workload: Workload) -> Pooled:
    """The ideal pool of a scenario, to be played with a baseline: what part of its gain was reached is shown beside.

    It is no bound, since the baseline may be beaten there as well. A job that was larger than a pool of its own domain
    may now fit; one that is larger than all devices of a kind cannot be spread over kinds.
    """
    counts: dict[tuple[str, int], int] = {}
    prices: dict[str, Mapping[str, float]] = {}
    for site in topology.sites:
        for pool in site.pools:
            counts[pool.device, pool.per_node] = counts.get((pool.device, pool.per_node), 0) + pool.nodes
            prices.setdefault(pool.device, pool.prices)
    nodes: dict[str, list[tuple[int, int]]] = {}
    for (device, per_node), count in counts.items():
        nodes.setdefault(device, []).append((count, per_node))
    pools = tuple(
        Pool(device, *(of[0] if len(of) == 1 else (sum(count * size for count, size in of), 1)), prices[device])
        for device, of in nodes.items()
    )
    return Pooled(
        (Site(NAME, topology.sites[0].latitude, topology.sites[0].longitude, pools),),
        (),
        topology.devices,
        topology.weather,
        tuple(replace(job, home=NAME) for job in workload.jobs),
        MappingProxyType(
            {name: replace(dataset, sites=(NAME,), pinned=False) for name, dataset in workload.datasets.items()}
        ),
    )
