"""What domains exchange, how long that takes, and the share of the time that is left for computing."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Real = TypeVar("_Real", float, NDArray[np.float64])

_BITS = 8.0


def ring_bits(domains: int, gradient: float) -> float:
    """Bits that each domain sends to the next one when all of them sum up ``gradient`` bytes.

    The least possible is ``2 (D - 1) / D`` of them: P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for
    clusters of workstations", JPDC 69 (2009).
    """
    return 2.0 * (domains - 1) / domains * gradient * _BITS


def ring_latency(domains: int, round_trip: float) -> float:
    """Seconds that a ring takes for nothing: ``2 (D - 1)`` messages one after the other, each half a round trip."""
    return (domains - 1) * round_trip


def cut_bits(boundary: float) -> float:
    """Bits each way over a pipeline cut, which activations cross forwards and their gradients backwards."""
    return boundary / 2.0 * _BITS


def utilisation(inside: _Real, outside: _Real) -> _Real:
    """Share of computing if devices wait for every exchange: ``T_in / (T_in + T_out)``.

    S. Jaghouar et al., "INTELLECT-1 technical report", arXiv:2412.01152. Both in seconds, between two exchanges.
    """
    return inside / (inside + outside)


def overlapped_utilisation(step: float, period: float, exchange: float, overlap: float) -> float:
    """The same if an exchange hides behind part of a step: ``H t / (H t + max(0, T - β t))``.

    Args:
        step: Seconds of a step.
        period: Steps between exchanges.
        exchange: Seconds of an exchange.
        overlap: Share of a step behind which it hides.
    """
    return utilisation(period * step, max(0.0, exchange - overlap * step))


def bandwidth_for(share: float, step: float, period: float, bits: float, overlap: float) -> float:
    """Bits a second that exchanges of so many bits need for some share of computing, below one."""
    return bits / (period * step * (1.0 / share - 1.0) + overlap * step)
