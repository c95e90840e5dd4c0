"""Elastic jobs: they grow where nobody waits, and shrink for one that does, each by a stop and another start."""

from minimal_server.accounts import Accounts
from minimal_server.core import Json, Tenant
from minimal_server.jobs import ENDS, NOT_PLACED_BY, Job, Run
from minimal_server.reserving import Allocation

DAY = 86_400.0
"""Seconds that a job has before it that is resized, and for which one would wait that others make room for."""

REST = 1_800_000
"""Milliseconds for which a job is left alone that was interrupted by a decision."""


class Elastic(Accounts):
    """Who is resized, and to what."""

    def consider(self, tenant: Tenant, moment: int) -> None:
        """Give devices to who waits; then have others make room, or grow where nobody waits."""
        super().consider(tenant, moment)
        jobs = list(self.job_queue(tenant).jobs.values())
        waiting = self.queue_order([job for job in jobs if job.state == "queued"])
        for job in self.take_turns(tenant, waiting, moment):
            self.make_room(tenant, job, moment)
        if not waiting:
            for job in jobs:
                self.grow(tenant, job, moment)

    def pass_on(self, tenant: Tenant) -> None:
        """Time has passed; devices may be there that were not."""
        registered = self.job_queue(tenant).known != tenant.number
        super().pass_on(tenant)
        if registered and any(self.can_be_resized(job, self.moment) for job in self.job_queue(tenant).jobs.values()):
            self.deed(tenant, "consider", self.moment)

    def take_report(self, tenant: Tenant, job: Job, run: Run, report: Json) -> None:
        """A run has come so far; with a checkpoint its job can be resized."""
        super().take_report(tenant, job, run, report)
        if "checkpoint_step" in report and self.can_be_resized(job, self.moment):
            self.consider(tenant, self.moment)

    def can_be_resized(self, job: Job, moment: int) -> bool:
        """Whether a job may be stopped to go on with another number of devices."""
        runs = job.state == "running" and not job.ending and job.held is not None and len(job.held["shares"]) == 1
        kept = "checkpoint" in job.body and job.checkpoint_step is not None
        return bool(runs and kept and self.may_be_resized(job, moment) and self.seconds_left(job) >= DAY)

    def may_be_resized(self, job: Job, moment: int) -> bool:
        """Whether its last interruption is long ago."""
        return job.interrupted is None or moment - job.interrupted >= REST

    def seconds_left(self, job: Job) -> float:
        """How long a job takes with the devices that it holds; what it has done does not count here."""
        wanted = job.body["devices"]
        seconds = float(job.body.get("duration", {}).get("expected", 0.0))
        return seconds * wanted.get("requested", wanted["maximum"]) / max(self.devices_of(job), 1)

    def size_within(self, job: Job, devices: int) -> int:
        """The most of so many devices that a job can work with; nought where they are too few."""
        wanted = job.body["devices"]
        most, step = min(wanted["maximum"], devices), max(1, wanted.get("step", 1))
        return int(wanted["minimum"] + (most - wanted["minimum"]) // step * step) if most >= wanted["minimum"] else 0

    def grow(self, tenant: Tenant, job: Job, moment: int) -> None:
        """Have a job go on with what is free in its domain as well."""
        if not self.can_be_resized(job, moment):
            return
        size = self.grown_size(job, self.free_beside(tenant, job, job))
        if size > self.devices_of(job):
            words = f"grown to {size} of at most {job.body['devices']['maximum']}"
            self.resize(tenant, job, {"devices": size, "before": self.devices_of(job)}, words, moment)

    def grown_size(self, job: Job, free: int) -> int:
        """Devices of a job that so many more are free for."""
        return self.size_within(job, self.devices_of(job) + free)

    def make_room(self, tenant: Tenant, waiting: Job, moment: int) -> None:
        """Have a running job give up what one that waits is lacking."""
        jobs = list(self.job_queue(tenant).jobs.values())
        seconds = float(waiting.body.get("duration", {}).get("expected", DAY))
        promised = any(job.resize and job.resize.get("beneficiary") == waiting.name for job in jobs)
        if promised or any(self.needs(waiting, need) for need in NOT_PLACED_BY):
            return
        for job in jobs:
            if (
                self.outranks(job, waiting)
                or not self.can_be_resized(job, moment)
                or self.seconds_left(job) < 2 * seconds
            ):
                continue
            lacking = waiting.body["devices"]["minimum"] - self.free_beside(tenant, waiting, job)
            size = self.shrunk_size(job, lacking)
            if 0 < size < self.devices_of(job):
                told = {"devices": size, "before": self.devices_of(job), "beneficiary": waiting.name}
                self.resize(tenant, job, told, f"shrunk to {size} to make room for {waiting.name}", moment)
                return

    def outranks(self, job: Job, waiting: Job) -> bool:
        """Whether a job is of higher priority than one that waits."""
        return bool(job.body.get("priority", 0) > waiting.body.get("priority", 0))

    def shrunk_size(self, job: Job, lacking: int) -> int:
        """Devices of a job that gives up so many; nought where it cannot."""
        return self.size_within(job, self.devices_of(job) - lacking)

    def free_beside(self, tenant: Tenant, job: Job, other: Job) -> int:
        """Devices that a job could have where another one runs."""
        assert other.held is not None
        [share] = other.held["shares"]
        return self.free_devices(tenant, job).get((share["domain"], share["accelerator"]), 0)

    def resize(self, tenant: Tenant, job: Job, told: Json, words: str, moment: int) -> None:
        """Stop a job, so that it is started again with another number of devices."""
        job.resize, job.interrupted = self.told_resize(told), moment
        self.fail_attempt(tenant, job, job.attempt, "lost", words)

    def told_resize(self, told: Json) -> Json | None:
        """What is told of a resize."""
        return told

    def fitting(self, job: Job, free: int) -> int:
        """How many of so many devices a job can work with; one that was resized asks for no more than that."""
        return super().fitting(job, min(free, job.resize["devices"]) if job.resize else free)

    def take_hold(self, tenant: Tenant, job: Job, one: Allocation, moment: int) -> None:
        """Devices are held everywhere; the job is resized, if it was to be."""
        job.resize = None
        super().take_hold(tenant, job, one, moment)

    def enter_state(self, tenant: Tenant, job: Job, state: str, reason: str, moment: int) -> None:
        """A job comes into a state; one that has ended is not resized any more."""
        if state in ENDS:
            job.resize = None
        super().enter_state(tenant, job, state, reason, moment)

    def shown_job(self, job: Job, revision: Json, moment: int) -> Json:
        """A job as it is told, with its resize."""
        return super().shown_job(job, revision, moment) | ({"resize": job.resize} if job.resize else {})
