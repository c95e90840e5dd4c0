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
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials")
    if successes == 0:
        return 0.0
    from scipy.special import betaincinv

    return float(betaincinv(successes, trials - successes + 1, 1 - confidence))
