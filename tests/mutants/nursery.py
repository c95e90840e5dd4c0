"""Processes that begin with everything imported.

A short run costs less than the imports of the suite, of the model and of all mutants. A nursery is a process that has
paid for them once, and forks. Each child is a process of its own all the same: it shares no state with any other, and
talks HTTP.
"""

import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

TESTS = Path(__file__).resolve().parents[1]
LONGEST_COMMAND = 1 << 16
POLITE = 10
"""Niceness of who takes what time others leave."""


@dataclass(frozen=True)
class Child:
    """A process that a nursery has started, with the end of a socket that it writes to."""

    pid: int
    output: socket.socket

    def line(self) -> str:
        """The next line that it writes; what it has written so far where it ends before."""
        text = b""
        while not text.endswith(b"\n") and (more := self.output.recv(1)):
            text += more
        return text.decode()

    def rest(self, seconds: float) -> str:
        """What it writes until it ends.

        Raises:
            TimeoutError: It takes longer than so many seconds.
        """
        text, until = b"", time.monotonic() + seconds
        while True:
            self.output.settimeout(max(0.001, until - time.monotonic()))
            more = self.output.recv(1 << 16)
            if not more:
                return text.decode("utf-8", "replace")
            text += more

    def end(self, how: signal.Signals) -> None:
        """Send it a signal, if it is still there, and wait for its end."""
        if not self._has_ended():
            os.kill(self.pid, how)
            self.rest(60)

    def _has_ended(self) -> bool:
        """Whether nothing more can come of it; its number may then be that of another process."""
        self.output.setblocking(False)
        try:
            return self.output.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False


class Nursery:
    """Starts children; to be closed when they have ended."""

    def __init__(self, warm: Iterable[str] = ()) -> None:
        """Start the process that forks them; it answers the first request when it is ready.

        It has then imported everything, and made a first run of the suite against the requirements ``warm``.
        """
        self._control, theirs = socket.socketpair()
        bare = {name: value for name, value in os.environ.items() if name != "KUAYU_DATA"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mutants.nursery", str(theirs.fileno()), *warm],
                cwd=TESTS,
                env=bare,
                pass_fds=[theirs.fileno()],
                stderr=subprocess.DEVNULL,
            )
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Nothing more."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._control.close()
        self._process.wait(timeout=60)

    @contextlib.contextmanager
    def child(
        self, command: str, arguments: Sequence[str], how: signal.Signals, *, polite: bool = False
    ) -> Iterator[Child]:
        """A child that carries out a command; it gets the signal when it is needed no more.

        One that is polite takes what time others leave.
        """
        ours, theirs = socket.socketpair()
        with ours:
            with theirs, self._lock:
                socket.send_fds(self._control, [json.dumps([command, polite, *arguments]).encode()], [theirs.fileno()])
                pid = int(self._control.recv(100))
            child = Child(pid, ours)
            try:
                yield child
            finally:
                child.end(how)


def tend(control: socket.socket, commands: Mapping[str, Callable[[list[str]], None]]) -> None:
    """Fork a child for each request, until nobody can make one any more."""
    gc.collect()  # what is left would be copied to every child that looks through it
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever asked for a child sees by its socket that it has ended
    while True:
        request, handed, _, _ = socket.recv_fds(control, LONGEST_COMMAND, 1)
        if not request:
            return
        pid = os.fork()
        if pid == 0:
            control.close()
            _carry_out(json.loads(request), handed[0], commands)
        os.close(handed[0])
        control.send(str(pid).encode())


def _carry_out(request: list[Any], output: int, commands: Mapping[str, Callable[[list[str]], None]]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(output, 1)
    os.close(output)
    command, polite, *arguments = request
    os.nice(POLITE if polite else 0)
    try:
        commands[command](arguments)
    finally:
        sys.stdout.flush()
        os._exit(0)


def _commands(warm: Sequence[str]) -> Mapping[str, Callable[[list[str]], None]]:
    """What children do, with everything that they need imported, read and worked out as far as a first run needs it."""
    from kuayu_schemas import schema
    from kuayu_schemas.base import build_models
    from mutants import judged, serve, warming

    def test(arguments: list[str]) -> None:
        os.dup2(1, 2)  # why there is no report is said there
        try:
            judged.main(arguments)
        except Exception:  # noqa: BLE001 - whatever it is
            traceback.print_exc()

    build_models()
    for name in schema.document()["$defs"]:
        for reader in (False, True):
            schema.is_valid(name, None, reader=reader)
    if warm:
        warming.warm(warm)
    return {"serve": serve.main, "suite": test}


if __name__ == "__main__":
    tend(socket.socket(fileno=int(sys.argv[1])), _commands(sys.argv[2:]))
