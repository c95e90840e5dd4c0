"""Rules of formulas: what is mathematics is set as such, and says the same in both languages and in the register.

- A formula goes as far as operands follow signs (``document.inline_formulas``). A sign beside a formula means that it
  was meant to go on, and that what follows cannot be read as an operand.
- Both languages have the same formulas in each section, single variables aside, which a sentence may name or not.
- Each formula of the register of indicators stands in ``spec/document/measure-formulas.yaml``, and is what the register
  says once words stand in place of symbols; every symbol of it has a meaning in both languages.
"""

import re
from collections.abc import Iterator

from document import formulas, inline_formulas, measure_formulas
from lint.clauses import LANGUAGES, Clause, Sentence
from lint.specification import Finding, Specification, at

_BEFORE = re.compile(r"[·×÷±−+=≤≥≠≈^√/] ?$")
_BEHIND = re.compile(r"^ ?[·×÷±−+=≤≥≠≈^/]")
_CHINESE, _WORD = re.compile(r"[\u4e00-\u9fff]+"), "quantity"
"""What stands for a quantity in words, which a formula of its own may hold in either language."""
_SYMBOL = re.compile(r"(?:Σ|Δ)?(?:\*[A-Za-z]\*|RTT)(?!<sub>[^<]*−)(?:<sub>[^<]*</sub>)?")
"""Symbol of a formula with what stands below it, but for the neighbour in a sequence, which follows from it."""


def formula_whole(specification: Specification) -> Iterator[Finding]:
    """No sign stands beside a formula, left out of it."""
    for sentence in specification.sentences():
        parts = [] if formulas.is_formula(sentence.text) else list(inline_formulas.parts(sentence.text))
        for place, (part, formula) in enumerate(parts):
            around = parts[place - 1][0] if place else "", parts[place + 1][0] if place + 1 < len(parts) else ""
            sign = _BEFORE.search(around[0]) or _BEHIND.search(around[1])
            if formula and sign:
                advice = (
                    f"{part} stands beside {sign[0].strip()}, which is no part of it, as no operand follows there; "
                    "write the operand as a variable, a number or a member in code, or say the sign in words"
                )
                yield at("formula-whole", sentence, advice)


def same_formulas(specification: Specification) -> Iterator[Finding]:
    """Both languages of a section have the same formulas."""
    for english, chinese in specification.pairs():
        for ours, theirs in zip(_of_sections(english), _of_sections(chinese), strict=False):
            for own, other, language in ((ours, theirs, "zh"), (theirs, ours, "en")):
                for formula, sentence in own.items():
                    if formula not in other:
                        advice = f"{formula} is not in this section of spec/text/{language}; write it there too"
                        yield at("same-formulas", sentence, advice)


def measure_formula(specification: Specification) -> Iterator[Finding]:
    """The formula of each measure has its mathematics, which says what the register says."""
    listed = specification.formulas
    rows = specification.registers.get("indicators", {}).get("indicators", [])
    registered = [measure["formula"] for row in rows for measure in row["measures"] if "formula" in measure]
    for text in dict.fromkeys(registered):
        if text not in listed:
            yield _measured(text, "has no entry; add it with its Chinese")
        elif "mathematics" not in listed[text]:
            if "zh" not in listed[text]:
                yield _measured(text, "has neither mathematics nor Chinese; add one of them")
        else:
            said = measure_formulas.in_words(listed[text])
            if said != text:
                yield _measured(text, f"with words in place of its symbols its mathematics says: {said}; make them one")
            for symbol in _unexplained(listed[text]):
                yield _measured(text, f"{symbol} has no meaning; add it under symbols or letters")
    for text in listed.keys() - set(registered):
        yield _measured(text, "is no formula of the register; take it out")


def _of_sections(clause: Clause) -> list[dict[str, Sentence]]:
    """Formulas of each section, without spaces, with the sentence that each first stands in."""
    return [
        {
            formula.replace(" ", ""): sentence
            for sentence in reversed(sentences)
            for formula in _of_sentence(sentence)
            if not _SYMBOL.fullmatch(formula.rstrip("₀₊₋′")) and len(formula) > 1
        }
        for _, sentences in clause.sections()
    ]


def _of_sentence(sentence: Sentence) -> list[str]:
    if not formulas.is_formula(sentence.text):
        return inline_formulas.found(sentence.text)
    return [_CHINESE.sub(_WORD, re.sub(r"[a-z]{5,}", _WORD, sentence.text.rstrip(".")))]


def _unexplained(formula: measure_formulas.Formula) -> Iterator[str]:
    """Symbols that have no meaning in a language, nor are named in another one's or in the words around the formula."""
    meanings = measure_formulas.symbols(formula)
    for language in LANGUAGES:
        told = formula.get(language, "") + "".join(meaning.get(language, "") for meaning in meanings.values())
        for symbol in dict.fromkeys(_SYMBOL.findall(formula["mathematics"])):
            if language not in meanings.get(symbol, {}) and symbol not in told:
                yield f"{symbol} ({language})"


def _measured(text: str, advice: str) -> Finding:
    return Finding("measure-formula", "spec/document/measure-formulas.yaml", 1, text, advice)
