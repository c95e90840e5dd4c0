"""The 95th percentile of few figures, and a bound on it that supposes nothing about their law."""

import math
from collections.abc import Sequence

QUANTILE, CONFIDENCE = 0.95, 0.95


def percentile(figures: Sequence[float]) -> tuple[float, float | None]:
    """The 95th percentile, and its one-sided upper bound by order statistics.

    The r-th of n figures is at least as great as the percentile with the probability that fewer than r of them lie
    below it, which is binomial (David and Nagaraja, Order Statistics, 2003, 7.1).

    Args:
        figures: At least one.

    Returns:
        The figure at rank ⌈0.95 n⌉, and the bound at a confidence of 95 %; None with fewer than 59 figures, of which
        not even the greatest is one.
    """
    ordered, n = sorted(figures), len(figures)
    estimate = ordered[math.ceil(QUANTILE * n) - 1]
    below = 0.0
    for rank in range(1, n + 1):
        below += math.comb(n, rank - 1) * QUANTILE ** (rank - 1) * (1 - QUANTILE) ** (n - rank + 1)
        if below >= CONFIDENCE:
            return estimate, ordered[rank - 1]
    return estimate, None
