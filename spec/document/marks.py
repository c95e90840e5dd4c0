"""Marks of stability beside the items of the annexes, from the register of stability."""

from collections.abc import Mapping

from document.markdown import code, plain
from document.sources import Sources
from document.words import Language, said


def mark_text(sources: Sources, language: Language, kind: str, name: str) -> str:
    """The mark of an item, and of a deprecated one since and until when; Markdown.

    Args:
        sources: What the document is made of.
        language: Its language.
        kind: Member of the register: ``requirements``, ``features``, ``operations`` or ``indicators``.
        name: The item.

    Raises:
        KeyError: It has no mark; rule ``item-marked`` of the text finds that first.
    """
    row = sources.stability[kind][name]
    mark = row["mark"] if isinstance(row, Mapping) else row
    text = next(each[f"name_{language}"] for each in sources.stability["marks"] if each["mark"] == mark)
    if isinstance(row, Mapping):
        until = said("marks.until", language)
        text += until.format(since=row["since"], until=row["until"], instead=row[f"instead_{language}"])
    return plain(text)


def features_text(sources: Sources, language: Language, features: list[str]) -> str:
    """Features with their marks; Markdown, empty where there are none."""
    aside = said("document.aside", language)
    return said("document.comma", language).join(
        code(name) + aside.format(mark_text(sources, language, "features", name)) for name in features
    )
