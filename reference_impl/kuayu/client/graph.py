"""The resource graph, whole and as it changes."""

from collections.abc import Iterator

from kuayu.client.connection import Connection, event_of
from kuayu.client.errors import RefusedError
from kuayu_schemas.models import GraphChange, Patch, ResourceGraph


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
                last = f"{graph.revision.epoch}:{graph.revision.number}"
                for event in self._follow("/v1/graph/events", part, last, "change", patience_s):
                    yield event_of(GraphChange, event)
            except RefusedError as error:
                if error.name != "revision-expired":
                    raise


def _part(domain: str | None, *, nodes: bool) -> dict[str, str]:
    """Query for a part of the graph."""
    return ({} if nodes else {"detail": "domains"}) | ({} if domain is None else {"domain": domain})
