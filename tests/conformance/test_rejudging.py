"""A report can be judged again, and nothing in it can be changed unnoticed."""

import json
import lzma
import random
import shutil
from pathlib import Path

import pytest

from kuayu_conformance.folder import verify, verify_some
from kuayu_conformance.run.judgement import judge
from kuayu_conformance.transcript import FILE_NAME, Transcript, TranscriptError
from kuayu_schemas import schema

FILES = ("report.json", "report.html", "junit.xml", FILE_NAME)
"""Of a diagnosis; whoever claims something has a badge as well."""


def agrees(folder: Path) -> bool:
    try:
        return all(verdict.agrees for verdict in verify(folder))
    except TranscriptError:
        return False


def test_an_untouched_report_follows_from_its_transcript(report_folder: Path) -> None:
    assert sorted(path.name for path in report_folder.iterdir()) == sorted(FILES)
    assert agrees(report_folder)


def test_judged_on_several_processors_the_report_is_the_same(brief_folder: Path, tmp_path: Path) -> None:
    transcript = Transcript.read(brief_folder)
    assert judge(transcript, processes=2) == judge(transcript)
    lines = (brief_folder / FILE_NAME).read_text("utf-8").splitlines()
    broken = [lines[0].replace('"selection":[', '"selection":["COM-003",', 1)]
    broken += [line.replace('"status":200', '"status":299') for line in lines[1:]]
    (tmp_path / FILE_NAME).write_text("\n".join(broken) + "\n", "utf-8")
    worse = Transcript.read(tmp_path)
    report = judge(worse, processes=2)
    assert report == judge(worse)
    (schemas,) = [result for result in report.results if result.requirement == "COM-003"]
    assert schemas.evidence, "what checks over the whole run find shows where, whoever has judged it"


def test_the_report_is_what_the_schema_says(report_folder: Path) -> None:
    report = json.loads((report_folder / "report.json").read_text("utf-8"))
    assert schema.errors("ConformanceReport", report) == []
    assert {row["verdict"] for row in report["results"]} == {"pass", "not-applicable"}


@pytest.mark.parametrize("name", FILES)
def test_one_byte_changed_anywhere_is_noticed(brief_folder: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(brief_folder, folder)
    original = (folder / name).read_bytes()
    chance = random.Random(name)
    for place in [0, len(original) - 1, *(chance.randrange(len(original)) for _ in range(6))]:
        changed = bytearray(original)
        changed[place] ^= 1 << chance.randrange(7)
        (folder / name).write_bytes(changed)
        assert not agrees(folder), f"byte {place} of {name}"
    (folder / name).write_bytes(original)
    assert agrees(folder)


def test_a_missing_and_a_foreign_file_are_noticed(brief_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(brief_folder, folder)
    (folder / "notes.txt").write_text("hello")
    assert not agrees(folder)
    (folder / "notes.txt").unlink()
    (folder / "badge.svg").write_text("<svg>conforms</svg>")
    assert not agrees(folder), "a badge is drawn from a claim, and a diagnosis claims nothing"
    (folder / "badge.svg").unlink()
    assert agrees(folder)
    (folder / "junit.xml").unlink()
    assert not agrees(folder)


def test_an_answer_made_better_afterwards_does_not_carry_the_old_report(report_folder: Path, tmp_path: Path) -> None:
    """Who edits the transcript must come to another report, for the report names its digest."""
    folder = tmp_path / "copy"
    shutil.copytree(report_folder, folder)
    path = folder / FILE_NAME
    path.write_bytes(path.read_bytes().replace(b'"status":404', b'"status":200', 1))
    disagreeing = {verdict.name for verdict in verify(folder) if not verdict.agrees}
    assert "report.json" in disagreeing


def test_a_transcript_of_other_requests_is_a_harness_error(report_folder: Path, tmp_path: Path) -> None:
    """A record made with another nonce does not fit the requests that the suite makes again."""
    folder = tmp_path / "copy"
    shutil.copytree(report_folder, folder)
    path = folder / FILE_NAME
    path.write_bytes(path.read_bytes().replace(b'"nonce":"stories"', b'"nonce":"another"', 1))
    verdicts = {row.requirement: row.verdict.value for row in judge(Transcript.read(folder)).results}
    assert verdicts["MET-003"] == "harness-error"


def test_a_run_cut_short_is_no_report(report_folder: Path, tmp_path: Path) -> None:
    lines = (report_folder / FILE_NAME).read_bytes().splitlines(keepends=True)
    (tmp_path / FILE_NAME).write_bytes(b"".join(lines[:-1]))
    with pytest.raises(TranscriptError, match="cut short"):
        Transcript.read(tmp_path)


def test_no_credential_is_in_the_folder(report_folder: Path) -> None:
    for path in report_folder.iterdir():
        text = path.read_text("utf-8")
        assert "Bearer own" not in text, path.name
        assert "Bearer other" not in text, path.name


def test_a_report_that_is_kept_with_its_transcript_compressed_is_judged_again(
    brief_folder: Path, tmp_path: Path
) -> None:
    """What can be drawn from the report need not be kept; the report must, and agree."""
    report, transcript = tmp_path / "report.json", tmp_path / f"{FILE_NAME}.xz"
    report.write_bytes((brief_folder / "report.json").read_bytes())
    transcript.write_bytes(lzma.compress((brief_folder / FILE_NAME).read_bytes()))
    assert agrees(tmp_path)
    report.write_text(report.read_text("utf-8").replace('"pass"', '"fail"', 1), "utf-8")
    assert not agrees(tmp_path)
    report.unlink()
    assert not agrees(tmp_path)
    transcript.write_bytes(b"no archive")
    with pytest.raises(TranscriptError, match="cannot be unpacked"):
        list(verify(tmp_path))


def test_judging_side_by_side_comes_to_the_same(brief_folder: Path, tmp_path: Path) -> None:
    """And finds what was altered."""
    folder = tmp_path / "copy"
    shutil.copytree(brief_folder, folder)
    alone, beside = (set(verify_some(folder, lambda _: True, processes=processes)) for processes in (1, 2))
    assert alone == beside
    assert len(alone) == 8, "seven requirements, and the transcript"
    report = folder / "report.json"
    report.write_text(report.read_text("utf-8").replace('"verdict": "pass"', '"verdict": "fail"', 1), "utf-8")
    wrong = [verdict for verdict in verify_some(folder, lambda _: True, processes=2) if not verdict.agrees]
    assert len(wrong) == 1
    assert "leads to pass" in wrong[0].why


def test_some_of_a_report_can_be_judged_again(brief_folder: Path, tmp_path: Path) -> None:
    """What takes long need not be, where only something else is doubted."""
    folder = tmp_path / "copy"
    shutil.copytree(brief_folder, folder)

    def judged() -> dict[str, bool]:
        return {verdict.name: verdict.agrees for verdict in verify_some(folder, lambda c: c.name == "com_paging")}

    assert judged() == {FILE_NAME: True, "COM-012": True}
    report = json.loads((folder / "report.json").read_text("utf-8"))
    for result in report["results"]:
        result["verdict"] = "fail" if result["requirement"] in {"COM-001", "COM-012"} else result["verdict"]
    (folder / "report.json").write_text(json.dumps(report), "utf-8")
    assert judged() == {FILE_NAME: True, "COM-012": False}
    changed = (folder / FILE_NAME).read_bytes().replace(b'"finished_at":"2', b'"finished_at": "2')
    (folder / FILE_NAME).write_bytes(changed)
    assert judged()[FILE_NAME] is False
