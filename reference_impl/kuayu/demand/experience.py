"""What measured runs teach, and how far a prediction may be off.

The efficiency is the prior's, calibrated on the runs of a request. The shipped CALIBRATED is not its beginning: it
rests on public runs, which somebody may judge the law by.

The logarithm of a step's time is uncertain for two reasons: the efficiency is (its prior's spread, less what runs tell
of it, carried over by slopes of the law), and the law is no truth (MODEL_ERROR). How large both are together is told by
runs that the efficiency has not seen: each source is predicted from all others, and the squares of these errors, in
parts of what was expected, adjust the width. As many as PRIOR_SOURCES sources stand for the prior, so that few sources
move it little; the interval is that of Student's t with their sum as degrees of freedom. Where there are fewer than
LEAST_SOURCES, nothing tells how far sources differ, and intervals are those of the prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as student

from kuayu.demand.calibration import TOLERANCE, calibrate, weights
from kuayu.demand.efficiency import CEILING, NAMES, PRIOR, SPREADS, Efficiency
from kuayu.demand.strategy import Floats
from kuayu.demand.terms import Terms
from kuayu.demand.timing import times

MODEL_ERROR = TOLERANCE
"""Standard deviation of the logarithm of a step's time that no efficiency explains; what calibration assumes too."""

PRIOR_SOURCES = 4.0
"""How many sources the prior's spread counts for."""

LEAST_SOURCES = 3
"""Sources from which errors on one that was left out say something."""

ROUNDS = 10
"""Times that runs are weighed anew where a source is left out."""

_STEP = 1e-4
_WIDTHS = np.array([getattr(SPREADS, name) for name in NAMES])
_CEILING = (CEILING.logs() - PRIOR.logs()) / _WIDTHS


@dataclass(frozen=True)
class Experience:
    """What is known of efficiency.

    Attributes:
        efficiency: Its median.
        covariance: Of its logarithms, in widths of the prior, len(NAMES) × len(NAMES).
        scale: By how much predictions are wider off than these and the model's error say.
        freedom: Degrees of freedom of that scale.
        runs: Runs that it rests on.
    """

    efficiency: Efficiency
    covariance: Floats
    scale: float
    freedom: float
    runs: int

    def spread(self, needed: Terms) -> Floats:
        """Standard deviation of the logarithm of the step's time, N."""
        _, slopes = _slopes(needed, self.efficiency)
        return self.scale * np.sqrt(_variance(slopes, self.covariance))

    def factor(self, needed: Terms, coverage: float) -> Floats:
        """By how much a step may be longer or shorter than predicted in this share of cases, N; at least 1."""
        return np.asarray(np.exp(student.ppf(0.5 + coverage / 2, self.freedom) * self.spread(needed)))


BY_PRIOR = Experience(PRIOR, np.eye(len(NAMES)), 1.0, PRIOR_SOURCES, 0)
"""Without any run."""


def learn(needed: Terms, measured: Floats, sources: Sequence[str]) -> Experience:
    """Experience from N runs.

    Args:
        needed: Terms of the runs.
        measured: Seconds of a step, N.
        sources: Where each run is from, N.
    """
    if not len(measured):
        return BY_PRIOR
    found = calibrate(needed, measured, sources).efficiency
    predicted, slopes = _slopes(needed, found)
    labels, names = np.asarray(sources), list(dict.fromkeys(sources))
    if len(names) < LEAST_SOURCES:
        return replace(BY_PRIOR, efficiency=found, runs=len(measured))
    seen = _Seen(slopes, np.log(predicted / measured), weights(sources), (found.logs() - PRIOR.logs()) / _WIDTHS)
    told, freedom = PRIOR_SOURCES, PRIOR_SOURCES
    for name in names:
        out = labels == name
        moved, covariance = seen.without(out)
        off = seen.errors[out] + slopes[out] @ moved
        told += float(np.sum(seen.weight[out] * off**2 / _variance(slopes[out], covariance)))
        freedom += float(seen.weight[out].sum())
    _, covariance = seen.without(np.zeros(len(measured), dtype=bool))
    return Experience(found, covariance, float(np.sqrt(told / freedom)), freedom, len(measured))


@dataclass(frozen=True)
class _Seen:
    """The law about the efficiency that all runs led to, where it is as good as linear.

    Attributes:
        slopes: By how much the logarithm of a step moves with each number, in its prior's widths, N × K.
        errors: Logarithm of predicted over measured, N.
        weight: What each run counts for, N.
        at: The efficiency, in widths from its prior, K.
    """

    slopes: Floats
    errors: Floats
    weight: Floats
    at: Floats

    def without(self, out: np.ndarray) -> tuple[Floats, Floats]:
        """Where the efficiency moves without some runs, and its covariance then.

        What calibration minimises is minimised again, by least squares that are weighed anew (IRLS).
        """
        slopes, errors, weight = self.slopes[~out], self.errors[~out], self.weight[~out]
        moved = np.zeros_like(self.at)
        for _ in range(ROUNDS):
            scaled = (errors + slopes @ moved) / TOLERANCE
            pull = weight / MODEL_ERROR**2 / np.sqrt(1 + scaled**2)
            covariance = np.linalg.inv(np.eye(len(moved)) + slopes.T @ (slopes * pull[:, None]))
            moved = np.minimum(-covariance @ (self.at + slopes.T @ (pull * errors)), _CEILING - self.at)
        return moved, covariance


def _slopes(needed: Terms, efficiency: Efficiency) -> tuple[Floats, Floats]:
    """Seconds of a step, N, and by how much their logarithm moves with each number, in its prior's widths, N × K."""
    centre = efficiency.logs()
    base = times(needed, efficiency).step
    columns = []
    for place, width in enumerate(_WIDTHS):
        moved = centre.copy()
        moved[place] -= _STEP * width
        columns.append(np.log(base / times(needed, Efficiency.of_logs(moved)).step) / _STEP)
    return base, np.stack(columns, axis=1)


def _variance(slopes: Floats, covariance: Floats) -> Floats:
    return np.asarray(np.einsum("nk,kl,nl->n", slopes, covariance, slopes) + MODEL_ERROR**2)
