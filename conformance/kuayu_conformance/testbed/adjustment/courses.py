"""Steps that a job makes over time: exact integrals of rates that stay the same for a while.

All instants and seconds are from the begin of the window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import inf

import numpy as np

from kuayu_conformance.testbed.adjustment.disturbing import CELL_S
from kuayu_conformance.testbed.adjustment.jobs import Running
from kuayu_conformance.testbed.adjustment.law import Floats, Policy, best, rate
from kuayu_conformance.testbed.adjustment.plant import Carried
from kuayu_conformance.testbed.adjustment.world import World

_EDGE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """Steps that are made until each of some instants; in between, at one rate.

    Attributes:
        instants: Instants that rise, from nought to the end of the window, ``(N,)``.
        made: Steps until then, ``(N,)``.
    """

    instants: Floats
    made: Floats

    def steps(self, begin: Floats, end: Floats) -> Floats:
        """Steps from some instants to others."""
        made: Floats = np.interp(end, self.instants, self.made) - np.interp(begin, self.instants, self.made)
        return made

    @property
    def total(self) -> float:
        """Steps of the whole window."""
        return float(self.made[-1])


class Courses:
    """What a job makes of a window by one policy or another."""

    def __init__(self, world: World, running: Running) -> None:
        where = list(running.domains)
        self._running = running
        self._loads, self._latency = world.loads[:, where], world.latency[:, where][:, :, where]
        self._edges: Floats = CELL_S * np.arange(len(world.loads) + 1, dtype=np.float64)
        self.rate = cache(self._rate)

    def _rate(self, policy: Policy) -> Floats:
        """Steps a second by a policy in each cell, ``(cells,)``."""
        return rate(self._running.law, self._loads, self._latency, policy)

    def best(self) -> Course:
        """Of one who always has the best policy, for nothing."""
        return self._course(best(self._running.law, self._loads, self._latency, self._running.total).rates)

    def kept(self, policy: Policy) -> Course:
        """By one policy."""
        return self._course(self.rate(policy))

    def carried(self, first: Policy, changes: Sequence[Carried]) -> Course:
        """By what is in force when, without a step while a change is on its way."""
        ends = self._edges[-1]
        turns = [instant for change in changes for instant in (change.begins, change.ends) if instant < ends]
        instants = np.unique(np.concatenate([self._edges, turns]))
        middle = 0.5 * (instants[1:] + instants[:-1])
        cell = np.minimum((middle / CELL_S).astype(int), len(self._edges) - 2)
        rates = self.rate(first)[cell]
        for change in changes:
            later = middle > change.begins
            rates[later] = self.rate(change.policy)[cell[later]]
            rates[later & (middle < change.ends)] = 0.0
        return Course(instants, np.concatenate([[0.0], np.cumsum(rates * np.diff(instants))]))

    def _course(self, rates: Floats) -> Course:
        return Course(self._edges, np.concatenate([[0.0], np.cumsum(rates * CELL_S)]))


def greatest_loss(made: Course, kept: Course, begins: float, ends: float, window: float) -> float:
    """Greatest share of a window's steps that is lost, of all windows that overlap a time; nought where none is.

    Between two instants at which a rate changes, at either end of the window, the share rises or falls and does nothing
    else, so that the windows that begin or end at these are all that count.
    """
    first = _beginnings(made, kept, max(0.0, begins - window), min(ends, kept.instants[-1] - window), window)
    would = kept.steps(first, first + window)
    lost = 1.0 - made.steps(first, first + window)[would > 0.0] / would[would > 0.0]
    return max(0.0, float(lost.max(initial=0.0)))


def recovered_at(made: Course, most: Course, begins: float, ends: float, window: float, share: float) -> float:
    """When a job has recovered: it makes a share of the most steps, and every window from then on has it, too.

    Windows lie between the two instants. Between the instants at which a rate changes, what is too much or too little
    is linear, so that it is nought where a line says. Infinite where the last window has too little.
    """
    first = _beginnings(made, most, begins, ends - window, window)
    due = share * most.steps(first, first + window)
    spare = made.steps(first, first + window) - due + _EDGE * due
    short = np.flatnonzero(spare < 0.0)
    if not len(short):
        return _goes(made, most, begins, share)
    last = short[-1]
    if last == len(first) - 1:
        return inf
    part = -spare[last] / (spare[last + 1] - spare[last])
    return _goes(made, most, float(first[last] + part * (first[last + 1] - first[last])), share)


def _goes(made: Course, most: Course, begins: float, share: float) -> float:
    """The first instant from some one on at which a job makes a share of the most steps; there is one."""
    turns = np.union1d(made.instants, most.instants)
    instants = np.concatenate([[begins], turns[turns > begins]])
    enough = made.steps(instants[:-1], instants[1:]) >= (share - _EDGE) * most.steps(instants[:-1], instants[1:])
    return float(instants[int(enough.argmax())])


def _beginnings(one: Course, other: Course, least: float, most: float, window: float) -> Floats:
    """Where windows may begin, between two instants, so that a rate changes at either end; these themselves, too."""
    turns = np.concatenate([one.instants, other.instants])
    found = np.concatenate([turns, turns - window])
    kept = found[(found > least) & (found < most)]
    made: Floats = np.unique(np.concatenate([[least], kept, [max(least, most)]]))
    return made
