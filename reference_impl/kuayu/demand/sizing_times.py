"""How long tasks of a kind run, by gradient-boosted trees on what they are given and use.

After Yang, Hong and Tang, task resource demand prediction (High Technology Letters 2023, 33(5)): XGBoost for each kind
of task, permutation importance. Two models: `course` says how long a task runs that asks for so much, whose size that
tells as well; the other knows what it used besides, and more of a resource never makes it slower there, so that it says
what the time depends on. Both are fitted crosswise: no record is judged by trees that have seen it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xgboost

from kuayu.demand.sizing_records import Records
from kuayu.demand.strategy import Floats, Whole

FOLDS = 3
"""Parts of the records that are held back in turn."""

MAX_RECORDS = 6000
"""Records of a kind that trees are fitted to; of more, every so-many-th in the order of their contents."""

COVERAGE = 0.9
"""Share of durations that are to lie inside their intervals."""

ROUNDS = 40
PARAMETERS = {
    "objective": "reg:squarederror",
    "tree_method": "hist",
    "max_bin": 64,
    "max_depth": 4,
    "eta": 0.15,
    "min_child_weight": 5,
    "lambda": 1.0,
    "nthread": 1,
    "seed": 0,
}
"""Ordinary ones; none was searched for."""

GROUPS = ((0, 3, 7), (1, 4), (2, 5))
"""Columns of accelerators (given, used, their memory), cores, and memory."""

NEVER_SLOWER = (-1, -1, -1, 0, 0, 0, 0, 0)
"""More of what is given never makes a task slower; what it uses tells its size, in either direction."""

MATTERS = 0.02
"""What is given of a resource counts if shuffling that column alone costs so much of the error of the mean."""

SHUFFLES = 3


@dataclass(frozen=True)
class Times:
    """Durations of a kind.

    Attributes:
        course: Trees of what is given, one set a fold.
        misses: Logarithms of true over predicted duration of held-back records: lower end, median, upper end.
        importance: By how much the error grows when a resource is shuffled, in parts of the error of the mean, 3.
        matters: Whether it can be told from held-back records that what they are given of a resource counts, 3.
        error: Weighted absolute percentage error of held-back records.
    """

    course: tuple[xgboost.Booster, ...]
    misses: tuple[float, float, float]
    importance: tuple[float, float, float]
    matters: tuple[bool, bool, bool]
    error: float

    def duration(self, given: Floats) -> Floats:
        """Low, expected and high seconds of tasks that are given so much, N × 3."""
        logs = _mean(self.course, given)
        return np.asarray(np.exp(logs[:, None] + np.array(self.misses)))


def fit(records: Records) -> Times:
    """Durations of a kind with at least a few times FOLDS records."""
    every = slice(None, None, -(-len(records) // MAX_RECORDS))
    features = features_of(records)[every]
    logs = np.log(records.duration[every])
    fold = np.arange(len(logs)) % FOLDS
    with xgboost.config_context(verbosity=0, nthread=1):
        course = tuple(boosted(features[fold != number, :3], logs[fold != number]) for number in range(FOLDS))
        effect = tuple(
            boosted(features[fold != number], logs[fold != number], {"monotone_constraints": str(NEVER_SLOWER)})
            for number in range(FOLDS)
        )
        misses = logs - _held_back(course, features[:, :3], fold)
        known, grown = _importance(effect, features, np.exp(logs), fold, [*GROUPS, *((number,) for number in range(3))])
    tail = (1 - COVERAGE) / 2
    ends = _ends(misses, tail)
    importance, alone = grown[:3], [growth > MATTERS for growth in grown[3:]]
    error = known / float(records.duration[every].mean())
    importance_of = (importance[0], importance[1], importance[2])
    return Times(course, ends, importance_of, (alone[0], alone[1], alone[2]), error)


def features_of(records: Records) -> Floats:
    """Columns that trees see: given, used, network and accelerator memory, N × 8; nan where not told."""
    return np.hstack([records.given, records.used, records.beside])


def boosted(features: Floats, target: Floats, more: dict[str, object] | None = None) -> xgboost.Booster:
    """Trees, fitted the same way every time."""
    parameters = PARAMETERS | (more or {})
    data = xgboost.QuantileDMatrix(features, target, max_bin=PARAMETERS["max_bin"], nthread=1)
    return xgboost.train(parameters, data, ROUNDS)


def _mean(models: tuple[xgboost.Booster, ...], features: Floats) -> Floats:
    with xgboost.config_context(verbosity=0, nthread=1):
        logs = [model.inplace_predict(features) for model in models]
    return np.asarray(np.mean(logs, axis=0), dtype=np.float64)


def _held_back(models: tuple[xgboost.Booster, ...], features: Floats, fold: Whole) -> Floats:
    predictions = np.empty(len(features))
    for index, model in enumerate(models):
        predictions[fold == index] = model.inplace_predict(features[fold == index])
    return predictions


def _importance(
    models: tuple[xgboost.Booster, ...],
    features: Floats,
    duration: Floats,
    fold: Whole,
    groups: Sequence[Sequence[int]],
) -> tuple[float, list[float]]:
    """Mean absolute error of held-back records, and by how much it grows with groups of columns shuffled."""

    def error(columns: Floats) -> float:
        return float(np.abs(np.exp(_held_back(models, columns, fold)) - duration).mean())

    unknowing = max(float(np.abs(duration - duration.mean()).mean()), 1e-12 * float(duration.mean()))
    known = error(features)
    chance = np.random.default_rng(0)
    orders = [chance.permutation(len(features)) for _ in range(SHUFFLES)]
    growth = []
    for group in groups:
        errors = []
        for order in orders:
            shuffled = features.copy()
            shuffled[:, list(group)] = features[order][:, list(group)]
            errors.append(error(shuffled))
        growth.append((float(np.mean(errors)) - known) / unknowing)
    return known, growth


def _ends(misses: Floats, tail: float) -> tuple[float, float, float]:
    """Ends that a held-back miss lies between, widened as a finite sample asks for (conformal prediction)."""
    ordered, count = np.sort(misses), len(misses)
    place = max(int(np.floor((count + 1) * tail)), 1)
    return float(ordered[place - 1]), float(np.median(ordered)), float(ordered[count - place])
