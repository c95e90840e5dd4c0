"""An allocation as it stands: what is asked, what was answered, and what follows about who may hold it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from kuayu.service.allocating.steps import Json, Step
from kuayu_schemas.models import ActionKind, ActionPhase, AllocationPhase

FINISHED = frozenset({AllocationPhase.refused, AllocationPhase.released})
"""Phases that lead nowhere else."""


MAYBE_HELD = frozenset(AllocationPhase) - FINISHED - {AllocationPhase.preparing, AllocationPhase.unknown}
"""Phases in which domains may hold something for good."""


@dataclass(frozen=True, slots=True)
class Standing:
    """An allocation as it stands.

    Attributes:
        spec: What is wanted, class Allocation.
        created: When it was first written, in milliseconds.
        phase: Where it stands.
        steps: What domains were asked to do, attempt by attempt.
        attempt: Which of its placements is being tried or held.
        deadline: Until when answers are waited for, in milliseconds; None where nothing depends on time.
        withdrawn: Whether nobody wants it any more, so that no alternative is tried.
        reason: Why it stands so, in words.
        held: What is held, class JobPlacement; None unless all of it was committed.
    """

    spec: Mapping[str, Any]
    created: int
    phase: AllocationPhase
    steps: tuple[Step, ...] = ()
    attempt: int = 0
    deadline: int | None = None
    withdrawn: bool = False
    reason: str | None = None
    held: Json | None = None

    @property
    def may_be_held(self) -> bool:
        """Whether a domain may run the job: it was asked to commit, and has not said since that it let go.

        Nothing else is known of a domain that cannot be heard; it goes on as long as it likes.
        """
        return any(True for _ in self.maybe_held())

    def maybe_held(self) -> Iterator[Step]:
        """Commits by which a domain may run the job."""
        gone = {step.about for step in self.steps if step.lets_go and step.outcome is not None}
        for step in self.steps:
            if step.kind is ActionKind.reserve and step.phase is ActionPhase.commit and step.action not in gone:
                yield step

    @property
    def ready(self) -> bool:
        """Whether all domains have promised, so that it waits for its turn to commit."""
        promised = not self.unanswered(ActionPhase.prepare, ActionKind.reserve)
        return self.phase is AllocationPhase.preparing and promised and not self.may_be_held

    def current(self, phase: ActionPhase) -> list[Step]:
        """Steps of a phase of the reservation that is being tried or held."""
        return [step for step in self._of_attempt(ActionKind.reserve) if step.phase is phase]

    def unanswered(self, phase: ActionPhase, kind: ActionKind) -> bool:
        """Whether a step of a phase has not been answered, in the present attempt."""
        return any(step.phase is phase and step.outcome is None for step in self._of_attempt(kind))

    def step(self, action: str, phase: ActionPhase) -> Step | None:
        """A step by what no other has, or None."""
        return next((step for step in self.steps if step.key == (action, phase)), None)

    def with_steps(self, steps: Iterable[Step]) -> Self:
        """The allocation with steps added, or put in the place of what they were."""
        held = {step.key: step for step in self.steps} | {step.key: step for step in steps}
        return replace(self, steps=tuple(held.values()))

    def _of_attempt(self, kind: ActionKind) -> Iterator[Step]:
        return (step for step in self.steps if step.attempt == self.attempt and step.kind is kind)
