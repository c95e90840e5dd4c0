"""Collectives that are looked at, each with the orders of domains that are worth a look, and what they would do."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kuayu.resilience.transfers.collectives import (
    CANDIDATES,
    NAMELESS,
    Candidate,
    Fabric,
    Work,
    exchange_s,
    message,
    rate,
)
from kuayu.resilience.transfers.rings import ring, rounds
from kuayu.resilience.transfers.scene import Floats


@dataclass(frozen=True, slots=True)
class Option:
    """A collective as it can be used.

    Attributes:
        candidate: Its kind and period.
        order: Domains in the order of the ring, by number, the first one first.
    """

    candidate: Candidate
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """What links carried, in bytes a second; the diagonal does not count.

    Attributes:
        rates: Oldest first, (T, D, D), at least one.
        now: What they carry now, (D, D); nought where a link is out.
        fabric: Domains as they are now.
        work: What is trained.
    """

    rates: Floats
    now: Floats
    fabric: Fabric
    work: Work


def turned(order: Sequence[int]) -> tuple[int, ...]:
    """The same ring, beginning at the first domain."""
    first = list(order).index(0)
    return (*order[first:], *order[:first])


def options(past: Past, used: Option | None) -> list[Option]:
    """What is in use, if anything that is known; then all candidates, each with all orders that are worth a look."""
    domains = len(past.now)
    known = used if used is not None and used.candidate.kind != NAMELESS else None
    candidates = dict.fromkeys([*([known.candidate] if known else []), *CANDIDATES])
    sizes = {message(each, domains, past.fabric.nodes, past.work) for each in candidates}
    mean = past.rates.mean(axis=0)
    orders = {}
    for size in sizes:
        best = (
            [turned(ring(rates, past.fabric.latency_s, size)) for rates in (past.now, mean)] if domains > 1 else [(0,)]
        )
        orders[size] = dict.fromkeys([*best, *([used.order] if used else [])])
    every = [
        Option(each, order)
        for each in candidates
        for order in orders[message(each, domains, past.fabric.nodes, past.work)]
    ]
    return list(dict.fromkeys([*([known] if known else []), *every]))


def rates_of(past: Past, looked_at: Sequence[Option], rates: Floats) -> Floats:
    """Steps a second of each option at each time, (T, options)."""
    domains = len(past.now)
    hops: dict[tuple[tuple[int, ...], float], Floats] = {}
    made = np.empty((len(rates), len(looked_at)))
    for column, option in enumerate(looked_at):
        size = message(option.candidate, domains, past.fabric.nodes, past.work)
        key = option.order, size
        if key not in hops:
            hops[key] = _hops(option, past, rates, size)
        inside, across = exchange_s(option.candidate, past.fabric, past.work, hops[key])
        made[:, column] = rate(option.candidate, domains, past.work, inside, across)
    return made


def _hops(option: Option, past: Past, rates: Floats, size: float) -> Floats:
    return rounds(option.order, rates, past.fabric.latency_s, size) if len(past.now) > 1 else np.zeros(len(rates))
