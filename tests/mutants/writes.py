"""Wrong in what a write leaves behind."""

from collections.abc import Callable

from minimal_server.core import Answer, Json, Request, Tenant
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("COM-008")
class EveryPutIsAChange(MinimalServer):
    """The same PUT again makes a new revision."""

    @override
    def differs(self, record: Json, body: Json) -> bool:
        return True


@breaks("COM-009")
class IdempotencyKeyIsIgnored(MinimalServer):
    """A POST is carried out again whatever its key."""

    @override
    def once(self, request: Request, carry_out: Callable[[Request], Answer]) -> Answer:
        return carry_out(request)


@breaks("COM-009")
class IdempotencyKeyFitsAnyBody(MinimalServer):
    """A known key gives the first answer even to another body."""

    @override
    def once(self, request: Request, carry_out: Callable[[Request], Answer]) -> Answer:
        blind = Request(request.tenant, request.method, request.path, request.query, request.headers, b"")
        return super().once(blind, lambda _: carry_out(request))


@breaks("COM-010")
class IfMatchIsIgnored(MinimalServer):
    """A write is carried out whatever revision its caller has seen."""

    @override
    def check_precondition(self, request: Request, record: Json | None) -> None:
        pass


@breaks("COM-010")
class SamplesMoveRevisions(MinimalServer):
    """A sample changes the revision of its domain's record."""

    @override
    def post_samples(self, request: Request) -> Answer:
        for record in self.held(request.tenant, "domains").values():
            record["revision"] = self.next_revision(request.tenant)
        return super().post_samples(request)


@breaks("COM-011")
class WhatIsInUseIsDeleted(MinimalServer):
    """A domain is deleted while nodes refer to it."""

    @override
    def users(self, tenant: Tenant, kind: str, name: str) -> list[str]:
        return []


@breaks("COM-018")
class ExtensionsAreDropped(MinimalServer):
    """Extensions are taken and not kept."""

    @override
    def document(self, body: Json) -> Json:
        kept = {name: value for name, value in body.items() if name != "extensions"}
        if "devices" in body:
            kept["devices"] = [self.document(device) for device in body["devices"]]
        return kept
