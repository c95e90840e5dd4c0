"""Bulk ingest in one pass: from the bytes of a request to the blocks that go to the writer.

This is the hot path: samples are decoded and validated at once, by types that are made for the members that they have,
and go on column by column. What samples have in common is judged once: a subject that is registered has a valid name,
and an instant is judged when it first comes. A large body is read piece by piece, so that what is in hand stays in the
processor's cache, and nobody waits for Python's lock until all of it is parsed. As soon as anything is found that may
not be valid, the request is begun anew by the careful way of :mod:`kuayu.service.ingest`, which says what is wrong.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import orjson

from kuayu.service import ingest, sample_forms, strict_json
from kuayu.service.ingest import EXAMPLE, Batch, Reception, Sorted
from kuayu.service.problems import ProblemException, unknown_reference
from kuayu.service.sample_forms import ENVELOPE, Columns, Form, UnfitError
from kuayu.service.storage.blocks import Block
from kuayu.service.storage.catalogue import DEVICE, SubjectKey
from kuayu_schemas import schema

PIECE = 256 * 1024
"""Bytes of a large body that are read at once."""

_BEGINNING = re.compile(rb'"samples"\s*:\s*\[')
_BETWEEN = re.compile(rb"(?<=})\s*,\s*(?={)")

_lately: deque[Form] = deque(maxlen=2)
"""Forms that samples had lately: those that come next are likely to be of one of them."""

Numbers = Mapping[SubjectKey, int]
ReceptionOf = Callable[[int | None], Reception]


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


def take_at_once(body: bytes, max_batch: int, numbers: Numbers, reception_of: ReceptionOf) -> Taken | None:
    """What :func:`take` gives, or None where that needs a closer look, which may take a hundred times as long.

    Raises:
        ProblemException: payload-too-large.
    """
    try:
        strict_json.check_values(body)
        return _take_at_once(body, max_batch, numbers, reception_of)
    except strict_json.TooManyValuesError as error:
        raise ProblemException("payload-too-large", str(error)) from error
    except (UnfitError, orjson.JSONDecodeError):
        return None


def take(body: bytes, max_batch: int, numbers: Numbers, reception_of: ReceptionOf) -> Taken:
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
        return Taken(batch.atomic, len(batch.samples), _sort(batch, numbers, reception_of(batch.sent)))
    return taken


def _take_at_once(body: bytes, max_batch: int, numbers: Numbers, reception_of: ReceptionOf) -> Taken:
    shell, pieces = _open(body)
    if not schema.is_valid("SampleBatch", shell):
        raise UnfitError
    sent = shell.get("sent_at")
    sorting = _Sorting(numbers, reception_of(None if sent is None else ingest.read_instant(sent, "/sent_at")))
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
    return Taken(shell["mode"] == "atomic", sorting.items, sorting.result())


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
    form = sample_forms.form(common, frozenset.union(*shapes) - common)
    columns = form.decode(piece)
    _lately.appendleft(form)
    return columns


class _Sorting:
    """Samples on their way into blocks.

    Attributes:
        items: How many samples there were so far.
    """

    def __init__(self, numbers: Numbers, reception: Reception) -> None:
        self.items = 0
        self._numbers = numbers
        self._moments: dict[str, int] = {}
        self._untimely: dict[str, ProblemException] = {}
        self._blocks: dict[tuple[str, ...], Block] = {}
        self._done = Sorted(reception)

    def add(self, found: Columns) -> None:
        """Sort more samples.

        Raises:
            UnfitError: One of them may not be valid.
        """
        self._judge(set(found.instants) - self._moments.keys() - self._untimely.keys())
        refused: Mapping[int, ProblemException] = {}
        try:
            numbers = list(map(self._numbers.__getitem__, _keys(found)))
            moments = list(map(self._moments.__getitem__, found.instants))
        except KeyError:
            refused = dict(self._refusals(found))
            numbers = [self._numbers.get(key, 0) for key in _keys(found)]
            moments = [self._moments.get(text, 0) for text in found.instants]
        for measures, places in found.shapes().items():
            block = self._blocks.setdefault(measures, Block(measures))
            columns = (numbers, moments, *(found.measures[name] for name in measures))
            if refused or len(places) < len(found):
                columns = tuple([column[place] for place in places if place not in refused] for column in columns)
            block.extend(*columns)
        self._done.rejected += ((self.items + place, problem) for place, problem in refused.items())
        self.items += len(found)

    def result(self) -> Sorted:
        """What became of them."""
        self._done.blocks = list(self._blocks.values())
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

    def _refusals(self, found: Columns) -> Iterator[tuple[int, ProblemException]]:
        """Which samples cannot be taken, and why."""
        for place, key in enumerate(_keys(found)):
            if key not in self._numbers:
                yield place, _unknown_subject(key, self._numbers)
            elif (untimely := self._untimely.get(found.instants[place])) is not None:
                yield place, untimely


def _sort(batch: Batch, numbers: Numbers, reception: Reception) -> Sorted:
    """Sort samples one by one."""
    done = Sorted(reception)
    made: dict[tuple[str, ...], Block] = {}
    for index, sample in enumerate(batch.samples):
        if index in batch.broken:
            done.reject(index, batch.broken[index])
            continue
        measures = tuple(sorted(sample.keys() - ENVELOPE))
        block = made.setdefault(measures, Block(measures))
        key = (sample["subject_kind"], sample["subject"], sample.get("device"))
        try:
            if key not in numbers:
                raise _unknown_subject(key, numbers)
            moment = _moment(sample["observed_at"], reception)
        except ProblemException as problem:
            done.reject(index, problem)
            continue
        block.add(numbers[key], moment, (_kept(sample[name]) for name in measures))
        done.accepted += 1
    done.blocks = list(made.values())
    return done


def _keys(found: Columns) -> Iterator[SubjectKey]:
    return zip(found.kinds, found.subjects, found.devices, strict=True)


def _moment(text: str, reception: Reception) -> int:
    """An instant that has the form of the schema, corrected.

    Raises:
        ProblemException: invalid-body, clock-skew or too-old.
    """
    return reception.instant(ingest.read_instant(text, "/observed_at"))


def _kept(value: Any) -> float | str:
    """A measure as the table keeps it."""
    return orjson.dumps(value).decode() if isinstance(value, dict) else value


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
