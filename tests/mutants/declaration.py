"""What a mutant is, and how one is declared."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from miniature.groups import Groups
from miniature.indices import Indices
from miniature.plans import Plans
from miniature.service import Miniature

from mutants.oracle import Oracle

Service = type[Miniature]

BEHIND_THE_INDEX = (Oracle, Plans, Groups, Indices)
"""What answers the operations of profile IDX, and nothing else does it answer."""


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

    @property
    def profiles(self) -> tuple[str, ...]:
        """Profiles that it can be wrong in; none of them is left out where this is empty.

        What replaces only methods that the operations of profile IDX call, and nobody else, answers every other request
        as the miniature does.
        """
        own = [kind for kind in self.service.__mro__ if kind.__module__.startswith("mutants.") and kind is not Oracle]
        members = ((name, value) for kind in own for name, value in vars(kind).items() if hasattr(Oracle, name))
        replaced = {name for name, value in members if callable(value) or not name.startswith("__")}
        behind = {name for kind in BEHIND_THE_INDEX for name in vars(kind)}
        beyond = {name for kind in Miniature.__mro__ if kind not in BEHIND_THE_INDEX for name in vars(kind)}
        return ("COM", "IDX") if replaced and replaced <= behind - beyond else ()


def served(service: Service) -> Service:
    """The implementation with figures of profile IDX that pass, unless it has its own."""
    return service if issubclass(service, Oracle) else type(service.__name__, (service, Oracle), {})


DECLARED: dict[str, Mutant] = {}
"""Every mutant whose module was imported, by name."""


def breaks(*requirements: str) -> Callable[[Service], Service]:
    """Declare a mutant: its name follows from the class's, what is wrong is the docstring."""
    return _declare(frozenset(requirements))


def near_miss(requirement: str, *others: str) -> Callable[[Service], Service]:
    """Declare a mutant that misses a threshold by little, and what else it cannot help breaking."""
    return _declare(frozenset({requirement, *others}), near_miss_of=requirement)


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
