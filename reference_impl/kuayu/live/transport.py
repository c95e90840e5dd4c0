"""Transport between the processes of a run: frames, inboxes, peers, and the line to the control plane.

1. Frames on a stream: a header in JSON and bytes after it. Eight bytes tell the lengths of both, big-endian. What
   arrives from a socket is bounded, so that a stray connection cannot ask for gigabytes.
2. What peers have sent and nobody has taken yet, by generation.
3. Connections with peers: one for each direction, each with a thread, so that a dead link never blocks the training.
   A message that could not be sent is lost. Nothing is sent twice: what hangs by it is mended by the next plan.
4. A worker's line to the control plane, which outlives a control plane that is killed and started anew. What a worker
   reports is numbered, kept until the control plane has it on its record, and sent again where a connection ended
   before. Beats are not: an old one is worth nothing.
"""

import asyncio
import contextlib
import json
import os
import queue
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kuayu.live.detection import AdaptiveFailureDetector, Stage
from kuayu.live.plan import CONTROL_ABSENCE_SECONDS, Member

Header = dict[str, Any]
"""Members of a frame beside its payload; its kind says which, and a peer may send any."""

_LENGTHS = struct.Struct(">II")
MAX_HEADER_BYTES = 1 << 20
"""Bytes of the longest header."""
MAX_PAYLOAD_BYTES = 1 << 26
"""Bytes of the longest payload."""


class BrokenFrameError(ConnectionError):
    """A peer sent what is no frame."""


def frame(header: Header, payload: bytes = b"") -> bytes:
    """The bytes of a frame."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return _LENGTHS.pack(len(text), len(payload)) + text + payload


def receive(stream: socket.socket) -> tuple[Header, bytes] | None:
    """The next frame; None where the stream has ended between two frames.

    Raises:
        ConnectionError: The stream ended within a frame, or what came is no frame.
    """
    start = _exactly(stream, _LENGTHS.size)
    if start is None:
        return None
    header, payload = _lengths(start)
    text = _exactly(stream, header)
    rest = _exactly(stream, payload) if payload else b""
    if text is None or rest is None:
        raise BrokenFrameError("the stream ended within a frame")
    return _parsed(text), rest


async def read(stream: asyncio.StreamReader) -> tuple[Header, bytes] | None:
    """The next frame of an asynchronous stream; None where it has ended.

    Raises:
        ConnectionError: What came is no frame.
    """
    try:
        header, payload = _lengths(await stream.readexactly(_LENGTHS.size))
        return _parsed(await stream.readexactly(header)), await stream.readexactly(payload)
    except asyncio.IncompleteReadError:
        return None


def dial(gateway: int, domain: str, port: int) -> socket.socket:
    """A connection to a port of another domain, through a gateway on this host.

    Raises:
        OSError: The gateway does not answer.
    """
    stream = socket.create_connection(("127.0.0.1", gateway))
    try:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.sendall(frame({"to": domain, "port": port}))
    except OSError:
        stream.close()
        raise
    return stream


def _lengths(start: bytes) -> tuple[int, int]:
    header, payload = _LENGTHS.unpack(start)
    if header > MAX_HEADER_BYTES or payload > MAX_PAYLOAD_BYTES:
        raise BrokenFrameError("a frame is longer than any can be")
    return int(header), int(payload)


def _parsed(text: bytes) -> Header:
    try:
        header = json.loads(text)
    except ValueError as error:
        raise BrokenFrameError("a header is no JSON") from error
    if not isinstance(header, dict):
        raise BrokenFrameError("a header is no object")
    return header


def _exactly(stream: socket.socket, count: int) -> bytes | None:
    """So many bytes; None where the stream ended before the first."""
    got = bytearray(count)
    view, have = memoryview(got), 0
    while have < count:
        more = stream.recv_into(view[have:])
        if not more:
            if have:
                raise BrokenFrameError("the stream ended within a frame")
            return None
        have += more
    return bytes(got)


class SupersededError(Exception):
    """There is a newer plan; what is under way for the old one is void."""


@dataclass(frozen=True, slots=True)
class MessageKey:
    """What a message is.

    Attributes:
        generation: Generation of its sender.
        kind: What it holds.
        step: Step that it belongs to.
        sender: Its sender, or which piece of a checkpoint it is.
    """

    generation: int
    kind: str
    step: int
    sender: str


class Inbox:
    """Messages by what they are. Safe for several threads.

    Attributes:
        refused: Messages of an older generation that were dropped.
    """

    def __init__(self) -> None:
        self.refused = 0
        self._changed = threading.Condition()
        self._generation, self._newest = 0, 0
        self._messages: dict[MessageKey, tuple[Header, bytes]] = {}

    @property
    def generation(self) -> int:
        """Generation that is current."""
        return self._generation

    def announce(self, generation: int) -> None:
        """There is a plan of this generation: whoever waits for a message of an older one is woken."""
        with self._changed:
            self._newest = max(self._newest, generation)
            self._changed.notify_all()

    def advance(self, generation: int) -> None:
        """Work under this generation from now on; what is older is dropped."""
        with self._changed:
            self._generation = generation
            old = [key for key in self._messages if key.generation < generation]
            for key in old:
                del self._messages[key]

    def knows(self, generation: int, timeout: float) -> bool:
        """Whether the newest plan is of this generation, or becomes so within so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest >= generation, timeout)
            return self._newest == generation

    def put(self, key: MessageKey, header: Header, payload: bytes) -> None:
        """A message came; one of an older generation counts nothing, one of a newer waits for its plan."""
        with self._changed:
            if key.generation < self._generation:
                self.refused += 1
                return
            self._messages[key] = header, payload
            self._changed.notify_all()

    def take(self, key: MessageKey, timeout: float | None = None) -> tuple[Header, bytes] | None:
        """Wait for a message; None where it has not come within so many seconds.

        Raises:
            Superseded: There is a newer plan.
        """
        with self._changed:
            self._changed.wait_for(lambda: key in self._messages or self._newest > key.generation, timeout)
            self._check(key.generation)
            return self._messages.pop(key, None)

    def check(self) -> None:
        """Go on only while the current plan is the newest.

        Raises:
            Superseded: It is not.
        """
        with self._changed:
            self._check(self._generation)

    def wait(self) -> None:
        """Wait for a newer plan than the current one."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest > self._generation)

    def _check(self, generation: int) -> None:
        if self._newest > generation:
            raise SupersededError


Handler = Callable[[Header, bytes], None]

_RETRY_SECONDS = 0.2


class Outbox:
    """What is on its way to one peer."""

    def __init__(self, gateway: int, peer: Member) -> None:
        self._gateway, self._peer = gateway, peer
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stream: socket.socket | None = None
        self._closed = False
        threading.Thread(target=self._run, name=f"to {peer.id}", daemon=True).start()

    def put(self, block: bytes) -> None:
        """Send a frame when its turn comes."""
        self._frames.put(block)

    def ping(self, block: bytes) -> None:
        """Send a frame unless others wait: a link that does not move needs no pings."""
        if self._frames.empty():
            self._frames.put(block)

    def close(self) -> None:
        """Send no more."""
        self._closed = True
        self._frames.put(None)
        stream = self._stream
        if stream is not None:
            # The thread may wait in a send, and only closing the connection under it wakes it.
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        while not self._closed and (block := self._frames.get()) is not None:
            try:
                if self._stream is None:
                    self._stream = dial(self._gateway, self._peer.domain, self._peer.port)
                self._stream.sendall(block)
            except OSError:
                self._hang_up()
                time.sleep(_RETRY_SECONDS)
        self._hang_up()

    def _hang_up(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


class Peers:
    """All peers of a worker.

    Args:
        own: Identifier of the worker.
        gateway: Port of its domain's gateway.
        period: Seconds from one ping to the next.
        handle: Takes what comes, but for pings; called by several threads.
    """

    def __init__(self, own: str, gateway: int, period: float, handle: Handler) -> None:
        self._own, self._gateway, self._period, self._handle = own, gateway, period, handle
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=32)
        self._lock = threading.Lock()
        self._outboxes: dict[str, Outbox] = {}
        self._detector = AdaptiveFailureDetector(period)
        self._watched: frozenset[str] = frozenset()
        self._closed = False
        threading.Thread(target=self._listen, name="listener", daemon=True).start()

    @property
    def port(self) -> int:
        """Where peers reach this worker."""
        return int(self._listener.getsockname()[1])

    def keep(self, members: Iterable[Member]) -> None:
        """These are the peers from now on; connections with others are closed."""
        others = {member.id: member for member in members if member.id != self._own}
        with self._lock:
            for gone in self._outboxes.keys() - others.keys():
                self._outboxes.pop(gone).close()
            for new in others.keys() - self._outboxes.keys():
                self._outboxes[new] = Outbox(self._gateway, others[new])
            for gone in self._watched - others.keys():
                self._detector.forget(gone)
            for new in others.keys() - self._watched:
                self._detector.beat(new, time.monotonic())
            self._watched = frozenset(others)

    def send(self, peer: str, header: Header, payload: bytes = b"") -> None:
        """Send a message to a peer; nothing where it is none any more."""
        with self._lock:
            outbox = self._outboxes.get(peer)
        if outbox is not None:
            outbox.put(frame(header, payload))

    def ping(self) -> None:
        """Tell all peers that this worker is there."""
        block = frame({"kind": "ping", "from": self._own})
        with self._lock:
            for outbox in self._outboxes.values():
                outbox.ping(block)

    def close(self) -> None:
        """Let go of all peers, and be reached by none."""
        self.keep(())
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)

    def unheard(self) -> Mapping[str, Stage]:
        """Peers that are not heard as they should be."""
        with self._lock:
            return self._detector.verdicts(time.monotonic())

    def _listen(self) -> None:
        with self._listener:
            while True:
                try:
                    stream, _ = self._listener.accept()
                except OSError:
                    if self._closed:
                        return
                    raise
                threading.Thread(target=self._read, args=(stream,), name="reader", daemon=True).start()

    def _read(self, stream: socket.socket) -> None:
        try:
            while (message := receive(stream)) is not None:
                header, payload = message
                if header.get("kind") != "ping":
                    self._handle(header, payload)
                    continue
                with self._lock:
                    if header["from"] in self._watched:
                        self._detector.beat(header["from"], time.monotonic())
        except OSError:
            return
        finally:
            stream.close()


_RECONNECT_SECONDS = 0.1


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
            while time.monotonic() < lost + CONTROL_ABSENCE_SECONDS:
                with contextlib.suppress(OSError):
                    if self._serve():
                        lost = time.monotonic()
                time.sleep(_RECONNECT_SECONDS)
        finally:
            os._exit(0)  # without a control plane there is no job for this worker

    def _serve(self) -> bool:
        """One connection, to its end; whether the control plane has said anything."""
        received = False
        with dial(self._gateway, "control", self._control) as stream:
            try:
                with self._lock:
                    stream.sendall(b"".join(map(frame, [self._hello(), *self._kept])))
                    self._stream = stream
                while (message := receive(stream)) is not None:
                    received = True
                    self._take(message[0])
            except ConnectionError:
                return received
            finally:
                with self._lock:
                    self._stream = None
        return received

    def _take(self, header: Header) -> None:
        if header["kind"] == "lease":
            with self._lock:
                while self._kept and self._kept[0]["number"] <= header["taken"]:
                    self._kept.popleft()
        if not self._heed(header):
            os._exit(0)  # at once, whatever is under way
