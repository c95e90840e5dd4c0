"""What a mutant is, and how one is declared."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from miniature.service import Miniature

Service = type[Miniature]


@dataclass(frozen=True, slots=True)
class Mutant:
    """An implementation that is wrong in one way.

    Attributes:
        name: What it is served under.
        wrong: What is wrong with it, in a sentence.
        breaks: Requirements that do not pass because of it; all others do.
        service: The implementation.
        near_miss_of: Requirement whose threshold it misses by little; empty where it is not about a figure.
        control_for: Requirement whose threshold it comes near to and keeps; it breaks nothing.
    """

    name: str
    wrong: str
    breaks: frozenset[str]
    service: Service
    near_miss_of: str = ""
    control_for: str = ""


DECLARED: dict[str, Mutant] = {}
"""Every mutant whose module was imported, by name."""


def breaks(*requirements: str) -> Callable[[Service], Service]:
    """Declare a mutant: its name follows from the class's, what is wrong is the docstring."""
    return _declare(frozenset(requirements))


def near_miss(requirement: str) -> Callable[[Service], Service]:
    """Declare a mutant that misses a threshold by little."""
    return _declare(frozenset({requirement}), near_miss_of=requirement)


def control(requirement: str) -> Callable[[Service], Service]:
    """Declare an implementation that is as near to a threshold as a near-miss is, on the right side."""
    return _declare(frozenset(), control_for=requirement)


def _declare(broken: frozenset[str], *, near_miss_of: str = "", control_for: str = "") -> Callable[[Service], Service]:
    def declare(service: Service) -> Service:
        name = re.sub(r"(?<!^)(?=[A-Z])", "-", service.__name__).lower()
        if name in DECLARED:
            raise ValueError(f"two mutants are named {name}")
        wrong = " ".join((service.__doc__ or "").split())
        DECLARED[name] = Mutant(name, wrong, broken, service, near_miss_of, control_for)
        return service

    return declare
