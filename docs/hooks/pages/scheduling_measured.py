"""What scheduling over domains gained in simulated windows: committed runs of the suite, and what they come to."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language
from kuayu_schemas.models import ConformanceReport

from .judged import sections
from .made import Made
from .markdown import page, percent, plain
from .runs import run_of
from .scheduling_gains import (
    AGAINST,
    AT_REFERENCE,
    HIGHEST,
    PLAIN,
    POOL,
    SERVICE,
    Curve,
    Gains,
    at_reference,
    by_curve,
    by_family,
    columns_of,
    tables,
)
from .scheduling_policies import policies
from .scheduling_sensitivity import sensitivity
from .scheduling_speed import speed
from .scheduling_trained import trained
from .text import phrases, text
from .translations import chinese

NAME = "scheduling_measured"
FOLDER = "docs/results/scheduling"
GAINS = "SCH-003"
"""A requirement for which windows are played beside baselines for long."""
PLACE = FOLDER.removeprefix("docs/")

PROFILE = "SCH"
ALIKE = "identical"
"""The family in which little is to be gained."""
CLOSE = 0.03
"""Part of B1's period by which a plain policy may be behind the service and still comes close."""


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page."""
    gains = run_of(GAINS, root)
    blocks = [text(NAME, language, gains=gains, **(_gains(language, gains.report) if gains else {}))]
    blocks += policies(language, root / FOLDER, PLACE)
    blocks += sensitivity(language, root / FOLDER, PLACE)
    blocks += trained(language, root / FOLDER, PLACE)
    blocks += speed(language, root / FOLDER)
    blocks += sections(language, root, PROFILE)
    yield Made("results-scheduling.md", page(*blocks))


def _gains(language: Language, report: ConformanceReport) -> dict[str, Any]:
    """What is compared with what, where plain policies come close or win, and where gains vanish."""
    reference = [gains for gains in at_reference(report) if SERVICE in gains.by]
    families, curves = list(by_family(report)), list(by_curve(report))
    return {
        "places": [_where(language, gains) for gains in reference],
        "periods": list(_periods(language, reference)),
        **_costs(language, report),
        **_close(language, [*reference, *families]),
        "families": families,
        "curves": curves,
        **_vanishing(language, families, curves),
    }


def _periods(language: Language, reference: Sequence[Gains]) -> Iterator[Sequence[str]]:
    names = [name for name in reference[0].by if name != AGAINST]
    most = [max(gain for name, gain in gains.by.items() if name != POOL) for gains in reference]
    for name in names:
        shown = [(gains.by.get(name), best) for gains, best in zip(reference, most, strict=True)]
        yield _said(language, name), *(_gain(gain, bold=gain == best and name != POOL) for gain, best in shown)


def _costs(language: Language, report: ConformanceReport) -> dict[str, Any]:
    """Money for traffic by source, and what each policy sustains, as the report prints them."""
    traffic: dict[str, dict[str, str]] = {}
    for shown in tables(report, "SCH-003"):
        if (found := AT_REFERENCE.match(shown.title)) and found[1] == "Service":
            (column,) = columns_of(shown, "traffic")
            traffic[found[2]] = {row.cells[0]: row.cells[column] for row in shown.rows}
    sustained = {
        row.cells[0]: row.cells[1:]
        for shown in tables(report, "SCH-004")
        if shown.title.startswith(HIGHEST)
        for row in shown.rows
    }
    rows = [
        (
            _said(language, name),
            *(plain(cells[name]) for cells in traffic.values()),
            *(_figure(_said(language, cell)) for cell in sustained.get(name, ["–"] * 3)),
        )
        for name in next(iter(traffic.values()))
    ]
    head = phrases(NAME, language)["traffic"]
    return {"traffic": [head.format(_said(language, source)) for source in traffic], "costs": rows}


def _close(language: Language, everywhere: Sequence[Gains]) -> dict[str, Any]:
    """Where a plain policy's period is shorter than the service's, and where it is not much longer."""
    compared = [gains for gains in everywhere if SERVICE in gains.by and any(name in gains.by for name in PLAIN)]
    near = sorted((each for each in compared if each.lead >= -CLOSE), key=lambda each: -each.lead)
    rows = [
        (
            _where(language, gains),
            *(_gain(gains.by.get(name), bold=name == gains.plainest) for name in PLAIN),
            _gain(gains.by[SERVICE]),
            _points(gains.lead),
        )
        for gains in near
    ]
    wins = sum(each.lead > 0.0 for each in near)
    return {"compared": compared, "near": near, "wins": wins, "points": round(100 * CLOSE), "close": rows}


def _vanishing(language: Language, families: Sequence[Gains], curves: Sequence[Curve]) -> dict[str, Any]:
    """Where the service gains least and most, and its gain along what is moved."""
    found: dict[str, Any] = {
        "alikes": [_family(language, each) for each in families if each.where == ALIKE],
    }
    if families:
        for name, end in (("least", min), ("most", max)):
            found[name] = _family(language, end(families, key=lambda each: each.by[SERVICE]))
    if curves:
        names = [name for name in (*PLAIN, SERVICE) if name in curves[0].points[0].by]
        found["names"] = [_said(language, name) for name in names]
        found["along"] = list(_along(language, names, curves))
    return found


def _family(language: Language, gains: Gains) -> dict[str, str]:
    shown = {"gain": _gain(gains.by[SERVICE]), "bound": _gain(gains.by.get("bound"))}
    return {"name": _said(language, gains.where), **shown}


def _along(language: Language, names: Sequence[str], curves: Sequence[Curve]) -> Iterator[Sequence[str]]:
    for curve in curves:
        for number, gains in enumerate(curve.points):
            yield (
                "" if number else _said(language, curve.label),
                plain(gains.where),
                *(_gain(gains.by.get(name)) for name in names),
                "" if number else _said(language, curve.vanishing),
            )


def _said(language: Language, text: str) -> str:
    """Words of the report in a language."""
    return plain(chinese(text, PROFILE) if language == "zh" else text)


def _where(language: Language, gains: Gains) -> str:
    which = phrases(NAME, language)["large" if gains.large else "all"]
    return str(which.format(_said(language, gains.where)))


def _gain(gain: float | None, *, bold: bool = False) -> str:
    if gain is None:
        return "–"
    shown = percent(gain, 1, "+").replace("-", "−")
    return f"**{shown}**" if bold else shown


def _figure(text: str) -> str:
    return text.replace(" %", "\u202f%")


def _points(lead: float) -> str:
    return f"{100 * lead:+.1f}".replace("-", "−")
