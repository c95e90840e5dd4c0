"""Requests to services of resilience, and whether a failover plan can be carried out, given its request (RES-014).

1. Operations of resilience, and what draws parts that requests of several of them have. Bandwidths and sizes have no
   round numbers that would hide a slip.
2. Requests for failover plans, and how their jobs stand, as the clause of recovery tells it.
3. What deviates in a failover plan.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.checks.kit.decisions import Json, name, revision, revision_faults

if TYPE_CHECKING:
    from kuayu_schemas import documents

SHARDS, COLLECTIVES = "/v1/shard-plans", "/v1/collectives"
BACKUPS, FAILOVERS = "/v1/backup-plans", "/v1/failover-plans"
ADJUSTMENTS = "/v1/adjustments"

GIGA = 1e9


def bandwidth(chance: Random, least: float, most: float) -> float:
    """A bandwidth between two, given in Gbit/s; in whole bit/s."""
    return float(round(chance.uniform(least, most) * GIGA))


def measured_link(
    chance: Random,
    ends: tuple[str, str],
    gigabits: tuple[float, float],
    seconds: tuple[float, float],
    intervals: int,
    **members: Any,
) -> "documents.MeasuredLink":
    """A link whose bandwidth was measured over intervals, within ±30 % of a level.

    Args:
        chance: What is drawn from.
        ends: Source and target.
        gigabits: Least and greatest level, Gbit/s.
        seconds: Least and greatest latency.
        intervals: How many were measured.
        members: What is otherwise.
    """
    level = chance.uniform(*gigabits) * GIGA
    link = {
        "source": ends[0],
        "target": ends[1],
        "latency": round(chance.uniform(*seconds), 6),
        "bandwidths": [float(round(level * chance.uniform(0.7, 1.3))) for _ in range(intervals)],
        **members,
    }
    return cast("documents.MeasuredLink", link)


INTERVAL, MEASURED = 10.0, 12

Place = tuple[int, int]
"""A replica, and which of its nodes, both counted from zero."""

FAILED: Json = {"condition": "failed"}
UNREACHABLE: Json = {"condition": "unreachable"}
UNKNOWN: Json = {"condition": "unknown"}


def fenced(seconds: float) -> Json:
    """A node of which nothing is heard and on which nothing runs any more after so long."""
    return {**UNREACHABLE, "fenced_in": seconds}


class FailoverRequestBuilder:
    """Draws the parts of a request.

    Attributes:
        chance: What is drawn from.
        here: Domain where jobs run.
        near: Domain with the best links.
        far: A third one.
    """

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.here, self.near, self.far = self.domains = [name(chance) for _ in range(3)]

    def job(self, replicas: int, least: int, nodes_each: int, **members: Any) -> "documents.ProtectedJob":
        """A job here with a copy here, a few minutes old, and one near by, older."""
        age = self.chance.uniform(60.0, 600.0)
        ages = [round(age, 3), round(age + self.chance.uniform(60.0, 600.0), 3)]
        job = {
            "id": name(self.chance),
            "priority": self.chance.randrange(-5, 6),
            "domain": self.here,
            "replicas": replicas,
            "least_replicas": least,
            "nodes_each": nodes_each,
            "state_size": float(self.chance.randrange(20_000_000_000, 600_000_000_000)),
            "node_bandwidth": bandwidth(self.chance, 25.0, 100.0),
            "start_time": round(self.chance.uniform(20.0, 90.0), 3),
            "regroup_time": round(self.chance.uniform(2.0, 10.0), 3),
            "copies": [{"domain": self.here, "age": ages[0]}, {"domain": self.near, "age": ages[1]}],
            **members,
        }
        return cast("documents.ProtectedJob", job)

    def nodes_of(
        self, job: "documents.ProtectedJob", otherwise: Mapping[Place, Json | None] | None = None
    ) -> "list[documents.StandingNode]":
        """A job's nodes: fit, but for places where something else is said; none where that is ``None``."""
        conditions = otherwise or {}
        places = [(replica, node) for replica in range(job["replicas"]) for node in range(job["nodes_each"])]
        members = [(place, conditions.get(place, {})) for place in places]
        return [
            self.node(job["domain"], job=job["id"], replica=place[0], **entry)
            for place, entry in members
            if entry is not None
        ]

    def node(self, domain: str, **members: Any) -> "documents.StandingNode":
        """A node that is fit and free."""
        node = {"id": name(self.chance), "domain": domain, "condition": "fit", **members}
        return cast("documents.StandingNode", node)

    def free(self, domain: str, count: int, **members: Any) -> "list[documents.StandingNode]":
        """So many nodes that nobody holds."""
        return [self.node(domain, **members) for _ in range(count)]

    def link(self, source: str, target: str, **members: Any) -> "documents.MeasuredLink":
        """A link that carries some Gbit/s, more or less."""
        return measured_link(self.chance, (source, target), (5.0, 25.0), (0.005, 0.05), MEASURED, **members)

    def links(self, out: Iterable[tuple[str, str]] = ()) -> "list[documents.MeasuredLink]":
        """From each domain to each other, some of which are out."""
        gone = set(out)
        return [self.link(*pair, up=False) if pair in gone else self.link(*pair) for pair in self._pairs()]

    def _pairs(self) -> Iterator[tuple[str, str]]:
        yield from ((one, other) for one in self.domains for other in self.domains if one != other)

    def request(
        self, jobs: "list[documents.ProtectedJob]", nodes: "list[documents.StandingNode]", **members: Any
    ) -> "documents.FailoverRequest":
        """A request with stores everywhere and good links; nodes stand in any order."""
        self.chance.shuffle(nodes)
        stores = [{"domain": domain, "bandwidth": bandwidth(self.chance, 40.0, 160.0)} for domain in self.domains]
        request = {
            "revision": revision(self.chance),
            "interval": INTERVAL,
            "links": self.links(),
            "stores": stores,
            "nodes": nodes,
            "jobs": jobs,
            **members,
        }
        return cast("documents.FailoverRequest", request)


@dataclass(frozen=True)
class Standing:
    """How a job stands.

    Attributes:
        job: Of the request.
        nodes_by_replica: Its nodes, by replica.
        nodes: All nodes, by id.
        links_up: Source and target of links that are up.
    """

    job: "documents.ProtectedJob"
    nodes_by_replica: "Mapping[int, Sequence[documents.StandingNode]]"
    nodes: "Mapping[str, documents.StandingNode]"
    links_up: frozenset[tuple[str, str]]

    @cached_property
    def broken(self) -> list[int]:
        """Replicas that hold no nodes, too few, or some that are not fit; rising."""
        return [entry for entry in range(self.job["replicas"]) if not self._whole(self.nodes_by_replica.get(entry, ()))]

    @property
    def whole(self) -> int:
        """How many replicas are not broken."""
        return self.job["replicas"] - len(self.broken)

    @property
    def unheard(self) -> "list[documents.StandingNode]":
        """Nodes on which something may still run."""
        return [
            node
            for entry in self.nodes_by_replica.values()
            for node in entry
            if node["condition"] not in {"fit", "failed"}
        ]

    def _whole(self, nodes: "Sequence[documents.StandingNode]") -> bool:
        return len(nodes) == self.job["nodes_each"] and all(node["condition"] == "fit" for node in nodes)


def standings(request: "documents.FailoverRequest") -> dict[str, Standing]:
    """How the jobs with a broken replica stand, by job, in the order of a valid request."""
    nodes = {node["id"]: node for node in request["nodes"]}
    links_up = frozenset((link["source"], link["target"]) for link in request["links"] if link.get("up", True))
    nodes_by_replica: dict[str, dict[int, list[documents.StandingNode]]] = {
        job["id"]: defaultdict(list) for job in request["jobs"]
    }
    for node in request["nodes"]:
        if node.get("job", "") in nodes_by_replica:
            nodes_by_replica[node["job"]][node["replica"]].append(node)
    stands = {job["id"]: Standing(job, nodes_by_replica[job["id"]], nodes, links_up) for job in request["jobs"]}
    return {name: standing for name, standing in stands.items() if standing.broken}


SHOWN = 5
"""Names that a sentence holds at most."""


def deviations(request: "documents.FailoverRequest", plan: "documents.FailoverPlan") -> list[str]:
    """All that deviates in a valid plan, with expected and found.

    Args:
        request: It is valid and does not contradict itself.
        plan: Its answer.
    """
    deviating = [*revision_faults(request, plan)]
    expected, recovered = list(standings(request)), [recovery["job"] for recovery in plan["recoveries"]]
    if recovered != expected:
        jobs = f"the {len(expected)} jobs with a broken replica are {expected[:SHOWN]}, in this order"
        deviating.append(f"{len(recovered)} recoveries, of {recovered[:SHOWN]}, where {jobs}")
    return deviating + [
        f"job {job}: {fault}" for job, faults in unsound_jobs(request, plan).items() for fault in faults
    ]


def unsound_jobs(request: "documents.FailoverRequest", plan: "documents.FailoverPlan") -> dict[str, list[str]]:
    """What deviates in each recovery of a valid plan, by job; those where nothing does are absent.

    A node that is given to two jobs deviates in both. The order of recoveries and the revision are no job's.

    Args:
        request: It is valid and does not contradict itself.
        plan: Its answer.
    """
    stands = standings(request)
    times = Counter(node for entry in plan["recoveries"] for placed in entry["replicas"] for node in placed["nodes"])
    recoveries_by_job: dict[str, list[documents.JobRecovery]] = {name: [] for name in stands}
    for item in plan["recoveries"]:
        recoveries_by_job.setdefault(item["job"], []).append(item)
    faults_by_job = {}
    for job, recoveries in recoveries_by_job.items():
        if job not in stands:
            faults_by_job[job] = ["a recovery where there is no job of that name with a broken replica"]
            continue
        faults = [fault for recovery in recoveries for fault in _of_recovery(stands[job], recovery, times)]
        if len(recoveries) != 1:
            faults.insert(0, f"{len(recoveries)} recoveries where replicas {stands[job].broken[:SHOWN]} are broken")
        if faults:
            faults_by_job[job] = faults
    return faults_by_job


def _of_recovery(standing: Standing, recovery: "documents.JobRecovery", times: Counter[str]) -> Iterator[str]:
    strategy, placed = recovery["strategy"], recovery["replicas"]
    if strategy not in _RULES:
        yield f"strategy {strategy}, which is none of {', '.join(_RULES)}"
        return
    yield from _nodes(standing, recovery, times)
    if strategy in {"go_on", "wait"} and placed:
        yield f"{strategy} with nodes for {len(placed)} replicas where none gets any"
    if strategy != "restore" and "source" in recovery:
        yield f"{strategy} with the source {recovery['source']} where nothing is restored"
    yield from _RULES[strategy](standing, recovery)


def _go_on(standing: Standing, recovery: "documents.JobRecovery") -> Iterator[str]:
    del recovery
    if standing.whole < standing.job["least_replicas"]:
        yield f"go_on with {standing.whole} whole replicas where {standing.job['least_replicas']} are the least"


def _replace(standing: Standing, recovery: "documents.JobRecovery") -> Iterator[str]:
    numbers = [replica["replica"] for replica in recovery["replicas"]]
    least, broken = standing.job["least_replicas"], set(standing.broken)
    if not numbers:
        yield "replaces nothing"
    if len(set(numbers)) < len(numbers):
        yield f"replicas {numbers[:SHOWN]}, one of them twice"
    sound = [number for number in numbers if number not in broken]
    if sound:
        yield f"replaces replicas {sound[:SHOWN]} where {standing.broken[:SHOWN]} are broken"
    if standing.whole < 1:
        yield "replaces replicas where none is whole that could give its state"
    if standing.whole + len(set(numbers)) < least:
        yield f"replaces {len(set(numbers))} where {standing.whole} are whole and {least} are the least"
    elsewhere = sorted(_domains(standing, recovery) - {standing.job["domain"]})
    if elsewhere:
        yield f"replaces in {elsewhere[:SHOWN]} where the job runs in {standing.job['domain']}"


def _restore(standing: Standing, recovery: "documents.JobRecovery") -> Iterator[str]:
    numbers = [replica["replica"] for replica in recovery["replicas"]]
    least, most = standing.job["least_replicas"], standing.job["replicas"]
    if numbers != list(range(len(numbers))):
        yield f"restores replicas {numbers[:SHOWN]}, which are not numbered from nought"
    if not least <= len(numbers) <= most:
        yield f"restores {len(numbers)} replicas where the job has {least} to {most}"
    domains = _domains(standing, recovery)
    if len(domains) > 1:
        yield f"restores in {len(domains)} domains where all replicas are in one"
    yield from _source(standing, recovery, domains)
    for node in standing.unheard:
        if "fenced_in" not in node:
            yield f"restores while nobody knows when node {node['id']} is fenced"
        elif recovery["after"] < node["fenced_in"]:
            yield f"restores after {recovery['after']} s where node {node['id']} is fenced in {node['fenced_in']} s"


def _source(standing: Standing, recovery: "documents.JobRecovery", domains: set[str]) -> Iterator[str]:
    source = recovery.get("source")
    if source is None:
        yield "restores without a source"
        return
    copies = [copy["domain"] for copy in standing.job["copies"]]
    if source not in copies:
        yield f"restores from {source} where copies are in {copies[:SHOWN]}"
    for domain in sorted(domains - {source}):
        if (source, domain) not in standing.links_up:
            yield f"restores from {source} where no link that is up leads to {domain}"


def _nodes(standing: Standing, recovery: "documents.JobRecovery", times: Counter[str]) -> Iterator[str]:
    needed, given = standing.job["nodes_each"], [name for placed in recovery["replicas"] for name in placed["nodes"]]
    for placed in recovery["replicas"]:
        if len(placed["nodes"]) != needed:
            yield f"replica {placed['replica']} gets {len(placed['nodes'])} nodes where it needs {needed}"
    for node_id in dict.fromkeys(given):
        if times[node_id] > 1:
            yield f"node {node_id} is given {times[node_id]} times"
        node = standing.nodes.get(node_id)
        if node is None:
            yield f"node {node_id} is not in the request"
            continue
        if node["condition"] != "fit":
            yield f"node {node_id} is {node['condition']} where it must be fit"
        yield from _holder(standing, recovery["strategy"], node)


def _holder(standing: Standing, strategy: str, node: "documents.StandingNode") -> Iterator[str]:
    if "job" not in node:
        return
    if node["job"] != standing.job["id"]:
        yield f"node {node['id']} is held by job {node['job']}"
    elif strategy == "replace" and node["replica"] not in standing.broken:
        yield f"node {node['id']} is of replica {node['replica']}, which is whole"


def _domains(standing: Standing, recovery: "documents.JobRecovery") -> set[str]:
    """Domains of the nodes that a recovery gives, those that are known."""
    nodes = (standing.nodes.get(name) for placed in recovery["replicas"] for name in placed["nodes"])
    return {node["domain"] for node in nodes if node is not None}


def _wait(standing: Standing, recovery: "documents.JobRecovery") -> Iterator[str]:
    """Whoever waits needs nothing more."""
    del standing, recovery
    return iter(())


_RULES = {"go_on": _go_on, "replace": _replace, "restore": _restore, "wait": _wait}
"""What else a recovery needs, by strategy."""
