"""Families of topologies: what each of them changes. What is not about places and wires belongs to workload and engine.

Data gravity, bursts, one job that needs every domain and misjudged durations are matters of the workload; false
capacity, domains slower than on paper, partitions and failing nodes are disturbances of the engine: these families have
the topology of ``reference``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kuayu_conformance.testbed.scheduling.topology.weather import Trouble

MIX = ("A800", "Ascend 910B", "H800", "A800", "H20", "Ascend 910B", "DCU K100 AI", "BI150")
"""Accelerators of eight domains, one kind each: an assumption, half of them NVIDIA's and half Chinese.

Which domain has which is drawn: it moves results the most.
"""

_WIDE = ("H800", "MLU370-X8", "A800", "DCU K100 AI", "H20", "Ascend 910B", "BI150", "A800")

LEASED = ((5e9, 0.25), (10e9, 0.35), (20e9, 0.20), (50e9, 0.12), (100e9, 0.08))
"""Bits a second that a domain leases, with their shares: usual sizes of leased lines. The shares are an assumption,
such that the median of wires is 10 Gbit/s (``access`` of ``assumptions`` scales them)."""

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
