"""Rules of terms and abbreviations (GB/T 1.1-2020, 8.7): used as they are defined, and defined where they are used.

- Terms are the rows of clause *Terms and definitions*, the same in both languages and in the same order; abbreviations
  those of clause *Symbols and abbreviated terms*, and so are symbols, each with the clauses that use it.
- A phrase that a clause sets in italics to define it on the spot, and that another clause uses, has to be a term, or
  the other clause has to link to the first.
- Words that once stood for a term, or stand for it elsewhere, are refused (``VARIANTS``).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from lint.clauses import CODE, LANGUAGES, Clause, Sentence
from lint.specification import Finding, Specification, at

TERMS, ABBREVIATIONS = "com-03-terms", "com-04-abbreviations"

VARIANTS: Mapping[str, Mapping[str, str]] = {
    "zh": {
        "族群": "节点组",
        "掉队": "滞后",
        "规约": "专规",
        "弃答": "不予判定",
        "放手": "释放",
        "采集器页面": "采集器输出",
        "汇聚器": "聚合器",
        "租约": "租期",
        "答复": "响应",
        "应答": "响应",
        "(?<!参考)设备": "加速器",
        "参考加速器": "参考设备",
    },
    "en": {
        r"\b[Nn]oughts?\b": "zero",
        r"\bat the begin\b|\bbegin of\b": "beginning of",
        r"\bfrom afar\b": "remote",
    },
}
"""Words that are refused, as patterns, and the word that is used instead."""

SYMBOL_COLUMNS = 4
"""Columns of the table of symbols: symbol, meaning, unit, clauses; that of abbreviations has two."""
SYMBOL = re.compile(r"(?<![*\w])\*([A-Za-z])\*(?!\*)([₀₊₋]?)|(?<![^\W\d_])([α-ω])(?![^\W\d_])")
"""Variable as the text writes it: one letter in italics, with what stands below it, or a Greek one."""
_CLAUSES = re.compile(r"\]\(([a-z0-9-]+)\.md\)")

ASIDE = ("front-", "annex-", "com-02-", "com-04-", "bibliography")
"""Beginnings of the names of clauses that spell abbreviations out, or name documents."""

NO_ABBREVIATION = re.compile(
    r"GET|PUT|POST|DELETE|RFC|IEEE|GB|ISO|IEC|ITU|WWW|COM|MET|IDX|DEM|FCT|SCH|RES|JOB|CMP|STO|NET|STA|ID"
)
"""Methods, publishers, header names, profiles and dimensions, and a placeholder."""

ABBREVIATION = re.compile(r"(?<![\w./-])([A-Z][A-Za-z]?[A-Z][A-Z0-9]*(?:-\d+)?)s?(?![\w/])")
_NUMBERED = re.compile(r"\b(?:COM|MET|IDX|DEM|FCT|SCH|RES|JOB|CMP|STO|NET|STA)-\d+")
ITALIC = re.compile(r"\*([^*]+)\*")


def term_in_both_languages(specification: Specification) -> Iterator[Finding]:
    """Both languages define the same terms in the same order."""
    chinese, english = (specification.clauses[language].get(TERMS) for language in ("zh", "en"))
    if chinese is None or english is None:
        return
    lists = [cells[1] for cells in chinese.rows if len(cells) > 1], [cells[0] for cells in english.rows]
    for number, row in enumerate(_rows(chinese)):
        here = lists[0][number] if number < len(lists[0]) else ""
        there = lists[1][number] if number < len(lists[1]) else "nothing"
        if here != there:
            yield at("term-in-both-languages", row, f"the English text defines {there} here, the Chinese one {here}")
            return
    if len(lists[1]) > len(lists[0]):
        row = _rows(english)[len(lists[0])]
        yield at("term-in-both-languages", row, "the Chinese text does not define it; add it")


def defined_once(specification: Specification) -> Iterator[Finding]:
    """No term and no abbreviation is defined twice."""
    for language in LANGUAGES:
        for name in (TERMS, ABBREVIATIONS):
            seen: Counter[str] = Counter()
            for word, row in _defined(specification, language, name):
                seen[word] += 1
                if seen[word] > 1:
                    yield at("defined-once", row, f"{word} is defined above already")


def term_used(specification: Specification) -> Iterator[Finding]:
    """A term that is defined is used, in a clause or in another definition."""
    for language in LANGUAGES:
        texts = _texts(specification, language, without=ABBREVIATIONS)
        for word, row in _defined(specification, language, TERMS):
            used = sum(count for text in texts for count in [_count(text, word, language)])
            if used < 2:  # noqa: PLR2004 - once where it is defined
                yield at("term-used", row, f"{word} is defined and not used; use it where it is meant, or take it out")


def term_defined(specification: Specification) -> Iterator[Finding]:
    """What one clause defines on the spot, in italics, and another one uses, is a term."""
    for language in LANGUAGES:
        terms = {word for word, _ in _defined(specification, language, TERMS)}
        titles = {heading.text for clause in specification.clauses[language].values() for heading in clause.headings}
        for sentence in specification.sentences(language):
            if sentence.informative or sentence.row:
                continue
            linked = any(f"]({name}.md" in sentence.text for name in specification.clauses[language])
            for word in [] if linked else ITALIC.findall(sentence.text):
                if word in terms or word in titles or not _is_phrase(word, language):
                    continue
                others = [
                    clause.name
                    for clause in specification.clauses[language].values()
                    if clause.name != sentence.clause
                    and not clause.informative
                    and f"]({sentence.clause}.md" not in clause.text
                    and _count(clause.text, word, language)
                ]
                if others:
                    advice = f"*{word}* is defined here and used in {', '.join(others)}; define it in {TERMS}"
                    yield at("term-defined", sentence, advice)


def term_variant(specification: Specification) -> Iterator[Finding]:
    """No other word stands for a term."""
    for sentence in specification.sentences():
        for pattern, word in VARIANTS[sentence.language].items():
            found = re.search(pattern, sentence.words)
            if found:
                yield at("term-variant", sentence, f"{found[0]}: say {word}")
    for register, line, member, text in specification.register_strings():
        for pattern, word in VARIANTS[member[-2:]].items():
            if found := re.search(pattern, text):
                yield Finding("term-variant", f"spec/{register}.yaml", line, text, f"{member}: {found[0]}: say {word}")


def abbreviation_defined(specification: Specification) -> Iterator[Finding]:
    """An abbreviation that a clause uses is in the list; foreword, introduction, annexes and lists of titles aside."""
    for language in LANGUAGES:
        listed = {word for word, _ in _defined(specification, language, ABBREVIATIONS)}
        seen: set[str] = set()
        for sentence in specification.sentences(language):
            if sentence.clause.startswith(ASIDE):
                continue
            for word in ABBREVIATION.findall(_NUMBERED.sub("", sentence.words)):
                if word not in listed | seen and not NO_ABBREVIATION.fullmatch(word):
                    seen.add(word)
                    yield at("abbreviation-defined", sentence, f"{word} is in no list; add it to {ABBREVIATIONS}")


def abbreviation_used(specification: Specification) -> Iterator[Finding]:
    """An abbreviation that is listed is used in a clause or in a register."""
    registers = "\n".join(specification.register_texts.values())
    for language in LANGUAGES:
        texts = [*_texts(specification, language, without=ABBREVIATIONS), registers]
        for word, row in _defined(specification, language, ABBREVIATIONS):
            if not any(re.search(rf"(?<!\w){re.escape(word)}(?![a-z])", text) for text in texts):
                yield at("abbreviation-used", row, f"{word} is listed and not used; take it out")


def symbol_listed(specification: Specification) -> Iterator[Finding]:
    """A variable of a clause, in a formula of its own or in a sentence, is listed for that clause; annexes aside."""
    for language in LANGUAGES:
        listed = {(symbol, place) for symbol, places, _ in _symbols(specification, language) for place in places}
        for sentence in specification.sentences(language):
            if sentence.clause.startswith(ASIDE):
                continue
            for symbol in dict.fromkeys(_variables(sentence.text)):
                if (symbol, sentence.clause) not in listed:
                    listed.add((symbol, sentence.clause))
                    advice = f"{symbol} is not listed for this clause; add it to {ABBREVIATIONS}"
                    yield at("symbol-listed", sentence, advice)


def symbol_used(specification: Specification) -> Iterator[Finding]:
    """A symbol is used in each clause that it is listed for, and listed once for it."""
    for language in LANGUAGES:
        clauses, seen = specification.clauses[language], set[tuple[str, str]]()
        for symbol, places, row in _symbols(specification, language):
            if not places:
                yield at("symbol-used", row, f"{symbol} is listed for no clause; name those that use it")
            for place in places:
                if place not in clauses or symbol not in _variables(clauses[place].text):
                    yield at("symbol-used", row, f"{symbol} is not used in {place}; take it out")
                if (symbol, place) in seen:
                    yield at("symbol-used", row, f"{symbol} is listed for {place} above already")
                seen.add((symbol, place))


def _symbols(specification: Specification, language: str) -> Iterator[tuple[str, list[str], Sentence]]:
    """Symbols that are listed, each with the names of its clauses and its row."""
    clause = specification.clauses[language].get(ABBREVIATIONS)
    if clause is not None:
        for cells, row in zip(clause.rows, _rows(clause), strict=True):
            if len(cells) == SYMBOL_COLUMNS:
                yield "".join(_variables(cells[0])) or cells[0], _CLAUSES.findall(cells[3]), row


def _variables(text: str) -> list[str]:
    """Variables of a text without asterisks: letter and what stands below it."""
    return [letter + below or greek for letter, below, greek in SYMBOL.findall(CODE.sub("", text))]


def _defined(specification: Specification, language: str, name: str) -> Iterator[tuple[str, Sentence]]:
    """Words of the first column of a table, with their rows; several in one cell by commas."""
    clause = specification.clauses[language].get(name)
    if clause is not None:
        for cells, row in zip(clause.rows, _rows(clause), strict=True):
            if name == ABBREVIATIONS and len(cells) == SYMBOL_COLUMNS:
                continue
            for word in re.split(r"[,，、] ?", cells[0]):
                yield word, row


def _rows(clause: Clause) -> list[Sentence]:
    return [sentence for sentence in clause.sentences if sentence.row]


def _texts(specification: Specification, language: str, *, without: str) -> list[str]:
    return [clause.text for name, clause in specification.clauses[language].items() if name != without]


def _count(text: str, word: str, language: str) -> int:
    """How often a text has a word, in English in singular or plural and over the end of a line."""
    if language == "zh":
        return text.count(word)
    whole = re.escape(word).replace(r"\ ", r"[\s-]+")
    stem = whole[:-1] + "(?:y|ies)" if word.endswith("y") else whole + "(?:e?s|d|ed)?"
    return len(re.findall(rf"\b{stem}\b", text, re.IGNORECASE))


def _is_phrase(word: str, language: str) -> bool:
    """Whether words in italics are a term: Chinese ones of two signs and more, or several English ones."""
    pattern = r"[\u4e00-\u9fff]{2,}" if language == "zh" else r"[A-Za-z-]+(?: [A-Za-z-]+)+"
    return re.fullmatch(pattern, word) is not None
