"""What happens in a window under a policy, event by event.

A link carries one transfer at a time; a request takes its latency, then bytes come as the link carries them. A step
begins when the one before it has ended and all its data are there; its data then leave the room. A transfer is blocked
where it has not ended when the slot of its shard is due, or a slot that is to take bytes of it, and where it is given
up.

A window ends when all steps have begun, or at its limit. Whoever has steps left then has waited until then, and data
that never came are blocked: those of each step as if they had been a transfer of their own.
"""

import heapq
from bisect import bisect_left
from functools import lru_cache
from math import inf

import numpy as np

from kuayu_conformance.testbed.transfers.shards_state import Job, Outcome, Policy, State, Transfer
from kuayu_conformance.testbed.transfers.shards_world import LEAD_S, STEP_S, STREAMS, Window

AGAIN_S = 10.0
"""Seconds after which a policy is asked anew: two steps."""
_SAME = 1e-6
_BYTE = 0.5
"""Bytes that are none; all else is whole."""


class Carried:
    """Bytes that a link has carried by each second, and when it has carried so many."""

    def __init__(self, window: Window, link: int) -> None:
        self.rates: list[float] = window.rates[link].tolist()
        self.sums: list[float] = [0.0, *np.cumsum(window.rates[link]).tolist()]

    def by(self, instant: float) -> float:
        """Bytes from the begin of the window to an instant."""
        second = int(instant)
        if second >= len(self.rates):
            return self.sums[-1]
        return self.sums[second] + (instant - second) * self.rates[second]

    def when(self, since: float, count: float) -> float:
        """When so many bytes more have come; infinite where that is after the limit."""
        target = self.by(since) + count
        place = bisect_left(self.sums, target)
        if place >= len(self.sums):
            return inf
        rate = self.rates[place - 1]
        return place - (self.sums[place] - target) / rate if rate > 0.0 else float(place)


@lru_cache(2)
def _carried(window: Window) -> tuple[Carried, ...]:
    """What each link carries; dozens of policies play the same window one after the other."""
    return tuple(Carried(window, link) for link in range(len(window.rates)))


class Run:
    """A window under a policy.

    Attributes:
        state: How far it is.
    """

    def __init__(self, window: Window, policy: Policy) -> None:
        self._window, self._policy = window, policy
        self._links = _carried(window)
        self._latencies: list[float] = window.latency_s.tolist()
        self._sizes: list[float] = window.step_bytes.tolist()
        self._remote = window.steps - window.local
        self._to_begin = window.steps * len(self._sizes)
        jobs = [Job(float(LEAD_S), window.local, [size] * self._remote) for size in self._sizes]
        self.state = State(window, 0.0, jobs, [None] * len(self._links))
        self._events: list[tuple[float, int, int, str, Transfer | None]] = []
        self._count = 0
        self._looks = [inf] * len(self._links)
        self._transfers: list[tuple[float, bool]] = []
        self._held_s = 0.0

    def play(self) -> Outcome:
        """Until all steps have begun, or to the limit."""
        limit = self._window.limit_s
        self._add(0.0, 0, "ask")
        for stream in range(STREAMS):
            self._add(float(LEAD_S), stream, "due")
        while self._to_begin:
            instant, _, number, kind, transfer = heapq.heappop(self._events)
            self._held_s += self.state.used * (min(instant, limit) - self.state.now)
            if instant >= limit:
                self.state.now = limit
                return self._outcome(finished=False)
            self.state.now = instant
            if kind == "ask":
                self._ask()
            elif kind == "due":
                self._due(number)
            elif transfer is not None and not transfer.given_up:
                self._done(transfer)
            self._fill()
        return self._outcome(finished=True)

    def _add(self, instant: float, number: int, kind: str, transfer: Transfer | None = None) -> None:
        self._count += 1
        heapq.heappush(self._events, (instant, self._count, number, kind, transfer))

    def _ask(self) -> None:
        for transfer in self._policy.ask(self.state):
            transfer.given_up = True
            self.state.busy[transfer.link] = None
            self.state.used -= transfer.size
            self._transfers.append((transfer.size, True))
        self._add(self.state.now + AGAIN_S, 0, "ask")
        for stream, job in enumerate(self.state.jobs):
            if job.waiting:
                self._begin(stream)

    def _due(self, stream: int) -> None:
        job = self.state.jobs[stream]
        job.dues.append(self.state.now)
        job.waiting = True
        if not (job.local_left and self._policy.takes_local(stream, self.state, ready=True)):
            for transfer in self.state.busy:
                if transfer is not None and transfer.stream == stream and transfer.ends_s > self.state.now + _SAME:
                    transfer.late |= self._awaited(transfer)
        self._begin(stream)

    def _awaited(self, transfer: Transfer) -> bool:
        """Whether a transfer brings data of the next step from afar."""
        remote, size = self.state.jobs[transfer.stream].remote, self._sizes[transfer.stream]
        if remote >= self._remote or not transfer.begin // size <= remote <= transfer.end // size:
            return False
        return min(transfer.end, (remote + 1) * size) > max(transfer.begin, remote * size)

    def _begin(self, stream: int) -> None:
        """Begin the step that is due, if its data are there."""
        job = self.state.jobs[stream]
        ready = job.remote < len(job.missing) and job.missing[job.remote] < _BYTE
        local = job.local_left > 0 and (
            job.remote >= len(job.missing) or self._policy.takes_local(stream, self.state, ready=ready)
        )
        if not (ready or local):
            return
        if local:
            job.local_left -= 1
        else:
            self.state.used -= self._sizes[stream]
            job.remote += 1
        job.waiting = False
        job.waited_s += self.state.now - job.due_s
        job.slot += 1
        self._to_begin -= 1
        job.due_s = self.state.now + STEP_S
        if job.slot < self._window.steps:
            self._add(job.due_s, stream, "due")

    def _done(self, transfer: Transfer) -> None:
        job = self.state.jobs[transfer.stream]
        self.state.busy[transfer.link] = None
        late = transfer.slot < len(job.dues) and job.dues[transfer.slot] < self.state.now - _SAME
        self._transfers.append((transfer.size, late or transfer.late))
        for step, part in self._steps(transfer):
            job.missing[step] -= part
        if job.waiting:
            self._begin(transfer.stream)

    def _steps(self, transfer: Transfer) -> list[tuple[int, float]]:
        """Steps that a transfer brings data of, with how many bytes."""
        begin, end, size = transfer.begin, transfer.end, self._sizes[transfer.stream]
        steps = range(int(begin // size), min(int(end // size) + 1, self._remote))
        return [(step, part) for step in steps if (part := min(end, (step + 1) * size) - max(begin, step * size)) > 0.0]

    def _fill(self) -> None:
        for link, busy in enumerate(self.state.busy):
            if busy is not None:
                continue
            found = self._policy.fetch(link, self.state)
            if isinstance(found, Transfer):
                self._start(link, found)
            elif found < inf and found != self._looks[link]:
                self._looks[link] = found
                self._add(found, link, "look")

    def _start(self, link: int, transfer: Transfer) -> None:
        if self.state.used + transfer.size > self._window.room * (1 + _SAME):
            raise RuntimeError("the policy fetches more than there is room for")
        self.state.used += transfer.size
        self.state.busy[link] = transfer
        transfer.start_s = self.state.now
        transfer.late = self.state.jobs[transfer.stream].waiting and self._awaited(transfer)
        transfer.ends_s = self._links[link].when(self.state.now + self._latencies[link], transfer.size)
        self._add(transfer.ends_s, link, "done", transfer)

    def _outcome(self, *, finished: bool) -> Outcome:
        shares = []
        for stream, job in enumerate(self.state.jobs):
            left = job.slot < self._window.steps
            if left:
                job.waited_s += max(0.0, self.state.now - job.due_s) if job.waiting else 0.0
                self._never_came(stream)
            lasted = self.state.now - LEAD_S if left else job.waited_s + self._window.steps * STEP_S
            shares.append(job.waited_s / lasted)
        sizes, late = (np.array(column) for column in zip(*self._transfers, strict=True))
        return Outcome(
            float(np.mean(shares)),
            float(late.mean()),
            float((sizes * late).sum() / sizes.sum()),
            len(sizes),
            self._held_s / (self.state.now * self._window.room),
            finished,
        )

    def _never_came(self, stream: int) -> None:
        """Count what is under way or was never asked for as blocked."""
        missing = list(self.state.jobs[stream].missing)
        for transfer in self.state.busy:
            if transfer is not None and transfer.stream == stream:
                self._transfers.append((transfer.size, True))
                for step, part in self._steps(transfer):
                    missing[step] -= part
        least = _SAME * self._sizes[stream]
        self._transfers += [(part, True) for part in missing if part > least]
