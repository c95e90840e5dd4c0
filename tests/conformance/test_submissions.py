"""A vendor hands a result in, failures included; whoever gets it relies on nothing in it."""

import hashlib
import json
import lzma
import shlex
import shutil
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import commands
import pytest
from conformance.test_claims import constant

from kuayu_conformance.folder import write
from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_conformance.submissions import check, not_judged_again, run_command, slug_of
from kuayu_conformance.transcript import Transcript
from kuayu_schemas import registers, schema
from kuayu_schemas.models import ConformanceReport

CONTACT = "conformance@acme.example"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a report on a service that declares IDX and answers hardly anything: a second's run that fails."""
    folder = tmp_path_factory.mktemp("failing")
    with constant(["COM", "IDX"]) as target:
        write(folder, Run(Options(target, "seed-7", timeout=3.0, watch=False), folder, Progress()).execute())
    return folder


def publish(report: Path, output: Path, *options: str, contact: str = CONTACT) -> subprocess.CompletedProcess[str]:
    return commands.run("conformance", "publish", report, "-o", output, "--contact", contact, *options)


@pytest.fixture(scope="session")
def handed_in(failing: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of its submission."""
    folder = tmp_path_factory.mktemp("submissions") / "constant"
    notes = folder.parent / "words.md"
    notes.write_text("Answers two requests.\n只响应两个请求。\n", "utf-8")
    done = publish(failing, folder, "--name", "constant", "--notes", str(notes))
    assert done.returncode == 0, done.stderr
    assert "fail: " in done.stderr, "a submission may hold failures, and whoever makes it is told"
    return folder


@pytest.fixture
def copy(handed_in: Path, tmp_path: Path) -> Path:
    """A copy of the submission, to be spoilt."""
    return Path(shutil.copytree(handed_in, tmp_path / "constant"))


def faults(*folders: Path) -> list[str]:
    return [fault for found in check(folders) for fault in found.faults]


def submission(folder: Path) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((folder / "submission.json").read_text("utf-8"))
    return body


def resealed(folder: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> None:
    """Change what the submission says, and make all digests right again, as a forger would."""
    body = submission(folder)
    change(body)
    for file in body["files"]:
        file["digest"] = "sha256:" + hashlib.sha256((folder / file["name"]).read_bytes()).hexdigest()
    (folder / "submission.json").write_text(json.dumps(body), "utf-8")


def test_a_submission_says_what_the_report_says(failing: Path, handed_in: Path) -> None:
    report, body = json.loads((failing / "report.json").read_text("utf-8")), submission(handed_in)
    assert schema.errors("Submission", body) == []
    for member in ("spec_version", "suite_version", "run_level", "nonce", "started_at", "finished_at"):
        assert body[member] == report[member]
    assert body["implementation"] == report["declaration"]["implementation"]
    assert json.loads((handed_in / "declaration.json").read_text("utf-8")) == report["declaration"]
    assert (handed_in / "report.json").read_bytes() == (failing / "report.json").read_bytes()
    (claim,) = body["claims"]
    failed = sum(row["verdict"] == "fail" and row["required"] for row in report["results"])
    assert (claim["profile"], claim["outcome"], claim["failed"]) == ("IDX", "not-met", failed)
    packed = lzma.decompress((handed_in / "transcript.jsonl.xz").read_bytes())
    assert packed == (failing / "transcript.jsonl").read_bytes()
    assert {path.name for path in handed_in.iterdir()} == {file["name"] for file in body["files"]} | {"submission.json"}


def test_its_readme_says_in_both_languages_how_to_make_it_again(handed_in: Path) -> None:
    readme, body = (handed_in / "README.md").read_text("utf-8"), submission(handed_in)
    assert readme.index("## How to reproduce") < readme.index("## 如何复现")
    for command in (body["made_by"], *body["repeat_by"]):
        assert readme.count(f"{command}\n") == 2
    assert "--seed 7" in body["made_by"]
    assert CONTACT in readme


def test_whoever_gets_it_judges_it_again_by_the_command_in_its_readme(
    handed_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(handed_in)
    program, *arguments = shlex.split(submission(handed_in)["repeat_by"][0])
    assert program == "kuayu"
    done = commands.run(*arguments)
    assert (done.returncode, done.stdout) == (0, "ok    .: level quick: IDX not-met; judged again\n")


def test_the_command_that_made_the_run_makes_it_again(failing: Path, handed_in: Path, tmp_path: Path) -> None:
    """Against a target of somebody else's, by the second command of the README."""
    with constant(["COM", "IDX"]) as target:
        arguments = shlex.split(submission(handed_in)["repeat_by"][1].replace("URL", target))[1:]
        done = commands.run(*arguments[:-1], tmp_path / "again")
    assert done.returncode == 1, done.stderr
    first, again = (json.loads((folder / "report.json").read_bytes()) for folder in (failing, tmp_path / "again"))
    assert again["nonce"] == first["nonce"]
    assert [row["verdict"] for row in again["results"]] == [row["verdict"] for row in first["results"]]


def test_headers_profiles_and_what_was_excluded_are_in_the_command(failing: Path) -> None:
    report = ConformanceReport.model_validate_json((failing / "report.json").read_bytes())
    header = {**Transcript.read(failing).header, "other_tenant": True, "excluded": {"IDX-001": "no tables here"}}
    command = shlex.split(run_command(report.model_copy(update={"nonce": "two words"}), header))
    assert command[command.index("--nonce") + 1] == "two words"
    assert command[command.index("--exclude") + 1] == "IDX-001=no tables here"
    assert command.count("NAME: VALUE") == 2


def without_claims(report: dict[str, Any]) -> None:
    report["declaration"]["profiles"] = ["COM"]


def as_a_smoke_run(report: dict[str, Any]) -> None:
    for row in report["results"]:
        row.update(verdict="not-applicable", required=False, reason="was not asked for")


@pytest.mark.parametrize(
    ("change", "cause", "hint"),
    [
        (without_claims, "nothing is claimed", "declare the profiles"),
        (as_a_smoke_run, "nothing is claimed at level", "without --requirement"),
        (lambda report: report.update(exit_code=0), "report.json differs from what", "conformance verify"),
        (lambda report: report.pop("nonce"), "nonce: Field required", "as `kuayu conformance run -o` wrote it"),
    ],
)
def test_a_report_that_claims_nothing_or_does_not_verify_is_refused(
    failing: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object], cause: str, hint: str
) -> None:
    folder = Path(shutil.copytree(failing, tmp_path / "report"))
    report = json.loads((folder / "report.json").read_text("utf-8"))
    change(report)
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    done = publish(folder, tmp_path / "out", "--name", "acme")
    said = " ".join(done.stderr.split())
    assert (done.returncode, cause in said, hint in said) == (2, True, True), said
    assert not (tmp_path / "out").exists()


def test_a_diagnosis_is_refused(brief_folder: Path, tmp_path: Path) -> None:
    done = publish(brief_folder, tmp_path / "out")
    assert done.returncode == 2
    assert "it is a diagnosis" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("options", "contact", "cause"),
    [
        (["--name", "Acme Scheduler"], CONTACT, "is no name for a submission"),
        (["--name", "reference"], CONTACT, "is that of the reference"),
        (["--name", "acme", "--notes", "nowhere.md"], CONTACT, "cannot be read"),
        (["--name", "acme"], "  ", "the contact is empty"),
        (["--name", "acme"], "x" * 2049, "contact: "),
    ],
)
def test_what_is_given_wrongly_is_refused_with_cause_and_hint(
    failing: Path, tmp_path: Path, options: list[str], contact: str, cause: str
) -> None:
    done = publish(failing, tmp_path / "out", *options, contact=contact)
    said = " ".join(done.stderr.split())
    assert (done.returncode, cause in said, "hint" in said) == (2, True, True), said
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_things_in_it_is_left_alone(failing: Path, handed_in: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    assert publish(failing, tmp_path, "--name", "acme").returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert publish(failing, failing, "--name", "acme").returncode == 2
    assert (failing / "transcript.jsonl").is_file()
    again = Path(shutil.copytree(handed_in, tmp_path / "again"))
    assert publish(failing, again, "--name", "acme").returncode == 0
    assert not (again / "notes.md").exists(), "what an earlier submission held is gone"
    assert faults(again) == []


def test_a_name_is_made_of_the_products(failing: Path, tmp_path: Path) -> None:
    assert slug_of("Acme Scheduler (v2)") == "acme-scheduler-v2"
    assert slug_of("某调度器") == ""
    assert publish(failing, tmp_path / "out").returncode == 0
    assert submission(tmp_path / "out")["name"] == slug_of(submission(tmp_path / "out")["implementation"]["name"])


@pytest.mark.parametrize("name", ["report.json", "transcript.jsonl.xz", "declaration.json", "README.md", "notes.md"])
def test_one_byte_changed_and_a_file_taken_away_are_noticed(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    assert faults(copy) == [f"{name} is not the file of which submission.json has the digest"]
    (copy / name).unlink()
    assert faults(copy) == [f"{name} is missing"]


def test_a_further_file_is_noticed_listed_or_not(copy: Path) -> None:
    (copy / "certificate.pdf").write_text("certified")
    assert faults(copy) == ["certificate.pdf is not among the listed files"]
    resealed(copy, lambda body: body["files"].append({"name": "certificate.pdf", "digest": ""}))
    assert faults(copy) == ["certificate.pdf does not belong to a submission"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda body: body["claims"][0].update(outcome="met"), "claims does not follow from the report"),
        (lambda body: body["implementation"].update(vendor="Acme"), "implementation does not follow from the report"),
        (lambda body: body.update(nonce="chosen-by-others"), "nonce does not follow from the report"),
        (lambda body: body.update(repeat_by=["curl x | sh"]), "repeat_by does not follow from the report"),
        (lambda body: body.update(submitted_at="2020-01-01T00:00:00Z"), "submitted_at is before the run had ended"),
        (lambda body: body.update(name="Acme.v2"), "Acme.v2 is no name for a submission"),
        (lambda body: body.update(name="reference"), "its name, reference, is that of the reference"),
        (lambda body: body.update(certified=True), "submission.json/certified: "),
        (lambda body: body.pop("contact"), "submission.json: "),
    ],
)
def test_what_does_not_follow_from_the_report_is_noticed(
    copy: Path, change: Callable[[dict[str, Any]], object], fault: str
) -> None:
    resealed(copy, change)
    (found,) = faults(copy)
    assert found.startswith(fault)


def test_another_declaration_is_noticed(copy: Path) -> None:
    declared = (copy / "declaration.json").read_text("utf-8")
    (copy / "declaration.json").write_text(declared.replace('"IDX"', '"SCH"'), "utf-8")
    resealed(copy)
    assert faults(copy) == ["declaration.json is not what the report says that the target declared"]


def test_a_report_made_better_does_not_follow_from_its_transcript(copy: Path) -> None:
    """The forger has made everything else fit: claims, digests, counts."""
    report = json.loads((copy / "report.json").read_text("utf-8"))
    for row in report["results"]:
        if row["verdict"] != "not-applicable":
            row["verdict"] = "pass"
    (copy / "report.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    judged = sum(row["required"] for row in report["results"])
    better = {"profile": "IDX", "outcome": "met", "judged": judged, "passed": judged, "failed": 0, "lacking": []}
    resealed(copy, lambda body: body.update(claims=[better]))
    (found,) = faults(copy)
    assert found.startswith("report.json differs from what the transcript leads to")


def test_what_was_revised_since_is_not_judged_again_and_the_line_says_so(
    handed_in: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = ConformanceReport.model_validate_json((handed_in / "report.json").read_bytes())
    rows = registers.requirements()
    later = report.finished_at + timedelta(days=1)
    revised = [row.model_copy(update={"revised": later if row.id == "IDX-001" else None}) for row in rows.requirements]
    monkeypatch.setattr(registers, "requirements", lambda: rows.model_copy(update={"requirements": revised}))
    assert not_judged_again(report) == {"IDX-001"}
    (found,) = check([handed_in])
    assert found.faults == ()
    assert found.note.endswith("judged again but for IDX-001, which changed since")
    forged = (copy / "report.json").read_text("utf-8").replace('"spec_version": "0.1.0"', '"spec_version": "9.9"', 1)
    (copy / "report.json").write_text(forged, "utf-8")
    resealed(copy, lambda body: body.update(spec_version="9.9"))
    assert faults(copy) == ["spec_version of the report is not that of the transcript"]


def test_two_submissions_of_one_name_are_noticed_and_each_has_its_line(handed_in: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(handed_in, tmp_path / "other"))
    (tmp_path / "empty").mkdir()
    done = commands.run("conformance", "check-submission", handed_in, other, tmp_path / "empty", COLUMNS="80")
    first, second, third = done.stdout.splitlines()
    assert first.startswith("ok ")
    assert second.startswith("wrong")
    assert second.endswith(f"its name, constant, is also that of {handed_in}")
    assert third.startswith("wrong")
    assert "submission.json cannot be read" in third
    assert done.returncode == 1


def test_committed_submissions_are_small_and_lie_under_their_names() -> None:
    """That they are right, `make submissions` says."""
    folders = sorted((ROOT / "docs/results/submissions").iterdir())
    assert folders
    for folder in folders:
        assert submission(folder)["name"] == folder.name
        assert sum(path.stat().st_size for path in folder.iterdir()) < 3e6
