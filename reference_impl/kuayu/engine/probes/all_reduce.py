"""Scale-out bandwidth as the bus bandwidth of an all-reduce.

Method: NVIDIA, nccl-tests, doc/PERFORMANCE.md: bus bandwidth = S/t · 2(n-1)/n for S bytes in each of n ranks, which is
what each link of a bandwidth-optimal all-reduce carries and so can be compared with the hardware whatever n is. A
duration runs from the first rank's start to the last rank's end. The warm-up also checks the sums.

Here the ranks are processes of one host and the network is its loopback: the figure is what the host's own stack and
memory allow, and an upper bound of what it can bring to a network.
"""

import multiprocessing
import os
import platform
import signal
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Final, Self

import numpy as np

from kuayu.engine.probes.repetition import Step, repeat
from kuayu.engine.probes.result import ProbeFailedError, ProbeResult
from kuayu.engine.probes.ring import Ends, Ring, ring_sockets

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
