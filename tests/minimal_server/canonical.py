"""Canonical JSON (RFC 8785) and the digests that rest on it."""

import hashlib
import json
from decimal import Decimal
from typing import Any


def digest(document: Any) -> str:
    """SHA-256 of the canonical JSON of a document."""
    return "sha256:" + hashlib.sha256(canonical(document).encode()).hexdigest()


def canonical(value: Any) -> str:
    """Members in order of UTF-16, nothing between the tokens, numbers as ECMAScript writes doubles."""
    match value:
        case dict():
            names = sorted(value, key=lambda name: str(name).encode("utf-16-be"))
            return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
        case list():
            return "[" + ",".join(map(canonical, value)) + "]"
        case str() | bool() | None:
            return json.dumps(value, ensure_ascii=False)
        case int() if abs(value) <= 2**53:
            return str(value)
        case _:
            return number(float(value))


def number(value: float) -> str:
    """A double as ECMA-262 writes it (Number::toString): the shortest digits that lead back to it."""
    if value == 0:
        return "0"
    sign, figures, exponent = Decimal(repr(value)).as_tuple()
    digits = "".join(map(str, figures)).rstrip("0")
    point = len(figures) + int(exponent)  # how many digits stand before the decimal point
    if len(digits) <= point <= 21:
        text = digits.ljust(point, "0")
    elif 0 < point <= 21:
        text = f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = f"0.{'0' * -point}{digits}"
    else:
        text = f"{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{point - 1:+d}"
    return "-" * sign + text
