"""How many nodes of a domain to keep as spares, by the chance that more fail within the time of a repair."""

import sys
from collections.abc import Mapping
from typing import Any

from scipy.special import pdtrc

MOST = 2**53
"""More nodes than any count has."""


def pool(domain: Mapping[str, Any], risk: float) -> dict[str, Any]:
    """The spares of one domain.

    Failures of many nodes that do not know of each other make a Poisson variable of those that are in repair, however
    long repairs last in particular (C. C. Sherbrooke, "METRIC: A multi-echelon technique for recoverable item control",
    1968, by a theorem of C. Palm).

    Args:
        domain: A ``BackupDomain``.
        risk: That may be run.

    Returns:
        A ``BackupPool``.
    """
    mean = expected(domain)
    spares = min(_fewest(mean, risk), domain["free"])
    return {
        "domain": domain["id"],
        "spares": spares,
        "risk": beyond(spares, mean),
        "price": min(spares * domain["price"], sys.float_info.max),
    }


def expected(domain: Mapping[str, Any]) -> float:
    """Nodes that fail within the repair time, on average; at most more than there can be."""
    repairs = min(domain["repair_time"] / domain["time_between_failures"], float(MOST))
    return min(float(domain["nodes"] * repairs), float(MOST))


def beyond(spares: int, mean: float) -> float:
    """Chance that a Poisson variable is greater than so many."""
    return min(max(float(pdtrc(float(spares), mean)), 0.0), 1.0) if mean > 0.0 else 0.0


def _fewest(mean: float, risk: float) -> int:
    """The least number that is exceeded with a chance of no more than ``risk``.

    Of no risk at all every number falls short, however small the chance is when it is worked out.
    """
    if mean == 0.0 or risk >= 1.0:
        return 0
    if risk <= 0.0:
        return MOST
    low, high = -1, MOST  # exceeded too often, and seldom enough
    while high - low > 1:
        middle = (low + high) // 2
        if beyond(middle, mean) <= risk:
            high = middle
        else:
            low = middle
    return high
