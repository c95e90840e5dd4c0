"""Collectives: rings, how long each takes over links as measured, what it leaves, and which is chosen.

1. The order in which domains form a ring, so that its slowest link is as fast as can be.
2. How long candidates for the exchange of gradients take over links as measured, and what throughput they leave.

   A message of ``s`` bytes takes ``α + s / B`` (R. W. Hockney, "The communication challenge for MPP", Parallel
   Computing 20, 1994). ``D`` domains of ``n`` nodes sum up ``G`` bytes:

   - *ring*: all ``P = D · n`` nodes in one ring, domain after domain: ``2 (P - 1)`` rounds of the slowest hop with
     ``G / P`` bytes (P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
     JPDC 69, 2009). One flow enters and one leaves each domain.
   - *hierarchical*: a reduce-scatter inside each domain, ``n - 1`` rounds of ``G / n``; then a ring over domains for
     each of the ``n`` parts, all over the same links, ``2 (D - 1)`` rounds of ``G / D``; then an all-gather inside
     (M. Cho et al., "BlueConnect", IBM Journal of Research and Development 63, 2019).
   - *low communication*: inside each domain every step, over domains every ``H`` steps (A. Douillard et al.,
     "DiLoCo", arXiv:2311.08105). Quality is not free: the steps that it takes more to the same loss are charged
     (``kuayu.scheduling.throughput.penalty``, fitted to arXiv:2503.09799 and others).

   An exchange hides behind a share of a step; throughput is steps a second, with what rare reconciliation costs
   charged.
3. Collectives that are looked at, each with the orders of domains that are worth a look, and what they would do.
4. Which candidate to use, when links change: another one only when staying has cost what switching costs.

   The time that each other candidate would have saved adds up and never falls below zero; the first to have saved
   the cost of a switch is switched to, and all begin anew. So noise that helps now one, now another does not lead to
   switches, and whatever is lost by waiting was lost once more at most by the switch (the argument of renting until
   the price of buying is paid: A. Karlin, M. Manasse, L. Rudolph, D. Sleator, "Competitive snoopy caching",
   Algorithmica 3, 1988). A candidate that does nothing, since a link is out, is left at once for one that does.
5. Choices of a collective as HTTP carries them: what is in use beside all others, played over what links have carried.

   What is in use has an order of its own. Others are looked at with that order, with the best one for what links
   carry now, and with the best one for what they carried on average; so a ring that goes around a slow link is
   another collective than the one that does not. Nothing is kept from one request to the next: since links come with
   their past, what each other one would have saved since the one in use was switched to follows from the request.
6. What a request must hold to: domains are named once, every pair of them has a link, and what is in use fits them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from kuayu.refusals import Complaint, Impossible, RepeatedName, UnknownName, refuse, repeated
from kuayu.resilience.network import (
    BITS_PER_BYTE,
    MAX_BANDWIDTH,
    MAX_SPAN_S,
    MIN_BANDWIDTH,
    TOO_LONG,
    TOO_MUCH,
    Floats,
    Integers,
    link_complaints,
    repeated_links,
    size_complaints,
    span_complaints,
)
from kuayu.scheduling.throughput import OVERLAP, penalty

if TYPE_CHECKING:
    from kuayu_schemas import documents

MAX_EXACT = 7
"""Domains up to which all orders are looked at."""

PERIODS = (5, 15, 50, 150, 500)
"""Steps between reconciliations that are looked at."""
RING: "documents.CollectiveKind" = "ring"
HIERARCHICAL: "documents.CollectiveKind" = "hierarchical"
LOW_COMMUNICATION: "documents.CollectiveKind" = "low_communication"
UNKNOWN_KIND: "documents.CollectiveKind" = "unknown"
"""Of a kind that the standard does not name; nothing is known of it."""

PATIENCE_S = 60.0
"""Seconds that an outage lasts, as a guess. One who does nothing switches at once where that takes no longer."""

METHOD: "documents.TransferMethod" = {"name": "kuayu-rent-or-buy", "version": "1.0.0"}

MAX_LOOK_BACK = 1000
"""Measurements before which nothing counts."""

MAX_CELLS = 500_000
"""Most measurements of all links together; where domains are many, the oldest are left out."""


def round_s(order: tuple[int, ...], rates: Floats, latency_s: Floats, size: float) -> Floats:
    """Seconds of a round in which every domain sends so many bytes to the next; infinite where a link is out.

    Args:
        order: Domains in the order of the ring, by number.
        rates: Bytes a second from domain to domain, at any number of times, (..., D, D).
        latency_s: Seconds, (D, D).
        size: Bytes.

    Returns:
        Seconds, (...).
    """
    source, target = np.array(order), np.roll(np.array(order), -1)
    with np.errstate(divide="ignore", over="ignore"):
        slowest: Floats = (latency_s[source, target] + size / rates[..., source, target]).max(axis=-1)
    return slowest


def best_ring(rates: Floats, latency_s: Floats, size: float) -> tuple[int, ...]:
    """The order with the quickest round: exact for few domains, else by nearest neighbours and exchanges.

    Args:
        rates: Bytes a second from domain to domain, (D, D).
        latency_s: Seconds, (D, D).
        size: Bytes that a round moves over each link.
    """
    count = len(rates)
    with np.errstate(divide="ignore", over="ignore"):
        cost = latency_s + size / rates
    if count <= MAX_EXACT:
        orders = _orders(count)
        slowest = cost[orders, np.roll(orders, -1, axis=1)].max(axis=1)
        return tuple(orders[int(np.argmin(slowest))].tolist())
    order, left = [0], set(range(1, count))
    while left:
        nearest = min(sorted(left), key=lambda domain: cost[order[-1], domain])
        order.append(nearest)
        left.remove(nearest)
    return _exchanged(order, cost)


@cache
def _orders(count: int) -> Integers:
    """All rings, each once for each direction, (orders, D)."""
    return np.array([(0, *rest) for rest in permutations(range(1, count))], dtype=np.int64)


def _exchanged(order: list[int], cost: Floats) -> tuple[int, ...]:
    """Exchange an end of the slowest hop with another domain, as long as the ring becomes quicker; begins at zero."""
    now, count = np.array(order), len(order)
    most, total = _slowest(now[None], cost)
    while True:
        worst = int(np.argmax(cost[now, np.roll(now, -1)]))
        one, other = np.repeat([worst, (worst + 1) % count], count), np.tile(np.arange(count), 2)
        tried, rows = np.tile(now, (len(one), 1)), np.arange(len(one))
        tried[rows, one], tried[rows, other] = now[other], now[one]
        mosts, totals = _slowest(tried, cost)
        best = int(np.lexsort((totals, mosts))[0])
        if (mosts[best], totals[best]) >= (most[0], total[0]):
            return tuple(np.roll(now, -int(np.argmin(now))).tolist())
        now, most, total = tried[best], mosts[[best]], totals[[best]]


def _slowest(orders: Integers, cost: Floats) -> tuple[Floats, Floats]:
    """The slowest hop of each order, and the sum of those that are not over links that are out, (orders,)."""
    hops = cost[orders, np.roll(orders, -1, axis=1)]
    return hops.max(axis=1), np.where(np.isfinite(hops), hops, 0.0).sum(axis=1)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to exchange gradients.

    Attributes:
        kind: The collective.
        period: Steps between exchanges over domains.
    """

    kind: "documents.CollectiveKind"
    period: int = 1


CANDIDATES = (Candidate(RING), Candidate(HIERARCHICAL), *(Candidate(LOW_COMMUNICATION, period) for period in PERIODS))


@dataclass(frozen=True, slots=True, eq=False)
class Fabric:
    """Links as measured.

    Attributes:
        rates: Bytes a second from domain to domain, (D, D); zero where a link is out. The diagonal does not count.
        latency_s: Seconds of a message from domain to domain, (D, D).
        nodes: In each domain.
        inside: Bytes a second from a node to another of its domain; the least of all domains.
        inside_latency_s: Seconds of a message there.
    """

    rates: Floats
    latency_s: Floats
    nodes: int
    inside: float
    inside_latency_s: float


@dataclass(frozen=True, slots=True)
class Work:
    """What is trained.

    Attributes:
        gradient_bytes: That all replicas sum up.
        step_s: Seconds of a step without any exchange.
        overlap: Share of a step behind which an exchange hides.
    """

    gradient_bytes: float
    step_s: float
    overlap: float = OVERLAP


def message(candidate: Candidate, domains: int, nodes: int, work: Work) -> float:
    """Bytes that each round moves from a domain to the next."""
    return work.gradient_bytes / (domains * nodes if candidate.kind == RING else domains)


def exchange_s(candidate: Candidate, fabric: Fabric, work: Work, hop_s: Floats) -> tuple[float, Floats]:
    """Seconds of exchange inside domains, each step, and over them, each period; for the ring all of it over them.

    Args:
        candidate: Which.
        fabric: For what lies inside domains.
        work: What is exchanged.
        hop_s: Seconds of the slowest message from a domain to the next, of any shape; zero where there is but one.
    """
    domains, nodes, size = len(fabric.rates), fabric.nodes, work.gradient_bytes
    with np.errstate(over="ignore"):
        if candidate.kind == RING:
            together = domains * nodes
            own = fabric.inside_latency_s + np.float64(size / together) / fabric.inside if nodes > 1 else 0.0
            return 0.0, np.maximum(hop_s, own) * (2 * (together - 1)) if together > 1 else np.zeros_like(hop_s)
        inside = 2 * (nodes - 1) * (fabric.inside_latency_s + np.float64(size / nodes) / fabric.inside)
        return float(inside) if nodes > 1 else 0.0, hop_s * (2 * (domains - 1)) if domains > 1 else np.zeros_like(hop_s)


def step_charge(candidate: Candidate, domains: int) -> float:
    """How many times as many steps it takes to the same loss."""
    if candidate.kind != LOW_COMMUNICATION or domains == 1:
        return 1.0
    return float(penalty(np.array(float(domains)), np.array(float(candidate.period))))


def rate(candidate: Candidate, domains: int, work: Work, inside_s: float, across_s: Floats) -> Floats:
    """Steps a second, in the shape of ``across_s``; zero where a link that is needed is out."""
    hidden = work.overlap * work.step_s
    if candidate.kind == LOW_COMMUNICATION:
        step = work.step_s + max(0.0, inside_s - hidden)
        lasts = candidate.period * step + np.maximum(0.0, across_s - max(0.0, hidden - inside_s))
    else:
        lasts = work.step_s + np.maximum(0.0, inside_s + across_s - hidden)
    steps_per_second: Floats = (
        candidate.period / lasts / step_charge(candidate, domains)
    )  # zero where it lasts for ever
    return steps_per_second


@dataclass(frozen=True, slots=True)
class CollectiveOption:
    """A collective as it can be used.

    Attributes:
        candidate: Its kind and period.
        order: Domains in the order of the ring, by number, the first one first.
    """

    candidate: Candidate
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LinkHistory:
    """What links carried, in bytes a second; the diagonal does not count.

    Attributes:
        rates: Oldest first, (T, D, D), at least one.
        now: What they carry now, (D, D); zero where a link is out.
        fabric: Domains as they are now.
        work: What is trained.
    """

    rates: Floats
    now: Floats
    fabric: Fabric
    work: Work


def from_first(order: Sequence[int]) -> tuple[int, ...]:
    """The same ring, beginning at the first domain."""
    first = list(order).index(0)
    return (*order[first:], *order[:first])


def collective_options(past: LinkHistory, used: CollectiveOption | None) -> list[CollectiveOption]:
    """What is in use, if anything that is known; then all candidates, each with all orders that are worth a look."""
    domains = len(past.now)
    known = used if used is not None and used.candidate.kind != UNKNOWN_KIND else None
    candidates = dict.fromkeys([*([known.candidate] if known else []), *CANDIDATES])
    sizes = {message(candidate, domains, past.fabric.nodes, past.work) for candidate in candidates}
    mean = past.rates.mean(axis=0)
    orders = {}
    for size in sizes:
        best = (
            [from_first(best_ring(rates, past.fabric.latency_s, size)) for rates in (past.now, mean)]
            if domains > 1
            else [(0,)]
        )
        orders[size] = dict.fromkeys([*best, *([used.order] if used else [])])
    every = [
        CollectiveOption(candidate, order)
        for candidate in candidates
        for order in orders[message(candidate, domains, past.fabric.nodes, past.work)]
    ]
    return list(dict.fromkeys([*([known] if known else []), *every]))


def option_rates(past: LinkHistory, looked_at: Sequence[CollectiveOption], rates: Floats) -> Floats:
    """Steps a second of each option at each time, (T, options)."""
    domains = len(past.now)
    hops: dict[tuple[tuple[int, ...], float], Floats] = {}
    table = np.empty((len(rates), len(looked_at)))
    for column, option in enumerate(looked_at):
        size = message(option.candidate, domains, past.fabric.nodes, past.work)
        key = option.order, size
        if key not in hops:
            hops[key] = _hops(option, past, rates, size)
        inside, across = exchange_s(option.candidate, past.fabric, past.work, hops[key])
        table[:, column] = rate(option.candidate, domains, past.work, inside, across)
    return table


def _hops(option: CollectiveOption, past: LinkHistory, rates: Floats, size: float) -> Floats:
    return round_s(option.order, rates, past.fabric.latency_s, size) if len(past.now) > 1 else np.zeros(len(rates))


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
    past = _link_history(request)
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
        "candidates": _candidate_rates(looked_at, rates[-1], judged.taken),
        "reasons": [_reason(looked_at, judged, request["switch_time"], used)],
    }


def _link_history(request: "documents.CollectiveRequest") -> LinkHistory:
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


def _candidate_rates(
    looked_at: Sequence[CollectiveOption], now: Floats, taken: int
) -> "list[documents.CollectiveCandidate]":
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


def check_collective(request: "documents.CollectiveRequest") -> None:
    """Check a request for a collective.

    Raises:
        RepeatedName: Domains or links share a name.
        UnknownName: A link or the order in use names a domain that is not there.
        Impossible: A pair of domains has no link, or what is in use contradicts itself.
    """
    domains, links, used = request["domains"], request["links"], request.get("in_use")
    refuse(RepeatedName, [*repeated("/domains", domains, ""), *repeated_links(links)])
    known = set(domains)
    unknown = [
        (f"/links/{index}/{end}", f"{name} is not among the domains")
        for index, link in enumerate(links)
        for end, name in (("source", link["source"]), ("target", link["target"]))
        if name not in known
    ]
    order = used["order"] if used else []
    unknown += [
        (f"/in_use/order/{index}", f"{name} is not among the domains")
        for index, name in enumerate(order)
        if name not in known
    ]
    refuse(UnknownName, unknown)
    complaints = [
        *link_complaints(links),
        *span_complaints(request, "", ("interval", "step_time")),
        *size_complaints(request, "", "exchange"),
    ]
    complaints += [("/switch_time", TOO_LONG)] if request["switch_time"] > MAX_SPAN_S else []
    complaints += [("/node_latency", TOO_LONG)] if request["node_latency"] > MAX_SPAN_S else []
    complaints += [("/node_bandwidth", TOO_MUCH)] if request["node_bandwidth"] > MAX_BANDWIDTH else []
    complaints += [("/node_bandwidth", "less than a bit a second")] if request["node_bandwidth"] < MIN_BANDWIDTH else []
    joined = {(link["source"], link["target"]) for link in links}
    bare = [f"{one} to {other}" for one in domains for other in domains if one != other and (one, other) not in joined]
    more = f" and {len(bare) - 1} more" if len(bare) > 1 else ""
    complaints += [("/links", f"there is no link from {bare[0]}{more}")] if bare else []
    complaints += _complaints_in_use(used, domains) if used else []
    refuse(Impossible, complaints)


def _complaints_in_use(used: "documents.CollectiveInUse", domains: Sequence[str]) -> Iterator[Complaint]:
    if sorted(used["order"]) != sorted(domains):
        yield "/in_use/order", "it does not hold every domain once"
    if used["period"] != 1 and used["collective"] not in {LOW_COMMUNICATION, UNKNOWN_KIND}:
        yield "/in_use/period", "only where communication is low, steps lie between exchanges over domains"
    if used["since"] > MAX_SPAN_S:
        yield "/in_use/since", TOO_LONG
