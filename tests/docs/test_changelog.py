"""The changelog has its Chinese, entry by entry, and the Chinese page shows nothing else."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


def test_every_entry_has_its_chinese_and_every_row_its_entry() -> None:
    from pages import changelog  # type: ignore[import-not-found]

    differing = changelog.differing(CHANGELOG, changelog.rows(ROOT))
    assert not differing, "\n".join(differing)


def test_rows_are_in_chinese_under_names_that_differ_and_the_first_words_of_their_entries() -> None:
    from pages import changelog

    rows = changelog.rows(ROOT)
    assert len({row["digest"] for row in rows}) == len(rows)
    assert [row for row in rows if row.keys() != {"digest", "of", "zh"} or not CHINESE.search(row["zh"])] == []
    words = " ".join(CHANGELOG.split())
    assert [row["of"] for row in rows if row["of"] not in words] == []


def test_names_and_links_of_an_entry_stand_in_its_chinese_too() -> None:
    """What the Chinese names in code or leads to, the English does."""
    from pages import changelog

    told = {changelog.digest(block): block for block in changelog.told(CHANGELOG)}
    for row in changelog.rows(ROOT):
        english = " ".join(told[row["digest"]].replace("`", "").split())
        for name in re.findall(r"`([^`]+)`", row["zh"]):
            assert name in english, row
        for place in re.findall(r"\]\(([^)]+)\)", row["zh"]):
            assert re.sub(r"/zh/", "/en/", place) in english, row
        for identifier in re.findall(r"[A-Z]{3}-\d{3}", row["zh"]):
            assert identifier in english, row


def test_an_entry_that_is_new_or_changed_is_told_with_what_to_do() -> None:
    from pages import changelog

    known = [{"digest": changelog.digest("It is new."), "of": "It is new.", "zh": "新。"}]
    assert changelog.differing("# Changelog\n\n## [Unreleased]\n\n- It is\n  new.\n", known) == []
    missing, left = changelog.differing("# Changelog\n\n## [Unreleased]\n\n- It is newer.\n", known)
    assert "no Chinese of this entry; add a row to docs/changelog-zh.yaml" in missing
    assert "of: 'It is newer.'" in missing
    assert "look at its Chinese and take over its digest" in left


def test_both_pages_have_the_same_entries_and_the_chinese_one_says_that_it_is_condensed() -> None:
    from pages import changelog

    shown = {language: next(changelog.pages(language, ROOT)).text for language in ("en", "zh")}
    counts = {name: (text.count("\n- "), text.count("\n## "), text.count("\n### ")) for name, text in shown.items()}
    assert counts["en"] == counts["zh"]
    assert "以英文为准" in shown["zh"]
    assert "](/decisions/" in shown["zh"]
