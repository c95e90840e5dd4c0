"""Bounds as clause com-05-conformance defines them, without a library of statistics.

- Quantile: the smallest value that at least the share of the values do not exceed.
- Bound by order statistics: the value of rank k + 1, with k the least number for which a binomial variable of so many
  trials and of the quantile's level is k or less with 95 %; infinite where there is no such value.
- Bootstrap: 4 000 resamples of as many clusters as there are, each the one of number ⌊u · clusters⌋, with u the next
  fraction of Python's ``random.Random(seed)``; of the resampled figures in order that of rank ⌈0.95 · 4 000⌉ is the
  upper bound, and the lower bound of a mean is the upper bound of the mean of its negatives, negated.
- Figures are printed with nine significant digits.
"""

import random
from collections.abc import Sequence
from itertools import accumulate
from math import ceil, exp, floor, fsum, inf, isfinite, lgamma, log, log10

CONFIDENCE = 0.95
RESAMPLES = 4000


def printed(value: float) -> float:
    """A figure as a report has it: nine significant digits."""
    if value == 0.0 or not isfinite(value):
        return value
    return round(value, 8 - floor(log10(abs(value))))


def quantile(values: Sequence[float], level: float) -> float:
    """The smallest of the values that at least the share ``level`` of them do not exceed."""
    return sorted(values)[max(1, ceil(level * len(values))) - 1]


def quantile_upper(values: Sequence[float], level: float) -> float:
    """One-sided upper bound of a quantile by order statistics."""
    n = len(values)
    logs = lgamma(n + 1), log(level), log(1.0 - level)
    chances = (exp(logs[0] - lgamma(k + 1) - lgamma(n - k + 1) + k * logs[1] + (n - k) * logs[2]) for k in range(n + 1))
    rank = next((k for k, upto in enumerate(accumulate(chances)) if upto >= CONFIDENCE), n) + 1
    return sorted(values)[rank - 1] if rank <= n else inf


def mean(clusters: Sequence[Sequence[float]]) -> float:
    """Mean over all members of all clusters."""
    return fsum(value for cluster in clusters for value in cluster) / sum(map(len, clusters))


def mean_upper(clusters: Sequence[Sequence[float]], seed: str) -> float:
    """One-sided upper bound of that mean, clusters drawn whole."""
    chance, count = random.Random(seed), len(clusters)
    resampled = sorted(mean([clusters[int(chance.random() * count)] for _ in range(count)]) for _ in range(RESAMPLES))
    return resampled[ceil(CONFIDENCE * RESAMPLES) - 1]


def mean_lower(clusters: Sequence[Sequence[float]], seed: str) -> float:
    """One-sided lower bound of it."""
    return 0.0 - mean_upper([[-value for value in cluster] for cluster in clusters], seed)
