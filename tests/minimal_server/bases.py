"""Bases: states that were sent with their digests, and what patches (RFC 6902) make of them."""

from copy import deepcopy
from typing import Any

from minimal_server.canonical import canonical, digest
from minimal_server.core import Core, Json, Refusal, Request, wrong_body

HELD_BASES = 10
"""How many of the newest states of a tenant are kept."""


class Bases(Core):
    """A state is held by the tenant who sent it, once it was answered."""

    def __init__(self, *arguments: Any) -> None:
        """Nothing is held yet."""
        super().__init__(*arguments)
        self.held_bases: dict[str, dict[str, Json]] = {}

    def whole_request(self, request: Request) -> Json:
        """The request with its whole state, whichever way that was sent."""
        body = self.body(request, "PlacementRequest")
        if "digest" in body:
            self.hold_against(body["state"], body["digest"], "/digest")
        if "patch" not in body:
            return body
        patch = body["patch"]
        made = self.patched(self.base_state(request, patch["base"]), patch["operations"])
        self.hold_against(made, patch["result"], "/patch/result")
        whole = {name: value for name, value in body.items() if name != "patch"}
        whole |= {"state": made, "digest": patch["result"]}
        self.judge_whole(whole)
        return whole

    def judge_whole(self, whole: Json) -> None:
        """Refuse a state that would be refused if it were sent whole."""
        if errors := self.schema_errors("PlacementRequest", whole):
            places = [{"pointer": pointer, "detail": detail} for pointer, detail in errors]
            raise Refusal("invalid-body", "the patch leads to what is no state", places)

    def base_state(self, request: Request, name: str) -> Json:
        """The state of that digest."""
        with self.lock:
            held = self.held_bases.get(request.tenant.name, {})
            if name not in held:
                raise Refusal("unknown-base", "no state of this digest is held; send the whole state")
            return held[name]

    def hold_state(self, request: Request, whole: Json) -> None:
        """Hold the state of a request that was answered, where a patch of it may follow."""
        name = whole.get("digest")
        if name is None:
            return
        with self.lock:
            held = self.held_bases.setdefault(request.tenant.name, {})
            held.pop(name, None)
            held[name] = whole["state"]
            if len(held) > HELD_BASES:
                del held[next(iter(held))]

    def hold_against(self, state: Any, stated: str, pointer: str) -> None:
        """Refuse a state of another digest than is stated."""
        if digest(state) != stated:
            raise wrong_body("invalid-body", pointer, "this is not the digest of the state")

    def patched(self, base: Json, operations: list[Json]) -> Any:
        """What the operations make of a copy of the base."""
        document = {"": deepcopy(base)}
        for number, operation in enumerate(operations):
            try:
                self.carry_out_operation(document, operation)
            except (LookupError, ValueError, TypeError) as error:
                raise wrong_body("invalid-body", f"/patch/operations/{number}", str(error)) from error
        return document[""]

    def carry_out_operation(self, document: Json, operation: Json) -> None:
        """Carry out one operation."""
        *way, last = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")]
        place: Any = document
        for step in way:
            place = place[self.step_into(place, step, 0)]
        verb = operation["op"]
        if verb == "add" and isinstance(place, list):
            at = len(place) if last == "-" else self.step_into(place, last, 1)
            place.insert(at, operation["value"])
        elif verb == "add":
            place[last] = operation["value"]
        elif verb == "remove":
            del place[self.step_into(place, last, 0)]
        elif verb == "replace":
            place[self.step_into(place, last, 0)] = operation["value"]
        elif canonical(place[self.step_into(place, last, 0)]) != canonical(operation["value"]):
            raise ValueError("there is another value")

    def step_into(self, place: Any, step: str, beyond: int) -> Any:
        """Name or index of what is there, or of the place so far behind the end."""
        if isinstance(place, list):
            if not step.isdecimal() or str(int(step)) != step or int(step) >= len(place) + beyond:
                raise LookupError(f"there is no {step}")
            return int(step)
        if step not in place:
            raise LookupError(f"there is no {step}")
        return step
