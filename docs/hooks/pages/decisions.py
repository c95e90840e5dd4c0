"""The decision records, as they stand in docs/decisions, and the list of them.

The records are in English. The Chinese list and the Chinese page of each have its title and what was decided, from
``zh.yaml`` in the folder of the records.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from kuayu_conformance.rendering.words import Language

from .made import Made
from .markdown import link, page, plain, table
from .text import phrases

NAME = "decisions"

TITLE = re.compile(r"^# (\d+)\. (.+)$", re.MULTILINE)
DATE = re.compile(r"^Date: (\S+)$", re.MULTILINE)


def pages(language: Language, folder: Path) -> Iterator[Made]:
    """The list and the records.

    Raises:
        ValueError: A record does not begin as all do.
        KeyError: A record has no row in ``zh.yaml``.
    """
    say = phrases(NAME, language)
    chinese = yaml.safe_load((folder / "zh.yaml").read_text("utf-8")) if language == "zh" else {}
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
            said = page(begin, plain(row["summary"]), say["original_zh"].format(title[2])).rstrip()
            text = text.replace(title[0], said, 1)
        rows.append((title[1], shown, date[1]))
        yield Made(f"decisions/{file.name}", text, "Decisions")
    yield Made("decisions/index.md", page(f"# {say['title']}", say["introduction"], table(say["columns"], rows)))
