"""What a state was told from, for people: the plainest of the features that speak for it."""

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition import values as states
from kuayu.perception.recognition.evidence import Evidence
from kuayu.perception.recognition.values import REASONS, Flags

OF_REPORTS = {
    1: (states.DEGRADED, "reported as degraded"),
    3: (states.FAULTY, "reported as faulty"),
    4: (states.OFFLINE, "reported as offline"),
}
"""State and reason that follow from a reported health state, by its code; healthy and unknown say nothing."""

_PLAIN = np.array(
    [
        REASONS.index("no accelerator works"),
        REASONS.index("accelerators work as usual"),
        REASONS.index("slower than usual"),
        REASONS.index("others of its family wait while it works"),
        REASONS.index("does not go on, and its family waits or works without it"),
    ],
    np.int8,
)
_SLOWED = -0.15
"""Difference of logarithms at which a family is slower than usual."""


def of_recognised(state: NDArray[np.int8], evidence: Evidence) -> NDArray[np.int8]:
    """Positions in ``REASONS`` for states that were told from signals; each names only what was received.

    Args:
        state: Positions in ``STATES``, shape (nodes,).
        evidence: What the states rest on.
    """
    reason = _PLAIN[state]

    def put(state_is: int, shows: Flags, phrase: str) -> None:
        reason[(state == state_is) & shows] = REASONS.index(phrase)

    named = evidence.named
    slowed = np.minimum(named("family's usual of flow"), named("family's usual of power")) < _SLOWED
    put(states.BUSY, slowed, "waits for another node of its family")
    put(states.DEGRADED, evidence.missing | evidence.withheld, "a part of its accelerators is missing")
    put(states.DEGRADED, evidence.faults, "faults that are mended come again")
    put(states.FAULTY, evidence.rests_with_memory, "does not go on, with memory held")
    put(states.FAULTY, evidence.spins, "utilised, but gets nothing done")
    put(states.FAULTY, evidence.faults, "does not go on, with faults")
    return reason
