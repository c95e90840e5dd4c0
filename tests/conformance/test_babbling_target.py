"""Whatever a target answers, the suite must never take its own stumbling for a verdict, nor a verdict for stumbling."""

import json
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_schemas import registers

LASTING = {"MET-002", "MET-010"}
"""Requirements whose checks wait; they are left out."""

OTHERS = {"DEM", "FCT", "SCH", "RES", "JOB"}
"""Profiles whose checks have babblers of their own."""

WAITLESS = tuple(
    row.id
    for row in registers.requirements().requirements
    if row.check and row.id not in LASTING and row.profile.value not in OTHERS
)

DECLARATION = {
    "spec_version": "0.1.0",
    "implementation": {"name": "babbler", "version": "0", "colour": "unknown to readers"},
    "profiles": ["COM", "MET", "IDX", "RES", "from-the-future"],
    "features": ["tenancy", "from-the-future"],
    "limits": {"max_body": 100_000, "max_batch": 1000, "max_page": 100, "retention": 86400, "idempotency": 60},
    "durability": "process",
    "revision": {"epoch": "e", "number": 1},
    "now": "2026-11-21T00:00:00Z",
}

SCRAPS: list[Any] = [
    None, True, 0, -1.5, "x", "2026-13-45T99:99:99Z", [], {}, [[]], {"id": 5}, {"number": "x"}, {"observed_at": 5},
    {"state": [], "unit": {}}, {"index": "0", "problem": None}, {"problem": []}, {"type": 7}, {"pointer": None},
]  # fmt: skip
MEMBERS = (
    "items", "values", "errors", "rejected", "revision", "next_cursor", "services", "indicators", "accepted", "type",
    "domains", "nodes", "links", "gone", "points", "operations", "digest", "result", "actions", "phase",
    "status", "updated_at", "extensions", "devices", "clock_offset", "label", "received_at", "state", "last_problem",
)  # fmt: skip


def scrap(chance: random.Random, depth: int = 0) -> Any:
    """JSON that has the names of an answer and the sense of none."""
    if depth > 2 or chance.random() < 0.3:
        return chance.choice(SCRAPS)
    if chance.random() < 0.5:
        return [scrap(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {name: scrap(chance, depth + 1) for name in chance.sample(MEMBERS, 8)}


def told(chance: random.Random, path: str) -> Any:
    """A valid answer of the index services that tells of what was not asked, or twice, or not at all."""
    names = [f"device-{number}" for number in range(9)]
    head = {"revision": {"epoch": "e", "number": 1}, "method": {"name": "m", "version": "0"}}
    if path == "/v1/probe-plans":
        probes = [{"device": name, "task": "task-1", "half_width": 1e99} for name in chance.choices(names, k=3)]
        return {**head, "without": 0, "probes": probes}
    rows = [
        {
            "device": chance.choice(names),
            "task": f"task-{chance.randrange(6)}",
            "value": chance.choice((1e-30, 1, 1e30)),
            "low": 0,
            "high": 1e99,
            "basis": chance.choice(("measured", "from-the-future")),
            "abstained": chance.random() < 0.5,
            "stack": "",
        }
        for _ in range(chance.randrange(60))
    ]
    return {**head, "reference": "nobody", "coverage": 0.9, "indices": rows, "groups": []}


@pytest.fixture(params=range(4))
def babbler(request: pytest.FixtureRequest) -> Iterator[str]:
    """A target that declares everything and answers anything."""
    chance = random.Random(request.param)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet, or each exchange waits 40 ms for an acknowledgement

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            declared = self.path == "/v1/conformance"
            usual = {"PUT": (200, 201), "DELETE": (204,)}.get(self.command, (200, 200, 201, 204, 404, 422))
            status = 200 if declared else chance.choice(usual)
            index = self.path in {"/v1/compute-indices", "/v1/probe-plans"} and chance.random() < 0.7
            said = told(chance, self.path) if index else scrap(chance)
            body = json.dumps(DECLARATION if declared else said).encode()
            body = body if declared or chance.random() < 0.9 else b"\xff{"
            kind = chance.choice(("application/json", "application/problem+json", "text/html"))
            self.send_response(status)
            self.send_header("content-type", "application/json" if declared else kind)
            self.send_header("content-length", "0" if status == 204 else str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if status == 204 else body)

        do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = answer  # noqa: N815 - names that the library gives

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_nonsense_is_the_targets_fault_and_never_the_suites(
    babbler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kuayu_conformance.checks.kit.requests.TOLD", 0.5)
    # Each exporter is played into each trap all the same, but in three pages of nonsense and not in thirty.
    monkeypatch.setattr("kuayu_conformance.checks.metrics.sampling.CELLS_QUICK", 1)
    options = Options(watch=False, target=babbler, nonce="babble", other_headers={"x": "y"}, selection=WAITLESS)
    report = Run(options, tmp_path, Progress()).execute()
    stumbled = {r.requirement: r.reason for r in report.results if r.verdict.value == "harness-error"}
    assert stumbled == {}
    assert report.exit_code == 1
