"""One Markdown document in a language, in the order of ``order.yaml``."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from document import (
    clauses,
    pdf,
    register_exporters,
    register_indicators,
    register_model,
    register_operations,
    register_tests,
    term_index,
    word,
)
from document.clauses import Clauses
from document.manuscript import CONTENTS, Heading, Manuscript
from document.sources import Row, Sources
from document.words import Language, said

PARTS: Mapping[str, Callable[[Manuscript, Sources, int], None]] = {
    "indicators": register_indicators.write,
    "abstract_tests": register_tests.write,
    "operations": register_operations.write,
    "model": register_model.write,
    "exporters": register_exporters.write,
}
"""What of the registers order.yaml can name."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """The document in one language.

    Attributes:
        language: Its language.
        markdown: All of it, with raw blocks for Word and for Typst where these differ.
        headings: Its headings in order.
        captions: Numbers of its tables and figures in order.
        missing: Files that order.yaml names and that are not there.
    """

    language: Language
    markdown: str
    headings: Sequence[Heading]
    captions: Sequence[str]
    missing: Sequence[str]


def placed(order: Row) -> list[str]:
    """Files of the text in the order in which they stand in the document."""
    entries = [*order["clauses"], *order["annexes"]]
    own = [[*([entry["file"]] if "file" in entry else []), *entry.get("files", ())] for entry in entries]
    return [*order["front"], *(name for names in own for name in names), order["bibliography"]]


def assemble(sources: Sources, language: Language, figures: Callable[[str], str]) -> Assembled:
    """Put the document together.

    Args:
        sources: What it is made of.
        language: Its language.
        figures: Path of a figure for pandoc, from the path that a file of the text gives.

    Raises:
        ValueError: What the text holds and order.yaml says do not fit.
    """
    order, manuscript = sources.order, Manuscript(language)
    cited, entries = _bibliography(sources, language)
    writer = Clauses(manuscript, entries, order["tables"], figures)
    present = {name: text for name in placed(order) if (text := sources.text(language, name)) is not None}
    manuscript.add(pdf.contents(language), word.front(sources, language, CONTENTS))
    for name in order["front"]:
        if name in present:
            writer.write(name, present[name], 1)
    manuscript.add(pdf.body(), word.end_of_front())
    manuscript.begin("clause")
    manuscript.add(pdf.title(language), word.title(said("document.title", language)))
    for place, entry in enumerate(order["clauses"], start=1):
        _clause(manuscript, writer, sources, entry, present, place)
    manuscript.begin("annex")
    manuscript.add(pdf.annexes(language))
    for entry in order["annexes"]:
        _annex(manuscript, writer, sources, entry, present)
    manuscript.begin("bibliography")
    manuscript.heading(1, said("document.bibliography", language), order["bibliography"])
    manuscript.add(*(writer.inline(block) for block in cited))
    for number, text in enumerate(entries, start=1):
        manuscript.add(f"[\\[{number}\\]]{{#cited-{number}}}\u2003{writer.inline(text)}")
    manuscript.begin("index")
    term_index.write(manuscript, sources)
    missing = [name for name in placed(order) if name not in present]
    text = manuscript.text(word.contents(language, manuscript.headings))
    return Assembled(language, text, manuscript.headings, manuscript.captions, missing)


def _clause(
    manuscript: Manuscript, writer: Clauses, sources: Sources, entry: Row, present: Mapping[str, str], place: int
) -> None:
    """A clause with its subclauses; nothing where none of its files is there."""
    files = [name for name in entry.get("files", ()) if name in present]
    own, title = entry.get("file"), entry.get("title", {}).get(manuscript.language)
    if own is not None:
        if own not in present:
            return
        manuscript.heading(1, writer.inline(title or clauses.title_of(present[own])), own)
        followed = bool(files) or "register" in entry
        writer.body(own, present[own], 1, entry.get("form", "text"), followed=followed)
    elif files:
        manuscript.heading(1, title, f"clause-{place}")
    if "register" in entry:
        PARTS[entry["register"]](manuscript, sources, 2)
    for name in files:
        writer.write(name, present[name], 2)


def _annex(manuscript: Manuscript, writer: Clauses, sources: Sources, entry: Row, present: Mapping[str, str]) -> None:
    """An annex on pages of its own, which lie on their side where it is wide."""
    language, file = manuscript.language, entry.get("file")
    if file is not None and file not in present:
        return
    kind = said("document.normative" if entry["normative"] else "document.informative", language)
    if entry.get("wide"):
        manuscript.add(pdf.landscape(on=True), word.end_of_portrait())
    anchor = file or f"annex-{entry.get('register', 'registers')}"
    title = entry["title"][language] if file is None else writer.inline(clauses.title_of(present[file]))
    manuscript.heading(1, f"{kind}{title}", anchor)
    for part in entry.get("registers", ()):
        manuscript.heading(2, part["title"][language], f"annex-{part['register']}")
        PARTS[part["register"]](manuscript, sources, 3)
    if "register" in entry:
        PARTS[entry["register"]](manuscript, sources, 2)
    if file is not None:
        writer.body(file, present[file], 1)
    if entry.get("wide"):
        manuscript.add(pdf.landscape(on=False), word.end_of_landscape())


def _bibliography(sources: Sources, language: Language) -> tuple[list[str], list[str]]:
    """What stands before the entries, and the entries."""
    text = sources.text(language, sources.order["bibliography"]) or "# \n"
    lead, *entries = re.split(r"^- ", text.partition("\n")[2], flags=re.MULTILINE)
    return list(clauses.blocks(lead)), [" ".join(entry.split()) for entry in entries]
