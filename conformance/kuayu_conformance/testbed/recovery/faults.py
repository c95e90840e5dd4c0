"""What fails in a window, and when.

Meta counted 419 unexpected interruptions in 54 days of a training on 16,384 GPUs, 2,048 nodes of eight (Grattafiori et
al., "The Llama 3 Herd of Models", 2024, section 3.3.4): a node fails once in 264 days. Here single nodes fail
``SPED_UP`` times as often, so that hours show what takes months. That racks and domains fail, how often, and how long
outages and cut-offs last are assumptions; no two domains are away at the same time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kuayu_conformance.testbed.chance import Chance

NODE, RACK, DOMAIN, CUT_OFF = "node", "rack", "domain", "cut-off"
KINDS = (NODE, RACK, DOMAIN, CUT_OFF)

LLAMA_S = 54 * 86400.0 * 2048 / 419
"""Seconds between failures of one node, as counted."""
SPED_UP = 800.0
NODES_S = LLAMA_S / SPED_UP
"""Seconds between failures of one node alone: 8 hours."""
RACKS_S, DOMAINS_S, CUT_OFFS_S = 24 * 3600.0, 12 * 3600.0, 8 * 3600.0
"""Seconds between failures of one rack, of one domain, and between cut-offs of one."""
RACK_SIZES = (3, 4, 5, 6)
OUTAGES_S = (900.0, 3600.0)
"""How long a domain that failed is away; uniformly between these."""
SHORT, LONG_S = (0.2, 0.9), (60.0, 1800.0)
"""A cut-off lasts such a part of the lease, or so much longer than it; one is as likely as the other."""
APART_S = 1200.0
"""Seconds from the return of a domain until the next may be away."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that fails.

    Attributes:
        instant: When, seconds from the begin of the window.
        kind: One of ``KINDS``.
        domain: Where, by number.
        nodes: Those that fail, by number; none where the whole domain is away.
        lasts_s: How long the domain is away; nought for nodes, which are repaired in their time.
    """

    instant: float
    kind: str
    domain: int
    nodes: tuple[int, ...] = ()
    lasts_s: float = 0.0


def draw(seed: str, domains: Sequence[Sequence[int]], lease_s: float, begin: float, end: float) -> tuple[Fault, ...]:
    """Faults between two instants, in the order of time; ``domains`` are the nodes of each."""
    found = [*_nodes(seed, domains, begin, end), *_racks(seed, domains, begin, end)]
    found += _away(seed, len(domains), lease_s, begin, end)
    return tuple(sorted(found, key=lambda fault: fault.instant))


def time_between_failures() -> float:
    """Seconds between failures of one node, whatever it fails by."""
    return 1.0 / (1.0 / NODES_S + 1.0 / RACKS_S + 1.0 / DOMAINS_S)


def _nodes(seed: str, domains: Sequence[Sequence[int]], begin: float, end: float) -> Iterator[Fault]:
    chance = Chance(seed, "nodes fail")
    for domain, nodes in enumerate(domains):
        for instant in _instants(chance, NODES_S / len(nodes), begin, end):
            yield Fault(instant, NODE, domain, (chance.pick(nodes),))


def _racks(seed: str, domains: Sequence[Sequence[int]], begin: float, end: float) -> Iterator[Fault]:
    chance = Chance(seed, "racks fail")
    for domain, nodes in enumerate(domains):
        for rack in _split(chance, nodes):
            for instant in _instants(chance, RACKS_S, begin, end):
                yield Fault(instant, RACK, domain, rack)


def _split(chance: Chance, nodes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Racks of a domain; neighbours by number share one."""
    left = tuple(nodes)
    while left:
        size = chance.pick(RACK_SIZES)
        yield left[:size]
        left = left[size:]


def _away(seed: str, domains: int, lease_s: float, begin: float, end: float) -> Iterator[Fault]:
    """Domains that are away, one after the other."""
    chance = Chance(seed, "domains are away")
    free = begin
    for instant in _instants(chance, 1.0 / (domains / DOMAINS_S + domains / CUT_OFFS_S), begin, end):
        fails = chance.fraction() < CUT_OFFS_S / (DOMAINS_S + CUT_OFFS_S)
        short, share = chance.fraction() < 1 / 2, chance.fraction()
        domain = chance.below(domains)
        low, high = OUTAGES_S if fails else LONG_S
        lasts = low + (high - low) * share + (0.0 if fails else lease_s)
        if short and not fails:
            lasts = lease_s * (SHORT[0] + (SHORT[1] - SHORT[0]) * share)
        if instant >= free:
            yield Fault(instant, DOMAIN if fails else CUT_OFF, domain, lasts_s=round(lasts, 3))
            free = instant + lasts + APART_S


def _instants(chance: Chance, mean_s: float, begin: float, end: float) -> Iterator[float]:
    """Instants of a Poisson process, to the millisecond."""
    instant = begin
    while True:
        instant -= mean_s * float(np.log(1.0 - chance.fraction()))
        if instant >= end:
            return
        yield round(instant, 3)
