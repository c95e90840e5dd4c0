"""What lives while the service runs, and what more than one route does with it."""

import asyncio
import logging
from dataclasses import dataclass, field
from functools import cache, partial
from zlib import crc32

import orjson
from fastapi import Request
from starlette.concurrency import run_in_threadpool

from kuayu.perception import clock, exposition
from kuayu.perception.collection import CollectionMap, UnknownExporterError
from kuayu.service import (
    adjusting,
    auth,
    demanding,
    forecasting,
    indexing,
    instants,
    recovering,
    scheduling,
    transferring,
)
from kuayu.service.allocating.coordinator import Coordinator
from kuayu.service.asking import Asking
from kuayu.service.bells import Bell
from kuayu.service.decisions import Decisions
from kuayu.service.graph.graphs import Graphs
from kuayu.service.ingest import Reception
from kuayu.service.kinds import SCRAPE_TARGET
from kuayu.service.lanes import Threads
from kuayu.service.maintenance import Maintenance
from kuayu.service.metrics import Metrics
from kuayu.service.problems import Place, ProblemException
from kuayu.service.scraper import Scraper, Target, Warnings
from kuayu.service.settings import Settings
from kuayu.service.storage.answers import Answer, Key, Once
from kuayu.service.storage.catalogue import Catalogue
from kuayu.service.storage.database import Database, open_database
from kuayu.service.storage.pages import StorePage
from kuayu.service.storage.presence import Doubt
from kuayu.service.storage.probing import Prober
from kuayu.service.storage.resources import Record, Scope
from kuayu.service.storage.samples import Feed
from kuayu.service.storage.store import Store
from kuayu.service.storage.writer import Command, Writer
from kuayu.service.watching.watcher import Watcher
from kuayu_schemas import registers

logger = logging.getLogger(__name__)


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
    bell: Bell
    watcher: Watcher
    threads: Threads
    urgent: Threads
    scraper: Scraper = field(init=False)
    decisions: Decisions = field(init=False)
    searches: Decisions = field(init=False)
    patches: tuple[Decisions, ...] = field(init=False)
    coordinator: Coordinator = field(init=False)
    asking: Asking = field(init=False)

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
        bell = Bell()
        watcher = Watcher(settings, metrics, database, store, writer, bell)
        threads = Threads("work", settings.threads, settings.share(settings.threads))
        # What tells of faults, and what is done about them, waits for nothing else.
        urgent = Threads("urgent", settings.threads, settings.share(settings.threads))
        parts = (database, store, catalogue, writer, prober, graphs, bell, watcher, threads, urgent)
        return cls(settings, metrics, *parts)

    def start(self) -> None:
        """Begin to write, to recognise, to watch, to decide, to allocate and to scrape. Call it in the event loop."""
        self.writer.start()
        self.prober.start()
        self.graphs.start()
        self.watcher.start()
        self.decisions = self._decisions(self.settings.workers)
        parts = (indexing, scheduling, demanding, forecasting, transferring, recovering, adjusting)
        self.decisions.prepare(*(part.warm for part in parts))
        # A Pareto front or a plan of capacity takes seconds; who wants a placement does not wait behind them.
        self.searches = self._decisions(1)
        # A worker holds the states that patches start from; so each tenant has its own, which begins when it is needed.
        self.patches = tuple(self._decisions(1) for _ in range(self.settings.workers))
        pools = (self.decisions, self.searches, *self.patches)
        self.metrics.decisions_waiting.set_function(lambda: sum(pool.waiting for pool in pools))
        self.coordinator = Coordinator(self.settings, self.metrics, self.database, self.writer, self.bell)
        self.coordinator.start()
        leases, follower = self.coordinator.leases, self.coordinator.follow
        self.asking = Asking(
            *(self.settings, self.metrics, self.database, self.writer, self.bell, leases, follower),
            self.urgent,
            self.coordinator.clock,
        )
        self.scraper = Scraper(self.settings, self.metrics, self._take_scraped)
        for tenant, record in self.store.records(SCRAPE_TARGET):
            self.scraper.start(self.target(tenant, record))

    def _decisions(self, workers: int) -> Decisions:
        settings = self.settings
        return Decisions(
            workers, settings.max_waiting, self.metrics, shared=settings.shared, deadline=settings.deadline
        )

    async def close(self) -> None:
        """End streams, stop all that was begun, write all that waits, let go of the database."""
        self.end_waiting()
        await self.scraper.close()
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
        self.bell.close()

    async def doubted(self) -> Doubt:
        """Wait until the database is not as it was left, so that this cannot go on."""
        loop, found = asyncio.get_running_loop(), asyncio.Event()
        self.database.presence.follow(lambda: loop.call_soon_threadsafe(found.set))
        await found.wait()
        doubt = self.database.presence.doubt
        assert doubt is not None
        return doubt

    async def maintain(self) -> None:
        """Roll up and forget what is due, again and again; a round that fails is made up for by the next."""
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
        return Scope(tenant, self.database.epoch, self.catalogue, (self.graphs, self.watcher), self.settings.quota)

    def feed(self, tenant: str) -> Feed:
        """What takes a tenant's samples once they are durable."""
        return partial(self.graphs.feed, tenant)

    def target(self, tenant: str, record: Record) -> Target:
        """A registered scrape target as the scraper wants it."""
        body = record.body
        period = body.get("period", self.settings.scrape_period)
        return Target(tenant, body["id"], body["node"], body["exporter"], body["url"], period)

    def reception(self, sent: int | None, received: int | None = None) -> Reception:
        """Something is received now, or was at an instant, whose sender's clock showed ``sent``."""
        received = instants.now() if received is None else received
        return Reception(received, clock.offset(sent, received), round(self.settings.retention * 1000))

    def holders(self, tenant: str) -> Decisions:
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
    return auth.tenant_of(request, request.app.state.settings)
