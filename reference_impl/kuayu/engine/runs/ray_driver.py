"""The part of the Ray engine that runs where Ray is: a driver, the supervisor of a run, and its shares on nodes.

It is a program of the standard library and Ray alone, called by its path in the Python that has the cluster's Ray, so
that the engine's own process imports none, and lives on when a driver loses its cluster, which ends it. It reads
requests from the standard input and answers each with a line of JSON; it ends with its input.

1. Each run has one supervisor: a detached actor on the head, named for the run in the engine's namespace. Its name is
   what makes a start idempotent, and what the next driver finds it by.
2. The supervisor reserves all nodes of the run at once (a placement group with a bundle for each, pinned by node), and
   puts a share into each: an actor that starts the run's ranks there, under the supervisor program of local runs
   (:mod:`~kuayu.engine.runs.supervisor`), whose guard is tied to the actor's life. So a rank ends with its guard, the
   guard with the actor, the actor with its node or with the run's supervisor.
3. Nothing is restarted (``max_restarts=0``). One share that fails or is lost ends the others.
4. Lines are pulled from the shares by the place where reading ended, so that a call that is repeated repeats none.

Sources: https://docs.ray.io/en/latest/ray-core/actors/named-actors.html (detached actors),
https://docs.ray.io/en/latest/ray-core/scheduling/placement-group.html,
https://docs.ray.io/en/latest/ray-core/scheduling/labels.html (``ray.io/node-id`` is a label of every node).
"""

import base64
import contextlib
import importlib.util
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

NODE_LABEL = "kuayu.dev/node"
HEAD_RESOURCE = "node:__internal_head__"
"""A resource of which Ray gives the head one, and no other node any."""

LINES_PER_INDEX_ENTRY = 256
PIECE_BYTES = 1 << 20
POLL_SECONDS = 0.5
TICK_SECONDS = 0.5
REPEAT_SECONDS = 2.0
CALL_SECONDS = 60.0
CONNECT_SECONDS = 10.0
VERDICT_SECONDS = 15.0
"""How long the cluster is given to say that a node is lost whose actor has died."""

INHERITED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"),
    *("HABANA_VISIBLE_MODULES", "TPU_VISIBLE_CHIPS", "NEURON_RT_VISIBLE_CORES"),
)
"""Variables of a share that its ranks get as well: where tools are, and the devices that Ray has given it."""

INHERITED_PREFIXES = ("LC_", "OMP_", "MKL_", "NCCL_", "GLOO_", "HCCL_", "ASCEND_", "NVIDIA_")

GUARD = """
import ctypes, json, os, sys
order = json.load(sys.stdin)
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL: it ends with the actor that has started it
if os.getppid() == order["actor"]:
    sys.path.insert(0, sys.argv[1])
    import supervisor
    supervisor._guard(order, order["report"])
"""


class StoppedError(Exception):
    """A run is to end before it has begun."""


class ShareError(Exception):
    """A run cannot be carried out on a node.

    Args:
        reason: Why, for people.
    """


class NodeShare:
    """What of a run lies on one node.

    Args:
        order: ``name`` of the run, ``number`` of the share, ``root`` of directories, ``working_directory``,
            ``command``, ``grace``, ``characters``, ``log_bytes``, ``code`` (a tar in base64, or None), and
            ``supervisor`` (a program).
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        root = Path(order["root"] or Path(tempfile.gettempdir()) / f"kuayu-{os.getuid()}")
        self._directory = root / order["name"] / f"share-{order['number']}"
        self._over = threading.Event()
        self._report = ""
        self._failure: dict[str, Any] | None = None

    def meet(self) -> tuple[str, int]:
        """Address of this node, and a port that is free on it."""
        import ray

        with contextlib.closing(socket.socket()) as probe:
            probe.bind(("", 0))
            return ray.util.get_node_ip_address(), int(probe.getsockname()[1])

    def start(self, ranks: list[dict[str, Any]]) -> str:
        """Start the ranks of this node; empty, or why they could not be."""
        try:
            self._directory.mkdir(parents=True, mode=0o700)
            self._directory.parent.chmod(0o700)
            work = self._directory / (self._order["working_directory"] or "work")
            if self._order["working_directory"] is None:
                work.mkdir()
            if self._order["code"] is not None:
                with tarfile.open(fileobj=io.BytesIO(base64.b64decode(self._order["code"]))) as packed:
                    packed.extractall(work, filter="data")
            program = self._directory / "program"
            program.mkdir()
            (program / "supervisor.py").write_text(self._order["supervisor"], "utf-8")
        except (OSError, tarfile.TarError) as error:
            return self._fail(f"the directory {self._directory} cannot be made: {error}")
        begun = threading.Event()
        # The guard ends with the thread that starts it, so that this one lives as long as it.
        threading.Thread(target=self._supervise, args=(program, work, ranks, begun), daemon=True).start()
        begun.wait()
        return "" if self._report == "started" else str(self._state()["reason"])

    def poll(self, position: int) -> tuple[list[list[Any]], int, dict[str, Any] | None]:
        """Lines from a place in the log on, the place behind them, and how it came out where all is over.

        Args:
            position: Bytes of the log that have been read.
        """
        deadline = time.monotonic() + POLL_SECONDS
        while True:
            over = self._over.is_set()
            piece = self._read(position)
            if piece or over or time.monotonic() >= deadline:
                break
            self._over.wait(POLL_SECONDS / 5)
        lines = [json.loads(line) for line in piece.splitlines()]
        return lines, position + len(piece), self._state() if over and not piece else None

    def stop(self, grace: float) -> None:
        """Have the ranks end.

        Args:
            grace: Seconds between SIGTERM and SIGKILL.
        """
        if self._over.is_set() or not self._report:
            return
        program = self._program()
        request = program.read_state(self._directory, program.STOP_FILE)
        if request is None or request["grace"] > grace:
            program.write_state(self._directory, {"grace": grace, "at": time.time()}, program.STOP_FILE)
        for pid, since in self._state().get("processes", [])[-1:]:
            if program.started(pid) == since:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)

    def _supervise(self, program: Path, work: Path, ranks: list[dict[str, Any]], begun: threading.Event) -> None:
        read, write = os.pipe()
        module = self._program()
        base = self._variables() | {module.RUN_DIRECTORY: str(self._directory)}
        order = {
            "directory": str(self._directory),
            "held": str(self._directory / "held"),
            "state": {},
            "grace": self._order["grace"],
            "characters": self._order["characters"],
            "log_bytes": self._order["log_bytes"],
            "actor": os.getpid(),
            "report": write,
            "ranks": [
                {
                    "rank": rank["rank"],
                    "command": self._order["command"],
                    "directory": str(work),
                    "environment": base | rank["environment"],
                }
                for rank in ranks
            ],
        }
        try:
            with (self._directory / "supervisor.log").open("wb") as errors:
                guard = subprocess.Popen(  # noqa: S603 - the supervisor that came with the order
                    [sys.executable, "-S", "-E", "-c", GUARD, str(program)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    pass_fds=[write],
                    start_new_session=True,
                )
            assert guard.stdin is not None
            with guard.stdin, contextlib.suppress(BrokenPipeError):
                guard.stdin.write(json.dumps(order).encode())
        except OSError as error:
            self._fail(f"no process can be started: {error}")
            os.close(write)
            os.close(read)
            begun.set()
            return
        os.close(write)
        with os.fdopen(read) as report:
            self._report = report.read()
        begun.set()
        guard.wait()
        while left := module.processes_of(str(self._directory)):  # where guard and supervisor were killed at once
            module.send(left, signal.SIGKILL)
            time.sleep(TICK_SECONDS / 10)
        self._over.set()

    def _variables(self) -> dict[str, str]:
        import ray

        variables = {
            name: value
            for name, value in os.environ.items()
            if name in INHERITED or name.startswith(INHERITED_PREFIXES)
        }
        devices = ray.get_runtime_context().get_accelerator_ids().get(self._order["resource"])
        if devices:
            variables["KUAYU_DEVICES"] = ",".join(devices)
        return variables | {"PYTHONUNBUFFERED": "1"}

    def _fail(self, reason: str) -> str:
        self._failure = {"state": "failed", "reason": reason, "exit_code": None}
        self._over.set()
        return reason

    def _state(self) -> dict[str, Any]:
        """How it stands, by what its supervisor has written."""
        if self._failure is not None:
            return self._failure
        state: dict[str, Any] | None = self._program().read_state(self._directory)
        ended = state is not None and state["state"] in {"succeeded", "failed", "stopped"}
        if state is None or (self._over.is_set() and not ended):
            return {"state": "failed", "reason": "its supervisor broke", "exit_code": None}
        return state

    def _read(self, position: int) -> bytes:
        """Whole lines of the log from a place on."""
        try:
            with (self._directory / "log.jsonl").open("rb") as log:
                log.seek(position)
                piece = log.read(PIECE_BYTES)
        except FileNotFoundError:
            return b""
        whole: bytes = piece[: piece.rfind(b"\n") + 1]
        return whole

    def _program(self) -> Any:
        """The program of local runs, as a module."""
        specification = importlib.util.spec_from_file_location(
            "kuayu_supervisor", self._directory / "program" / "supervisor.py"
        )
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return module


class RunSupervisor:
    """Sees a run through, from the reservation of its nodes to the end of its last process.

    Args:
        order: That of :class:`NodeShare`, with ``resource`` and ``shares``: for each node its ``node`` (name), ``id``
            (of Ray), ``devices`` and ``ranks``; and ``meets``, whether ranks meet at an address that is found here.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._changed = threading.Condition()
        self._state: tuple[str, str, int | None] = ("starting", "waits for its nodes", None)
        self._grace: float | None = None
        self._group: Any = None
        self._shares: list[Any] = []
        self._ends: dict[int, dict[str, Any]] = {}
        self._lines = 0
        self._offsets = [0]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the actor
        threading.Thread(target=self._carry_out, daemon=True).start()

    def status(self) -> dict[str, Any]:
        """How the run stands, and how many lines there are."""
        with self._changed:
            state, reason, code = self._state
            return {"state": state, "reason": reason, "exit_code": code, "lines": self._lines}

    def lines(self, after: int, limit: int) -> list[list[Any]]:
        """Lines after a number: rank, seconds since 1970, text."""
        with self._changed:
            entry = min(after // LINES_PER_INDEX_ENTRY, len(self._offsets) - 1)
            self._log.seek(self._offsets[entry])
            for _ in range(after - entry * LINES_PER_INDEX_ENTRY):
                self._log.readline()
            return [json.loads(self._log.readline()) for _ in range(max(0, min(limit, self._lines - after)))]

    def stop(self, grace: float) -> None:
        """Have the run end; it has when its status says so.

        Args:
            grace: Seconds between SIGTERM and SIGKILL; a later call can shorten it.
        """
        with self._changed:
            self._grace = grace if self._grace is None else min(grace, self._grace)
            self._changed.notify_all()

    def _carry_out(self) -> None:
        try:
            verdict = self._run()
        except StoppedError:
            verdict = ("stopped", "", None)
        except ShareError as error:
            verdict = ("failed", str(error), None)
        except Exception as error:  # noqa: BLE001 - whatever breaks here, the run has to end
            verdict = ("failed", f"its supervisor broke: {error}", None)
        self._let_go()
        with self._changed:
            self._state = verdict

    def _run(self) -> tuple[str, str, int | None]:
        self._reserve()
        for number, share in enumerate(self._order["shares"]):
            self._shares.append(self._make_share(number, share))
        meetings = [self._get(number, share.meet.remote()) for number, share in enumerate(self._shares)]
        if self._order["meets"]:
            address, port = meetings[0]
            for share in self._order["shares"]:
                for rank in share["ranks"]:
                    rank["environment"] |= {"MASTER_ADDR": address, "MASTER_PORT": str(port)}
        starts = [
            share.start.remote(self._order["shares"][number]["ranks"]) for number, share in enumerate(self._shares)
        ]
        followers = [
            threading.Thread(target=self._follow, args=(number,), daemon=True) for number in range(len(starts))
        ]
        failures = []
        for number, start in enumerate(starts):
            try:
                failures.append(self._get(number, start, interruptible=False))
            except ShareError as error:
                failures.append(str(error))
        for follower in followers:
            follower.start()
        with self._changed:
            if not any(failures):
                self._state = ("running", "", None)
        verdict = self._await_end()
        for follower in followers:
            follower.join(CALL_SECONDS)
        return verdict

    def _reserve(self) -> None:
        """Wait until all nodes are the run's, all at once."""
        from ray.util.placement_group import placement_group

        shares, resource = self._order["shares"], self._order["resource"]
        self._group = placement_group(
            [{resource: share["devices"]} for share in shares],
            strategy="STRICT_SPREAD" if len(shares) > 1 else "STRICT_PACK",
            bundle_label_selector=[{"ray.io/node-id": share["id"]} for share in shares],
        )
        while not self._group.wait(timeout_seconds=TICK_SECONDS):
            devices = ", ".join(f"{share['devices']} of {share['node']}" for share in shares)
            with self._changed:
                if self._grace is not None:
                    raise StoppedError
                self._state = ("starting", f"waits for devices: {devices}", None)
            for share in shares:
                if not _alive(share["id"]):
                    raise ShareError(f"node {share['node']} was lost before the run was started")

    def _make_share(self, number: int, share: dict[str, Any]) -> Any:
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        resource, devices = self._order["resource"], share["devices"]
        wanted: dict[str, Any] = {"num_cpus": 0}
        if resource == "GPU":
            wanted["num_gpus"] = devices
        elif resource == "CPU":
            wanted["num_cpus"] = devices
        else:
            wanted["resources"] = {resource: devices}
        order = {key: value for key, value in self._order.items() if key != "shares"} | {"number": number}
        return (
            ray.remote(NodeShare)
            .options(
                max_restarts=0,
                max_concurrency=4,
                scheduling_strategy=PlacementGroupSchedulingStrategy(self._group, number),
                **wanted,
            )
            .remote(order)
        )

    def _get(self, number: int, reference: Any, *, interruptible: bool = True) -> Any:
        """What a share answers.

        Raises:
            StoppedError: The run is to end.
            ShareError: The share is lost.
        """
        import ray

        while True:
            done, _ = ray.wait([reference], timeout=TICK_SECONDS)
            if done:
                try:
                    return ray.get(reference)
                except ray.exceptions.RayActorError as error:
                    raise ShareError(self._loss(number)) from error
            with self._changed:
                if interruptible and self._grace is not None:
                    raise StoppedError

    def _follow(self, number: int) -> None:
        """Pull lines of a share until it has ended."""
        import ray

        position = 0
        while True:
            try:
                lines, position, end = ray.get(self._shares[number].poll.remote(position), timeout=CALL_SECONDS)
            except (ray.exceptions.ActorUnavailableError, ray.exceptions.GetTimeoutError):
                time.sleep(TICK_SECONDS)
                continue
            except ray.exceptions.RayError:
                lines, end = [], {"state": "lost", "reason": self._loss(number), "exit_code": None}
            with self._changed:
                for line in lines:
                    self._append(line)
                if end is not None:
                    self._ends[number] = end
                    self._changed.notify_all()
                    return

    def _append(self, line: list[Any]) -> None:
        self._log.seek(0, os.SEEK_END)
        self._log.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self._lines += 1
        if self._lines % LINES_PER_INDEX_ENTRY == 0:
            self._offsets.append(self._log.tell())

    def _await_end(self) -> tuple[str, str, int | None]:
        """Wait for the end of all shares, and have the others end where one has failed; how it came out."""
        verdict: tuple[str, str, int | None] | None = None
        repeat_at = 0.0
        with self._changed:
            while len(self._ends) < len(self._shares):
                if verdict is None and (verdict := self._verdict()) is not None:
                    reason = verdict[1] or verdict[0]
                    self._state = ("running", f"{reason}; what is left of it is being ended", None)
                if verdict is not None and time.monotonic() >= repeat_at:
                    repeat_at = time.monotonic() + REPEAT_SECONDS
                    grace = self._order["grace"] if self._grace is None else self._grace
                    for number, share in enumerate(self._shares):
                        if number not in self._ends:
                            share.stop.remote(grace)
                self._changed.wait(TICK_SECONDS)
            return verdict or self._verdict() or ("succeeded", "", 0)

    def _verdict(self) -> tuple[str, str, int | None] | None:
        """How the run comes out by what is known; None where that is open."""
        for number, end in self._ends.items():
            if end["state"] == "lost":
                return "failed", end["reason"], None
            if end["state"] == "failed":
                return "failed", f"{end['reason']} on {self._order['shares'][number]['node']}", end["exit_code"]
        return None if self._grace is None else ("stopped", "", None)

    def _loss(self, number: int) -> str:
        """Why a share is lost, for people."""
        share = self._order["shares"][number]
        deadline = time.monotonic() + VERDICT_SECONDS
        while time.monotonic() < deadline:
            if not _alive(share["id"]):
                return f"node {share['node']} was lost"
            time.sleep(TICK_SECONDS)
        return f"its part on node {share['node']} was killed"

    def _let_go(self) -> None:
        """Give the nodes back."""
        import ray
        from ray.util.placement_group import remove_placement_group

        for share in self._shares:
            with contextlib.suppress(Exception):
                ray.kill(share)
        if self._group is not None:
            with contextlib.suppress(Exception):
                remove_placement_group(self._group)


def _alive(node: str) -> bool:
    """Whether a node is there, by its identifier."""
    import ray

    return any(known["Alive"] and known["NodeID"] == node for known in ray.nodes())


def _remove(root: str | None, name: str) -> None:
    """Remove what a run has left on a node."""
    shutil.rmtree(Path(root or Path(tempfile.gettempdir()) / f"kuayu-{os.getuid()}") / name, ignore_errors=True)


class RefusedError(Exception):
    """A request cannot be carried out.

    Args:
        cause: What is wrong.
        hint: What to do about it.
        transient: Whether the same may work in a while.
    """

    def __init__(self, cause: str, hint: str = "", *, transient: bool = False) -> None:
        super().__init__(cause)
        self.cause = cause
        self.hint = hint
        self.transient = transient


class Driver:
    """Carries out requests of the engine.

    Args:
        address: Of the cluster, as ``ray.init`` takes it.
        namespace: Where supervisors have their names.
    """

    def __init__(self, address: str, namespace: str) -> None:
        import ray

        self._ray = ray
        self._namespace = namespace
        ray.init(address=address, namespace=namespace, log_to_driver=False, logging_level="ERROR")

    def nodes(self) -> list[dict[str, Any]]:
        """Nodes that are there: what they may be called by, most telling first, and what they have."""
        return [
            {
                "id": node["NodeID"],
                "names": [
                    (node.get("Labels") or {}).get(NODE_LABEL),
                    *(node["NodeName"], node["NodeManagerHostname"], node["NodeManagerAddress"], node["NodeID"]),
                ],
                "resources": node["Resources"],
            }
            for node in self._ray.nodes()
            if node["Alive"]
        ]

    def version(self) -> str:
        """Version of Ray."""
        return str(self._ray.__version__)

    def start(self, order: dict[str, Any]) -> None:
        """Have a run carried out, unless it is already."""
        order["supervisor"] = Path(__file__).with_name("supervisor.py").read_text("utf-8")
        supervisor = (
            self._ray.remote(RunSupervisor)
            .options(
                name=order["name"],
                namespace=self._namespace,
                lifetime="detached",
                get_if_exists=True,
                max_restarts=0,
                max_concurrency=8,
                num_cpus=0,
                resources={HEAD_RESOURCE: 0.001},
            )
            .remote(order)
        )
        self._ray.get(supervisor.status.remote(), timeout=CALL_SECONDS)

    def status(self, name: str) -> dict[str, Any] | None:
        """How a run stands; None where it has no supervisor."""
        supervisor = self._find(name)
        if supervisor is None:
            return None
        try:
            status: dict[str, Any] = self._ray.get(supervisor.status.remote(), timeout=CALL_SECONDS)
        except self._ray.exceptions.ActorUnavailableError as error:
            raise RefusedError(f"the supervisor of run {name} does not answer", "ask again", transient=True) from error
        except self._ray.exceptions.RayActorError:
            return None
        return status

    def lines(self, name: str, after: int, limit: int) -> list[list[Any]]:
        """Lines of a run after a number; none where it has no supervisor."""
        supervisor = self._find(name)
        if supervisor is None:
            return []
        lines: list[list[Any]] = self._ray.get(supervisor.lines.remote(after, limit), timeout=CALL_SECONDS)
        return lines

    def stop(self, name: str, grace: float) -> None:
        """Have a run end; it has when its status says so."""
        supervisor = self._find(name)
        if supervisor is not None:
            with contextlib.suppress(self._ray.exceptions.RayActorError):
                self._ray.get(supervisor.stop.remote(grace), timeout=CALL_SECONDS)

    def release(self, name: str) -> None:
        """End the supervisor of a run that has ended."""
        supervisor = self._find(name)
        if supervisor is not None:
            self._ray.kill(supervisor)

    def forget(self, name: str, root: str | None) -> None:
        """Remove what a run has left, on all nodes that are there."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.release(name)
        removals = [
            self._ray.remote(_remove)
            .options(
                num_cpus=0,
                max_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["id"], soft=False),
            )
            .remote(root, name)
            for node in self.nodes()
        ]
        self._ray.wait(removals, num_returns=len(removals), timeout=CALL_SECONDS)

    def _find(self, name: str) -> Any:
        try:
            return self._ray.get_actor(name, namespace=self._namespace)
        except ValueError:
            return None


def answer(driver: Driver, request: dict[str, Any]) -> dict[str, Any]:
    """Carry out a request; what is answered."""
    try:
        result = getattr(driver, request["do"])(**request["with"])
    except RefusedError as error:
        return {"id": request["id"], "cause": error.cause, "hint": error.hint, "transient": error.transient}
    except Exception as error:  # noqa: BLE001 - whatever Ray raises, somebody waits for an answer
        said = str(error).strip().partition("\n")[0]
        cause = f"Ray cannot {request['do']}: {type(error).__name__}: {said}"
        return {
            "id": request["id"],
            "cause": cause,
            "hint": "see whether the cluster is well: ray status",
            "transient": True,
        }
    return {"id": request["id"], "result": result}


def knock(address: str) -> None:
    """See whether somebody answers where the cluster should be: Ray would look for minutes.

    Raises:
        OSError: Nobody does.
    """
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()


def main() -> None:
    """Connect, and answer requests until there are no more."""
    beside = str(Path(__file__).parent)  # Python looks there first, where this engine's module is called ray as well
    sys.path[:] = [path for path in sys.path if path != beside]
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what Ray prints is no answer
    lock = threading.Lock()

    def write(content: dict[str, Any]) -> None:
        with lock:
            answers.write(json.dumps(content) + "\n")

    try:
        knock(sys.argv[1])
        driver = Driver(*sys.argv[1:3])
    except ModuleNotFoundError as error:
        package = "ray[client]>=2.49" if sys.argv[1].startswith("ray://") else "ray>=2.49"
        hint = f"pip install '{package}', or name a Python that has it by the option python"
        write({"cause": f"{sys.executable} has no {error.name}", "hint": hint, "transient": False})
        return
    except Exception as error:  # noqa: BLE001 - whatever Ray raises, somebody waits for an answer
        said = str(error).strip().partition("\n")[0]
        cause = f"there is no Ray cluster at {sys.argv[1]}: {said}"
        write(
            {"cause": cause, "hint": "name its address (HOST:PORT), or start one: ray start --head", "transient": True}
        )
        return
    write({"version": driver.version()})
    with ThreadPoolExecutor(max_workers=16) as pool:
        for line in sys.stdin:
            pool.submit(lambda request: write(answer(driver, request)), json.loads(line))
        os._exit(0)


if __name__ == "__main__":
    main()
