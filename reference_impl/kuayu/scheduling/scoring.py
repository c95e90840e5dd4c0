"""Which candidate a job takes: features, scorers, and what keeps any scorer from harm.

1. A scorer sees the candidates of the job at hand, those that it can take now and those that it would have to wait for;
   the least score wins. The rule that ships weighs seconds and money; a trained network takes its place.
2. No score that is no number counts, and nothing is taken to which another candidate is better in all that counts
   (dominance filter).
"""

from dataclasses import dataclass
from math import inf
from typing import Protocol

import numpy as np

from kuayu.scheduling.state import Flags, Floats

FEATURES = ("waits", "begins", "runs", "moving", "exchanging", "price", "devices", "crowd", "lost", "size", "age")
"""Columns of features, by row:

- ``waits``: seconds until the devices are free, zero where they are free now;
- ``begins``: seconds from then until the first step; ``runs``: seconds from then until the end;
- ``moving``, ``exchanging``, ``price``: money for data and checkpoint, for exchanges, for devices;
- ``devices``: how many are held;
- ``crowd``: seconds by which holding them delays others, all told;
- ``lost``: device seconds that are held without being what the devices could be at best;
- ``size``: devices that the job asked for; ``age``: seconds since it was submitted. Both are the same in all rows.
"""
WAITS, BEGINS, RUNS, MOVING, EXCHANGING, PRICE, DEVICES, CROWD, LOST, SIZE, AGE = range(len(FEATURES))


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much; only their ratios matter.

    Attributes:
        period: Seconds from submission to end, those of others included.
        communication: Money for bandwidth.
        utilisation: Device seconds that are lost.
        price: Money for devices.
    """

    period: float = 1.0
    communication: float = 1.0
    utilisation: float = 1.0
    price: float = 0.0


OWN = Weights()
"""Of the reference, where a request gives none."""


class Scorer(Protocol):
    """Makes scores of features."""

    def scores(self, features: Floats, weights: Weights) -> Floats:
        """What each candidate is worth, the less the better.

        Args:
            features: Of the candidates of one job, (candidates, features); columns are ``FEATURES``.
            weights: What counts.
        """


@dataclass(frozen=True, slots=True)
class Rule:
    """A weighted sum.

    What money, waiting and lost device seconds count was searched by ``python -m kuayu_training rule`` in worlds that
    no judge takes (``docs/results/scheduling/tuning.json``).

    Attributes:
        money: Seconds that a unit of money for bandwidth is worth.
        lost: Seconds that a device second is worth that is lost.
        price: Seconds that a unit of money for devices is worth.
        doubt: What a second of waiting counts; more than one, since who waits may wait in vain.
    """

    money: float = 1000.0
    lost: float = 0.06
    price: float = 1.0
    doubt: float = 10.0

    def scores(self, features: Floats, weights: Weights) -> Floats:
        """Seconds until the end and what others wait longer; money and devices in seconds."""
        total = weights.period + weights.communication + weights.utilisation + weights.price
        seconds = self.doubt * features[:, WAITS] + features[:, BEGINS] + features[:, RUNS]
        period = seconds + features[:, CROWD]
        communication = self.money * (features[:, MOVING] + features[:, EXCHANGING])
        scores: Floats = (
            weights.period * period
            + weights.communication * communication
            + weights.utilisation * self.lost * features[:, LOST]
            + weights.price * self.price * features[:, PRICE]
        ) / (total or 1.0) + TIE_BREAK_PER_SECOND * seconds
        return np.where(np.isfinite(features[:, RUNS] + features[:, BEGINS]), scores, np.inf)

    def waiting(self, weights: Weights) -> float:
        """What a second of waiting adds to a score."""
        total = weights.period + weights.communication + weights.utilisation + weights.price
        return self.doubt * (weights.period / (total or 1.0) + TIE_BREAK_PER_SECOND)


TIE_BREAK_PER_SECOND = 1e-6
"""Of candidates that the weights hold for equal, the sooner one."""

MARGIN = 0.05
"""By how much another candidate must be better in something, and worse in nothing, for a choice to be refused."""


def dominance_filter(
    features: Floats, scores: Floats, weights: Weights, *, trusted: bool = False
) -> tuple[int | None, bool]:
    """Place of the way that is taken, and whether the rule had to choose it in place of the scorer.

    Args:
        features: Of the candidates of a job, (candidates, features).
        scores: Of the scorer.
        weights: What counts.
        trusted: Whether the scorer never chooses what is plainly worse, as the rule.

    Returns:
        None where no way leads to the end of the job.
    """
    able = np.isfinite(features[:, RUNS] + features[:, BEGINS] + features[:, WAITS])
    if not able.any():
        return None, False
    if len(scores) != len(features) or np.isnan(scores[able]).any() or not np.isfinite(scores[able]).any():
        return int(np.where(able, Rule().scores(features, weights), np.inf).argmin()), True
    best = int(np.where(able, scores, np.inf).argmin())
    if trusted:
        return best, False
    better = dominating(features, best) & able
    if better.any():
        return int(np.where(better, Rule().scores(features, weights), np.inf).argmin()), True
    return best, False


def dominating(features: Floats, one: int) -> Flags:
    """Which candidates are plainly better than one: sooner, cheaper, less in others' way and less lost, or alike.

    Sooner is what waits no longer and ends no later: when devices become free is a guess, for which the rule counts a
    second of waiting several times. So what the rule takes is never plainly worse than a way that it does not
    hold equal.
    """
    ends = features[:, WAITS] + features[:, BEGINS] + features[:, RUNS]
    money = features[:, MOVING] + features[:, EXCHANGING]
    counted = [ends, money, *features[:, [WAITS, PRICE, CROWD, LOST]].T]
    ends_in = np.stack(counted, axis=1)
    own = ends_in[one]
    with np.errstate(invalid="ignore"):
        better: Flags = (ends_in <= own).all(axis=1) & (ends_in < (1.0 - MARGIN) * own).any(axis=1)
    return better


class Scoring:
    """Scores candidates job by job; the rule all at once, but for what comes of waiting.

    Attributes:
        fallback: Whether the rule had to choose in place of the scorer.

    Args:
        scorer: Makes scores.
        weights: What counts.
        columns: Features of all candidates; how long they wait is filled in job by job.
    """

    def __init__(self, scorer: Scorer, weights: Weights, columns: Floats) -> None:
        self._scorer, self._weights, self._columns = scorer, weights, columns
        self._fixed: Floats | None = None
        self._optimistic: Floats | None = None
        self.fallback = False
        if isinstance(scorer, Rule):
            self._fixed, self._second = scorer.scores(columns, weights), scorer.waiting(weights)

    def scores(self, job_rows: slice) -> Floats:
        """Scores of the candidates of a job."""
        if self._fixed is None:
            return self._scorer.scores(self._columns[job_rows], self._weights)
        return self._fixed[job_rows] + self._second * self._columns[job_rows, WAITS]

    def anew(self, features: Floats) -> Floats:
        """Scores of candidates of which it is told anew what they lead to."""
        return self._scorer.scores(features, self._weights)

    def optimistic_bounds(self, job_rows: slice, waits: float, lost: float) -> Floats:
        """Scores of the candidates of a job if each waited so many seconds, and others lost so many by it."""
        if self._fixed is None:
            return self.anew(_optimistic_features(self._columns[job_rows], waits, lost))
        if self._optimistic is None:
            self._optimistic = self.anew(_optimistic_features(self._columns, waits, lost))
        return self._optimistic[job_rows]

    def choice(self, features: Floats, scores: Floats) -> int | None:
        """Which of its candidates a job takes, if one leads to its end."""
        if self._fixed is None:
            chosen, fallback = dominance_filter(features, scores, self._weights)
            self.fallback |= fallback
            return chosen
        best = int(scores.argmin())
        return best if scores[best] < inf else None


def _optimistic_features(features: Floats, waits: float, lost: float) -> Floats:
    """Features with other waits, and more that others lose."""
    features = features.copy()
    features[:, WAITS] = waits
    features[:, CROWD] += lost
    return features
