"""How nodes stop, each with evidence that suffices whatever else is sent.

Who waits in a collective operation shows full utilisation at little power, the one that hangs shows none (see
``testbed.telemetry.facts``, *Waiting*).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.sparse.patterns import OPEN
from kuayu_conformance.testbed.sparse.values import Activity

WAITING = 0.18
"""Power of who waits busily, or of a kernel that never ends, between that at rest and the most."""

Stop = Callable[[Activity, int, Chance], None]


def with_faults(made: Activity, onset: int, chance: Chance) -> None:
    """Work stops with a fault that is counted once or stands; the memory stays held."""
    hang(made, onset, chance)
    if chance.fraction() < 0.5:  # noqa: PLR2004 - exporters of either kind
        made.faults[onset:] = 1.0
    else:
        made.faults[onset] = 1.0 + chance.below(3)


def hang(made: Activity, onset: int, _chance: Chance) -> None:
    """Work stops, and nothing counts it."""
    made.utilisation[onset:] = made.effort[onset:] = 0.0
    made.power[onset:] = OPEN
    made.works[onset:] = False
    made.fails[onset:] = True


def stuck(made: Activity, onset: int, _chance: Chance) -> None:
    """A kernel never ends: fully utilised, and nothing gets done."""
    made.utilisation[onset:], made.effort[onset:], made.power[onset:] = 1.0, 0.0, WAITING
    made.fails[onset:] = True


def reported(made: Activity, onset: int, _chance: Chance) -> None:
    """Somebody else knows, and reports the state of health."""
    made.fails[onset:] = True


def waiting(made: Activity, onset: int) -> None:
    """What the others of a family do from then on: they wait, busily."""
    made.utilisation[onset:], made.effort[onset:], made.power[onset:] = 1.0, 0.0, WAITING


@dataclass(frozen=True, slots=True)
class Trouble:
    """A way to stop.

    Attributes:
        stop: What it does to the activity.
        least: Measures that are sent at least, so that what is sent suffices.
        weight: How often it is drawn.
        together: Whether it befalls one of a family, for whom the others wait.
    """

    stop: Stop
    least: tuple[str, ...]
    weight: float
    together: bool = False


TROUBLES: dict[str, Trouble] = {
    "stops with a fault": Trouble(with_faults, ("accelerator_utilisation", "accelerator_memory_used", "faults"), 1.5),
    "stuck kernel": Trouble(stuck, ("accelerator_utilisation", "matrix_pipe_activity"), 1.2),
    "reported as faulty": Trouble(reported, ("health_state",), 0.8),
    "hangs while its family waits": Trouble(
        hang, ("accelerator_utilisation", "power", "accelerator_memory_used"), 0.8, together=True
    ),
}
"""How nodes stop."""

FAMILY = np.array([3, 4])
"""Nodes of a family."""
