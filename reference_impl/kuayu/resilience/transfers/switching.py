"""Which candidate to use, when links change: another one only when staying has cost what switching costs.

The time that each other candidate would have saved adds up and never falls below nought; the first to have saved the
cost of a switch is switched to, and all begin anew. So noise that helps now one, now another does not lead to switches,
and whatever is lost by waiting was lost once more at most by the switch (the argument of renting until the price of
buying is paid: A. Karlin, M. Manasse, L. Rudolph, D. Sleator, "Competitive snoopy caching", Algorithmica 3, 1988). A
candidate that does nothing, since a link is out, is left at once for one that does.
"""

from dataclasses import dataclass

import numpy as np

from kuayu.resilience.transfers.scene import Floats

PATIENCE_S = 60.0
"""Seconds that an outage lasts, as a guess. One who does nothing switches at once where that takes no longer."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Which of many is taken.

    Attributes:
        taken: Its place.
        first: Place of the other one that would have saved most, if any is quicker now.
        saved_s: Seconds that it would have saved.
        stuck: Whether the one in use was left since it does nothing.
    """

    taken: int
    first: int | None = None
    saved_s: float = 0.0
    stuck: bool = False


def judge(past: Floats, now: Floats, seconds: Floats, cost_s: float, *, in_use: bool) -> Judged:
    """Choose, from what each would have done since the one in use, which is the first, has been so.

    Args:
        past: Steps a second of each at each time, oldest first, (T, options).
        now: Steps a second of each, (options,).
        seconds: Of each time, in which the one in use was in use, (T,).
        cost_s: Seconds that a switch takes.
        in_use: Whether any is in use; else the quickest is taken.
    """
    if not in_use:
        return Judged(int(np.argmax(now)))
    quickest = np.maximum(past, past[:, :1])
    shares = np.divide(past - past[:, :1], quickest, out=np.zeros_like(past), where=quickest > 0.0)
    sums = np.cumsum(shares * seconds[:, None], axis=0)
    saved = sums[-1] - np.minimum(sums.min(axis=0), 0.0)  # a sum that never falls below nought
    better = np.flatnonzero(now > now[0])
    if not len(better):
        return Judged(0)
    if now[0] <= 0.0 and cost_s <= PATIENCE_S:
        return Judged(int(better[np.lexsort((saved[better], now[better]))[-1]]), stuck=True)
    first = int(better[np.lexsort((now[better], saved[better]))[-1]])
    return Judged(first if saved[first] >= cost_s else 0, first, float(saved[first]))
