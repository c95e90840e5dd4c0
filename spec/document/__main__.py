"""``python -m document`` writes the draft as one document, DOCX and PDF, in both languages (``make standard``).

Beside the Chinese draft it writes the drafting report that goes with a submission.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import pypandoc

from document import drafting_report, pdf, word
from document.assembling import Assembled, assemble
from document.figures import Figures, folder_of
from document.markdown import READER
from document.sources import Sources
from document.words import LANGUAGES, Language, said

FILTER = Path(__file__).with_name("breaks.lua")


def main() -> int:
    """Run the command; the answer is its exit status."""
    parser = argparse.ArgumentParser(prog="document", description=__doc__)
    parser.add_argument("--language", choices=LANGUAGES, action="append", help="one of them alone")
    parser.add_argument("--output", type=Path, default=Path("build/standard"), help="folder for all files")
    asked = parser.parse_args()
    try:
        pdf.need_fonts()
        for language in asked.language or LANGUAGES:
            make(Sources(), language, asked.output.resolve())
    except (pdf.MissingFontsError, ValueError, KeyError) as error:
        print(f"the document cannot be made: {error}", file=sys.stderr)
        return 1
    except RuntimeError as error:  # of Typst
        print(f"Typst failed: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"pandoc failed: {error.stderr}", file=sys.stderr)
        return 1
    return 0


def make(sources: Sources, language: Language, output: Path) -> None:
    """Make the document in one language, and the drafting report where it is in that language.

    Args:
        sources: What it is made of.
        language: Its language.
        output: Folder for ``kuayu-LANGUAGE.docx`` and ``.pdf``, and for ``kuayu-drafting-report-LANGUAGE`` likewise;
            what is in between is left in ``work`` below it.
    """
    folder = output / "work" / language
    folder.mkdir(parents=True, exist_ok=True)
    figures = Figures(folder_of(sources.root, language), folder)
    since = time.monotonic()
    document = assemble(sources, language, figures.place)
    (folder / "standard.md").write_text(document.markdown, "utf-8")
    for name in document.missing:
        print(f"left out: spec/text/{language}/{name}.md is not there")
    counted = f"{len(document.headings)} headings, {len(document.captions)} tables and figures"
    print(f"{time.monotonic() - since:5.1f} s  {language}  assembled: {counted}")
    docx, paged = output / f"kuayu-{language}.docx", output / f"kuayu-{language}.pdf"
    since = time.monotonic()
    (folder / "word.md").write_text(figures.as_pictures(document.markdown), "utf-8")
    _make_docx(document, said("document.title", language), folder, docx)
    print(f"{time.monotonic() - since:5.1f} s  {docx}  {_size(docx)}")
    since = time.monotonic()
    pages = pdf.write(sources, language, _pandoc(folder, "standard.md", "typst").decode(), folder, paged)
    print(f"{time.monotonic() - since:5.1f} s  {paged}  {_size(paged)}, {pages} pages")
    if language == drafting_report.LANGUAGE:
        _make_report(sources, document, output)


def _make_report(sources: Sources, standard: Assembled, output: Path) -> None:
    name = f"kuayu-drafting-report-{drafting_report.LANGUAGE}"
    folder = output / "work" / "drafting-report"
    folder.mkdir(parents=True, exist_ok=True)
    since = time.monotonic()
    document = drafting_report.assemble(sources, standard)
    for file in ("standard.md", "word.md"):
        (folder / file).write_text(document.markdown, "utf-8")
    docx, paged = output / f"{name}.docx", output / f"{name}.pdf"
    _make_docx(document, drafting_report.title(), folder, docx)
    pages = drafting_report.write(sources, _pandoc(folder, "standard.md", "typst").decode(), folder, paged)
    print(f"{time.monotonic() - since:5.1f} s  {docx}  {_size(docx)}")
    print(f"{time.monotonic() - since:5.1f} s  {paged}  {_size(paged)}, {pages} pages")


def _make_docx(document: Assembled, title: str, folder: Path, target: Path) -> None:
    """Make a DOCX of ``word.md`` in ``folder``."""
    default, reference, written = (folder / name for name in ("pandoc.docx", "reference.docx", "written.docx"))
    default.write_bytes(_run("--print-default-data-file", "reference.docx"))
    word.reference(default, reference, document.language)
    _pandoc(folder, "word.md", "docx", f"--reference-doc={reference}", f"--output={written}")
    word.finish(written, target, title, document.headings, document.language)


def _pandoc(folder: Path, source: str, to: str, *options: str) -> bytes:
    return _run(
        f"--from={READER}", f"--to={to}", f"--lua-filter={FILTER}", "--wrap=none", *options, source, folder=folder
    )


def _run(*arguments: str, folder: Path | None = None) -> bytes:
    command = [pypandoc.get_pandoc_path(), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout  # noqa: S603 - a fixed program


def _size(file: Path) -> str:
    return f"{file.stat().st_size / 1e6:.1f} MB"


if __name__ == "__main__":
    sys.exit(main())
