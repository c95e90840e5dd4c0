"""Compute identifiers: services hold families, families hold nodes."""

from collections.abc import Callable

from minimal_server.core import Answer, Json, Refusal, Request
from minimal_server.resources import Resources, tier


class Identifiers(Resources):
    """Resolution of compute identifiers, both ways."""

    def resolve(self, request: Request, urn: str) -> Answer:
        """All that a compute identifier leads to, downwards to nodes and upwards to services."""
        held = self.held(request.tenant, "compute-identifiers")
        nodes: dict[str, list[str]] = {}
        for name, record in self.held(request.tenant, "nodes").items():
            if "compute_identifier" in record:
                nodes.setdefault(record["compute_identifier"], []).append(name)
        below = self.closure([urn], lambda one: held.get(one, {}).get("members", []))
        above = self.closure([urn], lambda one: self.holders(held, one))
        if len(below | above) == 1 and urn not in held and urn not in nodes:
            raise Refusal("not-found", "nothing is known of this compute identifier")
        known = {one for one in below | above if one in held or one in nodes}
        answer = {
            "urn": urn,
            "tier": tier(urn),
            "services": sorted(one for one in known if tier(one) == "service"),
            "families": sorted(one for one in known if tier(one) == "family"),
            "nodes": sorted(node for one in below for node in nodes.get(one, ())),
            "unresolved": sorted(below - known),
            "revision": self.revision(request.tenant),
        }
        return Answer(200, answer)

    def holders(self, held: dict[str, Json], urn: str) -> list[str]:
        """Identifiers that have ``urn`` as a member."""
        return [holder for holder, record in held.items() if urn in record["members"]]

    def closure(self, start: list[str], step: Callable[[str], list[str]]) -> set[str]:
        """All that can be reached from ``start``."""
        found: set[str] = set()
        while start:
            one = start.pop()
            found.add(one)
            start += [other for other in step(one) if other not in found]
        return found
