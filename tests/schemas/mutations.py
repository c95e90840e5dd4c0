"""Examples changed in one place each: what a careless or hostile sender might write.

Each valid example of ``spec/examples`` is taken apart. Every member in turn is left out, doubled under another name,
and replaced by values of every JSON type, by its own bounds and what lies just beyond them, by near-instants, and by
texts of the greatest length and one more. Whether a mutant is still valid is not said here: the parties that judge it
have to agree.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
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
    """Body to be judged as an instance of ``class_name``, and how it came about."""

    class_name: str
    origin: str
    body: bytes


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
RAW_JSON = tuple(
    map(RawJson, ("1e400", "-1e400", '"\\ud800"', '"\\ud83d\\ude00"', "3.00", "30e-1", "1E0", "NaN", "-Infinity"))
)


def examples(verdict: str) -> list[tuple[str, Path]]:
    """Class and file of each hand-written example of one kind: ``valid``, ``invalid`` or ``edge``."""
    return [(path.parent.parent.name, path) for path in sorted(EXAMPLES.glob(f"*/{verdict}/*.json"))]


def mutated_examples(class_names: Collection[str] | None = None) -> Iterator[Mutant]:
    """All mutants of the valid examples, of the given classes only where they are given; always in the same order."""
    for class_name, path in examples("valid"):
        if class_names is None or class_name in class_names:
            for what, value in _mutations(class_name, json.loads(path.read_bytes())):
                yield Mutant(class_name, f"{class_name}/{path.stem}: {what}", _write(value))


def _mutations(class_name: str, example: Any) -> Iterator[tuple[str, Any]]:
    for value in OTHER_TYPES:
        yield f"whole body := {value!r}", value
    for place in _places(example):
        pointer = "".join(f"/{step}" for step in place)
        rule = _rule_at(class_name, place)
        if place:
            yield f"{pointer} left out", _without(example, place)
            for value in [*_replacements(rule), *RAW_JSON]:
                yield f"{pointer} := {str(value)[:40]!r}", _with(example, place, value)
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


def _places(value: Any, place: Place = ()) -> Iterator[Place]:
    yield place
    children = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for step, child in children:
        yield from _places(child, (*place, step))


def _rule_at(class_name: str, place: Place) -> dict[str, Any]:
    """What the published schema says about a place: its keywords with those of what it refers to."""
    definitions = schema.document()["$defs"]

    def resolved(rule: dict[str, Any]) -> dict[str, Any]:
        return {**definitions[rule["$ref"].rpartition("/")[2]], **rule} if "$ref" in rule else rule

    rule = definitions[class_name]
    for step in place:
        rule = resolved(rule.get("items", {}) if isinstance(step, int) else rule.get("properties", {}).get(step, {}))
    return rule


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
