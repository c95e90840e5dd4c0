"""The badge says the verdict in one line."""

from xml.etree import ElementTree as ET

import pytest
from conformance.rendering.samples import TESTED, every_verdict, hostile, sample

from kuayu_conformance.rendering import badge
from kuayu_schemas.models import ConformanceReport

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (sample(), f"kuayu 0.1: MET quick: {TESTED}/{TESTED} pass"),
        (sample({"COM-008": "fail"}), f"kuayu 0.1: MET quick: 1/{TESTED} fail"),
        (sample({"MET-002": "inconclusive"}), f"kuayu 0.1: MET quick: {TESTED - 1}/{TESTED} pass, 1 undecided"),
        (sample({"COM-006": "harness-error"}), "kuayu 0.1: MET quick: suite failed"),
        (sample(profiles=["COM"]), f"kuayu 0.1: COM quick: {TESTED}/{TESTED} pass"),
        (sample(profiles=[]), f"kuayu 0.1: none quick: {TESTED}/{TESTED} pass"),
    ],
)
def test_the_title_says_what_the_picture_shows(report: ConformanceReport, line: str) -> None:
    root = ET.fromstring(badge(report))  # noqa: S314 - written a line above
    assert root.findtext(f"{SVG}title") == root.get("aria-label") == line
    assert ": ".join(text.text or "" for text in root.iter(f"{SVG}text")) == line


def test_each_outcome_has_its_colour() -> None:
    outcomes = ("pass", "fail", "inconclusive", "harness-error")
    colours = {ET.fromstring(badge(sample({"COM-006": verdict})))[2].get("fill") for verdict in outcomes}  # noqa: S314
    assert len(colours) == len(outcomes)


def test_it_is_well_formed_against_a_hostile_target() -> None:
    report = hostile().model_copy(update={"spec_version": '0.1"><script>.0'})
    assert ET.fromstring(badge(report)).find(f"{SVG}script") is None  # noqa: S314
    assert ET.fromstring(badge(every_verdict())) is not None  # noqa: S314
