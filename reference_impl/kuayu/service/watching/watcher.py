"""Faults while the service runs: one thread that hears, reads and looks, for all tenants.

What it finds is durable before anyone is shown it. Its clock is on the wall when it begins and never goes back, so that
a clock that is set does not make nodes die.
"""

import asyncio
import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from kuayu.resilience.watching import Change, Watch
from kuayu.service import instants
from kuayu.service.bells import Bell
from kuayu.service.enduring import Enduring
from kuayu.service.kinds import NODE, Body
from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException
from kuayu.service.settings import Settings
from kuayu.service.storage.catalogue import SubjectKey
from kuayu.service.storage.database import Database
from kuayu.service.storage.store import Store
from kuayu.service.storage.writer import Writer
from kuayu.service.streams import Hub
from kuayu.service.watching.attention import Attention
from kuayu.service.watching.commands import Remember, Tell, Told
from kuayu.service.watching.intake import Item
from kuayu.service.watching.reads import FaultStore
from kuayu.service.watching.registry import Registry
from kuayu.service.watching.storage import Record, subject_of
from kuayu_schemas.models import FaultState

SHORTEST = 0.01
"""Seconds between two looks, at least: log lines are judged at once, but not each by itself."""

READ_AT_ONCE = 200
"""Lines of a tenant that are read before those of the next, and"""

READING = 0.1
"""seconds after which what is not read yet waits for the next look."""

MAX_LINES_WAITING = 50_000
"""Lines of a tenant that may wait to be read; more are turned away until they were."""

TELLING = 0.25
"""Seconds of a look after which what is not written yet waits for the next."""

TOLD_AT_ONCE = 50
"""Changes that are written in one transaction, so that others can write between, and the first are told soon."""


@dataclass(frozen=True, slots=True)
class _Arrival:
    """What has come for a tenant: beats, lines, or that a node is gone.

    Attributes:
        tenant: Whose.
        received: By the watcher's clock.
        beats: Class Heartbeat.
        lines: Class LogLine.
        gone: A node that is no longer registered.
        judged: To be told once the lines were judged and what they tell is durable.
    """

    tenant: str
    received: float
    beats: Sequence[Item] = ()
    lines: Sequence[Item] = ()
    gone: str | None = None
    judged: Future[None] | None = None


class Watcher:
    """Watches the nodes of all tenants, and follows their registrations.

    Args:
        settings: What the operator set.
        metrics: Are told of looks, faults and readers.
        database: Where faults are kept.
        store: Where registrations are.
        writer: Makes durable what is found.
        bell: Is rung when a domain is asked for something.
    """

    def __init__(
        self, settings: Settings, metrics: Metrics, database: Database, store: Store, writer: Writer, bell: Bell
    ) -> None:
        share = settings.share(settings.max_streams)
        self.hub: Hub[Record, None] = Hub(_written, settings.max_streams, share, metrics.fault_subscribers)
        self.store = FaultStore(database)
        self.registry = Registry(store)
        self._settings = settings
        self._metrics = metrics
        self._epoch = database.epoch
        self._writer = writer
        self._bell = bell
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
        self._enduring = Enduring("faults could not be watched for")
        self._loop: asyncio.AbstractEventLoop | None = None
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

    async def hear(self, tenant: str, beats: Sequence[Item]) -> None:
        """Take heartbeats of registered nodes, class Heartbeat. A node is durably watched before its first is taken.

        Raises:
            ProblemException: overloaded.
        """
        received = self._clock.now()
        new = {str(beat["node"]) for beat in beats} - self._known.get(tenant, set())
        if new:
            await self._writer.write(Remember(tenant, new, self._remember), tenant, urgent=True)
        self._inbox.append(_Arrival(tenant, received, beats=beats))

    async def read(self, tenant: str, lines: Sequence[Item]) -> None:
        """Take log lines of registered nodes, class LogLine; returns when what they tell is durable.

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
        await asyncio.shield(asyncio.wrap_future(judged))

    def _have_judged(self, tenant: str, lines: int) -> None:
        self._lines_waiting[tenant] -= lines

    def put(self, tenant: str, kind: str, body: Body, numbers: Mapping[SubjectKey, int]) -> None:
        """A resource was registered or replaced."""
        self.registry.put(tenant, kind, body, numbers)

    def drop(self, tenant: str, kind: str, name: str) -> None:
        """A resource was taken away."""
        self.registry.drop(tenant, kind, name)
        if kind == NODE.name:
            self._known.get(tenant, set()).discard(name)
            self._inbox.append(_Arrival(tenant, self._clock.now(), gone=name))

    def _remember(self, tenant: str, nodes: Collection[str]) -> None:
        self._known.setdefault(tenant, set()).update(nodes)

    def _run(self) -> None:
        attention = Attention(self._later)
        while not self._closing.is_set():
            self._woken.wait(self._settings.fault_period)
            self._woken.clear()
            began = time.monotonic()
            self._drain()
            if attention.given():
                self._look()
                self._metrics.fault_look_seconds.observe(time.monotonic() - began)
            self._closing.wait(SHORTEST)
        self._drain()
        self._acknowledge(set())

    def _drain(self) -> None:
        """Take in what has arrived: beats at once, lines for as long as there is time, tenant by tenant.

        Beats that came while lines were read are taken in before anybody looks: they would seem to be missing.
        """
        self._take_in()
        until = time.monotonic() + READING
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
                with self._enduring():
                    self._take(arrival)
            else:
                self._unread.setdefault(arrival.tenant, deque()).append(arrival)

    def _read_some(self, tenant: str) -> None:
        """Read the next lines of a tenant, not more at once than others can wait for."""
        queue = self._unread[tenant]
        arrival = queue.popleft()
        some, rest = arrival.lines[:READ_AT_ONCE], arrival.lines[READ_AT_ONCE:]
        taken = False
        with self._enduring():
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
            with self._enduring():
                self._untold.setdefault(tenant, []).extend(watch.look(self._clock.now()))
                looked.add(tenant)
        told = {tenant for tenant in looked if not self._untold[tenant]}
        telling, until = looked - told, time.monotonic() + TELLING
        while telling and time.monotonic() < until:
            for tenant in list(telling):
                telling.discard(tenant)
                with self._enduring():
                    self._tell(tenant)
                    (telling if self._untold[tenant] else told).add(tenant)
        self._acknowledge(told, telling)

    def _take(self, arrival: _Arrival) -> None:
        tenant = arrival.tenant
        watch = self._watches.get(tenant)
        if watch is None:
            watch = self._watches[tenant] = Watch()
        if arrival.gone is not None:
            watch.drop(arrival.gone)
        # What was registered when it came may be gone by now; whoever is told of that first hears nothing afterwards.
        domains = self.registry.domains(tenant)
        if beats := [beat for beat in arrival.beats if beat["node"] in domains]:
            watch.hear(beats, domains, arrival.received)
        if lines := [line for line in arrival.lines if line["node"] in domains]:
            watch.read(lines, domains, arrival.received)

    def _tell(self, tenant: str) -> None:
        """Write the next of what has changed; what could not be written is tried again at the next look.

        Raises:
            ProblemException: overloaded.
            Exception: Whatever the database raises.
        """
        changes = self._untold.get(tenant, [])
        told = changes[:TOLD_AT_ONCE]
        command = Tell(
            *(tenant, self._epoch, told, instants.now(), self._clock.offset()),
            devices=lambda node: self.registry.devices(tenant, node),
            follower=self._follow,
        )
        with self._metrics.fault_telling_seconds.time():
            self._writer.submit(command, tenant, urgent=True).result()
        del changes[: len(told)]

    def _acknowledge(self, told: Collection[str], telling: Collection[str] = ()) -> None:
        """Answer who waits for lines to be judged.

        Args:
            told: Tenants of which all was written.
            telling: Tenants of which more is to be written; theirs wait for that.
        """
        waiting = [arrival for arrival in self._unanswered if arrival.tenant in telling]
        for arrival in self._unanswered:
            assert arrival.judged is not None
            if arrival.tenant in telling:
                continue
            if arrival.tenant in told:
                arrival.judged.set_result(None)
            else:
                problem = ProblemException("overloaded", "what the lines tell could not be written", retry_after=1)
                arrival.judged.set_exception(problem)
        self._unanswered = waiting

    def _follow(self, told: Told) -> None:
        """Changes are durable; called in the writer's thread."""
        self._in_loop(lambda: self._heed(told))

    def _heed(self, told: Told) -> None:
        for domain in told.asked:
            self._bell.ring((told.tenant, domain))
        for record in told.records:
            self.hub.deliver(told.tenant, record)
        self._count(told)

    def _count(self, told: Told) -> None:
        for record in told.records:
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


def _written(record: Record, _: None) -> bytes:
    return record.event()
