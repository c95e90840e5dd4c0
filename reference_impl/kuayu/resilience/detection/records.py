"""What the fault detector is given and what it says: arrays with one row for each node, rank, job, link or domain.

1. All instants are seconds of the receiver's clock, but for ``Beats.sent``, which is the sender's own and may be wrong.
2. States are small integers: places in the tuples of their names.
3. What was not measured or never happened is NaN.
"""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Instants = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.intp]
States = NDArray[np.int8]

NODE_STATES = ("alive", "suspected", "dead", "unknown")
"""Names of the states of a node; arrays hold positions in it. ``unknown``: never heard, or behind a silent domain."""

DOMAIN_STATES = ("reachable", "unreachable")
LINK_STATES = ("good", "degraded", "unknown")
JOB_STATES = ("running", "hung", "blocked", "unknown")
"""``blocked``: no steps, but a node of the job is not alive; ``unknown``: too few steps yet."""

RANK_STATES = ("steady", "straggler", "unknown")

ALIVE, SUSPECTED, DEAD, UNKNOWN = range(len(NODE_STATES))
REACHABLE, UNREACHABLE = range(len(DOMAIN_STATES))
GOOD, DEGRADED, UNMEASURED = range(len(LINK_STATES))
RUNNING, HUNG, BLOCKED, UNPACED = range(len(JOB_STATES))
STEADY, STRAGGLER, UNJUDGED = range(len(RANK_STATES))


def _none() -> Places:
    return np.zeros(0, np.intp)


@dataclass(frozen=True, slots=True)
class Population:
    """Nodes, jobs and links that are watched.

    Attributes:
        domain: Index of the domain of each node, shape (nodes,).
        domains: How many domains there are.
        rank_job: Index of the job of each rank, shape (ranks,).
        rank_node: Row of the node on which each rank runs, shape (ranks,).
        jobs: How many jobs there are.
        links: How many links there are.
    """

    domain: Places
    domains: int
    rank_job: Places = field(default_factory=_none)
    rank_node: Places = field(default_factory=_none)
    jobs: int = 0
    links: int = 0


@dataclass(frozen=True, slots=True)
class Origins:
    """Where each row was before the watched changed; −1 for a new one. None: those rows are as they were."""

    nodes: Places | None = None
    domains: Places | None = None
    ranks: Places | None = None
    jobs: Places | None = None
    links: Places | None = None


@dataclass(frozen=True, slots=True)
class Beats:
    """Heartbeats in any order, shape (beats,) each.

    Attributes:
        node: Row of the sender.
        sequence: Number that the sender counts up by one with each beat; it begins anew when the sender restarts.
        sent: The sender's clock, s; steps and drift do no harm.
        received: The receiver's clock, s.
    """

    node: Places
    sequence: NDArray[np.int64]
    sent: Instants
    received: Instants

    def __getitem__(self, which: NDArray[np.intp] | Flags) -> Self:
        """Some of the beats."""
        return type(self)(self.node[which], self.sequence[which], self.sent[which], self.received[which])


@dataclass(frozen=True, slots=True)
class Steps:
    """Progress of ranks, in any order, shape (reports,) each: the rank, the step it has done, and when that was heard.

    ``undone`` is when the rank was last heard not to have done it, NaN where it never was; None where steps are heard
    when they are done. A rank that is asked now and then how far it is has done the step at some time between the two.

    Ranks of a synchronous job should report when their own part of the step is done, before they wait for others;
    otherwise all report at once, and which of them is slow cannot be seen.
    """

    rank: Places
    step: NDArray[np.int64]
    received: Instants
    undone: Instants | None = None


@dataclass(frozen=True, slots=True)
class Measurements:
    """Measurements of links, in any order, shape (measurements,) each; NaN where a quantity was not measured.

    Attributes:
        link: Row of the link.
        round_trip: In s.
        bandwidth: In bit/s.
        loss: Share of packets lost, 0 to 1.
        received: When the measurement was heard, s.
    """

    link: Places
    round_trip: Instants
    bandwidth: Instants
    loss: Instants
    received: Instants


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator decides.

    Attributes:
        alarms: False verdicts ``dead`` that are put up with, for each node and day; the threshold follows from it.
        hang_alarms: The same of ``hung``, for each job and day.
        suspicion: Accrued suspicion (φ) above which a node is suspected.
        limit: Seconds of silence of a node, while others of its domain are heard, beyond which it is out of order
            whatever has been learnt: RES-002 asks for an answer within 3 s.
        period: Seconds between heartbeats that are taken for usual before anything is heard.
        half_life: Seconds in which the penalty of flapping falls by half.
        patience: Seconds of silence that are granted at most to a node since it has come and gone before.
    """

    alarms: float = 0.05
    hang_alarms: float = 0.1
    suspicion: float = 3.0
    limit: float = 2.25
    period: float = 0.5
    half_life: float = 900.0
    patience: float = 60.0


@dataclass(frozen=True, slots=True)
class Report:
    """What holds at an instant. States are positions in the tuples of their names; ``since`` are instants in s.

    Attributes:
        now: The instant.
        node: State of each node.
        node_since: Since when it is in that state.
        node_begun: When each sender last began to count anew; NaN where it never did.
        silence: Seconds since the last sign of life of each node; NaN where there was none.
        limit: Seconds of silence beyond which a node is out of order whatever has been learnt.
        suspicion: φ of each node: −log10 of the probability that a live one is silent for so long.
        threshold: φ from which each node is dead, unless it is held back.
        flapping: Whether a node has come and gone so often that it is not to be relied upon.
        domain: State of each domain.
        domain_since: Since when.
        silent_share: Share of each domain's nodes that are late at this instant.
        link: State of each link, and since when in ``link_since``.
        job: State of each job, and since when in ``job_since``.
        job_pause: Seconds for which each job could have made a step and did not; NaN where it never made one.
        job_longest: Seconds that the longest of its last ten thousand steps took.
        job_begun: When each job was last seen to have begun anew with lower steps; NaN where it never did, and in
            ``job_begun_step`` the step that it had done by then.
        job_suspicion: φ of each job's pause between steps.
        rank: State of each rank, and since when in ``rank_since``.
        behind: How much later each rank is than its peers, as a share of the time of a step.
    """

    now: float
    node: States
    node_since: Instants
    node_begun: Instants
    silence: Instants
    limit: Instants
    suspicion: Floats
    threshold: Floats
    flapping: Flags
    domain: States
    domain_since: Instants
    silent_share: Floats
    link: States
    link_since: Instants
    job: States
    job_since: Instants
    job_pause: Instants
    job_longest: Instants
    job_begun: Instants
    job_begun_step: NDArray[np.int64]
    job_suspicion: Floats
    rank: States
    rank_since: Instants
    behind: Floats


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why something is in the state that it is in.

    Attributes:
        state: Name of the state.
        since: When it began, s.
        suspicion: φ, or what else has accrued.
        threshold: What it is compared with.
        evidence: Sentences, the weightiest first.
    """

    state: str
    since: float
    suspicion: float
    threshold: float
    evidence: tuple[str, ...]
