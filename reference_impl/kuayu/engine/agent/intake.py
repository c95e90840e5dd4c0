"""A batch of samples on its way into the spool: validated as a service judges it, with its sender's clock corrected.

Whether a subject is registered only the service knows; that is all that is left for it to judge.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import orjson

from kuayu.engine.agent.downsampling import Downsampler, Outline
from kuayu.engine.agent.spool import Spool
from kuayu.perception import clock
from kuayu.service import ingest, instants
from kuayu.service.ingest import IngestResult, Reception
from kuayu.service.problems import ProblemException
from kuayu_schemas.models import Durability


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
    reception = Reception(received, clock.offset(batch.sent, received), retention)
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
        kept = None if self.key is None else spool.kept_answer(self.key)
        if kept is not None:
            if kept[0] != self.digest:
                raise ProblemException("idempotency-mismatch", "the key came with another body before")
            return Answer(kept[1], replayed=True)
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
            spool.keep_answer(self.key, self.digest, answer, result.reception.received)
        return Answer(answer, thinned=result.accepted - len(forwarded))


def digest(body: bytes) -> bytes:
    """What a body is told from others by."""
    return hashlib.sha256(body).digest()
