"""What domains report of their devices: the truth, or what was true when they were cut off, or more."""

from collections.abc import Callable

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.clock import Clock
from kuayu_conformance.testbed.scheduling.engine.disturbances import Claim, Cut, Disturbances
from kuayu_conformance.testbed.scheduling.engine.holdings import Holdings
from kuayu_conformance.testbed.scheduling.engine.places import Counts, Places
from kuayu_conformance.testbed.scheduling.engine.traffic import Traffic


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
