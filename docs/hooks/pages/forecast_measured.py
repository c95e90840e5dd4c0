"""How well forecasts and phases of training did on what was measured: committed runs of their commands."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.figures import count
from kuayu_conformance.rendering.words import Language

from .judged import sections
from .made import Made
from .markdown import page, percent, plain
from .perception import figures
from .text import phrases, text

NAME = "forecast_measured"
FOLDER = "docs/results/forecast"

Figures = Mapping[str, Any]
"""An object of the file, which is written where it is measured: figures by name."""

HOUR = 60
"""The longer horizon, in minutes."""

HISTORY, ANNOUNCED = "history", "jobs, σ 0.1, arrivals announced"
"""Methods: the reference without jobs, and with jobs to come known beforehand."""


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page, with a section for each committed run."""
    say, folder = phrases(NAME, language), root / FOLDER
    traces, speed, curves = (
        json.loads((folder / f"{name}.json").read_text("utf-8")) if (folder / f"{name}.json").is_file() else []
        for name in ("traces", "speed", "phases")
    )
    block = text(
        NAME,
        language,
        traces=list(_traces(say, traces)),
        plainly=_plainly(say, traces) if traces else {},
        speed=list(figures(language, speed)) if speed else [],
        loops=_loops(say, folder),
        curves=[_curve(say, each, folder / f"phases-{each['model']}.svg") for each in curves],
    )
    yield Made("results-forecast.md", page(block, *sections(language, root, "FCT")))


def _traces(say: Figures, rows: Sequence[Figures]) -> Iterator[tuple[int, Sequence[Any]]]:
    """Rows of each method by source, by how far ahead, the farthest first."""
    for minutes in sorted({row["minutes"] for row in rows}, reverse=True):
        shown = [row for row in rows if row["minutes"] == minutes]
        sources = []
        for source in dict.fromkeys(row["source"] for row in shown):
            its = [row for row in shown if row["source"] == source]
            most = max(row["origins"] for row in its)
            sources.append((plain(say["sources"].get(source, source)), [_trace(say, row, most) for row in its]))
        yield minutes, sources


def _loops(say: Figures, folder: Path) -> Figures:
    """What was chosen by nested validation: the last look at the outer loop, beside the inner one of the same seed."""
    log, file = folder / "outer-loop.tsv", folder / "inner-loop.json"
    looks = list(csv.DictReader(log.read_text("utf-8").splitlines(), delimiter="\t")) if log.is_file() else []
    if not looks or not file.is_file():
        return {}
    inner = json.loads(file.read_text("utf-8"))
    best = {(row["source"], row["knowledge"], row["minutes"]): row for row in inner["figures"]}
    last = [row for row in looks if (row["date"], row["command"]) == (looks[-1]["date"], looks[-1]["command"])]
    rows = []
    for row in last:
        within = best[row["source"], row["knowledge"], int(row["minutes"])]
        skill, low, high = (float(row[name]) for name in ("skill", "low", "high"))
        rows.append(
            (
                plain(say["sources"].get(row["source"], row["source"]).partition(say["colon"])[0]),
                plain(say["knowledge"][row["knowledge"]]),
                plain(say["ahead"].format(row["minutes"])),
                f"**{percent(skill, 1, '+')}** ({_range({'low': low, 'high': high})})",
                percent(float(row["coverage"]), 1),
                percent(within["skill"], 1, "+"),
                percent(within["coverage"], 1),
            )
        )
    return {
        "rows": rows,
        "date": last[0]["date"],
        "outer": last[0]["command"],
        "inner": inner["command"],
        "choices": [(plain(name), f"{value:.4f}") for name, value in inner["losses"].items()],
        "picked": {
            plain(say["sources"].get(row["source"], row["source"]).partition(say["colon"])[0]): plain(row["choice"])
            for row in last
        },
    }


def _plainly(say: Figures, rows: Sequence[Figures]) -> Figures:
    """What the tables come to, an hour ahead."""
    later = [row for row in rows if row["minutes"] == HOUR]
    alone = [row["skill"]["median"] for row in later if row["method"] == HISTORY]
    best = max((row for row in later if not row["method"].startswith("jobs")), key=lambda row: row["skill"]["median"])
    itp = {row["method"]: row for row in later if row["source"] == "itp"}
    skills = {
        name: percent(itp[method]["skill"]["median"], 1, "+")
        for name, method in (
            ("rough", "jobs, σ 0.1"),
            ("sharp", "jobs, σ 0.01"),
            ("usual", "jobs, as before"),
            ("announced", ANNOUNCED),
        )
    }
    return {
        "sources": len(alone),
        "least": percent(min(alone), 1, "+"),
        "most": percent(max(alone), 1, "+"),
        "best": percent(best["skill"]["median"], 1, "+"),
        "method": _method(say, best["method"]),
        "source": plain(say["sources"].get(best["source"], best["source"]).partition(say["colon"])[0]),
        "origins": best["origins"],
        "reach": percent(itp[ANNOUNCED]["twenty"]),
        "alone": percent(itp[HISTORY]["twenty"]),
        **skills,
    }


def _trace(say: Figures, row: Figures, most: int) -> Sequence[str]:
    """A method's row; how many instants it was tried at is said where they are fewer than others had."""
    skill = row["skill"]
    fewer = "" if row["origins"] == most else say["instants"].format(count(row["origins"]))
    return (
        _method(say, row["method"]) + fewer,
        *(f"{percent(row[name]['median'], 1)}; {percent(row[name]['worst'], 1)}" for name in ("wape", "last")),
        f"**{percent(skill['median'], 1, '+')}** ({_range(skill)})",
        percent(row["twenty"]),
        percent(row["coverage"], 1) if "coverage" in row else "–",
    )


def _range(skill: Figures) -> str:
    return f"{100 * skill['low']:+.1f}\u202f…\u202f{100 * skill['high']:+.1f}"


def _method(say: Figures, name: str) -> str:
    """A method in words; "jobs, σ 0.1" is told in words too, and "…, arrivals announced" adds to another."""
    base, methods = name.removesuffix(", arrivals announced"), say["methods"]
    width = base.removeprefix("jobs, σ ")
    said = methods["told"].format(width) if width != base else methods.get(base, base)
    return plain(said if name == base else methods["arrivals announced"].format(said))


def _curve(say: Figures, curve: Figures, file: Path) -> Mapping[str, str]:
    name = say["models"][curve["model"]]
    begins = [
        never if curve[key] is None else begun.format(count(round(curve[key])))
        for key, begun, never in (
            ("fast from", say["fast_from"], say["never_fast"]),
            ("stable from", say["stable_from"], say["never_stable"]),
        )
    ]
    if curve["fast from"] is None or curve["fast from"] == curve["stable from"]:
        begins = begins[:1] if curve["fast from"] is None else begins[1:]
    caption = say["caption"].format(
        steps=count(round(curve["steps"])),
        begins=say["and"].join(begins),
        right=round(curve["right"] * curve["asked"]),
        asked=curve["asked"],
    )
    drawn = file.read_text("utf-8").strip().replace("<svg ", f'<svg role="img" aria-label="{plain(name)}" ', 1)
    return {"name": name, "caption": caption, "drawing": drawn}
