"""Formulas of the draft's text as MathML, with the numbers that they have in the document.

1. What is a formula, and its TeX, says ``document.formulas``, from which DOCX and PDF have theirs too.
2. A browser shows MathML by itself: no script, no font and no picture is fetched.
3. Words within a formula stay whole, so that a reader of screens says "max" and not three letters, and the brackets of
   a floor grow with what they hold. Chinese fonts draw a middle dot as wide as a character, so that times is the dot
   operator.

Sources: MathML Core, https://www.w3.org/TR/mathml-core/.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import yaml
from latex2mathml.converter import convert

from kuayu_conformance.rendering.words import Language

SPEC = Path(__file__).parents[3] / "spec"

_BLOCKS = re.compile(r"(\n{2,})")
_WORD = re.compile(r"\\mathrm\{")
_FLOOR = re.compile(r"\\([lr])(floor|ceil) ?")
_MIDDLE_DOT, _DOT_OPERATOR = "&#x000B7;", "&#x022C5;"
_GROWING = {"l": r"\left", "r": r"\right"}


def with_mathml(text: str, numbers: Iterator[str]) -> str:
    """A file of the text with MathML in place of its formulas; each takes the next of the numbers.

    Raises:
        StopIteration: There are more formulas than numbers.
    """
    return "".join(
        _displayed(block, next(numbers)) if _formulas().is_formula(block.strip()) else block
        for block in _BLOCKS.split(text)
    )


@cache
def numbers_of(language: Language) -> dict[str, list[str]]:
    """Numbers of the formulas of each file, as in the document: through the clauses, and A.1 within an annex."""
    order = yaml.safe_load((SPEC / "document/order.yaml").read_text("utf-8"))
    found, counted = {}, 0
    for entry in order["clauses"]:
        for name in (*([entry["file"]] if "file" in entry else ()), *entry.get("files", ())):
            held = _held(language, name)
            found[name] = [str(counted + place) for place in range(1, held + 1)]
            counted += held
    for letter, entry in enumerate(order["annexes"], start=ord("A")):
        if name := entry.get("file"):
            found[name] = [f"{chr(letter)}.{place}" for place in range(1, _held(language, name) + 1)]
    return found


def mathml(tex: str) -> str:
    """MathML of a formula that stands by itself."""
    words = _WORD.sub(r"\\text{", tex)
    grown = _FLOOR.sub(lambda side: f"{_GROWING[side[1]]}\\{side[0][1:].strip()} ", words)
    return str(convert(grown, display="block")).replace(_MIDDLE_DOT, _DOT_OPERATOR)


def _displayed(formula: str, number: str) -> str:
    tex = _formulas().to_tex(formula.strip())
    return f'<div class="formula" id="formula-{number}"><div>{mathml(tex)}</div><span>({number})</span></div>'


def _held(language: Language, name: str) -> int:
    text = (SPEC / "text" / language / f"{name}.md").read_text("utf-8")
    return sum(_formulas().is_formula(block.strip()) for block in _BLOCKS.split(text))


def _formulas() -> ModuleType:
    """The module, from ``spec/``, which mkdocs does not look into."""
    if str(SPEC) not in sys.path:
        sys.path.append(str(SPEC))
    from document import formulas

    return formulas
