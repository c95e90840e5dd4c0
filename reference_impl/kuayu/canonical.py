"""Canonical JSON (RFC 8785) of large documents, several times faster than :func:`kuayu_schemas.schema.canonical`.

orjson writes nearly the same: members in order of their UTF-8, nothing between the tokens. Only some numbers ECMAScript
writes in another way; they are looked for in what orjson wrote. Where anything else may differ, the library decides.
"""

import hashlib
import re
from collections.abc import Iterator

import orjson

from kuayu_schemas import schema

_ASTRAL = re.compile(rb"[\xf0-\xf4]")
"""First byte of a character beyond U+FFFF: by UTF-16 it comes before some that it follows by UTF-8."""

_EXPONENT, _SMALL = re.compile(rb"e[-+0-9]"), re.compile(rb"0\.0000")
"""What stands in numbers, other than integers, that ECMAScript may write in another way."""

_NUMBER = re.compile(rb"[-+.0-9e]+")

_STRICT = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER


def dumps(value: object) -> bytes:
    """The canonical JSON of a JSON value, in UTF-8.

    Raises:
        NotCanonicalError: The value has none: it holds NaN, an infinity, or an integer that a double cannot hold.
    """
    if not isinstance(value, dict | list):
        return schema.canonical(value)
    try:
        written = orjson.dumps(value, option=_STRICT)
    except TypeError:
        return schema.canonical(value)  # which says what is wrong
    # orjson writes null for NaN too; and without escapes a quotation mark always begins or ends a text
    if b"\\" in written or b"null" in written or (not written.isascii() and _ASTRAL.search(written)):
        return schema.canonical(value)
    pieces = written.split(b'"')
    numbers = b'"'.join(pieces[::2])  # what stands outside of texts
    for end in (b",", b"}", b"]"):
        numbers = numbers.replace(b"-0.0" + end, b"0" + end).replace(b".0" + end, end)
    pieces[::2] = b"".join(_rewritten(numbers)).split(b'"')
    return b'"'.join(pieces)


def digest(value: object) -> str:
    """The digest of a JSON value: ``sha256:`` and the hexadecimal SHA-256 of its canonical JSON.

    Raises:
        NotCanonicalError: The value has no canonical JSON.
    """
    return digest_of(dumps(value))


def digest_of(written: bytes) -> str:
    """The digest of what is canonical already."""
    return "sha256:" + hashlib.sha256(written).hexdigest()


def _rewritten(numbers: bytes) -> Iterator[bytes]:
    """The same, in parts, with the numbers that ECMAScript may write in another way written by the library."""
    end = 0
    for place in sorted(hit.start() for kind in (_EXPONENT, _SMALL) for hit in kind.finditer(numbers)):
        if place < end:
            continue  # both stand in one number
        start = place
        while numbers[start - 1] in b"-.0123456789":
            start -= 1
        yield numbers[end:start]
        match = _NUMBER.match(numbers, start)
        assert match is not None
        end = match.end()
        yield schema.canonical(orjson.loads(match[0]))
    yield numbers[end:]
