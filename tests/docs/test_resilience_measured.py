"""The page of how a training fared through failures says what the committed run of ``kuayu live`` found."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docs.parsed import parsed

from kuayu.live.findings import JUDGED_DELAYS, TOLERANCE
from kuayu.live.supervisor import Kind

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs/results/resilience/live.json"
LANGUAGES = {"en": "", "zh": "zh/"}
LEAST = 20
"""Incidents of each kind."""


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


@pytest.fixture(scope="module")
def found() -> Any:
    return json.loads(FILE.read_text("utf-8"))


def test_each_kind_was_brought_about_often_enough_and_left_no_trace_in_the_curve(found: Any) -> None:
    kinds = [each["kind"] for each in found["incidents"]]
    assert {kind: kinds.count(kind) for kind in Kind} == dict.fromkeys(Kind, len(kinds) // len(Kind))
    assert min(map(kinds.count, Kind)) >= LEAST
    assert all(each["interruption"] is not None for each in found["incidents"])
    assert found["largest_difference"] <= TOLERANCE


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_kind_stands_there_with_its_figures(site: Path, language: str, found: Any) -> None:
    page = parsed(site / LANGUAGES[language] / "results-resilience.html")
    for kind in Kind:
        some = sorted(each["interruption"] for each in found["incidents"] if each["kind"] == kind)
        assert kind in page.text
        assert f" / {some[-1]:.3g}" in page.text
    assert f"--seed {found['settings']['seed']}" in page.text
    assert "live:plot:1" in page.ids


def test_requirements_and_aims_are_those_of_the_command() -> None:
    from pages.resilience_measured import AIMS  # type: ignore[import-not-found]

    assert {name: (required, aim) for name, (_, required, aim) in JUDGED_DELAYS.items()} == AIMS


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_not_recovered_from_and_what_was_missed_is_said(tmp_path: Path, language: str, found: Any) -> None:
    from pages.resilience_measured import pages

    folder = tmp_path / "docs/results/resilience"
    folder.mkdir(parents=True)
    (folder / "live.svg").write_text("<svg/>")
    changed = json.loads(json.dumps(found))
    first = changed["incidents"][0]
    first.update(dict.fromkeys(("detected", "decided", "placed", "first", "interruption", "left")))
    changed["percentile_95_and_bound"] = {"RES-003": [30.1, None], "RES-004": [None, None]}
    changed["steps_without_a_loss"] = [17] * 41
    changed["false_alarms"] = [{"worker": "a"}] * 43
    changed["false_alarms_undisturbed"] = []
    (folder / "live.json").write_text(json.dumps(changed))
    (made,) = pages(language, tmp_path)
    count = sum(each["kind"] == first["kind"] for each in changed["incidents"])
    assert f"| <code>{first['kind']}</code> | {count} | {count - 1} |" in made.text
    missed = {"en": "**missed**", "zh": "**未达到**"}[language]
    assert made.text.count(missed) == len(JUDGED_DELAYS)
    for wrong in (1, 41, 43):
        assert f" | {wrong} |\n" in made.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_without_a_run_that_is_said(tmp_path: Path, language: str) -> None:
    from pages.resilience_measured import pages

    (made,) = pages(language, tmp_path)
    assert {"en": "No run", "zh": "尚未提交"}[language] in made.text
