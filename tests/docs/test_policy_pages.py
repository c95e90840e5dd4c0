"""What the pages on versioning, governance and comparison say of the project itself is so, in both languages."""

import re
from pathlib import Path

import pytest

from changes.change import RULES
from kuayu_schemas import registers

ROOT = Path(__file__).parents[2]
LANGUAGES = ("en", "zh")
PAGES = ("comparison", "faq", "governance", "versioning")
LINK = re.compile(r"\]\(([^)\s]+)\)")
MARKS = {"experimental": "试验", "candidate": "候选", "stable": "稳定", "none": "无"}


def text(language: str, page: str) -> str:
    return (ROOT / "docs" / language / f"{page}.md").read_text("utf-8")


def rows(language: str, page: str) -> list[list[str]]:
    """Cells of all rows of a page's tables."""
    lines = [line for line in text(language, page).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def marks(language: str) -> dict[str, tuple[str, str]]:
    """Marks of interface and figures by profile, in English words."""
    english = {word: word for word in MARKS} | {word: name for name, word in MARKS.items()}
    return {
        cells[0]: (english[cells[1]], english[cells[2]])
        for cells in rows(language, "versioning")
        if re.fullmatch("[A-Z]{3}", cells[0])
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_profile_has_a_mark(language: str) -> None:
    assert list(marks(language)) == [row.profile.value for row in registers.requirements().profiles]


def test_both_languages_mark_the_same() -> None:
    assert marks("en") == marks("zh")


def test_figures_whose_method_was_revised_are_experimental_and_no_others_but_by_name() -> None:
    revised = {
        row.profile.value
        for row in registers.requirements().requirements
        if row.revised and row.level.value == "performance"
    }
    assert {profile for profile, (_, figures) in marks("en").items() if figures == "experimental"} == revised


def test_a_profile_without_figures_has_no_mark_for_them() -> None:
    measured = {row.profile.value for row in registers.requirements().requirements if row.level.value == "performance"}
    assert {profile for profile, (_, figures) in marks("en").items() if figures != "none"} == measured


def test_nothing_is_stable_before_one() -> None:
    before_one = registers.SPEC_VERSION.startswith("0.")
    assert not (before_one and any("stable" in both for both in marks("en").values()))


@pytest.mark.parametrize("page", PAGES)
def test_both_languages_have_the_same_headings_tables_and_links(page: str) -> None:
    def outline(language: str) -> tuple[list[str], list[int], list[str]]:
        levels = re.findall(r"^(#+) ", text(language, page), re.MULTILINE)
        links = sorted(link for link in LINK.findall(text(language, page)) if "semver.org" not in link)
        return levels, [len(cells) for cells in rows(language, page)], links

    assert outline("en") == outline("zh")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_links_between_pages_lead_to_pages(language: str, page: str) -> None:
    """Those that the site's hook makes stand in folders, or begin with a name of theirs."""
    made = re.compile(r"standard/|requirements/|decisions/|results[\w-]*\.md|implementations\.md")
    for link in (link for link in LINK.findall(text(language, page)) if "://" not in link):
        if link.startswith("standard/"):
            assert (ROOT / "spec/text" / language / link.removeprefix("standard/").partition("#")[0]).is_file(), link
        elif not made.match(link):
            assert (ROOT / "docs" / language / link.partition("#")[0]).is_file(), link


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_table_of_the_comparison_has_the_same_projects_in_the_same_order(language: str) -> None:
    lines = text(language, "comparison").split("\n\n")
    tables = [[row.split("|")[1].strip() for row in block.splitlines()[2:]] for block in lines if block.startswith("|")]
    projects = tables[0]
    assert projects[0] == "Kuayu"
    assert {"SkyPilot", "Karmada", "Volcano Global", "Kueue MultiKueue", "KAI Scheduler", "dstack"} < set(projects)
    assert tables[1:] == [projects, projects, projects[1:]]


def test_both_languages_name_the_same_commits_and_versions() -> None:
    def named(language: str) -> list[str]:
        page = text(language, "comparison")
        return sorted(re.findall(r"\[([0-9a-f]{7})\]", page)) + sorted(re.findall(r"\b\d+\.\d+\.\d+\b", page))

    assert named("en") == named("zh")
    assert len(named("en")) > len(rows("en", "comparison")) // 4


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_command_of_the_page_is_there(language: str) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert "make changes SINCE=COMMIT" in text(language, "versioning")
    assert re.search(r"^changes:.*SINCE=COMMIT", makefile, re.MULTILINE)
    assert "method-revised" in RULES
