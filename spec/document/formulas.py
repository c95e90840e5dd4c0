"""Formulas of spec/text as TeX, from which pandoc makes formulas of Word and of Typst.

The text writes a formula as a paragraph of its own, with variables in asterisks, so that it can be read as it is:
``*T* = *H* *s* + max(0, *b*/*B*)``. A spaced stroke divides all that is multiplied on its left by the factors on its
right, up to the next sign; what stands under Σ goes up to there as well. What is raised stands in ``<sup>``, or behind
``^`` where it is a number or in brackets.
"""

import re

_DIFFERENTIAL = "d"
"""Upright as a sign, and a variable like others where it stands in asterisks."""
_SIGNS = {
    _DIFFERENTIAL: r"\mathrm{d}",
    "·": r"\cdot ",
    "−": "-",
    "√": r"\sqrt ",
    "Σ": r"\sum ",
    "∫": r"\int ",
    "×": r"\times ",
    "φ": r"\varphi ",
    "⌈": r"\lceil ",
    "⌉": r"\rceil ",
    "⌊": r"\lfloor ",
    "⌋": r"\rfloor ",
    "⅔": r"\tfrac{2}{3}",
    "½": r"\tfrac{1}{2}",
    "₀": "_{0}",
    "₋": "_{-}",
    "₊": "_{+}",
    "(": "(",
    ")": ")",
    "+": "+",
    "=": "=",
    ",": ",",
    "/": "/",
}
_TOKEN = re.compile(
    r"(?P<space>\s+)|<sub>\*(?P<below>\w)\*</sub>|(?P<raised></?sup>)|\*(?P<variable>[^*\s]+)\*"
    r"|\^(?P<power>[\d.]+|\([^()]*\))"
    r"|(?P<number>[\d.]+)|(?P<word>[^\W\d_]{2,})|(?P<sign>.)"
)
_POWER_OF_BRACKET = re.compile(r"(?<!\\right)\)\^\{")
_VARIABLE = re.compile(r"\*\S+?\*")
_PROSE = re.compile(r"[a-z]{2} [a-z]{2}|[^\W\d_]{2}\. ")


def is_formula(paragraph: str) -> bool:
    """Whether a paragraph is nothing but a formula, but for a full stop at its end."""
    text = paragraph.rstrip(".")
    if "\n" in text or not _VARIABLE.search(text) or not re.search(" [=+] ", text) or _PROSE.search(text):
        return False
    return all(token["sign"] is None or token["sign"] in _SIGNS for token in _TOKEN.finditer(text))


def to_tex(formula: str) -> str:
    """TeX of a formula.

    Raises:
        ValueError: It holds a sign that is not known.
    """
    sides = re.split(r"(?<= )([=+−])(?= )", formula.strip().rstrip("."))
    return _raised("".join(_side(side.strip()) for side in sides))


def _raised(tex: str) -> str:
    """Brackets that are raised to a power hold what stands in them, so that LibreOffice can show them too."""
    while closing := _POWER_OF_BRACKET.search(tex):
        depth, opening = 1, closing.start()
        while depth:
            opening -= 1
            depth += (tex[opening] == ")") - (tex[opening] == "(")
        inside = tex[opening + 1 : closing.start()]
        tex = rf"{tex[:opening]}{{\left({inside}\right)}}^{{{tex[closing.end() :]}"
    return tex


def _side(text: str) -> str:
    """A sum's part or a sign between two; strokes within brackets stay strokes."""
    numerator, *denominators = _split(text)
    if not denominators:
        return _tokens(text)
    denominator = " / ".join(denominators)
    below = _side(denominator) if not denominator.startswith("Σ") else _under_sum(denominator)
    return rf"\frac{{{_tokens(numerator)}}}{{{below}}}"


def _under_sum(text: str) -> str:
    sign, rest = re.fullmatch(r"(Σ(?:<sub>.*?</sub>)?) (.*)", text).groups()  # type: ignore[union-attr]
    return f"{_tokens(sign)} {_side(rest)}"


def _split(text: str) -> list[str]:
    """Parts between spaced strokes outside of brackets."""
    parts, depth = [""], 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "/" and depth == 0 and text[position - 1 : position + 2] == " / ":
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts] if len(parts) > 1 else [text]


def _tokens(text: str) -> str:
    close = re.sub(r"\s*([=+−·×,])\s*", r"\1", text)  # TeX spaces signs by itself
    return "".join(map(_tex, _TOKEN.finditer(close)))


def _tex(token: re.Match[str]) -> str:
    kind, text = next((kind, text) for kind, text in token.groupdict().items() if text is not None)
    match kind:
        case "space":
            return r"\, "
        case "below":
            return f"_{{{text}}}"
        case "variable":
            return _variable(text)
        case "raised":
            return "}" if text.startswith("</") else "^{"
        case "power":
            return f"^{{{text.strip('()')}}}"
        case "number":
            return text
        case "word":
            return rf"\mathrm{{{text}}}" if text.isascii() else rf"\text{{{text}}}"
    if text not in _SIGNS:
        raise ValueError(f"{text!r} in a formula has no TeX; add it to spec/document/formulas.py")
    return _SIGNS[text]


def _variable(name: str) -> str:
    """Letters of a variable, with what stands below them."""
    return "".join(letter if letter == _DIFFERENTIAL else _SIGNS.get(letter, letter) for letter in name)
