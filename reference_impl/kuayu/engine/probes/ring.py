"""All-reduce over a ring of stream sockets.

Reduce-scatter, then all-gather: in each of 2(n-1) steps every rank sends one of n chunks to its right neighbour while
it receives another from its left one. Source: P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for
clusters of workstations", Journal of Parallel and Distributed Computing 69 (2009) 117-124.
"""

import socket
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

import numpy as np

PATIENCE_S = 30.0
"""A neighbour that moves no byte for so long is taken for lost."""

Array = np.ndarray[tuple[int], np.dtype[Any]]


Ends = tuple[socket.socket, socket.socket]
"""Sockets of a rank: on the first its left neighbour sends, on the second its right neighbour receives."""


def ring_sockets(size: int) -> list[Ends]:
    """Connect ``size`` ranks to a ring over the loopback; returns the ends for each rank."""
    to_right, from_left = list[socket.socket](), list[socket.socket]()
    with socket.create_server(("127.0.0.1", 0), backlog=size) as server:
        for _ in range(size):
            sender = socket.create_connection(server.getsockname(), timeout=PATIENCE_S)
            receiver, peer = server.accept()
            while peer != sender.getsockname():  # somebody else found the port
                receiver.close()
                receiver, peer = server.accept()
            for end in (sender, receiver):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            to_right.append(sender)
            from_left.append(receiver)
    return [(from_left[rank - 1], to_right[rank]) for rank in range(size)]


class Ring:
    """One rank of a ring.

    Args:
        rank: Which, from nought.
        size: How many there are.
        ends: Its sockets; they are closed with the ring.
    """

    def __init__(self, rank: int, size: int, ends: Ends) -> None:
        """Take over the sockets."""
        self._rank, self._size = rank, size
        self._left, self._right = ends
        for end in ends:
            end.settimeout(PATIENCE_S)
        # Sending beside receiving: were all to send first, full buffers would block the ring.
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="ring-sender")
        self._scratch = np.empty(0, dtype=np.uint8)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.close()
        self._right.close()
        self._sender.shutdown()

    def all_reduce(self, data: Array) -> None:
        """Put into ``data`` the sum of all ranks' ``data``; all of the same length and type, contiguous.

        Raises:
            ConnectionError: A neighbour went away.
            TimeoutError: A neighbour stands still.
        """
        chunks = np.array_split(data, self._size)
        if self._scratch.nbytes < chunks[0].nbytes:
            self._scratch = np.empty(chunks[0].nbytes, dtype=np.uint8)
        last = self._size - 1
        for step in range(last):
            target = chunks[(self._rank - step - 1) % self._size]
            received = self._scratch[: target.nbytes].view(data.dtype)
            self._swap(chunks[(self._rank - step) % self._size], received)
            target += received
        for step in range(last):
            self._swap(chunks[(self._rank - step + 1) % self._size], chunks[(self._rank - step) % self._size])

    def _swap(self, outgoing: Array, incoming: Array) -> None:
        """Send one chunk to the right and fill another from the left, at the same time."""
        sending = self._sender.submit(self._right.sendall, _bytes(outgoing))
        view, filled = _bytes(incoming), 0
        while filled < len(view):
            count = self._left.recv_into(view[filled:])
            if count == 0:
                raise ConnectionError("the left neighbour of the ring went away")
            filled += count
        sending.result()


def _bytes(chunk: Array) -> memoryview:
    """The chunk's own bytes, not a copy."""
    return chunk.view(np.uint8).data
