"""What was measured of resilience: a real training through failures, and how soon and surely faults are told."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.figures import brief, count
from kuayu_conformance.rendering.words import Language
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot

from . import resilience_measured_words as words
from .judged import drawn, sections
from .made import Made
from .markdown import code, link, page, table
from .resilience_detection import detection

FOLDER = "docs/results/resilience"
LIVE, PICTURE = "live.json", "live.svg"
PROFILE = "RES"
PLACE = FOLDER.removeprefix("docs/")
SHOWN = ("detected", "first", "interruption", "again")
AIMS = {"RES-003": (300, 30), "RES-004": (600, 30)}
"""What is required, and the reference's aim for a live run, in seconds."""

Figures = Mapping[str, Any]
"""An object of the file, which is written where it is measured: figures by name."""


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page."""
    folder = root / FOLDER
    blocks = [*_live(language, folder)] if (folder / LIVE).is_file() else [words.NOT_YET.in_(language)]
    blocks += detection(language, folder, PLACE)
    blocks += sections(language, root, PROFILE)
    title = f"# {words.TITLE.in_(language)}"
    yield Made("results-resilience.md", page(title, words.INTRODUCTION.in_(language), *blocks))


def _live(language: Language, folder: Path) -> Iterator[str]:
    found = json.loads((folder / LIVE).read_text("utf-8"))
    settings, incidents = found["settings"], found["incidents"]
    kinds = {kind: [each for each in incidents if each["kind"] == kind] for kind in found["spread"]}
    disturbed, calm = (seconds / 60 for seconds in found["seconds"])
    number = min(map(len, kinds.values()))
    yield f"## {words.LIVE.in_(language)}"
    yield words.ABOUT.in_(language).format(
        domains=settings["domains"],
        spares=settings["spares"],
        processors=found["processors"],
        load=brief(found["load"], 2),
        command=code(f"kuayu live --incidents {number} --seed {settings['seed']}"),
        minutes=brief(disturbed, 2),
        count=count(len(incidents)),
        each=count(number),
        file=f"{PLACE}/{LIVE}",
    )
    yield table(words.COLUMNS[language], (tuple(_row(kind, some)) for kind, some in kinds.items()))
    yield words.CELLS.in_(language)
    yield drawn(language, [_course(language, kinds)], "live")
    yield f"### {words.JUDGED.in_(language)}"
    yield table(words.JUDGED_COLUMNS[language], _judged(language, found["percentile_95_and_bound"]))
    yield f"### {words.HOLDS.in_(language)}"
    yield table(words.HOLDS_COLUMNS[language], _holds(language, found, (disturbed, calm)))
    yield f"![{words.PICTURE.in_(language)}]({PLACE}/{PICTURE})"


def _row(kind: str, incidents: Sequence[Figures]) -> Iterator[str]:
    over = [each for each in incidents if _recovered(each)]
    yield code(kind)
    yield count(len(incidents))
    yield count(len(over))
    for name in SHOWN:
        values = sorted(each[name] for each in over if each[name] is not None)
        digits = 1 if name == "again" else 2
        yield " / ".join(brief(values[place], 3 if digits > 1 else 2) for place in _places(len(values)))


def _places(size: int) -> tuple[int, ...]:
    """Where the lower median, the 95th percentile and the greatest of so many values in order stand; none of none."""
    return tuple(math.ceil(share * size) - 1 for share in (0.5, 0.95, 1.0)) if size else ()


def _recovered(incident: Figures) -> bool:
    return incident["interruption"] is not None


def _course(language: Language, kinds: Mapping[str, Sequence[Figures]]) -> ReportPlot:
    """Share of incidents of each kind that were over after so many seconds."""
    lines = {kind: sorted(each["interruption"] for each in some if _recovered(each)) for kind, some in kinds.items()}
    return ReportPlot(
        title=words.DELAYS.in_(language),
        kind=PlotKind.lines,
        x_label=words.SECONDS.in_(language),
        y_label=words.SHARE.in_(language),
        series=[
            PlotSeries(label=kind, x=[0.0, *seconds], y=[place / len(kinds[kind]) for place in range(len(seconds) + 1)])
            for kind, seconds in lines.items()
        ],
    )


def _judged(language: Language, found: Mapping[str, Sequence[float | None]]) -> Iterator[Sequence[str]]:
    for requirement, (required, aim) in AIMS.items():
        estimate, bound = found[requirement]
        reached = estimate is not None and estimate <= aim
        yield (
            link(requirement, f"/requirements/res.md#{requirement}"),
            *("–" if each is None else brief(each, 3) for each in (estimate, bound)),
            count(required),
            count(aim),
            (words.MET if reached else words.MISSED).in_(language),
        )


def _holds(language: Language, found: Figures, minutes: tuple[float, float]) -> Iterator[Sequence[str]]:
    disturbed, calm = (brief(each, 2) for each in minutes)
    twice = found["under_a_foreign_plan"] + found["after_a_later_plan_began"] + len(found["steps_with_two_results"])
    alarms = len(found["false_alarms"]) + len(found["false_alarms_undisturbed"] or ())
    missed = [each for each in found["incidents"] if not _recovered(each)]
    stayed = [each for each in found["incidents"] if _recovered(each) and each["left"] is None]
    yield words.DIFFERENCE.in_(language).format(tolerance=f"{found['tolerance']:g}"), f"{found['largest_difference']:g}"
    yield words.UNTOLD.in_(language).format(steps=count(found["steps"])), count(len(found["steps_without_a_loss"]))
    yield words.NOT_RECOVERED.in_(language), count(len(missed))
    yield words.TWICE.in_(language).format(entries=count(found["steps_written_down"])), count(twice)
    yield words.ALARMS.in_(language).format(disturbed=disturbed, calm=calm), count(alarms)
    yield words.STAYED.in_(language), count(len(stayed))
