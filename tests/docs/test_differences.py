"""What differs between versions of the standard is told on a page of its own, out of the sets that are kept of them."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kuayu_conformance.rendering.words import Language
from kuayu_schemas import registers

ROOT = Path(__file__).parents[2]
LANGUAGES = ("en", "zh")
IDENTIFIER = re.compile(r"^\| (?:\[)?([A-Z]{3}-\d{3})\b", re.MULTILINE)


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


def shown(language: Language, root: Path = ROOT) -> dict[str, str]:
    """Text of each step from a version to the next, by its anchor."""
    from pages import differences  # type: ignore[import-not-found]

    (made,) = differences.pages(language, root)
    sections = re.split(r"^## .*\{ #(.+) \}$", made.text, flags=re.MULTILINE)
    return dict(zip(sections[1::2], sections[2::2], strict=True))


def kept(name: str) -> dict[str, dict[str, str]]:
    """Requirements of a version as they are kept, by identifier."""
    rows = json.loads((ROOT / f"spec/releases/{name}/requirements.json").read_text("utf-8"))["requirements"]
    return {row["id"]: row for row in rows}


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A copy of what the page is made of, in which each test edits what an earlier version asked for."""
    for name in ("releases", "text"):
        shutil.copytree(ROOT / "spec" / name, tmp_path / "spec" / name)
    shutil.copy(ROOT / "spec/requirements.yaml", tmp_path / "spec")
    return tmp_path


def edit(root: Path, name: str, identifier: str, **members: object) -> None:
    """Have a version ask for something else, of a requirement that it had or had not."""
    file = root / f"spec/releases/{name}/requirements.json"
    frozen = json.loads(file.read_text("utf-8"))
    rows = {row["id"]: row for row in frozen["requirements"]}
    rows[identifier] = {**rows.get(identifier, {"id": identifier}), **members}
    file.write_text(json.dumps({**frozen, "requirements": list(rows.values())}), "utf-8")


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_requirement_that_differs_is_told_once_and_no_other_is(language: Language) -> None:
    before, after = kept("0.1"), kept("0.2")
    differing = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    told = IDENTIFIER.findall(shown(language)["from-0.1"])
    assert sorted(told) == sorted(differing)
    assert len(told) >= 100


def test_requirements_stand_under_the_clauses_that_have_them_in_the_order_of_the_draft() -> None:
    clauses = re.findall(r"^### \[.*\]\(/standard/(.+)\.md\)$", shown("en")["from-0.1"], re.MULTILINE)
    known = {row.id: row.clause for row in registers.requirements().requirements}
    assert clauses[0] == known["COM-001"]
    assert clauses[-1] == known["JOB-001"]
    assert len(clauses) == len(set(clauses))


@pytest.mark.parametrize(
    ("language", "weight", "words"),
    [("en", "breaking", "another threshold: <del>"), ("zh", "不兼容", "阈值改变：<del>")],
)
def test_another_threshold_breaks_and_both_are_shown(
    earlier: Path, language: Language, weight: str, words: str
) -> None:
    threshold = {"comparison": "at_least", "value": 6.0, "unit": "1"}
    edit(earlier, "0.2", "MET-004", threshold=threshold)
    (row,) = [line for line in shown(language, earlier)["from-0.2"].splitlines() if "#MET-004" in line]
    assert weight in row
    assert words in row
    assert row.index("<del>") < row.index("<ins>")


def test_a_sentence_in_other_words_is_editorial_and_shows_both(earlier: Path) -> None:
    edit(earlier, "0.2", "COM-008", text_en="A PUT that is repeated shall change nothing.")
    row = next(line for line in shown("en", earlier)["from-0.2"].splitlines() if "#COM-008" in line)
    assert "editorial" in row
    assert "<del>A PUT that is repeated shall change nothing.</del> <ins>A PUT that is repeated shall leave" in row
    elsewhere = next(line for line in shown("zh", earlier)["from-0.2"].splitlines() if "#COM-008" in line)
    assert "条文改换措辞（英文）" in elsewhere


def test_one_that_was_withdrawn_names_what_took_its_place(earlier: Path) -> None:
    edit(earlier, "0.2", "RES-013", modal="shall", text_en="It shall work.", text_zh="应工作。")
    step = shown("en", earlier)["from-0.2"]
    row = next(line for line in step.splitlines() if line.startswith("| RES-013"))
    assert "breaking" in row
    assert "instead: [COM-042](/requirements/com.md#COM-042)" in row
    assert "### Withdrawn requirements" in step


def test_where_nothing_differs_that_is_said(earlier: Path) -> None:
    from pages.text import phrases  # type: ignore[import-not-found]

    from changes import releases
    from changes.versions import read

    releases.write(read(None), "0.2", earlier)
    assert shown("en", earlier)["from-0.2"].strip().startswith(phrases("differences", "en")["nothing"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_is_found_from_the_list_of_clauses(language: Language) -> None:
    from pages import differences, standard

    index = next(page for page in standard.pages(language, ROOT / "spec/text") if page.path == "standard/index.md")
    assert f"](/{differences.FILE})" in index.text
