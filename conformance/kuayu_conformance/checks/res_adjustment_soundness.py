"""Whether an adjustment states the rates that follow from the levels now, and can be carried out (RES-016)."""

from collections.abc import Iterator
from itertools import pairwise

from kuayu_conformance.checks.res_fixtures import Json
from kuayu_conformance.testbed.adjustment.law import Policy
from kuayu_conformance.testbed.adjustment.reading import AskedJob, jobs, policy
from kuayu_conformance.testbed.transfers.collectives import HIERARCHICAL, LOW, RING

STATED = 0.01
"""Rates are stated to within this share."""
SHOWN = 5
"""Names and numbers that a sentence holds at most."""
_HAIR = 1e-9


def deviations(request: Json, told: Json) -> list[str]:
    """All that deviates in rates and changes of a valid ``Adjustment``, with expected and found.

    Args:
        request: Valid ``AdjustmentRequest`` that does not contradict itself.
        told: Its answer.
    """
    found = []
    if told["revision"] != request["revision"]:
        found.append(f"revision {told['revision']} where the request's is {request['revision']}")
    expected, named = [each["id"] for each in request["jobs"]], [each["job"] for each in told["jobs"]]
    if named != expected:
        where = f"the request has {len(expected)}, {expected[:SHOWN]}, in this order"
        found.append(f"{len(named)} jobs, {named[:SHOWN]}, where {where}")
    return found + [f"job {job}: {each}" for job, faults in unsound_jobs(request, told).items() for each in faults]


def unsound_jobs(request: Json, told: Json) -> dict[str, list[str]]:
    """What deviates in what is told of each job of a request, by job; those where nothing does are absent.

    Args:
        request: Valid ``AdjustmentRequest`` that does not contradict itself.
        told: A valid ``Adjustment``.
    """
    found = {}
    for job in jobs(request):
        its = [each for each in told["jobs"] if each["job"] == job.id]
        faults = [fault for each in its for fault in _of_job(job, each)]
        if len(its) != 1:
            faults.insert(0, f"told of {len(its)} times where once is right")
        if faults:
            found[job.id] = faults
    return found


def _of_job(job: AskedJob, told: Json) -> Iterator[str]:
    yield from _of_rate("rate", told["rate"], job.rate(job.in_force))
    last: Policy | None = job.outlook
    before: Policy | None = job.in_force
    takes_back = bool(job.planned) and len(told["changes"]) == 1
    for number, change in enumerate(told["changes"]):
        wrong = [*faults_of(job, change)]
        yield from (f"change {number}: {each}" for each in wrong)
        last = None if wrong else policy(job.domains, change["parts"], change)
        if before is not None and last is not None and last.is_like(before) and not takes_back:
            yield f"change {number}: it is like {f'change {number - 1}' if number else 'the policy in force'} before it"
        before = last
    yield from _of_times([each["after"] for each in told["changes"]])
    # what follows from a policy that cannot be is nothing
    if last is not None:
        yield from _of_rate("expected rate", told["expected_rate"], job.rate(last))


def faults_of(job: AskedJob, change: Json) -> Iterator[str]:
    """Why a change of a job, as an answer tells it, cannot be carried out."""
    parts, order = change["parts"], change["order"]
    if len(parts) != len(job.domains):
        yield f"parts for {len(parts)} domains where the job has {len(job.domains)}"
    elif min(parts) < 1:
        yield f"parts {parts[:SHOWN]}, not one at least for each domain"
    elif sum(parts) != job.total:
        yield f"{sum(parts)} parts in all where a step has {job.total}"
    if sorted(order) != sorted(job.domains):
        yield f"the order {order[:SHOWN]} where the job's domains are {sorted(job.domains)[:SHOWN]}, each once"
    collective, period = change["collective"], change["period"]
    if collective not in {RING, HIERARCHICAL, LOW}:
        yield f"the collective {collective}, which is none of {RING}, {HIERARCHICAL}, {LOW}"
    elif period != 1 and collective != LOW:
        yield f"a period of {period} with {collective} where it is one"


def _of_times(after: list[float]) -> Iterator[str]:
    for number, (one, other) in enumerate(pairwise(after), 1):
        if other < one:
            yield f"change {number} is planned after {other:.6g} s, sooner than the one before it, after {one:.6g} s"


def _of_rate(what: str, told: float, true: float) -> Iterator[str]:
    if abs(told - true) > (STATED + _HAIR) * true:
        yield f"{what} {told:.6g}/s where the levels now lead to {true:.6g}/s"
