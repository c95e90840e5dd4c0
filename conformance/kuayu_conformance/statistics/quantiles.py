"""Quantiles with bounds that hold whatever the distribution.

Source: H. A. David and H. N. Nagaraja, "Order Statistics", 3rd ed. (2003), section 7.1: the number of observations at
or below the q-quantile is binomial.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence

from kuayu_conformance.statistics.binomial import at_least
from kuayu_conformance.statistics.proportions import CONFIDENCE


def quantile(values: Sequence[float], q: float) -> float:
    """The smallest value that at least the share ``q`` of the values do not exceed.

    Raises:
        ValueError: There are no values.
    """
    if not values:
        raise ValueError("no values have no quantile")
    return sorted(values)[max(1, math.ceil(q * len(values))) - 1]


def quantile_upper_bound(values: Sequence[float], q: float, confidence: float = CONFIDENCE) -> float:
    """One-sided upper bound of the ``q``-quantile: the order statistic that lies above it with the confidence.

    Infinite where there are too few values for any to be one; 299 are needed for the 99th percentile.
    """
    n = len(values)
    below = bisect_left(range(n), True, key=lambda count: at_least(count + 1, n, q) <= 1 - confidence)
    return sorted(values)[below] if below < n else math.inf
