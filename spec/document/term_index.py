"""The index, which GB/T 1.1-2020 places last: terms and abbreviations, with the clause that defines each.

Chinese terms stand by their pinyin (``pinyin.yaml``), all others by their letters.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from document import clauses
from document.manuscript import Manuscript, number_of
from document.markdown import link
from document.sources import Sources
from document.words import said

FORMS = ("terms", "abbreviations")
"""Forms of the clauses that define what is listed."""
LEADER = "`<w:r><w:tab/></w:r>`{=openxml}`#box(width: 1fr, repeat([.], gap: 0.15em))`{=typst}"
"""Dots between an entry and its number; the tab has them by its style."""


class Entry(NamedTuple):
    """One entry.

    Attributes:
        order: What it is put in order by, syllables or words; the first letter is the one that it stands under.
        text: The term or the abbreviation; Markdown.
        place: Number of where it is defined, with a link; Markdown.
    """

    order: tuple[str, ...]
    text: str
    place: str


def write(manuscript: Manuscript, sources: Sources) -> None:
    """Write the index with its heading; nothing where no clause defines anything.

    Raises:
        ValueError: The pinyin of a Chinese term is not known.
    """
    entries = sorted(_entries(manuscript, sources))
    if not entries:
        return
    manuscript.heading(1, said("document.index", manuscript.language), "term-index")
    for letter, group in groupby(entries, key=lambda entry: entry.order[0][0].upper()):
        manuscript.add(_styled("Index Letter", f"**{letter}**"))
        manuscript.add(*(_styled("Index Entry", f"{entry.text}{LEADER}{entry.place}") for entry in group))


def _entries(manuscript: Manuscript, sources: Sources) -> Iterator[Entry]:
    for clause in sources.order["clauses"]:
        if clause.get("form") not in FORMS:
            continue
        name, text = clause["file"], sources.text(manuscript.language, clause["file"]) or ""
        tables = (clauses.rows_of(block) for block in clauses.blocks(text) if block.startswith("|"))
        defined = [
            row[0]
            for head, *rows in tables
            if clause["form"] == "terms" or not clauses.is_of_symbols([head])
            for row in rows
        ]
        for number, words in enumerate(defined, start=1):
            if clause["form"] == "terms":
                place = link(f"{number_of(name)}.{number}", clauses.term_anchor(number))
            else:
                place = link(number_of(name), clauses.abbreviation_anchor(words))
            yield from (Entry(_order(sources, word), word, place) for word in words.split(", "))


def _order(sources: Sources, word: str) -> tuple[str, ...]:
    if word.isascii():
        return tuple(word.lower().split())
    if word not in sources.pinyin:
        raise ValueError(f"pinyin.yaml does not have {word}, which the index is to list")
    return tuple(sources.pinyin[word].split())


def _styled(style: str, text: str) -> str:
    return f'::: {{custom-style="{style}"}}\n{text}\n:::'
