"""How a job's candidates are seen by whoever learns to choose among them: rows of bounded figures, best first.

Each row is a candidate, in proportion to how long the shortest takes, so that neither the size of a job nor the number
of domains counts; the worse ones by the rule, and those that are out of the question, are left out.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu.scheduling.scoring import (
    AGE,
    BEGINS,
    CROWD,
    DEVICES,
    EXCHANGING,
    LOST,
    MOVING,
    RUNS,
    SIZE,
    WAITS,
)
from kuayu.scheduling.state import Floats, Numbers

Small = NDArray[np.float32]

MAX_CANDIDATES = 32
"""Candidates of a job that are looked at, the best by the rule; the others are left to it."""
SEEN = (
    *("now", "waits", "waits long", "begins", "runs", "moving", "exchanging", "crowd"),
    *("lost", "devices", "length", "size", "age", "regret", "room"),
)
"""What is seen of each candidate, in the order of columns."""
LIMIT = 0.25
"""Regret by the rule beyond which a candidate is out of the question, whatever was learned."""
BOUND = 10.0
"""Nothing that is seen is farther from zero than this."""
FLOOR = 600.0
"""Seconds that the shortest way counts at least, since all is seen in proportion to it."""
_MONEY = 100.0
"""Seconds to a unit of money, so that money and time are seen alike."""


@dataclass(frozen=True, slots=True)
class PolicyObservation:
    """Candidates of a job as they are seen.

    Attributes:
        rows: Which of the candidates, the best by the rule first.
        seen: What is seen of them, (rows, columns of ``SEEN``).
        regrets: By how much each is worse than the first, by the rule and over the shortest way, (rows,).
    """

    rows: Numbers
    seen: Small
    regrets: Small

    @property
    def open(self) -> bool:
        """Whether there is a choice: several candidates, one of which could be taken now."""
        return len(self.rows) > 1 and bool(self.seen[:, 0].any())


def observation(features: Floats, scores: Floats) -> PolicyObservation:
    """How a job's candidates are seen.

    Args:
        features: Of its candidates, (candidates, ``scoring.FEATURES``).
        scores: What the rule makes of them; infinite for those that cannot be taken.
    """
    order = np.argsort(scores, kind="stable")[:MAX_CANDIDATES]
    rows = order[np.isfinite(scores[order]) & np.isfinite(features[order, WAITS])]
    seconds = features[rows][:, (WAITS, BEGINS, RUNS)].sum(axis=1)
    length = max(float(seconds.min()), FLOOR) if len(rows) else FLOOR
    regrets = (scores[rows] - scores[rows[:1]]) / length
    near = regrets <= LIMIT
    rows, regrets = rows[near], regrets[near]
    of = features[rows].T
    now = of[WAITS] <= 0.0
    size = np.maximum(of[SIZE], 1.0)
    columns = (
        now,
        of[WAITS] / length,
        np.log1p(of[WAITS] / FLOOR),
        of[BEGINS] / length,
        of[RUNS] / length,
        _MONEY * of[MOVING] / length,
        _MONEY * of[EXCHANGING] / length,
        of[CROWD] / length,
        of[LOST] / (size * length),
        np.log2(np.maximum(of[DEVICES], 1.0) / size),
        np.full(len(rows), np.log(length / 3600.0)),
        np.log2(size) / 4.0,
        np.log1p(of[AGE] / length),
        regrets / LIMIT,
        np.full(len(rows), now.mean() if len(rows) else 0.0),
    )
    seen = np.clip(np.stack(columns, axis=1), -BOUND, BOUND)
    return PolicyObservation(rows, seen.astype(np.float32), regrets.astype(np.float32))
