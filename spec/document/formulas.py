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
_FURTHER_SIGNS = {
    "Δ": r"\Delta ",
    "[": "[",
    "]": "]",
    "|": r"\vert ",
    "≤": r"\leq ",
    "≥": r"\geq ",
    "…": r"\ldots ",
    "²": "^{2}",
    "′": "'",
}
"""Signs of formulas within sentences and of the register of indicators; a paragraph that holds one is no formula."""
_TOKEN = re.compile(
    r"(?P<space>\s+)|<sub>(?P<below>[^<]*)</sub>|(?P<raised></?sup>)|\*(?P<variable>[^*\s]+)\*|`(?P<member>[^`]*)`"
    r"|\^(?P<power>[\d.]+|\([^()]*\))"
    r"|(?P<number>[\d.]+)|(?P<word>[^\W\d_]{2,})|(?P<sign>.)"
)
_ROOT_OF_BRACKET = re.compile(r"\\sqrt \(([^()]*)\)")
_ABSOLUTE = re.compile(r"\\vert (?:\\, )?(.*?)(?:\\, )?\\vert ")
_POWER_OF_BRACKET = re.compile(r"(?<!\\right)\)\^\{")
_TAG = re.compile(r"</?su[bp]>")
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
    sides = _split(formula.strip().rstrip("."), "=+−", kept=True)
    return _bracketed("".join(_side(side) for side in sides)).strip()


def to_inline_tex(formula: str) -> str:
    """TeX of a formula within a sentence, whose strokes stay strokes.

    Raises:
        ValueError: It holds a sign that is not known.
    """
    return _bracketed(_tokens(formula.strip())).strip()


def _bracketed(tex: str) -> str:
    """Brackets raised to a power, under a root or of an absolute value hold what stands in them.

    LibreOffice shows none of them otherwise, and a root would be that of the bracket's opening alone.
    """
    tex = _ROOT_OF_BRACKET.sub(r"\\sqrt{\1}", _ABSOLUTE.sub(r"\\left\\vert \1\\right\\vert ", tex))
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
    numerator, *denominators = _split(text, "/")
    if not denominators:
        return _tokens(text)
    denominator = " / ".join(denominators)
    below = _side(denominator) if not denominator.startswith("Σ") else _under_sum(denominator)
    return rf"\frac{{{_tokens(_bare(numerator))}}}{{{_bare(below)}}}"


def _bare(text: str) -> str:
    """A part without the brackets around all of it, which the bar of a fraction makes superfluous."""
    inside = text[1:-1]
    whole = text.startswith("(") and text.endswith(")") and not re.search(r"\)[^(]*\(", inside)
    return inside if whole else text


def _under_sum(text: str) -> str:
    sign, rest = re.fullmatch(r"(Σ(?:<sub>.*?</sub>)?) (.*)", text).groups()  # type: ignore[union-attr]
    return f"{_tokens(sign)} {_side(rest)}"


def _split(text: str, signs: str, *, kept: bool = False) -> list[str]:
    """Parts between spaced signs outside of brackets and of what is raised or lowered, with the signs where kept."""
    parts, depth, position = [""], 0, 0
    while position < len(text):
        tag = _TAG.match(text, position)
        character = tag[0] if tag else text[position]
        depth += (character in ("(", "<sub>", "<sup>")) - (character in (")", "</sub>", "</sup>"))
        around = text[position - 1 : position] + text[position + 1 : position + 2]
        if depth == 0 and character in signs and around == "  ":
            parts += [character, ""] if kept else [""]
        else:
            parts[-1] += character
        position += len(character)
    return [part.strip() for part in parts]


def _tokens(text: str) -> str:
    close = re.sub(r"\s*([=+−·×,≤≥])\s*", r"\1", text)  # TeX spaces signs by itself
    return "".join(map(_tex, _TOKEN.finditer(close)))


def _tex(token: re.Match[str]) -> str:
    kind, text = next((kind, text) for kind, text in token.groupdict().items() if text is not None)
    match kind:
        case "space":
            return r"\, "
        case "below":
            return f"_{{{_tokens(text)}}}" if _VARIABLE.search(text) else rf"_{{\mathrm{{{text}}}}}"
        case "member":
            return r"\texttt{" + text.replace("_", r"\_") + "}"
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
    signs = _SIGNS | _FURTHER_SIGNS
    if text not in signs:
        raise ValueError(f"{text!r} in a formula has no TeX; add it to spec/document/formulas.py")
    return signs[text]


def _variable(name: str) -> str:
    """Letters of a variable, with what stands below them."""
    return "".join(letter if letter == _DIFFERENTIAL else _SIGNS.get(letter, letter) for letter in name)
