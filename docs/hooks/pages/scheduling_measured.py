"""What scheduling over domains gained in simulated windows: committed runs of the suite, and what they come to."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from kuayu_conformance.rendering.words import Language
from kuayu_schemas.models import ConformanceReport

from . import scheduling_measured_words as words
from .judged import sections
from .judged_words import chinese
from .made import Made
from .markdown import page, percent, plain, table
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
    blocks: list[str] = []
    gains = run_of(GAINS, root)
    if gains:
        blocks += _gains(language, gains.report)
    else:
        blocks.append(words.NOT_YET.in_(language))
    blocks += policies(language, root / FOLDER, PLACE)
    blocks += sensitivity(language, root / FOLDER, PLACE)
    blocks += trained(language, root / FOLDER, PLACE)
    blocks += speed(language, root / FOLDER)
    blocks += sections(language, root, PROFILE)
    title = f"# {words.TITLE.in_(language)}"
    yield Made("results-scheduling.md", page(title, words.INTRODUCTION.in_(language), *blocks))


def _gains(language: Language, report: ConformanceReport) -> Iterator[str]:
    """What is compared with what, where plain policies come close or win, and where gains vanish."""
    reference = [gains for gains in at_reference(report) if SERVICE in gains.by]
    families, curves = list(by_family(report)), list(by_curve(report))
    yield f"## {words.GAINS.in_(language)}"
    yield words.COMPARED.in_(language)
    yield f"**{words.PERIODS.in_(language)}**"
    yield table(
        [words.POLICY.in_(language), *(_where(language, gains) for gains in reference)], _periods(language, reference)
    )
    yield f"**{words.COSTS.in_(language)}**"
    yield _costs(language, report)
    yield f"### {words.CLOSE.in_(language)}"
    yield from _close(language, [*reference, *families])
    if families or curves:
        yield f"### {words.VANISHING.in_(language)}"
        yield from _vanishing(language, families, curves)


def _periods(language: Language, reference: Sequence[Gains]) -> Iterator[Sequence[str]]:
    names = [name for name in reference[0].by if name != AGAINST]
    most = [max(gain for name, gain in gains.by.items() if name != POOL) for gains in reference]
    for name in names:
        shown = [(gains.by.get(name), best) for gains, best in zip(reference, most, strict=True)]
        yield _said(language, name), *(_gain(gain, bold=gain == best and name != POOL) for gain, best in shown)


def _costs(language: Language, report: ConformanceReport) -> str:
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
    heads = [words.TRAFFIC.in_(language).format(_said(language, source)) for source in traffic]
    return table([words.POLICY.in_(language), *heads, *words.SUSTAINED_COLUMNS[language]], rows)


def _close(language: Language, everywhere: Sequence[Gains]) -> Iterator[str]:
    """Where a plain policy's period is shorter than the service's, and where it is not much longer."""
    compared = [gains for gains in everywhere if SERVICE in gains.by and any(name in gains.by for name in PLAIN)]
    near = sorted((each for each in compared if each.lead >= -CLOSE), key=lambda each: -each.lead)
    yield words.CLOSE_ABOUT.in_(language).format(
        places=len(compared),
        wins=sum(each.lead > 0.0 for each in near),
        near=sum(each.lead <= 0.0 for each in near),
        points=round(100 * CLOSE),
    )
    if near:
        yield words.CLOSE_GAINS.in_(language)
        yield table(
            words.CLOSE_COLUMNS[language],
            (
                (
                    _where(language, gains),
                    *(_gain(gains.by.get(name), bold=name == gains.plainest) for name in PLAIN),
                    _gain(gains.by[SERVICE]),
                    _points(gains.lead),
                )
                for gains in near
            ),
        )


def _vanishing(language: Language, families: Sequence[Gains], curves: Sequence[Curve]) -> Iterator[str]:
    """Where the service gains least and most, and its gain along what is moved."""
    if families:
        least, most = (end(families, key=lambda each: each.by[SERVICE]) for end in (min, max))
        yield words.FAMILIES.in_(language).format(
            families=len(families),
            least=_said(language, least.where),
            least_gain=_gain(least.by[SERVICE]),
            most=_said(language, most.where),
            most_gain=_gain(most.by[SERVICE]),
        )
    for alike in (each for each in families if each.where == ALIKE):
        yield words.ALIKE.in_(language).format(
            where=_said(language, ALIKE), gain=_gain(alike.by[SERVICE]), bound=_gain(alike.by.get("bound"))
        )
    if curves:
        yield words.CURVES.in_(language)
        names = [name for name in (*PLAIN, SERVICE) if name in curves[0].points[0].by]
        heads = [words.MOVED.in_(language), words.VALUE.in_(language), *(_said(language, name) for name in names)]
        yield table([*heads, ""], _along(language, names, curves))


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
    which = words.LARGE if gains.large else words.ALL
    return which.in_(language).format(_said(language, gains.where))


def _gain(gain: float | None, *, bold: bool = False) -> str:
    if gain is None:
        return "–"
    shown = percent(gain, 1, "+").replace("-", "−")
    return f"**{shown}**" if bold else shown


def _figure(text: str) -> str:
    return text.replace(" %", "\u202f%")


def _points(lead: float) -> str:
    return f"{100 * lead:+.1f}".replace("-", "−")
