"""Families of topologies, what each of them changes, and what no public source says about any of them.

1. **Families.** What is not about places and wires belongs to workload and engine. Data gravity, bursts, one job that
   needs every domain and misjudged durations are matters of the workload; false capacity, domains slower than on paper,
   partitions and failing nodes are disturbances of the engine: these families have the topology of ``reference``.
2. **Assumptions.** Each has a range, so that it can be drawn and its weight seen. ``build(..., assumed={...})`` takes
   other values; ``drawn(seed)`` draws all of them at once, ``varied(name)`` goes through the range of one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.scheduling.topology.link_variation import Trouble

MIX = ("A800", "Ascend 910B", "H800", "A800", "H20", "Ascend 910B", "DCU K100 AI", "BI150")
"""Accelerators of eight domains, one kind each: an assumption, half of them NVIDIA's and half Chinese.

Which domain has which is drawn: it moves results the most.
"""
LEASED = ((5e9, 0.25), (10e9, 0.35), (20e9, 0.20), (50e9, 0.12), (100e9, 0.08))
"""Bits a second that a domain leases, with their shares: usual sizes of leased lines. The shares are an assumption,
such that the median of wires is 10 Gbit/s (``access`` of ``ASSUMPTIONS`` scales them)."""
_WIDE = ("H800", "MLU370-X8", "A800", "DCU K100 AI", "H20", "Ascend 910B", "BI150", "A800")
_POOR = ((1e9, 0.3), (2e9, 0.4), (5e9, 0.3))
"""Between public clouds: a single large machine sends 0.1 to 34 Gbit/s, 5.4 at the median (skyplane, 2022)."""
_RICH = ((100e9, 0.5), (400e9, 0.5))
"""Optical lines between the hubs: Shaoguan has 13 of 400 Gbit/s to the Greater Bay (南方都市报, 2025-06-13)."""
_OUTAGE = Trouble("outage", 10 * 86_400, 0.5, 6 * 3_600, 0.0)
"""A line is cut every twenty days for six hours: an assumption, and more than usual, so that each run has some."""
_COLLAPSE = Trouble("collapse", 6 * 3_600, 0.5, 3_600, 0.05)
_DIP = Trouble("dip", 3 * 3_600, 0.5, 1_800, 0.3)
"""Collapses to a twentieth and dips to three tenths: assumptions (``trouble`` says how often).

The brief asks for ±30 %, which is mild."""


@dataclass(frozen=True, slots=True)
class Family:
    """What a family is made of.

    Attributes:
        about: What it is for.
        level: Whether all domains are of one size, rather than as published.
        mix: Accelerators, dealt to the domains in turn.
        pools: How many kinds of accelerators a domain has.
        leased: Capacities of leased lines with their shares.
        troubles: What befalls wires.
    """

    about: str
    level: bool = False
    mix: tuple[str, ...] = MIX
    pools: int = 1
    leased: tuple[tuple[float, float], ...] = LEASED
    troubles: tuple[Trouble, ...] = ()


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
        "faulty": Family("lines and nodes fail", level=True, troubles=(_OUTAGE,)),
        "slow-on-site": Family("fastest on paper, slowest in practice", level=True),
        "false-capacity": Family("a domain reports what it does not have", level=True),
        "giant": Family("one job needs every domain", level=True),
        "collapse": Family("bandwidth collapses while data is under way", level=True, troubles=(_COLLAPSE, _DIP)),
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
