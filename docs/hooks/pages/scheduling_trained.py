"""How the reference's rule was tuned, and what became of networks that were trained to set its constants."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language

from . import scheduling_trained_words as words
from .markdown import table

TUNING, APART = "tuning.json", "tuning-apart.json"
CURVES, DRAWING = "learning-curves.json", "learning-curves.svg"


def trained(language: Language, folder: Path, place: str) -> Iterator[str]:
    """Blocks of a page, as far as there are files.

    Args:
        language: Language of the page.
        folder: Where results lie.
        place: The same in the site.
    """
    files = [name for name in (TUNING, APART, CURVES) if (folder / name).is_file()]
    if files:
        yield f"## {words.TITLE.in_(language)}"
    for name in files:
        found = json.loads((folder / name).read_text("utf-8"))
        if name == TUNING:
            yield from _tuned(language, found, place)
        elif name == APART:
            settings = {each: found[each] for each in ("command", "seed", "date")}
            yield words.APART.in_(language).format(file=f"{place}/{APART}", **settings)
            yield _beside(language, found["compared"])
        else:
            yield from _learned(language, found, place)
            yield f"**{words.CURVES.in_(language)}**"
            yield _drawn(language, (folder / DRAWING).read_text("utf-8").strip())


def _tuned(language: Language, found: Mapping[str, Any], place: str) -> Iterator[str]:
    yield words.TUNED.in_(language).format(
        constants=len(found["found"]),
        generations=found["generations"],
        windows=found["windows"],
        command=found["command"],
        seed=found["seed"],
        date=found["date"],
        file=f"{place}/{TUNING}",
    )
    yield _beside(language, found["held"])
    rows = [(f"`{name}`", f"{found['ships'][name]:g}", f"{value:g}") for name, value in found["found"].items()]
    title = words.TUNED_ROWS.in_(language).format(count=len(rows))
    shown = table(words.TUNED_COLUMNS[language], rows)
    yield f'<details markdown="1">\n<summary>{title}</summary>\n\n{shown}\n</details>'


def _learned(language: Language, found: Mapping[str, Any], place: str) -> Iterator[str]:
    settings = found["settings"]
    decisions = sum(each["decisions"] for each in found["seeds"])
    yield words.LEARNED.in_(language).format(
        seeds=settings["seeds"],
        steps=f"{settings['steps']:,}".replace(",", "\u202f"),
        decisions=f"{decisions / 1e6:.0f}",
        command=found["command"],
        seed=settings["seed"],
        date=found["date"],
        held=settings["held"],
        file=f"{place}/{CURVES}",
    )
    yield (words.SHIPPED if found["ships"] else words.NOT_SHIPPED).in_(language)
    yield _beside(language, found["compared"])


def _beside(language: Language, kinds: Sequence[Mapping[str, Any]]) -> str:
    """Policies over the rule, a row for each in each kind of window."""
    return table(
        words.COMPARED_COLUMNS[language],
        (
            (
                words.KINDS[each["kind"]].in_(language),
                str(each["windows"]),
                words.POLICIES[name].in_(language) if name in words.POLICIES else name,
                *(f"{over:.3f} (≤\u202f{most:.3f})" for over, most in zip(ratios, each["most"][name], strict=True)),
            )
            for each in kinds
            for name, ratios in each["over"].items()
        ),
    )


def _drawn(language: Language, drawing: str) -> str:
    """The curves in the page itself, with their words in its language."""
    if language == "zh":
        for en, zh in words.DRAWN.items():
            drawing = drawing.replace(en, zh)
    return drawing
