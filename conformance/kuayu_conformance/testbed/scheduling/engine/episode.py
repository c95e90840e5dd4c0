"""A policy in a world, in Python or compiled."""

from collections.abc import Sequence
from typing import Protocol

from kuayu_conformance.testbed.scheduling.engine.orders import Order, Refused
from kuayu_conformance.testbed.scheduling.engine.outcome import Gauges, Outcome
from kuayu_conformance.testbed.scheduling.engine.policy import Policy
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.engine.world import EPOCH


class AnyWorld(Protocol):
    """What :class:`.world.World` and the compiled world have in common; see there."""

    @property
    def now(self) -> float:
        """Seconds since the scenario began."""

    @property
    def over(self) -> bool:
        """Whether all jobs have been submitted and are finished."""

    def advance(self, until: float, seconds: float = EPOCH) -> View | None:
        """Let time pass to the next epoch at which a job is pending."""

    def obey(self, orders: Sequence[Order]) -> tuple[Refused, ...]:
        """Carry out orders in turn; those that could not be carried out."""

    def outcome(self) -> Outcome:
        """What has become of it by now."""

    def finished(self, first: int, beyond: int) -> bool:
        """Whether all jobs of some numbers are finished."""

    def pace(self, number: int) -> float:
        """Work a second that an unfinished job may be taken to go on with."""

    def gauges(self) -> Gauges:
        """How it stands, without what became of each job."""

    def play(self, policy: Policy, until: float, seconds: float) -> bool:
        """Let a policy decide until an instant, if the world knows how to do that by itself; whether it does."""


def play(world: AnyWorld, policy: Policy, until: float, seconds: float = EPOCH) -> None:
    """Let a policy decide at each epoch from now until an instant, or until all jobs are finished.

    Policies may take turns: one that warms a world up, then the one that is judged.

    Args:
        world: Goes on from where it is.
        policy: Is asked whenever a job is pending.
        until: Seconds since the scenario began.
        seconds: Between epochs.
    """
    if world.play(policy, until, seconds):
        return
    while (view := world.advance(until, seconds)) is not None:
        world.obey(policy.decide(view))
