"""How fast the simulated world goes with more domains, nodes and jobs, and beside its aims: committed benchmarks.

1. ``speed.json`` is of ``tests/benchmarks/scheduling.py``: both engines at growing scales.
2. ``compiled-speed.json`` is of ``tests/benchmarks/speed.py``: decisions, scenarios and simulated jobs a second beside
   aims, and simulators of others where they were run beside.
"""

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

FILE, BESIDE_AIMS = "speed.json", "compiled-speed.json"

WHOLE_FROM = 100.0
"""Figures from which on no decimals are shown."""

Figures = Mapping[str, Any]
"""An object of the file, which is written where it is measured: figures by name."""


def speed(language: Language, folder: Path) -> Iterator[str]:
    """Blocks of a page; none where there is no file.

    Args:
        language: Language of the page.
        folder: Where results lie.
    """
    if (folder / BESIDE_AIMS).is_file():
        yield from _beside_aims(language, json.loads((folder / BESIDE_AIMS).read_text("utf-8")))
    if not (folder / FILE).is_file():
        return
    rows = json.loads((folder / FILE).read_text("utf-8"))["rows"]
    scales, policies = ([*dict.fromkeys(row[name] for row in rows)] for name in ("scale", "policy"))
    command = words.COMMAND.format(scales=" ".join(scales), policies=" ".join(policies))
    yield f"## {words.TITLE.in_(language)}"
    yield words.ABOUT.in_(language).format(command=code(command))
    yield table(words.COLUMNS[language], (tuple(_row(row)) for row in rows))
    yield drawn(language, [_curve(language, policies, rows)], "scheduling-speed")


def _beside_aims(language: Language, measured: Figures) -> Iterator[str]:
    least, most = measured["load"]
    yield f"## {words.BESIDE_AIMS.in_(language)}"
    yield words.ABOUT_AIMS.in_(language).format(
        command=code(f"{measured['command']} --json docs/results/scheduling/{BESIDE_AIMS}"),
        date=measured["date"],
        least=brief(least),
        most=brief(most),
    )
    yield table(words.AIM_COLUMNS[language], (tuple(_aimed(language, row)) for row in measured["figures"]))


def _aimed(language: Language, row: Figures) -> Iterator[str]:
    yield words.figure(language, row["name"])
    unit = words.UNITS[row["unit"]]
    yield f"{count(round(row['value'])) if row['value'] >= WHOLE_FROM else brief(row['value'])} {unit}".strip()
    at_most = row["unit"] in {"ms", "exponent"}
    yield "" if row["aim"] is None else f"{'≤' if at_most else '≥'} {brief(row['aim'])}"
    yield "" if row["met"] is None else words.MET[row["met"]].in_(language)
    yield brief(row["seconds"])


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
