"""The judge's heartbeats: nodes that beat, what becomes of them and of jobs on them, when beats arrive, and the truth.

:class:`World` is what a check plays; :class:`Planner` says which nodes die, come and go, or fail, which jobs hang and
which ranks straggle, and what logs say of it.

1. **Values.** Times are seconds since the beginning of the warm-up. Numbers that decide what can be told from what
   stand here.
2. **Places.** Domains, nodes, and the ranks of jobs on them are named and placed by chance.
3. **Slots.** Domains send their batches one after the other; in some slots one of them cannot be reached.
4. **Log lines.** They have documented forms: those that tell that a device has to be reset, and what logs hold
   otherwise. Sources: NVIDIA, "Analyzing Xid Errors with the Xid Catalog" and its Fabric Manager user guide (SXid);
   Huawei, CANN troubleshooting (event 0x80E01809: several bits of HBM); the Linux kernel's own forms. Addresses are
   made up.
5. **Steps.** Ranks of a job wait for each other: some jobs hang, some ranks straggle, and checkpoints make short
   pauses.
6. **Plan.** Nodes die, come and go, or fail; each has one fault at a time, and time to recover.
7. **Delivery.** Most beats arrive at once, some late, lost, or held back and then together with others. No live node of
   a domain that is heard is silent for more than ``MAX_SILENT_SLOTS`` slots: where it would be, a beat comes in time
   after all. What was on its way for long when its node died is lost with it.
8. **World.** Everything follows from scale and seed. Clocks of nodes are ahead by a little, those of some are quite
   wrong.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, stream

if TYPE_CHECKING:
    from kuayu_schemas import documents


PERIOD = 0.5
"""Seconds between two beats of a node."""
SLOT = 0.25
"""Seconds between two batches of a domain's aggregator."""
MAX_SILENT_SLOTS = 7
"""Slots of its domain for which a live node is silent at most: 1.75 s, and 1.9 s with what a path adds."""
TOLD = 10.0
"""Seconds in which a fault is told; what is over sooner need not be."""
NODE_DEAD, NODE_FAILING, DOMAIN_UNREACHABLE, JOB_HUNG, RANK_STRAGGLING = KINDS = (
    "node_dead",
    "node_failing",
    "domain_unreachable",
    "job_hung",
    "rank_straggling",
)
"""Kinds of faults, in the order of the clause."""
SINGLE, RACK, FLAPPING, AMID, BLOCKING, LOGGED, CUT, HANG, SLOW = CAUSES = (
    "node dies",
    "rack dies",
    "node comes and goes",
    "node dies amid a partition",
    "node of a job dies",
    "log line",
    "partition",
    "job hangs",
    "rank straggles",
)
"""What happens, in the order of tables."""
RESET = "node is reset"
"""What happens and is too short to be asked for: a node that failed is started anew."""
NameOf = Callable[[str], str]
DEVICES = 4
"""Devices of a node."""
BLOCKED = 2
"""Jobs of which a node dies for good."""
_ABOUT = {
    NODE_DEAD: ("node",),
    NODE_FAILING: ("node",),
    DOMAIN_UNREACHABLE: ("domain",),
    JOB_HUNG: ("job",),
    RANK_STRAGGLING: ("job", "rank"),
}
_LEAST_RANKS, _MOST_RANKS = 4, 16
_TWO_DOMAINS = 0.25  # share of jobs with ranks in two domains
_MIN_PARTITION_S, _MAX_PARTITION_S = 12.0, 15.0  # seconds of a partition
_BEFORE_PARTITION, _AFTER_PARTITION = 6.0, 8.0  # seconds around a partition in which nothing else happens to a domain
_PARTITION_REST = 34.0  # seconds between two partitions of a domain: by then it has been told that the first is over

Instants = NDArray[np.float64]
HUNG_AFTER, LEAST_HUNG, REMEMBERED = 3.0, 30.0, 10_000
"""A job hangs that makes no step for so many times its longest of the last steps, s at least, and of how many."""
LATE_STEPS = 10
"""Steps in a row that a rank has done late when it straggles, and in time when it does no longer."""
RACK_NODES = 8
"""Nodes of a rack; those of a domain stand in the order of their rows."""
RECOVERY = 42.0
"""Seconds after a fault of a node in which nothing else happens to it."""
_GRAVE_LINES = (
    "NVRM: Xid (PCI:0000:{bus}:00): 79, pid={pid}, name=python3, GPU has fallen off the bus.",
    "NVRM: Xid (PCI:0000:{bus}:00): 48, pid={pid}, An uncorrectable double bit error (DBE) has been detected on GPU",
    "NVRM: Xid (PCI:0000:{bus}:00): 95, pid={pid}, name=python3, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    "NVRM: Xid (PCI:0000:{bus}:00): 119, pid={pid}, Timeout after 6s of waiting for RPC response from GPU{small} GSP!",
    "nvidia-nvswitch2: SXid (PCI:0000:{bus}:00.0): 20034, Fatal, Link 28 LTSSM Fault Up",
    "[fault_manager] dev_id: [{small}], event_id: [0x80E01809], HBM multi-bit ECC error",
)
_HARMLESS_LINES = (
    "NVRM: Xid (PCI:0000:{bus}:00): 31, pid={pid}, name=python3, Ch 00000008, MMU Fault: ENGINE GRAPHICS faulted",
    "NVRM: Xid (PCI:0000:{bus}:00): 13, pid={pid}, name=python3, Graphics SM Warp Exception: Out Of Range Address",
    "NVRM: Xid (PCI:0000:{bus}:00): 43, pid={pid}, name=python3, Ch 00000008",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {small} has 79 GiB",
    "Memory cgroup out of memory: Killed process {pid} (python3) total-vm:51234kB, anon-rss:40960kB",
    "systemd[1]: Started Session {pid} of user trainer.",
    "systemd[1]: logrotate.service: Deactivated successfully.",
    "sshd[{pid}]: Accepted publickey for trainer from 10.0.{small}.17 port 50514 ssh2",
    "python3[{pid}]: step {pid} loss 2.31 grad_norm 0.42",
    "nvidia-nvswitch1: SXid (PCI:0000:{bus}:00.0): 19084, Non-fatal, Link 29 AN1 Heartbeat Timeout Error (First)",
    "pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
    "EDAC MC1: 1 CE memory scrubbing error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0",
    "ops[{pid}]: ticket closed, the board whose GPU had fallen off the bus was replaced last week",
    "node_exporter: the watchdog of rack {small} has been told to reset its counters",
)
_STEP = (0.4, 1.0)  # seconds of a step
_NOISE, _MOST_NOISE = 0.02, 3.0  # of a step, and standard deviations
_STRAGGLES, _MIN_STRAGGLE_S = (0.5, 1.0), 0.6  # of a step, and s at least, by which a rank straggles
_EVERY, _PAUSE = (12, 25), (0.3, 1.0)  # steps between checkpoints, and seconds of one
_LASTS = (12.5, 17.0)  # seconds for which a fault lasts once it has begun
_FAULT_REST = (40.0, 60.0)  # seconds between two faults of a job
_FORGOTTEN = 40.0  # seconds of standstill that tell a hang at most; a job that hung has to forget that first
_LAST_HANG, _LAST_SLOW = 35.0, 26.0  # seconds before the end of the world after which it is too late for one
_DEAD = (13.0, 25.0)  # seconds until a node comes back
_BACK, _RACKS_BACK = 0.85, 0.5  # shares of nodes and racks that do
_GONE, _HERE, _TIMES = (3.6, 4.4), (2.6, 3.4), (3, 6)  # seconds away and back of a node that comes and goes, how often
_RESET, _RESET_AFTER, _RESET_TAKES = 0.5, (14.0, 20.0), (4.0, 6.0)  # share, and seconds, of nodes that are reset
_HARMLESS = 6.0  # harmless lines in a second, in all
_MOST_DRAWN = 2000

Numbers = NDArray[np.int64]
_LOST = 0.01  # share of beats
_LATE, _USUALLY, _SPREAD, _LATEST = 0.05, 0.2, 0.8, 1.2  # share of beats; log-normal: median s, sigma, most s
_PATH = (0.005, 0.03)  # seconds to the aggregator
_HELD_EVERY, _HELD = 100.0, (0.5, 1.5)  # seconds between two hold-ups of a node, and of one
_LAST_WORDS = 0.25  # seconds after a node has died in which a beat of it may still come
_NEVER = -1
_CLOCK = 0.02  # seconds that clocks are off
_WRONG, _WRONG_BY = 0.03, 3600.0  # share of nodes whose clock is quite wrong, and seconds by which


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a world is.

    Attributes:
        domains: How many domains.
        nodes: Nodes of each.
        warm_up: Seconds before anything happens.
        seconds: Seconds in which faults begin.
        settle: Seconds after them.
        incidents: Faults in all.
        jobs: Jobs to which something may happen; two more are blocked, and as many as there are domains are bystanders.
        cuts: Partitions, spread over ``exposed`` domains.
        exposed: Domains that cannot be reached at times.
        amid: Nodes that die amid each partition.
        racks: Racks that die.
        flapping: Nodes that come and go.
        logged: Nodes that fail as their logs tell.
    """

    domains: int = 5
    nodes: int = 200
    warm_up: float = 20.0
    seconds: float = 90.0
    settle: float = 12.0
    incidents: int = 498
    jobs: int = 22
    cuts: int = 3
    exposed: int = 3
    amid: int = 2
    racks: int = 6
    flapping: int = 12
    logged: int = 36

    @property
    def end(self) -> float:
        """Second after which nothing begins."""
        return self.warm_up + self.seconds

    @property
    def total(self) -> float:
        """Seconds that are played."""
        return self.end + self.settle

    @property
    def slots(self) -> int:
        """Batches of each domain."""
        return int(self.total / SLOT)


SMOKE = Scale(seconds=70.0, incidents=492, jobs=26, racks=5, flapping=10, logged=30)
"""As many incidents as let one be missed or be late: of 473 that are to be responded to the bound is not the worst."""
FULL = Scale(seconds=620.0, incidents=3020, cuts=18, racks=36, flapping=80, logged=220)
QUICK = Scale()


@dataclass(frozen=True, slots=True)
class Incident:
    """A fault, as it is in truth.

    Attributes:
        kind: One of ``KINDS``.
        cause: One of ``CAUSES``, or ``RESET``.
        since: From when on telling it is no error; before ``onset`` where it only comes to be so.
        onset: When it begins.
        until: When it is over; infinite where it lasts.
        domain: The domain that it is about, or that the node is of.
        node: The node that it is about, or on which the rank runs.
        job: The job that it is about, or that the rank is of.
        rank: The rank that straggles.
        queried_domains: Domains that are to be asked for something because of it.
        demanded: Whether it has to be told.
    """

    kind: str
    cause: str
    since: float
    onset: float
    until: float = inf
    domain: str | None = None
    node: str | None = None
    job: str | None = None
    rank: int | None = None
    queried_domains: tuple[str, ...] = ()
    demanded: bool = True

    @property
    def subject(self) -> tuple[str, ...]:
        """Kind and what it is about: what makes two faults the same."""
        return subject_of(self.kind, {"domain": self.domain, "node": self.node, "job": self.job, "rank": self.rank})

    @property
    def deadline(self) -> float:
        """Until when it may be told."""
        return max(self.until, self.onset + TOLD)


def subject_of(kind: str, members: Mapping[str, Any]) -> tuple[str, ...]:
    """Kind and what a fault is about, by the members of its class."""
    return (kind, *(str(members.get(name)) for name in _ABOUT.get(kind, ())))


@dataclass(frozen=True, slots=True)
class Cut:
    """The path of a domain is broken: nothing of it is sent in slots ``since`` … ``until`` - 1."""

    domain: int
    since: int
    until: int


@dataclass(frozen=True, slots=True)
class Absence:
    """A node does not beat from ``since`` until ``until``; ``anew`` where its numbers begin anew then."""

    since: float
    until: float
    anew: bool


@dataclass(frozen=True, slots=True)
class Beat:
    """A beat: when it was sent, by how much the clock of its node is ahead, s, and its body without ``sent_at``."""

    sent: float
    ahead: float
    body: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a log: when it was logged, and its body without ``logged_at``."""

    logged: float
    body: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the aggregator of a domain sends in one slot.

    Attributes:
        instant: When.
        domain: Its identifier.
        beats: In any order.
        lines: Those of each node in their order.
    """

    instant: float
    domain: str
    beats: tuple[Beat, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """A job.

    Attributes:
        name: Its identifier.
        nodes: Row of the node of each rank.
        blocked: Whether a node of it dies for good.
        calm: Whether something may happen to it; bystanders have nodes in domains that cannot be reached at times.
    """

    name: str
    nodes: tuple[int, ...]
    blocked: bool
    calm: bool


@dataclass(frozen=True, slots=True)
class Places:
    """Names of domains and nodes; row ``i`` is of domain ``i // scale.nodes``.

    Attributes:
        domains: Names.
        nodes: Names, by row.
        exposed: Domains that cannot be reached at times.
        jobs: Those that can hang or straggle, those that are blocked, and bystanders.
    """

    domains: tuple[str, ...]
    nodes: tuple[str, ...]
    exposed: tuple[int, ...]
    jobs: tuple[Job, ...]


def placed(scale: Scale, seed: str, name_of: NameOf) -> Places:
    """Name everything, and give each job nodes of its own."""
    chance = Chance(seed, "places")
    order = chance.order([(domain, 1.0) for domain in range(scale.domains)])
    exposed, calm = order[: scale.exposed], order[scale.exposed :]
    free = {domain: chance.order([(domain * scale.nodes + row, 1.0) for row in range(scale.nodes)]) for domain in order}
    jobs = []
    for number in range(scale.jobs + BLOCKED + scale.domains):
        bystander = number >= scale.jobs + BLOCKED
        home = chance.pick(exposed if bystander else calm)
        other = chance.pick([domain for domain in calm if domain != home] or calm)
        two = chance.fraction() < (2 * _TWO_DOMAINS if bystander else _TWO_DOMAINS)
        rows = _rows(chance, [home, other] if two else [home], free)
        blocked = scale.jobs <= number < scale.jobs + BLOCKED
        jobs.append(Job(name_of(f"job{number}"), rows, blocked, calm=number < scale.jobs))
    return Places(
        tuple(name_of(f"site{domain}") for domain in range(scale.domains)),
        tuple(name_of(f"n{row}") for row in range(scale.domains * scale.nodes)),
        tuple(sorted(exposed)),
        tuple(jobs),
    )


def domain_bodies(places: Places) -> "tuple[documents.Domain, ...]":
    """Domains as they are registered."""
    return tuple({"id": name} for name in places.domains)


def node_bodies(places: Places, scale: Scale) -> "tuple[documents.Node, ...]":
    """Nodes as they are registered."""
    devices: list[documents.Device] = [
        {"id": str(i), "kind": "gpu", "vendor": "conformance", "model": "probe"} for i in range(DEVICES)
    ]
    return tuple(
        {"id": name, "domain": places.domains[row // scale.nodes], "devices": devices}
        for row, name in enumerate(places.nodes)
    )


class Slots:
    """Domains send one after the other, each once in a slot.

    Args:
        domains: How many there are.
    """

    def __init__(self, domains: int) -> None:
        self._domains = domains

    def at(self, domain: int, slot: int) -> float:
        """When a domain sends its batch of a slot."""
        return (slot + domain / self._domains) * SLOT

    def first(self, domain: int, second: float) -> int:
        """The first slot of a domain at or after a second."""
        return ceil(second / SLOT - domain / self._domains - 1e-9)


def cuts_of(scale: Scale, seed: str, exposed: tuple[int, ...]) -> tuple[Cut, ...]:
    """Partitions, in the order of domain and time."""
    chance, slots, cuts = Chance(seed, "partitions"), Slots(scale.domains), []
    for place, domain in enumerate(exposed):
        count = len(range(place, scale.cuts, len(exposed)))
        for number in range(count):
            part = scale.seconds / count
            begin = scale.warm_up + number * part
            rest = _PARTITION_REST if number + 1 < count else _AFTER_PARTITION
            since = chance.between(begin + 2.0, begin + max(2.5, part - _MAX_PARTITION_S - rest))
            lasts = chance.between(_MIN_PARTITION_S + SLOT, _MAX_PARTITION_S)
            cuts.append(Cut(domain, slots.first(domain, since), slots.first(domain, since + lasts)))
    return tuple(cuts)


class Reach:
    """Which domain cannot be reached when."""

    def __init__(self, cuts: tuple[Cut, ...], slots: Slots) -> None:
        self._spans: dict[int, list[tuple[float, float]]] = {}
        for cut in cuts:
            span = slots.at(cut.domain, cut.since), slots.at(cut.domain, cut.until)
            self._spans.setdefault(cut.domain, []).append(span)

    def clear(self, domain: int, since: float, until: float) -> bool:
        """Whether no partition of a domain is near to any second of a stretch."""
        spans = self._spans.get(domain, ())
        return all(until < begin - _BEFORE_PARTITION or since > end + _AFTER_PARTITION for begin, end in spans)

    def open(self, domain: int, second: float) -> float:
        """The second itself, or one after the partition that it falls into."""
        for begin, end in self._spans.get(domain, ()):
            if begin - _BEFORE_PARTITION <= second <= end + _AFTER_PARTITION:
                return end + _AFTER_PARTITION
        return second


def _rows(chance: Chance, domains: list[int], free: dict[int, list[int]]) -> tuple[int, ...]:
    """Rows of the nodes of a job's ranks, as many in each domain, one or two ranks on a node."""
    ranks_per_node = 1 + chance.below(2)
    ranks = _LEAST_RANKS + chance.below(_MOST_RANKS - _LEAST_RANKS + 1)
    rows: list[int] = []
    taken: dict[int, int] = defaultdict(int)
    for rank in range(ranks):
        domain = domains[rank * len(domains) // ranks]
        if taken[domain] % ranks_per_node == 0:
            rows.append(free[domain].pop())
        else:
            rows.append(rows[-1])
        taken[domain] += 1
    return tuple(rows)


def grave(chance: Chance) -> str:
    """A line after which a device has to be reset, or a node started anew."""
    return _filled(chance.pick(_GRAVE_LINES), chance)


def harmless(chance: Chance) -> str:
    """A line that tells nothing of the kind, though it may have words of faults."""
    return _filled(chance.pick(_HARMLESS_LINES), chance)


@dataclass(slots=True)
class Course:
    """What a job does.

    Attributes:
        done: When each rank has done each step, shape (steps, ranks); infinite for never.
        first: Number of the first step.
        incidents: What happens to it; names of domains and nodes are filled in by others.
    """

    done: Instants
    first: int
    incidents: list[Incident] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Blocking:
    """A node of a job dies: when, and which of the ranks with it."""

    instant: float
    ranks: tuple[int, ...]


class Stepping:
    """Plays one job, step by step."""

    def __init__(self, scale: Scale, seed: str, job: Job, blocking: Blocking | None) -> None:
        self._scale, self._job, self._blocking = scale, job, blocking
        self._chance = Chance(seed, f"steps of {job.nodes}")
        most = int(scale.total / _STEP[0]) + 2
        noise = stream(seed, f"noise of {job.nodes}").standard_normal((most, len(job.nodes)))
        self._noise = np.clip(noise, -_MOST_NOISE, _MOST_NOISE) * _NOISE
        self._step = self._chance.between(*_STEP)
        self._rows: list[Instants] = []
        self._ends: list[float] = []
        self._incidents: list[Incident] = []
        self._pause_in = 3 + self._chance.below(8)
        self._due = scale.warm_up + self._chance.between(0.0, _FAULT_REST[1]) if job.calm else np.inf

    def course(self) -> Course:
        """Play it to the end."""
        start = self._chance.between(0.5, 4.0)
        while start < self._scale.total:
            if start >= self._due:
                start = self._befall(start)
            else:
                done = self._usual(start)
                if self._blocks(done):
                    break
                start = self._ended(done)
        return Course(np.array(self._rows), self._chance.below(5000), self._incidents)

    def _usual(self, start: float) -> Instants:
        """When the ranks have done the step that begins at ``start``."""
        done: Instants = start + self._step * (1.0 + self._noise[len(self._rows)])
        return done

    def _ended(self, done: Instants) -> float:
        """The step ends; when the next one begins."""
        self._rows.append(done)
        self._ends.append(float(done.max()))
        self._pause_in -= 1
        if self._pause_in > 0:
            return self._ends[-1]
        self._pause_in = _EVERY[0] + self._chance.below(_EVERY[1] - _EVERY[0])
        return self._ends[-1] + self._chance.between(*_PAUSE)

    def _blocks(self, done: Instants) -> bool:
        """Whether the dead would have to do this step; the others do it still and wait for ever."""
        if self._blocking is None or done[list(self._blocking.ranks)].max() < self._blocking.instant:
            return False
        done[list(self._blocking.ranks)] = np.inf
        self._rows.append(done)
        return True

    def _befall(self, start: float) -> float:
        """Something happens to the job from a step on; when it goes on as usual."""
        left = self._scale.end - start
        standstill = max(LEAST_HUNG, HUNG_AFTER * self._longest())
        hangs = standstill <= _FORGOTTEN and self._chance.fraction() < 1 / 2
        if left < (_LAST_HANG if hangs else _LAST_SLOW):
            self._due = np.inf
            return start
        start = self._hang(start, standstill) if hangs else self._straggle(start)
        self._due = start + self._chance.between(*_FAULT_REST)
        return start

    def _longest(self) -> float:
        """Seconds of the longest of the last steps."""
        ends = self._ends[-REMEMBERED - 1 :]
        return float(np.max(np.diff(ends))) if len(ends) > 1 else np.inf

    def _hang(self, start: float, standstill: float) -> float:
        """All wait: for one rank that never does its part of a step, or before the step begins."""
        done = self._usual(start)
        culprit = self._chance.below(len(done)) if self._chance.fraction() < 1 / 2 else None
        last = self._ends[-1] if culprit is None else float(np.delete(done, culprit).max())
        instant = last + standstill
        until = instant + self._chance.between(*_LASTS)
        if culprit is None:
            done = self._usual(until)
            until = float(done.min())
        else:
            done[culprit] = until
        self._incidents.append(Incident(JOB_HUNG, HANG, last, instant, until, job=self._job.name))
        return self._ended(done)

    def _straggle(self, start: float) -> float:
        """A rank does each step later than its peers, and all wait for it."""
        rank = self._chance.below(len(self._job.nodes))
        late = max(_MIN_STRAGGLE_S, self._chance.between(*_STRAGGLES) * self._step)
        since = instant = np.inf
        lasts, steps = self._chance.between(*_LASTS), 0
        while start < instant + lasts:
            done = self._usual(start)
            done[rank] += late
            steps += 1
            since = min(since, float(done[rank]))
            instant = float(done[rank]) if steps == LATE_STEPS else instant
            start = self._ended(done)
        for _ in range(LATE_STEPS):
            done = self._usual(start)
            start = self._ended(done)
        until = float(done[rank])
        self._incidents.append(Incident(RANK_STRAGGLING, SLOW, since, instant, until, job=self._job.name, rank=rank))
        return start


class Planner:
    """Draws what happens to nodes.

    Attributes:
        incidents: What was drawn.
        absences: When each row does not beat.
        lines: When which row logs what.
    """

    def __init__(self, scale: Scale, seed: str, places: Places, cuts: Sequence[Cut], slots: Slots) -> None:
        self._scale, self._seed, self._places, self._slots = scale, seed, places, slots
        self._cuts = cuts
        self._reach = Reach(tuple(cuts), slots)
        self._taken: dict[int, list[tuple[float, float]]] = defaultdict(list)
        self.incidents: list[Incident] = []
        self.absences: dict[int, list[Absence]] = defaultdict(list)
        self.lines: list[tuple[float, int, str]] = []
        for job in places.jobs:
            for row in job.nodes:
                self._taken[row] = [(-inf, inf)]

    def blockings(self) -> dict[str, Blocking]:
        """Let a node of each job that is to be blocked die for good; tells when, by the job."""
        chance, blockings = Chance(self._seed, "blocked jobs"), {}
        for job in (candidate for candidate in self._places.jobs if candidate.blocked):
            instant = chance.between(self._scale.warm_up, self._scale.end)
            row = chance.pick(job.nodes)
            self._die(row, instant, inf, BLOCKING)
            blockings[job.name] = Blocking(instant, tuple(rank for rank, node in enumerate(job.nodes) if node == row))
        return blockings

    def plan(self, others: int) -> None:
        """Draw everything, so that there are as many incidents as the world is to have with ``others``."""
        self._partitions()
        self._racks()
        self._come_and_go()
        self._fail()
        self._die_alone(self._scale.incidents - others)
        self._chatter()
        for absences in self.absences.values():
            absences.sort(key=lambda absence: absence.since)

    def _domain(self, row: int) -> int:
        return row // self._scale.nodes

    def _partitions(self) -> None:
        """Domains that cannot be reached, and nodes that die amid it: which is so from when the domain is heard."""
        chance = Chance(self._seed, "deaths amid partitions")
        for cut in self._cuts:
            name = self._places.domains[cut.domain]
            since, until = self._slots.at(cut.domain, cut.since), self._slots.at(cut.domain, cut.until)
            incident = Incident(DOMAIN_UNREACHABLE, CUT, since, since, until, domain=name)
            self.incidents.append(incident)
            for _ in range(self._scale.amid):
                dies = chance.between(since + 2.0, until - 3.0)
                back = until + chance.between(*_DEAD) if chance.fraction() < _BACK else inf
                row = self._free(chance, dies, back, amid=cut.domain)
                if row is not None:
                    self._die(row, dies, back, AMID, told_from=until)

    def _racks(self) -> None:
        chance = Chance(self._seed, "racks")
        for _ in range(self._scale.racks):
            for _ in range(_MOST_DRAWN):
                instant = self._moment(chance)
                first = RACK_NODES * chance.below(len(self._places.nodes) // RACK_NODES)
                rows = range(first, first + RACK_NODES)
                back = self._back(chance, self._domain(first), instant, _RACKS_BACK)
                if all(self._is_free(row, instant, back) for row in rows):
                    for row in rows:
                        self._die(row, instant, back, RACK)
                    break

    def _come_and_go(self) -> None:
        chance = Chance(self._seed, "nodes that come and go")
        for _ in range(self._scale.flapping):
            begin = instant = self._moment(chance)
            absences = []
            for _ in range(_TIMES[0] + chance.below(_TIMES[1] - _TIMES[0])):
                absences.append(Absence(instant, instant + chance.between(*_GONE), anew=False))
                instant = absences[-1].until + chance.between(*_HERE)
            over = absences[-1].until
            row = self._free(chance, begin, over, heard_until=over)
            if row is not None:
                self._take(row, begin, over)
                self.absences[row] += absences
                self._note(NODE_DEAD, FLAPPING, row, begin, over)

    def _fail(self) -> None:
        """Nodes whose logs tell that they have to be reset; some are, away for so short that it need not be told."""
        chance = Chance(self._seed, "nodes that fail")
        for _ in range(self._scale.logged):
            instant, is_reset = self._moment(chance), chance.fraction() < _RESET
            away = instant + chance.between(*_RESET_AFTER)
            over = away + chance.between(*_RESET_TAKES) if is_reset else inf
            text = grave(chance)
            row = self._free(chance, instant, over, heard_until=over if is_reset else instant)
            if row is None:
                continue
            self._take(row, instant, over)
            delivered = self._slots.at(self._domain(row), self._slots.first(self._domain(row), instant))
            self.lines.append((instant, row, text))
            self._note(NODE_FAILING, LOGGED, row, delivered, over)
            if is_reset:
                self.absences[row].append(Absence(away, over, anew=True))
                self._note(NODE_DEAD, RESET, row, away, over, demanded=False)

    def _die_alone(self, until: int) -> None:
        """Single nodes, until there are so many incidents.

        Raises:
            ValueError: There are too few nodes.
        """
        chance = Chance(self._seed, "nodes that die")
        for _ in range(until - sum(incident.demanded for incident in self.incidents)):
            for _ in range(_MOST_DRAWN):
                instant = self._moment(chance)
                row = chance.below(len(self._places.nodes))
                back = self._back(chance, self._domain(row), instant, _BACK)
                if self._is_free(row, instant, back):
                    self._die(row, instant, back, SINGLE)
                    break
            else:
                raise ValueError("there are too few nodes for so many incidents")

    def _chatter(self) -> None:
        """Harmless lines of nodes that live."""
        chance = Chance(self._seed, "harmless lines")
        for _ in range(int(_HARMLESS * self._scale.total)):
            instant, row = chance.between(1.0, self._scale.total), chance.below(len(self._places.nodes))
            text = harmless(chance)
            if not any(absence.since <= instant < absence.until for absence in self.absences.get(row, ())):
                self.lines.append((instant, row, text))
        self.lines.sort()

    def _moment(self, chance: Chance) -> float:
        return chance.between(self._scale.warm_up, self._scale.end)

    def _back(self, chance: Chance, domain: int, instant: float, share: float) -> float:
        """When who dies comes back, which is heard at once; never for some."""
        back = instant + chance.between(*_DEAD)
        return self._reach.open(domain, back) if chance.fraction() < share else inf

    def _free(
        self, chance: Chance, since: float, until: float, *, heard_until: float = -inf, amid: int | None = None
    ) -> int | None:
        """A row to which nothing happens near to that; of a domain that is named, be it heard or not."""
        for _ in range(_MOST_DRAWN):
            row = chance.below(len(self._places.nodes))
            if amid is None and self._is_free(row, since, until, heard_until):
                return row
            if amid == self._domain(row) and self._is_rested(row, since, until):
                return row
        return None

    def _is_free(self, row: int, since: float, until: float, heard_until: float = -inf) -> bool:
        """Whether a row has time for a fault, and its domain is heard when it begins, or until then."""
        reachable = self._reach.clear(self._domain(row), since, max(since, heard_until))
        return reachable and self._is_rested(row, since, until)

    def _is_rested(self, row: int, since: float, until: float) -> bool:
        return not any(since < end and until + RECOVERY > begin for begin, end in self._taken.get(row, ()))

    def _take(self, row: int, since: float, until: float) -> None:
        self._taken[row].append((since, until + RECOVERY))

    def _die(self, row: int, instant: float, back: float, cause: str, *, told_from: float | None = None) -> None:
        self._take(row, instant, back)
        self.absences[row].append(Absence(instant, back, anew=True))
        self._note(NODE_DEAD, cause, row, instant if told_from is None else told_from, back)

    def _note(self, kind: str, cause: str, row: int, instant: float, until: float, *, demanded: bool = True) -> None:
        domain = self._places.domains[self._domain(row)]
        node = self._places.nodes[row]
        self.incidents.append(
            Incident(
                kind,
                cause,
                instant,
                instant,
                until,
                domain,
                node,
                queried_domains=(domain,) * demanded,
                demanded=demanded,
            )
        )


def _filled(form: str, chance: Chance) -> str:
    bus = f"{16 * (1 + chance.below(15)) + chance.below(16):02x}"
    return form.format(bus=bus, pid=1000 + chance.below(90_000), small=chance.below(8))


@dataclass(frozen=True, slots=True)
class Sent:
    """Beats of one node, in the order of sending: number, instant, and slot in which they come, -1 for never."""

    number: Numbers
    sent: Instants
    slot: Numbers


def beats(
    row: int, domain: int, absences: Sequence[Absence], cuts: Sequence[Cut], slots: Slots, seed: str, total: float
) -> Sent:
    """What a node sends in ``total`` seconds, and when it comes."""
    chance = stream(seed, f"beats of {row}")
    lives = _lives(absences, total)
    begin = float(chance.uniform(0.0, PERIOD))
    number, sent, ends = [], [], []
    base = 0
    for since, until, anew in lives:
        phase = since if anew else begin + PERIOD * np.ceil((since - begin) / PERIOD)
        times = np.arange(phase, until, PERIOD)
        base = 0 if anew else round((phase - begin) / PERIOD)
        number.append(base + np.arange(len(times)))
        sent.append(times)
        ends.append(np.full(len(times), until))
    when = np.concatenate(sent)
    count = len(when)
    usual = when + chance.uniform(*_PATH, count)
    arrives = np.maximum(usual, _delayed(when, usual, chance, total))
    late = chance.random(count) < _LATE
    by = np.minimum(_LATEST, _USUALLY * np.exp(_SPREAD * chance.standard_normal(count)))
    arrives = np.where(late, arrives + by, arrives)
    lost = (chance.random(count) < _LOST) | (arrives > np.concatenate(ends) + _LAST_WORDS)
    slot = np.where(lost, _NEVER, _slot(slots, domain, arrives))
    mine = [cut for cut in cuts if cut.domain == domain]
    for cut in mine:
        slot[(slot >= cut.since) & (slot < cut.until)] = _NEVER
    soonest = _slot(slots, domain, usual)
    for since, until, _ in lives:
        alive = (when >= since) & (when < until)
        for first, last in _reachable_spans(_slot(slots, domain, since), _slot(slots, domain, until), mine):
            slot[alive] = _in_time(slot[alive], soonest[alive], first, last)
    return Sent(np.concatenate(number), when, slot)


class World:
    """Domains with their nodes, and the beats and log lines of all slots; everything follows from scale and seed.

    Attributes:
        scale: How large it is.
        domains: To be registered first (class Domain).
        nodes: To be registered next (class Node).
        incidents: Faults in truth, in the order in which they begin; also those that nobody has to tell.
        cuts: Partitions.
        jobs: Jobs and where their ranks run.
        sendings: Batches of all domains, one after the other.
    """

    def __init__(self, scale: Scale, seed: str, name_of: NameOf) -> None:
        self.scale = scale
        self._slots = Slots(scale.domains)
        self._places = placed(scale, seed, name_of)
        self.domains = domain_bodies(self._places)
        self.nodes = node_bodies(self._places, scale)
        self.jobs = self._places.jobs
        self.cuts = cuts_of(scale, seed, self._places.exposed)
        self.sendings = scale.domains * scale.slots
        planner = Planner(scale, seed, self._places, self.cuts, self._slots)
        blockings = planner.blockings()
        self._courses = {
            job.name: Stepping(scale, seed, job, blockings.get(job.name)).course() for job in self._places.jobs
        }
        of_jobs = [
            self._named(job, incident) for job in self._places.jobs for incident in self._courses[job.name].incidents
        ]
        planner.plan(len(of_jobs))
        self.incidents = tuple(sorted([*planner.incidents, *of_jobs], key=lambda incident: incident.onset))
        self._lay_out(seed, planner)

    def delivery(self, sending: int) -> Delivery | None:
        """What is sent as the one of that number; None where the domain cannot be reached or has nothing to say."""
        slot, domain = divmod(sending, self.scale.domains)
        if any(cut.domain == domain and cut.since <= slot < cut.until for cut in self.cuts):
            return None
        numbers = range(*np.searchsorted(self._sending, [sending, sending + 1]).tolist())
        said = tuple(map(self._beat, numbers))
        lines = tuple(self._lines.get(sending, ()))
        if not said and not lines:
            return None
        return Delivery(self._slots.at(domain, slot), self._places.domains[domain], said, lines)

    def _named(self, job: Job, incident: Incident) -> Incident:
        """An incident of a job with the names of domains and nodes."""
        domains = [self._places.domains[row // self.scale.nodes] for row in job.nodes]
        if incident.kind == JOB_HUNG:
            return replace(incident, queried_domains=tuple(dict.fromkeys(domains)))
        rank = incident.rank or 0
        return replace(incident, domain=domains[rank], node=self._places.nodes[job.nodes[rank]])

    def _lay_out(self, seed: str, planner: Planner) -> None:
        """Beats and lines in the order in which they are sent."""
        rows, numbers, sent, sending = [], [], [], []
        for row in range(len(self.nodes)):
            domain = row // self.scale.nodes
            series = beats(row, domain, planner.absences.get(row, ()), self.cuts, self._slots, seed, self.scale.total)
            come = (series.slot >= 0) & (series.slot < self.scale.slots)
            rows.append(np.full(int(come.sum()), row))
            numbers.append(series.number[come])
            sent.append(series.sent[come])
            sending.append(series.slot[come] * self.scale.domains + domain)
        chance = stream(seed, "order within a batch")
        together = np.concatenate(sending)
        order = np.lexsort((chance.random(len(together)), together))
        self._row, self._number = np.concatenate(rows)[order], np.concatenate(numbers)[order]
        self._sent, self._sending = np.concatenate(sent)[order], together[order]
        self._ahead = _clocks(seed, len(self.nodes))
        self._ranks: dict[int, list[tuple[str, int, Course, list[float]]]] = defaultdict(list)
        for job in self._places.jobs:
            course = self._courses[job.name]
            for rank, row in enumerate(job.nodes):
                done = [instant for instant in course.done[:, rank].tolist() if isfinite(instant)]
                self._ranks[row].append((job.name, rank, course, done))
        self._lines: dict[int, list[Line]] = defaultdict(list)
        for instant, row, text in planner.lines:
            domain = row // self.scale.nodes
            number = self._slots.first(domain, instant) * self.scale.domains + domain
            body = {"node": self._places.nodes[row], "text": text}
            self._lines[number].append(Line(instant + self._ahead[row], body))

    def _beat(self, place: int) -> Beat:
        row, sent = int(self._row[place]), float(self._sent[place])
        body: dict[str, object] = {"node": self._places.nodes[row], "number": int(self._number[place])}
        steps: list[documents.RankStep] = []
        for job, rank, course, done in self._ranks.get(row, ()):
            count = bisect_right(done, sent)
            if count:
                steps.append({"job": job, "rank": rank, "step": course.first + count})
        if steps:
            body["steps"] = steps
        return Beat(sent, self._ahead[row], body)


def _lives(absences: Sequence[Absence], total: float) -> list[tuple[float, float, bool]]:
    """From when until when it beats, and whether its numbers begin anew."""
    lives, since, anew = [], 0.0, False
    for absence in absences:
        lives.append((since, absence.since, anew))
        since, anew = absence.until, absence.anew
    return [(begin, min(end, total), new) for begin, end, new in [*lives, (since, total, anew)] if begin < total]


def _slot(slots: Slots, domain: int, second: Instants | float) -> Numbers:
    numbers: Numbers = np.ceil(np.asarray(second) / SLOT - slots.at(domain, 0) / SLOT - 1e-9).astype(np.int64)
    return numbers


def _delayed(when: Instants, usual: Instants, chance: np.random.Generator, total: float) -> Instants:
    """When beats come that are held back; what is sent meanwhile comes together at its end."""
    come = usual.copy()
    for since in chance.uniform(0.0, total, int(chance.poisson(total / _HELD_EVERY))):
        until = since + chance.uniform(*_HELD)
        come = np.where((when >= since) & (when < until), np.maximum(come, until), come)
    return come


def _reachable_spans(first: Numbers, last: Numbers, cuts: Sequence[Cut]) -> list[tuple[int, int]]:
    """Slots from ``first`` to ``last`` without those in which the domain cannot be reached."""
    spans, begin = [], int(first)
    for cut in cuts:
        if cut.since < last and cut.until > begin:
            spans.append((begin, cut.since))
            begin = cut.until
    return [(since, until) for since, until in [*spans, (begin, int(last))] if since < until]


def _in_time(slot: Numbers, soonest: Numbers, first: int, last: int) -> Numbers:
    """Slots of beats, changed so that between ``first`` and ``last`` nobody waits for news for too long."""
    slot = slot.copy()
    known = first
    while (gap := _silence(slot, known, last)) is not None:
        deadline = gap + MAX_SILENT_SLOTS
        in_reach = np.flatnonzero((soonest <= deadline) & (soonest >= first))
        slot[in_reach[-1]] = deadline
        known = gap
    return slot


def _silence(slot: Numbers, known: int, last: int) -> int | None:
    """The first slot after which no news come for too long, from ``known`` on; None where there is none."""
    indices = np.flatnonzero((slot != _NEVER) & (slot <= last))
    order = indices[np.lexsort((-indices, slot[indices]))]
    ahead = np.maximum.accumulate(order) if len(order) else order
    news = slot[order[order == ahead]]
    news_turns = np.concatenate([[known], news[(news > known)], [last]])
    long = np.flatnonzero(np.diff(news_turns) > MAX_SILENT_SLOTS)
    return int(news_turns[long[0]]) if len(long) else None


def _clocks(seed: str, nodes: int) -> list[float]:
    """Seconds by which the clock of each node is ahead; those of some are quite wrong."""
    chance = Chance(seed, "clocks")
    return [
        chance.between(-_WRONG_BY, _WRONG_BY) if chance.fraction() < _WRONG else chance.between(-_CLOCK, _CLOCK)
        for _ in range(nodes)
    ]
