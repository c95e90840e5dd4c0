"""How well forecasts and phases of training did on what was measured: committed runs of their commands."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.figures import count
from kuayu_conformance.rendering.words import Language, named

from . import forecast_measured_words as words
from .judged import sections
from .made import Made
from .markdown import code, page, percent, plain, table
from .perception import figures

FOLDER = "docs/results/forecast"
PLACE = FOLDER.removeprefix("docs/")

Figures = Mapping[str, Any]
"""An object of the file, which is written where it is measured: figures by name."""

HOUR = 60
"""The longer horizon, in minutes."""

HISTORY, ANNOUNCED = "history", "jobs, σ 0.1, arrivals announced"
"""Methods: the reference without jobs, and with jobs to come known beforehand."""


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page, with a section for each committed run."""
    folder = root / FOLDER
    blocks: list[str] = []
    if (folder / "traces.json").is_file():
        blocks += _traces(language, json.loads((folder / "traces.json").read_text("utf-8")))
    if (folder / "speed.json").is_file():
        blocks += _speed(language, json.loads((folder / "speed.json").read_text("utf-8")))
    if (folder / "phases.json").is_file():
        blocks += _curves(language, folder)
    blocks += sections(language, root, "FCT")
    title = f"# {words.TITLE.in_(language)}"
    yield Made("results-forecast.md", page(title, words.INTRODUCTION.in_(language), words.KNOWN.in_(language), *blocks))


def _traces(language: Language, rows: Sequence[Figures]) -> Iterator[str]:
    yield f"## {words.TRACES.in_(language)}"
    yield words.TRACES_ABOUT.in_(language).format(command=code(words.TRACES_COMMAND))
    yield _plainly(language, rows)
    for minutes in sorted({row["minutes"] for row in rows}, reverse=True):
        yield f"### {words.AHEAD.in_(language).format(minutes)}"
        shown = [row for row in rows if row["minutes"] == minutes]
        for source in dict.fromkeys(row["source"] for row in shown):
            yield f"**{plain(named(words.SOURCES, source).in_(language))}**"
            its = [row for row in shown if row["source"] == source]
            most = max(row["origins"] for row in its)
            yield table(words.TRACE_COLUMNS[language], (_trace(language, row, most) for row in its))
    yield words.TOLD.in_(language)


def _plainly(language: Language, rows: Sequence[Figures]) -> str:
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
    return words.PLAINLY.in_(language).format(
        sources=len(alone),
        least=percent(min(alone), 1, "+"),
        most=percent(max(alone), 1, "+"),
        best=percent(best["skill"]["median"], 1, "+"),
        method=_method(language, best["method"]),
        source=plain(named(words.SOURCES, best["source"]).in_(language).partition(words.COLON.in_(language))[0]),
        origins=best["origins"],
        reach=percent(itp[ANNOUNCED]["twenty"]),
        alone=percent(itp[HISTORY]["twenty"]),
        **skills,
    )


def _trace(language: Language, row: Figures, most: int) -> Sequence[str]:
    """A method's row; how many instants it was tried at is said where they are fewer than others had."""
    skill = row["skill"]
    fewer = "" if row["origins"] == most else words.INSTANTS.in_(language).format(count(row["origins"]))
    return (
        _method(language, row["method"]) + fewer,
        *(f"{percent(row[name]['median'], 1)}; {percent(row[name]['worst'], 1)}" for name in ("wape", "last")),
        f"**{percent(skill['median'], 1, '+')}** ({_range(skill)})",
        percent(row["twenty"]),
        percent(row["coverage"], 1) if "coverage" in row else "–",
    )


def _range(skill: Figures) -> str:
    return f"{100 * skill['low']:+.1f}\u202f…\u202f{100 * skill['high']:+.1f}"


def _method(language: Language, name: str) -> str:
    """A method in words; "jobs, σ 0.1" is told in words too, and "…, arrivals announced" adds to another."""
    base = name.removesuffix(", arrivals announced")
    width = base.removeprefix("jobs, σ ")
    said = named(words.METHODS, "told" if width != base else base).in_(language).format(width)
    return plain(said if name == base else words.METHODS["arrivals announced"].in_(language).format(said))


def _speed(language: Language, measured: Any) -> Iterator[str]:
    yield f"## {words.SPEED.in_(language)}"
    yield words.SPEED_ABOUT.in_(language).format(command=code(words.SPEED_COMMAND))
    yield from figures(language, measured)


def _curves(language: Language, folder: Path) -> Iterator[str]:
    curves = json.loads((folder / "phases.json").read_text("utf-8"))
    yield f"## {words.CURVES.in_(language)}"
    yield words.CURVES_ABOUT.in_(language).format(command=code(words.CURVES_COMMAND))
    yield _key(language)
    drawn = [_curve(language, each, folder / f"phases-{each['model']}.svg") for each in curves]
    yield "\n".join(['<div class="curves">', *drawn, "</div>"])
    yield words.EYE.in_(language)


def _key(language: Language) -> str:
    signs = [
        f'<span><svg viewBox="0 0 28 16"><rect class="phase-{place}" width="28" height="16"/></svg>'
        f"{phase.in_(language)}</span>"
        for place, phase in enumerate(words.PHASES, start=1)
    ]
    return "\n".join(['<div class="phases-key">', *signs, "</div>"])


def _curve(language: Language, curve: Figures, file: Path) -> str:
    name = words.MODELS[curve["model"]].in_(language)
    begins = [
        never if curve[key] is None else begun.format(count(round(curve[key])))
        for key, begun, never in (
            ("fast from", words.FAST_FROM.in_(language), words.NEVER_FAST.in_(language)),
            ("stable from", words.STABLE_FROM.in_(language), words.NEVER_STABLE.in_(language)),
        )
    ]
    if curve["fast from"] is None or curve["fast from"] == curve["stable from"]:
        begins = begins[:1] if curve["fast from"] is None else begins[1:]
    caption = words.CAPTION.in_(language).format(
        steps=count(round(curve["steps"])),
        begins=words.AND.in_(language).join(begins),
        right=round(curve["right"] * curve["asked"]),
        asked=curve["asked"],
    )
    drawn = file.read_text("utf-8").strip().replace("<svg ", f'<svg role="img" aria-label="{plain(name)}" ', 1)
    return f"<figure><figcaption><strong>{plain(name)}</strong> {plain(caption)}</figcaption>\n{drawn}\n</figure>"
