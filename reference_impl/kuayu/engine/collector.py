"""Collector: observes this host every period and hands what it sees to a service of the standard.

One thread observes, another sends, so that a service that is slow or away costs no observation. What could not be
handed over waits in an :class:`Outbox`, never more than a given number of samples. A batch keeps its key and its
content until its fate is known, so that sending it again is harmless: nothing that fits the outbox is lost, and nothing
is taken twice. When the outbox is full the oldest samples that are not in a batch are dropped, and counted: what is
newest matters most to a scheduler.

Batches say nothing of when they were sent. A repeated batch would have to say it unchanged (its key stands for its
content) and the service would take the delay for an offset of the clock; so the host's clock has to be right within the
two seconds that the standard allows, and :class:`Tally` says how far it is off.
"""

import json
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from kuayu.client import Client, ClientError, NotFoundError, RefusedError
from kuayu.engine.host import Host
from kuayu_schemas.models import Domain, Node, NodeRecord, Revision, Sample

MAX_BATCH_SAMPLES: Final = 1000
"""Samples of one batch at most; the service may ask for fewer."""
FIRST_PAUSE_S: Final = 0.5
MAX_PAUSE_S: Final = 10.0
POLL_S: Final = 0.2
FLUSH_S: Final = 5.0
"""Time that is left for what still waits when the collector is told to stop."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples that travel together, under the idempotency key that they keep."""

    key: str
    samples: tuple[Sample, ...]


class Outbox:
    """Bounded queue between one thread that observes and one that sends.

    Args:
        capacity: Most samples that wait, those of the batch under way included; at least one.
    """

    def __init__(self, capacity: int) -> None:
        """Begin empty."""
        self._capacity = max(1, capacity)
        self._largest = max(1, capacity // 2)  # the other half stays free for what comes meanwhile
        self._queue: deque[Sample] = deque()
        self._batch: Batch | None = None
        self._dropped = 0
        self._changed = threading.Condition()

    @property
    def dropped(self) -> int:
        """Samples that were dropped for want of room."""
        return self._dropped

    def __len__(self) -> int:
        """Samples that wait, those of the batch under way included."""
        with self._changed:
            return self._waiting()

    def put(self, samples: Iterable[Sample]) -> None:
        """Add samples, dropping the oldest where there is no room."""
        with self._changed:
            self._queue.extend(samples)
            while self._queue and self._waiting() > self._capacity:
                self._queue.popleft()
                self._dropped += 1
            self._changed.notify_all()

    def batch(self, most: int, timeout_s: float) -> Batch | None:
        """The batch under way, or else the oldest samples as a new one; waits for samples.

        Returns:
            None where none came in time.
        """
        with self._changed:
            if self._batch is None and self._changed.wait_for(lambda: bool(self._queue), timeout_s):
                taken = [self._queue.popleft() for _ in range(min(most, self._largest, len(self._queue)))]
                self._batch = Batch(str(uuid.uuid4()), tuple(taken))
            return self._batch

    def settle(self, again: Iterable[Sample] = ()) -> None:
        """The batch under way has met its fate; ``again`` are those of its samples that have to travel once more."""
        with self._changed:
            self._batch = None
            self._queue.extendleft(reversed(list(again)))

    def _waiting(self) -> int:
        return len(self._queue) + (len(self._batch.samples) if self._batch else 0)


@dataclass(frozen=True, slots=True)
class Tally:
    """How the collector stands.

    Attributes:
        taken: Samples that the service has acknowledged.
        waiting: Samples that it has not yet.
        dropped: Samples that were given up for want of room.
        rejected: Samples that it would not take.
        clock_ahead_s: Seconds by which this host's clock is ahead of the service's, the way of the answer included.
        problem: What went wrong last, "" where all is well.
    """

    taken: int
    waiting: int
    dropped: int
    rejected: int
    clock_ahead_s: float
    problem: str


class Collector:
    """Collects one host into one service.

    Args:
        client: Connection to the service; it should send each request once, for the collector repeats by itself.
        host: Which host.
        domain: Identifier of the domain; registered when there is none.
        node: Identifier of the node.
        capacity: Most samples that wait for the service.
    """

    def __init__(self, client: Client, host: Host, *, domain: str, node: str, capacity: int) -> None:
        """Send nothing yet."""
        self._client, self._host = client, host
        self._domain, self._node = domain, node
        self._outbox = Outbox(capacity)
        self._most = MAX_BATCH_SAMPLES
        self._registered: Revision | None = None
        self._taken = self._rejected = 0
        self._clock_ahead_s = 0.0
        self._problem = ""
        self._failure: ClientError | None = None
        self._closing = threading.Event()
        self._give_up_at = float("inf")

    @property
    def tally(self) -> Tally:
        """How it stands."""
        return Tally(
            taken=self._taken,
            waiting=len(self._outbox),
            dropped=self._outbox.dropped,
            rejected=self._rejected,
            clock_ahead_s=self._clock_ahead_s,
            problem=self._problem,
        )

    def run(
        self,
        stop: threading.Event,
        *,
        period_s: float,
        duration_s: float = float("inf"),
        first: Callable[[], list[Sample]] = list,
        watch: Callable[[Tally], None] = lambda _tally: None,
    ) -> Tally:
        """Register, then observe every ``period_s`` seconds until ``stop`` is set or ``duration_s`` has passed.

        Args:
            stop: Ends the collection; set here too when it cannot go on.
            period_s: Seconds between observations; one that could not be made in time is left out.
            duration_s: Seconds to go on for.
            first: Gives samples to be sent before all others, such as those of probes.
            watch: Told after each observation how things stand.

        Returns:
            The tally after what waited has been handed over, or given up after :data:`FLUSH_S`.

        Raises:
            ClientError: The service refused the registration, or no service of the standard answered; waiting would not
                mend it.
        """
        sender = threading.Thread(target=self._send, args=(stop,), name="sender", daemon=True)
        sender.start()
        try:
            self._outbox.put(first())
            began = time.monotonic()
            ticks = 0
            while not stop.is_set() and ticks * period_s < duration_s:
                self._outbox.put(self._host.samples(self._node))
                watch(self.tally)
                ticks = max(ticks + 1, int((time.monotonic() - began) / period_s))
                stop.wait(began + min(ticks * period_s, duration_s) - time.monotonic())
        finally:
            self._give_up_at = time.monotonic() + FLUSH_S
            self._closing.set()
            sender.join(FLUSH_S)
        if self._failure is not None:
            raise self._failure
        return self.tally

    def _send(self, stop: threading.Event) -> None:
        """Register, then hand over what waits, until the collector closes and nothing does."""
        pause = FIRST_PAUSE_S
        while time.monotonic() < self._give_up_at:
            if self._closing.is_set() and self._registered and not len(self._outbox):
                return
            try:
                if self._registered is None:
                    self._register()
                if batch := self._outbox.batch(self._most, POLL_S):
                    self._deliver(batch)
                pause = FIRST_PAUSE_S
            except ClientError as error:
                self._problem = error.cause
                if self._registered is None and not error.transient:
                    self._failure = error
                    stop.set()
                    return
                if self._closing.wait(pause):
                    time.sleep(POLL_S)
                pause = min(2 * pause, MAX_PAUSE_S)

    def _deliver(self, batch: Batch) -> None:
        """Send a batch and settle it.

        Raises:
            ClientError: Its fate is unknown, or the service cannot take it now; it stays under way.
        """
        try:
            result = self._client.post_samples(batch.samples, idempotency_key=batch.key)
        except RefusedError as error:
            if error.name == "payload-too-large" and len(batch.samples) > 1:
                self._most = len(batch.samples) // 2
                self._outbox.settle(again=batch.samples)
                return
            if error.name != "invalid-body":
                raise
            self._outbox.settle()
            self._rejected += len(batch.samples)
            self._problem = error.cause
            return
        self._clock_ahead_s = (datetime.now(UTC) - result.received_at).total_seconds()
        self._problem = ""
        unregistered = [item.index for item in result.rejected if item.problem.type.endswith(":unknown-reference")]
        again = [batch.samples[index] for index in unregistered] if unregistered and self._register() else []
        self._outbox.settle(again)
        self._taken += result.accepted
        self._rejected += len(result.rejected) - len(again)
        if result.rejected and not again:
            problem = result.rejected[-1].problem
            self._problem = problem.detail or problem.title

    def _register(self) -> bool:
        """Register the domain, where there is none, and the node; return whether the service did not hold it so.

        Raises:
            ClientError: It could not be done.
        """
        self._most = min(self._most, self._client.conformance().limits.max_batch)
        before = self._registered
        self._registered = register(self._client, self._host, domain=self._domain, node=self._node).revision
        return self._registered != before


def register(client: Client, host: Host, *, domain: str, node: str) -> NodeRecord:
    """Register the domain, where there is none, and the node as the host sees itself.

    Raises:
        ClientError: The service is away or refuses.
    """
    try:
        client.domain(domain)
    except NotFoundError:
        client.put_domain(Domain(id=domain))
    known: NodeRecord | None = None
    with suppress(NotFoundError):
        known = client.node(node)
    return client.put_node(merged(host.node(node, domain), known))


def merged(seen: Node, known: NodeRecord | None) -> Node:
    """The node as the host sees itself, with what only others know: labels, data-sheet figures, compute identifier."""
    if known is None:
        return seen
    by_device = {device.id: device.to_wire() for device in known.devices or ()}
    document = seen.to_wire()
    document["devices"] = [by_device.get(device["id"], {}) | device for device in document.get("devices", ())]
    registered = {name: value for name, value in known.to_wire().items() if name in Node.model_fields}
    return Node.model_validate_json(json.dumps(registered | document))
