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

from .judged import drawn
from .text import phrases, text, vocabulary

NAME = "scheduling_speed"
FILE, BESIDE_AIMS = "speed.json", "compiled-speed.json"

UNITS = {"1/s": "1/s", "ms": "ms", "exponent": ""}
"""As they are shown; an exponent has none."""
WHOLE_FROM = 100.0
"""Figures from which on no decimals are shown."""
NO_BREAK = "\u00a0"

Figures = Mapping[str, Any]
"""An object of the file, which is written where it is measured: figures by name."""


def speed(language: Language, folder: Path) -> Iterator[str]:
    """Blocks of a page; none where there is no file.

    Args:
        language: Language of the page.
        folder: Where results lie.
    """
    read = {
        name: json.loads((folder / name).read_text("utf-8"))
        for name in (FILE, BESIDE_AIMS)
        if (folder / name).is_file()
    }
    if not read:
        return
    say, aims = phrases(NAME, language), read.get(BESIDE_AIMS)
    rows = read[FILE]["rows"] if FILE in read else []
    scales, policies = ([*dict.fromkeys(row[name] for row in rows)] for name in ("scale", "policy"))
    yield text(
        NAME,
        language,
        aims=aims,
        aimed=[tuple(_aimed(language, say, row)) for row in aims["figures"]] if aims else [],
        rows=[tuple(_row(row)) for row in rows],
        scales=" ".join(scales),
        policies=" ".join(policies),
        curve=rows and drawn(language, [_curve(say, policies, rows)], "scheduling-speed"),
    )


def _aimed(language: Language, say: Figures, row: Figures) -> Iterator[str]:
    yield _figure(language, row["name"])
    unit = UNITS[row["unit"]]
    value = count(round(row["value"])) if row["value"] >= WHOLE_FROM else brief(row["value"])
    yield f"{value}{NO_BREAK}{unit}" if unit else value
    at_most = row["unit"] in {"ms", "exponent"}
    yield "" if row["aim"] is None else f"{'≤' if at_most else '≥'}{NO_BREAK}{brief(row['aim'])}"
    yield "" if row["met"] is None else say["met"]["yes" if row["met"] else "no"]
    yield brief(row["seconds"])


def _figure(language: Language, name: str) -> str:
    """A figure's name.

    Raises:
        KeyError: There is no Chinese for it.
    """
    if language == "en":
        return name
    if (chinese := vocabulary(NAME).said(name)) == name:
        raise KeyError(name)
    return chinese


def _row(row: Figures) -> Iterator[str]:
    domains, nodes, hours = (int(figure) for figure in row["scale"].split("x"))
    yield row["policy"]
    for number in (domains, domains * nodes, hours, row["jobs"], row["finished"], round(row["active"])):
        yield count(number)
    for world in ("", "compiled "):
        yield brief(row[f"{world}seconds"])
        yield count(round(row[f"{world}jobs a second"]))


def _curve(say: Figures, policies: list[str], rows: list[Figures]) -> ReportPlot:
    """Seconds of the compiled world over jobs, a line for each policy, from nought."""
    lines = {
        name: sorted((row["finished"], row["compiled seconds"]) for row in rows if row["policy"] == name)
        for name in policies
    }
    return ReportPlot(
        title=say["curve"],
        kind=PlotKind.lines,
        x_label=say["across"],
        y_label=say["up"],
        series=[
            PlotSeries(label=name, x=[0.0, *map(float, jobs)], y=[0.0, *seconds])
            for name, line in lines.items()
            for jobs, seconds in [zip(*line, strict=True)]
        ],
    )
