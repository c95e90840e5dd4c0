"""Policies beside each other, in the reference cell of each source and in each family: gains and money."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language

from . import scheduling_policies_words as words
from .judged_words import chinese
from .markdown import percent, plain, table

FILE = "policies.json"
BASE, RULE, FAMILY = "B1", "reference", "reference"
GAIN = f"gain over {BASE}"

Cell = Mapping[str, Any]
Shown = Callable[[Cell, str], float | None]


def policies(language: Language, folder: Path, place: str) -> Iterator[str]:
    """Blocks of a page, if there is a file; arguments as of :func:`pages.scheduling_trained.trained`."""
    if not (folder / FILE).is_file():
        return
    found = json.loads((folder / FILE).read_text("utf-8"))
    cells = found["cells"]
    names = list(cells[0]["policies"])
    yield f"## {words.TITLE.in_(language)}"
    yield words.INTRODUCTION.in_(language).format(
        windows=max(cell["windows"] for cell in cells),
        command=found["command"],
        date=found["date"],
        file=f"{place}/{FILE}",
    )
    compared = [name for name in names if name != BASE]
    for group, title in words.GAINS.items():
        yield f"**{title.in_(language)}**"
        yield _table(language, cells, compared, _gain_of(group), best=max, bound=group)
    yield f"**{words.MONEY.in_(language)}**"
    yield _table(language, cells, names, lambda cell, name: cell["policies"][name]["money"])


def _gain_of(group: str) -> Shown:
    def gain(cell: Cell, name: str) -> float | None:
        found: float | None = cell["policies"][name][GAIN][group]
        return found

    return gain


def _table(
    language: Language,
    cells: Sequence[Cell],
    names: Sequence[str],
    figure: Shown,
    *,
    best: Callable[[Sequence[float]], float] | None = None,
    bound: str = "",
) -> str:
    """A row for each cell, a column for each policy; the best is bold, and the bound of any policy comes last."""
    heads = [words.POLICIES[name].in_(language) if name in words.POLICIES else name for name in names]
    if bound:
        heads.append(words.BOUND.in_(language))
    rows = []
    for cell in cells:
        figures = {name: figure(cell, name) for name in names}
        told = [each for each in figures.values() if each is not None]
        most = best(told) if best and told else None
        row = [_where(language, cell)]
        for each in figures.values():
            shown = "–" if each is None else _percent(each) if bound else f"{each:.2f}"
            row.append(f"**{shown}**" if each is not None and each == most else shown)
        if bound:
            least = cell["bound"][GAIN][bound]
            row.append("–" if least is None else _percent(least))
        rows.append(row)
    return table([words.WHERE.in_(language), *heads], rows)


def _where(language: Language, cell: Cell) -> str:
    what = cell["source"] if cell["family"] == FAMILY else cell["family"]
    return plain(chinese(what, "SCH") if language == "zh" else what)


def _percent(gain: float) -> str:
    return percent(gain, 1, "+").replace("-", "−")
