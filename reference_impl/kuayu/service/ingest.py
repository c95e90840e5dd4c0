"""Bulk requests: what a body holds, which items break the schema, and what the sender is told.

A valid batch is parsed by orjson and validated by jsonschema-rs as a whole; only where the whole is not valid is each
item looked at by itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from kuayu.perception import clock
from kuayu.service import batches, bodies, instants, strict_json
from kuayu.service.batches import Form
from kuayu.service.problems import MAX_TEXT, Place, ProblemException, invalid_body
from kuayu.service.storage.blocks import Block
from kuayu.service.storage.tables import PRECISION_MEASURES
from kuayu_schemas import schema
from kuayu_schemas.models import WarningKind

EXAMPLE = {"subject": "a", "subject_kind": "node", "observed_at": "2000-01-01T00:00:00Z"}
"""A valid sample with no more members than it needs."""

SAMPLES = Form("SampleBatch", "samples", "Sample", EXAMPLE)


@dataclass(frozen=True, slots=True)
class Reception:
    """When and under which rule of time something was received, in milliseconds."""

    received: int
    offset: int
    retention: int

    def instant(self, observed: int) -> int:
        """An instant of the sender's, corrected.

        Raises:
            ProblemException: clock-skew or too-old.
        """
        corrected = observed + self.offset
        problem = self.fault(corrected)
        if problem is not None:
            raise problem
        return corrected

    def fault(self, corrected: int) -> ProblemException | None:
        """Why a corrected instant cannot be taken, or None where it can."""
        fault = clock.fault(corrected, self.received, self.retention)
        if fault is None:
            return None
        detail = f"observed at {_when(corrected)}, received at {instants.to_text(self.received)}"
        return ProblemException(fault.value, detail, [Place(detail, "/observed_at")])


@dataclass(frozen=True, slots=True)
class Warned:
    """What is to be known of an exporter's page that was taken."""

    kind: WarningKind
    detail: str

    def to_wire(self) -> dict[str, str]:
        """The warning as class PageWarning has it."""
        return {"kind": self.kind.value, "detail": self.detail[:MAX_TEXT]}


@dataclass(slots=True)
class Sorted:
    """A bulk request, sorted into what can be taken and what cannot."""

    reception: Reception
    accepted: int = 0
    blocks: list[Block] = field(default_factory=list)
    rejected: list[tuple[int, ProblemException]] = field(default_factory=list)
    warnings: list[Warned] = field(default_factory=list)

    def reject(self, index: int, problem: ProblemException) -> None:
        """Name an item that cannot be taken."""
        self.rejected.append((index, problem))

    def result(self, durability: str) -> bytes:
        """The answer, class BatchResult."""
        wire: dict[str, Any] = {
            "accepted": self.accepted,
            "rejected": batches.rejected(self.rejected),
            "durability": durability,
            "received_at": instants.to_text(self.reception.received),
            "clock_offset": self.reception.offset / 1000,
        }
        if self.warnings:
            wire["warnings"] = [warning.to_wire() for warning in self.warnings]
        return orjson.dumps(wire)

    def refusal(self) -> ProblemException:
        """The problem of an atomic request that has bad items."""
        places = [
            Place(f"{problem.name}: {place.detail}", f"/samples/{index}{place.pointer}")
            for index, problem in self.rejected
            for place in problem.places or (Place(problem.detail),)
        ]
        return ProblemException("batch-refused", f"{len(self.rejected)} items cannot be taken; none was", places)


@dataclass(frozen=True, slots=True)
class Batch:
    """A SampleBatch that was read; items that break the schema stand beside the others."""

    atomic: bool
    sent: int | None
    samples: Sequence[Mapping[str, Any]]
    broken: Mapping[int, ProblemException]


def read_batch(body: bytes, max_batch: int) -> Batch:
    """Read the body of a bulk request.

    Raises:
        ProblemException: malformed-json or invalid-body, for the request as a whole.
    """
    try:
        value = strict_json.parse_leniently(body)
    except strict_json.TooManyValuesError as error:
        raise ProblemException("payload-too-large", str(error)) from error
    except strict_json.MalformedJsonError as error:
        raise ProblemException("malformed-json", str(error)) from error
    SAMPLES.check_length(value, max_batch)
    if not (schema.is_valid(SAMPLES.class_name, value) and _has_no_repetition(body, value)):
        value = bodies.parse_json(body)
    broken = SAMPLES.judge(value, max_batch)
    sent = value.get("sent_at")
    return Batch(
        value["mode"] == "atomic", None if sent is None else read_instant(sent, "/sent_at"), value["samples"], broken
    )


def _has_no_repetition(body: bytes, batch: Mapping[str, Any]) -> bool:
    """Whether the bytes alone tell that no member stands twice in a valid batch.

    In the strings of a valid batch colons stand only in instants, two in each. Unless a string is written with
    escapes, more colons than members and instants explain are those of repeated members.
    """
    samples: Sequence[Mapping[str, Any]] = batch["samples"]
    members = len(batch) + sum(map(len, samples)) + 2 * (len(samples) + ("sent_at" in batch))
    tables = (sample[name] for name in PRECISION_MEASURES for sample in samples if name in sample)
    return b"\\" not in body and body.count(b":") == members + sum(map(len, tables))


def read_instant(text: str, pointer: str) -> int:
    """Read an instant out of a body.

    Raises:
        ProblemException: invalid-body, where the form is right but there is no such day.
    """
    try:
        return instants.to_milliseconds(text)
    except ValueError as error:
        raise invalid_body(Place(f"there is no such instant: {error}", pointer)) from error


def _when(moment: int) -> str:
    """An instant for a message, be it outside the years that can be written."""
    try:
        return instants.to_text(moment)
    except OverflowError:
        return f"{moment} ms"
