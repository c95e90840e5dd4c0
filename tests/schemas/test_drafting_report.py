"""The drafting report of a submission: what it counts and shows follows from registers, results and annex F."""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from document import drafting_report
from document.assembling import Assembled, assemble
from document.sources import ROOT, Sources


@cache
def standard() -> Assembled:
    return assemble(Sources(), "zh", lambda path: Path(path).name)


@cache
def report() -> Assembled:
    return drafting_report.assemble(Sources(), standard())


def lines(document: Assembled, title: str) -> list[list[str]]:
    """Cells of the rows of the table with a title, without their heads."""
    blocks = document.markdown.split("\n\n")
    (place,) = (number for number, block in enumerate(blocks) if re.fullmatch(rf": 表 \d+\u2003{title}", block))
    rows = [line.strip("| ").split(" | ") for line in blocks[place - 1].splitlines()]
    return [[cell.replace("\\", "").strip() for cell in row] for row in rows[2:]]


def results() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ROOT / "docs/results/results.json").read_text("utf-8"))
    return found


def test_no_figure_is_typed() -> None:
    """Digits of the source are those of dates, versions, clauses and names of documents; results are marks."""
    text = drafting_report.SOURCE.read_text("utf-8")
    for mark in re.findall(r"@@.*?@@", text):
        text = text.replace(mark, "")
    text = re.sub(r"2025 年 11 月|V0\.2|GB/T [\d.—]+|Y\.2501|95 %|^\d\. ", "", text, flags=re.MULTILINE)
    assert re.findall(r"\d+", text) == []


def test_every_mark_is_filled_in_and_every_part_is_used() -> None:
    assert "@@" not in report().markdown
    used = set(re.findall(r"@@part:(\w+)", drafting_report.SOURCE.read_text("utf-8")))
    assert used == drafting_report.PARTS.keys()


def test_what_was_missed_is_listed_and_counted() -> None:
    missed = {row["requirement"] for row in results() if row["verdict"] != "pass"}
    assert missed
    assert {cells[0] for cells in lines(report(), "未通过与未能判定的要求")} == missed
    verdicts = Counter(row["verdict"] for row in results())
    assert f"通过 {verdicts['pass']} 项，不通过 {verdicts['fail']} 项" in report().markdown


def test_every_figure_stands_beside_its_bound_threshold_and_verdict() -> None:
    shown = {cells[0]: cells for cells in lines(report(), "性能类要求的结果")}
    rows = {row["id"]: row for row in Sources().requirements["requirements"]}
    assert shown.keys() == {
        row["requirement"] for row in results() if "estimate" in row and "threshold" in rows[row["requirement"]]
    }
    found = {row["requirement"]: row for row in results()}
    for identifier, cells in shown.items():
        verdict = drafting_report.VERDICTS[found[identifier]["verdict"]]
        assert cells[5].startswith(verdict)
        assert cells[5].endswith("（先前的方法）") == bool(found[identifier].get("earlier_method"))


def test_a_requirement_without_a_test_has_its_reason() -> None:
    without = {row["id"] for row in Sources().requirements["requirements"] if not row.get("check")}
    listed = lines(report(), "没有测试的要求")
    assert {cells[0] for cells in listed} == without
    assert all(cells[2] for cells in listed)


def test_requirements_of_all_clauses_add_up() -> None:
    counted = lines(report(), "各章的要求")
    rows = Sources().requirements["requirements"]
    assert sum(int(cells[2]) for cells in counted) == len(rows)
    assert sum(int(cells[3]) for cells in counted) == sum(1 for row in rows if row.get("check"))


def test_the_comparison_is_that_of_annex_f_with_clauses_by_their_numbers() -> None:
    mapped = lines(report(), "与 GB/T 46346—2025 的指标对照")
    assert [cells[0].split()[0] for cells in mapped] == [row["id"] for row in Sources().indicators["indicators"]]
    number = next(heading.number for heading in standard().headings if heading.anchor == "com-14-architecture")
    assert f"草案 {number}“体系架构”" in report().markdown
    assert ".md)" not in report().markdown


@pytest.mark.parametrize(
    ("value", "threshold", "shown"),
    [
        (0.0768538, {"value": 0.25, "unit": "1"}, "7.69 %"),
        (-0.86, {"value": -0.001, "unit": "1"}, "-0.86"),
        (2.66801, {"value": 3, "unit": "s"}, "2.67 s"),
        (3600.0, {"value": 10, "unit": "s"}, "超过 1 % 始终未见"),
        (12.0, {"value": 12, "unit": "{indicator}"}, "12"),
        (None, {"value": 1, "unit": "s"}, "–"),
    ],
)
def test_a_figure_is_shown_in_its_unit(value: float | None, threshold: dict[str, Any], shown: str) -> None:
    assert drafting_report.figure(value, threshold).replace("\\", "") == shown


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """All that the report is made of, to be changed."""
    for folder in ("spec/text", "spec/model", "spec/document", "spec/lint", "schemas/kuayu_schemas/published"):
        copytree(ROOT / folder, tmp_path / folder, ignore=lambda *_: ["__pycache__"])
    for register in ("requirements", "indicators", "problems"):
        (tmp_path / f"spec/{register}.yaml").write_bytes((ROOT / f"spec/{register}.yaml").read_bytes())
    (tmp_path / "docs/results").mkdir(parents=True)
    (tmp_path / "docs/results/results.json").write_bytes((ROOT / "docs/results/results.json").read_bytes())
    return tmp_path


def test_other_results_make_another_report(copy: Path) -> None:
    file = copy / "docs/results/results.json"
    rows = json.loads(file.read_text("utf-8"))
    (row,) = (row for row in rows if row["requirement"] == "COM-001")
    row["verdict"] = "fail"
    file.write_text(json.dumps(rows), "utf-8")
    changed = drafting_report.assemble(Sources(copy), standard())
    assert "COM-001" in {cells[0] for cells in lines(changed, "未通过与未能判定的要求")}


def test_a_section_that_annex_f_no_longer_has_is_missed(copy: Path) -> None:
    annex = copy / "spec/text/zh/annex-f-neighbours.md"
    annex.write_text(annex.read_text("utf-8").replace("## 待比对", "## 其余"), "utf-8")
    with pytest.raises(ValueError, match="待比对"):
        drafting_report.assemble(Sources(copy), standard())
