"""The resource graphs of tenants: built from registrations and newest values, published to readers.

1. What a tenant is shown: the graph at its revision, its last changes, and the snapshots that were given.
2. The living graph of one tenant: registrations and newest values in, published changes out. Registrations come from
   the writer's thread, everything else from the graph's; a lock keeps them apart where they meet.
3. The living graphs of all tenants: one thread that feeds them, and one hub for their readers.
"""

import asyncio
import contextlib
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import orjson

from kuayu.perception.graph import (
    DOMAIN,
    MEMBERS,
    NOTHING,
    WHOLE,
    Change,
    ChangeLog,
    Document,
    Graph,
    Hierarchy,
    LinkTracker,
    Name,
    Narrowing,
    NodeVerdict,
    Quality,
    Vertex,
    patch,
)
from kuayu.perception.identifiers import tier_of
from kuayu.perception.links import Path, estimate
from kuayu.perception.recognition import REASONS, SIGNALS, Recogniser, Recognition, Telemetry
from kuayu.service import instants
from kuayu.service.concurrency import GuardedLoop
from kuayu.service.graph_rows import (
    COLUMNS,
    HEALTH,
    HEALTH_CODES,
    LINK_MEASURES,
    LiveTable,
    NodeTelemetry,
    RegisteredLink,
    RegisteredNode,
    Rows,
    lifetimes,
)
from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException, not_found
from kuayu.service.settings import Settings
from kuayu.service.storage.blocks import Block
from kuayu.service.storage.database import Database
from kuayu.service.storage.queries import Store, newest_samples
from kuayu.service.storage.resources import COMPUTE_IDENTIFIER, LINK, NODE, Body, Catalogue, Revision, SubjectKey
from kuayu.service.storage.resources import DOMAIN as DOMAIN_RESOURCE
from kuayu.service.streams import Hub, StreamStart, event

MAX_BASE_SNAPSHOTS = 64
"""Snapshots that are remembered as bases of patches."""

MAX_BASE_VERTICES = 400_000
"""Vertices that they have together at most; the last one is remembered in any case."""


class PublishedGraph:
    """The graph of one tenant as it was published. Any thread may use it.

    Args:
        epoch: Epoch of its revisions.
        log: Where changes are kept.
        listener: Is called with each change, in order, under a lock.
    """

    def __init__(self, epoch: str, log: ChangeLog, listener: Callable[[Change], None]) -> None:
        self._epoch = epoch
        self._log = log
        self._told = listener
        self._graph = Graph()
        self._lock = threading.Lock()
        self._taken: OrderedDict[Narrowing, tuple[int, Document]] = OrderedDict()
        self._given: OrderedDict[str, Document] = OrderedDict()

    def begin(self, come: Mapping[Name, Vertex]) -> None:
        """Put in what is there from the beginning; that is no change."""
        with self._lock:
            self._graph.apply(come)

    def publish(self, come: Mapping[Name, Vertex], gone: Iterable[Name], instant: int) -> bool:
        """Publish what has changed, if anything has; ``instant`` in milliseconds."""
        with self._lock:
            steps = self._graph.apply(come, gone)
            if not steps:
                return False
            change = Change(self._log.number + 1, instants.to_text(instant), steps)
            self._log.append(change)
            self._told(change)
            return True

    def snapshot(self, narrowing: Narrowing) -> bytes:
        """The graph as it stands, class ResourceGraph. Blocking for milliseconds.

        Raises:
            ProblemException: not-found.
        """
        number, document = self._take(narrowing)
        head = {
            "digest": document.digest,
            "revision": Revision(self._epoch, number).to_wire(),
            "taken_at": instants.to_text(instants.now()),
        }
        return orjson.dumps(head)[:-1] + b"," + document.body()[1:]

    def vertices(self, kind: str) -> list[dict[str, Any]]:
        """Vertices of a kind as they stand, for the service itself: no patch can start from them."""
        with self._lock:
            document = self._graph.view(WHOLE)
        [part] = [part for member, part in document.parts() if member == MEMBERS[kind]]
        result: list[dict[str, Any]] = orjson.loads(b"[%s]" % b",".join(part.written))
        return result

    def patch(self, narrowing: Narrowing, base: str) -> bytes:
        """What leads from a snapshot that was given, named by its digest, to the graph as it stands, class Patch.

        Raises:
            ProblemException: not-found or unknown-base.
        """
        with self._lock:
            self._check(narrowing)
            former = self._given.get(base)
        if former is None:
            raise ProblemException("unknown-base", "no snapshot of this digest is held; take a whole one")
        return patch(former, self._take(narrowing)[1])

    def join(self, narrowing: Narrowing, last: Revision | None) -> StreamStart[Change]:
        """Begin to follow the graph.

        Args:
            narrowing: What of it.
            last: Revision of the last event that the reader has seen; None to begin with the next change.

        Raises:
            ProblemException: not-found or revision-expired.
        """
        with self._lock:
            if last is None:
                self._check(narrowing)
                return StreamStart(self._log.number, [])
            backlog = self._log.since(last.number) if last.epoch == self._epoch else None
            if backlog is None:
                raise ProblemException(
                    "revision-expired", f"the changes after {last.epoch}:{last.number} are not held; take a snapshot"
                )
            if not any(narrowing.domain in step.before for change in backlog for step in change.steps):
                self._check(narrowing)  # else the reader has yet to learn that the domain is gone
            return StreamStart(self._log.number, backlog)

    def _check(self, narrowing: Narrowing) -> None:
        if narrowing.domain is not None and not self._graph.holds(DOMAIN, narrowing.domain):
            raise not_found(f"no domain {narrowing.domain!r} is registered")

    def _take(self, narrowing: Narrowing) -> tuple[int, Document]:
        with self._lock:
            self._check(narrowing)
            number = self._log.number
            existing = self._taken.get(narrowing)
            if existing is None or existing[0] != number:
                self._taken[narrowing] = existing = (number, self._graph.view(narrowing))
                while len(self._taken) > MAX_BASE_SNAPSHOTS:
                    self._taken.popitem(last=False)
            self._taken.move_to_end(narrowing)
        digest = existing[1].digest  # takes long, so not under the lock
        with self._lock:
            self._given[digest] = existing[1]
            self._given.move_to_end(digest)
            while len(self._given) > 1 and (
                len(self._given) > MAX_BASE_SNAPSHOTS or sum(map(len, self._given.values())) > MAX_BASE_VERTICES
            ):
                self._given.popitem(last=False)
        return existing


SHARE = 0.1
"""Share of the time that arranging nodes anew may take while registrations come one after another."""

LINKS_FROM = COLUMNS.index(LINK_MEASURES[0])
LINK_ROUND = 5.0
"""Seconds after which links are looked at even where no sample came, since values die."""

ESTIMATED_EVERY = 10.0
"""Seconds between two estimates of links, at least."""

ESTIMATING = 0.01
"""Share of the time that they may take."""

UTILISATION = SIGNALS.index("accelerator_utilisation")

DIGITS = 3
"""Digits of an estimate that mean anything."""


class TenantGraph:
    """What is registered, what is known of it, and what is shown.

    Args:
        table: Newest values of all tenants; only the graph's thread uses it.
        shown: What readers get.
        recognised: Is told how many seconds each recognition took.
    """

    def __init__(self, table: LiveTable, shown: PublishedGraph, recognised: Callable[[float], None]) -> None:
        self.shown = shown
        self._table = table
        self._recognised = recognised
        self._lock = threading.Lock()
        self._hierarchy = Hierarchy()
        self._links = LinkTracker()
        self._births = count()
        self._nodes: dict[str, RegisteredNode] = {}
        self._domains: dict[str, Body] = {}
        self._link_of: dict[str, RegisteredLink] = {}
        self._gone: set[int] = set()
        self._families: dict[str, Sequence[str]] = {}
        self._arranged = False
        self._arrange_from = 0.0
        self._rows = Rows()
        self._link_names: list[str] = []
        self._link_rows = table.rows([])
        self._telemetry = NodeTelemetry(table, table.rows([]), table.rows([]), [])
        self._recogniser: Recogniser | None = None
        self._links_at = float("-inf")
        self._estimate_from = float("-inf")

    def begin(self, resources: Iterable[tuple[str, Body]], numbers: Mapping[SubjectKey, int]) -> None:
        """Take in what is registered when the service starts: kinds and bodies, domains first."""
        for kind, body in resources:
            self._put(kind, body, numbers)
        self.shown.begin(self._hierarchy.changed()[0] | self._links.changed(time.monotonic())[0])

    def put(self, kind: str, body: Body, numbers: Mapping[SubjectKey, int]) -> None:
        """Something was registered or replaced; ``numbers`` are those of its subjects."""
        with self._lock:
            self._put(kind, body, numbers)
            self._publish(instants.now(), time.monotonic())

    def drop(self, kind: str, name: str) -> None:
        """Something is no longer registered."""
        with self._lock:
            if kind == NODE.name:
                self._forget(self._nodes.pop(name, None))
                self._hierarchy.drop_node(name)
            elif kind == DOMAIN_RESOURCE.name:
                self._domains.pop(name, None)
                self._hierarchy.drop_domain(name)
            elif kind == LINK.name:
                self._forget(self._link_of.pop(name, None))
                self._links.drop(name)
            elif kind == COMPUTE_IDENTIFIER.name:
                self._families.pop(name, None)
            self._arranged = False
            self._publish(instants.now(), time.monotonic())

    def numbers(self) -> list[int]:
        """Numbers of all that samples may be about, for the table to be filled."""
        with self._lock:
            return self._numbers()

    def look(self, now: int) -> None:
        """Recognise and publish.

        Args:
            now: Milliseconds since 1970.
        """
        clock = time.monotonic()
        try:
            if not self._arranged and clock >= self._arrange_from:
                self._arrange()
                self._arrange_from = clock + (time.monotonic() - clock) / SHARE
            self._look_at_nodes(now, clock)
        except Exception:
            # Whatever went wrong, it shall not last: the next look begins with a recogniser that knows nothing.
            self._recogniser, self._arranged = None, False
            raise
        finally:
            self._look_at_links(now, clock)
            with self._lock:
                self._publish(now, clock)

    def _put(self, kind: str, body: Body, numbers: Mapping[SubjectKey, int]) -> None:
        if kind == DOMAIN_RESOURCE.name:
            self._arranged &= body["id"] in self._domains
            self._domains[body["id"]] = body
            self._hierarchy.put_domain(body["id"])
        elif kind == NODE.name:
            self._put_node(body, numbers)
        elif kind == LINK.name:
            name = body["id"]
            link = RegisteredLink(body["source"], body["destination"], body.get("capacity"), numbers[kind, name, None])
            self._arranged &= link == self._link_of.get(name)
            self._link_of[name] = link
            self._links.put(name, link.source, link.destination, link.capacity)
        elif kind == COMPUTE_IDENTIFIER.name and tier_of(body["urn"]) == "family":
            self._families[body["urn"]] = body["members"]
            self._arranged = False

    def _put_node(self, body: Body, numbers: Mapping[SubjectKey, int]) -> None:
        name = body["id"]
        existing = self._nodes.get(name)
        devices = tuple(numbers["device", name, device["id"]] for device in body.get("devices", ()))
        node = RegisteredNode(
            body["domain"],
            body.get("compute_identifier"),
            numbers[NODE.name, name, None],
            devices,
            existing.born if existing else next(self._births),
        )
        self._arranged &= node == existing
        self._forget(existing)
        self._nodes[name] = node
        self._hierarchy.put_node(name, node.domain, len(devices), instants.to_text(instants.now()))

    def _forget(self, subject: RegisteredNode | RegisteredLink | None) -> None:
        """Note the numbers of what is registered no longer, or otherwise."""
        if subject is not None:
            self._gone.update((subject.number, *(subject.devices if isinstance(subject, RegisteredNode) else ())))

    def _numbers(self) -> list[int]:
        nodes = [node.number for node in self._nodes.values()]
        links = [link.number for link in self._link_of.values()]
        return [*nodes, *links, *(number for node in self._nodes.values() for number in node.devices)]

    def _publish(self, now: int, clock: float) -> None:
        nodes, gone = self._hierarchy.changed()
        links, gone_links = self._links.changed(clock)
        if nodes or links or gone or gone_links:
            self.shown.publish(nodes | links, [*gone, *gone_links], now)

    def _arrange(self) -> None:
        """Put what is registered into arrays, and take along what is known of what was there before."""
        with self._lock:
            nodes, families = dict(self._nodes), dict(self._families)
            domains, links = sorted(self._domains), dict(self._link_of)
            gone, self._gone = self._gone.difference(self._numbers()), set()
            self._arranged = True
        self._table.drop(list(gone))
        before = self._rows.names
        self._rows, origin = self._rows.arranged(nodes, domains)
        self._link_names = list(links)
        self._link_rows = self._table.rows([link.number for link in links.values()])
        telemetry = NodeTelemetry(
            self._table,
            self._table.rows([node.number for node in nodes.values()]),
            self._table.rows([number for node in nodes.values() for number in node.devices]),
            [len(node.devices) for node in nodes.values()],
        )
        telemetry.go_on_from(self._telemetry, origin)
        self._telemetry = telemetry
        population = self._rows.population(nodes.values(), families)
        if self._recogniser is None or not len(before):
            self._recogniser = Recogniser(population)
        else:
            self._recogniser.rearrange(population, origin)

    def _look_at_nodes(self, now: int, clock: float) -> None:
        rows = self._rows
        if self._recogniser is None or not rows.domains:
            return
        values, observed, arrived, fresh = self._telemetry.read(now)
        began = time.perf_counter()
        result = self._recogniser.update(Telemetry(now / 1000.0, values, observed, arrived, fresh))
        self._recognised(time.perf_counter() - began)
        report = rows.tell(result, clock)
        utilisation = rows.utilisation(result, values[:, UTILISATION])
        with self._lock:
            instant = instants.to_text(now)
            for row in report:
                node = self._nodes.get(rows.names[row])
                if node is not None and node.born == rows.born[row]:
                    self._hierarchy.see(rows.names[row], _seen(result, row), instant)
            for name, reachable, mean in zip(rows.domains, result.reachable.tolist(), utilisation, strict=True):
                if name in self._domains:
                    self._hierarchy.summarise(name, reachable=reachable, utilisation=mean, now=clock)

    def _look_at_links(self, now: int, clock: float) -> None:
        rows = self._link_rows
        touched = self._table.touched[rows]
        everything = clock >= self._links_at + LINK_ROUND
        if everything:
            self._links_at = clock
            touched[:] = True
        places = np.flatnonzero(touched)
        if not len(places):
            return
        self._table.touched[rows[places]] = False
        result = rows[places]
        values, observed = self._table.values[result, LINKS_FROM:], self._table.instants[result, LINKS_FROM:]
        alive = observed >= now - lifetimes()[LINKS_FROM:]
        with self._lock:
            for place, measured, living, moments in zip(
                places.tolist(), values.tolist(), alive.tolist(), observed.tolist(), strict=True
            ):
                name = self._link_names[place]
                if name in self._link_of:
                    self._links.measure(name, _quality(measured, living), moments[0] / 1000.0, clock)
        if everything and clock >= self._estimate_from:
            self._estimate_links(clock)
            self._estimate_from = clock + max(ESTIMATED_EVERY, (time.monotonic() - clock) / ESTIMATING)

    def _estimate_links(self, clock: float) -> None:
        """Estimate links on which nothing is measured; one of which something is stays as it is."""
        with self._lock:
            links, measured = dict(self._link_of), self._links.measured()
            places = {name: place for name, body in self._domains.items() if (place := _place(body))}
        if len(measured) == len(links):
            return
        paths = [
            Path(name, link.source, link.destination, link.capacity, *measured.get(name, NOTHING)[:2])
            for name, link in links.items()
        ]
        result = estimate(places, paths)
        with self._lock:
            for name in links.keys() - measured.keys():
                if name in self._link_of:
                    estimated = result[name]
                    self._links.estimate(name, _rounded(estimated.bandwidth), _rounded(estimated.round_trip), clock)


def _quality(values: Sequence[float], alive: Sequence[bool]) -> Quality:
    bandwidth, round_trip, loss = (value if living else None for value, living in zip(values, alive, strict=True))
    return bandwidth, round_trip, loss


def _place(domain: Body) -> tuple[float, float] | None:
    """Latitude and longitude of a domain, where both are registered."""
    location = domain.get("location", {})
    if "latitude" not in location or "longitude" not in location:
        return None
    return location["latitude"], location["longitude"]


def _rounded(value: float | None) -> float | None:
    """A number in as many digits as mean anything."""
    return None if value is None else float(f"{value:.{DIGITS}g}")


def _seen(recognition: Recognition, row: int) -> NodeVerdict:
    return NodeVerdict(
        int(recognition.state[row]), round(float(recognition.confidence[row]), 2), REASONS[int(recognition.reason[row])]
    )


IDLE_LOOK_SECONDS = 1.0
"""Seconds after which states are looked at where nothing arrives: silence tells something too."""

PRIMED_SUBJECTS_PER_READ = 400
"""Subjects of which every measure is read from the database at once when the service has started."""

PRIMED_READS_FIRST = 5
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
        self._guarded = GuardedLoop("the resource graph could not follow")
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
                shown = PublishedGraph(self.epoch, log, partial(self._tell, tenant))
                recognised = self._metrics.graph_recognition_seconds.observe
                self._tenants[tenant] = TenantGraph(self._table, shown, recognised)
            return self._tenants[tenant]

    def feed(self, tenant: str, blocks: Sequence[Block], received: int) -> None:
        """Samples are durable. Takes next to no time; the thread does the rest."""
        self._inbox.append(_Arrival(tenant, blocks, received))
        self._arrived.set()

    def put(self, tenant: str, kind: str, body: Body, numbers: Mapping[SubjectKey, int]) -> None:
        """A resource is registered or replaced; ``numbers`` are those of its subjects."""
        with self._guarded():
            self.of(tenant).put(kind, body, numbers)
        self._inbox.append(_Arrival(tenant, subjects=list(numbers.values())))
        self._arrived.set()

    def drop(self, tenant: str, kind: str, name: str) -> None:
        """A resource is no longer registered."""
        with self._guarded():
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
        result: dict[str, list[tuple[str, Body]]] = {}
        for kind in (DOMAIN_RESOURCE, NODE, LINK, COMPUTE_IDENTIFIER):
            for tenant, record in self._store.records(kind):
                result.setdefault(tenant, []).append((kind.name, record.body))
        for tenant, resources in result.items():
            self.of(tenant).begin(resources, self._catalogue.of(tenant))

    def _run(self) -> None:
        with self._guarded():
            self._prime()
        looked_at: dict[str, float] = {}
        while not self._closing.is_set():
            self._arrived.wait(0.0 if self._unread else IDLE_LOOK_SECONDS)
            self._arrived.clear()
            began = time.monotonic()
            with self._guarded():
                concerned = self._drain()
            for tenant, graph in list(self._tenants.items()):
                if tenant in concerned or began >= looked_at.get(tenant, 0.0) + IDLE_LOOK_SECONDS:
                    looked_at[tenant] = began
                    with self._guarded():
                        graph.look(instants.now())
            self._metrics.graph_tick_seconds.observe(time.monotonic() - began)
            if self._unread:
                with self._guarded():
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
        instant = instants.now()
        numbers = [number for graph in list(self._tenants.values()) for number in graph.numbers()]
        self._table.rows(numbers)
        for rows in newest_samples(self._database, numbers, COLUMNS, instant):
            for column, name in enumerate(COLUMNS):
                self._fill(name, [(row[0], row[1], row[2 + column]) for row in rows if row[2 + column] is not None])
        chunks = (
            numbers[start : start + PRIMED_SUBJECTS_PER_READ]
            for start in range(0, len(numbers), PRIMED_SUBJECTS_PER_READ)
        )
        self._unread.extend((chunk, instant) for chunk in chunks)
        for _ in range(min(PRIMED_READS_FIRST, len(self._unread))):
            self._prime_more()

    def _prime_more(self) -> None:
        """Read the newest value of every measure of some subjects."""
        newest = self._store.newest(*self._unread.popleft())
        for name in COLUMNS:
            self._fill(
                name,
                [
                    (n, existing[name].instant, existing[name].quantity)
                    for n, existing in newest.items()
                    if name in existing
                ],
            )

    def _fill(self, name: str, values: Sequence[tuple[int, int, Any]]) -> None:
        """Put values of a measure (subject, instant, value) into the table, as if each had arrived when observed."""
        if not values:
            return
        numbers, moments = (np.array(entry, dtype=np.int64) for entry in list(zip(*values, strict=True))[:2])
        stated = [HEALTH_CODES[value] if name == COLUMNS[HEALTH] else value for _, _, value in values]
        self._table.update(numbers, moments, moments, {COLUMNS.index(name): np.array(stated, dtype=np.float64)})
