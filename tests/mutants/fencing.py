"""Wrong in what is done about faults: fences, results, listings, and streams of changes."""

from collections.abc import Iterator

from minimal_server.core import Answer, Json, Request, Tenant
from minimal_server.faults import FENCED, Docket
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("RES-019")
class NobodyIsFenced(MinimalServer):
    """Nothing is asked for when a node dies or fails."""

    @override
    def responses(self, tenant: Tenant, fault: Json, about: Json) -> list[Json]:
        return [] if fault["kind"] in FENCED else super().responses(tenant, fault, about)


@breaks("RES-019")
class OnlyTheDeadAreFenced(MinimalServer):
    """Nothing is asked for when a node fails."""

    @override
    def responses(self, tenant: Tenant, fault: Json, about: Json) -> list[Json]:
        return [] if fault["kind"] == "node_failing" else super().responses(tenant, fault, about)


@breaks("RES-019")
class NodesAreFencedTwice(MinimalServer):
    """A node is fenced twice for the same fault."""

    @override
    def responses(self, tenant: Tenant, fault: Json, about: Json) -> list[Json]:
        asked = super().responses(tenant, fault, about)
        return [self.fence(tenant, fault), *asked] if fault["kind"] in FENCED else asked


@breaks("RES-019")
class StrangersAreAskedToFence(MinimalServer):
    """The domain that is asked to fence a node is another one."""

    @override
    def fence(self, tenant: Tenant, fault: Json) -> Json:
        others = [name for name in self.held(tenant, "domains") if name != fault["domain"]]
        return super().fence(tenant, {**fault, "domain": others[0] if others else "elsewhere"})


@breaks("RES-019")
class FencesNameNoNode(MinimalServer):
    """A fence leaves it to the domain what to fence."""

    @override
    def fence(self, tenant: Tenant, fault: Json) -> Json:
        action = super().fence(tenant, fault)
        return {member: value for member, value in action.items() if member != "nodes"}


@breaks("RES-019")
class NothingIsGivenBack(MinimalServer):
    """What was fenced stays so when its fault is cleared."""

    @override
    def releases(self, tenant: Tenant, fault: Json) -> list[Json]:
        return []


@breaks("RES-019")
class ReleasesNameNoFence(MinimalServer):
    """A release does not say what it undoes."""

    @override
    def releases(self, tenant: Tenant, fault: Json) -> list[Json]:
        asked = super().releases(tenant, fault)
        return [{member: value for member, value in action.items() if member != "reservation"} for action in asked]


@breaks("RES-019")
class AnsweredFencesStayOpen(MinimalServer):
    """An action is asked for again and again, whatever was answered."""

    @override
    def close_action(self, tenant: Tenant, domain: str, action: str) -> None:
        """It stays open."""


@breaks("RES-019")
class ResultsAreAnsweredWithAnotherFault(MinimalServer):
    """A result is answered with the fault that was told first of all, whichever it is about."""

    @override
    def answered_with(self, docket: Docket, fault: str) -> Json:
        return next(iter(docket.faults.values()))


@breaks("RES-023")
class WhatIsOverIsNoNews(MinimalServer):
    """No event tells that a fault was cleared."""

    @override
    def follow_faults(self, docket: Docket, number: int) -> Iterator[bytes]:
        for piece in super().follow_faults(docket, number):
            yield b"".join(e + b"\n\n" for e in piece.split(b"\n\n")[:-1] if b'"state":"cleared"' not in e) or b":\n\n"


@breaks("RES-023")
class EventsCountDown(MinimalServer):
    """The number of each event is lower than that of the one before."""

    @override
    def fault_event(self, fault: Json) -> bytes:
        revision = {**fault["revision"], "number": 10**9 - fault["revision"]["number"]}
        return super().fault_event({**fault, "revision": revision})

    @override
    def fault_behind(self, request: Request) -> int:
        epoch, _, number = request.headers.get("last-event-id", "").partition(":")
        if epoch == self.fault_epoch and number.isdigit() and int(number) > 10**8:
            ours = {**request.headers, "last-event-id": f"{epoch}:{10**9 - int(number)}"}
            request = Request(request.tenant, request.method, request.path, request.query, ours, request.body)
        return super().fault_behind(request)


@breaks("RES-023")
class ResumedFaultsSkipAnEvent(MinimalServer):
    """A stream of faults that is resumed leaves out the first event that it has missed."""

    @override
    def fault_behind(self, request: Request) -> int:
        behind = super().fault_behind(request)
        return min(behind + ("last-event-id" in request.headers), self.docket(request.tenant).number)


@breaks("RES-023")
class ResumedFaultsBeginWithTheNext(MinimalServer):
    """A stream of faults that is resumed begins with the next change, and what it has missed is lost."""

    @override
    def fault_behind(self, request: Request) -> int:
        super().fault_behind(request)
        return self.docket(request.tenant).number


@breaks("RES-023")
class FaultsOfAllDomainsAreListed(MinimalServer):
    """A listing that is narrowed by domain shows faults of all of them."""

    @override
    def listed_faults(self, docket: Docket, domain: str | None, state: str | None) -> Iterator[Json]:
        return super().listed_faults(docket, None, state)


@breaks("RES-023")
class FaultsOfAllStatesAreListed(MinimalServer):
    """A listing that is narrowed by state shows open and cleared faults."""

    @override
    def listed_faults(self, docket: Docket, domain: str | None, state: str | None) -> Iterator[Json]:
        return super().listed_faults(docket, domain, None)


@breaks("RES-023")
class ListedFaultsDifferFromTheirEvents(MinimalServer):
    """What is listed of a cleared fault is not what its last event has told."""

    @override
    def listed_faults(self, docket: Docket, domain: str | None, state: str | None) -> Iterator[Json]:
        for fault in super().listed_faults(docket, domain, state):
            yield {**fault, "because": "it was told so"} if fault["state"] == "cleared" else fault


@breaks("COM-012", "RES-023")
class PagesDropFaults(MinimalServer):
    """The last fault of a page that another one follows is left out."""

    @override
    def get_faults(self, request: Request) -> Answer:
        answer = super().get_faults(request)
        if "next_cursor" not in answer.body:
            return answer
        return Answer(200, {**answer.body, "items": answer.body["items"][:-1]})
