"""What kept this machine or the suite from its work while a check ran, so that this is not taken for the target's.

1. Once a second the processor time of everybody is compared with that of the suite, of what the suite's process started
   and of the target, where the target is on this machine. The difference is that of *others*: a build, another run, a
   neighbour of a virtual machine (steal).
2. A second is *disturbed* where others had a quarter of a processor or more (``MIN_OTHERS``), and a check where a
   twentieth of its seconds were (``MIN_DISTURBED_SHARE``).
3. What a target does is never counted among the others: a target that is slow because it computes is slow. Where the
   target is said to be on this machine and its processes cannot be found (they are another user's), nothing is excused.
4. Who plays a world in real time waits where answers are late. That is the target's where nothing else can have been
   slow: the path took little of an answer's time (``MAX_PATH_SHARE``; as TCP measures it, with next to nothing sent
   twice), the machine had processors idle (``MIN_IDLE_SHARE``), and the suite's one process was not busy all the time
   (``MAX_SUITE``). Where fewer were idle, the delays may be the machine's, which suite and target share; so may
   figures that were measured by the clock.
5. The suite watches itself, too: a thread of it that asks to be woken ten times a second and is not for half a second
   (``MAX_STANDSTILL``) shows that this process stood still, be it by its own doing, by a crowd of processes or by a
   hypervisor. What was to be sent in that time was late, and nobody else's.
6. It stands still as little as it can. Python's collector of cycles goes through all that it has kept each time that
   this has grown by a quarter, and no thread runs meanwhile. A run keeps evidence, so that it would stand still for
   longer and longer, amid episodes that play a world in real time and count its delays as the target's; so what is kept
   is set aside (:func:`short_pauses`).
7. What was found is written to the transcript at the end of each check, so that the verdict can be judged again.

Sources: proc_stat(5), proc_pid_stat(5), proc_pid_task_tid_children(5), proc_net_tcp(5) of the Linux man-pages;
L. Kleinrock, *Queueing Systems* I (1975), section 3.5 (waits of an M/M/c queue). On other systems nothing is known of
others, and nothing is excused.
"""

import contextlib
import gc
import ipaddress
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

PROC = Path("/proc")
SAMPLING_PERIOD_SECONDS = 1.0
MIN_OTHERS = 0.25
"""Processors' worth of others' work from which a second counts as disturbed."""
MIN_DISTURBED_SHARE = 0.05
"""Share of a check's seconds that must have been disturbed. A 99th percentile moves by one hundredth of them already,
but then there are too few to say that it was them."""
MIN_DISTURBED_SECONDS = 1.0
STANDSTILL_PERIOD_SECONDS = 0.1
MAX_STANDSTILL = 0.5
"""Seconds for which the suite may stand still: beats of what is played come every half second."""
MAX_PATH_SHARE = 0.2
"""Share of the mean time of an answer that the path may take where the rest is said to be the target's."""
MIN_IDLE_SHARE = 0.4
"""Share of the processors that must have been idle: else suite and target, on one machine, may be in each other's way.

Work that arrives at random waits for one of two processors (M/M/2) for 0.56 of the time that it takes where 0.6 of them
are in use, and for 2.6 times as long as it takes where 0.85 are.
"""
MAX_SUITE = 0.8
"""Processors' worth of the suite's own process, which is Python and has one at most, up to which it kept up itself."""
LISTENING = "0A"
"""State of a listening socket in /proc/net/tcp."""

SWITCH_INTERVAL = 0.001
"""Seconds after which an episode that has been waiting for the interpreter gets it from one that computes. With
Python's 5 ms, one that plays in real time would wait that long for each piece that it reads or writes."""
_OLDEST_GENERATION = 2


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """How busy the machine of the suite was over some time.

    Attributes:
        seconds: How long it was looked at.
        disturbed: Seconds of these in which others had ``MIN_OTHERS`` processors or more.
        others: Mean processors' worth of what neither the suite nor the target used in the disturbed seconds.
        load: Greatest load average over a minute.
        processors: Processors of the machine.
        idle: Mean processors' worth that nobody used; None in transcripts of before this was recorded, as the rest.
        suite: Mean processors' worth of the suite's own process.
        round_trip: Seconds to the target and back, without what it does; None where it is not known, or packets are
            lost.
        standstill: Seconds of the longest time for which the suite's own process stood still.
    """

    seconds: float
    disturbed: float
    others: float
    load: float
    processors: int
    idle: float | None = None
    suite: float | None = None
    round_trip: float | None = None
    standstill: float = 0.0

    @property
    def busy(self) -> bool:
        """Whether delays may have been those of the machine."""
        return self.shared or self.stood_still

    @property
    def late(self) -> bool:
        """Whether what was measured by the clock may have been late by the machine's doing, or by the suite's."""
        return self.busy or self.crowded

    @property
    def shared(self) -> bool:
        """Whether others kept the machine busy."""
        return self.disturbed >= max(MIN_DISTURBED_SECONDS, MIN_DISTURBED_SHARE * self.seconds)

    @property
    def stood_still(self) -> bool:
        """Whether the suite itself did nothing for a while."""
        return self.standstill >= MAX_STANDSTILL

    def leaves_to_target(self, seconds: float) -> bool:
        """Whether delays can be nobody's but the target's, whose answers took so many seconds on average."""
        if self.busy or self.idle is None or self.suite is None or self.round_trip is None:
            return False
        return not self.crowded and self.suite <= MAX_SUITE and self.round_trip <= MAX_PATH_SHARE * seconds

    @property
    def crowded(self) -> bool:
        """Whether suite and target, on one machine, may have been in each other's way."""
        return self.idle is not None and self.idle < MIN_IDLE_SHARE * self.processors

    @property
    def words(self) -> str:
        """What was found, for people."""
        if not self.busy:
            return f"no more than {self.idle or 0.0:.1f} of {self.processors} processors of this machine were idle"
        if not self.shared:
            return f"the suite itself stood still for {self.standstill:.1f} s (load {self.load:.0f})"
        return (
            f"this machine was busy with something else (load {self.load:.0f}; others had {self.others:.1f} of "
            f"{self.processors} processors in {self.disturbed:.0f} of {self.seconds:.0f} s)"
        )

    def event(self) -> dict[str, Any]:
        """Members of an event of the transcript."""
        return asdict(self)

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Self:
        """The load that an event tells of."""
        return cls(**{name: event[name] for name in cls.__slots__ if name in event})


@dataclass(frozen=True, slots=True)
class Sample:
    """Processor seconds of everybody, of those known and of the suite's own process, since some beginning."""

    instant: float
    everybody: float
    known: float
    suite: float


class MachineWatch:
    """Looks at the machine once a second, from a thread of its own; to be used as a context.

    Attributes:
        roots: Processes that are no others, with all that they start: the suite's own, and the target's.
    """

    def __init__(self, target: str) -> None:
        """Watch beside a target, given by its base URL."""
        self._target = target
        self._processors = os.cpu_count() or 1
        self._tick = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
        self._known: dict[tuple[int, int], float] = {}
        self._disturbed: list[tuple[float, float, float]] = []
        self._loads: list[tuple[float, float]] = []
        self._used: list[tuple[float, float, float, float]] = []
        self._standstills: list[tuple[float, float]] = []
        self.roots = {os.getpid()}
        self._stop = threading.Event()
        self._threads: tuple[threading.Thread, ...] = ()

    def __enter__(self) -> Self:
        """Begin to look, where the machine lets itself be looked at."""
        if (PROC / "stat").is_file() and (targets := listeners(self._target)) is not None:
            self.roots |= targets
            looks = (("machine", self._look), ("standstill", self._look_for_standstills))
            self._threads = tuple(threading.Thread(target=look, name=name, daemon=True) for name, look in looks)
            for thread in self._threads:
                thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop looking."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def since(self, begin: float) -> MachineLoad | None:
        """What happened since ``begin`` (``time.monotonic()``); None where nothing is known of others."""
        if not self._threads:
            return None
        disturbed = [(length, others) for moment, length, others in self._disturbed if moment + length > begin]
        seconds = sum(length for length, _ in disturbed)
        others = sum(length * share for length, share in disturbed) / seconds if seconds else 0.0
        load = max((load for moment, load in self._loads if moment >= begin), default=os.getloadavg()[0])
        took = time.monotonic() - begin
        used = [
            (length, everybody, suite) for moment, length, everybody, suite in self._used if moment + length > begin
        ]
        span = sum(length for length, _, _ in used)
        return MachineLoad(
            *(round(took, 1), round(min(seconds, took), 1), round(others, 2), round(load, 1), self._processors),
            round(self._processors - sum(everybody for _, everybody, _ in used) / span, 2) if span else None,
            round(sum(suite for _, _, suite in used) / span, 2) if span else None,
            standstill=round(max((late for moment, late in self._standstills if moment > begin), default=0.0), 2),
        )

    def _look_for_standstills(self) -> None:
        before = time.monotonic()
        while not self._stop.wait(STANDSTILL_PERIOD_SECONDS):
            now = time.monotonic()
            if (late := now - before - STANDSTILL_PERIOD_SECONDS) >= STANDSTILL_PERIOD_SECONDS:
                self._standstills.append((now, late))
            before = now

    def _look(self) -> None:
        before = self.sample()
        while not self._stop.wait(SAMPLING_PERIOD_SECONDS):
            now = self.sample()
            took = now.instant - before.instant
            others = (now.everybody - before.everybody - (now.known - before.known)) / took
            if others >= MIN_OTHERS:
                self._disturbed.append((before.instant, took, others))
            self._loads.append((now.instant, os.getloadavg()[0]))
            self._used.append((before.instant, took, now.everybody - before.everybody, now.suite - before.suite))
            before = now

    def sample(self) -> Sample:
        """Everybody's time and that of the suite, of what it started, and of the target; the ended stay counted."""
        everybody = busy_seconds(self._tick)
        for pid in descendants(self.roots):
            with contextlib.suppress(OSError, ValueError, IndexError):
                begun, seconds = process_seconds(pid, self._tick)
                self._known[pid, begun] = seconds
        suite = process_seconds(os.getpid(), self._tick)[1]
        return Sample(time.monotonic(), everybody, sum(self._known.values()), suite)


def busy_seconds(tick: int) -> float:
    """Processor seconds that were not idle since the machine was started, those taken by a hypervisor included."""
    fields = [int(field) for field in (PROC / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) / tick


def process_seconds(pid: int, tick: int) -> tuple[int, float]:
    """When a process was started, in ticks, and its processor seconds without those of its ended children."""
    fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return int(fields[19]), (int(fields[11]) + int(fields[12])) / tick


def descendants(roots: set[int]) -> set[int]:
    """Processes and all that they started and that is there, by process identifier."""
    processes, ahead = set[int](), list(roots)
    while ahead:
        pid = ahead.pop()
        if pid not in processes:
            processes.add(pid)
            ahead += _children(pid)
    return processes


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for thread in (PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                yield from map(int, (thread / "children").read_text().split())


def listeners(target: str) -> frozenset[int] | None:
    """Processes of this machine that take connections at a URL.

    Empty where the target is on another machine; None where it is on this one and its processes cannot be found.
    """
    parts = urlsplit(target)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if not is_here(parts.hostname or ""):
        return frozenset()
    inodes = set(_listening(port))
    processes = frozenset(pid for pid, inode in _sockets() if inode in inodes) if inodes else frozenset[int]()
    return processes or None


def is_here(host: str) -> bool:
    """Whether a host is this machine: an address that a socket could be bound to."""
    try:
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return False
    return any(ipaddress.ip_address(address).is_loopback or _bindable(address) for address in addresses)


def _bindable(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.bind((address, 0))
        return True
    return False


def _listening(port: int) -> Iterator[str]:
    """Inodes of sockets that listen at a port."""
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (PROC / "net" / table).read_text().splitlines()[1:]:
                fields: Sequence[str] = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]


def _sockets() -> Iterator[tuple[int, str]]:
    """Every socket that a process of this user holds: process identifier and inode."""
    for folder in PROC.glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):
            for handle in folder.iterdir():
                with contextlib.suppress(OSError):
                    name = str(handle.readlink())
                    if name.startswith("socket:["):
                        yield int(folder.parent.name), name[8:-1]


@contextlib.contextmanager
def short_pauses() -> Iterator[None]:
    """Let the collector look through what is kept once, and no thread wait for long; as before when the block ends.

    Cycles that are given up later than that are collected when somebody collects after the block; not where somebody
    had set things aside before it, which stay so.
    """
    interval, before = sys.getswitchinterval(), gc.get_freeze_count()
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.callbacks.append(_set_aside)
    try:
        yield
    finally:
        gc.callbacks.remove(_set_aside)
        if not before:  # all or nothing: there is no telling apart who set what aside
            gc.unfreeze()
        sys.setswitchinterval(interval)


def _set_aside(phase: str, info: dict[str, Any]) -> None:
    """Take what a look through everything has left out of further looks."""
    if phase == "stop" and info["generation"] == _OLDEST_GENERATION:
        gc.freeze()
