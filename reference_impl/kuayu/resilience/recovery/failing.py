"""Failover plans on the wire: how jobs with broken replicas go on, and why."""

from typing import Any

from kuayu.resilience.recovery.checking import check_failover, check_ways
from kuayu.resilience.recovery.explaining import reasons
from kuayu.resilience.recovery.options import RESTORE
from kuayu.resilience.recovery.planning import Chosen, placed, plan
from kuayu.resilience.recovery.roads import roads
from kuayu.resilience.recovery.scene import Broken, broken_jobs, free_nodes

METHOD = {"name": "kuayu-least-lost-work", "version": "1.0.0"}


def failover_plan(request: dict[str, Any]) -> dict[str, Any]:
    """Plan how jobs go on.

    Args:
        request: A ``FailoverRequest``.

    Returns:
        A ``FailoverPlan``. It follows from the request and from nothing else.

    Raises:
        kuayu.refusals.RepeatedName: Nodes, jobs, stores, links or a job's copies share a name.
        kuayu.refusals.UnknownName: A copy is in a domain without a store.
        kuayu.refusals.Impossible: Members contradict each other, or there is more than can be looked at at once.
    """
    check_failover(request)
    jobs = broken_jobs(request)
    sources = [source for job in jobs for source, _ in job.copies]
    check_ways(request["links"], sources)
    free, over = free_nodes(request), roads(request, set(sources))
    made = plan(jobs, {domain: len(nodes) for domain, nodes in free.items()}, over)
    return {
        "revision": request["revision"],
        "method": METHOD,
        "recoveries": [
            _recovery(job, chosen, placed(job, chosen, free)) for job, chosen in zip(jobs, made, strict=True)
        ],
    }


def _recovery(job: Broken, chosen: Chosen, replicas: list[tuple[int, list[str]]]) -> dict[str, Any]:
    way = chosen.way
    told: dict[str, Any] = {
        "job": job.name,
        "strategy": way.strategy,
        "replicas": [{"replica": number, "nodes": nodes} for number, nodes in replicas],
    }
    if way.road is not None:
        told["source"] = way.road[0]
    told["after"] = job.fenced_s if way.strategy == RESTORE and job.fenced_s is not None else 0.0
    if way.resumes_s is not None:
        told["resumes"] = way.resumes_s
    told["reasons"] = list(reasons(job, chosen))
    return told
