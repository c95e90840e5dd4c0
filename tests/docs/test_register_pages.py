"""Generated pages say in Chinese what their sources say in English."""

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.resources import files
from inspect import getsource, signature
from pathlib import Path
from typing import Any

import pytest
import yaml

from kuayu_schemas import registers

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "docs/hooks/text/captures_zh.yaml"
TEXTS = ("what", "version", "committed", "licence", "left_out", "cross_check")
A_WORD = re.compile(r"(?<!\S)[a-z]{2,}(?=[\s,;.]|$)")
NO_TEXT = re.compile(r"<code>.*?</code>|`[^`]*`|&#\d+;|<[^>]*>|\([^)]*\)|[\w.*-]*[_/][\w./*-]*")
"""What is no text of a page: code, entities, tags, addresses, and names and paths of others."""
SENTENCE = re.compile(r"[A-Za-z]+(?: [a-z]+){3,}")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
NAMES_OF_OTHERS = re.compile(
    r"[\w-]+-exporter|otel-hw|x86_64|\w+Error|fastapi|numpy|orjson|postgresql|psycopg|python|scipy|sqlalchemy|sqlite|uvicorn"
)
"""Programs, exporters, packages and exceptions among the figures."""
GENERATED = (
    "requirements", "indicators", "exporters", "api", "problems", "schemas", "probe_sets", "chinese", "perception",
    "demand_measured", "forecast_measured", "scheduling_measured", "resilience_measured", "world", "implementations",
    "changelog", "differences",
)  # fmt: skip
"""Modules of pages that are read whole here."""
OTHERWISE = {
    "results": "below",
    "worked": "takes long to compute; its source is held below, and all else is given in both languages",
    "handbook": "takes long to compute, and all of it is given in both languages",
    "standard": "written in each language; its bibliography names papers by their titles",
    "decisions": "in English, and say so",
    "security": "none in Chinese: docs/zh has it",
}
"""Other modules, and why they are not."""


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


@pytest.mark.parametrize("module", GENERATED)
def test_no_english_sentence_is_left_on_the_chinese_pages(module: str) -> None:
    pages = import_module(f"pages.{module}").pages
    made = list(pages("zh", *([ROOT] if "root" in signature(pages).parameters else [])))
    assert made
    assert [found for page in made for found in SENTENCE.findall(NO_TEXT.sub(" · ", page.text))] == []


def test_every_generated_page_is_held_to_its_language() -> None:
    import pages  # type: ignore[import-not-found]

    written = set(re.findall(r"yield from (\w+)\.pages", getsource(pages.written_pages)))
    assert written == {*GENERATED, *OTHERWISE}


def test_pages_that_stay_english_say_so_in_chinese() -> None:
    from pages import decisions

    (*_, records) = decisions.pages("zh", ROOT / "docs/decisions")
    assert "记录以英文书写" in records.text


@pytest.mark.parametrize("folder", ["perception", "forecast/speed"])
def test_every_name_of_a_figure_is_there_in_chinese(folder: str) -> None:
    from pages.translations import figure_name  # type: ignore[import-not-found]

    place = ROOT / "docs/results" / folder
    runs = sorted(place.glob("*.json")) or [place.with_suffix(".json")]
    names = {name for run in runs for name in _names(json.loads(run.read_text("utf-8")))}
    left = {name for name in names if re.search("[a-z]{2}", name) and not CHINESE.search(figure_name("zh", name))}
    assert {name for name in left if not NAMES_OF_OTHERS.fullmatch(name)} == set()
    assert [name for name in names if figure_name("en", name) != name] == []


def test_every_state_and_reason_of_the_recogniser_is_there_in_chinese() -> None:
    from pages.text import vocabulary  # type: ignore[import-not-found]
    from pages.translations import figure_name

    from kuayu.perception.recognition.values import REASONS, STATES

    said, named = vocabulary("figures").lists["reasons"], vocabulary("judged_measured").lists["states"]
    assert (set(said), set(named)) == (set(REASONS), set(STATES))
    assert figure_name("zh", "busy: accelerators work as usual") == "忙碌：加速器正常工作"


def _names(value: Any) -> Iterator[str]:
    """Names of the figures at any depth, and what words stand among them."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield name.replace("_", " ")
            yield from _names(member)
    elif isinstance(value, list):
        for member in value:
            yield from _names(member)
    elif isinstance(value, str):
        yield value


def test_all_that_tables_say_of_themselves_is_there_in_chinese() -> None:
    from pages import chinese, worked

    from kuayu_conformance.corpora import load

    runs = json.loads((ROOT / "docs/results/index/probe_sets.json").read_text("utf-8"))
    said = {runs["method"], *(each["title"] for each in runs["tables"])}
    said |= {load(name, None).source for name in (chinese.TABLE, *(case.table for case in worked.CASES))}
    told = yaml.safe_load((ROOT / "docs/hooks/text/tables_zh.yaml").read_text("utf-8"))
    assert told.keys() == said
    for english, text in told.items():
        assert SENTENCE.findall(NO_TEXT.sub(" · ", text)) == []
        assert set(re.findall(r"[0-9a-f]{40}|\d+%", english)) == set(
            re.findall(r"[0-9a-f]{40}|\d+%", text.replace(" %", "%"))
        )


def test_the_source_of_every_requirement_is_said_in_chinese() -> None:
    from pages.translations import source_text  # type: ignore[import-not-found]

    sources = {row.source for row in registers.requirements().requirements}
    assert [source for source in sources if not CHINESE.search(source_text("zh", source))] == []
    assert source_text("zh", "this standard (RFC 9457, RFC 6901)") == "本标准（RFC 9457, RFC 6901）"
    assert source_text("en", "this standard") == "this standard"


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
    from pages.requirements import checks, purpose  # type: ignore[import-not-found]

    chinese = yaml.safe_load((ROOT / "docs/hooks/text/checks_zh.yaml").read_text("utf-8"))
    assert chinese.keys() == checks().keys()
    for name, check in checks().items():
        told = purpose("zh", check)
        assert re.search(r"[\u4e00-\u9fff]", told)
        named = [set(re.findall(r"[A-Z]{3}-\d{3}", text)) for text in (told, purpose("en", check))]
        assert named[1] <= named[0], name


def test_no_description_of_a_check_is_left_in_english_on_the_chinese_pages_of_requirements() -> None:
    from pages import requirements
    from pages.markdown import plain

    made = "".join(page.text for page in requirements.pages("zh", ROOT))
    checks = requirements.checks()
    assert [name for name, check in checks.items() if plain(requirements.purpose("en", check)) in made] == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_check_leads_to_its_source(language: str) -> None:
    from pages import requirements

    sources = {f"/{file.path}": file.text for file in requirements.shared()}
    links = set(re.findall(r"\]\((/checks/[^)]+)\)", "".join(page.text for page in requirements.pages(language, ROOT))))
    assert links == sources.keys()
    assert all("def judge" in text for text in sources.values())
