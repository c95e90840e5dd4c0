"""README, CONTRIBUTING, home pages and navigation: what they tell people to type works, what they name is there."""

import re
import shlex
from pathlib import Path
from typing import Any

import commands
import pytest
import yaml

from kuayu.cli import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md")
HOMES = ("docs/en/index.md", "docs/zh/index.md")
TYPED = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
PLACEHOLDER = re.compile(r"[A-Z]{2,}\b|…")
MADE = re.compile(r"\.(?!ci)|__pycache__|build$|dist$|site$")
"""Folders that are made, and not committed."""
LONGEST_CELL = 120
FOLDERS = (
    "spec",
    "conformance/kuayu_conformance",
    "reference_impl/kuayu",
    "training/kuayu_training",
    "tests",
    "docs",
)


def text(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def typed(page: str) -> list[list[str]]:
    """Commands that a page shows, in blocks or within a line, as words."""
    lines = [line for block in TYPED.findall(text(page)) for line in block.splitlines()] + SPAN.findall(text(page))
    shown = [shlex.split(line, comments=True) for line in lines if re.match(r"(\.venv/bin/)?kuayu \w", line)]
    return [[word.removeprefix(".venv/bin/") for word in words] for words in shown]


@pytest.mark.parametrize("page", [*PAGES, *HOMES])
def test_every_command_and_option_that_it_shows_exists(page: str) -> None:
    for words in typed(page):
        names = [word for word in words[1:3] if re.fullmatch(r"[a-z]+", word)]
        assert names[0] in COMMANDS
        told = commands.run(*names[: 2 if names[0] in {"conformance", "bench"} else 1], "--help", COLUMNS="200")
        assert told.returncode == 0
        assert {word for word in words if word.startswith("--")} <= set(re.findall(r"--[a-z-]+", told.stdout))


@pytest.mark.parametrize("page", [*PAGES, *HOMES])
def test_every_target_of_make_that_it_names_exists(page: str) -> None:
    known = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^\$ |^)make ([a-z-]+)", text(page), re.MULTILINE)) <= known


def test_the_researchers_command_compares_the_reference_with_a_baseline() -> None:
    (words,) = (words for words in typed("README.md") if words[1] == "bench")
    compared = commands.run(*words[1:], COLUMNS="100")
    assert compared.returncode == 0, compared.stderr
    assert re.findall(r"^(\w+) +\d", compared.stdout, re.MULTILINE) == ["yours", "B1"]


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_it_names_is_there(page: str) -> None:
    named = {span for span in SPAN.findall(text(page)) if "/" in span and " " not in span and "://" not in span}
    named = {span for span in named if not PLACEHOLDER.search(span) and not span.startswith((".venv", "build/"))}
    assert [span for span in sorted(named) if not is_there(span)] == []


def is_there(span: str) -> bool:
    """Whether there is such a path, seen from the root or as the end of a longer one."""
    return (ROOT / span).exists() or any(list((ROOT / folder).rglob(span.rstrip("/"))) for folder in FOLDERS)


@pytest.mark.parametrize("page", PAGES)
def test_no_cell_of_a_table_is_long(page: str) -> None:
    rows = [line for line in text(page).splitlines() if line.startswith("|")]
    assert [cell for row in rows for cell in row.split("|") if len(cell.strip()) > LONGEST_CELL] == []


def test_contributing_shows_every_folder() -> None:
    shown = set(SPAN.findall(text("CONTRIBUTING.md")))
    for folder in ("", *FOLDERS):
        inside = {f"{each.name}/" for each in (ROOT / folder).iterdir() if each.is_dir() and not MADE.match(each.name)}
        assert inside
        assert inside <= shown, folder


def test_every_guide_is_listed_once_under_who_it_is_for() -> None:
    class Loader(yaml.SafeLoader):
        """Reads mkdocs.yml, whose tags name functions."""

    Loader.add_multi_constructor("", lambda *_: None)
    configuration: dict[str, Any] = yaml.load(text("mkdocs.yml"), Loader)  # noqa: S506 - a safe loader
    (groups,) = (entry["Guides"] for entry in configuration["nav"] if "Guides" in entry)
    listed = [page for group in groups for pages in group.values() for each in pages for page in each.values()]
    assert sorted(listed) == sorted(f"guides/{file.name}" for file in (ROOT / "docs/en/guides").glob("*.md"))
    assert [name for group in groups for name in group] == [
        "For standards bodies",
        "For vendors",
        "For integrators",
        "For researchers",
    ]


def test_the_navigation_is_translated_whole() -> None:
    configuration = text("mkdocs.yml")
    titles = re.findall(r"^ +- ([A-Z][^:\n]*):", configuration[: configuration.index("\ntheme:")], re.MULTILINE)
    translated = set(re.findall(r"^ {12}([A-Z][^:\n]*):", configuration, re.MULTILINE))
    assert [title for title in titles if title not in translated] == []
