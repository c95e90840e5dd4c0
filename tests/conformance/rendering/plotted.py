"""Results with plots and tables: what a check of the compute index says beside its verdict, and what nobody should."""

import math
from typing import Any

from conformance.rendering.samples import HOSTILE, LONG, sample

from kuayu_schemas.models import ConformanceReport, RequirementResult
from kuayu_schemas.registers import requirements

Json = dict[str, Any]

_TABLES = ("Gavel, training throughput", "DAWNBench", "MLPerf v4.1, per accelerator", "Lambda", "AI Benchmark")
_METHODS = {
    "this implementation": (0.241, 0.083),
    "ratio of peaks": (0.418, 0.418),
    "one measured scalar": (0.355, 0.197),
    "roofline of the data sheet": (0.312, 0.262),
}


def agreement(points: int = 150, **over: Any) -> Json:
    """A scatter of predictions over two decades, in five series of unlike spread; the same at every call."""
    series: list[Json] = [{"label": label, "x": [], "y": []} for label in _TABLES]
    for number in range(points):
        drawn, strayed = math.modf(number * 0.6180339887)[0], math.sin(number * 12.9898)
        member = series[number % len(series)]
        member["x"].append(round(0.06 * 150**drawn, 4))
        member["y"].append(round(member["x"][-1] * math.exp(strayed**3 * 0.1 * (1 + number % 5)), 4))
    plot: Json = {
        "title": "Predicted against measured, four probes",
        "kind": "agreement",
        "x_label": "measured throughput, reference = 1",
        "y_label": "predicted throughput, reference = 1",
        "series": series,
    }
    return plot | over


def lines(**over: Any) -> Json:
    """Errors of four methods over none to six probes."""
    plot: Json = {
        "title": "Error against number of probes",
        "kind": "lines",
        "x_label": "probes for each device",
        "y_label": "mean absolute percentage error, %",
        "series": [
            {
                "label": label,
                "x": list(map(float, range(7))),
                "y": [100 * (end + (start - end) * math.exp(-0.8 * probes)) for probes in range(7)],
            }
            for label, (start, end) in _METHODS.items()
        ],
    }
    return plot | over


def graph(**over: Any) -> Json:
    """Three domains with a few nodes each, linked in a ring."""
    ends = [(0.0, 1.0), (0.9, -0.5), (0.9, -0.5), (-0.9, -0.5), (-0.9, -0.5), (0.0, 1.0)]
    plot: Json = {
        "title": "The resource graph",
        "kind": "graph",
        "x_label": "domains on a circle",
        "y_label": "nodes around them",
        "series": [
            {"label": "links", "x": [x for x, _ in ends], "y": [y for _, y in ends]},
            {"label": "busy", "x": [0.0, 0.1, 0.9, -0.9], "y": [1.0, 1.1, -0.5, -0.5]},
            {"label": "offline", "x": [0.8], "y": [-0.4]},
        ],
    }
    return plot | over


def table(**over: Any) -> Json:
    """Errors by table of measurements."""
    rows = [
        f"{label}|{3 + 2 * number}|{1234 * (number + 1) % 700}|{5.9 + number:.1f} %|{4.1 + number:.1f} %|"
        f"{11.2 + 1.3 * number:.1f} %|0.{93 - 2 * number}|{'—' if number == 1 else f'{number / 3:.1f} %'}"
        for number, label in enumerate(_TABLES)
    ]
    whole: Json = {
        "title": "Errors by table, four probes",
        "columns": ["Table", "Devices", "Pairs", "Mean", "Median", "90th percentile", "Rank correlation", "Abstained"],
        "rows": [{"cells": row.split("|")} for row in rows],
    }
    return whole | over


def methods() -> Json:
    """Errors by method."""
    return {
        "title": "Simple indices on the same pairs",
        "columns": ["Index", "No probe", "Four probes"],
        "rows": [{"cells": [name, f"{a:.1%}", f"{b:.1%}"]} for name, (a, b) in _METHODS.items()],
    }


def result(requirement: str = "IDX-001", **over: Any) -> Json:
    """A result of the compute index with two plots and two tables."""
    row = next(row for row in requirements().requirements if row.id == requirement)
    body: Json = {
        "requirement": requirement,
        "verdict": "pass",
        "required": True,
        "estimate": 0.0714,
        "bound": 0.0873,
        "threshold": row.threshold and row.threshold.model_dump(mode="json"),
        "aim": row.aim and row.aim.model_dump(mode="json"),
        "aim_met": False,
        "unit": "1",
        "n": 150,
        "estimator": "mean over pairs; bootstrap over devices, 10 000 draws",
        "replay": "deterministic",
        "parts": [{"label": label, "estimate": 0.06, "bound": 0.08, "n": 30} for label in _TABLES[:2]],
        "tables": [table(), methods()],
        "plots": [agreement(), lines(), graph()],
        "evidence": [],
        "duration": 41.5,
    }
    return body | over


def plotted(*results: Json, **over: Any) -> ConformanceReport:
    """A run with further results, one with plots and tables where none is given."""
    run = sample(**over)
    added = [RequirementResult.model_validate(body) for body in results or (result(),)]
    return run.model_copy(update={"results": [*run.results, *added]})


def hostile_plots() -> ConformanceReport:
    """Plots and tables whose every word is an attack and whose figures do not fit."""
    attack = HOSTILE.replace("\x00", "")
    series: list[Json] = [
        {"label": attack, "x": [1e-90, 2.0, -1.0, 0.0], "y": [1e90, 1e-320, 1.0, 1.0]},
        {"label": LONG, "x": [1.0], "y": []},
        {"label": "", "x": [], "y": []},
    ]
    wild: Json = {"label": attack, "x": [-5.0, 1e99, 1e308], "y": [-1e98, -1e-50, 0.0]}
    plots = [
        agreement(title=attack, x_label=attack, y_label=LONG, series=series),
        lines(title=attack, x_label=LONG, y_label=attack, series=[wild]),
        agreement(series=[]),
        lines(series=[{"label": "\u202e", "x": [0.0], "y": [0.0]}]),
    ]
    cells = [{"cells": []}, {"cells": [LONG, "1", attack]}, {"cells": ["1"] * 30}]
    tables = [table(title=attack, columns=[attack, LONG], rows=cells), table(columns=[], rows=[])]
    unjudged: Json = {"estimate": None, "bound": None, "threshold": None, "aim": None, "verdict": "fail"}
    return plotted(
        result(plots=plots, tables=tables, parts=[]), result("IDX-005", plots=plots, tables=tables, **unjudged)
    )


DATA = [{"name": name, "digest": "sha256:" + digest * 32} for name, digest in (("lambda-2023", "5c"), ("lab", "e0"))]
"""Tables of measurements beyond those that come with the suite."""
