"""Canonical JSON (RFC 8785) and the digests that rest on it."""

import hashlib
import json
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any


def digest(document: Any) -> str:
    """SHA-256 of the canonical JSON of a document."""
    return "sha256:" + hashlib.sha256(canonical(document).encode()).hexdigest()


def canonical(value: Any) -> str:
    """Members in order of UTF-16, nothing between the tokens, numbers as ECMAScript writes doubles."""
    kind = value.__class__
    if kind is dict:
        names = sorted(value, key=None if all(map(str.isascii, value)) else in_utf_16)
        return "{" + ",".join([f"{encode_basestring(name)}:{canonical(value[name])}" for name in names]) + "}"
    if kind is list:
        return "[" + ",".join(map(canonical, value)) + "]"
    if kind is str:
        return encode_basestring(value)
    if kind is bool or value is None:
        return json.dumps(value)
    if kind is int and abs(value) <= 2**53:
        return str(value)
    return number(float(value))


def in_utf_16(name: str) -> bytes:
    """What members are put in order by."""
    return name.encode("utf-16-be")


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
