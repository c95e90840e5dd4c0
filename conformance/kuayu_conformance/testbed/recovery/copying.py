"""Checkpoints, and the copies of them that travel to stores."""

from collections.abc import Callable
from functools import partial

from kuayu_conformance.testbed.recovery.clock import Clock
from kuayu_conformance.testbed.recovery.flows import BITS, Flow, Flows, ways
from kuayu_conformance.testbed.recovery.holding import Copy
from kuayu_conformance.testbed.recovery.state import JobState, State


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
