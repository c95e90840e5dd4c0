"""Which candidate to use, when links change: another one only when staying has cost what switching costs.

The time that each other candidate would have saved adds up and never falls below nought; the first to have saved the
cost of a switch is switched to, and all begin anew. So noise that helps now one, now another does not lead to switches,
and whatever is lost by waiting was lost once more at most by the switch (the argument of renting until the price of
buying is paid: A. Karlin, M. Manasse, L. Rudolph, D. Sleator, "Competitive snoopy caching", Algorithmica 3, 1988). A
candidate that does nothing, since a link is out, is left at once for one that does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kuayu.resilience.transfers.collectives import Candidate, Fabric, Predicted, Work, predict

COST_S = 10.0
"""Seconds of a switch where nothing else is said: communicators are made anew and replicas reconciled."""


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
