"""What keeps any scorer from harm: no score that is no number counts, and nothing is taken that is plainly worse.

What cannot be carried out is no way to begin with; here it is seen to that the best score is one, and that no other way
is better in everything that counts.
"""

import numpy as np

from kuayu.scheduling.choosing import BEGINS, CROWD, EXCHANGING, LOST, MOVING, PRICE, RUNS, WAITS, Rule, Weights
from kuayu.scheduling.scene import Flags, Floats

MARGIN = 0.05
"""By how much another way must be better in something, and worse in nothing, for a choice to be refused."""


def safest(features: Floats, scores: Floats, weights: Weights, *, trusted: bool = False) -> tuple[int | None, bool]:
    """Place of the way that is taken, and whether the rule had to choose it in place of the scorer.

    Args:
        features: Of the ways of a job, (ways, features).
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
    """Which ways are plainly better than one: sooner, cheaper, less in others' way and less lost, or alike.

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
