"""The badge says the verdict in one line."""

from xml.etree import ElementTree as ET

import pytest
from conformance.rendering.samples import TESTED, every_verdict, hostile, sample

from kuayu_conformance.rendering import badge
from kuayu_schemas.models import ConformanceReport

SVG = "{http://www.w3.org/2000/svg}"


def drawn(report: ConformanceReport) -> str:
    found = badge(report)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (sample(), f"kuayu 0.1: MET quick: {TESTED}/{TESTED} pass"),
        (sample({"COM-008": "fail"}), f"kuayu 0.1: MET quick: 1/{TESTED} fail"),
        (sample({"MET-002": "inconclusive"}), f"kuayu 0.1: MET quick: {TESTED - 1}/{TESTED} pass, 1 undecided"),
        (sample({"COM-006": "harness-error"}), "kuayu 0.1: MET quick: suite failed"),
        (
            sample({"COM-006": "harness-error", "COM-008": "fail"}),
            f"kuayu 0.1: MET quick: 1/{TESTED - 1} fail, 1 not judged",
        ),
        (sample(profiles=[]), f"kuayu 0.1: MET quick: {TESTED}/{TESTED} pass"),
    ],
)
def test_the_title_says_what_the_picture_shows(report: ConformanceReport, line: str) -> None:
    root = ET.fromstring(drawn(report))  # noqa: S314 - written a line above
    assert root.findtext(f"{SVG}title") == root.get("aria-label") == line
    assert ": ".join(text.text or "" for text in root.iter(f"{SVG}text")) == line


@pytest.mark.parametrize(
    "report",
    [sample(selection=["COM-008"]), sample(profiles=["COM"]), sample(declaration=None, results=[], exit_code=3)],
    ids=["a selection", "COM alone", "no declaration"],
)
def test_where_nothing_is_claimed_there_is_none(report: ConformanceReport) -> None:
    assert badge(report) is None


def test_each_outcome_has_its_colour() -> None:
    outcomes = ("pass", "fail", "inconclusive", "harness-error")
    colours = {ET.fromstring(drawn(sample({"COM-006": verdict})))[2].get("fill") for verdict in outcomes}  # noqa: S314 - ours
    assert len(colours) == len(outcomes)


def test_it_is_well_formed_against_a_hostile_target() -> None:
    report = hostile().model_copy(update={"spec_version": '0.1"><script>.0'})
    assert ET.fromstring(drawn(report)).find(f"{SVG}script") is None  # noqa: S314 - ours
    assert ET.fromstring(drawn(every_verdict())) is not None  # noqa: S314 - ours
