"""Clauses as rules see them: blocks and sentences with their lines, in one language.

- A sentence ends with its full stop; identifiers in brackets behind it are its own. A row of a table and an item of a
  list are blocks of their own.
- A list or table right behind a sentence with an identifier belongs to that requirement (clause *Conformance*).
- Informative are the foreword and introduction (``front-``), scope, references, terms, abbreviations, bibliography, the
  annexes E and F, whatever a heading calls informative (资料性), and notes (GB/T 1.1-2020, 5.4 and 9.10). So are the
  clauses that bring together what others require, *Architecture* and *Security*.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

LANGUAGES = ("en", "zh")
IDENTIFIER = re.compile(r"\[([A-Z]{3}-\d{3})\](?!\()")
CODE = re.compile(r"`([^`]+)`")

_INFORMATIVE = re.compile(r"front-|com-0[1-4]-|com-14-architecture|com-15-security|bibliography|annex-[ef]")
_INFORMATIVE_HEADING = re.compile(r"资料性|informative", re.IGNORECASE)
_NOTE = re.compile(r"(?:> *)?[*_]{0,2}(?:注 ?\d*[：:]|NOTE\b)")
_ITEM = re.compile(r"(?:[-*]|\d+\.|[a-z]\)) +")
_END = {
    "en": re.compile(r"[.!?](?:\s*\[[A-Z]{3}-\d{3}\])*(?=\s+[A-Z0-9`*\[(]|\s*$)"),
    "zh": re.compile(r"[。！？](?:\s*\[[A-Z]{3}-\d{3}\])*"),
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """Sentence of a clause, without the identifiers behind it."""

    clause: str
    """Name of the clause: its file without ending."""
    language: str
    line: int
    text: str
    """On one line."""
    identifiers: tuple[str, ...] = ()
    under: str | None = None
    """Requirement to whose list or table it belongs."""
    informative: bool = False
    row: bool = False
    """Whether it is a row of a table."""

    @property
    def file(self) -> str:
        """Path from the root of the repository."""
        return f"spec/text/{self.language}/{self.clause}.md"

    @property
    def words(self) -> str:
        """Its text without code, and without the keywords that it only names (*shall*, “应”)."""
        bare = re.sub(r"\*(?:shall|should|may|must)\*|“[应宜可能]”|（[应宜可能]）|\([应宜可能]\)", "", self.text)
        return CODE.sub("", re.sub(r"\]\([^)]*\)", "]", bare))


@dataclass(frozen=True, slots=True)
class Heading:
    """Heading of a clause."""

    line: int
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class _Block:
    """Paragraph, item of a list, row of a table or heading: its lines with their numbers."""

    kind: str
    lines: tuple[tuple[int, str], ...]

    def joined(self, language: str) -> tuple[str, list[tuple[int, int]]]:
        """Its text on one line, and the place at which each of its lines begins there."""
        text, places = "", []
        for number, line in self.lines:
            text += " " if text and language == "en" else ""
            places.append((len(text), number))
            text += line.strip()
        return text, places


@dataclass(frozen=True)
class Clause:
    """Clause in one language."""

    language: str
    name: str
    text: str

    @property
    def file(self) -> str:
        """Path from the root of the repository."""
        return f"spec/text/{self.language}/{self.name}.md"

    @property
    def informative(self) -> bool:
        """Whether all of it is informative."""
        return _INFORMATIVE.match(self.name) is not None

    @property
    def apart(self) -> bool:
        """Whether it stands before or behind the clauses: foreword, introduction, annexes."""
        return self.name.startswith(("front-", "annex-"))

    @cached_property
    def headings(self) -> list[Heading]:
        """Its headings, the title first."""
        found = [block.lines[0] for block in self._blocks if block.kind == "heading"]
        return [
            Heading(number, len(line) - len(line.lstrip("#")), re.sub(r"\s*\{.*\}$", "", line.lstrip("# ")))
            for number, line in found
        ]

    @cached_property
    def rows(self) -> list[list[str]]:
        """Cells of the rows of all its tables, the heads left out."""
        return [[cell.strip() for cell in text.strip().strip("|").split("|")] for _, text in self._rows]

    @cached_property
    def sentences(self) -> list[Sentence]:
        """Its sentences and the rows of its tables, in order."""
        return list(self._sentences())

    def sections(self) -> Iterator[tuple[int, list[Sentence]]]:
        """The line of each heading, and the sentences behind it until the next one."""
        starts = [heading.line for heading in self.headings] or [0]
        for start, end in zip(starts, [*starts[1:], 10**9], strict=True):
            yield start, [sentence for sentence in self.sentences if start < sentence.line < end]

    @cached_property
    def _rows(self) -> list[tuple[int, str]]:
        return [block.lines[0] for block in self._blocks if block.kind == "row"]

    @cached_property
    def _blocks(self) -> list[_Block]:
        return list(_blocks(self.text))

    def _sentences(self) -> Iterator[Sentence]:
        informative: bool = self.informative
        under: str | None = None
        for block in self._blocks:
            text, places = block.joined(self.language)
            if block.kind == "heading":
                informative, under = self.informative or _INFORMATIVE_HEADING.search(text) is not None, None
                continue
            if block.kind == "paragraph":
                under = None
            note = informative or _NOTE.match(text) is not None
            for start, sentence in _cut(text, self.language, whole=block.kind == "row"):
                line = max(number for place, number in places if place <= start)
                own = tuple(IDENTIFIER.findall(sentence))
                bare = IDENTIFIER.sub("", sentence).strip()
                row = block.kind == "row"
                yield Sentence(self.name, self.language, line, bare, own, under, note, row)
                if block.kind == "paragraph":
                    under = own[-1] if own else None


def _cut(text: str, language: str, *, whole: bool) -> Iterator[tuple[int, str]]:
    """Sentences of a block with the places at which they begin."""
    start = 0
    for found in [] if whole else _END[language].finditer(text):
        if text[start : found.end()].strip():
            yield start + len(text[start:]) - len(text[start:].lstrip()), text[start : found.end()].strip()
        start = found.end()
    if text[start:].strip():
        yield start, text[start:].strip()


def _blocks(text: str) -> Iterator[_Block]:
    """Blocks of a clause; fenced code and the head of a table are none."""
    lines: list[tuple[int, str]] = []
    kind, fenced = "paragraph", False
    every = [*text.splitlines(), ""]
    for number, line in enumerate(every, 1):
        bare = line.strip()
        if bare.startswith("```"):
            fenced = not fenced
            continue
        begins = _ITEM.match(bare) is not None and not (lines and kind == "paragraph" and line.startswith(" "))
        if lines and (not bare or bare[0] in "#|" or begins):
            yield _Block(kind, tuple(lines))
            lines = []
        if fenced or not bare:
            continue
        if bare.startswith("#"):
            yield _Block("heading", ((number, bare),))
        elif bare.startswith("|"):
            head = re.match(r"\|[\s:|-]+\|$", every[number].strip()) is not None
            if not head and not re.match(r"\|[\s:|-]+\|$", bare):
                yield _Block("row", ((number, bare),))
        else:
            if not lines:
                kind = "item" if begins else "paragraph"
            lines.append((number, _ITEM.sub("", bare, count=1) if begins else bare))
