"""The pages of indicators, exporters and results say in Chinese what their sources say in English."""

import re
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from kuayu_schemas import registers

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "docs/hooks/pages/captures-zh.yaml"
TEXTS = ("what", "version", "committed", "licence", "left_out", "cross_check")
A_WORD = re.compile(r"(?<!\S)[a-z]{2,}(?=[\s,;.]|$)")
NO_TEXT = re.compile(r"<code>.*?</code>|&#\d+;|<[^>]*>|\([^)]*\)|[\w.*-]*[_/][\w./*-]*")
"""What is no text of a page: code, entities, tags, addresses, and names and paths of others."""
SENTENCE = re.compile(r"[A-Za-z]+(?: [a-z]+){3,}")


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


def test_all_that_is_said_of_captured_pages_is_there_in_chinese() -> None:
    text = files("kuayu_conformance").joinpath("exporters/captures/provenance.yaml").read_text("utf-8")
    captures = yaml.safe_load(text)["captures"]
    said = {str(capture[key]) for capture in captures for key in TEXTS if key in capture}
    said |= {field["confirmed_in"] for capture in captures for field in capture["missing_fields"]}
    chinese = yaml.safe_load(CAPTURES.read_text("utf-8"))
    assert chinese.keys() == {text for text in said if A_WORD.search(text)}
    assert [text for text in chinese.values() if not re.search(r"[\u4e00-\u9fff]", text)] == []


def test_no_english_sentence_is_left_on_the_chinese_pages() -> None:
    from pages import exporters, indicators  # type: ignore[import-not-found]

    made = {page.path: page.text for module in (exporters, indicators) for page in module.pages("zh")}
    assert len(made) == 2
    assert [found for text in made.values() for found in SENTENCE.findall(NO_TEXT.sub(" · ", text))] == []


def test_english_pages_say_what_the_register_says() -> None:
    from pages import exporters
    from pages.markdown import plain  # type: ignore[import-not-found]

    (page,) = exporters.pages("en")
    assert [row.id for row in registers.indicators().exporters if plain(row.note or "") not in page.text] == []
    assert len(SENTENCE.findall(NO_TEXT.sub(" · ", page.text))) > 100


def test_a_citation_leads_to_its_file_in_either_language() -> None:
    from pages.citations import cited  # type: ignore[import-not-found]

    link = "[owner/name src/a.go](https://github.com/owner/name/blob/0123abc/src/a.go)"
    assert cited("owner/name src/a.go, src/b.go @0123abc (v1); a manual") == f"{link}, src/b.go @0123abc (v1); a manual"
    assert cited("owner/name src/a.go、src/b.go @0123abc（v1）；手册") == f"{link}、src/b.go @0123abc（v1）；手册"


def test_what_reports_say_stands_in_chinese_on_the_chinese_page_of_results() -> None:
    from docs.published import report
    from docs.published import results as table
    from pages import ingest, results
    from pages.markdown import plain

    made = {
        language: next(iter(results.pages(language, ROOT, ingest.section(language, ROOT)))).text
        for language in ("en", "zh")
    }
    for requirement, row in table().items():
        (found,) = (each for each in report(row["run"]).results if each.requirement == requirement)
        said = [found.estimator, found.verdict != "pass" and found.reason]
        for text in (plain(each) for each in said if each):
            assert text in made["en"]
            assert text not in made["zh"], requirement
    assert SENTENCE.findall(NO_TEXT.sub(" · ", made["zh"])) == []


def test_what_every_check_does_is_said_in_chinese_with_the_same_requirements() -> None:
    from pages.requirements import purpose

    from kuayu_conformance.checks import CHECKS, RUN_CHECKS

    checks = {check.name: check.judge.__module__ for check in (*(listed.load() for listed in CHECKS), *RUN_CHECKS)}
    chinese = yaml.safe_load((ROOT / "docs/hooks/pages/checks-zh.yaml").read_text("utf-8"))
    assert chinese.keys() == checks.keys()
    for name, module in checks.items():
        told = purpose("zh", name, module)
        assert re.search(r"[\u4e00-\u9fff]", told)
        named = [set(re.findall(r"[A-Z]{3}-\d{3}", text)) for text in (told, purpose("en", name, module))]
        assert named[1] <= named[0], name


def test_no_description_of_a_check_is_left_in_english_on_the_chinese_pages_of_requirements() -> None:
    from pages import requirements
    from pages.markdown import plain

    made = "".join(page.text for page in requirements.pages("zh", ROOT))
    modules = {row.check for row in registers.requirements().requirements if row.check}
    assert [module for module in modules if plain(requirements.purpose("en", "", module)) in made] == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_check_leads_to_its_source(language: str) -> None:
    from pages import requirements

    sources = {f"/{file.path}": file.text for file in requirements.shared()}
    links = set(re.findall(r"\]\((/checks/[^)]+)\)", "".join(page.text for page in requirements.pages(language, ROOT))))
    assert links == sources.keys()
    assert all("def judge" in text for text in sources.values())
