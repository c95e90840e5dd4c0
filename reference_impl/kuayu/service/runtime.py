"""The parts of a running service, and their supervisor, which starts them anew when the database is not as it was left.

1. What lives while the service runs, and what more than one route does with it.
2. Lives of what stands behind the routes: one as a rule, and another where the database is not as it was left. What
   is in memory follows from the database, so that nothing of it can be kept then. Requests are turned away until the
   database was opened anew.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from functools import cache, partial
from zlib import crc32

import orjson
from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool

from kuayu.perception import exposition, plausibility
from kuayu.perception.collection import CollectionMap, UnknownExporterError
from kuayu.service import access, computations, instants, scheduling
from kuayu.service.action_dispatcher import ActionDispatcher, DomainReachability
from kuayu.service.allocation_commands import AllocationCoordinator
from kuayu.service.concurrency import Notifier, Threads, WorkerPool
from kuayu.service.fault_watcher import Watcher
from kuayu.service.ingest import ConflictFeed, Feed, Reception, StorePage
from kuayu.service.job_loop import JobCoordinator, JobLoop
from kuayu.service.job_snapshot import SnapshotReader
from kuayu.service.maintenance import Maintenance, Prober, keep_statistics
from kuayu.service.metrics import Metrics
from kuayu.service.problems import Place, ProblemException
from kuayu.service.scraper import Scraper, Target, Warnings
from kuayu.service.settings import Settings
from kuayu.service.storage.database import Database, DatabaseError, Doubt, open_database
from kuayu.service.storage.queries import Store
from kuayu.service.storage.resources import SCRAPE_TARGET, Catalogue, ResourceRecord, Scope
from kuayu.service.storage.writer import Answer, Command, Key, Once, Writer
from kuayu.service.tenant_graphs import Graphs
from kuayu_schemas import registers

logger = logging.getLogger(__name__)


PREPARED = (
    *(computations.warm_indices, scheduling.warm, computations.warm_demands, computations.warm_forecasts),
    *(computations.warm_transfers, computations.warm_recovery, computations.warm_adjustments),
    computations.warm_passes,
)
"""What a worker loads before anybody asks for it."""


@dataclass(slots=True)
class Runtime:
    """The parts of a running service."""

    settings: Settings
    metrics: Metrics
    database: Database
    store: Store
    catalogue: Catalogue
    writer: Writer
    prober: Prober
    graphs: Graphs
    notifier: Notifier
    watcher: Watcher
    threads: Threads
    urgent: Threads
    scraper: Scraper = field(init=False)
    decisions: WorkerPool = field(init=False)
    searches: WorkerPool = field(init=False)
    patches: tuple[WorkerPool, ...] = field(init=False)
    coordinator: AllocationCoordinator = field(init=False)
    jobs: JobCoordinator = field(init=False)
    job_loop: JobLoop = field(init=False)
    dispatcher: ActionDispatcher = field(init=False)

    @classmethod
    def open(
        cls, settings: Settings, metrics: Metrics, database: Database | None, doubt: Doubt | None = None
    ) -> "Runtime":
        """Open the database unless it is open, and read what is registered. Blocking.

        Raises:
            DatabaseError: The database cannot be used.
            ProblemException: overloaded, where it cannot be used any more.
        """
        database = database or open_database(settings.database, settings.durability, doubt)
        try:
            return cls._on(settings, metrics, database)
        except BaseException:
            database.close()
            raise

    @classmethod
    def _on(cls, settings: Settings, metrics: Metrics, database: Database) -> "Runtime":
        store = Store(database)
        catalogue = Catalogue()
        store.load(catalogue)
        share = settings.share(settings.max_queue)
        writer = Writer(database.write, settings.max_queue, metrics, share, database.presence, database.mark)
        prober = Prober(database, writer)
        graphs = Graphs(settings, metrics, database, store, catalogue)
        notifier = Notifier()
        watcher = Watcher(settings, metrics, database, store, writer, notifier)
        threads = Threads("work", settings.threads, settings.share(settings.threads))
        # What tells of faults, and what is done about them, waits for nothing else.
        urgent = Threads("urgent", settings.threads, settings.share(settings.threads))
        parts = (database, store, catalogue, writer, prober, graphs, notifier, watcher, threads, urgent)
        return cls(settings, metrics, *parts)

    def start(self) -> None:
        """Begin to write, recognise, watch, decide, allocate, run jobs and scrape. Call it in the event loop."""
        self.writer.start()
        self.prober.start()
        self.graphs.start()
        self.watcher.start()
        self.decisions = self._decisions(self.settings.workers)
        if self.settings.prepare:
            self.decisions.prepare(*PREPARED)
        # A Pareto front or a plan of capacity takes seconds; who wants a placement does not wait behind them.
        self.searches = self._decisions(1)
        # A worker holds the states that patches start from; so each tenant has its own, which begins when it is needed.
        self.patches = tuple(self._decisions(1) for _ in range(self.settings.workers))
        pools = (self.decisions, self.searches, *self.patches)
        self.metrics.decisions_waiting.set_function(lambda: sum(pool.waiting for pool in pools))
        self.coordinator = AllocationCoordinator(self.settings, self.metrics, self.database, self.writer, self.notifier)
        self.coordinator.start()
        self.jobs = JobCoordinator(
            self.settings, self.metrics, self.database, self.writer, self.coordinator, self.threads
        )
        self.jobs.start()
        reach = DomainReachability()
        self.job_loop = JobLoop(
            self.metrics,
            SnapshotReader(self.database, self.store, self.catalogue, self.graphs, self.settings.accounts),
            self.decisions,
            self.jobs,
            self.threads,
            reach,
            self.settings.pass_records,
        )
        self.coordinator.listen(self.job_loop.heed)
        self.watcher.listen(self.job_loop.wake)
        self.job_loop.start()
        leases, follower = self.coordinator.leases, self.coordinator.follow
        self.dispatcher = ActionDispatcher(
            *(self.settings, self.metrics, self.database, self.writer, self.notifier, leases, follower),
            self.urgent,
            self.coordinator.clock,
            reach,
        )
        self.scraper = Scraper(self.settings, self.metrics, self._take_scraped)
        for tenant, record in self.store.records(SCRAPE_TARGET):
            self.scraper.start(self.target(tenant, record))

    def _decisions(self, workers: int) -> WorkerPool:
        settings = self.settings
        return WorkerPool(
            workers, settings.max_waiting, self.metrics, shared=settings.shared, deadline=settings.deadline
        )

    async def close(self) -> None:
        """End streams, stop all that was begun, write all that waits, let go of the database."""
        self.end_waiting()
        await self.scraper.close()
        await self.job_loop.close()
        await self.jobs.close()
        await self.coordinator.close()
        await run_in_threadpool(self.decisions.close)
        for workers in (self.searches, *self.patches):
            await run_in_threadpool(workers.close)
        await run_in_threadpool(self.watcher.close)
        await run_in_threadpool(self.prober.close)
        await run_in_threadpool(self.writer.close)
        await run_in_threadpool(self.graphs.close)
        await run_in_threadpool(self.threads.close)
        await run_in_threadpool(self.urgent.close)
        await run_in_threadpool(self.database.close)

    def end_waiting(self) -> None:
        """End streams, and answer those who wait for something to happen. Call it in the event loop."""
        self.graphs.hub.close()
        self.watcher.hub.close()
        self.jobs.end_waiting()
        self.notifier.close()

    async def doubted(self) -> Doubt:
        """Wait until the database is not as it was left, so that this cannot go on."""
        loop, result = asyncio.get_running_loop(), asyncio.Event()
        self.database.presence.follow(lambda: loop.call_soon_threadsafe(result.set))
        await result.wait()
        doubt = self.database.presence.doubt
        assert doubt is not None
        return doubt

    async def maintain(self) -> None:
        """Look after the database until this is cancelled."""
        await asyncio.gather(self._roll_up_and_forget(), keep_statistics(self.database))

    async def _roll_up_and_forget(self) -> None:
        """Do what is due, again and again; a round that fails is made up for by the next."""
        rounds = Maintenance(self.settings, self.database, self.writer)
        while True:
            await asyncio.sleep(self.settings.maintenance_period)
            try:
                await rounds.round()
            except Exception:
                # Whatever it was, nobody else would look after the database.
                logger.exception("a round of maintenance was not finished")

    def scope(self, tenant: str) -> Scope:
        """What commands on a tenant's resources share."""
        followers = (self.graphs, self.watcher, self.job_loop)
        return Scope(tenant, self.database.epoch, self.catalogue, followers, self.settings.quota)

    def feed(self, tenant: str) -> Feed:
        """What takes a tenant's samples once they are durable."""
        return partial(self.graphs.feed, tenant)

    def conflicts(self, tenant: str) -> ConflictFeed:
        """What is told where two sources report as one of a tenant's nodes."""
        return partial(self.watcher.note_conflict, tenant)

    def target(self, tenant: str, record: ResourceRecord) -> Target:
        """A registered scrape target as the scraper wants it."""
        body = record.body
        period = body.get("period", self.settings.scrape_period)
        return Target(tenant, body["id"], body["node"], body["exporter"], body["url"], period)

    def reception(self, sent: int | None, received: int | None = None) -> Reception:
        """Something is received now, or was at an instant, whose sender's clock showed ``sent``."""
        received = instants.now() if received is None else received
        return Reception(received, plausibility.clock_offset(sent, received), round(self.settings.retention * 1000))

    def holders(self, tenant: str) -> WorkerPool:
        """The worker that holds what a tenant's patches start from."""
        return self.patches[crc32(tenant.encode()) % len(self.patches)]

    async def once(self, key: Key | None, command: Command[Answer], tenant: str) -> Answer:
        """Write what a tenant gives, or give the answer that the idempotency key has had before."""
        return await self.writer.write(command if key is None else Once(key, command), tenant)

    async def take_page(
        self,
        tenant: str,
        node: str,
        exporter: CollectionMap,
        page: str,
        observed: int | None,
        reception: Reception,
        key: Key | None = None,
    ) -> Answer:
        """Convert an exporter's page and keep its samples.

        Raises:
            ProblemException: malformed-exposition.
        """
        try:
            series = await self.threads.run(tenant, exposition.parse, page)
        except exposition.MalformedExpositionError as error:
            raise ProblemException("malformed-exposition", str(error), [Place(str(error))]) from error
        numbers = self.catalogue.of(tenant)
        command = StorePage(
            *(tenant, node, numbers, exporter, series, observed, reception, self.settings.durability.value),
            feed=self.feed(tenant),
            conflicts=self.conflicts(tenant),
        )
        answer = await self.once(key, command, tenant)
        if not answer.replayed:
            result = orjson.loads(answer.body)
            self.metrics.took("page", result["accepted"], len(result["rejected"]))
        return answer

    async def _take_scraped(self, target: Target, page: str, received: int) -> Warnings:
        exporter = collection_map(target.exporter)
        answer = await self.take_page(target.tenant, target.node, exporter, page, None, self.reception(None, received))
        warnings: Warnings = orjson.loads(answer.body).get("warnings", ())
        return warnings


@cache
def collection_map(exporter: str) -> CollectionMap:
    """Collection map of an exporter.

    Raises:
        ProblemException: unknown-exporter.
    """
    try:
        return CollectionMap.of(registers.indicators(), exporter)
    except UnknownExporterError as error:
        raise ProblemException("unknown-exporter", f"the collection map has no exporter {exporter!r}") from error


def runtime_of(request: Request) -> Runtime:
    """The running service that answers a request."""
    runtime: Runtime = request.app.state.runtime
    return runtime


def tenant_of(request: Request) -> str:
    """Tenant that a request speaks for.

    Raises:
        ProblemException: unauthorised.
    """
    return access.grant_of(request, request.app.state.settings).tenant


REOPEN_SECONDS = 1.0
"""Seconds after which it is tried again to open the database."""


class RuntimeSupervisor:
    """Begins and ends them, in the event loop.

    Args:
        app: Its state holds the present one.
        settings: What the operator set.
        metrics: Go on over all of them.
    """

    def __init__(self, app: FastAPI, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._task: asyncio.Task[None] | None = None

    async def begin(self, database: Database | None) -> None:
        """Begin the first.

        Raises:
            DatabaseError: The database cannot be used.
        """
        self._start(await run_in_threadpool(Runtime.open, self._settings, self._metrics, database))
        self._task = asyncio.create_task(self._go_on(), name="lives")

    async def end(self) -> None:
        """End the present one, in order."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._runtime.close()

    @property
    def _runtime(self) -> Runtime:
        runtime: Runtime = self._app.state.runtime
        return runtime

    def _start(self, runtime: Runtime) -> None:
        runtime.start()
        self._app.state.runtime = runtime

    async def _go_on(self) -> None:
        """Have the database looked after, and begin another life whenever there is a doubt."""
        while True:
            maintaining = asyncio.create_task(self._runtime.maintain(), name="maintenance")
            try:
                doubt = await self._runtime.doubted()
            finally:
                maintaining.cancel()
                await asyncio.gather(maintaining, return_exceptions=True)
            logger.error("%s; the service begins anew%s", doubt.cause, ", with another epoch" if doubt.lost else "")
            try:
                await self._runtime.close()
            except Exception:
                logger.exception("what was in memory was not ended in order")
            self._start(await self._opened(doubt))

    async def _opened(self, doubt: Doubt) -> Runtime:
        said = ""
        while True:
            try:
                return await run_in_threadpool(Runtime.open, self._settings, self._metrics, None, doubt)
            except (DatabaseError, ProblemException) as error:
                cause = str(error)
            if cause != said:
                said = cause
                logger.error("%s; again every %g s", said, REOPEN_SECONDS)
            await asyncio.sleep(REOPEN_SECONDS)
