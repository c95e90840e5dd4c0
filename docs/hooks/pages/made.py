"""What the modules of this package make."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Made:
    """A page or file of the site.

    Attributes:
        path: Where it is: a page below the folder of its language, a shared file below the folder of the site.
        text: Markdown of a page, content of a file.
        section: Title of the navigation's section that it is listed in, "" where mkdocs.yml lists it itself.
        group: Heading within that section, "" where it stands by itself.
    """

    path: str
    text: str
    section: str = ""
    group: str = ""
