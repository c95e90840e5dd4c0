"""Bounds for means of things that come in clusters.

Source: B. Efron, "Bootstrap methods: another look at the jackknife", The Annals of Statistics 7 (1979) 1-26; whole
clusters are drawn, as in A. C. Davison and D. V. Hinkley, "Bootstrap Methods and their Application" (1997), 3.8.
"""

import random
from collections.abc import Sequence
from math import ceil, fsum

from kuayu_conformance.statistics.proportions import CONFIDENCE

RESAMPLES = 4000


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


def _mean(drawn: Sequence[tuple[float, int]]) -> float:
    return fsum(total for total, _ in drawn) / sum(count for _, count in drawn)
