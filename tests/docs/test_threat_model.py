"""What the threat model names is there: modules, tests, and every attack of the siege."""

import re
from pathlib import Path

import pytest
from service.siege import ATTACKS

ROOT = Path(__file__).parents[2]
SPAN = re.compile(r"`([^`]+)`")
LANGUAGES = ("en", "zh")


def spans(language: str) -> list[str]:
    return SPAN.findall((ROOT / "docs" / language / "threat-model.md").read_text("utf-8"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_modules_and_tests_that_it_names_are_there(language: str) -> None:
    named = [span for span in spans(language) if ".py" in span]
    tests = [span for span in named if "::" in span]
    assert len(tests) > 20
    for span in tests:
        file, name = span.split("::")
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE), span
    for span in (span for span in named if "::" not in span):
        assert (ROOT / span).is_file() or (ROOT / "reference_impl/kuayu" / span).is_file(), span


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_names_every_attack_of_the_siege_in_order(language: str) -> None:
    assert [span for span in spans(language) if span in ATTACKS] == [*ATTACKS]


def test_both_languages_name_the_same() -> None:
    assert spans("en") == spans("zh")
