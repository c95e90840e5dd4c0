"""The document of the draft is whole: every clause, requirement and definition, in one place, under a number."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from shutil import copytree
from zipfile import ZipFile

import pytest

from document import formulas, inline_formulas, pdf, word
from document.assembling import Assembled, assemble, placed
from document.clauses import REQUIREMENT, title_of
from document.manuscript import Heading, Manuscript
from document.markdown import number, plain, prose
from document.meanings import Described, Meanings, in_english
from document.sources import ROOT, Sources
from document.words import LANGUAGES, Language, phrases
from lint.keywords import REFUSED
from lint.terms import VARIANTS

A_WORD = re.compile(r"(?<!\S)[A-Za-z]+(?=[\s,;)]|$)")
"""Word of a citation, unlike repositories, paths and versions."""
IN_A_CLAUSE = re.compile(r"\[\[\\\[([A-Z]{3}-\d{3})\\\]\]\(#test-")


@cache
def sources() -> Sources:
    return Sources()


@cache
def document(language: Language) -> Assembled:
    return assemble(sources(), language, lambda path: Path(path).name)


def test_every_file_of_the_text_has_one_place_in_the_document() -> None:
    order = placed(sources().order)
    assert [name for name, times in Counter(order).items() if times > 1] == []
    written = {file.stem for file in (ROOT / "spec" / "text" / "zh").glob("*.md")}
    assert written - set(order) == set()
    assert set(order) == written


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_clause_is_lost(language: Language) -> None:
    assert not document(language).missing
    anchors = {heading.anchor for heading in document(language).headings}
    assert {name for name in placed(sources().order) if name not in document(language).missing} <= anchors


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_requirement_is_said_once_in_a_clause_and_tested_once_in_annex_a(language: Language) -> None:
    register = [row["id"] for row in sources().requirements["requirements"]]
    assert sorted(IN_A_CLAUSE.findall(document(language).markdown)) == sorted(register)
    tested = [heading.anchor for heading in document(language).headings if heading.anchor.startswith("test-")]
    assert sorted(tested) == sorted(f"test-{name}" for name in register)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_requirement_feature_operation_and_indicator_stands_with_its_mark(language: Language) -> None:
    register, text = sources().stability, document(language).markdown
    names = {row["mark"]: row[f"name_{language}"] for row in register["marks"]}
    word = {"zh": "稳定性", "en": "Stability"}[language]
    for name, mark in register["requirements"].items():
        test = text.partition(f"{{#test-{name}}}")[2].partition("\n\n#")[0]
        assert re.search(rf"\*\*{word}\*\*(：|: ){names[mark]}$", test, re.MULTILINE), name
    for name, mark in register["features"].items():
        assert re.search(rf"`{name}`(（| \(){names[mark]}", text), name
    operations = {
        f"{method.upper()} {path}": row
        for path, item in sources().openapi["paths"].items()
        for method, row in item.items()
    }
    for name, mark in register["operations"].items():
        table = text.partition(f"{{#operation-{operations[name]['operationId']}}}")[2].partition("\n\n#")[0]
        assert f"| {word} |   |   | {names[mark]} |" in table, name
    for name, mark in register["indicators"].items():
        described = text.partition(f"{{#indicator-{name}}}")[2].partition("\n\n#")[0]
        assert re.search(rf"^{word}(：|: ){names[mark]}[。.](见表 \d+。| See Table \d+\.)$", described, re.MULTILINE), (
            name
        )


def test_the_test_of_a_requirement_names_the_subclause_that_says_it() -> None:
    headings = document("zh").headings
    levels = next(heading for heading in headings if heading.title == "专规、子专规、特性与级别")
    text = document("zh").markdown.partition("{#test-COM-001}")[2]
    assert f"[{levels.number}](#COM-001)" in text.partition("\n\n#")[0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_numbers_of_headings_go_on_without_gaps(language: Language) -> None:
    numbered = [heading for heading in document(language).headings if heading.number]
    before = [0]
    for heading in numbered:
        counts = [ord(part) - 64 if part.isalpha() else int(part) for part in heading.number.split(".")]
        assert len(counts) == heading.level
        if heading.number == "A":
            before = [0]
        expected = [*before, 0][: len(counts)]
        expected[-1] += 1
        assert counts == expected, heading
        before = counts


@pytest.mark.parametrize("language", LANGUAGES)
def test_subclauses_of_the_introduction_count_from_zero_and_are_not_in_the_contents(language: Language) -> None:
    """GB/T 1.1-2020, 8.4: the introduction has no number, its subclauses are 0.1, 0.2 and so on."""
    front = [heading for heading in document(language).headings if heading.kind == "front"]
    assert [heading.number for heading in front] == ["", "", *(f"0.{place}" for place in range(1, len(front) - 1))]
    assert f"## 0.1\u2003{front[2].title} {{#" in document(language).markdown
    contents = word.contents(language, document(language).headings)
    assert f">{front[1].title}<" in contents
    assert f"{front[2].title}<" not in contents


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_list_of_steps_counts_from_one(language: Language) -> None:
    """A year at the beginning of a line within a list would become a step with its number."""
    for file in sorted((ROOT / "spec/text" / language).glob("*.md")):
        steps = {0: 0}
        for line in file.read_text("utf-8").splitlines():
            if found := re.match(r"( *)(\d+)\.(?: |$)", line):
                depth = len(found[1])
                assert int(found[2]) in {1, steps.get(depth, 0) + 1}, f"{file.name}: {line}"
                steps[depth] = int(found[2])


def test_a_table_that_goes_on_says_so_on_the_next_page() -> None:
    """GB/T 1.1-2020, 9.6; what pandoc writes of a table gets a row above its head."""
    written = (
        "#figure(\n  align(center)[#table(\n    columns: (31.2%, 68.8%),\n    align: (left,left,),\n"
        "    table.header([部分], [作用],),\n    table.hline(),\n    [甲], [乙],\n  )]\n"
        "  , caption: [表 B.12\u2003组成部分]\n  , kind: table\n  )\n"
    )
    text = pdf.repaired(f"#heading(level: 2, numbering: none)[背景]\n\n{written}\n{written}", "zh")
    assert text.count('table.header(continued(2, "表 B.12", "（续）"), [部分], [作用],)') == 2
    assert "hline" not in text
    assert "#heading(level: 2, numbering: none, outlined: false)[背景]" in text


PARTS = {
    "word/document.xml": (
        '<w:document><w:body><w:p><w:pPr><w:pStyle w:val="Heading1" /></w:pPr></w:p><w:p><w:pPr><w:pStyle '
        'w:val="Heading2" /></w:pPr></w:p><m:r><m:rPr><m:nor /><m:sty m:val="p" /></m:rPr><m:t>(1)</m:t></m:r><m:r>'
        '<m:rPr><m:nor /><m:scr m:val="monospace" /><m:sty m:val="p" /></m:rPr><m:t>sent_at</m:t></m:r>'
        "<w:sectPr /></w:body></w:document>"
    ),
    "word/numbering.xml": (
        '<w:lvl w:ilvl="0"><w:pStyle w:val="Heading1"/><w:lvlText w:val="%1"/><w:ind w:left="0"/></w:lvl>'
        '<w:lvl w:ilvl="0"><w:numFmt w:val="bullet" /><w:lvlText w:val="\uf0b7" /><w:ind w:left="720" />'
        '<w:rPr><w:rFonts w:ascii="Symbol" /></w:rPr></w:lvl><w:lvl w:ilvl="0"><w:numFmt w:val="decimal" />'
        '<w:lvlText w:val="%1." /></w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="lowerLetter" /><w:lvlText w:val="%2." />'
        "</w:lvl>"
    ),
    "word/settings.xml": (
        '<w:settings><w:defaultTabStop w:val="720" /><w:rsids>\n</w:rsids><w:themeFontLang w:val="en-US" />'
        "</w:settings>"
    ),
    "word/_rels/document.xml.rels": "<Relationships></Relationships>",
    "[Content_Types].xml": "<Types></Types>",
}
"""Of a DOCX of pandoc, what the document has otherwise."""


def test_word_is_given_marks_of_lists_outer_margins_and_fields_to_fill(tmp_path: Path) -> None:
    written, finished = tmp_path / "written.docx", tmp_path / "finished.docx"
    with ZipFile(written, "w") as package:
        for name, text in PARTS.items():
            package.writestr(name, text)
    headings = [Heading(1, "front", "", "引言", "a"), Heading(2, "front", "0.1", "背景", "b")]
    word.finish(written, finished, "草案", headings, "zh")
    with ZipFile(finished) as package:
        parts = {name: package.read(name).decode() for name in package.namelist()}
    assert '<w:pStyle w:val="Front1"/>' in parts["word/document.xml"]
    assert '<w:pStyle w:val="Front2"/>' in parts["word/document.xml"]
    assert "<m:rPr><m:nor/></m:rPr><m:t>(1)" in parts["word/document.xml"]  # the schema allows no style beside it
    assert '<m:nor/></m:rPr><w:rPr><w:rStyle w:val="VerbatimChar"/></w:rPr><m:t>sent_at' in parts["word/document.xml"]
    numbering = parts["word/numbering.xml"]
    assert re.findall(r'lvlText w:val="([^"]*)"', numbering) == ["%1", "——", "%1)", "%2)"]
    assert re.findall(r'numFmt w:val="([^"]*)"', numbering) == ["bullet", "lowerLetter", "decimal"]
    assert "Symbol" not in numbering
    assert '<w:evenAndOddHeaders/><w:updateFields w:val="true"/><w:rsids>' in parts["word/settings.xml"]
    for part, kind, side in product(("header", "footer"), ("default", "even"), ("left", "right")):
        name = f"kuayu-{part}-{kind}.xml"
        assert name in parts["word/_rels/document.xml.rels"]
        assert f"/word/{name}" in parts["[Content_Types].xml"]
        assert (f'<w:jc w:val="{side}"/>' in parts[f"word/{name}"]) == ((kind, side) in OUTSIDE)
        assert f'<w:{part}Reference w:type="{kind}"' in parts["word/document.xml"]


OUTSIDE = {("default", "right"), ("even", "left")}
"""Odd pages, which are those of no kind of their own, have their outside right."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_tables_and_figures_are_numbered_through_the_clauses_and_through_each_annex(language: Language) -> None:
    groups: dict[tuple[str, str], list[int]] = {}
    for caption in document(language).captions:
        kind, number = caption.split()[:2]
        scope, _, count = number.rpartition(".")
        groups.setdefault((kind, scope), []).append(int(count))
    assert {"", "B", "C", "D"} <= {scope for _, scope in groups}
    for scope, counts in groups.items():
        assert counts == list(range(1, len(counts) + 1)), scope


def test_both_languages_have_the_same_clauses_tables_and_annexes() -> None:
    def outline(language: Language) -> list[tuple[str, str]]:
        return [(heading.number, heading.anchor) for heading in document(language).headings]

    assert outline("zh") == outline("en")
    numbers = {language: [caption.split()[1] for caption in document(language).captions] for language in LANGUAGES}
    assert numbers["zh"] == numbers["en"]


def test_no_text_stands_between_a_heading_and_its_first_subheading() -> None:
    """Nobody could refer to it; GB/T 1.1 calls it a hanging paragraph. Annexes A to D open with what they are."""
    blocks = [block for block in document("zh").markdown.split("\n\n") if not block.startswith(("```", ":::"))]
    level, hanging, annex = 0, False, False
    for block in blocks:
        if found := re.match(r"(#+) (.*) \{#(\S+?)[ }]", block):
            depth, anchor = len(found[1]), found[3]
            annex = anchor.startswith("annex-") if depth == 1 else annex
            assert not (hanging and depth > level and not annex), f"text hangs before {found[2]}"
            level, hanging = depth, False
        else:
            hanging = True


def test_every_link_leads_to_a_place_of_the_document() -> None:
    for language in LANGUAGES:
        text = document(language).markdown
        places = set(re.findall(r"\{#([\w-]+)", text))
        assert set(re.findall(r"\]\(#([^)]+)\)", text)) - places == set()
        assert ".md)" not in text


def test_every_definition_and_operation_that_is_published_is_in_the_annexes() -> None:
    anchors = {heading.anchor for heading in document("en").headings}
    assert {f"class-{name}" for name in sources().definitions} <= anchors
    operations = [row["operationId"] for path in sources().openapi["paths"].values() for row in path.values()]
    assert {f"operation-{name}" for name in operations} <= anchors


@pytest.mark.parametrize(
    ("value", "shown"), [(1048576, "1048576"), (1e-06, "0.000001"), (0.01, "0.01"), (100.0, "100"), (0.0, "0")]
)
def test_a_number_keeps_all_its_digits(value: float, shown: str) -> None:
    assert number(value) == shown


def test_what_a_sentence_marks_is_marked_in_the_annex_too() -> None:
    assert prose("with *expired*, in `state`; DCGM_FI_*, 2*3*4") == (
        "with *expired*, in `state`; DCGM\\_FI\\_\\*, 2\\*3\\*4"
    )
    assert "*expired*" in document("en").markdown.partition("{#test-SCH-036}")[2].partition("{#test-SCH-037}")[0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_collection_map_states_factors_and_steps_in_full(language: Language) -> None:
    annex = document(language).markdown.partition("{#annex-exporters}")[2].partition("{#annex-e-sources}")[0]
    assert "× 1048576" in annex
    assert not re.search(r"[\d.]e\\?[+-]\d", annex)


def test_formulas_become_tex() -> None:
    text = (
        "index(*d*, *t*) = residual(*d*, *t*) / "
        "Σ<sub>*k*</sub> weight<sub>*k*</sub>(*t*) / ratio<sub>*k*</sub>(*d*, *t*)"
    )
    assert formulas.is_formula(text)
    assert formulas.to_tex(text) == (
        r"\mathrm{index}(d,t)=\frac{\mathrm{residual}(d,t)}"
        r"{\sum _{k} \frac{\mathrm{weight}_{k}(t)}{\mathrm{ratio}_{k}(d,t)}}"
    )
    assert formulas.to_tex("*q* = (1 + (*D* − 1)^2)^(1/3)") == (r"q={\left(1+{\left(D-1\right)}^{2}\right)}^{1/3}")
    decayed = "*u* = ∫ *x*(*s*) × 2<sup>−(*t* − *s*) / *H*</sup> d*s*"
    assert formulas.is_formula(decayed)
    assert formulas.to_tex(decayed) == r"u=\int \, x(s)\times 2^{-(t-s)\, /\, H}\, \mathrm{d}s"
    assert not formulas.is_formula("工作量为 *w* = *u* *n*₀ · `step_time` 的一步耗时 *s* = *w* / rate。")
    number = re.compile(r"\n\$\$.*\\text\{\u2003\u2003\((\d+)\)\}\$\$")
    numbered = [number.findall(document(language).markdown) for language in LANGUAGES]
    assert numbered == [[str(place) for place in range(1, 10)]] * 2


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("With gain(*x*) = *x* / (1 + *f*(*x* − 1)), it does", [r"\mathrm{gain}(x)=x\, /\, (1+f(x-1))"]),
        ("cells of *n* nodes, *n* (of *t*)", ["n", "n", "t"]),
        ("until *s* lies in (*s*, 1.25 *s*]. [FCT-001]", ["s", r"(s,1.25\, s]"]),
        ("一步耗时 φ*s* + Σ RTT。", [r"\varphi s+\sum \, \mathrm{RTT}"]),
        ("is 8 · `state_size` / `period` of it", [r"8\cdot \texttt{state\_size}\, /\, \texttt{period}"]),
        ("the width is √(`high`/`low`) − 1.", [r"\sqrt{\texttt{high}/\texttt{low}}-1"]),
        ("is | *i*/*m* − 1 |, with", [r"\left\vert i/m-1\right\vert"]),
        ("above (1 + `tolerance`)² times", [r"{\left(1+\texttt{tolerance}\right)}^{2}"]),
        ("(*c* − *c*′) × `factor`", [r"(c-c')\times \texttt{factor}"]),
        ("*shall* is `a`/`b`, ±30 % and 2 + 2, at `GET /v1/jobs`; **B** is no variable", []),
        ("| *a* | 2 + 2 |", ["a"]),
    ],
)
def test_formulas_within_a_sentence_go_as_far_as_operands_follow_signs(sentence: str, expected: list[str]) -> None:
    found: list[str] = []
    inline_formulas.replaced(sentence, lambda tex: found.append(tex) or "")
    assert found == expected


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_variable_and_no_formula_of_a_measure_is_left_as_text(language: Language) -> None:
    text = re.sub(r"\$\$?[^$\n]+\$\$?", "", document(language).markdown)
    assert re.findall(r"(?<![*\\\w])\*[A-Za-z]\*(?!\*)", text) == []
    for formula in sources().formulas.values():
        if "mathematics" in formula:
            assert f"${formulas.to_tex(formula['mathematics'])}$" in document(language).markdown


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """All that the document is made of, to be changed."""
    for folder in ("spec/text", "spec/model", "spec/document", "schemas/kuayu_schemas/published"):
        copytree(ROOT / folder, tmp_path / folder, ignore=lambda *_: ["__pycache__"])
    for register in ("requirements", "indicators", "problems", "stability"):
        (tmp_path / f"spec/{register}.yaml").write_bytes((ROOT / f"spec/{register}.yaml").read_bytes())
    return tmp_path


def test_a_file_that_comes_later_takes_its_place_with_its_figure(copy: Path) -> None:
    """Where a clause is written, those after it are renumbered, and so are all references to them."""
    file = copy / "spec/text/zh/com-14-architecture.md"
    file.unlink()
    for other in file.parent.glob("*.md"):
        text = re.sub(r"\[([^\]]*)\]\(com-14-architecture\.md\)", r"\1", other.read_text("utf-8"))
        other.write_text(text, "utf-8")
    before = {row.anchor: row.number for row in assemble(Sources(copy), "zh", str).headings}
    file.write_text(
        "# 体系架构\n\n总览。\n\n![两层调度](layers.svg)\n\n## 上层\n\n见[错误](com-07-errors.md)。\n", "utf-8"
    )
    after = assemble(Sources(copy), "zh", str)
    numbers = {row.anchor: row.number for row in after.headings}
    assert numbers["com-14-architecture"] == before["met-01-indicators"]
    chapter, _, rest = before["com-07-errors"].partition(".")
    assert numbers["com-07-errors"] == f"{int(chapter) + 1}.{rest}"
    assert f"见[{numbers['com-07-errors']} 错误](#com-07-errors)。" in after.markdown
    assert "图 1\u2003两层调度" in after.markdown


def test_a_table_without_a_caption_has_the_title_of_its_subclause(copy: Path) -> None:
    file = copy / "spec/text/zh/com-09-lists.md"
    file.write_text(file.read_text("utf-8") + "\n| 甲 | 乙 |\n|---|---|\n| 1 | 2 |\n", "utf-8")
    assert re.search(r"^: 表 \d+\u2003列表$", assemble(Sources(copy), "zh", str).markdown, re.MULTILINE)


def test_a_caption_without_a_table_is_refused(copy: Path) -> None:
    file = copy / "spec/text/zh/com-07-errors.md"
    file.write_text(re.sub(r"^\|.*\n", "", file.read_text("utf-8"), flags=re.MULTILINE), "utf-8")
    with pytest.raises(ValueError, match="1 captions too many for the tables of com-07-errors"):
        assemble(Sources(copy), "zh", str)


def test_a_term_may_name_its_source(copy: Path) -> None:
    file = copy / "spec/text/zh/com-03-terms.md"
    file.write_text(
        "# 术语和定义\n\n| 术语 | 英文 | 定义 | 来源 |\n|---|---|---|---|\n| 租户 | tenant | 一方 | RFC 1 |\n", "utf-8"
    )
    text = assemble(Sources(copy), "zh", str).markdown
    assert "[**3.1**]{#term-1}\n:::\n" in text
    assert '\n::: {custom-style="Term"}\n**租户**\u3000tenant\n:::\n\n一方\n\n\\[来源：RFC 1\\]\n' in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_index_comes_last_and_lists_all_terms_and_abbreviations(language: Language) -> None:
    assert document(language).headings[-1].anchor == "term-index"
    body, _, index = document(language).markdown.partition("{#term-index")
    terms = re.findall(r"\[\*\*([\d.]+)\*\*\]\{#(term-\d+)\}", body)
    abbreviations = re.findall(r"^\[[\w-]+\]\{#(abbreviation-[\w-]+)\}", body, re.MULTILINE)
    listed = re.findall(r"\[([\d.]+)\]\(#((?:term|abbreviation)-[\w-]+)\)", index)
    assert set(listed) == {*terms, *(("4", anchor) for anchor in abbreviations)}
    letters = re.findall(r"^\*\*(.)\*\*$", index, re.MULTILINE)
    assert letters == sorted(set(letters))


def test_the_index_puts_chinese_terms_in_the_order_of_their_pinyin(copy: Path) -> None:
    index = document("zh").markdown.partition("{#term-index")[2]
    places = [index.find(f"\n{word}`") for word in ("ECC", "FIFO", "副本", "服务", "隔离", "GPU", "故障")]
    assert -1 not in places
    assert places == sorted(places)
    defined = re.findall(r"^\| (\S+) \|", sources().text("zh", "com-03-terms") or "", re.MULTILINE)[1:]
    assert list(sources().pinyin) == defined
    assert {word for word, said in sources().pinyin.items() if len(word) != len(said.split())} == set()
    file = copy / "spec/document/pinyin.yaml"
    file.write_text(file.read_text("utf-8").replace("租户: zu hu\n", ""), "utf-8")
    with pytest.raises(ValueError, match=r"pinyin\.yaml does not have 租户"):
        assemble(Sources(copy), "zh", str)


def test_a_heading_that_skips_a_level_is_refused() -> None:
    manuscript = Manuscript("en")
    manuscript.begin("clause")
    assert manuscript.heading(1, "Scope", "scope") == "1"
    with pytest.raises(ValueError, match="level 3"):
        manuscript.heading(3, "Deep", "deep")
    assert manuscript.headings == [Heading(1, "clause", "1", "Scope", "scope")]


@pytest.mark.parametrize("own", ["# 附录 E（资料性） 数据集\n", "# Annex E (informative) — 数据集\n", "# 数据集\n"])
def test_an_annex_may_name_its_letter_itself(own: str) -> None:
    assert title_of(own) == "数据集"


def test_an_identifier_in_brackets_is_a_requirement() -> None:
    assert REQUIREMENT.findall("应予清除。[RES-018]") == ["RES-018"]


def test_every_operation_is_summed_up_in_chinese() -> None:
    """Annex B of the Chinese document and the site's pages of the interface say what each is for."""
    published = {f"{method.upper()} {path}" for path, item in sources().openapi["paths"].items() for method in item}
    assert sources().summaries.keys() == published
    assert [text for text in sources().summaries.values() if not re.search(r"[\u4e00-\u9fff]", text)] == []
    assert all(text in document("zh").markdown for text in sources().summaries.values())


@pytest.mark.parametrize("part", phrases("terms.model", "en"))
def test_everything_that_the_model_describes_is_described_in_chinese(part: str) -> None:
    """Classes, members, values, types and rules: none is missing, and none is left of what is no longer there."""
    english = dict(leaves(in_english(sources().model[part])))
    chinese = dict(leaves(sources().chinese_model.get(part, {})))
    assert sorted(english.keys() - chinese.keys()) == [], "not in spec/document/model-zh"
    assert sorted(chinese.keys() - english.keys()) == [], "not in spec/model"
    assert {name: text for name, text in chinese.items() if not re.search(r"[\u4e00-\u9fff]", text)} == {}
    parted = re.compile(r"[\u3001-\u9fff\uff00-\uffef]\s+[\u3001-\u9fff\uff00-\uffef]")
    assert {name: text for name, text in chinese.items() if parted.search(text)} == {}


def test_every_part_of_the_model_that_is_said_in_chinese_is_one() -> None:
    assert sources().chinese_model.keys() - phrases("terms.model", "en").keys() == set()


def test_words_that_the_text_refuses_describe_nothing_of_the_model() -> None:
    """The rules of the text hold here too: terms as they are defined, and the verbal forms of GB/T 1.1."""
    refused = re.compile("|".join((*VARIANTS["zh"], REFUSED["zh"].pattern)))
    said = {f"{part}: {name}": text for part, rows in sources().chinese_model.items() for name, text in leaves(rows)}
    assert {name: text for name, text in said.items() if refused.search(text)} == {}


def leaves(described: Described) -> Iterator[tuple[str, str]]:
    """Descriptions by where they stand: ``classes/Node/members/id``."""
    for name, row in described.items():
        below = dict(enumerate(row)) if isinstance(row, list) else row
        if isinstance(below, Mapping):
            yield from ((f"{name}/{rest}", text) for rest, text in leaves(below))
        else:
            yield str(name), str(row)


def test_what_the_model_means_is_said_in_chinese_where_it_is_written(copy: Path) -> None:
    """Inherited members too; a part without a file stays English."""
    (copy / "spec/document/model-zh/graph.yaml").unlink()
    meanings = Meanings(Sources(copy), "zh")
    assert meanings.of("NodeShare") == "某一节点上的若干加速器。"
    assert meanings.of("Ratio") == "零至一的小数。"
    assert meanings.of_member("NodeRecord", "label") == "供人阅读的名称。"
    assert meanings.of_value("FaultState", "open") == "存续。"
    assert meanings.of_rules("Fault") == ["已清除的故障给出其结束的时刻。"]
    assert meanings.of("NodeVertex") == "Node in the resource graph."
    text = assemble(Sources(copy), "zh", str).markdown
    assert "Node in the resource graph" in text
    assert "以 `unknown-base` 响应，由发送方改为发送完整文档" in text


def test_every_sentence_of_the_interface_is_there_in_chinese() -> None:
    """None is missing, and none is left of what is no longer said."""
    operations = [operation for item in sources().openapi["paths"].values() for operation in item.values()]
    answers = [(status, each) for operation in operations for status, each in operation["responses"].items()]
    rows = [row for operation in operations for row in operation.get("parameters", ())]
    bodies = [each for operation in operations for each in operation.get("requestBody", {}).get("content", {}).values()]
    bodies += [body for _, each in answers for body in each.get("content", {}).values()]
    said = {
        "operations": {operation.get("description", "") for operation in operations},
        "parameters": {row.get("description", "") for row in rows},
        "answers": {each["description"] for status, each in answers if status < "400"},
        "bodies": {body.get("schema", {}).get("description", "") for body in bodies},
    }
    assert {what: sentences - {""} for what, sentences in said.items()} == {
        what: set(of_it) for what, of_it in sources().chinese.items()
    }


def test_what_the_register_of_indicators_says_in_english_alone_is_there_in_chinese() -> None:
    """None is missing, none is left of what is no longer said, and the document says all of it."""
    exporters, chinese = sources().indicators["exporters"], sources().exporters
    measures = [measure for row in sources().indicators["indicators"] for measure in row["measures"]]
    cited = [row["source"] for row in [*exporters, *(row for each in measures for row in each.get("collection", ()))]]
    assert {name: " ".join(sentences) for name, sentences in chinese["notes"].items()} == {
        row["id"]: row["note"] for row in exporters if "note" in row
    }
    assert chinese["vendors"].keys() <= {row["vendor"] for row in exporters}
    assert chinese["sources"].keys() == {text for text in cited if A_WORD.search(text)}
    assert chinese["collection"].keys() == {each["collection_note"] for each in measures if "collection_note" in each}
    said = [text for sentences in chinese["notes"].values() for text in sentences.values()]
    said += [text for what in chinese.keys() - {"notes"} for text in chinese[what].values()]
    assert [text for text in said if not re.search(r"[\u4e00-\u9fff]", text)] == []
    assert [text for text in said if plain(text) not in document("zh").markdown] == []
