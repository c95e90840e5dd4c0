"""Bulk ingest in one pass: from the bytes of a request to the blocks that go to the writer.

This is the hot path, and no object is made for a sample. What samples have in common is judged once, while they are
sorted: a subject that is registered has a valid name, an instant is judged when it first comes, members when their set
first comes, measures column by column. A large body is read piece by piece, so that what is in hand stays in the
processor's cache, and nobody waits for Python's lock until all of it is parsed. As soon as anything is found that may
not be valid, the request is begun anew by the careful way of :mod:`kuayu.service.ingest`, which says what is wrong.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import orjson

from kuayu.service import columns, ingest, strict_json
from kuayu.service.ingest import EXAMPLE, Reception, Sorted
from kuayu.service.problems import ProblemException, unknown_reference
from kuayu.service.storage.blocks import Block
from kuayu.service.storage.catalogue import DEVICE, SubjectKey
from kuayu.service.storage.tables import MEASURES, PRECISION_MEASURES
from kuayu_schemas import schema

PIECE = 256 * 1024
"""Bytes of a large body that are read at once."""

_ENVELOPE = {"subject", "subject_kind", "device", "observed_at"}
_MEASURES = frozenset(MEASURES)

_BEGINNING = re.compile(rb'"samples"\s*:\s*\[')
_BETWEEN = re.compile(rb"(?<=})\s*,\s*(?={)")

Sample = Mapping[str, Any]
Getter = Callable[[Sample], tuple[Any, ...]]


class _DoubtfulError(Exception):
    """Something in a request may not be valid."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A bulk request that was read.

    Attributes:
        atomic: Whether one bad item keeps the others out.
        items: How many it has.
        result: What can be taken and what cannot.
    """

    atomic: bool
    items: int
    result: Sorted


def take_at_once(
    body: bytes, max_batch: int, numbers: Mapping[SubjectKey, int], reception_of: Callable[[int | None], Reception]
) -> Taken | None:
    """What :func:`take` gives, or None where that needs a closer look, which may take a hundred times as long.

    Raises:
        ProblemException: payload-too-large.
    """
    try:
        strict_json.check_values(body)
        return _take_at_once(body, max_batch, numbers, reception_of)
    except strict_json.TooManyValuesError as error:
        raise ProblemException("payload-too-large", str(error)) from error
    except (_DoubtfulError, TypeError, orjson.JSONDecodeError):  # TypeError: something is an object that should not be
        return None


def take(
    body: bytes, max_batch: int, numbers: Mapping[SubjectKey, int], reception_of: Callable[[int | None], Reception]
) -> Taken:
    """Read the body of a bulk request, judge and sort its items.

    Args:
        body: A SampleBatch, it is hoped.
        max_batch: Most items.
        numbers: Numbers of the registered subjects.
        reception_of: Gives the reception of something whose sender's clock showed so many milliseconds, if it told.

    Raises:
        ProblemException: malformed-json, invalid-body or payload-too-large, for the request as a whole.
    """
    taken = take_at_once(body, max_batch, numbers, reception_of)
    if taken is None:
        batch = ingest.read_batch(body, max_batch)
        sorting = _Sorting(numbers, reception_of(batch.sent), batch.broken)
        sorting.add(batch.samples)
        return Taken(batch.atomic, len(batch.samples), sorting.result())
    return taken


def _take_at_once(
    body: bytes, max_batch: int, numbers: Mapping[SubjectKey, int], reception_of: Callable[[int | None], Reception]
) -> Taken:
    shell, pieces = _open(body)
    if not schema.is_valid("SampleBatch", shell):
        raise _DoubtfulError
    sent = shell.get("sent_at")
    sorting = _Sorting(numbers, reception_of(None if sent is None else ingest.read_instant(sent, "/sent_at")), {})
    members = len(shell) + 2 * ("sent_at" in shell)
    for samples in pieces:
        if set(map(type, samples)) != {dict}:
            raise _DoubtfulError
        sorting.add(samples)
        if sorting.items > max_batch:
            raise _DoubtfulError
        members += sum(map(len, samples)) + 2 * len(samples)
    result = sorting.result()
    # In the strings of a valid batch colons stand only in instants, two in each. Unless a string is written with
    # escapes, more colons than members and instants explain are those of members that stand twice.
    if b"\\" in body or body.count(b":") != members + sorting.nested:
        raise _DoubtfulError
    return Taken(shell["mode"] == "atomic", sorting.items, result)


def _open(body: bytes) -> tuple[dict[str, Any], Iterable[Sequence[Sample]]]:
    """All but the samples of a batch, with one example in their place, and the samples in pieces.

    What is cut out between the brackets of an array and reads as items of an array is just that.
    """
    beginning = _BEGINNING.search(body) if len(body) > PIECE else None
    end = body.rfind(b"]")
    if beginning is not None and end > 0:
        shell = orjson.loads(body[: beginning.end()] + orjson.dumps(EXAMPLE) + body[end:])
        return shell, _cut(body, beginning.end(), end)
    value = orjson.loads(body)
    if not isinstance(value, dict) or not isinstance(value.get("samples"), list):
        raise _DoubtfulError
    return value | {"samples": [EXAMPLE]}, [value["samples"]]


def _cut(body: bytes, start: int, end: int) -> Iterator[Sequence[Sample]]:
    while True:
        gap = _BETWEEN.search(body, start + PIECE, end)
        until = end if gap is None else gap.start()
        yield orjson.loads(b"[" + body[start:until] + b"]")
        if gap is None:
            return
        start = gap.end()


@dataclass(frozen=True, slots=True)
class _Shape:
    """How samples with the same members in the same order become rows.

    Attributes:
        getter: Takes the measures out of a sample, in the form that the table keeps them in.
        extend: Appends values to the block.
        device: Whether the samples name a device.
        tables: Measures that are tables; the schema judges each sample that has any.
    """

    getter: Getter
    extend: Callable[[Iterable[Any]], None]
    device: bool
    tables: tuple[str, ...]


class _Sorting:
    """Samples on their way into blocks.

    Attributes:
        items: How many samples there were so far.
        nested: How many members the tables in them have.
    """

    def __init__(
        self, numbers: Mapping[SubjectKey, int], reception: Reception, broken: Mapping[int, ProblemException]
    ) -> None:
        self.items = 0
        self.nested = 0
        self._numbers = numbers
        self._broken = broken
        self._moments: dict[str, int] = {}
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._blocks: dict[tuple[str, ...], Block] = {}
        self._done = Sorted(reception)

    def add(self, samples: Sequence[Sample]) -> None:
        """Sort more samples."""
        numbers, moments, shapes, broken = self._numbers, self._moments, self._shapes, self._broken
        for index, sample in enumerate(samples, self.items):
            if index in broken:
                self._done.reject(index, broken[index])
                continue
            members = tuple(sample)
            shape = shapes.get(members) or self._learn(members)
            device = sample.get("device")
            number = numbers.get((sample["subject_kind"], sample["subject"], device))
            moment = moments.get(sample["observed_at"])
            if number is None or moment is None or shape.tables or shape.device is (device is None):
                try:
                    number, moment = self._look_closely(sample, number)
                except ProblemException as problem:
                    self._done.reject(index, problem)
                    continue
                self.nested += sum(len(sample[name]) for name in shape.tables)
            shape.extend((number, moment))
            shape.extend(shape.getter(sample))
        self.items += len(samples)

    def result(self) -> Sorted:
        """What became of them, once their measures are judged."""
        if not all(map(columns.are_valid, self._blocks.values())):
            raise _DoubtfulError
        self._done.blocks = list(self._blocks.values())
        self._done.accepted = self.items - len(self._done.rejected)
        return self._done

    def _learn(self, members: tuple[str, ...]) -> _Shape:
        """Note a shape that was not seen before."""
        names = set(members)
        measures = tuple(sorted(names - _ENVELOPE))
        if not (EXAMPLE.keys() <= names and _MEASURES.issuperset(measures)):
            raise _DoubtfulError
        block = self._blocks.setdefault(measures, Block(measures))
        tables = tuple(name for name in measures if name in PRECISION_MEASURES)
        shape = self._shapes[members] = _Shape(_getter(measures), block.values.extend, "device" in names, tables)
        return shape

    def _look_closely(self, sample: Sample, number: int | None) -> tuple[int, int]:
        """Number and instant of a sample that shows something new or may not be taken.

        Raises:
            ProblemException: unknown-reference, clock-skew or too-old.
        """
        if not schema.is_valid("Sample", sample):
            raise _DoubtfulError
        if number is None:
            raise _unknown_subject(sample, self._numbers)
        text = sample["observed_at"]
        moment = self._done.reception.instant(ingest.read_instant(text, "/observed_at"))
        self._moments[text] = moment
        return number, moment


def _getter(measures: tuple[str, ...]) -> Getter:
    if PRECISION_MEASURES.isdisjoint(measures) and len(measures) > 1:
        return itemgetter(*measures)
    return lambda sample: tuple(_column(sample[name]) for name in measures)


def _column(value: Any) -> float | str:
    return orjson.dumps(value).decode() if isinstance(value, dict) else value


def _unknown_subject(sample: Sample, numbers: Mapping[SubjectKey, int]) -> ProblemException:
    kind, name, device = sample["subject_kind"], sample["subject"], sample.get("device")
    if kind == DEVICE and ("node", name, None) in numbers:
        return unknown_reference("/device", f"the node {name!r} has no device {device!r}")
    return unknown_reference("/subject", f"no {'node' if kind == DEVICE else kind} {name!r} is registered")
