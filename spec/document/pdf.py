"""The PDF: Typst of pandoc within the pages of ``template.typ``."""

import json
import re
import shutil
from pathlib import Path

from document import words
from document.markdown import raw
from document.sources import Sources
from document.words import Language

TEMPLATE = Path(__file__).with_name("template.typ")
FONTS = ("Noto Serif CJK SC", "Noto Sans CJK SC", "Noto Sans Mono CJK SC")


_TABLE = re.compile(
    r"^#figure\(\n  align\(center\)\[#table\(\n *columns: \((?P<columns>[^)]*)\)"
    r".*?^  , caption: \[(?P<number>\S+ \S+)\s",
    re.MULTILINE | re.DOTALL,
)
"""A table as pandoc writes it, up to its number."""


class MissingFontsError(Exception):
    """Fonts that the PDF is set in are not installed."""


def need_fonts() -> None:
    """Look whether all fonts are there.

    Raises:
        MissingFontsError: They are not; what to install is said.
    """
    import typst

    missing = sorted(set(FONTS) - set(typst.Fonts().families()))
    if missing:
        raise MissingFontsError(
            f"not installed: {', '.join(missing)}; on Debian and Ubuntu: apt-get install fonts-noto-cjk, elsewhere "
            "https://github.com/notofonts/noto-cjk"
        )


def contents(language: Language) -> str:
    """Block for the contents, from which pages are counted in Roman numbers."""
    return raw(
        "typst",
        f"#contents({_text(language)}, {_text(words.said('document.contents', language))})\n"
        '#set page(numbering: "I", footer: page-number)',
    )


def body() -> str:
    """Block that begins the clauses, and pages anew in Arabic numbers."""
    return raw("typst", '#set page(numbering: "1", footer: page-number)\n#begin-pages')


def title(language: Language) -> str:
    """Block for the title before the first clause."""
    return raw("typst", f"#document-title({_text(words.said('document.title', language))})")


def annexes(language: Language) -> str:
    """Block that begins the annexes: letters instead of numbers."""
    word = _text(words.said("document.annex", language))
    return raw(
        "typst",
        "#counter(heading).update(0)\n"
        f"#set heading(numbering: annex-numbering.with({word}))\n"
        "#show heading.where(level: 1): it => if it.numbering == none { it } else { annex-heading(it) }",
    )


def landscape(*, on: bool) -> str:
    """Block that lays pages on their side, or sets them upright again."""
    return raw("typst", f"#set page(flipped: {str(on).lower()})")


def write(sources: Sources, language: Language, body_of_pandoc: str, folder: Path, target: Path) -> int:
    """Write the PDF; the answer is the number of its pages.

    Args:
        sources: What the document is made of.
        language: Its language.
        body_of_pandoc: All but the cover, in Typst's language.
        folder: Where Typst reads from.
        target: Where the PDF goes.
    """
    return _compiled(_head(sources, language), body_of_pandoc, language, folder, target)


def write_report(title_: str, date: str, language: Language, body_of_pandoc: str, folder: Path, target: Path) -> int:
    """Write a document without cover and contents; the answer is the number of its pages.

    Args:
        title_: Its title.
        date: When it was made.
        language: Its language.
        body_of_pandoc: All below the title, in Typst's language.
        folder: Where Typst reads from.
        target: Where the PDF goes.
    """
    head = (
        f'#import "{TEMPLATE.name}": *\n#show: report.with(language: "{language}", title: {_text(title_)}, '
        f"date: {_text(date)})\n#let horizontalrule = line(length: 100%)\n"
    )
    return _compiled(head, body_of_pandoc, language, folder, target)


def _compiled(head: str, body_of_pandoc: str, language: Language, folder: Path, target: Path) -> int:
    import typst

    shutil.copy(TEMPLATE, folder / TEMPLATE.name)
    main = folder / f"{target.stem}.typ"
    main.write_text(f"{head}\n{repaired(body_of_pandoc, language)}", "utf-8")
    compiler = typst.Compiler(str(main), root=str(folder))
    compiler.compile(output=str(target), format="pdf", pdf_tags=False)
    marks = json.loads(compiler.query("<last-page>", field="value", one=True))
    return int(marks)


def _head(sources: Sources, language: Language) -> str:
    cover = {
        "ics": words.said("document.ics", language),
        "ccs": words.said("document.ccs", language),
        "level": words.said("document.level", language),
        "number": words.NUMBER,
        "replaces": words.said("document.replaces", language),
        "title": words.said("document.title", language),
        "other-title": words.said("document.title", "en" if language == "zh" else "zh"),
        "stage": words.said("document.stage", language),
        "completed": words.said("document.completed", language).format(date=sources.date, version=sources.version),
        "patents": words.said("document.patents", language),
        "published": words.said("document.published", language),
        "in-force": words.said("document.in_force", language),
        "issuer": words.said("document.issuer", language),
    }
    told = ", ".join(f"{name}: {_text(value)}" for name, value in cover.items())
    return (
        f'#import "{TEMPLATE.name}": *\n#show: standard.with(language: "{language}", words: ({told}))\n'
        "#let horizontalrule = line(length: 100%)\n"
    )


def repaired(text: str, language: Language) -> str:
    """What pandoc writes otherwise than the document has it, and a mark of the last page.

    Pandoc draws lines below heads of tables, which have them all over, and breaks lines behind formulas; it puts
    subclauses of the introduction into the contents, and says of no table that it goes on (GB/T 1.1-2020, 9.6).
    """
    text = re.sub(r"^ *table\.hline\(\),\n|(?<= \$) \\$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(#heading\(level: 2, numbering: none)\)", r"\1, outlined: false)", text, flags=re.MULTILINE)
    text = _TABLE.sub(lambda found: _continued(found, words.said("document.continued", language)), text)
    return f"{text}\n#context [#metadata(here().page()) <last-page>]\n"


def _continued(found: re.Match[str], word: str) -> str:
    """A table with a row above its head for the pages that it goes on upon."""
    row = f"continued({found['columns'].count('%')}, {_text(found['number'])}, {_text(word)})"
    return found[0].replace("table.header(", f"table.header({row}, ", 1)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
