"""The parts of a scenario."""

from dataclasses import dataclass

from kuayu_conformance.testbed.scheduling.engine.world import EPOCH

SELDOM = 600.0
"""Seconds between decisions while the last jobs of a cohort drain: they last for days."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of the parts of a scenario, each a whole number of minutes.

    Attributes:
        warm: Until the window begins; the policy decides already.
        window: In which the cohort is submitted.
        drain: For which the cohort may go on at most.
        counted: From the begin, over which the load is counted; all of it where it is nought. Demand goes on at the
            same level for as long as the cohort drains, but policies are asked less often then.

    Raises:
        ValueError: One of them is no whole number of minutes, or the window has none.
    """

    warm: float
    window: float
    drain: float
    counted: float = 0.0

    def __post_init__(self) -> None:
        parts = (self.warm, self.window, self.drain, self.counted)
        if min(parts) < 0.0 or self.window <= 0.0 or any(part % EPOCH for part in parts):
            raise ValueError(f"a scenario has whole minutes of warm start, window, drain and count, not {parts}")

    def epoch(self, now: float) -> float:
        """Seconds between the decisions from some second on."""
        return SELDOM if self.counted and now >= self.counted else EPOCH

    @property
    def begin(self) -> float:
        """When the window begins, seconds since the scenario did."""
        return self.warm

    @property
    def end(self) -> float:
        """When it ends."""
        return self.warm + self.window

    @property
    def horizon(self) -> float:
        """When the scenario ends."""
        return self.warm + self.window + self.drain
