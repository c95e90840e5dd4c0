"""Servers that answer everything and carry out nothing: no status earns a pass, and no fault of theirs is the suite's.

Each cheat is a rule of a line or two behind a real HTTP server; others stand before a conforming service, keep its
statuses and spoil what comes with them. What a cheat may pass is what it really does: whoever declares itself rightly
meets COM-001, whoever answers nothing but problems gives only valid answers (COM-003).
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from kuayu_conformance.episode import instant
from kuayu_conformance.run.live import KEPT_HEADERS
from kuayu_conformance.run.runner import Options, Progress, Run, TargetUnreachable
from kuayu_schemas.models import ConformanceReport, Verdict

SELECTION = (
    *("COM-001", "COM-002", "COM-003", "COM-004", "COM-005", "COM-006", "COM-007", "COM-008", "COM-009", "COM-010"),
    *("COM-011", "COM-013", "COM-014", "COM-015", "COM-016", "COM-017", "COM-018", "COM-021", "COM-022", "COM-028"),
    *("COM-029", "COM-042", "MET-007", "MET-009", "IDX-015", "DEM-005", "FCT-005", "SCH-016", "SCH-020", "RES-015"),
    *("JOB-001", "JOB-002", "JOB-010"),
)
"""Requirements of every profile whose checks take a cheat a second or less each."""

JSON, PROBLEM, HTML, TEXT = "application/json", "application/problem+json", "text/html", "text/plain"
DECLARATION, HEALTH = "/v1/conformance", "/v1/health"


class Said(NamedTuple):
    """An answer; None in its place is a connection that is closed."""

    status: int
    media_type: str
    body: bytes


Rule = Callable[[str, str], Said | None]
Spoil = Callable[[str, Said], Said]


def declaration() -> bytes:
    """A declaration of everything, with which nothing is wrong."""
    body = {
        "spec_version": "0.1.0",
        "implementation": {"name": "cheat", "version": "0"},
        "profiles": ["COM", "MET", "IDX", "DEM", "FCT", "SCH", "RES", "JOB"],
        "features": [],
        "limits": {"max_body": 100_000, "max_batch": 1000, "max_page": 100, "retention": 86400, "idempotency": 60},
        "durability": "process",
        "revision": {"epoch": "e", "number": 1},
        "now": instant(time.time()),
    }
    return json.dumps(body).encode()


def declaring(rule: Rule) -> Rule:
    """The same cheat, but its declaration and its health are as they should be."""

    def ruled(method: str, path: str) -> Said | None:
        if path == DECLARATION:
            return Said(200, JSON, declaration())
        return Said(200, JSON, b'{"status": "ok"}') if path == HEALTH else rule(method, path)

    return ruled


def page(_method: str, _path: str) -> Said:
    """What a gateway shows that wants a login."""
    return Said(200, HTML, b"<!doctype html><form>user, password</form>")


def blank(_method: str, _path: str) -> Said:
    """An object without members."""
    return Said(200, JSON, b"{}")


def null(_method: str, _path: str) -> Said:
    """JSON that is nothing."""
    return Said(200, JSON, b"null")


def statuses(method: str, _path: str) -> Said:
    """The status that each method hopes for, and no body."""
    return Said({"PUT": 201, "DELETE": 204}.get(method, 200), JSON, b"")


def problems(_method: str, _path: str) -> Said:
    """A problem that has been carried out."""
    body = {"type": "urn:kuayu:problem:not-found", "title": "Not found", "status": 200, "retryable": False}
    return Said(200, PROBLEM, json.dumps(body).encode())


def refusing(_method: str, _path: str) -> Said:
    """A good problem, whatever is asked."""
    body = {"type": "urn:kuayu:problem:invalid-body", "title": "Invalid", "status": 422, "retryable": False}
    return Said(422, PROBLEM, json.dumps(body).encode())


def silent(_method: str, _path: str) -> None:
    """Nothing."""


CHEATS: Mapping[str, tuple[Rule, frozenset[str]]] = {
    "login page": (page, frozenset()),
    "{}": (blank, frozenset()),
    "null": (null, frozenset()),
    "declares, then {}": (declaring(blank), frozenset({"COM-001"})),
    "declares, then a login page": (declaring(page), frozenset({"COM-001"})),
    "declares, then statuses without bodies": (declaring(statuses), frozenset({"COM-001"})),
    "declares, then problems with 200": (declaring(problems), frozenset({"COM-001"})),
    "declares, then refuses everything": (declaring(refusing), frozenset({"COM-001", "COM-003"})),
    "declares, then closes at once": (declaring(silent), frozenset({"COM-001", "COM-003"})),
}
"""Each with what it meets indeed."""


def plain(_path: str, said: Said) -> Said:
    """The right body, said to be text."""
    return said._replace(media_type=TEXT)


def hollow(path: str, said: Said) -> Said:
    """The right status and media type, with an object without members."""
    return said if path == DECLARATION or not said.body else said._replace(body=b"{}")


SPOILT: Mapping[str, tuple[Spoil, frozenset[str]]] = {
    "text/plain": (plain, frozenset()),
    "right statuses, empty objects": (hollow, frozenset({"COM-001"})),
}


@contextlib.contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler, bytes], tuple[Said, Mapping[str, str]] | None]) -> Iterator[str]:
    """A server on a free port, each connection in a thread of its own; its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet, or each exchange waits 40 ms for an acknowledgement

        def respond(self) -> None:
            found = answer(self, self.rfile.read(int(self.headers.get("content-length", 0))))
            if found is None:
                self.close_connection = True
                return
            said, further = found
            self.send_response(said.status)
            for name, value in {"content-type": said.media_type, **further}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(said.body)))
            self.end_headers()
            self.wfile.write(said.body)

        do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = respond  # noqa: N815 - names that the library gives

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def by_rule(rule: Rule) -> contextlib.AbstractContextManager[str]:
    """A server that answers by a rule."""

    def answer(asked: BaseHTTPRequestHandler, _body: bytes) -> tuple[Said, Mapping[str, str]] | None:
        said = rule(asked.command, asked.path)
        return None if said is None else (said, {})

    return serving(answer)


@contextlib.contextmanager
def before(conforming: str, spoil: Spoil) -> Iterator[str]:
    """A server that has a conforming one answer, and spoils it."""
    with httpx.Client(base_url=conforming, timeout=30, trust_env=False) as client:

        def answer(asked: BaseHTTPRequestHandler, body: bytes) -> tuple[Said, Mapping[str, str]]:
            if asked.path.partition("?")[0].endswith("/events"):
                return Said(200, HTML, b"<html>"), {}  # a stream has no end to wait for
            head = {name: value for name, value in asked.headers.items() if name.lower() not in {"host", "connection"}}
            found = client.request(asked.command, asked.path, content=body, headers=head)
            further = {name: found.headers[name] for name in KEPT_HEADERS if name in found.headers}
            said = Said(found.status_code, further.pop("content-type", JSON), found.content)
            return spoil(asked.path, said), further

        with serving(answer) as target:
            yield target


def report_on(target: str, folder: Path, timeout: float = 2.0) -> ConformanceReport:
    """What the suite says of a target."""
    own, other = {"authorization": "Bearer own"}, {"authorization": "Bearer other"}
    options = Options(target, "cheat", own, other, selection=SELECTION, level="smoke", timeout=timeout, watch=False)
    return Run(options, folder, Progress()).execute()


def held_against(report: ConformanceReport, earned: frozenset[str]) -> None:
    """Nothing passes but what was earned, nothing is the suite's fault, and the run has failed."""
    verdicts = {result.requirement: result for result in report.results if result.requirement in SELECTION}
    assert {name: result.reason for name, result in verdicts.items() if result.verdict is Verdict.harness_error} == {}
    assert {name for name, result in verdicts.items() if result.verdict is Verdict.pass_} == earned
    assert verdicts["COM-002"].verdict is Verdict.fail, "operations that are not answered are the target's own fault"
    assert verdicts["COM-002"].evidence
    assert report.exit_code == 1


@pytest.mark.parametrize("cheat", CHEATS)
def test_whoever_carries_out_nothing_passes_nothing(
    cheat: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kuayu_conformance.checks.kit.requests.TOLD", 0.5)
    monkeypatch.setattr("kuayu_conformance.checks.interface.declaration._SOON", 0)
    rule, earned = CHEATS[cheat]
    with by_rule(rule) as target:
        held_against(report_on(target, tmp_path), earned)


@pytest.mark.parametrize("cheat", SPOILT)
def test_a_status_without_its_answer_is_worth_nothing(cheat: str, minimal_server: str, tmp_path: Path) -> None:
    spoil, earned = SPOILT[cheat]
    with before(minimal_server, spoil) as target:
        held_against(report_on(target, tmp_path, timeout=10.0), earned)


def test_whoever_never_answers_is_not_taken_for_a_service(tmp_path: Path) -> None:
    """There is nothing to judge, and it is said at once; a time limit is waited for, and not a thousand."""
    over = threading.Event()

    def answer(_asked: BaseHTTPRequestHandler, _body: bytes) -> None:
        over.wait(10)

    with serving(answer) as target:
        with pytest.raises(TargetUnreachable, match="does not answer"):
            report_on(target, tmp_path, timeout=0.3)
        over.set()


@pytest.mark.alone
def test_whoever_declares_and_then_never_answers_fails(tmp_path: Path) -> None:
    """Each request waits for the whole time limit: it is short, and a busy machine would see no declaration."""
    over = threading.Event()

    def answer(asked: BaseHTTPRequestHandler, _body: bytes) -> tuple[Said, Mapping[str, str]] | None:
        if asked.path == DECLARATION:
            return Said(200, JSON, declaration()), {}
        over.wait(10)
        return None

    with serving(answer) as target:
        report = report_on(target, tmp_path, timeout=0.2)
        over.set()
    held_against(report, frozenset({"COM-001", "COM-003"}))
