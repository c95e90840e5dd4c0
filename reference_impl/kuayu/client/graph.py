"""The resource graph, whole and as it changes."""

import time
from collections.abc import Iterator, Mapping

from kuayu.client.connection import FIRST_PAUSE_S, LONGEST_PAUSE_S, Connection
from kuayu.client.errors import BrokenStreamError, RefusedError, UnexpectedAnswerError, UnreachableError
from kuayu.client.reading import read
from kuayu.event_stream import Event, read_events
from kuayu_schemas.models import GraphChange, Patch, ResourceGraph, Revision


class Graphs(Connection):
    """The resource graph of a service."""

    def graph(self, *, nodes: bool = True, domain: str | None = None) -> ResourceGraph:
        """The resource graph as it stands.

        Args:
            nodes: Whether nodes are wanted, beside domains and links.
            domain: The one domain that is; all where it is None.
        """
        return self._read(ResourceGraph, "GET", "/v1/graph", _part(domain, nodes=nodes))

    def graph_patch(self, base: str, *, nodes: bool = True, domain: str | None = None) -> Patch:
        """What leads from a graph that was given before, named by its digest, to the present one.

        It is to be applied to an object of the members domains, nodes and links. A base that the service does not hold
        any longer is a :class:`RefusedError` of the name ``unknown-base``; take a whole graph then.
        """
        return self._read(Patch, "GET", "/v1/graph/patch", {"base": base, **_part(domain, nodes=nodes)})

    def follow_graph(
        self, *, nodes: bool = True, domain: str | None = None, patience_s: float = 60.0
    ) -> Iterator[ResourceGraph | GraphChange]:
        """The resource graph and then its changes as they come; :class:`kuayu.picture.GraphPicture` puts them together.

        A connection that breaks is made anew, and no change is lost by that. Where the service no longer holds the
        changes that were missed, as after its restart, a new graph comes, which takes the place of everything before.

        Args:
            nodes: As for :meth:`graph`.
            domain: As for :meth:`graph`.
            patience_s: How long a service that was there may be away, in seconds; then :class:`UnreachableError`.
        """
        part = _part(domain, nodes=nodes)
        while True:
            graph = self._read(ResourceGraph, "GET", "/v1/graph", part)
            yield graph
            try:
                yield from self._changes(part, graph.revision, patience_s)
            except RefusedError as error:
                if error.name != "revision-expired":
                    raise

    def _changes(self, part: Mapping[str, str], revision: Revision, patience_s: float) -> Iterator[GraphChange]:
        """Changes after a revision, over as many connections as it takes."""
        last = f"{revision.epoch}:{revision.number}"
        heard, pause = time.monotonic(), FIRST_PAUSE_S
        while True:
            try:
                with self._stream("/v1/graph/events", part, {"last-event-id": last}) as chunks:
                    pause = FIRST_PAUSE_S
                    for event in read_events(chunks):
                        if event.type == "change":
                            yield self._change(event)
                            last = event.id
                heard = time.monotonic()
            except BrokenStreamError:
                heard = time.monotonic()
            except (UnreachableError, RefusedError) as error:
                if isinstance(error, RefusedError) and not error.problem.retryable:
                    raise
                if time.monotonic() - heard + pause > patience_s:
                    raise
            time.sleep(pause)
            pause = min(LONGEST_PAUSE_S, 2 * pause)

    @staticmethod
    def _change(event: Event) -> GraphChange:
        try:
            return read(GraphChange, event.data.encode())
        except ValueError as error:
            raise UnexpectedAnswerError(f"the event {event.id} is no GraphChange", 200) from error


def _part(domain: str | None, *, nodes: bool) -> dict[str, str]:
    """Query for a part of the graph."""
    return ({} if nodes else {"detail": "domains"}) | ({} if domain is None else {"domain": domain})
