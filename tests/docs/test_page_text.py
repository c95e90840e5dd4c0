"""What generated pages and the draft say of themselves lies in files that translators edit, alike in each language."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Environment

ROOT = Path(__file__).parents[2]
TEXT, HANDBOOK = ROOT / "docs/hooks/text", ROOT / "training/kuayu_training/demand/handbook_text"
CODE = ("docs/hooks/pages", "spec/document", "training/kuayu_training/demand")
MODULES = sorted(file for folder in CODE for file in (ROOT / folder).glob("*.py"))
TEMPLATES = sorted(file for folder in (TEXT, HANDBOOK) for file in folder.glob("*.en.md"))
PHRASES = [*sorted(TEXT.glob("*.yaml")), HANDBOOK / "handbook.yaml", ROOT / "spec/document/words.yaml"]
CHINESE = re.compile(r"[\u4e00-\u9fff]")
OTHERS_NAMES = {"spec/document/word.py": "fonts", "spec/document/clauses.py": "what a heading of the text begins with"}
"""Modules with Chinese that is no prose, and what it is."""


def figures(template: str) -> Counter[str]:
    """What a template puts in, and when; strings, such as headings of tables, are its own."""
    found, inside = [""], False
    for _, kind, value in Environment(autoescape=True).lex(template):
        if kind in {"variable_begin", "block_begin"}:
            found.append("")
        inside = kind not in {"variable_end", "block_end"} and (inside or kind in {"variable_begin", "block_begin"})
        if inside and kind in {"name", "operator", "integer"}:
            found[-1] += f" {value}"
    return Counter(found)


def pairs(said: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every phrase that is said in both languages, with the names that lead to it."""
    if isinstance(said, dict) and said.keys() == {"en", "zh"}:
        yield place, said["en"], said["zh"]
    elif isinstance(said, dict):
        for name, inner in said.items():
            yield from pairs(inner, f"{place}.{name}")


def strings(file: Path) -> Iterator[str]:
    """Strings of a module but for docstrings."""
    tree = ast.parse(file.read_text("utf-8"))
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def in_chinese(file: Path) -> Path:
    return file.with_name(file.name.replace(".en.", ".zh."))


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.name.partition(".")[0])
def test_a_page_has_the_same_figures_in_both_languages(file: Path) -> None:
    english, chinese = file.read_text("utf-8"), in_chinese(file).read_text("utf-8")
    assert figures(english) == figures(chinese)
    assert english.count("\n") == chinese.count("\n")


def test_no_page_is_there_in_chinese_alone() -> None:
    chinese = [file for folder in (TEXT, HANDBOOK) for file in folder.glob("*.zh.md")]
    assert sorted(chinese) == sorted(map(in_chinese, TEMPLATES))


@pytest.mark.parametrize("file", PHRASES, ids=lambda file: file.stem)
def test_a_phrase_has_the_same_places_in_both_languages(file: Path) -> None:
    for place, english, chinese in pairs(yaml.safe_load(file.read_text("utf-8"))):
        if isinstance(english, list):
            assert len(english) == len(chinese), place
        elif not place.startswith(".parts."):  # of patterns, where braces mean something else
            assert Counter(re.findall(r"{[^}]*}", english)) == Counter(re.findall(r"{[^}]*}", chinese)), place


@pytest.mark.parametrize("file", MODULES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_no_module_says_it_itself(file: Path) -> None:
    if str(file.relative_to(ROOT)) not in OTHERS_NAMES:
        assert [text for text in strings(file) if CHINESE.search(text)] == [], "say it in docs/hooks/text or words.yaml"


def test_every_file_of_text_is_used() -> None:
    named = {text for file in MODULES for text in strings(file)}
    stems = {re.sub(r"(\.en|\.zh|_zh)?\.(md|yaml)$", "", file.name) for file in TEXT.iterdir()}
    assert stems - named == set()
