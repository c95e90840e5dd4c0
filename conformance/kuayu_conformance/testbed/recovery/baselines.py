"""Planners to compare with: what is done without a standby, and what a simple fixed rule does with one at home.

*Cold*: no spares; a copy an hour in the job's own domain; a job whose node fails waits until repaired nodes are enough
for all of it, and is restored there. *Fixed rule*: spares as a pool shall have; copies at home as often as an even part
of the store's share allows; broken replicas are replaced where nodes are free, else left out, and a job that cannot go
on is restored at home.
"""

from collections import defaultdict
from typing import TYPE_CHECKING

from kuayu_conformance.testbed.recovery.holding import fewest
from kuayu_conformance.testbed.recovery.recovering import GO_ON, REPLACE, RESTORE, WAIT
from kuayu_conformance.testbed.recovery.world import World

if TYPE_CHECKING:
    from kuayu_schemas import documents

COLD, FIXED = "cold, hourly copies at home", "fixed rule, copies at home"
HOUR_S = 3600.0
_METHOD: "documents.RecoveryMethod" = {"name": "opponent", "version": "1"}


class BaselinePlanner:
    """One of the two.

    Args:
        world: Where it plays.
        cold: Whether it has no spares.
    """

    def __init__(self, world: World, *, cold: bool) -> None:
        self._world, self._cold = world, cold

    def backup(self, request: "documents.BackupRequest") -> "documents.BackupPlan":
        """Its spares and copies."""
        numbers = {domain.id: number for number, domain in enumerate(self._world.domains)}
        pools: list[documents.BackupPool] = []
        for domain in request["domains"]:
            spares = 0 if self._cold else fewest(self._world, numbers[domain["id"]])
            pools.append({"domain": domain["id"], "spares": spares, "risk": 1.0, "price": spares * domain["price"]})
        size: dict[str, float] = defaultdict(float)
        for job in request["jobs"]:
            size[job["domain"]] += job["state_size"]
        share = {store["domain"]: request["share"] * store["bandwidth"] for store in request["stores"]}
        periods = {
            domain: HOUR_S if self._cold else 8.0 * state_size / share[domain] for domain, state_size in size.items()
        }
        copies: list[documents.PlannedCopy] = [
            {"job": job["id"], "domain": job["domain"], "period": periods[job["domain"]]} for job in request["jobs"]
        ]
        return {"revision": request["revision"], "method": _METHOD, "pools": pools, "copies": copies}

    def failover(self, request: "documents.FailoverRequest") -> "documents.FailoverPlan":
        """Its way for each job with a broken replica."""
        free: dict[str, list[str]] = defaultdict(list)
        nodes: dict[str, list[documents.StandingNode]] = defaultdict(list)
        for node in request["nodes"]:
            if "job" in node:
                nodes[node["job"]].append(node)
            elif node["condition"] == "fit":
                free[node["domain"]].append(node["id"])
        candidates = [self._way(job, nodes[job["id"]], free[job["domain"]]) for job in request["jobs"]]
        recoveries = [recovery for recovery in candidates if recovery is not None]
        return {"revision": request["revision"], "method": _METHOD, "recoveries": recoveries}

    def _way(
        self, job: "documents.ProtectedJob", nodes: "list[documents.StandingNode]", free: list[str]
    ) -> "documents.JobRecovery | None":
        nodes_each = job["nodes_each"]
        fit = [[] for _ in range(job["replicas"])]  # type: list[list[str]]
        for node in nodes:
            if node["condition"] == "fit":
                fit[node["replica"]].append(node["id"])
        broken = [replica for replica, fit_nodes in enumerate(fit) if len(fit_nodes) < nodes_each]
        if not broken:
            return None
        whole = job["replicas"] - len(broken)
        if whole and not self._cold:
            own = [name for replica in broken for name in fit[replica]]
            count = min(len(broken), (len(own) + len(free)) // nodes_each)
            if count and whole + count >= job["least_replicas"]:
                given = _taken(own, free, count * nodes_each)
                return _recovery(job, REPLACE, _placed(broken[:count], given, nodes_each))
            if whole >= job["least_replicas"]:
                return _recovery(job, GO_ON, [])
        return self._restored(job, nodes, [name for fit_nodes in fit for name in fit_nodes], free)

    def _restored(
        self, job: "documents.ProtectedJob", nodes: "list[documents.StandingNode]", own: list[str], free: list[str]
    ) -> "documents.JobRecovery":
        nodes_each, home = job["nodes_each"], job["domain"]
        least = job["replicas"] if self._cold else job["least_replicas"]
        count = min(job["replicas"], (len(own) + len(free)) // nodes_each)
        reachable = all(node["condition"] != "unreachable" for node in nodes)
        if count < least or not reachable or home not in [copy["domain"] for copy in job["copies"]]:
            return _recovery(job, WAIT, [])
        given = _taken(own, free, count * nodes_each)
        return {**_recovery(job, RESTORE, _placed(list(range(count)), given, nodes_each)), "source": home}


def _taken(own: list[str], free: list[str], count: int) -> list[str]:
    """So many nodes, its own first; those that were free are no longer."""
    given = [*own, *free][:count]
    del free[: max(0, count - len(own))]
    return given


def _placed(replicas: list[int], nodes: list[str], size: int) -> "list[documents.PlacedReplica]":
    return [
        {"replica": number, "nodes": nodes[index * size : (index + 1) * size]} for index, number in enumerate(replicas)
    ]


def _recovery(
    job: "documents.ProtectedJob",
    strategy: "documents.RecoveryStrategy",
    replicas: "list[documents.PlacedReplica]",
) -> "documents.JobRecovery":
    return {"job": job["id"], "strategy": strategy, "replicas": replicas, "after": 0.0}
