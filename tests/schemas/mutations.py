"""Examples changed in one place each: what a careless or hostile sender might write.

Each valid example of ``spec/examples`` is taken apart. Every member in turn is left out, doubled under another name,
and replaced by values of every JSON type, by its own bounds and what lies just beyond them, by near-instants, and by
texts of the greatest length and one more. Whether a mutant is still valid is not said here: the parties that judge it
have to agree.

A place is changed in all these ways where it is the first of its kind: the first of its member of its definition, in an
object with the same other members. At others, such as the identifier of a device in the tenth class that lists devices,
a few changes show that the same definition is looked up there.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kuayu_schemas import schema

EXAMPLES = Path(__file__).parents[2] / "spec" / "examples"

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class RawJson:
    """JSON text that `json.dumps` would never write."""

    text: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """Value to be judged as an instance of ``class_name``, and how it came about; its body is written on demand."""

    class_name: str
    origin: str
    value: Any

    @property
    def body(self) -> bytes:
        """The value as it is sent."""
        return _write(self.value)


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place in an example, what the published schema says of it, and what it has in common with others."""

    place: Place
    rule: dict[str, Any]
    kind: tuple[object, ...]


OTHER_TYPES = (None, True, False, 0, -1, 1, 3.0, 3.5, "", "3", "true", "null", [], [None], {}, {"a": 1})
NUMBERS = (1e-320, -0.0, 0.5, 1.0000001, 1e308, 2**53 - 1, 2**53, -(2**53), 1e15, 10**30, 10**400)
TEXTS = (
    "x",
    "a b",
    "a\n",
    " a",
    "a/b",
    "/a/~0~1",
    "~2",
    "\0",
    "中文",
    "😀" * 2048,
    "x" * 2049,
    "a" * 128,
    "a" * 129,
    "_a",
    "Ａ",
    "unknown",
    "HEALTHY",
    "not-applicable",
    "http://example.org/metrics",
    "urn:kuayu:node:authority:name",
    "urn:kuayu:host:authority:name",
    "sha256:" + "0" * 64,
    "sha256:" + "A" * 64,
)
INSTANTS = (
    "2026-11-21T08:30:00Z",
    "2026-11-21T08:30:00.5Z",
    "2026-11-21T08:30:00.123Z",
    "2026-11-21T08:30:00.1234Z",
    "2026-11-21T08:30:00.Z",
    "2026-11-21T08:30:00",
    "2026-11-21T08:30:00+00:00",
    "2026-11-21T08:30:00z",
    "2026-11-21t08:30:00Z",
    "2026-11-21 08:30:00Z",
    "2026-11-21T24:00:00Z",
    "2026-11-21T08:30:60Z",
    "2016-12-31T23:59:60Z",
    "2026-02-29T08:30:00Z",
    "2028-02-29T08:30:00Z",
    "2026-04-31T08:30:00Z",
    "2026-11-21",
    "0000-01-01T00:00:00Z",
    "0999-12-31T00:00:00Z",
    "1000-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999Z",
    "1795249800",
)
WHEREVER = (None, {"a": 1})
"""What a place becomes whose kind has been seen: nothing has this value, so that what is said of the place is asked."""
RAW_JSON = tuple(
    map(RawJson, ("1e400", "-1e400", '"\\ud800"', '"\\ud83d\\ude00"', "3.00", "30e-1", "1E0", "NaN", "-Infinity"))
)


def examples(verdict: str) -> list[tuple[str, Path]]:
    """Class and file of each hand-written example of one kind: ``valid``, ``invalid`` or ``edge``."""
    return [(path.parent.parent.name, path) for path in sorted(EXAMPLES.glob(f"*/{verdict}/*.json"))]


def mutated_examples(class_names: Collection[str] | None = None) -> Iterator[Mutant]:
    """All mutants of the valid examples, of the given classes only where they are given; always in the same order."""
    known: set[tuple[object, ...]] = set()
    for class_name, path in examples("valid"):
        if class_names is None or class_name in class_names:
            for what, value in _mutations(class_name, json.loads(path.read_bytes()), known):
                yield Mutant(class_name, f"{class_name}/{path.stem}: {what}", value)


def _mutations(class_name: str, example: Any, known: set[tuple[object, ...]]) -> Iterator[tuple[str, Any]]:
    for value in OTHER_TYPES:
        yield f"whole body := {value!r}", value
    for spot in _spots(class_name, example):
        place, rule = spot.place, spot.rule
        first = spot.kind not in known
        known.add(spot.kind)
        pointer = "".join(f"/{step}" for step in place)
        if place:
            yield f"{pointer} left out", _without(example, place)
            for value in [*_replacements(rule), *RAW_JSON] if first else WHEREVER:
                yield f"{pointer} := {str(value)[:40]!r}", _with(example, place, value)
        if not first:
            continue
        here = _at(example, place)
        if isinstance(here, dict):
            yield from ((f"{pointer} {what}", _with(example, place, value)) for what, value in _wider(here, rule))
        elif isinstance(here, list):
            yield from ((f"{pointer} {what}", _with(example, place, value)) for what, value in _longer(here, rule))


def _replacements(rule: dict[str, Any]) -> list[Any]:
    values: list[Any] = [*OTHER_TYPES, *rule.get("enum", ())]
    if rule.get("type") in {"number", "integer"}:
        ends = [rule[end] for end in ("minimum", "maximum") if end in rule]
        values += [*NUMBERS, *ends, *(end + step for end in ends for step in (-1, -0.001, 0.001, 1))]
    if rule.get("type") == "string":
        values += [*TEXTS, *INSTANTS]
    return values


def _wider(members: dict[str, Any], rule: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in ("unforeseen", "", "$ref", "__proto__", "model_config", "org.example/fan-speed"):
        yield f"with a member {name!r} more", {**members, name: 1}
    for name, value in members.items():
        for other in (name.upper(), name + " ", name.replace("_", "-") + "-"):
            yield (
                f"with {name} named {other!r}",
                {**{key: kept for key, kept in members.items() if key != name}, other: value},
            )
    if "propertyNames" in rule:
        most = rule["maxProperties"]
        for count in (most, most + 1):
            yield f"with {count} members", {f"org.example/m{number}": number for number in range(count)}
        for key in (
            "org.example/",
            "/name",
            "name",
            "Org.example/name",
            "a/" + "n" * 64,
            "a/" + "n" * 65,
            ".a/b",
            "a./b",
            "a/b/c",
        ):
            yield f"with the key {key!r}", {key: None}
        for value in (None, [[]], {"deep": [1, {"deeper": None}]}, RawJson("1e400"), RawJson("-0.0"), 10**400):
            yield f"with the value {str(value)[:40]}", {"org.example/name": value}


def _longer(items: list[Any], rule: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "emptied", []
    yield "with null at the end", [*items, None]
    yield "in a list", [items]
    if items:
        yield "with an item twice", [*items, items[0]]
        for count in {rule.get("maxItems", 1), rule.get("maxItems", 1) + 1}:
            if count <= 2000:  # longer ones take long to write and show nothing else
                yield f"with {count} items", [items[0]] * count


def _spots(class_name: str, example: Any) -> Iterator[_Spot]:
    """The places of an example, of a list the first two items, each behind that which holds it."""
    definitions = schema.document()["$defs"]

    def below(value: Any, place: Place, rule: dict[str, Any], way: tuple[str, ...], around: object) -> Iterator[_Spot]:
        """From a place on; ``way`` leads to it from the last definition that was referred to."""
        yield _Spot(place, rule, (*way, around, _shape(value)))
        if "$ref" in rule:
            name = rule["$ref"].rpartition("/")[2]
            rule, way = {**definitions[name], **rule}, (name,)
        if isinstance(value, dict):
            shape = _shape(value)
            for name, child in value.items():
                yield from below(child, (*place, name), rule.get("properties", {}).get(name, {}), (*way, name), shape)
        elif isinstance(value, list):
            for index, item in enumerate(value[:2]):
                yield from below(item, (*place, index), rule.get("items", {}), (*way, "*"), None)

    yield from below(example, (), definitions[class_name], (class_name,), None)


def _shape(value: Any) -> object:
    """What rules of a definition tell apart: which members there are, of which type, and what enumerations say."""
    if isinstance(value, dict):
        return frozenset(
            (name, _shape(member) if not isinstance(member, dict) else dict) for name, member in value.items()
        )
    return value if isinstance(value, bool) or (isinstance(value, str) and value in _words()) else type(value)


@cache
def _words() -> frozenset[str]:
    """Every value of an enumeration of the schema."""
    rules = schema.document()["$defs"].values()
    return frozenset(value for rule in rules for value in rule.get("enum", ()) if isinstance(value, str))


def _at(value: Any, place: Place) -> Any:
    for step in place:
        value = value[step]
    return value


def _with(example: Any, place: Place, value: Any) -> Any:
    """The example with another value at a place; what lies beside the way there is shared with it."""
    if not place:
        return value
    changed = example.copy()
    changed[place[0]] = _with(example[place[0]], place[1:], value)
    return changed


def _without(example: Any, place: Place) -> Any:
    *way, last = place
    holder = _at(example, tuple(way)).copy()
    del holder[last]
    return _with(example, tuple(way), holder)


def _write(value: Any) -> bytes:
    literals: list[str] = []

    def mark(item: Any) -> str:
        literals.append(item.text)
        return "\ue000literal\ue000"

    text = json.dumps(value, ensure_ascii=False, default=mark)
    for literal in literals:
        text = text.replace('"\ue000literal\ue000"', literal, 1)
    return text.encode("utf-8")
