"""Which domains have let go by themselves since their leases are over (clause Allocations, where a job may run).

A domain counts from when it sent a request that was answered, the service from when it answered; so the service's count
ends later, and it waits a tenth longer, since clocks count unlike seconds.
"""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

MARGIN = 1.1
"""Times a lease that a domain is silent before it is taken to have let go."""

LOOK = 0.25
"""Seconds from one look to the next."""

ABSENCE = 1.0
"""Seconds between two looks from which on it was the service that was away."""

LONGEST = 86_400.0
"""Seconds of the longest lease there can be, by the published model."""


@dataclass(frozen=True, slots=True)
class Leased:
    """An allocation with a lease that domains may hold.

    Attributes:
        tenant: Whose it is.
        name: Its name.
        lease: Its lease, in seconds.
        domains: Domains that it may be held in.
    """

    tenant: str
    name: str
    lease: float
    domains: Collection[str]


class Leases:
    """When domains were last answered. Use it in the event loop.

    Args:
        clock: Seconds of any steady clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = self._looked = clock()
        self._answered: dict[tuple[str, str], float] = {}

    def answered(self, tenant: str, domain: str) -> None:
        """A request of a domain for its open actions is answered now."""
        self._answered[tenant, domain] = self._clock()

    def over(self, leased: Collection[Leased]) -> list[Leased]:
        """Those of which a lease is over, with the domains that have let go. To be called every ``LOOK`` seconds."""
        now = self._clock()
        if now - self._looked > ABSENCE:
            self._since = now  # nobody could be answered meanwhile
            self._answered.clear()
        self._looked = now
        self._answered = {key: at for key, at in self._answered.items() if now - at <= MARGIN * LONGEST}
        found = [(each, self._silent(each, now)) for each in leased]
        return [Leased(each.tenant, each.name, each.lease, silent) for each, silent in found if silent]

    def idle(self) -> None:
        """There are no leases to look at until :meth:`over` is called again; that is no absence."""
        self._looked = float("inf")

    def _silent(self, leased: Leased, now: float) -> list[str]:
        limit = MARGIN * leased.lease
        last = ((domain, self._answered.get((leased.tenant, domain), self._since)) for domain in leased.domains)
        return [domain for domain, at in last if now - at > limit]
