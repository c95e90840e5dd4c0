"""Server-sent events, as the WHATWG HTML standard (section *Server-sent events*) has a reader take them."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

MEDIA_TYPE = "text/event-stream"

LONGEST_LINE = 1 << 26
"""Characters of a line beyond which a stream is given up."""


@dataclass(frozen=True)
class StreamEvent:
    """One event of a stream.

    Attributes:
        received_at: Unix time at which it was complete, in seconds, by the suite's clock.
        id: Identifier that stood with it; empty where none did.
        kind: Type of the event.
        data: Its data.
    """

    received_at: float
    id: str
    kind: str
    data: str

    @cached_property
    def json(self) -> Any:
        """The data as JSON, or None where it is not JSON."""
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True)
class Comment:
    """A comment, which a service sends to show that the path is whole; ``at`` as for events."""

    received_at: float


class Reader:
    """Makes events of lines."""

    def __init__(self) -> None:
        """Begin at the beginning of a stream."""
        self._fields: dict[str, str] = {}
        self._data: list[str] = []

    def take(self, line: str, received_at: float) -> StreamEvent | Comment | None:
        """Take a line without its end; an event where this line completes one, a comment where it is one."""
        if line.startswith(":"):
            return Comment(received_at)
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                self._data.append(value)
            elif name in {"event", "id"}:
                self._fields[name] = value
            return None
        fields, data = self._fields, self._data
        self._fields, self._data = {}, []
        if not data:
            return None
        return StreamEvent(received_at, fields.get("id", ""), fields.get("event", "message"), "\n".join(data))


def lines(chunks: Iterable[str]) -> Iterator[str]:
    """Lines of a text that comes in pieces; they end with LF, CR LF or CR. A mark of byte order before them is none.

    Raises:
        ValueError: A line has no end within reason.
    """
    rest, begun = "", False
    for chunk in chunks:
        text = rest + (chunk if begun else chunk.removeprefix("\ufeff"))
        begun = begun or bool(chunk)
        if len(text) > LONGEST_LINE:
            raise ValueError("a line of the stream has no end")
        held_back = text.endswith("\r")  # the LF that belongs to it may come with the next piece
        text = text[:-1] if held_back else text
        *whole, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        yield from whole
        rest += "\r" if held_back else ""
