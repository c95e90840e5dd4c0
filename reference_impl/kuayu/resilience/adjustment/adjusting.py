"""Adjustments on the wire: what has changed, and what becomes of the policy of each job."""

from typing import Any

from kuayu.resilience.adjustment.checking import check_adjustment
from kuayu.resilience.adjustment.deciding import Decision, decide
from kuayu.resilience.adjustment.explaining import reasons
from kuayu.resilience.adjustment.scene import Network, Running, levels_of, running
from kuayu.resilience.adjustment.staging import Rules

METHOD = {"name": "kuayu-staged-rebalancing", "version": "1.0.0"}


def adjustment(request: dict[str, Any]) -> dict[str, Any]:
    """Tell whether and how to adjust the policies of running jobs.

    Args:
        request: An ``AdjustmentRequest``.

    Returns:
        An ``Adjustment``. It follows from the request and from nothing else.

    Raises:
        kuayu.refusals.RepeatedName: Domains, links, jobs or the shares of a job share a name.
        kuayu.refusals.UnknownName: A share, an order or a link names a domain that is not there.
        kuayu.refusals.Impossible: Members contradict each other, or there is more than can be looked at at once.
    """
    check_adjustment(request)
    found = levels_of(request)
    network = Network(request, found.latencies_s)
    told = []
    for each in request["jobs"]:
        job = running(each, request, network, found)
        rules = Rules(request["window"], request["allowance"], job.changed_s)
        told.append(_told(job, decide(job, rules, found)))
    return {"revision": request["revision"], "method": METHOD, "triggers": found.triggers, "jobs": told}


def _told(job: Running, decision: Decision) -> dict[str, Any]:
    return {
        "job": job.name,
        "rate": decision.rate,
        "expected_rate": decision.expected_rate,
        "changes": [
            {
                "after": after,
                "parts": list(stage.policy.parts),
                "collective": stage.policy.way.kind,
                "period": stage.policy.way.period,
                "order": [job.domains[number] for number in stage.policy.way.order],
            }
            for after, stage in decision.stages
        ],
        "reasons": list(reasons(job, decision)),
    }
