"""A worker's line to the control plane, which outlives a control plane that is killed and started anew.

What a worker reports is numbered, kept until the control plane has it on its record, and sent again where a connection
ended before. Beats are not: an old one is worth nothing.
"""

import contextlib
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable

from kuayu.live.wire import Header, dial, frame, receive

PATIENCE_S = 15.0
"""Seconds without a control plane after which a worker ends."""

_RETRY_S = 0.1


class Reports:
    """The line of one worker.

    Args:
        gateway: Port of the gateway of its domain.
        control: Port of the control plane.
        hello: What it says of itself whenever there is a connection.
        heed: Takes what the control plane says; False where the worker is to end.
    """

    def __init__(self, gateway: int, control: int, hello: Callable[[], Header], heed: Callable[[Header], bool]) -> None:
        self._gateway, self._control, self._hello, self._heed = gateway, control, hello, heed
        self._lock = threading.Lock()
        self._stream: socket.socket | None = None
        self._number = 0
        self._kept: deque[Header] = deque()
        threading.Thread(target=self._run, name="control", daemon=True).start()

    def report(self, header: Header) -> None:
        """Tell what has to arrive, once and in order."""
        with self._lock:
            self._number += 1
            numbered = {**header, "number": self._number}
            self._kept.append(numbered)
            self._send(numbered)

    def beat(self, header: Header) -> None:
        """Tell what counts only now."""
        with self._lock:
            self._send(header)

    def _send(self, header: Header) -> None:
        if self._stream is not None:
            with contextlib.suppress(OSError):  # whoever reads from it notices as well
                self._stream.sendall(frame(header))

    def _run(self) -> None:
        try:
            lost = time.monotonic()
            while time.monotonic() < lost + PATIENCE_S:
                with contextlib.suppress(OSError):
                    if self._serve():
                        lost = time.monotonic()
                time.sleep(_RETRY_S)
        finally:
            os._exit(0)  # without a control plane there is no job for this worker

    def _serve(self) -> bool:
        """One connection, to its end; whether the control plane has said anything."""
        heard = False
        with dial(self._gateway, "control", self._control) as stream:
            try:
                with self._lock:
                    stream.sendall(b"".join(map(frame, [self._hello(), *self._kept])))
                    self._stream = stream
                while (message := receive(stream)) is not None:
                    heard = True
                    self._take(message[0])
            except ConnectionError:
                return heard
            finally:
                with self._lock:
                    self._stream = None
        return heard

    def _take(self, header: Header) -> None:
        if header["kind"] == "lease":
            with self._lock:
                while self._kept and self._kept[0]["number"] <= header["taken"]:
                    self._kept.popleft()
        if not self._heed(header):
            os._exit(0)  # at once, whatever is under way
