"""The page of how fast the simulated world goes says what its benchmark wrote."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ROW: dict[str, Any] = {
    "policy": "B1",
    "jobs": 110_000,
    "finished": 100_123,
    "active": 21_575.4,
    "seconds": 512.3,
    "jobs a second": 195.4,
    "compiled seconds": 8.61,
    "compiled jobs a second": 11_629.0,
}


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_scale_has_a_row_and_each_policy_a_line(tmp_path: Path, language: str) -> None:
    from pages.scheduling_speed import speed  # type: ignore[import-not-found]

    rows = [{**ROW, "scale": "64x156x13"}, {**ROW, "scale": "5x200x12", "finished": 5290, "compiled seconds": 2.2}]
    (tmp_path / "speed.json").write_text(json.dumps({"machine": {}, "rows": rows}), "utf-8")
    said = "\n".join(speed(language, tmp_path))
    assert "--scale 64x156x13 5x200x12 --policy B1" in said
    cells = ["".join(cell.split()) for cell in said.split("|")]
    for figure in ("9984", "100123", "512", "195", "8.61", "11629"):
        assert figure in cells
    assert "<svg" in said


@pytest.mark.parametrize(("language", "missed"), [("en", "**no**"), ("zh", "**否**")])
def test_figures_stand_beside_their_aims_and_peers_have_none(tmp_path: Path, language: str, missed: str) -> None:
    from pages.scheduling_speed import speed

    rows = [
        {
            "name": "drawing a scenario to learn in",
            "unit": "ms", "value": 31.0, "aim": 20.0, "met": False, "seconds": 0.4,
        },
        {
            "name": "Sia's simulator, its first Philly workload of 160 jobs, policy sia",
            "unit": "1/s", "value": 1.9, "aim": None, "met": None, "seconds": 85.0,
        },
    ]  # fmt: skip
    measured = {
        "command": "python tests/benchmarks/speed.py",
        "date": "2026-11-29",
        "load": [0.1, 0.9],
        "figures": rows,
    }
    (tmp_path / "compiled-speed.json").write_text(json.dumps(measured), "utf-8")
    said = "\n".join(speed(language, tmp_path))
    assert "--json docs/results/scheduling/compiled-speed.json" in said
    scenario, peer = [line.split("|")[1:-1] for line in said.splitlines() if line.startswith("|")][-2:]
    assert [cell.strip() for cell in scenario[1:4]] == ["31\u00a0ms", "≤\u00a020", missed]
    assert [cell.strip() for cell in peer[1:4]] == ["1.9\u00a01/s", "", ""]


def test_without_the_file_nothing_is_said(tmp_path: Path) -> None:
    from pages.scheduling_speed import speed

    assert list(speed("en", tmp_path)) == []
