"""The files that `make standard` writes are what a committee opens: a DOCX with native numbers and formulas, and a PDF.

They are made in the small environment of their own (`build/standard/venv`), which needs an index of packages once.
"""

import os
import re
import shutil
import subprocess
import zipfile
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from document.assembling import Assembled, assemble
from document.sources import ROOT, Sources
from document.words import NUMBER, phrases

ENVIRONMENT = Path("build/standard/venv")
WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
MATHEMATICS = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
LEAST_PAGES = 100
FIGURE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="60">'
    '<rect x="10" y="10" width="180" height="40" fill="none" stroke="black"/></svg>'
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with the Chinese document, and what the command said."""
    make = shutil.which("make")
    assert make is not None
    command = [make, str(ENVIRONMENT / ".ready")]
    ready = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    if ready.returncode:
        pytest.skip(f"the environment of the document cannot be made: {ready.stderr.strip()[-300:]}")
    folder = with_a_figure(tmp_path_factory.mktemp("standard"))
    command = [str(ROOT / ENVIRONMENT / "bin/python"), "-m", "document", "--language", "zh", "--output", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(folder / "spec")}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if "fonts-noto-cjk" in run.stderr:
        pytest.skip(run.stderr.strip())
    assert run.returncode == 0, run.stderr
    return folder, run.stdout


def with_a_figure(folder: Path) -> Path:
    """The folder with all that the document is made of, and one figure more."""
    for name in ("spec", "schemas/kuayu_schemas/published"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "examples"))
    file = folder / "spec/text/zh/com-09-lists.md"
    file.write_text(file.read_text("utf-8") + "\n![翻页](../figures/paging.svg)\n", "utf-8")
    (folder / "spec/text/figures").mkdir(exist_ok=True)
    (folder / "docs/results").mkdir(parents=True)
    shutil.copy(ROOT / "docs/results/results.json", folder / "docs/results")
    (folder / "spec/text/figures/paging.svg").write_text(FIGURE, "utf-8")
    return folder


DISPLAYED, WITHIN = r"\$\$[^$\n]+\$\$", r"(?<!\$)\$[^$\n]+\$(?!\$)"
"""Formulas on lines of their own and within others, as the document's Markdown has them."""


@cache
def assembled(folder: Path) -> Assembled:
    return assemble(Sources(folder), "zh", lambda path: Path(path).name)


def part(folder: Path, name: str) -> ET.Element:
    with zipfile.ZipFile(folder / "kuayu-zh.docx") as package:
        return ET.fromstring(package.read(name))  # noqa: S314 - written by the test's own command


def style(paragraph: ET.Element) -> str:
    found = paragraph.find(f"{WORD}pPr/{WORD}pStyle")
    return "" if found is None else found.attrib[f"{WORD}val"]


def text(paragraph: ET.Element) -> str:
    return "".join(run.text or "" for run in paragraph.iter(f"{WORD}t"))


def test_the_docx_has_a_cover_contents_and_formulas(made: tuple[Path, str]) -> None:
    document = part(made[0], "word/document.xml")
    paragraphs = list(document.iter(f"{WORD}p"))
    cover = {style(each): text(each) for each in paragraphs if style(each).startswith("Cover")}
    assert cover["CoverTitle"] == phrases("document.title", "zh")
    left_open = [cover[f"Cover{name}"] for name in ("Level", "Number", "Replaces", "Dates", "Issuer")]
    said = phrases("document", "zh")
    assert left_open[:2] == [said["level"], NUMBER]
    assert left_open[2:] == [said["replaces"], f"{said['published']}{said['in_force']}", said["issuer"]]
    fields = [field.text or "" for field in document.iter(f"{WORD}instrText")]
    assert [field for field in fields if " TOC " in field] == [r' TOC \o "1-2" \h \z \u ']
    displayed, within = (re.findall(form, assembled(made[0]).markdown) for form in (DISPLAYED, WITHIN))
    assert len(within) >= 200
    assert len(list(document.iter(f"{MATHEMATICS}oMathPara"))) == len(displayed)
    assert len(list(document.iter(f"{MATHEMATICS}oMath"))) == len(displayed) + len(within)
    assert len(list(document.iter(f"{MATHEMATICS}f"))) >= 2  # fractions, and not text that looks like them


def test_headings_of_the_docx_are_numbered_by_word(made: tuple[Path, str]) -> None:
    """Numbers are not typed: each style of a heading belongs to a level of a list, which counts.

    Those of the introduction are, for neither Word nor Typst counts from zero.
    """
    document, styles = part(made[0], "word/document.xml"), part(made[0], "word/styles.xml")
    listed = {each.attrib[f"{WORD}styleId"] for each in styles if each.find(f"{WORD}pPr/{WORD}numPr") is not None}
    headings = [each for each in document.iter(f"{WORD}p") if re.fullmatch(r"(Heading|Annex|Front)\d", style(each))]
    assert [int(style(each)[-1]) for each in headings] == [heading.level for heading in assembled(made[0]).headings]
    for paragraph, heading in zip(headings, assembled(made[0]).headings, strict=True):
        typed = heading.kind == "front"
        assert (style(paragraph) in listed) == (bool(heading.number) and not typed)
        assert not heading.number or text(paragraph).startswith(heading.number) == typed


def test_tables_of_the_docx_repeat_their_heads_and_fill_the_page(made: tuple[Path, str]) -> None:
    document = part(made[0], "word/document.xml")
    tables = list(document.iter(f"{WORD}tbl"))
    assert len(tables) == len([caption for caption in assembled(made[0]).captions if caption.startswith("表")])
    for table in tables:
        assert table.find(f"{WORD}tr/{WORD}trPr/{WORD}tblHeader") is not None
        whole = sum(int(column.attrib[f"{WORD}w"]) for column in table.iter(f"{WORD}gridCol"))
        assert 9000 < whole <= 9070 or 13900 < whole <= 14002


def test_every_style_that_the_docx_uses_is_defined(made: tuple[Path, str]) -> None:
    styles = {each.attrib.get(f"{WORD}styleId") for each in part(made[0], "word/styles.xml")}
    assert {style(each) for each in part(made[0], "word/document.xml").iter(f"{WORD}p")} - {""} <= styles


def test_a_drawing_becomes_a_picture_in_word(made: tuple[Path, str]) -> None:
    with zipfile.ZipFile(made[0] / "kuayu-zh.docx") as package:
        pictures = [name for name in package.namelist() if name.startswith("word/media/")]
        assert [package.read(name)[:4] for name in pictures] == [b"\x89PNG"] * len(pictures)
    assert len(pictures) == len(re.findall(r"^!\[[^]]+\]\(", assembled(made[0]).markdown, re.MULTILINE))
    captions = [
        text(each) for each in part(made[0], "word/document.xml").iter(f"{WORD}p") if style(each) == "FigureCaption"
    ]
    assert "翻页" in "".join(captions)


def test_the_pdf_has_its_pages_and_the_command_says_how_many(made: tuple[Path, str]) -> None:
    folder, said = made
    assert (folder / "kuayu-zh.pdf").read_bytes().startswith(b"%PDF-")
    pages = re.search(r"kuayu-zh\.pdf  [\d.]+ MB, (\d+) pages", said)
    assert pages is not None
    assert int(pages[1]) > LEAST_PAGES
    for name in assembled(made[0]).missing:
        assert f"left out: spec/text/zh/{name}.md is not there" in said


def test_the_drafting_report_lies_beside_the_draft(made: tuple[Path, str]) -> None:
    folder, said = made
    name = "kuayu-drafting-report-zh"
    assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF-")
    with zipfile.ZipFile(folder / f"{name}.docx") as package:
        document = ET.fromstring(package.read("word/document.xml"))  # noqa: S314 - written by the test's own command
        properties = package.read("docProps/core.xml").decode("utf-8")
    titles = [text(each) for each in document.iter(f"{WORD}p") if style(each) == "ContentsTitle"]
    assert titles == ["《智能算力跨域调度技术要求》编制说明"]
    assert f"<dc:title>{titles[0]}</dc:title>" in properties
    assert f"{name}.pdf" in said
