"""Exact bounds for a proportion.

Source: C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
binomial", Biometrika 26 (1934) 404-413.
"""

from kuayu_conformance.statistics.binomial import at_least

CONFIDENCE = 0.95
"""One-sided confidence of every bound in a report."""


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
