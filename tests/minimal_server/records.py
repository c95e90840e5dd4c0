"""What samples tell of one node: the newest records, and what is usual in the job that it runs."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import Any

SUMS = {
    "power": "power",
    "accelerator_memory_used": "memory",
    "scale_out_transmit_flow": "sent",
    "scale_out_receive_flow": "received",
    "storage_read_flow": "read",
    "storage_write_flow": "written",
}
"""Measures of a node that add up over its devices; they are looked at by device."""

MEANS = {
    "accelerator_utilisation": "utilisation",
    "matrix_pipe_activity": "pipe",
    "memory_bandwidth_utilisation": "bandwidth",
    "allocatable_share": "allocatable",
}
"""Measures that mean the same of a node as of a device."""

LEVELS = ("utilisation", "pipe", "bandwidth", "power", "read")
"""What is compared with what is usual."""

KEPT = 10
"""Records of a node that are looked at."""

SETTLING = 4
"""Records that follow one before it tells what is usual: what began with it has shown by then."""

STARTING, KNOWN = 2, 8
"""Records of a job that tell nothing, since it starts, and records after which what is usual is known."""

LONGEST = 30
"""Records over which what is usual is a plain mean; from then on older ones count less and less."""

HELD = 0.01
"""Share of its memory that a device holds for a job, and for its driver alone does not."""

AGAIN = 4300
"""Milliseconds within which faults that recur come again."""

STANDING = 1100
"""Milliseconds between faults of which one is counted in each sample, since it stands."""

MISSING = 1900
"""Milliseconds by which a device that is missing is behind the others of its node."""

DONE = 0.02
"""Utilisation below which devices do nothing."""

LONG_REST = 5000
"""Milliseconds without anything done that are a rest; saving and loading take less."""

STORE = 1e8
"""Bytes a second and device, written or read by a job that does nothing else."""


TRAFFIC = 1e7
"""Bytes a second and device that only those receive who work with others."""


@dataclass(frozen=True, slots=True)
class Make:
    """What a node is made of.

    Attributes:
        devices: Names of its devices.
        memory: Bytes that one of them has, if that is stated.
        limit: Watts that one of them may draw, if that is stated.
        model: Product that it is.
    """

    devices: tuple[str, ...]
    memory: float | None
    limit: float | None
    model: str


@dataclass(slots=True)
class Record:
    """What was observed of a node at an instant, by device; None where it was not stated."""

    moment: int
    utilisation: float | None = None
    pipe: float | None = None
    bandwidth: float | None = None
    allocatable: float | None = None
    power: float | None = None
    memory: float | None = None
    sent: float | None = None
    received: float | None = None
    read: float | None = None
    written: float | None = None
    faults: float = 0.0

    @property
    def pausing(self) -> bool:
        """Whether a job saves or loads, so that nothing else can be told from it."""
        return (self.written or 0.0) > STORE or ((self.read or 0.0) > STORE and (self.utilisation or 0.0) < 0.5)


@dataclass(slots=True)
class Node:
    """One node.

    Attributes:
        make: What it is made of.
        records: The newest.
        usual: Means over its job as long as all was well.
        told: Records that they are of.
        age: Records of the job so far.
        fine: Whether all is well as far as is known.
        faults: Instants of the newest faults.
        parts: Newest instant and values of each device that is reported by itself.
        behind: Milliseconds by which its samples are late.
        rest: Watts that a device of its make draws without a job, if that is known.
        stuck: Whether it shows work and does none.
        slow: Whether it is slower than usual, on its own.
        worked: Whether its job has been seen to do anything.
        hung: Whether its job was seen to hang, and has not gone on.
        given: Whether its devices are given out, so that fewer are left while a job runs; no sign that any is missing.
        resting: Instant since which it does nothing; nought while it does something.
        most: Bytes that a device of it was seen to hold at most.
    """

    make: Make
    records: deque[Record] = field(default_factory=lambda: deque(maxlen=KEPT))
    usual: dict[str, float] = field(default_factory=dict)
    told: int = 0
    age: int = 0
    fine: bool = True
    faults: deque[int] = field(default_factory=lambda: deque(maxlen=4))
    parts: dict[str, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    behind: float = 0.0
    rest: float | None = None
    stuck: bool = False
    slow: bool = False
    worked: bool = False
    hung: bool = False
    given: bool = False
    resting: int = 0
    most: float = 0.0

    @property
    def newest(self) -> Record:
        """The newest record."""
        return self.records[-1]

    @property
    def holds(self) -> bool:
        """Whether a job holds its memory, or its devices work."""
        last = self.newest
        works = (last.utilisation or 0.0) > (0.1 if self.make.memory else 0.02)
        return works or (last.memory is not None and last.memory > HELD * (self.make.memory or self.most))

    @property
    def lost(self) -> bool:
        """Whether devices are missing, or cannot be given out."""
        last = self.newest
        missing = any(last.moment - at > MISSING + self.behind for at, _ in self.parts.values())
        return missing or (last.allocatable is not None and last.allocatable < 1.0 and not self.given)

    @property
    def recurring(self) -> bool:
        """Whether faults have come again and again, the last of them not long ago; one that stands came each time."""
        if len(self.faults) < 2:
            return False
        gaps = [after - before for before, after in pairwise(self.faults)]
        stands = len(gaps) == 3 and max(gaps) <= STANDING
        return gaps[-1] <= AGAIN and self.newest.moment - self.faults[-1] <= (2 * STANDING if stands else AGAIN)

    @property
    def hangs(self) -> bool:
        """Whether its devices have done nothing at all for more than a moment."""
        return len(self.records) > 1 and all((one.utilisation or 0.0) < DONE for one in list(self.records)[-2:])

    @property
    def stopped(self) -> bool:
        """Whether what does nothing now has worked, and a fault came as it stopped: without one it may just rest."""
        return self.worked and bool(self.faults) and self.faults[-1] >= self.resting - AGAIN

    @property
    def rests(self) -> bool:
        """Whether its devices have done nothing at all for some seconds, though its memory is held."""
        return self.hangs and self.newest.moment - self.resting >= LONG_REST

    @property
    def spins(self) -> bool:
        """Whether its devices show that they work, and do nothing that takes power."""
        return len(self.records) > 1 and all(map(self._spins, list(self.records)[-2:]))

    def _spins(self, record: Record) -> bool:
        if (record.utilisation or 0.0) < 0.98:
            return False
        if record.pipe is not None:
            return record.pipe < max(0.01, 0.05 * self.usual.get("pipe", 0.0))
        level = None if record.power is None else self._level(record.power)
        return level is not None and level < 0.3

    def sticks(self, *, alone: bool) -> bool:
        """Whether it shows work and does none, waiting for nobody; once stuck, it is until it gets on."""
        by_power = alone and self.newest.pipe is None and self.works_always
        throttled = by_power and (self.ratio("power", [self.newest]) or 0.0) > 0.395
        self.stuck = self.spins and (alone or self.stuck) and not throttled
        return self.stuck

    @property
    def works_always(self) -> bool:
        """Whether its job leaves its devices no rest, and is known long enough; serving seldom takes half the power."""
        if self.told < KNOWN or self.usual.get("utilisation", 0.0) < 0.9:
            return False
        return "power" not in self.usual or (self._level(self.usual["power"]) or 1.0) > 0.5

    def _level(self, power: float) -> float | None:
        """Where a power stands between that without a job and the most; None where these are not known."""
        if self.make.limit is None or self.rest is None or self.make.limit <= self.rest:
            return None
        return (power - self.rest) / (self.make.limit - self.rest)

    def slows(self) -> bool:
        """Whether it is slower than usual on its own; looked at where its job works all the time."""
        records = [one for one in self.records if not one.pausing and (one.utilisation or 0.0) >= DONE]
        if not self.works_always or len(records) < 3:
            return False
        share, power = (self.ratio(level, records[-3:]) for level in ("utilisation", "power"))
        assert share is not None
        if self.slow:
            self.slow = share < 0.94 or (power is not None and power < 0.85)
        elif share > 0.9:
            self.slow = power is not None and power < 0.78
        else:
            usual = self.usual["utilisation"]
            late = sum((record.utilisation or 0.0) < 0.92 * usual for record in records[-6:])
            self.slow = late > 4 or (self.newest.written is not None and late > 2)
        return self.slow

    def hear(self, device: str, moment: int, values: Mapping[str, Any]) -> None:
        """Take a sample of the node itself or of a device; what is older than the one before is left out."""
        if device:
            if moment <= self.parts.get(device, (0, {}))[0]:
                return
            self.parts[device] = moment, values
            record = _together(moment, [its for at, its in self.parts.values() if at == moment])
        else:
            record = _whole(moment, values, max(1, len(self.make.devices)))
        if record.faults and moment not in self.faults:
            self.faults.append(moment)
        if self.records and moment <= self.newest.moment:
            if moment == self.newest.moment:
                self.records[-1] = record
            return
        self._give_out(record)
        if self.records and not _same_job(self.newest, record):
            self.usual, self.told, self.age, self.stuck, self.slow = {}, 0, 0, False, False
            self.worked, self.hung, self.resting = False, False, 0
            self.records.clear()
        self._learn()
        self._rest(record)
        self.records.append(record)
        self.age += 1

    def _give_out(self, record: Record) -> None:
        """Notice that fewer devices are left once a job begins, or that it was so from the first record on."""
        before = self.newest if self.records else None
        begins = before is None or (self._in_use(record) and not self._in_use(before))
        left = 1.0 if before is None or before.allocatable is None else before.allocatable
        self.given |= begins and record.allocatable is not None and record.allocatable < left

    def _in_use(self, record: Record) -> bool:
        held = record.memory is not None and record.memory > HELD * (self.make.memory or self.most or float("inf"))
        return held or (record.utilisation or 0.0) >= DONE

    def _rest(self, record: Record) -> None:
        """Notice that its job works, and since when it rests, and how much it holds."""
        self.most = max(self.most, record.memory or 0.0)
        if (record.utilisation or 0.0) < DONE:
            self.resting = self.resting or record.moment
            return
        self.worked, self.resting = True, 0

    def _learn(self) -> None:
        """A record that others have followed tells what is usual, if all is well or nothing is known yet."""
        if self.age < STARTING + SETTLING or len(self.records) <= SETTLING or not (self.fine or self.told < KNOWN):
            return
        settled = self.records[-SETTLING]
        share = settled.utilisation or 0.0
        around = (self.records[-SETTLING - 1], settled, self.records[-SETTLING + 1])
        traffic = max(one.received or 0.0 for one in self.records)
        quiet = traffic > TRAFFIC and any((one.received or 0.0) < 0.1 * traffic for one in around)
        if quiet or any(one.pausing for one in around):
            return
        usual = self.usual.get("utilisation", 0.0)
        if usual > 0.8 and share < 0.9 * usual:
            return
        if self.told < SETTLING and usual < 0.9 * share:
            self.told = 0
        self.told += 1
        for level in LEVELS:
            value = getattr(settled, level)
            if value is not None:
                before = self.usual.get(level, value) if self.told > 1 else value
                self.usual[level] = before + (value - before) / min(self.told, LONGEST)

    def ratio(self, level: str, records: Sequence[Record]) -> float | None:
        """Mean of some records over what is usual; None where it cannot be told."""
        values = [value for record in records if (value := getattr(record, level)) is not None]
        if not values or self.told < KNOWN or not self.usual.get(level):
            return None
        return fmean(values) / self.usual[level]


def _whole(moment: int, values: Mapping[str, Any], devices: int) -> Record:
    record = Record(moment, faults=values.get("faults", 0.0))
    for measure, name in MEANS.items():
        if measure in values:
            setattr(record, name, values[measure])
    for measure, name in SUMS.items():
        if measure in values:
            setattr(record, name, values[measure] / devices)
    return record


def _together(moment: int, parts: Sequence[Mapping[str, Any]]) -> Record:
    record = Record(moment, faults=sum(values.get("faults", 0.0) for values in parts))
    for measure, name in (*MEANS.items(), *SUMS.items()):
        stated = [values[measure] for values in parts if measure in values]
        if stated:
            setattr(record, name, fmean(stated))
    return record


def _same_job(before: Record, after: Record) -> bool:
    """Whether as much memory is held as before, by the devices that can be given out."""
    if before.memory is None or after.memory is None:
        return True
    old, new = (record.memory / (record.allocatable or 1.0) for record in (before, after) if record.memory is not None)
    return abs(new - old) <= 0.1 * old
