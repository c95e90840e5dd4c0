"""What disturbances come to: percentiles with bounds, and how many of them were named."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from kuayu_conformance.checks.res_adjusting_windows import SERVICE, Heard, Played
from kuayu_conformance.statistics import proportion_lower_bound, quantile, quantile_upper_bound
from kuayu_conformance.testbed.adjustment.disturbing import SLOW
from kuayu_conformance.testbed.adjustment.run import ASKED_S
from kuayu_conformance.testbed.adjustment.scores import Disturbance

QUANTILE = 0.95
ALL, NEVER = 1.0, 86400.0
"""What stands for a loss and for a time without end: all steps, and longer than any window."""
LOSS, RECOVERY = "loss", "recovery_s"
MEASURES = {LOSS: "share of a window's steps lost while adjusted", RECOVERY: "time to recover after the adjustment"}
MOST = {LOSS: ALL, RECOVERY: NEVER}
MINUTE_S = 60.0


@dataclass(frozen=True)
class Percentile:
    """A measure over some disturbances.

    Attributes:
        estimate: 95th percentile.
        bound: Its one-sided 95 % upper bound; the most there is where there are too few disturbances for one.
        median: The middle one.
        n: Disturbances.
        never: Those after which some job never recovered.
    """

    estimate: float
    bound: float
    median: float
    n: int
    never: int


@dataclass(frozen=True)
class Counted:
    """How often something that should not be was.

    Attributes:
        times: How often it was.
        of: How often it could have been.
    """

    times: int
    of: int

    @property
    def bound(self) -> float:
        """One-sided 95 % upper bound of the share, exact; one where it could never have been."""
        return 1.0 - proportion_lower_bound(self.of - self.times, self.of)


@dataclass(frozen=True)
class Named:
    """Disturbances of a kind and what was named of them.

    Attributes:
        n: Disturbances.
        missed: Of those by which a level had changed before the next one, those of which some change was never named.
        after_s: Until an answer named all that had changed, the median; None where none did.
    """

    n: int
    missed: Counted
    after_s: float | None


def disturbances(windows: Sequence[Played], adjuster: str) -> list[Disturbance]:
    """All of them under an adjuster, in the order of windows."""
    return [each for window in windows for each in window.scores[adjuster].disturbances]


def percentile(its: Sequence[Disturbance], measure: str) -> Percentile:
    """One of ``MEASURES`` over disturbances.

    Raises:
        ValueError: There are none.
    """
    values = [min(MOST[measure], float(getattr(each, measure))) for each in its]
    bound = min(MOST[measure], quantile_upper_bound(values, QUANTILE))
    never = sum(each.recovery_s == inf for each in its)
    return Percentile(quantile(values, QUANTILE), bound, quantile(values, 0.5), len(values), never)


def named(windows: Sequence[Played], kind: str) -> Named:
    """What was named of disturbances of a kind."""
    found = [
        _named(window, each)
        for window in windows
        for each in window.scores[SERVICE].disturbances
        if each.event.kind == kind
    ]
    owed = [each for each in found if each is not None]
    told = [each for each in owed if each < inf]
    return Named(len(found), Counted(len(owed) - len(told), len(owed)), median(told) if told else None)


def _named(window: Played, its: Disturbance) -> float | None:
    """Seconds until all that had changed by a disturbance was named; None where nothing had, infinite where not all."""
    domain, kind = window.names[its.event.domain], "latency" if its.event.kind == SLOW else "load"
    heard = [each for each in window.heard if its.event.at <= each.at < its.until]
    first = {
        key: next((each.at for each in heard if key in each.named), inf)
        for key in set().union(*(each.changed for each in heard))
        if key[0] == kind and domain in key[1:]
    }
    return max(first.values()) - its.event.at if first else None


def calm(windows: Sequence[Played]) -> Counted:
    """Minutes in which all was calm, one after the other, and those in which something was named or planned."""
    minutes = [minute for window in windows for minute in _minutes(window.heard)]
    return Counted(sum(any(each.acted for each in minute) for minute in minutes), len(minutes))


def _minutes(heard: Sequence[Heard]) -> Iterator[list[Heard]]:
    run: list[Heard] = []
    for each in heard:
        run = [*run, each] if each.calm else []
        if len(run) * ASKED_S >= MINUTE_S:
            yield run
            run = []
