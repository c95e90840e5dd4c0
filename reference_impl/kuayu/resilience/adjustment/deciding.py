"""Whether a job is adjusted: where it must be, and where that pays off soon."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kuayu.resilience.adjustment.past import past
from kuayu.resilience.adjustment.planning import HORIZON, Option, best, plan
from kuayu.resilience.adjustment.scene import Levels, Running
from kuayu.resilience.adjustment.staging import Rules, Stage

MUST = 0.9
"""Share of the best rate below which a job is adjusted where anything has changed."""

WORTH = 0.955
"""Share of the best rate below which it is adjusted where it need not be, while what has changed is fresh."""

KEPT = 0.905
"""Share of the best rate that a job keeps over every window if it is adjusted for no fresh reason, but to be sure."""

SETTLING = 1.5
"""Windows from a change in which what it was chosen for counts as fresh; it may not have been seen fully then."""

_NEAR = 1e-6
"""Share of a rate by which the bound may be missed by rounding."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a job's policy.

    Attributes:
        rate: Steps a second of the policy in force, at the levels now.
        outlook: Of the one that would be in force at last by what is planned.
        expected_rate: Of the one that will be in force at last.
        best_rate: Of the best one; None where nobody looked.
        stages: Changes, each with when it begins; none where all stays as it was planned.
        made: What led to them.
    """

    rate: float
    outlook: float
    expected_rate: float
    best_rate: float | None = None
    stages: Sequence[tuple[float, Stage]] = ()
    made: Option | None = None


def decide(job: Running, rules: Rules, found: Levels) -> Decision:
    """Decide about a job.

    Where a load is still on its way and does not count as changed yet, that is waited for: who adjusts to half of a
    change has to adjust twice. Once it counts, all levels now become those that policies were chosen for, and what is
    left undone may stay so.

    Args:
        job: Which.
        rules: What it may lose.
        found: Levels now.
    """
    rate, outlook = job.now.rate(job.policy), job.now.rate(job.outlook)
    if found.calm or len(job.domains) == 1:
        return Decision(rate, outlook, outlook)
    total = sum(job.policy.parts)
    now = best(job.now, total)
    soon = now if job.soon is job.now else best(job.soon, total)
    stays = Decision(rate, outlook, outlook, now.rate)
    must = bool(found.triggers) and outlook < MUST * (1.0 + _NEAR) * now.rate
    near = min(_share(outlook, now.rate), _share(job.soon.rate(job.outlook), soon.rate))
    waits = not found.triggers and (job.moving or found.coming)
    if not must and (near >= WORTH or waits):
        return stays
    made = plan(job, soon, replace(rules, past=past(job, rules.window_s)))
    if made is None or not (must or (_repays(job, made, rules) and _kept(job, made, near, rules, found))):
        return stays
    stages = list(zip(made.timetable.after_s, made.timetable.stages, strict=True))
    return Decision(rate, outlook, stages[-1][1].rate, now.rate, stages, made)


def _share(rate: float, best_rate: float) -> float:
    return rate / best_rate if best_rate > 0.0 else 1.0


def _repays(job: Running, made: Option, rules: Rules) -> bool:
    """Whether more steps are made soon than without, pauses included, and no window loses too much meanwhile."""
    return made.allowed and made.steps > job.soon.rate(job.outlook) * HORIZON * rules.window_s


def _kept(job: Running, made: Option, near: float, rules: Rules, found: Levels) -> bool:
    """Whether the job keeps enough of the best rate while it is adjusted, or has a fresh reason not to."""
    settles = job.changed_s is not None and job.changed_s <= SETTLING * rules.window_s
    fresh = found.fresh or bool(found.triggers) or settles
    return fresh or near < KEPT or near * (1.0 - made.timetable.loss) >= KEPT
