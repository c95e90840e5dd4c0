"""What goes wrong in a scenario whatever the policy does, and what domains report meanwhile.

1. **Disturbances.** Nodes fail, domains are cut off, boast, or are slow.
2. **Reports.** Domains report the truth of their devices, or what was true when they were cut off, or more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.scheduling.engine.stages import Clock
from kuayu_conformance.testbed.scheduling.engine.state import Counts, Holdings, Places
from kuayu_conformance.testbed.scheduling.engine.traffic import Traffic

LLAMA_3_FAILURES = 419 / (54 * 86_400.0 * 16_384 / 8)
"""Unexpected interruptions for a node of eight devices and a second: 419 in 54 days on 16 384 accelerators.

Grattafiori et al., "The Llama 3 herd of models", arXiv:2407.21783, section 3.3.4.
"""


@dataclass(frozen=True, slots=True)
class Cut:
    """A domain is partitioned from the others and from the policy.

    Its jobs run on; wires that end there offer nothing, orders that concern it are refused, and what is reported of its
    devices is what was true when it began.
    """

    site: str
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Claim:
    """A domain reports so many times the devices that it has; it refuses what it cannot hold."""

    site: str
    factor: float
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Disturbances:
    """What goes wrong.

    Attributes:
        failures: Failures of a node in a second.
        repair: Mean seconds until a node that failed is back.
        cuts: Partitions; those of a domain do not overlap.
        claims: False reports.
        slow: Share of its speed on paper that jobs in a domain have in practice, by domain; one where it is not named.
    """

    failures: float = 0.0
    repair: float = 3_600.0
    cuts: tuple[Cut, ...] = ()
    claims: tuple[Claim, ...] = ()
    slow: Mapping[str, float] = field(default_factory=dict)


CALM = Disturbances()
"""Nothing goes wrong."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A node fails.

    Attributes:
        instant: Seconds since the scenario began.
        pool: Number of the pool.
        place: Where among the working devices of the pool it is, of [0, 1).
        repaired: When it is back.
    """

    instant: float
    pool: int
    place: float
    repaired: float


class Faults:
    """Faults one after the other: a Poisson process over all nodes, with exponential times of repair."""

    def __init__(self, disturbances: Disturbances, places: Places, seed: str) -> None:
        self._disturbances = disturbances
        self._chance = Chance(seed, "node faults")
        self._nodes = [
            (pool, float(nodes)) for pool, nodes in enumerate((places.devices // places.per_node).tolist()) if nodes
        ]
        self._rate = disturbances.failures * sum(nodes for _, nodes in self._nodes)
        self._now = 0.0

    def next(self) -> Fault | None:
        """The next one, or none if nodes do not fail."""
        if self._rate <= 0.0:
            return None
        self._now += exponential_variate(self._chance) / self._rate
        pool = self._chance.weighted(self._nodes)
        place = self._chance.fraction()
        return Fault(self._now, pool, place, self._now + exponential_variate(self._chance) * self._disturbances.repair)


def exponential_variate(chance: Chance) -> float:
    """A draw of mean one by comparisons alone, so that no logarithm can differ.

    J. von Neumann, "Various techniques used in connection with random digits", 1951: the length of a falling run of
    uniform draws is odd with probability exp(-first).
    """
    whole = 0.0
    while True:
        first = last = chance.fraction()
        length = 1
        while (drawn := chance.fraction()) < last:
            last = drawn
            length += 1
        if length % 2:
            return whole + first
        whole += 1.0


class Reports:
    """Devices as they are reported.

    Args:
        places: Pools by number.
        holdings: The truth.
        traffic: Wires, which are cut with a domain.
        clock: Tells when.
        disturbances: What is planned.
        changed: Called when a report changes by itself.
    """

    def __init__(
        self,
        places: Places,
        holdings: Holdings,
        traffic: Traffic,
        clock: Clock,
        disturbances: Disturbances,
        changed: Callable[[], None],
    ) -> None:
        self._places, self._holdings, self._traffic, self._changed = places, holdings, traffic, changed
        self._cut: dict[int, tuple[Counts, Counts]] = {}
        self._claims: dict[int, float] = {}
        for cut in disturbances.cuts:
            clock.at(cut.since, self._cut_off, cut)
            clock.at(cut.until, self._heal, cut)
        for claim in disturbances.claims:
            clock.at(claim.since, self._boast, claim)
            clock.at(claim.until, self._repent, claim)

    @property
    def cut(self) -> frozenset[int]:
        """Numbers of the domains that cannot be reached."""
        return frozenset(self._cut)

    def devices(self) -> tuple[Counts, Counts]:
        """Working and free devices, by pool."""
        working, free = self._holdings.working.copy(), self._holdings.free.copy()
        for site, (then_working, then_free) in self._cut.items():
            pools = self._places.of_site[site]
            working[pools], free[pools] = then_working, then_free
        for site, factor in self._claims.items():
            pools = self._places.of_site[site]
            held = working[pools] - free[pools]
            working[pools] = np.rint(working[pools] * factor).astype(np.int64)
            free[pools] = np.maximum(working[pools] - held, 0)
        return working, free

    def _cut_off(self, cut: Cut) -> None:
        site = self._places.site_number(cut.site)
        pools = self._places.of_site[site]
        self._cut[site] = self._holdings.working[pools].copy(), self._holdings.free[pools].copy()
        self._rewire()

    def _heal(self, cut: Cut) -> None:
        del self._cut[self._places.site_number(cut.site)]
        self._rewire()

    def _rewire(self) -> None:
        names = {self._places.sites[site] for site in self._cut}
        wires = self._traffic.topology.wires
        self._traffic.cut({n for n, wire in enumerate(wires) if wire.source in names or wire.target in names})
        self._changed()

    def _boast(self, claim: Claim) -> None:
        self._claims[self._places.site_number(claim.site)] = claim.factor
        self._changed()

    def _repent(self, claim: Claim) -> None:
        del self._claims[self._places.site_number(claim.site)]
        self._changed()
