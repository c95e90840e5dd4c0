"""What becomes of a window under a planner, which holds what it says and carries its failover plans out; and baselines.

1. **Work.** Jobs make steps, or do not, and it is counted: incidents, and predictions that came true or not.
2. **Copies.** Checkpoints are taken when copies are due, and travel to stores.
3. **Recoveries.** They are carried out step by step, and are taken to be sound.
4. **Faults.** Nodes fail and are repaired; domains fail or are cut off, and come back.
5. **Codec.** A window is told as the standard's model has it: its request for a backup plan, and an instant's for a
   failover plan. Domains, nodes, jobs and links stand in an order that tells nothing.
6. **Play.** A planner is asked for a backup plan at the beginning, of which what can be held is held, and for failover
   plans after faults.
7. **Baselines.** What is done without a standby, and what a simple fixed rule does with one at home. *Cold*: no spares;
   a copy an hour in the job's own domain; a job whose node fails waits until repaired nodes are enough for all of it,
   and is restored there. *Fixed rule*: spares as a pool shall have; copies at home as often as an even part of the
   store's share allows; broken replicas are replaced where nodes are free, else left out, and a job that cannot go on
   is restored at home.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Annotated, Protocol

from pydantic import Field

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.recovery.world import (
    BITS,
    CUT_OFF,
    DOMAIN,
    INTERVAL_S,
    NODES,
    PAST,
    SAME,
    UNREACHABLE,
    Away,
    Clock,
    Copy,
    Fault,
    Flow,
    Flows,
    Holdings,
    Incident,
    JobState,
    Prediction,
    Recovery,
    State,
    World,
    begin,
    channels,
    fewest,
    hold,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

GO_ON: "documents.RecoveryStrategy" = "go_on"
REPLACE: "documents.RecoveryStrategy" = "replace"
RESTORE: "documents.RecoveryStrategy" = "restore"
WAIT: "documents.RecoveryStrategy" = "wait"

SOON_S, AGAIN_S, LATER_S = 3.0, 10.0, 60.0
"""Seconds after a fault or a change of what can be reached until a plan is asked for; until one is asked again; and the
same once nothing has happened for ``STALE_S``."""
STALE_S = 300.0
COLD, FIXED = "cold, hourly copies at home", "fixed rule, copies at home"
HOUR_S = 3600.0
_METHOD: "documents.RecoveryMethod" = {"name": "opponent", "version": "1"}


class JobWork:
    """Lets jobs work.

    Attributes:
        incidents: All so far, in the order of their faults.
        predictions: Of plans that were carried out until a new step was made.
    """

    def __init__(self, state: State, clock: Clock) -> None:
        self._state, self._clock = state, clock
        self.incidents: list[Incident] = []
        self.predictions: list[Prediction] = []

    def refresh(self, job: JobState) -> None:
        """Count what was done, and work on as things stand now."""
        now = self._state.now
        job.settle(now)
        job.go(now)
        if job.runs and job.speed == 0.0 and job.active:
            self._clock.at(max(job.regroups_until, job.pauses_until), partial(self.refresh, job))
        if job.speed > 0.0:
            self._goes(job, now)

    def _goes(self, job: JobState, now: float) -> None:
        """It makes steps: whatever is over is over."""
        if job.incident is not None and job.active >= job.incident.had:
            job.incident.switch_s = min(job.incident.switch_s, now - job.incident.onset)
        if job.behind:
            self._clock.at(now + job.behind / job.speed, partial(self.refresh, job))
            return
        if job.said is not None:
            strategy, decided_at, expected = job.said
            self.predictions.append(Prediction(strategy, expected, now - decided_at))
            job.said = None
        if job.incident is not None and job.incident.switch_s < inf:
            job.incident = None

    def hurt(self, job: JobState, kind: str) -> None:
        """Nodes of a job that makes steps fail or are fenced: an incident, or part of the one that is not over."""
        now = self._state.now
        job.settle(now)
        job.said = None
        if job.incident is None:
            job.incident = Incident(job.number, kind, now, job.active, 0.0)
            self.incidents.append(job.incident)
        job.incident.switch_s = inf

    def note_least(self, job: JobState) -> None:
        """What the state of a job that was hurt takes at least: from a whole replica, or from the quickest store."""
        if job.incident is not None and job.incident.onset == self._state.now:
            size, domains, away = BITS * job.spec.state_size, self._state.world.domains, self._state.away
            left = len(self._state.broken(job)) < job.spec.replicas
            stores = [domain.store_bandwidth for number, domain in enumerate(domains) if number not in away]
            job.incident.least_s = size / (job.spec.node_bandwidth if left else max(stores, default=SAME))

    def end(self) -> None:
        """The window is over; what is not over by then never was."""
        for job in self._state.jobs:
            job.settle(self._state.now)
            if job.incident is not None and (job.behind or not (job.speed > 0.0 or job.pausing)):
                job.incident.interruption_s = inf


class CheckpointCopier:
    """Takes checkpoints when copies are due.

    A copy is skipped where the one before is still under way, where the job makes no steps, and where its store cannot
    be reached. It is lost when no whole replica of the job is left to send it, or its way is cut.

    Attributes:
        taken: Copies that began to travel.
        skipped: Those that did not, but were due.
    """

    def __init__(self, state: State, clock: Clock, flows: Flows, refresh: Callable[[JobState], None]) -> None:
        self._state, self._clock, self._flows, self._refresh = state, clock, flows, refresh
        self.taken = self.skipped = 0

    def plan(self, copies: list[Copy]) -> None:
        """Let all copies be due, first after one period."""
        for copy in copies:
            self._clock.at(copy.period_s, partial(self._due, copy, 1))

    def _due(self, copy: Copy, times: int) -> None:
        self._clock.at((times + 1) * copy.period_s, partial(self._due, copy, times + 1))
        job, now = self._state.jobs[copy.job], self._state.now
        if not self._goes(job, copy.domain):
            self.skipped += 1
            return
        job.settle(now)
        job.pauses_until = now + job.spec.pause_s
        self._refresh(job)
        self.taken += 1
        channel, size = channels(copy.domain, job.domain, copy.domain), BITS * job.spec.state_size
        flow = Flow(channel, size, partial(self._copied, job, copy.domain, job.progress), copy=True)
        job.travelling[copy.domain] = flow
        latency = 0.0
        if copy.domain != job.domain:
            latency = float(self._state.world.links.latency_s[job.domain, copy.domain])
        self._clock.at(now + latency, partial(self._start, job, copy.domain, flow))

    def _goes(self, job: JobState, domain: int) -> bool:
        away = self._state.away
        within = domain == job.domain or not (domain in away or job.domain in away)
        return job.runs and job.active > 0 and domain not in job.travelling and within

    def _start(self, job: JobState, domain: int, flow: Flow) -> None:
        if job.travelling.get(domain) is flow:
            self._flows.start(flow, self._state.now)

    def _copied(self, job: JobState, domain: int, progress: float) -> None:
        del job.travelling[domain]
        job.copies[domain] = progress

    def lose(self, job: JobState, lost: Callable[[int], bool] = lambda _domain: True) -> None:
        """Copies of a job on their way to some domains, or to any, are lost."""
        for domain in [target for target in job.travelling if lost(target)]:
            self._flows.stop(job.travelling.pop(domain), self._state.now)


class RecoveryRunner:
    """Carries recoveries out.

    Args:
        state: Of the window.
        clock: Of the window.
        flows: What is under way.
        working: Who lets jobs work.
        copying: Who takes checkpoints.
        over: Told of a job whose recovery is no longer under way.
    """

    def __init__(
        self,
        state: State,
        clock: Clock,
        flows: Flows,
        working: JobWork,
        copying: CheckpointCopier,
        over: Callable[[JobState], None],
    ) -> None:
        self._state, self._clock, self._flows = state, clock, flows
        self._working, self._copying, self._over = working, copying, over
        self._domains = {domain.id: number for number, domain in enumerate(state.world.domains)}
        self._nodes = {node.id: number for number, node in enumerate(state.world.nodes)}

    def carry_out(self, job: JobState, body: "documents.JobRecovery") -> None:
        """Let a job go on as a sound recovery says."""
        now, strategy = self._state.now, body["strategy"]
        job.settle(now)
        if "resumes" in body and not (job.runs or job.behind):  # nobody is told how far a job is behind
            job.said = (strategy, now, float(body["resumes"]))
        if strategy == WAIT:
            return
        replicas = {
            int(replica["replica"]): tuple(self._nodes[name] for name in replica["nodes"])
            for replica in body["replicas"]
        }
        source = self._domains[body["source"]] if strategy == RESTORE else -1
        recovery = Recovery(strategy, now + float(body["after"]), replicas, source)
        for node in recovery.nodes:
            self._state.nodes[node].job = job.number
        job.recovery = recovery
        self._clock.at(recovery.begins_at, partial(self._step, job, recovery, self._begin))

    def _step(self, job: JobState, recovery: Recovery, what: Callable[[JobState, Recovery], None]) -> None:
        """Take the next step of a recovery, unless it is off."""
        if job.recovery is recovery:
            what(job, recovery)

    def _begin(self, job: JobState, recovery: Recovery) -> None:
        job.settle(self._state.now)
        if recovery.strategy == RESTORE:
            self._begin_restore(job, recovery)
            return
        recovery.begun = True
        self._note(job, recovery)
        broken = self._state.broken(job)
        if self._give_up(job, broken, recovery):
            job.regroups_until = self._state.now + job.spec.regroup_s
        job.active = job.spec.replicas - len(broken)
        job.stopped = job.active < job.spec.least_replicas
        self._working.refresh(job)
        if recovery.strategy == GO_ON:
            self._clock.at(job.regroups_until, partial(self._step, job, recovery, self._end))
            if job.regroups_until <= self._state.now:
                self._end(job, recovery)
            return
        channel = (NODES, job.number, -1)
        arrived = partial(self._step, job, recovery, self._state_arrived)
        recovery.flow = Flow((channel,), BITS * job.spec.state_size, arrived, parts=len(recovery.replicas))
        self._flows.start(recovery.flow, self._state.now)

    def _note(self, job: JobState, recovery: Recovery) -> None:
        """Put the channel down, where it is another than before."""
        if job.incident is not None and job.incident.strategies[-1:] != [recovery.strategy]:
            job.incident.strategies.append(recovery.strategy)

    def _begin_restore(self, job: JobState, recovery: Recovery) -> None:
        now, away = self._state.now, self._state.away
        target = self._target(recovery)
        if recovery.source not in job.copies or (target != recovery.source and away.keys() & {target, recovery.source}):
            self.off(job)
            self._over(job)
            return
        if job.runs and job.active:
            self._working.hurt(job, CUT_OFF)
            self._working.note_least(job)
        recovery.begun, recovery.progress = True, job.copies[recovery.source]
        self._note(job, recovery)
        self._give_up(job, range(job.spec.replicas), recovery)
        self._copying.lose(job)
        job.stopped, job.fenced, job.active = True, False, 0
        self._working.refresh(job)
        arrived = partial(self._step, job, recovery, self._state_arrived)
        recovery.flow = Flow(channels(recovery.source, recovery.source, target), BITS * job.spec.state_size, arrived)
        latency = float(self._state.world.links.latency_s[recovery.source, target]) if target != recovery.source else 0
        self._clock.at(now + latency, partial(self._step, job, recovery, self._read))

    def _read(self, job: JobState, recovery: Recovery) -> None:
        del job
        if recovery.flow is not None:
            self._flows.start(recovery.flow, self._state.now)

    def _state_arrived(self, job: JobState, recovery: Recovery) -> None:
        """The state is there."""
        recovery.flow = None
        self._clock.at(self._state.now + job.spec.start_s, partial(self._step, job, recovery, self._join))

    def _join(self, job: JobState, recovery: Recovery) -> None:
        """Replicas have started."""
        now = self._state.now
        job.settle(now)
        for replica, nodes in recovery.replicas.items():
            job.replica_nodes[replica] = nodes
            for node in nodes:
                self._state.nodes[node].replica = replica
        job.stopped = False
        if recovery.strategy == REPLACE:
            job.active += len(recovery.replicas)
            job.regroups_until = now + job.spec.regroup_s
        else:
            job.active, job.domain = len(recovery.replicas), self._target(recovery)
            if job.incident is not None:
                job.incident.lost_s += max(0.0, job.progress - recovery.progress)
            job.progress = recovery.progress
        self._working.refresh(job)
        if recovery.strategy == REPLACE:
            self._clock.at(job.regroups_until, partial(self._step, job, recovery, self._end))
        else:
            self._end(job, recovery)

    def _end(self, job: JobState, recovery: Recovery) -> None:
        del recovery
        job.recovery = None
        self._over(job)

    def off(self, job: JobState) -> None:
        """What is under way is off; nodes that it was to give are free."""
        recovery, job.recovery, job.said = job.recovery, None, None
        if recovery is None:
            return
        still = {node for replica in job.replica_nodes for node in replica}
        for node in recovery.nodes - still:
            self._free(node)
        if recovery.flow is not None:
            self._flows.stop(recovery.flow, self._state.now)

    def touched(self, job: JobState, domain: int) -> bool:
        """Whether what is under way needs anything in a domain."""
        recovery = job.recovery
        if recovery is None:
            return False
        nodes = recovery.nodes | {node for replica in job.replica_nodes for node in replica}
        reads = recovery.strategy == RESTORE and not (recovery.begun and recovery.flow is None)
        return (reads and recovery.source == domain) or any(
            self._state.world.nodes[node].domain == domain for node in nodes
        )

    def _target(self, recovery: Recovery) -> int:
        return self._state.world.nodes[next(iter(recovery.nodes))].domain

    def _give_up(self, job: JobState, replicas: Iterable[int], recovery: Recovery) -> bool:
        """Give up the nodes of some replicas, but for those that the recovery gives again; whether there were any."""
        had, again = False, recovery.nodes
        for replica in replicas:
            had |= bool(job.replica_nodes[replica])
            for node in job.replica_nodes[replica]:
                if node not in again:
                    self._free(node)
            job.replica_nodes[replica] = ()
        return had

    def _free(self, node: int) -> None:
        self._state.nodes[node].job = self._state.nodes[node].replica = -1


class FaultInjector:
    """Lets things fail.

    Args:
        state: Of the window.
        clock: Of the window.
        flows: What is under way.
        working: Who lets jobs work.
        copying: Who takes checkpoints.
        recovering: Who carries recoveries out.
        changed: Told that something failed, or can be reached or not.
    """

    def __init__(
        self,
        state: State,
        clock: Clock,
        flows: Flows,
        working: JobWork,
        copying: CheckpointCopier,
        recovering: RecoveryRunner,
        changed: Callable[[], None],
    ) -> None:
        self._state, self._clock, self._flows = state, clock, flows
        self._working, self._copying, self._recovering = working, copying, recovering
        self._changed = changed

    def plan(self, faults: Sequence[Fault]) -> None:
        """Let all faults happen in their time."""
        for fault in faults:
            self._clock.at(fault.instant, partial(self._happen, fault))

    def _happen(self, fault: Fault) -> None:
        if fault.kind in {DOMAIN, CUT_OFF}:
            self._away(fault)
        else:
            struck = [node for node in fault.nodes if not (self._state.nodes[node].failed or self._down(node))]
            for node in struck:
                self._state.nodes[node].failed = True
                self._clock.at(self._state.now + self._state.world.repair_s, partial(self._repair, node))
            self._strike(struck, fault.kind)
        self._changed()

    def _down(self, node: int) -> bool:
        return self._state.nodes[node].down

    def _strike(self, nodes: Sequence[int], kind: str) -> None:
        """Nodes have failed: their jobs stop, and recoveries that they take part in are off."""
        struck = set(nodes)
        for number in sorted({self._state.nodes[node].job for node in nodes} - {-1}):
            job = self._state.jobs[number]
            hit = any(node in struck for replica in job.replica_nodes for node in replica)
            self._recovering.off(job)
            if hit and not job.stopped:
                if job.runs:
                    self._working.hurt(job, kind)
                job.settle(self._state.now)
                job.stopped = True
                self._working.note_least(job)
                if not any(self._lives(job, replica) for replica in range(job.spec.replicas)):
                    self._copying.lose(job)
            self._working.refresh(job)

    def _lives(self, job: JobState, replica: int) -> bool:
        """Whether a replica is whole, whoever hears of it."""
        nodes = [self._state.nodes[node] for node in job.replica_nodes[replica]]
        return bool(nodes) and not any(node.failed or node.down for node in nodes)

    def _repair(self, node: int) -> None:
        self._state.nodes[node].failed = False
        if not self._down(node):
            self._release([node])

    def _release(self, nodes: Sequence[int]) -> None:
        """Nodes that failed are fit and free again."""
        for node in nodes:
            node_state = self._state.nodes[node]
            if node_state.job >= 0:
                job = self._state.jobs[node_state.job]
                job.replica_nodes = [
                    tuple(other for other in replica if other != node) for replica in job.replica_nodes
                ]
            node_state.job = node_state.replica = -1

    def _away(self, fault: Fault) -> None:
        """Nothing is heard of a domain any more."""
        state, domain = self._state, fault.domain
        away = Away(fault.kind, state.now + state.world.lease_s)
        state.away[domain] = away
        self._flows.share(state.now)
        nodes = self._in(domain)
        if fault.kind == DOMAIN:
            for node in nodes:
                state.nodes[node].down = True
            self._strike(nodes, DOMAIN)
        for job in state.jobs:
            if self._recovering.touched(job, domain):
                self._recovering.off(job)
                self._working.refresh(job)
            self._copying.lose(job, partial(self._cut, job, domain, fault.kind))
        if fault.kind == CUT_OFF:
            self._clock.at(away.fenced_at, partial(self._fence, domain, away))
        self._clock.at(state.now + fault.lasts_s, partial(self._back, domain, away))

    def _cut(self, job: JobState, domain: int, kind: str, target: int) -> bool:
        """Whether a copy on its way to a target is lost with a domain."""
        crosses = (target == domain) != (job.domain == domain)
        return crosses or (kind == DOMAIN and target == domain)

    def _in(self, domain: int) -> list[int]:
        return [number for number, node in enumerate(self._state.world.nodes) if node.domain == domain]

    def _holding(self, domain: int) -> list[JobState]:
        """Jobs with replicas in a domain."""
        nodes = self._state.world.nodes
        return [
            job
            for job in self._state.jobs
            if any(nodes[node].domain == domain for replica in job.replica_nodes for node in replica)
        ]

    def _fence(self, domain: int, away: Away) -> None:
        if self._state.away.get(domain) is not away:
            return
        for job in self._holding(domain):
            if job.runs:
                self._working.hurt(job, CUT_OFF)
                self._working.note_least(job)
            job.settle(self._state.now)
            job.fenced = True
            self._working.refresh(job)

    def _back(self, domain: int, away: Away) -> None:
        state = self._state
        del state.away[domain]
        self._flows.share(state.now)
        if away.kind == DOMAIN:
            nodes = self._in(domain)
            for node in nodes:
                state.nodes[node].down = False
            self._release([node for node in nodes if not state.nodes[node].failed])
        else:
            for job in self._holding(domain):
                job.settle(state.now)
                job.fenced = False
                if not job.stopped and job.recovery is not None and not job.recovery.begun:
                    self._recovering.off(job)  # it is heard of again before it was restored elsewhere
                self._working.refresh(job)
        self._changed()


class Codec:
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
            "stores": [{**store, "free": world.domains[domain].capacity} for domain, store in self._stores()],
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
        ages = {domain: max(0.0, job.progress - copied) for domain, copied in job.copies.items()}
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
        holdings: What was held of the backup plan.
        price: Of spares, over the whole window.
        hours: Of the window.
        paused: Share of the time of all jobs that checkpoints took.
        copies: Copies that were taken.
        skipped: Copies that were due and not taken.
        failover_requests: How often a failover plan was asked for.
    """

    incidents: tuple[Incident, ...]
    predictions: tuple[Prediction, ...]
    holdings: Annotated[Holdings, Field(alias="held")]  # its name in transcripts
    price: float
    hours: float
    paused: float
    copies: int
    skipped: int
    failover_requests: Annotated[int, Field(alias="asked")]  # likewise


class Run:
    """A window under a planner.

    Attributes:
        state: How things stand.
        failover_requests: How often a failover plan was asked for.
    """

    def __init__(self, world: World, planner: Planner) -> None:
        self._world, self._planner = world, planner
        self.state = begin(world)
        self._wire, self._clock = Codec(world), Clock()
        self._flows = Flows(world, self.state.away)
        self._working = JobWork(self.state, self._clock)
        self._copying = CheckpointCopier(self.state, self._clock, self._flows, self._working.refresh)
        parts = (self.state, self._clock, self._flows, self._working, self._copying)
        self._recovering = RecoveryRunner(*parts, self._over)
        self._failing = FaultInjector(*parts, self._recovering, self._changed)
        self._tick, self._news = inf, 0.0
        self.failover_requests = 0

    def play(self) -> Outcome:
        """From the beginning to the end."""
        holdings = hold(self._world, self._planner.backup(self._wire.backup()))
        self._show(holdings)
        self._copying.plan(list(holdings.copies))
        self._failing.plan(self._world.faults)
        self._go_on()
        self._working.end()
        jobs, ends = self.state.jobs, self._world.ends_s
        return Outcome(
            tuple(self._working.incidents),
            tuple(self._working.predictions),
            holdings,
            holdings.price(self._world) * ends / HOUR_S,
            ends / HOUR_S,
            sum(job.paused_s for job in jobs) / (len(jobs) * ends),
            self._copying.taken,
            self._copying.skipped,
            self.failover_requests,
        )

    def _show(self, holdings: Holdings) -> None:
        left = list(holdings.spares)
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
class PlannerPair:
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
        candidates = [self._recovery_of(job, nodes[job["id"]], free[job["domain"]]) for job in request["jobs"]]
        recoveries = [recovery for recovery in candidates if recovery is not None]
        return {"revision": request["revision"], "method": _METHOD, "recoveries": recoveries}

    def _recovery_of(
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
