"""Ways in which one job can go on, with what each is expected to cost in work of the whole job.

A second in which a part of the replicas makes no step costs that part; work that is done again costs what it took.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kuayu.resilience.recovery.roads import Road, Roads
from kuayu.resilience.recovery.scene import Broken

GO_ON, REPLACE, RESTORE, WAIT = "go_on", "replace", "restore", "wait"

NODES_BACK_S = 1800.0
"""Seconds until nodes are there that are not there now. Nothing in a request tells; that is a guess."""

WHOLE_S, PAST_S = 300.0, 600.0
"""Seconds in which a job is to be whole, and to be past what it had done (RES-003, RES-004)."""

_WORST_S = 2 * NODES_BACK_S + WHOLE_S + PAST_S
"""What it costs to stand still: nodes may come back one by one, so for longer than until the first ones do."""

SPARE_S = 2.0
"""Seconds of a job's work that a spare node is worth to whom the next fault hits: a guess, so that of two ways that are
nearly as good the one that takes fewer is taken."""


@dataclass(frozen=True, slots=True)
class Option:
    """A way to go on.

    Attributes:
        strategy: As the standard names it.
        fewest: Replicas that have to get nodes, else it is no way.
        most: Replicas that get nodes where nobody else takes them.
        domain: Where from.
        own: Fit nodes of the job's own that can be used for that.
        road: What the copy is read from and travels over; None where none is.
        age_s: Of the copy.
        cost_s: Expected, in seconds of the whole job's work.
        resumes_s: When it is expected to make a step that it had not made before; None where nobody knows.
    """

    strategy: str
    fewest: int = 0
    most: int = 0
    domain: str = ""
    own: int = 0
    road: Road | None = None
    age_s: float = 0.0
    cost_s: float = 0.0
    resumes_s: float | None = None

    def spares(self, job: Broken, count: int) -> int:
        """Free nodes that it takes to give so many replicas theirs."""
        return max(0, count * job.nodes_each - self.own)


def options(job: Broken, free: Mapping[str, int], over: Roads) -> Iterator[Option]:
    """All ways of a job, the least daring first.

    Args:
        job: That has broken replicas.
        free: Free nodes by domain, without its own.
        over: Stores and links, with what is planned over them.
    """
    if job.stands:
        yield Option(WAIT, cost_s=_WORST_S + _given_up_s(job))
    else:
        yield _kept(job, Option(GO_ON), 0)
    if job.whole:
        most = min(job.lacking, (job.left_over + free.get(job.domain, 0)) // job.nodes_each)
        fewest = max(1, job.least - len(job.whole))
        if most >= fewest:
            yield _kept(job, Option(REPLACE, fewest, most, job.domain, job.left_over), most)
    if job.fenced_s is not None:
        fit = job.fit
        for source, age_s in job.copies:
            for target in (source, *over.links.get(source, ())):
                own = fit if target == job.domain else 0
                most = min(job.replicas, (own + free.get(target, 0)) // job.nodes_each)
                if most >= job.least:
                    yield _restored(job, (source, target), age_s, own, most, over)


def best(job: Broken, free: Mapping[str, int], over: Roads) -> Option:
    """The way that is expected to cost least; of equal ones the first."""
    return min(options(job, free, over), key=lambda each: each.cost_s)


def judged(job: Broken, way: Option, count: int, over: Roads) -> Option:
    """A way with what it costs and when the job resumes, where so many replicas get nodes."""
    if way.strategy == WAIT:
        return way
    if way.road is None:
        return _kept(job, way, count)
    again = _restored(job, way.road, way.age_s, way.own, count, over)
    return replace(way, cost_s=again.cost_s, resumes_s=again.resumes_s)


def _given_up_s(job: Broken) -> float:
    """Work that is lost even if the job waits: all since its youngest copy, where no replica can have lived on."""
    if job.whole or job.unheard:
        return 0.0
    return min((age_s for _, age_s in job.copies), default=0.0)


def _kept(job: Broken, way: Option, count: int) -> Option:
    """A way that keeps the state of whole replicas: no work is done twice."""
    whole = len(job.whole)
    stop_s = job.regroup_s if job.broken else 0.0
    ready_s = count * job.state_bytes / job.node_rate + job.start_s + job.regroup_s if count else 0.0
    if job.stands:
        past_s = lost_s = ready_s
    else:
        past_s = stop_s
        lost_s = stop_s + (job.regroup_s if count else 0.0) + ready_s * (job.replicas - whole) / job.replicas
    cost_s = _cost_s(job, lost_s, ready_s, past_s, whole + count) + SPARE_S * way.spares(job, count)
    return replace(way, cost_s=cost_s, resumes_s=past_s)


def _restored(job: Broken, road: Road, age_s: float, own: int, count: int, over: Roads) -> Option:
    """A way back to what a copy holds; what it slows down beside it counts too."""
    travel_s, others_s = over.seconds(road, job.state_bytes)
    ready_s = (job.fenced_s or 0.0) + travel_s + job.start_s
    past_s = ready_s + age_s * job.replicas / count
    cost_s = _cost_s(job, ready_s + age_s + others_s, ready_s, past_s, count)
    cost_s += SPARE_S * max(0, count * job.nodes_each - own)
    return Option(RESTORE, job.least, count, road[1], own, road, age_s, cost_s, past_s)


def _cost_s(job: Broken, lost_s: float, ready_s: float, past_s: float, running: int) -> float:
    """What is lost until it is whole, and what it costs to be late."""
    missing = (job.replicas - running) / job.replicas
    late_s = WHOLE_S if missing or ready_s > WHOLE_S else 0.0
    return lost_s + NODES_BACK_S * missing + late_s + (PAST_S if past_s > PAST_S else 0.0)
