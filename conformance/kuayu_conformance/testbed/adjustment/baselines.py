"""Adjusters to compare with: one who keeps every policy, and one who changes all at once.

The second one names what the clause calls changes, and gives every job that would make less than nine tenths the best
policy of the levels now in one change, whatever it costs.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kuayu_conformance.testbed.adjustment.levels import Motion
from kuayu_conformance.testbed.adjustment.reading import AskedJob, Level, jobs, levels
from kuayu_conformance.testbed.adjustment.run import Adjuster
from kuayu_conformance.testbed.adjustment.scores import ENOUGH

if TYPE_CHECKING:
    from kuayu_schemas import documents

KEPT, AT_ONCE = "every policy kept", "all changes at once"
_METHOD: "documents.AdjustmentMethod" = {"name": "opponent", "version": "1"}


def at_once(request: "documents.AdjustmentRequest") -> "documents.Adjustment | None":
    """What is best at the levels now, at once; no answer where nothing has changed."""
    current = list(levels(request))
    changed = [level for level in current if level.motion is Motion.CHANGED]
    if not changed:
        return None
    return {
        "revision": request["revision"],
        "method": _METHOD,
        "triggers": [_trigger(level) for level in changed],
        "jobs": [_job(job) for job in jobs(request, current)],
    }


def _trigger(level: Level) -> "documents.AdjustmentTrigger":
    trigger: documents.AdjustmentTrigger
    trigger = {"kind": level.kind, "domain": level.domain, "before": level.before, "now": level.now}
    return trigger if level.target is None else {**trigger, "target": level.target}


def _job(job: AskedJob) -> "documents.JobAdjustment":
    stays, goes = job.rate(job.outlook), job.best_rate
    change = stays < ENOUGH * goes
    return {
        "job": job.id,
        "rate": job.rate(job.in_force),
        "expected_rate": goes if change else stays,
        "changes": [_change(job)] if change else [],
    }


def _change(job: AskedJob) -> "documents.PolicyChange":
    policy = job.best
    order = [job.domains[place] for place in policy.order]
    return {
        "after": 0.0,
        "parts": list(policy.parts),
        "collective": policy.way.collective,
        "period": policy.way.period,
        "order": order,
    }


ADJUSTERS: Mapping[str, Adjuster | None] = {KEPT: None, AT_ONCE: at_once}
"""Who adjusts; None where nobody does."""
