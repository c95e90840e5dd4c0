"""Findings: what a run has shown, from diaries, the record of the control plane and reports of a service.

1. The 95th percentile of few figures, and a bound on it that supposes nothing about their law.
2. Whether the job ever ran twice, from the workers' own diaries and not from what the control plane believes.
3. What happened, when: incidents from the faults that were brought about and the record of the control plane. All
   instants are of the system's steady clock, which is one for all processes of a host (clock_gettime(2)).
4. What a service told of a run that it watched.
5. What a run has shown, as it is written to ``timeline.json`` and as a table shows it.
"""

import dataclasses
import itertools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kuayu.live.plan import Settings
from kuayu.live.supervisor import Kind

QUANTILE, CONFIDENCE = 0.95, 0.95


def percentile(figures: Sequence[float]) -> tuple[float, float | None]:
    """The 95th percentile, and its one-sided upper bound by order statistics.

    The r-th of n figures is at least as great as the percentile with the probability that fewer than r of them lie
    below it, which is binomial (David and Nagaraja, Order Statistics, 2003, 7.1).

    Args:
        figures: At least one.

    Returns:
        The figure at rank ⌈0.95 n⌉, and the bound at a confidence of 95 %; None with fewer than 59 figures, of which
        not even the greatest is one.
    """
    ordered, n = sorted(figures), len(figures)
    estimate = ordered[math.ceil(QUANTILE * n) - 1]
    below = 0.0
    for rank in range(1, n + 1):
        below += math.comb(n, rank - 1) * QUANTILE ** (rank - 1) * (1 - QUANTILE) ** (n - rank + 1)
        if below >= CONFIDENCE:
            return estimate, ordered[rank - 1]
    return estimate, None


@dataclass(frozen=True, slots=True)
class Entry:
    """A step as a worker wrote it down.

    Attributes:
        worker: Its identifier.
        written_at: When, in seconds of the steady clock.
        generation: Under which plan.
        step: Which step.
        loss: Its loss.
    """

    worker: str
    written_at: float
    generation: int
    step: int
    loss: float


@dataclass(frozen=True, slots=True)
class Account:
    """What the diaries show.

    Attributes:
        entries: Steps that were written down, by all workers.
        strangers: Of those, under a plan that the worker was no member of.
        twice: Of those, after the first step under a later plan: the job ran in two places.
        differing: Steps for which two entries have different losses.
    """

    entries: int
    strangers: tuple[Entry, ...]
    twice: tuple[Entry, ...]
    differing: tuple[int, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing of that kind was found."""
        return not (self.strangers or self.twice or self.differing)


def diaries(folder: Path) -> list[Entry]:
    """All entries of a folder; a last line that its writer did not finish is left out."""
    entries = []
    for file in sorted(folder.glob("*.steps")):
        for line in file.read_text("ascii").splitlines(keepends=True):
            if line.endswith("\n"):
                instant, generation, step, loss = line.split()
                entries.append(Entry(file.stem, float(instant), int(generation), int(step), float(loss)))
    return entries


def account(entries: Sequence[Entry], plans: Mapping[int, Sequence[str]]) -> Account:
    """Judge the entries of a run by the members of each generation."""
    begun: dict[int, float] = {}
    losses: dict[int, set[float]] = {}
    for entry in entries:
        begun[entry.generation] = min(entry.written_at, begun.get(entry.generation, entry.written_at))
        losses.setdefault(entry.step, set()).add(entry.loss)
    strangers = tuple(item for item in entries if item.worker not in plans.get(item.generation, ()))
    twice = tuple(
        item
        for item in entries
        if any(instant < item.written_at for generation, instant in begun.items() if generation > item.generation)
    )
    return Account(len(entries), strangers, twice, tuple(step for step, some in losses.items() if len(some) > 1))


@dataclass(slots=True)
class Incident:
    """A fault and what followed. All instants in seconds of the steady clock; None for what has not happened.

    Attributes:
        kind: What was brought about.
        worker: To whom.
        injected_at: When.
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
    injected_at: float
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
        return None if instant is None else instant - self.injected_at


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
        return [entry for entry in self.connected if entry not in self.members]

    @property
    def open(self) -> Incident | None:
        """The incident that the job has not recovered from."""
        return self.incidents[-1] if self.incidents and self.incidents[-1].progress is None else None

    def struck(self, kind: Kind, worker: str, instant: float) -> Incident:
        """A fault was brought about."""
        before = max((made_at for made_at, _ in self.progress if made_at <= instant), default=instant)
        self.incidents.append(Incident(kind, worker, instant, before))
        return self.incidents[-1]

    def take(self, event: dict[str, Any]) -> None:
        """The next entry of the control plane's record."""
        instant = event["at"]
        match event["kind"]:
            case "joined":
                self.connected[event["worker"]] = event["domain"]
            case "gone":
                self.connected.pop(event["worker"], None)
            case "suspicion":
                self.suspicions += event["stage"] == "none" and event["worker"] in self.connected
            case "verdict":
                self._verdict(event, instant)
            case "plan":
                self._plan(event, instant)
            case "placed":
                self._placed(event, instant)
            case "recovered" | "whole":
                self._of_control(event, instant)
            case "until":
                self.until = event["step"]
            case "step":
                self._step(event, instant)

    def _concerned(self, generation: int) -> Incident | None:
        """The incident that a plan, or one after it, is the answer to."""
        incident = self.open
        return incident if incident is not None and 0 < incident.generation <= generation else None

    def _verdict(self, event: dict[str, Any], instant: float) -> None:
        ours = [incident for incident in self.incidents if incident.worker == event["worker"]]
        if not ours:
            self.false_alarms.append(event)
        elif ours[-1].detected is None:
            ours[-1].detected, ours[-1].fault = instant, event["fault"]

    def _placed(self, event: dict[str, Any], instant: float) -> None:
        incident = self._concerned(event["generation"])
        if incident is not None and incident.placed is None:
            incident.placed = instant

    def _of_control(self, event: dict[str, Any], instant: float) -> None:
        """The control plane goes on from its record, or has all workers back."""
        incident = self.open
        if incident is None or incident.kind is not Kind.control:
            return
        if event["kind"] == "whole":
            incident.placed = instant
        elif incident.detected is None:
            incident.detected = incident.decided = instant
            incident.generation, incident.world = self.generation, len(self.members)
            incident.fault = "restarted"

    def _plan(self, event: dict[str, Any], instant: float) -> None:
        self.generation = event["generation"]
        self.plans[self.generation] = tuple(event["members"])
        for entry in event["removed"]:
            self.connected.pop(entry, None)
        incident = self.open
        if incident is not None and incident.worker in event["removed"]:
            incident.decided, incident.generation = instant, self.generation
        if incident is not None and incident.generation:
            incident.again += event["again"]
            incident.world = len(event["members"])

    def _step(self, event: dict[str, Any], instant: float) -> None:
        step, loss = event["step"], event["loss"]
        incident = self._concerned(event["generation"])
        if incident is not None and incident.first is None:
            incident.first = instant
        if step in self.losses:
            if self.losses[step] != loss:
                self.differing.append(step)
        else:
            self.losses[step] = loss
            self.progress.append((instant, step))
            if incident is not None:
                incident.progress = instant
                instants = [
                    incident.before,
                    *(made_at for made_at, _ in self.progress if made_at > incident.injected_at),
                ]
                incident.interruption = max(b - a for a, b in itertools.pairwise(instants))
        self.step = step


def spread(figures: Sequence[float]) -> tuple[float, float] | None:
    """Median and maximum; None of nothing."""
    ordered = sorted(figures)
    if not ordered:
        return None
    half = len(ordered) // 2
    return (ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2), ordered[-1]


@dataclass(frozen=True, slots=True)
class ReportedFault:
    """A fault that a service has told.

    Attributes:
        kind: As class Fault has it.
        node: The node that it is about; None where it is about a domain or a job.
        domain: The domain that it is about, or of the node.
        reported_at: When it was reported, in seconds of the steady clock.
        actions: Actions that domains were asked for because of it.
    """

    kind: str
    node: str | None
    domain: str | None
    reported_at: float
    actions: int


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """All that it told, and what became of what it asked.

    Attributes:
        faults: Faults in the order in which they were reported.
        unanswered: Actions that no domain had answered at the end.
    """

    faults: Sequence[ReportedFault]
    unanswered: int

    @property
    def actions_requested(self) -> int:
        """Actions that domains were asked for."""
        return sum(entry.actions for entry in self.faults)

    def of(self, incident: Incident) -> ReportedFault | None:
        """The first fault about an incident's worker or its domain after it was brought about; None where none was."""
        worker, domain = incident.worker, domain_of(incident.worker)
        about = [
            entry for entry in self.faults if entry.node == worker or (entry.node is None and entry.domain == domain)
        ]
        return min(
            (entry for entry in about if entry.reported_at >= incident.injected_at),
            key=lambda entry: entry.reported_at,
            default=None,
        )

    def strange(self, incidents: Sequence[Incident]) -> list[ReportedFault]:
        """Faults about nodes and domains to which nothing had been done."""
        workers = {incident.worker for incident in incidents}
        domains = {domain_of(worker) for worker in workers}
        whole = [entry for entry in self.faults if entry.node is None and entry.domain is not None]
        return [
            *(entry for entry in self.faults if entry.node is not None and entry.node not in workers),
            *(entry for entry in whole if entry.domain not in domains),
        ]


def domain_of(worker: str) -> str:
    """Domain of a worker, by whose name and a number it is called."""
    return worker.rpartition("-")[0]


TOLERANCE = 1e-6
"""Nats by which a loss may differ from that of the undisturbed training."""
JUDGED_DELAYS = {"RES-003": ("first", 300.0, 30.0), "RES-004": ("interruption", 600.0, 30.0)}
"""Delay that a requirement is about, its threshold, and its aim for a live run, in seconds."""
DELAYS = ("detected", "decided", "placed", "first", "interruption")
"""Delays that are told of each incident."""


@dataclass(frozen=True, slots=True)
class Findings:
    """A disturbed run, and the undisturbed one beside it.

    Attributes:
        settings: Of both.
        timeline: Of the disturbed one.
        account: Of the disturbed one.
        calm: Of the undisturbed one; None where there was none.
        calm_account: Of the undisturbed one.
        load: Average number of processes that wanted a processor, of one minute, when the disturbed run ended.
        seconds: How long the disturbed and the undisturbed run took.
        service: What a service told of the disturbed run; None where none watched.
    """

    settings: Settings
    timeline: Timeline
    account: Account
    calm: Timeline | None
    calm_account: Account | None
    load: float
    seconds: tuple[float, float]
    service: ReportedRun | None = None

    @property
    def difference(self) -> float | None:
        """Largest difference of a step's loss, in nats; None where there is nothing to compare with."""
        if self.calm is None:
            return None
        both = self.timeline.losses.keys() & self.calm.losses.keys()
        return max((abs(self.timeline.losses[step] - self.calm.losses[step]) for step in both), default=math.inf)

    @property
    def missing(self) -> list[int]:
        """Steps of the disturbed run that have no loss on record."""
        return sorted(set(range(1, max(self.timeline.losses, default=0))) - self.timeline.losses.keys())

    @property
    def wrong(self) -> list[str]:
        """What should not be so, in words; what is merely slow stands in the figures."""
        result = []
        missed = [incident for incident in self.timeline.incidents if not_over(incident)]
        if missed:
            result.append(f"{len(missed)} incidents were not recovered from")
        if self.missing:
            result.append(f"the curve has no loss for {len(self.missing)} steps, such as {self.missing[0]}")
        if self.difference is not None and not self.difference <= TOLERANCE:
            result.append(f"the curve is off the undisturbed one by {self.difference:.3g}")
        for name, account in (("disturbed", self.account), ("undisturbed", self.calm_account)):
            if account is not None and not account.clean:
                result.append(f"in the {name} run the job was in two places, or a step had two results")
        stayed = [incident for incident in self.timeline.incidents if incident.left is None and not not_over(incident)]
        if stayed:
            result.append(f"{len(stayed)} replaced workers did not end by themselves")
        alarms = len(self.timeline.false_alarms) + (len(self.calm.false_alarms) if self.calm else 0)
        if alarms:
            result.append(f"{alarms} false alarms")
        strange = [] if self.service is None else self.service.strange(self.timeline.incidents)
        if strange:
            result.append(f"the service told {len(strange)} faults of whom nothing had been done to")
        return result

    def by_kind(self) -> dict[Kind, list[Incident]]:
        """Incidents that were recovered from."""
        over = [incident for incident in self.timeline.incidents if not not_over(incident)]
        return {kind: some for kind in Kind if (some := [entry for entry in over if entry.kind == kind])}

    def judged(self, requirement: str) -> tuple[float, float | None] | None:
        """The 95th percentile of a requirement's delay over all incidents, and its upper bound.

        An incident that was not recovered from counts as endless. None where nothing was brought about.
        """
        name = JUDGED_DELAYS[requirement][0]
        figures = [delays(incident)[name] for incident in self.timeline.incidents]
        return percentile([math.inf if figure is None else figure for figure in figures]) if figures else None

    def to_json(self) -> dict[str, Any]:
        """All but the curves; seconds from the fault, and instants from the first step."""
        origin = self._origin
        return {
            "settings": dataclasses.asdict(self.settings),
            "processors": os.cpu_count(),
            "load": self.load,
            "seconds": self.seconds,
            "incidents": [_incident(incident, origin) for incident in self.timeline.incidents],
            "spread": {kind: _spreads(some) for kind, some in self.by_kind().items()},
            "percentile_95_and_bound": {entry: _finite(*(self.judged(entry) or ())) for entry in JUDGED_DELAYS},
            "largest_difference": None if self.difference is None else _finite(self.difference)[0],
            "tolerance": TOLERANCE,
            "false_alarms": self.timeline.false_alarms,
            "false_alarms_undisturbed": self.calm.false_alarms if self.calm else None,
            "suspicions": self.timeline.suspicions,
            "steps_written_down": self.account.entries,
            "under_a_foreign_plan": len(self.account.strangers),
            "after_a_later_plan_began": len(self.account.twice),
            "steps_with_two_results": list(self.account.differing),
            "steps": max(self.timeline.losses, default=0),
            "steps_without_a_loss": self.missing,
            "wrong": self.wrong,
            **({} if self.service is None else {"service": self._of_service(self.service)}),
        }

    def told_after(self) -> dict[Kind, list[float | None]]:
        """Seconds until the service told of each incident but those of the control plane; None where it never did."""
        result: dict[Kind, list[float | None]] = {}
        for incident in self.timeline.incidents:
            if self.service is not None and incident.kind is not Kind.control:
                report = self.service.of(incident)
                result.setdefault(incident.kind, []).append(
                    None if report is None else round(report.reported_at - incident.injected_at, 4)
                )
        return result

    def _of_service(self, service: ReportedRun) -> dict[str, Any]:
        return {
            "told_after": self.told_after(),
            "faults": [{"kind": entry.kind, "node": entry.node, "domain": entry.domain} for entry in service.faults],
            "about_nobody_struck": len(service.strange(self.timeline.incidents)),
            "asked": service.actions_requested,
            "unanswered": service.unanswered,
        }

    def curves(self) -> dict[str, Any]:
        """Loss of each step in nats a character, and when each was made that had not been made before."""
        origin = self._origin
        return {
            "losses": [self.timeline.losses[step] for step in sorted(self.timeline.losses)],
            "losses_undisturbed": [self.calm.losses[step] for step in sorted(self.calm.losses)] if self.calm else None,
            "progress": [[round(instant - origin, 4), step] for instant, step in self.timeline.progress],
        }

    @property
    def _origin(self) -> float:
        """When the first step was made."""
        return self.timeline.progress[0][0] if self.timeline.progress else 0.0


def not_over(incident: Incident) -> bool:
    """Whether the job did not recover."""
    return incident.progress is None or math.isinf(incident.progress)


def _finite(*figures: float | None) -> list[float | None]:
    """Figures as JSON has them, which knows no infinity."""
    return [None if figure is None or math.isinf(figure) else figure for figure in figures]


def delays(incident: Incident) -> dict[str, float | None]:
    """Seconds from the fault to what followed; of the interruption, its length."""
    instants = {name: incident.since(getattr(incident, name)) for name in DELAYS[:-1]}
    return {**instants, "interruption": incident.interruption}


def _spreads(incidents: list[Incident]) -> dict[str, Any]:
    result: dict[str, Any] = {"n": len(incidents)}
    for name in DELAYS:
        middle = spread([value for incident in incidents if (value := delays(incident)[name]) is not None])
        result[name] = None if middle is None else {"median": round(middle[0], 4), "most": round(middle[1], 4)}
    middle = spread([float(incident.again) for incident in incidents])
    assert middle is not None  # there is no kind without incidents
    return {**result, "again": {"median": middle[0], "most": middle[1]}}


def _incident(incident: Incident, origin: float) -> dict[str, Any]:
    return {
        "kind": incident.kind,
        "worker": incident.worker,
        "at": round(incident.injected_at - origin, 4),
        "fault": incident.fault,
        **{name: None if value is None else round(value, 4) for name, value in delays(incident).items()},
        "again": incident.again,
        "world": incident.world,
        "left": None if incident.left is None or incident.lifted is None else round(incident.left - incident.lifted, 4),
    }
