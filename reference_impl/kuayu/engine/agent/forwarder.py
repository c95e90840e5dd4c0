"""Sends what is spooled to the service: one batch after another, each until its fate is known.

1. A batch states ``sent_at`` only while this clock is seen to be off the service's by more than the standard tolerates.
   Where it is near enough there is nothing to correct, and a statement could only do harm: a request that takes longer
   than two seconds would have its delay taken for an offset. Where it is stated it differs from attempt to attempt, so
   that a repetition of a batch that did arrive is refused with ``idempotency-mismatch``; each ``sent_at`` is in the
   spool before it is sent, and the answer is fetched with the bytes of that earlier attempt.
2. ``Upstream`` is the service, as the forwarder sees it: there, away, or refusing.
3. ``Metrics`` are the aggregator's own, in the Prometheus text format.
"""

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import httpx
import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, Info, generate_latest
from pydantic import ValidationError

from kuayu.client import PROBLEM_PREFIX, http_client, read
from kuayu.engine.agent.intake import Committer
from kuayu.engine.agent.settings import AgentSettings
from kuayu.engine.agent.spool import Batch, DeferredSample, Level, Spool
from kuayu.perception import plausibility
from kuayu.service import instants
from kuayu_schemas.models import BatchResult, Declaration, Durability, Problem

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


class AwayError(Exception):
    """The service cannot take anything now, and what was sent has an unknown fate or none.

    Attributes:
        cause: Why.
        pause: Seconds that it asked to be left alone for.
    """

    def __init__(self, cause: str, pause: float = 0.0) -> None:
        super().__init__(cause)
        self.cause = cause
        self.pause = pause


class RefusalError(Exception):
    """The service refused a batch as a whole.

    Attributes:
        name: Registered name of the problem.
        detail: What it said.
    """

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Greeting:
    """What the service said of itself.

    Attributes:
        max_batch: Most items of a batch.
        max_body: Bytes of the largest body.
        retention: Milliseconds for which it keeps samples.
        durability: Which crash survives what it acknowledges.
        clock_off: Whether this clock is surely off its own by more than the standard tolerates, however long the answer
            took on its way.
    """

    max_batch: int
    max_body: int
    retention: int
    durability: Durability
    clock_off: bool


class Upstream:
    """A connection to the service, for one thread.

    Args:
        url: Base URL.
        token: Bearer token, or None.
        timeout: Seconds for an answer.
    """

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        self._http = http_client(url, token, httpx.Timeout(timeout, connect=min(CONNECT_S, timeout)))

    def close(self) -> None:
        """Let the connection go."""
        self._http.close()

    def greet(self) -> Greeting:
        """Ask what the service takes, and how its clock stands.

        Raises:
            AwayError: It does not say.
        """
        sent = instants.now()
        answer = self._send("GET", "/v1/conformance")
        answered = instants.now()
        if answer.status_code != OK:
            raise self._away(answer)
        try:
            said = read(Declaration, answer.content)
        except ValueError as error:
            raise AwayError(f"{self._http.base_url} answers, but is no service of the standard") from error
        theirs = round(said.now.timestamp() * 1000)
        ahead, behind = sent - theirs, theirs - answered
        return Greeting(
            max_batch=int(said.limits.max_batch),
            max_body=int(said.limits.max_body),
            retention=round(float(said.limits.retention) * 1000),
            durability=said.durability,
            clock_off=max(ahead, behind) > plausibility.TOLERATED_OFFSET,
        )

    def post(self, key: str, bodies: list[bytes], sent_at: str | None) -> BatchResult:
        """Send samples under a key.

        Raises:
            AwayError: Their fate is unknown, or they are not taken now.
            RefusalError: None of them was or will be taken in this form.
        """
        stamp = f',"sent_at":"{sent_at}"'.encode() if sent_at else b""
        content = b"".join((HEAD, BETWEEN.join(bodies), TAIL, stamp, b"}"))
        headers = {"content-type": "application/json", "idempotency-key": key}
        answer = self._send("POST", "/v1/samples", content=content, headers=headers)
        if answer.status_code == OK:
            try:
                return read(BatchResult, answer.content)
            except ValueError as error:
                raise AwayError("the service answered a batch with something else than a result") from error
        raise _refusal(answer, several=len(bodies) > 1) or self._away(answer)

    def _send(self, method: str, path: str, **parts: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **parts)
        except httpx.HTTPError as error:
            raise AwayError(f"no answer from {self._http.base_url}: {error or type(error).__name__}") from error

    def _away(self, answer: httpx.Response) -> AwayError:
        try:
            problem = read(Problem, answer.content)
            said = f"{problem.title}: {problem.detail}" if problem.detail else problem.title
        except (ValidationError, ValueError):
            said = "and nothing that the standard knows"
        if answer.status_code == UNAUTHORISED and "authorization" not in self._http.headers:
            said += "; the agent has no token for it, give it one with --token"
        return AwayError(f"the service answered with {answer.status_code}, {said}", _pause(answer.headers))


class Metrics:
    """Counters and gauges of one aggregator, with a registry of their own."""

    def __init__(self, domain: str, version: str) -> None:
        self.registry = CollectorRegistry()
        Info("kuayu_agent", "What runs.", registry=self.registry).info({"domain": domain, "version": version})
        self.received = self._counter("received_samples", "Samples that senders brought.", ["outcome"])
        self.turned_away = self._counter("turned_away_requests", "Requests answered with overloaded.", ["reason"])
        self.forwarded = self._counter("forwarded_samples", "Samples that the service has acknowledged.")
        self.rejected = self._counter("rejected_samples", "Samples that the service refused for good.", ["problem"])
        self.dropped = self._counter("dropped_samples", "Acknowledged samples that were not sent on.", ["reason"])
        self.attempts = self._counter("attempts", "Attempts to send a parcel.", ["outcome"])
        self.batches = self._counter("parcels", "Parcels that met their fate.")
        self.spooled = self._gauge("spooled_samples", "Samples in the spool.")
        self.held = self._gauge("held_samples", "Samples in the spool whose subject the service did not know.")
        self.octets = self._gauge(
            "spooled_bytes",
            "Bytes of the samples in the spool.",
        )
        self.oldest = self._gauge(
            "oldest_seconds", "Age of the oldest sample in the spool, nought where there is none."
        )
        self.up = self._gauge("up", "Whether the service answered when it was last asked.")

    def watch(self, level: Callable[[], Level], oldest: Callable[[], float], *, up: Callable[[], bool]) -> None:
        """Say where the gauges get their values from."""
        self.spooled.set_function(lambda: level().samples)
        self.held.set_function(lambda: level().deferred)
        self.octets.set_function(lambda: level().octets)
        self.oldest.set_function(oldest)
        self.up.set_function(up)

    def refused(self) -> int:
        """How many samples the service has refused for good since the start."""
        values = (sample for metric in self.rejected.collect() for sample in metric.samples)
        return round(sum(sample.value for sample in values if sample.name.endswith("_total")))

    def page(self) -> bytes:
        """All of it as a page."""
        return generate_latest(self.registry)

    def _counter(self, name: str, purpose: str, labels: list[str] | None = None) -> prometheus_client.Counter:
        return prometheus_client.Counter(f"kuayu_agent_{name}", purpose, labels or (), registry=self.registry)

    def _gauge(self, name: str, purpose: str) -> Gauge:
        return Gauge(f"kuayu_agent_{name}", purpose, registry=self.registry)


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
        deferred: list[DeferredSample] = []
        lost: Counter[str] = Counter()
        example: dict[str, str] = {}
        rejected = [item for item in result.rejected if item.index < len(rows)]
        for item in rejected:
            row = rows[item.index]
            name = item.problem.type.removeprefix(PROBLEM_PREFIX)
            pause = min(MAX_HOLD_S, max(FIRST_HOLD_S, row.waited))
            if name == "unknown-reference" and row.waited + pause <= self._settings.hold:
                deferred.append(DeferredSample(row.number, now + round(pause * 1000), row.waited + pause))
            else:
                lost[name] += 1
                example[name] = item.problem.detail or item.problem.title
        self._committer.submit(lambda spool: spool.settle(batch, deferred)).result()
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


CONNECT_S: Final = 3.0
OK: Final = 200
UNAUTHORISED: Final = 401
TOO_LARGE: Final = 413
HEAD, BETWEEN, TAIL = b'{"mode":"per_item","samples":[', b",", b"]"


def _packed(spool: Spool, most: int, octets: int) -> Batch | None:
    """The batch whose fate is not known; else a new one."""
    batch = spool.under_way()
    if batch is None:
        spool.bring_back(instants.now())
        batch = spool.pack(most, octets)
    return batch


def _refusal(answer: httpx.Response, *, several: bool) -> RefusalError | None:
    """The problem of an answer that will not change when the same is sent again.

    A proxy on the way that finds a body too large says so without a problem. Batches become smaller then, but a single
    sample is not given up on its word.
    """
    try:
        problem = read(Problem, answer.content)
    except ValueError:
        if answer.status_code == TOO_LARGE and several:
            return RefusalError("payload-too-large", "something on the way to the service takes no body as large")
        return None
    name = problem.type.removeprefix(PROBLEM_PREFIX)
    if name not in {"payload-too-large", "invalid-body", "malformed-json", "idempotency-mismatch"}:
        return None
    return RefusalError(name, problem.detail or problem.title)


def _pause(headers: Mapping[str, str]) -> float:
    """Seconds of the header Retry-After, in either of its forms (RFC 9110, 10.2.3); nought where there is none."""
    from email.utils import parsedate_to_datetime

    stated = headers.get("retry-after", "").strip()
    if stated.isdecimal():
        return float(stated)
    try:
        until = parsedate_to_datetime(stated)
        return max(0.0, (until - datetime.now(until.tzinfo)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
