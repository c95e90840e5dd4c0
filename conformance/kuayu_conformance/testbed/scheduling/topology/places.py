"""Where domains stand, and how far apart: the hub nodes of 东数西算, and cities near each of them.

1. **Places.** The eight hubs are those of the national plan (国家发展改革委等, 发改高技〔2021〕709号; text at
   https://zidonghua.com.cn/news/program/43021.html), each here at the place of one of the ten clusters approved in
   2022. The cluster of the Yangtze Delta's demonstration area lies in Qingpu, Wujiang and Jiashan; those of Horinger
   and Gui'an are 25 to 40 km from the cities that stand for them. Second clusters (Wuhu, Chongqing) are next in their
   lists. What follows are cities near the hub: that each of them has a data centre is an assumption.

   Coordinates: GeoNames (https://www.geonames.org, CC BY 4.0), by the number given, rounded to a thousandth of a
   degree.
2. **Distances.** They are told along the Earth, along fibre, and in time.
"""

import math
from dataclasses import dataclass
from itertools import chain

EASTERN = frozenset({"beijing-tianjin-hebei", "yangtze-delta", "greater-bay", "chengdu-chongqing"})
"""Hubs that serve the demand around them; the other four are to take work from elsewhere (发改高技〔2021〕709号)."""


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
_BY_HUB = [[place for place in _PLACES if place.hub == hub] for hub in _ORDER]
PLACES: tuple[Place, ...] = tuple(chain.from_iterable(zip(*_BY_HUB, strict=True)))
"""All places: first the hubs, east and west in turn, then the second place of each hub, and so on."""
MIN_DOMAINS, MAX_DOMAINS = 5, len(PLACES)
"""How many domains there can be."""
EARTH = 6371.0
"""Mean radius in kilometres (IUGG)."""
DELAY = 6e-6
"""Seconds for a kilometre of fibre, equipment on the way included.

Light alone takes 5 µs (ITU-T G.114, table A.1). From Zhongwei to Beijing 8 to 10 ms were measured one way (中国新闻网,
2022-08-29), over 1010 km and so by :func:`fibre` 1500 km of fibre: 6 µs for each. With it the circles of 1 ms for a
city, 5 ms for a region and 20 ms between hubs (发改数据〔2023〕1779号) reach 110, 550 and 2 670 km.
"""
_HUBS = {place.name: place.hub for place in PLACES}
_STRAIGHT, _FAR = 1000.0, 1200.0


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
