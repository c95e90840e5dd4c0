"""Figures of the text, copied to where pandoc and Typst read them."""

import shutil
from pathlib import Path

from document.words import Language

_PIXELS_PER_INCH, _POINTS_PER_INCH = 300, 72
_WIDTH_IN_PNG = slice(16, 20)
_WIDEST = 453
"""Text of an upright page of A4 with margins of 2.5 cm, in points."""


class Figures:
    """Figures of one language.

    Args:
        source: Folder of the text that names them.
        folder: Where they are copied to.
    """

    def __init__(self, source: Path, folder: Path) -> None:
        """Keep both places."""
        self.source = source
        self.folder = folder

    def place(self, path: str) -> str:
        """Copy a figure; the answer is its name in the folder.

        Raises:
            ValueError: It is not there.
        """
        file = (self.source / path).resolve()
        if not file.exists():
            raise ValueError(f"the text in {self.source} names the figure {path}, which is not there")
        shutil.copy(file, self.folder / file.name)
        return file.name

    def as_pictures(self, markdown: str) -> str:
        """The document with drawings as pictures, which every version of Word shows."""
        import typst

        for file in sorted(self.folder.glob("*.svg")):
            picture = file.with_suffix(".png")
            page = f'#set page(width: auto, height: auto, margin: 0pt)\n#image("{file.name}")'
            drawn = file.with_suffix(".typ")
            drawn.write_text(page, "utf-8")
            typst.compile(str(drawn), output=str(picture), root=str(self.folder), format="png", ppi=_PIXELS_PER_INCH)
            wide = int.from_bytes(picture.read_bytes()[_WIDTH_IN_PNG]) * _POINTS_PER_INCH / _PIXELS_PER_INCH
            markdown = markdown.replace(f"]({file.name})", f"]({picture.name}){{width={min(wide, _WIDEST):.0f}pt}}")
        return markdown


def folder_of(root: Path, language: Language) -> Path:
    """Folder of the text in a language."""
    return root / "spec" / "text" / language
