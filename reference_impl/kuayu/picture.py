"""The resource graph as a reader of its changes sees it."""

from typing import Any

from kuayu_schemas.models import (
    DomainVertex,
    GraphChange,
    LinkVertex,
    NodeVertex,
    ResourceGraph,
    Revision,
    VertexKind,
)


class GraphPicture:
    """Domains, nodes and links by identifier, kept up to date with snapshots and changes.

    Attributes:
        revision: Revision that it shows; None before the first snapshot.
    """

    def __init__(self) -> None:
        self.revision: Revision | None = None
        self.domains: dict[str, DomainVertex] = {}
        self.nodes: dict[str, NodeVertex] = {}
        self.links: dict[str, LinkVertex] = {}

    def take(self, news: ResourceGraph | GraphChange) -> None:
        """A snapshot replaces everything, a change what it names."""
        kinds: dict[str, dict[str, Any]] = {
            VertexKind.domain: self.domains,
            VertexKind.node: self.nodes,
            VertexKind.link: self.links,
        }
        if isinstance(news, ResourceGraph):
            for vertices in kinds.values():
                vertices.clear()
        else:
            for vertex in news.gone:
                kinds.get(vertex.kind, {}).pop(vertex.id, None)
        self.domains.update((vertex.id, vertex) for vertex in news.domains)
        self.nodes.update((vertex.id, vertex) for vertex in news.nodes)
        self.links.update((vertex.id, vertex) for vertex in news.links)
        self.revision = news.revision
