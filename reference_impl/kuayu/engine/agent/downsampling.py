"""Fewer samples for a narrow path: one of a subject in so many seconds, and every one that reports trouble."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_SUBJECTS = 1_000_000
"""Subjects that are remembered; beyond them everything is forgotten and begins anew."""

Subject = tuple[str, str, str | None]
_ENVELOPE = {"subject", "subject_kind", "device", "observed_at"}


@dataclass(frozen=True, slots=True)
class Outline:
    """What of a sample decides whether it goes through.

    Attributes:
        subject: Kind, identifier, device.
        measures: Names of what it reports. A sample with other measures says something else, and counts by itself.
        observed: Instant in milliseconds.
        health: Reported state, None where there is none.
        faults: Reported faults, None where there are none.
    """

    subject: Subject
    measures: frozenset[str]
    observed: int
    health: str | None
    faults: float | None

    @classmethod
    def of(cls, sample: Mapping[str, Any], observed: int) -> "Outline":
        """Outline of a valid sample that was observed at a corrected instant."""
        return cls(
            (sample["subject_kind"], sample["subject"], sample.get("device")),
            frozenset(sample.keys() - _ENVELOPE),
            observed,
            sample.get("health_state"),
            sample.get("faults"),
        )


@dataclass(slots=True)
class Downsampler:
    """Decides sample by sample, in order of arrival.

    Attributes:
        period: Milliseconds within which one sample is enough; nought lets all through.
    """

    period: int
    _last: dict[tuple[Subject, frozenset[str]], int] = field(default_factory=dict)
    _health: dict[Subject, str] = field(default_factory=dict)
    _faults: dict[Subject, float] = field(default_factory=dict)

    def passes(self, outline: Outline) -> bool:
        """Whether a sample goes through, which is remembered."""
        if not self.period:
            return True
        kind = outline.subject, outline.measures
        last = self._last.get(kind)
        due = last is None or abs(outline.observed - last) >= self.period
        if not (due or self._alarms(outline)):
            return False
        if len(self._last) >= MAX_SUBJECTS:
            self.forget()
        self._last[kind] = outline.observed
        if outline.health is not None:
            self._health[outline.subject] = outline.health
        if outline.faults is not None:
            self._faults[outline.subject] = outline.faults
        return True

    def forget(self) -> None:
        """Remember nothing; each subject's next sample goes through."""
        for table in (self._last, self._health, self._faults):
            table.clear()

    def _alarms(self, outline: Outline) -> bool:
        """Whether it tells of faults, or of a state or count that is not what the last one told."""
        return (
            bool(outline.faults)
            or (outline.health is not None and outline.health != self._health.get(outline.subject))
            or (outline.faults is not None and outline.faults != self._faults.get(outline.subject))
        )
