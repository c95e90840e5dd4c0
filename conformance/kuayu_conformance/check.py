"""What a check is."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

from kuayu_conformance.answers import Answer
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding
from kuayu_conformance.transcript import Request

Observation = TypeVar("Observation")

Exchanges = tuple[tuple[str, Request, Answer], ...]
"""Every exchange of a run: the episode that it belongs to, the request, the answer."""


@dataclass(frozen=True)
class Check(Generic[Observation]):
    """How one or more requirements are tested.

    Attributes:
        name: Name of its episode in transcripts; it stays, wherever the module lies.
        requirements: Identifiers of the requirements that ``judge`` speaks about.
        observe: Drives the target and returns a frozen observation; knows nothing of thresholds.
        judge: Pure function from the observation to findings; the same observation gives the same findings.
        recorded_times: Whether the verdict rests on the wall clock, so that a replay judges the recorded times.
        background: Whether the episode mostly waits, so that others run meanwhile.
        heavy: Whether it keeps the target or this machine busy, so that it is made when those in the background are
            through: what they time is not to be what this one costs.
        measurements: Whether the check uses tables of measurements.
        traces: Names of public originals that the check uses in a full run where they are at hand.
        summary: What it does, in a line; empty where its module has no other check, whose first line says it.
    """

    name: str
    requirements: tuple[str, ...]
    observe: Callable[[Episode], Observation]
    judge: Callable[[Observation], Iterable[Finding]]
    recorded_times: bool = False
    background: bool = False
    heavy: bool = False
    measurements: bool = False
    traces: tuple[str, ...] = ()
    summary: str = ""


@dataclass(frozen=True)
class CheckEntry:
    """A check as the list of all has it: what is known of it before its module is imported.

    Attributes:
        name: Its name.
        module: Its module beneath ``kuayu_conformance.checks``.
        constant: Its name there; a module has one ``CHECK``, and may have others beside it that are of its subject.
        needs: Profiles and sub-profiles whose operations the check drives, where that is not the profile of its
            requirements; one of them is enough. Common behaviour shows only where there is something to write or to
            decide.
        long: Whether it takes longer than a smoke run has, which leaves it out.
        longer: Requirements that a smoke run has no time to decide, of a check that it makes for others: it asks less.
        extra: Extra (``kuayu_conformance.run.plan``) without which its module cannot be imported; empty where none is
            needed.
    """

    name: str
    module: str
    constant: str = "CHECK"
    needs: tuple[str, ...] = ()
    long: bool = False
    longer: tuple[str, ...] = ()
    extra: str = ""

    @property
    def path(self) -> str:
        """What the register gives for each of its requirements: its module, and its name there unless that is CHECK."""
        module = f"kuayu_conformance.checks.{self.module}"
        return module if self.constant == "CHECK" else f"{module}.{self.constant}"

    def load(self) -> Check[Any]:
        """The check, whose module is imported when this is first asked.

        Raises:
            ModuleNotFoundError: The extra is not installed.
        """
        check: Check[Any] = getattr(import_module(f"kuayu_conformance.checks.{self.module}"), self.constant)
        return check


@dataclass(frozen=True)
class RunCheck:
    """A check over every exchange of the run, made when all episodes have ended.

    Attributes:
        name: Its name.
        requirements: Identifiers of the requirements that ``judge`` speaks about.
        judge: Pure function from the exchanges to findings, each about one exchange: of the exchanges in parts, one
            after the other, the same is found.
    """

    name: str
    requirements: tuple[str, ...]
    judge: Callable[[Exchanges], Iterable[Finding]]
