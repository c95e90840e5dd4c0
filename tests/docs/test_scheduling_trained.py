"""What the page says of tuning and training is what their files say."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
WITH = ("B3", "B4", "rule", "network")


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


def trained(folder: Path, lead: float, floor: float) -> None:
    """Files as ``python -m kuayu_training scheduler`` writes them."""
    kinds: list[dict[str, Any]] = [
        {
            "kind": kind,
            "scenarios": 12,
            "periods": dict.fromkeys(WITH, 0.97),
            "large": dict.fromkeys(WITH, 0.95),
            "costs": dict.fromkeys(WITH, 0.61),
            "objectives": dict.fromkeys(WITH, 0.05),
            "lead": lead,
            "floor": floor,
        }
        for kind in ("learned", "larger", "strange", "philly", "trace")
    ]
    settings = {"seed": 9, "seeds": 5, "steps": 30_000, "looks": 3, "looking": 16, "held": 12}
    told = {"settings": settings, "chosen": 9, "seeds": [], "compared": kinds}
    (folder / "learning-curves.json").write_text(json.dumps(told), "utf-8")
    (folder / "learning-curves.svg").write_text("<svg><text>the rule</text></svg>\n", "utf-8")


@pytest.mark.parametrize(
    ("lead", "floor", "en", "zh"),
    [
        (0.012, 0.003, "It ships, and decides", "随参考实现发布"),
        (0.012, -0.003, "has not earned its place", "尚未取得应有优势"),
    ],
)
def test_a_network_ships_only_where_its_lead_is_proven(
    tmp_path: Path, lead: float, floor: float, en: str, zh: str
) -> None:
    from pages.scheduling_trained import trained as blocks  # type: ignore[import-not-found]

    trained(tmp_path, lead, floor)
    said = {language: "\n".join(blocks(language, tmp_path, "place")) for language in ("en", "zh")}
    assert en in said["en"]
    assert zh in said["zh"]
    assert ("the rule</text>" in said["en"], "规则</text>" in said["zh"]) == (True, True)
    for text in said.values():
        assert "+0.0120" in text
        assert text.count("97.0") >= 20


def test_without_files_nothing_is_said(tmp_path: Path) -> None:
    from pages.scheduling_trained import trained as blocks

    assert list(blocks("en", tmp_path, "place")) == []
