"""What requests about faults take for granted: names that stand once, and replicas and nodes that can be."""

from collections import Counter
from collections.abc import Iterator

from minimal_server.agreeing import Agreeing
from minimal_server.core import Json
from minimal_server.naming import Wrong


class Suspecting(Agreeing):
    """Requests for backup plans and failover plans that cannot be are refused."""

    def check_backups(self, body: Json) -> None:
        """A request names nothing twice, nothing that it does not hold, and does not contradict itself."""
        twice = [*self.places_twice(body), *self.twice("/domains", body["domains"], "id")]
        self.refuse_if("invalid-body", "names are given twice", twice)
        self.refuse_if("unknown-reference", "domains are not in the request", self.homeless(body))
        wrong = [*self.links_to_themselves(body["links"]), *self.too_many_needed(body)]
        self.refuse_if("invalid-body", "what cannot be", wrong)

    def check_failover(self, body: Json) -> None:
        """A request names nothing twice, nothing that it does not hold, and does not contradict itself."""
        twice = [*self.places_twice(body), *self.twice("/nodes", body["nodes"], "id"), *self.copies_twice(body)]
        self.refuse_if("invalid-body", "names are given twice", twice)
        self.refuse_if("unknown-reference", "copies are in no store", self.copies_nowhere(body))
        wrong = [*self.links_to_themselves(body["links"]), *self.too_many_needed(body)]
        wrong += [*self.half_held(body), *self.fenced_though_heard_of(body), *self.beyond_replicas(body)]
        wrong += [*self.beyond_nodes(body), *self.away_from_home(body)]
        self.refuse_if("invalid-body", "what cannot be", wrong)

    def places_twice(self, body: Json) -> list[Wrong]:
        """Links, stores and jobs whose name an earlier one has."""
        links, stores = self.links_twice(body["links"]), self.twice("/stores", body["stores"], "domain")
        return [*links, *stores, *self.twice("/jobs", body["jobs"], "id")]

    def homeless(self, body: Json) -> Iterator[Wrong]:
        """Jobs that run where there is no domain."""
        held = {row["id"] for row in body["domains"]}
        for number, job in enumerate(body["jobs"]):
            yield from self.unknown(f"/jobs/{number}/domain", job["domain"], held)

    def too_many_needed(self, body: Json) -> Iterator[Wrong]:
        """Jobs that need more replicas than they have."""
        for number, job in enumerate(body["jobs"]):
            if job["least_replicas"] > job["replicas"]:
                yield f"/jobs/{number}/least_replicas", f"it has {job['replicas']} when it is whole"

    def copies_twice(self, body: Json) -> Iterator[Wrong]:
        """Copies of a job that lie where an earlier one does."""
        for number, job in enumerate(body["jobs"]):
            yield from self.twice(f"/jobs/{number}/copies", job["copies"], "domain")

    def copies_nowhere(self, body: Json) -> Iterator[Wrong]:
        """Copies in domains without a store."""
        held = {row["domain"] for row in body["stores"]}
        for number, job in enumerate(body["jobs"]):
            for position, copy in enumerate(job["copies"]):
                yield from self.unknown(f"/jobs/{number}/copies/{position}/domain", copy["domain"], held)

    def half_held(self, body: Json) -> Iterator[Wrong]:
        """Nodes of a job and of none of its replicas, or of a replica and of no job."""
        for number, node in enumerate(body["nodes"]):
            if "job" in node and "replica" not in node:
                yield f"/nodes/{number}/job", "a node that a job holds is of one of its replicas"
            if "replica" in node and "job" not in node:
                yield f"/nodes/{number}/replica", "a replica is one of a job"

    def fenced_though_heard_of(self, body: Json) -> Iterator[Wrong]:
        """Nodes that are fenced and not unreachable."""
        for number, node in enumerate(body["nodes"]):
            if "fenced_in" in node and node["condition"] != "unreachable":
                yield f"/nodes/{number}/fenced_in", "only unreachable nodes are fenced"

    def held_nodes(self, body: Json) -> Iterator[tuple[int, Json, Json]]:
        """Place of each node that a job of the request holds, the node, and the job."""
        jobs = {job["id"]: job for job in body["jobs"]}
        for number, node in enumerate(body["nodes"]):
            if "job" in node and "replica" in node and node["job"] in jobs:
                yield number, node, jobs[node["job"]]

    def beyond_replicas(self, body: Json) -> Iterator[Wrong]:
        """Nodes of replicas that their job does not have."""
        for number, node, job in self.held_nodes(body):
            if node["replica"] >= job["replicas"]:
                yield f"/nodes/{number}/replica", f"{job['id']} has {job['replicas']}, counted from nought"

    def beyond_nodes(self, body: Json) -> Iterator[Wrong]:
        """Nodes that are more than a replica has."""
        counts: Counter[tuple[str, int]] = Counter()
        for number, node, job in self.held_nodes(body):
            counts[job["id"], node["replica"]] += 1
            if counts[job["id"], node["replica"]] > job["nodes_each"]:
                yield f"/nodes/{number}/replica", f"a replica of {job['id']} has {job['nodes_each']} nodes"

    def away_from_home(self, body: Json) -> Iterator[Wrong]:
        """Nodes in another domain than the job that holds them."""
        for number, node, job in self.held_nodes(body):
            if node["domain"] != job["domain"]:
                yield f"/nodes/{number}/domain", f"{job['id']} runs in {job['domain']}"
