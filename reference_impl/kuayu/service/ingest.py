"""Ingest of samples: from the bytes of bulk requests, exporters' pages and OTLP points to rows of the database.

1. Bulk requests: what a body holds, which items break the schema, and what the sender is told. A valid batch is
   parsed by orjson and validated by jsonschema-rs as a whole; only where the whole is not valid is each item looked
   at by itself.
2. Samples decoded and validated in one pass, by msgspec, against types that are made from the published schema. A
   type stands for samples with certain members. Names of subjects are plain strings in it: that they are registered,
   or that they are valid, is for whoever decodes to see. Instants are strings as well, since one comes for many
   samples.
3. Bulk ingest in one pass: from the bytes of a request to the blocks that go to the writer. This is the hot path:
   samples are decoded and validated at once, by types that are made for the members that they have, and go on column
   by column. What samples have in common is judged once: a subject that is registered has a valid name, and an
   instant is judged when it first comes. A large body is read piece by piece, so that what is in hand stays in the
   processor's cache, and nobody waits for Python's lock until all of it is parsed. As soon as anything is found that
   may not be valid, the request is begun anew in the careful way of rule 1, which says what is wrong.
4. Commands of the writer keep what a request brings. An exporter's page is turned into samples there: the conversion
   needs the counters of the page before, so it runs where pages of one exporter cannot overtake each other, and the
   counters are kept in the same transaction as the samples. So are the points of an OTLP request, node by node.
"""

import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from itertools import compress
from typing import Annotated, Any, Literal

import msgspec
import orjson
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import astuple
from sqlalchemy import ColumnElement, Connection, delete, insert, select
from typing_extensions import override

from kuayu.perception import collection, otlp, plausibility
from kuayu.perception.collection import CollectionMap, Conversion, Reading, Refusal
from kuayu.perception.counters import Counters, Known
from kuayu.perception.exposition import Series
from kuayu.perception.otlp import MetricsMap
from kuayu.perception.plausibility import DeviceLimits, Limits
from kuayu.service import instants, requests
from kuayu.service.problems import MAX_TEXT, Place, ProblemException, invalid_body, unknown_reference
from kuayu.service.requests import ItemForm
from kuayu.service.storage import blocks
from kuayu.service.storage.blocks import Arrival, Block
from kuayu.service.storage.resources import DEVICE, NODE, SubjectKey
from kuayu.service.storage.tables import MEASURES, PRECISION_MEASURES, STATE_MEASURES, counter, resource
from kuayu.service.storage.writer import Answer, Outcome, Transaction
from kuayu_schemas import registers, schema
from kuayu_schemas.models import WarningKind

EXAMPLE = {"subject": "a", "subject_kind": "node", "observed_at": "2000-01-01T00:00:00Z"}
"""A valid sample with no more members than it needs."""

SAMPLES = ItemForm("SampleBatch", "samples", "Sample", EXAMPLE)


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
        fault = plausibility.time_fault(corrected, self.received, self.retention)
        if fault is None:
            return None
        detail = f"observed at {_when(corrected)}, received at {instants.to_text(self.received)}"
        return ProblemException(fault.value, detail, [Place(detail, "/observed_at")])


@dataclass(frozen=True, slots=True)
class IngestWarning:
    """What is to be known of an exporter's page that was taken."""

    kind: WarningKind
    detail: str

    def to_wire(self) -> dict[str, str]:
        """The warning as class PageWarning has it."""
        return {"kind": self.kind.value, "detail": self.detail[:MAX_TEXT]}


@dataclass(slots=True)
class IngestResult:
    """A bulk request, sorted into what can be taken and what cannot."""

    reception: Reception
    accepted: int = 0
    blocks: list[Block] = field(default_factory=list)
    rejected: list[tuple[int, ProblemException]] = field(default_factory=list)
    warnings: list[IngestWarning] = field(default_factory=list)

    def reject(self, index: int, problem: ProblemException) -> None:
        """Name an item that cannot be taken."""
        self.rejected.append((index, problem))

    def result(self, durability: str) -> bytes:
        """The answer, class BatchResult."""
        document: dict[str, Any] = {
            "accepted": self.accepted,
            "rejected": requests.rejected(self.rejected),
            "durability": durability,
            "received_at": instants.to_text(self.reception.received),
            "clock_offset": self.reception.offset / 1000,
        }
        if self.warnings:
            document["warnings"] = [warning.to_wire() for warning in self.warnings]
        return orjson.dumps(document)

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
        value = requests.load_leniently(body)
    except requests.TooManyValuesError as error:
        raise ProblemException("payload-too-large", str(error)) from error
    except requests.MalformedJsonError as error:
        raise ProblemException("malformed-json", str(error)) from error
    SAMPLES.check_length(value, max_batch)
    if not (schema.is_valid(SAMPLES.class_name, value) and _has_no_repetition(body, value)):
        value = requests.parse_json(body)
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


NEEDED = frozenset({"subject", "subject_kind", "observed_at"})
"""Members that every sample has."""

ENVELOPE = NEEDED | {"device"}
"""Members that are no measures."""

_JUDGING = {"type", "minimum", "maximum"}
"""Keywords of the schema that a number is judged by here."""

_DESCRIPTIVE_KEYWORDS = {"title", "description"}
"""Keywords that judge nothing; nor do those of the model's own, which begin with x-."""


class UnfitError(Exception):
    """What was to be decoded is no array of valid samples of this form, or may not be."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Samples, member by member.

    Attributes:
        subjects: str[n].
        kinds: str[n].
        devices: str[n], None where a sample has none.
        instants: str[n].
        measures: For each measure of the form, by name, its values, n of them; None where a sample does not state it.
        members: How many members they have in all, those of tables among them.
        uniform: Whether all of them state all measures.
    """

    subjects: Sequence[str]
    kinds: Sequence[str]
    devices: Sequence[str | None]
    instants: Sequence[str]
    measures: Mapping[str, Sequence[Any]]
    members: int
    uniform: bool

    def __len__(self) -> int:
        return len(self.subjects)

    def shapes(self) -> Mapping[tuple[str, ...], Sequence[int]]:
        """Where samples stand that state the same measures, by the names of these."""
        if self.uniform:
            return {tuple(self.measures): range(len(self))}
        result: dict[tuple[bool, ...], list[int]] = {}
        stated = ([value is not None for value in column] for column in self.measures.values())
        for place, marks in enumerate(zip(*stated, strict=True)):
            result.setdefault(marks, []).append(place)
        return {tuple(compress(self.measures, marks)): places for marks, places in result.items()}


class SampleForm:
    """Samples that all have certain members and may have some others.

    Attributes:
        optional: Members that a sample may lack.
        measures: Names of the measures that it may have, sorted.
        tables: Those that are tables.
    """

    def __init__(self, common: frozenset[str], optional: frozenset[str]) -> None:
        self.optional = optional
        self.measures = tuple(sorted((common | optional) - ENVELOPE))
        self.tables = tuple(name for name in self.measures if name in PRECISION_MEASURES)
        fields: list[Any] = [(name, _type(name)) for name in sorted(common)]
        fields += [(name, _type(name) | UnsetType, UNSET) for name in sorted(optional)]
        self._members = tuple(field[0] for field in fields)
        # Nothing in a sample can lead back to it, so that the garbage collector need not look.
        outcome = msgspec.defstruct("Sample", fields, forbid_unknown_fields=True, gc=not self.tables)
        self._decoder: msgspec.json.Decoder[list[Struct]] = msgspec.json.Decoder(list[outcome])  # type: ignore[valid-type]

    def decode(self, array: bytes) -> Columns:
        """Decode a JSON array of samples.

        Of members that stand twice the last is decoded, and counted once.

        Raises:
            UnfitError: It is none, or one of another form.
        """
        try:
            samples = self._decoder.decode(array)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnfitError from error
        if not samples:
            raise UnfitError
        columns: dict[str, Any] = dict(zip(self._members, zip(*map(astuple, samples), strict=True), strict=True))
        members = len(samples) * len(columns)
        for name in self.optional:
            columns[name] = [None if value is UNSET else value for value in columns[name]]
            members -= columns[name].count(None)
        for name in self.tables:
            tables = [table for table in columns[name] if table is not None]
            if not schema.are_valid("Sample", name, tables):
                raise UnfitError
            members += sum(map(len, tables))
            columns[name] = [None if table is None else _text(table) for table in columns[name]]
        return Columns(
            columns["subject"],
            columns["subject_kind"],
            columns.get("device") or [None] * len(samples),
            columns["observed_at"],
            {name: columns[name] for name in self.measures},
            members,
            uniform=self.optional.isdisjoint(self.measures),
        )


def _text(table: Mapping[str, float]) -> str:
    try:
        return orjson.dumps(table).decode()
    except TypeError as error:  # an integer of more than 64 bits, which is a double to whoever looks closely
        raise UnfitError from error


@lru_cache(maxsize=256)
def sample_form(common: frozenset[str], optional: frozenset[str]) -> SampleForm:
    """The form of samples that have all of some members and may have some others.

    Raises:
        UnfitError: No valid samples are of such a form.
    """
    if not (common >= NEEDED and ENVELOPE.union(MEASURES) >= common | optional):
        raise UnfitError
    return SampleForm(common, optional)


@cache
def _type(member: str) -> Any:
    """The type that takes what the schema takes in a member of a sample.

    Raises:
        LookupError: The schema has come to judge a measure by something that this module does not know.
    """
    if member in PRECISION_MEASURES:
        return dict[str, int | float]
    if member not in ENVELOPE | {"subject_kind"} | STATE_MEASURES:
        judging = _judging(member)
        if not (judging["type"] == "number" and judging.keys() <= _JUDGING):
            raise LookupError(f"{member} is judged by {', '.join(judging)}")
        bounds = {"ge": judging.get("minimum"), "le": judging.get("maximum")}
        return Annotated[float, Meta(**bounds)] if any(bound is not None for bound in bounds.values()) else float
    if member == "subject_kind" or member in STATE_MEASURES:
        return Literal[tuple(_judging(member)["enum"])]
    return str


def _judging(member: str) -> dict[str, Any]:
    """Keywords that the schema judges a member of a sample by."""
    definitions = schema.document()["$defs"]
    (reference,) = _without_words(definitions["Sample"]["properties"][member]).values()
    return _without_words(definitions[str(reference).rpartition("/")[2]])


def _without_words(definition: Mapping[str, Any]) -> dict[str, Any]:
    return {
        word: value
        for word, value in definition.items()
        if word not in _DESCRIPTIVE_KEYWORDS and not word.startswith("x-")
    }


PIECE = 256 * 1024
"""Bytes of a large body that are read at once."""

_BEGINNING = re.compile(rb'"samples"\s*:\s*\[')
_BETWEEN = re.compile(rb"(?<=})\s*,\s*(?={)")

_lately: deque[SampleForm] = deque(maxlen=2)
"""Forms that samples had lately: those that come next are likely to be of one of them."""

Numbers = Mapping[SubjectKey, int]
ReceptionOf = Callable[[int | None], Reception]


@dataclass(frozen=True, slots=True)
class BulkRequest:
    """A bulk request that was read.

    Attributes:
        atomic: Whether one bad item keeps the others out.
        items: How many it has.
        result: What can be taken and what cannot.
    """

    atomic: bool
    items: int
    result: IngestResult


def take_at_once(body: bytes, max_batch: int, numbers: Numbers, reception_of: ReceptionOf) -> BulkRequest | None:
    """What :func:`take` gives, or None where that needs a closer look, which may take a hundred times as long.

    Raises:
        ProblemException: payload-too-large.
    """
    try:
        requests.check_values(body)
        return _take_at_once(body, max_batch, numbers, reception_of)
    except requests.TooManyValuesError as error:
        raise ProblemException("payload-too-large", str(error)) from error
    except (UnfitError, orjson.JSONDecodeError):
        return None


_one_pass = threading.Lock()
"""Held while a large body is read in one pass. Two at a time would take as long as one after the other, since they
share the interpreter; and the writer, for which all of them wait, would have to get it back from each of them."""


def take(body: bytes, max_batch: int, numbers: Numbers, reception_of: ReceptionOf) -> BulkRequest:
    """Read the body of a bulk request, judge and sort its items.

    Args:
        body: A SampleBatch, it is hoped.
        max_batch: Most items.
        numbers: Numbers of the registered subjects.
        reception_of: Gives the reception of something whose sender's clock showed so many milliseconds, if it told.

    Raises:
        ProblemException: malformed-json, invalid-body or payload-too-large, for the request as a whole.
    """
    with _one_pass if len(body) > PIECE else nullcontext():
        taken = take_at_once(body, max_batch, numbers, reception_of)
    if taken is None:
        batch = read_batch(body, max_batch)
        return BulkRequest(batch.atomic, len(batch.samples), _sort(batch, numbers, reception_of(batch.sent)))
    return taken


def _take_at_once(body: bytes, max_batch: int, numbers: Numbers, reception_of: ReceptionOf) -> BulkRequest:
    shell, pieces = _open(body)
    if not schema.is_valid("SampleBatch", shell):
        raise UnfitError
    sent = shell.get("sent_at")
    sorting = _BlockBuilder(numbers, reception_of(None if sent is None else read_instant(sent, "/sent_at")))
    members = len(shell) + 2 * ("sent_at" in shell)
    for piece in pieces:
        columns = _decode(piece)
        sorting.add(columns)
        if sorting.items > max_batch:
            raise UnfitError
        members += columns.members + 2 * len(columns)
    # In the strings of a valid batch colons stand only in instants, two in each. Unless a string is written with
    # escapes, more colons than members and instants explain are those of members that stand twice.
    if b"\\" in body or body.count(b":") != members:
        raise UnfitError
    return BulkRequest(shell["mode"] == "atomic", sorting.items, sorting.result())


def _open(body: bytes) -> tuple[dict[str, Any], Iterator[bytes]]:
    """All but the samples of a batch, with one example in their place, and the samples as arrays of JSON.

    What is cut out between the brackets of an array and reads as items of an array is just that.
    """
    beginning, end = _BEGINNING.search(body), body.rfind(b"]")
    if beginning is None or end < beginning.end():
        raise UnfitError
    shell = orjson.loads(body[: beginning.end()] + orjson.dumps(EXAMPLE) + body[end:])
    return shell, _cut(body, beginning.end(), end)


def _cut(body: bytes, start: int, end: int) -> Iterator[bytes]:
    while True:
        gap = _BETWEEN.search(body, start + PIECE, end)
        until = end if gap is None else gap.start()
        yield b"[" + body[start:until] + b"]"
        if gap is None:
            return
        start = gap.end()


def _decode(piece: bytes) -> Columns:
    """Samples of an array of JSON.

    Raises:
        UnfitError: It holds something else, or may do so.
    """
    for form in tuple(_lately):
        try:
            return form.decode(piece)
        except UnfitError:
            continue
    samples = orjson.loads(piece)
    if set(map(type, samples)) != {dict}:
        raise UnfitError
    shapes = set(map(frozenset, samples))
    common = frozenset.intersection(*shapes)
    form = sample_form(common, frozenset.union(*shapes) - common)
    columns = form.decode(piece)
    _lately.appendleft(form)
    return columns


class _BlockBuilder:
    """Samples on their way into blocks.

    Attributes:
        items: How many samples there were so far.
    """

    def __init__(self, numbers: Numbers, reception: Reception) -> None:
        self.items = 0
        self._numbers = numbers
        self._moments: dict[str, int] = {}
        self._untimely: dict[str, ProblemException] = {}
        self._parts: dict[tuple[str, ...], list[Block]] = {}
        self._done = IngestResult(reception)

    def add(self, columns: Columns) -> None:
        """Sort more samples.

        Raises:
            UnfitError: One of them may not be valid.
        """
        self._judge(set(columns.instants) - self._moments.keys() - self._untimely.keys())
        refused: Mapping[int, ProblemException] = {}
        try:
            numbers = list(map(self._numbers.__getitem__, _keys(columns)))
            moments = list(map(self._moments.__getitem__, columns.instants))
        except KeyError:
            refused = dict(self._refusals(columns))
            numbers = [self._numbers.get(key, 0) for key in _keys(columns)]
            moments = [self._moments.get(text, 0) for text in columns.instants]
        for measures, places in columns.shapes().items():
            stated: tuple[Sequence[Any], ...] = (numbers, moments, *(columns.measures[name] for name in measures))
            if refused or len(places) < len(columns):
                taken = [place for place in places if place not in refused]
                stated = tuple([column[place] for place in taken] for column in stated)
            self._parts.setdefault(measures, []).append(Block.of_columns(measures, *stated))
        self._done.rejected += ((self.items + place, problem) for place, problem in refused.items())
        self.items += len(columns)

    def result(self) -> IngestResult:
        """What became of them."""
        self._done.blocks = list(map(Block.joined, self._parts.values()))
        self._done.accepted = self.items - len(self._done.rejected)
        return self._done

    def _judge(self, instants: AbstractSet[str]) -> None:
        """Read instants that have not come before.

        Raises:
            UnfitError: One of them is none.
        """
        if instants and not schema.are_valid("Sample", "observed_at", list(instants)):
            raise UnfitError
        for text in instants:
            try:
                self._moments[text] = _moment(text, self._done.reception)
            except ProblemException as problem:
                self._untimely[text] = problem

    def _refusals(self, columns: Columns) -> Iterator[tuple[int, ProblemException]]:
        """Which samples cannot be taken, and why."""
        for place, key in enumerate(_keys(columns)):
            if key not in self._numbers:
                yield place, _unknown_subject(key, self._numbers)
            elif (untimely := self._untimely.get(columns.instants[place])) is not None:
                yield place, untimely


def _sort(batch: Batch, numbers: Numbers, reception: Reception) -> IngestResult:
    """Sort samples one by one."""
    done = IngestResult(reception)
    rows: dict[tuple[str, ...], list[Sequence[Any]]] = {}
    for index, sample in enumerate(batch.samples):
        if index in batch.broken:
            done.reject(index, batch.broken[index])
            continue
        measures = tuple(sorted(sample.keys() - ENVELOPE))
        key = (sample["subject_kind"], sample["subject"], sample.get("device"))
        try:
            if key not in numbers:
                raise _unknown_subject(key, numbers)
            moment = _moment(sample["observed_at"], reception)
        except ProblemException as problem:
            done.reject(index, problem)
            continue
        row = (numbers[key], moment, *(_column_value(sample[name]) for name in measures))
        rows.setdefault(measures, []).append(row)
        done.accepted += 1
    done.blocks = [Block.of_rows(measures, rows_of) for measures, rows_of in rows.items()]
    return done


def _keys(columns: Columns) -> Iterator[SubjectKey]:
    return zip(columns.kinds, columns.subjects, columns.devices, strict=True)


def _moment(text: str, reception: Reception) -> int:
    """An instant that has the form of the schema, corrected.

    Raises:
        ProblemException: invalid-body, clock-skew or too-old.
    """
    return reception.instant(read_instant(text, "/observed_at"))


def _column_value(value: Any) -> float | str:
    """A measure as the table keeps it; a number is a double, also where it is written as an integer of more bits."""
    if isinstance(value, dict):
        return orjson.dumps(value).decode()
    return float(value) if isinstance(value, int) else value


def _unknown_subject(key: SubjectKey, numbers: Numbers) -> ProblemException:
    """Why there is no such subject.

    Raises:
        UnfitError: Nor could there be.
    """
    kind, name, device = key
    stated = EXAMPLE | {"subject": name, "subject_kind": kind} | ({} if device is None else {"device": device})
    if not schema.is_valid("Sample", stated):
        raise UnfitError
    if kind == DEVICE and ("node", name, None) in numbers:
        return unknown_reference("/device", f"the node {name!r} has no device {device!r}")
    return unknown_reference("/subject", f"no {'node' if kind == DEVICE else kind} {name!r} is registered")


Feed = Callable[[Sequence[Block], int], None]
"""What is told of samples once they are durable, with when they were received in milliseconds."""

ConflictFeed = Callable[[str, str, float], None]
"""What is told that two sources report as a node: its name, what shows that, and how many seconds before the page was
received that was last seen."""


@dataclass(frozen=True, slots=True)
class StoreSamples:
    """Write samples and give an answer that was made beforehand.

    Attributes:
        blocks: The samples.
        received: When they were received, in milliseconds.
        answer: What the sender is told once they are durable.
        feed: Who else is told then.
    """

    blocks: Sequence[Block]
    received: int
    answer: Answer
    feed: Feed

    @property
    def weight(self) -> int:
        """Number of samples."""
        return sum(map(len, self.blocks))

    def apply(self, transaction: Transaction) -> Outcome[Answer]:
        """Have them written together with those of other requests."""
        transaction.put(Arrival(self.blocks, self.received))
        return Outcome(self.answer, committed=partial(self.feed, self.blocks, self.received))


MAX_EVIDENCE = 5
"""Signs of a second source that are named; a node with eight devices has dozens."""

OF_A_MEASURE = frozenset({"out-of-range", "contradictory-series"})
"""Problems of one measure, which leave the rest of its sample as it is."""


@dataclass(frozen=True, slots=True)
class StorePage:
    """Convert a page and write what it gives.

    Attributes:
        tenant: Whose the node is.
        node: Node that the page is about.
        numbers: Numbers of the tenant's subjects.
        exporter: Collection map of the exporter.
        page: Series of the page.
        observed: When it was made, by the sender's clock in milliseconds; None for the time of receipt.
        reception: When it was received.
        durability: What the answer promises.
        feed: Who is told of the samples once they are durable.
        conflicts: Who is told where two sources report as the node.
    """

    tenant: str
    node: str
    numbers: Mapping[SubjectKey, int]
    exporter: CollectionMap
    page: Sequence[Series]
    observed: int | None
    reception: Reception
    durability: str
    feed: Feed
    conflicts: ConflictFeed

    @property
    def weight(self) -> int:
        """About as many samples as a page gives."""
        return max(1, len(self.page) // 8)

    def apply(self, transaction: Transaction) -> Outcome[Answer]:
        """Convert and write."""
        connection = transaction.connection
        timely = [series for series in self.page if self.reception.fault(self._instant(series)) is None]
        conversion = self.exporter.convert(timely, self._instant, self._counters(connection), self._limits(connection))
        readings = conversion.readings
        used = conversion.used
        if len(timely) < len(self.page):
            late = [series for series in self.page if self.reception.fault(self._instant(series)) is not None]
            untimely = self.exporter.convert(late, self._instant, {})
            readings = readings + untimely.readings
            used += untimely.used
        done = self._sort(readings)
        done.warnings = [*self._unused(used), *_warnings(conversion, self.node)]
        blocks.write(connection, done.blocks, self.reception.received, transaction.sequence)
        self._keep(connection, conversion.counters)
        report = partial(self._report, done.blocks, conversion)
        return Outcome(Answer(200, done.result(self.durability)), committed=report)

    def _report(self, stored: Sequence[Block], conversion: Conversion) -> None:
        """Tell what is durable by now."""
        self.feed(stored, self.reception.received)
        if conversion.conflicted is not None:
            age = max(0, self.reception.received - conversion.conflicted) / 1000
            self.conflicts(self.node, _two_sources(conversion), age)

    def _instant(self, series: Series) -> int:
        """The line's own timestamp, else the page's, else the time of receipt; the sender's are corrected."""
        stated = self.observed if series.instant is None else series.instant
        return self.reception.received if stated is None else stated + self.reception.offset

    def _sort(self, readings: Sequence[Reading]) -> IngestResult:
        """What can be taken; a measure that cannot is refused by itself, under the index of its sample."""
        done = IngestResult(self.reception)
        rows: dict[tuple[str, ...], list[Sequence[Any]]] = {}
        for index, reading in enumerate(readings):
            number = self.numbers.get(self._subject(reading))
            problem = self.reception.fault(reading.observed)
            if number is None:
                problem = unknown_reference("", f"the node {self.node!r} has no device {reading.device!r}")
            if number is None or problem is not None:
                assert problem is not None
                done.reject(index, problem)
                continue
            for refusal in reading.refused:
                done.reject(index, refused_measure(reading, refusal))
            if not reading.measures:
                continue
            done.accepted += 1
            names = tuple(sorted(reading.measures))
            row = (number, reading.observed, *(reading.measures[name] for name in names))
            rows.setdefault(names, []).append(row)
        done.blocks = [Block.of_rows(names, rows_of) for names, rows_of in rows.items()]
        return done

    def _unused(self, used: int) -> list[IngestWarning]:
        """A page that the map takes nothing of may be another exporter's."""
        if used:
            return []
        detail = collection.why_unused(self.page, self.exporter, registers.indicators())
        return [IngestWarning(WarningKind.nothing_used, detail)]

    def _limits(self, connection: Connection) -> DeviceLimits:
        """What the devices of the node were registered with."""
        existing = select(resource.c.body).where(
            resource.c.tenant == self.tenant,
            resource.c.kind == NODE.name,
            resource.c.id == self.node,
            resource.c.valid_to.is_(None),
        )
        body = connection.execute(existing).scalar()
        devices = () if body is None else orjson.loads(body).get("devices", ())
        return {
            str(device["id"]): Limits(device.get("memory_capacity"), device.get("power_limit")) for device in devices
        }

    def _subject(self, reading: Reading) -> SubjectKey:
        return ("node" if reading.device is None else DEVICE, self.node, reading.device)

    def _counters(self, connection: Connection) -> Counters:
        stored = connection.execute(select(counter.c.state).where(*self._conditions())).scalar()
        existing = {} if stored is None else orjson.loads(stored)
        # Values that were infinite stand as null in what was written before they were left out.
        return {name: Known.from_wire(encoded) for name, encoded in existing.items() if encoded[1] is not None}

    def _keep(self, connection: Connection, counters: Counters) -> None:
        if not counters:
            return
        connection.execute(delete(counter).where(*self._conditions()))
        name = {"tenant": self.tenant, "node": self.node, "exporter": self.exporter.exporter.id}
        state = orjson.dumps({series: known.to_wire() for series, known in counters.items()}).decode()
        connection.execute(insert(counter).values(**name, state=state))

    def _conditions(self) -> list[ColumnElement[bool]]:
        return [
            counter.c.tenant == self.tenant,
            counter.c.node == self.node,
            counter.c.exporter == self.exporter.exporter.id,
        ]


def refused_measure(reading: Reading, refusal: Refusal) -> ProblemException:
    """Why a measure of a sample cannot be taken."""
    whom = f"device {reading.device!r}" if reading.device else "the node"
    detail = f"{refusal.measure} of {whom}: {refusal.reason}"
    return ProblemException(
        "contradictory-series" if refusal.contradictory else "out-of-range", detail, [Place(detail)]
    )


def _warnings(conversion: Conversion, node: str) -> list[IngestWarning]:
    """What the counters of a page tell beside their values."""
    result = []
    if conversion.alternating:
        detail = (
            f"two sources report as {node!r}: {_two_sources(conversion)}; "
            "their counters give nothing until that ends. Give each host an identifier of its own"
        )
        result.append(IngestWarning(WarningKind.identity_conflict, detail))
    if conversion.returned:
        detail = (
            f"{', '.join(conversion.returned)} of {node!r} went back to where it had been before it fell or leapt: "
            "what it showed in between was wrong, or another host reports under this identifier"
        )
        result.append(IngestWarning(WarningKind.counter_returned, detail))
    return result


def _two_sources(conversion: Conversion) -> str:
    """What shows that two sources report under one identity."""
    some = conversion.alternating[:MAX_EVIDENCE]
    more = len(conversion.alternating) - len(some)
    words = ", ".join(some) + (f" and {more} more" if more else "")
    return f"{words} {'goes' if len(conversion.alternating) == 1 else 'go'} to and fro between two histories"


@dataclass(frozen=True)
class StorePoints(StorePage):
    """Write the points of one node as a page, and keep in mind whose samples were refused and why."""

    refused: dict[tuple[int, str | None, str | None], str] = field(default_factory=dict)

    @override
    def _sort(self, readings: Sequence[Reading]) -> IngestResult:
        """As for a page; of a measure that is refused the points of its fields are, of a sample all."""
        done = super()._sort(readings)
        self.refused.clear()
        for index, problem in done.rejected:
            reading = readings[index]
            if problem.name not in OF_A_MEASURE:
                self.refused[reading.observed, reading.device, None] = problem.detail
        for reading in readings:
            for refusal in reading.refused:
                for name in refusal.fields:
                    reason = refused_measure(reading, refusal).detail
                    self.refused.setdefault((reading.observed, reading.device, name), reason)
        return done

    @override
    def _unused(self, used: int) -> list[IngestWarning]:
        """Only points that the map takes come so far."""
        return []

    def refused_points(self) -> Counter[str]:
        """Points of the refused samples, by reason; known once the command has been applied."""
        result: Counter[str] = Counter()
        if not self.refused:
            return result
        assert isinstance(self.exporter, MetricsMap)
        for series in self.page:
            instant = self._instant(series)
            for subject in self.exporter.subjects(series):
                reason = self.refused.get((instant, subject, None)) or self.refused.get((instant, subject, series.name))
                if reason is not None:
                    result[reason] += 1
        return result


@dataclass(slots=True)
class StoreMetrics:
    """Write what a request gives, and answer in its form.

    Attributes:
        nodes: Points of each registered node.
        refused: Points that are of no registered node, by reason.
        left_out: Points of delta sums.
        media_type: Form of the answer.
        unused: Why no point of the request is used, where that is so.
        accepted: Samples that were taken; known once the command has been applied.
        rejected: Points that were not; known then, too.
    """

    nodes: Sequence[StorePoints]
    refused: Counter[str]
    left_out: int
    media_type: str
    unused: str | None = None
    accepted: int = 0
    rejected: int = 0

    @property
    def weight(self) -> int:
        """That of the pages."""
        return max(1, sum(node.weight for node in self.nodes))

    def apply(self, transaction: Transaction) -> Outcome[Answer]:
        """Convert and write."""
        refused = Counter(self.refused)
        self.accepted = 0
        report: list[Callable[[], None]] = []
        warnings: list[str] = []
        for node in self.nodes:
            outcome = node.apply(transaction)
            result = orjson.loads(outcome.result.body)
            self.accepted += result["accepted"]
            warnings += [warning["detail"] for warning in result.get("warnings", ())]
            refused += node.refused_points()
            if outcome.committed is not None:
                report.append(outcome.committed)
        return Outcome(self.answer(refused, warnings), committed=partial(_tell, report))

    def answer(self, refused: Counter[str], warnings: Sequence[str] = ()) -> Answer:
        """The answer that counts these points as refused."""
        self.rejected = refused.total()
        words = [*warnings, *([] if self.unused is None else [self.unused])]
        return Answer(200, otlp.answer(self.media_type, refused, self.left_out, words))


def _tell(listeners: Sequence[Callable[[], None]]) -> None:
    for tell in listeners:
        tell()
