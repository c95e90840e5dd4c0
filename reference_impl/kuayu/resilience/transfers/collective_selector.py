"""The choice of a collective: what is in use beside all others, played over what links have carried.

1. Which candidate to use, when links change: another one only when staying has cost what switching costs.

   The time that each other candidate would have saved adds up and never falls below zero; the first to have saved
   the cost of a switch is switched to, and all begin anew. So noise that helps now one, now another does not lead to
   switches, and whatever is lost by waiting was lost once more at most by the switch (the argument of renting until
   the price of buying is paid: A. Karlin, M. Manasse, L. Rudolph, D. Sleator, "Competitive snoopy caching",
   Algorithmica 3, 1988). A candidate that does nothing, since a link is out, is left at once for one that does.
2. Choices of a collective as HTTP carries them: what is in use beside all others, played over what links have carried.

   What is in use has an order of its own. Others are looked at with that order, with the best one for what links
   carry now, and with the best one for what they carried on average; so a ring that goes around a slow link is
   another collective than the one that does not. Nothing is kept from one request to the next: since links come with
   their past, what each other one would have saved since the one in use was switched to follows from the request.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kuayu.resilience.transfers.collectives import (
    UNKNOWN_KIND,
    Candidate,
    CollectiveOption,
    Fabric,
    LinkHistory,
    Work,
    collective_options,
    from_first,
    option_rates,
)
from kuayu.resilience.transfers.network import BITS_PER_BYTE, Floats
from kuayu.resilience.transfers.transfer_validation import check_collective

if TYPE_CHECKING:
    from kuayu_schemas import documents

PATIENCE_S = 60.0
"""Seconds that an outage lasts, as a guess. One who does nothing switches at once where that takes no longer."""


@dataclass(frozen=True, slots=True)
class Selection:
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


def select(past: Floats, now: Floats, seconds: Floats, cost_s: float, *, in_use: bool) -> Selection:
    """Choose, from what each would have done since the one in use, which is the first, has been so.

    Args:
        past: Steps a second of each at each time, oldest first, (T, options).
        now: Steps a second of each, (options,).
        seconds: Of each time, in which the one in use was in use, (T,).
        cost_s: Seconds that a switch takes.
        in_use: Whether any is in use; else the quickest is taken.
    """
    if not in_use:
        return Selection(int(np.argmax(now)))
    quickest = np.maximum(past, past[:, :1])
    shares = np.divide(past - past[:, :1], quickest, out=np.zeros_like(past), where=quickest > 0.0)
    sums = np.cumsum(shares * seconds[:, None], axis=0)
    saved = sums[-1] - np.minimum(sums.min(axis=0), 0.0)  # a sum that never falls below zero
    better = np.flatnonzero(now > now[0])
    if not len(better):
        return Selection(0)
    if now[0] <= 0.0 and cost_s <= PATIENCE_S:
        return Selection(int(better[np.lexsort((saved[better], now[better]))[-1]]), stuck=True)
    first = int(better[np.lexsort((now[better], saved[better]))[-1]])
    return Selection(first if saved[first] >= cost_s else 0, first, float(saved[first]))


METHOD: "documents.TransferMethod" = {"name": "kuayu-rent-or-buy", "version": "1.0.0"}

MAX_LOOK_BACK = 1000
"""Measurements before which nothing counts."""

MAX_CELLS = 500_000
"""Most measurements of all links together; where domains are many, the oldest are left out."""


def collective(request: "documents.CollectiveRequest") -> "documents.CollectiveChoice":
    """Choose by which collective replicas are to agree.

    Returns:
        A choice that follows from the request and from nothing else.

    Raises:
        kuayu.refusals.RepeatedName: Domains or links share a name.
        kuayu.refusals.UnknownName: A link or the order in use names a domain that is not there.
        kuayu.refusals.Impossible: A pair of domains has no link, or what is in use contradicts itself.
    """
    check_collective(request)
    past = _past(request)
    used = _in_use(request)
    looked_at = collective_options(past, used)
    rates = option_rates(past, looked_at, np.concatenate([past.rates, past.now[None]]))
    known = used is not None and used.candidate.kind != UNKNOWN_KIND
    since = request["in_use"]["since"] if known else 0.0
    weights = _weights(since, request["interval"], len(past.rates))
    judged = select(rates[:-1], rates[-1], weights, request["switch_time"], in_use=known)
    taken = looked_at[judged.taken]
    order = taken.order if used is None or used.order != taken.order else _numbers(request, request["in_use"]["order"])
    return {
        "revision": request["revision"],
        "method": METHOD,
        "collective": taken.candidate.kind,
        "period": taken.candidate.period,
        "order": [request["domains"][number] for number in order],
        "switched": used is not None and taken != used,
        "candidates": _told(looked_at, rates[-1], judged.taken),
        "reasons": [_reason(looked_at, judged, request["switch_time"], used)],
    }


def _past(request: "documents.CollectiveRequest") -> LinkHistory:
    """Links by number of domain; as far back as each link of which anything is known was measured."""
    number = {name: place for place, name in enumerate(request["domains"])}
    count, links = len(number), request["links"]
    measured = [len(link["bandwidths"]) for link in links if link["bandwidths"]]
    back = max(1, min([MAX_LOOK_BACK, MAX_CELLS // max(len(links), 1), *measured]))
    rates = np.zeros((back, count, count))
    latency = np.zeros((count, count))
    now = np.zeros((count, count))
    for link in links:
        pair = number[link["source"]], number[link["target"]]
        rates[:, *pair] = np.array(link["bandwidths"][-back:] or [0.0]) / BITS_PER_BYTE
        now[pair] = rates[-1, *pair] if link.get("up", True) else 0.0
        latency[pair] = link["latency"]
    inside = request["node_bandwidth"] / BITS_PER_BYTE
    fabric = Fabric(now, latency, request["nodes"], inside, request["node_latency"])
    return LinkHistory(rates, now, fabric, Work(request["exchange"], request["step_time"]))


def _in_use(request: "documents.CollectiveRequest") -> CollectiveOption | None:
    used = request.get("in_use")
    if used is None:
        return None
    return CollectiveOption(Candidate(used["collective"], used["period"]), from_first(_numbers(request, used["order"])))


def _numbers(request: "documents.CollectiveRequest", names: Sequence[str]) -> tuple[int, ...]:
    number = {name: place for place, name in enumerate(request["domains"])}
    return tuple(number[name] for name in names)


def _weights(since: float, interval: float, many: int) -> Floats:
    """Seconds of each measured interval in which the one in use was in use, (T,)."""
    begun = since - interval * np.arange(many - 1, -1, -1)
    return np.clip(begun, 0.0, interval)


def _told(looked_at: Sequence[CollectiveOption], now: Floats, taken: int) -> "list[documents.CollectiveCandidate]":
    """Each kind and period once: the chosen one as it is chosen, others with the order that suits them best."""
    best_rates: dict[Candidate, float] = {}
    for option, steps in zip(looked_at, now.tolist(), strict=True):
        best_rates[option.candidate] = max(best_rates.get(option.candidate, 0.0), steps)
    best_rates[looked_at[taken].candidate] = float(now[taken])
    return [
        {"collective": candidate.kind, "period": candidate.period, "rate": steps}
        for candidate, steps in best_rates.items()
    ]


def _reason(
    looked_at: Sequence[CollectiveOption], judged: Selection, cost_s: float, used: CollectiveOption | None
) -> str:
    words = _because(looked_at, judged, cost_s, used)
    return words[0].upper() + words[1:]


def _because(
    looked_at: Sequence[CollectiveOption], judged: Selection, cost_s: float, used: CollectiveOption | None
) -> str:
    taken = looked_at[judged.taken]
    if used is None:
        return f"{_named(taken)} is predicted to be quickest."
    if used.candidate.kind == UNKNOWN_KIND:
        return f"nothing is known of what is in use; {_named(taken)} is predicted to be quickest."
    if judged.stuck:
        return f"a link that {_named(looked_at[0])} needs is out; {_named(taken)} goes on."
    if judged.first is None:
        return f"nothing is quicker than {_named(taken)}."
    first = looked_at[judged.first]
    other = _named(first) + (" in another order" if first.candidate == looked_at[0].candidate else "")
    return f"{other} would have saved {judged.saved_s:.3g} s so far; a switch takes {cost_s:.3g} s."


def _named(option: CollectiveOption) -> str:
    words = option.candidate.kind.replace("_", " ")
    return f"{words} with a period of {option.candidate.period}" if option.candidate.period > 1 else words
