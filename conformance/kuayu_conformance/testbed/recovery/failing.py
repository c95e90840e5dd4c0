"""Nodes that fail and are repaired, domains that fail or are cut off and come back."""

from collections.abc import Callable, Sequence
from functools import partial

from kuayu_conformance.testbed.recovery.clock import Clock
from kuayu_conformance.testbed.recovery.copying import Copying
from kuayu_conformance.testbed.recovery.faults import CUT_OFF, DOMAIN, Fault
from kuayu_conformance.testbed.recovery.flows import Flows
from kuayu_conformance.testbed.recovery.recovering import Recovering
from kuayu_conformance.testbed.recovery.state import Away, JobState, State
from kuayu_conformance.testbed.recovery.working import Working


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
