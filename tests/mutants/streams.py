"""Wrong in streams of the graph's changes.

Most are wrong in streams of one domain only: others tell what the rest of the suite does to the graph meanwhile, so
that what a mistake comes to there would depend on chance.
"""

from collections.abc import Iterator

from minimal_server.core import Json, Refusal, Request, Tenant
from minimal_server.graph import Change, Scope, Step
from minimal_server.service import MinimalServer
from minimal_server.streams import EVENT
from typing_extensions import override

from mutants.declaration import breaks


@breaks("COM-023")
class StreamsResumeOneEventLate(MinimalServer):
    """A stream of one domain that is resumed leaves out the first event that it has missed."""

    @override
    def follow(self, tenant: Tenant, scope: Scope, number: int) -> Iterator[bytes]:
        missed = [change.number for change in self.graph(tenant).changes if self.narrowed(change, scope)]
        late = next((one for one in missed if one > number), number)
        return super().follow(tenant, scope, late if scope.domain else number)


@breaks("COM-023")
class StreamsTellTheLastEventAgain(MinimalServer):
    """A stream of one domain that is resumed begins with the event that it is resumed from."""

    handed_out: frozenset[tuple[str, int]] = frozenset()

    @override
    def narrowed(self, change: Change, scope: Scope) -> Json | None:
        told = super().narrowed(change, scope)
        if told and scope.domain:
            self.handed_out |= {(scope.domain, change.number)}
        return told

    @override
    def follow(self, tenant: Tenant, scope: Scope, number: int) -> Iterator[bytes]:
        again = scope.domain is not None and (scope.domain, number) in self.handed_out
        return super().follow(tenant, scope, number - again)


@breaks("COM-023", "COM-024")
class LastEventIdIsIgnored(MinimalServer):
    """A stream of one domain always begins with the next change."""

    @override
    def begin_behind(self, request: Request) -> int:
        behind = self.refresh(request.tenant).number
        return behind if "domain" in request.query else super().begin_behind(request)


@breaks("COM-023")
class EventsHaveNoIdentifier(MinimalServer):
    """Events do not say which revision they lead to, but in their data."""

    @override
    def event(self, change: Json) -> bytes:
        return super().event(change).partition(b"\n")[2]


@breaks("COM-024")
class ExpiredPositionsBeginAnew(MinimalServer):
    """A position that is not held is answered with a stream that begins with the next change."""

    @override
    def begin_behind(self, request: Request) -> int:
        try:
            return super().begin_behind(request)
        except Refusal as refusal:
            if refusal.name != "revision-expired":
                raise
            return self.graph(request.tenant).number


@breaks("COM-024")
class EpochsAreNotLookedAt(MinimalServer):
    """A position of another epoch is taken for one of this."""

    @override
    def begin_behind(self, request: Request) -> int:
        last = EVENT.fullmatch(request.headers.get("last-event-id", ""))
        if last is not None:
            ours = {**request.headers, "last-event-id": f"{self.graph_epoch}:{last[2]}"}
            request = Request(request.tenant, request.method, request.path, request.query, ours, request.body)
        return super().begin_behind(request)


@breaks("COM-023", "MET-005", "MET-018")
class WhatIsGoneIsNotTold(MinimalServer):
    """Changes do not tell what is no longer there."""

    @override
    def gone(self, step: Step) -> list[Json]:
        return []


@breaks("MET-018")
class NodesThatMoveAreNotGone(MinimalServer):
    """A stream of one domain does not tell that a node has gone over to another."""

    @override
    def gone(self, step: Step) -> list[Json]:
        return [] if step.part == "nodes" and step.after is not None else super().gone(step)


@breaks("MET-018")
class DomainsThatChangeAreNotTold(MinimalServer):
    """Streams without nodes tell of domains only when they come and go, not of what their nodes do."""

    @override
    def narrowed(self, change: Change, scope: Scope) -> Json | None:
        if not scope.domains_only:
            return super().narrowed(change, scope)
        steps = tuple(step for step in change.steps if step.part != "domains" or not (step.before and step.after))
        return super().narrowed(Change(change.number, change.moment, steps), scope)
