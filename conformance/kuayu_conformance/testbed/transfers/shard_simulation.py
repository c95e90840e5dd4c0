"""Windows of training on data from afar, and what happens in one under a policy, event by event (RES-005, RES-006).

1. **Window.** A domain that computes, sources whose links vary, jobs that share them. Bandwidths lie over time:

   - *±30 %*: a stationary Gaussian process, mapped so that shares of the link's level are uniform from 0.7 to 1.3. Its
     correlation time is drawn from 20 to 600 s, since the measurements that we have are days apart and say nothing of
     it;
   - *×0.3*: the same, with episodes at 0.3 of it; one in 15 minutes on average and link, of 2 minutes on average;
   - *outages*: ±30 % with outages; one in 30 minutes on average and link, of a minute on average;
   - *measured*: ±30 % around levels that are not those by which the jobs were sized, but off by a ratio as measured
     between cloud regions five days apart (``RATIOS``);
   - *calm*: at its level.

   Levels are drawn log-uniformly from 2 to 10 Gbit/s: a range of ours inside the one of 0.1 to 33.7 Gbit/s measured
   there.
2. **State.** What a policy may look at and order, and what came of it, in :class:`State` and :class:`Outcome`.
3. **Links.** A link carries one transfer at a time; a request takes its latency, then bytes come as the link carries
   them.
4. **Steps.** A step begins when the one before it has ended and all its data are there; its data then leave the room.
5. **Blocked** is a transfer that has not ended when the slot of its shard is due, or a slot that is to take bytes of
   it, and one that is given up.
6. **End.** A window ends when all steps have begun, or at its limit. Whoever has steps left then has waited until
   then, and data that never came are blocked: those of each step as if they had been a transfer of their own.
"""

import heapq
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, normal, stream
from kuayu_conformance.testbed.elementary import exponential

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
MILD = "±30 %"
FAMILIES = (MILD, "×0.3", "outages", "measured", "calm")
RATIOS = (
    *(0.873, 0.941, 0.974, 0.989, 0.993, 0.996, 0.998, 0.999, 1.001, 1.005),
    *(1.028, 1.071, 1.129, 1.195, 1.268, 1.352, 1.452, 1.583, 1.885),
)
"""Received throughput of the same pair of cloud regions on 2022-01-29 over that on 2022-01-24, quantiles at 5, 10, …
95 % of 3906 pairs; 76 % lie within ±30 %. Skyplane's profiles (github.com/skyplane-project/skyplane, Apache-2.0)."""
HISTORY_S, LEAD_S, WINDOW_S = 1800, 60, 1200
"""Seconds measured beforehand; seconds in which data may be fetched before the first step; seconds of steps."""
MAX_WINDOW_TIMES = 3
"""Times the seconds of its steps that a window lasts at most."""
STEP_S = 5.0
INTERVAL_S = 5
"""Seconds between measurements."""
NOISE = 0.05
"""Standard deviation of the logarithm of what is measured over what is carried."""
SOURCES, STREAMS = 3, 2
LOCAL = 0.15
"""Share of steps whose data lie in the local cache."""
LOADS = (0.5, 0.95)
"""What steps from afar need, over the most that links could bring by their levels; uniformly between these."""
ROOMS = (4, 8, 16, 32)
"""Steps of each job that the domain has room for."""
LATENCIES_S = (0.02, 0.3)
"""Of a request; log-uniform. Round trips between cloud regions lie from 15 to 290 ms (5 to 95 %, the same profiles)."""
AGAIN_S = 10.0
"""Seconds after which a policy is asked anew: two steps."""
_BYTES, _BITS = 1e9 / 8, 8.0
_MEGA = 1e6
_DIGITS = 6
_SAME = 1e-6
_BYTE = 0.5
"""Bytes that are none; all else is whole."""


@dataclass(frozen=True, slots=True)
class Names:
    """What everything is called in requests; names tell nothing.

    Attributes:
        target: Domain that computes.
        sources: Domains that hold data, one for each link.
        jobs: Streams.
    """

    target: str
    sources: tuple[str, ...]
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """One domain over half an hour that was measured and a while in which it trains. Sizes are whole bytes.

    Attributes:
        family: How bandwidths lie over time.
        seed: What all was drawn from.
        names: What everything is called.
        latency_s: Seconds of a request, (S,).
        rates: Bytes a second in each second from the beginning of the window to its end at the latest, (S, seconds).
        measured: Bit/s by interval, with noise, ``HISTORY_S`` seconds of them before the window, (S, intervals).
        step_bytes: Of each job, (J,).
        copies: Whether a job's data lie at a source, (J, S).
        steps: Of each job.
        local: Of these, with data in the local cache.
        room: Bytes.
        correlation_s: Of the process.
        load: What steps from afar need, over the most that links could bring by their levels.
    """

    family: str
    seed: str
    names: Names
    latency_s: Floats
    rates: Floats
    measured: Floats
    step_bytes: Floats
    copies: Flags
    steps: int
    local: int
    room: float
    correlation_s: float
    load: float

    @property
    def limit_s(self) -> float:
        """When it ends at the latest, whatever has been done by then."""
        return float(self.rates.shape[1])

    @property
    def before(self) -> Floats:
        """Mean of what was measured before the window, bit/s, (S,)."""
        mean: Floats = self.measured[:, : HISTORY_S // INTERVAL_S].mean(axis=1)
        return mean


def draw(family: str, seed: str, seconds: int = WINDOW_S, naming: str = "") -> Window:
    """A window with so many seconds of steps; the same jobs and links, but for names, for all families of a seed.

    Names follow from ``naming`` where it is given, else from the seed too.
    """
    chance = Chance(seed, "jobs and links")
    known = np.array([2.0 * _BYTES * _power(chance, 5.0) for _ in range(SOURCES)])
    latency = np.array([LATENCIES_S[0] * _power(chance, LATENCIES_S[1] / LATENCIES_S[0]) for _ in range(SOURCES)])
    copies = np.array([_held(chance) for _ in range(STREAMS)])
    load, share = chance.between(*LOADS), chance.between(0.35, 0.65)
    shares = np.array([share, 1.0 - share])
    size = np.round(load * _most(known, copies, shares) * shares / (1.0 - LOCAL) * STEP_S)
    room, correlation = chance.pick(ROOMS), 20.0 * _power(chance, 30.0)
    off = np.array([_ratio(chance.fraction()) for _ in range(SOURCES)])
    span = HISTORY_S + LEAD_S + MAX_WINDOW_TIMES * seconds
    shape = _shape(family, seed, span, correlation)
    level = known * off if family == "measured" else known
    rates = np.round(level[:, None] * shape)
    means = rates.reshape(SOURCES, -1, INTERVAL_S).mean(axis=2)
    noise = exponential(NOISE * normal(stream(seed, "noise"), means.shape).astype(np.float64))
    steps = int(seconds / STEP_S)
    return Window(
        family,
        seed,
        _names(f"{family} {naming or seed}"),
        np.round(latency, _DIGITS),
        rates[:, HISTORY_S:],
        np.round(_BITS * means * noise / _MEGA) * _MEGA,
        size,
        copies,
        steps,
        int(LOCAL * steps),
        float(room * size.sum()),
        correlation,
        load,
    )


@dataclass(slots=True, eq=False)
class Transfer:
    """A piece of a job's data from afar; bytes count from the first byte of its first step.

    Attributes:
        slot: Slot of the job that takes its first byte, counted from the job's first.
        ends_s: When it ends, unless it is given up.
        late: Whether a slot that is to take bytes of it was due before it ended.
    """

    stream: int
    link: int
    begin: float
    end: float
    slot: int
    start_s: float = 0.0
    ends_s: float = inf
    given_up: bool = False
    late: bool = False

    @property
    def size(self) -> float:
        """Bytes."""
        return self.end - self.begin


@dataclass(slots=True)
class Job:
    """How far a job is.

    Attributes:
        due_s: When its next slot is due.
        local_left: Local steps that have not begun.
        missing: Bytes of each step from afar that are not here.
        slot: Number of the next slot.
        remote: Steps from afar that have begun.
        dues: When each slot so far was due.
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

    def fetch(self, link: int, state: State) -> Transfer | float:
        """What an idle link fetches now; else the instant at which to look again if nothing happens before."""

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
        finished: Whether all steps had begun at the limit.
    """

    waiting: float
    blocked: float
    blocked_bytes: float
    transfers: int
    held: float
    finished: bool = True


class Carried:
    """Bytes that a link has carried by each second, and when it has carried so many."""

    def __init__(self, window: Window, link: int) -> None:
        self.rates: list[float] = window.rates[link].tolist()
        self.sums: list[float] = [0.0, *np.cumsum(window.rates[link]).tolist()]

    def by(self, instant: float) -> float:
        """Bytes from the beginning of the window to an instant."""
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
        for number in range(STREAMS):
            self._add(float(LEAD_S), number, "due")
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
        for number, job in enumerate(self.state.jobs):
            if job.waiting:
                self._begin(number)

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
        for number, job in enumerate(self.state.jobs):
            left = job.slot < self._window.steps
            if left:
                job.waited_s += max(0.0, self.state.now - job.due_s) if job.waiting else 0.0
                self._never_came(number)
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


def _power(chance: Chance, times: float) -> float:
    """From one to so many, the logarithm uniform."""
    return exponential(chance.fraction() * float(np.log(times)))


def _held(chance: Chance) -> list[bool]:
    """At which sources a job's data lie: at one, two or all."""
    count = 1 + chance.below(SOURCES)
    sources = chance.order([(source, 1.0) for source in range(SOURCES)])[:count]
    return [source in sources for source in range(SOURCES)]


def _ratio(share: float) -> float:
    """A quantile of ``RATIOS``, between them by their logarithms."""
    return float(np.exp(np.interp(share, np.linspace(0.05, 0.95, len(RATIOS)), np.log(RATIOS))).round(_DIGITS))


def _names(seed: str) -> Names:
    chance = Chance(seed, "names")
    drawn = [f"{chance.below(1 << 48):012x}" for _ in range(1 + SOURCES + STREAMS)]
    return Names(drawn[0], tuple(drawn[1 : 1 + SOURCES]), tuple(drawn[1 + SOURCES :]))


def _most(known: Floats, copies: Flags, shares: Floats) -> float:
    """The most that links can bring to all jobs together in such shares: the least of what each set of jobs can get."""
    together = float(known[copies.any(axis=0)].sum())
    return min(together, *(float(known[held].sum() / part) for held, part in zip(copies, shares, strict=True)))


def _shape(family: str, seed: str, seconds: int, correlation_s: float) -> Floats:
    """What each link carries over its level, (S, seconds), to six digits, so that it is the same on every machine."""
    from scipy.special import ndtr

    if family == "calm":
        return np.ones((SOURCES, seconds))
    decay = exponential(-1.0 / correlation_s)
    gauss = normal(stream(seed, "bandwidths"), (seconds, SOURCES)).astype(np.float64)
    gauss[1:] *= np.sqrt(1.0 - decay**2)
    for second in range(1, seconds):
        gauss[second] += decay * gauss[second - 1]
    shape: Floats = np.round(0.7 + 0.6 * ndtr(gauss.T), _DIGITS)
    if family == "×0.3":
        shape = np.where(_spells(seed, seconds, 900.0, 120.0), 0.3 * shape, shape)
    if family == "outages":
        shape = np.where(_spells(seed, seconds, 1800.0, 60.0), 0.0, shape)
    return shape


def _spells(seed: str, seconds: int, between_s: float, mean_s: float) -> Flags:
    """Whether each link is in a spell, which begin after and last for exponential times, (S, seconds)."""
    chance = Chance(seed, "spells")
    made = np.zeros((SOURCES, seconds), dtype=bool)
    for link in range(SOURCES):
        instant = between_s * _exponential(chance)
        while instant < seconds:
            lasts = mean_s * _exponential(chance)
            made[link, int(instant) : int(np.ceil(instant + lasts))] = True
            instant += lasts + between_s * _exponential(chance)
    return made


def _exponential(chance: Chance) -> float:
    return -float(np.log(1.0 - chance.fraction()))


@lru_cache(2)
def _carried(window: Window) -> tuple[Carried, ...]:
    """What each link carries; dozens of policies play the same window one after the other."""
    return tuple(Carried(window, link) for link in range(len(window.rates)))
