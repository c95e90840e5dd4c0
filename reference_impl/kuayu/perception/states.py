"""Health states in order, from best to worst."""

from collections.abc import Iterable

from kuayu_schemas.models import HealthState

FROM_BEST = (
    HealthState.healthy,
    HealthState.degraded,
    HealthState.unknown,
    HealthState.faulty,
    HealthState.offline,
)
"""A part of which nothing is known is worse than one that works and better than one that does not."""


def worst(states: Iterable[HealthState]) -> HealthState:
    """Worst of the states, of which there must be one at least."""
    return max(states, key=FROM_BEST.index)
