"""The simulated world that judges schedulers: families, baselines, assumptions and what a run plays, from the suite."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from kuayu_conformance.checks.scheduling.cells import FULL, HOUR, QUICK, Plan
from kuayu_conformance.rendering.words import Language, Words
from kuayu_conformance.testbed.scheduling import scenarios, topology, workload
from kuayu_conformance.testbed.scheduling.scenarios import Timing
from kuayu_conformance.testbed.scheduling.topology import ASSUMPTIONS, PLACES, REFERENCE, SHEETS
from kuayu_conformance.testbed.scheduling.windows import BASELINES, LITERATURE
from kuayu_conformance.testbed.scheduling.workload import Family as Habits

from . import world_words as words
from .made import Made
from .markdown import code, heading, page, percent, plain, table

PICTURES = "docs/results/scheduling"


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page of the world."""
    blocks = (
        f"# {words.TITLE.in_(language)}",
        words.INTRODUCTION.in_(language),
        _titled(language, "pictures", words.PICTURES_TITLE),
        *_pictures(language, root / PICTURES),
        _titled(language, "families", words.FAMILIES_TITLE),
        words.FAMILIES.in_(language),
        _families(language),
        _titled(language, "baselines", words.BASELINES_TITLE),
        words.BASELINES.in_(language),
        _baselines(language),
        _titled(language, "runs", words.RUNS_TITLE),
        words.RUNS.in_(language),
        _runs(language),
        _titled(language, "sources", words.SOURCES_TITLE),
        table(words.SOURCES_COLUMNS[language], ([each.in_(language) for each in row] for row in words.SOURCES)),
        words.DECISIONS.in_(language),
        _titled(language, "accelerators", words.DEVICES_TITLE),
        words.DEVICES.in_(language).format(reference=code(REFERENCE), places=len(PLACES)),
        _devices(language),
        _titled(language, "assumptions", words.ASSUMPTIONS_TITLE),
        words.ASSUMPTIONS.in_(language),
        _assumptions(language),
        _titled(language, "workload", words.HABITS_TITLE),
        words.HABITS.in_(language),
        _habits(language),
    )
    yield Made("reference/scheduling-world.md", page(*blocks))


def _runs(language: Language) -> str:
    """What a quick and what a full run play, as a table."""
    rows = [
        (title.in_(language), *(show(language, its) for its in (QUICK, FULL)))
        for title, show in (
            (words.SIZE, lambda language, its: words.SIZES.in_(language).format(its.sites, its.nodes)),
            (words.HOURS, lambda language, its: _hours(language, its.whole)),
            (words.GRID_HOURS, lambda language, its: _hours(language, its.timing)),
            (words.JOBS, lambda _, its: ", ".join(code(source) for source in its.sources)),
            (words.WINDOWS, _windows),
            (words.LOADS, lambda _, its: ", ".join(f"{load:g}" for load in its.loads)),
            (words.OTHERS, _others),
            (words.CURVES, _curves),
            (words.SWINGS, _swings),
        )
    ]
    return table(words.PLAN_COLUMNS[language], rows)


def _titled(language: Language, anchor: str, title: Words) -> str:
    return heading(2, title.in_(language), anchor)


def _pictures(language: Language, folder: Path) -> Iterator[str]:
    told = json.loads((folder / "window.json").read_text("utf-8"))
    yield words.PICTURES.in_(language).format(command=code(words.COMMAND), **told)
    for name, caption in words.CAPTIONS.items():
        drawn = (folder / f"{name}.svg").read_text("utf-8").strip()
        said = caption.in_(language)
        labelled = drawn.replace("<svg ", f'<svg aria-label="{said}" ', 1)
        yield f'<div class="drawing">\n{labelled}\n</div>'
        yield f"*{said}*"


def _families(language: Language) -> str:
    usual = workload.FAMILIES["reference"]
    rows = []
    for name in workload.FAMILIES:
        its = workload.FAMILIES[name]
        changed = [
            f"{code(each.name)} {getattr(its, each.name):g}"
            for each in fields(its)
            if getattr(its, each.name) != getattr(usual, each.name)
        ]
        said = words.FAMILY[name].zh if language == "zh" else plain(topology.FAMILIES[name].about)
        rows.append(
            (
                code(name),
                said,
                words.ADVERSE.get(name, words.NOTHING).in_(language).format(**_harm()),
                ", ".join(changed),
            )
        )
    return table(words.FAMILY_COLUMNS[language], rows)


def _harm() -> Mapping[str, Any]:
    return {
        "faults": f"{scenarios.FAULTS:g}",
        "worse": percent(scenarios.WORSE),
        "boast": f"{scenarios.BOAST:g}",
        "cuts": scenarios.CUTS,
        "minutes": f"{scenarios.CUT_LASTS / 60:g}",
    }


def _baselines(language: Language) -> str:
    missing = {*BASELINES, *LITERATURE} - set(words.BASELINE)
    assert not missing, f"say in world_words what these do: {missing}"
    return table(
        words.BASELINE_COLUMNS[language],
        ((f"**{plain(name)}**", about.in_(language)) for name, about in words.BASELINE.items()),
    )


def _devices(language: Language) -> str:
    rows = (
        (
            plain(name),
            f"{sheet.peak / 1e12:,.0f}",
            f"{sheet.sustained / 1e12:,.0f}",
            f"{sheet.bandwidth / 1e9:,.0f}",
            f"{sheet.memory / 1e9:g}",
            f"{sheet.power:g}",
        )
        for name, sheet in SHEETS.items()
    )
    return table(words.DEVICE_COLUMNS[language], rows)


def _assumptions(language: Language) -> str:
    rows = []
    for name, one in ASSUMPTIONS.items():
        said = words.ASSUMED[name].zh if language == "zh" else plain(one.why)
        rows.append((code(name), f"{one.value:g}", f"{one.low:g} – {one.high:g}", said))
    return table(words.ASSUMPTION_COLUMNS[language], rows)


def _habits(language: Language) -> str:
    usual = workload.FAMILIES["reference"]
    rows = []
    for each in fields(Habits):
        value = getattr(usual, each.name)
        shown = words.YES_NO[bool(value)].in_(language) if isinstance(value, bool) else f"{value:g}"
        rows.append((code(each.name), shown, words.HABIT[each.name].in_(language)))
    return table(words.HABIT_COLUMNS[language], rows)


def _hours(language: Language, timing: Timing) -> str:
    return words.PARTS.in_(language).format(
        *(f"{seconds / HOUR:g}" for seconds in (timing.warm, timing.window, timing.drain))
    )


def _windows(language: Language, its: Plan) -> str:
    chosen = words.CHOSEN.in_(language).format(its.windows * its.candidates) if its.candidates > 1 else ""
    return words.OF_EACH.in_(language).format(its.windows) + chosen


def _others(language: Language, its: Plan) -> str:
    return words.BY.in_(language).format(len(its.families), its.family_windows) if its.families else "–"


def _curves(language: Language, its: Plan) -> str:
    points = sum(len(curve.points) for curve in its.curves)
    return words.BY_POINTS.in_(language).format(len(its.curves), points, its.curve_windows) if its.curves else "–"


def _swings(language: Language, its: Plan) -> str:
    return words.BY.in_(language).format(len(its.swings), its.swing_windows)
