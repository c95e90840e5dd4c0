"""Wrong in jobs: in what is told of them, in which is next, and in when they are started, tried again and stopped."""

from collections.abc import Iterator

from minimal_server.canonical import digest
from minimal_server.core import Answer, Json, Request, Tenant, wrong_body
from minimal_server.jobs import LEASE, Job, Queue, Run
from minimal_server.reserving import Allocation
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks, near_miss


@breaks("JOB-001")
class SubmittingAgainBeginsAnew(MinimalServer):
    """A job that is submitted again is another one."""

    @override
    def put_job(self, request: Request, name: str) -> Answer:
        jobs = self.job_queue(request.tenant).jobs
        if name in jobs and jobs[name].body == self.body(request, "JobRequest"):
            del jobs[name]
        return super().put_job(request, name)


@breaks("JOB-001")
class JobsThatWereCalledOffAreNotListed(MinimalServer):
    """A listing holds jobs that wait, run or have ended by themselves."""

    @override
    def listed_jobs(self, queue: Queue) -> Iterator[Json]:
        return (record for record in super().listed_jobs(queue) if record["state"] != "cancelled")


@breaks("JOB-001")
class CalledOffJobsComeBack(MinimalServer):
    """A job that was called off waits again when it is submitted again."""

    @override
    def put_job(self, request: Request, name: str) -> Answer:
        job = self.job_queue(request.tenant).jobs.get(name)
        if job is not None and job.state == "cancelled" and job.body == self.body(request, "JobRequest"):
            job.cancelling = False
            self.enter_state(request.tenant, job, "queued", "it was submitted again", self.moment)
        return super().put_job(request, name)


@breaks("JOB-001", "JOB-002")
class ExtensionsOfJobsAreDropped(MinimalServer):
    """What a submission holds beyond the standard is not kept, so that the same again is another one."""

    @override
    def kept_of(self, body: Json) -> Json:
        return {member: value for member, value in body.items() if member != "extensions"}


@breaks("JOB-001", "JOB-002")
class WhatIsSubmittedLastCounts(MinimalServer):
    """Another job under the name of one takes its place."""

    @override
    def is_another(self, known: Job, body: Json) -> bool:
        if super().is_another(known, body):
            known.body = body
            known.record = {**known.record, **body}
        return False


@breaks("JOB-002")
class OtherJobsAreTakenForTheSame(MinimalServer):
    """Whatever is submitted under the name of a job is acknowledged."""

    @override
    def is_another(self, known: Job, body: Json) -> bool:
        return False


@breaks("JOB-002")
class TheOrderOfArgumentsDoesNotCount(MinimalServer):
    """A job whose arguments stand in another order is taken for the same."""

    @override
    def is_another(self, known: Job, body: Json) -> bool:
        one, other = ({**job["workload"], "command": sorted(job["workload"]["command"])} for job in (known.body, body))
        return {**known.body, "workload": one} != {**body, "workload": other}


@breaks("JOB-002")
class PathsAreNotLookedAt(MinimalServer):
    """A job is known by its body alone, whatever path it is put to."""

    @override
    def put_job(self, request: Request, name: str) -> Answer:
        return super().put_job(request, str(self.body(request, "JobRequest")["id"]))


@breaks("JOB-003")
class JobsWaitWithoutAReason(MinimalServer):
    """When a job waits again, it is not said why."""

    @override
    def enter_state(self, tenant: Tenant, job: Job, state: str, reason: str, moment: int) -> None:
        super().enter_state(tenant, job, state, "" if state == "queued" and job.attempt else reason, moment)


@breaks("JOB-003")
class StartingIsNoEvent(MinimalServer):
    """The stream does not tell that a job is being started, since it tells that it runs."""

    @override
    def note_job_change(self, queue: Queue, record: Json) -> None:
        if record["state"] == "starting":
            record = {**record, "state": "queued", "transitions": record["transitions"][:-1]}
        super().note_job_change(queue, record)


@breaks("JOB-003")
class FirstChangesAreForgotten(MinimalServer):
    """A record has the last change of state and the one before."""

    @override
    def shown_job(self, job: Job, revision: Json, moment: int) -> Json:
        return {**super().shown_job(job, revision, moment), "transitions": job.transitions[-2:]}


@breaks("JOB-003")
class StreamsOfJobsBeginWithTheNextChange(MinimalServer):
    """A stream that is resumed gives what comes from then on."""

    @override
    def jobs_behind(self, request: Request) -> int:
        super().jobs_behind(request)
        return self.job_queue(request.tenant).number


@breaks("JOB-003")
class StreamsOfJobsTellTheLastEventAgain(MinimalServer):
    """A stream that is resumed begins with the event that it is resumed from."""

    @override
    def jobs_behind(self, request: Request) -> int:
        return max(0, super().jobs_behind(request) - 1)


@breaks("JOB-003")
class EventsOfJobsHaveNoIdentifier(MinimalServer):
    """Events do not say which revision they lead to, but in their data."""

    @override
    def job_event(self, record: Json) -> bytes:
        return super().job_event(record).partition(b"\n")[2]


@breaks("JOB-004")
class RunsAreStartedBeforeCommits(MinimalServer):
    """Domains are asked to start when they are asked to commit."""

    @override
    def follow_allocation(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        job = self.job_queue(tenant).jobs.get(one.body["job"])
        if job is not None and job.allocation is one and one.phase == "committing":
            one.held = one.placements[one.attempt]
            self.take_hold(tenant, job, one, moment)
        elif job is None or one.phase != "committed":
            super().follow_allocation(tenant, one, moment)


@breaks("JOB-004")
class OneCommitIsEnoughToStart(MinimalServer):
    """Runs are started when the first domain of a placement has committed."""

    @override
    def post_result_of_any(self, request: Request) -> Answer:
        answer = super().post_result_of_any(request)
        for job in self.job_queue(request.tenant).jobs.values():
            one = job.allocation
            begun = one and not job.held and one.phase == "committing"
            if one and begun and any(step.outcome == "committed" for step in one.now("reserve", "commit")):
                one.held = one.placements[one.attempt]
                self.take_hold(request.tenant, job, one, self.moment)
        return answer

    @override
    def take_hold(self, tenant: Tenant, job: Job, one: Allocation, moment: int) -> None:
        if not job.held:
            super().take_hold(tenant, job, one, moment)


@breaks("JOB-004")
class AnotherReservationIsNamed(MinimalServer):
    """All domains are told the reservation of the first one."""

    @override
    def ask_to_start(self, tenant: Tenant, job: Job, one: Allocation, share: Json) -> None:
        assert one.held is not None
        super().ask_to_start(tenant, job, one, share)
        action = self.book(tenant).open[share["domain"]][job.runs[job.attempt, share["domain"]].start, "commit"]
        action["reservation"] = self.action_name(one, one.held["shares"][0]["domain"], "reserve")


@near_miss("JOB-004")
class OneDeviceIsLeftOut(MinimalServer):
    """A domain is asked to run on one device less than it holds, where it holds several."""

    @override
    def ask_to_start(self, tenant: Tenant, job: Job, one: Allocation, share: Json) -> None:
        super().ask_to_start(tenant, job, one, share)
        action = self.book(tenant).open[share["domain"]][job.runs[job.attempt, share["domain"]].start, "commit"]
        action["devices"] -= action["devices"] > 1


@breaks("JOB-004")
class EnvironmentsAreLost(MinimalServer):
    """What is to be run has lost its variables."""

    @override
    def run_order(self, job: Job) -> Json:
        order = super().run_order(job)
        kept = {member: value for member, value in order["workload"].items() if member != "environment"}
        return {**order, "workload": kept}


class CommitsAsSoonAsPromised(MinimalServer):
    """Allocations of jobs are committed when they are promised, whatever else is held for the job."""

    @override
    def post_result_of_any(self, request: Request) -> Answer:
        answer = super().post_result_of_any(request)
        for job in self.job_queue(request.tenant).jobs.values():
            if job.allocation and self.promised(job.allocation):
                self.commit(request.tenant, job.allocation, self.moment)
        return answer


@breaks("JOB-005")
class AttemptsDoNotWaitForReleases(CommitsAsSoonAsPromised):
    """A job waits again as soon as its domains are asked to give its devices back."""

    @override
    def let_go_of_attempt(self, tenant: Tenant, job: Job, moment: int) -> None:
        super().let_go_of_attempt(tenant, job, moment)
        if job.allocation and job.allocation.phase == "releasing" and job.verdict == "lost" and not job.cancelling:
            self.finish_attempt(tenant, job, job.reason, moment)


@near_miss("JOB-005", "JOB-032")
class HalfALeaseIsWaitedFor(CommitsAsSoonAsPromised):
    """A domain that is not heard of for little more than half its lease is taken to have let go."""

    @override
    def pass_on(self, tenant: Tenant) -> None:
        super().pass_on(tenant)
        answered = self.book(tenant).answered
        for job in list(self.job_queue(tenant).jobs.values()):
            domains = [share["domain"] for share in job.held["shares"]] if job.held and not job.ending else []
            if any(self.moment - answered.get(domain, self.moment) > 600 * LEASE for domain in domains):
                self.fail_attempt(tenant, job, job.attempt, "lost", "nothing is heard of its domain")
                self.finish_attempt(tenant, job, job.reason, self.moment)


@breaks("JOB-006")
class GapsInLogsAreTaken(MinimalServer):
    """Lines are kept wherever they begin."""

    @override
    def goes_on(self, run: Run, first: int) -> bool:
        return True


@breaks("JOB-006")
class RepeatedLinesAreKeptTwice(MinimalServer):
    """A batch that is sent again is kept again."""

    @override
    def keep_lines(self, job: Job, run: Run, batch: Json) -> None:
        of = {"attempt": batch["attempt"], "domain": batch["domain"]}
        job.log += [{**line, **of} for line in batch["lines"]]
        run.lines = batch["lines"][-1]["number"]


@breaks("JOB-006")
class LaterTextsCount(MinimalServer):
    """A line that is sent again takes the place of the one that was kept."""

    @override
    def keep_lines(self, job: Job, run: Run, batch: Json) -> None:
        texts = {line["number"]: line["text"] for line in batch["lines"]}
        for line in job.log:
            if (line["attempt"], line["domain"]) == (batch["attempt"], batch["domain"]):
                line["text"] = texts.get(line["number"], line["text"])
        super().keep_lines(job, run, batch)


@breaks("JOB-006")
class LinesOfAttemptsBeforeAreLost(MinimalServer):
    """Lines of an attempt that is over are acknowledged and not kept."""

    @override
    def keep_lines(self, job: Job, run: Run, batch: Json) -> None:
        if batch["attempt"] == job.attempt:
            super().keep_lines(job, run, batch)
        else:
            run.lines = max(run.lines, batch["lines"][-1]["number"])


@breaks("JOB-006")
class PagesOfLogsOverlap(MinimalServer):
    """A page of a log that has several lines is followed by one that begins with the last of them."""

    @override
    def log_page(self, job: Job, begin: int, limit: int) -> Json:
        page = super().log_page(job, begin, limit)
        end = begin + len(page["items"])
        return {**page, "next_cursor": f"l{end - (end - begin > 1)}"}


@breaks("JOB-006")
class LogsEndBeforeTheirJobs(MinimalServer):
    """A page after which there are no lines yet says that none is to come."""

    @override
    def log_page(self, job: Job, begin: int, limit: int) -> Json:
        page = super().log_page(job, begin, limit)
        return {**page, "ended": begin + len(page["items"]) == len(job.log)}


@near_miss("JOB-007")
class OneRetryTooMany(MinimalServer):
    """A job is started again once more than it allows."""

    @override
    def retries(self, job: Job) -> int:
        return super().retries(job) + 1


@near_miss("JOB-007")
class OneRetryTooFew(MinimalServer):
    """A job that may be started again is started again once less than it allows."""

    @override
    def retries(self, job: Job) -> int:
        return max(0, super().retries(job) - 1)


@breaks("JOB-007", "JOB-029")
class LostRunsAreCounted(MinimalServer):
    """What is lost counts like what has failed."""

    @override
    def is_counted(self, verdict: str) -> bool:
        return verdict in {"failed", "lost"}


@breaks("JOB-007")
class WhatDomainsSayOfFaultsIsIgnored(MinimalServer):
    """Each failure is the fault of what runs."""

    @override
    def is_own_fault(self, report: Json) -> bool:
        return True


@breaks("JOB-007")
class RefusedStartsAreCounted(MinimalServer):
    """A domain that refuses a start has it counted against the job."""

    @override
    def take_start(self, tenant: Tenant, job: Job, attempt: int, run: Run, outcome: str) -> None:
        if outcome == "refused" and not run.over:
            self.end_run(tenant, job, attempt, run, "")
            self.fail_attempt(tenant, job, attempt, "failed", f"{run.domain} refused the start")
        super().take_start(tenant, job, attempt, run, outcome)


@breaks("JOB-007", "JOB-018", "JOB-029", "JOB-031")
class AttemptsBeginAtTheBeginning(MinimalServer):
    """Each attempt begins anew."""

    @override
    def run_order(self, job: Job) -> Json:
        return {**super().run_order(job), "step": 0}


class StepsOfLateReportsCount(MinimalServer):
    """The last step of a job is that of the last report, whichever attempt that is of."""

    @override
    def post_run_report(self, request: Request) -> Answer:
        report = self.body(request, "RunReport")
        job, run = self.find_run(request.tenant, report)
        if not self.is_timely(job, run, report) and "step" in report:
            job.step = report["step"]
            self.change_job(request.tenant, job, self.moment)
        return super().post_run_report(request)


@near_miss("JOB-033")
class StepsOfLateReportsAreTold(StepsOfLateReportsCount):
    """A late report is told as the last step, and nothing follows from it."""


@breaks("JOB-007", "JOB-018", "JOB-029", "JOB-031", "JOB-033")
class AttemptsGoOnFromTheLastStep(StepsOfLateReportsCount):
    """An attempt goes on from the last step that was reported, of whichever attempt, and with a checkpoint or not."""

    @override
    def run_order(self, job: Job) -> Json:
        return {**super().run_order(job), "step": job.step or 0}


@breaks("JOB-007")
class CheckpointsOfAttemptsBeforeCount(MinimalServer):
    """A checkpoint that an attempt before is said to have written is the last one, whenever that arrives."""

    @override
    def post_run_report(self, request: Request) -> Answer:
        report = self.body(request, "RunReport")
        job, _ = self.find_run(request.tenant, report)
        if report["attempt"] < job.attempt:
            job.checkpoint_step = report.get("checkpoint_step", job.checkpoint_step)
        return super().post_run_report(request)


@breaks("JOB-032")
class OthersRunOn(MinimalServer):
    """When a run of several is lost, the others are left to run until they end by themselves."""

    @override
    def to_be_stopped(self, job: Job) -> list[Run]:
        return super().to_be_stopped(job) if job.cancelling or len(job.present) == 1 else []


@near_miss("JOB-032")
class DevicesAreTakenFromWhatStillRuns(MinimalServer):
    """When a run of several is lost, devices are asked back at once, whatever runs on those of other domains."""

    @override
    def may_let_go(self, job: Job) -> bool:
        return (len(job.present) > 1 and job.verdict == "lost") or super().may_let_go(job)


@breaks("JOB-033")
class LateReportsAreRefused(MinimalServer):
    """A report of an attempt that another one has followed is refused."""

    @override
    def post_run_report(self, request: Request) -> Answer:
        report = self.body(request, "RunReport")
        job, _ = self.find_run(request.tenant, report)
        if report["attempt"] < job.attempt:
            raise wrong_body("unknown-reference", "/attempt", "this attempt is over")
        return super().post_run_report(request)


class IsCancelledEarly(MinimalServer):
    """Jobs of some sort are cancelled when that is asked; what is left of them is ended all the same."""

    def may_be_cancelled(self, job: Job) -> bool:
        """Whether a job that is called off is of that sort."""
        raise NotImplementedError

    @override
    def call_off(self, tenant: Tenant, job: Job) -> None:
        early = self.may_be_cancelled(job)
        super().call_off(tenant, job)
        if early and job.state != "cancelled":
            self.enter_state(tenant, job, "cancelled", "it was called off", self.moment)

    @override
    def finish_attempt(self, tenant: Tenant, job: Job, reason: str, moment: int) -> None:
        if job.state == "cancelled":
            self.count_hours(tenant, job, moment)
            self.consider(tenant, moment)
        else:
            super().finish_attempt(tenant, job, reason, moment)


@breaks("JOB-008", "JOB-034")
class CancelledIsSaidAtOnce(IsCancelledEarly):
    """A job is cancelled when that was asked, whatever of it still runs."""

    @override
    def may_be_cancelled(self, job: Job) -> bool:
        return True


@breaks("JOB-008")
class OneDomainIsStopped(MinimalServer):
    """Of a job that is called off, the first domain is asked to stop."""

    @override
    def to_be_stopped(self, job: Job) -> list[Run]:
        return job.present[:1] if job.cancelling else super().to_be_stopped(job)

    @override
    def may_let_go(self, job: Job) -> bool:
        return all(run.over for run in job.present[:1]) if job.cancelling else super().may_let_go(job)


@breaks("JOB-008")
class UnansweredStartsAreNotStopped(MinimalServer):
    """Of a job that is called off, whoever has not reported on its run is not asked to stop."""

    @override
    def to_be_stopped(self, job: Job) -> list[Run]:
        return [run for run in super().to_be_stopped(job) if run.state or not job.cancelling]

    @override
    def may_let_go(self, job: Job) -> bool:
        return all(run.over or (job.cancelling and not run.state) for run in job.present)


@breaks("JOB-008")
class WhatWasBegunIsStarted(MinimalServer):
    """A job that is called off while devices are reserved for it is started, and then stopped."""

    @override
    def let_go_of_attempt(self, tenant: Tenant, job: Job, moment: int) -> None:
        if job.allocation and job.allocation.phase not in {"preparing", "committing"}:
            super().let_go_of_attempt(tenant, job, moment)

    @override
    def take_hold(self, tenant: Tenant, job: Job, one: Allocation, moment: int) -> None:
        super().take_hold(tenant, job, one, moment)
        if job.cancelling:
            for run in job.present:
                run.stop = self.order_of_job(tenant, job, run.domain, "stop", {"attempt": job.attempt})["id"]


@breaks("JOB-003", "JOB-004", "JOB-008")
class WhatHasSucceededCanBeCalledOff(MinimalServer):
    """A job that has succeeded is cancelled when that is asked."""

    @override
    def delete_job(self, request: Request, name: str) -> Answer:
        job = self.find_job(request.tenant, name)
        if job.state == "succeeded":
            self.enter_state(request.tenant, job, "cancelled", "it was called off", self.moment)
        return super().delete_job(request, name)


@breaks("JOB-009")
class FirstComeFirstServed(MinimalServer):
    """Jobs are started as they were submitted, whatever their priority."""

    @override
    def queue_order(self, waiting: list[Job]) -> list[Job]:
        return sorted(super().queue_order(waiting), key=lambda job: job.number)


@breaks("JOB-009", "JOB-012")
class NothingCountsButWhenAJobWasSubmitted(FirstComeFirstServed):
    """Jobs are started as they were submitted, whatever their priority and what their accounts have used."""

    @override
    def take_turns(self, tenant: Tenant, waiting: list[Job], moment: int) -> list[Job]:
        return waiting


@breaks("JOB-009")
class OfEqualJobsTheLastIsFirst(MinimalServer):
    """Of the same priority, the job that was submitted last is started first."""

    @override
    def queue_order(self, waiting: list[Job]) -> list[Job]:
        return sorted(super().queue_order(waiting), key=lambda job: (-job.body.get("priority", 0), -job.number))


@near_miss("JOB-009")
class NegativePrioritiesAreNone(MinimalServer):
    """A job of a priority below zero goes like one of zero."""

    @override
    def queue_order(self, waiting: list[Job]) -> list[Job]:
        return sorted(super().queue_order(waiting), key=lambda job: (-max(0, job.body.get("priority", 0)), job.number))


@breaks("JOB-010")
class DecisionsHaveNoReason(MinimalServer):
    """It is told that a job is to wait, and not why."""

    @override
    def decide(self, job: Job, placement: Json | None, state: Json) -> None:
        super().decide(job, placement, state)
        assert job.decision is not None
        if placement is None:
            job.decision["decision"]["explanation"]["reason"] = " "


@breaks("JOB-010")
class DigestsAreOfTheJob(MinimalServer):
    """The digest of a decision is that of the job that it is about."""

    @override
    def digest_of_state(self, state: Json, _job: Job) -> str:
        return digest(_job.body)


@breaks("JOB-010")
class DecisionsAreMadeOnce(MinimalServer):
    """What was decided first on a job that waits is told for as long as it waits."""

    @override
    def decide(self, job: Job, placement: Json | None, state: Json) -> None:
        if job.decision is None or placement is not None:
            super().decide(job, placement, state)


@breaks("JOB-010")
class WaitingIsNoDecision(MinimalServer):
    """Only what is started was decided."""

    @override
    def decide(self, job: Job, placement: Json | None, state: Json) -> None:
        if placement is not None:
            super().decide(job, placement, state)
