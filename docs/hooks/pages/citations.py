"""Citations of public repositories as links."""

import re

from .markdown import link, plain

_CITATION = re.compile(r"(?P<place>[\w.-]+/[\w.-]+) (?P<path>[\w./-]+\.\w+)(?P<rest>.*@(?P<commit>[0-9a-f]{7,40}).*)")
_SEMICOLON = re.compile("(; |；)")


def cited(source: str) -> str:
    """``OWNER/REPOSITORY path … @commit``, several with semicolons between, each path a link; other text as it is."""
    return "".join(part if _SEMICOLON.fullmatch(part) else _link(part) for part in _SEMICOLON.split(source))


def _link(part: str) -> str:
    found = _CITATION.fullmatch(part)
    if found is None:
        return plain(part)
    place, path = found["place"], found["path"]
    target = f"https://github.com/{place}/blob/{found['commit']}/{path}"
    gap = " " if found["rest"].startswith(" ") else ""
    return f"{link(plain(f'{place} {path}'), target)}{gap}{plain(found['rest'])}"
