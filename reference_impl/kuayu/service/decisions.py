"""Where decisions are computed: in processes of their own, few at once, so that ingest goes on beside them.

A decision is pure: what comes out follows from the request alone, so that it can be computed anywhere. Reading a large
body, computing and writing the answer each hold Python's lock for up to a tenth of a second; in a thread of the service
they would make everyone wait that long.
"""

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TypeVar, TypeVarTuple, Unpack

from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

NICENESS = 5
"""By how much a decision yields to ingest where both want the same core."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What tells numerical libraries how many threads to use. Several would take the cores that ingest needs, and the order
in which they sum can change the last digits of an answer."""


class Decisions:
    """Takes turns at computing. Make it in the event loop.

    Args:
        workers: How many are computed at once, each in a process; a process begins when it is first needed.
        max_waiting: How many requests may wait for a worker before others are turned away.
        metrics: Are told how long each took and how many wait.
    """

    def __init__(self, workers: int, max_waiting: int, metrics: Metrics) -> None:
        self._workers = workers
        self._max_waiting = max_waiting
        self._metrics = metrics
        self._under_way = 0
        self._pool = self._new_pool()
        metrics.decisions_waiting.set_function(self._waiting)

    def prepare(self, warm: Callable[[], None]) -> None:
        """Begin a worker now and have it load what it will need, so that the first request need not wait for that."""
        self._pool.submit(warm).add_done_callback(Future.exception)

    async def compute(self, operation: str, decide: Callable[[Unpack[Ts]], T], *arguments: *Ts) -> T:
        """Compute a decision in a worker.

        Args:
            operation: Name of the operation, for the metrics.
            decide: Function of a module. It tells of problems by what it returns: exceptions are for failures.
            arguments: What it is called with.

        Raises:
            ProblemException: overloaded, where too many wait already.
            BrokenProcessPool: The worker died, as it does when memory runs out; the next request gets a new one.
        """
        if self._waiting() >= self._max_waiting:
            raise ProblemException("overloaded", "more wait to be decided than the service takes", retry_after=1)
        pool = self._pool
        self._under_way += 1
        try:
            seconds, result = await asyncio.wrap_future(pool.submit(_timed, partial(decide, *arguments)))
        except BrokenProcessPool:
            if pool is self._pool:
                self._pool = self._new_pool()
            raise
        finally:
            self._under_way -= 1
        self._metrics.decision_seconds.labels(operation).observe(seconds)
        return result

    def close(self) -> None:
        """Let the workers go; blocks until those at work have ended."""
        self._pool.shutdown(cancel_futures=True)

    def _waiting(self) -> int:
        return max(0, self._under_way - self._workers)

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._workers, multiprocessing.get_context("spawn"), _settle_in)


def _timed(decide: Callable[[], T]) -> tuple[float, T]:
    """Result of a function, and the seconds that it took."""
    began = time.perf_counter()
    result = decide()
    return time.perf_counter() - began, result


def _settle_in() -> None:
    """Begin the life of a worker: it ends when the service says so, or when the service is there no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    for name in THREADS:
        os.environ.setdefault(name, "1")
    threading.Thread(target=_end_with_the_service, daemon=True).start()


def _end_with_the_service() -> None:
    service = multiprocessing.parent_process()
    assert service is not None
    service.join()
    os._exit(1)
