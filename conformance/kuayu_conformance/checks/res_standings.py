"""How the jobs of a request for a failover plan stand, as the clause of recovery tells it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kuayu_conformance.checks.res_fixtures import Json


@dataclass(frozen=True)
class Standing:
    """How a job stands.

    Attributes:
        job: Of the request.
        held: Its nodes, by replica.
        nodes: All nodes, by id.
        ways: Source and target of links that are up.
    """

    job: Json
    held: Mapping[int, Sequence[Json]]
    nodes: Mapping[str, Json]
    ways: frozenset[tuple[str, str]]

    @cached_property
    def broken(self) -> list[int]:
        """Replicas that hold no nodes, too few, or some that are not fit; rising."""
        return [each for each in range(self.job["replicas"]) if not self._whole(self.held.get(each, ()))]

    @property
    def whole(self) -> int:
        """How many replicas are not broken."""
        return int(self.job["replicas"]) - len(self.broken)

    @property
    def unheard(self) -> list[Json]:
        """Nodes on which something may still run."""
        return [node for each in self.held.values() for node in each if node["condition"] not in {"fit", "failed"}]

    def _whole(self, nodes: Sequence[Json]) -> bool:
        return len(nodes) == self.job["nodes_each"] and all(node["condition"] == "fit" for node in nodes)


def standings(request: Json) -> dict[str, Standing]:
    """How the jobs with a broken replica stand, by job, in the order of a valid ``FailoverRequest``."""
    nodes = {node["id"]: node for node in request["nodes"]}
    ways = frozenset((link["source"], link["target"]) for link in request["links"] if link.get("up", True))
    held: dict[str, dict[int, list[Json]]] = {job["id"]: defaultdict(list) for job in request["jobs"]}
    for node in request["nodes"]:
        if node.get("job") in held:
            held[node["job"]][node["replica"]].append(node)
    found = {job["id"]: Standing(job, held[job["id"]], nodes, ways) for job in request["jobs"]}
    return {name: standing for name, standing in found.items() if standing.broken}
