"""Pandoc's Markdown out of text that is none, and tables of a width."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal

READER = (
    "markdown-auto_identifiers-superscript-subscript-citations-fancy_lists-example_lists-smart-tex_math_single_backslash"
    "-yaml_metadata_block-strikeout-implicit_figures-native_divs-native_spans-inline_notes-footnotes"
)
"""What pandoc is to read: no marks but those that spec/text uses, so that ``2^53`` and ``~`` stay what they are."""

_MARKS = re.compile(r"([\\`*_{}\[\]()#+.!|<>~^$@'\"&:=-])")
_SPACE = re.compile(r"\s+")
_MARKED = re.compile(r"`(?P<code>[^`]+)`|(?<!\w)\*(?P<words>[A-Za-z][A-Za-z ]*)\*(?!\w)")
_LINE_BREAK = "<br>"
_MOST, _MARGIN, _CODE = 45, 4, 1.3
"""Columns get a share of the width by their longest cell, up to so many characters, with room for its margins.

A Chinese character is as wide as two others; one of code is that much wider.
"""


def plain(text: object) -> str:
    """Text as it is, on one line: no character of it means anything to pandoc."""
    return spaced(str(text).strip())


def spaced(text: str) -> str:
    """As :func:`plain`, with the spaces at both ends."""
    return _MARKS.sub(r"\\\1", _SPACE.sub(" ", text))


def prose(text: str) -> str:
    """As :func:`plain`, with what stands between grave accents as code, and words between asterisks in italics."""
    written, end = "", 0
    for found in _MARKED.finditer(text := text.strip()):
        marked = code(found["code"]) if found["code"] else f"*{spaced(found['words'])}*"
        written, end = f"{written}{spaced(text[end : found.start()])}{marked}", found.end()
    return written + spaced(text[end:])


def number(value: float) -> str:
    """All digits of a number, without a power of ten."""
    digits = f"{Decimal(repr(float(value))):f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def code(text: object) -> str:
    """Text as code; it holds no grave accent, and in a table no bar."""
    return f"`{text}`"


def mathematics(tex: str, *, displayed: bool = False) -> str:
    """A formula; one that is displayed stands on a line of its own, at full size."""
    return f"$${tex}$$" if displayed else f"${tex}$"


def link(text: str, anchor: str) -> str:
    """A link within the document; ``text`` is Markdown."""
    return f"[{text}](#{anchor})"


def lines(parts: Iterable[str]) -> str:
    """Parts of a cell, each on a line of its own."""
    return _LINE_BREAK.join(part for part in parts if part)


def raw(format_: str, text: str) -> str:
    """A block that is written as it is into one of the formats, ``typst`` or ``openxml``, and left out of the other."""
    return f"```{{={format_}}}\n{text}\n```"


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], caption: str, widths: Sequence[int] | None = None
) -> str:
    """A table over the whole width; cells are Markdown on one line.

    Args:
        headings: One for each column.
        rows: Each as long as ``headings``.
        caption: Number and title; Markdown.
        widths: Shares of the columns; by what stands in them where absent.
    """
    shares = widths or [_share(column) for column in zip(headings, *rows, strict=True)]
    dashes = [":" + "-" * max(2, round(200 * share / sum(shares))) for share in shares]
    body = "\n".join(_row(row) for row in (headings, dashes, *rows))
    return f"{body}\n\n: {caption}"


def width(text: str) -> int:
    """Width of a text in characters; a Chinese one is two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell or " " for cell in cells) + " |"


def _share(column: Sequence[str]) -> int:
    shown = (re.sub(r"\]\(#[^)]*\)|\\", "", part) for cell in column for part in cell.split(_LINE_BREAK))
    wide = (width(part) * (_CODE if part.startswith("`") else 1) for part in shown)
    return round(min(_MOST, max(wide))) + _MARGIN
