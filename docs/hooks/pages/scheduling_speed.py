"""How fast the simulated world goes with more domains, nodes and jobs: a committed run of its benchmark."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.figures import brief, count
from kuayu_conformance.rendering.words import Language
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot

from . import scheduling_speed_words as words
from .judged import drawn
from .markdown import code, table

FILE = "speed.json"

Figures = Mapping[str, Any]
"""An object of the file, which is written where it is measured: figures by name."""


def speed(language: Language, folder: Path) -> Iterator[str]:
    """Blocks of a page; none where there is no file.

    Args:
        language: Language of the page.
        folder: Where results lie.
    """
    if not (folder / FILE).is_file():
        return
    rows = json.loads((folder / FILE).read_text("utf-8"))["rows"]
    scales, policies = ([*dict.fromkeys(row[name] for row in rows)] for name in ("scale", "policy"))
    command = words.COMMAND.format(scales=" ".join(scales), policies=" ".join(policies))
    yield f"## {words.TITLE.in_(language)}"
    yield words.ABOUT.in_(language).format(command=code(command))
    yield table(words.COLUMNS[language], (tuple(_row(row)) for row in rows))
    yield drawn(language, [_curve(language, policies, rows)], "scheduling-speed")


def _row(row: Figures) -> Iterator[str]:
    domains, nodes, hours = (int(figure) for figure in row["scale"].split("x"))
    yield row["policy"]
    for number in (domains, domains * nodes, hours, row["jobs"], row["finished"], round(row["active"])):
        yield count(number)
    for world in ("", "compiled "):
        yield brief(row[f"{world}seconds"])
        yield count(round(row[f"{world}jobs a second"]))


def _curve(language: Language, policies: list[str], rows: list[Figures]) -> ReportPlot:
    """Seconds of the compiled world over jobs, a line for each policy, from nought."""
    lines = {
        name: sorted((row["finished"], row["compiled seconds"]) for row in rows if row["policy"] == name)
        for name in policies
    }
    return ReportPlot(
        title=words.CURVE.in_(language),
        kind=PlotKind.lines,
        x_label=words.ACROSS.in_(language),
        y_label=words.UP.in_(language),
        series=[
            PlotSeries(label=name, x=[0.0, *map(float, jobs)], y=[0.0, *seconds])
            for name, line in lines.items()
            for jobs, seconds in [zip(*line, strict=True)]
        ],
    )
