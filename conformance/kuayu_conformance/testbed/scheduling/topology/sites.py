"""Domains: how large they are, which accelerators they have, and what these cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from kuayu_conformance.testbed.scheduling.topology.accelerators import PROFILES, REFERENCE, SHEETS, law
from kuayu_conformance.testbed.scheduling.topology.families import Family
from kuayu_conformance.testbed.scheduling.topology.places import EASTERN, Place
from kuayu_conformance.testbed.scheduling.values import DeviceType, Pool, Site

PER_NODE = 8
"""Accelerators of a node, as in the servers of ``accelerator_facts`` (FlagPerf: means of eight cards)."""

PUBLISHED: Mapping[str, float] = MappingProxyType(
    {
        "beijing-tianjin-hebei": 255e3,  # Zhangjiakou, intelligent, June 2025 (财新周刊 2025-34)
        "yangtze-delta": 26e3,  # joined by the platform of Wuhu, intelligent, September 2025 (科创板日报 in udn.com)
        "guizhou": 56.9e3,  # Guizhou, all, in operation and being built, March 2025 (贵州日报, 2025-03-08)
        "inner-mongolia": 116e3,  # Inner Mongolia, intelligent, May 2025 (新华社, 2025-05)
        "greater-bay": 10.6e3,  # Shaoguan: 26.3 GWh in January 2026 (中国新闻社); 0.3 PFLOP/s for 1 kW is an assumption
        "chengdu-chongqing": 66e3,  # none found: an assumption, the median of the others
        "gansu": 66e3,  # Qingyang, August 2025 (gscn.com.cn, 2025-08-06)
        "ningxia": 130e3,  # Zhongwei, 2025 (jlsxsq.com/article-104090-1)
    }
)
"""PFLOP/s of a hub's clusters. Only their proportions are used."""

ON_DEMAND: Mapping[str, float] = MappingProxyType({REFERENCE: 10.0})
"""Yuan for a device hour: 8 to 12 for an A100 or A800 in China (zhitaoyun.cn/2153110, April 2025).

Other devices cost as much for the same speed in pre-training: an assumption, as no list names all of them.
"""

POWER_PRICE: Mapping[str, float] = MappingProxyType(
    {
        "beijing-tianjin-hebei": 0.45,
        "yangtze-delta": 0.65,
        "guizhou": 0.40,
        "inner-mongolia": 0.35,
        "greater-bay": 0.55,
        "chengdu-chongqing": 0.55,
        "gansu": 0.40,
        "ningxia": 0.36,
    }
)
"""Yuan for a kilowatt hour. Ningxia: Zhongwei's offer to data centres (oryoy.com); the others are assumptions of the
usual order: in Shaoguan it is 0.134 less than in the Pearl River Delta (中国新闻社, 2026-02-24). All of it is a few
hundredths of the price of a device."""

COOLING = {True: 1.25, False: 1.20}
"""Power of a site over that of its servers: the most allowed in eastern and in western hubs (国家发展改革委, 2022)."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How large everything is.

    Attributes:
        nodes: Nodes of a domain on average, were they all of the reference device.
        demand: Reference devices by domain, or none for sizes by family.
    """

    nodes: int
    demand: Mapping[str, float] | None


def domains(
    places: Sequence[Place], family: Family, scale: Scale, turn: int, assumed: Mapping[str, float]
) -> tuple[Site, ...]:
    """Domains in the order of their places.

    Args:
        places: Where.
        family: What the family is made of.
        scale: How large.
        turn: By how many places the mix is shifted.
        assumed: Assumptions by name.

    Raises:
        ValueError: The demand does not name exactly these domains, or some of it is not positive.
    """
    made = []
    for number, (place, size) in enumerate(zip(places, _sizes(places, family, scale, assumed), strict=True)):
        kinds = [family.mix[(number + turn + step) % len(family.mix)] for step in range(family.pools)]
        pools = tuple(_pool(name, size / len(kinds), place, assumed) for name in kinds)
        made.append(Site(place.name, place.latitude, place.longitude, pools))
    return tuple(made)


def electric(made: Sequence[Site], places: Sequence[Place], assumed: Mapping[str, float]) -> float:
    """Share of electricity in the price of a device, over all devices."""
    spent = paid = 0.0
    for site, place in zip(made, places, strict=True):
        for pool in site.pools:
            spent += pool.devices * _power_cost(pool.device, place, assumed)
            paid += pool.devices * pool.prices["on-demand"]
    return spent / paid


def capacity(site: Site, devices: Mapping[str, DeviceType], profile: str) -> float:
    """Reference devices that a domain amounts to on a profile."""
    return sum(pool.devices * devices[pool.device].index[profile] for pool in site.pools)


def _sizes(places: Sequence[Place], family: Family, scale: Scale, assumed: Mapping[str, float]) -> list[float]:
    """Reference devices of each domain."""
    if scale.demand is not None:
        names = {place.name for place in places}
        if set(scale.demand) != names:
            raise ValueError(f"demand must name the domains and no others; they differ in {names ^ set(scale.demand)}")
        if min(scale.demand.values()) <= 0:
            raise ValueError("a domain without demand has no size")
        return [scale.demand[place.name] for place in places]
    seen: set[str] = set()
    shares = []
    for place in places:
        near = assumed["neighbour"] if place.hub in seen else 1.0
        shares.append(1.0 if family.level else PUBLISHED[place.hub] * near)
        seen.add(place.hub)
    whole = scale.nodes * PER_NODE * len(places) / sum(shares)
    return [share * whole for share in shares]


def _pool(name: str, size: float, place: Place, assumed: Mapping[str, float]) -> Pool:
    """So many reference devices' worth of an accelerator, in whole nodes, by the mean of the law over profiles."""
    speed = sum(law(name, profile) for profile in PROFILES) / len(PROFILES)
    nodes = max(1, round(size / speed / PER_NODE))
    price = ON_DEMAND[REFERENCE] * law(name, "pretraining")
    price *= assumed["domestic"] if SHEETS[name].domestic else 1.0
    price *= 1.0 if place.hub in EASTERN else assumed["west"]
    ways = {"on-demand": price, "reserved": price * assumed["reserved"], "spot": price * assumed["spot"]}
    return Pool(name, nodes, PER_NODE, {way: round(yuan, 2) for way, yuan in ways.items()})


def _power_cost(name: str, place: Place, assumed: Mapping[str, float]) -> float:
    """Yuan for the electricity of a device hour."""
    kilowatts = SHEETS[name].power / 1000.0 * assumed["overhead"] * COOLING[place.hub in EASTERN]
    return kilowatts * POWER_PRICE[place.hub] * assumed["power"]
