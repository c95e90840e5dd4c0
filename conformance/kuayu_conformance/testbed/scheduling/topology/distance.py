"""How far apart places are: along the Earth, along fibre, and in time."""

import math

from kuayu_conformance.testbed.scheduling.topology.places import Place

EARTH = 6371.0
"""Mean radius in kilometres (IUGG)."""

DELAY = 6e-6
"""Seconds for a kilometre of fibre, equipment on the way included.

Light alone takes 5 µs (ITU-T G.114, table A.1). From Zhongwei to Beijing 8 to 10 ms were measured one way (中国新闻网,
2022-08-29), over 1010 km and so by :func:`fibre` 1500 km of fibre: 6 µs for each. With it the circles of 1 ms for a
city, 5 ms for a region and 20 ms between hubs (发改数据〔2023〕1779号) reach 110, 550 and 2 670 km.
"""

_STRAIGHT, _FAR = 1000.0, 1200.0


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
