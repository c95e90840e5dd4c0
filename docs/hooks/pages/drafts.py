"""The draft as documents to download, where ``make standard`` has written them into ``build/standard``.

The site is built without them too; then nothing of it leads to them.
"""

from pathlib import Path

from kuayu_conformance.rendering.words import Language, Words

from .markdown import link

FOLDER = "build/standard"
PLACE = "downloads"
"""Folder of the site."""
MARK = "<!-- downloads -->"
"""Stands in a page written by hand where links to the documents go."""

KINDS = ("pdf", "docx")
NAMES = {
    "kuayu-en": Words("The draft in English", "标准草案（英文）"),
    "kuayu-zh": Words("The draft in Chinese", "标准草案（中文）"),
    "kuayu-drafting-report-zh": Words("The drafting report, in Chinese", "编制说明（中文）"),
}
DOWNLOAD = Words("To download: {}.", "下载：{}。")
BETWEEN = {"en": "; ", "zh": "；"}


def files(root: Path) -> dict[str, Path]:
    """Documents that are there, by their path below the site."""
    named = [root / FOLDER / f"{name}.{kind}" for name in NAMES for kind in KINDS]
    return {f"{PLACE}/{file.name}": file for file in named if file.is_file()}


def links(language: Language, root: Path) -> str:
    """A line of links to them, as Markdown; "" where there are none."""
    there = files(root)
    parts = []
    for name, title in NAMES.items():
        kinds = [link(kind.upper(), f"/{PLACE}/{name}.{kind}") for kind in KINDS if f"{PLACE}/{name}.{kind}" in there]
        if kinds:
            parts.append(f"{title.in_(language)} {', '.join(kinds)}")
    return DOWNLOAD.in_(language).format(BETWEEN[language].join(parts)) if parts else ""
