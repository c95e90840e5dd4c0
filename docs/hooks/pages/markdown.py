"""Markdown out of text that is none."""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

_ENTITIES = str.maketrans({character: f"&#{ord(character)};" for character in "&<>|*_`[]{}~^\\#!"})
_MARKED = re.compile(r"`(?P<code>[^`]+)`|(?<!\w)\*(?P<words>[A-Za-z][A-Za-z ]*)\*(?!\w)")
_UNDERSCORE = "_".translate(_ENTITIES)
_SPACE = re.compile("[^\\S\u00a0\u202f]+")
"""White space, but for spaces at which no line may break."""


def plain(text: object) -> str:
    """Text as it is: no character of it means anything to Markdown or HTML, and it stays on one line."""
    return spaced(str(text)).strip()


def prose(text: str) -> str:
    """As :func:`plain`, with what stands between grave accents as code, and words between asterisks in italics."""
    written, end = "", 0
    for found in _MARKED.finditer(text):
        marked = code(found["code"]) if found["code"] else f"<em>{spaced(found['words'])}</em>"
        written, end = f"{written}{spaced(text[end : found.start()])}{marked}", found.end()
    return f"{written}{spaced(text[end:])}".strip()


def number(value: float) -> str:
    """All digits of a number, without a power of ten."""
    digits = f"{Decimal(repr(float(value))):f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def code(text: object) -> str:
    """Text as code; long names may break after an underscore."""
    return f"<code>{plain(text).replace(_UNDERSCORE, _UNDERSCORE + '<wbr>')}</code>"


def spaced(text: str) -> str:
    """As :func:`plain`, with the spaces at both ends."""
    return _SPACE.sub(" ", text.translate(_ENTITIES))


def percent(share: float, digits: int = 0, sign: str = "") -> str:
    """A share in per cent; ``sign`` is "+" where a plus is to be shown too."""
    return f"{100 * share:{sign}.{digits}f}\u202f%"


def link(text: str, target: str) -> str:
    """A link; ``text`` is Markdown."""
    return f"[{text}]({target})"


def heading(level: int, text: str, anchor: str) -> str:
    """A heading with an anchor of its own; ``text`` is Markdown."""
    return f"{'#' * level} {text} {{ #{anchor} }}"


def badge(kind: str, text: str) -> str:
    """A word in a box; ``kind`` is the class by which the style sheet colours it."""
    return f'<span class="badge {kind}">{plain(text)}</span>'


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell or " " for cell in line) + " |" for line in lines) + "\n"


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and values without a head; rows without a value are left out."""
    present = [(f"**{name}**", value) for name, value in rows if value]
    return "<div class='facts' markdown>\n\n" + table(("", ""), present) + "\n</div>\n"


def quote(text: str) -> str:
    """A block quotation."""
    return f"> {text}\n"


def page(*blocks: str) -> str:
    """Blocks of Markdown, apart from each other; empty ones are left out."""
    return "\n\n".join(block for block in blocks if block) + "\n"
