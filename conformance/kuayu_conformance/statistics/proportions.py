"""Exact bounds for a proportion.

Source: C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
binomial", Biometrika 26 (1934) 404-413, in the form with quantiles of the beta distribution.
"""

CONFIDENCE = 0.95
"""One-sided confidence of every bound in a report."""


def proportion_lower_bound(successes: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """Largest p that ``successes`` or more of ``trials`` refute at the one-sided confidence; nought without trials.

    Raises:
        ValueError: The counts contradict each other.
    """
    _check(successes, trials)
    if successes == 0:
        return 0.0
    from scipy.special import betaincinv

    return float(betaincinv(successes, trials - successes + 1, 1 - confidence))


def proportion_upper_bound(successes: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """Smallest p that ``successes`` or fewer of ``trials`` refute at the one-sided confidence; one without trials.

    Raises:
        ValueError: The counts contradict each other.
    """
    _check(successes, trials)
    return 1.0 - proportion_lower_bound(trials - successes, trials, confidence)


def _check(successes: int, trials: int) -> None:
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials")
