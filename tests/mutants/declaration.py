"""What a mutant is, and how one is declared."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from miniature.conversion import Conversion
from miniature.graph import Graphs
from miniature.groups import Groups
from miniature.indices import Indices
from miniature.otlp import Otlp
from miniature.plans import Plans
from miniature.scraping import Scraping
from miniature.series import Stepped
from miniature.service import Miniature
from miniature.states import States
from miniature.streams import Streams

from kuayu_schemas import registers
from kuayu_schemas.models import Profile
from mutants.oracle import Oracle

Service = type[Miniature]

CHECKED = tuple(row for row in registers.requirements().requirements if row.check)
"""Requirements that have a check."""

SLICES: tuple[tuple[tuple[type, ...], frozenset[str]], ...] = (
    ((Oracle, Plans, Groups, Indices), frozenset(row.id for row in CHECKED if row.profile is Profile.IDX)),
    ((Scraping,), frozenset({"MET-002", "MET-010"})),
    ((Conversion,), frozenset({"MET-001", "MET-002", "MET-003", "MET-008", "MET-010", "MET-021"})),
    ((Otlp,), frozenset({"MET-021"})),
    ((Stepped,), frozenset({"MET-020"})),
    ((Graphs, Streams), frozenset({"MET-017", "MET-018", "MET-019", "MET-023"})),
)
"""What answers some operations and nothing else, with the requirements whose checks call them beside those of COM."""

PLAYED = frozenset({"MET-004", "MET-005", "MET-006", "MET-016", "MET-022"})
"""Requirements whose check plays the telemetry of five domains for more than a minute."""


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
    def requirements(self) -> frozenset[str]:
        """Requirements that it can be held against.

        What replaces only methods that some operations call, and nobody else, answers every other request as the
        miniature does. It is held against COM and the requirements on those operations.
        """
        found = frozenset(row.id for row in CHECKED)
        for kinds, its in SLICES:
            behind = {name for kind in kinds for name in vars(kind)}
            beyond = {name for kind in Miniature.__mro__ if kind not in kinds for name in vars(kind)}
            if self._replaced and self._replaced <= behind - beyond:
                found = its | {row.id for row in CHECKED if row.profile is Profile.COM}
        return found | PLAYED if self.plays else found - PLAYED

    @property
    def plays(self) -> bool:
        """Whether the telemetry of five domains is played before it, for it differs in what makes states."""
        return bool(self.breaks & PLAYED) or self.control_for in PLAYED or bool(self._replaced & vars(States).keys())

    @property
    def _replaced(self) -> set[str]:
        """Names of what it does otherwise than the miniature."""
        own = [kind for kind in self.service.__mro__ if kind.__module__.startswith("mutants.") and kind is not Oracle]
        members = ((name, value) for kind in own for name, value in vars(kind).items() if hasattr(Oracle, name))
        return {name for name, value in members if callable(value) or not name.startswith("__")}


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
