"""Where the gains of the reference's scheduler vanish, drawn: one panel for each thing that is moved."""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language

from .markdown import percent, plain
from .scheduling_policies import method_of
from .text import phrases, text
from .translations import chinese

NAME = "scheduling_sensitivity"
FILE = "sensitivity.json"
RULE, BASE, BESIDE = "reference", "B1", "B3"
COLUMNS, WIDTH, HEIGHT = 2, 380, 210
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 30, 26
STEP = 0.2
"""Between lines of the scale."""
DARK, LIGHT, FAINT = "#1f6feb", "#57606a", "#d0d7de"

Curve = Mapping[str, Any]
"""A number of the rule with figures at several of its values, as the file has them."""


def sensitivity(language: Language, folder: Path, place: str) -> Iterator[str]:
    """Blocks of a page, if there is a file; arguments as of :func:`pages.scheduling_trained.trained`."""
    if not (folder / FILE).is_file():
        return
    found = json.loads((folder / FILE).read_text("utf-8"))
    curves = found["curves"]
    yield text(
        NAME,
        language,
        found=found,
        windows=max(point["windows"] for curve in curves for point in curve["points"]),
        file=f"{place}/{FILE}",
        method=method_of(language, found),
        **_found(language, curves),
        drawing=drawing(language, curves),
        rows=[row for curve in curves for row in _rows(language, curve)],
    )


def _found(language: Language, curves: Sequence[Curve]) -> Mapping[str, str]:
    """Between which gains all points lie, where bandwidth costs more than under B1, and where there may be no gain."""
    points = [(curve, point) for curve in curves for point in curve["points"]]
    least, most = (end(points, key=lambda each: each[1]["gain"][RULE]["all"][0]) for end in (min, max))
    none = [each for each in points if each[1]["gain"][RULE]["all"][0] <= each[1]["gain"][RULE]["all"][1]]
    dearer = [each for each in points if each[1]["money"][RULE][0] > each[1]["money"][BASE][0]]
    say = phrases(NAME, language)

    def where(curve: Curve, point: Mapping[str, Any]) -> str:
        return str(say["at"].format(what=plain(_said(language, curve["label"])), value=f"{point['value']:g}"))

    return {
        "least": _gain(*least[1]["gain"][RULE]["all"]),
        "least_at": where(*least),
        "most": _gain(*most[1]["gain"][RULE]["all"]),
        "most_at": where(*most),
        "dearer": say["joint"].join(where(*each) for each in dearer),
        "none": say["joint"].join(where(*each) for each in none),
    }


def drawing(language: Language, curves: Sequence[Curve]) -> str:
    """All panels, with one scale, as an SVG in the page itself."""
    say = phrases(NAME, language)
    heights = [height for curve in curves for each in _lines(curve).values() for height in each]
    low, high = STEP * (min(0.0, *heights) // STEP), STEP * -(-max(heights) // STEP)
    rows = -(-len(curves) // COLUMNS)
    panels = [
        f'<g transform="translate({place % COLUMNS * WIDTH},{20 + place // COLUMNS * HEIGHT})">'
        f"{_panel(language, curve, low, high)}</g>"
        for place, curve in enumerate(curves)
    ]
    looks = (
        ("rule_all", DARK, ""),
        ("rule_large", DARK, "5 4"),
        ("beside", LIGHT, ""),
        ("bound", LIGHT, "2 4"),
    )
    legend = "".join(
        f'<line x1="{LEFT + 180 * number}" x2="{LEFT + 24 + 180 * number}" y1="8" y2="8" stroke="{colour}" '
        f'stroke-width="2" stroke-dasharray="{dashes}"/>'
        f'<text x="{LEFT + 30 + 180 * number}" y="12">{escape(say[name])}</text>'
        for number, (name, colour, dashes) in enumerate(looks)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {COLUMNS * WIDTH} {20 + rows * HEIGHT}" role="img" '
        f'aria-label="{escape(say["title"])}" font-family="sans-serif" font-size="11" fill="{LIGHT}">'
        f"{legend}{''.join(panels)}</svg>"
    )


def _panel(language: Language, curve: Curve, low: float, high: float) -> str:
    values = [float(point["value"]) for point in curve["points"]]

    def across(value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (value - values[0]) / (values[-1] - values[0]), 1)

    def up(height: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (height - low) / (high - low), 1)

    ticks = [low + STEP * number for number in range(round((high - low) / STEP) + 1)]
    parts = [f'<text x="{LEFT}" y="18" font-weight="bold">{escape(_said(language, curve["label"]))}</text>']
    parts += [
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick)}" y2="{up(tick)}" '
        f'stroke="{LIGHT if abs(tick) < STEP / 2 else FAINT}" stroke-width="{1 if abs(tick) < STEP / 2 else 0.6}"/>'
        f'<text x="{LEFT - 5}" y="{up(tick) + 4}" text-anchor="end">{percent(tick).replace("-", "−")}</text>'
        for tick in ticks
    ]
    parts += [
        f'<text x="{across(value)}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{value:g}</text>'
        for value in values
    ]
    looks = {"bound": (LIGHT, "2 4"), "beside": (LIGHT, ""), "large": (DARK, "5 4"), "all": (DARK, "")}
    for name, heights in _lines(curve).items():
        colour, dashes = looks[name]
        path = " ".join(f"{across(value)},{up(height)}" for value, height in zip(values, heights, strict=True))
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'
        )
    for value, point in zip(values, curve["points"], strict=True):
        gain, error = point["gain"][RULE]["all"]
        ends = (up(min(high, gain + error)), up(max(low, gain - error)))
        parts.append(
            f'<line x1="{across(value)}" x2="{across(value)}" y1="{ends[0]}" y2="{ends[1]}" stroke="{DARK}"/>'
            f'<circle cx="{across(value)}" cy="{up(gain)}" r="2.5" fill="{DARK}"/>'
        )
    return "".join(parts)


def _lines(curve: Curve) -> dict[str, list[float]]:
    """Gains along a curve, by what is drawn of them."""
    points = curve["points"]
    return {
        "bound": [point["bound"]["all"] for point in points],
        "beside": [point["gain"][BESIDE]["all"][0] for point in points],
        "large": [point["gain"][RULE]["large"][0] for point in points],
        "all": [point["gain"][RULE]["all"][0] for point in points],
    }


def _rows(language: Language, curve: Curve) -> Iterator[Sequence[str]]:
    for number, point in enumerate(curve["points"]):
        yield (
            "" if number else plain(_said(language, curve["label"])),
            f"{point['value']:g}",
            *(_gain(*point["gain"][RULE][group]) for group in ("all", "large")),
            *(_gain(*point["gain"][BESIDE][group]) for group in ("all", "large")),
            percent(point["bound"]["all"], 1),
            *(f"{point['money'][name][0]:.2f}" for name in (BASE, BESIDE, RULE)),
            "" if number else plain(_said(language, curve["vanishing"])),
        )


def _gain(gain: float, error: float) -> str:
    return f"{percent(gain, 1, '+')} ±\u202f{100 * error:.1f}".replace("-", "−")


def _said(language: Language, text: str) -> str:
    return chinese(text, "SCH") if language == "zh" and text else text
