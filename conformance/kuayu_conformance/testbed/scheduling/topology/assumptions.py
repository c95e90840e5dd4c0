"""What no public source says: each with a range, so that it can be drawn and its weight seen.

``build(..., assumed={...})`` takes other values; ``drawn(seed)`` draws all of them at once, ``varied(name)`` goes
through the range of one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kuayu_conformance.testbed.chance import Chance


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
            1.0, 0.3, 3.0, "Factor of all capacities of wires; one is a median of 10 Gbit/s, as leased by tenants."
        ),
        "cell": Assumption(
            6.0, 1.0, 24.0, "Hours for which a wire keeps its share; measurements are days apart and say less."
        ),
        "tide": Assumption(60.0, 24.0, 120.0, "Hours after which the network may turn from free to busy or back."),
        "busy": Assumption(0.5, 0.2, 0.8, "Share of the time in which the network is busy."),
        "depth": Assumption(1.0, 0.0, 1.5, "How much of the measured loss a wire has in busy times; nought is none."),
        "yuan": Assumption(7.1, 6.8, 7.3, "Yuan for a US dollar, 2022–2025; all money is in yuan."),
        "reach": Assumption(2000.0, 1000.0, 3000.0, "Kilometres from which on a bit costs the dearest tariff."),
        "tariff": Assumption(1.0, 0.0, 3.0, "Factor of all tariffs; nought is free traffic."),
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
