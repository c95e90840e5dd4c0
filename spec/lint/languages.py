"""Rules of the two languages: both say the same, in the same place, with the same force, numbers and units.

- Numbers in digits have to be in the same section of the other language, in digits or in words; those of a sentence
  with an identifier in the same sentence.
- A number that has a unit has the same one in the other language, by whatever name (10 min, 10 分钟).
"""

import re
from collections.abc import Callable, Iterator

from lint.clauses import CODE, LANGUAGES, Clause, Sentence
from lint.keywords import keywords
from lint.specification import Finding, Specification, at

UNITS = {
    "%": "%",
    "s": "s",
    "second": "s",
    "seconds": "s",
    "秒": "s",
    "ms": "ms",
    "min": "min",
    "minute": "min",
    "minutes": "min",
    "分钟": "min",
    "h": "h",
    "hour": "h",
    "hours": "h",
    "小时": "h",
    "day": "d",
    "days": "d",
    "天": "d",
    "week": "week",
    "weeks": "week",
    "周": "week",
    "B/s": "B/s",
    "bit": "bit",
    "bits": "bit",
    "比特": "bit",
    "位": "bit",
}
"""Units by the names that the texts give them."""

_UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
NUMBER = re.compile(r"(?<![\w.^])(\d{1,3}(?:[ \u202f]\d{3})+(?!\d)|\d+)(\.\d+)?(?![\d^])")
QUANTITY = re.compile(NUMBER.pattern + rf" ?({_UNIT})(?![a-z])")

_TWENTY = re.findall(
    r"\w+",
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty",
)
ENGLISH = {word: number for number, word in enumerate(_TWENTY)} | {"thirty": 30, "fifty": 50, "once": 1, "twice": 2}
_ENGLISH_NUMBER = re.compile(
    rf"\b(?:(?P<count>{'|'.join(ENGLISH)}|an?)(?: (?P<power>hundred|thousand)s?)?|(?P<alone>hundred|thousand)s?)\b",
    re.IGNORECASE,
)
_POWERS = {"hundred": 100, "thousand": 1000}
_DIGITS = dict(zip("零一二三四五六七八九", range(10), strict=True)) | {"两": 2}
_TENS = {"十": 10, "百": 100, "千": 1000, "万": 10000}
_CHINESE_NUMBER = re.compile("[零一二两三四五六七八九十百千万]+")
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = rf"\d+ 年 \d+ 月(?: \d+ 日)?|(?:\d+ )?(?:{_MONTHS}) \d{{4}}"
_ASIDE = re.compile(_DATE + r"|\[[^\]]*\]|\b[A-Z]{3}-\d{3}\b|\b(?:RFC|IEEE|GB/T|OpenAPI|JSON Schema) ?[\d.-]+|/v\d\b")


def clause_in_both(specification: Specification) -> Iterator[Finding]:
    """Each clause is there in both languages."""
    for language, other in (LANGUAGES, LANGUAGES[::-1]):
        for name, clause in specification.clauses[language].items():
            if name not in specification.clauses[other]:
                advice = f"spec/text/{other} has no such clause; translate it"
                yield Finding("clause-in-both", clause.file, 1, clause.text.split("\n", 1)[0], advice)


def same_headings(specification: Specification) -> Iterator[Finding]:
    """Both languages have the same headings, by number and level."""
    for english, chinese in specification.pairs():
        levels = [[heading.level for heading in clause.headings] for clause in (english, chinese)]
        if levels[0] != levels[1]:
            advice = f"has headings of the levels {levels[1]}, the English text {levels[0]}; make them the same"
            yield Finding("same-headings", chinese.file, 1, chinese.text.split("\n", 1)[0], advice)


def id_in_both_languages(specification: Specification) -> Iterator[Finding]:
    """Both languages have the same identifiers in the same order."""
    for english, chinese in specification.pairs():
        lists = [_identifiers(clause) for clause in (english, chinese)]
        if [name for name, _ in lists[0]] == [name for name, _ in lists[1]]:
            continue
        for own, other, language in ((lists[0], lists[1], "zh"), (lists[1], lists[0], "en")):
            there = {name for name, _ in other}
            for name, sentence in own:
                if name not in there:
                    yield at(
                        "id-in-both-languages", sentence, f"spec/text/{language} has no sentence with {name}; add it"
                    )
        if {name for name, _ in lists[0]} == {name for name, _ in lists[1]}:
            advice = "its identifiers stand in another order than in the English text; bring them to one order"
            yield Finding("id-in-both-languages", chinese.file, 1, chinese.text.split("\n", 1)[0], advice)


def same_keyword(specification: Specification) -> Iterator[Finding]:
    """The sentences of an identifier have the same keyword in both languages, and in the register."""
    modals = {row["id"]: row["modal"] for row in specification.requirements}
    for english, chinese in _both(specification):
        forces = {tuple(keywords(english)), tuple(keywords(chinese))}
        identifier = chinese.identifiers[0]
        if len(forces) > 1:
            advice = f"{identifier}: its keyword is {keywords(chinese)}, in English {keywords(english)}; make them one"
            yield at("same-keyword", chinese, advice)
        elif identifier in modals and forces != {(modals[identifier],)} and len(*forces) == 1:
            advice = f"{identifier}: its keyword is another one than the register's modal, {modals[identifier]}"
            yield at("same-keyword", chinese, advice)


def same_words_of_the_wire(specification: Specification) -> Iterator[Finding]:
    """Both languages of a clause have the same words of the interface, set as code."""
    for english, chinese in specification.pairs():
        words = [set(CODE.findall(clause.text)) for clause in (english, chinese)]
        for clause, own, other in ((english, words[0], words[1]), (chinese, words[1], words[0])):
            for word in sorted(own - other):
                line = clause.text.count("\n", 0, clause.text.index(f"`{word}`")) + 1
                advice = "stands in one language alone; name it in the same place of the other"
                yield Finding("same-words-of-the-wire", clause.file, line, f"`{word}`", advice)


def same_numbers(specification: Specification) -> Iterator[Finding]:
    """What one language writes in digits the other has too, in digits or in words."""
    yield from _compared(specification, "same-numbers", numbers)


def same_units(specification: Specification) -> Iterator[Finding]:
    """A number in digits has the same unit in the other language."""
    yield from _compared(specification, "same-units", quantities)


def numbers(text: str) -> set[str]:
    """Numbers that stand in a text in digits."""
    return {_plain(whole, part) for whole, part in NUMBER.findall(text)}


def quantities(text: str) -> set[str]:
    """Numbers in digits with their units, by one name for each."""
    return {f"{_plain(whole, part)} {UNITS[unit]}" for whole, part, unit in QUANTITY.findall(text)}


def in_digits(text: str, language: str) -> str:
    """A text with its number words as digits."""
    if language == "zh":
        return _CHINESE_NUMBER.sub(lambda found: f" {_chinese(found[0])} ", text)
    return _ENGLISH_NUMBER.sub(_english, text)


def _compared(specification: Specification, rule: str, told: Callable[[str], set[str]]) -> Iterator[Finding]:
    for english, chinese in _places(specification):
        for own, other in ((english, chinese), (chinese, english)):
            there = {
                value for each in other for value in told(in_digits(_bare(each), each.language)) | told(_bare(each))
            }
            for sentence in own:
                for value in sorted(told(_bare(sentence)) - there):
                    language = {"en": "Chinese", "zh": "English"}[sentence.language]
                    yield at(rule, sentence, f"{value} is not in the {language} text; make both the same")


def _places(specification: Specification) -> Iterator[tuple[list[Sentence], list[Sentence]]]:
    """What says the same in both languages: sentences with an identifier, and what else stands in a section."""
    for english, chinese in _both(specification):
        yield [english], [chinese]
    for one, two in specification.pairs():
        sections = list(one.sections()), list(two.sections())
        if len(sections[0]) == len(sections[1]) and not one.name.startswith(("bibliography", "com-02", "com-04")):
            for (_, left), (_, right) in zip(*sections, strict=True):
                yield [each for each in left if not each.identifiers], [each for each in right if not each.identifiers]


def _both(specification: Specification) -> Iterator[tuple[Sentence, Sentence]]:
    """The English and the Chinese sentence of each identifier."""
    english = {name: sentence for sentence in specification.sentences("en") for name in sentence.identifiers}
    for sentence in specification.sentences("zh"):
        for name in sentence.identifiers[:1]:
            if name in english:
                yield english[name], sentence


def _identifiers(clause: Clause) -> list[tuple[str, Sentence]]:
    return [(name, sentence) for sentence in clause.sentences for name in sentence.identifiers]


def _bare(sentence: Sentence) -> str:
    """Its text without code and references."""
    return _ASIDE.sub("", sentence.words)


def _plain(whole: str, part: str) -> str:
    return re.sub(r"[ \u202f]", "", whole).lstrip("0").rjust(1, "0") + (part or "")


def _english(found: re.Match[str]) -> str:
    count = (found["count"] or "a").lower()
    number = ENGLISH.get(count, 1) * _POWERS.get((found["power"] or found["alone"] or "").lower(), 1)
    return str(number)


def _chinese(text: str) -> int:
    """Value of a Chinese number, such as 12 of 十二."""
    total, digit = 0, 0
    for sign in text:
        if sign in _TENS:
            total = (total + digit) * _TENS[sign] if sign == "万" else total + (digit or 1) * _TENS[sign]
            digit = 0
        else:
            digit = _DIGITS[sign]
    return total + digit
