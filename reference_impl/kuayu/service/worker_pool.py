"""Where decisions are computed: in processes of their own, few at once, so that ingest goes on beside them.

A decision is pure: what comes out follows from the request alone, so that it can be computed anywhere. Reading a large
body, computing and writing the answer each hold Python's lock for up to a tenth of a second; in a thread of the service
they would make everyone wait that long.
"""

import asyncio
import contextlib
import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import count
from typing import Any, TypeVar, TypeVarTuple, Unpack

from kuayu.service.concurrency import Lane, release
from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException
from kuayu.service.settings import SOLE_TENANT, share_of

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

NICENESS = 5
"""By how much a decision yields to ingest where both want the same core."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What tells numerical libraries how many threads to use. Several would take the cores that ingest needs, and the order
in which they sum can change the last digits of an answer."""


COLLECTION_EVERY = 200
"""Decisions after which a worker looks for cycles in all that it holds."""


class WorkerPool:
    """Takes turns at computing. Make it in the event loop.

    Args:
        workers: How many are computed at once for a tenant, each in a process; one begins when it is first needed.
        max_waiting: How many requests may wait for a worker before others are turned away.
        metrics: Are told how long each took and how many wait.
        shared: Whether several tenants use it; then there is one worker more than a tenant may have, and none may have
            all places to wait.
        deadline: Seconds after which a decision is given up and its worker ended.
    """

    def __init__(
        self, workers: int, max_waiting: int, metrics: Metrics, *, shared: bool = False, deadline: float = 120.0
    ) -> None:
        self._workers = workers + shared
        self._deadline = deadline
        self._metrics = metrics
        self._lane = Lane(
            self._workers,
            workers,
            max_waiting,
            share_of(max_waiting, shared=shared),
            "more wait to be decided than the service takes",
        )
        self._pool = self._new_pool()
        metrics.decisions_waiting.set_function(lambda: self.waiting)

    def prepare(self, *parts: Callable[[], None]) -> None:
        """Begin a worker now and have it load what it will need, so that the first request need not wait for that."""
        self._pool.submit(_call_all, parts).add_done_callback(Future.exception)

    async def compute(
        self, operation: str, decide: Callable[[Unpack[Ts]], T], *arguments: *Ts, tenant: str = SOLE_TENANT
    ) -> T:
        """Compute a decision in a worker.

        Args:
            operation: Name of the operation, for the metrics.
            decide: Function of a module. It tells of problems by what it returns: exceptions are for failures.
            arguments: What it is called with.
            tenant: Who asks.

        Raises:
            ProblemException: overloaded, where too many wait already, where it takes longer than the deadline, or where
                the worker died, as it does when memory runs out; the next request gets a new one.
        """
        await self._lane.enter(tenant)
        pool = self._pool
        try:
            future = pool.submit(_timed, partial(decide, *arguments))
        except (BrokenProcessPool, RuntimeError) as error:
            self._lane.leave(tenant)
            self._replace(pool)
            raise ProblemException("overloaded", "the process that was to decide it ended", retry_after=1) from error
        # A worker goes on with a request whose client is gone, so that it counts until the worker is done.
        release(self._lane, tenant, future)
        self._watch(future, pool)
        try:
            seconds, result = await asyncio.wrap_future(future)
        except BrokenProcessPool as error:
            self._replace(pool)
            raise ProblemException("overloaded", "the process that was to decide it ended", retry_after=1) from error
        self._metrics.decision_seconds.labels(operation).observe(seconds)
        return result

    def close(self) -> None:
        """End the workers, also those at work: a decision leaves nothing behind, so nothing is lost."""
        _end(self._pool)

    @property
    def waiting(self) -> int:
        """How many wait for a worker."""
        return self._lane.waiting

    def _watch(self, future: "Future[Any]", pool: ProcessPoolExecutor) -> None:
        """End the workers of a pool if a decision is overdue, also one whose client is gone."""
        loop = asyncio.get_running_loop()
        overdue = loop.call_later(self._deadline, self._replace, pool)

        def forget(_: "Future[Any]") -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(overdue.cancel)

        future.add_done_callback(forget)

    def _replace(self, pool: ProcessPoolExecutor) -> None:
        """End a pool and begin another, unless that was done before."""
        if pool is self._pool:
            self._pool = self._new_pool()
            _end(pool)

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._workers, multiprocessing.get_context("spawn"), _settle_in)


def _end(pool: ProcessPoolExecutor) -> None:
    """Kill the workers of a pool without waiting for them; they do not listen to milder signals."""
    # The standard library has nothing public for this before Python 3.14.
    processes, results = pool._processes, pool._result_queue  # noqa: SLF001
    if processes is None:
        return  # it was ended before
    workers = list(processes.values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.kill()
    # Who reads an answer that was cut off would wait for its rest for ever while anyone could still write it.
    results._writer.close()  # type: ignore[attr-defined] # noqa: SLF001


def _call_all(parts: Sequence[Callable[[], None]]) -> None:
    for part in parts:
        part()
    gc.freeze()  # modules stay for good, so that nobody need look at them again


_decided = count(1)


def _timed(decide: Callable[[], T]) -> tuple[float, T]:
    """Result of a function, and the seconds that it took.

    Thousands of jobs are hundreds of thousands of objects, hardly any of them in a cycle, and gone with the request.
    The garbage collector would look at all of them several times; so it looks once, at what is left of them by then,
    which is next to nothing. That is not counted in the seconds.
    """
    began = time.perf_counter()
    gc.disable()
    try:
        result = decide()
    finally:
        gc.enable()
    seconds = time.perf_counter() - began
    gc.collect(2 if next(_decided) % COLLECTION_EVERY == 0 else 0)
    return seconds, result


def _settle_in() -> None:
    """Begin the life of a worker: it ends when the service says so, or when the service is there no more.

    Signals to stop often go to all processes of a service at once. The service first answers what it has taken on, for
    which it needs its workers.
    """
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_IGN)
    os.nice(NICENESS)
    for name in THREADS:
        os.environ.setdefault(name, "1")
    threading.Thread(target=_end_with_the_service, daemon=True).start()


def _end_with_the_service() -> None:
    service = multiprocessing.parent_process()
    assert service is not None
    service.join()
    os._exit(1)
