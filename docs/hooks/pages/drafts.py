"""The draft as documents to download, where ``make standard`` has written them into ``build/standard``.

The site is built without them too; then nothing of it leads to them.
"""

from pathlib import Path

from kuayu_conformance.rendering.words import Language

from .markdown import link
from .text import phrases

NAME = "drafts"

FOLDER = "build/standard"
NAMES = ("kuayu-en", "kuayu-zh", "kuayu-drafting-report-zh")
PLACE = "downloads"
"""Folder of the site."""
MARK = "<!-- downloads -->"
"""Stands in a page written by hand where links to the documents go."""

KINDS = ("pdf", "docx")


def files(root: Path) -> dict[str, Path]:
    """Documents that are there, by their path below the site."""
    named = [root / FOLDER / f"{name}.{kind}" for name in NAMES for kind in KINDS]
    return {f"{PLACE}/{file.name}": file for file in named if file.is_file()}


def links(language: Language, root: Path) -> str:
    """A line of links to them, as Markdown; "" where there are none."""
    say = phrases(NAME, language)
    there = files(root)
    parts = []
    for name, title in say["names"].items():
        kinds = [link(kind.upper(), f"/{PLACE}/{name}.{kind}") for kind in KINDS if f"{PLACE}/{name}.{kind}" in there]
        if kinds:
            parts.append(f"{title} {', '.join(kinds)}")
    return say["download"].format(say["between"].join(parts)) if parts else ""
