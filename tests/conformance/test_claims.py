"""A claim of conformance is about a declared profile, over all of its requirements; emptiness is not success."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from conformance.rendering.samples import TESTED, sample

from kuayu_conformance.claims import EXCLUDED_BECAUSE, LEFT_TO_LONGER_RUNS, NOT_ASKED_FOR, Outcome, claims, is_diagnosis
from kuayu_conformance.folder import BADGE, rendered, verify, write
from kuayu_conformance.rendering import page
from kuayu_conformance.rendering.headline import claimed, headline, tone
from kuayu_conformance.rendering.view import view_of
from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_schemas import registers
from kuayu_schemas.models import ConformanceReport, Verdict


def left_out(report: ConformanceReport, requirement: str, reason: str) -> ConformanceReport:
    """The report of a run in which a requirement was left out."""
    over = {"verdict": Verdict.not_applicable, "required": False, "reason": reason}
    results = [row.model_copy(update=over) if row.requirement == requirement else row for row in report.results]
    return report.model_copy(update={"results": results})


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        ({}, Outcome.MET),
        ({"MET-003": "fail"}, Outcome.NOT_MET),
        ({"COM-008": "fail"}, Outcome.NOT_MET),
        ({"MET-002": "inconclusive"}, Outcome.UNDECIDED),
        ({"COM-006": "not-testable"}, Outcome.UNDECIDED),
        ({"MET-010": "not-supported"}, Outcome.MET),
    ],
)
def test_a_profile_conforms_where_it_and_what_holds_for_everybody_is_met(
    verdicts: dict[str, str], outcome: Outcome
) -> None:
    (claim,) = claims(sample(verdicts))
    assert (claim.profile, claim.outcome) == ("MET", outcome)


@pytest.mark.parametrize("reason", [NOT_ASKED_FOR, LEFT_TO_LONGER_RUNS, f"{EXCLUDED_BECAUSE}no such exporter here"])
@pytest.mark.parametrize("requirement", ["MET-003", "COM-008"])
def test_a_profile_of_which_something_was_left_out_is_not_claimed(requirement: str, reason: str) -> None:
    report = left_out(sample(), requirement, reason)
    (claim,) = claims(report)
    assert (claim.outcome, claim.lacking) == (Outcome.NOT_CLAIMED, (requirement,))
    assert BADGE not in rendered(report)
    assert "not claimed, 1 of its requirements were left out" in page(report)


def test_what_fails_is_said_though_something_was_left_out() -> None:
    report = left_out(sample({"MET-003": "fail"}), "MET-004", LEFT_TO_LONGER_RUNS)
    assert claims(report)[0].outcome is Outcome.NOT_MET


def test_a_selection_is_a_diagnosis() -> None:
    report = sample(selection=["COM-008", "MET-003"])
    view = view_of(report, registers.requirements())
    assert is_diagnosis(report)
    assert not claims(report)
    assert not claimed(view)
    assert tone(view) == "none"
    said = headline(view)
    assert said.en == f"Diagnosis of {TESTED} requirements of kuayu: met. No claim of conformance follows."
    assert "不构成符合性结论" in said.zh
    assert BADGE not in rendered(report)


def test_a_diagnosis_says_what_is_not_met() -> None:
    report = sample({"COM-008": "fail", "MET-002": "inconclusive"}, selection=["COM-008"])
    assert "1 not met, 1 undecided." in headline(view_of(report, registers.requirements())).en


DECLARATION: dict[str, Any] = {
    "spec_version": registers.SPEC_VERSION,
    "implementation": {"name": "three constants", "version": "1"},
    "features": [],
    "limits": {"max_body": 16777216, "max_batch": 10000, "max_page": 1000, "retention": 604800, "idempotency": 86400},
    "durability": "process",
    "revision": {"epoch": "e", "number": 1},
}


@contextmanager
def constant(profiles: list[str]) -> Iterator[str]:
    """A server that knows three constant answers, and declares some profiles."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            declared = {**DECLARATION, "profiles": profiles, "now": now}
            bodies = {"/v1/conformance": declared, "/v1/health": {"status": "ok", "now": now}}
            self._answer(200 if self.path in bodies else 404, bodies.get(self.path, {"type": "about:blank"}))

        def do_PUT(self) -> None:
            self._answer(404, {"type": "about:blank"})

        do_POST = do_DELETE = do_PATCH = do_PUT  # noqa: N815 - as the base class looks for them

        def _answer(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json" if status < 400 else "application/problem+json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_three_constant_answers_and_no_profile_claim_nothing(tmp_path: Path) -> None:
    with constant(["COM"]) as target:
        report = Run(Options(target, "n", timeout=3.0), tmp_path, Progress()).execute()
    write(tmp_path, report)
    assert report.exit_code != 0
    assert not claims(report)
    assert not (tmp_path / BADGE).exists()
    assert all(verdict.agrees for verdict in verify(tmp_path)), "a folder without a badge is whole"


def test_a_false_declaration_gets_no_claim_from_one_requirement(tmp_path: Path, options: Options) -> None:
    chosen = dataclasses.replace(options, selection=("COM-012",))
    report = Run(chosen, tmp_path, Progress()).execute()
    write(tmp_path, report)
    assert (report.exit_code, claims(report)) == (0, ())
    assert "No claim of conformance follows" in (tmp_path / "report.html").read_text()
    assert not (tmp_path / BADGE).exists()
