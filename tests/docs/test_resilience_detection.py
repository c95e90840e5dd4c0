"""The page of how soon and surely faults are told says what the committed run of the benchmark found."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docs.parsed import parsed

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs/results/resilience/detection.json"
LANGUAGES = {"en": "", "zh": "zh/"}
KINDS = ("kill", "rack", "amid")


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


@pytest.fixture(scope="module")
def found() -> Any:
    return json.loads(FILE.read_text("utf-8"))


def test_enough_calm_and_enough_deaths_were_played_at_both_scales(found: Any) -> None:
    assert found["request"]["scale"] == ["5x200", "10x1000"]
    for scale in found["request"]["scale"]:
        figures = found["figures"][scale]
        assert figures["calm"]["node-days"] >= 30
        assert sum(figures["faults"]["kuayu"]["kinds"][kind]["n"] for kind in KINDS) >= 2995


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_scale_and_each_kind_stands_there_with_its_figures(site: Path, language: str, found: Any) -> None:
    page = parsed(site / LANGUAGES[language] / "results-resilience.html").text
    for scale in found["request"]["scale"]:
        kinds = found["figures"][scale]["faults"]["kuayu"]["kinds"]
        for kind in KINDS:
            assert f"{100 * kinds[kind]['recall']:.2f}\u202f%" in page
            assert f"{kinds[kind]['p99']:.3g}" in page
    assert "heartbeats.py --scale 5x200 10x1000" in page
    others = {
        "en": ("fixed 1.5 s", "fixed 3 s", "plain φ, 8"),
        "zh": ("固定超时 1.5 s", "固定超时 3 s", "普通累积检测器，φ = 8"),
    }
    assert [other for other in others[language] if other not in page] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_never_told_is_said(tmp_path: Path, language: str, found: Any) -> None:
    from pages.resilience_detection import detection  # type: ignore[import-not-found]

    changed = json.loads(json.dumps(found))
    changed["figures"]["jobs"]["hang"]["p99 s"] = "never"
    (tmp_path / "detection.json").write_text(json.dumps(changed))
    never = {"en": "| never |", "zh": "| 未通告 |"}[language]
    before = (FILE.parent, tmp_path)
    counts = ["\n".join(detection(language, folder, "results")).count(never) for folder in before]
    assert counts[1] == counts[0] + 1


def test_without_the_file_nothing_is_said(tmp_path: Path) -> None:
    from pages.resilience_detection import detection

    assert list(detection("en", tmp_path, "results")) == []
