"""What the page of resilience shows of runs of the suite: all requirements, in both languages, and the commands."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.parsed import parsed
from docs.published import report_on, results
from docs.test_scheduling_measured import words_of

from kuayu_schemas import registers
from kuayu_schemas.models import Profile, RunLevel, Verdict

ROOT = Path(__file__).parents[2]
ITS = [each for each in registers.requirements().requirements if each.profile is Profile.RES and each.check]
DECIDING = {each.id: report_on(each.id) for each in ITS}
"""The report that decides on each requirement."""
RESULTS = [result for name, report in DECIDING.items() for result in report.results if result.requirement == name]
LANGUAGES = {"en": "", "zh": "zh/"}
NAMES = re.compile(r"Clopper-Pearson|\bk[0-9a-f]{10}-\S+|fault-\S+")
"""What stays as it is in Chinese: people, and names that a run has made."""


@pytest.fixture
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


def test_full_runs_decide_on_all_requirements_and_say_what_they_found() -> None:
    assert {report.run_level for report in DECIDING.values()} == {RunLevel.full}
    assert [result.requirement for result in RESULTS] == [each.id for each in ITS]
    assert [result.requirement for result in RESULTS if result.verdict is Verdict.not_applicable] == []


@pytest.mark.usefixtures("hooks")
def test_every_word_of_the_report_is_known_in_chinese() -> None:
    from pages.translations import chinese  # type: ignore[import-not-found]

    left = [
        f"{result.requirement}: {text}"
        for result in RESULTS
        for text in dict.fromkeys(words_of(result))
        if re.search("[a-z]{3}", NAMES.sub("", chinese(text, "RES")))
    ]
    place = "docs/hooks/text/judged_resilience_zh.yaml"
    assert not left, f"say in {place} what these are in Chinese:\n" + "\n".join(left)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_shows_each_requirement_and_the_command(site: Path, language: str) -> None:
    page = parsed(site / LANGUAGES[language] / "results-resilience.html")
    assert all(each.id in page.text for each in ITS)
    assert results()["RES-001"]["command"] in page.text
    assert DECIDING["RES-001"].nonce in page.text
