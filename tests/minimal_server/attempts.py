"""Attempts of jobs: devices are asked for, runs started, watched and stopped, and what they print is kept."""

import hashlib
import json
import re
from typing import Any

from minimal_server.core import Answer, Json, Request, Tenant, wrong_body, wrong_parameter
from minimal_server.jobs import ENDS, LEASE, OVER, Job, Jobs, Run
from minimal_server.reserving import Allocation

GRACE = 10.0
"""Seconds that processes have to end where a job does not say."""

RETRIES = 3
"""How often a job is started again that does not say."""

COUNTED = {"committed", "refused", "failed", "expired", "unknown"}
"""Outcomes of an action that is committed at once."""

CURSOR = re.compile(r"l([0-9]{1,12})")


class Attempts(Jobs):
    """What becomes of a job from its devices to its end."""

    def __init__(self, *arguments: Any) -> None:
        """Follow allocations, and time."""
        super().__init__(*arguments)
        self.followers = (*self.followers, self.follow_allocation)
        self.lookers = (*self.lookers, self.pass_on)

    def begin_attempt(self, tenant: Tenant, job: Job, placement: Json, moment: int) -> None:
        """Ask for the devices of an attempt, by an allocation under a lease."""
        job.tries += 1
        body = {
            "id": f"{job.name[:90]}.{job.attempt + 1}.{job.tries}",
            "job": self.job_of_allocation(job),
            "revision": self.job_revision(self.job_queue(tenant).number),
            "placement": placement,
            "lease": LEASE,
        }
        book = self.book(tenant)
        job.allocation = book.allocations[body["id"]] = Allocation(body, moment)
        book.jobs.setdefault(body["job"], []).append(job.allocation)
        self.enter_state(tenant, job, "starting", self.why(job, placement), moment)
        self.prepare(tenant, job.allocation, moment)

    def job_of_allocation(self, job: Job) -> str:
        """For which job devices are held; no two allocations of one are committed at once."""
        return job.name

    def follow_allocation(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        """An allocation has come into a phase."""
        job = self.job_queue(tenant).jobs.get(one.body["job"])
        if job is None or job.allocation is not one:
            return
        if one.phase == "committed":
            self.take_hold(tenant, job, one, moment)
        elif one.phase == "releasing":
            self.lose_devices(tenant, job, one)
        elif one.phase in {"refused", "released"}:
            self.finish_attempt(tenant, job, one.reason, moment)

    def take_hold(self, tenant: Tenant, job: Job, one: Allocation, moment: int) -> None:
        """Devices are held everywhere: the attempt begins."""
        assert one.held is not None
        job.attempt += 1
        job.held, job.since, job.verdict = one.held, moment, ""
        for share in one.held["shares"]:
            job.runs[job.attempt, share["domain"]] = Run(share["domain"])
        for share in one.held["shares"]:
            self.ask_to_start(tenant, job, one, share)
        self.change_job(tenant, job, moment)

    def ask_to_start(self, tenant: Tenant, job: Job, one: Allocation, share: Json) -> None:
        """Ask a domain to start its run on what it holds."""
        assert job.held is not None
        run = self.run_order(job)
        reservation = self.action_name(one, share["domain"], "reserve")
        members = {**share, "reservation": reservation, "run": run}
        action = self.order_of_job(tenant, job, share["domain"], "start", members)
        job.runs[job.attempt, share["domain"]].start = action["id"]

    def run_order(self, job: Job) -> Json:
        """What is to be run, the same in all domains."""
        assert job.held is not None
        return {
            "attempt": job.attempt,
            "workload": job.body["workload"],
            "shares": job.held["shares"],
            "split_mode": job.held["split_mode"],
            **({"sync_period": job.held["sync_period"]} if "sync_period" in job.held else {}),
            **({"checkpoint": job.body["checkpoint"]} if "checkpoint" in job.body else {}),
            "step": job.checkpoint_step or 0,
            "grace": job.body.get("grace", GRACE),
        }

    def order_of_job(self, tenant: Tenant, job: Job, domain: str, kind: str, members: Json) -> Json:
        """Ask a domain for something because of a job; it is committed at once."""
        of = json.dumps([job.name, job.submitted, job.attempt, domain, kind])
        action = {
            **members,
            "id": "j" + hashlib.sha256(of.encode()).hexdigest()[:32],
            "kind": kind,
            "phase": "commit",
            "revision": self.job_revision(self.job_queue(tenant).number),
            "job": job.name,
            "domain": domain,
        }
        self.job_queue(tenant).orders[action["id"]] = job.name, job.attempt, domain
        self.book(tenant).open.setdefault(domain, {})[action["id"], "commit"] = action
        self.changed_actions.notify_all()
        return action

    def withdraw_order(self, tenant: Tenant, domain: str, action: str) -> None:
        """Ask for something no more."""
        self.book(tenant).open.get(domain, {}).pop((action, "commit"), None)

    # What domains say

    def post_result_of_any(self, request: Request) -> Answer:
        """Take what became of an action, whatever it was asked for; a domain that owes no end any more is a place."""
        before = self.owing(request.tenant)
        answer = self.take_any_result(request)
        if before - self.owing(request.tenant):
            self.consider(request.tenant, self.moment)
        return answer

    def owing(self, tenant: Tenant) -> set[str]:
        """Domains that no job is given to, since something has to end there first."""
        return {domain for domain in self.book(tenant).open if not self.is_place(tenant, domain)}

    def take_any_result(self, request: Request) -> Answer:
        """Take what became of an action, which is one of a job or of an allocation."""
        result = self.body(request, "ActionResult")
        order = self.job_queue(request.tenant).orders.get(result["action"])
        if order is None:
            return self.post_any_result(request)
        if result["phase"] != "commit":
            raise wrong_body("invalid-body", "/phase", "this action is committed at once")
        if result["outcome"] not in COUNTED:
            raise wrong_body("invalid-body", "/outcome", "this step cannot end like that")
        job = self.job_queue(request.tenant).jobs[order[0]]
        run = job.runs[order[1:]]
        if result["action"] == run.start:
            self.take_start(request.tenant, job, order[1], run, result["outcome"])
        else:
            self.take_stop(request.tenant, job, order[1], run, result["outcome"])
        return Answer(200, job.record)

    def take_start(self, tenant: Tenant, job: Job, attempt: int, run: Run, outcome: str) -> None:
        """A domain has taken a run over, or not."""
        if outcome == "unknown":
            return
        self.withdraw_order(tenant, run.domain, run.start)
        if outcome != "committed" and not run.over:
            self.end_run(tenant, job, attempt, run, "")
            verdict = "failed" if outcome == "failed" else "lost"
            self.fail_attempt(tenant, job, attempt, verdict, f"{run.domain} answered the start with {outcome}")

    def take_stop(self, tenant: Tenant, job: Job, attempt: int, run: Run, outcome: str) -> None:
        """A domain has stopped a run; what could not be stopped is asked for again."""
        if outcome == "committed":
            self.withdraw_order(tenant, run.domain, run.stop)
            self.end_run(tenant, job, attempt, run, "stopped")
            self.let_go_of_attempt(tenant, job, self.moment)

    def post_run_report(self, request: Request) -> Answer:
        """Take how a run stands; what comes late changes nothing."""
        report = self.body(request, "RunReport")
        job, run = self.find_run(request.tenant, report)
        if self.is_timely(job, run, report):
            self.take_report(request.tenant, job, run, report)
        return Answer(200, job.record)

    def find_run(self, tenant: Tenant, told: Json) -> tuple[Job, Run]:
        """The run that is told of."""
        job = self.job_queue(tenant).jobs.get(told["job"])
        if job is None:
            raise wrong_body("unknown-reference", "/job", "there is no job of that name")
        run = job.runs.get((told["attempt"], told["domain"]))
        if run is None:
            raise wrong_body("unknown-reference", "/attempt", "nobody was asked for this run")
        return job, run

    def is_timely(self, job: Job, run: Run, report: Json) -> bool:
        """Whether a report is of a run that is under way."""
        return bool(report["attempt"] == job.attempt and job.allocation and job.held and not run.over)

    def take_report(self, tenant: Tenant, job: Job, run: Run, report: Json) -> None:
        """A run has come so far."""
        job.step = report.get("step", job.step)
        job.checkpoint_step = report.get("checkpoint_step", job.checkpoint_step)
        state, attempt = report["state"], job.attempt
        run.state = state if state != "unknown" else run.state
        if state in OVER:
            self.end_run(tenant, job, attempt, run, state)
        self.change_job(tenant, job, self.moment)
        if state in {"failed", "stopped"}:
            own = state == "failed" and self.is_own_fault(report)
            reason = report.get("reason") or f"its run in {run.domain} has {state}"
            self.fail_attempt(tenant, job, attempt, "failed" if own else "lost", reason)
        else:
            self.go_on_with_job(tenant, job)
        self.let_go_of_attempt(tenant, job, self.moment)

    def is_own_fault(self, report: Json) -> bool:
        """Whether a run failed by what it runs."""
        return bool(report.get("own_fault", True))

    def go_on_with_job(self, tenant: Tenant, job: Job) -> None:
        """A job runs when all its runs do, and has succeeded when all have."""
        if job.ending:
            return
        states = [run.state for run in job.present]
        if job.state == "starting" and all(state in {"running", "succeeded"} for state in states):
            self.enter_state(tenant, job, "running", "all its runs run", self.moment)
        if all(state == "succeeded" for state in states):
            job.verdict, job.reason = "succeeded", "all its runs have ended well"

    # Ends

    def end_run(self, tenant: Tenant, _job: Job, _attempt: int, run: Run, state: str) -> None:
        """Nothing of a run is alive any more, and nothing is asked of its domain because of it."""
        run.over, run.state = True, state or run.state
        for action in (run.start, run.stop):
            self.withdraw_order(tenant, run.domain, action)

    def fail_attempt(self, tenant: Tenant, job: Job, attempt: int, verdict: str, reason: str) -> None:
        """A run has failed or was lost: the others are stopped."""
        if attempt != job.attempt or job.ending or job.state in ENDS:
            return
        job.verdict = verdict
        self.enter_state(tenant, job, "restarting", reason, self.moment)
        self.stop_runs(tenant, job)
        self.let_go_of_attempt(tenant, job, self.moment)

    def stop_runs(self, tenant: Tenant, job: Job) -> None:
        """Ask all domains to stop that may run something."""
        for run in self.to_be_stopped(job):
            self.withdraw_order(tenant, run.domain, run.start)
            if not run.stop:
                run.stop = self.order_of_job(tenant, job, run.domain, "stop", {"attempt": job.attempt})["id"]

    def to_be_stopped(self, job: Job) -> list[Run]:
        """Runs that may be alive."""
        return [run for run in job.present if not run.over]

    def let_go_of_attempt(self, tenant: Tenant, job: Job, moment: int) -> None:
        """Give devices back when nothing runs any more on them."""
        one = job.allocation
        if one is None or not job.ending or not self.may_let_go(job) or one.unwanted:
            return
        one.unwanted = True
        if one.phase == "committed":
            self.release(tenant, one, moment)
        elif one.phase in {"preparing", "committing"}:
            self.abort(tenant, one, job.reason, moment)

    def may_let_go(self, job: Job) -> bool:
        """Whether nothing of the attempt is alive."""
        return all(run.over for run in job.present)

    def lose_devices(self, tenant: Tenant, job: Job, one: Allocation) -> None:
        """Devices are being given back; unless that was wanted, a domain has let go of them by itself."""
        if not one.unwanted:
            self.fail_attempt(tenant, job, job.attempt, "lost", one.reason)

    def finish_attempt(self, tenant: Tenant, job: Job, reason: str, moment: int) -> None:
        """Nothing is held any more: the job has ended, or waits again."""
        self.count_hours(tenant, job, moment)
        verdict, job.verdict = job.verdict, ""
        if job.cancelling:
            self.enter_state(tenant, job, "cancelled", "it was called off, and nothing of it is held", moment)
        elif verdict == "succeeded":
            self.enter_state(tenant, job, "succeeded", job.reason, moment)
        else:
            job.failures += self.is_counted(verdict)
            if verdict == "failed" and job.failures > self.retries(job):
                self.enter_state(tenant, job, "failed", f"it failed {job.failures} times: {job.reason}", moment)
            else:
                self.enter_state(tenant, job, "queued", job.reason if verdict else reason or "refused", moment)
        self.consider(tenant, moment)

    def count_hours(self, tenant: Tenant, job: Job, moment: int) -> None:
        """Count the hours for which devices were held; runs of which nothing was heard have no devices any more."""
        for run in job.present:
            run.over = True
            self.withdraw_order(tenant, run.domain, run.start)
        if job.held is not None:
            job.hours += sum(share["devices"] for share in job.held["shares"]) * (moment - job.since) / 3_600_000
        job.allocation = job.held = None

    def is_counted(self, verdict: str) -> bool:
        """Whether an attempt that ended so counts against the job."""
        return verdict == "failed"

    def retries(self, job: Job) -> int:
        """How often it is started again."""
        return int(job.body.get("retries", RETRIES))

    def delete_job(self, request: Request, name: str) -> Answer:
        """Call a job off; one that has ended stays as it is, and so does one that only has to give its devices back."""
        job, tenant = self.find_job(request.tenant, name), request.tenant
        if job.state in ENDS or job.cancelling or job.verdict == "succeeded":
            return Answer(200, job.record)
        if job.allocation is None:
            self.enter_state(tenant, job, "cancelled", "it was called off while it waited", self.moment)
            self.consider(tenant, self.moment)
            return Answer(200, job.record)
        self.call_off(tenant, job)
        return Answer(200, job.record)

    def call_off(self, tenant: Tenant, job: Job) -> None:
        """Stop whatever may run of a job, and give its devices back then."""
        job.cancelling, job.reason = True, "it was called off"
        self.change_job(tenant, job, self.moment)
        self.stop_runs(tenant, job)
        self.let_go_of_attempt(tenant, job, self.moment)

    def pass_on(self, tenant: Tenant) -> None:
        """Time has passed: leases may be over, nodes of jobs dead, and devices there that were not."""
        self.pass_time(tenant)
        dead = {name for kind, name, _ in self.docket(tenant).open if kind == "node_dead"}
        for job in list(self.job_queue(tenant).jobs.values()) if dead else ():
            rows = [row for share in (job.held or {}).get("shares", ()) for row in share.get("nodes", ())]
            gone = [row["node"] for row in rows if row["node"] in dead]
            if gone and not job.ending:
                self.deed(tenant, "lose_node", job.name, gone[0])
        queue = self.job_queue(tenant)
        if queue.known != tenant.number:
            queue.known = tenant.number
            if any(job.state == "queued" for job in queue.jobs.values()):
                self.deed(tenant, "consider", self.moment)

    def lose_node(self, tenant: Tenant, name: str, node: str) -> None:
        """A node is dead that a job holds."""
        job = self.job_queue(tenant).jobs[name]
        self.fail_attempt(tenant, job, job.attempt, "lost", f"node {node} is dead")

    # Logs

    def post_run_logs(self, request: Request) -> Answer:
        """Keep lines that go on from what is kept."""
        batch = self.body(request, "RunLogBatch")
        job, run = self.find_run(request.tenant, batch)
        first = batch["lines"][0]["number"]
        for place, line in enumerate(batch["lines"]):
            if line["number"] != first + place:
                raise wrong_body("invalid-body", f"/lines/{place}/number", "lines follow each other")
        if self.goes_on(run, first):
            self.keep_lines(job, run, batch)
            self.changed_jobs.notify_all()
        return Answer(200, {"last": run.lines})

    def goes_on(self, run: Run, first: int) -> bool:
        """Whether no line is missing before this one."""
        return first <= run.lines + 1

    def keep_lines(self, job: Job, run: Run, batch: Json) -> None:
        """Keep the lines that are new."""
        of = {"attempt": batch["attempt"], "domain": batch["domain"]}
        new = [line for line in batch["lines"] if line["number"] > run.lines]
        job.log += [{**line, **of} for line in new]
        run.lines += len(new)

    def get_logs(self, request: Request, name: str) -> Answer:
        """A page of a log; waits for lines where there are none yet."""
        job = self.find_job(request.tenant, name)
        cursor = CURSOR.fullmatch(request.query.get("after", "l0"))
        if cursor is None or int(cursor[1]) > len(job.log):
            raise wrong_parameter("after", "the cursor was not given for this log", "invalid-cursor")
        begin, limit = int(cursor[1]), self.limit(request)
        until = self.moment + round(1000 * self.wait(request))
        while len(job.log) <= begin and job.state not in ENDS and self.moment < until:
            self.changed_jobs.wait((until - self.moment) / 1000)
            self.moment = self.read_clock()
        return Answer(200, self.log_page(job, begin, limit))

    def log_page(self, job: Job, begin: int, limit: int) -> Json:
        """So many lines from somewhere on, and where to go on."""
        end = min(begin + limit, len(job.log))
        ended = job.state in ENDS and end == len(job.log)
        return {"items": job.log[begin:end], "next_cursor": f"l{end}", "ended": ended}
