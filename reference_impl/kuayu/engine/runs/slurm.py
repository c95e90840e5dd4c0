"""Runs as jobs of Slurm, through its own commands; written against 22.05, whose manual pages are the source.

1. A run is one job, which Slurm starts on all its nodes or on none; its name is the run's. Where nodes have unlike
   numbers of devices it is a heterogeneous job, one component for each number, and one step over all of them.
2. Before a job is submitted, one of its name and comment is looked for. The lock of the run is open in sbatch too, so
   that a caller that is killed meanwhile leaves no submission that the next one does not wait for. Should there be two
   jobs all the same, the batch script lets only the first one run (:mod:`~kuayu.engine.runs.slurm_scripts`). Nothing is
   requeued: to try again is the business of whoever starts runs, as another run.
3. The engine's directory is on a file system that all nodes reach by the same path. The truth that lasts lies there:
   who failed first, and how the step ended. It outlives MinJobAge and needs no accounting; what Slurm says adds the
   reason, and tells ends that leave no file, such as a node that failed.
4. ``stop`` sends SIGTERM to all processes of the ranks, and SIGKILL after the grace period; the job is over when Slurm
   lists it as such. When a rank fails, srun ends the others, with the cluster's own grace (KillWait).
5. Slurm finds processes that left their session only with ``ProctrackType=proctrack/cgroup``. With another one, the
   batch script looks for them by their environment on each node when the ranks are over; it cannot where Slurm kills it
   as well, as at a time limit.
6. Devices are the generic resource that is named (``gpu``); nodes that have none give processors, one for each process.
   Which devices, Slurm chooses, and sets what runtimes read; a step's GPUs are named in KUAYU_DEVICES.

What a service knows by its environment does not reach jobs: sbatch is called with that which
:data:`~kuayu.engine.runs.store.INHERITED` names. Images are refused: how containers are run differs from site to site.
"""

import hashlib
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from kuayu.engine.runs import slurm_scripts, supervisor
from kuayu.engine.runs.log_merge import merge
from kuayu.engine.runs.protocol import (
    ENDED,
    EngineError,
    Finding,
    LogLine,
    NodeUnavailableError,
    Run,
    RunState,
    RunStatus,
    validate,
)
from kuayu.engine.runs.slurm_scripts import Component, write_scripts
from kuayu.engine.runs.store import (
    LOCK_SECONDS,
    POLL_SECONDS,
    RunStore,
    another,
    busy,
    digest,
    inherited,
    make_work_directory,
    stored_status,
    work_directory,
)

MAX_LOG_BYTES = 64 << 20
"""Bytes of a run's log; what a job prints beyond them stays in the files of its ranks until it is forgotten."""

COMMAND_SECONDS = 60.0
"""How long a command of Slurm may take; they wait for a busy controller themselves (MessageTimeout)."""

TABLE_SECONDS = 1.0
"""For how long what squeue said holds, so that many runs cost the controller one question."""

KILL_SECONDS = 60.0
"""How long killed ranks may take until their job is over, before the whole job is killed."""

END_SECONDS = 90.0
"""How long a job may take to be over then; nodes that do not answer take Slurm longer (UnkillableStepTimeout: 60 s)."""

_STOP_POLL_SECONDS = 0.25
_COMMANDS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo", "srun")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_PENDING = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"})
_ACTIVE = _PENDING | {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
"""States of a job that is not over (squeue(1), JOB STATE CODES)."""

_CLOSED = re.compile(r"\*|\b(DOWN|DRAIN|DRAINED|DRAINING|ERROR|FAIL|FAILING|FUTURE|INVAL|NOT_RESPONDING|UNKNOWN)\b")
"""In the state of a node that is given no jobs (sinfo(1), NODE STATE CODES); one that does not answer has a star."""

_REASONS = {
    "TIMEOUT": "it reached the time limit of its job or partition",
    "DEADLINE": "it reached the deadline of its job",
    "NODE_FAIL": "a node failed",
    "BOOT_FAIL": "a node could not be booted",
    "OUT_OF_MEMORY": "it ran out of memory",
    "PREEMPTED": "another job took its place (preemption)",
}
"""What ends a job from outside, for people."""

_UNREACHABLE = ("unable to contact", "socket timed out", "zero bytes", "connection refused", "communication", "timeout")
_SIGNAL_BASE = 128


@dataclass(frozen=True, slots=True)
class _Job:
    """A job as squeue lists it; one that is heterogeneous, with all its components."""

    id: str
    comment: str
    states: tuple[str, ...]
    reason: str

    @property
    def active(self) -> bool:
        return any(state in _ACTIVE for state in self.states)

    @property
    def pending(self) -> bool:
        return all(state in _PENDING for state in self.states)


class SlurmEngine:
    """Runs as jobs of a Slurm cluster.

    Args:
        directory: Where runs are kept, on a file system that all nodes reach by the same path.
        partition: Partition of the jobs; the cluster's default where None.
        account: Account that they are charged to; the user's default where None.
        gres: Generic resource that is a device, with its type where that matters: ``gpu``, ``gpu:h100``, ``npu``.
        cpus_per_process: Processors of each process; what the cluster gives where None.
        arguments: More options of sbatch, for each job: ``--time=2-0``, ``--qos=normal``, ``--mem-per-gpu=100G``.
        conf: The cluster's slurm.conf; where Slurm finds it by itself, None.
    """

    def __init__(
        self,
        directory: Path,
        partition: str | None = None,
        account: str | None = None,
        gres: str = "gpu",
        cpus_per_process: int | None = None,
        arguments: Sequence[str] = (),
        conf: str | None = None,
    ) -> None:
        self.name = "slurm"
        self._store = RunStore(directory)
        self._gres = gres
        chosen = {"--partition": partition, "--account": account, "--cpus-per-task": cpus_per_process}
        self._options = [f"{option}={value}" for option, value in chosen.items() if value is not None]
        self._options += arguments
        self._partition = partition
        self._environment = inherited() | {
            name: value for name, value in {"SLURM_CONF": conf or os.environ.get("SLURM_CONF", "")}.items() if value
        }
        self._table: tuple[float, list[tuple[str, _Job]]] = (float("-inf"), [])
        self._asking = threading.Lock()
        self._settings: dict[str, str] | None = None

    def check(self) -> list[Finding]:
        """What the engine needs and whether it is there, without starting anything."""
        missing = [
            command for command in _COMMANDS if shutil.which(command, path=self._environment.get("PATH")) is None
        ]
        if missing:
            hint = "install Slurm's commands on this host (Debian and Ubuntu: apt-get install slurm-client)"
            return [Finding("commands", present=False, detail=f"missing: {', '.join(missing)}", hint=hint)]
        findings = [Finding("commands", present=True, detail=self._call("sbatch", "--version").strip())]
        try:
            config = self._config()
        except EngineError as error:
            hint = "start slurmctld and munged, or name the cluster's slurm.conf by the option conf"
            return [*findings, Finding("controller", present=False, detail=error.cause, hint=hint)]
        cluster = config.get("ClusterName", "?")
        findings.append(Finding("controller", present=True, detail=f"cluster {cluster} answers"))
        findings += [self._check_partition(), self._check_tracking(config), self._check_directory()]
        return findings

    def unavailable_nodes(self, nodes: Sequence[str], /) -> dict[str, str]:
        """Nodes that Slurm does not know, or gives no jobs: down, drained, failing, or without an answer.

        Raises:
            EngineError: The controller does not answer.
        """
        known = self._known_nodes(nodes)
        reasons = {node: _unavailable(known.get(node)) for node in nodes}
        return {node: reason for node, reason in reasons.items() if reason}

    def prepare(self, run: Run) -> None:
        """Make the run's directory and fetch its code; see whether Slurm knows its nodes.

        Raises:
            EngineError: It can not be run here, and why; or another run has this name.
        """
        validate(run)
        if run.image is not None:
            raise EngineError("the engine slurm starts no containers", "leave the image out, or use another engine")
        if wrong := [placement.node for placement in run.placements if not _NODE.fullmatch(placement.node)]:
            raise EngineError(f"{wrong[0]!r} is no name of a node", "name nodes as Slurm does (NodeName)")
        if self._store.state(run.name) is None:
            self._nodes(run)
        self._store.prepare(run, lambda directory: make_work_directory(run, directory))

    def start(self, run: Run) -> None:
        """Submit a run that was prepared; Slurm starts it when its nodes have room.

        Raises:
            EngineError: It was not submitted. Where the controller does not answer that is transient, and the next
                start sees to it that there is one job.
        """
        end_at = time.monotonic() + LOCK_SECONDS
        while (state := self._store.state(run.name)) is not None:
            if state["digest"] != digest(run):
                raise another(run.name)
            if not _is_open(state):
                return
            with self._store.try_lock(run.name) as run_lock:
                if run_lock is not None and _is_open(state := self._reread(run.name)):
                    self._submit(run, state, run_lock)
                    return
            if time.monotonic() > end_at:
                raise busy(run.name)
            time.sleep(POLL_SECONDS)
        raise EngineError(f"run {run.name} was not prepared", "prepare it first")

    def stop(self, name: str, grace_seconds: float | None = None) -> None:
        """End a run; when this returns Slurm has nothing of it. One that is unknown or has ended stays as it is.

        Args:
            name: Of the run.
            grace_seconds: Between SIGTERM and SIGKILL; the run's own where None.

        Raises:
            EngineError: Slurm does not end it, or the controller does not answer.
        """
        end_at = time.monotonic() + LOCK_SECONDS
        while (state := self._store.state(name)) is not None and _is_open(state):
            with self._store.try_lock(name) as run_lock:
                if run_lock is not None and _is_open(state := self._reread(name)):
                    job = self._find(name, state, fresh=True) if state["state"] == "submitting" else None
                    end = {"state": "stopped", "reason": "stopped before it was started"}
                    _ask_to_stop(self._store.of(name))  # should its submission still come through
                    self._store.write(name, {**state, **(end if job is None else _submitted(job.id))})
            if time.monotonic() > end_at:
                raise busy(name)
            time.sleep(POLL_SECONDS)
        if state is None or self._ended(name):
            return
        _ask_to_stop(self._store.of(name))
        self._end(name, state, float(state["grace"]) if grace_seconds is None else grace_seconds)

    def status(self, name: str) -> RunStatus:
        """How a run stands; unknown, with a reason, where there is none of that name or Slurm does not answer."""
        try:
            return self._status(name, fresh=False)
        except EngineError as error:
            return RunStatus(RunState.UNKNOWN, error.cause)

    def logs(self, name: str, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """Lines of a run in order, those after a number; empty where there are none yet.

        Ranks write files on their nodes; when lines were read is when somebody looked. How long a file system takes to
        show what another node has written is its own affair (NFS: some seconds).
        """
        state = self._store.state(name)
        if state is not None and state["state"] == "submitted":
            with suppress(EngineError):  # what was read before can be told all the same
                self._merge(name, state, last=False)
        return self._store.logs(name, after, limit)

    def runs(self) -> list[str]:
        """Names of all runs whose directory is there, in order."""
        return self._store.names()

    def forget(self, name: str) -> None:
        """Remove the directory of a run that has ended, logs included; a working directory elsewhere stays.

        Raises:
            EngineError: It has not ended, or its directory cannot be removed.
        """
        self._store.forget(name, self.status, lambda: None)

    def _reread(self, name: str) -> dict[str, Any]:
        """How a run stands, read again under its lock."""
        return self._store.state(name) or {"state": "unknown"}

    def _ended(self, name: str) -> bool:
        return self._status(name, fresh=True).state in ENDED

    # Submission

    def _submit(self, run: Run, state: dict[str, Any], run_lock: IO[str]) -> None:
        """Submit a run whose lock is ours, or take the job that an earlier submission has left."""
        job = self._find(run.name, state, fresh=True) if state["state"] == "submitting" else None
        if job is None:
            directory = self._store.of(run.name)
            components, address = self._components(run)
            work = work_directory(run, directory)
            self._settings = self._settings or self._config()
            sweep = self._settings.get("ProctrackType") != "proctrack/cgroup"
            try:
                write_scripts(run, directory, work, components, address, sweep=sweep)
            except OSError as error:
                raise EngineError(f"cannot write in {directory}: {error}", "see to its disk", transient=True) from error
            ranks = [run.rendezvous.rank_offset, len(run.processes)]
            state = {**state, "state": "submitting", "ranks": ranks}
            self._store.write(run.name, state)
            identifier = self._sbatch(run, state, components, run_lock)
        else:
            identifier = job.id
        self._store.write(run.name, {**state, **_submitted(identifier)})

    def _sbatch(self, run: Run, state: Mapping[str, Any], components: Sequence[Component], run_lock: IO[str]) -> str:
        """Submit a job; its number."""
        directory = self._store.of(run.name)
        common = [
            f"--job-name={run.name}",
            f"--comment={self._comment(run.name, state)}",
            "--no-requeue",
            f"--chdir={directory}",
        ]
        common += ["--output=batch.log", "--open-mode=append", "--export=ALL", *self._options]
        arguments: list[str] = []
        for component in components:
            resource = [f"--gres={component.resource}"] if component.resource else []
            nodes = f"--nodelist={','.join(component.nodes)}"
            arguments += [*([":"] if arguments else []), *common, *component.layout, nodes, *resource]
        batch_script = str(directory / slurm_scripts.BATCH)
        printed = self._call("sbatch", "--parsable", *arguments, batch_script, keep_open=[run_lock.fileno()])
        identifier = printed.strip().partition(";")[0]  # a name of a cluster may follow
        if not identifier.isdigit():
            raise EngineError(f"sbatch printed no number of a job: {printed.strip()!r}", "see to the cluster's plugins")
        return identifier

    def _components(self, run: Run) -> tuple[list[Component], str]:
        """Nodes of a run by what is asked of them, and the address of rank zero's node."""
        known = self._nodes(run)
        groups: dict[tuple[int, str | None], list[str]] = {}
        for placement in run.placements:
            node = known[placement.node]
            kinds = {re.split(r"[:(]", kind)[0] for kind in node.get("Gres", "").split(",")}
            resource = f"{self._gres}:{placement.devices}" if self._gres.partition(":")[0] in kinds else None
            key = run.processes_per_node or placement.devices, resource
            groups.setdefault(key, []).append(placement.node)
        components = [Component(nodes, processes, resource) for (processes, resource), nodes in groups.items()]
        address = run.rendezvous.address
        if run.rendezvous.port == 0 or address in {"", "127.0.0.1", "localhost"}:
            address = known[run.placements[0].node].get("NodeAddr", address)
        return components, address

    def _nodes(self, run: Run) -> dict[str, dict[str, str]]:
        """What Slurm says of the nodes of a run, by name.

        Raises:
            NodeUnavailableError: It does not know one of them, or gives it no jobs now.
            EngineError: It does not answer.
        """
        names = [placement.node for placement in run.placements]
        nodes = self._known_nodes(names)
        for name in names:
            if reason := _unavailable(nodes.get(name)):
                raise NodeUnavailableError(f"node {name} takes no jobs: {reason}", "see sinfo --list-reasons")
        return nodes

    def _known_nodes(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """What Slurm says of nodes that it knows, by name.

        Raises:
            EngineError: It does not answer.
        """
        printed = self._call("scontrol", "--oneliner", "show", "node")
        nodes = (fields for line in printed.splitlines() if (fields := _fields(line)).get("NodeName") in names)
        return {fields["NodeName"]: fields for fields in nodes}

    # Status

    def _status(self, name: str, *, fresh: bool) -> RunStatus:
        state = self._store.state(name)
        if state is None:
            return self._store.unknown(name)
        if state["state"] in supervisor.ENDED or state["state"] == "prepared":
            return stored_status(state)
        job = self._find(name, state, fresh=fresh)
        if job is None:
            job = self._find(name, state, fresh=True)  # it may be newer than what was asked last
        if state["state"] == "submitting":
            if job is None:
                return RunStatus(RunState.PREPARED, "its submission has not come through; start it again")
        elif job is None or not job.active:
            return self._settle(name, state, job)
        assert job is not None
        return self._active_status(name, state, job)

    def _active_status(self, name: str, state: Mapping[str, Any], job: _Job) -> RunStatus:
        """How a run stands whose job is not over."""
        if any(component in _PENDING for component in job.states):
            return RunStatus(RunState.STARTING, f"job {job.id} waits in Slurm: {job.reason}")
        outputs = self._store.of(name) / slurm_scripts.OUTPUTS
        begun = len(list(outputs.iterdir())) if outputs.is_dir() else 0
        if begun < state["ranks"][1]:
            return RunStatus(RunState.STARTING, f"job {job.id}: {begun} of {state['ranks'][1]} processes have begun")
        others = {component for component in job.states if component != "RUNNING"}
        return RunStatus(RunState.RUNNING, f"job {job.id}: {', '.join(sorted(others)).lower()}" if others else "")

    def _settle(self, name: str, state: dict[str, Any], job: _Job | None) -> RunStatus:
        """Write the end of a run whose job is over."""
        status = self._verdict(name, job)
        with self._store.try_lock(name) as run_lock:
            if run_lock is not None and (state := self._reread(name))["state"] == "submitted":
                self._merge(name, state, last=True)
                end = {"state": status.state.value, "reason": status.reason, "exit_code": status.exit_code}
                self._store.write(name, {**state, **end})
        return status

    def _verdict(self, name: str, job: _Job | None) -> RunStatus:
        """How a run has ended, by the files of its job and what Slurm says."""
        directory = self._store.of(name)
        with suppress(OSError):
            os.listdir(directory)  # noqa: PTH208 - NFS may still remember that a file was not there; reading the directory tells
        states = set(job.states) if job is not None else set()
        first = [int(word) for word in _text(directory / slurm_scripts.FIRST_FILE).split()]
        code = _exit_code(first[1]) if first else None
        ended = _text(directory / slurm_scripts.EXIT_FILE).strip()
        if supervisor.read_state(directory, supervisor.STOP_FILE) is not None:
            return RunStatus(RunState.STOPPED)
        if ended == "0" or states == {"COMPLETED"}:
            # The file counts whatever Slurm believes: a controller that was killed may have forgotten that it began.
            return RunStatus(RunState.SUCCEEDED, exit_code=0)
        for cause, reason in _REASONS.items():
            if cause in states:
                return RunStatus(RunState.FAILED, f"{reason} (Slurm: {cause})", code)
        if "CANCELLED" in states:
            return RunStatus(RunState.STOPPED, "its job was cancelled in Slurm")
        if code is not None:
            return RunStatus(RunState.FAILED, supervisor.said(first[0], code), code)
        complaint = _text(directory / "batch.log").strip().splitlines()
        last = f": {complaint[-1]}" if complaint else ""
        if ended:
            return RunStatus(RunState.FAILED, f"its step ended with exit code {ended}{last}", int(ended))
        said = f"its job is {'/'.join(sorted(states))}" if states else "Slurm does not know its job any more"
        return RunStatus(RunState.FAILED, f"{said}, and left no exit code{last}")

    def _find(self, name: str, state: Mapping[str, Any], *, fresh: bool) -> _Job | None:
        """The job of a run; the one that carries it out, where there are several."""
        comment = self._comment(name, state)
        jobs = {job.id: job for listed, job in self._jobs(fresh=fresh) if listed == name and job.comment == comment}
        claimed = _text(self._store.of(name) / slurm_scripts.CLAIM_FILE).strip()
        if wanted := claimed or state.get("job"):
            return jobs.get(wanted)
        return next((job for job in jobs.values() if job.active), None)  # Slurm also lists what it has refused

    def _comment(self, name: str, state: Mapping[str, Any]) -> str:
        """By what a job is known to be of a run, beside its name, which others may have given as well."""
        identity = f"{self._store.of(name)} {state['digest']}"
        return f"kuayu {hashlib.sha256(identity.encode()).hexdigest()[:32]}"

    def _jobs(self, *, fresh: bool) -> list[tuple[str, _Job]]:
        """All jobs of this user by name, those that are over included as long as Slurm knows them."""
        asked_at = time.monotonic()
        with self._asking:
            since, jobs = self._table
            if since < asked_at - (0.0 if fresh else TABLE_SECONDS):
                since = time.monotonic()
                jobs = self._ask_for_jobs()
                self._table = since, jobs
            return jobs

    def _ask_for_jobs(self) -> list[tuple[str, _Job]]:
        # The name is the last but one and the reason the last, for only these may hold any character.
        printed = self._call("squeue", "--me", "--states=all", "--noheader", "--format=%i|%T|%k|%j|%r")
        rows: dict[str, list[list[str]]] = {}
        for line in printed.splitlines():
            row = line.split("|", 4)
            if len(row) == 5:  # noqa: PLR2004 - as many as the format names
                rows.setdefault(row[0].partition("+")[0].strip(), []).append(row)
        jobs = []
        for identifier, components in rows.items():
            states = tuple(row[1] for row in components)
            comment = next((row[2] for row in components if row[2] not in {"", "(null)"}), "")
            jobs.append((components[0][3], _Job(identifier, comment, states, components[0][4])))
        return jobs

    def _merge(self, name: str, state: Mapping[str, Any], *, last: bool) -> None:
        """Number what ranks have written since somebody looked last; at the end, also what Slurm complained about."""
        directory, (offset, count) = self._store.of(name), state["ranks"]
        outputs = directory / slurm_scripts.OUTPUTS
        sources = [(offset + place, outputs / str(place)) for place in range(count)]
        if last:
            sources.append((offset, directory / "batch.log"))
        try:
            merge(directory, sources, MAX_LOG_BYTES, last=last)
        except FileNotFoundError:
            return  # the run is being forgotten
        except OSError as error:
            raise EngineError(f"the log of run {name} cannot be written: {error}", "see to its disk") from error

    # End

    def _end(self, name: str, state: Mapping[str, Any], grace: float) -> None:
        """Have Slurm end a job, politely at first."""
        job = self._find(name, state, fresh=True)
        identifier = job.id if job is not None else str(state["job"])
        if job is not None and job.pending:
            self._scancel(identifier)
        else:
            self._scancel("--signal=TERM", identifier)
            if self._await_end(name, grace):
                return
            self._scancel("--signal=KILL", identifier)  # the ranks alone: the batch script sees to what they leave
            if self._await_end(name, KILL_SECONDS):
                return
        self._scancel(identifier)
        if self._await_end(name, KILL_SECONDS):
            return
        self._scancel("--signal=KILL", "--full", identifier)
        if not self._await_end(name, END_SECONDS):
            hint = "see to the nodes of the job; stop it again then"
            raise EngineError(f"Slurm does not end job {identifier} of run {name}", hint, transient=True)

    def _scancel(self, *arguments: str) -> None:
        """Signal or cancel a job; that there is nothing to signal is no fault."""
        try:
            self._call("scancel", *arguments)
        except EngineError as error:
            if error.transient:
                raise

    def _await_end(self, name: str, seconds: float) -> bool:
        end_at = time.monotonic() + seconds
        while not (ended := self._ended(name)) and time.monotonic() < end_at:
            time.sleep(_STOP_POLL_SECONDS)
        return ended

    # Slurm

    def _call(self, command: str, *arguments: str, keep_open: Sequence[int] = ()) -> str:
        """What a command of Slurm prints.

        Raises:
            EngineError: It is not installed, or failed; transient where the controller did not answer.
        """
        program = shutil.which(command, path=self._environment.get("PATH"))
        if program is None:
            hint = "install Slurm's commands on this host (Debian and Ubuntu: apt-get install slurm-client)"
            raise EngineError(f"there is no program {command}", hint)
        try:
            ended = subprocess.run(  # noqa: S603 - a program of Slurm, and its arguments are no shell's
                [program, *arguments],
                env=self._environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                pass_fds=keep_open,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            cause = f"{command} has not answered for {COMMAND_SECONDS:.0f} s"
            raise EngineError(cause, "see whether slurmctld is alive", transient=True) from error
        if ended.returncode:
            complaint = (ended.stderr.strip() or ended.stdout.strip() or f"exit code {ended.returncode}").splitlines()[
                -1
            ]
            lost = any(word in complaint.lower() for word in _UNREACHABLE)
            hint = "see whether slurmctld is alive" if lost else "see what the cluster allows"
            raise EngineError(f"{command}: {complaint.removeprefix(command + ': error: ')}", hint, transient=lost)
        return ended.stdout

    def _config(self) -> dict[str, str]:
        """Settings of the cluster by name."""
        pairs = (line.partition("=") for line in self._call("scontrol", "show", "config").splitlines())
        return {name.strip(): value.strip() for name, _, value in pairs}

    def _check_partition(self) -> Finding:
        named = [f"--partition={self._partition}"] if self._partition else []
        printed = self._call("sinfo", "--noheader", "--format=%R|%a|%D", *named).split()
        up = [row.split("|") for row in printed if row.split("|")[1] == "up"]
        if not up:
            hint = "name a partition that is up: sinfo lists them"
            return Finding("partition", present=False, detail=self._partition or "none is up", hint=hint)
        detail = ", ".join(f"{name}: {nodes} nodes" for name, _, nodes in up)
        return Finding("partition", present=True, detail=detail)

    @staticmethod
    def _check_tracking(config: Mapping[str, str]) -> Finding:
        kind = config.get("ProctrackType", "?")
        if kind == "proctrack/cgroup":
            return Finding("process tracking", present=True, detail=kind)
        detail = f"{kind}; what leaves its session is looked for when ranks are over, but not at a time limit"
        return Finding("process tracking", present=True, detail=detail)

    def _check_directory(self) -> Finding:
        existing = next(path for path in (self._store.directory, *self._store.directory.parents) if path.exists())
        if not os.access(existing, os.W_OK):
            hint = "name a directory on a file system that all nodes share"
            return Finding("directory", present=False, detail=f"{existing} cannot be written", hint=hint)
        detail = f"{self._store.directory}, which all nodes have to reach by this path"
        return Finding("directory", present=True, detail=detail)


def _is_open(state: Mapping[str, Any]) -> bool:
    """Whether a run may still have to be submitted."""
    return state["state"] in {"prepared", "submitting"}


def _ask_to_stop(directory: Path) -> None:
    """Have a job that begins from now on end at once."""
    try:
        supervisor.write_state(directory, {"at": time.time()}, supervisor.STOP_FILE)
    except OSError as error:
        raise EngineError(f"cannot write in {directory}: {error}", "see to its disk", transient=True) from error


def _submitted(identifier: str) -> dict[str, str]:
    return {"state": "submitted", "job": identifier}


def _fields(line: str) -> dict[str, str]:
    """What scontrol prints on a line, as far as values have no blanks."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def _unavailable(node: Mapping[str, str] | None) -> str:
    """Why a node is given no jobs, by its state as scontrol prints it, as ``IDLE+DRAIN`` or ``DOWN*``; else nothing."""
    if node is None:
        return "Slurm knows no such node; nodes are called as there (NodeName)"
    state = node.get("State", "")
    return state.lower() if _CLOSED.search(state) else ""


def _exit_code(code: int) -> int:
    """An exit code as a shell says it; negative for a signal."""
    return _SIGNAL_BASE - code if code > _SIGNAL_BASE else code


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""
