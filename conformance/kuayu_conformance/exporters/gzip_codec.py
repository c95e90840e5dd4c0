"""gzip whose bytes are the same wherever they are made.

A replay compares requests byte by byte, and builds of zlib do not agree on how they compress. So bodies are packed
here, in the simplest way that deflate has: fixed codes, and repetitions of the byte before.

Source: RFC 1951, sections 3.2.5 and 3.2.6; RFC 1952.
"""

import struct
import zlib
from itertools import pairwise

import numpy as np

_LONGEST = 258
"""Repetitions that one code can stand for."""

_REPEAT = "11000101" + "00000"
"""Code 285, the longest match, and code 0, the distance of one byte."""

_BEGIN, _END = "1" + "10", "0000000"
"""The last block, of fixed codes; the end of a block."""


def packed(body: bytes) -> bytes:
    """The body as one member of gzip."""
    # By NumPy, which lets other threads go on: a regular expression over 16 MiB would stop all that is being played.
    changes = np.flatnonzero(np.diff(np.frombuffer(body, np.uint8))) + 1
    begins = [0, *changes.tolist()] if body else []
    bits = [_BEGIN]
    for begin, end in pairwise([*begins, len(body)]):
        code = _literal(body[begin])
        repetitions, rest = divmod(end - begin - 1, _LONGEST)
        bits += [code, _REPEAT * repetitions, code * rest]
    stream = "".join([*bits, _END])
    stream += "0" * (-len(stream) % 8)
    # The first bit of the stream is the lowest of its byte.
    content = int(stream[::-1], 2).to_bytes(len(stream) // 8, "little")
    head = struct.pack("<4BI2B", 0x1F, 0x8B, 8, 0, 0, 0, 255)
    return head + content + struct.pack("<2I", zlib.crc32(body), len(body) & 0xFFFFFFFF)


def _literal(byte: int) -> str:
    return f"{0x30 + byte:08b}" if byte < 144 else f"{0x190 + byte - 144:09b}"  # noqa: PLR2004 - section 3.2.6
