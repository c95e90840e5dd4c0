"""How often copies are taken, so that stores and links carry them all."""

from collections.abc import Sequence
from math import ceil

import numpy as np
import numpy.typing as npt

from kuayu.resilience.recovery.places import Copy, Link, Places
from kuayu.resilience.recovery.scene import LONGEST, reckoned

Floats = npt.NDArray[np.float64]

ROUNDS = 6
"""Times that each store and link shares out what the others leave to its copies."""

LOWER = 0.25
"""What a copy is worth of one of the next higher priority."""

LOWEST = 3
"""Ranks after which priorities make no more difference."""

SAME = 1e-9


def periods(copies: Sequence[Copy], places: Places) -> list[float]:
    """Seconds from one copy to the next, for each; infinite where there is no bandwidth for it.

    Where a store or link cannot carry all, bandwidth goes by the square root of faults a second × bits, which makes the
    sum of lost work least (the first-order condition of the sum of rate × period / 2 under a sum of bits / period).
    Copies that need less than that have what they need. Those in other domains come of every so many checkpoints, so
    that they cost no pause of their own.
    """
    wanted = np.array([copy.bits / copy.need.period_s for copy in copies])
    weight = np.array([_weight(copy) for copy in copies])
    users: dict[str | Link, list[tuple[int, int]]] = {}
    for place, copy in enumerate(copies):
        users.setdefault(copy.domain, []).append((place, 0))
        if copy.link is not None:
            users.setdefault(copy.link, []).append((place, 1))
    rates = _shared(wanted, weight, [(np.array(rows), _budget(name, places)) for name, rows in users.items()])
    with np.errstate(divide="ignore"):
        found = np.array([copy.bits for copy in copies]) / rates
    return _in_step(copies, found.tolist())


def _weight(copy: Copy) -> float:
    need = copy.need
    rate = need.near_rate if copy.link is None else need.far_rate
    worth = LOWER ** min(need.rank, LOWEST)
    return float(np.sqrt(worth * rate * reckoned(copy.bits)))


def _shared(wanted: Floats, weight: Floats, users: Sequence[tuple[npt.NDArray[np.int64], float]]) -> Floats:
    """Bits a second of each copy: no more than wanted, and over each store and link no more than it carries."""
    caps = np.full((len(wanted), 2), np.inf)
    for _ in range(ROUNDS):
        for rows, budget in users:
            mine, others = caps[rows[:, 0], 1 - rows[:, 1]], weight[rows[:, 0]]
            caps[rows[:, 0], rows[:, 1]] = others * _level(np.minimum(wanted[rows[:, 0]], mine), others, budget)
    rates: Floats = np.minimum(wanted, caps.min(axis=1, initial=np.inf))
    over = np.ones(len(wanted))
    for rows, budget in users:
        np.maximum.at(over, rows[:, 0], float(rates[rows[:, 0]].sum()) / budget)
    return rates / over


def _level(wanted: Floats, weight: Floats, budget: float) -> float:
    """What each unit of weight gets, so that all of a budget is given out and nobody has more than is wanted."""
    if float(wanted.sum()) <= budget:
        return np.inf
    order = np.argsort(wanted / weight, kind="stable")
    wanted, weight = wanted[order], weight[order]
    before = np.concatenate([[0.0], np.cumsum(wanted)[:-1]])
    after = np.cumsum(weight[::-1])[::-1]
    levels = (budget - before) / after
    short = np.flatnonzero(levels * weight < wanted)
    return float(levels[short[0]]) if len(short) else np.inf


def _in_step(copies: Sequence[Copy], found: list[float]) -> list[float]:
    """Whole seconds, and in other domains whole numbers of the job's own period."""
    own = {copy.need.place: _whole(found[place]) for place, copy in enumerate(copies) if copy.link is None}
    made = []
    for copy, period_s in zip(copies, found, strict=True):
        base_s = own.get(copy.need.place, np.inf)
        if copy.link is None or base_s > LONGEST or period_s > LONGEST:
            made.append(_whole(period_s))
        else:
            made.append(base_s * max(1, ceil(period_s / base_s * (1.0 - SAME))))
    return made


def _budget(name: str | Link, places: Places) -> float:
    """Bits a second that copies may take of a store or a link."""
    return places.stores[name] if isinstance(name, str) else places.links[name]


def _whole(period_s: float) -> float:
    return float(ceil(period_s)) if period_s <= LONGEST else np.inf
