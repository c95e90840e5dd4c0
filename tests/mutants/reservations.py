"""Wrong in what is reserved for tenants: too little, too much, and for whom."""

from collections.abc import Sequence

from minimal_server.core import Answer, Json, Request
from minimal_server.foreseeing import Paths
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("FCT-004")
class WhatIsExpectedIsReserved(MinimalServer):
    """As much is reserved as is needed in half of the cases, whatever was promised."""

    @override
    def reserved(self, cases: Sequence[float], violations: float) -> int:
        return super().reserved(cases, 0.5)


@breaks("FCT-004")
class WhatIsNeededNowIsReserved(MinimalServer):
    """Errors of the past are forgotten: the last value is reserved, and what jobs will need more."""

    @override
    def highest(self, values: Sequence[float], ahead: int) -> list[float]:
        return [0.0]


@breaks("FCT-004")
class TheMostThatWasSeenIsReserved(MinimalServer):
    """As much is reserved as the tenant ever needed, or the case that needs the most."""

    @override
    def reservation(self, body: Json, series: Json, violations: float, laid: Sequence[Paths]) -> Json:
        told = super().reservation(body, series, 0.0, laid)
        return {**told, "devices": max(told["devices"], *map(round, series["values"]))}


@breaks("FCT-004", "FCT-006")
class PromisesAreTakenForTheirOpposite(MinimalServer):
    """Who is promised few violations is reserved as little as is exceeded in all cases but these few."""

    @override
    def reserved(self, cases: Sequence[float], violations: float) -> int:
        return super().reserved(cases, 1 - violations)


class Retelling(MinimalServer):
    """Tells what it reserves otherwise."""

    @override
    def reserve(self, request: Request) -> Answer:
        told = super().reserve(request).body
        return Answer(200, {**told, "reservations": self.told_of(told["reservations"])})

    def told_of(self, rows: list[Json]) -> list[Json]:
        """What it tells."""
        raise NotImplementedError


@breaks("FCT-004", "FCT-006")
class TheLargestReservationStandsFirst(Retelling):
    """Reservations are told by their devices, not in the order of the series."""

    @override
    def told_of(self, rows: list[Json]) -> list[Json]:
        return sorted(rows, key=lambda row: -row["devices"])


@breaks("FCT-006")
class DomainsOfReservationsAreMissing(Retelling):
    """Reservations do not say in which domain they are."""

    @override
    def told_of(self, rows: list[Json]) -> list[Json]:
        return [{name: value for name, value in row.items() if name != "domain"} for row in rows]


@breaks("FCT-006")
class EachTenantIsReservedForOnce(Retelling):
    """Of a tenant in several domains something is reserved in the first only."""

    @override
    def told_of(self, rows: list[Json]) -> list[Json]:
        first = {row["tenant"]: row["series"] for row in reversed(rows)}
        return [row for row in rows if first[row["tenant"]] == row["series"]]


@breaks("FCT-006")
class SomethingIsReservedForWhoWasPromisedNothing(MinimalServer):
    """Tenants without a promise are taken to have one."""

    @override
    def reserve(self, request: Request) -> Answer:
        told = super().reserve(request).body
        body = self.body(request, "ReservationRequest")
        known = {row["series"]: row for row in told["reservations"]}
        like = next(iter(known.values()))
        rows = [
            known.get(series["id"], {**like, "series": series["id"], "tenant": series["tenant"]})
            for series in body["series"]
            if "tenant" in series
        ]
        return Answer(200, {**told, "reservations": rows})
