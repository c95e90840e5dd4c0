"""Flows on wires: alone, bundled with those of the same route, and what they cost."""

from dataclasses import dataclass, field
from math import inf

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats


@dataclass(slots=True)
class Current:
    """A flow on its wires.

    Attributes:
        wires: Numbers of the wires of its route; at least one.
        wish: Bits a second beyond which more is of no use.
        bits: What is left to move; infinite for one that ends with its job.
        owner: Number of the job on whose account it goes.
        rate: Bits a second that it is granted.
        held: Bits a second that it occupies, at most ``rate``.
        since: Instant until which it is accounted for.
        paid: Integral of the tariff's factor until then.
    """

    wires: tuple[int, ...]
    wish: float
    bits: float
    owner: int
    rate: float = 0.0
    held: float = 0.0
    since: float = 0.0
    paid: float = 0.0

    @property
    def transfer(self) -> bool:
        """Whether it has an end of its own."""
        return self.bits < inf

    def ends(self, now: float) -> float:
        """When it is through if its rate stays."""
        return now + self.bits / self.rate if self.rate > 0.0 else inf


@dataclass(slots=True, eq=False)
class Bundle:
    """Flows of one route and wish, which are all granted the same: wires are shared among bundles, not flows.

    Attributes:
        wires: Numbers of the wires of their route.
        wish: Bits a second beyond which more is of no use to one of them.
        numbers: Their numbers, in order.
        rate: Bits a second that each was granted when wires were last shared.
        grown: Whether one has come since then.
    """

    wires: tuple[int, ...]
    wish: float
    numbers: dict[int, None] = field(default_factory=dict)
    rate: float = 0.0
    grown: bool = True

    @property
    def first(self) -> int:
        """Number of its first flow."""
        return next(iter(self.numbers))


@dataclass(slots=True)
class Bill:
    """What wires have carried.

    Attributes:
        bits: Integral of the occupied bandwidth, by wire.
        money: That by tariff and time of day, by wire.
        of_job: Money by the number of the job on whose account it was.
    """

    bits: Floats
    money: Floats
    of_job: Floats
