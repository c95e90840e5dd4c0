"""Who starts, and where: jobs in the order of their priority, each by the least score.

1. *Order.* By priority, then who has waited too long, then by what a job holds: small ones first makes the mean period
   short (W. E. Smith, "Various optimizers for single-stage production", Naval Research Logistics Quarterly 3, 1956);
   who waits grows smaller in this, so that nobody is overtaken at no gain, and whoever has waited several times its own
   length goes before all of its priority that were submitted later, so that large jobs are not starved
   (:func:`overtaken_until`).
2. *Attempts.* Each job takes its best candidate; where it has to wait for that, it reserves or books it, unless running
   jobs are preempted for it.
3. *Nodes.* What a job needs of nodes (:mod:`.node_capacity`) rules candidates out whose shape no node has, and it waits
   for those for which there is no such room now. Where it reserves devices, it reserves the nodes as well; where others
   are preempted for it, those are who sit on the nodes.
4. *Accounts.* Where the state names accounts, those of one priority take turns by what they have used for their weight;
   inside an account the order stays.
5. *Shares.* Where an allocation plan says so, each domain gives its part of the compute of what starts now. Compute is
   devices times their index for the job. Large jobs go first, each to the domain that is furthest behind its share, and
   small ones even out what is left (R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM Journal on Applied
   Mathematics 17, 1969). Where a domain has no more room, the others stop at its level.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from kuayu.scheduling.attempts import Attempt, EpochResult
from kuayu.scheduling.availability import Availability, ends, trusted
from kuayu.scheduling.candidates import Candidates, CandidateSet, Prediction, comparative_advantage
from kuayu.scheduling.node_allocator import shaped
from kuayu.scheduling.node_capacity import NodeCapacity
from kuayu.scheduling.preemption import Preemption
from kuayu.scheduling.pricing import PurchaseOptions
from kuayu.scheduling.scoring import (
    AGE,
    BEGINS,
    CROWD,
    DEVICES,
    EXCHANGING,
    FEATURES,
    LOST,
    MOVING,
    OWN,
    PRICE,
    RUNS,
    SIZE,
    WAITS,
    Rule,
    Scorer,
    Scoring,
    Weights,
)
from kuayu.scheduling.state import NONE, Accounts, Flags, Floats, Numbers, Snapshot


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """In which order jobs are tried.

    Attributes:
        area: Exponent of the devices in what a job is ordered by; that of its seconds is one.
        ageing: By how much its waiting times its own length makes a job smaller in the order.
        patience: A job that has waited so many times its own length goes before others.
        least: Seconds that its length counts at least.
        reservations: Jobs that wait whose devices nobody else may hold when they come free.
        eager: Part of the running jobs that count as if they waited: as many will come.
        gang: Exponent of the devices by which less is made of those whom a large job delays: it delays many wherever it
            goes, and would go where devices are slow for ever.
    """

    area: float = 0.25
    ageing: float = 0.25
    patience: float = 4.0
    least: float = 600.0
    reservations: int = 8
    eager: float = 0.05
    gang: float = 2.0


def priority_order(snapshot: Snapshot, queue_policy: QueuePolicy) -> Numbers:
    """Numbers of the waiting jobs in the order in which they are tried."""
    jobs, waiting = snapshot.jobs, np.arange(snapshot.waiting)
    seconds, requested = lengths(snapshot), jobs.requested[waiting].astype(np.float64)
    overdue = overtaken_until(snapshot, queue_policy) < 0.0
    longer = 1.0 + queue_policy.ageing * -jobs.submitted[waiting] / np.maximum(seconds, queue_policy.least)
    key = np.where(overdue, jobs.submitted[waiting], np.maximum(seconds, 1.0) * requested**queue_policy.area / longer)
    order = np.lexsort((waiting, key, ~overdue, -jobs.priority[waiting]))
    return order if snapshot.accounts is None else _by_account(snapshot, snapshot.accounts, order, overdue)


def _by_account(snapshot: Snapshot, accounts: Accounts, order: Numbers, overdue: Flags) -> Numbers:
    """The same order inside each account, while accounts take turns.

    A job counts what its account has used, and what those of it that go before are expected to use, by weight
    (start-time fair queueing, see :mod:`kuayu.jobs.fair_share`). Who has waited too long goes first all the same.
    """
    jobs = snapshot.jobs
    hours = jobs.left[: snapshot.waiting] / np.maximum(jobs.used[: snapshot.waiting], MIN_BUSY_SHARE) / SECONDS_PER_HOUR
    number, before = accounts.number[order], np.zeros(len(order))
    for account in np.unique(number).tolist():
        rows = np.flatnonzero(number == account)
        before[rows] = np.cumsum(hours[order[rows]]) - hours[order[rows]]
    tags = (accounts.used[number] + before) / accounts.weight[number]
    place = np.lexsort((np.arange(len(order)), tags, ~overdue[order], -jobs.priority[order]))
    ordered: Numbers = order[place]
    return ordered


MIN_BUSY_SHARE = 1e-9
"""Share of its devices that a job keeps busy, where it was measured to keep none."""

SECONDS_PER_HOUR = 3600.0


def lengths(snapshot: Snapshot) -> Floats:
    """Seconds that waiting jobs would run on what they asked for of the accelerator that is best for them."""
    jobs, waiting = snapshot.jobs, np.arange(snapshot.waiting)
    best = np.maximum(snapshot.job_index[waiting].max(axis=1, initial=0.0), 1e-9)
    # work is told in seconds of busy devices, whose number is not known before they were measured
    busy = np.maximum(jobs.requested[waiting] * jobs.used[waiting], 1e-9)
    seconds: Floats = jobs.left[waiting] / busy / best
    return seconds


def overtaken_until(snapshot: Snapshot, queue_policy: QueuePolicy) -> Floats:
    """Seconds from now until which jobs of its priority that were submitted later may be tried before a waiting job."""
    patience = queue_policy.patience * np.maximum(lengths(snapshot), queue_policy.least)
    until: Floats = snapshot.jobs.submitted[: snapshot.waiting] + patience
    return until


LOOKED_AT = 400
"""Jobs that may start in an epoch: the first in order."""
BOOKED = 50
"""Jobs without room that are looked at all the same, since those behind them see where they wait."""


def decide(
    snapshot: Snapshot,
    scorer: Scorer | None = None,
    weights: Weights = OWN,
    queue_policy: QueuePolicy | None = None,
    *,
    everyone: bool = False,
    preempt: bool = True,
) -> EpochResult:
    """Decide which of the waiting jobs start, and where.

    Args:
        snapshot: What is decided on.
        scorer: Makes scores of candidates; the rule unless it is given.
        weights: What counts.
        queue_policy: In which order jobs are tried.
        everyone: Whether jobs are looked at of which it is clear that they will not start.
        preempt: Whether running jobs may be preempted.
    """
    scorer, queue_policy = scorer or Rule(), queue_policy or QueuePolicy()
    free, until = trusted(snapshot), ends(snapshot)
    availability = Availability(snapshot, free.copy(), until, PurchaseOptions(snapshot))
    order = priority_order(snapshot, queue_policy)
    if not everyone:
        order = order[: LOOKED_AT if free.any() else BOOKED]
    candidates, prediction, first = gathered(CandidateSet(snapshot, free), order)
    columns = features_of(snapshot, candidates, prediction, availability)
    delay = crowding(snapshot, order, queue_policy)
    columns[:, CROWD] *= np.repeat(delay, np.diff(first))
    node_capacity, scoring = NodeCapacity(snapshot, until), Scoring(scorer, weights, columns)
    preemption = Preemption(snapshot, availability, node_capacity)
    result = EpochResult(
        candidates,
        prediction,
        availability,
        scoring,
        preemption=preemption.migrations,
        node_reservations=node_capacity.reservations,
    )
    (all_pools, all_devices), seconds = candidates.narrow, prediction.begins + prediction.runs
    hopeful = _any(availability.fits(all_pools, all_devices), first).tolist()
    bounds, rows, delays = first.tolist(), np.arange(len(candidates)), delay.tolist()
    reserved = waiting = 0
    for place, job in enumerate(order.tolist()):
        job_rows = slice(bounds[place], bounds[place + 1])
        pools, devices, fits = all_pools[job_rows], all_devices[job_rows], None
        idle = place >= LOOKED_AT or (
            waiting >= BOOKED and not (hopeful[place] and (fits := availability.fits(pools, devices)).any())
        )
        if job_rows.start == job_rows.stop or (idle and not everyone):
            continue
        if job in snapshot.denied and not idle:
            _distrust(availability, candidates.of(np.arange(job_rows.start, job_rows.stop)), seconds[job_rows])
        now = availability.admits(pools, devices, seconds[job_rows], fits)
        now = np.greater(node_capacity.admits(now, candidates, job_rows, seconds), idle)
        columns[job_rows, WAITS] = availability.waits(pools, devices, now)
        node_capacity.prolong(columns[job_rows, WAITS], now, candidates, job_rows, seconds)
        attempt = Attempt(job, rows[job_rows], columns[job_rows], now, scoring.scores(job_rows), counts=not idle)
        result.attempts.append(attempt)
        attempt.chosen = scoring.choice(attempt.features, attempt.scores)
        if (
            preempt
            and not idle
            and (better := preemption.better(attempt, job_rows, candidates, scoring, delays[place])) is not None
        ):
            attempt.chosen = better
        if attempt.chosen is None:
            continue
        row, attempt.starts = job_rows.start + attempt.chosen, bool(now[attempt.chosen])
        if attempt.starts:
            availability.take(job, candidates.pools[row], candidates.devices[row], float(seconds[row]))
            node_capacity.take(candidates, row, float(seconds[row]))
            waiting += 0 if availability.free.any() else BOOKED
        elif not idle:
            waiting += 1
            start = float(columns[row, WAITS])
            if start < inf and (reserved < queue_policy.reservations or job in preemption.cleared):
                availability.keep(candidates.pools[row], candidates.devices[row], start)
                node_capacity.reserve(
                    candidates,
                    row,
                    start,
                    float(seconds[row]),
                    len(result.attempts) - 1,
                    preemption.cleared.get(job),
                )
                reserved += 1
            availability.book(candidates.pools[row], candidates.devices[row], start, float(seconds[row]))
    result.fallback = scoring.fallback
    return result


def _distrust(availability: Availability, candidates: Candidates, seconds: Floats) -> None:
    """A job was refused for want of room: most likely where it ends first, as that is where it was sent."""
    fitting = availability.fits(candidates.pools, candidates.devices)
    if fitting.any():
        row = int(np.where(fitting, seconds, inf).argmin())
        availability.distrust(candidates.pools[row], candidates.devices[row])


def gathered(candidate_set: CandidateSet, order: Numbers) -> tuple[Candidates, Prediction, Numbers]:
    """Candidates of jobs in their order, what they lead to, and the first row of each job, with the end of the last."""
    parts = [
        candidate_set.alone(order),
        *(candidate_set.together(job) for job in candidate_set.outgrown(order).tolist()),
    ]
    width = max(part.pools.shape[1] for part in parts)
    candidates = Candidates(
        np.concatenate([part.job for part in parts]),
        np.concatenate([_padded(part.pools, width, -1) for part in parts]),
        np.concatenate([_padded(part.devices, width, 0) for part in parts]),
        np.concatenate([part.mode for part in parts]),
        np.concatenate([part.period for part in parts]),
    )
    place = np.full(int(order.max(initial=-1)) + 1, len(order))
    place[order] = np.arange(len(order))
    jobs = candidate_set.snapshot.jobs
    if jobs.particular.any():
        able = shaped(candidate_set.snapshot, candidates.job, candidates.pools, candidates.devices)
        candidates = candidates.of(np.flatnonzero(able))
    if len(parts) > 1:
        candidates = candidates.of(np.argsort(place[candidates.job], kind="stable"))
    first = np.searchsorted(place[candidates.job], np.arange(len(order) + 1))
    return candidates, candidate_set.prediction(candidates), first


def features_of(
    snapshot: Snapshot, candidates: Candidates, prediction: Prediction, availability: Availability
) -> Floats:
    """Features of all candidates, (candidates, features); how long each waits comes later, and how many it delays."""
    columns = np.zeros((len(candidates), len(FEATURES)))
    seconds = prediction.begins + prediction.runs
    value = np.append(snapshot.device_value, 0.0)
    rated = (value[candidates.pools] * candidates.devices).sum(axis=1)
    columns[:, BEGINS], columns[:, RUNS] = prediction.begins, prediction.runs
    columns[:, MOVING], columns[:, EXCHANGING] = prediction.moving, prediction.exchanging
    columns[:, PRICE] = availability.purchases.prices(candidates.job, candidates.pools, candidates.devices, seconds)
    columns[:, DEVICES] = prediction.devices
    columns[:, CROWD] = rated * seconds
    columns[:, LOST] = (
        (1.0 - comparative_advantage(snapshot, candidates, prediction, rated)) * prediction.devices * seconds
    )
    columns[:, SIZE] = snapshot.jobs.requested[candidates.job]
    columns[:, AGE] = -snapshot.jobs.submitted[candidates.job]
    return columns


def crowding(snapshot: Snapshot, order: Numbers, queue_policy: QueuePolicy) -> Floats:
    """Jobs that a device second delays, over all devices; by place in the order: those behind, and some to come."""
    total = max(int(snapshot.pools.devices[snapshot.reachable[snapshot.pools.domain]].sum()), 1)
    behind = snapshot.waiting - 1.0 - np.arange(len(order))
    to_come = queue_policy.eager * (len(snapshot.jobs) - snapshot.waiting)
    crowd: Floats = (behind + to_come) / total / snapshot.jobs.requested[order] ** queue_policy.gang
    return crowd


def _any(flags: Flags, first: Numbers) -> Flags:
    """Whether any row of a job is true, by place in the order."""
    counts = np.concatenate([[0], np.cumsum(flags)])
    some: Flags = counts[first[1:]] > counts[first[:-1]]
    return some


def _padded(values: Numbers, width: int, filling: int) -> Numbers:
    """Columns up to a width."""
    return np.pad(values, ((0, 0), (0, width - values.shape[1])), constant_values=filling)


CLOSE = 0.005
"""Relative error of shares that is left alone."""


def planned(snapshot: Snapshot, result: EpochResult, shares: Mapping[str, float]) -> EpochResult:
    """The same jobs, of which others start and elsewhere: so that domains keep to their shares.

    Args:
        snapshot: What is decided on.
        result: What would be decided without a plan.
        shares: Part of the compute by name of the domain; domains that are not named give none.
    """
    share = np.array([shares.get(name, 0.0) for name in snapshot.names.domains])
    availability = Availability(snapshot, trusted(snapshot), ends(snapshot), PurchaseOptions(snapshot))
    again = EpochResult(result.candidates, result.prediction, availability, result.scoring, [], result.fallback)
    given = np.zeros(snapshot.domains)
    level = _level(snapshot, availability, share)
    size = {attempt.job: _size(result, attempt) for attempt in result.attempts}
    for attempt in sorted(result.attempts, key=lambda attempt: -size[attempt.job]):
        again.attempts.append(_attempt(snapshot, again, attempt, share, given, level))
    _even_out(snapshot, again, share, given)
    return again


def compute(snapshot: Snapshot, result: EpochResult, row: int) -> Floats:
    """Compute that a candidate takes of each domain."""
    candidates = result.candidates
    valid = candidates.pools[row] >= 0
    pools = candidates.pools[row][valid]
    index = snapshot.job_index[candidates.job[row], snapshot.pools.accelerator[pools]]
    by_domain: Floats = np.bincount(
        snapshot.pools.domain[pools], index * candidates.devices[row][valid], snapshot.domains
    ).astype(np.float64)
    return by_domain


def _size(result: EpochResult, attempt: Attempt) -> float:
    return float((result.prediction.index[attempt.rows] * result.prediction.devices[attempt.rows]).max(initial=0.0))


def _level(snapshot: Snapshot, availability: Availability, share: Floats) -> float:
    """Compute that can start at most if all domains with a share keep to it."""
    waiting = snapshot.job_index[: snapshot.waiting]
    mean = waiting.sum(axis=0) / np.maximum((waiting > 0.0).sum(axis=0), 1)
    capacity = np.bincount(
        snapshot.pools.domain, availability.free * mean[snapshot.pools.accelerator], snapshot.domains
    )
    named = share > 0.0
    return float((capacity[named] / share[named]).min()) if named.any() else 0.0


def _attempt(
    snapshot: Snapshot, again: EpochResult, attempt: Attempt, share: Floats, given: Floats, level: float
) -> Attempt:
    """A job starts inside the domain that is furthest behind, if its share has room for it."""
    candidates, availability = again.candidates, again.availability
    renewed = Attempt(attempt.job, attempt.rows, attempt.features, attempt.now, attempt.scores, attempt.chosen)
    rows = attempt.rows
    if not len(rows):
        return renewed
    seconds = again.prediction.begins[rows] + again.prediction.runs[rows]
    now = availability.admits(candidates.pools[rows], candidates.devices[rows], seconds) & np.isfinite(attempt.scores)
    requested = snapshot.jobs.requested[attempt.job]
    best, least = None, np.inf
    for place in np.flatnonzero(now & (candidates.mode[rows] == NONE)).tolist():
        row = int(rows[place])
        domain = int(snapshot.pools.domain[candidates.pools[row, 0]])
        if share[domain] <= 0.0:
            continue
        reached = float(given[domain] + compute(snapshot, again, row)[domain]) / share[domain]
        # among sizes of a job in a domain, what it asked for
        rank = reached + (0.0 if candidates.devices[row].sum() == requested else level)
        if reached <= level * (1.0 + CLOSE) and rank < least:
            best, least = place, rank
    if best is not None:
        renewed.chosen, renewed.starts = best, True
        row = int(rows[best])
        availability.take(attempt.job, candidates.pools[row], candidates.devices[row], float(seconds[best]))
        given += compute(snapshot, again, row)
    return renewed


def _even_out(snapshot: Snapshot, again: EpochResult, share: Floats, given: Floats) -> None:
    """Those that make shares uneven do not start after all, one by one, as long as that brings them nearer."""
    starts = [attempt for attempt in again.attempts if attempt.starts]
    takes = {attempt.job: compute(snapshot, again, attempt.row) for attempt in starts}
    while starts and _error(given, share) > CLOSE:
        errors = [_error(given - takes[attempt.job], share) for attempt in starts]
        place = int(np.argmin(errors))
        if errors[place] >= _error(given, share):
            return
        attempt = starts.pop(place)
        given -= takes[attempt.job]
        attempt.starts = False
        again.availability.put_back(
            attempt.job, again.candidates.pools[attempt.row], again.candidates.devices[attempt.row]
        )


def _error(given: Floats, share: Floats) -> float:
    """Largest relative error of a share; one where nothing is given."""
    total = given.sum()
    if total <= 0.0:
        return 1.0
    named = share > 0.0
    return float((np.abs(given[named] / total - share[named]) / share[named]).max(initial=0.0))
