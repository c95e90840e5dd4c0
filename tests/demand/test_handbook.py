"""The handbook is made from the law, in both languages, with drawings that are XML."""

import math
from xml.etree import ElementTree as ET

import pytest

from kuayu_training.demand import handbook_cases
from kuayu_training.demand.handbook import page
from kuayu_training.demand.handbook_cases import drawings, over


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_tells_of_every_model_and_accelerator_and_shows_its_drawings(language: str) -> None:
    text = page(language)  # type: ignore[arg-type]
    made = drawings(language)  # type: ignore[arg-type]
    assert all(f"### {model.name}" in text for model in handbook_cases.MODELS)
    assert all(name in text for name in handbook_cases.ACCELERATORS)
    assert all(f"]({name})" in text for name in made)
    cells = {cell.strip() for line in text.splitlines() if line.startswith("|") for cell in line.split("|")}
    assert not cells & {"inf", "nan", "nan %", "inf %"}


def test_drawings_are_xml() -> None:
    for made in drawings("zh").values():
        assert ET.fromstring(made).tag.endswith("svg")  # noqa: S314 - our own drawing


def test_pages_of_both_languages_hold_the_same_numbers() -> None:
    tables = [
        [line.count("|") for line in page(language).splitlines() if line.startswith("|")]  # type: ignore[arg-type]
        for language in ("en", "zh")
    ]
    assert tables[0] == tables[1]


def test_axes_end_on_round_values() -> None:
    axis = over("x", [3.0, 250.0], logarithmic=True)
    assert (axis.low, axis.high) == (1.0, 1000.0)
    assert axis.ticks() == pytest.approx([1, 10, 100, 1000])
    assert math.isclose(axis.share(10.0), 1 / 3)
