"""The command line as a vendor meets it, wrong input included."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import commands
import pytest


def called(*arguments: str) -> subprocess.CompletedProcess[str]:
    return commands.run(*arguments, server=commands.suite_server())


@pytest.mark.parametrize(
    ("arguments", "cause", "hint"),
    [
        (["run", "--target", "localhost:8080", "-o", "x"], "is not a URL", "http://HOST:PORT"),
        (["run", "--target", "http://h", "-o", "x", "--profile", "ABC"], "no profile ABC", "COM, MET"),
        (["run", "--target", "http://h", "-o", "x", "--requirement", "MET-999"], "no requirement MET-999", "list"),
        (["run", "--target", "http://h", "-o", "x", "--header", "secret"], "not a header", "Name: value"),
        (["run", "--target", "http://h", "-o", "x", "--seed", "1", "--nonce", "y"], "both", "one of them"),
        (["explain", "MET-999"], "no requirement", "list"),
        (["explain", "res-013"], "RES-013 was withdrawn in version 0.2: COM-042 says the same", "name COM-042 instead"),
        (["explain", "RES-10"], "no requirement RES-10; did you mean RES-010?", "list"),
        (["verify", "x", "--requirement", "COM_8"], "no requirement COM_8; did you mean COM-008?", "list"),
        (["list", "--profile", "SHC"], "no profile SHC; did you mean SCH?", "COM, MET"),
        (
            ["list", "--profile", "RES/colectives"],
            "no sub-profile RES/colectives; did you mean RES/collectives?",
            "RES/",
        ),
        (
            ["list", "--profile", "SCH/telepathy"],
            "no sub-profile SCH/telepathy",
            "sub-profiles are SCH/decisions, SCH/",
        ),
        (["list", "--profile", "XYZ/routes"], "no sub-profile XYZ/routes", "MET/telemetry"),
        (["verify", "no-such-folder"], "cannot be read", "proves nothing"),
    ],
)
def test_wrong_input_is_answered_with_cause_and_hint(arguments: list[str], cause: str, hint: str) -> None:
    answer = called(*arguments)
    assert answer.returncode != 0
    words = " ".join(answer.stderr.split())
    assert cause in words
    assert hint in words
    assert "Traceback" not in answer.stderr


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    answer = called("run", "--target", "http://127.0.0.1:9", "-o", str(tmp_path))
    assert "thesis.tex" in answer.stderr
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_every_requirement_can_be_listed_and_explained() -> None:
    listed = called("list", "--profile", "met")
    assert "MET-003" in listed.stdout
    assert "COM-001" not in listed.stdout
    part = called("list", "--profile", "res/COLLECTIVES")
    assert re.findall(r"RES-\d{3}", part.stdout) == ["RES-010"]
    assert "SCH/decisions, SCH/fronts, SCH/plans" in called("explain", "SCH-020").stdout
    explained = called("explain", "met-003").stdout
    assert "数据" in explained
    assert re.search(r"required +at least 98\W%\naim +at least 99\.9\W%\n", explained), "no figure has the unit 1"


def test_the_doctor_finds_what_is_wrong_before_the_run(minimal_server: str) -> None:
    well = called("doctor", "--target", minimal_server, "--header", "Authorization: Bearer own")
    assert well.returncode == 0
    assert "--other-tenant-header" in well.stdout
    unknown = called("doctor", "--target", minimal_server)
    assert unknown.returncode == 1
    assert "Authorization: Bearer" in unknown.stdout
    nobody = called("doctor", "--target", "http://127.0.0.1:9")
    assert nobody.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "status", "cause", "hint", "code"),
    [
        ([], 200, "declaration: GET /v1/conformance answers 200 and no declaration", "the URL given must be", 1),
        ([], 404, "declaration: GET /v1/conformance answers 404 and no declaration", "the URL given must be", 1),
        ([], 401, "credentials: the target answers 401", "Authorization: Bearer TOKEN", 1),
        (["--requirement", "COM-001"], 401, "credentials: the target answers 401", "Authorization: Bearer TOKEN", 1),
    ],
)
def test_a_run_without_anything_to_test_stops_at_once_and_leaves_an_earlier_report(
    tmp_path: Path, arguments: list[str], status: int, cause: str, hint: str, code: int
) -> None:
    (tmp_path / "report.json").write_text("earlier")
    with login_page(status) as target:
        answer = called("run", "--target", target, "-o", str(tmp_path), *arguments)
    words = " ".join(answer.stderr.split())
    assert (answer.returncode, cause in words, hint in words) == (code, True, True), words
    assert "nothing was tested" in words
    assert (tmp_path / "report.json").read_text() == "earlier"


def test_a_selection_is_tested_against_whatever_answers(tmp_path: Path) -> None:
    """It may be the declaration itself that is looked for."""
    with login_page(200) as target:
        answer = called("run", "--target", target, "-o", str(tmp_path), "--requirement", "COM-001", "--timeout", "2")
    assert answer.returncode == 1
    assert "no declaration" in answer.stderr
    assert "COM-001" in answer.stdout


@contextmanager
def login_page(status: int) -> Iterator[str]:
    """A server that answers everything with a page for people."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"<!doctype html><title>Log in</title>"
            self.send_response(status)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_DELETE = do_PATCH = do_GET  # noqa: N815 - as the base class looks for them

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_run_ends_with_a_summary_and_a_report(minimal_server: str, tmp_path: Path) -> None:
    answer = called(
        *("run", "--target", minimal_server, "--header", "Authorization: Bearer own", "-o", str(tmp_path)),
        *("--requirement", "COM-008", "--seed", "5"),
    )
    assert answer.returncode == 0, answer.stderr
    assert "COM-008" in answer.stdout
    assert (tmp_path / "report.html").is_file()
    assert called("verify", str(tmp_path)).returncode == 0
