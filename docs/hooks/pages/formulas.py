"""Formulas of the draft's text and of its indicators as MathML, numbered as in the document.

1. What is a formula, and its TeX, say ``document.formulas``, within sentences ``document.inline_formulas``, and for
   measures of the register ``document.measure_formulas``; DOCX and PDF have theirs from there too.
2. A browser shows MathML by itself: no script, no font and no picture is fetched.
3. Words within a formula stay whole, so that a reader of screens says "max" and not three letters, and the brackets of
   a floor grow with what they hold. Chinese fonts draw a middle dot as wide as a character, so that times is the dot
   operator.

Sources: MathML Core, https://www.w3.org/TR/mathml-core/.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from latex2mathml.converter import convert

from kuayu_conformance.rendering.words import Language

from .markdown import spaced

SPEC = Path(__file__).parents[3] / "spec"

_BLOCKS = re.compile(r"(\n{2,})")
_WORD = re.compile(r"\\mathrm\{")
_FLOOR = re.compile(r"\\([lr])(floor|ceil) ?")
_MIDDLE_DOT, _DOT_OPERATOR = "&#x000B7;", "&#x022C5;"
_SIGN_BELOW = re.compile(r"<mrow>(<mo>[^<]+</mo>)</mrow></msub>")
_LOWERED = r'<mpadded voffset="-0.3em">\1</mpadded></msub>'
"""Signs stand at half the height of letters, so that one below a letter would seem to stand beside it."""
_ESCAPED = r"\_"
"""An underscore as TeX writes it, which the converter leaves in the names of members."""
_MONOSPACE, _MEMBER = '<mtext mathvariant="monospace">', '<mtext class="member">'
"""MathML Core knows no variant of words; the style sheet sets names of members as code."""
_GROWING = {"l": r"\left", "r": r"\right"}


def with_mathml(text: str, numbers: Iterator[str]) -> str:
    """A file of the text with MathML in place of its formulas; each with a line of its own takes the next number.

    Raises:
        StopIteration: There are more formulas than numbers.
    """
    return "".join(
        _displayed(block, next(numbers)) if _of_document("formulas").is_formula(block.strip()) else _within(block)
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


def measure_formula(language: Language, text: str) -> str:
    """Formula of a measure, as the register writes it, with what its symbols mean; Markdown."""
    measures = _of_document("measure_formulas")
    lines = measures.shown(text, _measures()[text], language, spaced, _of_measure)
    return "<br>".join(lines)


def mathml(tex: str, *, inline: bool = False) -> str:
    """MathML of a formula that stands by itself, or in a line."""
    words = _WORD.sub(r"\\text{", tex)
    grown = _FLOOR.sub(lambda side: f"{_GROWING[side[1]]}\\{side[0][1:].strip()} ", words)
    made = str(convert(grown, display="inline" if inline else "block"))
    made = _SIGN_BELOW.sub(_LOWERED, made)
    return made.replace(_MIDDLE_DOT, _DOT_OPERATOR).replace(_ESCAPED, "_").replace(_MONOSPACE, _MEMBER)


def _inline(tex: str) -> str:
    """A formula in a line, in an element that Markdown takes for a part of it."""
    return f'<span class="math">{mathml(tex, inline=True)}</span>'


def _of_measure(tex: str, whole: bool) -> str:  # noqa: FBT001 - what document.measure_formulas calls
    """The formula itself at full size, its symbols as within a line."""
    shown = _inline(tex)
    return shown.replace('display="inline"', 'display="inline" displaystyle="true"', 1) if whole else shown


def _within(block: str) -> str:
    return block if block.startswith("```") else str(_of_document("inline_formulas").replaced(block, _inline))


def _displayed(formula: str, number: str) -> str:
    tex = _of_document("formulas").to_tex(formula.strip())
    return f'<div class="formula" id="formula-{number}"><div>{mathml(tex)}</div><span>({number})</span></div>'


def _held(language: Language, name: str) -> int:
    text = (SPEC / "text" / language / f"{name}.md").read_text("utf-8")
    return sum(_of_document("formulas").is_formula(block.strip()) for block in _BLOCKS.split(text))


@cache
def _measures() -> Mapping[str, Mapping[str, Any]]:
    read: Mapping[str, Mapping[str, Any]] = _of_document("measure_formulas").read()
    return read


def _of_document(name: str) -> ModuleType:
    """A module of ``spec/document``, which mkdocs does not look into."""
    if str(SPEC) not in sys.path:
        sys.path.append(str(SPEC))
    return import_module(f"document.{name}")
