"""gzip whose bytes are the same wherever they are made.

A replay compares requests byte by byte, and builds of zlib do not agree on how they compress. So bodies are packed
here, in the simplest way that deflate has: fixed codes, and repetitions of the byte before.

Source: RFC 1951, sections 3.2.5 and 3.2.6; RFC 1952.
"""

import re
import struct
import zlib
from collections.abc import Iterator

_MAX_MATCH_BYTES = 258
"""Repetitions that one code can stand for."""

_REPEAT = "11000101" + "00000"
"""Code 285, the longest match, and code 0, the distance of one byte."""

_RUN = re.compile(rb"(.)\1*", re.DOTALL)
"""A byte and its repetitions."""

_AT_ONCE = 1 << 16
"""Bytes that the expression looks at: no other thread goes on meanwhile, so that over 16 MiB all that is being played
would stand still."""

_BEGIN, _END = "1" + "10", "0000000"
"""The last block, of fixed codes; the end of a block."""


def packed(body: bytes) -> bytes:
    """The body as one member of gzip."""
    bits = [_BEGIN]
    for byte, length in _runs(body):
        code = _literal(byte)
        repetitions, rest = divmod(length - 1, _MAX_MATCH_BYTES)
        bits += [code, _REPEAT * repetitions, code * rest]
    stream = "".join([*bits, _END])
    stream += "0" * (-len(stream) % 8)
    # The first bit of the stream is the lowest of its byte.
    content = int(stream[::-1], 2).to_bytes(len(stream) // 8, "little")
    head = struct.pack("<4BI2B", 0x1F, 0x8B, 8, 0, 0, 0, 255)
    return head + content + struct.pack("<2I", zlib.crc32(body), len(body) & 0xFFFFFFFF)


def _runs(body: bytes) -> Iterator[tuple[int, int]]:
    """Bytes, each with how often it stands there in a row."""
    begin = 0
    while begin < len(body):
        byte, end = body[begin], begin
        while end < len(body) and body[end] == byte:
            run = _RUN.match(body, end, end + _AT_ONCE)
            assert run is not None  # any byte matches
            end = run.end()
        yield byte, end - begin
        begin = end


def _literal(byte: int) -> str:
    return f"{0x30 + byte:08b}" if byte < 144 else f"{0x190 + byte - 144:09b}"  # noqa: PLR2004 - section 3.2.6
