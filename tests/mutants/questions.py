"""Wrong in what is refused of requests about running jobs: names that stand twice, and what contradicts itself."""

import re
from collections.abc import Iterator, Sequence
from itertools import permutations

from minimal_server.core import Json
from minimal_server.naming import Wrong
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


class Passing(MinimalServer):
    """Passes over names that stand twice in some places."""

    passed = ""

    @override
    def loads_twice(self, body: Json) -> Iterator[Wrong]:
        return ((place, what) for place, what in super().loads_twice(body) if not re.fullmatch(self.passed, place))


@breaks("COM-042")
class LoadsMayStandTwice(Passing):
    """Of two domains of one name the later one counts."""

    passed = "/domains/.*"


@breaks("COM-042")
class JobsThatRunMayHaveOneName(Passing):
    """Of two jobs of one name both are adjusted."""

    passed = "/jobs/[0-9]+/id"


@breaks("COM-042")
class SharesStandTwiceInOrders(Passing):
    """A second share in a domain is taken for a fault of the order, which does not name the domain as often."""

    passed = ".*/shares/.*"


@breaks("COM-042")
class LatenciesMayLeadAnywhere(MinimalServer):
    """Links from and to domains whose load nobody tells do not matter."""

    @override
    def ends_of_nowhere(self, body: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class SharesLieAnywhere(MinimalServer):
    """A share in a domain that is not there is taken for a fault of the order, which does not name it."""

    @override
    def shares_of_nowhere(self, body: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class UnknownDomainsSpoilPolicies(MinimalServer):
    """An unknown domain in an order makes it no order of the job's domains, and the body invalid."""

    @override
    def orders_of_nowhere(self, body: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class JobsNeedNoLinks(MinimalServer):
    """Between domains of a job without a link there is one that hardly carries anything."""

    @override
    def check_adjustment(self, body: Json) -> None:
        held = {(link["source"], link["target"]) for link in body["links"]}
        pairs = (pair for job in body["jobs"] for pair in permutations(self.home(job), 2))
        lacking = {pair for pair in pairs if len({*pair}) > 1 and pair not in held}
        poor = {"bandwidth": 1.0, "level": 1.0, "latencies": [1.0]}
        body["links"] += [{"source": one, "target": other, **poor} for one, other in sorted(lacking)]
        super().check_adjustment(body)


@breaks("COM-042")
class AllDomainsMustBeLinked(MinimalServer):
    """Where no link leads from one domain to another, whether a job is there or not, the body is invalid."""

    @override
    def jobs_apart(self, body: Json) -> Iterator[Wrong]:
        return self.unlinked({**body, "domains": [row["id"] for row in body["domains"]]})


@breaks("COM-042")
class PlannedOrdersMayBeShort(MinimalServer):
    """In an order that is planned domains of the job may be missing."""

    @override
    def orders_of_others(self, body: Json) -> Iterator[Wrong]:
        planned = [row for row in self.policies(body) if "parts" in row[1]]
        short = {
            f"{place}/order"
            for place, policy, job in planned
            if len({*policy["order"]}) == len(policy["order"]) < len(job["shares"])
        }
        return ((place, what) for place, what in super().orders_of_others(body) if place not in short)


@breaks("COM-042")
class PlannedPeriodsGoUnread(MinimalServer):
    """What exchanges at every step may be planned with a period."""

    @override
    def idle_periods(self, body: Json) -> Iterator[Wrong]:
        return ((place, what) for place, what in super().idle_periods(body) if "/planned/" not in place)


@breaks("COM-042")
class PartsMayBeMoreThanThereWere(MinimalServer):
    """Parts that are planned may be others in sum than those in force."""

    @override
    def divides(self, job: Json, parts: Sequence[int]) -> bool:
        return len(parts) == len(job["shares"]) and min(parts) >= 1


@breaks("COM-042")
class DomainsMayBePlannedEmpty(MinimalServer):
    """A domain may be planned to compute nothing."""

    @override
    def divides(self, job: Json, parts: Sequence[int]) -> bool:
        return super().divides(job, parts) or (len(parts) == len(job["shares"]) and min(parts) == 0)


@breaks("COM-042")
class PlansMayFall(MinimalServer):
    """A change may be planned for an instant before that of the change in front of it."""

    @override
    def falling_begins(self, body: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class TheFirstJobIsBlamed(MinimalServer):
    """Whichever job contradicts itself, the first one is named."""

    @override
    def policies(self, body: Json) -> Iterator[tuple[str, Json, Json]]:
        for place, policy, job in super().policies(body):
            yield re.sub("^/jobs/[0-9]+", "/jobs/0", place), policy, job
