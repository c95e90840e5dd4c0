"""Where windows are played and networks trained: processes of this machine, or tasks of a Ray cluster.

1. ``--workers N`` are processes of this machine. ``HOST:PORT`` is a Ray cluster that this machine is a node of,
   ``ray://HOST:PORT`` one that it is not, and ``ray`` the one that RAY_ADDRESS names, or else one that is started here
   for as long as the command runs.
2. Tasks are functions of their arguments alone, each with one processor, so that it does not matter where they run or
   how often: Ray runs one again whose worker or node was lost, up to three times.
3. To a cluster go the project's packages as they are here, so that all machines run the same code; what they need (the
   extra ``training``) has to be installed on its nodes.

Sources: https://docs.ray.io/en/latest/ray-core/fault_tolerance/tasks.html (retries),
https://docs.ray.io/en/latest/ray-core/handling-dependencies.html (``py_modules``).
"""

import concurrent.futures
import contextlib
import importlib
import os
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from queue import Queue
from typing import Any, cast

PACKAGES = ("kuayu_schemas", "kuayu_conformance", "kuayu", "kuayu_training")
"""What goes to the nodes of a cluster."""

TESTS = Path(__file__).parents[2] / "tests"
"""What is defined there, such as a benchmark, is in no package and goes to nodes with each task."""

USAGE = "a number of processes, HOST:PORT or ray://HOST:PORT of a Ray cluster, or ray"
INSTALL = "pip install 'ray[client]>=2.49'"
CONNECT_SECONDS = 10.0


class WorkersError(Exception):
    """Workers cannot be had.

    Args:
        cause: Why.
        hint: What to do about it.
    """

    def __init__(self, cause: str, hint: str) -> None:
        super().__init__(f"error {cause}\nhint  {hint}")
        self.cause, self.hint = cause, hint


def executor(workers: str) -> Executor:
    """Workers, as a command's option names them.

    Args:
        workers: See ``USAGE``.

    Raises:
        WorkersError: They cannot be had, and why.
    """
    if workers.isdecimal() and int(workers) > 0:
        return ProcessPoolExecutor(int(workers), get_context("spawn"))
    if workers != "ray" and ":" not in workers:
        raise WorkersError(f"{workers!r} names no workers", f"give {USAGE}")
    return RayExecutor(os.environ.get("RAY_ADDRESS", "local") if workers == "ray" else workers)


@contextlib.contextmanager
def queue(pool: Executor) -> Iterator["Queue[Any]"]:
    """A queue that tasks may be given, to report what they have done."""
    if isinstance(pool, RayExecutor):
        yield pool.queue()
    else:
        with get_context("spawn").Manager() as manager:
            yield manager.Queue()


class RayExecutor(Executor):
    """Tasks of a Ray cluster; one for a process.

    Args:
        address: Of the cluster, as ``ray.init`` takes it; ``local`` starts one.

    Raises:
        WorkersError: Ray is not installed, or there is no such cluster.
    """

    def __init__(self, address: str) -> None:
        try:
            import ray
        except ModuleNotFoundError as missing:
            raise WorkersError(f"{sys.executable} has no Ray", INSTALL) from missing
        try:
            _knock(address)
            ray.init(
                address,
                runtime_env=None if address == "local" else _environment(),
                log_to_driver=False,
                logging_level="ERROR",
            )
        except Exception as error:
            said = str(error).strip().partition("\n")[0]
            hint = (
                "start one (ray start --head) or give a number of processes; Python and Ray have to be those of the "
                "cluster, and RAY_AUTH_MODE=token set where it asks for a token"
            )
            raise WorkersError(f"there is no Ray cluster at {address}: {said}", hint) from error
        self._ray = ray
        self._task = ray.remote(_call)
        self._pending: set[Future[Any]] = set()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a function called in the cluster."""
        home = sys.modules.get(getattr(fn, "__module__", None) or "")
        if home is not None and Path(getattr(home, "__file__", None) or "").is_relative_to(TESTS):
            self._ray.cloudpickle.register_pickle_by_value(home)
        future: Future[Any] = self._task.remote(fn, args, kwargs).future()
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future

    def queue(self) -> "Queue[Any]":
        """A queue in the cluster; one whose node is lost begins anew elsewhere."""
        from ray.util.queue import Queue as RayQueue

        options = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1}
        return cast("Queue[Any]", RayQueue(actor_options=options))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - Executor's
        """Leave the cluster, which ends what still runs there for us.

        Args:
            wait: Whether for what was submitted.
            cancel_futures: Whether to give that up instead.
        """
        if wait and not cancel_futures:
            concurrent.futures.wait(list(self._pending))
        self._ray.shutdown()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Whoever breaks off waits for nothing."""
        self.shutdown(cancel_futures=kind is not None)


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)


def _knock(address: str) -> None:
    """Raises OSError where nobody listens: Ray itself would try for minutes, or end this process."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()


def _environment() -> dict[str, Any]:
    """What tasks find on nodes: our packages, and the folder of traces by the same name as here."""
    folders = [str(Path(str(importlib.import_module(name).__file__)).parent) for name in PACKAGES]
    return {
        "py_modules": folders,
        "env_vars": {name: os.environ[name] for name in ("KUAYU_DATA",) if name in os.environ},
    }
