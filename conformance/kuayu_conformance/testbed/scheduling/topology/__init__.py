"""Where the judge's jobs can run: domains at real places, their accelerators, and lines between them.

:func:`build` makes a topology from the name of a family, a number of domains and a seed; the same arguments give the
same one. ``link_variation`` says what of it varies with time, ``parameters`` what is fitted to public measurements.
Money is in yuan, seconds begin at midnight.

1. **Places.** The eight hubs are those of the national plan (国家发展改革委等, 发改高技〔2021〕709号; text at
   https://zidonghua.com.cn/news/program/43021.html), each here at the place of one of the ten clusters approved in
   2022. The cluster of the Yangtze Delta's demonstration area lies in Qingpu, Wujiang and Jiashan; those of Horinger
   and Gui'an are 25 to 40 km from the cities that stand for them. Second clusters (Wuhu, Chongqing) are next in their
   lists. What follows are cities near the hub: that each of them has a data centre is an assumption.

   Coordinates: GeoNames (https://www.geonames.org, CC BY 4.0), by the number given, rounded to a thousandth of a
   degree.
2. **Distances.** They are told along the Earth, along fibre, and in time.
3. **Families.** What is not about places and links belongs to workload and engine. Data gravity, bursts, one job that
   needs every domain and misjudged durations are matters of the workload; false capacity, domains slower than on paper,
   partitions and failing nodes are disturbances of the engine: these families have the topology of ``reference``.
4. **Assumptions.** Each has a range, so that it can be drawn and its weight seen. ``build(..., assumed={...})`` takes
   other values; ``drawn(seed)`` draws all of them at once, ``varied(name)`` goes through the range of one.
5. **Accelerators.** What is published of them, and how fast they are on kinds of work.

   Figures are those of ``accelerator_facts`` (stas00/ml-engineering ``compute/accelerator`` [744d01e],
   FlagOpen/FlagPerf ``base/benchmarks`` [1b5a030], citsjtu2020/LLM-Prof ``hardware_spec.md``, wangzy0327/hblas-bench
   ``DCU-bench.md``, the vendor's announcement for the MLU370-X8). Public figures of Chinese accelerators contradict
   each other: for the Ascend 910B the peak is what follows from the measured 304 TFLOP/s at the A100's share of its
   peak, and its memory bandwidth is of low confidence. Assumptions of the usual order are the power of the K100 AI and
   the H20, and the peak of the BI150.
6. **Sites.** Domains differ in how large they are, which accelerators they have, and what these cost.
7. **Links.** Hubs are all joined to each other, a place near a hub is joined to it alone. So links are shared by what
   passes through a hub, and their number grows with that of domains: 56 at 8, 168 at 64.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.elementary import exponential
from kuayu_conformance.testbed.scheduling.topology.link_variation import LinkFault, LinkVariation, rhythm
from kuayu_conformance.testbed.scheduling.topology.parameters import parameters
from kuayu_conformance.testbed.scheduling.values import DeviceType, JobKind, Link, Pool, Site

EASTERN = frozenset({"beijing-tianjin-hebei", "yangtze-delta", "greater-bay", "chengdu-chongqing"})
"""Hubs that serve the demand around them; the other four are to take work from elsewhere (发改高技〔2021〕709号)."""
_ORDER = (
    "beijing-tianjin-hebei",
    "yangtze-delta",
    "guizhou",
    "inner-mongolia",
    "greater-bay",
    "chengdu-chongqing",
    "gansu",
    "ningxia",
)
EARTH = 6371.0
"""Mean radius in kilometres (IUGG)."""
DELAY = 6e-6
"""Seconds for a kilometre of fibre, equipment on the way included.

Light alone takes 5 µs (ITU-T G.114, table A.1). From Zhongwei to Beijing 8 to 10 ms were measured one way (中国新闻网,
2022-08-29), over 1010 km and so by :func:`fibre` 1500 km of fibre: 6 µs for each. With it the circles of 1 ms for a
city, 5 ms for a region and 20 ms between hubs (发改数据〔2023〕1779号) reach 110, 550 and 2 670 km.
"""
_STRAIGHT, _FAR = 1000.0, 1200.0
MIX = ("A800", "Ascend 910B", "H800", "A800", "H20", "Ascend 910B", "DCU K100 AI", "BI150")
"""Accelerators of eight domains, one kind each: an assumption, half of them NVIDIA's and half Chinese.

Which domain has which is drawn: it moves results the most.
"""
LEASED = ((5e9, 0.25), (10e9, 0.35), (20e9, 0.20), (50e9, 0.12), (100e9, 0.08))
"""Bits a second that a domain leases, with their shares: usual sizes of leased lines. The shares are an assumption,
such that the median of links is 10 Gbit/s (``access`` of ``ASSUMPTIONS`` scales them)."""
_WIDE = ("H800", "MLU370-X8", "A800", "DCU K100 AI", "H20", "Ascend 910B", "BI150", "A800")
_POOR = ((1e9, 0.3), (2e9, 0.4), (5e9, 0.3))
"""Between public clouds: a single large machine sends 0.1 to 34 Gbit/s, 5.4 at the median (skyplane, 2022)."""
_RICH = ((100e9, 0.5), (400e9, 0.5))
"""Optical lines between the hubs: Shaoguan has 13 of 400 Gbit/s to the Greater Bay (南方都市报, 2025-06-13)."""
_OUTAGE = LinkFault("outage", 10 * 86_400, 0.5, 6 * 3_600, 0.0)
"""A line is cut every twenty days for six hours: an assumption, and more than usual, so that each run has some."""
_COLLAPSE = LinkFault("collapse", 6 * 3_600, 0.5, 3_600, 0.05)
_DIP = LinkFault("dip", 3 * 3_600, 0.5, 1_800, 0.3)
"""Collapses to a twentieth and dips to three tenths: assumptions (``trouble`` says how often)."""
REFERENCE = "A800"
"""Device whose index is one for every profile."""
PROFILES: tuple[str, ...] = tuple(kind.value for kind in JobKind)
"""Task profiles: one for each kind of job."""
PER_NODE = 8
"""Accelerators of a node, as in the servers of ``accelerator_facts`` (FlagPerf: means of eight cards)."""
HUB_PETAFLOPS: Mapping[str, float] = MappingProxyType(
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
ASSIGNMENTS = 8
"""In how many ways accelerators can be dealt to domains."""
_BITS_OF_A_GIGABYTE = 8e9


@dataclass(frozen=True, slots=True)
class Place:
    """A city.

    Attributes:
        name: Its name, also that of the domain.
        number: Its number in GeoNames.
        latitude: Degrees north.
        longitude: Degrees east.
        hub: Name of the hub that it belongs to.
    """

    name: str
    number: int
    latitude: float
    longitude: float
    hub: str


_PLACES = (
    Place("zhangjiakou", 2033196, 40.783, 114.871, "beijing-tianjin-hebei"),
    Place("beijing", 1816670, 39.907, 116.397, "beijing-tianjin-hebei"),
    Place("langfang", 1804540, 39.521, 116.715, "beijing-tianjin-hebei"),
    Place("tianjin", 1792947, 39.142, 117.177, "beijing-tianjin-hebei"),
    Place("baoding", 1816971, 38.873, 115.462, "beijing-tianjin-hebei"),
    Place("datong", 2037799, 40.094, 113.291, "beijing-tianjin-hebei"),
    Place("shijiazhuang", 1795270, 38.041, 114.479, "beijing-tianjin-hebei"),
    Place("tangshan", 1793346, 39.644, 118.183, "beijing-tianjin-hebei"),
    Place("jiashan", 7303248, 30.849, 120.926, "yangtze-delta"),
    Place("wuhu", 1791236, 31.353, 118.429, "yangtze-delta"),
    Place("shanghai", 1796236, 31.222, 121.458, "yangtze-delta"),
    Place("suzhou", 1886760, 31.304, 120.595, "yangtze-delta"),
    Place("hangzhou", 1808926, 30.294, 120.161, "yangtze-delta"),
    Place("nanjing", 1799962, 32.062, 118.778, "yangtze-delta"),
    Place("hefei", 1808722, 31.864, 117.281, "yangtze-delta"),
    Place("nantong", 1799722, 32.030, 120.875, "yangtze-delta"),
    Place("guiyang", 1809461, 26.583, 106.717, "guizhou"),
    Place("anshun", 1817968, 26.250, 105.933, "guizhou"),
    Place("zunyi", 1783621, 27.687, 106.907, "guizhou"),
    Place("bijie", 1816373, 27.302, 105.286, "guizhou"),
    Place("kaili", 1804866, 26.586, 107.980, "guizhou"),
    Place("duyun", 1811764, 26.267, 107.517, "guizhou"),
    Place("kunming", 1804651, 25.039, 102.718, "guizhou"),
    Place("nanning", 1799869, 22.817, 108.317, "guizhou"),
    Place("hohhot", 2036892, 40.811, 111.652, "inner-mongolia"),
    Place("ulanqab", 8335361, 40.993, 113.133, "inner-mongolia"),
    Place("baotou", 2038432, 40.652, 109.844, "inner-mongolia"),
    Place("ordos", 8347664, 39.609, 109.782, "inner-mongolia"),
    Place("wuhai", 1791249, 39.684, 106.816, "inner-mongolia"),
    Place("taiyuan", 1793511, 37.869, 112.560, "inner-mongolia"),
    Place("shuozhou", 1794328, 39.316, 112.422, "inner-mongolia"),
    Place("chifeng", 2038067, 42.268, 118.964, "inner-mongolia"),
    Place("shaoguan", 1795874, 24.800, 113.583, "greater-bay"),
    Place("guangzhou", 1809858, 23.117, 113.250, "greater-bay"),
    Place("shenzhen", 1795565, 22.546, 114.068, "greater-bay"),
    Place("dongguan", 1812545, 23.018, 113.749, "greater-bay"),
    Place("foshan", 1811103, 23.027, 113.131, "greater-bay"),
    Place("heyuan", 1786112, 23.733, 114.683, "greater-bay"),
    Place("huizhou", 1806776, 23.111, 114.415, "greater-bay"),
    Place("zhuhai", 1790437, 22.277, 113.568, "greater-bay"),
    Place("chengdu", 1815286, 30.667, 104.067, "chengdu-chongqing"),
    Place("chongqing", 1814906, 29.560, 106.558, "chengdu-chongqing"),
    Place("mianyang", 1800627, 31.468, 104.682, "chengdu-chongqing"),
    Place("yaan", 1787816, 29.985, 102.999, "chengdu-chongqing"),
    Place("deyang", 1812961, 31.130, 104.382, "chengdu-chongqing"),
    Place("yibin", 1786770, 28.759, 104.640, "chengdu-chongqing"),
    Place("luzhou", 1801640, 28.890, 105.426, "chengdu-chongqing"),
    Place("nanchong", 1800146, 30.795, 106.085, "chengdu-chongqing"),
    Place("qingyang", 12359313, 35.710, 107.645, "gansu"),
    Place("xian", 1790630, 34.258, 108.929, "gansu"),
    Place("lanzhou", 1804430, 36.057, 103.840, "gansu"),
    Place("xianyang", 1790353, 34.338, 108.703, "gansu"),
    Place("pingliang", 1798760, 35.539, 106.686, "gansu"),
    Place("tianshui", 1792892, 34.580, 105.742, "gansu"),
    Place("baoji", 10942359, 34.368, 107.237, "gansu"),
    Place("yanan", 1787765, 36.599, 109.492, "gansu"),
    Place("zhongwei", 1784285, 37.511, 105.191, "ningxia"),
    Place("yinchuan", 1786657, 38.468, 106.273, "ningxia"),
    Place("wuzhong", 1790842, 37.987, 106.201, "ningxia"),
    Place("shizuishan", 12324556, 38.981, 106.389, "ningxia"),
    Place("guyuan", 1809152, 36.007, 106.281, "ningxia"),
    Place("baiyin", 1817240, 36.547, 104.170, "ningxia"),
    Place("wuwei", 1803936, 37.927, 102.632, "ningxia"),
    Place("jinchang", 1805733, 38.501, 102.194, "ningxia"),
)


_BY_HUB = [[place for place in _PLACES if place.hub == hub] for hub in _ORDER]


PLACES: tuple[Place, ...] = tuple(chain.from_iterable(zip(*_BY_HUB, strict=True)))
"""All places: first the hubs, east and west in turn, then the second place of each hub, and so on."""


MIN_DOMAINS, MAX_DOMAINS = 5, len(PLACES)
"""How many domains there can be."""


_HUBS = {place.name: place.hub for place in PLACES}


def hub_of(name: str) -> str:
    """Name of the hub that a domain belongs to.

    Raises:
        KeyError: There is no such place.
    """
    return _HUBS[name]


def kilometres(one: Place, other: Place) -> float:
    """Distance along a great circle, in whole kilometres, so that no C library's sine shows."""
    north, south = math.radians(one.latitude), math.radians(other.latitude)
    half_height = math.sin((north - south) / 2)
    half_width = math.sin(math.radians(one.longitude - other.longitude) / 2)
    chord = half_height * half_height + math.cos(north) * math.cos(south) * half_width * half_width
    return float(round(2 * EARTH * math.asin(math.sqrt(chord))))


def fibre(straight: float) -> float:
    """Kilometres of fibre between places so many kilometres apart, by ITU-T Y.1541 and G.826 for terrestrial paths.

    One and a half times the distance up to 1000 km, 1500 km up to 1200 km, one and a quarter times beyond.
    """
    if straight <= _STRAIGHT:
        return 1.5 * straight
    return max(1.5 * _STRAIGHT, 1.25 * straight) if straight > _FAR else 1.5 * _STRAIGHT


def round_trip(straight: float) -> float:
    """Seconds there and back between places so many kilometres apart."""
    return 2 * DELAY * fibre(straight)


@dataclass(frozen=True, slots=True)
class Family:
    """What a family is made of.

    Attributes:
        about: What it is for.
        level: Whether all domains are of one size, rather than as published.
        mix: Accelerators, dealt to the domains in turn.
        pools: How many kinds of accelerators a domain has.
        leased: Capacities of leased lines with their shares.
        link_faults: What befalls links.
    """

    about: str
    level: bool = False
    mix: tuple[str, ...] = MIX
    pools: int = 1
    leased: tuple[tuple[float, float], ...] = LEASED
    link_faults: tuple[LinkFault, ...] = ()


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "reference": Family(
            "domains of one size unless demand says otherwise, one kind of accelerator each", level=True
        ),
        "balanced": Family("demand and supply at the same places", level=True),
        "east-west": Family("sizes as published: demand in the east, supply in the west"),
        "gravity": Family("data sets are pinned", level=True),
        "wan-poor": Family("lines as between public clouds", level=True, leased=_POOR),
        "wan-rich": Family("optical lines", level=True, leased=_RICH),
        "bursty": Family("demand comes in bursts", level=True),
        "heterogeneous": Family("two kinds of accelerators in each domain, of a wider choice", True, _WIDE, 2),
        "identical": Family("the same accelerator everywhere: where the gain must be small", True, ("A800",)),
        "faulty": Family("lines and nodes fail", level=True, link_faults=(_OUTAGE,)),
        "slow-on-site": Family("fastest on paper, slowest in practice", level=True),
        "false-capacity": Family("a domain reports what it does not have", level=True),
        "giant": Family("one job needs every domain", level=True),
        "collapse": Family("bandwidth collapses while data is under way", level=True, link_faults=(_COLLAPSE, _DIP)),
        "partition": Family("a domain is cut off between the two phases of a reservation", level=True),
        "misjudged": Family("durations are stated a tenth or tenfold", level=True),
    }
)
"""Families by name."""


def family_of(name: str) -> Family:
    """A family.

    Raises:
        ValueError: There is none of that name.
    """
    try:
        return FAMILIES[name]
    except KeyError:
        raise ValueError(f"no family is named {name}; there are {', '.join(FAMILIES)}") from None


@dataclass(frozen=True, slots=True)
class Assumption:
    """A figure without a source.

    Attributes:
        value: What is taken.
        low: The least that is plausible.
        high: The most that is plausible.
        why: What it is, and what speaks for it.
    """

    value: float
    low: float
    high: float
    why: str


ASSUMPTIONS: Mapping[str, Assumption] = MappingProxyType(
    {
        "neighbour": Assumption(0.25, 0.1, 1.0, "Size of a city near a hub, over that of the hub's cluster."),
        "access": Assumption(
            1.0, 0.3, 3.0, "Factor of all capacities of links; one is a median of 10 Gbit/s, as leased by tenants."
        ),
        "cell": Assumption(
            6.0, 1.0, 24.0, "Hours for which a link keeps its share; measurements are days apart and say less."
        ),
        "tide": Assumption(60.0, 24.0, 120.0, "Hours after which the network may turn from free to busy or back."),
        "busy": Assumption(0.5, 0.2, 0.8, "Share of the time in which the network is busy."),
        "depth": Assumption(1.0, 0.0, 1.5, "How much of the measured loss a link has in busy times; zero is none."),
        "yuan": Assumption(7.1, 6.8, 7.3, "Yuan for a US dollar, 2022–2025; all money is in yuan."),
        "reach": Assumption(2000.0, 1000.0, 3000.0, "Kilometres from which on a bit costs the dearest tariff."),
        "tariff": Assumption(1.0, 0.0, 3.0, "Factor of all tariffs; zero is free traffic."),
        "domestic": Assumption(0.8, 0.5, 1.2, "Price for the same speed on Chinese accelerators, over the A800's."),
        "west": Assumption(0.9, 0.7, 1.0, "Price of a device in the western hubs over that in the eastern ones."),
        "reserved": Assumption(0.6, 0.28, 0.8, "Price by reservation over that on demand; EC2 grants up to 72 % off."),
        "spot": Assumption(0.4, 0.1, 0.7, "Price on the spot over that on demand; EC2 grants up to 90 % off."),
        "trouble": Assumption(1.0, 0.2, 2.0, "How many times as often lines are cut, collapse or dip as families say."),
        "power": Assumption(1.0, 0.5, 2.0, "Factor of all prices of electricity."),
        "overhead": Assumption(1.5, 1.2, 2.0, "Power of a server, cooling aside, over that of its accelerators."),
        "noise": Assumption(
            0.15,
            0.05,
            0.3,
            "Deviation of the logarithm of a device's speed from the law; the fits miss by 0.09 to 0.15.",
        ),
    }
)


def settled(assumed: Mapping[str, float] | None) -> dict[str, float]:
    """All values by name: those given, and for the others what is taken.

    Raises:
        ValueError: There is no assumption of that name.
    """
    given = dict(assumed or {})
    unknown = sorted(set(given) - set(ASSUMPTIONS))
    if unknown:
        raise ValueError(f"no assumption is named {', '.join(unknown)}; there are {', '.join(sorted(ASSUMPTIONS))}")
    return {name: given.get(name, assumption.value) for name, assumption in ASSUMPTIONS.items()}


def drawn(seed: str) -> dict[str, float]:
    """All values, each drawn evenly from its range."""
    return {name: Chance(seed, f"assumption {name}").between(one.low, one.high) for name, one in ASSUMPTIONS.items()}


def varied(name: str) -> tuple[dict[str, float], ...]:
    """Three settings: the least, what is taken, and the most of one assumption, the others as they are.

    Raises:
        ValueError: There is no assumption of that name.
    """
    settled({name: 0.0})
    one = ASSUMPTIONS[name]
    return tuple(settled({name: value}) for value in (one.low, one.value, one.high))


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
class TimeShares:
    """Shares of the time that a task takes on the reference device; they sum to one.

    Attributes:
        compute: In products of matrices.
        memory: Waiting for memory.
        rest: What no device shortens.
    """

    compute: float
    memory: float
    rest: float


def time_shares(profile: str) -> TimeShares:
    """Weights of a profile.

    Those of fine-tuning (BERT) and of training (vision, speech, translation) are fitted to measured throughputs, see
    ``parameters``. Those of pre-training and serving are assumptions: large models spend most of their time in products
    of matrices, decoding waits for memory.

    Raises:
        KeyError: There is no such profile.
    """
    return {
        JobKind.PRETRAINING: TimeShares(0.8, 0.2, 0.0),
        JobKind.FINE_TUNING: TimeShares(*parameters().weights["fine-tuning"]),
        JobKind.TRAINING: TimeShares(*parameters().weights["training"]),
        JobKind.SERVING: TimeShares(0.3, 0.7, 0.0),
    }[JobKind(profile)]


def speed_on_paper(name: str, profile: str) -> float:
    """Speed of a device on a profile over that of the reference device: the inverse of the sum of its times."""
    if name == REFERENCE:
        return 1.0
    device, reference, share = SHEETS[name], SHEETS[REFERENCE], time_shares(profile)
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
    types = {}
    for name in sorted(names):
        sheet = SHEETS[name]
        index = {
            profile: speed_on_paper(name, profile) * _hidden_factor(name, profile, noise, seed) for profile in PROFILES
        }
        types[name] = DeviceType(name, sheet.memory, sheet.peak, index, sheet.power)
    return types


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
    places: Sequence[Place], family: Family, scale: Scale, rotation: int, assumed: Mapping[str, float]
) -> tuple[Site, ...]:
    """Domains in the order of their places.

    Args:
        places: Where.
        family: What the family is made of.
        scale: How large.
        rotation: By how many places the mix is shifted.
        assumed: Assumptions by name.

    Raises:
        ValueError: The demand does not name exactly these domains, or some of it is not positive.
    """
    sites = []
    for number, (place, size) in enumerate(zip(places, _sizes(places, family, scale, assumed), strict=True)):
        kinds = [family.mix[(number + rotation + step) % len(family.mix)] for step in range(family.pools)]
        pools = tuple(_pool(name, size / len(kinds), place, assumed) for name in kinds)
        sites.append(Site(place.name, place.latitude, place.longitude, pools))
    return tuple(sites)


def electric(sites: Sequence[Site], places: Sequence[Place], assumed: Mapping[str, float]) -> float:
    """Share of electricity in the price of a device, over all devices."""
    spent = paid = 0.0
    for site, place in zip(sites, places, strict=True):
        for pool in site.pools:
            spent += pool.devices * _power_cost(pool.device, place, assumed)
            paid += pool.devices * pool.prices["on-demand"]
    return spent / paid


def capacity(site: Site, devices: Mapping[str, DeviceType], profile: str) -> float:
    """Reference devices that a domain amounts to on a profile."""
    return sum(pool.devices * devices[pool.device].index[profile] for pool in site.pools)


def _hidden_factor(name: str, profile: str, noise: float, seed: str) -> float:
    if name == REFERENCE:
        return 1.0
    chance = Chance(seed, f"speed of {name} on {profile}")
    deviation = sum(chance.fraction() for _ in range(12)) - 6.0  # mean 0, deviation 1, and no logarithm
    return exponential(noise * deviation)


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
        shares.append(1.0 if family.level else HUB_PETAFLOPS[place.hub] * near)
        seen.add(place.hub)
    whole = scale.nodes * PER_NODE * len(places) / sum(shares)
    return [share * whole for share in shares]


def _pool(name: str, size: float, place: Place, assumed: Mapping[str, float]) -> Pool:
    """So many reference devices' worth of an accelerator, in whole nodes, by the mean of the law over profiles."""
    speed = sum(speed_on_paper(name, profile) for profile in PROFILES) / len(PROFILES)
    nodes = max(1, round(size / speed / PER_NODE))
    price = ON_DEMAND[REFERENCE] * speed_on_paper(name, "pretraining")
    price *= assumed["domestic"] if SHEETS[name].domestic else 1.0
    price *= 1.0 if place.hub in EASTERN else assumed["west"]
    prices = {"on-demand": price, "reserved": price * assumed["reserved"], "spot": price * assumed["spot"]}
    return Pool(name, nodes, PER_NODE, {purchase: round(yuan, 2) for purchase, yuan in prices.items()})


def _power_cost(name: str, place: Place, assumed: Mapping[str, float]) -> float:
    """Yuan for the electricity of a device hour."""
    kilowatts = SHEETS[name].power / 1000.0 * assumed["overhead"] * COOLING[place.hub in EASTERN]
    return kilowatts * POWER_PRICE[place.hub] * assumed["power"]


def links_between(places: Sequence[Place], family: Family, assumed: Mapping[str, float], seed: str) -> tuple[Link, ...]:
    """All links, both directions of a line one after the other; the narrower of two domains' lines bounds it."""
    leased = {
        place.name: assumed["access"] * Chance(seed, f"line of {place.name}").weighted(family.leased)
        for place in places
    }
    links = []
    for one, other in lines(places):
        straight = kilometres(one, other)
        capacity = min(leased[one.name], leased[other.name])
        cost = tariff(straight, assumed)
        links += [
            Link(source.name, target.name, capacity, round_trip(straight), cost)
            for source, target in ((one, other), (other, one))
        ]
    return tuple(links)


def lines(places: Sequence[Place]) -> list[tuple[Place, Place]]:
    """Pairs of places that a line joins."""
    hubs: dict[str, Place] = {}
    joined: list[tuple[Place, Place]] = []
    for place in places:
        hub = hubs.get(place.hub)
        if hub is None:
            joined += [(other, place) for other in hubs.values()]
            hubs[place.hub] = place
        else:
            joined.append((hub, place))
    return joined


def tariff(straight: float, assumed: Mapping[str, float]) -> float:
    """Yuan for a bit a second that is held for a second, between places so many kilometres apart.

    Between the ends of listed prices (``parameters``: for a gigabyte 0.01 US dollars to a near region, 0.0875 to
    another provider) it grows with distance: an assumption. Between hubs it is 0.4 yuan a gigabyte on average, where a
    large Chinese cloud lists 0.50 for replication to any other region (``TARIFF`` in ``link_variation``). A line that
    is full for a second carries as many bits, so that a price for bits is one for bandwidth that is held.
    """
    near, far = parameters().egress
    reached = min(straight / assumed["reach"], 1.0)
    dollars = near + (far - near) * reached
    return assumed["tariff"] * assumed["yuan"] * dollars / _BITS_OF_A_GIGABYTE


@dataclass(frozen=True, slots=True)
class Topology:
    """Where jobs can run.

    Attributes:
        sites: Domains.
        links: Links, one for each direction.
        devices: Accelerators by name: those of the pools, and the reference device.
        variation: What varies with time.
    """

    sites: tuple[Site, ...]
    links: tuple[Link, ...]
    devices: Mapping[str, DeviceType]
    variation: LinkVariation


def build(
    family: str,
    sites: int,
    seed: str,
    demand: Mapping[str, float] | None = None,
    *,
    nodes: int = 64,
    assignment: int | None = None,
    assumed: Mapping[str, float] | None = None,
) -> Topology:
    """A topology; the same arguments give the same one.

    Args:
        family: Name of a family.
        sites: How many domains, 5 to 64.
        seed: What is drawn follows from it.
        demand: Reference devices by domain that its own jobs need at the 95th percentile; sizes are these. Otherwise
            they follow from the family.
        nodes: Nodes of a domain on average, were they all of the reference device; of no effect with ``demand``.
        assignment: Which of ``ASSIGNMENTS`` ways accelerators are dealt; drawn unless it is given, so that a set of
            runs can go through all of them.
        assumed: Values of assumptions other than those that are taken.

    Raises:
        ValueError: There is no such family, number of domains, assignment or assumption, or the demand is of others.
    """
    chosen = family_of(family)
    if not MIN_DOMAINS <= sites <= MAX_DOMAINS:
        raise ValueError(f"there are topologies of {MIN_DOMAINS} to {MAX_DOMAINS} domains, not of {sites}")
    if assignment is not None and not 0 <= assignment < ASSIGNMENTS:
        raise ValueError(f"accelerators are dealt in {ASSIGNMENTS} ways, 0 to {ASSIGNMENTS - 1}")
    settings = settled(assumed)
    places = PLACES[:sites]
    rotation = Chance(seed, "assignment").below(ASSIGNMENTS) if assignment is None else assignment
    domain_sites = domains(places, chosen, Scale(nodes, demand), rotation, settings)
    joined = links_between(places, chosen, settings, seed)
    numbers = {place.name: number for number, place in enumerate(places)}
    ends = [(numbers[link.source], numbers[link.target]) for link in joined]
    link_faults = [replace(one, chance=min(one.chance * settings["trouble"], 1.0)) for one in chosen.link_faults]
    variation = LinkVariation(ends, rhythm(settings), link_faults, electric(domain_sites, places, settings), seed)
    names = frozenset(pool.device for site in domain_sites for pool in site.pools) | {REFERENCE}
    return Topology(domain_sites, joined, devices(names, settings["noise"], seed), variation)
