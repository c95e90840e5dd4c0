"""JSON as the standard takes it: UTF-8, no NaN or infinities, no repeated member names, at most 64 levels deep.

orjson is strict on all but repeated names and depth. Both are looked at before a body counts as read: cheaply where
what was read, written again, can tell, else by the standard library's parser, which is slower but sees every member.
"""

import json
import re
from typing import Any, NoReturn

import numpy as np
import orjson

MAX_DEPTH = 64

MAX_VALUES = 2_000_000
"""Values that a text may hold. An empty object takes three bytes of a body, and two hundred in memory."""

_STRING = re.compile(rb'"(?>[^"\\]+|\\.)*+"', re.DOTALL)

COLON_IN_DISGUISE = b"\\u003"
"""What the escape of a colon begins with, in either case of its last digit."""

DEEP = b"\n" + MAX_DEPTH * b"  "
"""How a line begins, where orjson indents, inside so many objects and arrays."""


class MalformedJsonError(ValueError):
    """The bytes are not JSON as the standard takes it."""


class TooManyValuesError(ValueError):
    """The text holds more values than are made at once."""


def parse(body: bytes) -> Any:
    """Read a JSON text, whatever is in it.

    Raises:
        MalformedJsonError: It is not JSON as the standard takes it.
        TooManyValuesError: It has more than :data:`MAX_VALUES`; none of them was made.
    """
    value = parse_leniently(body)
    if _is_plain(value, body):
        return value
    try:
        json.loads(body, object_pairs_hook=_no_repetition, parse_constant=_no_constant)
    except RecursionError:
        raise MalformedJsonError(f"nested deeper than {MAX_DEPTH} levels") from None
    if _depth_exceeds(value, MAX_DEPTH):
        raise MalformedJsonError(f"nested deeper than {MAX_DEPTH} levels")
    return value


def parse_leniently(body: bytes) -> Any:
    """Read a JSON text that may still repeat member names or be nested too deeply.

    Raises:
        TooManyValuesError: It has more than :data:`MAX_VALUES`; none of them was made.
        MalformedJsonError: It is not UTF-8 JSON, or it holds NaN, an infinity or half of a surrogate pair.
    """
    check_values(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedJsonError(str(error)) from None


def check_values(body: bytes) -> None:
    """Look how many values a text may hold, before any is made.

    Raises:
        TooManyValuesError: More than :data:`MAX_VALUES`.
    """
    # A value takes two bytes at least, with the comma after it, so that most bodies need no look.
    if (
        len(body) > 2 * MAX_VALUES
        and _separators(body) > MAX_VALUES
        and _separators(_STRING.sub(b"", body)) > MAX_VALUES
    ):
        raise TooManyValuesError(f"more than {MAX_VALUES} values of JSON")


def _separators(body: bytes) -> int:
    text = np.frombuffer(body, dtype=np.uint8)  # several times faster than bytes count
    return sum(int(np.count_nonzero(text == character)) for character in b",[{")


def _is_plain(value: Any, body: bytes) -> bool:
    """Whether it is sure, without a look at every member, that no name stands twice and nothing is nested deeply.

    Of members with the same name one is read. Written again, the others and their colons are missing; colons in strings
    are there again, unless they came in another guise. Lines are indented by as many steps as something is nested.
    """
    if COLON_IN_DISGUISE in body:
        return False
    try:
        again = orjson.dumps(value, option=orjson.OPT_INDENT_2)
    except TypeError:  # nested too deeply to be written
        return False
    return again.count(b":") == body.count(b":") and DEEP not in again


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise MalformedJsonError(f"the member {name!r} stands twice in one object")
            seen.add(name)
    return members


def _no_constant(name: str) -> NoReturn:
    raise MalformedJsonError(f"{name} is not a JSON number")


def _depth_exceeds(value: Any, levels: int) -> bool:
    """Whether more than so many objects and arrays are nested within one another."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [nested for nested in layer if isinstance(nested, dict | list)]
        if not layer:
            return False
        layer = [child for nested in layer for child in (nested.values() if isinstance(nested, dict) else nested)]
    return True
