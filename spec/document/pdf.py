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
        f'#contents({_text(language)}, {_text(words.CONTENTS.in_(language))})\n#set page(footer: page-number("I"))',
    )


def body() -> str:
    """Block that begins the clauses, and pages anew in Arabic numbers."""
    return raw("typst", '#set page(footer: page-number("1"))\n#counter(page).update(1)')


def title(language: Language) -> str:
    """Block for the title before the first clause."""
    return raw("typst", f"#document-title({_text(words.TITLE.in_(language))})")


def annexes(language: Language) -> str:
    """Block that begins the annexes: letters instead of numbers."""
    word = _text(words.ANNEX.in_(language))
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
    return _compiled(_head(sources, language), body_of_pandoc, folder, target)


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
    return _compiled(head, body_of_pandoc, folder, target)


def _compiled(head: str, body_of_pandoc: str, folder: Path, target: Path) -> int:
    import typst

    shutil.copy(TEMPLATE, folder / TEMPLATE.name)
    main = folder / f"{target.stem}.typ"
    main.write_text(f"{head}\n{_repaired(body_of_pandoc)}", "utf-8")
    compiler = typst.Compiler(str(main), root=str(folder))
    compiler.compile(output=str(target), format="pdf", pdf_tags=False)
    marks = json.loads(compiler.query("<last-page>", field="value", one=True))
    return int(marks)


def _head(sources: Sources, language: Language) -> str:
    cover = {
        "ics": words.ICS.in_(language),
        "ccs": words.CCS.in_(language),
        "level": words.LEVEL.in_(language),
        "number": words.NUMBER,
        "replaces": words.REPLACES.in_(language),
        "title": words.TITLE.in_(language),
        "other-title": words.TITLE.in_("en" if language == "zh" else "zh"),
        "stage": words.STAGE.in_(language),
        "completed": words.COMPLETED.in_(language).format(date=sources.date, version=sources.version),
        "patents": words.PATENTS.in_(language),
        "published": words.PUBLISHED.in_(language),
        "in-force": words.IN_FORCE.in_(language),
        "issuer": words.ISSUER.in_(language),
    }
    told = ", ".join(f"{name}: {_text(value)}" for name, value in cover.items())
    return (
        f'#import "{TEMPLATE.name}": *\n#show: standard.with(language: "{language}", words: ({told}))\n'
        "#let horizontalrule = line(length: 100%)\n"
    )


def _repaired(text: str) -> str:
    """Pandoc draws lines below heads of tables, which have them all over, and breaks lines behind formulas."""
    return (
        re.sub(r"^ *table\.hline\(\),\n|(?<= \$) \\$", "", text, flags=re.MULTILINE)
        + "\n#context [#metadata(here().page()) <last-page>]\n"
    )


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
