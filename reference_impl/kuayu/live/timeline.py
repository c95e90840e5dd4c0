"""What happened, when: incidents from the faults that were brought about and the record of the control plane.

All instants are of the system's steady clock, which is one for all processes of a host (clock_gettime(2)).
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kuayu.live.faults import Kind


@dataclass(slots=True)
class Incident:
    """A fault and what followed. All instants in seconds of the steady clock; None for what has not happened.

    Attributes:
        kind: What was brought about.
        worker: To whom.
        at: When.
        before: When the last step before it was made, of those that had not been made before.
        fault: What the control plane took it for.
        detected: When it said so.
        decided: When it had a plan without the worker.
        placed: When all members of the plan had taken it up.
        first: When the first step after the restored checkpoint was made.
        progress: When the first step was made that had not been made before the fault.
        again: Steps that were made again.
        generation: Plan that answered it; 0 before there is one.
        interruption: Longest time, from the last step before the fault to the first after recovery, without a step that
            had not been made before (RES-004).
        world: Workers of the job afterwards.
        lifted: When the fault was undone.
        left: When the replaced process had ended by itself; None where it had to be ended.
    """

    kind: Kind
    worker: str
    at: float
    before: float
    fault: str | None = None
    detected: float | None = None
    decided: float | None = None
    placed: float | None = None
    first: float | None = None
    progress: float | None = None
    again: int = 0
    world: int = 0
    lifted: float | None = None
    left: float | None = None
    generation: int = 0
    interruption: float | None = None

    def since(self, instant: float | None) -> float | None:
        """Seconds from the fault to an instant."""
        return None if instant is None else instant - self.at


@dataclass(slots=True)
class Timeline:
    """A run as it unfolds.

    Attributes:
        incidents: Faults that were brought about.
        losses: Loss of each step, in nats a character.
        differing: Steps that were made twice with different losses.
        false_alarms: Verdicts about workers to whom nothing had been done.
        suspicions: Suspicions that never became a verdict.
        plans: Members of each generation.
        progress: Instants at which a step was made that had not been made before, with its number.
        spares: Connected workers that are no members.
        until: Last step, once it is known.
        step: The latest step.
    """

    incidents: list[Incident] = field(default_factory=list)
    losses: dict[int, float] = field(default_factory=dict)
    differing: list[int] = field(default_factory=list)
    false_alarms: list[dict[str, Any]] = field(default_factory=list)
    suspicions: int = 0
    plans: dict[int, tuple[str, ...]] = field(default_factory=dict)
    progress: list[tuple[float, int]] = field(default_factory=list)
    connected: dict[str, str] = field(default_factory=dict)
    until: int | None = None
    step: int = 0
    generation: int = 0

    @property
    def members(self) -> tuple[str, ...]:
        """Identifiers of the workers of the job."""
        return self.plans.get(self.generation, ())

    @property
    def spares(self) -> list[str]:
        """Connected workers that are no members."""
        return [each for each in self.connected if each not in self.members]

    @property
    def open(self) -> Incident | None:
        """The incident that the job has not recovered from."""
        return self.incidents[-1] if self.incidents and self.incidents[-1].progress is None else None

    def struck(self, kind: Kind, worker: str, at: float) -> Incident:
        """A fault was brought about."""
        before = max((instant for instant, _ in self.progress if instant <= at), default=at)
        self.incidents.append(Incident(kind, worker, at, before))
        return self.incidents[-1]

    def take(self, event: dict[str, Any]) -> None:
        """The next entry of the control plane's record."""
        at = event["at"]
        match event["kind"]:
            case "joined":
                self.connected[event["worker"]] = event["domain"]
            case "gone":
                self.connected.pop(event["worker"], None)
            case "suspicion":
                self.suspicions += event["stage"] == "none" and event["worker"] in self.connected
            case "verdict":
                self._verdict(event, at)
            case "plan":
                self._plan(event, at)
            case "placed":
                self._placed(event, at)
            case "recovered" | "whole":
                self._of_control(event, at)
            case "until":
                self.until = event["step"]
            case "step":
                self._step(event, at)

    def _concerned(self, generation: int) -> Incident | None:
        """The incident that a plan, or one after it, is the answer to."""
        incident = self.open
        return incident if incident is not None and 0 < incident.generation <= generation else None

    def _verdict(self, event: dict[str, Any], at: float) -> None:
        ours = [each for each in self.incidents if each.worker == event["worker"]]
        if not ours:
            self.false_alarms.append(event)
        elif ours[-1].detected is None:
            ours[-1].detected, ours[-1].fault = at, event["fault"]

    def _placed(self, event: dict[str, Any], at: float) -> None:
        incident = self._concerned(event["generation"])
        if incident is not None and incident.placed is None:
            incident.placed = at

    def _of_control(self, event: dict[str, Any], at: float) -> None:
        """The control plane goes on from its record, or has all workers back."""
        incident = self.open
        if incident is None or incident.kind is not Kind.control:
            return
        if event["kind"] == "whole":
            incident.placed = at
        elif incident.detected is None:
            incident.detected = incident.decided = at
            incident.generation, incident.world = self.generation, len(self.members)
            incident.fault = "restarted"

    def _plan(self, event: dict[str, Any], at: float) -> None:
        self.generation = event["generation"]
        self.plans[self.generation] = tuple(event["members"])
        for each in event["removed"]:
            self.connected.pop(each, None)
        incident = self.open
        if incident is not None and incident.worker in event["removed"]:
            incident.decided, incident.generation = at, self.generation
        if incident is not None and incident.generation:
            incident.again += event["again"]
            incident.world = len(event["members"])

    def _step(self, event: dict[str, Any], at: float) -> None:
        step, loss = event["step"], event["loss"]
        incident = self._concerned(event["generation"])
        if incident is not None and incident.first is None:
            incident.first = at
        if step in self.losses:
            if self.losses[step] != loss:
                self.differing.append(step)
        else:
            self.losses[step] = loss
            self.progress.append((at, step))
            if incident is not None:
                incident.progress = at
                instants = [incident.before, *(instant for instant, _ in self.progress if instant > incident.at)]
                incident.interruption = max(b - a for a, b in itertools.pairwise(instants))
        self.step = step


def spread(figures: Sequence[float]) -> tuple[float, float] | None:
    """Median and maximum; None of nothing."""
    ordered = sorted(figures)
    if not ordered:
        return None
    half = len(ordered) // 2
    return (ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2), ordered[-1]
