"""The kinds of registered resources, and all that differs between them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kuayu.perception.identifiers import misplaced_members, tier_of
from kuayu.service.problems import Place

if TYPE_CHECKING:
    from kuayu_schemas import documents

Body = Mapping[str, Any]
"""A registered resource: a document of the class that its kind names, which only who knows the kind can tell."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A member of a resource that names another resource.

    Attributes:
        pointer: Where it stands in the body.
        kind: Kind of what is named.
        target: Its identifier.
        binding: Whether the target must exist, and may not go while it is named.
    """

    pointer: str
    kind: str
    target: str
    binding: bool = True


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of resource.

    Attributes:
        name: Its name in the database and in messages.
        class_name: Class of the model; with Record and Page appended, of its answers.
        path: Path of the listing.
        key: Member of the body that must equal the identifier in the path.
        references: What a resource names.
        faults: What is wrong with a body beyond what the schema can state.
        parent: What listings can be narrowed down by.
    """

    name: str
    class_name: str
    path: str
    references: Callable[[Any], Iterator[Reference]]
    faults: Callable[[Any], Iterator[Place]]
    key: str = "id"
    parent: Callable[[Any], str | None] = lambda _: None


def _no_references(_: Body) -> Iterator[Reference]:
    yield from ()


def _no_faults(_: Body) -> Iterator[Place]:
    yield from ()


def _node_references(node: "documents.Node") -> Iterator[Reference]:
    yield Reference("/domain", "domain", node["domain"])
    if urn := node.get("compute_identifier"):
        yield Reference("/compute_identifier", "compute_identifier", urn, binding=False)


def _node_faults(node: "documents.Node") -> Iterator[Place]:
    seen: set[str] = set()
    for position, device in enumerate(node.get("devices", ())):
        if device["id"] in seen:
            yield Place(f"the node has two devices {device['id']!r}", f"/devices/{position}/id")
        seen.add(device["id"])
    urn = node.get("compute_identifier")
    if urn and tier_of(urn) != "node":
        yield Place("a node bears an identifier of the tier node", "/compute_identifier")


def _link_references(link: "documents.Link") -> Iterator[Reference]:
    yield Reference("/source", "domain", link["source"])
    yield Reference("/destination", "domain", link["destination"])


def _target_references(target: "documents.ScrapeTarget") -> Iterator[Reference]:
    yield Reference("/node", "node", target["node"])


def _identifier_references(identifier: "documents.ComputeIdentifier") -> Iterator[Reference]:
    for position, member in enumerate(identifier["members"]):
        yield Reference(f"/members/{position}", "compute_identifier", member, binding=False)


def _identifier_faults(identifier: "documents.ComputeIdentifier") -> Iterator[Place]:
    urn, members = identifier["urn"], identifier["members"]
    if tier_of(urn) == "node":
        yield Place("identifiers of the tier node stand in the registration of their node", "/urn")
        return
    for position in misplaced_members(urn, members):
        yield Place(f"a {tier_of(urn)} has no member of this tier", f"/members/{position}")
    seen: set[str] = set()
    for position, member in enumerate(members):
        if member in seen:
            yield Place("stands here for the second time", f"/members/{position}")
        seen.add(member)


DOMAIN = Kind("domain", "Domain", "/v1/domains", _no_references, _no_faults)
NODE = Kind("node", "Node", "/v1/nodes", _node_references, _node_faults, parent=lambda node: str(node["domain"]))
LINK = Kind("link", "Link", "/v1/links", _link_references, _no_faults)
SCRAPE_TARGET = Kind("scrape_target", "ScrapeTarget", "/v1/scrape-targets", _target_references, _no_faults)
COMPUTE_IDENTIFIER = Kind(
    "compute_identifier",
    "ComputeIdentifier",
    "/v1/compute-identifiers",
    _identifier_references,
    _identifier_faults,
    key="urn",
)
KINDS = {kind.name: kind for kind in (DOMAIN, NODE, LINK, SCRAPE_TARGET, COMPUTE_IDENTIFIER)}
