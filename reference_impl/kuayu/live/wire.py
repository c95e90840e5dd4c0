"""Frames on a stream: a header in JSON and bytes after it.

Eight bytes tell the lengths of both, big-endian. What arrives from a socket is bounded, so that a stray connection
cannot ask for gigabytes.
"""

import asyncio
import json
import socket
import struct
from typing import Any

Header = dict[str, Any]

_LENGTHS = struct.Struct(">II")
MOST_HEADER = 1 << 20
"""Bytes of the longest header."""
MOST_PAYLOAD = 1 << 26
"""Bytes of the longest payload."""


class Broken(ConnectionError):
    """A peer sent what is no frame."""


def frame(header: Header, payload: bytes = b"") -> bytes:
    """The bytes of a frame."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return _LENGTHS.pack(len(text), len(payload)) + text + payload


def receive(stream: socket.socket) -> tuple[Header, bytes] | None:
    """The next frame; None where the stream has ended between two frames.

    Raises:
        ConnectionError: The stream ended within a frame, or what came is no frame.
    """
    start = _exactly(stream, _LENGTHS.size)
    if start is None:
        return None
    header, payload = _lengths(start)
    text = _exactly(stream, header)
    rest = _exactly(stream, payload) if payload else b""
    if text is None or rest is None:
        raise Broken("the stream ended within a frame")
    return _parsed(text), rest


async def read(stream: asyncio.StreamReader) -> tuple[Header, bytes] | None:
    """The next frame of an asynchronous stream; None where it has ended.

    Raises:
        ConnectionError: What came is no frame.
    """
    try:
        header, payload = _lengths(await stream.readexactly(_LENGTHS.size))
        return _parsed(await stream.readexactly(header)), await stream.readexactly(payload)
    except asyncio.IncompleteReadError:
        return None


def dial(gateway: int, domain: str, port: int) -> socket.socket:
    """A connection to a port of another domain, through a gateway on this host.

    Raises:
        OSError: The gateway does not answer.
    """
    stream = socket.create_connection(("127.0.0.1", gateway))
    try:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.sendall(frame({"to": domain, "port": port}))
    except OSError:
        stream.close()
        raise
    return stream


def _lengths(start: bytes) -> tuple[int, int]:
    header, payload = _LENGTHS.unpack(start)
    if header > MOST_HEADER or payload > MOST_PAYLOAD:
        raise Broken("a frame is longer than any can be")
    return int(header), int(payload)


def _parsed(text: bytes) -> Header:
    try:
        header = json.loads(text)
    except ValueError as error:
        raise Broken("a header is no JSON") from error
    if not isinstance(header, dict):
        raise Broken("a header is no object")
    return header


def _exactly(stream: socket.socket, count: int) -> bytes | None:
    """So many bytes; None where the stream ended before the first."""
    got = bytearray(count)
    view, have = memoryview(got), 0
    while have < count:
        more = stream.recv_into(view[have:])
        if not more:
            if have:
                raise Broken("the stream ended within a frame")
            return None
        have += more
    return bytes(got)
