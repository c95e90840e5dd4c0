"""The pages of the standard's text stand in the order of the document, and figures are where clauses look for them."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from document import drafting_report
from kuayu_conformance.rendering.words import Language
from kuayu_schemas import registers

ROOT = Path(__file__).parents[2]
TEXT = ROOT / "spec/text"
HEADINGS = {"en": ("Foreword and introduction", "Annexes and bibliography"), "zh": ("前言与引言", "附录与参考文献")}


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


@pytest.mark.parametrize("language", HEADINGS)
def test_front_matter_comes_before_the_clauses_and_annexes_after_them(language: Language) -> None:
    from pages import standard  # type: ignore[import-not-found]

    made = [page for page in standard.pages(language, TEXT) if page.section]
    profiles = [row.name_zh if language == "zh" else row.name_en for row in registers.requirements().profiles]
    first, last = HEADINGS[language]
    assert list(dict.fromkeys(page.group for page in made)) == [first, *profiles, last]
    names = [Path(page.path).stem for page in made]
    assert names[:2] == ["front-01-foreword", "front-02-introduction"]
    assert names[-3:] == ["annex-e-sources", "annex-f-neighbours", "bibliography"]


@pytest.mark.parametrize("language", HEADINGS)
def test_a_figure_is_found_from_its_clause(language: Language) -> None:
    from pages import standard

    made = {page.path: page.text for page in standard.pages(language, TEXT)}
    assert f"](../figures/architecture-{language}.svg)" in made["standard/com-14-architecture.md"]
    drawn = (TEXT / f"figures/architecture-{language}.svg").read_text("utf-8")
    assert made[f"figures/architecture-{language}.svg"] == drawn


@pytest.mark.parametrize("language", HEADINGS)
def test_steps_have_the_letters_by_which_the_text_speaks_of_them(language: Language) -> None:
    from pages import standard

    made = {page.path: page.text for page in standard.pages(language, TEXT)}
    text = made["standard/com-14-architecture.md"]
    steps, _, rest = text.partition('<div class="steps" markdown>\n\n1. ')[2].partition("\n\n</div>\n\n")
    assert re.findall(r"^\d+", steps, re.MULTILINE) == [str(place) for place in range(2, 9)]
    assert set(re.findall(r"\b([a-z])\)", rest)) == set("bcdefgh")
    assert ".steps > ol" in (ROOT / "docs/assets/kuayu.css").read_text("utf-8")


@pytest.mark.parametrize("language", HEADINGS)
def test_the_draft_can_be_downloaded_where_it_was_written_and_only_there(tmp_path: Path, language: Language) -> None:
    from pages import drafts, standard

    assert (drafts.links(language, tmp_path), drafts.files(tmp_path)) == ("", {})
    (tmp_path / drafts.FOLDER).mkdir(parents=True)
    for name in ("kuayu-zh.pdf", "kuayu-zh.docx", "kuayu-drafting-report-zh.pdf", "other.pdf"):
        (tmp_path / drafts.FOLDER / name).write_bytes(b"%PDF")
    links = drafts.links(language, tmp_path)
    assert [f"/{path}" for path in drafts.files(tmp_path)] == re.findall(r"\((/[^)]+)\)", links)
    assert "other" not in links
    assert "kuayu-en" not in links
    made = {page.path: page.text for page in standard.pages(language, TEXT, links)}
    assert links in made["standard/index.md"]
    assert drafts.MARK in (ROOT / "docs" / language / "guides/standards-body.md").read_text("utf-8")


@pytest.mark.parametrize("language", HEADINGS)
def test_what_was_made_again_from_the_annexes_stands_beside_the_suite(language: Language) -> None:
    from pages import remade  # type: ignore[import-not-found]

    rows = json.loads((ROOT / remade.FILE).read_text("utf-8"))["rows"]
    shown = remade.figures(language, ROOT)
    assert [shown.count(f"#{name})") for name in ("MET-024", "SCH-003", "SCH-007")] == [
        sum(row["requirement"] == name for row in rows) for name in ("MET-024", "SCH-003", "SCH-007")
    ]
    assert "0.00396312224" in shown
    page = (ROOT / f"docs/{language}/guides/standards-body.md").read_text("utf-8")
    assert page.count(remade.MARK) == 1


def test_the_drafting_report_names_them_as_the_site_does() -> None:
    from pages.text import phrases  # type: ignore[import-not-found]

    assert phrases("remade", "zh")["quantities"] == drafting_report.WORDS["quantities"]


def test_how_to_report_a_vulnerability_says_the_same_in_both_languages() -> None:
    told = {"en": ROOT / "SECURITY.md", "zh": ROOT / "docs/zh/security.md"}
    shown = {
        language: re.findall(r"^#+ |^- |^\| |`[^`]+`", file.read_text("utf-8"), re.MULTILINE)
        for language, file in told.items()
    }
    assert shown["en"] == shown["zh"]


@pytest.mark.parametrize("language", HEADINGS)
def test_every_formula_is_mathml_under_the_number_that_it_has_in_the_document(language: Language) -> None:
    from pages import formulas, standard

    from document.assembling import assemble
    from document.sources import Sources

    text = assemble(Sources(), language, lambda path: Path(path).name).markdown
    numbered = re.compile(r"\n\$\$(.*)\\text\{\u2003\u2003\(([\w.]+)\)\}\$\$")
    in_document = {number: tex for tex, number in numbered.findall(text)}
    displayed = re.compile(r'<div class="formula" id="formula-([\w.]+)"><div>(<math.*</math>)</div>')
    shown = {number: math for page in standard.pages(language, TEXT) for number, math in displayed.findall(page.text)}
    assert shown == {number: formulas.mathml(tex) for number, tex in in_document.items()}
    assert len(shown) >= 7


@pytest.mark.parametrize("language", HEADINGS)
def test_formulas_within_sentences_are_mathml_too(language: Language) -> None:
    """All variables are; names of members are spelt as in the interface."""
    from pages import standard

    shown = {page.path: page.text for page in standard.pages(language, TEXT)}
    left = {path: re.findall(r"(?<![*\w])\*[A-Za-z]\*(?!\*)", text) for path, text in shown.items()}
    assert {path: variables for path, variables in left.items() if variables} == {}
    assert '<mtext class="member">step_time</mtext>' in shown["standard/sch-02-speed.md"]
    assert sum(text.count('<span class="math">') for text in shown.values()) >= 200


@pytest.mark.parametrize("language", HEADINGS)
def test_formulas_of_indicators_are_mathml_with_what_their_symbols_mean(language: Language) -> None:
    from pages import indicators

    (page,) = indicators.pages(language)
    rows = re.findall(r"\| \*\*(?:Formula|计算公式)\*\* \| (.*) \|", page.text)
    told = [row for row in rows if 'displaystyle="true"' in row]
    assert (len(rows), len(told)) == (25, 20)
    assert all({"en": "where ", "zh": "式中："}[language] in row for row in told)
    assert "<mfrac>" in told[1]


def test_words_of_a_formula_stay_whole_and_floors_are_brackets() -> None:
    from pages import formulas

    math = formulas.mathml(r"\mathrm{max}(1,\lfloor B/b\rfloor )")
    assert "<mtext>max</mtext>" in math
    assert all(f'form="{form}">&#x0230{letter};</mo>' in math for form, letter in (("prefix", "A"), ("postfix", "B")))
    assert 'display="block"' in math
    assert '<mpadded voffset="-0.3em"><mo>&#x02212;</mo></mpadded></msub>' in formulas.mathml("L_{-}", inline=True)
