"""Wrong in states that are sent as patches."""

from contextlib import suppress
from typing import Any

from minimal_server.core import Json, Refusal, Request
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("COM-021")
class PatchesAreTakenForTheirBase(MinimalServer):
    """What a patch says is passed over, and its base is answered."""

    @override
    def patched(self, base: Json, operations: list[Json]) -> Any:
        return base

    @override
    def hold_against(self, state: Any, stated: str, pointer: str) -> None:
        if pointer == "/digest":
            super().hold_against(state, stated, pointer)


@breaks("COM-021")
class ResultsOfPatchesAreNotHeldAgainstTheirDigests(MinimalServer):
    """A patch may lead to anything."""

    @override
    def hold_against(self, state: Any, stated: str, pointer: str) -> None:
        if pointer == "/digest":
            super().hold_against(state, stated, pointer)


@breaks("COM-021")
class WholeStatesAreNotHeldAgainstTheirDigests(MinimalServer):
    """A whole state may be sent with the digest of another."""

    @override
    def hold_against(self, state: Any, stated: str, pointer: str) -> None:
        if pointer != "/digest":
            super().hold_against(state, stated, pointer)


@breaks("COM-021")
class OperationsThatCannotBeCarriedOutArePassedOver(MinimalServer):
    """A patch is carried out as far as it can be."""

    @override
    def carry_out_operation(self, document: Json, operation: Json) -> None:
        with suppress(LookupError, ValueError, TypeError):
            super().carry_out_operation(document, operation)


@breaks("COM-021")
class PatchesChangeTheirBases(MinimalServer):
    """A base is never the same once a patch has started from it."""

    @override
    def patched(self, base: Json, operations: list[Json]) -> Any:
        made = super().patched(base, operations)
        if isinstance(made, dict):
            base.update(made)
        return made


@breaks("COM-021")
class PatchesReplaceWhereTheyAreToInsert(MinimalServer):
    """What is added to an array takes the place of what stood there."""

    @override
    def carry_out_operation(self, document: Json, operation: Json) -> None:
        *_, last = operation["path"].split("/")
        before = operation
        if operation["op"] == "add" and last.isdecimal():
            before = {**operation, "op": "replace"}
        super().carry_out_operation(document, before)


@breaks("COM-021")
class PatchedStatesAreNotJudged(MinimalServer):
    """What a patch leads to is decided on whatever it is."""

    @override
    def judge_whole(self, whole: Json) -> None:
        pass


@breaks("COM-021")
class NothingIsHeld(MinimalServer):
    """No state is ever a base, which nobody forbids, and which leaves nothing to be judged."""

    @override
    def hold_state(self, request: Request, whole: Json) -> None:
        pass


@breaks("COM-022")
class UnknownBasesAreNotFound(MinimalServer):
    """A base that is not held is answered with not-found."""

    @override
    def base_state(self, request: Request, name: str) -> Json:
        try:
            return super().base_state(request, name)
        except Refusal as refusal:
            raise Refusal("not-found", refusal.detail) from refusal


@breaks("COM-022")
class BasesAreForAllTenants(MinimalServer):
    """A tenant may start from what another has sent."""

    @override
    def base_state(self, request: Request, name: str) -> Json:
        for held in list(self.held_bases.values()):
            if name in held:
                return held[name]
        return super().base_state(request, name)


@breaks("COM-022")
class WhatIsRefusedIsHeldToo(MinimalServer):
    """A state becomes a base before it is known whether it can be answered."""

    @override
    def whole_request(self, request: Request) -> Json:
        body = self.parse(request.body)
        if isinstance(body, dict) and isinstance(body.get("state"), dict):
            self.hold_state(request, body)
        return super().whole_request(request)
