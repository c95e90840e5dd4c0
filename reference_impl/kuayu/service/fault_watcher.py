"""The watcher of faults: heartbeats, log lines and conflicts in, faults out, in one thread for all tenants.

1. Whether the service itself kept up: silence that it slept through tells nothing about nodes. The event loop gives a
   sign of life every so often, by itself. That the watcher is late, with log lines to read, is no stall: beats are
   taken in meanwhile. Where the loop is late, beats wait in its sockets.
2. Which nodes are registered, and what of them matters where they fail: kept in memory because every beat asks.
3. Faults while the service runs: one thread that hears, reads and looks, for all tenants. What it finds is durable
   before anyone is shown it. Its clock is on the wall when it begins and never goes back, so that a clock that is set
   does not make nodes die.
"""

import asyncio
import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kuayu.resilience.faults import Change, IdentityConflict, Watch
from kuayu.service import instants
from kuayu.service.concurrency import GuardedLoop, Notifier
from kuayu.service.fault_store import FaultChanges, FaultRecord, FaultStore, NoteHeartbeats, RecordFaults, subject_of
from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException
from kuayu.service.settings import Settings
from kuayu.service.storage.database import Database
from kuayu.service.storage.queries import Store
from kuayu.service.storage.resources import NODE, Body, SubjectKey
from kuayu.service.storage.writer import Writer
from kuayu.service.streams import Hub
from kuayu_schemas.models import FaultState

if TYPE_CHECKING:
    from kuayu_schemas import documents

STALL_SECONDS = 0.5
"""Seconds that the event loop may be behind; beats that arrive meanwhile wait in its sockets."""

RECOVERY_SECONDS = 0.5
"""Seconds after a stall in which what has waited is taken in, before silence tells anything again."""

TICK_SECONDS = STALL_SECONDS / 5
"""Seconds between two signs of life."""


class StarvationProbe:
    """Has the event loop give signs of life.

    Args:
        later: Has a function called in the event loop so many seconds from now.
        clock: Seconds that never go back.
    """

    def __init__(
        self, later: Callable[[float, Callable[[], None]], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._later = later
        self._clock = clock
        self._seen = clock()
        self._ready_at = self._seen
        later(TICK_SECONDS, self._see)

    def given(self) -> bool:
        """Whether the event loop has kept up, so that silence tells something."""
        now = self._clock()
        return now - self._seen <= STALL_SECONDS and now >= self._ready_at

    def _see(self) -> None:
        now = self._clock()
        if now - self._seen > STALL_SECONDS:
            self._ready_at = now + RECOVERY_SECONDS
        self._seen = now
        self._later(TICK_SECONDS, self._see)


class Registry:
    """Nodes of all tenants. The writer's thread changes single entries of dictionaries; any thread may read them."""

    def __init__(self, store: Store) -> None:
        self._domains: dict[str, dict[str, str]] = {}
        self._devices: dict[str, dict[str, int]] = {}
        for tenant, record in store.records(NODE):
            self.put(tenant, NODE.name, record.body, {})

    def domains(self, tenant: str) -> Mapping[str, str]:
        """Domain of each node of a tenant."""
        return self._domains.setdefault(tenant, {})

    def devices(self, tenant: str, node: str) -> int:
        """Devices that a node is registered with; at least 1, for a node without any is itself what there is."""
        return max(1, self._devices.get(tenant, {}).get(node, 1))

    def put(self, tenant: str, kind: str, body: Body, numbers: Mapping[SubjectKey, int]) -> None:  # noqa: ARG002
        """A resource was registered or replaced."""
        if kind == NODE.name:
            self._devices.setdefault(tenant, {})[body["id"]] = len(body.get("devices", ()))
            self._domains.setdefault(tenant, {})[body["id"]] = body["domain"]

    def drop(self, tenant: str, kind: str, name: str) -> None:
        """A resource was taken away."""
        if kind == NODE.name:
            self._domains.get(tenant, {}).pop(name, None)
            self._devices.get(tenant, {}).pop(name, None)


MIN_LOOK_SECONDS = 0.01
"""Seconds between two looks, at least: log lines are judged at once, but not each by itself."""

LINES_PER_TURN = 200
"""Lines of a tenant that are read before those of the next, and"""

READING_SECONDS = 0.1
"""seconds after which what is not read yet waits for the next look."""

MAX_LINES_WAITING = 50_000
"""Lines of a tenant that may wait to be read; more are turned away until they were."""

WRITING_SECONDS = 0.25
"""Seconds of a look after which what is not written yet waits for the next."""

CHANGES_PER_TRANSACTION = 50
"""Changes that are written in one transaction, so that others can write between, and the first are told soon."""


@dataclass(frozen=True, slots=True)
class _Arrival:
    """What has come for a tenant: beats, lines, that two sources report as a node, or that a node is gone.

    Attributes:
        tenant: Whose.
        received: By the watcher's clock.
        beats: Heartbeats.
        lines: Log lines.
        conflict: That two sources report as a node.
        gone: A node that is no longer registered.
        moved: A node that is registered with another domain.
        judged: To be told once the lines were judged and what they tell is durable.
    """

    tenant: str
    received: float
    beats: "Sequence[documents.Heartbeat]" = ()
    lines: "Sequence[documents.LogLine]" = ()
    conflict: IdentityConflict | None = None
    gone: str | None = None
    moved: str | None = None
    judged: Future[None] | None = None


class Watcher:
    """Watches the nodes of all tenants, and follows their registrations.

    Args:
        settings: What the operator set.
        metrics: Are told of looks, faults and readers.
        database: Where faults are kept.
        store: Where registrations are.
        writer: Makes durable what is found.
        notifier: Is rung when a domain is asked for something.
    """

    def __init__(
        self, settings: Settings, metrics: Metrics, database: Database, store: Store, writer: Writer, notifier: Notifier
    ) -> None:
        share = settings.share(settings.max_streams)
        self.hub: Hub[FaultRecord, None] = Hub(_written, settings.max_streams, share, metrics.fault_subscribers)
        self.store = FaultStore(database)
        self.registry = Registry(store)
        self._settings = settings
        self._metrics = metrics
        self._epoch = database.epoch
        self._writer = writer
        self._notifier = notifier
        self._clock = instants.Clock()
        self._watches: dict[str, Watch] = {}
        self._known: dict[str, set[str]] = {}
        self._untold: dict[str, list[Change]] = {}
        self._inbox: deque[_Arrival] = deque()
        self._unread: dict[str, deque[_Arrival]] = {}
        self._lines_waiting: Counter[str] = Counter()
        self._unanswered: list[_Arrival] = []
        self._woken = threading.Event()
        self._closing = threading.Event()
        self._guarded = GuardedLoop("faults could not be watched for")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: list[Callable[[str], None]] = []
        self._thread = threading.Thread(target=self._run, name="kuayu-faults")
        self._past = self.store.past()

    def start(self) -> None:
        """Begin to watch, with the nodes and faults that there were when the service ended. Call it in the loop."""
        self._loop = asyncio.get_running_loop()
        self._metrics.open_faults.clear()
        for tenant, past in self._past.items():
            registered = self.registry.domains(tenant)
            nodes = {node: registered[node] for node in past.nodes if node in registered}
            watch = self._watches[tenant] = Watch()
            watch.resume(nodes, [subject_of(record.body) for record in past.open], self._clock.now())
            self._known[tenant] = set(nodes)
            for node in {str(record.body["node"]) for record in past.open if "node" in record.body} - registered.keys():
                watch.drop(node)
            for record in past.open:
                self._metrics.open_faults.labels(record.body["kind"]).inc()
        self._past.clear()
        self._thread.start()

    def close(self) -> None:
        """Stop; blocks for a look at most. Streams are ended by the hub, in the event loop."""
        self._closing.set()
        self._woken.set()
        self._thread.join()

    def listen(self, listener: Callable[[str], None]) -> None:
        """Have somebody told whose faults have changed, in the event loop, once that is durable."""
        self._listeners.append(listener)

    async def hear(self, tenant: str, beats: "Sequence[documents.Heartbeat]") -> None:
        """Take heartbeats of registered nodes. A node is durably watched before its first is taken.

        Raises:
            ProblemException: overloaded.
        """
        received = self._clock.now()
        new = {beat["node"] for beat in beats} - self._known.get(tenant, set())
        if new:
            await self._writer.write(NoteHeartbeats(tenant, new, self._remember), tenant, urgent=True)
        self._inbox.append(_Arrival(tenant, received, beats=beats))

    async def read(self, tenant: str, lines: "Sequence[documents.LogLine]") -> None:
        """Take log lines of registered nodes; returns when what they tell is durable.

        Raises:
            ProblemException: overloaded.
        """
        waiting = self._lines_waiting[tenant]
        if waiting and waiting + len(lines) > MAX_LINES_WAITING:
            raise ProblemException("overloaded", "more lines wait to be judged than the service takes", retry_after=1)
        judged: Future[None] = Future()
        self._lines_waiting[tenant] += len(lines)
        judged.add_done_callback(lambda _: self._in_loop(lambda: self._have_judged(tenant, len(lines))))
        self._inbox.append(_Arrival(tenant, self._clock.now(), lines=lines, judged=judged))
        self._woken.set()
        try:
            await asyncio.shield(asyncio.wrap_future(judged))
        finally:
            del judged  # as in kuayu.service.concurrency.Threads.run

    def note_conflict(self, tenant: str, node: str, because: str, age: float) -> None:
        """Two sources report as a node; any thread may call it.

        Args:
            tenant: Whose node it is.
            node: Its name.
            because: What shows that.
            age: Seconds since that was last seen.
        """
        now = self._clock.now()
        self._inbox.append(_Arrival(tenant, now, conflict=IdentityConflict(node, because, now - age)))

    def _have_judged(self, tenant: str, lines: int) -> None:
        self._lines_waiting[tenant] -= lines

    def put(self, tenant: str, kind: str, body: Body, numbers: Mapping[SubjectKey, int]) -> None:
        """A resource was registered or replaced."""
        before = self.registry.domains(tenant).get(body["id"]) if kind == NODE.name else None
        self.registry.put(tenant, kind, body, numbers)
        if before is not None and before != body["domain"]:
            self._inbox.append(_Arrival(tenant, self._clock.now(), moved=body["id"]))

    def drop(self, tenant: str, kind: str, name: str) -> None:
        """A resource was taken away."""
        self.registry.drop(tenant, kind, name)
        if kind == NODE.name:
            self._known.get(tenant, set()).discard(name)
            self._inbox.append(_Arrival(tenant, self._clock.now(), gone=name))

    def _remember(self, tenant: str, nodes: Collection[str]) -> None:
        self._known.setdefault(tenant, set()).update(nodes)

    def _run(self) -> None:
        attention = StarvationProbe(self._later)
        while not self._closing.is_set():
            self._woken.wait(self._settings.fault_period)
            self._woken.clear()
            began = time.monotonic()
            self._drain()
            if attention.given():
                self._look()
                self._metrics.fault_look_seconds.observe(time.monotonic() - began)
            self._closing.wait(MIN_LOOK_SECONDS)
        self._drain()
        self._acknowledge(set())

    def _drain(self) -> None:
        """Take in what has arrived: beats at once, lines for as long as there is time, tenant by tenant.

        Beats that came while lines were read are taken in before anybody looks: they would seem to be missing.
        """
        self._take_in()
        until = time.monotonic() + READING_SECONDS
        while self._unread and (time.monotonic() < until or self._closing.is_set()):
            for tenant in list(self._unread):
                self._read_some(tenant)
        self._take_in()
        if self._unread:
            self._woken.set()

    def _take_in(self) -> None:
        """Take what is in the inbox; lines are put aside to be read."""
        while self._inbox:
            arrival = self._inbox.popleft()
            if arrival.judged is None:
                with self._guarded():
                    self._take(arrival)
            else:
                self._unread.setdefault(arrival.tenant, deque()).append(arrival)

    def _read_some(self, tenant: str) -> None:
        """Read the next lines of a tenant, not more at once than others can wait for."""
        queue = self._unread[tenant]
        arrival = queue.popleft()
        some, rest = arrival.lines[:LINES_PER_TURN], arrival.lines[LINES_PER_TURN:]
        taken = False
        with self._guarded():
            self._take(replace(arrival, lines=some))
            taken = True
        assert arrival.judged is not None
        if taken and rest:
            queue.appendleft(replace(arrival, lines=rest))
        elif taken:
            self._unanswered.append(arrival)
        else:
            arrival.judged.set_exception(ProblemException("internal", "the lines could not be read"))
        if not queue:
            del self._unread[tenant]

    def _look(self) -> None:
        """See what is at fault now, of all that is watched, and write it, a little of each tenant's in turn."""
        looked: set[str] = set()
        for tenant, watch in self._watches.items():
            with self._guarded():
                self._untold.setdefault(tenant, []).extend(watch.look(self._clock.now()))
                looked.add(tenant)
        report = {tenant for tenant in looked if not self._untold[tenant]}
        telling, until = looked - report, time.monotonic() + WRITING_SECONDS
        while telling and time.monotonic() < until:
            for tenant in list(telling):
                telling.discard(tenant)
                with self._guarded():
                    self._tell(tenant)
                    (telling if self._untold[tenant] else report).add(tenant)
        self._acknowledge(report, telling)

    def _take(self, arrival: _Arrival) -> None:
        tenant = arrival.tenant
        watch = self._watches.get(tenant)
        if watch is None:
            watch = self._watches[tenant] = Watch()
        if arrival.gone is not None:
            watch.drop(arrival.gone)
        if arrival.moved is not None:
            watch.move(arrival.moved)
        # What was registered when it came may be gone by now; whoever is told of that first hears nothing afterwards.
        domains = self.registry.domains(tenant)
        if beats := [beat for beat in arrival.beats if beat["node"] in domains]:
            watch.hear(beats, domains, arrival.received)
        if lines := [line for line in arrival.lines if line["node"] in domains]:
            watch.read(lines, domains, arrival.received)
        if arrival.conflict is not None and arrival.conflict.node in domains:
            watch.note_conflict(arrival.conflict, domains[arrival.conflict.node], arrival.received)

    def _tell(self, tenant: str) -> None:
        """Write the next of what has changed; what could not be written is tried again at the next look.

        Raises:
            ProblemException: overloaded.
            Exception: Whatever the database raises.
        """
        changes = self._untold.get(tenant, [])
        report = changes[:CHANGES_PER_TRANSACTION]
        command = RecordFaults(
            *(tenant, self._epoch, report, instants.now(), self._clock.offset()),
            devices=lambda node: self.registry.devices(tenant, node),
            follower=self._follow,
        )
        with self._metrics.fault_telling_seconds.time():
            self._writer.submit(command, tenant, urgent=True).result()
        del changes[: len(report)]

    def _acknowledge(self, tenants: Collection[str], telling: Collection[str] = ()) -> None:
        """Answer who waits for lines to be judged.

        Args:
            tenants: Tenants of which all was written.
            telling: Tenants of which more is to be written; theirs wait for that.
        """
        waiting = [arrival for arrival in self._unanswered if arrival.tenant in telling]
        for arrival in self._unanswered:
            assert arrival.judged is not None
            if arrival.tenant in telling:
                continue
            if arrival.tenant in tenants:
                arrival.judged.set_result(None)
            else:
                problem = ProblemException("overloaded", "what the lines tell could not be written", retry_after=1)
                arrival.judged.set_exception(problem)
        self._unanswered = waiting

    def _follow(self, outcome: FaultChanges) -> None:
        """Changes are durable; called in the writer's thread."""
        self._in_loop(lambda: self._heed(outcome))

    def _heed(self, outcome: FaultChanges) -> None:
        for domain in outcome.domains:
            self._notifier.notify((outcome.tenant, domain))
        for record in outcome.records:
            self.hub.deliver(outcome.tenant, record)
        for listener in self._listeners:
            listener(outcome.tenant)
        self._count(outcome)

    def _count(self, outcome: FaultChanges) -> None:
        for record in outcome.records:
            kind = record.body["kind"]
            if record.body["state"] == FaultState.open.value:
                self._metrics.faults.labels(kind).inc()
                self._metrics.open_faults.labels(kind).inc()
            else:
                self._metrics.open_faults.labels(kind).dec()

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        loop = self._loop
        assert loop is not None
        if not self._closing.is_set():
            self._in_loop(lambda: loop.call_later(seconds, call))

    def _in_loop(self, call: Callable[[], object]) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever would be told
            self._loop.call_soon_threadsafe(call)


def _written(record: FaultRecord, _: None) -> bytes:
    return record.event()
