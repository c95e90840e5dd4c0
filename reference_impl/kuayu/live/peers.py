"""Connections with peers: one for each direction, each with a thread, so that a dead link never blocks the training.

A message that could not be sent is lost. Nothing is sent twice: what hangs by it is mended by the next plan.
"""

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from kuayu.live.judging import Adaptive, Stage
from kuayu.live.plan import Member
from kuayu.live.wire import Header, dial, frame, receive

Handler = Callable[[Header, bytes], None]

_RETRY_S = 0.2


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
                time.sleep(_RETRY_S)
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
        self._judge = Adaptive(period)
        self._judged: frozenset[str] = frozenset()
        self._closed = False
        threading.Thread(target=self._listen, name="listener", daemon=True).start()

    @property
    def port(self) -> int:
        """Where peers reach this worker."""
        return int(self._listener.getsockname()[1])

    def keep(self, members: Iterable[Member]) -> None:
        """These are the peers from now on; connections with others are closed."""
        others = {each.id: each for each in members if each.id != self._own}
        with self._lock:
            for gone in self._outboxes.keys() - others.keys():
                self._outboxes.pop(gone).close()
            for new in others.keys() - self._outboxes.keys():
                self._outboxes[new] = Outbox(self._gateway, others[new])
            for gone in self._judged - others.keys():
                self._judge.forget(gone)
            for new in others.keys() - self._judged:
                self._judge.beat(new, time.monotonic())
            self._judged = frozenset(others)

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
            return self._judge.verdicts(time.monotonic())

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
                    if header["from"] in self._judged:
                        self._judge.beat(header["from"], time.monotonic())
        except OSError:
            return
        finally:
            stream.close()
