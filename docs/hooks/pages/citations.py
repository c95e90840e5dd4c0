"""Citations of public repositories as links."""

import re

from .markdown import link, plain

_CITATION = re.compile(r"(?P<place>[\w.-]+/[\w.-]+) (?P<path>[\w./-]+\.\w+)(?P<rest>.*@(?P<commit>[0-9a-f]{7,40}).*)")


def cited(source: str) -> str:
    """``OWNER/REPOSITORY path … @commit``, several with semicolons between, each path a link; other text as it is."""
    return "; ".join(_link(part) for part in source.split("; "))


def _link(part: str) -> str:
    found = _CITATION.fullmatch(part)
    if found is None:
        return plain(part)
    place, path = found["place"], found["path"]
    target = f"https://github.com/{place}/blob/{found['commit']}/{path}"
    return f"{link(plain(f'{place} {path}'), target)} {plain(found['rest'])}"
