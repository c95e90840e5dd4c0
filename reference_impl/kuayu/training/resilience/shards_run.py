"""What happens in a window under a policy, event by event.

A link carries one transfer at a time; a request takes its latency, then bytes come as the link carries them. A step
begins when the one before it has ended and all its data are there; its data then leave the buffer. A transfer is
blocked when it ends after the slot for which it was meant when it was ordered was due; one that is given up is, too.
"""

import heapq
from bisect import bisect_left
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

import numpy as np

from kuayu.training.resilience.shards_world import LEAD_S, STEP_S, STREAMS, Window

AGAIN_S = 10.0
"""Seconds after which a policy is asked anew: two steps."""
_SAME = 1e-6


@dataclass(slots=True)
class Transfer:
    """A piece of a job's data from afar; bytes count from the first byte of its first step."""

    stream: int
    link: int
    begin: float
    end: float
    slot: int
    start_s: float = 0.0
    finish_s: float = inf
    given_up: bool = False


@dataclass(slots=True)
class Job:
    """How far a job is.

    Attributes:
        due_s: When its next slot is due.
        slot: Number of that slot.
        remote: Steps from afar that have begun.
        local_left: Local steps that have not.
        dues: When each slot so far was due.
        missing: Bytes of each step from afar that are not here.
        waited_s: Seconds that it has waited.
        waiting: Whether its next slot is due and has not begun.
    """

    due_s: float
    local_left: int
    missing: list[float]
    slot: int = 0
    remote: int = 0
    dues: list[float] = field(default_factory=list)
    waited_s: float = 0.0
    waiting: bool = False


@dataclass(slots=True)
class State:
    """All that a policy may look at, beside the measurements so far."""

    window: Window
    now: float
    jobs: list[Job]
    busy: list[Transfer | None]
    used: float = 0.0


class Policy(Protocol):
    """What is compared."""

    def ask(self, state: State) -> list[Transfer]:
        """Look at the world anew; the transfers to be given up."""

    def fetch(self, link: int, state: State) -> Transfer | None:
        """What an idle link fetches now."""

    def takes_local(self, stream: int, state: State, *, ready: bool) -> bool:
        """Whether the slot that is due takes local data; asked only while there are any."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it.

    Attributes:
        waiting: Share of time in which jobs waited for data, mean of jobs.
        blocked: Share of transfers that were blocked.
        blocked_bytes: The same by bytes.
        transfers: How many there were.
        held: Mean share of the room that was taken.
    """

    waiting: float
    blocked: float
    blocked_bytes: float
    transfers: int
    held: float


class Carried:
    """Bytes that a link has carried by each second, and when it has carried so many."""

    def __init__(self, window: Window, link: int) -> None:
        self.rates = window.rates[link].tolist()
        self.sums: list[float] = [0.0, *np.cumsum(window.rates[link]).tolist()]

    def by(self, at: float) -> float:
        """Bytes from the begin of the window to an instant."""
        second = int(at)
        if second >= len(self.rates):
            return self.sums[-1]
        return self.sums[second] + (at - second) * float(self.rates[second])

    def when(self, since: float, count: float) -> float:
        """When so many bytes more have come."""
        target = self.by(since) + count
        place = bisect_left(self.sums, target)
        if place >= len(self.sums):
            return inf
        rate = self.rates[place - 1]
        return place - (self.sums[place] - target) / rate if rate > 0.0 else float(place)


class Run:
    """A window under a policy."""

    def __init__(self, window: Window, policy: Policy) -> None:
        self._window, self._policy = window, policy
        self._links = [Carried(window, link) for link in range(len(window.known))]
        remote = window.steps - window.local
        jobs = [Job(float(LEAD_S), window.local, [float(each)] * remote) for each in window.step_bytes]
        self.state = State(window, 0.0, jobs, [None] * len(self._links))
        self._events: list[tuple[float, int, int, str, Transfer | None]] = []
        self._count = 0
        self._transfers: list[tuple[float, bool]] = []
        self._held_s = self._held_at = 0.0

    def play(self) -> Outcome:
        """Until all steps are done."""
        self._add(0.0, 0, "ask")
        for stream in range(STREAMS):
            self._add(float(LEAD_S), stream, "due")
        while any(job.slot < self._window.steps for job in self.state.jobs):
            at, _, number, kind, transfer = heapq.heappop(self._events)
            if at == inf:
                raise RuntimeError(f"nothing more happens at {self.state.now} s; the policy fetches nothing")
            self._held_s += self.state.used * (at - self.state.now)
            self.state.now = at
            if kind == "ask":
                self._ask()
            elif kind == "due":
                self._due(number)
            elif transfer is not None and not transfer.given_up:
                self._done(transfer)
            self._fill()
        return self._outcome()

    def _add(self, at: float, number: int, kind: str, transfer: Transfer | None = None) -> None:
        self._count += 1
        heapq.heappush(self._events, (at, self._count, number, kind, transfer))

    def _ask(self) -> None:
        for transfer in self._policy.ask(self.state):
            transfer.given_up = True
            self.state.busy[transfer.link] = None
            self.state.used -= transfer.end - transfer.begin
            self._transfers.append((transfer.end - transfer.begin, True))
        self._add(self.state.now + AGAIN_S, 0, "ask")

    def _due(self, stream: int) -> None:
        job = self.state.jobs[stream]
        job.dues.append(self.state.now)
        job.waiting = True
        self._begin(stream)

    def _begin(self, stream: int) -> None:
        """Begin the step that is due, if its data are there."""
        job = self.state.jobs[stream]
        there = job.remote < len(job.missing) and job.missing[job.remote] <= _SAME * self._window.step_bytes[stream]
        local = job.local_left > 0 and (
            job.remote >= len(job.missing) or self._policy.takes_local(stream, self.state, ready=there)
        )
        if not (there or local):
            return
        if local:
            job.local_left -= 1
        else:
            self.state.used -= float(self._window.step_bytes[stream])
            job.remote += 1
        job.waiting = False
        job.waited_s += self.state.now - job.due_s
        job.slot += 1
        job.due_s = self.state.now + STEP_S
        if job.slot < self._window.steps:
            self._add(job.due_s, stream, "due")

    def _done(self, transfer: Transfer) -> None:
        job = self.state.jobs[transfer.stream]
        size = float(self._window.step_bytes[transfer.stream])
        self.state.busy[transfer.link] = None
        late = transfer.slot < len(job.dues) and job.dues[transfer.slot] < self.state.now - _SAME
        self._transfers.append((transfer.end - transfer.begin, late))
        for step in range(int(transfer.begin / size + _SAME), len(job.missing)):
            low, high = max(transfer.begin, step * size), min(transfer.end, (step + 1) * size)
            if high - low <= _SAME:
                break
            job.missing[step] -= high - low
        if job.waiting:
            self._begin(transfer.stream)

    def _fill(self) -> None:
        for link in range(len(self._links)):
            if self.state.busy[link] is not None:
                continue
            transfer = self._policy.fetch(link, self.state)
            if transfer is None:
                continue
            size = transfer.end - transfer.begin
            if self.state.used + size > self._window.room * (1 + _SAME):
                raise RuntimeError("the policy fetches more than there is room for")
            self.state.used += size
            self.state.busy[link] = transfer
            transfer.start_s = self.state.now
            began = self.state.now + float(self._window.latency_s[link])
            transfer.finish_s = self._links[link].when(began, size)
            self._add(transfer.finish_s, link, "done", transfer)

    def _outcome(self) -> Outcome:
        total = self._window.steps * STEP_S
        shares = [job.waited_s / (job.waited_s + total) for job in self.state.jobs]
        sizes, late = (np.array(each) for each in zip(*self._transfers, strict=True))
        return Outcome(
            float(np.mean(shares)),
            float(late.mean()),
            float((sizes * late).sum() / sizes.sum()),
            len(sizes),
            self._held_s / (self.state.now * self._window.room),
        )
