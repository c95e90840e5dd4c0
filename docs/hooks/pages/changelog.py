"""The changelog, as it stands at the root of the repository, with links that lead to pages of the site."""

import re
from collections.abc import Iterator
from pathlib import Path

from kuayu_conformance.rendering.words import Language, Words

from .made import Made
from .markdown import page

PLACES = (
    (r"docs/(decisions/[^)]+)", r"/\1"),
    (r"docs/(?:en|zh)/([^)]+)", r"/\1"),
    (r"spec/text/(?:en|zh)/([^)]+)", r"/standard/\1"),
)
"""Where files of the repository stand on the site."""
TITLE = Words("# Changes", "# 变更记录")
ENGLISH = Words("", "变更记录以英文书写。")


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page of it."""
    text = (root / "CHANGELOG.md").read_text("utf-8").removeprefix("# Changelog\n")
    for file, place in PLACES:
        text = re.sub(rf"\]\({file}\)", f"]({place})", text)
    yield Made("changelog.md", page(TITLE.in_(language), ENGLISH.in_(language), text.strip()))
