"""A run: processes, faults at unannounced times, and the timeline of it all."""

import random
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kuayu.live.accounts import Account, account, diaries
from kuayu.live.faults import AMID_S, CONTROL, Kind, Strike
from kuayu.live.ground import Attendance, Ground, Lost
from kuayu.live.settings import Settings
from kuayu.live.timeline import Incident, Timeline

Watch = Callable[[dict[str, Any] | None], None]

SETTLED_STEPS, PAUSE_S = 15, (0.5, 2.5)
"""Steps between incidents at least; seconds on top, drawn evenly."""
LIFT_S, LEAVE_S, MISSED_S, LAST_STEPS = 1.0, 10.0, 90.0, 20
"""Seconds from recovery to the fault's end; seconds that a replaced worker has to end by itself; seconds after which an
incident counts as missed; steps after the last one."""
POLL_S = 0.05
TOLD_S = 10.0
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
        attendance: A service that watches; None where the run judges for itself.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        kinds: Sequence[Kind],
        watch: Watch,
        steps: int = 0,
        seconds: float = 0.0,
        attendance: Attendance | None = None,
    ) -> None:
        self.timeline = Timeline()
        self._settings, self._folder, self._watch = settings, folder, watch
        self._kinds, self._steps, self._seconds = list(kinds), steps, seconds
        self._attendance = attendance
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
            Lost: The control plane or the gateways have ended, or a worker cannot start.
        """
        exact = self._exact
        begun = time.monotonic()
        with Ground(self._settings, self._folder, exact, self._attendance) as ground:
            self._living = set(ground.workers)
            while not self._done():
                for event in ground.events(POLL_S):
                    self.timeline.take(event)
                    if event["kind"] == "joined":
                        self._joined.add(event["worker"])
                    self._watch(event)
                self._watch(None)
                self._proceed(ground, time.monotonic())
                over = time.monotonic() - begun >= self._seconds and self.timeline.step >= self._steps and self._told()
                if not exact and self._strike is None and not self._kinds and over and self.timeline.until is None:
                    ground.finish(LAST_STEPS)
                    self.timeline.until = self.timeline.step + 2 * LAST_STEPS  # until the control plane tells
            return account(diaries(self._folder), self.timeline.plans)

    def _done(self) -> bool:
        last = self.timeline.until or self._exact
        return bool(last) and self.timeline.step >= last

    def _told(self) -> bool:
        """Whether a service that watches has had the time to tell the last fault."""
        since = time.monotonic() - TOLD_S
        return self._attendance is None or all(each.at <= since for each in self.timeline.incidents)

    def _proceed(self, ground: Ground, now: float) -> None:
        self._repair(ground)
        if self._strike is None:
            self._perhaps_strike(ground, now)
            return
        incident = self.timeline.incidents[-1]
        if incident.progress is None:
            if now - incident.at < MISSED_S:
                return
            incident.progress = float("inf")
        if incident.lifted is None:
            if now - incident.progress >= LIFT_S or incident.progress == float("inf"):
                incident.lifted = self._strike.lift()
        elif incident.kind is Kind.control:
            incident.left = incident.lifted
            self._strike, self._settled = None, self.timeline.step
        elif ground.ended(incident.worker) or now - incident.lifted > LEAVE_S:
            self._clear(ground, incident, now)

    def _perhaps_strike(self, ground: Ground, now: float) -> None:
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
            after = self._random.uniform(0.0, AMID_S) if kind is Kind.amid else 0.0
            line.struck(kind, victim, now)
            self._strike, self._next = Strike(ground, kind, victim, after), None
            line.incidents[-1].at = self._strike.at
            self._watch({"kind": "struck", "at": self._strike.at, "fault": kind, "worker": victim})

    def _repair(self, ground: Ground) -> None:
        """Start domains anew whose worker was replaced although nothing had been done to it."""
        struck = {each.worker for each in self.timeline.incidents}
        for worker in self._living - struck:
            if ground.ended(worker):
                if worker not in self._joined:
                    raise Lost(f"{worker} ended before it joined: {ground.last_words(worker)}")
                self._living.discard(worker)
                self._living.add(ground.launch(ground.domains[worker]))

    def _clear(self, ground: Ground, incident: Incident, now: float) -> None:
        """Start the domain anew, as one that was repaired; it stands by from then on."""
        if ground.ended(incident.worker):
            incident.left = now
        else:
            ground.signal(incident.worker, signal.SIGKILL)
            ground.workers[incident.worker].wait()
        self._living.discard(incident.worker)
        self._living.add(ground.launch(ground.domains[incident.worker]))
        self._strike, self._settled = None, self.timeline.step
