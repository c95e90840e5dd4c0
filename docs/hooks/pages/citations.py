"""Citations of public repositories as links."""

import re

from .markdown import link, plain

_PARTS = re.compile(r"; ")
_CITATION = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+) (?P<path>[\w./-]+\.\w+)(?P<rest>.*@(?P<commit>[0-9a-f]{7,40}).*)")


def cited(source: str) -> str:
    """``OWNER/REPOSITORY path … @commit``, several with semicolons between, each path a link; other text as it is."""
    return "; ".join(_link(part) for part in _PARTS.split(source))


def _link(part: str) -> str:
    found = _CITATION.fullmatch(part)
    if found is None:
        return plain(part)
    target = f"https://github.com/{found['repository']}/blob/{found['commit']}/{found['path']}"
    return link(plain(f"{found['repository']} {found['path']}"), target) + plain(found["rest"])
