"""Sends what is spooled to the service: one batch after another, each until its fate is known.

**Clock.** A batch states ``sent_at`` only while this clock is seen to be off the service's by more than the standard
tolerates. Where it is near enough there is nothing to correct, and a statement could only do harm: a request that takes
longer than two seconds would have its delay taken for an offset. Where it is stated it differs from attempt to attempt,
so that a repetition of a batch that did arrive is refused with ``idempotency-mismatch``; each ``sent_at`` is in the
spool before it is sent, and the answer is fetched with the bytes of that earlier attempt.
"""

import logging
import random
import threading
import time
from collections import Counter
from typing import Final, NamedTuple

from kuayu.client import PROBLEM_PREFIX
from kuayu.engine.agent.committer import Committer
from kuayu.engine.agent.metrics import Metrics
from kuayu.engine.agent.settings import AgentSettings
from kuayu.engine.agent.spool import Batch, DeferredSample, Spool
from kuayu.engine.agent.upstream import AwayError, Greeting, RefusalError, Upstream
from kuayu.service import instants
from kuayu_schemas.models import BatchResult, Durability

logger = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 0.25
MAX_REQUESTED_PAUSE_S: Final = 300.0
"""A service that asks for a longer pause is asked again after this one."""
GREETING_S: Final = 15.0
"""Seconds after which the service is asked anew what it takes and how its clock stands."""
ENVELOPE_BYTES: Final = 1024
"""Bytes of a body that are left for what is not a sample."""
FIRST_HOLD_S, MAX_HOLD_S = 1.0, 30.0


class _Row(NamedTuple):
    """A sample of a batch."""

    number: int
    waited: float
    body: bytes


class Forwarder:
    """The thread that sends.

    Args:
        spool: What is to be sent; it is read on a connection of its own.
        committer: Writes to the spool.
        upstream: The service.
        settings: Of the aggregator.
        metrics: What became of the samples is counted there.
    """

    def __init__(
        self, spool: Spool, committer: Committer, upstream: Upstream, settings: AgentSettings, metrics: Metrics
    ) -> None:
        self._spool, self._committer, self._upstream = spool, committer, upstream
        self._settings, self._metrics = settings, metrics
        self.greeting: Greeting | None = None
        self.up = False
        self._greeted = float("-inf")
        self._most = settings.batch
        self._failures = 0
        self._problem = ""
        self._closing = threading.Event()
        self._give_up_at = float("inf")
        self._thread = threading.Thread(target=self._run, name="forwarder", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def close(self) -> None:
        """Send what can be sent within the time that is set for it, then end. What remains stays in the spool."""
        self._give_up_at = time.monotonic() + self._settings.drain
        self._closing.set()
        self._thread.join(self._settings.drain)
        if not self._thread.is_alive():
            self._upstream.close()

    def _run(self) -> None:
        self._rows = self._spool.reader()
        while not (self._closing.is_set() and time.monotonic() >= self._give_up_at):
            try:
                if time.monotonic() - self._greeted > GREETING_S:
                    self._greet()
                sent = self._send_some()
            except AwayError as away:
                self._note(away)
                if self._closing.is_set():
                    break
                self._closing.wait(self._pause(away.pause))
            except Exception:
                # Whatever it was, the spool still has the batch, and nobody else would send it.
                logger.exception("a batch could not be sent; it will be tried again")
                if self._closing.wait(self._pause(0.0)):
                    break
            else:
                self._failures = 0
                if self._closing.is_set() and not sent:
                    break
                if sent < self._most:
                    self._closing.wait(self._settings.linger)
        self._rows.close()

    def _greet(self) -> None:
        """Learn what the service takes, and that it is there."""
        greeting = self._upstream.greet()
        if self.greeting is None:
            if (self._settings.durability, greeting.durability) == (Durability.host, Durability.process):
                logger.warning("the service keeps acknowledged samples over its own crash only, not over its host's")
            self._most = min(self._settings.batch, greeting.max_batch)
            logger.info("the service answers; %d samples wait for it", self._spool.level.samples)
        self.greeting, self.up = greeting, True
        self._greeted = time.monotonic()

    def _send_some(self) -> int:
        """Deliver the batch under way, or a new one of what waits; how many samples it held."""
        greeting = self.greeting
        assert greeting is not None
        largest = min(self._settings.batch, greeting.max_batch)
        self._most = min(self._most, largest)
        octets = greeting.max_body - ENVELOPE_BYTES
        batch = self._committer.submit(lambda spool: _packed(spool, self._most, octets)).result()
        if batch is None:
            self._recovered()
            return 0
        run = self._rows.execute(
            "SELECT id, waited, body FROM sample WHERE id BETWEEN ? AND ? ORDER BY id", (batch.first, batch.last)
        )
        rows = [_Row(*row) for row in run]
        try:
            result = self._attempt(batch, rows, clock_off=greeting.clock_off)
        except RefusalError as refusal:
            self._metrics.attempts.labels("refused").inc()
            self._refused(batch, rows, refusal)
            return self._most  # what was refused still waits
        self._metrics.attempts.labels("answered").inc()
        self._settle(batch, rows, result)
        self._recovered()
        full = len(rows) >= self._most
        self._most = min(2 * self._most, largest)
        return self._most if full else len(rows)

    def _attempt(self, batch: Batch, rows: list[_Row], *, clock_off: bool) -> BatchResult:
        """Send a batch, and where an earlier attempt had arrived, get the answer to that."""
        bodies = [row.body for row in rows]
        stamp = None
        if clock_off:
            stamp = instants.to_text(instants.now())
            batch = self._stamped(batch, stamp)
        try:
            return self._upstream.post(batch.key, bodies, stamp)
        except RefusalError as refusal:
            if refusal.name != "idempotency-mismatch":
                raise
            first = refusal
        for earlier in (*batch.stamps, None):
            if earlier == stamp:
                continue
            try:
                return self._upstream.post(batch.key, bodies, earlier)
            except RefusalError as refusal:
                if refusal.name != "idempotency-mismatch":
                    raise
        raise first

    def _stamped(self, batch: Batch, stamp: str) -> Batch:
        return self._committer.submit(lambda spool: spool.stamp(batch, stamp)).result()

    def _refused(self, batch: Batch, rows: list[_Row], refusal: RefusalError) -> None:
        """The service took nothing of a batch: send it in smaller ones, or give up the one sample that it is."""
        if len(rows) > 1 or refusal.name == "idempotency-mismatch":
            logger.warning("%d samples travel anew: %s", len(rows), refusal)
            self._committer.submit(lambda spool: spool.unpack(batch)).result()
            if refusal.name != "idempotency-mismatch":
                self._most = max(1, len(rows) // 2)
            return
        logger.error("a sample is given up: %s: %s", refusal, rows[0].body.decode())
        self._committer.submit(lambda spool: spool.settle(batch)).result()
        self._metrics.batches.inc()
        self._metrics.rejected.labels(refusal.name).inc()
        self._recovered()

    def _settle(self, batch: Batch, rows: list[_Row], result: BatchResult) -> None:
        """Take out of the spool what the service has judged; hold back what it may yet take."""
        now = instants.now()
        held: list[DeferredSample] = []
        lost: Counter[str] = Counter()
        example: dict[str, str] = {}
        rejected = [item for item in result.rejected if item.index < len(rows)]
        for item in rejected:
            row = rows[item.index]
            name = item.problem.type.removeprefix(PROBLEM_PREFIX)
            pause = min(MAX_HOLD_S, max(FIRST_HOLD_S, row.waited))
            if name == "unknown-reference" and row.waited + pause <= self._settings.hold:
                held.append(DeferredSample(row.number, now + round(pause * 1000), row.waited + pause))
            else:
                lost[name] += 1
                example[name] = item.problem.detail or item.problem.title
        self._committer.submit(lambda spool: spool.settle(batch, held)).result()
        self._metrics.batches.inc()
        self._metrics.forwarded.inc(len(rows) - len(rejected))
        for name, count in lost.items():
            logger.error("the service refused %d samples for good: %s: %s", count, name, example[name])
            self._metrics.rejected.labels(name).inc(count)

    def _note(self, away: AwayError) -> None:
        self._metrics.attempts.labels("away").inc()
        self.up, self._greeted = False, float("-inf")
        if away.cause != self._problem:
            self._problem = away.cause
            logger.warning("%s; %d samples wait", away.cause, self._spool.level.samples)

    def _recovered(self) -> None:
        """A batch was settled, or none waits: what kept it from that is over, and will be told when it comes again."""
        if self._problem:
            self._problem = ""
            logger.info("the service takes samples again; %d wait", self._spool.level.samples)

    def _pause(self, requested: float) -> float:
        """Seconds until the next attempt: exponential, with jitter so that aggregators do not come all at once."""
        longest = min(self._settings.longest_pause, FIRST_PAUSE_S * 2.0 ** min(self._failures, 30))
        self._failures += 1
        jitter = random.uniform(0.5, 1.0)  # noqa: S311 - nothing secret
        return longest * jitter + min(requested, MAX_REQUESTED_PAUSE_S)


def _packed(spool: Spool, most: int, octets: int) -> Batch | None:
    """The batch whose fate is not known; else a new one."""
    batch = spool.under_way()
    if batch is None:
        spool.bring_back(instants.now())
        batch = spool.pack(most, octets)
    return batch
