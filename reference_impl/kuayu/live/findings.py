"""What a run has shown, as it is written to ``timeline.json`` and as a table shows it."""

import dataclasses
import math
import os
from dataclasses import dataclass
from typing import Any

from kuayu.live.accounts import Account
from kuayu.live.faults import Kind
from kuayu.live.percentile import percentile
from kuayu.live.settings import Settings
from kuayu.live.timeline import Incident, Timeline, spread
from kuayu.live.told import Service

TOLERANCE = 1e-6
"""Nats by which a loss may differ from that of the undisturbed training."""
JUDGED = {"RES-003": ("first", 300.0, 30.0), "RES-004": ("interruption", 600.0, 30.0)}
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
    service: Service | None = None

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
        found = []
        missed = [each for each in self.timeline.incidents if not_over(each)]
        if missed:
            found.append(f"{len(missed)} incidents were not recovered from")
        if self.missing:
            found.append(f"the curve has no loss for {len(self.missing)} steps, such as {self.missing[0]}")
        if self.difference is not None and not self.difference <= TOLERANCE:
            found.append(f"the curve is off the undisturbed one by {self.difference:.3g}")
        for name, account in (("disturbed", self.account), ("undisturbed", self.calm_account)):
            if account is not None and not account.clean:
                found.append(f"in the {name} run the job was in two places, or a step had two results")
        stayed = [each for each in self.timeline.incidents if each.left is None and not not_over(each)]
        if stayed:
            found.append(f"{len(stayed)} replaced workers did not end by themselves")
        alarms = len(self.timeline.false_alarms) + (len(self.calm.false_alarms) if self.calm else 0)
        if alarms:
            found.append(f"{alarms} false alarms")
        strange = [] if self.service is None else self.service.strange(self.timeline.incidents)
        if strange:
            found.append(f"the service told {len(strange)} faults of whom nothing had been done to")
        return found

    def by_kind(self) -> dict[Kind, list[Incident]]:
        """Incidents that were recovered from."""
        over = [each for each in self.timeline.incidents if not not_over(each)]
        return {kind: some for kind in Kind if (some := [each for each in over if each.kind == kind])}

    def judged(self, requirement: str) -> tuple[float, float | None] | None:
        """The 95th percentile of a requirement's delay over all incidents, and its upper bound.

        An incident that was not recovered from counts as endless. None where nothing was brought about.
        """
        name = JUDGED[requirement][0]
        figures = [delays(each)[name] for each in self.timeline.incidents]
        return percentile([math.inf if each is None else each for each in figures]) if figures else None

    def to_json(self) -> dict[str, Any]:
        """All but the curves; seconds from the fault, and instants from the first step."""
        origin = self._origin
        return {
            "settings": dataclasses.asdict(self.settings),
            "processors": os.cpu_count(),
            "load": self.load,
            "seconds": self.seconds,
            "incidents": [_incident(each, origin) for each in self.timeline.incidents],
            "spread": {kind: _spreads(some) for kind, some in self.by_kind().items()},
            "percentile_95_and_bound": {each: _finite(*(self.judged(each) or ())) for each in JUDGED},
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
        found: dict[Kind, list[float | None]] = {}
        for each in self.timeline.incidents:
            if self.service is not None and each.kind is not Kind.control:
                told = self.service.of(each)
                found.setdefault(each.kind, []).append(None if told is None else round(told.at - each.at, 4))
        return found

    def _of_service(self, service: Service) -> dict[str, Any]:
        return {
            "told_after": self.told_after(),
            "faults": [{"kind": each.kind, "node": each.node, "domain": each.domain} for each in service.told],
            "about_nobody_struck": len(service.strange(self.timeline.incidents)),
            "asked": service.asked,
            "unanswered": service.unanswered,
        }

    def curves(self) -> dict[str, Any]:
        """Loss of each step in nats a character, and when each was made that had not been made before."""
        origin = self._origin
        return {
            "losses": [self.timeline.losses[step] for step in sorted(self.timeline.losses)],
            "losses_undisturbed": [self.calm.losses[step] for step in sorted(self.calm.losses)] if self.calm else None,
            "progress": [[round(at - origin, 4), step] for at, step in self.timeline.progress],
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
    return [None if each is None or math.isinf(each) else each for each in figures]


def delays(incident: Incident) -> dict[str, float | None]:
    """Seconds from the fault to what followed; of the interruption, its length."""
    instants = {name: incident.since(getattr(incident, name)) for name in DELAYS[:-1]}
    return {**instants, "interruption": incident.interruption}


def _spreads(incidents: list[Incident]) -> dict[str, Any]:
    found: dict[str, Any] = {"n": len(incidents)}
    for name in DELAYS:
        middle = spread([value for each in incidents if (value := delays(each)[name]) is not None])
        found[name] = None if middle is None else {"median": round(middle[0], 4), "most": round(middle[1], 4)}
    middle = spread([float(each.again) for each in incidents])
    assert middle is not None  # there is no kind without incidents
    return {**found, "again": {"median": middle[0], "most": middle[1]}}


def _incident(incident: Incident, origin: float) -> dict[str, Any]:
    return {
        "kind": incident.kind,
        "worker": incident.worker,
        "at": round(incident.at - origin, 4),
        "fault": incident.fault,
        **{name: None if value is None else round(value, 4) for name, value in delays(incident).items()},
        "again": incident.again,
        "world": incident.world,
        "left": None if incident.left is None or incident.lifted is None else round(incident.left - incident.lifted, 4),
    }
