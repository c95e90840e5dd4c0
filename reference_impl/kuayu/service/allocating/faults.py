"""What is wrong with bodies beyond what the schema can state."""

from collections.abc import Iterable, Iterator
from typing import Any

from kuayu.service import instants
from kuayu.service.allocating.steps import Json, placements
from kuayu.service.problems import Place


def of_allocation(allocation: Json) -> Iterator[Place]:
    """Faults of class Allocation: names that stand twice, and nodes that do not make up their share."""
    for position, placement in enumerate(placements(allocation)):
        pointer = f"/alternatives/{position - 1}" if position else "/placement"
        domains: set[str] = set()
        for number, share in enumerate(placement["shares"]):
            place = f"{pointer}/shares/{number}"
            if share["domain"] in domains:
                yield Place(f"the domain {share['domain']!r} stands twice", f"{place}/domain")
            domains.add(share["domain"])
            yield from _twice(share.get("nodes", ()), f"{place}/nodes")
            named = sum(each["devices"] for each in share.get("nodes", ()))
            if share.get("nodes") and named != share["devices"]:
                yield Place(f"the nodes have {named} devices, the share {share['devices']}", f"{place}/nodes")


def of_result(result: Json) -> Iterator[Place]:
    """Faults of class ActionResult: instants that no calendar has, and nodes that stand twice."""
    for name in ("at", "expires_at"):
        try:
            instants.to_milliseconds(result.get(name, "1970-01-01T00:00:00Z"))
        except ValueError as error:
            yield Place(f"there is no such instant: {error}", f"/{name}")
    yield from _twice(result.get("nodes", ()), "/nodes")


def _twice(nodes: Iterable[dict[str, Any]], pointer: str) -> Iterator[Place]:
    seen: set[str] = set()
    for number, each in enumerate(nodes):
        if each["node"] in seen:
            yield Place(f"the node {each['node']!r} stands twice", f"{pointer}/{number}/node")
        seen.add(each["node"])
