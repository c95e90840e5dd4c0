"""Jobs that make steps, or do not, and what is counted of that: incidents, and predictions that came true or not."""

from functools import partial
from math import inf

from kuayu_conformance.testbed.recovery.clock import Clock
from kuayu_conformance.testbed.recovery.flows import BITS
from kuayu_conformance.testbed.recovery.state import SAME, Incident, JobState, Prediction, State


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
