"""The decision records, as they stand in docs/decisions, and the list of them.

The records are in English. The Chinese list and the Chinese page of each have its title and what was decided, from
``zh.yaml`` in the folder of the records.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from kuayu_conformance.rendering.words import Language, Words

from .made import Made
from .markdown import link, page, plain, table

TITLE = re.compile(r"^# (\d+)\. (.+)$", re.MULTILINE)
DATE = re.compile(r"^Date: (\S+)$", re.MULTILINE)

ORIGINAL = Words("", "记录以英文书写，题为“{}”，原文如下。")
"""Stands on a Chinese page between what was decided and the record."""

INTRODUCTION = Words(
    "Why the house is built as it is: short records, each written when the decision was made and not changed "
    "afterwards. A later record may replace an earlier one and says so.",
    "说明何以如此构建的简短记录，作出决定时写成，此后不再改动；后来的记录取代先前的记录时予以注明。记录以英文书写，下表与各记录的页首给出其中文题名与要点。",
)


def pages(language: Language, folder: Path) -> Iterator[Made]:
    """The list and the records.

    Raises:
        ValueError: A record does not begin as all do.
        KeyError: A record has no row in ``zh.yaml``.
    """
    chinese = yaml.safe_load((folder / "zh.yaml").read_text("utf-8")) if language == "zh" else {}
    headings = {"en": ("No.", "Decision", "Date"), "zh": ("编号", "决策", "日期")}[language]
    rows = []
    for file in sorted(folder.glob("[0-9]*.md")):
        text = file.read_text("utf-8")
        title, date = TITLE.search(text), DATE.search(text)
        if title is None or date is None:
            raise ValueError(f"{file.name} does not begin with '# N. TITLE' and 'Date: …'")
        shown = link(title[2], f"/decisions/{file.name}")
        if language == "zh":
            row = chinese[int(title[1])]
            shown = f"{link(plain(row['title']), f'/decisions/{file.name}')}<br>{plain(row['summary'])}"
            begin = f"# {title[1]}. {plain(row['title'])}"
            said = page(begin, plain(row["summary"]), ORIGINAL.zh.format(title[2])).rstrip()
            text = text.replace(title[0], said, 1)
        rows.append((title[1], shown, date[1]))
        yield Made(f"decisions/{file.name}", text, "Decisions")
    heading = {"en": "# Decisions", "zh": "# 决策记录"}[language]
    yield Made("decisions/index.md", page(heading, INTRODUCTION.in_(language), table(headings, rows)))
