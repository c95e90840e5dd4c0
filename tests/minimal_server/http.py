"""HTTP: bodies in, JSON out. What is wrong with a request before it can be understood becomes a problem, too."""

import contextlib
import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from minimal_server.core import LIMITS, Answer, Refusal, wrong_parameter
from minimal_server.service import MinimalServer

DRAINED = 64 << 20
"""Bytes of a body too large that are read and dropped, so that its sender comes to reading the answer."""

TOO_LARGE = Refusal("payload-too-large", f"a body may have {LIMITS['max_body']} bytes")


class Server(ThreadingHTTPServer):
    """Listens for one service."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], service: MinimalServer) -> None:
        """Bind to ``address``; port 0 is any free one."""
        super().__init__(address, Handler)
        self.service = service

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = 60
    server: Server

    def __getattr__(self, name: str) -> Any:
        """Every method is answered, those that no path takes as well."""
        if name.startswith("do_"):
            return self.serve
        raise AttributeError(name)

    def serve(self) -> None:
        """Read the body, let the service answer."""
        service = self.server.service
        try:
            body = self.read_body()
        except Refusal as refusal:
            self.close_connection = True
            self.send(service.refuse(refusal))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.send(service.answer(self.command, self.path, headers, body))

    def read_body(self) -> bytes:
        """The body, however it was sent, if it is not too large."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return self.read_chunks()
        length = self.headers.get("Content-Length", "0")
        if not length.isascii() or not length.isdigit() or len(length) > 18:
            raise wrong_parameter("Content-Length", "the length of the body must be a number")
        if int(length) > LIMITS["max_body"]:
            self.connection.settimeout(1)
            left = min(int(length), DRAINED)
            with contextlib.suppress(TimeoutError):
                while left > 0 and (chunk := self.rfile.read(min(left, 1 << 16))):
                    left -= len(chunk)
            raise TOO_LARGE
        return self.rfile.read(int(length))

    def read_chunks(self) -> bytes:
        """A body of unknown length."""
        body = b""
        while size := self.chunk_size():
            if len(body) + size > LIMITS["max_body"]:
                raise TOO_LARGE
            body += self.rfile.read(size)
            self.rfile.readline(100)
        while self.rfile.readline(1000).strip():
            pass
        return body

    def chunk_size(self) -> int:
        """Bytes of the chunk that follows; nought after the last."""
        digits = self.rfile.readline(100).partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,15}", digits):
            raise wrong_parameter("Transfer-Encoding", "the length of a chunk must be a hexadecimal number")
        return int(digits, 16)

    def send(self, answer: Answer) -> None:
        """Write an answer."""
        if isinstance(answer.body, Iterator):
            self.send_stream(answer)
            return
        text = isinstance(answer.body, str)
        if isinstance(answer.body, bytes):
            body = answer.body
        else:
            body = (answer.body if text else json.dumps(answer.body, allow_nan=False, separators=(",", ":"))).encode()
        self.send_response(answer.status)
        headers = {"Content-Type": "text/plain; version=0.0.4" if text else "application/json", **answer.headers}
        if answer.status == 204:
            body = b""
            del headers["Content-Type"]
        else:
            headers["Content-Length"] = str(len(body))
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_stream(self, answer: Answer) -> None:
        """Write an answer that has no end of its own; it ends with the connection."""
        self.close_connection = True
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in answer.body:
            self.wfile.write(piece)
            self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """A request that is no HTTP."""
        self.close_connection = True
        self.command = self.command or "GET"
        detail = explain or message or f"the request cannot be read ({code})"
        self.send(self.server.service.refuse(Refusal("invalid-parameter", detail)))

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
