"""The list of decisions on the Chinese pages has a Chinese title and a sentence for each record."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/decisions"
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


def test_every_record_has_a_chinese_title_and_one_sentence_and_nothing_else_has() -> None:
    rows = yaml.safe_load((FOLDER / "zh.yaml").read_text("utf-8"))
    assert list(rows) == sorted(int(file.name[:4]) for file in FOLDER.glob("[0-9]*.md"))
    for number, row in rows.items():
        assert row.keys() == {"title", "summary"}, number
        assert all(CHINESE.search(text) for text in row.values()), number
        assert row["summary"].count("。") == 1, number
        assert row["summary"].endswith("。"), number


@pytest.mark.usefixtures("hooks")
def test_the_chinese_list_shows_both_and_the_english_one_the_title_of_the_record() -> None:
    from pages import decisions  # type: ignore[import-not-found]
    from pages.markdown import plain  # type: ignore[import-not-found]

    listed = {
        language: {page.path: page.text for page in decisions.pages(language, FOLDER)} for language in ("en", "zh")
    }
    rows = yaml.safe_load((FOLDER / "zh.yaml").read_text("utf-8"))
    chinese, english = (listed[language]["decisions/index.md"] for language in ("zh", "en"))
    assert all(plain(text) in chinese for row in rows.values() for text in row.values())
    assert "[Change control](/decisions/0051-change-control.md)" in english
    assert "[变更控制](/decisions/0051-change-control.md)" in chinese


@pytest.mark.usefixtures("hooks")
def test_the_chinese_page_of_a_record_begins_with_what_was_decided() -> None:
    from pages import decisions

    texts = {
        language: {page.path: page.text for page in decisions.pages(language, FOLDER)} for language in ("en", "zh")
    }
    path, row = "decisions/0051-change-control.md", yaml.safe_load((FOLDER / "zh.yaml").read_text("utf-8"))[51]
    assert texts["en"][path] == (FOLDER / "0051-change-control.md").read_text("utf-8")
    head, _, rest = texts["zh"][path].partition("## Context")
    assert head.startswith(f"# 51. {row['title']}\n\n{row['summary']}\n\n")
    assert "Change control" in head
    assert rest == texts["en"][path].partition("## Context")[2]
