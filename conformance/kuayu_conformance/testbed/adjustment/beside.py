"""What baselines make of a window, which follows from its seed alone; found once in a process."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kuayu_conformance.memory import Memory
from kuayu_conformance.testbed.adjustment.baselines import ADJUSTERS
from kuayu_conformance.testbed.adjustment.run import Outcome, play
from kuayu_conformance.testbed.adjustment.scores import Score, Yardstick
from kuayu_conformance.testbed.adjustment.world import World


@dataclass(frozen=True, slots=True)
class Beside:
    """What a baseline did in a window, and what that comes to."""

    outcome: Outcome
    score: Score


_KNOWN: Memory[Mapping[str, Beside]] = Memory(100)
"""By the seed of the window; those of a full run, some tens of kB each."""


def beside(world: World, yardstick: Yardstick) -> Mapping[str, Beside]:
    """All baselines in a window, by name.

    Args:
        world: The window, as it was drawn.
        yardstick: Of the same window.
    """

    def found() -> Mapping[str, Beside]:
        outcomes = {name: play(world, adjuster) for name, adjuster in ADJUSTERS.items()}
        return MappingProxyType({name: Beside(outcome, yardstick.score(outcome)) for name, outcome in outcomes.items()})

    return _KNOWN.of(world.seed, found)
