"""Which candidate to use, when links change: another one only when staying has cost what switching costs.

The time that each other candidate would have saved adds up and never falls below nought; the first to have saved the
cost of a switch is switched to, and all begin anew. So noise that helps now one, now another does not lead to switches,
and whatever is lost by waiting was lost once more at most by the switch (the argument of renting until the price of
buying is paid: A. Karlin, M. Manasse, L. Rudolph, D. Sleator, "Competitive snoopy caching", Algorithmica 3, 1988). A
candidate that does nothing, since a link is out, is left at once for one that does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kuayu.resilience.transfers.collectives import Candidate, Fabric, Predicted, Work, predict
from kuayu.resilience.transfers.scene import Floats

COST_S = 10.0
"""Seconds of a switch where nothing else is said: communicators are made anew and replicas reconciled."""

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


@dataclass(frozen=True, slots=True)
class Standing:
    """What to hand over the next time.

    Attributes:
        candidate: In use.
        saved_s: Seconds that others would have saved since it is.
    """

    candidate: Candidate
    saved_s: Mapping[Candidate, float]


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice and its reasons.

    Attributes:
        standing: What to hand over the next time; names the candidate.
        predicted: All candidates.
        switched: Whether it is another one than before.
        reason: Why, in words.
    """

    standing: Standing
    predicted: tuple[Predicted, ...]
    switched: bool
    reason: str


def choose(
    fabric: Fabric, work: Work, before: Standing | None = None, elapsed_s: float = 0.0, cost_s: float = COST_S
) -> Choice:
    """Choose a candidate.

    Args:
        fabric: Links as they are measured now.
        work: What is trained.
        before: What the last choice said; none at the first.
        elapsed_s: Seconds since.
        cost_s: Seconds that a switch takes.
    """
    predicted = predict(fabric, work)
    rates = {each.candidate: each.throughput for each in predicted}
    best = max(predicted, key=lambda each: each.throughput).candidate
    if before is None or before.candidate not in rates:
        return Choice(_fresh(best), predicted, before is not None, f"{_named(best)} is predicted to be quickest")
    now = before.candidate
    if rates[now] <= 0.0 < rates[best]:
        return Choice(_fresh(best), predicted, True, f"a link that {_named(now)} needs is out")
    saved = {
        other: max(0.0, before.saved_s.get(other, 0.0) + elapsed_s * _share(rates[now], rate))
        for other, rate in rates.items()
        if other != now
    }
    first = max(saved, key=lambda other: (saved[other], rates[other]))
    if saved[first] >= cost_s and rates[best] > rates[now]:
        target = best if saved.get(best, 0.0) >= cost_s else first
        if rates[target] > rates[now]:
            words = f"{_named(target)} would have saved {saved[target]:.0f} s, a switch takes {cost_s:.0f} s"
            return Choice(_fresh(target), predicted, True, words)
    words = f"{_named(first)} would have saved {saved[first]:.1f} s so far, a switch takes {cost_s:.0f} s"
    return Choice(Standing(now, saved), predicted, False, words)


def _share(now: float, other: float) -> float:
    """Share of the time that another candidate saves; negative where it takes longer."""
    if now <= 0.0 and other <= 0.0:
        return 0.0
    return (other - now) / max(now, other)


def _fresh(candidate: Candidate) -> Standing:
    return Standing(candidate, {})


def _named(candidate: Candidate) -> str:
    period = f" with a period of {candidate.period}" if candidate.period > 1 else ""
    return candidate.kind.replace("_", " ") + period
