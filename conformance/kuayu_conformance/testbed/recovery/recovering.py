"""Recoveries that are carried out, step by step; they are taken to be sound."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from kuayu_conformance.testbed.recovery.clock import Clock
from kuayu_conformance.testbed.recovery.copying import Copying
from kuayu_conformance.testbed.recovery.faults import CUT_OFF
from kuayu_conformance.testbed.recovery.flows import BITS, NODES, Flow, Flows, ways
from kuayu_conformance.testbed.recovery.state import JobState, Recovery, State
from kuayu_conformance.testbed.recovery.working import Working

if TYPE_CHECKING:
    from kuayu_schemas import documents

GO_ON: "documents.RecoveryStrategy" = "go_on"
REPLACE: "documents.RecoveryStrategy" = "replace"
RESTORE: "documents.RecoveryStrategy" = "restore"
WAIT: "documents.RecoveryStrategy" = "wait"


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
