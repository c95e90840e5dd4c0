"""What the document says of itself, from ``words.yaml``; all else it says is from the text and the registers."""

from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = ("zh", "en")

FILE = Path(__file__).with_name("words.yaml")

# The cover of GB/T 1.1-2020, annex A; what only a committee can assign stays open.
NUMBER = "XX/T XXXX—20XX"


def said(name: str, language: Language) -> str:
    """A phrase, by the names that lead to it: ``terms.levels.interface``."""
    return str(phrases(name, language))


@cache
def phrases(name: str, language: Language) -> Any:
    """A phrase, a row of headings, or phrases by their names."""
    found = _file()
    for part in name.split("."):
        found = found[part]
    return _in_one(found, language)


def _in_one(found: Any, language: Language) -> Any:
    if not isinstance(found, dict):
        return found
    return found[language] if found.keys() == {"en", "zh"} else {key: _in_one(found[key], language) for key in found}


@cache
def _file() -> Any:
    return yaml.load(FILE.read_text("utf-8"), yaml.CSafeLoader)
