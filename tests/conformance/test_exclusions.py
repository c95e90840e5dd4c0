"""What a vendor leaves out of a run with a reason is not tested, and everybody who reads the report is told."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import run as called

from kuayu_conformance.folder import verify
from kuayu_conformance.run.resumption import Contradiction, ResumedRun
from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_conformance.transcript import FILE_NAME, Transcript

WHY = "our gateway rewrites Retry-After; fixed in release 4"


def result_of(folder: Path, requirement: str) -> dict[str, Any]:
    report = json.loads((folder / "report.json").read_text("utf-8"))
    found: dict[str, Any] = next(row for row in report["results"] if row["requirement"] == requirement)
    return found


@pytest.fixture(scope="module")
def excluded_folder(minimal_server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that tests profile COM but for what it excludes, and is limited to what takes no time."""
    folder = tmp_path_factory.mktemp("excluded")
    answer = called(
        *("conformance", "run", "--target", minimal_server, "--header", "Authorization: Bearer own"),
        *("-o", folder, "--seed", "5"),
        *("--requirement", "COM-012", "--requirement", "COM-008", "--exclude", f"com-009= {WHY} "),
    )
    assert answer.returncode == 0, answer.stderr
    (folder / "said").write_text(answer.stdout, "utf-8")
    return folder


def test_it_is_not_tested_and_report_summary_and_coverage_say_so(excluded_folder: Path) -> None:
    result = result_of(excluded_folder, "COM-009")
    assert (result["verdict"], result["required"], result["reason"]) == ("not-applicable", False, f"excluded: {WHY}")
    page = (excluded_folder / "report.html").read_text("utf-8")
    assert f"excluded: {WHY}" in page
    assert "Whoever made the run excluded 1 of them (COM-009), which were not tested." in page
    said = " ".join((excluded_folder / "said").read_text("utf-8").split())
    assert f"excluded: {WHY}" in said
    assert result_of(excluded_folder, "COM-012")["verdict"] == "pass"


def test_the_header_states_it_and_who_judges_again_comes_to_the_same(excluded_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    shutil.copytree(excluded_folder, folder, ignore=shutil.ignore_patterns("said"))
    assert Transcript.read(folder).header["excluded"] == {"COM-009": WHY}
    assert all(verdict.agrees for verdict in verify(folder))
    path = folder / FILE_NAME
    path.write_text(path.read_text("utf-8").replace(WHY, "it is hard"), "utf-8")
    assert not all(verdict.agrees for verdict in verify(folder)), "another reason makes another report"


def test_a_check_is_not_made_for_what_is_excluded_alone(options: Options, tmp_path: Path) -> None:
    both = replace(options, selection=(), profiles=("COM",), excluded={"COM-012": WHY})
    made: list[str] = []

    class Named(Progress):
        def planned(self, checks: list[Any]) -> None:
            made.extend(check.name for check in checks)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Run(both, tmp_path / "without", Named()).execute()
    without = set(made)
    made.clear()
    with pytest.raises(KeyboardInterrupt):
        Run(replace(both, excluded={}), tmp_path / "with", Named()).execute()
    assert set(made) - without == {"com_paging"}


def test_a_run_that_is_gone_on_with_excludes_what_it_did(options: Options, tmp_path: Path) -> None:
    class Impatient(Progress):
        def finished(self, *_: object) -> None:
            raise KeyboardInterrupt

    chosen = replace(options, selection=("COM-008", "COM-012"), excluded={"COM-009": WHY})
    with pytest.raises(KeyboardInterrupt):
        Run(chosen, tmp_path, Impatient()).execute()
    again = replace(chosen, nonce="", level="", selection=(), excluded={})
    with pytest.raises(Contradiction, match=r"begun with --exclude COM-009=our gateway.*, not COM-009=it is hard"):
        ResumedRun(replace(again, excluded={"COM-009": "it is hard"}), tmp_path, Progress())
    report = ResumedRun(again, tmp_path, Progress()).execute()
    assert {row.reason for row in report.results if row.requirement == "COM-009"} == {f"excluded: {WHY}"}


def test_a_transcript_of_before_excludes_nothing(brief_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    shutil.copytree(brief_folder, folder)
    path = folder / FILE_NAME
    header, rest = path.read_bytes().split(b"\n", 1)
    without = {name: value for name, value in json.loads(header).items() if name != "excluded"}
    path.write_bytes(json.dumps(without).encode() + b"\n" + rest)
    differing = {verdict.name for verdict in verify(folder) if not verdict.agrees}
    report = json.loads((folder / "report.json").read_text("utf-8"))
    assert "report.json" in differing, "it names the transcript by its digest"
    assert {row["verdict"] for row in report["results"]} == {"pass", "not-applicable"}


@pytest.mark.parametrize(
    ("exclusions", "cause", "hint"),
    [
        (["COM-009"], "COM-009 is excluded without a reason", "--exclude 'COM-009=REASON'"),
        (["COM-009= "], "COM-009 is excluded without a reason", "gives the reason to whoever reads it"),
        (["COM-9=x"], "no requirement COM-9; did you mean COM-009?", "list"),
        (["COM-009=x", "COM-009=y"], "excluded twice", "one reason"),
        (["COM-012=x"], "both asked for and excluded", "leave out"),
    ],
)
def test_exclusions_that_say_too_little_are_refused(
    exclusions: list[str], cause: str, hint: str, tmp_path: Path
) -> None:
    typed = [part for exclusion in exclusions for part in ("--exclude", exclusion)]
    folder = tmp_path / "report"
    answer = called("conformance", "run", "--target", "http://h", "-o", str(folder), "--requirement", "COM-012", *typed)
    words = " ".join(answer.stderr.split())
    assert (answer.returncode, cause in words, hint in words) == (2, True, True), answer.stderr
    assert not folder.exists()
