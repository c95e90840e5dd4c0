"""How to report a vulnerability: SECURITY.md as it stands at the root of the repository; docs/zh has it in Chinese."""

from collections.abc import Iterator
from pathlib import Path

from kuayu_conformance.rendering.words import Language

from .made import Made

THREATS = ("docs/en/threat-model.md", "/threat-model.md")
"""A page that it refers to: in the repository, and on the site."""


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The English page."""
    if language == "en":
        yield Made("security.md", (root / "SECURITY.md").read_text("utf-8").replace(*THREATS))
