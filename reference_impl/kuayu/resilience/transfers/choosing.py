"""Choices of a collective on the wire: what is in use beside all others, played over what links have carried.

What is in use has an order of its own. Others are looked at with that order, with the best one for what links carry
now, and with the best one for what they carried on average; so a ring that goes around a slow link is another
collective than the one that does not. Nothing is kept from one request to the next: since links come with their past,
what each other one would have saved since the one in use was switched to follows from the request.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kuayu.resilience.transfers.answering import BITS
from kuayu.resilience.transfers.checking import check_collective
from kuayu.resilience.transfers.collectives import NAMELESS, Candidate, Fabric, Work
from kuayu.resilience.transfers.options import Option, Past, options, rates_of, turned
from kuayu.resilience.transfers.scene import Floats
from kuayu.resilience.transfers.switching import Judged, judge

METHOD = {"name": "kuayu-rent-or-buy", "version": "1.0.0"}

LOOK_BACK = 1000
"""Measurements before which nothing counts."""

CELLS = 500_000
"""Most measurements of all links together; where domains are many, the oldest are left out."""


def collective(request: dict[str, Any]) -> dict[str, Any]:
    """Choose by which collective replicas are to agree.

    Args:
        request: A ``CollectiveRequest``.

    Returns:
        A ``CollectiveChoice``. It follows from the request and from nothing else.

    Raises:
        kuayu.refusals.RepeatedName: Domains or links share a name.
        kuayu.refusals.UnknownName: A link or the order in use names a domain that is not there.
        kuayu.refusals.Impossible: A pair of domains has no link, or what is in use contradicts itself.
    """
    check_collective(request)
    past = _past(request)
    used = _in_use(request)
    looked_at = options(past, used)
    rates = rates_of(past, looked_at, np.concatenate([past.rates, past.now[None]]))
    known = used is not None and used.candidate.kind != NAMELESS
    since = request["in_use"]["since"] if known else 0.0
    weights = _weights(since, request["interval"], len(past.rates))
    judged = judge(rates[:-1], rates[-1], weights, request["switch_time"], in_use=known)
    taken = looked_at[judged.taken]
    order = taken.order if used is None or used.order != taken.order else _numbers(request, request["in_use"]["order"])
    return {
        "revision": request["revision"],
        "method": METHOD,
        "collective": taken.candidate.kind,
        "period": taken.candidate.period,
        "order": [request["domains"][each] for each in order],
        "switched": used is not None and taken != used,
        "candidates": _told(looked_at, rates[-1], judged.taken),
        "reasons": [_reason(looked_at, judged, request["switch_time"], used)],
    }


def _past(request: Mapping[str, Any]) -> Past:
    """Links by number of domain; as far back as each link of which anything is known was measured."""
    number = {name: place for place, name in enumerate(request["domains"])}
    count, links = len(number), request["links"]
    measured = [len(link["bandwidths"]) for link in links if link["bandwidths"]]
    back = max(1, min([LOOK_BACK, CELLS // max(len(links), 1), *measured]))
    rates = np.zeros((back, count, count))
    latency = np.zeros((count, count))
    now = np.zeros((count, count))
    for link in links:
        here = number[link["source"]], number[link["target"]]
        rates[:, *here] = np.array(link["bandwidths"][-back:] or [0.0]) / BITS
        now[here] = rates[-1, *here] if link.get("up", True) else 0.0
        latency[here] = link["latency"]
    inside = request["node_bandwidth"] / BITS
    fabric = Fabric(now, latency, request["nodes"], inside, request["node_latency"])
    return Past(rates, now, fabric, Work(request["exchange"], request["step_time"]))


def _in_use(request: Mapping[str, Any]) -> Option | None:
    used = request.get("in_use")
    if used is None:
        return None
    return Option(Candidate(used["collective"], used["period"]), turned(_numbers(request, used["order"])))


def _numbers(request: Mapping[str, Any], names: Sequence[str]) -> tuple[int, ...]:
    number = {name: place for place, name in enumerate(request["domains"])}
    return tuple(number[name] for name in names)


def _weights(since: float, interval: float, many: int) -> Floats:
    """Seconds of each measured interval in which the one in use was in use, (T,)."""
    begun = since - interval * np.arange(many - 1, -1, -1)
    return np.clip(begun, 0.0, interval)


def _told(looked_at: Sequence[Option], now: Floats, taken: int) -> list[dict[str, Any]]:
    """Each kind and period once: the chosen one as it is chosen, others with the order that suits them best."""
    found: dict[Candidate, float] = {}
    for option, steps in zip(looked_at, now.tolist(), strict=True):
        found[option.candidate] = max(found.get(option.candidate, 0.0), steps)
    found[looked_at[taken].candidate] = float(now[taken])
    return [{"collective": each.kind, "period": each.period, "rate": steps} for each, steps in found.items()]


def _reason(looked_at: Sequence[Option], judged: Judged, cost_s: float, used: Option | None) -> str:
    words = _because(looked_at, judged, cost_s, used)
    return words[0].upper() + words[1:]


def _because(looked_at: Sequence[Option], judged: Judged, cost_s: float, used: Option | None) -> str:
    taken = looked_at[judged.taken]
    if used is None:
        return f"{_named(taken)} is predicted to be quickest."
    if used.candidate.kind == NAMELESS:
        return f"nothing is known of what is in use; {_named(taken)} is predicted to be quickest."
    if judged.stuck:
        return f"a link that {_named(looked_at[0])} needs is out; {_named(taken)} goes on."
    if judged.first is None:
        return f"nothing is quicker than {_named(taken)}."
    first = looked_at[judged.first]
    other = _named(first) + (" in another order" if first.candidate == looked_at[0].candidate else "")
    return f"{other} would have saved {judged.saved_s:.3g} s so far; a switch takes {cost_s:.3g} s."


def _named(option: Option) -> str:
    words = option.candidate.kind.replace("_", " ")
    return f"{words} with a period of {option.candidate.period}" if option.candidate.period > 1 else words
