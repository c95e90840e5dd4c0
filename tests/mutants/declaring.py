"""Wrong in what is declared and in what is there."""

from typing import Any

from minimal_server.core import Answer, Json, Request, Tenant, instant
from minimal_server.service import MinimalServer, Route
from typing_extensions import override

from mutants.declaration import breaks


@breaks("COM-001")
class DeclaredClockIsAnHourSlow(MinimalServer):
    """The declaration shows a clock that is an hour slow."""

    @override
    def declaration(self, request: Request) -> Answer:
        answer = super().declaration(request)
        return Answer(200, {**answer.body, "now": instant(self.moment - 3_600_000)})


@breaks("COM-002")
class ProblemRegisterIsMissing(MinimalServer):
    """GET /v1/problems, a mandatory operation, is not there."""

    @override
    def _routes(self) -> list[Route]:
        return [route for route in super()._routes() if not route.path.fullmatch("/v1/problems")]


@breaks("COM-002", "COM-003", "COM-006", "COM-008", "COM-010", "COM-012", "COM-018", "COM-019", "MET-010")
class UpdatedAtIsANumber(MinimalServer):
    """Records give updated_at in seconds since 1970, so that none is what a check may count as an answer."""

    @override
    def shown(self, tenant: Tenant, kind: str, record: Json) -> Json:
        shown: dict[str, Any] = super().shown(tenant, kind, record)
        return {**shown, "updated_at": 1_767_225_600}


@breaks("COM-003")
class LargeNodesGiveUpdatedAtInSeconds(MinimalServer):
    """Nodes of several devices alone give updated_at in seconds; nothing but a look at every answer meets with it."""

    @override
    def shown(self, tenant: Tenant, kind: str, record: Json) -> Json:
        shown: dict[str, Any] = super().shown(tenant, kind, record)
        return {**shown, "updated_at": 1_767_225_600} if len(shown.get("devices", ())) > 1 else shown
