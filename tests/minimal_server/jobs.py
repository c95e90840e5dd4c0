"""Jobs: taken in once, told as they change, and given devices of the first domain that has room, in order of priority.

Jobs are placed by number, kind and memory of devices, and over several domains that are joined by links where they may
be spread and no domain alone has room. A job that asks for more than that waits.
"""

import json
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from minimal_server.canonical import digest
from minimal_server.core import Answer, Json, Refusal, Request, Tenant, instant, wrong_body, wrong_parameter
from minimal_server.reserving import Allocation
from minimal_server.streams import EVENT, QUIET
from minimal_server.watching import Watching

ENDS = ("succeeded", "failed", "cancelled")
"""States that a job does not leave."""

OVER = ("succeeded", "failed", "stopped")
"""States of a run that has ended."""

HELD_JOB_CHANGES = 10_000
"""How many of the newest changes are kept for who resumes a stream."""

LEASE = 3.0
"""Seconds for which domains run what they are not answered for; short, so that a lost domain is soon known."""

NOT_PLACED_BY = ("nodes", "links", "data")
"""Needs that this server cannot meet; jobs that state one wait."""

METHOD_OF_JOBS = {"name": "minimal server: the first domain with room", "version": "1"}


@dataclass
class Run:
    """What a domain does for an attempt.

    Attributes:
        domain: Which domain.
        start: The action by which it was asked to start.
        stop: The one by which it was asked to stop; empty where it was not.
        state: As it was reported; empty before.
        over: Whether nothing of it runs any more, or will.
        lines: How many lines of its log are kept.
    """

    domain: str
    start: str = ""
    stop: str = ""
    state: str = ""
    over: bool = False
    lines: int = 0


@dataclass
class Job:
    """A job, and how it stands.

    Attributes:
        body: What was submitted.
        number: How many had been submitted before.
        submitted: When, in milliseconds since 1970.
        state: Where it stands, with the reason and all changes.
        attempt: Which attempt, from one.
        tries: How often devices were asked for.
        failures: Attempts that failed by its own fault.
        allocation: By which it is given devices.
        held: What it holds.
        since: Since when.
        hours: Device hours before.
        verdict: How its attempt ends, once that is known: succeeded, failed by its own fault, or lost.
        cancelling: Whether it was called off.
        runs: Runs by attempt and domain.
        record: As it is told.
        decision: What was decided last.
        resize: Devices that it is to go on with, until it has them.
        interrupted: When a decision interrupted it last.
        log: Lines of all its runs, in the order in which they came.
    """

    body: Json
    number: int
    submitted: int
    state: str = ""
    reason: str = ""
    transitions: list[Json] = field(default_factory=list)
    attempt: int = 0
    tries: int = 0
    failures: int = 0
    allocation: Allocation | None = None
    held: Json | None = None
    since: int = 0
    hours: float = 0.0
    verdict: str = ""
    cancelling: bool = False
    step: int | None = None
    checkpoint_step: int | None = None
    started: int | None = None
    ended: int | None = None
    runs: dict[tuple[int, str], Run] = field(default_factory=dict)
    record: Json = field(default_factory=dict)
    decision: Json | None = None
    resize: Json | None = None
    interrupted: int | None = None
    log: list[Json] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.body["id"])

    @property
    def present(self) -> list[Run]:
        """Runs of its present attempt, in the order of ranks."""
        return [run for (attempt, _), run in self.runs.items() if attempt == self.attempt and self.allocation]

    @property
    def ending(self) -> bool:
        """Whether nothing more is to be started of its attempt."""
        return bool(self.verdict) or self.cancelling


@dataclass
class Queue:
    """Jobs of a tenant.

    Attributes:
        number: Revision at which they stand.
        jobs: By name.
        changes: The newest changes: the job as it came to be by each.
        orders: What domains were asked for because of jobs: job, attempt and domain, by action.
        spent: Devices that each account has held, and from when until when, of attempts that are over.
        known: Revision of registrations and allocations when devices were last looked for without a job having changed.
    """

    number: int = 0
    jobs: dict[str, Job] = field(default_factory=dict)
    changes: deque[Json] = field(default_factory=lambda: deque(maxlen=HELD_JOB_CHANGES))
    orders: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    known: int = 0
    spent: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)


class Jobs(Watching):
    """What is told of jobs, and which of them is next."""

    def __init__(self, *arguments: Any) -> None:
        """There are no jobs; revisions of jobs begin anew with each process."""
        super().__init__(*arguments)
        self.queues: dict[str, Queue] = {}
        self.job_epoch = secrets.token_hex(8)
        self.changed_jobs = threading.Condition(self.lock)

    def job_queue(self, tenant: Tenant) -> Queue:
        """Jobs of a tenant."""
        return self.queues.setdefault(tenant.name, Queue())

    def job_revision(self, number: int) -> Json:
        """Where jobs stand; another count than that of registrations."""
        return {"epoch": self.job_epoch, "number": number}

    def put_job(self, request: Request, name: str) -> Answer:
        """Take a job in; the same again changes nothing."""
        body = self.body(request, "JobRequest")
        if body["id"] != name:
            raise wrong_body("invalid-body", "/id", "the body names another job than the path")
        if name == "events":
            raise wrong_body("invalid-body", "/id", "under this name stands the stream of jobs")
        queue = self.job_queue(request.tenant)
        known = queue.jobs.get(name)
        if known is not None:
            if self.is_another(known, body):
                raise wrong_body("invalid-body", "", "a job does not change; another one needs another name")
            return Answer(200, known.record)
        job = queue.jobs[name] = Job(self.kept_of(body), len(queue.jobs), self.moment)
        self.enter_state(request.tenant, job, "queued", "it was submitted, and waits for devices", self.moment)
        self.consider(request.tenant, self.moment)
        return Answer(201, job.record)

    def is_another(self, known: Job, body: Json) -> bool:
        """Whether what is submitted is not what was submitted under this name."""
        return known.body != body

    def kept_of(self, body: Json) -> Json:
        """What is kept of a submission: all of it."""
        return body

    def find_job(self, tenant: Tenant, name: str) -> Job:
        """The job of that name; those of other tenants are as if absent."""
        job = self.job_queue(tenant).jobs.get(name)
        if job is None:
            raise Refusal("not-found", "there is no job of that name")
        return job

    def get_job(self, request: Request, name: str) -> Answer:
        """How it stands."""
        return Answer(200, self.find_job(request.tenant, name).record)

    def list_jobs(self, request: Request) -> Answer:
        """All jobs in order of name, at one revision from the first page to the last."""
        queue = self.job_queue(request.tenant)
        return self.page(request, lambda: self.listed_jobs(queue), self.job_revision(queue.number))

    def listed_jobs(self, queue: Queue) -> Iterator[Json]:
        """Jobs in order of name."""
        for _, job in sorted(queue.jobs.items()):
            yield job.record

    def get_decision(self, request: Request, name: str) -> Answer:
        """What was decided last about a job."""
        decision = self.find_job(request.tenant, name).decision
        if decision is None:
            raise Refusal("not-found", "nothing was decided about this job yet")
        return Answer(200, decision)

    # Changes

    def enter_state(self, tenant: Tenant, job: Job, state: str, reason: str, moment: int) -> None:
        """A job comes into a state."""
        job.state, job.reason = state, reason[:2000]
        job.transitions.append({"state": state, "at": instant(moment), "attempt": job.attempt, "reason": job.reason})
        if state == "running" and job.started is None:
            job.started = moment
        if state in ENDS:
            job.ended = moment
        self.change_job(tenant, job, moment)

    def change_job(self, tenant: Tenant, job: Job, moment: int) -> None:
        """A job has come to be so: one change, one revision."""
        queue = self.job_queue(tenant)
        queue.number += 1
        job.record = self.shown_job(job, self.job_revision(queue.number), moment)
        self.note_job_change(queue, job.record)
        self.changed_jobs.notify_all()

    def note_job_change(self, queue: Queue, record: Json) -> None:
        """Keep a change for who follows the jobs."""
        queue.changes.append(record)

    def shown_job(self, job: Job, revision: Json, moment: int) -> Json:
        """A job as it is told."""
        held = sum(share["devices"] for share in job.held["shares"]) if job.held else 0
        told = {
            "allocation": job.allocation and job.allocation.body["id"],
            "placement": job.held,
            "step": job.step,
            "checkpoint_step": job.checkpoint_step,
            "started_at": None if job.started is None else instant(job.started),
            "ended_at": None if job.ended is None else instant(job.ended),
            "cancelling": True if job.cancelling else None,
        }
        return {
            **job.body,
            "state": job.state,
            "reason": job.reason,
            "attempt": job.attempt,
            "failures": job.failures,
            **{member: value for member, value in told.items() if value is not None},
            "device_hours": job.hours + held * (moment - job.since) / 3_600_000,
            "submitted_at": instant(job.submitted),
            "transitions": job.transitions[-1000:],
            "revision": revision,
        }

    def get_job_events(self, request: Request) -> Answer:
        """Changes as a stream, from the next one or from the one that was received last."""
        number = self.jobs_behind(request)
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        return Answer(200, self.follow_jobs(self.job_queue(request.tenant), number), headers)

    def jobs_behind(self, request: Request) -> int:
        """Number of the revision behind which the stream begins."""
        queue = self.job_queue(request.tenant)
        last = request.headers.get("last-event-id")
        if last is None:
            return queue.number
        event = EVENT.fullmatch(last)
        if event is None:
            raise wrong_parameter("Last-Event-ID", "Last-Event-ID must be a revision EPOCH:NUMBER")
        if event[1] != self.job_epoch or not self.holds_jobs_from(queue, int(event[2])):
            raise Refusal("revision-expired", "this event is not held; list the jobs and follow from their revision")
        return int(event[2])

    def holds_jobs_from(self, queue: Queue, number: int) -> bool:
        """Whether all changes behind a revision are held."""
        return queue.number - len(queue.changes) <= number <= queue.number

    def follow_jobs(self, queue: Queue, number: int) -> Iterator[bytes]:
        """Events without end, or until a reader is so slow that what comes next is no longer held."""
        yield b": jobs follow\n\n"
        spoken = time.monotonic()
        while True:
            with self.changed_jobs:
                self.changed_jobs.wait_for(
                    lambda behind=number: queue.number > behind,  # type: ignore[misc]
                    QUIET - (time.monotonic() - spoken),
                )
                if not self.holds_jobs_from(queue, number):
                    return
                changes = [record for record in queue.changes if record["revision"]["number"] > number]
                number = queue.number
            if changes or time.monotonic() - spoken >= QUIET:
                yield b"".join(self.job_event(record) for record in changes) or b": nothing new\n\n"
                spoken = time.monotonic()

    def job_event(self, record: Json) -> bytes:
        """A change as an event."""
        identifier = "{epoch}:{number}".format(**record["revision"])
        data = json.dumps(record, separators=(",", ":"))
        return f"id: {identifier}\nevent: job\ndata: {data}\n\n".encode()

    # Who is next, and where

    def consider(self, tenant: Tenant, moment: int) -> None:
        """Give devices to jobs that wait, in their order, as far as there are any; say of each what was decided."""
        waiting = self.queue_order([job for job in self.job_queue(tenant).jobs.values() if job.state == "queued"])
        waiting = self.take_turns(tenant, waiting, moment)
        if not waiting:
            return
        state = self.scheduling_state(tenant, waiting, moment)
        for job in waiting:
            placement = self.placement_of(tenant, job)
            self.decide(job, placement, state)
            if placement is not None:
                self.begin_attempt(tenant, job, placement, moment)

    def queue_order(self, waiting: list[Job]) -> list[Job]:
        """Those of higher priority first, and of the same those that were submitted first."""
        return sorted(waiting, key=lambda job: (-job.body.get("priority", 0), job.number))

    def take_turns(self, _tenant: Tenant, waiting: list[Job], _moment: int) -> list[Job]:
        """Jobs of several accounts in their turn."""
        return waiting

    def begin_attempt(self, tenant: Tenant, job: Job, placement: Json, moment: int) -> None:
        """Ask for the devices of an attempt."""
        raise NotImplementedError

    def decide(self, job: Job, placement: Json | None, state: Json) -> None:
        """Keep what was decided about a job, and on what."""
        decision: Json = {"job": job.name, "verb": "wait" if placement is None else "start"}
        if placement is not None:
            decision["placement"] = placement
        decision["explanation"] = {"alternatives": [], "reason": self.why(job, placement)}
        job.decision = {
            "job": job.name,
            "at": state["now"],
            "revision": state["revision"],
            "digest": self.digest_of_state(state, job),
            "method": METHOD_OF_JOBS,
            "decision": decision,
        }

    def digest_of_state(self, state: Json, _job: Job) -> str:
        """Digest of what a decision rests on."""
        return digest(state)

    def why(self, job: Job, placement: Json | None) -> str:
        """A decision in words."""
        if placement is not None:
            return f"there is room in {', '.join(share['domain'] for share in placement['shares'])}"
        needs = [need for need in NOT_PLACED_BY if self.needs(job, need)]
        if needs:
            return f"it states {', '.join(needs)}, which this server cannot meet"
        return f"no domain that it may run in has {job.body['devices']['minimum']} free devices of its kind"

    def needs(self, job: Job, need: str) -> bool:
        """Whether a job needs what this server cannot give; data that may be read from afar are no need."""
        stated = job.body.get(need)
        return bool(stated) and (need != "data" or any(row.get("pinned") for row in stated))

    def placement_of(self, tenant: Tenant, job: Job) -> Json | None:
        """Where a job is to run: in the first domain that has room, or in several; None where there is no room."""
        if any(self.needs(job, need) for need in NOT_PLACED_BY):
            return None
        pools = [(pool, free) for pool, free in self.free_devices(tenant, job).items() if free > 0]
        for (domain, kind), free in pools:
            if devices := self.fitting(job, free):
                share = {"domain": domain, "accelerator": kind, "devices": devices}
                return {"shares": [share], "split_mode": "none"}
        modes = [mode for mode in job.body.get("split_modes", ()) if mode != "none"]
        if not modes or "communication" not in job.body:
            return None
        shares, joined = [], set[str]()
        for (domain, kind), free in pools:
            left = self.fitting(job, 1 << 50) - sum(share["devices"] for share in shares)
            if left and domain not in joined and all(self.are_linked(tenant, domain, other) for other in joined):
                shares.append({"domain": domain, "accelerator": kind, "devices": min(left, free)})
                joined.add(domain)
        if len(shares) < 2 or self.fitting(job, sum(share["devices"] for share in shares)) != sum(
            share["devices"] for share in shares
        ):
            return None
        period = {"sync_period": job.body.get("sync_period", 100)} if modes[0] == "periodic" else {}
        return {"shares": shares, "split_mode": modes[0], **period}

    def fitting(self, job: Job, free: int) -> int:
        """How many of so many devices a job can work with; nought where they are too few."""
        wanted = job.body["devices"]
        most = min(wanted.get("requested", wanted["maximum"]), free)
        if most < wanted["minimum"]:
            return 0
        step = max(1, wanted.get("step", 1))
        return int(wanted["minimum"] + (most - wanted["minimum"]) // step * step)

    def free_devices(self, tenant: Tenant, job: Job) -> dict[tuple[str, str], int]:
        """Devices that a job could be given, by domain and kind."""
        allowed, kinds = job.body.get("domains"), job.body.get("device_kinds")
        free = self.all_devices(tenant, job.body.get("memory_per_device", 0.0))
        for (domain, kind), taken in self.taken_devices(tenant).items():
            free[domain, kind] = free.get((domain, kind), 0) - taken
        return {
            (domain, kind): count
            for (domain, kind), count in sorted(free.items())
            if self.is_place(tenant, domain) and (not allowed or domain in allowed) and (not kinds or kind in kinds)
        }

    def is_place(self, tenant: Tenant, domain: str) -> bool:
        """Whether a domain owes no answer to an action by which something is to end there."""
        asked = self.book(tenant).open.get(domain, {}).values()
        return not any(action["kind"] in {"stop", "release"} or action["phase"] == "abort" for action in asked)

    def all_devices(self, tenant: Tenant, memory: float = 0.0) -> Counter[tuple[str, str]]:
        """Devices with so much memory of nodes that are not told dead or failing, by domain and kind."""
        told = self.docket(tenant).open
        found = Counter[tuple[str, str]]()
        for name, node in self.held(tenant, "nodes").items():
            if ("node_dead", name, -1) not in told and ("node_failing", name, -1) not in told:
                rows = [row for row in node.get("devices", ()) if row.get("memory_capacity", 0.0) >= memory]
                found.update((node["domain"], row["kind"]) for row in rows)
        return found

    def taken_devices(self, tenant: Tenant) -> Counter[tuple[str, str]]:
        """Devices that allocations hold or may come to hold, by domain and kind."""
        taken = Counter[tuple[str, str]]()
        for one in self.book(tenant).allocations.values():
            if one.phase not in {"refused", "released"}:
                for share in one.placements[max(one.attempt, 0)]["shares"]:
                    taken[share["domain"], share["accelerator"]] += share["devices"]
        return taken

    def are_linked(self, tenant: Tenant, one: str, other: str) -> bool:
        """Whether links join two domains, both ways."""
        ways = {(link["source"], link["destination"]) for link in self.held(tenant, "links").values()}
        return {(one, other), (other, one)} <= ways

    def scheduling_state(self, tenant: Tenant, waiting: list[Job], moment: int) -> Json:
        """What decisions on jobs rest on, as class SchedulingState."""
        offered, taken = self.all_devices(tenant), self.taken_devices(tenant)
        pools: dict[str, list[Json]] = {}
        for (domain, kind), count in sorted(offered.items()):
            free = max(0, count - taken[domain, kind])
            pool = {"accelerator": kind, "devices": count, "free": free, "devices_per_node": count}
            pools.setdefault(domain, []).append(pool)
        running = [job for job in self.job_queue(tenant).jobs.values() if job.held]
        return {
            "revision": self.job_revision(self.job_queue(tenant).number),
            "now": instant(moment),
            "accelerators": [
                {"id": kind, "memory": 1.0, "indices": [{"profile": "any", "value": 1.0}]}
                for kind in sorted({kind for _, kind in offered})
            ],
            "domains": [{"id": domain, "pools": rows} for domain, rows in sorted(pools.items())],
            "links": [],
            "waiting": [{"spec": self.spec_of(job)} for job in waiting],
            "running": [
                {"spec": self.spec_of(job), "placement": job.held, "phase": "running", "done": 0.0} for job in running
            ],
        }

    def spec_of(self, job: Job) -> Json:
        """What a job asks for, as class JobSpec."""
        taken_over = ("id", "kind", "priority", "deadline", "devices", "device_kinds", "memory_per_device", "duration")
        return {
            **{member: job.body[member] for member in taken_over if member in job.body},
            "submitted_at": instant(job.submitted),
            "split_modes": job.body.get("split_modes", ["none"]),
        }
