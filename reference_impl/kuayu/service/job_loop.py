"""The coordinator of jobs, and the control loop that places, starts and stops them.

1. Jobs while the service runs: requests, decisions and reports go to the writer, readers hear of what has changed.
   Whoever decides where jobs run (the control loop) reads what waits and runs from ``store``, has decisions carried
   out by ``place``, ``hold``, ``unhold``, ``lose``, ``preempt`` and ``resize``, and waits for ``changed``. What is
   shown is read from the database, so that it is durable before anyone can act on it.
2. The control loop: from what is known of a federation to what its domains are asked to do, again and again.

   1. *Pass.* For each tenant with jobs that wait or run: what is known is gathered at one instant
      (:mod:`kuayu.service.job_snapshot`), decided on in a worker process (:mod:`kuayu.jobs.decisions`) and carried
      out by commands of the writer. Between passes nothing is kept that cannot be read again: who was placed is
      starting in the database before anybody is asked for devices, and whatever is lost on the way is decided anew.
   2. *When.* A pass follows when a job or an allocation has come into another state, when a fault has come or gone,
      when something was registered, when a domain asks for actions that was not there, and every
      :data:`PERIOD_SECONDS` otherwise. Passes of a tenant lie as far apart as the last one took, between
      :data:`GAP_SECONDS` and :data:`MAX_GAP_SECONDS`: what happens meanwhile is decided on together, and others can
      compute.
   3. *Leader.* There is one loop for a database, since there is one service: whoever else opens it is refused, by a
      lock on the file of SQLite, or by the session that holds PostgreSQL (:mod:`kuayu.service.storage.database`).
   4. *Failures.* A pass that fails is made again, later and later up to :data:`MAX_PAUSE_SECONDS`; other tenants do
      not wait for it. While the database is away none is begun, and those that it was away for are made again after
      the shortest pause, the first :data:`ABSENCES` of them. A step that cannot be carried out any more, as its job
      was called off meanwhile, changes nothing.
   5. *Why.* Each decision is kept for whoever asks, with the digest of its state. Of jobs that go on waiting for the
      same thing it is kept again when others have begun or were stopped, and every :data:`REPEATED_SECONDS`. Where a
      folder for records is set, the inputs of each pass are kept there, from which
      :func:`kuayu.jobs.decisions.replay` makes the same steps.
"""

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from kuayu.jobs.decisions import JobStep, JobVerb, PassResult, steps_by_verb, wait
from kuayu.service import instants, job_rules
from kuayu.service.account_store import SetHalfLife, listed
from kuayu.service.action_dispatcher import DomainReachability
from kuayu.service.allocation_commands import AllocationCoordinator
from kuayu.service.allocation_rules import FINISHED
from kuayu.service.allocation_store import AllocationChange, Change
from kuayu.service.computations import JOB_DECISION, run_pass
from kuayu.service.concurrency import Notifier, Threads, WorkerPool
from kuayu.service.instants import Deadlines
from kuayu.service.job_commands import (
    AlterJob,
    KeepDecisions,
    KeepLines,
    KeepLoad,
    PlaceJob,
    Placement,
    ResumeStarts,
    Rule,
    Serve,
    StoredJob,
    SubmitJob,
    TakeReport,
    expire_starts,
)
from kuayu.service.job_rules import ENDED, Json
from kuayu.service.job_snapshot import ActiveJobs, PassInput, SnapshotReader
from kuayu.service.job_store import JobChange, JobRecord, JobStore, Log
from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException, not_found
from kuayu.service.settings import Settings
from kuayu.service.storage.database import Database, is_absence
from kuayu.service.storage.resources import Body, SubjectKey
from kuayu.service.storage.writer import Writer
from kuayu.service.streams import Hub

if TYPE_CHECKING:
    from kuayu_schemas import documents

WORDS = "jobs"
"""What is looked after here, for the log."""

DECISIONS_PER_TRANSACTION = 500
"""Decisions that are kept in one transaction, so that others can write between."""


class JobCoordinator:
    """Jobs of all tenants. Make it in the event loop.

    Args:
        settings: What the operator set.
        metrics: Are told of jobs, reports, lines and readers.
        database: Where jobs are kept.
        writer: Makes durable what changes.
        coordinator: Of allocations, which jobs hold their devices by; its clock is theirs.
        threads: Where logs are read.

    Attributes:
        store: What is read of jobs; blocking.
        hub: Readers that follow jobs.
        changed: Is set whenever a job has changed; whoever waits for it clears it.
        presence: Whether the database can be used.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        database: Database,
        writer: Writer,
        coordinator: AllocationCoordinator,
        threads: Threads,
    ) -> None:
        share = settings.share(settings.max_streams)
        self.store = JobStore(database)
        self.presence = database.presence
        self.hub: Hub[JobRecord, None] = Hub(_written, settings.max_streams, share, metrics.job_subscribers)
        self.changed = asyncio.Event()
        self._settings = settings
        self._metrics = metrics
        self._writer = writer
        self._clock = coordinator.clock
        self._follow = coordinator.follow
        self._threads = threads
        self._readers = Notifier()
        self._deadlines = Deadlines(WORDS, self._clock, self.store.earliest_deadline, self._resume, self._expire)
        self._tasks: Sequence[asyncio.Task[None]] = ()
        metrics.job_log_readers.set_function(lambda: len(self._readers))
        coordinator.listen(self._heed)

    def start(self) -> None:
        """Begin to keep time, with the jobs that were under way when the service ended."""
        self._tasks = [
            asyncio.create_task(self._deadlines.keep(), name="deadlines of jobs"),
            asyncio.create_task(self._set_half_life(), name="half-life of use"),
        ]

    async def close(self) -> None:
        """Stop keeping time."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def end_waiting(self) -> None:
        """End streams, and answer those who wait for lines."""
        self.hub.close()
        self._readers.close()

    async def submit(self, tenant: str, request: Json) -> StoredJob:
        """Take a job in, class JobRequest, unless it was submitted before.

        Raises:
            ProblemException: invalid-body, where another job has the name; quota-exceeded.
        """
        now, offset = self._clock.milliseconds(), self._clock.offset()
        command = SubmitJob(tenant, request, now, self._follow, offset=offset, quota=self._settings.quota)
        return await self._writer.write(command, tenant)

    async def cancel(self, tenant: str, name: str) -> JobRecord:
        """Call a job off; one that has ended stays as it is.

        Raises:
            ProblemException: not-found.
        """
        record = await self._alter(tenant, name, job_rules.cancel)
        if record is None:
            raise not_found(f"there is no job {name!r}")
        return record

    async def report(self, tenant: str, report: Json) -> JobRecord:
        """A domain has reported how its run stands, class RunReport.

        Raises:
            ProblemException: unknown-reference.
        """
        now, offset = self._clock.milliseconds(), self._clock.offset()
        command = TakeReport(tenant, report, now, self._follow, offset=offset)
        record = await self._writer.write(command, tenant, urgent=True)
        self._metrics.run_reports.labels(report["state"]).inc()
        return record

    async def keep_load(self, tenant: str, load: Json) -> JobRecord:
        """Somebody tells the load of a serving job, class JobLoad; the job as it stands then.

        Raises:
            ProblemException: unknown-reference; invalid-body, where the job does not serve.
        """
        now, offset = self._clock.milliseconds(), self._clock.offset()
        return await self._writer.write(KeepLoad(tenant, load, now, self._follow, offset=offset), tenant)

    async def serve(
        self, tenant: str, name: str, replicas: "documents.ReplicaState", add: int, serial: int, reason: str
    ) -> JobRecord | None:
        """Add replicas to a serving job, and tell of them.

        Args:
            tenant: Whose it is.
            name: The job.
            replicas: What is told, without those that are added.
            add: How many are added.
            serial: How many it has had, when this was decided; nothing changes where it has had more since.
            reason: Why, in words.

        Returns:
            The job as it stands then, None where there is none.
        """
        now, offset = self._clock.milliseconds(), self._clock.offset()
        command = Serve(
            *(tenant, name, replicas, add, serial, reason, now, self._follow),
            offset=offset,
            quota=self._settings.quota,
        )
        return await self._writer.write(command, tenant)

    async def keep_lines(self, tenant: str, batch: Json) -> int:
        """Keep what processes of a run have printed, class RunLogBatch; the number of the last line that is kept.

        Raises:
            ProblemException: unknown-reference or overloaded.
        """
        stored = await self._writer.write(KeepLines(tenant, batch, self._settings.run_log), tenant)
        refused = len(batch["lines"]) - stored.accepted - stored.repeated
        counts = {"kept": stored.accepted, "repeated": stored.repeated, "refused": refused, "dropped": stored.dropped}
        for outcome, number in counts.items():
            self._metrics.run_log_lines.labels(outcome).inc(number)
        if stored.accepted:
            self._readers.notify((tenant, batch["job"]))
        return stored.last

    async def logs(self, tenant: str, name: str, cursor: str | None, limit: int, seconds: float) -> Json:
        """Part of a job's log, class JobLogPage; where there are no further lines, waits for them.

        Raises:
            ProblemException: not-found; invalid-cursor; overloaded, where too many wait already.
        """
        most = self._settings.max_log_readers
        waiting = len(self._readers) >= most or self._readers.waiting_of(tenant) >= self._settings.share(most)
        if seconds and waiting:
            raise ProblemException("overloaded", "more readers wait for lines than the service takes", retry_after=1)
        log = await self._log(tenant, name, cursor, limit, asyncio.get_running_loop().time() + seconds)
        ended = log.over and not log.page.more
        return {"items": log.page.lines, "next_cursor": log.cursor, "ended": ended}

    async def _log(self, tenant: str, name: str, cursor: str | None, limit: int, until: float) -> Log:
        """Part of a log, as soon as there are lines, none is to come, or it is time."""
        loop = asyncio.get_running_loop()
        while True:
            with self._readers.subscription((tenant, name)) as event:
                # Whatever comes after this look rings, so nothing is missed.
                log = await self._threads.run(tenant, self.store.log, tenant, name, cursor, limit)
                if log is None:
                    raise not_found(f"there is no job {name!r}")
                left = until - loop.time()
                if log.page.lines or log.over or left <= 0 or self._readers.closed:
                    return log
                try:
                    await asyncio.wait_for(event.wait(), left)
                except TimeoutError:
                    return log

    async def place(self, tenant: str, name: str, placement: Placement) -> JobRecord | None:
        """Have a job that is queued begin, with the allocation of its attempt.

        Returns:
            The job as it stands then: one that is not queued any more stays as it is; None where there is none.

        Raises:
            ProblemException: overloaded.
        """
        settings, now, offset = self._settings, self._clock.milliseconds(), self._clock.offset()
        command = PlaceJob(
            *(tenant, name, placement, now, self._follow),
            lease=settings.job_lease,
            patience=settings.job_patience,
            starting=settings.starting_patience,
            offset=offset,
        )
        return await self._writer.write(command, tenant)

    async def decide(self, tenant: str, decisions: "Sequence[documents.JobDecision]") -> None:
        """Keep what was decided about jobs that wait, for whoever asks why."""
        for first in range(0, len(decisions), DECISIONS_PER_TRANSACTION):
            await self._writer.write(KeepDecisions(tenant, decisions[first : first + DECISIONS_PER_TRANSACTION]))

    async def hold(self, tenant: str, name: str, reason: str) -> JobRecord | None:
        """Have a job that waits not be considered; the job as it stands then, None where there is none."""
        return await self._alter(tenant, name, partial(job_rules.hold, reason=reason))

    async def unhold(self, tenant: str, name: str, reason: str) -> JobRecord | None:
        """What held a job is over; the job as it stands then, None where there is none."""
        return await self._alter(tenant, name, partial(job_rules.unhold, reason=reason))

    async def lose(self, tenant: str, name: str, attempt: int, reason: str) -> JobRecord | None:
        """A node or domain that an attempt needs is gone; the job as it stands then, None where there is none."""
        return await self._alter(tenant, name, partial(job_rules.lose, attempt=attempt, reason=reason), urgent=True)

    async def preempt(self, tenant: str, name: str, reason: str, beneficiary: str | None = None) -> JobRecord | None:
        """Have a job end where it runs and wait again, as others need its devices or it is to run elsewhere.

        Returns:
            The job as it stands then, None where there is none.
        """
        return await self._alter(tenant, name, partial(job_rules.preempt, reason=reason, beneficiary=beneficiary))

    async def resize(
        self, tenant: str, name: str, attempt: int, size: "documents.JobResize", reason: str
    ) -> JobRecord | None:
        """Have a job that runs go on with another number of devices, from its checkpoint.

        Returns:
            The job as it stands then, None where there is none; one whose attempt is another or ends stays as it is.
        """
        rule = partial(job_rules.resize, attempt=attempt, size=dict(size), reason=reason)
        return await self._alter(tenant, name, rule)

    async def _alter(self, tenant: str, name: str, rule: Rule, *, urgent: bool = False) -> JobRecord | None:
        now, offset = self._clock.milliseconds(), self._clock.offset()
        command = AlterJob(tenant, name, rule, now, self._follow, offset=offset)
        return await self._writer.write(command, tenant, urgent=urgent)

    def _heed(self, change: Change) -> None:
        """A job has changed; called in the event loop, in the order of changes."""
        if not isinstance(change, JobChange):
            return
        record = change.record
        self._deadlines.heed(record.standing.deadline)
        if change.shown:
            self.hub.deliver(change.tenant, record)
        if change.entered is not None:
            self._metrics.jobs.labels(change.entered.value).inc()
            if change.entered in ENDED:
                self._readers.notify((change.tenant, record.name))
        self.changed.set()

    async def accounts(self, tenant: str) -> "documents.AccountList":
        """What accounts of a tenant have used."""
        now = instants.now()
        used, half_life = await self._threads.run(tenant, self.store.used_hours, tenant, now)
        rules = {} if self._settings.accounts is None else self._settings.accounts.of(tenant)
        return {"at": instants.to_text(now), "half_life": half_life, "items": listed(used, rules)}

    async def _set_half_life(self) -> None:
        """Keep the half-life that the operator has set. Until it is kept, the one from before holds."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                now = instants.now()
                await self._writer.write(SetHalfLife(self._settings.half_life, now))
            except ProblemException:
                await asyncio.sleep(pause)
                pause = min(2 * pause, MAX_PAUSE_SECONDS)
            else:
                return

    async def _resume(self) -> None:
        patience = round(self._settings.starting_patience * 1000)
        await self._writer.write(ResumeStarts(self._clock.milliseconds() + patience))

    async def _expire(self) -> bool:
        command = expire_starts(self._clock.milliseconds(), self._follow, self._clock.offset())
        return await self._writer.write(command, urgent=True)


def _written(record: JobRecord, _: None) -> bytes:
    return record.event()


logger = logging.getLogger(__name__)

PERIOD_SECONDS = 5.0
"""Seconds from one pass to the next where nothing happens: time alone changes what is best."""

GAP_SECONDS, MAX_GAP_SECONDS = 0.1, 1.0
"""Seconds between two passes of a tenant, at least and at most where something has happened."""

FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 30.0
"""Seconds until a pass that failed is made again, at first and at most."""

ABSENCES = 3
"""Passes in a row that may fail because the database is away and put off nothing. What goes on failing so may itself be
why: a page that cannot be read is taken for an absence, and turns everybody away each time."""

BUDGETS_SECONDS = 30.0
"""Seconds between two looks at jobs that are held for their budget."""

REPEATED_SECONDS = 60.0
"""Seconds after which a decision is kept again of which nothing but numbers has changed."""

DECISIONS_PER_PASS = 300
"""Decisions of waiting jobs that are kept in a pass, so that those who write do not wait for them."""

CONCURRENT_STEPS = 64
"""Steps that are carried out at once: they share transactions, and leave room for other writers."""

MAX_STRAY_DECISIONS = 1_000
"""Decisions on jobs that have ended which may be remembered beside those on others."""

RECORDS = 200
"""Passes of which records are kept."""

OTHERS = frozenset({JobVerb.STOP, JobVerb.RESIZE, JobVerb.HOLD, JobVerb.RELEASE, JobVerb.SERVE, JobVerb.CANCEL})
"""What steps do with jobs that are neither lost nor placed and do not merely go on waiting."""

BEHIND_TEXT = "{ahead} jobs stand before it in the queue; it is decided on when it is among those that may start."
"""Why a job waits that is not in the front of the queue."""

BEHIND_ACCOUNTS_TEXT = (
    "{ahead} jobs were submitted before it or have a higher priority, and accounts take turns; it is"
    " decided on when it is among those that may start."
)
"""The same where jobs of several accounts wait."""

_NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(slots=True)
class _TenantPasses:
    """Passes of a tenant.

    Attributes:
        book: Its jobs.
        woken: Whether something has happened since the last pass began.
        due: When the next pass is due in any case, on the loop's clock.
        not_before: Before when none is made.
        failures: Passes in a row that have failed, not counting the first that the database was away for.
        absences: Passes that have failed because it was away, since one was made.
        budgets_at: When jobs that are held are looked at again.
        last_reports: What was kept of the last decisions of waiting jobs: words without numbers, and when.
        passes: How many were made.
        task: The pass that is under way.
    """

    book: ActiveJobs = field(default_factory=ActiveJobs)
    woken: bool = True
    due: float = 0.0
    not_before: float = 0.0
    failures: int = 0
    absences: int = 0
    budgets_at: float = 0.0
    last_reports: dict[str, tuple[str, float]] = field(default_factory=dict)
    passes: int = 0
    task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether there is no job, and nothing is to be done until there is one."""
        return self.book.number is not None and not len(self.book) and not self.woken


class JobLoop:
    """Decides again and again where jobs of all tenants run. Make it in the event loop.

    Args:
        metrics: Are told of passes, steps and queues.
        gatherer: Gathers what a pass rests on.
        decisions: Where passes are decided.
        jobs: Carries steps out.
        threads: Where is gathered.
        reach: Which domains ask for actions.
        records: Folder for the inputs of passes; None to keep none.
    """

    def __init__(
        self,
        metrics: Metrics,
        gatherer: SnapshotReader,
        decisions: WorkerPool,
        jobs: JobCoordinator,
        threads: Threads,
        reach: DomainReachability,
        records: Path | None = None,
    ) -> None:
        self._metrics = metrics
        self._gatherer = gatherer
        self._decisions = decisions
        self._jobs = jobs
        self._presence = jobs.presence
        self._threads = threads
        self._reach = reach
        self._records = records
        self._loop = asyncio.get_running_loop()
        self._tenants: dict[str, _TenantPasses] = {}
        self._happened = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._there: dict[str, frozenset[str]] = {}
        reach.came = self.wake
        metrics.jobs_waiting.set_function(lambda: sum(tenant.book.waiting for tenant in list(self._tenants.values())))

    def start(self) -> None:
        """Begin, with the tenants that have jobs which have not ended."""
        self._task = asyncio.create_task(self._run(), name="control loop of jobs")

    async def close(self) -> None:
        """Stop. A pass that is under way is not finished; what it has carried out stays."""
        tasks = [task for task in (self._task, *(tenant.task for tenant in self._tenants.values())) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self, tenant: str) -> None:
        """Something has happened that may change what is decided about a tenant's jobs. Call it in the event loop."""
        passes = self._tenants.get(tenant)
        if passes is not None and not passes.is_idle:
            passes.woken = True
            self._happened.set()

    def heed(self, change: Change) -> None:
        """A job or an allocation has changed; called in the event loop."""
        if isinstance(change, JobChange):
            moved = change.entered is not None or change.record.standing.cancelling
        else:
            moved = isinstance(change, AllocationChange) and change.entered in FINISHED
        if moved and isinstance(change, JobChange):
            self._wake_first(change.tenant)
        elif moved:
            self.wake(change.tenant)

    def put(self, tenant: str, kind: str, body: Body, numbers: Mapping[SubjectKey, int]) -> None:  # noqa: ARG002
        """A resource was registered or replaced; called in the writer's thread."""
        self._wake_soon(tenant)

    def drop(self, tenant: str, kind: str, name: str) -> None:  # noqa: ARG002
        """A resource was taken away; called in the writer's thread."""
        self._wake_soon(tenant)

    def _wake_first(self, tenant: str) -> None:
        """There are jobs of a tenant that may have had none."""
        self._tenants.setdefault(tenant, _TenantPasses()).woken = True
        self._happened.set()

    def _wake_soon(self, tenant: str) -> None:
        if tenant not in self._tenants:
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nothing is decided any more
            self._loop.call_soon_threadsafe(self.wake, tenant)

    async def _run(self) -> None:
        """Begin passes when they are due, until cancelled."""
        await self._find_tenants()
        while True:
            self._happened.clear()
            soonest = self._begin_due()
            left = None if soonest is None else max(0.0, soonest - self._loop.time())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._happened.wait(), left)

    async def _find_tenants(self) -> None:
        """Tenants with jobs that have not ended; others are woken by their first."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                for tenant in await self._threads.run("", self._jobs.store.tenants):
                    self._wake_first(tenant)
            except Exception as error:
                logger.exception("tenants with jobs could not be read; again in %g s", pause)
                await asyncio.sleep(pause)
                pause = pause if self._is_absence(error) else min(2 * pause, MAX_PAUSE_SECONDS)
            else:
                return

    def _begin_due(self) -> float | None:
        """Begin passes that are due; when the next one is, on the loop's clock."""
        soonest: float | None = None
        now = self._loop.time()
        if self._presence.absence is not None:
            return now + FIRST_PAUSE_SECONDS
        for tenant, passes in list(self._tenants.items()):
            if passes.task is not None:
                continue  # its end wakes the loop
            if passes.is_idle:
                continue
            if self._there.get(tenant) != (reachable := self._reach.of(tenant)):
                self._there[tenant] = reachable
                passes.woken = True
            instant = max(now if passes.woken else passes.due, passes.not_before)
            if instant <= now:
                passes.task = asyncio.create_task(self._make_pass(tenant, passes), name=f"pass of {tenant}")
            else:
                soonest = instant if soonest is None else min(soonest, instant)
        return soonest

    async def _make_pass(self, tenant: str, passes: _TenantPasses) -> None:
        """Make a pass; whatever goes wrong, another one follows."""
        passes.woken = False
        began = self._loop.time()
        try:
            await self._pass(tenant, passes)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            pause = self._pause_after(error, passes)
            passes.not_before = self._loop.time() + pause
            passes.woken = True
            self._metrics.job_passes.labels("failed").inc()
            # That the database is away, or too much waits, is logged by whoever notices it.
            if isinstance(error, ProblemException):
                logger.debug(
                    "a pass over the jobs of %s could not be made; again in %g s", tenant, pause, exc_info=True
                )
            else:
                logger.exception("a pass over the jobs of %s failed; again in %g s", tenant, pause)
        else:
            ended = self._loop.time()
            passes.failures = passes.absences = 0
            passes.due = ended + PERIOD_SECONDS
            passes.not_before = ended + min(max(GAP_SECONDS, ended - began), MAX_GAP_SECONDS)
            self._metrics.job_passes.labels("made").inc()
        finally:
            passes.task = None
            self._happened.set()

    def _pause_after(self, error: Exception, passes: _TenantPasses) -> float:
        """Seconds until a pass that failed is made again."""
        if self._is_absence(error):
            passes.absences += 1
            if passes.absences <= ABSENCES:
                return FIRST_PAUSE_SECONDS
        passes.failures += 1
        return min(FIRST_PAUSE_SECONDS * 2.0 ** min(passes.failures - 1, 10), MAX_PAUSE_SECONDS)

    def _is_absence(self, error: Exception) -> bool:
        """Whether something failed since the database was away; it may be back by now."""
        causes = (error, error.__cause__, error.__context__)
        return self._presence.absence is not None or any(is_absence(cause) for cause in causes if cause is not None)

    async def _pass(self, tenant: str, passes: _TenantPasses) -> None:
        """Gather, decide and carry out."""
        began = time.perf_counter()
        budgets = self._loop.time() >= passes.budgets_at
        reachable = self._reach.of(tenant)
        gathered = await self._threads.run(tenant, self._gather, tenant, passes.book, reachable, budgets)
        if budgets:
            passes.budgets_at = self._loop.time() + BUDGETS_SECONDS
        self._metrics.job_pass_seconds.labels("gather").observe(time.perf_counter() - began)
        if not gathered.jobs and not passes.book.waiting and not passes.book.held_jobs():
            passes.last_reports.clear()
            return
        decided_at = time.perf_counter()
        result = await self._decisions.compute(
            JOB_DECISION, run_pass, gathered.registry, gathered.others, tenant=tenant
        )
        self._metrics.job_pass_seconds.labels("decide").observe(time.perf_counter() - decided_at)
        passes.passes += 1
        if self._records is not None:
            await self._threads.run(tenant, self._record, tenant, passes.passes, gathered, result)
        candidates = {step.job: step.has_way for step in result.steps}
        passes.book.note_ways(gathered.shape, candidates)
        carried_at = time.perf_counter()
        await self._carry_out(tenant, passes, result)
        self._metrics.job_pass_seconds.labels("carry_out").observe(time.perf_counter() - carried_at)
        for verb, count in steps_by_verb(result.steps).items():
            self._metrics.job_steps.labels(verb).inc(count)

    def _gather(self, tenant: str, book: ActiveJobs, reachable: frozenset[str], budgets: bool) -> PassInput:  # noqa: FBT001
        return self._gatherer.gather(tenant, book, reachable, budgets=budgets)

    async def _carry_out(self, tenant: str, passes: _TenantPasses, result: PassResult) -> None:
        """Carry steps out, those first by which most depends; decisions on those who wait come last."""
        urgent = [step for step in result.steps if step.verb is JobVerb.LOSE]
        placed = [step for step in result.steps if step.verb is JobVerb.PLACE]
        others = [step for step in result.steps if step.verb in OTHERS]
        for steps in (urgent, placed, others):
            await _at_once(lambda step: self._carry(tenant, step, result), steps)
        report = [(step, decision) for step in others if (decision := result.job_decision(step)) is not None]
        waits = [*self._untold(passes, result), *_behind(passes.book, result)]
        decisions = [decision for _, decision in report]
        decisions += [decision for step in waits if (decision := result.job_decision(step)) is not None]
        if decisions:
            await self._jobs.decide(tenant, decisions)
        now = self._loop.time()
        for step in waits:
            passes.last_reports[step.job] = (_NUMBER.sub("#", step.reason), now)
            passes.book.note_decided(step.job)
        if urgent or placed or others:
            passes.last_reports.clear()  # who holds what is another matter from now on, so that all is told anew

    async def _carry(self, tenant: str, step: JobStep, result: PassResult) -> None:
        match step.verb:
            case JobVerb.PLACE:
                assert step.placement is not None
                decision = result.job_decision(step)
                placement = Placement(
                    step.placement, result.revision, step.alternatives, step.weights, decision, step.reason
                )
                await self._jobs.place(tenant, step.job, placement)
            case JobVerb.HOLD:
                await self._jobs.hold(tenant, step.job, step.reason)
            case JobVerb.RELEASE:
                await self._jobs.unhold(tenant, step.job, step.reason)
            case JobVerb.STOP:
                await self._jobs.preempt(tenant, step.job, step.reason, step.beneficiary)
            case JobVerb.RESIZE:
                assert step.resize is not None
                await self._jobs.resize(tenant, step.job, step.attempt, step.resize, step.reason)
            case JobVerb.SERVE:
                assert step.replicas is not None
                await self._jobs.serve(tenant, step.job, step.replicas, step.add, step.serial, step.reason)
            case JobVerb.CANCEL:
                await self._jobs.cancel(tenant, step.job)
            case JobVerb.LOSE:
                await self._jobs.lose(tenant, step.job, step.attempt, step.reason)

    def _untold(self, passes: _TenantPasses, result: PassResult) -> list[JobStep]:
        """Steps of jobs that go on waiting which say something new, or were not kept for long."""
        now, book = self._loop.time(), passes.book
        if len(passes.last_reports) > 2 * len(book) + MAX_STRAY_DECISIONS:
            passes.last_reports = {
                name: report for name, report in passes.last_reports.items() if book.record(name) is not None
            }

        def is_new(step: JobStep) -> bool:
            before = passes.last_reports.get(step.job)
            return before is None or before[0] != _NUMBER.sub("#", step.reason) or now - before[1] >= REPEATED_SECONDS

        return [step for step in result.steps if step.verb is JobVerb.DECIDE and is_new(step)][:DECISIONS_PER_PASS]

    def _record(self, tenant: str, number: int, gathered: PassInput, result: PassResult) -> None:
        """Keep the inputs of a pass in a file, and let old ones go. Blocking."""
        assert self._records is not None
        self._records.mkdir(parents=True, exist_ok=True)
        snapshot = gathered.registry[:-1] + b"," + gathered.others[1:]
        head = orjson.dumps({"tenant": tenant, "digest": result.digest})
        written = head[:-1] + b',"snapshot":' + snapshot + b"}"
        folder = self._records / tenant
        folder.mkdir(exist_ok=True)
        (folder / f"{number:09d}.json").write_bytes(written)
        (folder / f"{number - RECORDS:09d}.json").unlink(missing_ok=True)


def _behind(book: ActiveJobs, result: PassResult) -> list[JobStep]:
    """Steps of jobs that wait behind the front of the queue, and of which nothing was told since they came into it."""
    decided = {step.job for step in result.steps}
    text = BEHIND_ACCOUNTS_TEXT if len(book.accounts()) > 1 else BEHIND_TEXT
    matches = []
    for name in [name for name in book.undecided(DECISIONS_PER_PASS + len(decided)) if name not in decided][
        :DECISIONS_PER_PASS
    ]:
        reason = text.format(ahead=book.place(name))
        matches.append(JobStep(name, JobVerb.DECIDE, reason, 0, wait(name, reason)))
    return matches


async def _at_once(carry_out: Callable[[JobStep], Awaitable[None]], steps: Sequence[JobStep]) -> None:
    """Carry steps out, some at once. One that fails does not keep others from it.

    Raises:
        Exception: What the first one raised that failed, once all have ended.
    """
    places = asyncio.Semaphore(CONCURRENT_STEPS)

    async def carry(step: JobStep) -> None:
        async with places:
            await carry_out(step)

    results = await asyncio.gather(*map(carry, steps), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
