"""What the page says of tuning and training is what their files say."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


def trained(folder: Path, *, ships: bool) -> None:
    """Files as ``python -m kuayu_training scheduler`` writes them."""
    kinds: list[dict[str, Any]] = [
        {
            "kind": kind,
            "windows": 12,
            "over": {"B1": [1.6, 1.7, 1.2], "network": [0.97, 0.95, 0.61]},
            "most": {"B1": [1.7, 1.8, 1.3], "network": [0.98, 0.99, 0.7]},
        }
        for kind in ("learned", "larger", "strange", "philly", "trace", "together")
    ]
    settings = {"seed": 9, "seeds": 2, "steps": 30_000, "looks": 3, "looking": 16, "held": 12}
    told = {
        "command": "python -m kuayu_training scheduler",
        "date": "2026-11-26",
        "settings": settings,
        "chosen": 9,
        "ships": ships,
        "seeds": [{"seed": seed, "decisions": 40_000_000, "points": []} for seed in (9, 10)],
        "compared": kinds,
    }
    (folder / "learning-curves.json").write_text(json.dumps(told), "utf-8")
    (folder / "learning-curves.svg").write_text("<svg><text>the rule</text></svg>\n", "utf-8")


@pytest.mark.parametrize(
    ("ships", "en", "zh"),
    [(True, "ships as the default", "作为默认策略发布。"), (False, "has not earned its place", "尚未达到条件")],
)
def test_the_page_says_whether_a_network_has_earned_its_place(tmp_path: Path, en: str, zh: str, *, ships: bool) -> None:
    from pages.scheduling_trained import trained as blocks  # type: ignore[import-not-found]

    trained(tmp_path, ships=ships)
    said = {language: "\n".join(blocks(language, tmp_path, "place")) for language in ("en", "zh")}
    assert en in said["en"]
    assert zh in said["zh"]
    assert ("the rule</text>" in said["en"], "规则</text>" in said["zh"]) == (True, True)
    assert "80 million decisions" in said["en"]
    for text in said.values():
        assert text.count("0.970 (≤\u202f0.980)") == 6
        assert "2026-11-26" in text


def test_without_files_nothing_is_said(tmp_path: Path) -> None:
    from pages.scheduling_trained import trained as blocks

    assert list(blocks("en", tmp_path, "place")) == []
