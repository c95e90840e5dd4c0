"""The living graphs of all tenants: one thread that feeds them, and one hub for their readers."""

import asyncio
import contextlib
import secrets
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kuayu.perception.graph import Change, ChangeLog, Narrowing
from kuayu.service import instants
from kuayu.service.enduring import Enduring
from kuayu.service.graph.live import COLUMNS, HEALTH, HEALTH_CODES, LiveTable
from kuayu.service.graph.shown import ShownGraph
from kuayu.service.graph.tenant import TenantGraph
from kuayu.service.kinds import COMPUTE_IDENTIFIER, DOMAIN, LINK, NODE, Body
from kuayu.service.metrics import Metrics
from kuayu.service.settings import Settings
from kuayu.service.storage.blocks import Block
from kuayu.service.storage.catalogue import Catalogue, SubjectKey
from kuayu.service.storage.database import Database
from kuayu.service.storage.recent import newest_samples
from kuayu.service.storage.store import Store
from kuayu.service.streams import Hub, event

IDLE = 1.0
"""Seconds after which states are looked at where nothing arrives: silence tells something too."""

PRIMED_AT_ONCE = 400
"""Subjects of which every measure is read from the database at once when the service has started."""

PRIMED_FIRST = 5
"""How often that is done before anything is shown."""


@dataclass(frozen=True, slots=True)
class _Arrival:
    """What the writer has made durable: samples of a tenant, or new subjects of it, by their numbers."""

    tenant: str
    blocks: Sequence[Block] = ()
    received: int = 0
    subjects: Sequence[int] = ()


class Graphs:
    """All living graphs.

    Args:
        settings: What the operator set.
        metrics: Are told of ticks, changes and readers.
        database: Where newest samples are read when the service starts.
        store: Where registrations are, and newest values.
        catalogue: Numbers of the registered subjects.
    """

    def __init__(
        self, settings: Settings, metrics: Metrics, database: Database, store: Store, catalogue: Catalogue
    ) -> None:
        self.epoch = secrets.token_hex(8)
        self.hub = Hub(
            self._written, settings.max_streams, settings.share(settings.max_streams), metrics.graph_subscribers
        )
        self._settings = settings
        self._metrics = metrics
        self._database = database
        self._store = store
        self._catalogue = catalogue
        self._table = LiveTable()
        self._tenants: dict[str, TenantGraph] = {}
        self._making = threading.Lock()
        self._inbox: deque[_Arrival] = deque()
        self._arrived = threading.Event()
        self._closing = threading.Event()
        self._unread: deque[tuple[Sequence[int], int]] = deque()
        self._enduring = Enduring("the resource graph could not follow")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="kuayu-graph")
        self._load()

    def start(self) -> None:
        """Begin to recognise. Call it in the event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def close(self) -> None:
        """Stop; blocks for a tick at most. Streams are ended by the hub, in the event loop."""
        self._closing.set()
        self._arrived.set()
        self._thread.join()

    def of(self, tenant: str) -> TenantGraph:
        """The graph of a tenant."""
        with self._making:
            if tenant not in self._tenants:
                log = ChangeLog(self._settings.graph_changes, self._settings.graph_bytes)
                shown = ShownGraph(self.epoch, log, partial(self._tell, tenant))
                recognised = self._metrics.graph_recognition_seconds.observe
                self._tenants[tenant] = TenantGraph(self._table, shown, recognised)
            return self._tenants[tenant]

    def feed(self, tenant: str, blocks: Sequence[Block], received: int) -> None:
        """Samples are durable. Takes next to no time; the thread does the rest."""
        self._inbox.append(_Arrival(tenant, blocks, received))
        self._arrived.set()

    def put(self, tenant: str, kind: str, body: Body, numbers: Mapping[SubjectKey, int]) -> None:
        """A resource is registered or replaced; ``numbers`` are those of its subjects."""
        with self._enduring():
            self.of(tenant).put(kind, body, numbers)
        self._inbox.append(_Arrival(tenant, subjects=list(numbers.values())))
        self._arrived.set()

    def drop(self, tenant: str, kind: str, name: str) -> None:
        """A resource is no longer registered."""
        with self._enduring():
            self.of(tenant).drop(kind, name)
        self._inbox.append(_Arrival(tenant))
        self._arrived.set()

    def _written(self, change: Change, narrowing: Narrowing) -> bytes | None:
        """A change as an event; None where it holds nothing of what was asked for."""
        data = change.data(self.epoch, narrowing)
        return None if data is None else event("change", self.epoch, change.number, data)

    def _tell(self, tenant: str, change: Change) -> None:
        """Hand a change to the readers; called in the order of changes."""
        self._metrics.graph_changes.inc()
        if self._loop is not None and self.hub.has(tenant):
            with contextlib.suppress(RuntimeError):  # the loop has ended, and with it the streams
                self._loop.call_soon_threadsafe(self.hub.deliver, tenant, change)

    def _load(self) -> None:
        """Take in what is registered."""
        found: dict[str, list[tuple[str, Body]]] = {}
        for kind in (DOMAIN, NODE, LINK, COMPUTE_IDENTIFIER):
            for tenant, record in self._store.records(kind):
                found.setdefault(tenant, []).append((kind.name, record.body))
        for tenant, resources in found.items():
            self.of(tenant).begin(resources, self._catalogue.of(tenant))

    def _run(self) -> None:
        with self._enduring():
            self._prime()
        looked_at: dict[str, float] = {}
        while not self._closing.is_set():
            self._arrived.wait(0.0 if self._unread else IDLE)
            self._arrived.clear()
            began = time.monotonic()
            with self._enduring():
                concerned = self._drain()
            for tenant, graph in list(self._tenants.items()):
                if tenant in concerned or began >= looked_at.get(tenant, 0.0) + IDLE:
                    looked_at[tenant] = began
                    with self._enduring():
                        graph.look(instants.now())
            self._metrics.graph_tick_seconds.observe(time.monotonic() - began)
            if self._unread:
                with self._enduring():
                    self._prime_more()
            self._closing.wait(max(0.0, self._settings.graph_period - (time.monotonic() - began)))

    def _drain(self) -> set[str]:
        """Take in what has arrived; tenants that it concerns."""
        concerned: set[str] = set()
        parcels: list[tuple[Sequence[Block], int]] = []
        while self._inbox:
            arrival = self._inbox.popleft()
            concerned.add(arrival.tenant)
            if arrival.blocks:
                parcels.append((arrival.blocks, arrival.received))
            self._table.rows(arrival.subjects)  # before the samples that follow, which may be about them
        self._table.take(parcels)
        return concerned

    def _prime(self) -> None:
        """Read from the database what was observed lately: of all subjects the newest sample, of some every measure.

        The other measures of the rest follow bit by bit, between looks. Nodes and links come before devices.
        """
        at = instants.now()
        numbers = [number for graph in list(self._tenants.values()) for number in graph.numbers()]
        self._table.rows(numbers)
        for rows in newest_samples(self._database, numbers, COLUMNS, at):
            for column, name in enumerate(COLUMNS):
                self._fill(name, [(row[0], row[1], row[2 + column]) for row in rows if row[2 + column] is not None])
        chunks = (numbers[start : start + PRIMED_AT_ONCE] for start in range(0, len(numbers), PRIMED_AT_ONCE))
        self._unread.extend((chunk, at) for chunk in chunks)
        for _ in range(min(PRIMED_FIRST, len(self._unread))):
            self._prime_more()

    def _prime_more(self) -> None:
        """Read the newest value of every measure of some subjects."""
        newest = self._store.newest(*self._unread.popleft())
        for name in COLUMNS:
            self._fill(
                name, [(n, held[name].instant, held[name].quantity) for n, held in newest.items() if name in held]
            )

    def _fill(self, name: str, values: Sequence[tuple[int, int, Any]]) -> None:
        """Put values of a measure (subject, instant, value) into the table, as if each had arrived when observed."""
        if not values:
            return
        numbers, moments = (np.array(each, dtype=np.int64) for each in list(zip(*values, strict=True))[:2])
        stated = [HEALTH_CODES[value] if name == COLUMNS[HEALTH] else value for _, _, value in values]
        self._table.update(numbers, moments, moments, {COLUMNS.index(name): stated})
