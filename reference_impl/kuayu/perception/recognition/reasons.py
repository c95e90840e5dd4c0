"""What a state was told from, for people: the plainest of the features that speak for it."""

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition import values as states
from kuayu.perception.recognition.features import OWN
from kuayu.perception.recognition.relations import RELATED
from kuayu.perception.recognition.values import REASONS, Flags, Floats

OF_REPORTS = {
    1: (states.DEGRADED, REASONS.index("reported as degraded")),
    3: (states.FAULTY, REASONS.index("reported as faulty")),
    4: (states.OFFLINE, REASONS.index("reported as offline")),
}
"""State and reason that follow from a reported health state, by its code; healthy and unknown say nothing."""

_NAMES = (*OWN, *RELATED)
_PLAIN = np.array(
    [
        REASONS.index("no accelerator works"),
        REASONS.index("accelerators work as usual"),
        REASONS.index("slower than usual"),
        REASONS.index("others of its family wait while it works"),
        REASONS.index("does not go on, with memory held"),
    ],
    np.int8,
)
_SLOWED = -0.15
"""Difference of logarithms at which a family is slower than usual."""

_PART = 0.01
"""Share of accelerators that is missing."""


def of_recognised(state: NDArray[np.int8], features: Floats) -> NDArray[np.int8]:
    """Positions in ``REASONS`` for states that were told from signals.

    Args:
        state: Positions in ``STATES``, shape (nodes,).
        features: Own features above those that need other nodes, (features, nodes).
    """
    reason = _PLAIN[state]

    def put(state_is: int, shows: Flags, phrase: str) -> None:
        reason[(state == state_is) & shows] = REASONS.index(phrase)

    def named(name: str) -> Floats:
        row: Floats = features[_NAMES.index(name)]
        return row

    slowed = np.minimum(named("family's usual of flow"), named("family's usual of power")) < _SLOWED
    put(states.BUSY, slowed, "waits for another node of its family")
    missing = (named("device share") < -_PART) | (named("allocatable share lost") > _PART)
    put(states.DEGRADED, missing, "a part of its accelerators is missing")
    put(states.DEGRADED, named("samples with faults in a minute") > 0.5, "faults that are mended come again")  # noqa: PLR2004 - one at least
    put(states.FAULTY, named("faults of seconds") > 0.1, "does not go on, with faults")  # noqa: PLR2004 - not long ago
    return reason
