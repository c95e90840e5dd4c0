"""What a probe gives, and how it says that it cannot."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Progress = Callable[[str, float], None]
"""Told the name of what runs and the share of the whole that is done, between nought and one."""


class ProbeUnavailableError(Exception):
    """The probe cannot be carried out here.

    Attributes:
        cause: Why.
        hint: What would make it possible.
    """

    def __init__(self, cause: str, hint: str) -> None:
        super().__init__(f"{cause}; {hint}")
        self.cause = cause
        self.hint = hint


class ProbeFailedError(ProbeUnavailableError):
    """The probe ran and its outcome is wrong, or part of it died."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Outcome of a probe.

    Attributes:
        probe: Name of the probe.
        measure: Measure of the information model that it yields.
        unit: UCUM unit of ``value``, ``spread`` and ``detail``.
        value: Median over the repetitions.
        spread: Interquartile range over the repetitions.
        n: Repetitions.
        seconds: Time that they took, warm-up included.
        stack: Software that the work ran on.
        device: Device that it is about; None where it is about the node.
        precision: Numeric precision, where there is one figure for each.
        per_joule: Operations for each joule that the device used meanwhile; None where the energy cannot be known.
        detail: Medians of the parts that ``value`` was made of, by name.
    """

    probe: str
    measure: str
    unit: str
    value: float
    spread: float
    n: int
    seconds: float
    stack: str
    device: str | None = None
    precision: str | None = None
    per_joule: float | None = None
    detail: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Probe, precision and device for people."""
        return " ".join(part for part in (self.probe, self.precision, self.device) if part)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A probe that could not be carried out, with the cause and what would make it possible."""

    name: str
    cause: str
    hint: str
