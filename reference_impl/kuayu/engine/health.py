"""Health by the checks that a host can make of a device.

The score is the share of the checks that were passed, the state the worst that a failed check means. No check, no
score, and the state is ``unknown``: silence is not health.
"""

from collections.abc import Mapping
from typing import Any, Final

from kuayu_schemas.models import HealthState

SEVERITY: Final = (HealthState.healthy, HealthState.degraded, HealthState.faulty)
"""From best to worst, of the states that a check can mean."""


def health(checks: Mapping[HealthState, bool | None]) -> dict[str, Any]:
    """Measures ``health_state`` and ``health_score``.

    Args:
        checks: For each state that a failed check means, whether the check was passed; None where it could not be made.
    """
    made = {state: passed for state, passed in checks.items() if passed is not None}
    if not made:
        return {"health_state": HealthState.unknown}
    failed = [state for state, passed in made.items() if not passed]
    return {
        "health_state": max(failed, key=SEVERITY.index, default=HealthState.healthy),
        "health_score": (len(made) - len(failed)) / len(made),
    }
