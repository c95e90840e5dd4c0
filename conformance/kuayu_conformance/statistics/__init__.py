"""Estimators and bounds. Each one-sided bound is fixed before a run; none is chosen by its outcome.

1. **Proportions.** Exact bounds: C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated
   in the case of the binomial", Biometrika 26 (1934) 404-413. Binomial probabilities are by the saddle point, whose
   terms stay small where factorials do not: C. Loader, "Fast and accurate computation of binomial probabilities"
   (2000). Tails are sums of them from the end that is far from the mean, where each term is a fraction of the one
   before.
2. **Quantiles.** Bounds hold whatever the distribution: the number of observations at or below the q-quantile is
   binomial (H. A. David and H. N. Nagaraja, "Order Statistics", 3rd ed. (2003), section 7.1).
3. **Means of what comes in clusters.** B. Efron, "Bootstrap methods: another look at the jackknife", The Annals of
   Statistics 7 (1979) 1-26; whole clusters are drawn, as in A. C. Davison and D. V. Hinkley, "Bootstrap Methods and
   their Application" (1997), 3.8.
4. **Several hypotheses at once.** The chance that any true one is rejected stays at the level: S. Holm, "A simple
   sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979) 65-70.
5. **Rounding** is by rule, so that reports are the same bytes on every machine.

All of it is plain Python, so that whoever tests COM and MET needs no numeric library; ``quotients`` needs SciPy, and is
imported by itself.
"""

import random
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from math import ceil, exp, floor, fsum, inf, isfinite, lgamma, log, log1p, log10, pi, sqrt

CONFIDENCE = 0.95
"""One-sided confidence of every bound in a report."""
LEVEL = 1.0 - CONFIDENCE
"""Of all hypotheses together."""
RESAMPLES = 4000
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
"""Coefficients of Stirling's series in odd powers of 1/n (NIST DLMF, 5.11.1)."""
_SERIES_FROM = 16
_NEAR = 0.1


def probability(k: int, n: int, p: float) -> float:
    """Probability of ``k`` successes in ``n`` trials that succeed with probability 0 < ``p`` < 1 each."""
    if k in {0, n}:
        return exp(n * (log(p) if k else log1p(-p)))
    away = _deviance(k, n * p) + _deviance(n - k, n * (1.0 - p))
    return exp(_stirling_error(n) - _stirling_error(k) - _stirling_error(n - k) - away) * sqrt(
        n / (2.0 * pi * k * (n - k))
    )


def at_least(k: int, n: int, p: float) -> float:
    """Probability of ``k`` successes or more in ``n`` trials that succeed with probability 0 < ``p`` < 1 each."""
    if k <= 0:
        return 1.0
    if k > n:
        return 0.0
    return _tail(k, n, p) if k > n * p else 1.0 - _tail(n - k + 1, n, 1.0 - p)


def _tail(k: int, n: int, p: float) -> float:
    """The same above the mean, where terms fall."""
    total, term, odds = 0.0, probability(k, n, p), p / (1.0 - p)
    while total + term > total:
        total += term
        term *= (n - k) / (k + 1) * odds
        k += 1
    return total


def _stirling_error(n: int) -> float:
    """Logarithm of n! over Stirling's formula for it."""
    if n < _SERIES_FROM:
        return lgamma(n + 1.0) - (n + 0.5) * log(n) + n - 0.5 * log(2.0 * pi)
    return sum(coefficient / float(n) ** (2 * place + 1) for place, coefficient in enumerate(_SERIES))


def _deviance(observed: float, expected: float) -> float:
    """``found · log(found / expected) + expected - found``, without cancellation where the two are near."""
    difference, both = observed - expected, observed + expected
    if abs(difference) >= _NEAR * both:
        return observed * log(observed / expected) - difference
    ratio = difference / both
    total, power, divisor = difference * ratio, 2.0 * observed * ratio, 3
    while True:
        power *= ratio * ratio
        more = total + power / divisor
        if more == total:
            return total
        total, divisor = more, divisor + 2


def proportion_lower_bound(successes: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """Largest p that ``successes`` or more of ``trials`` refute at the one-sided confidence; zero without trials.

    Raises:
        ValueError: The counts contradict each other.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials")
    if successes == 0:
        return 0.0
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        if at_least(successes, trials, middle) > 1 - confidence:
            high = middle
        else:
            low = middle
    return low


def quantile(values: Sequence[float], q: float) -> float:
    """The smallest value that at least the share ``q`` of the values do not exceed.

    Raises:
        ValueError: There are no values.
    """
    if not values:
        raise ValueError("no values have no quantile")
    return sorted(values)[max(1, ceil(q * len(values))) - 1]


def quantile_upper_bound(values: Sequence[float], q: float, confidence: float = CONFIDENCE) -> float:
    """One-sided upper bound of the ``q``-quantile: the order statistic that lies above it with the confidence.

    Infinite where there are too few values for any to be one; 299 are needed for the 99th percentile.
    """
    n = len(values)
    below = bisect_left(range(n), True, key=lambda count: at_least(count + 1, n, q) <= 1 - confidence)
    return sorted(values)[below] if below < n else inf


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
    means = sorted(_mean_of([sums[int(chance.random() * len(sums))] for _ in sums]) for _ in range(RESAMPLES))
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


def _mean_of(drawn: Sequence[tuple[float, int]]) -> float:
    return fsum(total for total, _ in drawn) / sum(count for _, count in drawn)


def stepped_down(rejects: Mapping[str, Callable[[float], bool]], level: float = LEVEL) -> dict[str, float]:
    """Level at which each hypothesis is tested in the end: its bound at that level tells whether it is rejected.

    All begin with an equal share of the level. Whatever is rejected leaves its share to those that are not.

    Args:
        rejects: Whether a test of its own rejects at a level; whoever does at one does at every higher one.
        level: Of all together.
    """
    levels: dict[str, float] = {}
    left = list(rejects)
    while left:
        share = level / len(left)
        gone = [name for name in left if rejects[name](share)]
        levels |= dict.fromkeys(gone or left, share)
        left = [name for name in left if name not in gone] if gone else []
    return levels


def rounded(value: float, digits: int = 9) -> float:
    """``value`` to so many significant digits; numeric libraries of different builds agree on that many."""
    if value == 0 or not isfinite(value):
        return float(value)
    return round(float(value), digits - 1 - floor(log10(abs(value))))
