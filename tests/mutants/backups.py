"""Wrong in backup plans: spares, risks and prices of pools, and copies for which there is no room."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from math import ceil

from minimal_server.backing import Copy, Place, Timed
from minimal_server.core import Answer, Json, Request
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


class Retelling(MinimalServer):
    """Tells plans otherwise."""

    @override
    def plan_backups(self, request: Request) -> Answer:
        told = super().plan_backups(request).body
        return Answer(200, {**told, **self.backups_otherwise(told, self.body(request, "BackupRequest"))})

    def backups_otherwise(self, told: Json, body: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("COM-028", "RES-015")
class BackupsAreOfTheNextRevision(Retelling):
    """A backup plan tells the revision after that of the question."""

    @override
    def backups_otherwise(self, told: Json, body: Json) -> Json:
        return {"revision": {**told["revision"], "number": told["revision"]["number"] + 1}}


@breaks("COM-029")
class BackupsAreNumbered(Retelling):
    """The version of the method is the number of the question, so that no backup plan is the same again."""

    numbers = count(1)

    @override
    def backups_otherwise(self, told: Json, body: Json) -> Json:
        return {"method": {**told["method"], "version": f"{next(self.numbers)}"}}


@breaks("RES-015")
class TheLastPoolIsForgotten(Retelling):
    """Nothing is said of the last of several domains."""

    @override
    def backups_otherwise(self, told: Json, body: Json) -> Json:
        return {"pools": told["pools"][:-1] or told["pools"]}


@breaks("RES-015")
class CopiesAreToldTwice(Retelling):
    """The first copy stands in the plan once more, at the end, and both have four times its period."""

    @override
    def backups_otherwise(self, told: Json, body: Json) -> Json:
        first = [{**row, "period": 4 * row["period"]} for row in told["copies"][:1]]
        return {"copies": [*first, *told["copies"][1:], *first]}


@breaks("RES-015")
class ThereIsASpareTooFew(MinimalServer):
    """Pools have one node less than the risk calls for."""

    @override
    def spares(self, domain: Json, failures: float, risk: float) -> int:
        return max(0, super().spares(domain, failures, risk) - 1)


@breaks("RES-015")
class ThereIsASpareTooMany(MinimalServer):
    """Pools have one node more than the risk calls for, where one is free."""

    @override
    def spares(self, domain: Json, failures: float, risk: float) -> int:
        return min(int(domain["free"]), super().spares(domain, failures, risk) + 1)


@breaks("RES-015")
class ThereAreMoreSparesThanFreeNodes(MinimalServer):
    """Pools have as many nodes as the risk calls for, whether they are there or not."""

    @override
    def spares(self, domain: Json, failures: float, risk: float) -> int:
        return super().spares({**domain, "free": max(domain["free"], 1_000_000)}, failures, risk)


@breaks("RES-015")
class PoolsAreForFailuresOnAverage(MinimalServer):
    """Pools have as many nodes as fail on average, whatever the risk."""

    @override
    def spares(self, domain: Json, failures: float, risk: float) -> int:
        return min(int(domain["free"]), ceil(min(failures, domain["free"])))


@breaks("RES-015")
class RepairTimeIsAnHour(MinimalServer):
    """A node that has failed is taken to be fit again in an hour."""

    @override
    def failures(self, domain: Json) -> float:
        return super().failures({**domain, "repair_time": 3600.0})


@breaks("RES-015")
class RiskIsOfAsManyFailures(MinimalServer):
    """Risk is the chance that as many nodes fail as there are spares, or more."""

    @override
    def chance_of_more(self, failures: float, spares: int) -> float:
        return super().chance_of_more(failures, spares - 1) if spares else 1.0


@breaks("RES-015")
class ChancesAreOfTheNormalLaw(MinimalServer):
    """Failures are taken to be distributed normally, however few they are."""

    @override
    def chance_of_more(self, failures: float, spares: int) -> float:
        return self.chance_of_many(failures, spares) if failures else 0.0


@breaks("RES-015")
class TheRiskToldIsTwoPercentTooLow(MinimalServer):
    """The risk of every pool is told to be a fiftieth lower than it is."""

    @override
    def pool(self, domain: Json, risk: float) -> Json:
        pool = super().pool(domain, risk)
        return {**pool, "risk": 0.98 * pool["risk"]}


@breaks("RES-015")
class ThePriceIsThatOfASpare(MinimalServer):
    """The price of a pool is that of one of its nodes."""

    @override
    def price_of_spares(self, domain: Json, spares: int) -> float:
        return super().price_of_spares(domain, min(1, spares))


@breaks("RES-015")
class OldCopiesAreOverwritten(MinimalServer):
    """A copy takes the size of its state, as if the old one were not kept."""

    @override
    def room_of(self, job: Json) -> float:
        return super().room_of(job) / 2


@breaks("RES-015")
class StoresHoldOneJob(MinimalServer):
    """Each copy is looked at as if it were alone in its store."""

    @override
    def held_copies(self, body: Json, limits: Mapping[Place, float]) -> Iterator[Copy]:
        for job in body["jobs"]:
            yield from super().held_copies({**body, "jobs": [job]}, limits)


@breaks("RES-015")
class RoomIsEndlessWhereItIsNotTold(MinimalServer):
    """A store that does not say how much room there is holds any copy."""

    @override
    def rooms_for_copies(self, body: Json) -> dict[str, float]:
        return {row["domain"]: float(row.get("free", "inf")) for row in body["stores"]}


class Boundless(MinimalServer):
    """Takes some store or link to be without limits."""

    def is_boundless(self, place: Place) -> bool:
        """Whether it takes that one to be."""
        raise NotImplementedError

    @override
    def stretched(self, held: Sequence[Timed], limits: Mapping[Place, float]) -> list[Timed]:
        return super().stretched(held, {at: limit for at, limit in limits.items() if not self.is_boundless(at)})


@breaks("RES-015")
class StoresTakeWhateverIsWritten(Boundless):
    """The bandwidth of stores is not looked at."""

    @override
    def is_boundless(self, place: Place) -> bool:
        return isinstance(place, str)


@breaks("RES-015")
class LinksTakeWhateverIsSent(Boundless):
    """The bandwidth of links is not looked at."""

    @override
    def is_boundless(self, place: Place) -> bool:
        return isinstance(place, tuple)


@breaks("RES-015")
class CopiesTakeALittleMoreThanTheirShare(MinimalServer):
    """Copies take a hundredth more of links and stores than their share is."""

    @override
    def stretched(self, held: Sequence[Timed], limits: Mapping[Place, float]) -> list[Timed]:
        return super().stretched(held, {place: 1.01 * limit for place, limit in limits.items()})


@breaks("RES-015")
class BytesAreTakenForBits(MinimalServer):
    """The bandwidth of a copy is its bytes by its period."""

    @override
    def load(self, job: Json, period: float) -> float:
        return super().load(job, period) / 8


@breaks("RES-015")
class LinksCarryTheirBest(MinimalServer):
    """A link is taken to carry on average what it carried at its best."""

    @override
    def mean(self, link: Json) -> float:
        return max(link["bandwidths"], default=0.0) if super().mean(link) else 0.0


@breaks("RES-015")
class CopiesGoOverLinksThatAreOut(MinimalServer):
    """Links that are out are taken to carry what they carried before."""

    @override
    def mean(self, link: Json) -> float:
        return super().mean({**link, "up": True})


@breaks("RES-015")
class LinksCarryWithoutMeasurements(MinimalServer):
    """A link that was never measured is taken to carry ten Gbit/s."""

    @override
    def mean(self, link: Json) -> float:
        return super().mean({**link, "bandwidths": link["bandwidths"] or [1e10]})


@breaks("RES-015")
class CopiesNeedNoLink(MinimalServer):
    """Copies are held in any domain with a store, whether a link leads there or not."""

    @override
    def limits(self, body: Json) -> dict[Place, float]:
        domains = [row["domain"] for row in body["stores"]]
        anywhere = {(job["domain"], domain): 1e10 for job in body["jobs"] for domain in domains}
        return {**anywhere, **super().limits(body)}


@breaks("RES-015")
class DomainsNeedNoStore(MinimalServer):
    """A domain without a store is taken to have one like the first that is there."""

    @override
    def plan_backups(self, request: Request) -> Answer:
        answer = super().plan_backups(request)
        body = self.body(request, "BackupRequest")
        lacking = {row["id"] for row in body["domains"]} - {row["domain"] for row in body["stores"]}
        at_home = [job for job in body["jobs"] if job["domain"] in lacking]
        more = [{"job": job["id"], "domain": job["domain"], "period": 3600.0} for job in at_home]
        return Answer(200, {**answer.body, "copies": [*answer.body["copies"], *more]})
