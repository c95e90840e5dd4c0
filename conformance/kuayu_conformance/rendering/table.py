"""A check's table laid out: every row as long as the longest, columns of figures told from columns of words."""

import re
from dataclasses import dataclass

from kuayu_schemas.models import ReportTable

_FIGURE = re.compile(r"(?=.*\d)[\d\s.,+\-−–±~≈<>≤≥%‰/…×·^()\[\]eE⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")  # no letters but those of an exponent
_BLANK = frozenset({"", "-", "–", "—", "n/a"})


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell; ``figure`` where its column holds figures, which stand flush right."""

    text: str
    figure: bool


@dataclass(frozen=True, slots=True)
class Table:
    """What is shown: heading and rows are of one length."""

    title: str
    head: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]


def table(shown: ReportTable) -> Table:
    """Lay out a table; rows that are too short are filled, and what is too long keeps its cells under no heading."""
    width = max([len(shown.columns), *(len(row.cells) for row in shown.rows)])
    head, *rows = [cells + [""] * (width - len(cells)) for cells in (shown.columns, *(row.cells for row in shown.rows))]
    figures = [_holds_figures([row[column] for row in rows]) for column in range(width)]
    return Table(shown.title, _cells(head, figures), tuple(_cells(row, figures) for row in rows))


def _cells(texts: list[str], figures: list[bool]) -> tuple[Cell, ...]:
    return tuple(Cell(text, figure) for text, figure in zip(texts, figures, strict=True))


def _holds_figures(column: list[str]) -> bool:
    said = [text for text in map(str.strip, column) if text not in _BLANK]
    return bool(said) and all(map(_FIGURE.fullmatch, said))
