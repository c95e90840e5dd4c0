"""What copies of jobs are worth: how often they will be read, and how often they should be taken."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

from kuayu.resilience.recovery.scene import LONGEST, SHORTEST

Plain = Mapping[str, Any]

WIDE = 0.05
"""Faults that take all replicas of a job, or its whole domain, for each failure of one of their nodes: a guess, as a
request tells of nodes alone."""

LOST_S = 200.0
"""Work that may be lost even where faults are rare, so that a job is past it in ten minutes (RES-004) together with
the time in which it is fenced, reads its copy and starts."""

PAUSED = 0.05
"""Most of a job's time that checkpoints may take for that."""

SOONEST_S = 30.0
"""Seconds that lie between checkpoints at least."""


@dataclass(frozen=True, slots=True)
class Need:
    """Of one job.

    Attributes:
        job: The ``BackedUpJob``.
        place: In the request, counted from nought.
        rank: Nought for the highest priority, one for the next, and so on.
        near_rate: Faults a second after which it is restored where its own store can be read.
        far_rate: Faults a second after which it cannot.
        period_s: Seconds between checkpoints if bandwidth were no matter.
    """

    job: Plain
    place: int
    rank: int
    near_rate: float
    far_rate: float
    period_s: float

    @property
    def least_nodes(self) -> int:
        """Nodes with which it can go on."""
        least: int = self.job["least_replicas"] * self.job["nodes_each"]
        return least


def needs(request: Plain) -> list[Need]:
    """Needs of all jobs, by priority and then in the order of the request."""
    domains = {domain["id"]: domain for domain in request["domains"]}
    ranks = {each: rank for rank, each in enumerate(sorted({-job["priority"] for job in request["jobs"]}))}
    found = [
        _need(job, place, ranks[-job["priority"]], domains[job["domain"]]) for place, job in enumerate(request["jobs"])
    ]
    return sorted(found, key=lambda need: need.rank)


def _need(job: Plain, place: int, rank: int, domain: Plain) -> Need:
    """One replica alone is restored whenever a node fails; of several, a whole one hands over its state."""
    failures = 1.0 / domain["time_between_failures"] if domain["time_between_failures"] > SHORTEST else LONGEST
    mine = float(job["replicas"] * job["nodes_each"])
    near = failures * mine * (1.0 + WIDE if job["replicas"] == 1 else WIDE)
    far = failures * max(mine, float(domain["nodes"])) * WIDE
    near, far = (min(max(each, 1.0 / LONGEST), LONGEST) for each in (near, far))
    return Need(job, place, rank, near, far, _period(job["pause"], near + far))


def _period(pause_s: float, rate: float) -> float:
    """Seconds between checkpoints at which pauses and lost work together take least.

    J. W. Young, "A first order approximation to the optimum checkpoint interval", Communications of the ACM 17, 1974;
    further terms by J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future
    Generation Computer Systems 22, 2006.
    """
    pause_s = min(pause_s, LONGEST)
    part = pause_s * rate / 2.0
    best_s = 1.0 / rate
    if part < 1.0:
        best_s = sqrt(2.0 * pause_s / rate) * (1.0 + sqrt(part) / 3.0 + part / 9.0) - pause_s
    return min(max(SOONEST_S, min(best_s, max(LOST_S, pause_s / PAUSED))), LONGEST)
