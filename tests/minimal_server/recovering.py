"""Failover plans: whichever way makes a job whole soon, on nodes and from copies that are there."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice

from minimal_server.backing import Backing, Place
from minimal_server.core import Answer, Json, Request
from minimal_server.sharding import Pair

METHOD_OF_RECOVERY = {"name": "minimal server: whole again soon, from what is near", "version": "1"}
WHOLE_WITHIN, AT_WORK_WITHIN = 300.0, 600.0
"""Seconds in which a job shall be whole again, and in which it shall make steps that it had not made before."""
GOOD = 0.8
"""Part of these that is good enough, so that no work is thrown away to be quicker still."""
BROKEN = 1.5
"""What it costs to stay broken, where these times cost one."""

Placed = tuple[int, tuple[str, ...]]
"""Replica, and nodes that it gets."""


@dataclass(frozen=True)
class Recovery:
    """A way by which a job goes on.

    Attributes:
        strategy: Its name.
        replicas: Those that get nodes.
        seconds: From now until a step that was not made before; endless where nobody knows.
        whole: Seconds from now until all replicas make steps; endless where that takes another plan.
        after: Seconds from now at which it begins.
        source: Domain whose copy is read.
        reads: Stores and links that it reads from and over.
    """

    strategy: str
    replicas: tuple[Placed, ...] = ()
    seconds: float = math.inf
    whole: float = math.inf
    after: float = 0.0
    source: str | None = None
    reads: tuple[Place, ...] = ()


@dataclass
class Standing:
    """What there is, less what was given away already.

    Attributes:
        held: Nodes of each job.
        free: Names of fit nodes that nobody holds, by domain.
        stores: By domain.
        links: By ends.
        readers: Recoveries that read from a store or over a link.
    """

    stores: dict[str, Json]
    links: dict[Pair, Json]
    held: dict[str, list[Json]] = field(default_factory=lambda: defaultdict(list))
    free: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    readers: Counter[Place] = field(default_factory=Counter)


class Recovering(Backing):
    """How jobs go on when nodes under them have failed."""

    def plan_failover(self, request: Request) -> Answer:
        """A recovery for every job that is not whole."""
        body = self.body(request, "FailoverRequest")
        self.check_failover(body)
        standing, found = self.standing(body), {}
        for job in self.jobs_in_turn(body):
            if self.is_broken(job, standing):
                found[job["id"]] = recovery = self.recovery(job, standing)
                self.give_away(standing, recovery)
        told = [self.told_recovery(job, found[job["id"]]) for job in self.jobs_in_order(body) if job["id"] in found]
        return Answer(200, {"revision": body["revision"], "method": METHOD_OF_RECOVERY, "recoveries": told})

    def jobs_in_turn(self, body: Json) -> list[Json]:
        """Jobs, that which chooses first in front."""
        return sorted(body["jobs"], key=lambda job: -int(job["priority"]))

    def jobs_in_order(self, body: Json) -> list[Json]:
        """Jobs as they are answered."""
        return list(body["jobs"])

    def told_recovery(self, job: Json, recovery: Recovery) -> Json:
        """A recovery as it is told."""
        replicas = [{"replica": number, "nodes": list(nodes)} for number, nodes in recovery.replicas]
        row = {"job": job["id"], "strategy": recovery.strategy, "replicas": replicas, "after": recovery.after}
        row |= {"source": recovery.source} if recovery.source is not None else {}
        return row | ({"resumes": recovery.seconds} if math.isfinite(recovery.seconds) else {})

    def standing(self, body: Json) -> Standing:
        """What there is before anything is given away."""
        links = {(link["source"], link["target"]): link for link in body["links"]}
        standing = Standing({row["domain"]: row for row in body["stores"]}, links)
        for node in body["nodes"]:
            if "job" in node:
                standing.held[node["job"]].append(node)
            elif self.is_fit(node):
                standing.free[node["domain"]].append(node["id"])
        return standing

    def is_fit(self, node: Json) -> bool:
        """Whether a node can do anything."""
        return bool(node["condition"] == "fit")

    def give_away(self, standing: Standing, recovery: Recovery) -> None:
        """Nodes that a recovery gets are free no more, and what it reads is read by one more."""
        given = {node for _, nodes in recovery.replicas for node in nodes}
        for domain, nodes in standing.free.items():
            if given:
                standing.free[domain] = [node for node in nodes if node not in given]
        standing.readers.update(recovery.reads)

    def whole_replicas(self, job: Json, standing: Standing) -> set[int]:
        """Replicas that have all of their nodes, each of them fit."""
        fit = Counter(node["replica"] for node in standing.held[job["id"]] if self.is_fit(node))
        return {replica for replica, nodes in fit.items() if nodes == job["nodes_each"]}

    def is_broken(self, job: Json, standing: Standing) -> bool:
        """Whether a replica of a job is not whole."""
        return len(self.whole_replicas(job, standing)) < job["replicas"]

    def recovery(self, job: Json, standing: Standing) -> Recovery:
        """The way that costs the least; of several the one that makes a new step first."""
        return min(self.ways_on(job, standing), key=lambda way: (self.cost(way), way.seconds))

    def ways_on(self, job: Json, standing: Standing) -> Iterator[Recovery]:
        """All ways by which a job can go on."""
        yield from self.replacing(job, standing)
        yield from self.going_on(job, standing)
        yield from self.restoring(job, standing)
        yield self.waiting()

    def cost(self, recovery: Recovery) -> float:
        """How long it takes in parts of what it may take; what is good enough costs the same."""
        idle = recovery.seconds / AT_WORK_WITHIN
        broken = recovery.whole / WHOLE_WITHIN if math.isfinite(recovery.whole) else BROKEN + idle
        return max(GOOD, idle, broken)

    def waiting(self) -> Recovery:
        """Nothing is done."""
        return Recovery("wait")

    def going_on(self, job: Json, standing: Standing) -> Iterator[Recovery]:
        """Whole replicas go on, if they are enough."""
        if self.is_enough(job, len(self.whole_replicas(job, standing))):
            yield Recovery("go_on", seconds=float(job["regroup_time"]))

    def is_enough(self, job: Json, replicas: int) -> bool:
        """Whether a job can make steps with so many."""
        return bool(replicas >= job["least_replicas"])

    def replacing(self, job: Json, standing: Standing) -> Iterator[Recovery]:
        """Broken replicas get nodes at home, as many as there are nodes for, and the state from a whole one."""
        whole, each = self.whole_replicas(job, standing), job["nodes_each"]
        nodes = [*self.own(job, standing, but=whole), *standing.free[job["domain"]]]
        number = min(job["replicas"] - len(whole), len(nodes) // each)
        if not whole or not number or not self.is_enough(job, len(whole) + number):
            return
        joined = number * self.seconds_of(job, job["node_bandwidth"]) + job["start_time"] + job["regroup_time"]
        yield Recovery(
            "replace",
            self.placed(self.broken_replicas(whole), nodes, number, each),
            job["regroup_time"] if self.is_enough(job, len(whole)) else joined,
            joined if len(whole) + number == job["replicas"] else math.inf,
        )

    def own(self, job: Json, standing: Standing, but: Iterable[int] = ()) -> list[str]:
        """Fit nodes of a job, but for those of some replicas."""
        passed = set(but)
        held = standing.held[job["id"]]
        return [node["id"] for node in held if self.is_fit(node) and node["replica"] not in passed]

    def broken_replicas(self, whole: Iterable[int]) -> Iterator[int]:
        """Replicas that are not whole, in order and without an end."""
        passed = set(whole)
        return (replica for replica in count() if replica not in passed)

    def placed(self, replicas: Iterable[int], nodes: Sequence[str], number: int, each: int) -> tuple[Placed, ...]:
        """The first replicas on the first nodes."""
        rows = enumerate(islice(replicas, number))
        return tuple((replica, tuple(nodes[place * each : (place + 1) * each])) for place, replica in rows)

    def restoring(self, job: Json, standing: Standing) -> Iterator[Recovery]:
        """All begins anew in one domain, from each copy that can be read there, once nothing else runs on."""
        begins, each = self.fenced_after(job, standing), job["nodes_each"]
        if math.isinf(begins):
            return
        for domain in self.targets(job, standing):
            nodes = [*(self.own(job, standing) if domain == job["domain"] else ()), *standing.free[domain]]
            number = self.number_restored(job, len(nodes) // each)
            if not number or not self.is_enough(job, number):
                continue
            placed = self.placed(count(), nodes, number, each)
            for copy in self.readable(job, domain, standing):
                yield self.restored(job, copy, domain, placed, begins, standing)

    def restored(
        self, job: Json, copy: Json, domain: str, placed: tuple[Placed, ...], begins: float, standing: Standing
    ) -> Recovery:
        """A job that is restored from a copy; what it did since is done anew, slower where replicas are fewer."""
        ready = begins + self.seconds_to_read(job, copy, domain, standing) + job["start_time"]
        again = copy["age"] * job["replicas"] / len(placed)
        whole = ready if len(placed) == job["replicas"] else math.inf
        reads = tuple(self.read_from(copy["domain"], domain))
        return Recovery("restore", placed, ready + again, whole, begins, copy["domain"], reads)

    def fenced_after(self, job: Json, standing: Standing) -> float:
        """Seconds from now at which nothing of a job runs on where nobody sees it; endless where nobody knows."""
        unseen = [node for node in standing.held[job["id"]] if self.is_unseen(node)]
        return max((float(node.get("fenced_in", math.inf)) for node in unseen), default=0.0)

    def is_unseen(self, node: Json) -> bool:
        """Whether something may still run on a node that nothing is heard of."""
        return node["condition"] not in {"fit", "failed"}

    def targets(self, job: Json, standing: Standing) -> list[str]:
        """Domains in which a job may begin anew: its own one first."""
        return [job["domain"], *(domain for domain in standing.free if domain != job["domain"])]

    def number_restored(self, job: Json, most: int) -> int:
        """Replicas to restore where there are nodes for so many."""
        return min(int(job["replicas"]), most)

    def readable(self, job: Json, domain: str, standing: Standing) -> Iterator[Json]:
        """Copies of a job that can be read in a domain."""
        for copy in job["copies"]:
            link = standing.links.get((copy["domain"], domain))
            if copy["domain"] == domain or (link is not None and self.is_up(link)):
                yield copy

    def is_up(self, link: Json) -> bool:
        """Whether a link carries."""
        return bool(link.get("up", True))

    def read_from(self, source: str, domain: str) -> list[Place]:
        """Store that is read, and the link to another domain."""
        return [source, *([(source, domain)] if source != domain else [])]

    def seconds_to_read(self, job: Json, copy: Json, domain: str, standing: Standing) -> float:
        """Seconds in which a copy has come, if those who read the same share it evenly."""
        places = self.read_from(copy["domain"], domain)
        speed = min(self.speed(place, standing) / (standing.readers[place] + 1) for place in places)
        latency = sum(standing.links[place]["latency"] for place in places if isinstance(place, tuple))
        return float(latency + self.seconds_of(job, speed))

    def speed(self, place: Place, standing: Standing) -> float:
        """Bit/s of a store or a link."""
        if isinstance(place, tuple):
            return self.carried(standing.links[place])
        return float(standing.stores[place]["bandwidth"])

    def seconds_of(self, job: Json, speed: float) -> float:
        """Seconds in which the state of a job has come."""
        return float(8 * job["state_size"] / speed)
