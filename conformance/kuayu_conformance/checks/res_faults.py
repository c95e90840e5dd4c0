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
        instead: Another place that may be named as well as that one, or a place within it; none where it is empty.
    """

    what: str
    problem: str
    pointer: str
    within: bool
    values: dict[str, Any]
    instead: str = ""

    @property
    def where(self) -> str:
        """Places that may be named, in words."""
        first = f"{self.pointer} or a place within it" if self.within else self.pointer
        return first + (f", or {self.instead} or a place within it" if self.instead else "")

    def names(self, pointer: str) -> bool:
        """Whether that is one of them."""
        roots = [self.pointer] * self.within + [self.instead] * bool(self.instead)
        return pointer in {self.pointer, *roots} or any(pointer.startswith(f"{root}/") for root in roots)
