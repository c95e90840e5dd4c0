"""The Prometheus text format, version 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(,|(?=\}))')
FLAGS = re.IGNORECASE | re.ASCII
OPEN, CLOSE = re.compile(r"[ \t]*\{"), re.compile(r"[ \t]*\}")
REST = re.compile(r"[ \t]*(\S+)(?:[ \t]+(-?[0-9]{1,18}))?[ \t]*")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?|inf(inity)?|nan)", FLAGS)
TYPE = re.compile(r"[ \t]+[a-zA-Z_:][a-zA-Z0-9_:]*[ \t]+(counter|gauge|histogram|summary|untyped)[ \t]*")
ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


@dataclass(frozen=True, slots=True)
class Line:
    """A value of a series: field, labels in order of name, and the instant in milliseconds where the line has one."""

    field: str
    labels: tuple[tuple[str, str], ...]
    value: float
    at: int | None

    @property
    def series(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """What names the series."""
        return self.field, self.labels

    def label(self, name: str) -> str:
        """Value of a label; one that is absent is empty."""
        return dict(self.labels).get(name, "")


def read_page(page: bytes) -> Iterator[Line]:
    """Lines of a page that hold a value.

    Raises:
        ValueError: The page is not in the format; the message names the line.
    """
    for number, text in enumerate(page.decode("utf-8").split("\n"), 1):
        line = text.strip(" \t")
        if line.startswith("#"):
            _check_comment(line, number)
        elif line:
            yield _line(line, number)


def _check_comment(line: str, number: int) -> None:
    keyword, rest = re.fullmatch(r"#[ \t]*(\S*)(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
    if keyword == "TYPE" and not TYPE.fullmatch(rest):
        raise ValueError(f"line {number} declares no type")


def _line(line: str, number: int) -> Line:
    name = NAME.match(line)
    if name is None:
        raise ValueError(f"line {number} does not begin with the name of a series")
    start, close = name.end(), line.rfind("}") + 1
    try:
        labels, length = _labels(line[start : close or None]) if "{" in line else ((), 0)
    except ValueError as error:
        raise ValueError(f"line {number} {error}") from None
    rest = REST.fullmatch(line, start + length)
    apart = length > 0 or line[start : start + 1] in {" ", "\t"}
    if rest is None or not apart or not NUMBER.fullmatch(rest[1]):
        raise ValueError(f"line {number} has no value")
    return Line(name[0], labels, float(rest[1]), int(rest[2]) if rest[2] else None)


@lru_cache(10_000)
def _labels(text: str) -> tuple[tuple[tuple[str, str], ...], int]:
    """Labels in order of name, and how long they are; kept, for they are the same from page to page."""
    begin = OPEN.match(text)
    if begin is None:
        return (), 0
    labels: dict[str, str] = {}
    end = begin.end()
    while match := LABEL.match(text, end):
        end = match.end()
        if match[1] in labels:
            raise ValueError(f"has the label {match[1]} twice")
        labels[match[1]] = re.sub(r'\\[\\"n]', lambda escape: ESCAPES[escape[0]], match[2])
    close = CLOSE.match(text, end)
    if close is None:
        raise ValueError("has labels that do not end")
    return tuple(sorted(labels.items())), close.end()
