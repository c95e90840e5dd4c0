"""Accelerators of the domains, how fast they are on kinds of work, and how many of them each domain has at what price.

1. **Accelerators.** Accelerators of the domains: what is published of them, and how fast they are on kinds of work.

   Figures are those of ``accelerator_facts`` (stas00/ml-engineering ``compute/accelerator`` [744d01e],
   FlagOpen/FlagPerf ``base/benchmarks`` [1b5a030], citsjtu2020/LLM-Prof ``hardware_spec.md``, wangzy0327/hblas-bench
   ``DCU-bench.md``, the vendor's announcement for the MLU370-X8). Public figures of Chinese accelerators contradict
   each other: for the Ascend 910B the peak is what follows from the measured 304 TFLOP/s at the A100's share of its
   peak, and its memory bandwidth is of low confidence. Assumptions of the usual order are the power of the K100 AI and
   the H20, and the peak of the BI150.
2. **Sites.** Domains differ in how large they are, which accelerators they have, and what these cost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.elementary import exponential
from kuayu_conformance.testbed.scheduling.topology.families import Family
from kuayu_conformance.testbed.scheduling.topology.fitted import fitted
from kuayu_conformance.testbed.scheduling.topology.places import EASTERN, Place
from kuayu_conformance.testbed.scheduling.values import DeviceType, JobKind, Pool, Site

REFERENCE = "A800"
"""Device whose index is one for every profile."""
PROFILES: tuple[str, ...] = tuple(kind.value for kind in JobKind)
"""Task profiles: one for each kind of job."""
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
_USUAL = 0.85
"""Share of the peak that is sustained where nobody measured: 0.80 H100, 0.83 C550, 0.87 A100, 0.92 A800."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What is published.

    Attributes:
        peak: FLOP/s of the matrix units in bf16, dense.
        sustained: FLOP/s of the best product of matrices that was measured, or 0.85 of the peak where none was.
        bandwidth: Bytes a second from its memory.
        memory: Bytes.
        power: Watts that it may draw.
        domestic: Whether it is made by a Chinese vendor.
    """

    peak: float
    sustained: float
    bandwidth: float
    memory: float
    power: float
    domestic: bool = False


SHEETS: Mapping[str, Sheet] = MappingProxyType(
    {
        "H800": Sheet(989e12, 794.5e12, 3350e9, 80e9, 700.0),
        "A800": Sheet(312e12, 286e12, 2039e9, 80e9, 400.0),
        "H20": Sheet(148e12, _USUAL * 148e12, 4022e9, 96e9, 400.0),
        "Ascend 910B": Sheet(350e12, 304.277e12, 768e9, 64e9, 350.0, domestic=True),
        "BI150": Sheet(_USUAL**-1 * 196.77e12, 196.77e12, 590.01e9, 64e9, 350.0, domestic=True),
        "DCU K100 AI": Sheet(196e12, _USUAL * 196e12, 896e9, 64e9, 350.0, domestic=True),
        "MLU370-X8": Sheet(96e12, _USUAL * 96e12, 614.4e9, 48e9, 250.0, domestic=True),
    }
)
"""Published figures by device. The H800 computes as the H100 does, whose product of matrices was measured."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Shares of the time that a task takes on the reference device; they sum to one.

    Attributes:
        compute: In products of matrices.
        memory: Waiting for memory.
        rest: What no device shortens.
    """

    compute: float
    memory: float
    rest: float


def weights(profile: str) -> Weights:
    """Weights of a profile.

    Those of fine-tuning (BERT) and of training (vision, speech, translation) are fitted to measured throughputs, see
    ``fitting``. Those of pre-training and serving are assumptions: large models spend most of their time in products of
    matrices, decoding waits for memory.

    Raises:
        KeyError: There is no such profile.
    """
    return {
        JobKind.PRETRAINING: Weights(0.8, 0.2, 0.0),
        JobKind.FINE_TUNING: Weights(*fitted().weights["fine-tuning"]),
        JobKind.TRAINING: Weights(*fitted().weights["training"]),
        JobKind.SERVING: Weights(0.3, 0.7, 0.0),
    }[JobKind(profile)]


def law(name: str, profile: str) -> float:
    """Speed of a device on a profile over that of the reference device: the inverse of the sum of its times."""
    if name == REFERENCE:
        return 1.0
    device, reference, share = SHEETS[name], SHEETS[REFERENCE], weights(profile)
    time = share.compute * reference.sustained / device.sustained
    return 1.0 / (time + share.memory * reference.bandwidth / device.bandwidth + share.rest)


def devices(names: frozenset[str], noise: float, seed: str) -> dict[str, DeviceType]:
    """Some accelerators with their true indices, around the law by what is hidden from data sheets.

    Args:
        names: Which.
        noise: Standard deviation of the logarithm of an index; the reference device has none.
        seed: What the noise is drawn from.

    Raises:
        KeyError: There is no such device.
    """
    made = {}
    for name in sorted(names):
        sheet = SHEETS[name]
        index = {profile: law(name, profile) * _hidden(name, profile, noise, seed) for profile in PROFILES}
        made[name] = DeviceType(name, sheet.memory, sheet.peak, index, sheet.power)
    return made


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


def _hidden(name: str, profile: str, noise: float, seed: str) -> float:
    if name == REFERENCE:
        return 1.0
    chance = Chance(seed, f"speed of {name} on {profile}")
    bell = sum(chance.fraction() for _ in range(12)) - 6.0  # mean 0, deviation 1, and no logarithm
    return exponential(noise * bell)


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
