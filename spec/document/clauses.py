"""Clauses of spec/text in the forms that GB/T 1.1-2020 gives them.

References become a list (8.6), terms numbered entries (8.7), symbols and abbreviations lists (8.8). A paragraph that
would stand between a heading and its first subheading gets a heading of its own, since nobody could refer to it (7.4).
Requirements keep their identifiers, which lead to annex A.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from document import formulas, inline_formulas, markdown
from document.manuscript import Manuscript, number_of
from document.sources import Row
from document.words import said

REQUIREMENT = re.compile(r"\[([A-Z]{3}-\d{3})\](?!\()")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([a-z0-9-]+)\.md(?:#[\w-]+)?\)")
_FIGURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
_TITLE = re.compile(r"\A# (.+)\n")
_OWN_LETTER = re.compile(
    r"^(?:附录|Annex)\s*[A-Z]\b\s*|^\s*[（(](?:规范性|资料性|normative|informative)[）)]\s*|^[\s:：—–-]+", re.IGNORECASE
)
_DIVIDER = re.compile(r"[|: -]+")

Rows = list[list[str]]

SYMBOL_COLUMNS = 4
"""Columns of the table of symbols: symbol, meaning, unit, clauses; that of abbreviations has two."""
NO_UNIT = ("1", "—")
"""Units that are not written: of numbers and ratios, and of what is no quantity."""


class Clauses:
    """Writes files of the text into a manuscript.

    Args:
        manuscript: Where they go.
        bibliography: Entries of the bibliography, which citations are numbered by.
        captions: Captions of tables, by file.
        figures: Path of a figure for the document, from the one that the text gives.
    """

    def __init__(
        self,
        manuscript: Manuscript,
        bibliography: Sequence[str],
        captions: Mapping[str, Sequence[Row]],
        figures: Callable[[str], str],
    ) -> None:
        """Keep what all files need."""
        self.manuscript = manuscript
        self.bibliography = bibliography
        self.captions = captions
        self.figures = figures

    def write(self, name: str, text: str, level: int, form: str = "text", title: str | None = None) -> None:
        """Write one file.

        Args:
            name: Its name, which becomes its anchor.
            text: What is in it.
            level: Level of its heading.
            form: One of :data:`FORMS`.
            title: In place of its own.
        """
        self.manuscript.heading(level, self.inline(title or title_of(text)), name)
        self.body(name, text, level, form)

    def body(self, name: str, text: str, level: int, form: str = "text", *, followed: bool = False) -> None:
        """Write what stands below a file's title; ``followed`` says that subclauses come after it."""
        lead, *sections = re.split(r"^(?=##+ )", _TITLE.sub("", text), flags=re.MULTILINE)
        captions = iter(self.captions.get(name, ()))
        if lead.strip() and (sections or followed):
            self.manuscript.heading(level + 1, said("document.general", self.manuscript.language), f"{name}-general")
        FORMS[form](self, lead, captions)
        for place, section in enumerate(sections, start=1):
            first, _, rest = section.partition("\n")
            marks, _, title = first.partition(" ")
            self.manuscript.heading(level + len(marks) - 1, self.inline(title), f"{name}-{place}")
            deeper = place < len(sections) and sections[place].startswith(f"{marks}#")
            if rest.strip() and deeper:
                self.manuscript.heading(
                    level + len(marks), said("document.general", self.manuscript.language), f"{name}-{place}-general"
                )
            FORMS[form](self, rest, captions)
        left = sum(1 for _ in captions)
        if left:
            raise ValueError(f"order.yaml has {left} captions too many for the tables of {name}")

    def inline(self, text: str) -> str:
        """A paragraph's marks as pandoc and the document need them."""
        text = inline_formulas.replaced(text, markdown.mathematics)
        text = re.sub(r"<sub>(.*?)</sub>", r"[\1]{.below}", text)
        text = _LINK.sub(self._reference, text)
        return REQUIREMENT.sub(self._requirement, text)

    def _requirement(self, found: re.Match[str]) -> str:
        """An identifier that leads to its test, and is led to from there."""
        self.manuscript.mark(found[1])
        return f"[[\\[{found[1]}\\]](#test-{found[1]})]{{#{found[1]}}}"

    def _reference(self, found: re.Match[str]) -> str:
        """A link between files as a reference to a clause, or to an entry of the bibliography."""
        words, name = found.groups()
        if name == "bibliography":
            entry = next((place for place, text in enumerate(self.bibliography, start=1) if words in text), None)
            return markdown.link(f"{words} \\[{entry}\\]", f"cited-{entry}") if entry else markdown.link(words, name)
        if _OWN_LETTER.match(words):
            return markdown.link(words, name)
        if self.manuscript.language == "zh":
            return markdown.link(f"{number_of(name)} {words}", name)
        return markdown.link(f"{words} ({number_of(name)})", name)

    def _text(self, text: str, captions: Iterator[Row]) -> None:
        for block in blocks(text):
            if block.startswith("|"):
                self._table(block, captions)
            elif figure := _FIGURE.fullmatch(block):
                self.manuscript.figure(self.inline(figure[1]), self.figures(figure[2]))
            elif formulas.is_formula(block):
                self.manuscript.formula(formulas.to_tex(block))
            else:
                self.manuscript.add(self.inline(block))

    def _table(self, block: str, captions: Iterator[Row]) -> None:
        """A table under its caption, or under the title of its subclause where it has none."""
        caption = next(captions, None)
        title = caption[self.manuscript.language] if caption else self.manuscript.headings[-1].title
        headings, *rows = [[self.inline(cell) for cell in row] for row in rows_of(block)]
        self.manuscript.table(title, headings, rows)

    def _references(self, text: str, _: Iterator[Row]) -> None:
        """The documents alone; what each is referred to for is said where that is done."""
        for block in blocks(text):
            if block.startswith("|"):
                self.manuscript.add(*(self.inline(row[0]) for row in rows_of(block)[1:]))
            else:
                self.manuscript.add(self.inline(block))

    def _terms(self, text: str, _: Iterator[Row]) -> None:
        """Number, term with its English, definition; further columns, such as sources, in brackets below it."""
        chapter, named = self.manuscript.headings[-1].number, 2 if self.manuscript.language == "zh" else 1
        colon = said("document.colon", self.manuscript.language)
        for block in blocks(text):
            if not block.startswith("|"):
                self.manuscript.add(self.inline(block))
                continue
            headings, *rows = rows_of(block)
            for place, row in enumerate(rows, start=1):
                term = "\u3000".join((f"**{row[0]}**", *row[1:named]))
                number = f'::: {{custom-style="Term Number"}}\n[**{chapter}.{place}**]{{#{term_anchor(place)}}}\n:::'
                titled = f'::: {{custom-style="Term"}}\n{term}\n:::'
                self.manuscript.add(number, titled, self.inline(row[named]))
                remarks = zip(headings[named + 1 :], row[named + 1 :], strict=True)
                self.manuscript.add(*(f"\\[{name}{colon}{self.inline(cell)}\\]" for name, cell in remarks if cell))

    def _abbreviations(self, text: str, _: Iterator[Row]) -> None:
        colon = said("document.colon", self.manuscript.language)
        for block in blocks(text):
            if block.startswith("|") and is_of_symbols(rows := rows_of(block)):
                self.manuscript.add(*(self._symbol(*row) for row in rows[1:]))
            elif block.startswith("|"):
                named = ((f"[{row[0]}]{{#{abbreviation_anchor(row[0])}}}", row[1]) for row in rows_of(block)[1:])
                self.manuscript.add(*(f"{name}{colon}{self.inline(meaning)}" for name, meaning in named))
            else:
                self.manuscript.add(self.inline(block))

    def _symbol(self, symbol: str, meaning: str, unit: str, places: str) -> str:
        """Symbol, meaning, unit where it has one other than 1, and the clauses that use it."""
        language = self.manuscript.language
        text = f"{self.inline(symbol)}{said('document.colon', language)}{self.inline(meaning)}"
        if unit not in NO_UNIT:
            text += said("document.in_unit", language).format(unit)
        return text + said("document.aside", language).format(self.inline(places))


FORMS: Mapping[str, Callable[[Clauses, str, Iterator[Row]], None]] = {
    "text": Clauses._text,  # noqa: SLF001 - its own class
    "references": Clauses._references,  # noqa: SLF001
    "terms": Clauses._terms,  # noqa: SLF001
    "abbreviations": Clauses._abbreviations,  # noqa: SLF001
}
"""Forms that a clause can have."""


def term_anchor(place: int) -> str:
    """Name by which the term of that number is referred to."""
    return f"term-{place}"


def abbreviation_anchor(abbreviation: str) -> str:
    """Name by which an abbreviation is referred to."""
    return f"abbreviation-{abbreviation}"


def is_of_symbols(rows: Rows) -> bool:
    """Whether a table of the clause of symbols and abbreviations is the one of symbols."""
    return len(rows[0]) == SYMBOL_COLUMNS


def title_of(text: str) -> str:
    """Title of a file, without the letter that an annex may have given itself."""
    found = _TITLE.match(text)
    if found is None:
        raise ValueError(f"a file of the text begins with {text[:40]!r} and not with its title")
    title = found[1].strip()
    while (shorter := _OWN_LETTER.sub("", title)) != title:
        title = shorter
    return title


def blocks(text: str) -> Iterator[str]:
    """Blocks of a text, apart from each other by empty lines; a list stays whole with what is set in below it."""
    for block in re.split(r"\n{2,}(?!\s)", text.strip()):
        if block.strip():
            yield block


def rows_of(block: str) -> Rows:
    """Cells of a table, its head first."""
    lines = [line.strip().strip("|") for line in block.splitlines() if not _DIVIDER.fullmatch(line)]
    return [[cell.strip() for cell in line.split("|")] for line in lines]
