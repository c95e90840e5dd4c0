"""What happens in a window: jobs make steps, checkpoints travel, things fail, and recoveries are carried out.

1. **Work.** Jobs make steps, or do not, and it is counted: incidents, and predictions that came true or not.
2. **Copies.** Checkpoints are taken when copies are due, and travel to stores.
3. **Recoveries.** They are carried out step by step, and are taken to be sound.
4. **Faults.** Nodes fail and are repaired; domains fail or are cut off, and come back.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from kuayu_conformance.testbed.recovery.state import (
    BITS,
    NODES,
    SAME,
    Away,
    Clock,
    Copy,
    Flow,
    Flows,
    Incident,
    JobState,
    Prediction,
    Recovery,
    State,
    ways,
)
from kuayu_conformance.testbed.recovery.world import CUT_OFF, DOMAIN, Fault

if TYPE_CHECKING:
    from kuayu_schemas import documents

GO_ON: "documents.RecoveryStrategy" = "go_on"
REPLACE: "documents.RecoveryStrategy" = "replace"
RESTORE: "documents.RecoveryStrategy" = "restore"
WAIT: "documents.RecoveryStrategy" = "wait"


class Working:
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


class Copying:
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
        way, size = ways(copy.domain, job.domain, copy.domain), BITS * job.spec.state_size
        flow = Flow(way, size, partial(self._there, job, copy.domain, job.progress), copy=True)
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

    def _there(self, job: JobState, domain: int, progress: float) -> None:
        del job.travelling[domain]
        job.copies[domain] = progress

    def lose(self, job: JobState, lost: Callable[[int], bool] = lambda _domain: True) -> None:
        """Copies of a job on their way to some domains, or to any, are lost."""
        for domain in [target for target in job.travelling if lost(target)]:
            self._flows.stop(job.travelling.pop(domain), self._state.now)


class Recovering:
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
        working: Working,
        copying: Copying,
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
        way = (NODES, job.number, -1)
        arrived = partial(self._step, job, recovery, self._there)
        recovery.flow = Flow((way,), BITS * job.spec.state_size, arrived, parts=len(recovery.replicas))
        self._flows.start(recovery.flow, self._state.now)

    def _note(self, job: JobState, recovery: Recovery) -> None:
        """Put the way down, where it is another than before."""
        if job.incident is not None and job.incident.ways[-1:] != [recovery.strategy]:
            job.incident.ways.append(recovery.strategy)

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
        arrived = partial(self._step, job, recovery, self._there)
        recovery.flow = Flow(ways(recovery.source, recovery.source, target), BITS * job.spec.state_size, arrived)
        latency = float(self._state.world.links.latency_s[recovery.source, target]) if target != recovery.source else 0
        self._clock.at(now + latency, partial(self._step, job, recovery, self._read))

    def _read(self, job: JobState, recovery: Recovery) -> None:
        del job
        if recovery.flow is not None:
            self._flows.start(recovery.flow, self._state.now)

    def _there(self, job: JobState, recovery: Recovery) -> None:
        """The state is there."""
        recovery.flow = None
        self._clock.at(self._state.now + job.spec.start_s, partial(self._step, job, recovery, self._join))

    def _join(self, job: JobState, recovery: Recovery) -> None:
        """Replicas have started."""
        now = self._state.now
        job.settle(now)
        for replica, nodes in recovery.replicas.items():
            job.held[replica] = nodes
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
        kept = {node for held in job.held for node in held}
        for node in recovery.nodes - kept:
            self._free(node)
        if recovery.flow is not None:
            self._flows.stop(recovery.flow, self._state.now)

    def touched(self, job: JobState, domain: int) -> bool:
        """Whether what is under way needs anything in a domain."""
        recovery = job.recovery
        if recovery is None:
            return False
        nodes = recovery.nodes | {node for held in job.held for node in held}
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
            had |= bool(job.held[replica])
            for node in job.held[replica]:
                if node not in again:
                    self._free(node)
            job.held[replica] = ()
        return had

    def _free(self, node: int) -> None:
        self._state.nodes[node].job = self._state.nodes[node].replica = -1


class Failing:
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
        working: Working,
        copying: Copying,
        recovering: Recovering,
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
            hit = any(node in struck for held in job.held for node in held)
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
        nodes = [self._state.nodes[node] for node in job.held[replica]]
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
                job.held = [tuple(other for other in held if other != node) for held in job.held]
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
            if any(nodes[node].domain == domain for replica in job.held for node in replica)
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
