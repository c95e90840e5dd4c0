"""A service of the standard in a hundred lines: real HTTP, state in memory, and it can die and come back."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

from kuayu_schemas import registers, schema

INSTANT = "2026-01-01T00:00:00.000Z"
BATCHES = {"/v1/heartbeats": ("HeartbeatBatch", "beats"), "/v1/log-lines": ("LogBatch", "lines")}
"""Paths of what it takes beside samples: the class of each body, and its member with the items."""


class RecordingService:
    """Remembers what it was told, also while it is dead.

    Attributes:
        requests: Method, path and body of each request that it read.
        tokens: Header Authorization of each of them, None where there was none.
        taken: Samples that it took, in order.
        heard: Heartbeats and log lines that it took, each under its path, in order.
        keys: Idempotency keys that it saw, with the body under each and the answer.
        lose_answers: How many samples' answers it will lose after having taken the samples.
        canned: Answers (status, headers, body) that it gives to the next requests in place of its own.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, bytes]] = []
        self.tokens: list[str | None] = []
        self.taken: list[dict[str, Any]] = []
        self.heard: dict[str, list[dict[str, Any]]] = {path: [] for path in BATCHES}
        self.keys: dict[str, tuple[bytes, bytes]] = {}
        self.lose_answers = 0
        self.canned: list[tuple[int, dict[str, str], bytes]] = []
        self.received_at = INSTANT
        self.max_batch = 1000
        self.resources: dict[str, dict[str, Any]] = {}
        self._number = 0
        self._lock = threading.Lock()
        self._port = 0
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """Where it is, dead or alive."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> Self:
        """Come to life, always at the same port."""
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), _handler(self))
        self._server.daemon_threads = True
        self._port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def die(self) -> None:
        """Stop answering; connections are refused from now on."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, method: str, path: str, key: str, body: bytes) -> tuple[int, bytes]:
        """The standard's behaviour, as far as a collector sees it."""
        with self._lock:
            return self._answer(method, path, key, body)

    def _answer(self, method: str, path: str, key: str, body: bytes) -> tuple[int, bytes]:
        if path == "/v1/conformance":
            return 200, json.dumps(self._declaration()).encode()
        if path.startswith(("/v1/domains/", "/v1/nodes/")):
            return self._resource(method, path, body)
        if path in BATCHES:
            return self._intake(path, json.loads(body))
        if key in self.keys:
            held, answer = self.keys[key]
            return (200, answer) if held == body else (422, problem("idempotency-mismatch"))
        batch = json.loads(body)
        if schema.errors("SampleBatch", batch):
            return 422, problem("invalid-body")
        unknown = [
            index
            for index, sample in enumerate(batch["samples"])
            if f"/v1/nodes/{sample['subject']}" not in self.resources
        ]
        self.taken += [sample for index, sample in enumerate(batch["samples"]) if index not in unknown]
        result = {
            "accepted": len(batch["samples"]) - len(unknown),
            "rejected": [{"index": index, "problem": json.loads(problem("unknown-reference"))} for index in unknown],
            "durability": "process",
            "received_at": self.received_at,
            "clock_offset": 0,
        }
        self.keys[key] = (body, json.dumps(result).encode())
        return 200, self.keys[key][1]

    def _intake(self, path: str, batch: dict[str, Any]) -> tuple[int, bytes]:
        model, member = BATCHES[path]
        if schema.errors(model, batch):
            return 422, problem("invalid-body")
        bad = [n for n, item in enumerate(batch[member]) if f"/v1/nodes/{item['node']}" not in self.resources]
        self.heard[path] += [item for n, item in enumerate(batch[member]) if n not in bad]
        rejected = [{"index": index, "problem": json.loads(problem("unknown-reference"))} for index in bad]
        result = {"accepted": len(batch[member]) - len(bad), "rejected": rejected, "received_at": self.received_at}
        return 200, json.dumps(result).encode()

    def _resource(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        if method == "PUT":
            given, held = json.loads(body), self.resources.get(path, {})
            if given != {name: value for name, value in held.items() if name not in {"revision", "updated_at"}}:
                self._number += 1
                revision = {"epoch": "e1", "number": self._number}
                self.resources[path] = given | {"revision": revision, "updated_at": INSTANT}
        if path not in self.resources:
            return 404, problem("not-found")
        return 200, json.dumps(self.resources[path]).encode()

    def _declaration(self) -> dict[str, Any]:
        return {
            "spec_version": registers.SPEC_VERSION,
            "implementation": {"name": "recording", "version": "1", "vendor": "tests"},
            "profiles": ["COM", "MET"],
            "features": [],
            "limits": {
                "max_body": 1e6,
                "max_batch": self.max_batch,
                "max_page": 10,
                "retention": 60,
                "idempotency": 60,
            },
            "durability": "process",
            "revision": {"epoch": "e1", "number": self._number},
            "now": INSTANT,
        }


def problem(name: str, **members: Any) -> bytes:
    """A problem of the register as an answer's body."""
    kind = next(each for each in registers.problems().problems if each.name == name)
    body = {"type": kind.type, "title": kind.title_en, "status": kind.status, "retryable": kind.retryable}
    return json.dumps(body | members).encode()


def _handler(service: RecordingService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            service.requests.append((self.command, self.path, body))
            service.tokens.append(self.headers.get("authorization"))
            if service.canned:
                status, headers, answer = service.canned.pop(0)
            else:
                key = self.headers.get("idempotency-key", "")
                status, answer = service.answer(self.command, urlsplit(self.path).path, key, body)
                headers = {}
                if self.path == "/v1/samples" and service.lose_answers:
                    service.lose_answers -= 1
                    self.close_connection = True
                    return
            self.send_response(status)
            for name, value in {"content-length": str(len(answer)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815 - names that the base class looks for

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
