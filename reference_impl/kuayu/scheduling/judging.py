"""Scores of all ways of an epoch, and which of its ways each job takes by them."""

from math import inf

from kuayu.scheduling.choosing import CROWD, WAITS, Rule, Scorer, Weights
from kuayu.scheduling.safety import safest
from kuayu.scheduling.scene import Floats


class Judge:
    """Scores ways job by job; the rule all at once, but for what comes of waiting.

    Attributes:
        simpler: Whether the rule had to choose in place of the scorer.

    Args:
        scorer: Makes scores.
        weights: What counts.
        columns: Features of all ways; how long they wait is filled in job by job.
    """

    def __init__(self, scorer: Scorer, weights: Weights, columns: Floats) -> None:
        self._scorer, self._weights, self._columns = scorer, weights, columns
        self._fixed: Floats | None = None
        self._hopes: Floats | None = None
        self.simpler = False
        if isinstance(scorer, Rule):
            self._fixed, self._second = scorer.scores(columns, weights), scorer.waiting(weights)

    def scores(self, its: slice) -> Floats:
        """Scores of the ways of a job."""
        if self._fixed is None:
            return self._scorer.scores(self._columns[its], self._weights)
        return self._fixed[its] + self._second * self._columns[its, WAITS]

    def anew(self, features: Floats) -> Floats:
        """Scores of ways of which it is told anew what they lead to."""
        return self._scorer.scores(features, self._weights)

    def hopes(self, its: slice, waits: float, lost: float) -> Floats:
        """Scores of the ways of a job if each waited so many seconds, and others lost so many by it."""
        if self._fixed is None:
            return self.anew(_hopeful(self._columns[its], waits, lost))
        if self._hopes is None:
            self._hopes = self.anew(_hopeful(self._columns, waits, lost))
        return self._hopes[its]

    def choice(self, features: Floats, scores: Floats) -> int | None:
        """Which of its ways a job takes, if one leads to its end."""
        if self._fixed is None:
            chosen, simpler = safest(features, scores, self._weights)
            self.simpler |= simpler
            return chosen
        best = int(scores.argmin())
        return best if scores[best] < inf else None


def _hopeful(features: Floats, waits: float, lost: float) -> Floats:
    """Features with other waits, and more that others lose."""
    features = features.copy()
    features[:, WAITS] = waits
    features[:, CROWD] += lost
    return features
