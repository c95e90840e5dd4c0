"""A run: processes, faults at unannounced times, and the timeline of it all.

1. The next fault comes once the run has settled: :data:`SETTLED_STEPS` steps after the last one, and a random pause.
2. Whom it hits is drawn from the seed of the run, so that a run can be repeated.
3. A fault that shows nothing for :data:`MISSED_S` seconds counts as missed.
"""

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kuayu.live.findings import Account, Incident, Timeline, account, diaries
from kuayu.live.plan import Settings
from kuayu.live.supervisor import (
    CONTROL,
    MAX_CONTROL_DELAY_SECONDS,
    Kind,
    ProcessLostError,
    ProcessSupervisor,
    RunWatcher,
    Strike,
)

Watch = Callable[[dict[str, Any] | None], None]

SETTLED_STEPS, PAUSE_S = 15, (0.5, 2.5)
"""Steps between incidents at least; seconds on top, drawn evenly."""
LIFT_S, LEAVE_S, MISSED_S, LAST_STEPS = 1.0, 10.0, 90.0, 20
"""Seconds from recovery to the fault's end; seconds that a replaced worker has to end by itself; seconds after which an
incident counts as missed; steps after the last one."""
POLL_S = 0.05
SERVICE_DELAY_SECONDS = 10.0
"""Seconds for which a run goes on after its last fault where a service watches, which may take so long to tell it."""


class Run:
    """One training with its incidents.

    Args:
        settings: Of the run.
        folder: Where workers write.
        kinds: Faults in the order in which they are brought about.
        watch: Called after each entry of the record, and with None now and then.
        steps: Steps to make at least; with no incidents, exactly.
        seconds: Seconds to go on at least.
        watcher: A service that watches; None where the run judges for itself.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        kinds: Sequence[Kind],
        watch: Watch,
        steps: int = 0,
        seconds: float = 0.0,
        watcher: RunWatcher | None = None,
    ) -> None:
        self.timeline = Timeline()
        self._settings, self._folder, self._watch = settings, folder, watch
        self._kinds, self._steps, self._seconds = list(kinds), steps, seconds
        self._watcher = watcher
        self._exact = 0 if kinds or seconds else steps
        self._random = random.Random(settings.seed)  # noqa: S311 - moments of faults, not secrets
        self._strike: Strike | None = None
        self._settled = 0
        self._living: set[str] = set()
        self._joined: set[str] = set()
        self._next: float | None = None

    def go(self) -> Account:
        """Run to the end; what the workers' diaries show.

        Raises:
            ProcessLostError: The control plane or the gateways have ended, or a worker cannot start.
        """
        exact = self._exact
        begun = time.monotonic()
        with ProcessSupervisor(self._settings, self._folder, exact, self._watcher) as supervisor:
            self._living = set(supervisor.domains)
            while not self._done():
                for event in supervisor.events(POLL_S):
                    self.timeline.take(event)
                    if event["kind"] == "joined":
                        self._joined.add(event["worker"])
                    self._watch(event)
                self._watch(None)
                self._proceed(supervisor, time.monotonic())
                over = (
                    time.monotonic() - begun >= self._seconds
                    and self.timeline.step >= self._steps
                    and self._has_watcher_reported()
                )
                if not exact and self._strike is None and not self._kinds and over and self.timeline.until is None:
                    supervisor.finish(LAST_STEPS)
                    self.timeline.until = self.timeline.step + 2 * LAST_STEPS  # until the control plane tells
            return account(diaries(self._folder), self.timeline.plans)

    def _done(self) -> bool:
        last = self.timeline.until or self._exact
        return bool(last) and self.timeline.step >= last

    def _has_watcher_reported(self) -> bool:
        """Whether a service that watches has had the time to tell the last fault."""
        since = time.monotonic() - SERVICE_DELAY_SECONDS
        return self._watcher is None or all(incident.injected_at <= since for incident in self.timeline.incidents)

    def _proceed(self, supervisor: ProcessSupervisor, now: float) -> None:
        self._repair(supervisor)
        if self._strike is None:
            self._perhaps_strike(supervisor, now)
            return
        incident = self.timeline.incidents[-1]
        if incident.progress is None:
            if now - incident.injected_at < MISSED_S:
                return
            incident.progress = float("inf")
        if incident.lifted is None:
            if (now - incident.progress >= LIFT_S and self._lasted(incident, now)) or incident.progress == float("inf"):
                incident.lifted = self._strike.lift()
        elif incident.kind is Kind.control:
            incident.left = incident.lifted
            self._strike, self._settled = None, self.timeline.step
        elif supervisor.launcher.ended(incident.worker) or now - incident.lifted > LEAVE_S:
            self._clear(supervisor, incident, now)

    def _lasted(self, incident: Incident, now: float) -> bool:
        """Whether a fault was there for as long as it has to be: a domain that is back before that was never cut."""
        return (
            self._watcher is None
            or incident.kind is not Kind.cut
            or now - incident.injected_at >= SERVICE_DELAY_SECONDS
        )

    def _perhaps_strike(self, supervisor: ProcessSupervisor, now: float) -> None:
        line = self.timeline
        whole = len(line.members) == self._settings.domains and len(line.spares) >= self._settings.spares
        if not self._kinds or not whole or line.step < self._settled + SETTLED_STEPS:
            return
        if self._next is None:
            self._next = now + self._random.uniform(*PAUSE_S)
        if now >= self._next:
            kind, victim = self._kinds.pop(0), self._random.choice(line.members)
            if kind is Kind.control:
                victim = CONTROL
            after = self._random.uniform(0.0, MAX_CONTROL_DELAY_SECONDS) if kind is Kind.amid else 0.0
            line.struck(kind, victim, now)
            self._strike, self._next = Strike(supervisor, kind, victim, after), None
            line.incidents[-1].injected_at = self._strike.injected_at
            self._watch({"kind": "struck", "at": self._strike.injected_at, "fault": kind, "worker": victim})

    def _repair(self, supervisor: ProcessSupervisor) -> None:
        """Start domains anew whose worker was replaced although nothing had been done to it."""
        struck = {incident.worker for incident in self.timeline.incidents}
        for worker in self._living - struck:
            if supervisor.launcher.ended(worker):
                if worker not in self._joined:
                    raise ProcessLostError(f"{worker} ended before it joined: {supervisor.launcher.last_words(worker)}")
                self._living.discard(worker)
                self._living.add(supervisor.launch(supervisor.domains[worker]))

    def _clear(self, supervisor: ProcessSupervisor, incident: Incident, now: float) -> None:
        """Start the domain anew, as one that was repaired; it stands by from then on."""
        if supervisor.launcher.ended(incident.worker):
            incident.left = now
        else:
            supervisor.launcher.end(incident.worker)
        self._living.discard(incident.worker)
        self._living.add(supervisor.launch(supervisor.domains[incident.worker]))
        self._strike, self._settled = None, self.timeline.step
