"""The page shows policies and curves as their files say them, and what is not gained as well."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kuayu_conformance.checks.scheduling.cells import FULL

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


def point(value: float, gain: float) -> dict[str, Any]:
    """A point as ``tests/benchmarks/sensitivity.py`` writes it, whose gains are all alike."""
    gains = {"all": [gain, 0.02], "large": [gain, 0.05]}
    return {
        "value": value,
        "windows": 12,
        "gain": {"B3": gains, "reference": gains},
        "bound": {"all": gain + 0.1, "large": gain + 0.1},
        "money": {name: [100.0 * value, 1.0] for name in ("B1", "B3", "reference")},
    }


def written(folder: Path) -> None:
    """Curves of a full run, of three points each; the last gains nothing, and less."""
    curves = [
        {"label": curve.label, "vanishing": curve.vanishing, "points": [point(x, 0.5 - x) for x in (0.0, 0.5, 0.6)]}
        for curve in FULL.curves
    ]
    made = {"command": "python tests/benchmarks/sensitivity.py --windows 12", "date": "2026-11-26", "curves": curves}
    (folder / "sensitivity.json").write_text(json.dumps(made), "utf-8")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_curve_is_drawn_and_its_figures_stand_below(tmp_path: Path, language: str) -> None:
    from pages.scheduling_sensitivity import sensitivity  # type: ignore[import-not-found]

    assert list(sensitivity(language, tmp_path, "place")) == []
    written(tmp_path)
    text = "\n".join(sensitivity(language, tmp_path, "place"))
    assert {"en": "2026-11-26, [all", "zh": "2026-11-26，[全部"}[language] in text, "the file names no method"
    assert text.count("<polyline") == 4 * len(FULL.curves)
    assert text.count("<circle") == 3 * len(FULL.curves)
    assert text.count("−10.0\u202f% ±\u202f2.0") == 2 * len(FULL.curves) + 1, "in each last point, and once in words"
    if language == "en":
        assert all(curve.label in text for curve in FULL.curves)
    else:
        drawing, _, rows = text.partition("</svg>")
        assert not re.search(r">[^<]*[a-z]{3,}[^<]*<", drawing.partition("<svg")[2]), "every word has its Chinese"
        assert not any(curve.label in rows for curve in FULL.curves)


def test_a_panel_stays_within_its_scale(tmp_path: Path) -> None:
    from pages.scheduling_sensitivity import HEIGHT, drawing

    written(tmp_path)
    svg = drawing("en", json.loads((tmp_path / "sensitivity.json").read_text("utf-8"))["curves"])
    heights = [float(pair.partition(",")[2]) for path in re.findall(r'points="([^"]+)"', svg) for pair in path.split()]
    assert heights
    assert all(0.0 <= height <= HEIGHT for height in heights)


def test_policies_stand_beside_each_other_with_the_best_bold(tmp_path: Path) -> None:
    from pages.scheduling_policies import policies  # type: ignore[import-not-found]

    def reached(gain: float | None, money: float) -> dict[str, Any]:
        off = {"gain off": {"all": 0.0512, "large": None}, "money off": 1.5}
        return {"gain over B1": {"all": gain, "large": None}, "money": money, **(off if money == 40.0 else {})}

    cell = {
        "windows": 12,
        "bound": {"gain over B1": {"all": 0.5, "large": None}},
        "policies": {
            "B1": reached(0.0, 80.0),
            "B5 pool": reached(0.45, 0.0),
            "SRTF": reached(-0.1, 90.0),
            "reference": reached(0.4, 40.0),
        },
    }
    cells = [{"family": "reference", "source": "fitted", **cell}, {"family": "wan-poor", "source": "fitted", **cell}]
    made: dict[str, Any] = {
        "command": "python tests/benchmarks/policies.py --windows 12",
        "date": "2026-11-26",
        "cells": cells,
    }
    made["method"] = "1.5.0"
    assert list(policies("en", tmp_path, "place")) == []
    (tmp_path / "policies.json").write_text(json.dumps(made), "utf-8")
    for language, family in (("en", "wan-poor"), ("zh", "窄带广域网（wan-poor）")):
        text = "\n".join(policies(language, tmp_path, "place"))
        text = text.replace("&#45;", "-")
        assert {"en": "2026-11-26, method 1.5.0 of the rule,", "zh": "2026-11-26，规则为方法 1.5.0，"}[language] in text
        gains = "+45.0\u202f% | −10.0\u202f% | **+40.0\u202f% ±\u202f5.1** | +50.0\u202f%"
        assert f"| {family} | {gains} |" in text, "the pool that nobody has is not the best"
        assert f"| {family} | – | – | – | – |" in text, "no large job was submitted"
        assert f"| {family} | 80.00 | 0.00 | 90.00 | 40.00 ±\u202f1.50 |" in text
        assert all(name in text.partition("| ")[0] for name in ("**SRTF**", "**B5**", "±")), "it is said what they are"
        assert "**DRF**" not in text, "of those that there are"
