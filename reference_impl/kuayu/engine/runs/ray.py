"""Runs in a Ray cluster: a supervisor on the head for each, and a share of it on each of its nodes.

What runs in the cluster is :mod:`~kuayu.engine.runs.ray_driver`; this is the engine beside it.

1. The engine imports no Ray. A driver of its own speaks to the cluster, in the Python that has the cluster's Ray, and
   is started again where it ended: a driver that loses its cluster kills the process that it is in.
2. What the engine remembers of a run stands in a directory (:mod:`~kuayu.engine.runs.store`). That a run is being
   started is written before it is, so that one whose supervisor is gone is never started a second time: it has failed.
3. When a run has ended, its lines and how it came out are fetched, and its supervisor is ended: what has ended costs
   the cluster nothing.
4. A node is called by its label ``kuayu.dev/node`` (``ray start --labels=kuayu.dev/node=NAME``), else by the name that
   ``--node-name`` gave it, its host name, its address or Ray's own identifier.
5. A node that Ray has declared dead is taken to be so: Ray ends its actors there, and with them their ranks.

There are no containers here; a run with an image is refused. Code goes with the run to its nodes, from here. Python and
Ray have to be those of the cluster, as for every driver (option ``python``).
"""

import base64
import contextlib
import io
import itertools
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import closing
from pathlib import Path
from typing import Any

from kuayu.engine.runs import ray_driver
from kuayu.engine.runs.bundles import unpack
from kuayu.engine.runs.line_archive import LineArchive
from kuayu.engine.runs.protocol import (
    ENDED,
    MAX_LINE_CHARACTERS,
    EngineError,
    Finding,
    LogLine,
    NodeUnavailableError,
    Run,
    RunState,
    RunStatus,
    environment,
    validate,
)
from kuayu.engine.runs.store import RunStore, another, digest, stored_status

MAX_LOG_BYTES = 64 << 20
"""Bytes of the lines of one node; what is printed beyond them is left out, but for the last ones."""

MAX_CODE_BYTES = 64 << 20
"""Bytes of packed code that go with a run."""

CONNECT_SECONDS = 120.0
ANSWER_SECONDS = 120.0
STOP_MARGIN_SECONDS = 60.0
"""Seconds beyond the grace period within which a run has ended where all is well."""

LOSS_MARGIN_SECONDS = 10.0
"""Seconds beyond the grace period after which nothing is left of a run whose supervisor is gone."""

POLL_SECONDS = 0.2
BATCH_LINES = 5000
_CODE_FILE = "code.tar"


class RayEngine:
    """Runs jobs in a Ray cluster.

    Args:
        directory: Where runs are remembered; the same one finds them again.
        address: Of the cluster, as ``ray.init`` takes it: ``HOST:PORT`` on one of its nodes, ``ray://HOST:PORT`` from
            elsewhere (which needs ``ray[client]``), or ``auto`` for the one that runs on this host.
        resource: What devices are called: ``GPU``, ``NPU``, ``CPU``, or a resource that nodes were started with.
        python: Python with the cluster's Ray; this one where None.
        root: Directory on nodes for what runs write there; one in the temporary directory where None.
        namespace: Where the names of runs are theirs alone.
    """

    def __init__(
        self,
        directory: Path,
        address: str = "auto",
        resource: str = "GPU",
        python: str | None = None,
        root: str | None = None,
        namespace: str = "kuayu",
    ) -> None:
        self.name = "ray"
        self._store = RunStore(directory)
        self._address = address
        self._resource = resource
        self._root = root
        self._driver = _Driver(python or sys.executable, address, namespace)
        self._archives: dict[str, LineArchive] = {}

    def close(self) -> None:
        """End the driver; runs go on."""
        self._driver.close()

    def check(self) -> list[Finding]:
        """What the engine needs and whether it is there, without starting anything."""
        try:
            version = self._driver.call("version")
            nodes = self._driver.call("nodes")
        except EngineError as error:
            return [Finding(f"Ray cluster {self._address}", present=False, detail=error.cause, hint=error.hint)]
        counts = [node["resources"].get(self._resource, 0) for node in nodes]
        offered = sum(counts)
        hint = "" if offered else "start nodes that have it, or name what devices are called (option resource)"
        return [
            Finding(f"Ray cluster {self._address}", present=True, detail=f"Ray {version}, {len(nodes)} nodes"),
            Finding(f"devices {self._resource}", present=offered > 0, detail=f"{offered:g}", hint=hint),
        ]

    def unavailable_nodes(self, nodes: Sequence[str], /) -> dict[str, str]:
        """Nodes that are not in the cluster, or not any more.

        Raises:
            EngineError: The cluster does not answer.
        """
        names = {name for node in self._driver.call("nodes") for name in node["names"]}
        return {node: "the cluster has no such node" for node in nodes if node not in names}

    def prepare(self, run: Run) -> None:
        """Make sure that a run can be started: its nodes are there, and its code.

        Raises:
            EngineError: It can not, and why; or another run has this name.
        """
        validate(run)
        if run.image is not None:
            raise EngineError("the engine ray has no containers", "leave the image out, or use another engine")
        if self._store.state(run.name) is None:
            self._nodes(run)

        def make(directory: Path) -> None:
            if run.code is not None:
                (directory / _CODE_FILE).write_bytes(_packed(run.code))

        self._store.prepare(run, make)

    def _nodes(self, run: Run) -> list[str]:
        """Ray's identifiers of a run's nodes.

        Raises:
            EngineError: One is not there, or has not the devices.
        """
        nodes = self._driver.call("nodes")
        identifiers = []
        for placement in run.placements:
            node = _named(placement.node, nodes)
            devices = node["resources"].get(self._resource, 0)
            if devices < placement.devices:
                raise EngineError(
                    f"node {placement.node} has {devices:g} {self._resource}, not {placement.devices}",
                    "ask for fewer, or name what devices are called (option resource)",
                )
            identifiers.append(str(node["id"]))
        if len(set(identifiers)) < len(identifiers):
            raise EngineError(f"two nodes of run {run.name} are the same", "name it once, with all its devices")
        return identifiers

    def start(self, run: Run) -> None:
        """Start a run that was prepared; it may still be starting when this returns. Started again, it stays as it is.

        Raises:
            EngineError: It was not started, or never prepared.
        """
        state = self._store.state(run.name)
        if state is None:
            raise EngineError(f"run {run.name} was not prepared", "prepare it first")
        if state["digest"] != digest(run):
            raise another(run.name)
        if state["state"] != RunState.PREPARED:
            return
        order = self._order(run)
        with closing(self._store.lock(run.name)):
            state = self._store.state(run.name)
            if state is None or state["state"] != RunState.PREPARED:
                return
            self._store.write(run.name, {**state, "state": "starting"})
            try:
                self._driver.call("start", order=order)
            except EngineError:
                # Where that cannot be told it stays as being started, and whoever asks how it stands will see.
                if self._driver.call("status", name=run.name) is None:
                    self._store.write(run.name, state)
                    raise

    def _order(self, run: Run) -> dict[str, Any]:
        """What the supervisor is to carry out."""
        code = self._store.of(run.name) / _CODE_FILE
        rank = 0
        shares = []
        for placement, node in zip(run.placements, self._nodes(run), strict=True):
            processes = run.processes_per_node or placement.devices
            ranks = []
            for number in range(processes):
                variables = environment(run, rank, number, processes)
                ranks.append({"rank": run.rendezvous.rank_offset + rank, "environment": variables})
                rank += 1
            shares.append({"node": placement.node, "id": node, "devices": placement.devices, "ranks": ranks})
        return {
            "name": run.name,
            "root": self._root,
            "working_directory": run.working_directory,
            "command": list(run.command),
            "grace": run.grace_seconds,
            "characters": MAX_LINE_CHARACTERS,
            "log_bytes": MAX_LOG_BYTES,
            "code": None if run.code is None else base64.b64encode(code.read_bytes()).decode(),
            "resource": self._resource,
            "meets": run.rendezvous.port == 0,
            "shares": shares,
        }

    def stop(self, name: str, grace_seconds: float | None = None) -> None:
        """End a run; when this returns nothing of it is alive. One that is unknown or has ended stays as it is.

        Args:
            name: Of the run.
            grace_seconds: Between being asked to end and being ended; the run's own where None.

        Raises:
            EngineError: Whether something of it is alive cannot be told.
        """
        state = self._store.state(name)
        if state is None:
            return
        with closing(self._store.lock(name)):
            state = self._store.state(name)
            if state is not None and state["state"] == RunState.PREPARED:
                reason = "stopped before it was started"
                self._store.write(name, {**state, "state": "stopped", "reason": reason})
        if state is None:
            return
        grace = float(state["grace"]) if grace_seconds is None else grace_seconds
        deadline = time.monotonic() + grace + STOP_MARGIN_SECONDS
        if self._status(name).state not in ENDED:
            self._driver.call("stop", name=name, grace=grace)
        while (status := self._status(name)).state not in ENDED:
            if time.monotonic() >= deadline:
                raise EngineError(
                    f"run {name} has not ended within {grace + STOP_MARGIN_SECONDS:.0f} s: {status.reason}",
                    "see whether the cluster is well: ray status",
                    transient=True,
                )
            time.sleep(POLL_SECONDS)

    def status(self, name: str) -> RunStatus:
        """How a run stands; unknown, with a reason, where there is none of that name."""
        try:
            return self._status(name)
        except EngineError as error:
            return RunStatus(RunState.UNKNOWN, error.cause)

    def _status(self, name: str) -> RunStatus:
        state = self._store.state(name)
        if state is None:
            return self._store.unknown(name)
        status = stored_status(state)
        if status.state in ENDED or status.state is RunState.PREPARED:
            return status
        report = self._driver.call("status", name=name)
        if report is None:
            return self._lost(name)
        status = RunStatus(RunState(report["state"]), report["reason"], report["exit_code"])
        if status.state in ENDED:
            return self._settle(name, status, int(report["lines"]))
        return status

    def _lost(self, name: str) -> RunStatus:
        """How a run stands whose supervisor is gone: guards end its ranks, and then it has failed."""
        with self._store.try_lock(name) as run_lock:
            state = self._store.state(name)
            if run_lock is None or state is None or state["state"] != "starting":
                return RunStatus(RunState.UNKNOWN, "another call is at work on it")
            reason = "its supervisor on the head was lost, or its start was broken off"
            since = state.setdefault("lost", time.time())
            if time.time() >= since + float(state["grace"]) + LOSS_MARGIN_SECONDS:
                self._store.write(name, {**state, "state": "failed", "reason": reason, "exit_code": None})
                return RunStatus(RunState.FAILED, reason)
            self._store.write(name, state)
            return RunStatus(RunState.RUNNING, f"{reason}; what is left of it is being ended")

    def _settle(self, name: str, status: RunStatus, lines: int) -> RunStatus:
        """Keep how a run has ended and all its lines, and end its supervisor."""
        with closing(self._store.lock(name)):
            state = self._store.state(name)
            if state is None or state["state"] != "starting":
                return status if state is None else stored_status(state)
            archive = self._archive(name)
            with archive.lock():
                while archive.count() < lines and self._fetch(name, archive):
                    pass
            content = {"state": status.state.value, "reason": status.reason, "exit_code": status.exit_code}
            self._store.write(name, {**state, **content})
            with contextlib.suppress(EngineError):
                self._driver.call("release", name=name)
        return status

    def logs(self, name: str, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """Lines of a run in order, those after a number; empty where there are none yet."""
        state = self._store.state(name)
        if state is None:
            return []
        archive = self._archive(name)
        if state["state"] == "starting":
            with contextlib.suppress(EngineError), archive.lock(wait=False) as ours:
                while ours and archive.count() < after + limit and self._fetch(name, archive):
                    pass
        return archive.read(after, limit)

    def _fetch(self, name: str, archive: LineArchive) -> int:
        """Keep more lines; how many there were. For who holds the archive's lock."""
        entries = self._driver.call("lines", name=name, after=archive.count(), limit=BATCH_LINES)
        archive.append([(rank, instant, text) for rank, instant, text in entries], {})
        return len(entries)

    def runs(self) -> list[str]:
        """Names of all runs that are remembered here, also of those that an earlier process started."""
        return self._store.names()

    def forget(self, name: str) -> None:
        """Remove the lines and the directories of a run that has ended. One that has not is an EngineError."""

        def release() -> None:
            with contextlib.suppress(EngineError):
                self._driver.call("forget", name=name, root=self._root)

        self._store.forget(name, self.status, release)
        self._archives.pop(name, None)

    def _archive(self, name: str) -> LineArchive:
        return self._archives.setdefault(name, LineArchive(self._store, name))


class _Driver:
    """A process that speaks to the cluster, started when it is needed.

    Args:
        python: The Python that it runs in.
        address: Of the cluster.
        namespace: Where supervisors have their names.
    """

    def __init__(self, python: str, address: str, namespace: str) -> None:
        self._arguments = [python, "-u", str(Path(ray_driver.__file__)), address, namespace]
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._waiting: dict[int, Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._finalizer: weakref.finalize[..., Any] | None = None

    def call(self, request: str, **arguments: Any) -> Any:
        """What the driver answers.

        Raises:
            EngineError: It refuses, there is no cluster, or it does not answer.
        """
        answer: Future[Any] = Future()
        with self._lock:
            process = self._running()
            waiting, number = self._waiting, next(self._numbers)
            waiting[number] = answer
            assert process.stdin is not None
            try:
                process.stdin.write(json.dumps({"id": number, "do": request, "with": arguments}) + "\n")
                process.stdin.flush()
            except OSError as error:
                raise _gone() from error
        try:
            return answer.result(ANSWER_SECONDS)
        except FutureTimeoutError:
            self.close()
            cause = f"the Ray cluster has not answered within {ANSWER_SECONDS:.0f} s"
            raise EngineError(cause, "see whether it is well: ray status", transient=True) from None
        finally:
            waiting.pop(number, None)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._finalizer is not None:
                self._finalizer()
            self._process = None

    def _running(self) -> "subprocess.Popen[str]":
        """The process, once it has connected."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        if self._finalizer is not None:
            self._finalizer()
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        try:
            process = subprocess.Popen(  # noqa: S603 - the driver that comes with this module
                self._arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=_quiet(os.environ),
                cwd="/",  # Ray would have its workers look for modules where we are
                start_new_session=True,
            )
        except OSError as error:
            errors.close()
            cause = f"{self._arguments[0]} cannot be started: {error}"
            raise EngineError(cause, "name a Python that has Ray") from error
        self._finalizer = weakref.finalize(self, _end, process, errors)
        greeting = self._greeting(process)
        if "version" not in greeting:
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip().splitlines()[-1:]
            self._finalizer()
            cause = greeting.get("cause") or f"the driver of Ray broke: {said[0] if said else 'it said nothing'}"
            hint = greeting.get("hint", "see whether the cluster is well: ray status")
            raise EngineError(cause, hint, transient=greeting.get("transient", True))
        self._process, self._waiting = process, {}
        threading.Thread(target=self._read, args=(process, self._waiting), daemon=True).start()
        return process

    @staticmethod
    def _greeting(process: "subprocess.Popen[str]") -> dict[str, Any]:
        """What a driver says first: its version, or why it cannot connect."""
        timer = threading.Timer(CONNECT_SECONDS, process.kill)
        timer.start()
        assert process.stdout is not None
        line = process.stdout.readline()
        timer.cancel()
        try:
            greeting: dict[str, Any] = json.loads(line)
        except ValueError:
            return {}
        return greeting

    @staticmethod
    def _read(process: "subprocess.Popen[str]", waiting: dict[int, "Future[Any]"]) -> None:
        """Hand answers to who waits for them; all get one where the process ends."""
        assert process.stdout is not None
        with contextlib.suppress(ValueError, OSError):
            for line in process.stdout:
                content = json.loads(line)
                answer = waiting.get(content["id"])
                if answer is None:
                    continue
                if "cause" in content:
                    answer.set_exception(EngineError(content["cause"], content["hint"], transient=content["transient"]))
                else:
                    answer.set_result(content["result"])
        for answer in list(waiting.values()):
            if not answer.done():
                answer.set_exception(_gone())


def _gone() -> EngineError:
    cause = "the driver of Ray has ended: it has lost its cluster"
    return EngineError(cause, "see whether it is well: ray status", transient=True)


def _end(process: "subprocess.Popen[str]", errors: Any) -> None:
    """End a driver: it ends with its input, and in any case."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, errors):
        assert stream is not None
        with contextlib.suppress(OSError):
            stream.close()


def _quiet(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables of a driver: those of this process, less those by which Ray would take it for one of its workers."""
    left = {name: value for name, value in environ.items() if name not in {"RAY_ADDRESS", "RAY_JOB_ID"}}
    return {"RAY_USAGE_STATS_ENABLED": "0"} | left


def _named(name: str, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """The node that is called so, by the most telling of its names.

    Raises:
        EngineError: None is, or several are.
    """
    for level in range(len(nodes[0]["names"])):
        matches = [node for node in nodes if node["names"][level] == name]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise EngineError(
                f"several nodes of the cluster are called {name}", "label them: ray start --labels=kuayu.dev/node=NAME"
            )
    known = ", ".join(sorted({str(next(filter(None, node["names"]))) for node in nodes}))
    raise NodeUnavailableError(f"the cluster has no node {name}", f"it has: {known}")


def _packed(uri: str) -> bytes:
    """The code that a URI names, as a tar.

    Raises:
        EngineError: It cannot be had, or is too large to go with a run.
    """
    with tempfile.TemporaryDirectory() as folder:
        unpack(uri, Path(folder) / "code")
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            archive.add(Path(folder) / "code", arcname=".")
    if buffer.tell() > MAX_CODE_BYTES:
        raise EngineError(
            f"the code {uri} has more than {MAX_CODE_BYTES >> 20} MiB packed", "keep data apart from code"
        )
    return buffer.getvalue()
