"""What was measured of resilience: a real training through failures, and how soon and surely faults are told."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.figures import brief, count
from kuayu_conformance.rendering.words import Language
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot

from .judged import drawn, sections
from .made import Made
from .markdown import code, link, page
from .resilience_detection import detection
from .text import phrases, text

NAME = "resilience_measured"
FOLDER = "docs/results/resilience"
LIVE = "live.json"
PROFILE = "RES"
PLACE = FOLDER.removeprefix("docs/")
SHOWN = ("detected", "first", "interruption", "again")
AIMS = {"RES-003": (300, 30), "RES-004": (600, 30)}
"""What is required, and the reference's aim for a live run, in seconds."""

Figures = Mapping[str, Any]
"""An object of the file, which is written where it is measured: figures, or phrases, by name."""


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page."""
    folder = root / FOLDER
    live = json.loads((folder / LIVE).read_text("utf-8")) if (folder / LIVE).is_file() else None
    block = text(NAME, language, place=PLACE, live=live, **(_live(language, live) if live else {}))
    blocks = [*detection(language, folder, PLACE), *sections(language, root, PROFILE)]
    yield Made("results-resilience.md", page(block, *blocks))


def _live(language: Language, found: Figures) -> Mapping[str, Any]:
    say = phrases(NAME, language)
    kinds = {kind: [each for each in found["incidents"] if each["kind"] == kind] for kind in found["spread"]}
    disturbed, calm = (brief(seconds / 60, 2) for seconds in found["seconds"])
    return {
        "number": min(map(len, kinds.values())),
        "disturbed": disturbed,
        "incidents": [tuple(_row(kind, some)) for kind, some in kinds.items()],
        "course": drawn(language, [_course(say, kinds)], "live"),
        "judged": list(_judged(say, found["percentile_95_and_bound"])),
        "holds": list(_holds(say, found, disturbed, calm)),
    }


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


def _course(say: Figures, kinds: Mapping[str, Sequence[Figures]]) -> ReportPlot:
    """Share of incidents of each kind that were over after so many seconds."""
    lines = {kind: sorted(each["interruption"] for each in some if _recovered(each)) for kind, some in kinds.items()}
    return ReportPlot(
        title=say["delays"],
        kind=PlotKind.lines,
        x_label=say["seconds"],
        y_label=say["share"],
        series=[
            PlotSeries(label=kind, x=[0.0, *seconds], y=[place / len(kinds[kind]) for place in range(len(seconds) + 1)])
            for kind, seconds in lines.items()
        ],
    )


def _judged(say: Figures, found: Mapping[str, Sequence[float | None]]) -> Iterator[Sequence[str]]:
    for requirement, (required, aim) in AIMS.items():
        estimate, bound = found[requirement]
        reached = estimate is not None and estimate <= aim
        yield (
            link(requirement, f"/requirements/res.md#{requirement}"),
            *("–" if each is None else brief(each, 3) for each in (estimate, bound)),
            count(required),
            count(aim),
            say["met" if reached else "missed"],
        )


def _holds(say: Figures, found: Figures, disturbed: str, calm: str) -> Iterator[Sequence[str]]:
    twice = found["under_a_foreign_plan"] + found["after_a_later_plan_began"] + len(found["steps_with_two_results"])
    alarms = len(found["false_alarms"]) + len(found["false_alarms_undisturbed"] or ())
    missed = [each for each in found["incidents"] if not _recovered(each)]
    stayed = [each for each in found["incidents"] if _recovered(each) and each["left"] is None]
    yield say["difference"].format(tolerance=f"{found['tolerance']:g}"), f"{found['largest_difference']:g}"
    yield say["untold"].format(steps=count(found["steps"])), count(len(found["steps_without_a_loss"]))
    yield say["not_recovered"], count(len(missed))
    yield say["twice"].format(entries=count(found["steps_written_down"])), count(twice)
    yield say["alarms"].format(disturbed=disturbed, calm=calm), count(alarms)
    yield say["stayed"], count(len(stayed))
