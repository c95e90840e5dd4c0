"""A stream of server-sent events, followed from a thread of its own so that arrival is timed while others work."""

import contextlib
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from kuayu_conformance.episode import Taken
from kuayu_conformance.streams import MEDIA_TYPE, Comment, Reader, StreamEvent, lines

LONGEST_BODY = 65_536
"""Bytes that are kept of an answer that is no stream."""


@dataclass(frozen=True)
class Opening:
    """How the request for a stream was answered; status 0 where no answer came."""

    status: int
    body: bytes
    failure: str
    response: httpx.Response | None


class StreamFollower:
    """One stream, live."""

    def __init__(self, client: httpx.Client, path: str, headers: Mapping[str, str]) -> None:
        """Ask for the stream at once."""
        self._client = client
        self._path = path
        self._headers = dict(headers)
        self._changed = threading.Condition()
        self._opening: Opening | None = None
        self._events: list[StreamEvent] = []
        self._comments: list[Comment] = []
        self._ended = False
        self._thread = threading.Thread(target=self._follow, name=f"stream {path}", daemon=True)
        self._thread.start()

    def opening(self) -> Opening:
        """Wait for the answer as long as the client waits for any."""
        patience = self._client.timeout.read
        with self._changed:
            self._changed.wait_for(lambda: self._opening is not None, patience)
            if self._opening is None:
                self._opening = Opening(0, b"", f"no answer within {patience} s", None)
            return self._opening

    def has(self, events: int) -> bool:
        """Whether so many events wait, or none can come any more."""
        return self._ended or len(self._events) >= events

    def wait(self, seconds: float) -> None:
        """Wait until something comes, at most so long."""
        with self._changed:
            self._changed.wait(seconds)

    def taken(self) -> Taken:
        """What has come since the last time."""
        with self._changed:
            events, self._events = tuple(self._events), []
            comments, self._comments = tuple(self._comments), []
            return Taken(events, comments, self._ended)

    def hang_up(self) -> None:
        """End the stream from this side and wait for its thread."""
        response = self._opening.response if self._opening else None
        if response is not None and not self._ended:
            network = response.extensions["network_stream"]
            # The thread waits in a read, and only closing the connection under it wakes it.
            with contextlib.suppress(OSError):
                network.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._thread.join(5)

    def _follow(self) -> None:
        """The thread: silence is no failure of a stream, so that no limit is set on a read; odd text or charset is."""
        timeout = httpx.Timeout(self._client.timeout.connect, read=None)
        try:
            with self._client.stream("GET", self._path, headers=self._headers, timeout=timeout) as response:
                self._read(response)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, LookupError) as error:
            self._opened(Opening(0, b"", f"{type(error).__name__}: {error}", None))
        finally:
            self._end()

    def _read(self, response: httpx.Response) -> None:
        if response.status_code != httpx.codes.OK or not response.headers.get("content-type", "").startswith(
            MEDIA_TYPE
        ):
            body = b""
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > LONGEST_BODY:
                    break
            self._opened(Opening(response.status_code, body[:LONGEST_BODY], "", response))
            return
        self._opened(Opening(response.status_code, b"", "", response))
        reader = Reader()
        for line in lines(response.iter_text()):
            entry = reader.take(line, time.time())
            if entry is not None:
                self._came(entry)

    def _opened(self, opening: Opening) -> None:
        with self._changed:
            self._opening = self._opening or opening
            self._changed.notify_all()

    def _came(self, entry: StreamEvent | Comment) -> None:
        with self._changed:
            if isinstance(entry, StreamEvent):
                self._events.append(entry)
            else:
                self._comments.append(entry)
            self._changed.notify_all()

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
