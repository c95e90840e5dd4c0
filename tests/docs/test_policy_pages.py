"""What the pages on versioning, governance and comparison say of the project itself is so, in both languages."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from changes.change import RULES
from kuayu_schemas import registers

ROOT = Path(__file__).parents[2]
LANGUAGES = ("en", "zh")
PAGES = ("comparison", "faq", "governance", "versioning")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def text(language: str, page: str) -> str:
    return (ROOT / "docs" / language / f"{page}.md").read_text("utf-8")


def rows(language: str, page: str) -> list[list[str]]:
    """Cells of all rows of a page's tables."""
    lines = [line for line in text(language, page).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


@pytest.mark.usefixtures("hooks")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_on_versioning_states_each_promise_and_counts_every_item(language: str) -> None:
    from pages import stability  # type: ignore[import-not-found]
    from pages.text import phrases  # type: ignore[import-not-found]

    assert text(language, "versioning").count(stability.MARK) == 1
    register = yaml.safe_load((ROOT / "spec/stability.yaml").read_text("utf-8"))
    shown = stability.overview(language)
    assert all(row[f"promise_{language}"] in shown for row in register["marks"])
    counted = [[int(cell) for cell in re.findall(r"(?<=\| )\d+(?= \|)", line)] for line in shown.splitlines()]
    kinds, profiles = [row for row in counted if row][:4], [row for row in counted if row][4:]
    assert [sum(row) for row in kinds] == [len(register[kind]) for kind in phrases("stability", language)["kinds"]]
    assert len(profiles) == len(registers.requirements().profiles)
    assert [sum(column) for column in zip(*profiles, strict=True)] == kinds[0]


def test_before_one_stable_promises_no_more_than_how_a_break_comes() -> None:
    register = yaml.safe_load((ROOT / "spec/stability.yaml").read_text("utf-8"))
    stable = next(row for row in register["marks"] if row["mark"] == "stable")
    assert registers.SPEC_VERSION.startswith("0.")
    assert "before 1.0 with a minor version" in stable["promise_en"]
    assert "1.0 之前随次版本发生" in stable["promise_zh"]


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
    made = re.compile(
        r"standard/differences\.md|requirements/|decisions/|reference/|results[\w-]*\.md|implementations\.md"
    )
    for link in (link for link in LINK.findall(text(language, page)) if "://" not in link):
        if made.match(link):
            continue
        if link.startswith("standard/"):
            assert (ROOT / "spec/text" / language / link.removeprefix("standard/").partition("#")[0]).is_file(), link
        else:
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
