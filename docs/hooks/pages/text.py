"""The text of generated pages, in ``docs/hooks/text``: whoever writes or translates it touches no code.

1. ``NAME.en.md`` and ``NAME.zh.md`` are a page or a section: Markdown, into which Jinja puts figures and tables. A
   paragraph is one line, and the modules of this package compute what is put in.
2. ``NAME.yaml`` holds single phrases by name, each as ``{en: …, zh: …}``, or once where both are alike; a row of
   headings is a list in each. ``{}`` and ``{name}`` in a phrase are places for figures.
3. ``NAME_zh.yaml`` is a vocabulary: what others say in English alone, and its Chinese, in one list or in some with
   names. Under ``patterns`` stand regular expressions, in which ``<NAME>`` is one of ``parts`` or any phrase of a list.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kuayu_conformance.rendering.figures import brief, count
from kuayu_conformance.rendering.words import Language

from . import markdown

FOLDER = Path(__file__).parents[1] / "text"
TERMS = Path(__file__).parents[3] / "spec/document/words.yaml"
Phrases = Mapping[str, Any]
"""Phrases in one language, by name at whatever depth their file has them."""
_PART = re.compile(r"<(\w+)>")


def text(name: str, language: Language, **figures: Any) -> str:
    """A page or section in one language, without line feeds before it and the one at its end.

    Args:
        name: Of its file; phrases in the file beside it are ``say`` in the template.
        language: Which one.
        figures: What the template puts in, by name.
    """
    say = phrases(name, language) if (FOLDER / f"{name}.yaml").is_file() else {}
    made = _environment().get_template(f"{name}.{language}.md").render(say=say, **figures)
    return made.lstrip("\n").removesuffix("\n")


@cache
def phrases(name: str, language: Language) -> Phrases:
    """Phrases of a file in one language."""
    made: Phrases = _in_one(yaml.load((FOLDER / f"{name}.yaml").read_text("utf-8"), yaml.CSafeLoader), language)
    return made


@cache
def terms(language: Language) -> Phrases:
    """Words for the values of the model's enumerations, by kind; the draft as a document says the same."""
    made: Phrases = _in_one(yaml.load(TERMS.read_text("utf-8"), yaml.CSafeLoader)["terms"], language)
    return made


def term(language: Language, kind: str, value: str) -> str:
    """The word for a value of an enumeration; one that is not known stands for itself."""
    return str(terms(language)[kind].get(value, value))


def _in_one(said: Any, language: Language) -> Any:
    if isinstance(said, list):
        return [_in_one(each, language) for each in said]
    if not isinstance(said, dict):
        return said
    return (
        said[language] if said.keys() == {"en", "zh"} else {key: _in_one(each, language) for key, each in said.items()}
    )


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What is said in English alone, and its Chinese.

    Attributes:
        lists: Phrases, English to Chinese, by the name of their list.
        phrases: All of them.
        patterns: What holds figures or names; groups of a match are put into the Chinese.
    """

    lists: Mapping[str, Mapping[str, str]]
    phrases: Mapping[str, str]
    patterns: tuple[tuple[re.Pattern[str], str], ...]

    def said(self, text: str) -> str:
        """A text in Chinese; as it is where it is not known."""
        if known := self.phrases.get(text):
            return known
        for pattern, chinese in self.patterns:
            if found := pattern.fullmatch(text):
                return chinese.format(*found.groups())
        return text


@cache
def vocabulary(name: str) -> Vocabulary:
    """A vocabulary by the name of its file, without ``_zh.yaml``."""
    lists = yaml.load((FOLDER / f"{name}_zh.yaml").read_text("utf-8"), yaml.CSafeLoader)
    patterns, parts = lists.pop("patterns", {}), lists.pop("parts", {})
    if not all(isinstance(phrases, dict) for phrases in lists.values()):
        lists = {name: lists}
    parts |= {each: {"en": "|".join(phrases)} for each, phrases in lists.items()}

    def whole(text: str, language: Language) -> str:
        return _PART.sub(lambda found: parts.get(found[1], {}).get(language, found[0]), text)

    return Vocabulary(
        lists,
        {english: chinese for phrases in lists.values() for english, chinese in phrases.items()},
        tuple((re.compile(whole(english, "en")), whole(chinese, "zh")) for english, chinese in patterns.items()),
    )


def _table(headings: str | Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a template writes its headings with a stroke between each two."""
    return markdown.table(headings.split(" | ") if isinstance(headings, str) else headings, rows)


@cache
def _environment() -> Environment:
    made = Environment(  # noqa: S701 - what it makes is Markdown, and figures are escaped where they are computed
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    helpers = (brief, count, markdown.code, markdown.link, markdown.percent, markdown.plain)
    made.globals["table"] = _table
    made.globals |= {helper.__name__: helper for helper in helpers}
    made.filters |= {helper.__name__: helper for helper in helpers} | {"g": "{:g}".format}
    return made
