"""Changes of the graph as a stream of server-sent events (WHATWG HTML, section *Server-sent events*)."""

import json
import re
import time
from collections.abc import Iterator

from minimal_server.core import Answer, Json, Refusal, Request, Tenant, instant, wrong_parameter
from minimal_server.graph import PARTS, Change, Graphs, Scope, Step

EVENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,127}):([0-9]{1,16})")

QUIET = 10.0
"""Seconds without an event after which a comment shows that the path is whole; 15 are allowed."""


class Streams(Graphs):
    """Each stream is followed by the thread of its connection."""

    def get_events(self, request: Request) -> Answer:
        """The stream of what is asked for, from the next change or from the event that was received last."""
        scope = self.scope(request)
        number = self.begin_behind(request)
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        return Answer(200, self.follow(request.tenant, scope, number), headers)

    def begin_behind(self, request: Request) -> int:
        """Number of the revision behind which the stream begins."""
        graph = self.refresh(request.tenant)
        last = request.headers.get("last-event-id")
        if last is None:
            return graph.number
        event = EVENT.fullmatch(last)
        if event is None:
            raise wrong_parameter("Last-Event-ID", "Last-Event-ID must be a revision EPOCH:NUMBER")
        if event[1] != self.graph_epoch or not self.holds_from(request.tenant, int(event[2])):
            raise Refusal("revision-expired", "this event is not held; take a snapshot and follow from its revision")
        return int(event[2])

    def holds_from(self, tenant: Tenant, number: int) -> bool:
        """Whether all changes behind a revision are held."""
        graph = self.graph(tenant)
        return graph.number - len(graph.changes) <= number <= graph.number

    def follow(self, tenant: Tenant, scope: Scope, number: int) -> Iterator[bytes]:
        """Events without end, or until a reader is so slow that what comes next is no longer held."""
        yield b": changes follow\n\n"
        spoken = time.monotonic()
        while True:
            with self.changed_graphs:
                self.changed_graphs.wait_for(
                    lambda behind=number: self.graph(tenant).number > behind,  # type: ignore[misc]
                    QUIET - (time.monotonic() - spoken),
                )
                if not self.holds_from(tenant, number):
                    return
                changes = [change for change in self.graph(tenant).changes if change.number > number]
            events = [self.event(told) for change in changes if (told := self.narrowed(change, scope))]
            number = max((change.number for change in changes), default=number)
            if events or time.monotonic() - spoken >= QUIET:
                yield b"".join(events) or b": nothing new\n\n"
                spoken = time.monotonic()

    def narrowed(self, change: Change, scope: Scope) -> Json | None:
        """The part of a change that was asked for; what leaves that part is gone. None where nothing is left."""
        told: dict[str, list[Json]] = {part: [] for part in PARTS}
        gone: list[Json] = []
        for step in change.steps:
            before, after = (scope.seen(step.part, vertex) for vertex in (step.before, step.after))
            if after is not None and after != before:
                told[step.part].append(after)
            elif after is None and before is not None:
                gone += self.gone(step)
        if not gone and not any(told.values()):
            return None
        revision = self.graph_revision(change.number)
        return {"revision": revision, "changed_at": instant(change.moment), **told, "gone": gone}

    def gone(self, step: Step) -> list[Json]:
        """A vertex that is there no more, as it is told."""
        return [{"kind": PARTS[step.part], "id": step.name}]

    def event(self, change: Json) -> bytes:
        """A change as an event."""
        identifier = "{epoch}:{number}".format(**change["revision"])
        data = json.dumps(change, separators=(",", ":"))
        return f"id: {identifier}\nevent: change\ndata: {data}\n\n".encode()
