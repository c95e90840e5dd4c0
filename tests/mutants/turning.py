"""Wrong in the turns of a job's allocations: it runs in two places, or in none."""

from typing import Any

from minimal_server.core import Json, Tenant, milliseconds
from minimal_server.reserving import Allocation, Step
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("RES-011")
class JobsRunTwice(MinimalServer):
    """Allocations do not know of others of their job."""

    @override
    def held_up(self, of_job: list[Allocation]) -> bool:
        return False


@breaks("RES-011")
class TheAlternativeDoesNotWait(MinimalServer):
    """Who was to commit and is silent beyond patience is taken to hold nothing."""

    @override
    def let_go(self, one: Allocation) -> set[str]:
        overtaken = {step.action["id"] for step in one.steps.values() if step.attempt < one.attempt}
        return super().let_go(one) | overtaken

    @override
    def overdue(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        if one.phase == "aborting":
            self.settle_aborted(tenant, one, moment)
        else:
            super().overdue(tenant, one, moment)


@breaks("RES-011")
class TheFirstReleaseIsForAll(MinimalServer):
    """When one domain has released the job, all are taken to have."""

    @override
    def maybe_held(self, one: Allocation) -> bool:
        return super().maybe_held(one) and not self.let_go(one)


@breaks("RES-011")
class FailuresCountAsReleases(MinimalServer):
    """Who could not let go is taken to have."""

    @override
    def unsettled(self, step: Step) -> set[str]:
        return {"unknown"}


@breaks("RES-011")
class WhoWaitsIsForgotten(MinimalServer):
    """An allocation that had to wait for another is never committed."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.forgotten: set[int] = set()

    @override
    def held_up(self, of_job: list[Allocation]) -> bool:
        held, promised = super().held_up(of_job), super().promised
        self.forgotten |= {id(one) for one in of_job if held and promised(one)}
        return held

    @override
    def promised(self, one: Allocation) -> bool:
        return super().promised(one) and id(one) not in self.forgotten


@breaks("RES-011")
class TheYoungestGoesFirst(MinimalServer):
    """Of those that wait, the one that has waited least is committed."""

    @override
    def first_of(self, waiting: list[Allocation]) -> Allocation:
        return max(waiting, key=lambda one: one.created)


@breaks("RES-011")
class LeasesAreIgnored(MinimalServer):
    """A domain that is silent is waited for without end, whatever its lease."""

    @override
    def lease_end(self, one: Allocation, answered: int) -> int:
        return answered + 86_400_000


@breaks("RES-011")
class LeasesAreCountedShort(MinimalServer):
    """A domain is taken to have let go when half of its lease is over."""

    @override
    def lease_end(self, one: Allocation, answered: int) -> int:
        return answered + round(500 * float(one.body["lease"]))


@breaks("RES-011")
class LeasesAreNotRenewed(MinimalServer):
    """Leases count from when something was committed, however often the domain was answered since."""

    @override
    def lease_end(self, one: Allocation, answered: int) -> int:
        return super().lease_end(one, one.updated)


@breaks("RES-011")
class LapsesAreNotHeeded(MinimalServer):
    """A domain that says that it has let go by itself is not believed."""

    @override
    def take_result(self, tenant: Tenant, one: Allocation, step: Step, result: Json, moment: int) -> None:
        if result["outcome"] != "expired" or step.outcome != "committed":
            super().take_result(tenant, one, step, result, moment)


@breaks("RES-011")
class OnlyTheSilentLetsGo(MinimalServer):
    """When the lease of a domain is over, the others keep what they hold."""

    @override
    def call_back(self, tenant: Tenant, one: Allocation, reason: str, moment: int) -> None:
        pass


@breaks("RES-011")
class ClocksOfDomainsAreBelieved(MinimalServer):
    """A promise counts until the instant that its domain states, by the service's own clock."""

    @override
    def take_result(self, tenant: Tenant, one: Allocation, step: Step, result: Json, moment: int) -> None:
        over = "expires_at" in result and milliseconds(result["expires_at"]) < moment
        super().take_result(tenant, one, step, {**result, "outcome": "expired"} if over else result, moment)
