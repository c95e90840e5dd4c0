"""The document while it is written: blocks of Markdown, with numbers of clauses, tables and figures.

Numbers follow GB/T 1.1-2020: clauses 1, 1.1, 1.1.1; annexes A, A.1; subclauses of the introduction 0.1; tables and
figures are counted through the clauses (表 1) and within each annex (表 A.1). Headings of clauses and annexes get their
numbers from Word and Typst by the same rule, and keep them right when somebody edits the document; here they are
counted for references and for the contents.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from document import markdown
from document.words import Language, said

Kind = Literal["front", "clause", "annex", "bibliography", "index"]

_PARAGRAPH = re.compile(r"(?!#+ |[-:|] |:::|```|\$\$|\d+\. |\Z)")
_REFERENCE = re.compile(r"@@(number|contents):?([\w.-]*)@@")


@dataclass(frozen=True, slots=True)
class Heading:
    """One heading.

    Attributes:
        level: 1 for clauses and annexes.
        kind: What it belongs to.
        number: "7.2", "A.1"; empty where it has none.
        title: Markdown.
        anchor: Name by which it is referred to.
    """

    level: int
    kind: Kind
    number: str
    title: str
    anchor: str


@dataclass
class Manuscript:
    """Blocks of the document in one language, as they are added.

    Attributes:
        language: Language of the document.
        headings: All of them in order.
        captions: Numbers of tables and figures in order.
    """

    language: Language
    headings: list[Heading] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    _blocks: list[str] = field(default_factory=list)
    _counts: list[int] = field(default_factory=list)
    _marks: dict[str, str] = field(default_factory=dict)
    _kind: Kind = "front"
    _tables: int = 0
    _figures: int = 0
    _formulas: int = 0

    def begin(self, kind: Kind) -> None:
        """Go on to the clauses, the annexes, the bibliography or the index."""
        self._kind, self._counts = kind, []

    def add(self, *blocks: str) -> None:
        """Add blocks; empty ones are left out."""
        self._blocks += [block for block in blocks if block]

    def say(self, name: str, *anchors: str) -> None:
        """Add a paragraph of ``words.yaml`` by its name; each ``{}`` in it becomes the number of one of the places."""
        first, *others = map(markdown.spaced, said(name, self.language).split("{}"))
        numbers = (markdown.link(number_of(anchor), anchor) for anchor in anchors)
        self.add(first + "".join(number + text for number, text in zip(numbers, others, strict=True)))

    def heading(self, level: int, title: str, anchor: str) -> str:
        """Add a heading; the answer is its number, empty where it has none.

        Raises:
            ValueError: The level is more than one deeper than that of the heading before.
        """
        number = ""
        if self._kind in ("clause", "annex"):
            if level > len(self._counts) + 1:
                raise ValueError(
                    f"heading {title!r} of level {level} stands right under one of level {len(self._counts)}"
                )
            before = self._counts[level - 1] if level <= len(self._counts) else 0
            self._counts = [*self._counts[: level - 1], before + 1]
            number = self._number()
            if level == 1 and self._kind == "annex":
                self._tables = self._figures = self._formulas = 0
        elif self._kind == "front":
            self._counts = [0, self._counts[-1] + 1] if level > 1 else [0, 0]
            number = f"0.{self._counts[-1]}" if level > 1 else ""
        self.headings.append(Heading(level, self._kind, number, title, anchor))
        native = self._kind in ("clause", "annex")  # neither Word nor Typst counts from zero by itself
        shown = title if native or not number else f"{number}\u2003{title}"
        self.add(f"{'#' * level} {shown} {{#{anchor}{'' if native else ' .unnumbered'}}}")
        return number

    def mark(self, anchor: str) -> None:
        """Say that a place of that name stands below the latest heading, by whose number it is referred to."""
        self._marks[anchor] = self.headings[-1].number

    def table(
        self, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int] | None = None
    ) -> str:
        """Add a numbered table; the answer is its number."""
        self._tables += 1
        number = self._scoped(self._tables)
        label = f"{said('document.table', self.language)} {number}"
        self.captions.append(label)
        self._refer(label, said("document.below_table", self.language))
        self.add(markdown.table(headings, rows, f"{label}\u2003{title}", widths))
        return number

    def figure(self, title: str, path: str) -> None:
        """Add a numbered figure; its title stands below it."""
        self._figures += 1
        caption = f"{said('document.figure', self.language)} {self._scoped(self._figures)}"
        self.captions.append(caption)
        self._refer(caption, said("document.below_figure", self.language))
        self.add(f'::: {{custom-style="Figure Image"}}\n![{title}]({path})\n:::')
        self.add(f'::: {{custom-style="Figure Caption"}}\n{caption}\u2003{title}\n:::')

    def formula(self, tex: str) -> None:
        """Add a numbered formula; the number is part of it, as pandoc numbers none."""
        self._formulas += 1
        self.add(f"$${tex}\\text{{\u2003\u2003({self._scoped(self._formulas)})}}$$")

    def text(self, contents: str) -> str:
        """All of it; places that refer to a heading get its number, that of the contents gets ``contents``.

        Raises:
            ValueError: Something refers to a place that is not there.
        """
        numbers = {heading.anchor: heading.number for heading in self.headings} | self._marks

        def filled(found: re.Match[str]) -> str:
            if found[1] == "contents":
                return contents
            if found[2] not in numbers:
                raise ValueError(f"the text refers to {found[2]}, which is not in the document")
            return numbers[found[2]]

        return _REFERENCE.sub(filled, "\n\n".join(self._blocks)) + "\n"

    def _refer(self, label: str, below: str) -> None:
        """Name a table or figure in the text before it, since GB/T 1.1-2020, 9.5 and 9.6, asks for that.

        A paragraph that speaks of it as of what is below names it there, any other behind its last sentence.
        """
        last = self._blocks[-1] if self._blocks else ""
        see = said("document.see_label", self.language).format(label)
        if not _PARAGRAPH.match(last):
            self.add(see)
        elif below in last:
            first, _, rest = last.rpartition(below)
            self._blocks[-1] = f"{first}{label}{rest if rest[:1].isascii() else f' {rest}'}"
        elif last.endswith(("：", ":")):
            self._blocks[-1] = last[:-1] + said("document.see_label_within", self.language).format(label)
        else:
            self._blocks[-1] = f"{last}{'' if self.language == 'zh' else ' '}{see}"

    def _number(self) -> str:
        first, *rest = self._counts
        return ".".join((chr(64 + first) if self._kind == "annex" else str(first), *map(str, rest)))

    def _scoped(self, count: int) -> str:
        return f"{self._number().partition('.')[0]}.{count}" if self._kind == "annex" else str(count)


def number_of(anchor: str) -> str:
    """Stands for the number of a heading until all of them are known."""
    return f"@@number:{anchor}@@"


CONTENTS = "@@contents@@"
"""Stands for the contents until all headings are known."""
