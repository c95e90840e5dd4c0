"""How the reference's rule was tuned, and what became of networks that were trained to take its place."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language

from . import scheduling_trained_words as words
from .markdown import percent, table

TUNING, CURVES, DRAWING = "tuning.json", "learning-curves.json", "learning-curves.svg"
WITH = ("B3", "B4", "rule", "network")


def trained(language: Language, folder: Path, place: str) -> Iterator[str]:
    """Blocks of a page, as far as there are files.

    Args:
        language: Language of the page.
        folder: Where results lie.
        place: The same in the site.
    """
    files = [name for name in (TUNING, CURVES) if (folder / name).is_file()]
    if files:
        yield f"## {words.TITLE.in_(language)}"
    for name in files:
        found = json.loads((folder / name).read_text("utf-8"))
        if name == TUNING:
            yield from _tuned(language, found, place)
        else:
            yield from _learned(language, found, place)
            yield f"**{words.CURVES.in_(language)}**"
            yield _drawn(language, (folder / DRAWING).read_text("utf-8").strip())


def _tuned(language: Language, found: Mapping[str, Any], place: str) -> Iterator[str]:
    taken = found["chosen"]
    yield words.TUNED.in_(language).format(
        windows=found["windows"],
        command=found["command"],
        seed=found["seed"],
        file=f"{place}/{TUNING}",
        money=f"{taken['money']:.0f}",
        doubt=f"{taken['doubt']:.0f}",
        period=percent(taken["period"], 1),
        large=percent(taken["large"], 1),
        cost=percent(taken["cost"], 1),
    )
    rows = [
        (
            mark.format(f"{each['money']:.0f}"),
            mark.format(f"{each['doubt']:.0f}"),
            *(percent(each[name], 1) for name in ("period", "large", "cost")),
        )
        for each in found["tried"]
        for mark in ["**{}**" if each == taken else "{}"]
    ]
    title = words.TUNED_ROWS.in_(language).format(count=len(rows))
    shown = table(words.TUNED_COLUMNS[language], rows)
    yield f'<details markdown="1">\n<summary>{title}</summary>\n\n{shown}\n</details>'


def _learned(language: Language, found: Mapping[str, Any], place: str) -> Iterator[str]:
    settings, kinds = found["settings"], found["compared"]
    yield words.LEARNED.in_(language).format(
        seeds=settings["seeds"],
        steps=f"{settings['steps']:,}".replace(",", "\u202f"),
        seed=settings["seed"],
        held=settings["held"],
        file=f"{place}/{CURVES}",
    )
    first = kinds[0]
    said = words.SHIPPED if first["floor"] > 0.0 else words.NOT_SHIPPED
    yield said.in_(language).format(lead=_signed(first["lead"]), floor=_signed(first["floor"]))
    yield table(
        words.COMPARED_COLUMNS[language],
        (
            (
                words.KINDS[each["kind"]].in_(language),
                *(_figures(language, each, name) for name in WITH),
                f"{_signed(each['lead'])}, {_signed(each['floor'])}",
            )
            for each in kinds
        ),
    )


def _drawn(language: Language, drawing: str) -> str:
    """The curves in the page itself, with their words in its language."""
    if language == "zh":
        for en, zh in words.DRAWN.items():
            drawing = drawing.replace(en, zh)
    return drawing


def _figures(language: Language, each: Mapping[str, Any], name: str) -> str:
    period, large = (percent(each[figure][name], 1) for figure in ("periods", "large"))
    return words.FIGURES.in_(language).format(period=period, large=large, cost=percent(each["costs"][name], 0))


def _signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "−")
