"""Jobs at the bounds of what is asked for: what the standard leaves to a service, and what just oversteps that.

1. Controls are honest servers that do it otherwise than the minimal server: later, in smaller parts, in another order,
   with more than is asked for, or with no more than is. Each passes everything.
2. Near-misses overstep the same bound by little; some stand in :mod:`mutants.jobs` and :mod:`mutants.serving`.
3. What no other mutant of jobs does wrong is here too.
"""

import struct
from dataclasses import replace
from typing import Any

from minimal_server.canonical import digest
from minimal_server.core import LIMITS, Answer, Json, Refusal, Request, Tenant, wrong_parameter
from minimal_server.jobs import ENDS, Job, Queue, Run
from minimal_server.reserving import Allocation
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks, control, near_miss
from mutants.jobs import IsCancelledEarly

# What was submitted


class KeepsSomethingElse(MinimalServer):
    """Something else is kept of a submission, and what is submitted again is compared with that."""

    @override
    def kept_of(self, body: Json) -> Json:
        kept: Json = self.other(body)
        return kept

    @override
    def is_another(self, known: Job, body: Json) -> bool:
        return super().is_another(known, self.kept_of(body))

    def other(self, value: Any) -> Any:
        """What is kept instead of a value, and of all that is in it."""
        if isinstance(value, dict):
            return {name: self.other(part) for name, part in value.items()}
        return [self.other(part) for part in value] if isinstance(value, list) else value


@control("JOB-001")
class WholeNumbersHaveNoFraction(KeepsSomethingElse):
    """Numbers are all of one type, and written without a fraction where they have none."""

    @override
    def other(self, value: Any) -> Any:
        return int(value) if isinstance(value, float) and value.is_integer() else super().other(value)


@near_miss("JOB-001", "JOB-002")
class NumbersAreOfSinglePrecision(KeepsSomethingElse):
    """Numbers are kept in 32 bits: a job is nearly told as it was submitted, and taken for one that is nearly it."""

    @override
    def other(self, value: Any) -> Any:
        return struct.unpack("f", struct.pack("f", value))[0] if isinstance(value, float) else super().other(value)


@control("JOB-001")
class JobsNameTheAccountOfTheirSender(KeepsSomethingElse):
    """The operator has bound the sender to an account; the record of a job that names none names that one."""

    @override
    def kept_of(self, body: Json) -> Json:
        return {"account": "of-its-sender", **body}


@near_miss("JOB-001", "JOB-002")
class DefaultsAreFilledIn(KeepsSomethingElse):
    """The record of a job that states no priority states that it is nought."""

    @override
    def kept_of(self, body: Json) -> Json:
        return {"priority": 0, **body}


@control("JOB-001")
class PagesHaveAHundredItems(MinimalServer):
    """No page has more than a hundred items; more may not be asked for, as the declaration says."""

    MOST = 100

    @override
    def limit(self, request: Request) -> int:
        limit = super().limit(request)
        if limit > self.MOST:
            raise wrong_parameter("limit", f"limit must be a number from 1 to {self.MOST}")
        return limit

    @override
    def declaration(self, request: Request) -> Answer:
        answer = super().declaration(request)
        return Answer(200, {**answer.body, "limits": {**LIMITS, "max_page": self.MOST}})


@control("JOB-001")
class PagesOfJobsAreSmall(MinimalServer):
    """A page has two jobs at most, since they are large, however many are asked for."""

    @override
    def list_jobs(self, request: Request) -> Answer:
        limit = min(self.limit(request), 2)
        return super().list_jobs(replace(request, query={**request.query, "limit": str(limit)}))


@near_miss("JOB-001")
class PagesOfJobsAreNotPinned(MinimalServer):
    """A page begins behind so many jobs, of those that are there when it is asked for."""

    @override
    def list_jobs(self, request: Request) -> Answer:
        answer = super().list_jobs(request)
        begin = int(request.query.get("cursor", "0.0").split(".")[1])
        rows = list(self.listed_jobs(self.job_queue(request.tenant)))
        answer.body["items"] = rows[begin : begin + self.limit(request)]
        return answer


class OfAnotherUnderItsName(MinimalServer):
    """Something else is done about another job under the name of one."""

    @override
    def put_job(self, request: Request, name: str) -> Answer:
        body, jobs = self.body(request, "JobRequest"), self.job_queue(request.tenant).jobs
        if name in jobs and body["id"] == name and self.is_another(jobs[name], body):
            self.take_another(jobs, jobs[name], body)
        return super().put_job(request, name)

    def take_another(self, jobs: dict[str, Job], known: Job, body: Json) -> None:
        """What is done."""


@control("JOB-002")
class AllThatDiffersIsNamed(OfAnotherUnderItsName):
    """A job that is refused is told every member in which it is unlike the one under its name."""

    @override
    def take_another(self, jobs: dict[str, Job], known: Job, body: Json) -> None:
        unlike = sorted(name for name in {**known.body, **body} if known.body.get(name) != body.get(name))
        places = [{"pointer": f"/{name}", "detail": "this differs from what was submitted first"} for name in unlike]
        raise Refusal("invalid-body", "another job has this name", places)


@near_miss("JOB-002", "JOB-001")
class NamesOfJobsThatHaveEndedAreFree(OfAnotherUnderItsName):
    """A job that has ended gives its name to the next one that is submitted under it."""

    @override
    def take_another(self, jobs: dict[str, Job], known: Job, body: Json) -> None:
        if known.state in ENDS:
            del jobs[known.name]


# What is told


@control("JOB-003")
class TellsMore(MinimalServer):
    """A change of the reason alone is told, too, and so is a job that has not changed."""

    @override
    def enter_state(self, tenant: Tenant, job: Job, state: str, reason: str, moment: int) -> None:
        super().enter_state(tenant, job, state, reason, moment)
        job.reason = f"{reason}, still"
        self.change_job(tenant, job, moment)
        self.change_job(tenant, job, moment)


@control("JOB-003")
class JobsAreHeldUntilTheyAreAdmitted(MinimalServer):
    """A job is queued, held to be looked through, and queued again."""

    @override
    def enter_state(self, tenant: Tenant, job: Job, state: str, reason: str, moment: int) -> None:
        is_new = not job.transitions and "replica_of" not in job.body
        super().enter_state(tenant, job, state, reason, moment)
        if is_new:
            super().enter_state(tenant, job, "held", "it has yet to be admitted", moment)
            super().enter_state(tenant, job, "queued", "it was admitted, and waits for devices", moment)


@control("JOB-003")
class NothingIsLeftToBeEnded(MinimalServer):
    """A job of which the only run was lost with its devices waits again at once: nothing of it has to be ended."""

    @override
    def lose_devices(self, tenant: Tenant, job: Job, one: Allocation) -> None:
        if len(job.present) > 1 or one.unwanted or job.ending or job.state in ENDS:
            super().lose_devices(tenant, job, one)
        else:
            job.verdict, job.reason = "lost", one.reason
            self.stop_runs(tenant, job)


@near_miss("JOB-003")
class ChangesOfOneRequestAreOneEvent(MinimalServer):
    """The stream tells what has become of a job by a request, and not through which states it went."""

    @override
    def note_job_change(self, queue: Queue, record: Json) -> None:
        last = record["id"], self.moment
        if last == getattr(self, "last_change", None) and queue.changes and queue.changes[-1]["id"] == record["id"]:
            queue.changes.pop()
        self.last_change = last
        super().note_job_change(queue, record)

    @override
    def holds_jobs_from(self, queue: Queue, number: int) -> bool:
        return number <= queue.number


# How runs are started


@control("JOB-004")
class StartsNameTheirReservationAlone(MinimalServer):
    """What a domain is to run on follows from the reservation that a start names, and from the shares of its run."""

    @override
    def ask_to_start(self, tenant: Tenant, job: Job, one: Allocation, share: Json) -> None:
        super().ask_to_start(tenant, job, one, share)
        action = self.book(tenant).open[share["domain"]][job.runs[job.attempt, share["domain"]].start, "commit"]
        for member in ("accelerator", "devices", "nodes"):
            action.pop(member, None)


@control("JOB-004")
class NamesNodes(MinimalServer):
    """A placement names the nodes of its devices, and starts repeat them."""

    @override
    def placement_of(self, tenant: Tenant, job: Job) -> Json | None:
        placement = super().placement_of(tenant, job)
        for share in placement["shares"] if placement else ():
            left, share["nodes"] = share["devices"], []
            for name, node in self.held(tenant, "nodes").items():
                if left and node["domain"] == share["domain"]:
                    devices = min(left, len(node["devices"]))
                    share["nodes"].append({"node": name, "devices": devices})
                    left -= devices
        return placement


@control("JOB-004")
class TakesTheLastDomain(MinimalServer):
    """Of several domains with room the last one is taken."""

    @override
    def free_devices(self, tenant: Tenant, job: Job) -> dict[tuple[str, str], int]:
        return dict(reversed(super().free_devices(tenant, job).items()))


@control("JOB-004")
class DomainsAreStartedOneAfterTheOther(MinimalServer):
    """A domain is asked to start when the one before it has taken its run over."""

    @override
    def ask_to_start(self, tenant: Tenant, job: Job, one: Allocation, share: Json) -> None:
        assert job.held is not None
        if share["domain"] == job.held["shares"][0]["domain"]:
            super().ask_to_start(tenant, job, one, share)

    @override
    def take_start(self, tenant: Tenant, job: Job, attempt: int, run: Run, outcome: str) -> None:
        super().take_start(tenant, job, attempt, run, outcome)
        if outcome != "committed" or attempt != job.attempt or job.ending or not job.held or not job.allocation:
            return
        left = [share for share in job.held["shares"] if not job.runs[attempt, share["domain"]].start]
        if left:
            super().ask_to_start(tenant, job, job.allocation, left[0])


@breaks("JOB-004", "JOB-005")
class DomainsAreToldTheirOwnShareAlone(MinimalServer):
    """Each domain is told what the job holds there, and not what it holds elsewhere."""

    @override
    def ask_to_start(self, tenant: Tenant, job: Job, one: Allocation, share: Json) -> None:
        super().ask_to_start(tenant, job, one, share)
        action = self.book(tenant).open[share["domain"]][job.runs[job.attempt, share["domain"]].start, "commit"]
        action["run"] = {**action["run"], "shares": [share]}


# When and where they are tried again


@control("JOB-005")
class HoldsWithoutEnd(MinimalServer):
    """Nothing is held under a lease."""

    @override
    def begin_attempt(self, tenant: Tenant, job: Job, placement: Json, moment: int) -> None:
        kept, self.prepare = self.prepare, self._prepare_for_ever  # type: ignore[method-assign]
        try:
            super().begin_attempt(tenant, job, placement, moment)
        finally:
            self.prepare = kept  # type: ignore[method-assign]

    def _prepare_for_ever(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        one.body.pop("lease", None)
        MinimalServer.prepare(self, tenant, one, moment)


@control("JOB-005")
class TriesAnotherDomainFirst(MinimalServer):
    """Domains that a job has run in before are the last that it is given to."""

    @override
    def free_devices(self, tenant: Tenant, job: Job) -> dict[tuple[str, str], int]:
        tried = {domain for _, domain in job.runs}
        return dict(sorted(super().free_devices(tenant, job).items(), key=lambda row: row[0][0] in tried))


@control("JOB-007")
class WaitsBeforeItTriesAgain(MinimalServer):
    """A job that failed by its own fault is left alone for a second and a half before it is considered again."""

    MILLISECONDS = 1500

    @override
    def finish_attempt(self, tenant: Tenant, job: Job, reason: str, moment: int) -> None:
        if job.verdict == "failed":
            self.resting = {**getattr(self, "resting", {}), (tenant.name, job.name): moment + self.MILLISECONDS}
        super().finish_attempt(tenant, job, reason, moment)

    @override
    def take_turns(self, tenant: Tenant, waiting: list[Job], moment: int) -> list[Job]:
        resting = getattr(self, "resting", {})
        rested = [job for job in waiting if resting.get((tenant.name, job.name), 0) <= moment]
        return super().take_turns(tenant, rested, moment)

    @override
    def pass_on(self, tenant: Tenant) -> None:
        super().pass_on(tenant)
        resting = getattr(self, "resting", {})
        over = [key for key, until in resting.items() if key[0] == tenant.name and until <= self.moment]
        for key in over:
            del resting[key]
        if over:
            self.deed(tenant, "consider", self.moment)


@breaks("JOB-007")
class UnclearFaultsAreNobodys(MinimalServer):
    """A run has failed by its own fault where its domain says so, and not where it does not say."""

    @override
    def is_own_fault(self, report: Json) -> bool:
        return bool(report.get("own_fault", False))


# Logs


@control("JOB-006")
class PagesOfLogsAreSmall(MinimalServer):
    """A page has two lines at most, however many are asked for."""

    @override
    def log_page(self, job: Job, begin: int, limit: int) -> Json:
        return super().log_page(job, begin, min(limit, 2))


@breaks("JOB-006")
class PagesOfLogsBeginWithTheirLastLine(MinimalServer):
    """The lines of a page are given the newest first."""

    @override
    def log_page(self, job: Job, begin: int, limit: int) -> Json:
        page = super().log_page(job, begin, limit)
        return {**page, "items": page["items"][::-1]}


@control("JOB-006")
class BatchesAreTakenInPart(MinimalServer):
    """Of a batch two lines are kept at most, and the answer says so."""

    @override
    def keep_lines(self, job: Job, run: Run, batch: Json) -> None:
        new = [line for line in batch["lines"] if line["number"] > run.lines]
        super().keep_lines(job, run, {**batch, "lines": new[:2]})


@near_miss("JOB-006")
class BatchesAreAcknowledgedWhole(BatchesAreTakenInPart):
    """Of a batch two lines are kept at most, and the answer says that all are."""

    @override
    def post_run_logs(self, request: Request) -> Answer:
        answer, lines = super().post_run_logs(request), self.body(request, "RunLogBatch")["lines"]
        is_taken = lines[0]["number"] <= answer.body["last"] + 1
        return Answer(200, {"last": max(answer.body["last"], lines[-1]["number"])}) if is_taken else answer


# Calling off


@control("JOB-008")
class CancelledWhileNothingIsHeld(IsCancelledEarly):
    """A job that is called off before any domain is to commit is cancelled at once; promises are taken back then."""

    @override
    def may_be_cancelled(self, job: Job) -> bool:
        return job.allocation is not None and job.allocation.phase == "preparing"


@near_miss("JOB-008")
class CancelledWhileNothingIsReported(IsCancelledEarly):
    """A job that is called off before a domain reports on its run is cancelled at once, though devices are held."""

    @override
    def may_be_cancelled(self, job: Job) -> bool:
        return not any(run.state for run in job.present)


@control("JOB-008")
class StopsMeanAllAttempts(MinimalServer):
    """Domains are asked to stop whatever runs of a job, and not one attempt."""

    @override
    def order_of_job(self, tenant: Tenant, job: Job, domain: str, kind: str, members: Json) -> Json:
        action = super().order_of_job(tenant, job, domain, kind, members)
        action.pop("attempt", None)
        return action


@breaks("JOB-008")
class StartsStayOpenWhenCalledOff(MinimalServer):
    """A start that is not answered when its job is called off is asked for until the domain has stopped."""

    @override
    def stop_runs(self, tenant: Tenant, job: Job) -> None:
        asked = {run.domain: self.book(tenant).open.get(run.domain, {}) for run in job.present if job.cancelling}
        starts = {run.domain: asked[run.domain].get((run.start, "commit")) for run in job.present if job.cancelling}
        super().stop_runs(tenant, job)
        for domain, start in starts.items():
            if start is not None:
                asked[domain][start["id"], "commit"] = start


# Order


@control("JOB-009")
class TheQueueIsLookedAtNowAndThen(MinimalServer):
    """Whatever has changed, jobs are considered no sooner than four tenths of a second after the last time."""

    MILLISECONDS = 400

    @override
    def consider(self, tenant: Tenant, moment: int) -> None:
        self.planned = {tenant.name: moment + self.MILLISECONDS, **getattr(self, "planned", {})}

    @override
    def pass_on(self, tenant: Tenant) -> None:
        super().pass_on(tenant)
        if getattr(self, "planned", {}).get(tenant.name, self.moment + 1) <= self.moment:
            del self.planned[tenant.name]
            super().consider(tenant, self.moment)


@control("JOB-010")
class DecidesAgainAndAgain(MinimalServer):
    """Decisions are made with every look, each on what is so then."""

    @override
    def get_decision(self, request: Request, name: str) -> Answer:
        self.consider(request.tenant, self.moment)
        return super().get_decision(request, name)


@near_miss("JOB-010")
class DigestsAreOfWhatIsFree(MinimalServer):
    """The digest of a decision is that of the devices that are free for its job, and not of who holds the others."""

    @override
    def digest_of_state(self, state: Json, job: Job) -> str:
        allowed = job.body.get("domains", ())
        return digest([row for row in state["domains"] if not allowed or row["id"] in allowed])


# Ends


@control("JOB-032")
class FailedIsToldBeforeDevicesAreReleased(MinimalServer):
    """A job that is not tried again has failed as soon as its run has; its devices are released then."""

    @override
    def enter_state(self, tenant: Tenant, job: Job, state: str, reason: str, moment: int) -> None:
        if state == "restarting" and job.verdict == "failed" and job.failures + 1 > self.retries(job):
            state, job.failures = "failed", job.failures + 1
        super().enter_state(tenant, job, state, reason, moment)

    @override
    def finish_attempt(self, tenant: Tenant, job: Job, reason: str, moment: int) -> None:
        if job.state == "failed":
            self.count_hours(tenant, job, moment)
            self.change_job(tenant, job, moment)
            self.consider(tenant, moment)
        else:
            super().finish_attempt(tenant, job, reason, moment)

    @override
    def log_page(self, job: Job, begin: int, limit: int) -> Json:
        page = super().log_page(job, begin, limit)
        return {**page, "ended": page["ended"] and job.allocation is None}


@near_miss("JOB-032")
class DevicesOfFailedJobsAreNotReleased(FailedIsToldBeforeDevicesAreReleased):
    """A job that is not tried again has failed as soon as its run has, and its devices are forgotten."""

    @override
    def let_go_of_attempt(self, tenant: Tenant, job: Job, moment: int) -> None:
        if job.state != "failed":
            super().let_go_of_attempt(tenant, job, moment)


@control("JOB-032")
class IsNeverSpread(MinimalServer):
    """No job runs in two domains."""

    @override
    def are_linked(self, tenant: Tenant, one: str, other: str) -> bool:
        return False


@control("JOB-032")
class EndedRunsAreStoppedToo(MinimalServer):
    """When a run is lost all domains of its attempt are asked to stop, the one that has reported its end as well."""

    @override
    def to_be_stopped(self, job: Job) -> list[Run]:
        return job.present


@control("JOB-033")
class WhoReportsOnWhatIsOverIsNotLookedAt(MinimalServer):
    """Nothing is kept of attempts that are over: every report of one is acknowledged, whichever domain it is from."""

    @override
    def post_run_report(self, request: Request) -> Answer:
        report = self.body(request, "RunReport")
        job = self.job_queue(request.tenant).jobs.get(report["job"])
        if job is not None and report["attempt"] < job.attempt:
            return Answer(200, job.record)
        return super().post_run_report(request)


@breaks("JOB-007", "JOB-033")
class LateFailuresAreCounted(MinimalServer):
    """A run that has failed counts against its job as often as that is reported."""

    @override
    def post_run_report(self, request: Request) -> Answer:
        report = self.body(request, "RunReport")
        job, run = self.find_run(request.tenant, report)
        if not self.is_timely(job, run, report) and report["state"] == "failed" and self.is_own_fault(report):
            job.failures += 1
            self.change_job(request.tenant, job, self.moment)
        return super().post_run_report(request)


# Serving jobs


@control("JOB-034")
class ReplicasAreToldUntilTheyHaveEnded(MinimalServer):
    """Replicas that are being stopped are told among those that run until they have ended."""

    @override
    def told_replicas(self, tenant: Tenant, job: Job, moment: int) -> Json:
        left = self.replicas_of(tenant, job)
        running = sum(replica.state == "running" for replica in left)
        names = sorted(replica.name for replica in left)
        return {**super().told_replicas(tenant, job, moment), "running": running, "jobs": names}
