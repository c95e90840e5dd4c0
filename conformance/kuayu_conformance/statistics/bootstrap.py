"""Bounds for means of things that come in clusters.

Source: B. Efron, "Bootstrap methods: another look at the jackknife", The Annals of Statistics 7 (1979) 1-26; whole
clusters are drawn, as in A. C. Davison and D. V. Hinkley, "Bootstrap Methods and their Application" (1997), 3.8.
"""

import random
from collections.abc import Sequence
from math import ceil, fsum

from kuayu_conformance.statistics.proportions import CONFIDENCE

RESAMPLES = 4000


def clustered_mean(clusters: Sequence[Sequence[float]]) -> float:
    """Mean over all members of the clusters.

    Raises:
        ZeroDivisionError: There is none.
    """
    values = [value for cluster in clusters for value in cluster]
    return sum(values) / len(values)


def mean_upper_bound(clusters: Sequence[Sequence[float]], seed: str, confidence: float = CONFIDENCE) -> float:
    """One-sided upper bound of the mean over all members of the clusters, by the percentile of bootstrap means.

    ``seed`` fixes what is drawn: Python's own generator draws fractions, a sequence that no version changes.

    Raises:
        ValueError: There is no cluster, or one is empty.
    """
    if not clusters or not all(clusters):
        raise ValueError("a bootstrap needs clusters that are not empty")
    chance = random.Random(seed)  # noqa: S311 - reproducible by design, not secret
    sums = [(fsum(cluster), len(cluster)) for cluster in clusters]
    means = sorted(_mean([sums[int(chance.random() * len(sums))] for _ in sums]) for _ in range(RESAMPLES))
    return means[ceil(confidence * RESAMPLES) - 1]


def mean_lower_bound(clusters: Sequence[Sequence[float]], seed: str, confidence: float = CONFIDENCE) -> float:
    """One-sided lower bound, likewise."""
    return 0.0 - mean_upper_bound([[-value for value in cluster] for cluster in clusters], seed, confidence)


def ratio_lower_bound(pairs: Sequence[tuple[float, float]], seed: str, confidence: float = CONFIDENCE) -> float:
    """One-sided lower bound of the ratio of two totals over clusters; each is its part and its whole.

    Raises:
        ValueError: There is no cluster, or one has no whole.
    """
    if not pairs or min(whole for _, whole in pairs) <= 0.0:
        raise ValueError("a ratio needs clusters with something in them")
    chance = random.Random(seed)  # noqa: S311 - reproducible by design, not secret
    drawn = ([pairs[int(chance.random() * len(pairs))] for _ in pairs] for _ in range(RESAMPLES))
    ratios = sorted(fsum(part for part, _ in entry) / fsum(whole for _, whole in entry) for entry in drawn)
    return ratios[RESAMPLES - ceil(confidence * RESAMPLES)]


def _mean(drawn: Sequence[tuple[float, int]]) -> float:
    return fsum(total for total, _ in drawn) / sum(count for _, count in drawn)
