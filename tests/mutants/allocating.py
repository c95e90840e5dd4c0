"""Wrong in allocations: what is held in some domains and not in all, or for nobody."""

from minimal_server.core import Answer, Json, Refusal, Request, Tenant
from minimal_server.reserving import Allocation, Step
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("RES-011", "SCH-017", "SCH-018")
class OnePromiseIsEnough(MinimalServer):
    """Domains are to commit when the first of them has promised."""

    @override
    def go_on(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        if one.phase == "preparing" and any(step.outcome == "prepared" for step in one.now("reserve", "prepare")):
            self.commit(tenant, one, moment)
        else:
            super().go_on(tenant, one, moment)


@breaks("RES-011", "SCH-017", "SCH-019")
class CommitsAreTakenForGranted(MinimalServer):
    """An allocation is committed when its domains were told to."""

    @override
    def commit(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        super().commit(tenant, one, moment)
        self.hold(tenant, one, moment)


@breaks("SCH-017")
class WhoIsSilentIsLeftAlone(MinimalServer):
    """Domains that have not answered are not told to let go."""

    @override
    def to_be_aborted(self, one: Allocation) -> list[Step]:
        return [step for step in super().to_be_aborted(one) if step.outcome == "prepared"]


@breaks("SCH-017")
class LatePromisesAreBelieved(MinimalServer):
    """Who promises what nobody wants any more is not told to let go again."""

    @override
    def is_late(self, one: Allocation, step: Step, result: Json) -> bool:
        return False


@breaks("RES-011", "SCH-017", "SCH-018")
class NothingIsAborted(MinimalServer):
    """When one refuses, the others are left with what they have promised."""

    @override
    def abort(self, tenant: Tenant, one: Allocation, reason: str, moment: int) -> None:
        one.reason = reason
        self.settle_aborted(tenant, one, moment)


@breaks("RES-011", "SCH-018")
class NoAlternativeIsTried(MinimalServer):
    """The first refusal is the last."""

    @override
    def settle_aborted(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        self.enter(tenant, one, "refused", moment)


@breaks("SCH-018")
class TheLastAlternativeComesFirst(MinimalServer):
    """Alternatives are tried from the last to the first."""

    @override
    def prepare(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        one.body.setdefault("alternatives", []).reverse()
        super().prepare(tenant, one, moment)


@breaks("SCH-017", "SCH-019")
class TheFirstPlacementIsReleased(MinimalServer):
    """When an allocation ends, the domains of its first placement are told, whichever of its placements is held."""

    @override
    def release(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        one.held = one.placements[0]
        super().release(tenant, one, moment)


@breaks("RES-011", "SCH-019")
class ReleasesDoNotEnd(MinimalServer):
    """When all domains have given back what they held, the allocation stays as it was."""

    @override
    def go_on(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        if one.phase != "releasing":
            super().go_on(tenant, one, moment)


@breaks("SCH-017")
class NodesAreNotTold(MinimalServer):
    """The record does not tell on which nodes devices are held."""

    @override
    def on_nodes(self, share: Json, nodes: list[Json]) -> Json:
        return share


@breaks("RES-011", "SCH-017")
class ResultsAreTakenOnce(MinimalServer):
    """A result that is told again is refused."""

    @override
    def take_result(self, tenant: Tenant, one: Allocation, step: Step, result: Json, moment: int) -> None:
        if step.outcome is not None:
            raise Refusal("invalid-body", "this was told already")
        super().take_result(tenant, one, step, result, moment)


@breaks("SCH-017", "SCH-018")
class PuttingAgainBeginsAgain(MinimalServer):
    """An allocation that is put again is another one."""

    @override
    def put_allocation(self, request: Request, name: str) -> Answer:
        self.book(request.tenant).allocations.pop(name, None)
        return super().put_allocation(request, name)


@breaks("SCH-017")
class RefusalsCountAsPromises(MinimalServer):
    """Who refuses is told to commit all the same."""

    @override
    def take_result(self, tenant: Tenant, one: Allocation, step: Step, result: Json, moment: int) -> None:
        taken = {**result, "outcome": "prepared"} if result["outcome"] == "refused" else result
        super().take_result(tenant, one, step, taken, moment)
