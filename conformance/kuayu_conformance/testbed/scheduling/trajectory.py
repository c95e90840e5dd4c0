"""A run as it goes: how it stands at instants, and who held what in the end."""

from dataclasses import dataclass

from kuayu_conformance.testbed.scheduling.engine.outcome import Gauges, Outcome
from kuayu_conformance.testbed.scheduling.engine.view import Policy
from kuayu_conformance.testbed.scheduling.engine.world import play
from kuayu_conformance.testbed.scheduling.scenarios import Scenario


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A run.

    Attributes:
        scenario: Where it was.
        policy: Who decided.
        frames: How it stood, from the begin of the scenario on; at least two.
        outcome: What had become of it at the end.
    """

    scenario: Scenario
    policy: str
    frames: tuple[Gauges, ...]
    outcome: Outcome


def recorded(scenario: Scenario, policy: Policy, name: str, step: float = 600.0) -> Trajectory:
    """Let a policy decide up to the end of the window, and watch.

    Watching changes nothing.

    Args:
        scenario: Where.
        policy: A new one.
        name: What it is called.
        step: Seconds between frames, a whole number of minutes.
    """
    world, timing = scenario.world(), scenario.timing
    frames = [world.gauges()]
    while world.now < timing.end and not world.over:
        play(world, policy, min(world.now + step, timing.end))
        frames.append(world.gauges())
    return Trajectory(scenario, name, tuple(frames), world.outcome())
