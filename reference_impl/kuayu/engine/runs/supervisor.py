"""The supervisor of a run on this host: starts its ranks, keeps what they print, and ends them as a whole.

It is a program of the standard library alone, called by its path, so that it is there in milliseconds and needs nothing
of what the job's Python has. :mod:`~kuayu.engine.runs.local` calls it and reads what it leaves.

    engine ── launcher (ends at once) ── guard ── supervisor ── ranks ── whatever they start

1. Guard and supervisor hold the lock of the run as long as one of them lives (flock(2); the engine hands it over open).
   So the lock says whether a run is supervised, whoever was killed, and no number of a process has to be believed.
   Only who holds the lock writes the state.
2. Each rank leads a session of its own. The supervisor is the *subreaper* of all that it starts (prctl(2),
   PR_SET_CHILD_SUBREAPER): what a rank leaves behind becomes its child, also after setsid(2) or a double fork, so that
   the processes of a run are what descends from it, read from /proc.
3. A rank is killed when the supervisor is (PR_SET_PDEATHSIG); all else that it leaves goes to the guard, a subreaper
   too, which kills it and writes why. Where the guard is killed, the supervisor ends the run. Where both are killed at
   once, ranks are gone all the same; what else they started is found by the variable KUAYU_RUN_DIRECTORY when an engine
   looks next. So what escapes is only a process that has cleared its environment, of a run whose guard and supervisor
   were killed at once. A rank that starts processes faster than they can be killed needs a limit of processes
   (ulimit -u, or a cgroup), which whoever runs the engine sets.
4. Ending: SIGTERM to every process of the run, and SIGKILL to what is left after the grace period, as systemd does by
   default (systemd.kill(5), KillMode=control-group). The state says that the run has ended only when nothing is left.
5. A run that is tied to the process of its engine is stopped when that has ended: a pipe tells, whatever ended it.
6. Lines of all ranks are numbered in one file. Its end is never lost to its size: where it is full, lines are left out
   in the middle, and a line says how many. What a progress bar overwrites by a carriage return is left out.
"""

import contextlib
import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any

STATE_FILE = "state.json"
STOP_FILE = "stop.json"
LOG_FILE = "log.jsonl"
INDEX_FILE = "log.index"
ERRORS_FILE = "supervisor.log"
RUN_DIRECTORY = "KUAYU_RUN_DIRECTORY"
"""Variable of all processes of a run; by it they are found where nobody is left who started them."""

LINES_PER_INDEX_ENTRY = 256
"""Lines from one entry of the index to the next. An entry says where a line begins: eight bytes, little-endian."""

ENDED = ("succeeded", "failed", "stopped")

STARTED, NOT_STARTED = "started", "failed"
"""What the launcher prints: whether all ranks were started."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
"""Numbers from linux/prctl.h."""

_TICK_SECONDS = 1.0
_ENDING_TICK_SECONDS = 0.05
_PIECE_BYTES = 1 << 16
_MAX_UTF8_BYTES = 4
_TAIL_LINES = 1000
"""Lines that are kept in memory once the log is full, and written at the end: where a program says why it failed."""

_WRITING_SECONDS = 60.0
"""How long the last state is tried to be written where the disk is full."""


def boot_id() -> str:
    """Which start of this host it is (random(4))."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def started(pid: int) -> int | None:
    """When a process was started, in ticks since the host was (proc(5)); None where there is none that runs.

    Number and start together are a process; its number alone may have become another's. One that has ended and waits
    for its parent to notice is none any more.
    """
    fields = _stat(pid)
    return None if fields is None or fields[0] in "ZX" else int(fields[19])


def descendants(root: int) -> list[int]:
    """Processes that descend from one, without those that have ended."""
    children: dict[int, list[int]] = {}
    ended = set()
    for pid in _pids():
        if (fields := _stat(pid)) is not None:
            children.setdefault(int(fields[1]), []).append(pid)
            if fields[0] in "ZX":
                ended.add(pid)
    processes, waiting = [], [root]
    while waiting:
        offspring = children.get(waiting.pop(), [])
        waiting += offspring
        processes += [pid for pid in offspring if pid not in ended]
    return processes


def processes_of(directory: str) -> list[int]:
    """Processes of a run by their environment, whoever is their parent now."""
    variable = f"{RUN_DIRECTORY}={directory}".encode()
    processes = []
    for pid in _pids():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue  # it has ended, or is somebody else's, and so none of ours
        if variable in environment.split(b"\0") and started(pid) is not None:
            processes.append(pid)
    return processes


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to processes; those that have ended are passed over, and those that may not be sent one."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def write_state(directory: Path, state: dict[str, Any], file: str = STATE_FILE) -> None:
    """Have a file hold this, whole, or what it held before; readable by its owner alone.

    Raises:
        OSError: It cannot be written.
    """
    beside = directory / f"{file}.{os.urandom(4).hex()}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump(state, stream)
        stream.flush()
        os.fsync(descriptor)
    beside.replace(directory / file)


def read_state(directory: Path, file: str = STATE_FILE) -> dict[str, Any] | None:
    """What a file holds; None where there is none, or nothing that makes sense."""
    try:
        state = json.loads((directory / file).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return state if isinstance(state, dict) else None


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the third on: state, parent, …, start as the twentieth of these."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    return line.rpartition(")")[2].split()  # the second field is a name and may hold anything


class Lines:
    """Cuts what a rank prints into lines of bounded length.

    Args:
        characters: The most characters of a line; what is longer ends with an ellipsis.
    """

    def __init__(self, characters: int) -> None:
        self._characters = characters
        self._most = characters * _MAX_UTF8_BYTES
        self._rest = b""

    def feed(self, piece: bytes) -> list[str]:
        """Lines that end in this piece."""
        *whole, rest = (self._rest + piece).split(b"\n")
        if len(rest) > self._most:
            rest = _last_overwritten(rest)[: self._most + 1]  # one more than fits, so that it is seen to be cut
        self._rest = rest
        return [self._text(line) for line in whole]

    def end(self) -> list[str]:
        """The last line, where it has no end."""
        rest, self._rest = self._rest, b""
        return [self._text(rest)] if rest else []

    def _text(self, line: bytes) -> str:
        text = _last_overwritten(line).decode("utf-8", "replace")
        return text if len(text) <= self._characters else text[: self._characters - 1] + "…"


def _last_overwritten(line: bytes) -> bytes:
    """What a terminal would show last of a line that was written over by carriage returns."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]


class LogFile:
    """The lines of a run in one file, a JSON array ``[rank, seconds since 1970, text]`` on each line, and their index.

    Args:
        directory: Where both are.
        size: Bytes of the log that are there already; what comes behind them was not finished, and is cut off.
        lines: Lines that are there already.

    Attributes:
        size: Bytes of the log.
        lines: Lines in it.
    """

    def __init__(self, directory: Path, size: int = 0, lines: int = 0) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._log = os.open(directory / LOG_FILE, flags, 0o600)
        self._index = os.open(directory / INDEX_FILE, flags, 0o600)
        self.size, self.lines = size, lines
        self._cut()

    def append(self, encoded: list[bytes]) -> bool:
        """Write lines, whole; whether there was room on the disk. Where there was none, nothing is written."""
        entries = []
        size = self.size
        for number, line in enumerate(encoded, self.lines):
            if number % LINES_PER_INDEX_ENTRY == 0:
                entries.append(size.to_bytes(8, "little"))
            size += len(line)
        try:
            _write(self._log, b"".join(encoded))
            _write(self._index, b"".join(entries))
        except OSError:
            with contextlib.suppress(OSError):
                self._cut()
            return False
        self.size, self.lines = size, self.lines + len(encoded)
        return True

    def close(self) -> None:
        """Close both files."""
        os.close(self._log)
        os.close(self._index)

    def _cut(self) -> None:
        os.ftruncate(self._log, self.size)
        os.ftruncate(self._index, -(-self.lines // LINES_PER_INDEX_ENTRY) * 8)


class Log:
    """The log of a run as it is printed, of bounded size.

    Args:
        directory: Where log and index are written.
        most: Bytes after which lines are left out.
        rank: Whose lines those of the supervisor are.
    """

    def __init__(self, directory: Path, most: int, rank: int) -> None:
        self._file = LogFile(directory)
        self._most = most
        self._rank = rank
        self._left_out = 0
        self._tail: deque[bytes] | None = None

    def write(self, rank: int, texts: list[str]) -> None:
        """Add lines of a rank."""
        if not texts:
            return
        encoded = [encode(rank, text) for text in texts]
        if self._tail is None:
            sizes = accumulate(map(len, encoded), initial=self._file.size)
            fitting = sum(size <= self._most for size in sizes) - 1
            self._append(encoded[:fitting])
            encoded = encoded[fitting:]
            if not encoded:
                return
            note = f"kuayu: this log is full ({self._most} bytes); the last lines follow when the run has ended"
            self._append([encode(self._rank, note)])
            self._tail = deque(maxlen=_TAIL_LINES)
        self._left_out += max(0, len(self._tail) + len(encoded) - _TAIL_LINES)
        self._tail.extend(encoded)

    def close(self) -> None:
        """Write the end of a log that was full, and how much was left out before it."""
        if self._left_out:
            self._append([encode(self._rank, f"kuayu: {self._left_out} lines were left out here")])
        self._append(list(self._tail or ()))
        self._file.close()

    def _append(self, encoded: list[bytes]) -> None:
        if not self._file.append(encoded):
            self._left_out += len(encoded)


def encode(rank: int, text: str) -> bytes:
    """A line of a log, read now."""
    return (json.dumps([rank, round(time.time(), 3), text], ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


class Supervisor:
    """Carries out what an engine has ordered, from the first rank's start to the last process's end.

    Args:
        order: What the engine wrote: ``directory``, ``held`` (a file to remove at the end), ``state`` (what the state
            file says beside how the run stands), ``grace`` in seconds, ``characters`` of a line, ``log_bytes``,
            ``ties`` (pipes that end with whom a run is tied to), for each of ``ranks`` its ``rank``, ``command``,
            ``directory`` and ``environment``.
        guard: The process that waits for this one.
        report: Descriptor that is told how the start went.
    """

    def __init__(self, order: dict[str, Any], guard: int, report: int) -> None:
        self._order = order
        self._guard = guard
        self._report = report
        self._directory = Path(order["directory"])
        self._log = Log(self._directory, order["log_bytes"], order["ranks"][0]["rank"])
        self._selector = selectors.DefaultSelector()
        self._ranks: dict[int, int] = {}
        self._processes: list[subprocess.Popen[bytes]] = []  # one that is let go of would take the exit code with it
        self._codes: dict[int, int] = {}
        self._verdict: tuple[str, str, int | None] | None = None
        self._deadline = 0.0
        self._stop_seen: dict[str, Any] | None = None
        self._asked_to_end = False
        self._cut_loose = False
        self._libc = ctypes.CDLL(None)

    def run(self) -> None:
        """Start the ranks, wait for the end of all that they start, and write how it came out."""
        self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        self._listen()
        self._say("starting", "", None)
        if failure := self._start():
            self._decide("failed", failure, None)
        else:
            with contextlib.suppress(OSError):
                self._say("running", "", None)
        os.write(self._report, (NOT_STARTED if failure else STARTED).encode())
        os.close(self._report)
        while not self._over():
            for key, _ in self._selector.select(self._tick()):
                key.data()
            self._reap()
            self._look_around()
        self._finish()

    def _listen(self) -> None:
        """Have signals wake the loop. They are handled, never ignored: what is ignored stays so in the ranks."""
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGCHLD, lambda *_: None)

        def drain() -> bool:
            with contextlib.suppress(BlockingIOError):
                os.read(read, _PIECE_BYTES)
            return False

        self._selector.register(read, selectors.EVENT_READ, drain)
        for tie in self._order.get("ties", ()):  # shares of a run of Ray are tied to nobody
            self._selector.register(tie, selectors.EVENT_READ, lambda tie=tie: self._cut(tie))

    def _cut(self, tie: int) -> bool:
        self._selector.unregister(tie)
        self._cut_loose = True
        return False

    def _on_signal(self, *_: object) -> None:
        self._asked_to_end = True

    def _start(self) -> str:
        """Start all ranks; why one could not be, where it could not."""
        own = os.getpid()

        def tie_to_supervisor() -> None:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != own:  # it was killed before this process was tied to it
                os._exit(1)

        for rank in self._order["ranks"]:
            read, write = os.pipe()
            try:
                process = subprocess.Popen(  # noqa: S603 - what to run is what the engine is for
                    rank["command"],
                    cwd=rank["directory"],
                    env=rank["environment"],
                    stdin=subprocess.DEVNULL,
                    stdout=write,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=tie_to_supervisor,  # noqa: PLW1509 - this process has one thread
                )
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                os.close(read)
                return f"rank {rank['rank']} could not be started: {error}"
            finally:
                os.close(write)
            self._processes.append(process)
            self._ranks[process.pid] = rank["rank"]
            self._follow(rank["rank"], read)
        return ""

    def _follow(self, rank: int, descriptor: int) -> None:
        """Have the loop read what a rank prints."""
        os.set_blocking(descriptor, False)
        lines = Lines(self._order["characters"])

        def read() -> bool:
            """Read a piece; whether there may be another."""
            try:
                piece = os.read(descriptor, _PIECE_BYTES)
            except BlockingIOError:
                return False
            self._log.write(rank, lines.feed(piece) if piece else lines.end())
            if not piece:
                self._selector.unregister(descriptor)
                os.close(descriptor)
            return bool(piece)

        self._selector.register(descriptor, selectors.EVENT_READ, read)

    def _tick(self) -> float:
        return _TICK_SECONDS if self._verdict is None else _ENDING_TICK_SECONDS

    def _reap(self) -> None:
        """Take note of what has ended: ranks, and orphans that became ours."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid not in self._ranks:
                continue
            rank, code = self._ranks[pid], os.waitstatus_to_exitcode(status)
            self._codes[rank] = code
            if code:
                self._decide("failed", said(rank, code), code)

    def _look_around(self) -> None:
        """See whether the run is to end, and send SIGKILL where grace is over."""
        request = read_state(self._directory, STOP_FILE)
        if request is not None and request != self._stop_seen:
            self._stop_seen = request
            grace = float(request["grace"])
            self._decide("stopped", "", None, grace)
            self._deadline = min(self._deadline, time.monotonic() + grace)
        if self._cut_loose:
            self._decide("stopped", "whom it was tied to has ended", None, 0.0)
        if os.getppid() != self._guard:
            self._decide("failed", "its guard was killed", None)
        if self._asked_to_end and request is None:
            self._decide("failed", "its supervisor was asked to end (SIGTERM), as when a host is shut down", None)
        if len(self._codes) == len(self._order["ranks"]) and not any(self._codes.values()):
            self._decide("succeeded", "", 0)
        if self._verdict is not None and time.monotonic() >= self._deadline:
            send(descendants(os.getpid()), signal.SIGKILL)

    def _decide(self, state: str, reason: str, code: int | None, grace: float | None = None) -> None:
        """Say how the run comes out, once, and ask all its processes to end."""
        if self._verdict is not None:
            return
        self._verdict = state, reason, code
        self._deadline = time.monotonic() + (self._order["grace"] if grace is None else grace)
        remaining = descendants(os.getpid())
        if remaining:
            with contextlib.suppress(OSError):
                self._say("running", f"{reason or state}; what is left of it is being ended", None)
        send(remaining, signal.SIGTERM)
        send(remaining, signal.SIGCONT)  # what was stopped could not act on it

    def _over(self) -> bool:
        """Whether all is decided and nothing is alive."""
        if self._verdict is None or descendants(os.getpid()):
            return False
        self._reap()
        return True

    def _finish(self) -> None:
        """Read what is left in the pipes, and write the end."""
        for read in [key.data for key in self._selector.get_map().values()]:
            while read():
                pass
        self._log.close()
        assert self._verdict is not None
        end_at = time.monotonic() + _WRITING_SECONDS
        while True:
            try:
                self._say(*self._verdict)
            except OSError:
                if time.monotonic() > end_at:
                    raise
                time.sleep(_TICK_SECONDS)
            else:
                break
        Path(self._order["held"]).unlink(missing_ok=True)

    def _say(self, state: str, reason: str, code: int | None) -> None:
        write_state(self._directory, _stated(self._order, state, reason, code, [self._guard, os.getpid()]))


def _stated(order: dict[str, Any], state: str, reason: str, code: int | None, pids: list[int]) -> dict[str, Any]:
    """What the state file says."""
    processes = [[pid, started(pid)] for pid in pids]
    return {
        **order["state"],
        "state": state,
        "reason": reason,
        "exit_code": code,
        "boot": boot_id(),
        "processes": processes,
    }


def said(rank: int, code: int) -> str:
    """Why a rank has ended, for people."""
    if code > 0:
        return f"rank {rank} ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (the host may have run out of memory)" if -code == signal.SIGKILL else ""
    return f"rank {rank} was ended by {name}{hint}"


def _guard(order: dict[str, Any], report: int) -> None:
    """Wait for the supervisor; where it did not end by itself, kill what it leaves and say so."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    own = os.getpid()
    supervisor = os.fork()
    if supervisor == 0:
        Supervisor(order, own, report).run()
        os._exit(0)
    os.close(report)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    status = _wait_for(supervisor)
    while left := descendants(own):
        send(left, signal.SIGKILL)
        _reap_all()
        time.sleep(_ENDING_TICK_SECONDS)
    directory = Path(order["directory"])
    before = read_state(directory)
    if before is None or before["state"] not in ENDED:
        code = os.waitstatus_to_exitcode(status)
        how = f"was ended by signal {-code}" if code < 0 else f"broke ({ERRORS_FILE} says why)"
        write_state(
            directory, _stated(order, "failed", f"its supervisor {how}; all its processes were killed", None, [])
        )
    Path(order["held"]).unlink(missing_ok=True)


def _wait_for(child: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def _reap_all() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def launch() -> None:
    """Read an order from the standard input, start what carries it out, and print how the start went.

    The order is read whole before anything is done: where its writer is killed, nothing happens. The descriptor of the
    run's lock is named in it and stays open in guard and supervisor, but in no rank.
    """
    order = json.load(sys.stdin)
    os.set_inheritable(order["lock"], False)
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        os.close(read)
        os.chdir("/")
        nothing = os.open(os.devnull, os.O_RDWR)
        errors = os.open(Path(order["directory"]) / ERRORS_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, descriptor in enumerate((nothing, nothing, errors)):
            os.dup2(descriptor, number)
        _guard(order, write)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as report:
        sys.stdout.write(report.read())


if __name__ == "__main__":
    launch()
