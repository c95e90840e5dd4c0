"""A window as the standard's model has it: its request for a backup plan, and an instant's for a failover plan."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.recovery.links import INTERVAL_S, PAST
from kuayu_conformance.testbed.recovery.state import UNREACHABLE, JobState, State
from kuayu_conformance.testbed.recovery.world import World

if TYPE_CHECKING:
    from kuayu_schemas import documents


class Wire:
    """Tells a window; domains, nodes, jobs and links stand in an order that tells nothing.

    Args:
        world: Which.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._asked = 0
        chance = Chance(world.seed, "order")
        count = len(world.domains)
        pairs = [(source, target) for source in range(count) for target in range(count) if source != target]
        self._pairs = chance.order([(pair, 1.0) for pair in pairs])
        self._domains = chance.order([(domain, 1.0) for domain in range(count)])
        self._jobs = chance.order([(job, 1.0) for job in range(len(world.jobs))])
        self._nodes = chance.order([(node, 1.0) for node in range(len(world.nodes))])
        self._epoch = f"{chance.below(1 << 48):012x}"
        self._told: tuple[int, frozenset[int], list[documents.MeasuredLink]] = (-1, frozenset(), [])

    def backup(self) -> "documents.BackupRequest":
        """What is asked at the begin."""
        world = self._world
        domains: list[documents.BackupDomain] = [
            {
                "id": world.domains[domain].id,
                "nodes": sum(node.domain == domain and node.job >= 0 for node in world.nodes),
                "free": sum(node.domain == domain and node.job < 0 for node in world.nodes),
                "time_between_failures": world.time_between_failures,
                "repair_time": world.repair_s,
                "price": world.domains[domain].price,
            }
            for domain in self._domains
        ]
        return {
            "revision": self._revision(),
            "interval": float(INTERVAL_S),
            "share": world.share,
            "risk": world.risk,
            "domains": domains,
            "links": self._links(0.0, ()),
            "stores": [{**store, "free": world.domains[domain].room} for domain, store in self._stores()],
            "jobs": [self._backed_up(job) for job in self._jobs],
        }

    def failover(self, state: State) -> "documents.FailoverRequest":
        """What is asked at an instant: about all jobs without a recovery under way, their nodes and all free ones."""
        jobs = [state.jobs[number] for number in self._jobs if state.jobs[number].recovery is None]
        reported = {-1, *(job.number for job in jobs)}
        nodes = [node for node in self._nodes if state.nodes[node].shown and state.nodes[node].job in reported]
        return {
            "revision": self._revision(),
            "interval": float(INTERVAL_S),
            "links": self._links(state.now, state.away),
            "stores": [store for _, store in self._stores()],
            "nodes": [self._node(node, state) for node in nodes],
            "jobs": [self._job(job) for job in jobs],
        }

    def _revision(self) -> "documents.Revision":
        self._asked += 1
        return {"epoch": self._epoch, "number": self._asked}

    def _stores(self) -> "list[tuple[int, documents.CheckpointStore]]":
        domains = self._world.domains
        return [
            (domain, {"domain": domains[domain].id, "bandwidth": domains[domain].store_bandwidth})
            for domain in self._domains
        ]

    def _links(self, now: float, away: Iterable[int]) -> "list[documents.MeasuredLink]":
        """Of the intervals up to now; they are the same until one has passed or a domain comes or goes."""
        row, out = PAST + int(now / INTERVAL_S), frozenset(away)
        if self._told[:2] != (row, out):
            recent = self._world.links.measured[row - PAST : row].astype(int).tolist()
            self._told = (row, out, [self._link(*pair, recent, out) for pair in self._pairs])
        return self._told[2]

    def _link(
        self, source: int, target: int, recent: list[list[list[int]]], away: frozenset[int]
    ) -> "documents.MeasuredLink":
        return {
            "source": self._world.domains[source].id,
            "target": self._world.domains[target].id,
            "latency": float(self._world.links.latency_s[source, target]),
            "up": source not in away and target not in away,
            "bandwidths": [interval[source][target] for interval in recent],
        }

    def _node(self, number: int, state: State) -> "documents.StandingNode":
        node, now = state.nodes[number], state.now
        domain = self._world.nodes[number].domain
        body: documents.StandingNode = {
            "id": self._world.nodes[number].id,
            "domain": self._world.domains[domain].id,
            "condition": state.condition(number),
        }
        if body["condition"] == UNREACHABLE:
            body["fenced_in"] = max(0.0, round(state.away[domain].fenced_at - now, 6))
        if node.job >= 0:
            body["job"] = self._world.jobs[node.job].id
            body["replica"] = node.replica
        return body

    def _job(self, job: JobState) -> "documents.ProtectedJob":
        spec = job.spec
        ages = {domain: max(0.0, job.progress - held) for domain, held in job.copies.items()}
        return {
            "id": spec.id,
            "priority": spec.priority,
            "domain": self._world.domains[job.domain].id,
            "replicas": spec.replicas,
            "least_replicas": spec.least_replicas,
            "nodes_each": spec.nodes_each,
            "state_size": spec.state_size,
            "node_bandwidth": spec.node_bandwidth,
            "start_time": spec.start_s,
            "regroup_time": spec.regroup_s,
            "copies": [
                {"domain": self._world.domains[domain].id, "age": round(ages[domain], 6)}
                for domain in self._domains
                if domain in ages
            ],
        }

    def _backed_up(self, number: int) -> "documents.BackedUpJob":
        spec = self._world.jobs[number]
        return {
            "id": spec.id,
            "priority": spec.priority,
            "domain": self._world.domains[spec.domain].id,
            "replicas": spec.replicas,
            "least_replicas": spec.least_replicas,
            "nodes_each": spec.nodes_each,
            "state_size": spec.state_size,
            "pause": spec.pause_s,
        }
