"""Marks of stability of requirements, features, operations and indicators, from spec/stability.yaml."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kuayu_conformance.rendering.words import Language
from kuayu_schemas import registers

from .markdown import badge, plain, table
from .text import phrases

NAME = "stability"

REGISTER = Path(__file__).parents[3] / "spec/stability.yaml"
MARK = "<!-- stability -->"
"""Stands in a page written by hand where the promises and the counts go."""


def stability_word(language: Language) -> str:
    """What the mark of an item is called beside it."""
    return str(phrases(NAME, language)["stability"])


def mark_badge(language: Language, kind: str, name: str) -> str:
    """The mark of an item in its colour, with what a deprecated one says; ``kind`` is a member of the register."""
    say = phrases(NAME, language)
    said = _register()[kind][name]
    mark = said["mark"] if isinstance(said, Mapping) else said
    shown = badge(mark, next(row[f"name_{language}"] for row in _register()["marks"] if row["mark"] == mark))
    if not isinstance(said, Mapping):
        return shown
    told = say["until"].format(since=said["since"], until=said["until"], instead=said[f"instead_{language}"])
    return f"{shown} {plain(told)}"


def overview(language: Language) -> str:
    """Promises of the marks, how many items of each kind have which, and how many requirements of each profile."""
    say = phrases(NAME, language)
    marks = _register()["marks"]
    names = [badge(row["mark"], row[f"name_{language}"]) for row in marks]
    promises = [(name, plain(row[f"promise_{language}"])) for name, row in zip(names, marks, strict=True)]
    rows = [(words, *_counts(_register()[kind].values())) for kind, words in say["kinds"].items()]
    of_profiles = [
        (
            profile.profile,
            *_counts(said for name, said in _register()["requirements"].items() if name.startswith(profile.profile)),
        )
        for profile in registers.requirements().profiles
    ]
    return "\n\n".join(
        (
            table((say["stability"], say["promise"]), promises),
            table(("", *names), rows),
            table((say["profile"], *names), of_profiles),
        )
    )


def _counts(said: Any) -> tuple[str, ...]:
    found = [row["mark"] if isinstance(row, Mapping) else row for row in said]
    return tuple(str(found.count(row["mark"])) for row in _register()["marks"])


@cache
def _register() -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = yaml.load(REGISTER.read_text("utf-8"), yaml.CSafeLoader)
    return loaded
