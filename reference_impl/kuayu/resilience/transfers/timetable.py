"""Which slot each coming step from afar takes, and which slots take data of the local cache instead.

A slot takes local data where the data from afar are not expected in time by a cautious forecast, and as long as there
are local data; so slow links find steps that need none of them, and local data are not spent while links keep up.
"""

from collections.abc import Sequence as Ordered
from dataclasses import dataclass

import numpy as np

from kuayu.resilience.transfers.scene import Floats, Stream


@dataclass(frozen=True, slots=True, eq=False)
class Timetable:
    """Slots of a stream's coming steps.

    Attributes:
        due_s: When each step from afar is due, (R,).
        slot: The number of its slot, (R,).
        local: Slots that take local data.
        waits_s: Seconds that slots are expected to wait, together.
    """

    due_s: Floats
    slot: Floats
    local: tuple[int, ...]
    waits_s: float


def undisturbed(stream: Stream, count: int) -> Timetable:
    """One step from afar after the other, each when it is due."""
    numbers = np.arange(count, dtype=np.float64)
    return Timetable(stream.begins_s + numbers * stream.step_s, numbers, (), 0.0)


def reordered(stream: Stream, ready_s: Ordered[float]) -> Timetable:
    """Local data in slots whose data from afar would be late.

    Args:
        stream: Whose.
        ready_s: When the data of each step from afar are there, rising; infinite where nobody knows.
    """
    due, slots, local = [], [], []
    at, slot, left, waits = stream.begins_s, 0, stream.local_steps, 0.0
    for ready in ready_s:
        while ready > at and left:
            local.append(slot)
            at, slot, left = at + stream.step_s, slot + 1, left - 1
        due.append(at)
        slots.append(float(slot))
        late = ready - at
        if 0.0 < late < float("inf"):
            waits += late
            at += late
        at, slot = at + stream.step_s, slot + 1
    return Timetable(np.array(due), np.array(slots), tuple(local), waits)
