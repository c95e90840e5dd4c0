"""Operations of resilience, and what draws parts that requests of several of them have.

Bandwidths have no round numbers that would hide a slip.
"""

from random import Random
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from kuayu_schemas import documents

SHARDS, COLLECTIVES = "/v1/shard-plans", "/v1/collectives"
BACKUPS, FAILOVERS = "/v1/backup-plans", "/v1/failover-plans"
ADJUSTMENTS = "/v1/adjustments"

GIGA = 1e9


def bandwidth(chance: Random, least: float, most: float) -> float:
    """A bandwidth between two, given in Gbit/s; in whole bit/s."""
    return float(round(chance.uniform(least, most) * GIGA))


def measured_link(
    chance: Random,
    ends: tuple[str, str],
    gigabits: tuple[float, float],
    seconds: tuple[float, float],
    intervals: int,
    **members: Any,
) -> "documents.MeasuredLink":
    """A link whose bandwidth was measured over intervals, within ±30 % of a level.

    Args:
        chance: What is drawn from.
        ends: Source and target.
        gigabits: Least and greatest level, Gbit/s.
        seconds: Least and greatest latency.
        intervals: How many were measured.
        members: What is otherwise.
    """
    level = chance.uniform(*gigabits) * GIGA
    link = {
        "source": ends[0],
        "target": ends[1],
        "latency": round(chance.uniform(*seconds), 6),
        "bandwidths": [float(round(level * chance.uniform(0.7, 1.3))) for _ in range(intervals)],
        **members,
    }
    return cast("documents.MeasuredLink", link)
