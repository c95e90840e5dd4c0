"""The exchanges of a run as an HTTP archive, for the tools that read one.

The form is HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/). The file is whole at every moment: what closes it
is written behind each entry, and written over by the next. So nothing is lost when a run is called off or killed, and
nothing is kept in memory. Bodies stand in it as they went over the network; those that are not UTF-8 are base64, which
HAR has a member for in answers only, so that a comment says so of requests. Of the time of an exchange no more is known
than the whole, which is given as time waited. Credentials have been taken out of headers (:func:`.live.tell`).
"""

import base64
import contextlib
import json
import threading
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, urlsplit

import kuayu_conformance
from kuayu_conformance.episode import instant
from kuayu_conformance.run.live import Exchange, Headers

_CREATOR = {"name": "kuayu conformance", "version": kuayu_conformance.__version__}
_HEAD = b'{"log":{"version":"1.2","creator":'
_ENTRIES = b',"entries":['
_TAIL = b"\n]}}\n"

_UNKNOWN = -1
"""What HAR writes for a size that is not known."""

_ALL_OF_IT = "send, wait and receive are not told apart"
_STREAM = "a stream of server-sent events; what came on it is in the transcript"


class HarError(Exception):
    """The archive cannot be begun.

    Attributes:
        hint: What to do.
    """

    def __init__(self, cause: str, hint: str) -> None:
        """Say why, and what to do."""
        super().__init__(cause)
        self.hint = hint


class HarWriter:
    """Writes exchanges to a file as they happen; episodes may run side by side.

    An earlier archive is written over as the first exchange comes, so that a run that does not begin leaves it alone.

    Attributes:
        failure: Why writing stopped, in words; empty as long as it goes on. A run goes on without its archive.
    """

    def __init__(self, path: Path, *, go_on: bool = False) -> None:
        """Open the file, where an earlier archive may be; with ``go_on`` what that holds stays before what comes.

        Raises:
            HarError: The file is something else, or cannot be written.
        """
        self._lock = threading.Lock()
        self.failure = ""
        try:
            self._file: BinaryIO = path.open("r+b" if path.exists() else "w+b")
        except OSError as error:
            raise HarError(
                f"{path} cannot be written: {error.strerror}", "name a file in a folder that exists"
            ) from error
        head, size = self._file.read(len(_HEAD)), self._file.seek(0, 2)
        if size and head != _HEAD:
            self._file.close()
            raise HarError(f"{path} holds something that is no archive of a run", "name another file")
        self._begun, self._first, self._end = False, True, 0
        if size and go_on:
            self._go_on(path, size)
        elif not size:
            try:
                self._begin()
            except OSError as error:
                with contextlib.suppress(OSError):  # which is tried once more
                    self._file.close()
                raise HarError(f"{path} cannot be written: {error.strerror}", "name another file") from error

    def _go_on(self, path: Path, size: int) -> None:
        """Come behind what the file holds."""
        self._end = size - len(_TAIL)
        self._file.seek(self._end - 1)
        last = self._file.read()
        if last[1:] != _TAIL:
            self._file.close()
            raise HarError(f"{path} was cut off, so that nothing can be written behind it", "name another file")
        self._begun, self._first = True, last[:1] == b"["

    def _begin(self) -> None:
        """Write an archive without entries in place of whatever is there."""
        begin = _HEAD + json.dumps(_CREATOR).encode() + _ENTRIES
        self._file.seek(0)
        self._file.truncate()
        self._file.write(begin + _TAIL)
        self._file.flush()
        self._begun, self._end = True, len(begin)

    def write(self, exchange: Exchange) -> None:
        """Write one exchange."""
        line = json.dumps(_entry(exchange), ensure_ascii=False, separators=(",", ":"))
        with self._lock:
            if self.failure:
                return
            entry = (b"\n" if self._first else b",\n") + line.encode("utf-8", "backslashreplace")
            try:
                if not self._begun:
                    self._begin()
                self._file.seek(self._end)
                self._file.write(entry + _TAIL)
                self._file.flush()
            except OSError as error:
                self.failure = error.strerror or str(error)
                return
            self._end += len(entry)
            self._first = False

    def close(self) -> None:
        """Close the file, which is whole as it is."""
        with self._lock:
            self._file.close()


def _entry(exchange: Exchange) -> dict[str, Any]:
    answer = exchange.answer
    milliseconds = round(answer.seconds * 1000, 3)
    comments = [f"episode {exchange.episode}, exchange {answer.exchange}", answer.failure]
    return {
        "startedDateTime": instant(answer.started),
        "time": milliseconds,
        "request": _request(exchange),
        "response": _response(exchange),
        "cache": {},
        "timings": {"send": 0, "wait": milliseconds, "receive": 0, "comment": _ALL_OF_IT},
        "comment": "; ".join(filter(None, comments)),
    }


def _request(exchange: Exchange) -> dict[str, Any]:
    request = exchange.request
    query = urlsplit(request.path).query
    written: dict[str, Any] = {
        "method": request.method,
        "url": exchange.url,
        "httpVersion": exchange.http_version,
        "cookies": [],
        "headers": _headers(exchange.sent),
        "queryString": [{"name": name, "value": value} for name, value in parse_qsl(query, keep_blank_values=True)],
        "headersSize": _UNKNOWN,
        "bodySize": len(request.body),
    }
    if request.body:
        text, is_text = _text(request.body)
        written["postData"] = {"mimeType": request.headers.get("content-type", ""), "text": text}
        if not is_text:
            written["postData"]["comment"] = "base64"
    return written


def _response(exchange: Exchange) -> dict[str, Any]:
    answer = exchange.answer
    content: dict[str, Any] = {"size": len(answer.body), "mimeType": _header(exchange.received, "content-type")}
    if exchange.is_stream:
        content["comment"] = _STREAM
    else:
        content["text"], is_text = _text(answer.body)
        if not is_text:
            content["encoding"] = "base64"
    return {
        "status": answer.status,
        "statusText": exchange.reason,
        "httpVersion": exchange.http_version,
        "cookies": [],
        "headers": _headers(exchange.received),
        "content": content,
        "redirectURL": _header(exchange.received, "location"),
        "headersSize": _UNKNOWN,
        "bodySize": _UNKNOWN,
    }


def _text(body: bytes) -> tuple[str, bool]:
    """A body as text, and whether it is; else as base64."""
    try:
        return body.decode("utf-8"), True
    except UnicodeDecodeError:
        return base64.b64encode(body).decode("ascii"), False


def _headers(headers: Headers) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in headers]


def _header(headers: Headers, wanted: str) -> str:
    return next((value for name, value in headers if name.lower() == wanted), "")
