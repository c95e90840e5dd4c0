"""JSON as the standard takes it, and the keywords of JSON Schema 2020-12 that the published schemas use."""

import json
import math
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from typing import Any

DEEPEST = 64
"""Levels to which objects and arrays may be nested."""

STRING_OR_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)

Error = tuple[str, str]
"""JSON Pointer to the place, and what is wrong there."""

TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
}


def parse(text: bytes) -> Any:
    """Read JSON as the standard takes it: UTF-8, finite numbers, no member twice, at most 64 levels.

    Whole numbers become ``int`` however they are written.

    Raises:
        ValueError: It is not; the message says why.
    """
    if _depth(text) > DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST} levels")
    value = json.loads(
        text.decode("utf-8"),
        object_pairs_hook=_members,
        parse_constant=_not_a_number,
        parse_float=_number,
        parse_int=_whole,
    )
    if b"\\u" in text:
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # refuses half of a surrogate pair
    return value


def _depth(text: bytes) -> int:
    deepest = depth = 0
    for token in STRING_OR_BRACKET.finditer(text):
        depth += (token[0] in b"[{") - (token[0] in b"]}")
        deepest = max(deepest, depth)
    return deepest


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member is given twice")
    return members


def _not_a_number(literal: str) -> None:
    raise ValueError(f"{literal} is not JSON")


def _whole(digits: str) -> float:
    return int(digits) if len(digits) < 19 else _number(digits)


def _number(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is beyond what a double holds")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


class Validator:
    """Finds what is wrong with a value, by the definitions of one schema document."""

    def __init__(self, document: dict[str, Any]) -> None:
        """Take a document with ``$defs``."""
        self.definitions: dict[str, Any] = document["$defs"]

    def errors(self, name: str, value: Any, *, without: str = "") -> list[Error]:
        """What is wrong with ``value`` as an instance of a class; items of the array ``without`` are not looked at."""
        schema = self.definitions[name]
        if without:
            array = {key: rule for key, rule in schema["properties"][without].items() if key != "items"}
            schema = {**schema, "properties": {**schema["properties"], without: array}}
        return list(self._check(schema, value, ""))

    def _check(self, schema: dict[str, Any], value: Any, at: str) -> Iterator[Error]:
        if "type" in schema and not TYPES[schema["type"]](value):
            yield at, f"must be of type {schema['type']}"
            return
        for keyword, rule in schema.items():
            if keyword in ASSERTIONS and not ASSERTIONS[keyword](rule, value):
                yield at, f"must satisfy {keyword} {str(rule)[:200]}"
        yield from self._combined(schema, value, at)
        if isinstance(value, dict):
            yield from self._object(schema, value, at)
        if isinstance(value, list) and "items" in schema:
            for index, item in enumerate(value):
                yield from self._check(schema["items"], item, f"{at}/{index}")

    def _fits(self, schema: dict[str, Any], value: Any) -> bool:
        return next(self._check(schema, value, ""), None) is None

    def _combined(self, schema: dict[str, Any], value: Any, at: str) -> Iterator[Error]:
        if "$ref" in schema:
            yield from self._check(self.definitions[schema["$ref"].rpartition("/")[2]], value, at)
        for part in schema.get("allOf", ()):
            yield from self._check(part, value, at)
        if "if" in schema and self._fits(schema["if"], value):
            yield from self._check(schema.get("then", {}), value, at)
        if "anyOf" in schema and not any(self._fits(part, value) for part in schema["anyOf"]):
            yield at, "must be one of several forms and is none of them"
        if "not" in schema and self._fits(schema["not"], value):
            yield at, "must not be of this form"

    def _object(self, schema: dict[str, Any], value: dict[str, Any], at: str) -> Iterator[Error]:
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield at, f"member {name} is missing"
        for name, member in value.items():
            place = f"{at}/{name.replace('~', '~0').replace('/', '~1')}"
            if name in properties:
                yield from self._check(properties[name], member, place)
            elif schema.get("additionalProperties") is False:
                yield place, "member is not known"
            if "propertyNames" in schema and not self._fits(schema["propertyNames"], name):
                yield place, f"name must match {schema['propertyNames']}"


@cache
def _pattern(source: str) -> re.Pattern[str]:
    """A pattern of ECMA-262; its ``$`` is the very end, where Python's lets a line feed follow."""
    return re.compile(source.removesuffix("$") + r"\Z" if source.endswith("$") else source)


def is_instant(text: str) -> bool:
    """Whether the day exists; the pattern of the type has looked at the form."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _same(one: Any, other: Any) -> bool:
    """Equality of JSON, where true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


ASSERTIONS: dict[str, Callable[[Any, Any], bool]] = {
    "pattern": lambda rule, value: not isinstance(value, str) or _pattern(rule).search(value) is not None,
    "format": lambda rule, value: not isinstance(value, str) or rule != "date-time" or is_instant(value),
    "minLength": lambda rule, value: not isinstance(value, str) or len(value) >= rule,
    "maxLength": lambda rule, value: not isinstance(value, str) or len(value) <= rule,
    "minimum": lambda rule, value: not TYPES["number"](value) or value >= rule,
    "maximum": lambda rule, value: not TYPES["number"](value) or value <= rule,
    "minItems": lambda rule, value: not isinstance(value, list) or len(value) >= rule,
    "maxItems": lambda rule, value: not isinstance(value, list) or len(value) <= rule,
    "maxProperties": lambda rule, value: not isinstance(value, dict) or len(value) <= rule,
    "enum": lambda rule, value: any(_same(choice, value) for choice in rule),
    "const": _same,
}
