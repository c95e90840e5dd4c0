"""From a snapshot of the federation to what the service does with each job, and why.

A *pass* makes a scheduling state of a snapshot (:mod:`.federation`), has it decided on (:mod:`kuayu.scheduling.place`)
and turns each decision into a step:

=====================  =================================================================================================
decision               step
=====================  =================================================================================================
start                  *place*: an allocation is made, with the next-best starts as its alternatives
start, too dear        *hold*: what it is expected to cost, devices and links together, is more than is left of the
                       budget, and so is each alternative; one that is not is placed in its stead
wait                   *decide*: the explanation is kept for whoever asks
stop, migrate          *stop*: the job is stopped and queued again, and the next passes start it from its checkpoint.
                       A migration has no shorter way: the domains of this contract start and stop runs. The decision on
                       it is kept as it was made, with its target; where the job then really starts is decided when its
                       devices are free, by what holds at that time. Who makes room for a job that waits stands behind
                       that one meanwhile
resize                 *resize*: likewise, and until it has its devices it asks for as many as were decided and no more
                       (class JobResize), so that what it gave up is not taken back by it. One that has reported no
                       checkpoint is not resized, except for a job of higher priority: it would begin anew
a replica lacks room   *resize* or *stop* of jobs of lower priority (:mod:`.giving_way`), beyond what scheduling
                       decided; *resize* again of who gave way, where nobody needs that any more
a load has changed     *serve*: replicas of a serving job are added (:mod:`.replicas`), and what became of it is told;
                       *cancel*: one that is needed no longer is called off
a node is lost         *lose*: the run of a job is lost with a node that is dead, or with a domain of which neither a
                       node nor the controller is heard any more; nothing is decided about that
over the quota         *hold*: the account of a job that waits has used its quota; nothing else is decided about it
held, affordable       *release*: the budget of a job that is held would do now, or its account has used less again
=====================  =================================================================================================

Invariants, which :func:`check` holds every pass against; one that breaks them is not carried out:

1. No job has two steps.
2. Who is placed was queued, has not been refused by its own request, and starts where it may: in domains that it names,
   that can be reached, with devices of a kind that it allows, as many as it can work with.
3. All that is placed in a pass fits together into what is free, pool by pool and node by node.
4. Who is stopped or resized runs, is not called off already, and has a checkpoint.
5. Who is resized has neither fewer devices than its least nor more than its most, and other ones than before; what it
   is given beyond what it holds is free.

A pass depends on its snapshot alone: :func:`replay` makes the same steps of what was recorded of it. The digest of the
state stands in each decision, so that who has the state can decide it again with any service of the scheduling profile.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kuayu import canonical
from kuayu.jobs.accelerators import main_kind, profile_of
from kuayu.jobs.fair_share import (
    account_of,
    has_used_quota,
    held_words,
    is_held_for_quota,
    released_words,
)
from kuayu.jobs.federation import UNHEARD, FederationSnapshot, FederationState, price_of, scheduling_state
from kuayu.jobs.giving_way import SizeChange, make_room, take_back
from kuayu.jobs.progress import GAVE_WAY, INTERRUPTED, RUNNING, STARTING, seconds_of
from kuayu.jobs.replicas import ReplicaPlan, ServingView, plan, replica_state
from kuayu.jobs.specification import INSIDE
from kuayu.refusals import Refusal

if TYPE_CHECKING:
    from kuayu_schemas import documents

Indices = Mapping[str, Mapping[str, float]]

ALTERNATIVES = 3
"""How many of the next-best are told, and tried where a domain refuses."""

MAX_REASON_CHARACTERS = 2000
"""Characters of a reason at most; a text of the wire has 48 more."""

NOBODY_OFFERS = "No domain with accelerators is registered."

LOST = "node_dead"
"""Kind of fault with which the run of whoever holds the node is lost."""


class JobVerb(StrEnum):
    """What a step does with a job."""

    PLACE = "place"
    DECIDE = "decide"
    HOLD = "hold"
    RELEASE = "release"
    STOP = "stop"
    RESIZE = "resize"
    LOSE = "lose"
    SERVE = "serve"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class JobStep:
    """What is to be done with a job.

    Attributes:
        job: Which.
        verb: What.
        reason: Why, in words.
        attempt: Attempt of the job when this was decided.
        decision: What was decided, class PlacementDecision with its explanation; None for *lose*, *hold* without one
            and *release*.
        placement: Where, class JobPlacement; only for *place*.
        alternatives: What will do instead, class JobPlacement; only for *place*.
        weights: Compute index of the devices of these for the job, by domain and accelerator; only for *place*.
        resize: How the job is resized; only for *resize*.
        beneficiary: Job that waits for what it gives up; only for *stop*, where it makes room.
        replicas: What is told of the replicas of a serving job, class ReplicaState; only for *serve*.
        add: How many replicas are added to them; only for *serve*.
        serial: How many replicas it has had when this was decided; only for *serve*.
        has_way: Whether the job could start somewhere, if enough were free.
    """

    job: str
    verb: JobVerb
    reason: str
    attempt: int
    decision: "documents.PlacementDecision | None" = None
    placement: "documents.JobPlacement | None" = None
    alternatives: "tuple[documents.JobPlacement, ...]" = ()
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    resize: "documents.JobResize | None" = None
    beneficiary: str | None = None
    replicas: "documents.ReplicaState | None" = None
    add: int = 0
    serial: int = 0
    has_way: bool = True


@dataclass(frozen=True, slots=True)
class PassResult:
    """What came of a pass.

    Attributes:
        now: Instant of the snapshot.
        revision: Its revision.
        digest: Digest of the scheduling state.
        method: How it was decided, class SchedulingMethod.
        steps: In the order in which they are to be carried out.
        notes: What the state rests on that nobody stated.
        waiting: How many jobs waited in the state.
        free: Devices that were free where domains can be reached.
    """

    now: str
    revision: "documents.Revision"
    digest: str
    method: "documents.SchedulingMethod"
    steps: tuple[JobStep, ...]
    notes: tuple[str, ...]
    waiting: int
    free: int

    def job_decision(self, step: JobStep) -> "documents.JobDecision | None":
        """What is told of a step; None where nothing was decided about where the job runs."""
        if step.decision is None:
            return None
        return {
            "job": step.job,
            "at": self.now,
            "revision": self.revision,
            "digest": self.digest,
            "method": self.method,
            "decision": step.decision,
        }


class BrokenInvariantError(Exception):
    """A pass would do what must not be done; the message says what."""


def decide(snapshot: FederationSnapshot) -> PassResult:
    """Decide what becomes of the jobs of a snapshot.

    Raises:
        BrokenInvariantError: The decision contradicts the state; nothing of it may be carried out.
    """
    plans = [(serving, plan(serving, snapshot.now)) for serving in snapshot.serving]
    leaving = {name: serving for serving, planned in plans for name in _leaving(serving, planned)}
    if leaving:
        waiting, pending = (
            [job for job in jobs if job["id"] not in leaving] for jobs in (snapshot.waiting, snapshot.held)
        )
        snapshot = replace(snapshot, waiting=waiting, held=pending)
    snapshot, beyond = _within_quotas(snapshot)
    state = scheduling_state(snapshot)
    state, report = _report(state)
    decided = {decision["job"]: decision for decision in report["decisions"]}
    budgets, indices = _Budgets(snapshot), _indices(state.document)
    lost = {step.job: step for step in _lost(snapshot) if step.job not in leaving}
    records = {record["id"]: record for record in snapshot.waiting}
    steps = [
        *lost.values(),
        *(
            step
            for name, decision in decided.items()
            if name not in lost
            and name not in leaving
            and (step := _step(decision, state, budgets, indices)) is not None
        ),
        *(_waits(records[name], reason) for name, reason in sorted(state.apart.items())),
        *beyond,
        *_released(snapshot, budgets),
    ]
    if plans:
        steps = [*_with_room(steps, snapshot, state, leaving, plans), *_serve(plans, snapshot)]
    pools = [pool for domain in state.document["domains"] for pool in _open_pools(domain)]
    result = PassResult(
        now=snapshot.now,
        revision=snapshot.revision,
        digest=canonical.digest(state.document),
        method=report["method"],
        steps=tuple(steps),
        notes=tuple(state.notes),
        waiting=len(state.document["waiting"]),
        free=sum(pool["free"] for pool in pools),
    )
    check(result, snapshot, state)
    return result


REPEATED_SECONDS = 60.0
"""Seconds after which it is told again how a load has changed that has changed nothing else."""


def _leaving(serving: ServingView, planned: ReplicaPlan) -> tuple[str, ...]:
    """Replicas of a serving job that are to be called off: all of them with it."""
    if serving["job"].get("cancelling"):
        return tuple(replica["id"] for replica in serving["replicas"] if not replica["leaving"])
    return planned.remove


def _serve(plans: Sequence[tuple[ServingView, ReplicaPlan]], snapshot: FederationSnapshot) -> Iterator[JobStep]:
    """What becomes of serving jobs and their replicas."""
    for serving, planned in plans:
        job = serving["job"]
        for name in _leaving(serving, planned):
            reason = f"{job['id']} is called off" if job.get("cancelling") else f"{job['id']} needs it no longer"
            yield JobStep(name, JobVerb.CANCEL, f"{reason}: {planned.reason}"[:MAX_REASON_CHARACTERS], 0)
        state = replica_state(planned, serving, snapshot.now)
        if job.get("cancelling"):
            if not serving["replicas"]:
                yield JobStep(job["id"], JobVerb.SERVE, "", 0, replicas={**state, "wanted": 0, "running": 0})
        elif planned.add or _is_news(state, job, snapshot.now):
            reason = f"{planned.running} of {planned.wanted} run. {planned.reason}"[:MAX_REASON_CHARACTERS]
            step = JobStep(job["id"], JobVerb.SERVE, reason, 0, replicas=state)
            yield replace(step, add=planned.add, serial=serving["serial"])


def _is_news(state: "documents.ReplicaState", job: "documents.JobRecord", now: str) -> bool:
    """Whether what is told of replicas differs from what was told before: in more than load, or long ago."""
    before = job.get("replicas")
    if before is None or any(before.get(name) != state.get(name) for name in ("wanted", "running", "jobs")):
        return True
    known = ("load" in before) != ("load" in state)
    loads = any(before.get(name) != state.get(name) for name in ("load", "predicted"))
    return known or (loads and seconds_of(now) - seconds_of(before["decided_at"]) >= REPEATED_SECONDS)


def _with_room(
    steps: list[JobStep],
    snapshot: FederationSnapshot,
    state: FederationState,
    leaving: Mapping[str, ServingView],
    plans: Sequence[tuple[ServingView, ReplicaPlan]],
) -> Iterator[JobStep]:
    """Steps, with those of jobs that give way to replicas which go on waiting, or take back what they gave up."""
    starting = [step.placement for step in steps if step.placement is not None]
    changing = {step.job for step in steps if step.verb in {JobVerb.STOP, JobVerb.RESIZE, JobVerb.LOSE}} | set(leaving)
    changing |= {step.job for step in steps if step.verb is JobVerb.PLACE}
    placed = {step.job for step in steps if step.verb in {JobVerb.PLACE, JobVerb.HOLD}}
    waiting = [entry["spec"]["id"] for entry in state.document["waiting"] if entry["spec"]["id"] not in placed]
    changes = make_room(state.document, state.records, starting, changing, waiting)
    if not changes and not any(_is_changing(serving, planned) for serving, planned in plans):
        remaining = [record for record in snapshot.waiting if record["id"] not in placed]
        changes = take_back(state.document, state.records, starting, changing, remaining)
    for_whom: dict[str, list[SizeChange]] = {}
    for change in changes:
        for_whom.setdefault(change.beneficiary or "", []).append(change)
    for step in steps:
        yield _told_room(step, for_whom[step.job]) if step.job in for_whom else step
    for change in changes:
        yield _gives_way(change, state.records[change.job])


def _is_changing(serving: ServingView, planned: ReplicaPlan) -> bool:
    """Whether replicas of a serving job come or go, so that what is free will soon be otherwise."""
    leaving = any(replica["leaving"] for replica in serving["replicas"])
    return bool(planned.add or _leaving(serving, planned) or leaving)


def _told_room(step: JobStep, changes: Sequence[SizeChange]) -> JobStep:
    """The step of a replica that goes on waiting, with who makes room for it."""
    given = ", ".join(
        f"{change.job} gives up {change.before - change.devices} of {change.before}" for change in changes
    )
    reason = f"{step.reason} Room is made: {given} devices."[:MAX_REASON_CHARACTERS]
    return replace(step, reason=reason, decision=wait(step.job, reason))


def _gives_way(change: SizeChange, record: "documents.JobRecord") -> JobStep:
    """A job that runs gives way to a replica, or takes back what it gave up for one."""
    if change.beneficiary is None:
        words = f"it takes back what it gave up: grown to {change.devices} of at most {record['devices']['maximum']}."
    elif change.devices:
        words = f"shrunk to {change.devices} to make room for {change.beneficiary}, which {change.serving} needs now."
    else:
        words = f"stopped to make room for {change.beneficiary}, which {change.serving} needs now."
    reason = f"{GAVE_WAY}{words} It is started again from its checkpoint."[:MAX_REASON_CHARACTERS]
    explanation: documents.PlacementExplanation = {"alternatives": [], "reason": reason}
    if change.beneficiary is not None:
        explanation["beneficiary"] = change.beneficiary
    if not change.devices:
        stopped: documents.PlacementDecision = {"job": change.job, "verb": "stop", "explanation": explanation}
        return JobStep(change.job, JobVerb.STOP, reason, record["attempt"], stopped)
    domain, accelerator = change.pool
    share: documents.DomainShare = {"domain": domain, "accelerator": accelerator, "devices": change.devices}
    resized: documents.PlacementDecision = {
        "job": change.job,
        "verb": "resize",
        "placement": {**record["placement"], "shares": [share]},
        "explanation": explanation,
    }
    size: documents.JobResize = {"devices": change.devices, "before": change.before}
    if change.beneficiary is not None:
        size["beneficiary"] = change.beneficiary
    return JobStep(change.job, JobVerb.RESIZE, reason, record["attempt"], resized, resize=size)


def record(snapshot: FederationSnapshot) -> dict[str, Any]:
    """What is to be kept of a pass so that it can be made again, as JSON values."""
    return snapshot.to_json()


def replay(recorded: Mapping[str, Any]) -> PassResult:
    """Make a pass again from what :func:`record` gave; the same steps, with the same digest."""
    return decide(FederationSnapshot.from_json(recorded))


def check(result: PassResult, snapshot: FederationSnapshot, state: FederationState) -> None:
    """Hold what came of a pass against the invariants.

    Raises:
        BrokenInvariantError: One of them is broken.
    """
    twice = [name for name, count in Counter(step.job for step in result.steps).items() if count > 1]
    if twice:
        raise BrokenInvariantError(f"{', '.join(twice)}: more than one step")
    free = _Free(state.document)
    running = {record["id"]: record for record in snapshot.active}
    waiting = {record["id"]: record for record in snapshot.waiting}
    for step in result.steps:
        if step.verb is JobVerb.PLACE:
            if step.job not in waiting or step.placement is None:
                raise BrokenInvariantError(f"{step.job} is placed, and does not wait")
            free.take(waiting[step.job], step.placement)
        elif step.verb in {JobVerb.STOP, JobVerb.RESIZE}:
            entry = running.get(step.job)
            if entry is None or entry["state"] != RUNNING or entry.get("cancelling") or "checkpoint" not in entry:
                raise BrokenInvariantError(f"{step.job} is stopped, and may not be")
            if step.verb is JobVerb.RESIZE:
                free.resize(entry, step)


class _Free:
    """What is free in a state, given out share by share.

    Args:
        document: Class SchedulingState.
    """

    def __init__(self, document: "documents.SchedulingState") -> None:
        self._kinds = {accelerator["id"]: accelerator.get("kind") for accelerator in document["accelerators"]}
        self._pools: dict[tuple[str, str], int] = {}
        self._nodes: dict[tuple[str, str, str], int] = {}
        for domain in document["domains"]:
            for pool in _open_pools(domain):
                key = (domain["id"], pool["accelerator"])
                self._pools[key] = pool["free"]
                for node in pool.get("nodes", ()):
                    self._nodes[*key, node["id"]] = node["free"]

    def take(self, request: "documents.JobRequest", placement: "documents.JobPlacement") -> None:
        """Give out what a job is placed on.

        Raises:
            BrokenInvariantError: It is not there, or not for this job.
        """
        job, devices = request["id"], request["devices"]
        shares = placement["shares"]
        total = sum(share["devices"] for share in shares)
        if not devices["minimum"] <= total <= devices["maximum"]:
            raise BrokenInvariantError(f"{job} is given {total} devices")
        for share in shares:
            key = (share["domain"], share["accelerator"])
            if request.get("domains") and share["domain"] not in request["domains"]:
                raise BrokenInvariantError(f"{job} is placed in {share['domain']}, where it may not run")
            if request.get("device_kinds") and self._kinds.get(share["accelerator"]) not in request["device_kinds"]:
                raise BrokenInvariantError(f"{job} is placed on {share['accelerator']}, which is of another kind")
            if self._pools.get(key, 0) < share["devices"]:
                raise BrokenInvariantError(f"{job} is given {share['devices']} devices of {key}, which are not free")
            self._pools[key] -= share["devices"]
            for node in share.get("nodes", ()):
                place = (*key, node["node"])
                if self._nodes.get(place, 0) < node["devices"]:
                    raise BrokenInvariantError(f"{job} is given {node['devices']} devices of {place}, not free")
                self._nodes[place] -= node["devices"]

    def resize(self, record: "documents.JobRecord", step: JobStep) -> None:
        """Give out what a running job is to have beyond what it holds.

        Raises:
            BrokenInvariantError: It is not there, or not a number of devices that the job can work with.
        """
        job, devices = record["id"], record["devices"]
        assert step.resize is not None
        assert step.decision is not None
        size, before = step.resize["devices"], step.resize["before"]
        if not devices["minimum"] <= size <= devices["maximum"] or size == before:
            raise BrokenInvariantError(f"{job} is resized from {before} to {size} devices")
        share = step.decision["placement"]["shares"][0]
        key = (share["domain"], share["accelerator"])
        if self._pools.get(key, 0) < size - before:
            raise BrokenInvariantError(f"{job} is given {size - before} more devices of {key}, which are not free")
        self._pools[key] -= max(size - before, 0)


class _Budgets:
    """What is left of the budgets of jobs.

    What a job has cost so far is its device hours at the mean price of a reference device now, since nobody keeps a
    bill; prices of the past are not known.

    Args:
        snapshot: Where prices are.
    """

    def __init__(self, snapshot: FederationSnapshot) -> None:
        domains = {domain["id"]: domain for domain in snapshot.domains}
        total = devices = 0.0
        for node in snapshot.nodes:
            if node.get("devices"):
                _, count, _ = main_kind(node)
                total += price_of(node, price_of(domains.get(node["domain"]))) * count
                devices += count
        self._price = total / devices if devices else 0.0

    def left(self, record: "documents.JobRecord") -> float:
        """Money that a job may still cost; infinite without a budget."""
        if "budget" not in record:
            return float("inf")
        return float(record["budget"]) - float(record["device_hours"]) * self._price


def _report(state: FederationState) -> "tuple[FederationState, documents.PlacementReport]":
    """What is decided on a state, and the state without jobs that could not be decided on."""
    # Loaded by those who decide alone: the service, which names steps of passes, is ready sooner without.
    from kuayu.scheduling import place as placements

    document = state.document
    if not any(pool["devices"] for domain in document["domains"] for pool in domain["pools"]):
        waits = [wait(entry["spec"]["id"], NOBODY_OFFERS) for entry in document["waiting"]]
        method: documents.SchedulingMethod = {
            "name": placements.METHOD_NAME,
            "version": placements.METHOD_VERSION,
            "fallback": False,
        }
        return state, {"revision": document["revision"], "method": method, "decisions": waits}
    while True:
        try:
            request: documents.PlacementRequest = {"state": document, "explain": True, "alternatives": ALTERNATIVES}
            return state._replace(document=document), placements.place(request)
        except Refusal as refusal:
            refused = _refused(refusal)
            if not refused:
                raise
            apart = {document["waiting"][place]["spec"]["id"]: reason for place, reason in refused.items()}
            waiting = [entry for place, entry in enumerate(document["waiting"]) if place not in refused]
            document = {**document, "waiting": waiting}
            state = state._replace(apart=state.apart | apart)


def _refused(refusal: Refusal) -> dict[int, str]:
    """Places of waiting jobs that a refusal complains of, and what of them; others need not wait for these."""
    reasons: dict[int, str] = {}
    for pointer, detail in refusal.pointers:
        parts = pointer.split("/")
        if parts[1:3] == ["state", "waiting"] and len(parts) > 3:  # noqa: PLR2004 - the place of the job
            reasons.setdefault(int(parts[3]), f"It cannot be decided on: {detail}.")
    return reasons


def _open_pools(domain: "documents.PoolDomain") -> "list[documents.ComputePool]":
    """Pools of a domain, where it can be reached."""
    return domain["pools"] if domain.get("reachable", True) else []


def _indices(document: "documents.SchedulingState") -> Indices:
    """Compute indices of a state, by accelerator and task profile."""
    return {
        accelerator["id"]: {index["profile"]: index["value"] for index in accelerator["indices"]}
        for accelerator in document["accelerators"]
    }


def _step(
    decision: "documents.PlacementDecision",
    state: FederationState,
    budgets: _Budgets,
    indices: Indices,
) -> JobStep | None:
    """What a decision leads to; None where it is left alone."""
    verb, record = decision["verb"], state.records[decision["job"]]
    reason = decision["explanation"]["reason"]
    if verb == "start":
        step = _start(decision, record, budgets)
        return replace(step, weights=_weights(step, profile_of(record), indices))
    if verb == "wait":
        from kuayu.scheduling.place import NO_WAY

        has_way = not reason.startswith(NO_WAY)
        if not has_way and (lacking := [*_lacks(record, state.document)]):
            reason = " ".join([reason, *lacking])[:MAX_REASON_CHARACTERS]
            decision = {**decision, "explanation": {**decision["explanation"], "reason": reason}}
        return JobStep(record["id"], JobVerb.DECIDE, reason, record["attempt"], decision, has_way=has_way)
    beneficiary = state.records.get(decision["explanation"].get("beneficiary", ""))
    if _is_beyond_replica(beneficiary, record):
        return None  # its devices may be worth more to a replica, to which only jobs of lower priority give way
    if verb == "resize":
        return _resized(decision, record, beneficiary)
    reason = f"{INTERRUPTED}{reason}"
    if verb == "migrate":
        reason = f"{reason} It is stopped and started again from its checkpoint for that: it goes on elsewhere."
    makes_room_for, words = decision["explanation"].get("beneficiary"), reason[:MAX_REASON_CHARACTERS]
    return JobStep(record["id"], JobVerb.STOP, words, record["attempt"], decision, beneficiary=makes_room_for)


def _lacks(record: "documents.JobRecord", document: "documents.SchedulingState") -> Iterator[str]:
    """What a job without a way lacks, so that somebody can see to it."""
    if not any(domain.get("reachable", True) for domain in document["domains"]):
        yield "No domain asks for its actions now (kuayu domain run)."
    if record.get("domains"):
        yield f"It may only run in {', '.join(record['domains'])}."
    known = {domain["id"] for domain in document["domains"]}
    allowed = known & set(record.get("domains", known))
    if len(allowed) <= 1 or all(mode == INSIDE for mode in record.get("split_modes", ())):
        return
    if "communication" not in record:
        yield "It may be spread over domains, but does not say what it sends between them (communication)."
    elif not any({link["source"], link["target"]} <= allowed for link in document["links"]):
        yield "It may be spread over domains, but no link between those allowed is registered (kuayu domain link)."


def _is_beyond_replica(beneficiary: "documents.JobRecord | None", record: "documents.JobRecord") -> bool:
    """Whether somebody would make room for a replica of no higher priority than his own."""
    if beneficiary is None or "replica_of" not in beneficiary:
        return False
    return record.get("priority", 0) >= beneficiary.get("priority", 0)


def _resized(
    decision: "documents.PlacementDecision", record: "documents.JobRecord", waiting: "documents.JobRecord | None"
) -> JobStep | None:
    """A running job goes on with another number of devices; None where that would have it begin anew.

    Args:
        decision: What was decided.
        record: The job.
        waiting: The job that waits for what it gives up, where there is one.
    """
    above = waiting is not None and waiting.get("priority", 0) > record.get("priority", 0)
    if "checkpoint_step" not in record and not above:
        return None
    devices = sum(share["devices"] for share in decision["placement"]["shares"])
    before = sum(share["devices"] for share in record["placement"]["shares"])
    size: documents.JobResize = {"devices": devices, "before": before}
    if waiting is not None:
        size["beneficiary"] = waiting["id"]
    reason = f"{INTERRUPTED}{_resize_words(size, record)}. {decision['explanation']['reason']}"
    reason = f"{reason} It is stopped and started again from its checkpoint for that."[:MAX_REASON_CHARACTERS]
    return JobStep(record["id"], JobVerb.RESIZE, reason, record["attempt"], decision, resize=size)


def _resize_words(size: "documents.JobResize", record: "documents.JobRecord") -> str:
    if size["devices"] > size["before"]:
        return f"grown to {size['devices']} of at most {record['devices']['maximum']}"
    if "beneficiary" in size:
        return f"shrunk to {size['devices']} to make room for {size['beneficiary']}"
    return f"shrunk to {size['devices']} of at least {record['devices']['minimum']}, as it uses no more"


def _start(decision: "documents.PlacementDecision", record: "documents.JobRecord", budgets: _Budgets) -> JobStep:
    """A job starts, where its budget allows that, or is held."""
    explanation = decision["explanation"]
    left = budgets.left(record)
    name, attempt, reason = record["id"], record["attempt"], explanation["reason"]
    starts = [alternative for alternative in explanation["alternatives"] if alternative["verb"] == "start"]
    affordable = [start for start in starts if _cost(start["outcome"]) <= left]
    placement = decision["placement"]
    if _cost(explanation["outcome"]) > left:
        cheapest = min((_cost(candidate["outcome"]) for candidate in (explanation, *starts)), default=0.0)
        words = (
            f"It is expected to cost {_money(cheapest)} at least, and {_money(max(left, 0.0))} of its budget is left."
        )
        if not affordable:
            waits: documents.PlacementDecision = {
                "job": name,
                "verb": "wait",
                "explanation": {**explanation, "reason": words},
            }
            return JobStep(name, JobVerb.HOLD, words, attempt, waits)
        first, *affordable = affordable
        dearer = f"What scores best would cost {_money(_cost(explanation['outcome']))}, and {_money(left)} is left."
        reason = f"{dearer} The best that it can afford is started."
        placement = first["placement"]
        changed: documents.PlacementExplanation = {
            **explanation,
            "outcome": first["outcome"],
            "alternatives": affordable,
            "reason": reason,
        }
        decision = {**decision, "placement": placement, "explanation": changed}
    others = tuple(start["placement"] for start in affordable)
    return JobStep(name, JobVerb.PLACE, reason, attempt, decision, placement, others)


def _weights(step: JobStep, profile: str, indices: Indices) -> dict[str, dict[str, float]]:
    """Compute index of all devices that a step may come to hold, by domain and accelerator."""
    index_of: dict[str, dict[str, float]] = {}
    for placement in (step.placement, *step.alternatives):
        for share in placement["shares"] if placement else ():
            index = indices[share["accelerator"]][profile]
            index_of.setdefault(share["domain"], {})[share["accelerator"]] = index
    return index_of


def _waits(record: "documents.JobRecord", reason: str) -> JobStep:
    """A job that stands in no state waits, and it is said why."""
    return JobStep(record["id"], JobVerb.DECIDE, reason, record["attempt"], wait(record["id"], reason))


def wait(job: str, reason: str) -> "documents.PlacementDecision":
    """A job waits, for a reason that no scheduler gave."""
    return {"job": job, "verb": "wait", "explanation": {"alternatives": [], "reason": reason}}


def _released(snapshot: FederationSnapshot, budgets: _Budgets) -> Iterator[JobStep]:
    """Jobs that are held for their quota or budget, and would not be now.

    Those that are held for their budget are looked at by themselves, as if nobody else waited: those who do are not to
    lose devices to somebody who may be held again.
    """
    accounts = {account["id"]: account for account in snapshot.accounts}
    for record in snapshot.held:
        account = account_of(record)
        if is_held_for_quota(record) and not has_used_quota(accounts.get(account)):
            yield JobStep(record["id"], JobVerb.RELEASE, released_words(account), record["attempt"])
    held_back = [record for record in snapshot.held if "budget" in record and not is_held_for_quota(record)]
    if not held_back:
        return
    alone = replace(snapshot, waiting=held_back, held=())
    state, report = _report(scheduling_state(alone))
    for decision in report["decisions"]:
        record = state.records[decision["job"]]
        explanation = decision["explanation"]
        outcomes = [alternative["outcome"] for alternative in explanation["alternatives"]]
        outcomes += [explanation["outcome"]] if "outcome" in explanation else []
        left = budgets.left(record)
        cheapest = min(map(_cost, outcomes), default=float("inf"))
        if record["state"] == "held" and cheapest <= left:
            words = f"It is expected to cost {_money(cheapest)} now, which its budget allows."
            yield JobStep(record["id"], JobVerb.RELEASE, words, record["attempt"])


def _within_quotas(snapshot: FederationSnapshot) -> tuple[FederationSnapshot, list[JobStep]]:
    """A snapshot without waiting jobs whose account has used its quota, and these as they are held."""
    used_up = {account["id"]: account for account in snapshot.accounts if has_used_quota(account)}
    if not used_up:
        return snapshot, []
    waiting: list[documents.JobRecord] = []
    steps: list[JobStep] = []
    for record in snapshot.waiting:
        account = used_up.get(account_of(record))
        if account is None:
            waiting.append(record)
        else:
            words = held_words(account)
            decision = wait(record["id"], words)
            steps.append(JobStep(record["id"], JobVerb.HOLD, words, record["attempt"], decision))
    return replace(snapshot, waiting=waiting), steps


def _lost(snapshot: FederationSnapshot) -> Iterator[JobStep]:
    """Jobs that hold a node which is dead, or devices in a domain of which nothing at all is heard."""
    dead = {fault["node"]: fault for fault in snapshot.faults if fault["kind"] == LOST and "node" in fault}
    unheard = {
        fault["domain"]: fault
        for fault in snapshot.faults
        if fault["kind"] == UNHEARD and fault["domain"] not in snapshot.reachable
    }
    if not (dead or unheard):
        return
    for entry in sorted(snapshot.active, key=lambda record: str(record["id"])):
        if entry["state"] not in {STARTING, RUNNING} or entry.get("cancelling"):
            continue
        for share in entry.get("placement", {}).get("shares", ()):
            nodes = [node["node"] for node in share.get("nodes", ()) if node["node"] in dead]
            if nodes:
                fault = dead[nodes[0]]
                reason = f"The node {nodes[0]} in {share['domain']} is dead ({fault['id']})."
            elif share["domain"] in unheard:
                fault = unheard[share["domain"]]
                reason = f"Nothing is heard of {share['domain']} any more ({fault['id']})."
            else:
                continue
            yield JobStep(entry["id"], JobVerb.LOSE, reason, entry["attempt"])
            break


def _cost(outcome: "documents.PredictedOutcome") -> float:
    """Money that something is expected to cost, devices and links together."""
    return float(outcome["price"]) + float(outcome["communication_cost"])


def _money(amount: float) -> str:
    return f"{amount:.2f}"


def steps_by_verb(steps: Sequence[JobStep]) -> Counter[str]:
    """How many steps of each kind there are."""
    return Counter(step.verb.value for step in steps)
