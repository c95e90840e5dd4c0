"""Marks of stability beside the items of the annexes, from the register of stability."""

from collections.abc import Mapping

from document.markdown import code, plain
from document.sources import Sources
from document.words import COMMA, Language, Words

STABILITY = Words("稳定性", "Stability")
FEATURES = Words("特性", "Features")
UNTIL = Words(
    "（自 {since} 版起；随 {until} 版撤销；替代项：{instead}）",
    " (since {since}; withdrawn with {until}; instead: {instead})",
)


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
    said = sources.stability[kind][name]
    mark = said["mark"] if isinstance(said, Mapping) else said
    text = next(row[f"name_{language}"] for row in sources.stability["marks"] if row["mark"] == mark)
    if isinstance(said, Mapping):
        text += UNTIL.in_(language).format(
            since=said["since"], until=said["until"], instead=said[f"instead_{language}"]
        )
    return plain(text)


def features_text(sources: Sources, language: Language, features: list[str]) -> str:
    """Features with their marks; Markdown, empty where there are none."""
    opening, closing = ("（", "）") if language == "zh" else (" (", ")")
    return COMMA.in_(language).join(
        f"{code(name)}{opening}{mark_text(sources, language, 'features', name)}{closing}" for name in features
    )
