"""Looking at data more than once, at times fixed beforehand, without erring more often.

Sources: K. K. G. Lan and D. L. DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70 (1983)
659-663, with their spending function of the kind of P. C. O'Brien and T. R. Fleming, Biometrics 35 (1979) 549-556; the
recursion is that of P. Armitage, C. K. McPherson and B. C. Rowe, J. R. Stat. Soc. A 132 (1969) 235-244. For data that
are not normal the nominal levels are taken over: C. Jennison and B. W. Turnbull, "Group Sequential Methods" (2000),
section 3.8.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import sqrt
from typing import Any

from kuayu_conformance.statistics.rounding import rounded

_FARTHEST = 8.0
"""Standard deviations beyond which nothing is looked for."""
_STEPS = 2000


def spent(level: float, share: float) -> float:
    """Part of a one-sided level that may be spent once a share of the planned sample has been seen.

    ``2 - 2 Φ(z / √share)`` with ``z`` the ``1 - level / 2`` quantile: little at first, all of it in the end.

    Raises:
        ValueError: The share is not in (0, 1].
    """
    from scipy.special import ndtr, ndtri

    if not 0.0 < share <= 1.0:
        raise ValueError(f"a look at {share} of the planned sample")
    return float(2.0 * ndtr(ndtri(level / 2.0) / sqrt(share)))


@lru_cache(256)
def nominal_levels(level: float, looks: tuple[int, ...]) -> tuple[float, ...]:
    """Level of each look's own test, so that all looks together reject a true hypothesis with ``level`` at most.

    Args:
        level: One-sided, of all looks together.
        looks: Sample sizes at which it is looked, in order; the last is the planned one. One look has all of the level.

    Raises:
        ValueError: They are not in order, or there are none.
    """
    if not looks or list(looks) != sorted(set(looks)) or looks[0] < 1:
        raise ValueError(f"looks at {looks}")
    shares = [look / looks[-1] for look in looks]
    levels: list[float] = []
    before: _Path | None = None
    already = 0.0
    for share in shares:
        due = spent(level, share) - already
        already += due
        bound = _boundary(before, share, due)
        levels.append(rounded(_above(bound / sqrt(share))))
        before = _stayed(before, share, bound)
    return tuple(levels)


_Path = tuple[float, Any, Any]
"""Of a Brownian motion that has crossed no boundary yet: the share, where it may be, and its density times the step."""


def _boundary(before: _Path | None, share: float, due: float) -> float:
    """Where the motion is with probability ``due`` at or above at a share, having crossed nothing before."""
    from scipy.optimize import brentq

    far = _FARTHEST * sqrt(share)
    return float(brentq(lambda bound: _crossing(before, share)(bound) - due, -far, far, xtol=1e-13))


def _crossing(before: _Path | None, share: float) -> Callable[[float], float]:
    """Probability of being at or above a boundary at a share for the first time."""
    if before is None:
        return lambda bound: _above(bound / sqrt(share))
    from scipy.special import ndtr

    since, places, weights = before
    spread = sqrt(share - since)
    return lambda bound: float(weights @ ndtr((places - bound) / spread))


def _stayed(before: _Path | None, share: float, bound: float) -> _Path:
    """The motion below the boundary, on a grid with the weights of Simpson's rule."""
    import numpy as np

    places = np.linspace(-_FARTHEST * sqrt(share), bound, _STEPS + 1)
    simpson = np.full(_STEPS + 1, 2.0)
    simpson[1::2] = 4.0
    simpson[[0, -1]] = 1.0
    simpson *= (places[1] - places[0]) / 3.0
    if before is None:
        density = _normal(places, share)
    else:
        since, earlier, weights = before
        density = np.array([weights @ _normal(place - earlier, share - since) for place in places])
    return share, places, simpson * density


def _normal(away: Any, variance: float) -> Any:
    import numpy as np

    return np.exp(-0.5 * away * away / variance) / sqrt(2.0 * np.pi * variance)


def _above(score: float) -> float:
    from scipy.special import ndtr

    return float(ndtr(-score))


def looks_within(looks: Sequence[int], sample: int) -> tuple[int, ...]:
    """Looks that a sample of that size allows; the sample itself where it is smaller than the first."""
    return tuple(look for look in looks if look <= sample) or (sample,)
