"""What a watch says: which faults begin and which are over."""

from dataclasses import dataclass

from kuayu.resilience.detection import Explanation
from kuayu_schemas.models import FaultKind

DEAD = FaultKind.node_dead.value
FAILING = FaultKind.node_failing.value
UNREACHABLE = FaultKind.domain_unreachable.value
HUNG = FaultKind.job_hung.value
STRAGGLING = FaultKind.rank_straggling.value


@dataclass(frozen=True, slots=True)
class Subject:
    """What a fault is about, and of which kind it is; there is never more than one open fault about a subject.

    Attributes:
        kind: A value of ``FaultKind``.
        domain: The domain that cannot be reached, or that of the node.
        node: The node, or that of the rank.
        job: The job, or that of the rank.
        rank: The rank.
    """

    kind: str
    domain: str | None = None
    node: str | None = None
    job: str | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A fault begins, or is over.

    Attributes:
        subject: What it is about.
        open: Whether it begins.
        since: From when on it is taken to last, or when it was over; Unix seconds.
        because: What it was told from, for people.
        code: Which fault a log told, such as ``xid.79``.
        domains: Those of the ranks of a job that hangs.
    """

    subject: Subject
    open: bool
    since: float
    because: str
    code: str | None = None
    domains: tuple[str, ...] = ()


GONE = "it is no longer watched"

SENTENCES = 3
"""What is said of a fault at most, the weightiest first."""


def begins(subject: Subject, since: float, why: Explanation, domains: tuple[str, ...] = ()) -> Change:
    """A fault begins that the detector explains."""
    return Change(subject, open=True, since=since, because="; ".join(why.evidence[:SENTENCES]), domains=domains)


def over(subject: Subject, since: float, because: str) -> Change:
    """A fault is over."""
    return Change(subject, open=False, since=since, because=because)
