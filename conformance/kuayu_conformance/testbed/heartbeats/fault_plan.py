"""What goes wrong in a world of heartbeats, and when: nodes, jobs and their ranks, and what logs say of it.

1. **Log lines.** They have documented forms: those that tell that a device has to be reset, and what logs hold
   otherwise. Sources: NVIDIA, "Analyzing Xid Errors with the Xid Catalog" and its Fabric Manager user guide (SXid);
   Huawei, CANN troubleshooting (event 0x80E01809: several bits of HBM); the Linux kernel's own forms. Addresses are
   made up.
2. **Steps.** Ranks of a job wait for each other: some jobs hang, some ranks straggle, and checkpoints make short
   pauses.
3. **Plan.** Nodes die, come and go, or fail; each has one fault at a time, and time to recover.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.heartbeats.values import (
    AMID,
    BLOCKING,
    CUT,
    DOMAIN_UNREACHABLE,
    FLAPPING,
    HANG,
    JOB_HUNG,
    LOGGED,
    NODE_DEAD,
    NODE_FAILING,
    RACK,
    RANK_STRAGGLING,
    RESET,
    SINGLE,
    SLOW,
    Absence,
    Cut,
    Incident,
    Job,
    Places,
    Reach,
    Scale,
    Turns,
)

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
_LATE, _LEAST_LATE = (0.5, 1.0), 0.6  # of a step, and s at least, by which a rank straggles
_EVERY, _PAUSE = (12, 25), (0.3, 1.0)  # steps between checkpoints, and seconds of one
_LASTS = (12.5, 17.0)  # seconds for which a fault lasts once it has begun
_REST = (40.0, 60.0)  # seconds between two faults of a job
_FORGOTTEN = 40.0  # seconds of standstill that tell a hang at most; a job that hung has to forget that first
_LAST_HANG, _LAST_SLOW = 35.0, 26.0  # seconds before the end of the world after which it is too late for one
_DEAD = (13.0, 25.0)  # seconds until a node comes back
_BACK, _RACKS_BACK = 0.85, 0.5  # shares of nodes and racks that do
_GONE, _HERE, _TIMES = (3.6, 4.4), (2.6, 3.4), (3, 6)  # seconds away and back of a node that comes and goes, how often
_RESET, _RESET_AFTER, _RESET_TAKES = 0.5, (14.0, 20.0), (4.0, 6.0)  # share, and seconds, of nodes that are reset
_HARMLESS = 6.0  # harmless lines in a second, in all
_MOST_DRAWN = 2000


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
        self._due = scale.warm_up + self._chance.between(0.0, _REST[1]) if job.calm else np.inf

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
        self._due = start + self._chance.between(*_REST)
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
        late = max(_LEAST_LATE, self._chance.between(*_LATE) * self._step)
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

    def __init__(self, scale: Scale, seed: str, places: Places, cuts: Sequence[Cut], turns: Turns) -> None:
        self._scale, self._seed, self._places, self._turns = scale, seed, places, turns
        self._cuts = cuts
        self._reach = Reach(tuple(cuts), turns)
        self._taken: dict[int, list[tuple[float, float]]] = defaultdict(list)
        self.incidents: list[Incident] = []
        self.absences: dict[int, list[Absence]] = defaultdict(list)
        self.lines: list[tuple[float, int, str]] = []
        for job in places.jobs:
            for row in job.nodes:
                self._taken[row] = [(-inf, inf)]

    def blockings(self) -> dict[str, Blocking]:
        """Let a node of each job that is to be blocked die for good; tells when, by the job."""
        chance, found = Chance(self._seed, "blocked jobs"), {}
        for job in (candidate for candidate in self._places.jobs if candidate.blocked):
            instant = chance.between(self._scale.warm_up, self._scale.end)
            row = chance.pick(job.nodes)
            self._die(row, instant, inf, BLOCKING)
            found[job.name] = Blocking(instant, tuple(rank for rank, node in enumerate(job.nodes) if node == row))
        return found

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
            since, until = self._turns.at(cut.domain, cut.since), self._turns.at(cut.domain, cut.until)
            found = Incident(DOMAIN_UNREACHABLE, CUT, since, since, until, domain=name)
            self.incidents.append(found)
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
            delivered = self._turns.at(self._domain(row), self._turns.first(self._domain(row), instant))
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
