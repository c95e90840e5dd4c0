"""Samples on their way into the spool: validated, thinned where that is wanted, and committed in groups.

1. A batch is validated as a service judges it, with its sender's clock corrected. Whether a subject is registered only
   the service knows; that is all that is left for it to judge.
2. For a narrow path samples are thinned: one of a subject in so many seconds, and every one that reports trouble.
3. One thread writes to the spool. Whatever waits shares a transaction, and nobody is told before it is committed. The
   busier the aggregator, the larger the groups. A job that raises a problem must not have written anything before.
"""

import asyncio
import hashlib
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import orjson

from kuayu.engine.agent.spool import Spool
from kuayu.perception import plausibility
from kuayu.service import ingest, instants
from kuayu.service.ingest import IngestResult, Reception
from kuayu.service.problems import ProblemException
from kuayu_schemas.models import Durability

Subject = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True)
class Outline:
    """What of a sample decides whether it goes through.

    Attributes:
        subject: Kind, identifier, device.
        measures: Names of what it reports. A sample with other measures says something else, and counts by itself.
        observed: Instant in milliseconds.
        health: Reported state, None where there is none.
        faults: Reported faults, None where there are none.
    """

    subject: Subject
    measures: frozenset[str]
    observed: int
    health: str | None
    faults: float | None

    @classmethod
    def of(cls, sample: Mapping[str, Any], observed: int) -> "Outline":
        """Outline of a valid sample that was observed at a corrected instant."""
        return cls(
            (sample["subject_kind"], sample["subject"], sample.get("device")),
            frozenset(sample.keys() - _ENVELOPE),
            observed,
            sample.get("health_state"),
            sample.get("faults"),
        )


@dataclass(frozen=True, slots=True)
class ValidatedBatch:
    """A batch that was validated.

    Attributes:
        atomic: Whether all or nothing of it is to be taken.
        result: What becomes of its items.
        bodies: The good samples as they will be sent, in order.
        outlines: What the downsampler wants to know of each.
    """

    atomic: bool
    result: IngestResult
    bodies: list[bytes]
    outlines: list[Outline]


def validate(body: bytes, max_batch: int, retention: int, *, outlined: bool) -> ValidatedBatch:
    """Judge a request's body that is received now.

    Args:
        body: A SampleBatch.
        max_batch: Most items.
        retention: How far back samples are taken, in milliseconds.
        outlined: Whether outlines are wanted.

    Raises:
        ProblemException: malformed-json or invalid-body, for the request as a whole.
    """
    batch = ingest.read_batch(body, max_batch)
    received = instants.now()
    reception = Reception(received, plausibility.clock_offset(batch.sent, received), retention)
    validated = ValidatedBatch(batch.atomic, IngestResult(reception), [], [])
    moments: dict[str, tuple[int, str]] = {}
    for index, sample in enumerate(batch.samples):
        text: Any = None
        try:
            if index in batch.broken:
                raise batch.broken[index]
            text = sample["observed_at"]
            if text not in moments:
                moment = reception.instant(ingest.read_instant(text, "/observed_at"))
                moments[text] = moment, instants.to_text(moment) if reception.offset else text
        except ProblemException as problem:
            validated.result.reject(index, problem)
            continue
        moment, corrected = moments[text]
        validated.bodies.append(orjson.dumps({**sample, "observed_at": corrected}))
        if outlined:
            validated.outlines.append(Outline.of(sample, moment))
    validated.result.accepted = len(validated.bodies)
    return validated


@dataclass(frozen=True, slots=True)
class Answer:
    """What a sender is told.

    Attributes:
        body: A BatchResult.
        thinned: How many of the accepted samples go no further.
        replayed: Whether it was told before.
    """

    body: bytes
    thinned: int = 0
    replayed: bool = False


@dataclass(slots=True)
class Downsampler:
    """Decides sample by sample, in order of arrival.

    Attributes:
        period: Milliseconds within which one sample is enough; nought lets all through.
    """

    period: int
    _last: dict[tuple[Subject, frozenset[str]], int] = field(default_factory=dict)
    _health: dict[Subject, str] = field(default_factory=dict)
    _faults: dict[Subject, float] = field(default_factory=dict)

    def passes(self, outline: Outline) -> bool:
        """Whether a sample goes through, which is remembered."""
        if not self.period:
            return True
        kind = outline.subject, outline.measures
        last = self._last.get(kind)
        due = last is None or abs(outline.observed - last) >= self.period
        if not (due or self._alarms(outline)):
            return False
        if len(self._last) >= MAX_SUBJECTS:
            self.forget()
        self._last[kind] = outline.observed
        if outline.health is not None:
            self._health[outline.subject] = outline.health
        if outline.faults is not None:
            self._faults[outline.subject] = outline.faults
        return True

    def forget(self) -> None:
        """Remember nothing; each subject's next sample goes through."""
        for table in (self._last, self._health, self._faults):
            table.clear()

    def _alarms(self, outline: Outline) -> bool:
        """Whether it tells of faults, or of a state or count that is not what the last one told."""
        return (
            bool(outline.faults)
            or (outline.health is not None and outline.health != self._health.get(outline.subject))
            or (outline.faults is not None and outline.faults != self._faults.get(outline.subject))
        )


@dataclass(frozen=True, slots=True)
class SpoolWrite:
    """Puts a validated batch into the spool, once for each key.

    Attributes:
        validated: The batch.
        key: Idempotency key, None where the sender gave none.
        digest: Of the body that came with it.
        durability: Which crash the commit will survive.
        downsampler: Decides which samples go on.
        pause: Seconds after which the sender may try again where there is no room.
    """

    validated: ValidatedBatch
    key: str | None
    digest: bytes
    durability: Durability
    downsampler: Downsampler
    pause: float

    def __call__(self, spool: Spool) -> Answer:
        """Do it in the writing thread.

        Raises:
            ProblemException: idempotency-mismatch or overloaded.
        """
        stored = None if self.key is None else spool.stored_answer(self.key)
        if stored is not None:
            if stored[0] != self.digest:
                raise ProblemException("idempotency-mismatch", "the key came with another body before")
            return Answer(stored[1], replayed=True)
        forwarded = self.validated.bodies
        result = self.validated.result
        answer = result.result(self.durability.value)
        if not spool.has_room(forwarded, answer if self.key is not None else b""):
            level = spool.level
            detail = f"the spool is full: {level.samples} samples wait for the service"
            detail += f", and {level.answers} bytes of answers are kept under idempotency keys"
            raise ProblemException("overloaded", detail, retry_after=self.pause)
        if self.validated.outlines:
            outlined = zip(forwarded, self.validated.outlines, strict=True)
            forwarded = [body for body, outline in outlined if self.downsampler.passes(outline)]
        spool.put(forwarded, result.reception.received)
        if self.key is not None:
            spool.store_answer(self.key, self.digest, answer, result.reception.received)
        return Answer(answer, thinned=result.accepted - len(forwarded))


def digest(body: bytes) -> bytes:
    """What a body is told from others by."""
    return hashlib.sha256(body).digest()


MAX_SUBJECTS = 1_000_000
"""Subjects that are remembered; beyond them everything is forgotten and begins anew."""

_ENVELOPE = {"subject", "subject_kind", "device", "observed_at"}

logger = logging.getLogger(__name__)

R = TypeVar("R")
Job = Callable[[Spool], R]
DISK_PAUSE_S: Final = 10.0
"""Seconds after which a sender may try again whose samples the disk did not take."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    job: Job[Any]
    future: Future[Any] = field(default_factory=Future)


class Committer:
    """The thread and its queue.

    Args:
        spool: What it writes to; nobody else may.
        most: Samples that may wait.
        rolled_back: Told when something that seemed done was undone.
    """

    def __init__(self, spool: Spool, most: int, rolled_back: Callable[[], None] = lambda: None) -> None:
        self._spool, self._most, self._rolled_back = spool, most, rolled_back
        self._queue: deque[_Waiting] = deque()
        self._weight = 0
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write what waits and end; the spool may be closed then."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def submit(self, job: Job[R], weight: int = 0) -> "Future[R]":
        """Queue a job; its result comes when it is committed.

        Args:
            job: What to do with the spool.
            weight: Samples that it brings.

        Raises:
            ProblemException: overloaded where too much waits already.
        """
        waiting = _Waiting(job)
        with self._changed:
            if self._closing or (weight and self._weight and self._weight + weight > self._most):
                raise ProblemException("overloaded", "the disk does not keep up with what arrives", retry_after=1)
            self._queue.append(waiting)
            self._weight += weight
            self._changed.notify()
        return waiting.future

    async def write(self, job: Job[R], weight: int = 0) -> R:
        """As :meth:`submit`, for the event loop; a sender that goes away does not take its samples with it."""
        return await asyncio.shield(asyncio.wrap_future(self.submit(job, weight)))

    def _run(self) -> None:
        while group := self._next_group():
            try:
                outcomes = self._commit(group)
            except Exception:
                logger.exception("a group of %d jobs was rolled back; now one by one", len(group))
                outcomes = [self._commit_alone(waiting) for waiting in group]
            for waiting, outcome in zip(group, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    waiting.future.set_exception(outcome)
                else:
                    waiting.future.set_result(outcome)

    def _next_group(self) -> list[_Waiting]:
        with self._changed:
            while not self._queue and not self._closing:
                self._changed.wait()
            group = list(self._queue)
            self._queue.clear()
            self._weight = 0
            return group

    def _commit(self, group: list[_Waiting]) -> list[Any]:
        outcomes: list[Any] = []
        try:
            self._spool.begin()
            for waiting in group:
                try:
                    outcomes.append(waiting.job(self._spool))
                except ProblemException as problem:
                    outcomes.append(problem)
            self._spool.commit()
        except BaseException:
            self._spool.rollback()
            self._rolled_back()
            raise
        return outcomes

    def _commit_alone(self, waiting: _Waiting) -> Any:
        try:
            return self._commit([waiting])[0]
        except sqlite3.OperationalError as error:
            logger.error("the spool could not be written: %s", error)  # noqa: TRY400 - the first one was told in full
            return ProblemException("overloaded", f"the spool cannot be written: {error}", retry_after=DISK_PAUSE_S)
        except Exception as error:
            logger.exception("a job could not be done")
            return error
