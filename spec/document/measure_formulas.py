"""Formulas of the register of indicators, in mathematics with what each symbol means.

1. The register writes a formula in words; ``measure-formulas.yaml`` gives its mathematics, once for both languages, and
   says in both what each symbol stands for.
2. :func:`in_words` puts the words back in place of the symbols. That has to be what the register says, so that neither
   can change without the other.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from document import inline_formulas
from document.formulas import to_inline_tex, to_tex
from document.words import phrases

FILE = Path(__file__).with_name("measure-formulas.yaml")
_BELOW = re.compile(r"<sub>([^<]*)</sub>")

Formula = Mapping[str, Any]


def read(file: Path = FILE) -> Mapping[str, Formula]:
    """Formulas by the words in which the register writes them."""
    found: Mapping[str, Formula] = yaml.safe_load(file.read_text("utf-8"))
    return found


def shown(
    text: str, formula: Formula, language: str, words: Callable[[str], str], mathematics: Callable[[str, bool], str]
) -> list[str]:
    """A formula, and below it what its symbols mean, in a language.

    Args:
        text: The formula as the register writes it.
        formula: That of :func:`read`.
        language: ``zh`` or ``en``.
        words: What becomes of plain words.
        mathematics: What becomes of TeX; the second argument says whether it is the formula itself, not a symbol.
    """
    default = "{}" if "mathematics" in formula else text
    before, braces, behind = formula.get(language, default).partition("{}")

    def told(text: str) -> str:
        parts = inline_formulas.parts(text)
        return "".join(mathematics(to_inline_tex(part), False) if found else words(part) for part, found in parts)

    lines = [told(before) + (mathematics(to_tex(formula["mathematics"]), True) + told(behind) if braces else "")]
    meanings = [
        mathematics(to_inline_tex(symbol), False) + words(phrases("formulas.means", language)) + told(meaning[language])
        for symbol, meaning in symbols(formula).items()
        if language in meaning
    ]
    if meanings:
        lines.append(
            words(phrases("formulas.where", language)) + words(phrases("formulas.between", language)).join(meanings)
        )
    return lines


def symbols(formula: Formula) -> Mapping[str, Mapping[str, str]]:
    """What each symbol means, by the symbol; those that the register writes itself last."""
    return {**formula.get("symbols", {}), **formula.get("letters", {})}


def in_words(formula: Formula) -> str:
    """The formula in English words, as the register writes it: without marks, with ÷ for a stroke between spaces."""
    text = formula["mathematics"].replace(" / ", " ÷ ")
    for symbol, meaning in sorted(formula.get("symbols", {}).items(), key=lambda pair: -len(pair[0])):
        text = text.replace(symbol, meaning.get("register", meaning.get("en", "")))
    text = formula.get("en", "{}").replace("{}", text.replace(" · ", "·"))
    return _BELOW.sub(_lowered, text).replace("*", "")


def _lowered(found: re.Match[str]) -> str:
    below = found[1].replace("*", "").replace(" ", "")
    return f"_{below}" if len(below) == 1 else f"_({below})"
