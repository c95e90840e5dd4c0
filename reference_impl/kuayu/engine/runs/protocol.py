"""What an engine does with runs. A run is one attempt of a job in one domain.

1. Every call is idempotent: whoever asks again after a broken connection or a restart gets the same answer, and
   nothing is started twice. The identity of a run is its name, which is never used for another run: ``prepare`` refuses
   another run by the name of one that is known.
2. A run is all or none: if one of its processes fails or its node is lost, the engine ends the others.
3. ``stop`` returns only when nothing of the run is alive any more, or raises; a run that has ended stays ended. One
   that was prepared and is stopped has ended too: a start that comes late changes nothing.
4. What an engine has started outlives the process that called it, and is found again by the next one.
5. Logs are lines in order, numbered from one without gaps; a reader goes on after the last number that it has.

Processes find their place by the variables that torch.distributed's ``env://`` rendezvous reads (MASTER_ADDR,
MASTER_PORT, WORLD_SIZE, RANK, LOCAL_RANK; https://pytorch.org/docs/stable/distributed.html), and by those of
:func:`environment`. All processes of a run on a node see the same devices, those that the run has there, and LOCAL_RANK
says which is whose, as torchrun and Ray Train have it: a program that calls ``set_device(LOCAL_RANK)`` works unchanged.
An engine that chooses the devices itself names them in KUAYU_DEVICES, by number and with commas between.

>>> engine = find("local", Path("runs"))                                             # doctest: +SKIP
>>> engine.prepare(run); engine.start(run)                                           # doctest: +SKIP
>>> engine.status(run.name).state                                                    # doctest: +SKIP
<RunState.RUNNING: 'running'>
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

GRACE_SECONDS = 10.0
"""Seconds between SIGTERM and SIGKILL: time to write what is left to write. Kubernetes waits 30, as does Slurm
(KillWait); whoever has a longer checkpoint says so in the run."""


class RunState(StrEnum):
    """How a run stands."""

    PREPARED = "prepared"
    """Everything that it needs is there; nothing of it has been started."""
    STARTING = "starting"
    """It has been handed over and waits for its nodes, images or other processes."""
    RUNNING = "running"
    """All its processes run."""
    SUCCEEDED = "succeeded"
    """All its processes have ended with exit code zero."""
    FAILED = "failed"
    """A process has ended otherwise, or could not be started; the others have been ended."""
    STOPPED = "stopped"
    """It was ended because somebody asked for that."""
    UNKNOWN = "unknown"
    """The engine cannot tell now; ask again."""


ENDED = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.STOPPED})
"""States that last."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Devices of a node that a run may use.

    Attributes:
        node: The node, by the name that the domain registered it with.
        devices: How many of its devices; a positive number.
    """

    node: str
    devices: int


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """Where the processes of a job meet, in all domains alike.

    Attributes:
        address: Host name or address of rank zero's node, as other nodes reach it.
        port: TCP port there; zero for one that the engine finds free, possible where all processes are the run's own.
        rank_offset: Ranks that lie in domains before this one.
        world_size: Processes of the job in all domains; zero where it is that of this run alone.
    """

    address: str = "127.0.0.1"
    port: int = 0
    rank_offset: int = 0
    world_size: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt of a job in one domain.

    Attributes:
        name: Identity of the run: ``JOB.ATTEMPT``, or any other identifier that is never used again.
        job: The job.
        attempt: Which attempt, from one.
        command: Program and arguments, as exec takes them; at least one.
        placements: Nodes and devices that it may use, at least one, rank order.
        image: Container image; None to run on the node itself. An engine that has no containers refuses it.
        environment: Variables beside those of :func:`environment`, which prevail.
        working_directory: Where processes begin; None for a directory of the run's own.
        code: URI of a bundle (``file:``, ``https:``, ``git+https:``) that is unpacked into the working directory before
            the start; None for none.
        processes_per_node: Processes on each node; zero for one for each device.
        rendezvous: Where they meet.
        checkpoint: URI or path where the job writes its checkpoints and finds the last one; None where it has none.
        step: Last step of which a checkpoint is known; zero at the beginning.
        sync_period: Steps between reconciliations where it is spread over domains periodically; zero otherwise.
        grace_seconds: Seconds between being asked to end and being ended.
    """

    name: str
    job: str
    attempt: int
    command: Sequence[str]
    placements: Sequence[Placement]
    image: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    working_directory: str | None = None
    code: str | None = None
    processes_per_node: int = 0
    rendezvous: Rendezvous = field(default_factory=Rendezvous)
    checkpoint: str | None = None
    step: int = 0
    sync_period: int = 0
    grace_seconds: float = GRACE_SECONDS

    @property
    def processes(self) -> list[tuple[Placement, int]]:
        """Each process in rank order: where it runs, and its number on that node."""
        return [
            (placement, number)
            for placement in self.placements
            for number in range(self.processes_per_node or placement.devices)
        ]


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How a run stands.

    Attributes:
        state: In one word.
        reason: Why, for people; empty where there is nothing to say.
        exit_code: Of the process that decided it; negative for a signal; None before.
    """

    state: RunState
    reason: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a process has printed.

    Attributes:
        number: Place among all lines of the run, from one.
        rank: Which process, from zero within the job.
        text: The line without its end; at most ``MAX_LINE_CHARACTERS``.
        read_at: Seconds since 1970 when the engine read it.
    """

    number: int
    rank: int
    text: str
    read_at: float


MAX_LINE_CHARACTERS = 2048
"""Characters of a log line that are kept, as in the standard's class LogLine."""


class EngineError(Exception):
    """An engine cannot do what it is asked.

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


class NodeUnavailableError(EngineError):
    """A node that a run was placed on is not there, or takes nothing now: no fault of the run."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that an engine needs, and whether it is there.

    Attributes:
        subject: What was looked at.
        present: Whether it is as it has to be.
        detail: What was found.
        hint: What to do where it is not.
    """

    subject: str
    present: bool
    detail: str = ""
    hint: str = ""


class Engine(Protocol):
    """Runs jobs in one domain. Methods may be called from several threads; none waits longer than it says."""

    name: str

    def check(self) -> list[Finding]:
        """What the engine needs and whether it is there, without starting anything."""

    def unavailable_nodes(self, nodes: Sequence[str], /) -> dict[str, str]:
        """Those of some nodes that can be given nothing now, each with why; none where the engine cannot see nodes.

        Raises:
            EngineError: What runs jobs does not answer.
        """

    def prepare(self, run: Run) -> None:
        """Make sure that a run can be started, and fetch what it needs; nothing of it is running then.

        Raises:
            NodeUnavailableError: One of its nodes can be given nothing now.
            EngineError: It can not, and why; or another run has this name.
        """

    def start(self, run: Run) -> None:
        """Start a run that was prepared; it may still be starting when this returns. Started again, it stays as it is.

        Raises:
            EngineError: It was not started, or never prepared; nothing of it is running.
        """

    def stop(self, name: str, grace_seconds: float | None = None) -> None:
        """End a run; when this returns nothing of it is alive. One that is unknown or has ended stays as it is.

        Args:
            name: Of the run.
            grace_seconds: Between being asked to end and being ended; the run's own where None.

        Raises:
            EngineError: Whether something of it is alive cannot be told.
        """

    def status(self, name: str) -> RunStatus:
        """How a run stands; unknown, with a reason, where there is none of that name."""

    def logs(self, name: str, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """Lines of a run in order, those after a number; empty where there are none yet."""

    def runs(self) -> list[str]:
        """Names of all runs that the engine still knows, also of those that an earlier process started."""

    def forget(self, name: str) -> None:
        """Remove what is left of a run that has ended: directory, logs, objects. One that has not is an EngineError."""


def environment(run: Run, rank: int, local_rank: int, local_world_size: int) -> dict[str, str]:
    """Variables of one process of a run, those of the run included.

    Args:
        run: The run.
        rank: Which of the run's processes, from zero within this domain.
        local_rank: Which on its node, from zero.
        local_world_size: Processes on its node.
    """
    meeting = run.rendezvous
    world = meeting.world_size or len(run.processes)
    own = {
        "MASTER_ADDR": meeting.address,
        "MASTER_PORT": str(meeting.port),
        "WORLD_SIZE": str(world),
        "RANK": str(meeting.rank_offset + rank),
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(local_world_size),
        "KUAYU_JOB": run.job,
        "KUAYU_ATTEMPT": str(run.attempt),
        "KUAYU_RUN": run.name,
        "KUAYU_STEP": str(run.step),
    }
    if run.checkpoint is not None:
        own["KUAYU_CHECKPOINT"] = run.checkpoint
    if run.sync_period:
        own["KUAYU_SYNC_PERIOD"] = str(run.sync_period)
    return {**run.environment, **own}


IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
"""The standard's identifiers: they can stand in a path or a label as they are."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_MAX_PORT = 65535


def validate(run: Run) -> None:
    """Refuse a run that no engine could carry out as it says.

    Raises:
        EngineError: What is wrong with it.
    """
    for subject, name in (("run", run.name), ("job", run.job)):
        if not IDENTIFIER.fullmatch(name):
            raise EngineError(f"{name!r} is no name of a {subject}", "letters, digits and ._- only, at most 128")
    if not run.command or not run.command[0]:
        raise EngineError(f"run {run.name} has no command", "name a program and its arguments")
    nodes = [placement.node for placement in run.placements]
    if not nodes:
        raise EngineError(f"run {run.name} has no node", "name at least one node and its devices")
    if twice := sorted({node for node in nodes if nodes.count(node) > 1}):
        raise EngineError(f"node {twice[0]} stands twice among the placements", "name it once, with all its devices")
    if any(placement.devices < 1 for placement in run.placements) or run.processes_per_node < 0:
        raise EngineError(f"run {run.name} has a node without devices or processes", "at least one on each node")
    if wrong := sorted(name for name in run.environment if not _VARIABLE.fullmatch(name)):
        raise EngineError(f"{wrong[0]!r} is no name of a variable", "letters, digits and _ only, no digit first")
    texts = [*run.command, *run.environment.values(), run.working_directory or "", run.checkpoint or "", *nodes]
    if any("\0" in text for text in texts):
        raise EngineError(
            f"run {run.name} has a text with a zero character", "leave it out: no program can be given it"
        )
    if run.grace_seconds < 0:
        raise EngineError(f"run {run.name} has a negative grace period", "zero or more seconds")
    _validate_rendezvous(run)


def _validate_rendezvous(run: Run) -> None:
    meeting, processes = run.rendezvous, len(run.processes)
    if not 0 <= meeting.port <= _MAX_PORT:
        raise EngineError(f"{meeting.port} is no TCP port", "1 to 65535, or 0 for one that is free")
    if meeting.rank_offset < 0 or (meeting.world_size and meeting.world_size < meeting.rank_offset + processes):
        raise EngineError(
            f"{processes} processes from rank {meeting.rank_offset} on do not fit into a world of {meeting.world_size}",
            "count the processes of the job in all domains",
        )
    if meeting.port == 0 and (meeting.world_size or processes) != processes:
        raise EngineError(
            f"the processes of run {run.name} meet those of other domains at no known port",
            "name the port in the rendezvous; only where all are of one run can an engine find a free one",
        )
