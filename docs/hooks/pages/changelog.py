"""The changelog: the one at the root of the repository, and its Chinese, entry by entry.

1. ``CHANGELOG.md`` is in English. ``docs/changelog-zh.yaml`` has a row for each entry, in any order: the digest of the
   entry, its first words to find it by, and its Chinese, which may say the same in fewer words.
2. An entry without a row stands in English on the Chinese page, so that the site can be built; a test fails for it, and
   for a row whose entry has changed (:func:`differing`).
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from kuayu_conformance.rendering.words import Language

from .made import Made
from .markdown import page
from .text import phrases

FILE = "docs/changelog-zh.yaml"
PLACES = (
    (r"docs/(decisions/[^)]+)", r"/\1"),
    (r"docs/(?:en|zh)/([^)]+)", r"/\1"),
    (r"spec/text/(?:en|zh)/([^)]+)", r"/standard/\1"),
)
"""Where files of the repository stand on the site."""
NAME = "changelog"
OPENING_WORDS = 8

_BLOCK = re.compile(r"\n(?=- |#)|\n\n")
_LABEL = re.compile(r"^\*[^*]+\*\s+")


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page of it."""
    text = (root / "CHANGELOG.md").read_text("utf-8").removeprefix("# Changelog\n")
    blocks = (
        [phrases(NAME, language)["condensed_zh"], *_chinese(text, rows(root))] if language == "zh" else [text.strip()]
    )
    shown = page(f"# {phrases(NAME, language)['title']}", *blocks)
    for file, place in PLACES:
        shown = re.sub(rf"\]\({file}\)", f"]({place})", shown)
    yield Made("changelog.md", shown)


def rows(root: Path) -> list[Mapping[str, Any]]:
    """The Chinese, a row for each entry or paragraph: ``digest``, ``of`` and ``zh``."""
    found: list[Mapping[str, Any]] = yaml.safe_load((root / FILE).read_text("utf-8"))
    return found


def differing(text: str, chinese: list[Mapping[str, Any]]) -> list[str]:
    """What a changelog and its Chinese do not have in common, each as a sentence that says what to do."""
    names = {block: digest(block) for block in told(text)}
    known = {row["digest"]: row["of"] for row in chinese}
    missing = [
        f"no Chinese of this entry; add a row to {FILE}:\n- {{digest: {name!r}, of: {opening(block)!r}, zh: …}}"
        for block, name in names.items()
        if name not in known
    ]
    left = [
        f"{FILE}, {name} ({of}): no entry says that any more; where one was changed, look at its Chinese and take over "
        "its digest, else take the row out"
        for name, of in known.items()
        if name not in names.values()
    ]
    return missing + left


def digest(block: str) -> str:
    """Name of an entry as it stands, however its lines are broken."""
    return hashlib.sha256(" ".join(block.split()).encode()).hexdigest()[:8]


def opening(block: str) -> str:
    """First words of an entry."""
    return " ".join(_LABEL.sub("", block).split()[:OPENING_WORDS])


def told(text: str) -> Iterator[str]:
    """Entries and paragraphs, without the marks of a list."""
    return (block.removeprefix("- ") for block in _blocks(text) if not block.startswith("#"))


def _chinese(text: str, chinese: list[Mapping[str, Any]]) -> Iterator[str]:
    known = {row["digest"]: row["zh"] for row in chinese}
    entries: list[str] = []
    for block in _blocks(text):
        bare = block.removeprefix("- ")
        said = known.get(digest(bare), bare)
        if block.startswith("- "):
            entries.append(f"- {said}")
            continue
        if entries:
            yield "\n".join(entries)
            entries = []
        yield _heading(block) if block.startswith("#") else said
    yield "\n".join(entries)


def _heading(block: str) -> str:
    marks, _, name = block.partition(" ")
    return f"{marks} {phrases(NAME, 'zh')['headings_zh'].get(name, name)}"


def _blocks(text: str) -> Iterator[str]:
    for block in _BLOCK.split(text.removeprefix("# Changelog\n")):
        if block.strip():
            yield block.strip()
