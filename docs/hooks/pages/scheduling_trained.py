"""How the reference's rule was tuned, and what became of networks that were trained to set its constants."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language

from .text import phrases, text

NAME = "scheduling_trained"
TUNING, APART = "tuning.json", "tuning-apart.json"
CURVES, DRAWING = "learning-curves.json", "learning-curves.svg"

Figures = Mapping[str, Any]
"""An object of a file, which is written where it is measured, or phrases: by name."""


def trained(language: Language, folder: Path, place: str) -> Iterator[str]:
    """Blocks of a page, as far as there are files.

    Args:
        language: Language of the page.
        folder: Where results lie.
        place: The same in the site.
    """
    read = {
        name: json.loads((folder / name).read_text("utf-8"))
        for name in (TUNING, APART, CURVES)
        if (folder / name).is_file()
    }
    if not read:
        return
    say = phrases(NAME, language)
    tuning, apart, curves = (read.get(name) for name in (TUNING, APART, CURVES))
    yield text(
        NAME,
        language,
        place=place,
        tuning=tuning and {**tuning, "rows": list(_beside(say, tuning["held"])), "constants": list(_constants(tuning))},
        apart=apart and {**apart, "rows": list(_beside(say, apart["compared"]))},
        curves=curves and {**curves, "rows": list(_beside(say, curves["compared"]))},
        **(_learned(say, language, curves, folder) if curves else {}),
    )


def _constants(found: Figures) -> Iterator[Sequence[str]]:
    for name, value in found["found"].items():
        yield f"`{name}`", f"{found['ships'][name]:g}", f"{value:g}"


def _learned(say: Figures, language: Language, found: Figures, folder: Path) -> Mapping[str, str]:
    """How much was learned from, and the curves, with their words in the page's language."""
    drawing = (folder / DRAWING).read_text("utf-8").strip()
    if language == "zh":
        for en, zh in say["drawing_zh"].items():
            drawing = drawing.replace(en, zh)
    return {
        "steps": f"{found['settings']['steps']:,}".replace(",", "\u202f"),
        "decisions": f"{sum(each['decisions'] for each in found['seeds']) / 1e6:.0f}",
        "drawing": drawing,
    }


def _beside(say: Figures, kinds: Sequence[Figures]) -> Iterator[Sequence[str]]:
    """Policies over the rule, a row for each in each kind of window."""
    for each in kinds:
        for name, ratios in each["over"].items():
            yield (
                say["kinds"][each["kind"]],
                str(each["windows"]),
                say["policies"].get(name, name),
                *(f"{over:.3f} (≤\u202f{most:.3f})" for over, most in zip(ratios, each["most"][name], strict=True)),
            )
