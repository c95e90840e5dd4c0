"""Wrong in what is refused of requests about faults: names that stand twice, and what contradicts itself."""

from collections.abc import Iterator

from minimal_server.core import Json, Refusal
from minimal_server.naming import Wrong
from minimal_server.recovering import Standing
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("COM-042")
class LinksAreNotLookedAt(MinimalServer):
    """Links of requests about faults may stand twice, and lead where they begin."""

    @override
    def check_failover(self, body: Json) -> None:
        super().check_failover({**body, "links": []})

    @override
    def check_backups(self, body: Json) -> None:
        super().check_backups({**body, "links": []})


class ByNumber(MinimalServer):
    """Takes rows of one name for different ones."""

    member, name = "", ""

    @override
    def check_failover(self, body: Json) -> None:
        super().check_failover(self.numbered(body))

    @override
    def check_backups(self, body: Json) -> None:
        super().check_backups(self.numbered(body))

    def numbered(self, body: Json) -> Json:
        """The request with names that stand in it once."""
        rows, seen = [], set[str]()
        for number, row in enumerate(body.get(self.member, ())):
            rows.append({**row, self.name: f"{number}"} if row[self.name] in seen else row)
            seen.add(row[self.name])
        return {**body, self.member: rows}


@breaks("COM-042")
class NodesMayStandTwice(ByNumber):
    """Of two nodes of one name both are given."""

    member, name = "nodes", "id"


@breaks("COM-042")
class JobsAtRiskMayHaveOneName(ByNumber):
    """Of two jobs of one name the later one counts."""

    member, name = "jobs", "id"


@breaks("COM-042")
class StoresMayStandTwice(ByNumber):
    """Of two stores of one domain the later one counts."""

    member, name = "stores", "domain"


@breaks("COM-042")
class PoolsMayStandTwice(ByNumber):
    """A domain that stands twice has two pools."""

    member, name = "domains", "id"


@breaks("COM-042")
class CopiesMayStandTwice(MinimalServer):
    """Of two copies of a job in one domain that is read which costs least."""

    @override
    def copies_twice(self, body: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class CopiesLieAnywhere(MinimalServer):
    """Copies in domains without a store are not refused; they are not read."""

    @override
    def copies_nowhere(self, body: Json) -> Iterator[Wrong]:
        return iter(())

    @override
    def readable(self, job: Json, domain: str, standing: Standing) -> Iterator[Json]:
        return (copy for copy in super().readable(job, domain, standing) if copy["domain"] in standing.stores)


@breaks("COM-042")
class JobsRunAnywhere(MinimalServer):
    """Jobs in domains that are not there are not refused."""

    @override
    def homeless(self, body: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class MoreMayBeNeededThanThereIs(MinimalServer):
    """A job may need more replicas than it has."""

    @override
    def too_many_needed(self, body: Json) -> Iterator[Wrong]:
        return iter(())


class Overlooking(MinimalServer):
    """Takes nodes that contradict themselves for others."""

    @override
    def check_failover(self, body: Json) -> None:
        super().check_failover({**body, "nodes": [self.mended_node(node) for node in body["nodes"]]})

    def mended_node(self, node: Json) -> Json:
        """A node as it should be."""
        raise NotImplementedError


@breaks("COM-042")
class JobsMayHoldNodesOfNoReplica(Overlooking):
    """A node may be held by a job and not be of a replica."""

    @override
    def mended_node(self, node: Json) -> Json:
        return node if "replica" in node else {name: value for name, value in node.items() if name != "job"}

    @override
    def is_fit(self, node: Json) -> bool:
        node.setdefault("replica", 0)
        return super().is_fit(node)


@breaks("COM-042")
class ReplicasNeedNoJob(Overlooking):
    """A node may be of a replica and not be held by a job."""

    @override
    def mended_node(self, node: Json) -> Json:
        return node if "job" in node else {name: value for name, value in node.items() if name != "replica"}


@breaks("COM-042")
class FailedNodesMayBeFenced(Overlooking):
    """A failed node may be fenced."""

    @override
    def mended_node(self, node: Json) -> Json:
        if node["condition"] != "failed":
            return node
        return {name: value for name, value in node.items() if name != "fenced_in"}


@breaks("COM-042")
class ReplicasAreCountedFromOne(MinimalServer):
    """A node may be of the replica whose number is that of all replicas."""

    @override
    def beyond_replicas(self, body: Json) -> Iterator[Wrong]:
        jobs = [{**job, "replicas": job["replicas"] + 1} for job in body["jobs"]]
        return super().beyond_replicas({**body, "jobs": jobs})


@breaks("COM-042")
class ReplicasMayHaveANodeMore(MinimalServer):
    """A replica may have one node more than replicas of its job have."""

    @override
    def beyond_nodes(self, body: Json) -> Iterator[Wrong]:
        jobs = [{**job, "nodes_each": job["nodes_each"] + 1} for job in body["jobs"]]
        return super().beyond_nodes({**body, "jobs": jobs})


@breaks("COM-042")
class JobsMayHoldNodesAnywhere(MinimalServer):
    """A job may hold nodes in another domain than its own."""

    @override
    def away_from_home(self, body: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class TheFirstNodeIsBlamed(MinimalServer):
    """Whichever node contradicts itself, the first one is named."""

    @override
    def held_nodes(self, body: Json) -> Iterator[tuple[int, Json, Json]]:
        return ((0, node, job) for _, node, job in super().held_nodes(body))


@breaks("COM-042")
class FaultsInRequestsAreUnknownNames(MinimalServer):
    """What contradicts itself in a request for a failover plan is answered with unknown-reference."""

    @override
    def check_failover(self, body: Json) -> None:
        try:
            super().check_failover(body)
        except Refusal as refusal:
            raise Refusal("unknown-reference", refusal.detail, refusal.errors) from refusal


@breaks("COM-042")
class NodesOfOtherJobsAreUnknown(MinimalServer):
    """Nodes that are held by a job that is not in the request are refused."""

    @override
    def check_failover(self, body: Json) -> None:
        super().check_failover(body)
        held = {job["id"] for job in body["jobs"]}
        wrong = [
            row
            for number, node in enumerate(body["nodes"])
            if "job" in node
            for row in self.unknown(f"/nodes/{number}/job", node["job"], held)
        ]
        self.refuse_if("unknown-reference", "jobs are not in the request", wrong)


@breaks("COM-042")
class DomainsWithoutAStoreAreUnknown(MinimalServer):
    """Nodes in domains without a store are refused."""

    @override
    def check_failover(self, body: Json) -> None:
        super().check_failover(body)
        held = {row["domain"] for row in body["stores"]}
        wrong = [
            row
            for number, node in enumerate(body["nodes"])
            for row in self.unknown(f"/nodes/{number}/domain", node["domain"], held)
        ]
        self.refuse_if("unknown-reference", "domains are not in the request", wrong)
