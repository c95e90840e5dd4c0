"""Detection: who is silent, who is slow, and what is therefore wrong with whom.

1. Who is silent: an adaptive failure detector, behind a small interface so that another can take its place. A
   fixed limit is either slow or hasty. Like accrual detectors (Hayashibara et al., The φ accrual failure detector,
   SRDS 2004) this one learns how regular a worker's beats are; unlike them it also remembers the longest gap of late,
   since on a shared host gaps have a heavier tail than a normal law.
2. Who is slow: each worker's time for one part of a batch beside that of its peers. In synchronous training all steps
   are as slow as the slowest worker, so steps do not tell; the time that a worker needs for its own parts does. How
   much is too much is learnt from how far the others differ among themselves of late: on a quiet host workers are
   alike and twice the time is plain, on a crowded one it happens to everybody. It has to last, in steps and in seconds:
   where steps take milliseconds, whatever else runs on the host for a moment slows several in a row.
3. What is wrong with whom, from what workers told; without clock, sockets or processes. A worker that the control
   plane does not hear is only suspected until most of its peers do not hear it either. Where half of the members or
   more would fall at once, nobody does: then it is rather the control plane that is cut off.
"""

import statistics
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np


class Stage(StrEnum):
    """How far a suspicion has come."""

    suspected = "suspected"
    silent = "silent"


class FailureDetector(Protocol):
    """Tells by their heartbeats which workers have failed, or may have."""

    def beat(self, worker: str, instant: float) -> None:
        """A beat of a worker came at an instant, in seconds of any steady clock."""

    def forget(self, worker: str) -> None:
        """The worker is gone."""

    def verdicts(self, now: float) -> Mapping[str, Stage]:
        """Workers that are not heard as they should be."""


class AdaptiveFailureDetector:
    """A limit for each worker, from its own gaps.

    Args:
        period: Seconds between beats as agreed.
    """

    MIN_PERIODS, MAX_DEVIATIONS, LONGEST_GAP_FACTOR, MAX_LIMIT_SECONDS, MAX_GAPS = 5.0, 8.0, 1.5, 4.0, 240
    """Least limit in periods; standard deviations over the mean; share of the longest gap; longest limit in seconds."""
    SUSPECTED = 0.6
    """Share of the limit from which there is suspicion."""

    def __init__(self, period: float) -> None:
        self._period = period
        self._last: dict[str, float] = {}
        self._gaps: dict[str, deque[float]] = {}

    def beat(self, worker: str, instant: float) -> None:
        """Take a beat into account."""
        if worker in self._last:
            self._gaps[worker].append(instant - self._last[worker])
        else:
            self._gaps[worker] = deque(maxlen=self.MAX_GAPS)
        self._last[worker] = instant

    def forget(self, worker: str) -> None:
        """Drop what is known of a worker."""
        self._last.pop(worker, None)
        self._gaps.pop(worker, None)

    def verdicts(self, now: float) -> Mapping[str, Stage]:
        """Suspected and silent workers."""
        result = {}
        for worker, last in self._last.items():
            limit = self.limit(worker)
            if now - last > limit:
                result[worker] = Stage.silent
            elif now - last > self.SUSPECTED * limit:
                result[worker] = Stage.suspected
        return result

    def limit(self, worker: str) -> float:
        """Seconds of silence that are one too many."""
        least = self.MIN_PERIODS * self._period
        gaps = np.array(self._gaps[worker])
        if not gaps.size:
            return min(2 * least, self.MAX_LIMIT_SECONDS)  # nothing is known of it yet
        learnt = max(float(gaps.mean() + self.MAX_DEVIATIONS * gaps.std()), self.LONGEST_GAP_FACTOR * float(gaps.max()))
        return min(max(least, learnt), self.MAX_LIMIT_SECONDS)


WINDOW_STEPS, CONSECUTIVE_STEPS, MIN_SLOW_SECONDS = 5, 5, 2.0
"""Steps of which a worker's median is taken; steps in a row, and seconds, for which it has to be too much."""
MIN_SLOWDOWN, USUAL_FACTOR, UNTRAINED_SLOWDOWN = 2.0, 1.5, 4.0
"""Least ratio to the peers' median that is slow; ratio to what is usual among them; the limit before that is known."""
MAX_RATIOS, MIN_RATIOS = 150, 40
"""Ratios of a worker that are remembered, and of all its peers that are enough to learn from."""


class Stragglers:
    """Times of the members of a job."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}
        self._ratios: dict[str, deque[float]] = {}
        self._row: dict[str, tuple[int, float, float]] = {}
        """Of workers that are slow, steps in a row and the instants of the first and the last of them."""

    def clear(self, members: Sequence[str]) -> None:
        """Begin anew with these members; what is usual among those that stay is not forgotten."""
        self._times.clear()
        self._row.clear()
        self._ratios = {worker: ratios for worker, ratios in self._ratios.items() if worker in members}

    def step(self, worker: str, seconds: float, instant: float) -> None:
        """A worker needed so many seconds for a part, in the step that it told at an instant."""
        own = self._times.setdefault(worker, deque(maxlen=WINDOW_STEPS))
        own.append(seconds)
        others = [statistics.median(times) for other, times in self._times.items() if other != worker]
        if len(own) < WINDOW_STEPS or not others:
            return
        ratio = statistics.median(own) / statistics.median(others)
        if ratio > self.limit(worker):
            steps, first, _ = self._row.get(worker, (0, instant, instant))
            self._row[worker] = steps + 1, first, instant
        else:
            self._row.pop(worker, None)
        self._ratios.setdefault(worker, deque(maxlen=MAX_RATIOS)).append(ratio)

    def limit(self, worker: str) -> float:
        """The ratio beyond which a worker is slow, from those of its peers."""
        usual = [ratio for other, ratios in self._ratios.items() if other != worker for ratio in ratios]
        if len(usual) < MIN_RATIOS:
            return UNTRAINED_SLOWDOWN
        return max(MIN_SLOWDOWN, USUAL_FACTOR * float(np.quantile(usual, 0.99)))

    def slow_members(self, members: Sequence[str]) -> tuple[str, ...]:
        """Members that have been slow for long enough."""
        return tuple(member for member in members if self._lasts(member))

    def _lasts(self, worker: str) -> bool:
        steps, first, last = self._row.get(worker, (0, 0.0, 0.0))
        return steps >= CONSECUTIVE_STEPS and last - first >= MIN_SLOW_SECONDS


class Fault(StrEnum):
    """States that lead to a replacement."""

    ended = "ended"
    """Its process ended: its connection did, and by agreement a worker ends with its connection."""
    unreachable = "unreachable"
    """Neither the control plane nor most peers hear it: stopped, or its link is down."""
    severed = "severed"
    """The control plane hears it, most peers do not: its links to them are down."""
    hung = "hung"
    """It is heard by all, but has been computing for long while most others wait."""
    slow = "slow"
    """It needs much longer for its share than its peers."""


@dataclass(frozen=True, slots=True)
class MembershipState:
    """What is known of the members of a job at one instant.

    Attributes:
        members: Identifiers.
        ended: Of those whose connection ended.
        silent: How far suspicion has come, by identifier.
        unheard: For each member that told it, which peers it does not hear, and how far suspicion has come.
        computing: Members whose last word was that they compute.
        stalled: Whether there has been no step for much longer than steps take.
        slow: Members that are slow.
    """

    members: Sequence[str]
    ended: frozenset[str]
    silent: Mapping[str, Stage]
    unheard: Mapping[str, Mapping[str, Stage]]
    computing: frozenset[str]
    stalled: bool
    slow: Sequence[str]


def faults(state: MembershipState) -> dict[str, Fault]:
    """Members that have to be replaced, and why."""
    result = {member: Fault.ended for member in state.members if member in state.ended}
    rest = [member for member in state.members if member not in result]
    silent: dict[str, Fault] = {}
    for entry in rest:
        fault = _silence(entry, state, rest)
        if fault is not None:
            silent[entry] = fault
    if 2 * len(silent) < len(rest):
        result |= silent
    if not result and state.stalled:
        result |= _hung(state, rest)
    return result or {entry: Fault.slow for entry in state.slow if entry in rest}


def _silence(worker: str, state: MembershipState, rest: Sequence[str]) -> Fault | None:
    others = [entry for entry in rest if entry != worker]
    stages = [state.unheard.get(other, {}).get(worker) for other in others if state.silent.get(other) != Stage.silent]
    doubted, certain = sum(stage is not None for stage in stages), sum(stage == Stage.silent for stage in stages)
    if state.silent.get(worker) == Stage.silent:
        return Fault.unreachable if 2 * doubted > len(stages) else None
    if worker in state.silent:
        return None  # it may be on the way to unreachable: wait what becomes of it
    return Fault.severed if 2 * certain > len(stages) and certain > 1 else None


def _hung(state: MembershipState, rest: Sequence[str]) -> dict[str, Fault]:
    stuck = [entry for entry in rest if entry in state.computing]
    return dict.fromkeys(stuck, Fault.hung) if 2 * len(stuck) < len(rest) else {}
