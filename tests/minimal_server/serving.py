"""Serving jobs: as many replicas as the load told last needs, to which jobs of lower priority give way."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from minimal_server.core import Answer, Json, Request, Tenant, instant, milliseconds, wrong_body
from minimal_server.elastic import Elastic
from minimal_server.jobs import ENDS, Job

COOL_DOWN = 300.0
"""Seconds for which a serving job keeps its replicas, where it does not say."""

OF_ALL = ("id", "label", "serving")
"""Members of a serving job that its replicas do not have."""


@dataclass
class Served:
    """What is known of a serving job.

    Attributes:
        loads: Instants in milliseconds, and requests a second, as they were told.
        serial: How many replicas it has had.
        added: When the last one was added.
        told: Its replicas, as they are told.
    """

    loads: list[tuple[int, float]] = field(default_factory=list)
    serial: int = 0
    added: int = 0
    told: Json | None = None


class Serving(Elastic):
    """How many replicas there are, who gives way to them, and who takes back."""

    def served_of(self, tenant: Tenant, job: Job) -> Served:
        """What is known of a serving job."""
        if not hasattr(self, "served"):
            self.served: dict[tuple[str, str], Served] = {}
            self.gave_way: set[tuple[str, str]] = set()
        return self.served.setdefault((tenant.name, job.name), Served())

    def post_job_load(self, request: Request) -> Answer:
        """Take a load in."""
        body = self.body(request, "JobLoad")
        job = self.job_queue(request.tenant).jobs.get(body["job"])
        if job is None:
            raise wrong_body("unknown-reference", "/job", "there is no job of that name")
        if "serving" not in job.body:
            raise wrong_body("invalid-body", "/job", "the job serves nothing")
        self.served_of(request.tenant, job).loads.append((milliseconds(body["observed_at"]), float(body["rate"])))
        self.consider(request.tenant, self.moment)
        return Answer(200, job.record)

    def serving_jobs(self, tenant: Tenant) -> Iterator[Job]:
        """Those that have not ended."""
        for job in list(self.job_queue(tenant).jobs.values()):
            if "serving" in job.body and job.state not in ENDS:
                yield job

    def replicas_of(self, tenant: Tenant, job: Job) -> list[Job]:
        """Its replicas that have not ended, those that were added first at the beginning."""
        jobs = self.job_queue(tenant).jobs.values()
        return [other for other in jobs if other.body.get("replica_of") == job.name and other.state not in ENDS]

    def consider(self, tenant: Tenant, moment: int) -> None:
        """Add replicas and take them away; then give devices to who waits, and have others give way or take back."""
        for job in self.serving_jobs(tenant):
            self.scale(tenant, job, moment)
        super().consider(tenant, moment)
        waiting = self.queue_order([job for job in self.job_queue(tenant).jobs.values() if job.state == "queued"])
        replicas = [job for job in waiting if "replica_of" in job.body]
        if replicas:
            self.give_way(tenant, replicas, moment)
        elif not waiting:
            self.take_back(tenant, moment)

    def queue_order(self, waiting: list[Job]) -> list[Job]:
        """Serving jobs themselves are given no devices."""
        return super().queue_order([job for job in waiting if "serving" not in job.body])

    def pass_on(self, tenant: Tenant) -> None:
        """Time has passed; cool-downs may be over."""
        super().pass_on(tenant)
        if any(self.is_due(tenant, job) for job in self.serving_jobs(tenant)):
            self.deed(tenant, "consider", self.moment)

    def is_due(self, tenant: Tenant, job: Job) -> bool:
        """Whether there are more replicas than there are to be now."""
        there = [replica for replica in self.replicas_of(tenant, job) if not replica.cancelling]
        return self.wanted(tenant, job, len(there), self.moment) < len(there)

    # How many there are

    def scale(self, tenant: Tenant, job: Job, moment: int) -> None:
        """Add replicas that are lacking, and take those away that are not needed; all where it was called off."""
        there = [replica for replica in self.replicas_of(tenant, job) if not replica.cancelling]
        wanted = 0 if job.cancelling else self.wanted(tenant, job, len(there), moment)
        for _ in range(wanted - len(there)):
            self.add_replica(tenant, job, moment)
        for replica in reversed(there[wanted:]):
            if replica.allocation is None:
                self.enter_state(tenant, replica, "cancelled", "its serving job needs it no longer", moment)
            else:
                self.call_off(tenant, replica)
        self.note_replicas(tenant, job, moment)

    def wanted(self, tenant: Tenant, job: Job, there: int, moment: int) -> int:
        """How many replicas it is to have."""
        served, cool_down = self.served_of(tenant, job), self.cool_down(job)
        number = self.carried_by(job, served.loads[-1][1] if served.loads else 0.0)
        if number >= there:
            return number
        if moment - served.added < cool_down:
            return there
        highest = max((load for at, load in served.loads if moment - at < cool_down), default=0.0)
        return max(number, min(there, self.carried_by(job, highest)))

    def carried_by(self, job: Job, load: float) -> int:
        """Replicas that carry a load, within the limits."""
        need = job.body["serving"]
        return int(max(need["minimum"], min(math.ceil(load / need["rate"]), need["maximum"])))

    def cool_down(self, job: Job) -> float:
        """Milliseconds for which replicas are kept."""
        return 1000.0 * float(job.body["serving"].get("cool_down", COOL_DOWN))

    def add_replica(self, tenant: Tenant, job: Job, moment: int) -> None:
        """A replica is a job that waits."""
        served, queue = self.served_of(tenant, job), self.job_queue(tenant)
        served.serial += 1
        served.added = moment
        name = f"{job.name}.{served.serial}"
        queue.jobs[name] = replica = Job(self.replica_body(job, name), len(queue.jobs), moment)
        self.enter_state(tenant, replica, "queued", f"{job.name} needs it", moment)

    def replica_body(self, job: Job, name: str) -> Json:
        """What a replica asks for."""
        body = {member: value for member, value in job.body.items() if member not in OF_ALL}
        return {**body, "id": name, "replica_of": job.name}

    # What is told

    def note_replicas(self, tenant: Tenant, job: Job, moment: int) -> None:
        """Tell how a serving job stands, where that has changed."""
        if job.state in ENDS:
            return
        all_of_them = self.replicas_of(tenant, job)
        if job.cancelling and not all_of_them:
            job.cancelling = False
            self.enter_state(tenant, job, "cancelled", "it was called off, and no replica is left", moment)
            return
        served = self.served_of(tenant, job)
        told = self.told_replicas(tenant, job, moment)
        before = served.told or {}
        if any(before.get(member) != told.get(member) for member in ("wanted", "running", "load", "jobs")):
            served.told = told
            state = self.state_by(told)
            words = f"{told['running']} of {told['wanted']} replicas run"
            if state != job.state and not job.cancelling:
                self.enter_state(tenant, job, state, words, moment)
            else:
                job.reason = words
                self.change_job(tenant, job, moment)

    def state_by(self, told: Json) -> str:
        """Where a serving job stands by its replicas."""
        return "running" if told["running"] else "queued"

    def told_replicas(self, tenant: Tenant, job: Job, moment: int) -> Json:
        """What is told of replicas."""
        there = [replica for replica in self.replicas_of(tenant, job) if not replica.cancelling]
        served = self.served_of(tenant, job)
        told: Json = {
            "decided_at": instant(moment),
            "wanted": self.wanted(tenant, job, len(there), moment),
            "running": sum(replica.state == "running" for replica in there),
            "jobs": sorted(replica.name for replica in there),
        }
        if served.loads:
            told |= {"load": served.loads[-1][1], "predicted": served.loads[-1][1]}
        return told

    def shown_job(self, job: Job, revision: Json, moment: int) -> Json:
        """A job as it is told, with its replicas."""
        states = getattr(self, "served", {})
        told = next((one.told for (_, name), one in states.items() if name == job.name and one.told), None)
        shown = super().shown_job(job, revision, moment)
        return shown | {"replicas": told} if told and "serving" in job.body else shown

    def enter_state(self, tenant: Tenant, job: Job, state: str, reason: str, moment: int) -> None:
        """A job comes into a state; of a replica its serving job tells."""
        super().enter_state(tenant, job, state, reason, moment)
        parent = self.job_queue(tenant).jobs.get(job.body.get("replica_of", ""))
        if parent is not None:
            self.note_replicas(tenant, parent, moment)

    def delete_job(self, request: Request, name: str) -> Answer:
        """Call a job off; a serving one with all of its replicas."""
        job, tenant = self.find_job(request.tenant, name), request.tenant
        if "serving" not in job.body:
            return super().delete_job(request, name)
        if job.state not in ENDS:
            job.cancelling, job.reason = True, "it was called off"
            self.change_job(tenant, job, self.moment)
            self.consider(tenant, self.moment)
        return Answer(200, job.record)

    # Who gives way

    def may_give_way(self, job: Job) -> bool:
        """Whether a job runs in one domain and goes on from a checkpoint where it is stopped."""
        runs = job.state == "running" and not job.ending and job.held is not None and len(job.held["shares"]) == 1
        return bool(runs and "checkpoint" in job.body and job.checkpoint_step is not None)

    def make_room(self, tenant: Tenant, waiting: Job, moment: int) -> None:
        """For replicas there are other rules."""
        if "replica_of" not in waiting.body:
            super().make_room(tenant, waiting, moment)

    def give_way(self, tenant: Tenant, replicas: list[Job], moment: int) -> None:
        """Have jobs of lower priority give up what replicas are lacking, all of it together."""
        jobs = list(self.job_queue(tenant).jobs.values())
        lower = [job for job in jobs if self.may_give_way(job) and self.is_lower(job, replicas[0])]
        coming = sum(
            self.devices_of(job) - (job.resize["devices"] if job.resize else 0)
            for job in jobs
            if job.ending and job.held is not None
        )
        needed = sum(replica.body["devices"]["minimum"] for replica in replicas)
        lacking = needed - coming - sum(self.free_devices(tenant, replicas[0]).values())
        lacking = self.asked_for(lacking)
        if lacking <= 0 or lacking > sum(map(self.devices_of, lower)):
            return
        for job in lower:
            held = self.devices_of(job)
            size = self.size_within(job, held - lacking) or int(job.body["devices"]["minimum"])
            if lacking > 0 and size < held and sum(map(self.spare, lower)) >= lacking:
                lacking -= held - size
                self.give_up(tenant, job, size, replicas[0], moment)
        for job in lower:
            if lacking > 0 and not job.ending:
                lacking -= self.devices_of(job)
                self.give_up(tenant, job, 0, replicas[0], moment)

    def asked_for(self, devices: int) -> int:
        """How many devices jobs are to give up."""
        return devices

    def spare(self, job: Job) -> int:
        """Devices that a job can give up and still go on."""
        return self.devices_of(job) - int(job.body["devices"]["minimum"])

    def is_lower(self, job: Job, replica: Job) -> bool:
        """Whether a job gives way to a replica."""
        return bool("replica_of" not in job.body and job.body.get("priority", 0) < replica.body.get("priority", 0))

    def give_up(self, tenant: Tenant, job: Job, size: int, replica: Job, moment: int) -> None:
        """A job goes on with fewer devices, or is stopped."""
        self.gave_way.add((tenant.name, job.name))
        if size:
            told = {"devices": size, "before": self.devices_of(job), "beneficiary": replica.name}
            self.resize(tenant, job, told, f"shrunk to {size} to make room for {replica.name}", moment)
        else:
            job.interrupted = moment
            self.fail_attempt(tenant, job, job.attempt, "lost", f"stopped to make room for {replica.name}")

    def take_back(self, tenant: Tenant, moment: int) -> None:
        """Have jobs grow again that gave way, once no replica comes or goes."""
        jobs = list(self.job_queue(tenant).jobs.values())
        if any(job.cancelling and job.state not in ENDS for job in jobs if "replica_of" in job.body):
            return
        for job in jobs:
            if (tenant.name, job.name) not in getattr(self, "gave_way", ()) or not self.may_give_way(job):
                continue
            wanted, held = job.body["devices"], self.devices_of(job)
            most = min(wanted.get("requested", wanted["maximum"]), held + self.free_beside(tenant, job, job))
            size = self.size_within(job, most)
            if size > held:
                self.resize(tenant, job, {"devices": size, "before": held}, f"grown to {size} again", moment)
