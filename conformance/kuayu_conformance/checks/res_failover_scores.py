"""What incidents come to: percentiles of times, with bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from kuayu_conformance.checks.res_failover_windows import Played
from kuayu_conformance.statistics import quantile, quantile_upper_bound
from kuayu_conformance.testbed.recovery.state import Incident

QUANTILE = 0.95
NEVER = 86400.0
"""Seconds that stand for a time without end: longer than any window."""
MEASURES = {"switch_s": "time until a job is whole again", "interruption_s": "time without a new step"}


@dataclass(frozen=True)
class Score:
    """A measure over some incidents, s.

    Attributes:
        estimate: 95th percentile.
        bound: Its one-sided 95 % upper bound; infinite where there are too few incidents for one.
        median: The middle one.
        n: Incidents.
        never: Those that were not over at the end of their window.
    """

    estimate: float
    bound: float
    median: float
    n: int
    never: int


def incidents(windows: Sequence[Played], planner: str) -> list[Incident]:
    """All of them under a planner, in the order of windows."""
    return [each for window in windows if planner in window.outcomes for each in window.outcomes[planner].incidents]


def score(its: Sequence[Incident], measure: str) -> Score:
    """One of ``MEASURES`` over incidents.

    Raises:
        ValueError: There are none.
    """
    seconds = [float(getattr(each, measure)) for each in its]
    ends = [min(NEVER, each) for each in seconds]
    return Score(
        quantile(ends, QUANTILE),
        quantile_upper_bound(ends, QUANTILE),
        quantile(ends, 0.5),
        len(ends),
        seconds.count(inf),
    )
