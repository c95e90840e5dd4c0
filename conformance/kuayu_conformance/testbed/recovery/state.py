"""What stands when in a window: nodes, jobs, what is under way, and what became of faults."""

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from kuayu_conformance.testbed.recovery.flows import Flow
from kuayu_conformance.testbed.recovery.world import Job, World

if TYPE_CHECKING:
    from kuayu_schemas import documents

SAME = 1e-6
"""Seconds, and seconds of work, that are none."""

FIT: "documents.NodeCondition" = "fit"
FAILED: "documents.NodeCondition" = "failed"
UNREACHABLE: "documents.NodeCondition" = "unreachable"


@dataclass(slots=True)
class NodeState:
    """A node.

    Attributes:
        job: Who holds it, by number; -1 where nobody does.
        replica: Of that job.
        shown: Whether it is told of; what was free at the begin and is no spare is not.
        failed: Whether it has failed and is not repaired.
        down: Whether its domain has failed.
    """

    job: int = -1
    replica: int = -1
    shown: bool = True
    failed: bool = False
    down: bool = False


@dataclass(slots=True)
class Away:
    """A domain of which nothing is heard.

    Attributes:
        kind: Whether it failed or is cut off.
        fenced_at: When whatever ran there has stopped for certain.
    """

    kind: str
    fenced_at: float


@dataclass(slots=True)
class Incident:
    """What a fault did to a job; times in seconds, infinite while they are not over.

    Attributes:
        job: By number.
        kind: Of the first fault.
        onset: When it was.
        had: Replicas that made steps then.
        least_s: State over the greatest bandwidth at which it could have come.
        switch_s: Until it made steps with as many again.
        interruption_s: In which it made no step that it had not made before.
        lost_s: Work that was done again.
        ways: Strategies that were begun.
    """

    job: int
    kind: str
    onset: Annotated[float, Field(alias="at")]  # its name in transcripts
    had: int
    least_s: float
    switch_s: float = inf
    interruption_s: float = 0.0
    lost_s: float = 0.0
    ways: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Recovery:
    """A recovery under way.

    Attributes:
        strategy: One of the model's.
        begins_at: When.
        replicas: Nodes that each replica gets.
        source: Domain whose copy is read; -1 where none is.
        begun: Whether it has begun.
        progress: Of the copy that is read.
        flow: What is read.
    """

    strategy: str
    begins_at: float
    replicas: dict[int, tuple[int, ...]]
    source: int = -1
    begun: bool = False
    progress: float = 0.0
    flow: Flow | None = None

    @property
    def nodes(self) -> set[int]:
        """All that it gives."""
        return {node for replica in self.replicas.values() for node in replica}


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a plan said of a job's next new step, and what was: seconds from the plan."""

    strategy: str
    expected_s: float
    happened_s: float


@dataclass(slots=True)
class JobState:
    """A job; work is counted in seconds of the job when it is whole.

    Attributes:
        spec: What it is.
        number: Which.
        domain: Where it runs or ran last, by number.
        held: Nodes of each replica.
        active: Replicas that make steps, or would if nothing held them up.
        progress: Work done.
        high: The most that it ever was.
        speed: At which it works now.
        stopped: Whether it waits for a plan, or for what is under way.
        fenced: Whether it was stopped for want of a lease.
        regroups_until: Instant before which no step is made.
        pauses_until: Likewise, for a checkpoint.
        copies: Progress that the copy in a domain holds.
        travelling: Copies under way, by domain.
        paused_s: Time that checkpoints took.
        recovery: What is under way.
        incident: What is not over.
        said: Strategy, instant of the plan, and what it expected, until a new step is made.
        pausing: Whether nothing but a checkpoint holds it up.
    """

    spec: Job
    number: int
    domain: int
    held: list[tuple[int, ...]]
    active: int
    progress: float = 0.0
    high: float = 0.0
    speed: float = 1.0
    stopped: bool = False
    fenced: bool = False
    regroups_until: float = 0.0
    pauses_until: float = 0.0
    copies: dict[int, float] = field(default_factory=dict)
    travelling: dict[int, Flow] = field(default_factory=dict)
    paused_s: float = 0.0
    recovery: Recovery | None = None
    incident: Incident | None = None
    said: tuple[str, float, float] | None = None
    pausing: bool = False
    _since: float = 0.0

    @property
    def runs(self) -> bool:
        """Whether it makes steps, but for regrouping and checkpoints."""
        return not (self.stopped or self.fenced)

    @property
    def behind(self) -> float:
        """Work that it has to do again; nought where that is next to none."""
        gap = self.high - self.progress
        return gap if gap > SAME else 0.0

    def settle(self, now: float) -> None:
        """Count what was done since the last time."""
        lasted, self._since = now - self._since, now
        if lasted <= 0.0:
            return
        self.paused_s += lasted * self.pausing
        if self.incident is not None:
            self.incident.interruption_s += self._without(lasted)
        self.progress += self.speed * lasted
        self.high = max(self.high, self.progress)

    def _without(self, lasted: float) -> float:
        """How much of a time no new step was made in; a checkpoint is no interruption where one would be made."""
        if self.speed > 0.0:
            return min(lasted, self.behind / self.speed)
        return lasted if self.behind or not self.pausing else 0.0

    def go(self, now: float) -> None:
        """Work on at the speed that it has from now."""
        regroups = now < self.regroups_until - SAME
        pauses = now < self.pauses_until - SAME
        self.pausing = self.runs and pauses and not regroups
        self.speed = self.active / self.spec.replicas if self.runs and not (regroups or pauses) else 0.0


@dataclass(slots=True)
class State:
    """All of a window at an instant.

    Attributes:
        world: Which.
        now: Seconds from its begin.
        nodes: By number.
        jobs: By number.
        away: Domains that nothing is heard of, by number.
    """

    world: World
    now: float
    nodes: list[NodeState]
    jobs: list[JobState]
    away: dict[int, Away]

    def condition(self, node: int) -> "documents.NodeCondition":
        """What is known of a node."""
        if self.world.nodes[node].domain in self.away:
            return UNREACHABLE
        return FAILED if self.nodes[node].failed else FIT

    def is_whole(self, job: JobState, replica: int) -> bool:
        """Whether so many fit nodes hold a replica, as far as is known."""
        held = job.held[replica]
        if len(held) != job.spec.nodes_each or (held and self.world.nodes[held[0]].domain in self.away):
            return False
        return not any(self.nodes[node].failed for node in held)

    def broken(self, job: JobState) -> list[int]:
        """Replicas of a job that are not whole."""
        return [replica for replica in range(job.spec.replicas) if not self.is_whole(job, replica)]


def begin(world: World) -> State:
    """All jobs whole, no copy anywhere, and no free node shown."""
    nodes = [NodeState(node.job, node.replica, shown=node.job >= 0) for node in world.nodes]
    jobs = []
    for number, spec in enumerate(world.jobs):
        held: list[list[int]] = [[] for _ in range(spec.replicas)]
        for index, node in enumerate(world.nodes):
            if node.job == number:
                held[node.replica].append(index)
        jobs.append(JobState(spec, number, spec.domain, [tuple(replica) for replica in held], spec.replicas))
    return State(world, 0.0, nodes, jobs, {})
