"""Which policy a job is to come to, and by which stages: of all that may be, the one that makes most steps soon."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from kuayu.resilience.adjustment import dividing
from kuayu.resilience.adjustment.law import Law, Pace, Policy
from kuayu.resilience.adjustment.scene import Running
from kuayu.resilience.adjustment.staging import Rules, Stage, Timetable, timetable
from kuayu.resilience.adjustment.ways import best_pace

HORIZON = 6.0
"""Windows ahead over which steps are counted; load and latency change again some time."""

GOOD, ENOUGH = 0.96, 0.93
"""Shares of the best rate that a policy is to make, rather than to save a pause; and at least."""

TOLERANCES = (0.02, 0.0)
"""Shares by which a division may take longer than the best one, where it moves fewer parts."""

GENTLE, FULL = 0.45, 0.85
"""Shares of what may be lost that stages are spread for: less where it costs few steps to lose less."""

GENTLE_ENOUGH = 0.475
"""Share of what may be lost that counts as little."""

PATIENT = 0.97
"""Share of the steps that a gentle way has to make."""

MOST_STAGES = 64
"""Of one change."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best policy at some levels.

    Attributes:
        step_s: Seconds of its slowest domain.
        pace: Of its way.
        rate: Steps a second.
    """

    step_s: float
    pace: Pace
    rate: float


def best(law: Law, total: int) -> Best:
    """The best policy for so many parts at a law's levels."""
    step_s = law.step_s(dividing.best(law.finite, total))
    pace = best_pace(law, step_s)
    return Best(step_s, pace, pace.rate(step_s))


@dataclass(frozen=True, slots=True)
class Option:
    """How a job may come to another policy.

    Attributes:
        timetable: Stages with their begin.
        allowed: Whether no window loses more than may be lost.
        near: Rate at last, as a share of the best one at the levels that are ahead.
        steps: That are made until the horizon.
    """

    timetable: Timetable
    allowed: bool
    near: float
    steps: float


def plan(job: Running, aim: Best, rules: Rules) -> Option | None:
    """The timetable of most steps among those that are allowed and come near the best policy.

    Args:
        job: Which.
        aim: The best policy at the levels that are ahead.
        rules: What may be lost.

    Returns:
        None where there is no other policy to come to.
    """
    rate, soon = job.now.rate(job.policy), job.soon.rate(job.policy)
    gentle, full = (replace(rules, allowance=share * rules.allowance) for share in (GENTLE, FULL))
    found: list[Option] = []
    for target in _targets(job, aim):
        near = job.soon.rate(target) / aim.rate if aim.rate > 0.0 else 1.0
        for stages in _ways_there(job, target, full):
            slow = timetable(stages, rate, soon, gentle)
            at_once = len(stages) == 1 and slow.after_s[0] <= 0.0 and slow.loss <= gentle.allowance
            for made in (slow,) if at_once else (slow, timetable(stages, rate, soon, full)):
                allowed = rate <= 0.0 or made.loss <= rules.allowance
                found.append(Option(made, allowed, near, made.steps(soon, HORIZON * rules.window_s)))
            if at_once:
                break  # nothing is gained by stages
    return _chosen(found, GENTLE_ENOUGH * rules.allowance)


def _chosen(found: list[Option], gentle: float) -> Option | None:
    """The option of most steps in the best group that has any; of little loss, where that costs few steps."""
    for allowed, near in ((True, GOOD), (True, ENOUGH), (False, GOOD), (False, 0.0)):
        group = [each for each in found if each.allowed >= allowed and each.near >= near]
        if group and not allowed:
            return min(group, key=lambda each: (each.timetable.loss, -each.steps))
        if group:
            most = max(group, key=lambda each: each.steps)
            gently = [each for each in group if each.timetable.loss <= gentle and each.steps >= PATIENT * most.steps]
            return max(gently, key=lambda each: each.steps) if gently else most
    return None


def _targets(job: Running, aim: Best) -> Iterator[Policy]:
    """Policies that are worth a look: the way in force or the best one, parts as they are or divided anew."""
    divisions = [job.policy.parts]
    divisions += [
        tuple(dividing.near(job.policy.parts, job.soon.finite, aim.step_s * (1.0 + tolerance)))
        for tolerance in TOLERANCES
    ]
    ways = dict.fromkeys((job.policy.way, aim.pace.way))
    targets = [Policy(parts, way) for way in ways for parts in dict.fromkeys(divisions)]
    others = [target for target in targets if target != job.policy]
    if others or job.outlook == job.policy:
        yield from others
    else:
        yield job.policy  # which takes back what is planned


def _ways_there(job: Running, target: Policy, rules: Rules) -> Iterator[list[Stage]]:
    """Stages that lead to a policy: all at once, parts in several goes, and the switch before or after."""
    yield _stages(job, [target])
    now, moved = job.policy, dividing.moves(job.policy.parts, target.parts)
    if not moved:
        return
    may = rules.allowance * rules.window_s
    fewest = ceil(min(moved * job.move_s / may, MOST_STAGES)) if may > 0.0 else MOST_STAGES
    switches = target.way != now.way
    for goes in dict.fromkeys(min(each, moved, MOST_STAGES) for each in (max(1, fewest), fewest + 1, 2 * fewest)):
        between = [
            tuple(dividing.toward(now.parts, target.parts, job.soon.finite, moved * go // goes))
            for go in range(1, goes)
        ]
        divisions = [*between, target.parts]
        if not switches:
            if goes > 1:
                yield _stages(job, [Policy(parts, now.way) for parts in divisions])
            continue
        yield _stages(job, [Policy(now.parts, target.way), *(Policy(parts, target.way) for parts in divisions)])
        yield _stages(job, [*(Policy(parts, now.way) for parts in divisions), target])


def _stages(job: Running, policies: list[Policy]) -> list[Stage]:
    made, before = [], job.policy
    for policy in policies:
        pause = dividing.moves(before.parts, policy.parts) * job.move_s
        pause += job.switch_s if policy.way != before.way else 0.0
        made.append(Stage(policy, pause, job.now.rate(policy), job.soon.rate(policy)))
        before = policy
    return made
