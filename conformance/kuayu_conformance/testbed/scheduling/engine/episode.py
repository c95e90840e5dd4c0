"""A policy in a world."""

from kuayu_conformance.testbed.scheduling.engine.policy import Policy
from kuayu_conformance.testbed.scheduling.engine.world import EPOCH, World


def play(world: World, policy: Policy, until: float, seconds: float = EPOCH) -> None:
    """Let a policy decide at each epoch from now until an instant, or until all jobs are finished.

    Policies may take turns: one that warms a world up, then the one that is judged.

    Args:
        world: Goes on from where it is.
        policy: Is asked whenever a job is pending.
        until: Seconds since the scenario began.
        seconds: Between epochs.
    """
    while (view := world.advance(until, seconds)) is not None:
        world.obey(policy.decide(view))
