"""A small HTTP server that publishes exporters' pages to the target and notes when they are fetched."""

import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class ExporterServer:
    """Serves pages while it is open; a page may change as often as its owner likes.

    Args:
        host: Address of this machine as the target reaches it; "" where it cannot, and nothing is served then.
    """

    def __init__(self, host: str) -> None:
        """Open a free port on ``host``."""
        self._host = host
        self._pages: dict[str, bytes] = {}
        self._fetched: dict[str, list[float]] = {}
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        if host:
            self._server = ThreadingHTTPServer((host, 0), self._handler())
            self._server.daemon_threads = True
            threading.Thread(target=self._server.serve_forever, name="exporter", daemon=True).start()

    def publish(self, page: str, text: str) -> str:
        """Serve ``text`` under the name ``page`` and return its URL, or "" where nothing is served."""
        with self._lock:
            self._pages[page] = text.encode()
            self._fetched.setdefault(page, [])
        if self._server is None:
            return ""
        return f"http://{self._host}:{self._server.server_address[1]}/{page}"

    def fetched(self, page: str) -> Sequence[float]:
        """Unix times at which the page was fetched, to the millisecond."""
        with self._lock:
            return tuple(self._fetched.get(page, ()))

    def close(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.strip("/")
                with owner._lock:
                    body = owner._pages.get(name)
                    if body is not None:
                        owner._fetched[name].append(round(time.time(), 3))
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: Any) -> None:
                """Say nothing; the transcript says it."""

        return Handler
