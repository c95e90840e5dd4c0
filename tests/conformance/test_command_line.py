"""The command line as a vendor meets it, wrong input included."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-c", "from kuayu_conformance.cli import app; app()"]


def called(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("arguments", "cause", "hint"),
    [
        (["run", "--target", "localhost:8080", "-o", "x"], "is not a URL", "http://HOST:PORT"),
        (["run", "--target", "http://h", "-o", "x", "--profile", "ABC"], "no profile ABC", "COM, MET"),
        (["run", "--target", "http://h", "-o", "x", "--requirement", "MET-999"], "no requirement MET-999", "list"),
        (["run", "--target", "http://h", "-o", "x", "--header", "secret"], "not a header", "Name: value"),
        (["run", "--target", "http://h", "-o", "x", "--seed", "1", "--nonce", "y"], "both", "one of them"),
        (["explain", "MET-999"], "no requirement", "list"),
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
    explained = called("explain", "met-003").stdout
    assert "0.98" in explained
    assert "数据" in explained


def test_the_doctor_finds_what_is_wrong_before_the_run(miniature: str) -> None:
    well = called("doctor", "--target", miniature, "--header", "Authorization: Bearer own")
    assert well.returncode == 0
    assert "--other-tenant-header" in well.stdout
    unknown = called("doctor", "--target", miniature)
    assert unknown.returncode == 1
    assert "Authorization: Bearer" in unknown.stdout
    nobody = called("doctor", "--target", "http://127.0.0.1:9")
    assert nobody.returncode == 1


def test_a_run_ends_with_a_summary_and_a_report(miniature: str, tmp_path: Path) -> None:
    answer = called(
        *("run", "--target", miniature, "--header", "Authorization: Bearer own", "-o", str(tmp_path)),
        *("--requirement", "COM-008", "--seed", "5"),
    )
    assert answer.returncode == 0, answer.stderr
    assert "COM-008" in answer.stdout
    assert (tmp_path / "report.html").is_file()
    assert called("verify", str(tmp_path)).returncode == 0
