"""Binomial probabilities in plain Python, so that whoever tests COM and MET needs no numeric library.

Probabilities are by the saddle point, whose terms stay small where factorials do not: C. Loader, "Fast and accurate
computation of binomial probabilities" (2000). Tails are sums of them from the end that is far from the mean, where each
term is a fraction of the one before.
"""

from math import exp, lgamma, log, log1p, pi, sqrt

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
