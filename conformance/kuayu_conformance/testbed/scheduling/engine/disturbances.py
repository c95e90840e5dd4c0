"""What goes wrong in a scenario, whatever the policy does: nodes fail, domains are cut off, boast, or are slow."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.scheduling.engine.places import Places

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
