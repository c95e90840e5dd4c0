"""Samples decoded and validated in one pass, by msgspec, against types that are made from the published schema.

A type stands for samples with certain members. Names of subjects are plain strings in it: that they are registered, or
that they are valid, is for whoever decodes to see. Instants are strings as well, since one comes for many samples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import compress
from typing import Annotated, Any, Literal

import msgspec
import orjson
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import astuple

from kuayu.service.storage.tables import MEASURES, PRECISION_MEASURES, STATE_MEASURES
from kuayu_schemas import schema

NEEDED = frozenset({"subject", "subject_kind", "observed_at"})
"""Members that every sample has."""

ENVELOPE = NEEDED | {"device"}
"""Members that are no measures."""

_JUDGING = {"type", "minimum", "maximum"}
"""Keywords of the schema that a number is judged by here."""

_TELLING = {"title", "description"}
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
        found: dict[tuple[bool, ...], list[int]] = {}
        stated = ([value is not None for value in column] for column in self.measures.values())
        for place, marks in enumerate(zip(*stated, strict=True)):
            found.setdefault(marks, []).append(place)
        return {tuple(compress(self.measures, marks)): places for marks, places in found.items()}


class Form:
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
        made = msgspec.defstruct("Sample", fields, forbid_unknown_fields=True, gc=not self.tables)
        self._decoder: msgspec.json.Decoder[list[Struct]] = msgspec.json.Decoder(list[made])  # type: ignore[valid-type]

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
def form(common: frozenset[str], optional: frozenset[str]) -> Form:
    """The form of samples that have all of some members and may have some others.

    Raises:
        UnfitError: No valid samples are of such a form.
    """
    if not (common >= NEEDED and ENVELOPE.union(MEASURES) >= common | optional):
        raise UnfitError
    return Form(common, optional)


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
    return {word: value for word, value in definition.items() if word not in _TELLING and not word.startswith("x-")}
