"""A placement request in, a placement report out, both as plain dicts: what becomes of the jobs of a state, and why."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, cast

import numpy as np

from kuayu.refusals import repeated
from kuayu.scheduling.attempts import Attempt, EpochResult, Migration
from kuayu.scheduling.node_allocator import Gang, NodeAllocator, NodeAssignment, gang_of
from kuayu.scheduling.parse import ParsedJobs, parse_jobs, snapshot_of
from kuayu.scheduling.policy_network import PolicyNetwork
from kuayu.scheduling.preemption import ChangeableJobs, ScaleDown, migrations, scale_downs
from kuayu.scheduling.scheduler import QueuePolicy, decide, overtaken_until, planned
from kuayu.scheduling.scoring import (
    BEGINS,
    DEVICES,
    EXCHANGING,
    FEATURES,
    MOVING,
    OWN,
    PRICE,
    RUNS,
    WAITS,
    Scorer,
    Weights,
)
from kuayu.scheduling.state import MODES, NOWHERE, PERIODIC, PURCHASES, Floats, Snapshot
from kuayu.scheduling.validation import check_state

if TYPE_CHECKING:
    from kuayu_schemas import documents

LAST = 253_402_300_799.0
"""Seconds from 1970 to the end of the year 9999: no instant is later."""
FIRST = -30_610_224_000.0
"""Those to the year 1000: none is earlier."""
LITTLE = 0.5
"""Seconds, or money, that are not worth a word."""


def instant(seconds: float) -> str:
    """An instant as it is written in answers, to the millisecond."""
    moment = datetime.fromtimestamp(min(max(round(seconds, 3), FIRST), LAST), UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Account:
    """Speaks of what was decided.

    Args:
        snapshot: What was decided on.
        result: What was decided.
        allocator: Nodes, of which those that start have theirs.
    """

    def __init__(self, snapshot: Snapshot, result: EpochResult, allocator: NodeAllocator) -> None:
        self._snapshot, self._decided, self._allocator = snapshot, result, allocator

    def gangs(self, job: int, row: int, seconds: float = inf, rank: float = inf) -> list[Gang]:
        """Devices of a candidate, pool by pool; the rest as :class:`Gang` has it."""
        candidates = self._decided.candidates
        pairs = zip(candidates.pools[row].tolist(), candidates.devices[row].tolist(), strict=True)
        return [gang_of(self._snapshot, job, pool, devices, seconds, rank) for pool, devices in pairs if devices > 0]

    def placement(
        self, gangs: Sequence[Gang], row: int, bought: Sequence[int], assignment: Sequence[NodeAssignment]
    ) -> "documents.JobPlacement":
        """A candidate, with its nodes and purchases."""
        mode = int(self._decided.candidates.mode[row])
        shares = [self.share(*parts) for parts in zip(gangs, bought, assignment, strict=True)]
        placement: documents.JobPlacement = {"shares": shares, "split_mode": MODES[mode]}
        if mode == PERIODIC:
            placement["sync_period"] = int(self._decided.candidates.period[row])
        return placement

    def share(self, gang: Gang, bought: int, assignment: NodeAssignment) -> "documents.DomainShare":
        """Devices of a pool."""
        names, pools = self._snapshot.names, self._snapshot.pools
        share: documents.DomainShare = {
            "domain": names.domains[pools.domain[gang.pool]],
            "accelerator": names.accelerators[pools.accelerator[gang.pool]],
            "devices": gang.devices,
        }
        if bought != NOWHERE:
            share["purchase"] = PURCHASES[bought]
        if self._allocator.knows_nodes(gang.pool):
            share["nodes"] = self._allocator.named(gang.pool, assignment)
        return share

    def of(self, attempt: Attempt, most: int) -> "documents.PlacementExplanation":
        """Explanation of what becomes of a waiting job."""
        others = self._others(attempt, most)
        explanation: documents.PlacementExplanation = {"alternatives": others, "reason": self._reason(attempt, others)}
        if not attempt.starts:
            explanation["overtaken_until"] = instant(self._snapshot.now + float(self._overtaken_until[attempt.job]))
        if attempt.chosen is not None and np.isfinite(attempt.features[attempt.chosen, WAITS]):
            explanation["outcome"] = self._outcome(attempt, attempt.chosen)
        return explanation

    def change(self, job: int, pool: int, devices: int, reason: str) -> "documents.PlacementExplanation":
        """Explanation of what becomes of a running job that goes on elsewhere, or on other devices."""
        row = np.flatnonzero(self._running.job == job)
        change = self._running.change(row, np.array([pool]), np.array([devices]))
        features = np.zeros((1, len(FEATURES)))
        features[:, BEGINS], features[:, MOVING] = change.pause, change.money
        features[:, RUNS], features[:, DEVICES] = self._running.left[row] / change.speed, devices
        begins, ends = float(change.pause[0]), float(change.pause[0] + features[0, RUNS])
        taken = np.array([[pool]]), np.array([[devices]]), np.array([ends])
        features[:, PRICE] = self._decided.availability.purchases.prices(np.array([job]), *taken)
        rate = float(self._snapshot.holdings.rate[job - self._snapshot.waiting] * change.speed[0])
        outcome: documents.PredictedOutcome = {
            "run_at": instant(self._snapshot.now + begins),
            "finish_at": instant(self._snapshot.now + ends),
            "communication_cost": float(features[0, MOVING]),
            "price": float(features[0, PRICE]),
            "efficiency": rate / devices,
            "score": float(self._decided.scoring.anew(features)[0]),
        }
        return {"alternatives": [], "reason": reason, "outcome": outcome}

    @cached_property
    def _running(self) -> ChangeableJobs:
        return ChangeableJobs(self._snapshot)

    @cached_property
    def _overtaken_until(self) -> Floats:
        return overtaken_until(self._snapshot, QueuePolicy())

    def _others(self, attempt: Attempt, most: int) -> "list[documents.PlacementAlternative]":
        """The next-best that could be carried out beside everything else that was decided."""
        if not most:
            return []
        candidates, availability = self._decided.candidates, self._decided.availability
        free = np.append(availability.free, np.iinfo(np.int64).max)
        left = availability.purchases.largest.copy()
        if attempt.starts:
            for pool, devices in zip(
                candidates.pools[attempt.row].tolist(), candidates.devices[attempt.row].tolist(), strict=True
            ):
                free[pool] += devices or 0
        capacity = np.minimum(free, left)
        fits = (candidates.devices[attempt.rows] <= capacity[candidates.pools[attempt.rows]]).all(axis=1) & np.isfinite(
            attempt.scores
        )
        alternatives: list[documents.PlacementAlternative] = []
        for place in np.argsort(attempt.scores, kind="stable").tolist():
            if len(alternatives) == most:
                break
            if not fits[place] or (attempt.starts and place == attempt.chosen):
                continue
            row = int(attempt.rows[place])
            gangs = self.gangs(attempt.job, row)
            assignment = self._allocator.pack(gangs)
            if all(nodes is not None for nodes in assignment):
                seconds = float(attempt.features[place, BEGINS] + attempt.features[place, RUNS])
                bought = [
                    availability.purchases.cheapest(attempt.job, gang.pool, gang.devices, seconds) for gang in gangs
                ]
                placement = self.placement(gangs, row, bought, [nodes or () for nodes in assignment])
                outcome = self._outcome(attempt, place, now=True)
                alternatives.append({"verb": "start", "placement": placement, "outcome": outcome})
            for gang, nodes in zip(gangs, assignment, strict=True):
                if nodes and self._allocator.knows_nodes(gang.pool):
                    self._allocator.give_back(gang.pool, nodes)
        return alternatives

    def _outcome(self, attempt: Attempt, place: int, *, now: bool = False) -> "documents.PredictedOutcome":
        """What is expected of a candidate."""
        features, prediction, row = attempt.features[place], self._decided.prediction, attempt.rows[place]
        begins = float(features[BEGINS]) + (0.0 if now else float(features[WAITS]))
        return {
            "run_at": instant(self._snapshot.now + begins),
            "finish_at": instant(self._snapshot.now + begins + float(features[RUNS])),
            "communication_cost": float(features[MOVING] + features[EXCHANGING]),
            "price": float(features[PRICE]),
            "efficiency": float(prediction.rate[row] / prediction.devices[row]),
            "score": float(attempt.scores[place]),
        }

    def _reason(self, attempt: Attempt, others: "Sequence[documents.PlacementAlternative]") -> str:
        """Why, in words."""
        if attempt.chosen is None:
            seconds = attempt.features[:, BEGINS] + attempt.features[:, RUNS]
            if np.isfinite(seconds).any():
                row = int(attempt.rows[int(seconds.argmin())])
                best = self._where(row)
                if self._cut_up(attempt.job, row):
                    return f"It would run best on {best}; these have {NOT_AS_NEEDED}, and nothing says when they will."
                return f"It would run best on {best}; nothing says when these will be free."
            return f"{NO_WAY} {self._missing(attempt)}."
        features = attempt.features[attempt.chosen]
        where = self._where(attempt.row)
        if not attempt.starts:
            waits = float(features[WAITS])
            if self._cut_up(attempt.job, attempt.row):
                return f"It waits about {waits:.0f} s for {where}: until then, these have {NOT_AS_NEEDED}."
            if self._unsold(attempt):
                return (
                    f"It would run best on {where}; so many are free, and none of the ways of buying has as many now."
                )
            if not np.isfinite(waits):
                return f"It would run best on {where}; nothing says when these will be free."
            what = "and what else could be had now costs more than the wait" if others else "and nothing else is free"
            return f"It waits about {waits:.0f} s for {where}, {what}."
        parts = [f"It starts on {where} and is expected to end in {float(features[BEGINS] + features[RUNS]):.0f} s"]
        if features[BEGINS] > LITTLE:
            parts.append(f"{float(features[BEGINS]):.0f} s of them until its first step")
        money = float(features[MOVING] + features[EXCHANGING])
        if money > 0.0:
            parts.append(f"bandwidth costs {money:.2f}")
        return ", ".join(parts) + ("; the next-best has a higher score." if others else "; nothing else is free.")

    def _missing(self, attempt: Attempt) -> str:
        """What no pool has of all that a job needs, in words; the first that rules out all pools which are left."""
        snapshot, job = self._snapshot, attempt.job
        jobs, pools = snapshot.jobs, snapshot.pools
        memory, least = float(jobs.memory[job]), int(jobs.minimum[job])
        left = snapshot.reachable[pools.domain] & (pools.devices > 0)
        for able, what in (
            (True, "devices that work"),
            (jobs.kinds[job][pools.accelerator], "devices of a kind on which it may run"),
            ((snapshot.memory >= memory)[pools.accelerator], f"devices with {memory / 1e9:.4g} GB of memory each"),
            ((snapshot.job_index[job] > 0.0)[pools.accelerator], "devices with a compute index for its task profile"),
            (np.isfinite(snapshot.staging[0][job])[pools.domain], "a way for its data and its checkpoint to get there"),
        ):
            left = left & able
            if not left.any():
                return what
        most = int(pools.devices[left].max())
        if most < least:
            return f"the {least} devices that it needs at least: the largest that will do has {most}"
        if self._particular(attempt.job):
            return "nodes that can hold devices as it needs them"
        return "devices on which it may run, in a way that it may be split"

    def _unsold(self, attempt: Attempt) -> bool:
        """Whether enough devices are free for what was chosen, and no offer has as many."""
        candidates, availability = self._decided.candidates, self._decided.availability
        pools, devices = candidates.pools[attempt.row], candidates.devices[attempt.row]
        pools, devices = pools[devices > 0], devices[devices > 0]
        return bool(
            (availability.free[pools] >= devices).all() and (availability.purchases.largest[pools] < devices).any()
        )

    def _cut_up(self, job: int, row: int) -> bool:
        """Whether enough devices are free for a candidate, and not on nodes as the job needs them."""
        return self._particular(job) and not all(map(self._allocator.allows, self.gangs(job, row)))

    def _particular(self, job: int) -> bool:
        """Whether a job needs something of nodes."""
        return gang_of(self._snapshot, job, 0, 0).particular

    def _where(self, row: int) -> str:
        candidates, pools, names = self._decided.candidates, self._snapshot.pools, self._snapshot.names
        return " and ".join(
            f"{devices} {names.accelerators[pools.accelerator[pool]]} in {names.domains[pools.domain[pool]]}"
            for pool, devices in zip(candidates.pools[row].tolist(), candidates.devices[row].tolist(), strict=True)
            if devices > 0
        )


METHOD_NAME = "Least weighed completion with reservations"
WITH_NETWORK = "Least weighed completion with reservations, constants set by PPO"
METHOD_VERSION = "1.5.3"
ALTERNATIVES = 3
"""How many of the next-best are told where a request does not say."""

NO_WAY = "No pool that can be reached has"
"""Begins the reason of a job that could start nowhere, whatever were free."""

NOT_AS_NEEDED = "not enough free on nodes as it needs them"

CHANGES = {
    "resize": "It keeps fewer devices busy than it holds, and others wait for them; it goes on with those it uses.",
    "expand": "Nobody who waits takes these devices; it ends clearly sooner with more of them.",
    "migrate": "Nobody who waits takes these devices; it ends clearly sooner there, its interruption included.",
    "yield": "It makes room: somebody who waits ends sooner on its devices by more than it loses.",
    "stop": "It writes a checkpoint and waits: a job of higher priority needs its devices, and nothing less will do.",
}
"""Why a running job is interrupted."""

Reasons = dict[str, tuple[Migration | ScaleDown, str]]
"""What becomes of running jobs, and why, by name."""


def place(
    request: "documents.PlacementRequest",
    scorer: Scorer | None = None,
    parsed: ParsedJobs | None = None,
    network: PolicyNetwork | None = None,
) -> "documents.PlacementReport":
    """Decide what the jobs of a state do.

    Args:
        request: It is valid and has a state.
        scorer: Makes scores of candidates; the rule unless it is given.
        parsed: What has been read of the jobs of the state, if it has.
        network: Sets constants of the rule, in place of another scorer.

    Raises:
        RepeatedName: Names stand twice.
        UnknownName: A name is not there.
    """
    state, shares = request["state"], request.get("shares") or ()
    named = [share["domain"] for share in shares]
    parsed = parsed or parse_jobs(state)
    check_state(
        state,
        [(f"/shares/{position}/domain", name) for position, name in enumerate(named)],
        repeated("/shares", named, "/domain"),
        parsed,
    )
    running = state["running"]
    snapshot = snapshot_of(state, parsed)
    return report(request, snapshot, lambda job: running[job]["placement"]["shares"][0], scorer, network)


def report(
    request: "documents.PlacementRequest",
    snapshot: Snapshot,
    share_of: "Callable[[int], documents.DomainShare]",
    scorer: Scorer | None = None,
    network: PolicyNetwork | None = None,
) -> "documents.PlacementReport":
    """Decide what the jobs of a snapshot do.

    Args:
        request: It is valid; of its state only the revision is looked at.
        snapshot: What its state says.
        share_of: The first share of a running job, by its place among those that run.
        scorer: Makes scores of candidates; the rule unless it is given.
        network: Sets constants of the rule where the request gives no weights of its own: it was trained for those.
    """
    state, shares = request["state"], request.get("shares") or ()
    weights = weights_of(request.get("weights"))
    explained = bool(request.get("explain"))
    learned = network if weights == OWN else None
    by, queue_policy = learned.constants(snapshot) if learned else (scorer, None)
    result = decide(snapshot, by, weights, queue_policy, everyone=explained or bool(shares), preempt=not shares)
    if shares:
        result = planned(snapshot, result, {share["domain"]: float(share["share"]) for share in shares})
    allocator = NodeAllocator(snapshot.pools.nodes)
    for reservation in result.node_reservations:
        allocator.reserve(reservation)
    account = Account(snapshot, result, allocator)
    decisions, reasons = _starts(snapshot, result, allocator, account), Reasons()
    if not shares:
        decisions += _changes(snapshot, result, share_of, allocator, account, reasons)
    if explained:
        most = request.get("alternatives")
        _explain(snapshot, result, decisions, account, reasons, ALTERNATIVES if most is None else int(most))
    return {
        "revision": state["revision"],
        "method": {
            "name": WITH_NETWORK if learned else METHOD_NAME,
            "version": METHOD_VERSION,
            "weights": cast("documents.ObjectiveWeights", asdict(weights)),
            "fallback": result.fallback,
        },
        "decisions": decisions,
    }


def weights_of(weights: "documents.ObjectiveWeights | None") -> Weights:
    """Weights of a request, or the reference's own; they are too where all of them are zero."""
    if not weights or not any(weights.values()):
        return OWN
    given = (weights.get("period"), weights.get("communication"), weights.get("utilisation"), weights.get("price"))
    return Weights(*(float(weight or 0.0) for weight in given))


def _starts(
    snapshot: Snapshot, result: EpochResult, allocator: NodeAllocator, account: Account
) -> "list[documents.PlacementDecision]":
    """Decisions for the jobs that start, in the order in which they were made; none that nodes have no room for."""
    attempts = [(rank, attempt) for rank, attempt in enumerate(result.attempts) if attempt.starts]
    gangs = [account.gangs(attempt.job, attempt.row, attempt.seconds, rank) for rank, attempt in attempts]
    assignment = iter(allocator.pack([gang for job_gangs in gangs for gang in job_gangs]))
    decisions: list[documents.PlacementDecision] = []
    for (_, attempt), job_gangs in zip(attempts, gangs, strict=True):
        given = [next(assignment) for _ in job_gangs]
        if any(nodes is None for nodes in given):
            attempt.starts = False
            continue
        bought = result.availability.bought[attempt.job]
        placement = account.placement(job_gangs, attempt.row, bought, [nodes or () for nodes in given])
        decisions.append({"job": snapshot.names.jobs[attempt.job], "verb": "start", "placement": placement})
    return decisions


def _changes(
    snapshot: Snapshot,
    result: EpochResult,
    share_of: "Callable[[int], documents.DomainShare]",
    allocator: NodeAllocator,
    account: Account,
    reasons: Reasons,
) -> "list[documents.PlacementDecision]":
    """Decisions for running jobs that give devices back, or go on elsewhere or with more; reasons are added by job."""
    decisions: list[documents.PlacementDecision] = []
    resized = scale_downs(snapshot, result)
    for scale_down in resized:
        current = share_of(scale_down.job - snapshot.waiting)
        if (
            share := _resized(
                snapshot, scale_down.job, scale_down.pool, scale_down.devices, current, allocator, account
            )
        ) is not None:
            decisions.append(_change(snapshot, scale_down.job, "resize", share))
            reasons[snapshot.names.jobs[scale_down.job]] = scale_down, CHANGES["resize"]
    verb: documents.PlacementVerb
    for mover in migrations(snapshot, result, frozenset(scale_down.job for scale_down in resized)):
        current = share_of(mover.job - snapshot.waiting)
        if not mover.devices:
            name = snapshot.names.jobs[mover.job]
            decisions.append({"job": name, "verb": "stop"})
            reasons[name] = mover, CHANGES["stop"]
            continue
        if mover.stays:
            share = _resized(snapshot, mover.job, mover.pool, mover.devices, current, allocator, account)
            verb, why = "resize", "expand"
        else:
            gang = gang_of(snapshot, mover.job, mover.pool, mover.devices)
            (assignment,) = allocator.pack([gang])
            share = None if assignment is None else account.share(gang, mover.bought, assignment)
            verb, why = "migrate", "migrate"
        why = "yield" if mover in result.preemption else why
        if share is not None:
            decisions.append(_change(snapshot, mover.job, verb, share))
            reasons[snapshot.names.jobs[mover.job]] = mover, CHANGES[why]
    return decisions


def _resized(
    snapshot: Snapshot,
    job: int,
    pool: int,
    devices: int,
    share: "documents.DomainShare",
    allocator: NodeAllocator,
    account: Account,
) -> "documents.DomainShare | None":
    """The share of a running job with other devices of its pool; none where nodes have no room for it."""
    gang = gang_of(snapshot, job, pool, devices)
    current = allocator.assignment(pool, share.get("nodes") or ()) if allocator.knows_nodes(pool) else ()
    assignment = allocator.resize(gang, current) if current else ()
    if assignment is None or (allocator.knows_nodes(pool) and not assignment):
        return None
    resized = account.share(gang, NOWHERE, assignment)
    if "purchase" in share:
        resized["purchase"] = share["purchase"]
    return resized


def _change(
    snapshot: Snapshot, job: int, verb: "documents.PlacementVerb", share: "documents.DomainShare"
) -> "documents.PlacementDecision":
    return {"job": snapshot.names.jobs[job], "verb": verb, "placement": {"shares": [share], "split_mode": "none"}}


def _explain(
    snapshot: Snapshot,
    result: EpochResult,
    decisions: "list[documents.PlacementDecision]",
    account: Account,
    reasons: Reasons,
    most: int,
) -> None:
    """Say why, of all decisions; all jobs that wait are named."""
    by_job = {decision["job"]: decision for decision in decisions}
    attempts = {attempt.job: attempt for attempt in result.attempts}
    for job in range(snapshot.waiting):
        name = snapshot.names.jobs[job]
        decision = by_job.get(name)
        if decision is None:
            decision = {"job": name, "verb": "wait"}
            decisions.append(decision)
        attempt = attempts.get(job) or _nothing(job)
        decision["explanation"] = account.of(attempt, most)
    for name, (change, reason) in reasons.items():
        explanation: documents.PlacementExplanation = (
            account.change(change.job, change.pool, change.devices, reason)
            if change.devices
            else {"alternatives": [], "reason": reason}
        )
        if isinstance(change, Migration) and change.beneficiary is not None:
            explanation["beneficiary"] = snapshot.names.jobs[change.beneficiary]
        by_job[name]["explanation"] = explanation


def _nothing(job: int) -> Attempt:
    """A job that has no way at all."""
    empty = np.zeros(0)
    return Attempt(job, empty.astype(np.intp), np.zeros((0, len(FEATURES))), empty.astype(np.bool_), empty)
