"""Silence: which nodes do not answer while others of their domain do, and which domains cannot be reached.

Each node has a usual gap between arrivals and a largest recent one; it is taken for silent when it is missed for
longer than either explains (the idea of accrual detectors: the threshold follows from the arrivals seen; Hayashibara
et al. 2004, "The φ accrual failure detector"). Two things are added:

- Time is the domain's own: its clock goes on only while others of the domain are heard, at the pace at which they are
  heard. A path that is broken, or an aggregator that stalls, stops the clock, and nobody dies of it.
- Gaps that surprised any node of a domain count for all of them, so that a rare loss of samples is learnt once.

Late samples and bursts make gaps longer, and so are waited for. Only arrivals count, not the instants that samples
bear, since a sender's clock may be wrong.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition.values import Column, Flags, Floats, Instants, Places, blank, rearranged

MAX_PERIOD = 60.0
"""Seconds between samples that MET-002 allows; taken for the gap of a node that was heard once."""

MIN_GAP = 1.0
"""Seconds between samples that are the least a source is asked for; devices of a node may report one by one."""

MISSED_GAPS = 2.75
"""Usual gaps after which a regular node is silent: the third sample is due."""

FIRST_GAP = 2
"""Arrivals after which there is a gap."""

NEW_NODE = 8
"""Arrivals before which a node is waited for three times as long, since little is known of its gaps."""

MARGIN = 0.6
"""Usual gaps for which a node is waited for beyond the longest gap that is known of it."""

PATIENCE = 10.0
"""Seconds without a word from any of its nodes before which a domain counts as reachable: its aggregator may stall."""

ABSENT_GAPS = 8
"""Usual gaps beyond which a gap is an absence, from which nothing is learnt about lateness."""

RARE = 1e-4
"""Share of arrivals that may come later than what the domain has taught; each of them is a false alarm."""

FULL_PACE_SHARE = 0.3
"""Share of the arrivals expected from a domain at which its clock goes at full pace."""

MIN_PACE = 0.1
"""Pace of the clock when very few are heard, so that a mass failure is still seen, if later."""

MEMORY_SECONDS = 600.0
"""Seconds after which what surprised a domain counts for less by a factor e."""


@dataclass(slots=True)
class _Nodes:
    arrived: Annotated[Instants, Column(np.nan, np.float64)]
    arrival: Annotated[Instants, Column(0.0, np.float64)]
    gap: Annotated[Instants, Column(MAX_PERIOD, np.float64)]
    peak: Annotated[Instants, Column(0.0, np.float64)]
    count: Annotated[NDArray[np.int64], Column(0, np.int64)]
    silent: Annotated[Flags, Column(0, np.bool_)]
    cut: Annotated[Flags, Column(0, np.bool_)]


@dataclass(slots=True)
class _Domains:
    clock: Annotated[Instants, Column(0.0, np.float64)]
    pause: Annotated[Instants, Column(0.0, np.float64)]
    gap: Annotated[Instants, Column(0.0, np.float64)]
    peak: Annotated[Instants, Column(0.0, np.float64)]
    count: Annotated[NDArray[np.int64], Column(0, np.int64)]
    arrivals: Annotated[Instants, Column(0.0, np.float64)]
    late: Annotated[Instants, Column(0.0, np.float64, ABSENT_GAPS + 1)]
    unreachable: Annotated[Flags, Column(0, np.bool_)]


@dataclass(frozen=True, slots=True)
class Silence:
    """Who answers.

    Attributes:
        known: Whether a sample of the node has ever arrived, shape (nodes,).
        silent: Whether it does not answer while others of its domain do.
        cut: Whether it has not been heard since its domain became unreachable.
        missing: How far it is on the way to be silent; one or more is silent.
        reachable: Of each domain, shape (domains,).
    """

    known: Flags
    silent: Flags
    cut: Flags
    missing: Floats
    reachable: Flags


class Listener:
    """Learns the gaps between arrivals, and tells silence from them."""

    def __init__(self, domain: Places, domains: int) -> None:
        self._domain = domain
        self._nodes = blank(_Nodes, len(domain))
        self._domains = blank(_Domains, domains)
        self._now = np.nan

    def rearrange(self, domain: Places, domains: int, origin: Places) -> None:
        """Take over what was learnt of the rows that stay; domains are told from theirs."""
        former = np.full(domains, -1, np.intp)
        stay = origin >= 0
        former[domain[stay]] = self._domain[origin[stay]]
        self._nodes = rearranged(self._nodes, origin)
        self._domains = rearranged(self._domains, former)
        self._domain = domain

    def update(self, now: float, arrived: Instants) -> Silence:
        """Take the instants of the last arrivals; ``now`` never runs backwards."""
        nodes, domains = self._nodes, self._domains
        step = 0.0 if np.isnan(self._now) else max(0.0, now - self._now)
        self._now = now if np.isnan(self._now) else max(now, self._now)
        new = ~np.isnan(arrived) & ~(arrived <= nodes.arrived)
        self._advance(step, new)
        self._learn(new, arrived)
        waited = domains.clock[self._domain] - nodes.arrival
        missing = waited / self._threshold()
        known = ~np.isnan(nodes.arrived)
        nodes.silent = known & (missing > 1)
        nodes.cut &= ~nodes.silent
        unreachable = domains.unreachable[self._domain]
        return Silence(
            known=known,
            silent=nodes.silent & ~unreachable,
            cut=known & (nodes.cut | unreachable),
            missing=np.where(known, missing, 0.0).astype(np.float32),
            reachable=~domains.unreachable,
        )

    def _advance(self, step: float, new: Flags) -> None:
        """Let the clocks of the domains go on by what was heard."""
        nodes, domains = self._nodes, self._domains
        size = len(domains.clock)
        heard_nodes = np.bincount(self._domain[new], minlength=size)
        answering = ~np.isnan(nodes.arrived) & ~nodes.silent
        rate = np.bincount(self._domain[answering], weights=1 / nodes.gap[answering], minlength=size)
        domains.pause += step
        domains.late *= np.exp(-step / MEMORY_SECONDS)
        domains.arrivals *= np.exp(-step / MEMORY_SECONDS)
        any_heard = heard_nodes > 0
        share = np.divide(
            heard_nodes, rate * domains.pause, out=np.ones(size), where=(rate * domains.pause > 0) & any_heard
        )
        pace = np.clip(share / FULL_PACE_SHARE, MIN_PACE, 1.0)
        back = any_heard & domains.unreachable
        longest = np.where(domains.count > 1, 3 * domains.gap, domains.pause)
        domains.clock += np.where(any_heard & ~back, np.minimum(domains.pause, longest) * pace, 0.0)
        self._follow(any_heard & ~back)
        domains.pause[any_heard] = 0.0
        limit = np.maximum.reduce([np.full(size, PATIENCE), 5 * domains.gap, 1.5 * domains.peak])
        gone = ~domains.unreachable & (domains.count > 1) & (domains.pause > limit)
        domains.unreachable = (domains.unreachable | gone) & ~any_heard
        changed = (gone | back)[self._domain]
        nodes.cut |= gone[self._domain] & ~np.isnan(nodes.arrived)
        nodes.arrival[changed] = domains.clock[self._domain[changed]]

    def _follow(self, heard_nodes: Flags) -> None:
        """Learn the usual pause of a domain between arrivals."""
        domains = self._domains
        domains.count += heard_nodes
        counted = heard_nodes & (domains.count > 1)
        pause = np.where(domains.count > NEW_NODE, np.minimum(domains.pause, 4 * domains.gap), domains.pause)
        weight = np.where(counted, 1 / np.clip(domains.count - 1, 1, 20), 0.0)
        domains.gap += weight * (pause - domains.gap)
        fading = domains.peak - 0.005 * (domains.peak - domains.gap)
        domains.peak = np.where(counted, np.maximum(domains.pause, fading), domains.peak)

    def _learn(self, new: Flags, arrived: Instants) -> None:
        """Learn the gaps of the nodes that were heard, in the time of their domain."""
        nodes, domains = self._nodes, self._domains
        clock = domains.clock[self._domain]
        nodes.count += new
        again = new & (nodes.count > 1) & ~nodes.cut
        gap = clock - nodes.arrival
        absent = gap > ABSENT_GAPS * nodes.gap
        surprise = again & (nodes.count > NEW_NODE) & (gap > 1.05 * nodes.peak) & (gap > 1.5 * nodes.gap) & ~absent
        relative = np.clip(np.ceil(gap[surprise] / nodes.gap[surprise] - 0.25), 0, ABSENT_GAPS).astype(np.intp)
        np.add.at(domains.late, (relative, self._domain[surprise]), 1.0)
        domains.arrivals += np.bincount(self._domain[again], minlength=len(domains.clock))
        first = again & (nodes.count == FIRST_GAP)
        usual = np.where(first, gap, np.minimum(gap, 4 * nodes.gap))
        weight = np.where(again, 1 / np.clip(nodes.count - 1, 1, 20), 0.0)
        nodes.gap = np.maximum(nodes.gap + weight * (usual - nodes.gap), MIN_GAP)
        fading = nodes.peak - 0.005 * (nodes.peak - nodes.gap)
        nodes.peak = np.where(again & (first | ~absent), np.maximum(fading, np.where(first, 0.0, gap)), nodes.peak)
        nodes.arrived = np.where(new, arrived, nodes.arrived)
        nodes.arrival = np.where(new, clock, nodes.arrival)
        nodes.silent &= ~new
        nodes.cut &= ~new

    def _threshold(self) -> Instants:
        """Time of the domain for which each node has to be missed."""
        nodes, domains = self._nodes, self._domains
        beyond = np.cumsum(domains.late[::-1], axis=0)[::-1]
        taught = (beyond > np.maximum(RARE * domains.arrivals, 1.5)).sum(axis=0)
        taught = np.where(taught > 0, taught - 1 + MARGIN, 0.0)
        usual = np.maximum(MISSED_GAPS, taught[self._domain]) * nodes.gap
        threshold = np.maximum(usual, nodes.peak + MARGIN * nodes.gap) * np.where(nodes.count < NEW_NODE, 3, 1)
        return np.where(nodes.count > 1, threshold, 3 * MAX_PERIOD)
