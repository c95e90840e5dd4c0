"""Prometheus text format 0.0.4 → series.

The reading itself is prometheus_client's. Its parser renames the series of a counter (``x`` becomes ``x_total``), lets
more than two numbers stand after a name, and takes digits of all scripts; that is put right here, because the
collection map speaks of the names that stand on the page, and the format knows ASCII digits alone.

That parser goes through labels character by character. Lines in the form that exporters write, without escapes and
blanks in their labels, are read by an expression instead, to the same series; all others are left to the parser.

A page that ends in ``# EOF`` is OpenMetrics: its timestamps are seconds, and exemplars may follow them. A byte order
mark before the first line is no part of it.

Sources: Prometheus, "Exposition formats", text-based format 0.0.4; OpenMetrics 1.0, "Text Format".
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

MAX_LINE = 16_384
"""Characters of a line. The parser's work grows with the square of its labels and of the quotes in a value."""

MAX_LABELS = 128
"""Labels of a line; kube-state-metrics, which has the most of what is in use, writes some dozens."""

MAX_SERIES = 200_000
"""Lines with values of a page; each becomes an object."""

TYPES = frozenset(
    {"counter", "gauge", "histogram", "summary", "untyped", "unknown", "info", "stateset", "gaugehistogram"}
)
"""Types of the text format and of OpenMetrics; exporters mix them."""

OTHER_FORMS = {"<": "a page of HTML", "{": "JSON", "[": "JSON", "HTTP/": "the head of an answer of HTTP"}
"""What is often sent in place of a page of metrics, by how a line of it begins."""

_TYPE_LINE = re.compile(r"#\s*TYPE\s")
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE)
_MILLISECONDS = re.compile(r"[+-]?\d+", re.ASCII)
_PLAIN = re.compile(
    r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:(?!__)[a-zA-Z_][a-zA-Z0-9_]*="[^"\\]*"(?:,|(?=\})))*)\})?', re.ASCII
)
"""A name, and labels without escapes and blanks between them; names that begin with two underscores are reserved."""
_LABEL = re.compile(r'([^=,]+)="([^"]*)"')
_UNUSUAL_BLANK = re.compile(r"[^\S \t]")
_EXEMPLAR = re.compile(r"\s#\s*\{[^{}]*\}\s*\S+(\s+\S+)?$")


class MalformedExpositionError(ValueError):
    """The page is not in the Prometheus text format; the message says where it stops being so."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a page.

    Attributes:
        name: Name of the metric, as it stands on the page.
        labels: Labels with their values.
        value: The number; it may be NaN or infinite.
        instant: The line's own timestamp in milliseconds, if it has one.
        began: When the counter began, in milliseconds, where the sender says so; pages do not.
    """

    name: str
    labels: Mapping[str, str]
    value: float
    instant: int | None
    began: int | None = None


def parse(page: str) -> list[Series]:
    """Read a page in the Prometheus text format.

    Raises:
        MalformedExpositionError: The page is not in the format.
    """
    page = page.removeprefix("\ufeff")
    open_metrics = page.rstrip().rpartition("\n")[2].strip() == "# EOF"
    lines = list(_checked_lines(page, open_metrics=open_metrics))  # before any of them is read
    milliseconds = 1_000_000 if open_metrics else 1000  # the parser divides by a thousand
    try:
        return [
            series
            for text, numbers in lines
            for series in _plain(text, numbers, milliseconds) or _any(text, milliseconds)
        ]
    except (ValueError, IndexError, OverflowError) as error:
        raise MalformedExpositionError(str(error) or "a line has neither a name nor labels that name it") from error


def _any(text: str, milliseconds: int) -> list[Series]:
    """The series of a line, as the parser reads it."""
    return [
        Series(
            sample.name,
            sample.labels,
            float(sample.value),
            None if sample.timestamp is None else round(float(sample.timestamp) * milliseconds),
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


def _plain(text: str, numbers: list[str], milliseconds: int) -> list[Series]:
    """The series of a line in the form that exporters write; none where it is in another, which need not be wrong."""
    head = _PLAIN.match(text)
    if head is None or _UNUSUAL_BLANK.search(text, head.end()):
        return []
    name, inside = head.groups()
    labels: dict[str, str] = {}
    if inside is None:
        if "}" in text or not text[head.end() : head.end() + 1].isspace():
            return []
    else:
        if "}" in text[head.end() :]:
            return []
        pairs = _LABEL.findall(inside)
        labels = dict(pairs)
        if len(labels) < len(pairs):
            return []
    value, *instant = map(_number, numbers)
    return [
        Series(name, labels, float(value), round(float(instant[0] / 1000) * milliseconds) if instant else None),
    ]


def _number(text: str) -> float:
    """A number as the parser reads it: one without a fraction may be too large for what it is made into."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def _checked_lines(page: str, *, open_metrics: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the lines that the parser needs, without types, after looking at what it overlooks; their numbers apart."""
    series = 0
    for number, line in enumerate(page.split("\n"), start=1):
        text = line.strip()
        if _TYPE_LINE.match(text):
            words = text[1:].split()
            if len(words) != 3 or words[2] not in TYPES:  # noqa: PLR2004 - TYPE, name, type
                raise MalformedExpositionError(f"line {number}: a TYPE line is '# TYPE name type'")
            continue
        if text and not text.startswith("#"):
            series += 1
            if series > MAX_SERIES:
                raise MalformedExpositionError(f"line {number}: more than {MAX_SERIES} series on one page")
            if len(text) > MAX_LINE:
                raise MalformedExpositionError(f"line {number}: longer than {MAX_LINE} characters")
            if text.count('="') > MAX_LABELS:
                raise MalformedExpositionError(f"line {number}: more than {MAX_LABELS} labels")
            text = _EXEMPLAR.sub("", text) if open_metrics else text
            yield text, _checked_numbers(number, text, _NUMBER if open_metrics else _MILLISECONDS)


def _checked_numbers(number: int, line: str, timestamps: re.Pattern[str]) -> list[str]:
    """A value in ASCII digits, then perhaps a timestamp, and no more."""
    after = line.rpartition("}")[2].split() if "}" in line else line.split()[1:]
    match after:
        case [value] if _NUMBER.fullmatch(value):
            return after
        case [value, timestamp] if _NUMBER.fullmatch(value) and timestamps.fullmatch(timestamp):
            return after
    wrong = next((f"; this looks like {form}" for start, form in OTHER_FORMS.items() if line.startswith(start)), "")
    raise MalformedExpositionError(
        f"line {number}: expected a value in ASCII digits and at most a timestamp in whole milliseconds{wrong}"
    )
