"""Policies by family: gains and money of each policy, in the reference cell of each source and in each family."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.checks.scheduling.cells import POOL
from kuayu_conformance.rendering.words import Language

from .markdown import percent, plain, table
from .text import phrases, text
from .translations import chinese

NAME = "scheduling_policies"
FILE = "policies.json"
BASE, RULE, FAMILY = "B1", "reference", "reference"
GAIN = f"gain over {BASE}"

Cell = Mapping[str, Any]
"""Figures of all policies in one kind of window, as the file has them."""

Shown = Callable[[Cell, str], tuple[float | None, float | None]]
"""A figure of a policy in a cell, and by how much it may be off; none where that is not known."""


def policies(language: Language, folder: Path, place: str) -> Iterator[str]:
    """Blocks of a page, if there is a file; arguments as of :func:`pages.scheduling_trained.trained`."""
    if not (folder / FILE).is_file():
        return
    found = json.loads((folder / FILE).read_text("utf-8"))
    say, cells = phrases(NAME, language), found["cells"]
    names = list(cells[0]["policies"])
    compared = [name for name in names if name != BASE]
    yield text(
        NAME,
        language,
        found=found,
        windows=max(cell["windows"] for cell in cells),
        file=f"{place}/{FILE}",
        method=method_of(language, found),
        about="".join(_about(say, cells[0]["policies"])),
        **{
            group: _table(language, cells, compared, _gain_of(group), best=max, bound=group)
            for group in ("all", "large")
        },
        money=_table(language, cells, names, lambda cell, name: _money_of(cell["policies"][name])),
    )


def method_of(language: Language, found: Mapping[str, Any]) -> str:
    """Which method of the rule figures are of, to stand behind their date; nothing where their file does not say."""
    return str(phrases(NAME, language)["method"].format(found["method"])) if "method" in found else ""


def _about(say: Mapping[str, Any], policies: Mapping[str, Any]) -> Iterator[str]:
    """What is to be said of the policies that there are, and of intervals where there are any."""
    yield from (said for name, said in say["about"].items() if name in policies)
    if any("gain off" in policy for policy in policies.values()):
        yield say["intervals"]


def _gain_of(group: str) -> Shown:
    def gain(cell: Cell, name: str) -> tuple[float | None, float | None]:
        policy = cell["policies"][name]
        return policy[GAIN][group], policy.get("gain off", {}).get(group)

    return gain


def _money_of(policy: Mapping[str, Any]) -> tuple[float | None, float | None]:
    return policy["money"], policy.get("money off")


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
    say = phrases(NAME, language)
    heads = [say["policies"].get(name, name) for name in names]
    if bound:
        heads.append(say["bound"])
    rows = []
    for cell in cells:
        figures = {name: figure(cell, name) for name in names}
        real = [value for name, (value, _) in figures.items() if value is not None and name != POOL]
        most = best(real) if best and real else None
        row = [_where(language, cell)]
        for name, (value, off) in figures.items():
            shown = "–" if value is None else _gain(value, off) if bound else _money(value, off)
            row.append(f"**{shown}**" if value is not None and value == most and name != POOL else shown)
        if bound:
            least = cell["bound"][GAIN][bound]
            row.append("–" if least is None else _percent(least))
        rows.append(row)
    return table([say["where"], *heads], rows)


def _where(language: Language, cell: Cell) -> str:
    what = cell["source"] if cell["family"] == FAMILY else cell["family"]
    return plain(chinese(what, "SCH") if language == "zh" else what)


def _gain(gain: float, off: float | None) -> str:
    return _percent(gain) if off is None else f"{_percent(gain)} ±\u202f{100 * off:.1f}"


def _money(money: float, off: float | None) -> str:
    return f"{money:.2f}" if off is None else f"{money:.2f} ±\u202f{off:.2f}"


def _percent(gain: float) -> str:
    return percent(gain, 1, "+").replace("-", "−")
