"""Formulas within sentences of spec/text: where one begins and ends, and its TeX.

1. A formula holds a variable, one letter in asterisks or a Greek one (*n*₀, φ), or members of the interface between
   signs (``8 · `state_size` / `period` ``). A variable alone is one too, so that it looks the same in all places.
2. It goes as far as operands follow signs, and ends before a sign behind which no operand stands. Operands next to each
   other are multiplied (*H* *s*, 2(*D* − 1)); a bracket belongs to what stands right before it.
3. Words are operands where they are functions (max, ln) or among :data:`QUANTITIES`.
4. A stroke stays a stroke: a fraction would push lines apart. Formulas of their own are those of
   :mod:`document.formulas`.
"""

import re
from collections.abc import Callable, Iterator

from document.formulas import to_inline_tex

QUANTITIES = ("rate", "RTT")
"""Words that stand for quantities of their own in formulas."""

_VARIABLE = re.compile(r"(?<![*A-Za-z\d])\*[A-Za-z]\*(?!\*)[₀₊₋]?′?|(?<![^\W\d_])[α-ω](?![^\W\d_])")
_MEMBER = re.compile(r"`[a-z_]+`")
_CODE = re.compile(r"`[^`]*`")
_NUMBER = re.compile(r"(?<![\w.*])\d+(?:\.\d+)?(?![\w.]*[A-Za-z%])|[⅔½]")
_QUANTITY = re.compile(rf"(?<![\w*])(?:{'|'.join(QUANTITIES)})(?![\w*])")
_FUNCTION = re.compile(r"(?<![\w*])[A-Za-z]+(?=\()")
_PREFIX = re.compile(r"(?:Σ(?:<sub>.*?</sub>)? ?|√)")
_SIGN = re.compile(r"\s[·×+−=≤≥…/]\s|/")
_OPERATION = re.compile(r"\s[·×+−/]\s|√|²")
_BEHIND = re.compile(r"<su[bp]>[^<]*</su[bp]>|²|\^[\d.]+")
_BRACKETS = {"(": ")]", "[": ")]", "⌊": "⌋", "⌈": "⌉"}
_BEFORE_BRACKET = "*)₀₊₋′0123456789⅔½"
"""Ends of operands that a bracket is multiplied with where it follows at once."""
_BETWEEN = re.compile(r", ?")
_SPACE = re.compile(r"\s+")


def replaced(text: str, shown: Callable[[str], str]) -> str:
    """A text with what ``shown`` makes of the TeX of each formula in place of it."""
    return "".join(shown(to_inline_tex(part)) if formula else part for part, formula in parts(text))


def found(text: str) -> list[str]:
    """Formulas of a text as they stand there, each on one line."""
    return [part for part, formula in parts(text) if formula]


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """Parts of a text in order, those that are formulas on one line, and whether each is one."""
    begin = place = 0
    while place < len(text):
        end = _expression(text, place) if _begins(text, place) else None
        if end is not None and _is_formula(text[place:end]):
            yield text[begin:place], False
            yield _SPACE.sub(" ", text[place:end]), True
            begin = place = end
        elif code := _CODE.match(text, place):
            place = code.end()
        else:
            place += 1
    yield text[begin:], False


def _begins(text: str, place: int) -> bool:
    """Whether no word goes on there."""
    return place == 0 or not (text[place - 1].isascii() and (text[place - 1].isalnum() or text[place - 1] in "_.^*`"))


def _is_formula(text: str) -> bool:
    return bool(_VARIABLE.search(text) or (_MEMBER.search(text) and _OPERATION.search(text)))


def _expression(text: str, place: int) -> int | None:
    """End of the operands and signs that begin at a place; None where no operand does."""
    end = _product(text, place)
    while end is not None and (sign := _SIGN.match(text, end)):
        further = _product(text, sign.end())
        if further is None:
            break
        end = further
    return end


def _product(text: str, place: int) -> int | None:
    """End of operands that are multiplied, as they stand next to each other."""
    if place < len(text) and text[place] == "−":
        place += 1
    end = _operand(text, place)
    while end is not None:
        start = end + text[end : end + 1].isspace()
        joined = text[end - 1] != "`" and _VARIABLE.match(text, start)
        bracket = text[end : end + 1] == "(" and text[end - 1] in _BEFORE_BRACKET
        following = _operand(text, start if joined else end) if joined or bracket else None
        if following is None:
            break
        end = following
    return end


def _operand(text: str, place: int) -> int | None:
    end = _bare_operand(text, place)
    while end is not None and (behind := _BEHIND.match(text, end)):
        end = behind.end()
    return end


def _bare_operand(text: str, place: int) -> int | None:
    for pattern in (_VARIABLE, _QUANTITY, _MEMBER, _NUMBER):
        if match := pattern.match(text, place):
            return match.end()
    if prefix := _PREFIX.match(text, place):
        return _operand(text, prefix.end())
    if function := _FUNCTION.match(text, place):
        return _bracket(text, function.end())
    if text[place : place + 1] in _BRACKETS:
        return _bracket(text, place)
    if text.startswith("| ", place) and not _in_table(text, place):
        inside = _expression(text, place + 2)
        return inside + 2 if inside is not None and text.startswith(" |", inside) else None
    return None


def _in_table(text: str, place: int) -> bool:
    return text.startswith("|", text.rfind("\n", 0, place) + 1)


def _bracket(text: str, place: int) -> int | None:
    """End of a bracket of one expression or of several between commas."""
    inside = _expression(text, place + 1)
    while inside is not None and (comma := _BETWEEN.match(text, inside)):
        inside = _expression(text, comma.end())
    if inside is None or text[inside : inside + 1] not in tuple(_BRACKETS[text[place]]):
        return None
    return inside + 1
