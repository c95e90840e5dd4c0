"""A network in place of the rule: what the rule says, corrected by what was learned; NumPy evaluates it.

1. Candidates of a job are rows. Each becomes a hidden vector and is then seen beside the mean of all of them, so that
   neither their order nor their number counts, and there may be any number of domains (M. Zaheer et al., "Deep sets",
   NeurIPS 2017).
2. A candidate's preference is a correction, less its regret by the rule.
3. It was learned for the reference's own weights: where a request gives others, the rule alone decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

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
    OWN,
    RUNS,
    SIZE,
    WAITS,
    Rule,
    Scorer,
    Weights,
)
from kuayu.scheduling.state import Floats, Numbers

Small = NDArray[np.float32]

FILE = "network.npz"
MOST = 32
"""Candidates of a job that are looked at, the best by the rule; the others are left to it."""
SEEN = (
    *("now", "waits", "waits long", "begins", "runs", "moving", "exchanging", "crowd"),
    *("lost", "devices", "length", "size", "age", "regret", "room"),
)
"""What is seen of each candidate, in the order of columns."""
LIMIT = 0.25
"""Regret by the rule beyond which a candidate is out of the question, whatever was learned."""
BOUND = 10.0
"""Nothing that is seen is farther from nought than this."""
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
        features: Of its candidates, (candidates, ``choosing.FEATURES``).
        scores: What the rule makes of them; infinite for those that cannot be taken.
    """
    order = np.argsort(scores, kind="stable")[:MOST]
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


@dataclass(frozen=True, slots=True)
class PolicyNetwork:
    """Layers: each a matrix, from columns to rows, and a bias.

    Attributes:
        scale: What a unit of regret counts, (1,).
        enter: From what is seen to the hidden vector.
        meet: From that and the mean over all ways to another.
        leave: From that to the correction.
        rule: Which it corrects.
    """

    scale: Small
    enter: tuple[Small, Small]
    meet: tuple[Small, Small]
    leave: tuple[Small, Small]
    rule: Scorer = field(default_factory=Rule)

    @classmethod
    def of(cls, weights: Mapping[str, Small], rule: Scorer | None = None) -> "PolicyNetwork":
        """Layers from arrays by name, as training writes them.

        Raises:
            KeyError: One is missing.
        """
        enter, meet, leave = ((weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in _LAYERS)
        return cls(weights["scale"], enter, meet, leave, rule or Rule())

    def preferences(self, its: PolicyObservation) -> Floats:
        """How much each candidate is preferred, the more the better, (rows,)."""
        hidden = np.maximum(its.seen @ self.enter[0].T + self.enter[1], 0.0)
        width = hidden.shape[1]
        together = hidden.mean(axis=0) @ self.meet[0][:, width:].T + self.meet[1]
        met = np.maximum(hidden @ self.meet[0][:, :width].T + together, 0.0)
        found: Floats = ((met @ self.leave[0].T)[:, 0] + self.leave[1] - self.scale * its.regrets).astype(np.float64)
        return found

    def scores(self, features: Floats, weights: Weights) -> Floats:
        """What each candidate is worth, the less the better; in the order of preference, on the scale of the rule."""
        by_rule = self.rule.scores(features, weights)
        if weights != OWN or len(features) <= 1:
            return by_rule
        its = observation(features, by_rule)
        if not its.open:
            return by_rule
        scores = by_rule.copy()
        order = np.argsort(-self.preferences(its), kind="stable")
        scores[its.rows[order]] = by_rule[its.rows]
        return scores


_LAYERS = ("enter", "meet", "leave")


@cache
def shipped() -> PolicyNetwork | None:
    """The network that comes with the package, if one does."""
    path = files("kuayu.scheduling") / FILE
    if not path.is_file():
        return None
    with path.open("rb") as file, np.load(file) as held:
        return PolicyNetwork.of({name: held[name] for name in held.files})
