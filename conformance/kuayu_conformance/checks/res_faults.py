"""What can be wrong with a request of resilience that is right but for one thing (RES-013)."""

from dataclasses import dataclass
from typing import Any

UNKNOWN, INVALID = "unknown-reference", "invalid-body"
NOWHERE = "nowhere"


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a request.

    Attributes:
        what: In words.
        problem: What it calls for.
        pointer: The place that is to be named.
        within: Whether a place within it may be named, too.
        values: What is put where.
    """

    what: str
    problem: str
    pointer: str
    within: bool
    values: dict[str, Any]
