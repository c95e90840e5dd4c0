"""Pages of the built site as a reader's browser takes them."""

import os.path
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {"script": "src", "img": "src", "iframe": "src", "link": "href"}
"""Attribute of each element by which a browser fetches something without being asked."""


@dataclass
class Parsed(HTMLParser):
    """What a page holds.

    Attributes:
        ids: Places that can be led to.
        links: Where anchors lead.
        fetched: What the browser fetches.
        pieces: All words, as they come.
    """

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note identifiers, links and what is fetched."""
        given = dict(attrs)
        if given.get("id"):
            self.ids.add(str(given["id"]))
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        if tag in FETCHED and given.get(FETCHED[tag]) and "alternate" not in str(given.get("rel")):
            self.fetched.append(str(given[FETCHED[tag]]))

    def handle_data(self, data: str) -> None:
        """Note words."""
        self.pieces.append(data)

    @property
    def text(self) -> str:
        """All words."""
        return "".join(self.pieces)


@cache
def parsed(file: Path) -> Parsed:
    """A page, read once."""
    page = Parsed()
    page.feed(file.read_text(encoding="utf-8"))
    return page


@cache
def _file(path: str) -> Path | None:
    return Path(path) if os.path.isfile(path) else None  # noqa: PTH113 - a hundred thousand times


def is_lost(page: Path, link: str) -> bool:
    """Whether a link of a page leads to a file of the site that is not there, or to no place in it."""
    parts = urlsplit(link)
    if parts.scheme:
        return False
    target = _file(os.path.normpath(f"{page.parent}/{unquote(parts.path)}")) if parts.path else page
    place = unquote(parts.fragment)
    return target is None or bool(place and target.suffix == ".html" and place not in parsed(target).ids)
