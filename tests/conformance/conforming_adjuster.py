"""A small adjuster of running jobs that keeps to the text, for stories about the checks; it may be told to err.

It names what has changed. Where anything is not calm, it takes for each load and latency the median of the last three
measurements, which is sooner than the level, and gives jobs the best policy of these: those that would make less than
``MARGIN`` of its steps where something has changed, and those that would make less than ``ENOUGH`` else. It changes a
policy bit by bit, a window apart, each change no longer than ``SPENT`` of the allowance.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median

from conforming import FunctionSource
from conforming import episode as episode_of

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.episode import Episode
from kuayu_conformance.testbed.adjustment.world import Level, Motion, Policy, RequestedJob, jobs, levels

METHOD = {"name": "conforming", "version": "1"}
ENOUGH, MARGIN, SPENT = 0.9, 0.95, 0.85
LAST = 3
"""Measurements whose median is expected to stay."""

Change = Callable[[Json, Json], Json | None]
"""What becomes of an answer: request, answer; None where there is to be none."""


def unchanged(body: Json, answer: Json) -> Json:
    """The conforming answer."""
    del body
    return answer


def adjust(body: Json) -> Json:
    """The conforming answer to a request."""
    told = list(levels(body))
    changed = [each for each in told if each.motion is Motion.CHANGED]
    calm = all(each.motion is Motion.CALM for each in told)
    now, soon = jobs(body, told), jobs(body, list(_soon(body, told)))
    return {
        "revision": body["revision"],
        "method": METHOD,
        "triggers": [trigger(each) for each in changed],
        "jobs": [
            _job(body, place, *pair, calm=calm, changed=bool(changed))
            for place, pair in enumerate(zip(now, soon, strict=True))
        ],
    }


def trigger(its: Level) -> Json:
    """A load or a latency as a trigger."""
    told = {"kind": its.kind, "domain": its.domain, "before": its.before, "now": its.now}
    return told if its.target is None else {**told, "target": its.target}


def _soon(body: Json, told: list[Level]) -> Iterator[Level]:
    """What levels will be in a few seconds, if nothing changes any more."""
    values = [*(each["loads"] for each in body["domains"]), *(each["latencies"] for each in body["links"])]
    for its, measured in zip(told, values, strict=True):
        yield replace(its, now=float(median(measured[-LAST:])))


def _job(body: Json, place: int, now: RequestedJob, soon: RequestedJob, *, calm: bool, changed: bool) -> Json:
    outlook = now.final_policy
    changes: list[Json] = []
    if not calm:
        least = MARGIN if changed else ENOUGH
        goal = soon.best if soon.rate(outlook) < least * soon.best_rate else outlook
        if goal.is_like(outlook) and changed and now.rate(outlook) < ENOUGH * now.best_rate:
            goal = now.best
        if not goal.is_like(outlook):
            changes = staged(body, body["jobs"][place], now, goal)
    last = outlook
    if changes:
        last = goal
    return {
        "job": now.id,
        "rate": now.rate(now.in_force),
        "expected_rate": now.rate(last),
        "changes": changes,
    }


def staged(body: Json, told: Json, job: RequestedJob, goal: Policy) -> list[Json]:
    """Changes that lead to a policy, none of which costs more than the allowance."""
    spent = SPENT * body["allowance"] * body["window"]
    after = max(0.0, body["window"] - told["changed"]) if "changed" in told else 0.0
    changes, policy = [], job.in_force
    while not policy.is_like(goal):
        left = spent - policy.switches(goal) * job.law.switch_time
        most = max(0 if policy.switches(goal) else 1, int(left / job.law.move_time)) if job.law.move_time else 10**9
        policy = Policy(_towards(policy.parts, goal.parts, most), goal.method, goal.order)
        changes.append({"after": round(after, 6), **described(job, policy)})
        after += body["window"]
    return changes


def described(job: RequestedJob, policy: Policy) -> Json:
    """A policy as changes hold it."""
    order = [job.domains[place] for place in policy.order]
    method = {"collective": policy.method.collective, "period": policy.method.period}
    return {"parts": list(policy.parts), **method, "order": order}


def _towards(parts: tuple[int, ...], goal: tuple[int, ...], most: int) -> tuple[int, ...]:
    """A division on the way to another one, by so many parts at most."""
    made = list(parts)
    for _ in range(most):
        apart = [wanted - has for has, wanted in zip(made, goal, strict=True)]
        if not any(apart):
            break
        made[apart.index(max(apart))] += 1
        made[apart.index(min(apart))] -= 1
    return tuple(made)


def source(change: Change = unchanged, first: Callable[[Json], Json] = adjust) -> FunctionSource:
    """The adjuster, of whose answers something becomes."""
    return FunctionSource(lambda _path, body: change(body, first(body)))


def episode(
    name: str = "res_adjusting",
    change: Change = unchanged,
    first: Callable[[Json], Json] = adjust,
    *,
    nonce: str = "stories",
    full: bool = False,
) -> Episode:
    """An episode with the adjuster."""
    return episode_of(name, source(change, first), nonce=nonce, full=full)
