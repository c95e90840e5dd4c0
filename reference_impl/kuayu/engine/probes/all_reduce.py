"""Scale-out bandwidth as the bus bandwidth of an all-reduce over a ring of stream sockets.

1. Bus bandwidth = S/t · 2(n-1)/n for S bytes in each of n ranks, which is what each link of a bandwidth-optimal
   all-reduce carries and so can be compared with the hardware whatever n is (NVIDIA, nccl-tests, doc/PERFORMANCE.md). A
   duration runs from the first rank's start to the last rank's end. The warm-up also checks the sums.
2. Here the ranks are processes of one host and the network is its loopback: the figure is what the host's own stack and
   memory allow, and an upper bound of what it can bring to a network.
3. Reduce-scatter, then all-gather: in each of 2(n-1) steps every rank sends one of n chunks to its right neighbour
   while it receives another from its left one (P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for
   clusters of workstations", Journal of Parallel and Distributed Computing 69 (2009) 117-124).

Example: where 4 ranks sum up 64 MiB in 50 ms, the bus bandwidth is 64 MiB / 50 ms · 6/4, about 2.0 GB/s.
"""

import multiprocessing
import os
import platform
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from kuayu.engine.probes.harness import ProbeFailedError, ProbeResult, Step, repeat

MESSAGE: Final = 64 << 20
"""Bytes in each rank, large enough for bandwidth rather than latency to count."""
MIN_RANKS: Final = 2
MAX_RANKS: Final = 8
"""A server's usual number of accelerators, each with a process of its own."""
PATIENCE_S: Final = 60.0
"""Nothing heard from a rank for so long means that it is lost; they take a moment to start."""


def bus_bandwidth(ranks: int, size: float, seconds: float) -> float:
    """Bus bandwidth in By/s of an all-reduce of ``size`` bytes in each of ``ranks`` ranks."""
    return 2 * (ranks - 1) / ranks * size / seconds


def probe_all_reduce(budget_s: float, step: Step, *, ranks: int | None = None, message: int = MESSAGE) -> ProbeResult:
    """Measure an all-reduce of ``message`` bytes of binary32 over so many local processes.

    Args:
        budget_s: Seconds to spend.
        step: Told how far it is.
        ranks: Processes; as many as processors where it is None, within 2 and 8.
        message: Bytes in each.

    Raises:
        ProbeFailedError: A process died or summed wrongly.
    """
    began = time.perf_counter()
    count = ranks or max(MIN_RANKS, min(MAX_RANKS, len(os.sched_getaffinity(0))))
    try:
        with _Ranks(count, message // 4) as processes:
            processes.round()
            repetitions = repeat(processes.round, max(0.0, budget_s - (time.perf_counter() - began)), step)
    except (EOFError, OSError) as error:
        raise ProbeFailedError(
            f"a process of the all-reduce was lost ({error!r})", "free memory, then try again"
        ) from error
    value, spread = repetitions.rate(bus_bandwidth(count, message, 1.0))
    return ProbeResult(
        probe="all_reduce",
        measure="scale_out_bandwidth",
        unit="By/s",
        value=value,
        spread=spread,
        n=repetitions.n,
        seconds=time.perf_counter() - began,
        stack=f"ring over loopback TCP, {count} processes, {message >> 20} MiB, Linux {platform.release()}",
    )


NEIGHBOUR_PATIENCE_S = 30.0
"""A neighbour that moves no byte for so long is taken for lost."""

Array = np.ndarray[tuple[int], np.dtype[Any]]

Ends = tuple[socket.socket, socket.socket]
"""Sockets of a rank: on the first its left neighbour sends, on the second its right neighbour receives."""


def ring_sockets(size: int) -> list[Ends]:
    """Connect ``size`` ranks to a ring over the loopback; returns the ends for each rank."""
    to_right, from_left = list[socket.socket](), list[socket.socket]()
    with socket.create_server(("127.0.0.1", 0), backlog=size) as server:
        for _ in range(size):
            sender = socket.create_connection(server.getsockname(), timeout=NEIGHBOUR_PATIENCE_S)
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
            end.settimeout(NEIGHBOUR_PATIENCE_S)
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


class _Ranks:
    """The processes of the ring, driven one round at a time."""

    def __init__(self, count: int, elements: int) -> None:
        """Start them; none inherits threads or locks, for they are spawned, not forked."""
        context = multiprocessing.get_context("spawn")
        self._controls: list[Connection] = []
        self._processes: list[BaseProcess] = []
        sockets = ring_sockets(count)
        try:
            for rank, ends in enumerate(sockets):
                ours, theirs = context.Pipe()
                self._controls.append(ours)
                process = context.Process(target=_serve, args=(rank, count, elements, ends, theirs), daemon=True)
                process.start()
                self._processes.append(process)
                theirs.close()
        except BaseException:
            self._stop()
            raise
        finally:
            for pair in sockets:
                for end in pair:
                    end.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def round(self) -> float:
        """One all-reduce; returns its seconds.

        Raises:
            ProbeFailedError: A sum was wrong.
            EOFError: A process died.
            TimeoutError: A process stands still.
        """
        self._hear()
        for control in self._controls:
            control.send(True)
        answers = self._hear()
        if not all(right for _, _, right in answers):
            raise ProbeFailedError("the all-reduce gave a wrong sum", "check this host's memory and network stack")
        return max(end for _, end, _ in answers) - min(start for start, _, _ in answers)

    def _hear(self) -> list[tuple[float, float, bool]]:
        """What each rank says next."""
        answers = []
        for control in self._controls:
            if not control.poll(PATIENCE_S):
                raise TimeoutError("no answer")
            answers.append(control.recv())
        return answers

    def _stop(self) -> None:
        """Let them end, which they do when nobody listens any more."""
        for control in self._controls:
            control.close()
        for process in self._processes:
            process.join(1.0)
            if process.is_alive():
                process.terminate()
                process.join()


def _serve(rank: int, size: int, elements: int, ends: Ends, control: Connection) -> None:
    """Work of one rank: say that the data are ready, wait for the word, all-reduce, answer; until nobody listens."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the probe's own process hears it and closes the ring
    data, expected = np.empty(elements, dtype=np.float32), size * (size + 1) / 2
    with suppress(EOFError, OSError), Ring(rank, size, ends) as ring:
        while True:
            data.fill(rank + 1)
            control.send((0.0, 0.0, True))
            control.recv()
            started = time.monotonic()  # one clock for all processes of a host
            ring.all_reduce(data)
            ended = time.monotonic()
            control.send((started, ended, bool((data == expected).all())))


def _bytes(chunk: Array) -> memoryview:
    """The chunk's own bytes, not a copy."""
    return chunk.view(np.uint8).data
