"""Quotients of totals over windows that were drawn, with bounds.

Source: W. G. Cochran, "Sampling Techniques", 3rd ed. (1977), sections 6.3 to 6.5 and 6.10: the ratio of two totals, its
variance by linearisation, strata apart. It is taken of the logarithm, as quotients of products are then no other case
and no bound falls below zero. Degrees of freedom over strata: F. E. Satterthwaite, Biometrics Bulletin 2 (1946)
110-114.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, fsum, inf, log, sqrt

from scipy.special import stdtrit

Totals = Sequence[Sequence[float]]
"""Some figures, each with its value in every window."""


@dataclass(frozen=True)
class Stratum:
    """Windows of one kind.

    Attributes:
        over: Figures whose totals are multiplied.
        under: Figures by whose totals that is divided; of the same windows in the same order.
    """

    over: Totals
    under: Totals


@dataclass(frozen=True)
class _BoundedFigure(ABC):
    """A figure with its standard error, by which it has one-sided bounds (Student's)."""

    estimate: float
    error: float
    freedom: float
    n: int

    def upper(self, level: float) -> float:
        """One-sided upper bound that is wrong with probability ``level``."""
        return self._away(level, 1.0)

    def lower(self, level: float) -> float:
        """One-sided lower bound, likewise; zero is the least."""
        return max(0.0, self._away(level, -1.0))

    @abstractmethod
    def _away(self, level: float, sign: float) -> float:
        """The bound above, or with a negative sign that below."""


@dataclass(frozen=True)
class Quotient(_BoundedFigure):
    """A quotient of totals: the geometric mean over strata.

    Attributes:
        estimate: The figure; infinite where a divisor is zero, zero where only the dividend is.
        error: Standard error of its logarithm; infinite where a stratum has a single window.
        freedom: Degrees of freedom of that.
        n: Windows.
    """

    def _away(self, level: float, sign: float) -> float:
        if not 0.0 < self.estimate < inf or self.error == 0.0:
            return self.estimate
        if self.error == inf:
            return inf if sign > 0 else 0.0
        away = -float(stdtrit(self.freedom, level)) * self.error
        return self.estimate * exp(sign * min(away, 700.0))


def quotient(strata: Sequence[Stratum]) -> Quotient:
    """The quotient over some strata, each counting the same.

    Raises:
        ValueError: There are no windows, figures of other lengths, or negative ones.
    """
    if not strata:
        raise ValueError("a quotient needs a stratum")
    logs, variances, freedoms, windows = zip(*map(_of_one, strata), strict=True)
    n = sum(windows)
    if inf in logs:
        return Quotient(inf, inf, 0.0, n)
    if -inf in logs:
        return Quotient(0.0, 0.0, 0.0, n)
    estimate, total = exp(fsum(logs) / len(strata)), fsum(variances)
    if total in {0.0, inf}:
        return Quotient(estimate, total, float(sum(freedoms)), n)
    freedom = total**2 / fsum(v * v / f for v, f in zip(variances, freedoms, strict=True) if v > 0.0)
    return Quotient(estimate, sqrt(total) / len(strata), freedom, n)


@dataclass(frozen=True)
class Average(_BoundedFigure):
    """The mean of quotients of windows that have nothing to do with each other.

    Attributes:
        estimate: The figure; infinite where one of them is.
        error: Its standard error; infinite where that of one of them is.
        freedom: Degrees of freedom of that (Satterthwaite).
        n: Windows.
    """

    def _away(self, level: float, sign: float) -> float:
        if self.estimate == inf or self.error == 0.0:
            return self.estimate
        if self.error == inf:
            return sign * inf
        return self.estimate - sign * float(stdtrit(self.freedom, level)) * self.error


def averaged(quotients: Sequence[Quotient]) -> Quotient | Average:
    """The mean of some quotients, each counting the same; of a single one, that one.

    Raises:
        ValueError: There are none.
    """
    if not quotients:
        raise ValueError("a mean needs a quotient")
    if len(quotients) == 1:
        return quotients[0]
    n = sum(quotient.n for quotient in quotients)
    if any(row.estimate == inf for row in quotients):
        return Average(inf, inf, 0.0, n)
    estimate = fsum(item.estimate for item in quotients) / len(quotients)
    variances = [(part.estimate * part.error) ** 2 if part.estimate else 0.0 for part in quotients]
    total = fsum(variances)
    if total in {0.0, inf}:
        return Average(estimate, sqrt(total), fsum(entry.freedom for entry in quotients), n)
    freedom = total**2 / fsum(v * v / part.freedom for v, part in zip(variances, quotients, strict=True) if v > 0.0)
    return Average(estimate, sqrt(total) / len(quotients), freedom, n)


def _of_one(stratum: Stratum) -> tuple[float, float, int, int]:
    """Logarithm of a stratum's quotient, its variance, degrees of freedom, windows."""
    figures = [*stratum.over, *stratum.under]
    n = len(figures[0]) if figures else 0
    if n == 0 or any(len(figure) != n for figure in figures) or min(map(min, figures)) < 0.0:
        raise ValueError("a stratum needs figures of one length, none of them below nought")
    over, under = [fsum(entry) for entry in stratum.over], [fsum(item) for item in stratum.under]
    if 0.0 in under:
        return inf, inf, 0, n
    if 0.0 in over:
        return -inf, 0.0, n - 1, n
    value = fsum(map(log, over)) - fsum(map(log, under))
    if n == 1:
        return value, inf, 0, n
    away = [
        n * fsum([window[i] / total for window, total in zip(stratum.over, over, strict=True)])
        - n * fsum([window[i] / total for window, total in zip(stratum.under, under, strict=True)])
        for i in range(n)
    ]
    middle = fsum(away) / n
    return value, fsum((row - middle) ** 2 for row in away) / (n - 1) / n, n - 1, n
