"""JSON as the standard takes it, and the keywords of JSON Schema 2020-12 that the published schemas use."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

DEEPEST = 64
"""Levels to which objects and arrays may be nested."""

Error = tuple[str, str]
"""JSON Pointer to the place, and what is wrong there."""

Check = Callable[[Any], Sequence[Error]]
"""What is wrong with a value, with pointers that begin at it; empty where nothing is."""

FINE: Sequence[Error] = ()

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "number": (int, float),
    "integer": (int,),
}
"""What a value of JSON is in Python; a boolean is no number, so the very class counts."""


def parse(text: bytes) -> Any:
    """Read JSON as the standard takes it: UTF-8, finite numbers, no member twice, at most 64 levels.

    Whole numbers become ``int`` however they are written.

    Raises:
        ValueError: It is not; the message says why.
    """
    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=_members, parse_constant=_not_a_number)
    except RecursionError:
        raise ValueError(f"nested deeper than {DEEPEST} levels") from None
    value = _plain([value], 0)[0]
    if b"\\u" in text:
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # refuses half of a surrogate pair
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member is given twice")
    return members


def _not_a_number(literal: str) -> None:
    raise ValueError(f"{literal} is not JSON")


def _plain(values: Any, depth: int) -> Any:
    """The items of an object or array that stands ``depth`` levels deep, with numbers as the standard has them."""
    if depth > DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST} levels")
    for place, value in values.items() if values.__class__ is dict else enumerate(values):
        kind = value.__class__
        if kind is float:
            if value.is_integer():
                values[place] = int(value) if abs(value) < 2**53 else value
            elif math.isinf(value):
                raise ValueError("a number is beyond what a double holds")
        elif kind is int:
            if not -(10**17) < value < 10**18:
                values[place] = _double(value)
        elif kind is dict or kind is list:
            _plain(value, depth + 1)
    return values


def _double(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError("a number is beyond what a double holds") from None


class Validator:
    """Finds what is wrong with a value, by the definitions of one schema document.

    Each definition becomes a function when it is first needed.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        """Take a document with ``$defs``."""
        self.definitions: dict[str, Any] = document["$defs"]
        self._checks: dict[tuple[str, str], Check] = {}

    def errors(self, name: str, value: Any, *, without: str = "") -> list[Error]:
        """What is wrong with ``value`` as an instance of a class; items of the array ``without`` are not looked at."""
        check = self._checks.get((name, without))
        if check is None:
            check = self._checks[name, without] = self._compiled(self._definition(name, without))
        return list(check(value))

    def _definition(self, name: str, without: str) -> dict[str, Any]:
        schema: dict[str, Any] = self.definitions[name]
        if without:
            array = {key: rule for key, rule in schema["properties"][without].items() if key != "items"}
            return {**schema, "properties": {**schema["properties"], without: array}}
        return schema

    def _compiled(self, schema: dict[str, Any]) -> Check:
        types = TYPES[schema["type"]] if "type" in schema else ()
        parts = [*_assertions(schema), *self._combined(schema)]
        if {"properties", "required", "additionalProperties", "propertyNames"} & schema.keys():
            parts.append(self._object(schema))
        if "items" in schema:
            parts.append(_items(self._compiled(schema["items"])))
        if not types and len(parts) == 1:
            return parts[0]
        wrong_type = [("", f"must be of type {schema.get('type')}")]
        if types and not parts:
            return lambda value: FINE if value.__class__ in types else wrong_type
        if types and len(parts) == 1:
            (only,) = parts
            return lambda value: only(value) if value.__class__ in types else wrong_type

        def check(value: Any) -> Sequence[Error]:
            if types and value.__class__ not in types:
                return wrong_type
            found = FINE
            for part in parts:
                more = part(value)
                if more:
                    found = [*found, *more]
            return found

        return check

    def _referred(self, name: str) -> Check:
        """The check of a definition; one that refers to itself finds its own when it is called."""
        key = name, ""
        if key in self._checks:
            return self._checks[key]
        self._checks[key] = lambda value: self._later(key, value)
        self._checks[key] = self._compiled(self.definitions[name])
        return self._checks[key]

    def _later(self, key: tuple[str, str], value: Any) -> Sequence[Error]:
        return self._checks[key](value)

    def _combined(self, schema: dict[str, Any]) -> list[Check]:
        checks = [self._referred(schema["$ref"].rpartition("/")[2])] if "$ref" in schema else []
        checks += [self._compiled(part) for part in schema.get("allOf", ())]
        if "if" in schema:
            condition, then = self._compiled(schema["if"]), self._compiled(schema.get("then", {}))
            checks.append(lambda value: FINE if condition(value) else then(value))
        if "anyOf" in schema:
            checks.append(_any_of([self._compiled(part) for part in schema["anyOf"]]))
        if "not" in schema:
            form, hit = self._compiled(schema["not"]), [("", "must not be of this form")]
            checks.append(lambda value: FINE if form(value) else hit)
        return checks

    def _object(self, schema: dict[str, Any]) -> Check:
        rules = {name: self._compiled(rule) for name, rule in schema.get("properties", {}).items()}
        required = tuple(schema.get("required", ()))
        closed = schema.get("additionalProperties") is False
        naming = self._compiled(schema["propertyNames"]) if "propertyNames" in schema else None

        def check(value: Any) -> Sequence[Error]:
            if value.__class__ is not dict:
                return FINE
            found = [("", f"member {name} is missing") for name in required if name not in value]
            members = value if closed or naming else rules.keys() & value.keys()
            for name in members:
                member = value[name]
                rule = rules.get(name)
                if rule is not None:
                    below = rule(member)
                    if below:
                        found += _within(name, below)
                elif closed:
                    found += _within(name, [("", "member is not known")])
                if naming is not None and naming(name):
                    found += _within(name, [("", f"name must match {schema['propertyNames']}")])
            return found

        return check


def _items(check: Check) -> Check:
    def items(value: Any) -> Sequence[Error]:
        if value.__class__ is not list:
            return FINE
        return [
            error for index, item in enumerate(value) if (below := check(item)) for error in _within(str(index), below)
        ]

    return items


def _any_of(forms: Sequence[Check]) -> Check:
    none = [("", "must be one of several forms and is none of them")]

    def any_of(value: Any) -> Sequence[Error]:
        for form in forms:  # a loop is quicker than `any`, and this is asked of every number
            if not form(value):
                return FINE
        return none

    return any_of


def _within(name: str, errors: Sequence[Error]) -> list[Error]:
    """The errors of a member or an item, as seen from what holds it."""
    step = "/" + name.replace("~", "~0").replace("/", "~1")
    return [(step + pointer, detail) for pointer, detail in errors]


def _assertions(schema: Mapping[str, Any]) -> list[Check]:
    return [
        ASSERTIONS[keyword](rule, [("", f"must satisfy {keyword} {str(rule)[:200]}")])
        for keyword, rule in schema.items()
        if keyword in ASSERTIONS
    ]


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


def _one_of(choices: Sequence[Any], wrong: Sequence[Error]) -> Check:
    """Equality of JSON with one of the choices, where true is not 1."""
    known = {json.dumps(choice, sort_keys=True) for choice in choices}
    texts = frozenset(choice for choice in choices if choice.__class__ is str)

    def check(value: Any) -> Sequence[Error]:
        is_one = value in texts if value.__class__ is str else json.dumps(value, sort_keys=True) in known
        return FINE if is_one else wrong

    return check


def _where(kinds: tuple[type, ...], fails: Callable[[Any], bool], wrong: Sequence[Error]) -> Check:
    """An assertion that speaks of values of some types only."""
    return lambda value: wrong if value.__class__ in kinds and fails(value) else FINE


TEXT, NUMBER, ARRAY, OBJECT = TYPES["string"], TYPES["number"], TYPES["array"], TYPES["object"]
ASSERTIONS: dict[str, Callable[[Any, Sequence[Error]], Check]] = {
    "pattern": lambda rule, wrong: _where(TEXT, lambda value: _pattern(rule).search(value) is None, wrong),
    "format": lambda rule, wrong: _where(TEXT if rule == "date-time" else (), lambda text: not is_instant(text), wrong),
    "minLength": lambda rule, wrong: _where(TEXT, lambda value: len(value) < rule, wrong),
    "maxLength": lambda rule, wrong: _where(TEXT, lambda value: len(value) > rule, wrong),
    "minimum": lambda rule, wrong: _where(NUMBER, lambda value: value < rule, wrong),
    "maximum": lambda rule, wrong: _where(NUMBER, lambda value: value > rule, wrong),
    "minItems": lambda rule, wrong: _where(ARRAY, lambda value: len(value) < rule, wrong),
    "maxItems": lambda rule, wrong: _where(ARRAY, lambda value: len(value) > rule, wrong),
    "maxProperties": lambda rule, wrong: _where(OBJECT, lambda value: len(value) > rule, wrong),
    "enum": _one_of,
    "const": lambda rule, wrong: _one_of([rule], wrong),
}
"""Makes the check of a keyword from its rule and from what to say where it fails."""
