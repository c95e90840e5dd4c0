"""A window under a planner, which holds what it says and carries its failover plans out; and planners to compare with.

1. **Codec.** A window is told as the standard's model has it: its request for a backup plan, and an instant's for a
   failover plan. Domains, nodes, jobs and links stand in an order that tells nothing.
2. **Play.** A planner is asked for a backup plan at the beginning, of which what can be held is held, and for failover
   plans after faults.
3. **Baselines.** What is done without a standby, and what a simple fixed rule does with one at home. *Cold*: no spares;
   a copy an hour in the job's own domain; a job whose node fails waits until repaired nodes are enough for all of it,
   and is restored there. *Fixed rule*: spares as a pool shall have; copies at home as often as an even part of the
   store's share allows; broken replicas are replaced where nodes are free, else left out, and a job that cannot go on
   is restored at home.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Annotated, Protocol

from pydantic import Field

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.recovery.simulation import (
    GO_ON,
    REPLACE,
    RESTORE,
    WAIT,
    Copying,
    Failing,
    Recovering,
    Working,
)
from kuayu_conformance.testbed.recovery.state import (
    UNREACHABLE,
    Clock,
    Flows,
    Holdings,
    Incident,
    JobState,
    Prediction,
    State,
    begin,
    fewest,
    held,
)
from kuayu_conformance.testbed.recovery.world import INTERVAL_S, PAST, World

if TYPE_CHECKING:
    from kuayu_schemas import documents

SOON_S, AGAIN_S, LATER_S = 3.0, 10.0, 60.0
"""Seconds after a fault or a change of what can be reached until a plan is asked for; until one is asked again; and the
same once nothing has happened for ``STALE_S``."""
STALE_S = 300.0
COLD, FIXED = "cold, hourly copies at home", "fixed rule, copies at home"
HOUR_S = 3600.0
_HOUR_S = 3600.0
_METHOD: "documents.RecoveryMethod" = {"name": "opponent", "version": "1"}


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
        """What is asked at the beginning."""
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


class Planner(Protocol):
    """Who is asked; None where there is no plan."""

    def backup(self, request: "documents.BackupRequest") -> "documents.BackupPlan | None":
        """A valid backup plan."""

    def failover(self, request: "documents.FailoverRequest") -> "documents.FailoverPlan | None":
        """A valid failover plan whose recoveries are all sound; a job that has none waits."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a window.

    Attributes:
        incidents: In the order of their faults.
        predictions: Of plans that were carried out until a new step was made.
        held: What was held of the backup plan.
        price: Of spares, over the whole window.
        hours: Of the window.
        paused: Share of the time of all jobs that checkpoints took.
        copies: Copies that were taken.
        skipped: Copies that were due and not taken.
        failover_requests: How often a failover plan was asked for.
    """

    incidents: tuple[Incident, ...]
    predictions: tuple[Prediction, ...]
    held: Holdings
    price: float
    hours: float
    paused: float
    copies: int
    skipped: int
    failover_requests: Annotated[int, Field(alias="asked")]  # its name in transcripts


class Run:
    """A window under a planner.

    Attributes:
        state: How things stand.
        failover_requests: How often a failover plan was asked for.
    """

    def __init__(self, world: World, planner: Planner) -> None:
        self._world, self._planner = world, planner
        self.state = begin(world)
        self._wire, self._clock = Wire(world), Clock()
        self._flows = Flows(world, self.state.away)
        self._working = Working(self.state, self._clock)
        self._copying = Copying(self.state, self._clock, self._flows, self._working.refresh)
        parts = (self.state, self._clock, self._flows, self._working, self._copying)
        self._recovering = Recovering(*parts, self._over)
        self._failing = Failing(*parts, self._recovering, self._changed)
        self._tick, self._news = inf, 0.0
        self.failover_requests = 0

    def play(self) -> Outcome:
        """From the beginning to the end."""
        kept = held(self._world, self._planner.backup(self._wire.backup()))
        self._show(kept)
        self._copying.plan(list(kept.copies))
        self._failing.plan(self._world.faults)
        self._go_on()
        self._working.end()
        jobs, ends = self.state.jobs, self._world.ends_s
        return Outcome(
            tuple(self._working.incidents),
            tuple(self._working.predictions),
            kept,
            kept.price(self._world) * ends / _HOUR_S,
            ends / _HOUR_S,
            sum(job.paused_s for job in jobs) / (len(jobs) * ends),
            self._copying.taken,
            self._copying.skipped,
            self.failover_requests,
        )

    def _show(self, kept: Holdings) -> None:
        left = list(kept.spares)
        for node, spec in zip(self.state.nodes, self._world.nodes, strict=True):
            if node.job < 0 and left[spec.domain]:
                left[spec.domain] -= 1
                node.shown = True

    def _go_on(self) -> None:
        state, ends = self.state, self._world.ends_s
        for job in state.jobs:
            self._working.refresh(job)
        while state.now < ends:
            then = min(self._clock.next, self._flows.next(state.now), ends)
            finished = self._flows.travel(state.now, then)
            state.now = then
            for flow in finished:
                flow.done()
            while self._clock.next <= state.now:
                self._clock.take()()

    def _changed(self) -> None:
        """Ask when what has changed is known, and not before."""
        self._tick, self._news = inf, self.state.now
        self._clock.at(self.state.now + SOON_S, self._ask)

    def _again(self) -> None:
        tick = self.state.now + (AGAIN_S if self.state.now < self._news + STALE_S else LATER_S)
        if tick < self._tick:
            self._tick = tick
            self._clock.at(tick, partial(self._ticks, tick))

    def _ticks(self, tick: float) -> None:
        if tick == self._tick:
            self._ask()

    def _ask(self) -> None:
        self._tick = inf
        numbers = {job.spec.id: job for job in self._open()}
        if not numbers:
            return
        self.failover_requests += 1
        answer = self._planner.failover(self._wire.failover(self.state))
        for recovery in answer["recoveries"] if answer is not None else ():
            job = numbers.pop(recovery["job"], None)
            if job is not None:
                self._recovering.carry_out(job, recovery)
        if self._open():
            self._again()

    def _open(self) -> list[JobState]:
        """Jobs that are not whole and have no recovery under way."""
        return [job for job in self.state.jobs if job.recovery is None and self.state.broken(job)]

    def _over(self, job: JobState) -> None:
        self._news = self.state.now
        if self.state.broken(job):
            self._again()


def play(world: World, planner: Planner) -> Outcome:
    """What comes of a window under a planner."""
    return Run(world, planner).play()


@dataclass(frozen=True, slots=True)
class Two:
    """A planner made of two functions."""

    backups: "Callable[[documents.BackupRequest], documents.BackupPlan | None]"
    failovers: "Callable[[documents.FailoverRequest], documents.FailoverPlan | None]"

    def backup(self, request: "documents.BackupRequest") -> "documents.BackupPlan | None":
        """A backup plan."""
        return self.backups(request)

    def failover(self, request: "documents.FailoverRequest") -> "documents.FailoverPlan | None":
        """A failover plan."""
        return self.failovers(request)


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
