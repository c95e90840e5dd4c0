"""The best way for replicas to agree: collective, period and order of domains."""

from functools import lru_cache

import numpy as np

from kuayu.resilience.adjustment.law import Law, Pace, Way
from kuayu.resilience.transfers.collectives import HIERARCHICAL, LOW, RING, Candidate, message
from kuayu.resilience.transfers.options import turned
from kuayu.resilience.transfers.rings import ring
from kuayu.resilience.transfers.scene import Floats
from kuayu.scheduling.throughput import OVERLAP, penalty

LONGEST_PERIOD = 100_000
"""Steps; the standard names none that is longer."""

_EACH, _FINER = 64, 1.04
"""Periods up to which all are looked at, and by which factor they lie apart beyond."""


def best_pace(law: Law, step_s: float) -> Pace:
    """The way of most steps a second, by what the slowest domain takes for a step.

    A faster division of parts is better by any way, so the division is found first and the way for it.
    """
    domains = len(law.costs)
    orders = {kind: _order(law, kind) for kind in (RING, HIERARCHICAL)}
    paces = [law.pace(Way(kind, 1, order)) for kind, order in orders.items()]
    if domains > 1:
        paces.append(law.pace(Way(LOW, _period(paces[1], step_s, domains), orders[HIERARCHICAL])))
    return max(paces, key=lambda pace: pace.rate(step_s))


def _order(law: Law, kind: str) -> tuple[int, ...]:
    domains = len(law.costs)
    if domains == 1:
        return (0,)
    size = message(Candidate(kind), domains, law.fabric.nodes, law.work)
    return turned(ring(law.fabric.rates, law.fabric.latency_s, size))


def _period(pace: Pace, step_s: float, domains: int) -> int:
    """The period of most steps a second: exchanges that are rarer cost less time and more steps."""
    periods, charges = _periods(domains)
    hidden = OVERLAP * step_s
    step = step_s + max(0.0, pace.inside_s - hidden)
    left = max(0.0, pace.across_s - max(0.0, hidden - pace.inside_s))
    return int(periods[np.argmin(charges * (step + left / periods))])


@lru_cache(maxsize=64)
def _periods(domains: int) -> tuple[Floats, Floats]:
    """Periods that are looked at, and how many times as many steps each takes to the same loss."""
    wider = np.geomspace(_EACH, LONGEST_PERIOD, int(np.log(LONGEST_PERIOD / _EACH) / np.log(_FINER)))
    periods = np.unique(np.concatenate([np.arange(1.0, _EACH), np.rint(wider)]))
    return periods, penalty(np.array(float(domains)), periods)
