"""Server-sent events as a client reads them (WHATWG HTML, section 9.2.6)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Event:
    """An event.

    Attributes:
        id: Identifier of the last event that had one, this one included; empty where none had.
        type: Its type, ``message`` where none was stated.
        data: Its data.
    """

    id: str
    type: str
    data: str


def read_events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Events out of a stream of bytes, however it is cut; what stands after the last empty line is no event."""
    last, kind = "", ""
    data: list[str] = []
    for line in _lines(chunks):
        if not line:
            if data:
                yield Event(last, kind or "message", "\n".join(data))
            kind, data = "", []
            continue
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            kind = value
        elif name == "id" and "\0" not in value:
            last = value


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest, first, after_return = b"", True, False
    for chunk in chunks:
        if not chunk:
            continue
        part = chunk[1:] if after_return and chunk.startswith(b"\n") else chunk
        after_return = chunk.endswith(b"\r")
        *whole, rest = _LINE_END.split(rest + part)
        for line in whole:
            yield line.removeprefix(_BYTE_ORDER_MARK) if first else line
            first = False
