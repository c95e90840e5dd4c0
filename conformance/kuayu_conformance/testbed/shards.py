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
7. **Schedules** do not look at the network: fixed shards on demand or ahead, and a grid to find the best in.
8. **Clairvoyant.** :func:`clairvoyant` knows what links will carry, splits every step freely over them, and waits for
   no request. Steps of all jobs are poured into the links in the order of their slots, each so that it is there as
   soon as possible. Slots whose data are late take local data. More bandwidth makes nothing later. It is no bound: a
   step that could come over several links may take the one that a later step has to wait for.
9. **Executor.** It carries the plans of a service out, as the clause *Carrying a plan out* says. What no plan can be
   carried out by is left out: an answer that does not name the streams of its request changes nothing, so that the
   plan before it stays; a shard whose bytes are not missing, whose source holds no copy, or which the room cannot hold
   is passed over. Bytes are rounded to whole ones. The slot of a shard is worked out from the order of steps and the
   local slots of its plan, whatever the plan says of it.
10. **Codec.** Requests tell a window as the standard's model has it, at an instant.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import fsum, inf
from typing import TYPE_CHECKING, Annotated, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from kuayu_conformance.testbed.chance import Chance, normal
from kuayu_conformance.testbed.chance import stream as random_stream
from kuayu_conformance.testbed.elementary import exponential

if TYPE_CHECKING:
    from kuayu_schemas import documents

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

NEAREST, SPLIT, PULL = "nearest", "split", "pull"
SOURCE_CHOICES = (NEAREST, SPLIT, PULL)
"""Each shard from the copy whose link has carried most before the window; dealt out in proportion to that; or to
whichever link is idle."""
EVENLY, FIRST, LAST = "evenly", "first", "last"
PLACES = (EVENLY, FIRST, LAST)
"""Where in the order steps with local data stand."""
Plan = Callable[["documents.ShardPlanRequest"], "documents.ShardPlan | None"]
"""Makes a valid plan; None where there is none."""
MOST_SHARDS = 10_000
"""Shards of a plan that are looked at: far more than can be fetched before the next one."""
MOST_RANGES = 1_000
"""Ranges of a stream that may be missing apart from each other; a shard that makes more of them is passed over."""
Ranges = Sequence[tuple[float, float]]
"""Bytes of a stream as (begin, end), rising and apart, counted from its very first."""
HORIZON_S = 60.0
"""How far is to be planned, which is farther than until the next plan."""
_HALVINGS = 40


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
        capacity: Bytes.
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
    capacity: float
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
    copies = np.array([_sources_of_stream(chance) for _ in range(STREAMS)])
    load, share = chance.between(*LOADS), chance.between(0.35, 0.65)
    shares = np.array([share, 1.0 - share])
    size = np.round(load * _most(known, copies, shares) * shares / (1.0 - LOCAL) * STEP_S)
    room_steps, correlation = chance.pick(ROOMS), 20.0 * _power(chance, 30.0)
    off = np.array([_ratio(chance.fraction()) for _ in range(SOURCES)])
    span = HISTORY_S + LEAD_S + MAX_WINDOW_TIMES * seconds
    shape = _shape(family, seed, span, correlation)
    level = known * off if family == "measured" else known
    rates = np.round(level[:, None] * shape)
    means = rates.reshape(SOURCES, -1, INTERVAL_S).mean(axis=2)
    noise = exponential(NOISE * normal(random_stream(seed, "noise"), means.shape).astype(np.float64))
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
        float(room_steps * size.sum()),
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
        occupancy: Mean share of the room that was taken.
        finished: Whether all steps had begun at the limit.
    """

    waiting: float
    blocked: float
    blocked_bytes: float
    transfers: int
    occupancy: Annotated[float, Field(alias="held")]  # its name in transcripts
    finished: bool = True


class CarriedBytes:
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
        self._used_byte_s = 0.0

    def play(self) -> Outcome:
        """Until all steps have begun, or to the limit."""
        limit = self._window.limit_s
        self._add(0.0, 0, "ask")
        for number in range(STREAMS):
            self._add(float(LEAD_S), number, "due")
        while self._to_begin:
            instant, _, number, kind, transfer = heapq.heappop(self._events)
            self._used_byte_s += self.state.used * (min(instant, limit) - self.state.now)
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
            choice = self._policy.fetch(link, self.state)
            if isinstance(choice, Transfer):
                self._start(link, choice)
            elif choice < inf and choice != self._looks[link]:
                self._looks[link] = choice
                self._add(choice, link, "look")

    def _start(self, link: int, transfer: Transfer) -> None:
        if self.state.used + transfer.size > self._window.capacity * (1 + _SAME):
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
            self._used_byte_s / (self.state.now * self._window.capacity),
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


def _sources_of_stream(chance: Chance) -> list[bool]:
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
    return min(
        together, *(float(known[at_sources].sum() / part) for at_sources, part in zip(copies, shares, strict=True))
    )


def _shape(family: str, seed: str, seconds: int, correlation_s: float) -> Floats:
    """What each link carries over its level, (S, seconds), to six digits, so that it is the same on every machine."""
    from scipy.special import ndtr

    if family == "calm":
        return np.ones((SOURCES, seconds))
    decay = exponential(-1.0 / correlation_s)
    gauss = normal(random_stream(seed, "bandwidths"), (seconds, SOURCES)).astype(np.float64)
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
    spells = np.zeros((SOURCES, seconds), dtype=bool)
    for link in range(SOURCES):
        instant = between_s * _exponential(chance)
        while instant < seconds:
            lasts = mean_s * _exponential(chance)
            spells[link, int(instant) : int(np.ceil(instant + lasts))] = True
            instant += lasts + between_s * _exponential(chance)
    return spells


def _exponential(chance: Chance) -> float:
    return -float(np.log(1.0 - chance.fraction()))


@lru_cache(2)
def _carried(window: Window) -> tuple[CarriedBytes, ...]:
    """What each link carries; dozens of policies play the same window one after the other."""
    return tuple(CarriedBytes(window, link) for link in range(len(window.rates)))


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule that does not look at the network.

    Attributes:
        parts: Size of a shard in steps.
        depth: Steps ahead; a job never has more than its part of the room.
        source_choice: One of SOURCE_CHOICES.
        local: One of PLACES.
    """

    parts: float
    depth: int
    source_choice: str
    local: str

    def __str__(self) -> str:
        """In words."""
        return f"{self.parts:g} steps, {self.depth} ahead, {self.source_choice}, local {self.local}"


ONE_AHEAD = Schedule(1.0, 1, NEAREST, EVENLY)
ON_DEMAND = Schedule(1.0, 0, NEAREST, EVENLY)


def grid() -> Iterator[Schedule]:
    """Schedules with overlap among which the best is looked for in hindsight."""
    for point in product((0.5, 1.0, 2.0), (2, 8, 32), SOURCE_CHOICES, PLACES):
        yield Schedule(*point)


def best(outcomes: Mapping[Schedule, Sequence[Outcome]], measure: str, *, pulling: bool) -> Schedule:
    """The schedule with the least sum of a measure over all windows, the one with less held where several have it.

    Args:
        outcomes: Outcomes of each schedule, window by window.
        measure: Name of a member of the outcomes.
        pulling: Among those whose idle links pull, or among the others.
    """
    mine = [schedule for schedule in outcomes if (schedule.source_choice == PULL) == pulling]
    return min(
        mine,
        key=lambda schedule: tuple(
            fsum(getattr(outcome, of) for outcome in outcomes[schedule]) for of in (measure, "occupancy")
        ),
    )


def local_slots(window: Window, place: str) -> list[bool]:
    """Whether each slot takes local data, where the order is fixed."""
    slots = np.arange(window.steps)
    if place == EVENLY:
        share = window.local / window.steps
        local = np.floor((slots + 1) * share + _SAME) > np.floor(slots * share + _SAME)
    else:
        local = slots < window.local if place == FIRST else slots >= window.steps - window.local
    return [bool(is_local) for is_local in local]


class Static:
    """A schedule carried out."""

    def __init__(self, window: Window, schedule: Schedule) -> None:
        self._schedule = schedule
        self._local = local_slots(window, schedule.local)
        self._slots = [slot for slot, local in enumerate(self._local) if not local]
        self._depth = min(schedule.depth, int(window.capacity / (window.step_bytes.sum())))
        links = len(window.rates)
        self._queues: list[list[list[tuple[float, float, int, int]]]] = []
        self._heads = [[0] * links for _ in range(STREAMS)]
        for stream in range(STREAMS):
            queues: list[list[tuple[float, float, int, int]]] = [[] for _ in range(links)]
            for shard, link in zip(
                self._shards(float(window.step_bytes[stream])), self._links(window, stream), strict=False
            ):
                queues[link].append(shard)
            self._queues.append(queues)
        self._copies = window.copies.tolist()

    def _shards(self, size: float) -> list[tuple[float, float, int, int]]:
        """First and after-last byte, slots of the first and of the last step."""
        length = self._schedule.parts * size
        count = int(np.ceil(len(self._slots) / self._schedule.parts))
        shards = []
        for number in range(count):
            begin, end = number * length, min((number + 1) * length, len(self._slots) * size)
            first, last = int(begin / size + _SAME), int(np.ceil(end / size - _SAME)) - 1
            shards.append((begin, end, self._slots[first], self._slots[last]))
        return shards

    def _links(self, window: Window, stream: int) -> Iterator[int]:
        """The link of each shard; for ``pull`` a common queue in place of the first."""
        carried = np.where(window.copies[stream], window.before, 0.0)
        credit = np.zeros(len(carried))
        while True:
            if self._schedule.source_choice == SPLIT:
                credit += carried / carried.sum()
                link = int(np.argmax(credit))
                credit[link] -= 1.0
                yield link
            else:
                yield 0 if self._schedule.source_choice == PULL else int(np.argmax(carried))

    def ask(self, state: State) -> list[Transfer]:  # noqa: ARG002 - it does not look
        """Nothing is ever given up."""
        return []

    def fetch(self, link: int, state: State) -> Transfer | float:
        """Of the shards that may come now, the one whose slot is due first."""
        queue = 0 if self._schedule.source_choice == PULL else link
        soonest, transfer = inf, None
        for stream, job in enumerate(state.jobs):
            if not self._copies[stream][link]:
                continue
            shards, head = self._queues[stream][queue], self._heads[stream][queue]
            if head >= len(shards):
                continue
            begin, end, first, last = shards[head]
            now = job.slot if job.waiting else job.slot - 1
            if last > now + self._depth and first > now:
                continue
            if state.used + end - begin > state.window.capacity:
                continue
            due = job.due_s + (first - job.slot) * STEP_S
            if due < soonest:
                soonest, transfer = due, Transfer(stream, link, begin, end, first)
        if transfer is None:
            return inf
        self._heads[transfer.stream][queue] += 1
        return transfer

    def takes_local(self, stream: int, state: State, *, ready: bool) -> bool:  # noqa: ARG002 - the order is fixed
        """As the order says."""
        return self._local[state.jobs[stream].slot]


def clairvoyant(window: Window) -> Outcome:
    """What it reaches."""
    links = [CarriedBytes(window, link) for link in range(len(window.rates))]
    free = [0.0] * len(links)
    depth = int(window.capacity / window.step_bytes.sum())
    remote = window.steps - window.local
    begun: list[list[float]] = [[] for _ in range(STREAMS)]
    clocks = [float(LEAD_S)] * STREAMS
    local = [window.local] * STREAMS
    waited = [0.0] * STREAMS
    late = 0
    for step in range(remote):
        for stream in range(STREAMS):
            release = begun[stream][step - depth] if step >= depth else 0.0
            mine = [link for link in range(len(links)) if window.copies[stream, link]]
            ready = _poured(links, free, mine, release, float(window.step_bytes[stream]))
            while ready > clocks[stream] and local[stream]:
                clocks[stream] += STEP_S
                local[stream] -= 1
            wait = max(0.0, ready - clocks[stream])
            late += wait > 0.0
            waited[stream] += wait
            begun[stream].append(clocks[stream] + wait)
            clocks[stream] += wait + STEP_S
    total = window.steps * STEP_S
    shares = [seconds / (seconds + total) for seconds in waited]
    share = late / (remote * STREAMS)
    return Outcome(float(np.mean(shares)), share, share, remote * STREAMS, float("nan"))


class Executor:
    """Asks for plans and carries them out.

    Args:
        window: Where.
        plan: Makes them.

    Attributes:
        plans: How many there were.
    """

    def __init__(self, window: Window, plan: Plan) -> None:
        self._window, self._plan, self._wire = window, plan, Codec(window)
        remote = window.steps - window.local
        self._missing = [[(0.0, remote * float(size))] for size in window.step_bytes]
        self._queues: list[deque[tuple[float, Transfer]]] = [deque() for _ in window.rates]
        self._least = [_SAME * float(size) for size in window.step_bytes]
        self._local: list[list[int]] = [[]] * STREAMS
        self._when_late = [False] * STREAMS
        self.plans = 0

    def request(self, state: State) -> "documents.ShardPlanRequest":
        """What is asked."""
        return self._wire.request(state, self._missing)

    def slot(self, stream: int, step: int, state: State) -> int:
        """Slot of the job that takes a step from afar, by the local slots of the newest plan."""
        slot = state.jobs[stream].slot + step - state.jobs[stream].remote
        for local in self._local[stream]:
            if local > slot:
                break
            slot += 1
        return slot

    def ask(self, state: State) -> list[Transfer]:
        """Plan anew; the transfers that are abandoned."""
        self._forget(state)
        answer = self._plan(self.request(state))
        names = self._window.names.jobs
        if answer is None or [stream["stream"] for stream in answer["streams"]] != list(names):
            return []
        if not {shard["stream"] for shard in answer["shards"]}.issubset(names):
            return []
        self.plans += 1
        stopped = [
            transfer
            for number, stream in enumerate(answer["streams"])
            for transfer in self._stopped(number, stream, state)
        ]
        for number, stream in enumerate(answer["streams"]):
            slot, last = state.jobs[number].slot, self._window.steps
            slots = {slot + int(offset) for offset in stream["local_slots"] if offset < last}
            self._local[number] = sorted(slots)[: state.jobs[number].local_left]
            self._when_late[number] = stream["local_when_late"]
        self._queue(answer, state)
        return stopped

    def _forget(self, state: State) -> None:
        """Leave out what steps that have begun did without: less than anybody counts."""
        for number, job in enumerate(state.jobs):
            base = job.remote * float(self._window.step_bytes[number])
            self._missing[number] = [(max(begin, base), end) for begin, end in self._missing[number] if end > base]

    def _stopped(self, number: int, stream_plan: "documents.StreamPlan", state: State) -> list[Transfer]:
        """Transfers of a stream that are abandoned; their bytes are missing again."""
        base = state.jobs[number].remote * float(self._window.step_bytes[number])
        sources, least = self._window.names.sources, self._least[number]
        named = [(shard["source"], base + float(shard["begin"])) for shard in stream_plan.get("abandoned", [])]
        mine = [transfer for transfer in state.busy if transfer is not None and transfer.stream == number]
        abandoned = [
            transfer
            for transfer in mine
            if any(source == sources[transfer.link] and abs(transfer.begin - begin) <= least for source, begin in named)
        ]
        self._missing[number] = _joined(
            [*self._missing[number], *((transfer.begin, transfer.end) for transfer in abandoned)]
        )
        return abandoned

    def _queue(self, answer: "documents.ShardPlan", state: State) -> None:
        names = self._window.names
        for queue in self._queues:
            queue.clear()
        for shard in answer["shards"][:MOST_SHARDS]:
            if shard["source"] not in names.sources:
                continue
            number, link = names.jobs.index(shard["stream"]), names.sources.index(shard["source"])
            base = state.jobs[number].remote * float(self._window.step_bytes[number])
            begin, end = (base + float(round(byte)) for byte in (shard["begin"], shard["end"]))
            step = int((begin + self._least[number]) // self._window.step_bytes[number])
            transfer = Transfer(number, link, begin, end, self.slot(number, step, state))
            self._queues[link].append((state.now + float(shard["after"]), transfer))

    def _fits(self, transfer: Transfer) -> bool:
        """Whether a shard can be fetched: from there, and all of it is missing, in one piece that the room holds.

        Ends that lie less than anybody counts beside those of what is missing are put there.
        """
        number, least = transfer.stream, self._least[transfer.stream]
        missing = self._missing[number]
        index = bisect_right(missing, ((transfer.begin + transfer.end) / 2.0, inf)) - 1
        if index < 0 or not self._window.copies[number, transfer.link]:
            return False
        first, last = missing[index]
        transfer.begin = first if abs(transfer.begin - first) <= least else transfer.begin
        transfer.end = last if abs(transfer.end - last) <= least else transfer.end
        whole = first <= transfer.begin < transfer.end <= last
        return whole and transfer.size <= self._window.capacity + least and len(missing) < MOST_RANGES

    def fetch(self, link: int, state: State) -> Transfer | float:
        """The first of the link's shards, once its time has come and there is room."""
        queue = self._queues[link]
        while queue:
            when, transfer = queue[0]
            if not self._fits(transfer):
                queue.popleft()
            elif when > state.now + _SAME:
                return when
            elif state.used + transfer.size > self._window.capacity + self._least[transfer.stream]:
                return inf
            else:
                queue.popleft()
                self._missing[transfer.stream] = _without(self._missing[transfer.stream], transfer)
                return transfer
        return inf

    def takes_local(self, stream: int, state: State, *, ready: bool) -> bool:
        """Where the newest plan names the slot, or where the data from afar are late and the plan says so."""
        return state.jobs[stream].slot in self._local[stream] or (not ready and self._when_late[stream])


class Codec:
    """Tells a window."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._links = [CarriedBytes(window, link) for link in range(len(window.rates))]
        self._asked = 0

    def request(self, state: State, missing: Sequence[Ranges]) -> "documents.ShardPlanRequest":
        """What is asked at an instant; ``missing`` is what neither is there nor under way, by stream."""
        self._asked += 1
        names, window = self._window.names, self._window
        return {
            "revision": {"epoch": names.target, "number": self._asked},
            "interval": float(INTERVAL_S),
            "horizon": max(HORIZON_S, AGAIN_S),
            "links": [self._link(link, state.now) for link in range(len(self._links))],
            "rooms": [{"domain": names.target, "size": window.capacity}],
            "streams": [self._stream(number, state, ranges) for number, ranges in enumerate(missing)],
        }

    def _link(self, link: int, now: float) -> "documents.MeasuredLink":
        window = self._window
        seen = (HISTORY_S + int(now)) // INTERVAL_S
        recent = window.measured[link, max(0, seen - HISTORY_S // INTERVAL_S) : seen]
        second = min(int(now), window.rates.shape[1] - 1)
        return {
            "source": window.names.sources[link],
            "target": window.names.target,
            "latency": float(window.latency_s[link]),
            "up": bool(window.rates[link, second] > 0.0),
            "bandwidths": [int(value) for value in recent],
        }

    def _stream(self, number: int, state: State, missing: Ranges) -> "documents.DataStream":
        window, job = self._window, state.jobs[number]
        size = float(window.step_bytes[number])
        base = job.remote * size
        mine = [transfer for transfer in state.busy if transfer is not None and transfer.stream == number]
        under_way = [transfer for transfer in mine if transfer.end > base]
        return {
            "id": window.names.jobs[number],
            "target": window.names.target,
            "sources": [
                name for name, has_copy in zip(window.names.sources, window.copies[number], strict=True) if has_copy
            ],
            "step_size": size,
            "step_time": STEP_S,
            "due": max(0.0, job.due_s - state.now),
            "remote_steps": len(job.missing) - job.remote,
            "local_steps": job.local_left,
            "missing": [{"begin": begin - base, "end": end - base} for begin, end in missing],
            "transfers": [
                {
                    "source": window.names.sources[transfer.link],
                    "begin": max(0.0, transfer.begin - base),
                    "end": transfer.end - base,
                    "left": self._left(transfer, state.now),
                }
                for transfer in under_way
            ],
        }

    def _left(self, transfer: Transfer, now: float) -> float:
        """Whole bytes that have not come, as the receiver sees them."""
        carried, began = self._links[transfer.link], transfer.start_s + float(self._window.latency_s[transfer.link])
        come = carried.by(now) - carried.by(began) if now > began else 0.0
        return float(round(max(transfer.size - come, 0.0)))


def _poured(links: list[CarriedBytes], free: list[float], mine: list[int], release: float, count: float) -> float:
    """When so many bytes are there, over all links that may carry them; the links are busy until then."""
    starts = [max(free[link], release) for link in mine]
    carried = [links[link].by(start) for link, start in zip(mine, starts, strict=True)]
    first = min(starts)
    soonest = min(links[link].when(start, count) for link, start in zip(mine, starts, strict=True))
    low, high = first, min(soonest, float(len(links[0].rates)))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        come = sum(
            links[link].by(middle) - before
            for link, start, before in zip(mine, starts, carried, strict=True)
            if start < middle
        )
        low, high = (low, middle) if come >= count else (middle, high)
    for link in mine:
        free[link] = max(free[link], high)
    return high


def _joined(ranges: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Ranges in rising order; those that touch are one."""
    joined: list[tuple[float, float]] = []
    for begin, end in sorted(ranges):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def _without(ranges: list[tuple[float, float]], transfer: Transfer) -> list[tuple[float, float]]:
    """What is left of ranges; the transfer lies within one of them."""
    rest = []
    for begin, end in ranges:
        if end <= transfer.begin or begin >= transfer.end:
            rest.append((begin, end))
        else:
            rest += [(begin, transfer.begin)] if begin < transfer.begin else []
            rest += [(transfer.end, end)] if end > transfer.end else []
    return rest
