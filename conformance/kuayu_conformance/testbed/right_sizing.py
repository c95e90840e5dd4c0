"""Tasks that ask for more than they need, and the cluster that they queue for: the world of right-sizing (DEM-003).

1. **Kinds.** :data:`KINDS` and :data:`MIXES` are published figures, or said to be assumed; sources below.
2. **Tasks.** :func:`window` draws those that arrive, :func:`history` those that ran before; all of them from a seed.
3. **Law.** Given a part of what it needs, the share of its time that waits for that resource grows as the reciprocal.
   Whatever it is, work stays the same: nobody uses more than is given, so that time is at least use ÷ given. Where
   more than one resource is short the delays add.
4. **Queue.** Whenever something changed, :func:`play` goes through the queue in order of the policy, and whatever fits
   is started, also past what does not fit; nothing is pre-empted. A task whose memory runs out dies on its way, and is
   queued again at its old place with what was first asked for.
5. **Policies.** FIFO by arrival; SRTF by the time that a task is believed to take; DRF by the dominant share of what
   its user holds, then by arrival. Which task is whose the source does not say; eight users are assumed. Beside these
   stands FIFO in which nobody overtakes, so that whatever does not fit holds up all behind it: the words "first in,
   first out" may be taken so, the algorithm may not.
6. **Sizes.** :func:`ideal` is what somebody gives who knows; :func:`tolerant` and :func:`at_one_rate` are what the
   source's method comes to. None of them needs a service.
7. **Codec.** A service is told of tasks in the words of the standard, under names that tell nothing.

It is not the trace that the source used. Yang, Hong and Tang ("Artificial intelligence computing power cluster
scheduling based on task resource demand prediction", High Technology Letters) took 100 000 records of Alibaba's PAI
cluster (Weng et al., "MLaaS in the Wild", NSDI 2022), chosen by rules that they do not publish. Everything here is
drawn from the figures that they print:

* mean cores, share of a GPU and memory of four kinds (table 1); the cluster of 32 GPUs, 384 cores and 2 TB, the
  window of 12 h, Poisson arrivals, 70 tasks an hour (section 4). Four machines of 96 cores, 512 GB and 8 GPUs, as the
  PAI trace lists them, make that cluster. As in formula 13 a task may be spread over machines, so that it is one
  pool;
* the order of the queue (algorithm 2) and the policies (experiment 3; DRF is A. Ghodsi et al., "Dominant Resource
  Fairness", NSDI 2011);
* two mixes of ResNet : NMT : GraphLearn : CTR, 5:15:15:65 and 40:30:20:10 (experiment 2). Of a third only the picture
  tells; here it is the even one;
* how long tasks run, in a unit that is not named: mean absolute error ÷ weighted percentage error (table 3) is 1.23
  for CTR, 9.67 for ResNet and 6.82 for NMT. Hours are taken: it is the only usual unit in which 70 tasks an hour fill
  the cluster at all and leave some of them done within the window. GraphLearn is missing in that table: the geometric
  mean of the three is assumed. Experiment 1 says that cores are all taken after some two hours; here it takes less
  than one, and in units of 1000 s too, as 70 tasks ask for 600 cores and more if they use what table 1 says;
* how well time follows from resources (table 3): errors of 11 to 15 %, so a noise of 16 % standard deviation;
* which resource holds a kind back (section 2.1): recommendation waits for its input for 56 % of the time (cores),
  image classification for 10 to 70 % (memory; 40 % are taken), translation needs GPUs (90 % assumed). GraphLearn uses
  cores and hardly any GPU: 40 % on cores is assumed. All else is 10 %;
* sizing took 28.5 % off the cores that were asked for (experiment 1). The mean over-request is such that somebody who
  knows what each task needs takes just as much: 1.43. So does one rate for all tasks that slows them by 5 % on the
  mean. Traces of users suggest more, at least of memory: in the one sample that the description of the PAI trace
  shows, six cores and 29.3 GB are asked for, 1.4 cores and at most 2.4 GB used (different tasks, so that no figure
  follows).

Assumed, and varied in tables of a full run: the spread of use within a kind, the spread of the over-request and its
being the same for all kinds, tasks that ask for too little (without them no history could tell what too little does).
A task needs a tenth more cores and GPU than it uses on the mean; thus the first mix asks for 9.0 cores on the mean,
and GPU pods of Alibaba's 2023 trace (openb) for 8.9. Its memory peaks at half as much again as the mean (in the one
sample that the trace's description shows, at 1.6 times as much), and image classification uses a fifth more than that
as a cache.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import normal, stream
from kuayu_conformance.testbed.elementary import exponential

if TYPE_CHECKING:
    from kuayu_schemas import documents

DEVICES, CORES, MEMORY = 0, 1, 2
"""Columns of all arrays over resources: GPUs, cores, gigabytes (1e9 bytes) of host memory."""
RESOURCES = ("devices", "cores", "memory")
CAPACITY = (32.0, 384.0, 2000.0)
"""Of the cluster."""
WINDOW = 12 * 3600.0
"""Seconds."""
RATE = 70.0
"""Tasks an hour at which the source states its gains."""
UNIT = 3600.0
"""Seconds of the unit of table 3."""
OVER_REQUEST = 1.43
"""Mean of what is asked for ÷ what is needed, over those who do not ask for too little."""
NOISE = 0.16
"""Standard deviation of the logarithm of what time does not follow from."""
MIXES = {"5:15:15:65": (5, 15, 15, 65), "40:30:20:10": (40, 30, 20, 10), "25:25:25:25": (25, 25, 25, 25)}
"""Weights of the kinds in that order."""
Numbers = NDArray[np.float64]
MARGIN = 1e-9
"""Part by which memory may fall short of a peak for no other reason than rounding."""
BURST, PEAK = 1.1, 1.5
USERS = 8
DIGITS = 6
"""Significant digits of what is sent, so that nobody is judged by others."""
FIFO, SRTF, DRF = "FIFO", "SRTF", "DRF"
IN_ORDER = "FIFO, nobody overtakes"
POLICIES = (FIFO, SRTF, DRF, IN_ORDER)
GIGABYTE = 1e9
_SLACK = 1e-9
"""Part of the capacity that sums of numbers may be wrong by."""
_NEARLY_NONE = 0.05
"""Part of the cores that is free where they are called full."""
_HALVINGS = 30


@dataclass(frozen=True)
class Kind:
    """A kind of task.

    Attributes:
        name: As the source calls it.
        use: Mean use of each resource at full speed.
        duration: Mean seconds at full speed.
        waits: Share of the time that grows as the reciprocal of each resource where there is too little of it.
        cache: Memory that it puts to use, in parts of its peak.
        rules: Resource whose amount follows the size of a task, and that holds it back most.
        strong: Whether the source says so.
    """

    name: str
    use: tuple[float, float, float]
    duration: float
    waits: tuple[float, float, float]
    cache: float
    rules: int
    strong: bool = True


def slowed(given: Numbers, need: Numbers, use: Numbers, waits: Numbers) -> Numbers:
    """Time on what is given ÷ time on what is needed.

    Args:
        given: ``(n, 3)``, none below zero; who is given nothing of what it needs takes for ever.
        need: ``(n, 3)``.
        use: ``(n, 3)``; the mean at full speed.
        waits: ``(n, 3)``; shares of the time that wait for each resource.

    Returns:
        ``(n,)``; one or more.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        short = np.where(need > 0.0, np.maximum(need / given - 1.0, 0.0), 0.0)
        bound = np.where(use > 0.0, use / given, 0.0)[:, :MEMORY]
    with np.errstate(invalid="ignore"):
        delays = np.where((short > 0.0) & (waits > 0.0), waits * short, 0.0)
    return np.asarray(np.maximum(1.0 + delays.sum(axis=1), np.maximum(bound.max(axis=1), 1.0)))


def used(use: Numbers, slow: Numbers) -> Numbers:
    """Mean use ``(n, 3)`` while it runs: the same work in more time, and memory as ever."""
    mean_use = use / slow[:, None]
    mean_use[:, MEMORY] = use[:, MEMORY]
    return mean_use


def dies(given: Numbers, peak: Numbers) -> NDArray[np.bool_]:
    """Whether memory runs out: less is given than the peak, both ``(n,)``."""
    return given < peak * (1.0 - MARGIN)


KINDS = (
    Kind("ResNet", (0.302, 2.1, 19.9), 9.67 * UNIT, (0.1, 0.1, 0.4), 1.2, MEMORY),
    Kind("NMT", (0.341, 10.6, 10.0), 6.82 * UNIT, (0.9, 0.1, 0.0), 1.0, DEVICES),
    Kind("GraphLearn", (0.008, 11.9, 9.5), 4.33 * UNIT, (0.1, 0.4, 0.0), 1.0, CORES, strong=False),
    Kind("CTR", (0.068, 3.9, 2.8), 1.23 * UNIT, (0.1, 0.56, 0.0), 1.0, CORES),
)


@dataclass(frozen=True)
class World:
    """What is assumed about users.

    Attributes:
        over_request: Mean of asked for ÷ needed, for each kind, over those who do not ask for too little; one or more.
        spread: Standard deviation of the logarithm of the excess.
        short: Share of cores and GPU requests, and of memory requests of kinds with a cache, that are too small.
        shortest: Least part of the need that is asked for.
        use_spread: Standard deviation of the logarithm of use within a kind.
        unit: Factor on all durations.
    """

    over_request: tuple[float, ...] = (OVER_REQUEST,) * len(KINDS)
    spread: float = 0.5
    short: float = 0.1
    shortest: float = 0.6
    use_spread: float = 0.5
    unit: float = 1.0

    def asking(self, over_request: float) -> "World":
        """The same with another over-request for all kinds."""
        return replace(self, over_request=(over_request,) * len(KINDS))


@dataclass(frozen=True)
class Tasks:
    """Some tasks, one a row.

    Attributes:
        kind: ``(n,)`` index into the kinds.
        arrival: ``(n,)`` seconds from the beginning of the window, rising.
        requested: ``(n, 3)``.
        need: ``(n, 3)``; more than this makes no task quicker.
        use: ``(n, 3)``; mean at full speed.
        peak: ``(n,)`` gigabytes below which it dies.
        duration: ``(n,)`` seconds at full speed.
        declared: ``(n,)`` seconds that a scheduler believes in, wrong by the error of table 3.
        dying: ``(n,)`` part of its run after which it dies where memory runs out.
        user: ``(n,)``.
    """

    kind: NDArray[np.int64]
    arrival: Numbers
    requested: Numbers
    need: Numbers
    use: Numbers
    peak: Numbers
    duration: Numbers
    declared: Numbers
    dying: Numbers
    user: NDArray[np.int64]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.kind)

    @property
    def ideal(self) -> Numbers:
        """What each should be given by somebody who knows: what it needs, as far as it asks for that."""
        return np.minimum(self.requested, self.need)

    def slowed(self, given: Numbers) -> Numbers:
        """Time on what is given ÷ time on what is needed, ``(n,)``; memory below the peak is not looked at."""
        waits = np.array([kind.waits for kind in KINDS])[self.kind]
        return slowed(given, self.need, self.use, waits)

    def dies(self, given: Numbers) -> NDArray[np.bool_]:
        """Which of them run out of memory."""
        return dies(given[:, MEMORY], self.peak)

    def used(self, given: Numbers) -> Numbers:
        """Mean use on that, ``(n, 3)``."""
        return used(self.use, self.slowed(given))


def window(seed: str, mix: tuple[int, ...], world: World, rate: float = RATE) -> Tasks:
    """Tasks that arrive within a window, ``rate`` an hour by a Poisson process."""
    chance = stream(seed, "arrivals")
    most = int(rate * WINDOW / 3600.0 * 2 + 50)
    times = np.cumsum(chance.standard_exponential(most).astype(np.float32).astype(np.float64)) * 3600.0 / rate
    times = np.round(times, 3)
    arrivals = times[times < WINDOW]
    return _drawn(seed, mix, world, arrivals)


def history(seed: str, mix: tuple[int, ...], world: World, records: int) -> Tasks:
    """Tasks that ran before, on what they asked for."""
    return _drawn(f"{seed}/history", mix, world, np.zeros(records))


@dataclass(frozen=True)
class Outcome:
    """What became of a window.

    Attributes:
        arrived: Tasks that came.
        deployed: Those that were started at all.
        finished: Those that ended well within the window.
        died: Runs that memory ended.
        lost: Seconds of them.
        used: Mean share of each resource that was put to use; runs that died do not count.
        occupied: Mean share of each resource that was given away.
        full: Seconds until cores were held to 95 % for the first time; infinite where they never were.
        started: ``(n,)`` when each was started for the first time; infinite where it was not.
    """

    arrived: int
    deployed: int
    finished: int
    died: int
    lost: float
    used: tuple[float, ...]
    occupied: tuple[float, ...]
    full: float
    started: Numbers

    @property
    def completion(self) -> float:
        """Finished ÷ all that came; zero where nothing did."""
        return self.finished / self.arrived if self.arrived else 0.0


def play(
    tasks: Tasks,
    given: Numbers,
    policy: str,
    capacity: tuple[float, ...] = CAPACITY,
    until: float = WINDOW,
) -> Outcome:
    """What becomes of tasks that are given ``(n, 3)`` each, up to a time.

    Raises:
        ValueError: There is no such policy, or what is given is not a row for each task.
    """
    if policy not in POLICIES or given.shape != tasks.requested.shape:
        raise ValueError(f"a policy of {POLICIES} and a row for each of {len(tasks)} tasks")
    return _Play(tasks, given, policy, np.array(capacity), until).played()


def ideal(tasks: Tasks) -> Numbers:
    """What each task needs, no more than it asks for: no task becomes slower."""
    return tasks.ideal


def tolerant(tasks: Tasks, allowed: float) -> Numbers:
    """As little of cores, then of devices, as lets each task take so much longer than on what it asks for."""
    limit = tasks.slowed(tasks.requested) * (1.0 + allowed)
    given = tasks.ideal
    for resource in (CORES, DEVICES):
        low, high = np.zeros(len(tasks)), np.ones(len(tasks))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            tried = given.copy()
            tried[:, resource] *= middle
            enough = tasks.slowed(tried) <= limit
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        given[:, resource] *= high
    return given


def at_one_rate(tasks: Tasks, allowed: float) -> Numbers:
    """The same part of its cores for every task, as little as makes them so much slower on the mean.

    What algorithm 1 of the source does where cores are the only resource that may be cut, here with the true times.
    """
    before = tasks.slowed(tasks.requested)
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        enough = float((tasks.slowed(_cores(tasks, middle)) / before).mean()) <= 1.0 + allowed
        low, high = (low, middle) if enough else (middle, high)
    return _cores(tasks, high)


def records(tasks: Tasks, names: Sequence[str], seed: str) -> "list[documents.TaskRecord]":
    """Records of tasks that ran on what they asked for.

    Traffic follows the cores that were used and memory of accelerators their use, both with much noise; neither says
    anything that the rest does not.

    Args:
        tasks: Which.
        names: Of the kinds, in their order.
        seed: Of that noise.
    """
    slow = tasks.slowed(tasks.requested)
    used = tasks.used(tasks.requested)
    most = np.minimum(tasks.requested, tasks.need)
    most[:, MEMORY] = tasks.peak
    around = exponential(0.5 * normal(stream(seed, "traffic"), (len(tasks), 2)).astype(np.float64).clip(-3.0, 3.0))
    flow, memory = 8e7 * used[:, 1] * around[:, 0], (1.0 + 20.0 * used[:, 0]) * GIGABYTE * around[:, 1]
    return [
        {
            "kind": names[tasks.kind[row]],
            "requested": amounts(tasks.requested[row]),
            "used": amounts(used[row]),
            "peak": amounts(most[row]),
            "network_flow": _short(flow[row]),
            "accelerator_memory": _short(memory[row]),
            "duration": _short(tasks.duration[row] * slow[row]),
        }
        for row in range(len(tasks))
    ]


def requests(tasks: Tasks, names: Sequence[str], prefix: str) -> "list[documents.TaskRequest]":
    """What they ask for, in order of arrival."""
    return [
        {"id": f"{prefix}{row}", "kind": names[tasks.kind[row]], "requested": amounts(tasks.requested[row])}
        for row in range(len(tasks))
    ]


def amounts(values: Numbers) -> "documents.TaskResources":
    """Amounts of the resources: numbers, cores and bytes."""
    return {
        "devices": _short(values[0]),
        "cores": _short(values[1]),
        "memory": _short(values[MEMORY] * GIGABYTE),
    }


def numbers(sized: "Sequence[documents.SizedTask]") -> Numbers:
    """What tasks should be given, ``(n, 3)``, memory in gigabytes."""
    given = [row["recommended"] for row in sized]
    rows = [[amount["devices"], amount["cores"], amount["memory"]] for amount in given]
    result = np.array(rows, np.float64).reshape(len(rows), len(RESOURCES))
    result[:, MEMORY] /= GIGABYTE
    return result


def _drawn(seed: str, mix: tuple[int, ...], world: World, arrivals: Numbers) -> Tasks:
    n = len(arrivals)
    chance = stream(seed, "tasks")
    shares = np.cumsum(mix) / sum(mix)
    kind = np.searchsorted(shares, chance.random(n), side="right").astype(np.int64)
    size = normal(chance, (n, 3)).astype(np.float64).clip(-3.0, 3.0)
    spread = world.use_spread
    use = np.array([spec.use for spec in KINDS])[kind] * _around(size, spread)
    rules = np.array([spec.rules for spec in KINDS])[kind]
    noise = _around(normal(chance, n).astype(np.float64).clip(-3.0, 3.0), NOISE)
    full = np.array([spec.duration for spec in KINDS])[kind] * world.unit
    duration = full * _around(size[np.arange(n), rules], spread) * noise
    peak = use[:, MEMORY] * (PEAK + 0.2 * (chance.random(n) - 0.5))
    cache = np.array([spec.cache for spec in KINDS])[kind]
    need = use * BURST
    need[:, MEMORY] = peak * cache
    requested = _rounded_up(need * _requested(chance, kind, cache, world))
    return Tasks(
        kind=kind,
        arrival=arrivals,
        requested=requested,
        need=need,
        use=use,
        peak=peak,
        duration=duration,
        declared=duration * _around(normal(chance, n).astype(np.float64).clip(-3.0, 3.0), NOISE),
        dying=chance.random(n),
        user=chance.integers(0, USERS, n),
    )


def _requested(chance: np.random.Generator, kind: NDArray[np.int64], cache: Numbers, world: World) -> Numbers:
    """What is asked for in parts of what is needed, ``(n, 3)``."""
    n = len(kind)
    excess = _around(normal(chance, (n, 3)).astype(np.float64).clip(-3.0, 3.0), world.spread)
    ample = 1.0 + (np.array(world.over_request)[kind] - 1.0)[:, None] * excess
    least = np.full((n, 3), world.shortest)
    least[:, MEMORY] = 1.0 / cache  # nobody keeps asking for less than what lets a task live
    little = least + (1.0 - least) * chance.random((n, 3))
    return np.where((chance.random((n, 3)) < world.short) & (least < 1.0), little, ample)


def _around(score: Numbers, spread: float) -> Numbers:
    """Log-normal factors of mean one."""
    return exponential(score * spread) * exponential(-0.5 * spread * spread)


def _rounded_up(values: Numbers) -> Numbers:
    """To a few significant digits, never down: who asks for just enough has enough."""
    text = np.vectorize(lambda value: float(f"{value * (1.0 + 10.0 ** (1 - DIGITS)):.{DIGITS}g}"), otypes=[float])
    return np.asarray(text(values), np.float64)


class _Play:
    """State of a simulation; all about runs is known beforehand, for first runs (0) and those that follow (1)."""

    def __init__(self, tasks: Tasks, given: Numbers, policy: str, capacity: Numbers, until: float) -> None:
        plans = (given, tasks.requested)
        self.tasks, self.capacity, self.until = tasks, capacity, until
        self.asks = np.stack(plans)
        self.uses = np.stack([tasks.used(plan) for plan in plans])
        self.fatal = np.stack([tasks.dies(given), np.zeros(len(tasks), bool)])
        whole = np.stack([tasks.duration * tasks.slowed(plan) for plan in plans])
        self.takes = np.where(self.fatal, whole * tasks.dying, whole)
        keys = (np.arange(len(tasks)), tasks.declared) if policy == SRTF else (np.arange(len(tasks)),)
        self.order = np.lexsort(keys)
        self.rank = np.argsort(self.order)
        self.again = np.zeros(len(tasks), int)
        self.waits = np.zeros(len(tasks), bool)
        """By place in the order."""
        self.shares = np.zeros((USERS, len(capacity))) if policy == DRF else None
        self.overtaking = policy != IN_ORDER
        self.free = capacity * (1.0 + _SLACK)
        self.ends: list[tuple[float, int]] = []
        self.began = np.zeros(len(tasks))
        self.started = np.full(len(tasks), np.inf)
        self.use, self.hold = np.zeros(len(capacity)), np.zeros(len(capacity))
        self.finished = self.died = 0
        self.lost, self.full = 0.0, float("inf")

    def played(self) -> Outcome:
        """Go through all arrivals and ends."""
        n = len(self.tasks)
        coming = 0
        while True:
            end = self.ends[0][0] if self.ends else np.inf
            arrival = self.tasks.arrival[coming] if coming < n else np.inf
            now = min(end, arrival)
            if now >= self.until:
                break
            if end <= arrival:
                self._ended(now)
                self._start(now)
            else:
                self._arrived(now, coming)
                coming += 1
        for began, row in ((self.began[row], row) for _, row in self.ends):
            self._count(row, self.until - began, lost=bool(self.fatal[self.again[row], row]))
        whole = self.capacity * self.until
        return Outcome(
            arrived=coming,
            deployed=int(np.isfinite(self.started).sum()),
            finished=self.finished,
            died=self.died,
            lost=self.lost,
            used=tuple(map(float, self.use / whole)),
            occupied=tuple(map(float, self.hold / whole)),
            full=self.full,
            started=self.started,
        )

    def _arrived(self, now: float, row: int) -> None:
        """Start the newcomer, or let it wait; whatever waited already did not fit before either."""
        first = self.overtaking or not self.waits.any()
        if first and bool((self.asks[0, row] <= self.free).all()):
            self._run(now, row)
        else:
            self.waits[self.rank[row]] = True

    def _ended(self, now: float) -> None:
        _, row = heappop(self.ends)
        plan = self.again[row]
        self.free += self.asks[plan, row]
        if self.shares is not None:
            self.shares[self.tasks.user[row]] -= self.asks[plan, row] / self.capacity
        died = bool(self.fatal[plan, row])
        self._count(row, now - self.began[row], lost=died)
        if died:
            self.died += 1
            self.again[row] = 1
            self.waits[self.rank[row]] = True
        else:
            self.finished += 1

    def _count(self, row: int, seconds: float, *, lost: bool) -> None:
        plan = self.again[row]
        self.hold += self.asks[plan, row] * seconds
        if lost:
            self.lost += seconds
        else:
            self.use += self.uses[plan, row] * seconds

    def _start(self, now: float) -> None:
        """Start whatever fits of those that wait."""
        rows = self._fitting(self.order[self.waits])
        while len(rows):
            chosen = 0
            if self.shares is not None:
                chosen = int(np.argmin(self.shares.max(axis=1)[self.tasks.user[rows]]))
            self._run(now, int(rows[chosen]))
            rows = self._fitting(np.delete(rows, chosen))

    def _fitting(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those for which there is room, up to the first for which there is none where nobody may overtake."""
        fits = (self.asks[self.again[rows], rows] <= self.free).all(axis=1)
        return rows[fits] if self.overtaking else rows[: int(np.argmin(fits)) if not fits.all() else len(rows)]

    def _run(self, now: float, row: int) -> None:
        plan = self.again[row]
        self.free -= self.asks[plan, row]
        if self.shares is not None:
            self.shares[self.tasks.user[row]] += self.asks[plan, row] / self.capacity
        self.waits[self.rank[row]] = False
        self.began[row] = now
        self.started[row] = min(self.started[row], now)
        if self.free[CORES] <= _NEARLY_NONE * self.capacity[CORES]:
            self.full = min(self.full, now)
        heappush(self.ends, (now + float(self.takes[plan, row]), row))


def _cores(tasks: Tasks, part: float) -> Numbers:
    given = tasks.requested.copy()
    given[:, CORES] *= part
    return given


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
