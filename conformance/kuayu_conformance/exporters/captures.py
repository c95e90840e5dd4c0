"""Public pages of real exporters, used as the form into which the suite writes its own values.

A page that is made up by whoever wrote the parser proves nothing. Here every line keeps the name and the labels that
the real exporter publishes; only the value is replaced. Where no whole page was published, the page was built from the
names, types and labels in the exporter's own code. ``captures/provenance.yaml`` says where each page is from.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain

LINE = re.compile(r"^(?P<field>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+(?P<time>-?\d+))?\s*$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Series:
    """One series of a page: its field and its labels as they were published."""

    field: str
    label_text: str

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """Labels by name."""
        return dict(LABEL.findall(self.label_text))

    @cached_property
    def head(self) -> str:
        """What a line of the series begins with."""
        return f"{self.field}{{{self.label_text}}}" if self.label_text else self.field


@dataclass(frozen=True)
class Capture:
    """A captured page: comments and series in order, with the values that were published."""

    exporter: str
    lines: tuple[str | Series, ...]
    published: Mapping[Series, str]

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """All series, in order."""
        return tuple(line for line in self.lines if isinstance(line, Series))

    @cached_property
    def _last(self) -> Mapping[str, Series]:
        """The last series of each field."""
        return {series.field: series for series in self.series}

    def render(self, values: Mapping[Series, str], milliseconds: int | None = None) -> str:
        """The page with other values; series that are not named keep those that were published.

        Series without a place in the captured page follow the last one of their field, as the text format asks for,
        or else at the end of the page.
        """
        further: dict[str, list[str]] = {}
        time = "" if milliseconds is None else f" {milliseconds}"
        for series, value in values.items():
            if series not in self.published:
                further.setdefault(series.field, []).append(f"{series.head} {value}{time}")
        shown = {**self.published, **values}
        page = []
        for line in self.lines:
            if isinstance(line, Series):
                page.append(f"{line.head} {shown[line]}{time}")
                page += further.pop(line.field) if line.field in further and line == self._last[line.field] else []
            else:
                page.append(line)
        return "\n".join([*page, *chain.from_iterable(further.values())]) + "\n"


@cache
def capture_of(exporter: str) -> Capture:
    """The captured page of an exporter.

    Raises:
        FileNotFoundError: There is none.
    """
    text = files("kuayu_conformance").joinpath(f"exporters/captures/{exporter}.prom").read_text("utf-8")
    lines: list[str | Series] = []
    published: dict[Series, str] = {}
    for line in text.splitlines():
        match = LINE.match(line)
        if match is None:
            lines.append(line)
            continue
        series = Series(match["field"], match["labels"] or "")
        lines.append(series)
        published[series] = match["value"]
    return Capture(exporter, tuple(lines), published)
